//! What to change first: what somebody who tunes kernels would read out of a profile.
//!
//! Each rule looks for one waste, says what it costs, and names the line. A cost is a share of what the busiest unit needs
//! ([`Budget`](super::budget::Budget)), so that costs of different units compare; it is the most that a remedy can bring, not a promise.

use super::budget::{Card, from_memory, idle_cycles, is_double};
use super::summary::{Summary, Traffic, count, grouped, percent};
use amdgpu_emulator::profile::{Counts, InstructionProfile};
use amdgpu_emulator::specs::specs;
use amdgpu_emulator::{Gfx, Unit};
use serde::Serialize;
use std::collections::BTreeMap;

/// Costs below this are not worth a line.
const LEAST: f64 = 0.05;
/// Vector instructions of a division of 32-bit integers, as LLVM expands it, each at the full rate.
const DIVISION: f64 = 20.0;

/// A waste, and what to do about it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The rule's name.
    pub rule: &'static str,
    /// The share of the busiest unit's time that it costs at most, from 0 to 1; `None` where the counts do not say.
    pub cost: Option<f64>,
    /// What is so.
    pub what: String,
    /// What usually helps.
    pub advice: String,
    /// The source line that has most of it.
    pub at: Option<Place>,
}

/// A source line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    pub file: String,
    pub line: u32,
}

impl Place {
    fn new((file, line): (&str, u32)) -> Place {
        Place { file: file.to_owned(), line }
    }
}

/// What the rules find, costliest first, and last what cannot be counted.
pub fn of(s: &Summary, gfx: Gfx) -> Vec<Finding> {
    let rules = Rules { s, gfx, card: Card::of(gfx), most: s.budget.most().max(f64::MIN_POSITIVE) };
    let all = [
        rules.grid(),
        rules.tail(),
        rules.workgroup(),
        rules.divergence(),
        rules.scattered(),
        rules.narrow(),
        rules.conflicts(),
        rules.doubles(),
        rules.divisions(),
        rules.scratch(),
        rules.atomics(),
        rules.occupancy(),
    ];
    let mut found: Vec<Finding> = all.into_iter().flatten().collect();
    found.retain(|finding| finding.cost.is_none_or(|cost| cost >= LEAST));
    let key = |finding: &Finding| finding.cost.unwrap_or(-1.0);
    found.sort_by(|a, b| key(b).total_cmp(&key(a)));
    found
}

struct Rules<'a> {
    s: &'a Summary,
    gfx: Gfx,
    card: Card,
    /// Seconds of the busiest unit.
    most: f64,
}

