//! What each instruction costs, apart from memory: the pipe that it takes, for how long, and when its result is there.
//!
//! Latencies and rates are LLVM's scheduling model and AMD's published rates; matrix instructions have the passes of AMD's
//! matrix instruction calculator.

use amdgpu_emulator::inst::{Format, Inst, Operand, SpecialReg};

use crate::card::Card;

/// What an instruction occupies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pipe {
    /// The vector unit of a SIMD.
    Valu,
    /// Its transcendental unit.
    Trans,
    /// Its matrix unit.
    Matrix,
    /// The scalar unit.
    Salu,
    /// Scalar memory.
    Smem,
    /// LDS.
    Lds,
    /// Vector memory.
    Vmem,
    /// Nothing: hints, waits, branches.
    None,
}

/// What a wave waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Waits {
    /// Loads, and before gfx10 stores, that may be under way.
    pub vm: Option<u32>,
    /// Stores that may be under way, from gfx10 on.
    pub vs: Option<u32>,
    /// LDS and scalar loads that may be under way.
    pub lgkm: Option<u32>,
}

/// The cost of an instruction.
#[derive(Clone, Debug)]
pub struct Cost {
    /// What it occupies.
    pub pipe: Pipe,
    /// For so many clocks.
    pub issue: f64,
    /// Clocks until the wave's next instruction can issue.
    pub next: f64,
    /// Clocks until its result can be read.
    pub latency: f64,
    /// What it reads and writes: vector registers, from 512 on scalar ones.
    pub reads: Vec<u16>,
    /// See [`Cost::reads`].
    pub writes: Vec<u16>,
    /// What it waits for.
    pub waits: Option<Waits>,
    /// It waits for the workgroup.
    pub barrier: bool,
    /// It is a FLAT instruction, which every counter counts.
    pub flat: bool,
    /// Clocks more if it branches.
    pub taken: f64,
}

/// Scalar registers come behind the vector registers.
const SCALAR: u16 = 512;
/// Registers of both kinds.
pub const REGISTERS: usize = 512 + 256;

fn registers(operand: &Operand, into: &mut Vec<u16>) {
    let range = |first: u16, count: u8| first..first + u16::from(count.max(1));
    match *operand {
        Operand::Vgpr { index, count } => into.extend(range(index.into(), count)),
        Operand::VgprHalf { index, .. } => into.push(index.into()),
        Operand::Agpr { index, count } => into.extend(range(256 + u16::from(index), count)),
        Operand::Sgpr { index, count } => into.extend(range(SCALAR + u16::from(index), count)),
        Operand::Special(register) => into.extend(match register {
            SpecialReg::VccLo => range(SCALAR + 106, 1),
            SpecialReg::Vcc => range(SCALAR + 106, 2),
            SpecialReg::M0 => range(SCALAR + 124, 1),
            _ => return,
        }),
        _ => {}
    }
}

/// Counters that an instruction waits for.
fn waits(inst: &Inst) -> Option<Waits> {
    let number = || {
        inst.operands.iter().find_map(|operand| match operand {
            Operand::Imm(value) => Some(*value as u32),
            _ => None,
        })
    };
    let mut waits = Waits::default();
    match inst.name {
        "s_waitcnt" => {
            let of = inst.operands.iter().find_map(|operand| match operand {
                Operand::Waitcnt(of) => Some(*of),
                _ => None,
            })?;
            waits.vm = of.vmcnt.map(u32::from);
            waits.lgkm = of.lgkmcnt.map(u32::from);
        }
        "s_waitcnt_vscnt" | "s_wait_storecnt" => waits.vs = number(),
        "s_waitcnt_vmcnt" | "s_wait_loadcnt" => waits.vm = number(),
        "s_waitcnt_lgkmcnt" | "s_wait_dscnt" | "s_wait_kmcnt" => waits.lgkm = number(),
        "s_wait_loadcnt_dscnt" => {
            waits.vm = number().map(|n| n >> 8 & 0x3f);
            waits.lgkm = number().map(|n| n & 0x3f);
        }
        _ => return None,
    }
    Some(waits)
}

impl Cost {
    /// Of an instruction on a card, in waves of so many lanes.
    pub fn of(card: &Card, inst: &Inst, wave_size: u32) -> Cost {
        let cdna = card.is_cdna();
        let quad = if cdna { 4.0 } else { 1.0 };
        let mut cost = Cost {
            pipe: Pipe::None,
            issue: 0.0,
            next: quad,
            latency: quad,
            reads: Vec::new(),
            writes: Vec::new(),
            waits: waits(inst),
            barrier: matches!(inst.name, "s_barrier" | "s_barrier_wait"),
            flat: inst.format == Format::Flat,
            taken: 0.0,
        };
        for half in [Some(inst), inst.vopd_y.as_deref()].into_iter().flatten() {
            half.srcs().iter().for_each(|operand| registers(operand, &mut cost.reads));
            half.dsts().iter().for_each(|operand| registers(operand, &mut cost.writes));
            if ["mac", "fmac", "dot2c", "dot4c"].iter().any(|part| half.name.contains(part)) {
                half.dsts().iter().for_each(|operand| registers(operand, &mut cost.reads));
            }
        }
        match inst.format {
            Format::Sop1 | Format::Sop2 | Format::Sopc | Format::Sopk => {
                (cost.pipe, cost.issue) = (Pipe::Salu, quad);
                cost.latency = if cdna { 4.0 } else { 2.0 };
            }
            Format::Sopp => {
                if inst.name == "s_nop"
                    && let Some(Operand::Imm(n)) = inst.operands.first()
                {
                    cost.next = quad * (*n as f64 + 1.0);
                }
                if inst.name.contains("branch") {
                    // LLVM's latency of a branch, if it is taken.
                    cost.taken = 28.0;
                    cost.next = 4.0;
                }
                if matches!(inst.name, "s_delay_alu" | "s_clause") {
                    cost.next = 0.0;
                }
            }
            Format::Smem => (cost.pipe, cost.issue) = (Pipe::Smem, quad),
            Format::Ds => (cost.pipe, cost.issue) = (Pipe::Lds, 1.0),
            Format::Flat | Format::Global | Format::Scratch | Format::Mubuf | Format::Mtbuf => {
                (cost.pipe, cost.issue) = (Pipe::Vmem, 1.0);
            }
            _ => vector(card, inst, wave_size, &mut cost),
        }
        cost
    }
}