impl Rules<'_> {
    /// A share of the busiest unit's time.
    fn share(&self, seconds: f64) -> Option<f64> {
        Some((seconds / self.most).min(1.0))
    }

    /// The sum of what instructions cost, and the line that has most of it with its part.
    fn sum(&self, cost: impl Fn(&InstructionProfile) -> f64) -> (f64, Option<Place>) {
        let mut lines: BTreeMap<(&str, u32), f64> = BTreeMap::new();
        let mut all = 0.0;
        for instruction in &self.s.instructions {
            let cost = cost(instruction);
            all += cost;
            if cost > 0.0
                && let Some(line) = place(instruction)
            {
                *lines.entry(line).or_default() += cost;
            }
        }
        let most = lines.into_iter().max_by(|(_, a), (_, b)| a.total_cmp(b));
        (all, most.map(|(line, _)| Place::new(line)))
    }

    fn workgroups(&self) -> u64 {
        self.s.grid.iter().map(|&n| u64::from(n)).product()
    }

    /// Fewer workgroups than there are places for them.
    fn grid(&self) -> Option<Finding> {
        let (groups, places) = (self.workgroups(), u64::from(self.card.multiprocessors));
        (groups < places).then(|| Finding {
            rule: "grid",
            cost: Some(1.0 - groups as f64 / places as f64),
            what: format!("{} on {}: the others have nothing to do", count(groups, "workgroup"), self.card.places()),
            advice: "Give each work-item less to do, or split what one workgroup does (along a reduced dimension, say)."
                .to_owned(),
            at: None,
        })
    }

    /// A last round of workgroups that leaves most places empty.
    fn tail(&self) -> Option<Finding> {
        let (groups, places) = (self.workgroups(), u64::from(self.card.multiprocessors));
        let rounds = groups.div_ceil(places);
        if groups <= places || rounds > 4 {
            return None;
        }
        Some(Finding {
            rule: "tail",
            cost: Some(1.0 - groups as f64 / (rounds * places) as f64),
            what: format!(
                "{groups} workgroups on {}: some get {rounds}, the others {} and then wait",
                self.card.places(),
                rounds - 1
            ),
            advice: "More and smaller workgroups spread evenly, and so does a multiple of that number."
                .to_owned(),
            at: None,
        })
    }

    /// Workgroups that do not fill their waves.
    fn workgroup(&self) -> Option<Finding> {
        let (size, wave) = (self.s.workgroup.iter().product::<u32>(), self.s.wave_size.max(1));
        let lanes = size.div_ceil(wave) * wave;
        if size == lanes || size == 0 {
            return None;
        }
        Some(Finding {
            rule: "workgroup",
            cost: Some(1.0 - f64::from(size) / f64::from(lanes)),
            what: format!("workgroups of {size} work-items leave {} of {lanes} lanes off", lanes - size),
            advice: format!("Use a multiple of {wave}, the size of a wave."),
            at: None,
        })
    }

    /// Lanes that wait for others of their wave.
    fn divergence(&self) -> Option<Finding> {
        let wave = self.s.wave_size;
        let idle = |i: &InstructionProfile| match i.unit {
            Unit::Valu => idle_cycles(&self.card, &i.text, wave, &i.counts),
            _ => 0.0,
        };
        let (cycles, line) = self.sum(idle);
        let (mut lanes, mut active) = (0, 0);
        for i in self.s.instructions.iter().filter(|i| i.unit == Unit::Valu) {
            (lanes, active) = (lanes + i.counts.lanes, active + i.counts.active_lanes);
        }
        // The branch is the last instruction before the worst one that turned lanes off.
        let worst = |(_, a): &(usize, f64), (_, b): &(usize, f64)| a.total_cmp(b);
        let worst = self.s.instructions.iter().map(idle).enumerate().max_by(worst).map_or(0, |(at, _)| at);
        let branch = self.s.instructions[..worst].iter().rev().find(|i| narrows(&i.text)).and_then(place);
        let branch = branch.map(Place::new);
        Some(Finding {
            rule: "divergence",
            cost: self.share(self.card.issue(cycles)),
            what: format!("{} of the lanes of vector instructions are off", percent(lanes - active, lanes)),
            advice: "Let neighbouring work-items take the same path: sort or group the work, or compute both sides and select."
                .to_owned(),
            at: branch.or(line),
        })
    }

    /// Accesses that touch more lines than they need.
    fn scattered(&self) -> Option<Finding> {
        let vmem = |i: &InstructionProfile| i.unit == Unit::Vmem;
        let excess = |i: &InstructionProfile| match vmem(i) {
            true => i.counts.bytes_moved.saturating_sub(self.least_moved(i)) as f64,
            false => 0.0,
        };
        let (bytes, line) = self.sum(excess);
        // Where lines are touched once, what is not needed of them comes from memory for nothing.
        let Traffic { needed, .. } = self.s.memory;
        let loaded = from_memory(self.s.memory);
        let in_vain =
            (loaded.saturating_sub(needed) as f64).min(bytes) / loaded.max(1) as f64 * self.s.budget.memory;
        let at =
            self.s.instructions.iter().filter(|i| vmem(i)).max_by(|a, b| excess(a).total_cmp(&excess(b)))?;
        let lanes = at.counts.active_lanes.max(1);
        let each = at.counts.bytes_needed / lanes;
        Some(Finding {
            rule: "scattered",
            cost: self.share(self.card.cache(bytes).max(in_vain)),
            what: format!(
                "accesses of {each} bytes touch {:.1} times the bytes that they need: {} moved, {} needed",
                at.counts.bytes_moved as f64 / at.counts.bytes_needed.max(1) as f64,
                grouped(self.s.memory.moved),
                grouped(self.s.memory.needed)
            ),
            advice: "Let neighbouring work-items access neighbouring addresses: change the order of the loop or the layout, or \
                     transpose through LDS."
                .to_owned(),
            at: line,
        })
    }

    /// Accesses of fewer bytes than one instruction can move.
    fn narrow(&self) -> Option<Finding> {
        const WIDEST: f64 = 16.0;
        let slots = |i: &InstructionProfile| {
            let c = &i.counts;
            let each = c.bytes_needed as f64 / c.active_lanes.max(1) as f64;
            // Scattered ones are another rule's.
            let dense = c.bytes_moved <= self.least_moved(i) * 3 / 2;
            if i.unit == Unit::Vmem && c.atomics == 0 && dense && each > 0.0 && each < 8.0 {
                c.executed as f64 * (1.0 - each / WIDEST)
            } else {
                0.0
            }
        };
        let (spared, line) = self.sum(slots);
        let vmem = self.vmem();
        let each = self.s.memory.needed as f64 / vmem.active_lanes.max(1) as f64;
        Some(Finding {
            rule: "narrow",
            cost: Some(spared / self.s.total.executed.max(1) as f64),
            what: format!(
                "{} memory instructions move {each:.1} bytes a lane on average; one can move 16",
                grouped(vmem.executed)
            ),
            advice: "Give each work-item neighbouring elements, and read them as one value of 16 bytes."
                .to_owned(),
            at: line,
        })
    }

    /// The bytes of the lines that an instruction's accesses touch if they lie one behind the other.
    fn least_moved(&self, i: &InstructionProfile) -> u64 {
        // They are counted by half-waves.
        let halves = i.counts.executed * u64::from(self.s.wave_size / 32).max(1);
        let each = i.counts.bytes_needed.div_ceil(halves.max(1));
        halves * each.next_multiple_of(self.gfx.cache_line())
    }

    /// The counts of all instructions that access device memory.
    fn vmem(&self) -> Counts {
        let row = self.s.units.iter().find(|row| row.unit == Unit::Vmem);
        row.map_or_else(Counts::default, |row| row.counts)
    }

    /// LDS accesses that meet in a bank.
    fn conflicts(&self) -> Option<Finding> {
        let (cycles, line) = self.sum(|i| i.counts.bank_conflicts as f64);
        Some(Finding {
            rule: "bank-conflicts",
            cost: self.share(self.card.lds(cycles)),
            what: format!(
                "{} of LDS cycles are bank conflicts",
                percent(self.s.total.bank_conflicts, self.s.total.lds_cycles)
            ),
            advice: "Pad the rows of the tile by one element, or swizzle its columns, so that the lanes of a half-wave meet 32 \
                     banks."
                .to_owned(),
            at: line,
        })
    }

    /// f64 where it is slow.
    fn doubles(&self) -> Option<Finding> {
        let times = self.card.doubles_take();
        // Twice as long, as on older CDNA, is what f64 costs anywhere.
        if times <= 2.0 {
            return None;
        }
        let (cycles, line) = self.sum(|i| {
            let mnemonic = i.text.split_whitespace().next().unwrap_or_default();
            match i.unit {
                Unit::Valu if is_double(mnemonic) => {
                    i.counts.executed as f64 * self.card.vector_cycles(&i.text, self.s.wave_size)
                }
                _ => 0.0,
            }
        });
        Some(Finding {
            rule: "f64",
            cost: self.share(self.card.issue(cycles)),
            what: format!("f64 takes {times} times as long as f32 on {}", self.gfx),
            advice: "Use f32, or pairs of f32 where more digits are needed; a literal without a suffix may be what makes it f64."
                .to_owned(),
            at: line,
        })
    }

    /// Divisions by numbers that the compiler does not know.
    fn divisions(&self) -> Option<Finding> {
        let divisions = |i: &InstructionProfile| {
            f64::from(u8::from(i.text.starts_with("v_rcp_iflag_f32"))) * i.counts.executed as f64
        };
        let (executed, line) = self.sum(divisions);
        let cycles = executed * DIVISION * self.card.vector_cycles("v_add_u32", self.s.wave_size);
        Some(Finding {
            rule: "division",
            cost: self.share(self.card.issue(cycles)),
            what: format!(
                "{} integer divisions by a number that is not known at compile time, {DIVISION} instructions each",
                grouped(executed as u64)
            ),
            advice: "Divide once outside the loop, use a shift where it is a power of two, or multiply by a reciprocal that the \
                     host has computed."
                .to_owned(),
            at: line,
        })
    }

    /// Registers that were spilled, and arrays that are indexed.
    fn scratch(&self) -> Option<Finding> {
        if self.s.scratch_bytes == 0 {
            return None;
        }
        let is_scratch = |text: &str| {
            text.starts_with("scratch_") || text.starts_with("buffer_") && text.contains("s[0:3], 0")
        };
        let (executed, line) = self.sum(|i| if is_scratch(&i.text) { i.counts.executed as f64 } else { 0.0 });
        let vmem = self.vmem().executed;
        (executed >= vmem as f64 * LEAST).then(|| Finding {
            rule: "scratch",
            cost: None,
            what: format!(
                "{} bytes of scratch memory a work-item; {} of memory instructions access it",
                self.s.scratch_bytes,
                percent(executed as u64, vmem)
            ),
            advice: "Index local arrays by constants only (unroll the loop), and keep fewer values at once."
                .to_owned(),
            at: line,
        })
    }

    /// Atomic operations on device memory.
    fn atomics(&self) -> Option<Finding> {
        let (lanes, line) = self.sum(|i| if i.unit == Unit::Vmem { i.counts.atomics as f64 } else { 0.0 });
        let vmem = self.vmem().active_lanes;
        (lanes > 0.0 && lanes >= vmem as f64 * LEAST).then(|| Finding {
            rule: "atomics",
            cost: None,
            what: format!(
                "{} atomic operations on device memory, {} of its accesses",
                grouped(lanes as u64),
                percent(lanes as u64, vmem)
            ),
            advice: "Where several lanes mean one address, reduce in the wave or in LDS first, and let one lane add.".to_owned(),
            at: line,
        })
    }

    /// Too few waves to hide the latency of memory.
    fn occupancy(&self) -> Option<Finding> {
        let s = self.s;
        let most = self.gfx.most_waves_per_simd();
        let has_vmem = self.vmem().executed > 0;
        // Half of what a SIMD holds commonly hides the latency of memory.
        if s.waves_per_simd >= most / 2 || s.waves_per_simd == 0 || !has_vmem {
            return None;
        }
        let waves = count(s.waves_per_simd.into(), "wave");
        let (what, advice) = match s.occupancy_limit {
            limit if limit.contains("vector registers") || limit.is_empty() => {
                let (fewer, then) = self.fewer_registers()?;
                let peak = s.instructions.iter().max_by_key(|i| i.live_vgprs);
                let live = peak.map_or(0, |i| i.live_vgprs);
                (
                    format!("{} VGPRs: {waves} on a SIMD; {fewer} would give {then}", s.vgprs),
                    format!("At most {live} are live at once, at the line named: keep less there, or unroll less."),
                )
            }
            limit if limit.contains("scalar registers") => (
                format!("{} SGPRs: {waves} on a SIMD", s.sgprs),
                "Keep fewer addresses, sizes and masks of lanes at once: they are what scalar registers hold.".to_owned(),
            ),
            limit if limit.contains("LDS") => (
                format!("{} bytes of LDS: {waves} on a SIMD", grouped(s.lds_bytes.into())),
                "Smaller tiles, or tiles that share their LDS one after the other.".to_owned(),
            ),
            limit => (format!("{waves} on a SIMD: {limit}"), "Other workgroup sizes may fit better.".to_owned()),
        };
        let live = s.instructions.iter().filter(|i| place(i).is_some()).max_by_key(|i| i.live_vgprs);
        let at = live.and_then(place).map(Place::new);
        Some(Finding { rule: "occupancy", cost: None, what, advice, at })
    }

    /// The most registers with which more waves fit, and how many then do.
    fn fewer_registers(&self) -> Option<(u32, u32)> {
        let specs = specs(self.gfx);
        // A wave64 on a target of 32-lane registers takes two for each.
        let factor = (self.s.wave_size / self.gfx.wave_size()).max(1);
        let granule = (specs.vgpr_granule / factor).max(1);
        let fewer = specs.vgprs_per_simd / factor / (self.s.waves_per_simd + 1) / granule * granule;
        let then = (specs.vgprs_per_simd / factor).checked_div(fewer)?.min(specs.waves_per_simd);
        (fewer < self.s.vgprs).then_some((fewer, then))
    }
}

/// The line that an instruction counts for: the innermost of the user's.
pub fn place(instruction: &InstructionProfile) -> Option<(&str, u32)> {
    let line = instruction.source.iter().find(|line| line.is_users())?;
    Some((&line.file, line.line))
}

/// Whether an instruction turns lanes off.
fn narrows(text: &str) -> bool {
    text.contains("saveexec")
        || text.starts_with("v_cmpx")
        || [
            "s_and_b32 exec",
            "s_and_b64 exec",
            "s_andn2_b",
            "s_and_not1_b",
            "s_mov_b32 exec",
            "s_mov_b64 exec",
        ]
        .iter()
        .any(|start| text.starts_with(start) && text.contains(" exec"))
}