/// Vector instructions.
fn vector(card: &Card, inst: &Inst, wave_size: u32, cost: &mut Cost) {
    let cdna = card.is_cdna();
    let name = inst.name;
    if name.contains("mfma") || name.contains("wmma") {
        let clocks = matrix_clocks(card, name);
        cost.pipe = Pipe::Matrix;
        cost.issue = clocks;
        cost.latency = clocks + if cdna { 8.0 } else { 0.0 };
        return;
    }
    let passes = if cdna { 4.0 } else { f64::from(wave_size / 32) };
    cost.pipe = Pipe::Valu;
    (cost.issue, cost.latency) = (passes, if cdna { 4.0 } else { 5.0 + passes - 1.0 });
    let transcendental = ["v_exp", "v_log", "v_rcp", "v_rsq", "v_sqrt", "v_sin", "v_cos"];
    let is_f64 = name.contains("f64") && !name.starts_with("v_mov");
    if transcendental.iter().any(|start| name.starts_with(start)) {
        let clocks = passes * 4.0 * if is_f64 && !cdna { 4.0 } else { 1.0 };
        cost.pipe = if cdna { Pipe::Valu } else { Pipe::Trans };
        (cost.issue, cost.latency) = (clocks, if cdna { clocks } else { clocks + 6.0 });
    } else if is_f64 {
        cost.issue = f64::from(card.f64_clocks) * if cdna { 1.0 } else { passes };
        cost.latency = if cdna { cost.issue } else { cost.issue + 6.0 };
    } else if ["v_mul_lo_u32", "v_mul_hi", "v_mad_u64_u32", "v_mad_i64_i32", "v_mad_co_u64", "v_mad_co_i64"]
        .iter()
        .any(|start| name.starts_with(start))
    {
        cost.issue = passes * 4.0;
        cost.latency = if cdna { 16.0 } else { cost.issue + 4.0 };
    } else if !cdna && wave_size == 64 && card.gfx.name() >= "gfx11" && is_simple_f32(name) {
        // RDNA 3 gives both halves of a wave64 to its two vector units at once.
        cost.issue = 1.0;
        cost.latency = 5.0;
    }
    cost.next = cost.issue.min(passes).max(1.0);
    if inst.vopd_y.is_some() {
        cost.issue = bank_clocks(inst);
        cost.next = cost.issue;
        cost.latency = 5.0 + cost.issue - 1.0;
    }
}

/// What the second vector unit of RDNA 3 has.
fn is_simple_f32(name: &str) -> bool {
    ["v_fma_f32", "v_fmac_f32", "v_mul_f32", "v_add_f32", "v_sub_f32", "v_max_f32", "v_min_f32", "v_mov_b32"]
        .contains(&name)
}

/// Clocks of a dual instruction: four banks have one port each, and the two sources 0, the two sources 1 and the two
/// accumulators are fetched side by side (seb-v's account of VOPD).
fn bank_clocks(inst: &Inst) -> f64 {
    let halves = [Some(inst), inst.vopd_y.as_deref()].into_iter().flatten();
    let mut reads = Vec::new();
    for half in halves {
        half.srcs().iter().for_each(|operand| registers(operand, &mut reads));
        if half.name.contains("fmac") {
            half.dsts().iter().for_each(|operand| registers(operand, &mut reads));
        }
    }
    reads.retain(|&register| register < 256);
    reads.sort_unstable();
    reads.dedup();
    let most = (0..4).map(|bank| reads.iter().filter(|&&register| register % 4 == bank).count()).max();
    // The banks' caches keep what the instruction before has read: one register of a bank comes from there.
    (most.unwrap_or(1) as f64 - 1.0).max(1.0)
}

/// Clocks that a matrix instruction takes its SIMD.
fn matrix_clocks(card: &Card, name: &str) -> f64 {
    if !card.is_cdna() {
        return match (
            card.gfx.name() >= "gfx12",
            name.contains("iu4") || name.contains("iu8") || name.contains("fp8"),
        ) {
            (true, true) => 8.0,
            (true, false) => 16.0,
            (false, _) if name.contains("iu4") => 16.0,
            (false, _) => 32.0,
        };
    }
    let new = card.gfx.name() == "gfx942";
    let of = |shape: &str| name.contains(shape);
    let is_f64 = name.contains("_f64_");
    let wide = of("x1_") || of("x1f32") || of("x2f32") || of("x2_f32") || of("x1xf32");
    match () {
        () if of("4x4x4") && is_f64 => 16.0,
        () if of("4x4x") => 8.0,
        () if is_f64 => 32.0,
        () if of("32x32x") && new && !wide => 32.0,
        () if of("32x32x") => 64.0,
        () if new && !of("16x16x4f32") && !of("16x16x4_f32") && !of("16x16x1") => 16.0,
        () => 32.0,
    }
}
