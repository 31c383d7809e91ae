//! From a recorded launch to a prediction.

use std::collections::BTreeMap;

use amdgpu_emulator::fault::SourceLine;
use serde::Serialize;

use crate::cache::{self, Answers, DRAM};
use crate::card::Card;
use crate::cost::Cost;
use crate::engine::{Engine, LIMITS, Outcome, Span, Stall};
use crate::occupancy::Occupancy;
use crate::record::{Recorded, SAMPLED};

/// Kinds of kernels, for which the model's error was found apart (benches/timing.md).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub enum Class {
    /// Bound by the bandwidth of DRAM or the Infinity Cache.
    Streaming,
    /// Bound by the vector units, the matrix units or LDS.
    Arithmetic,
    /// Bound by caches and addresses.
    Cache,
    /// Bound by latency, the launch or dispatch.
    Latency,
}

impl Class {
    /// The error that nine of ten kernels of the class stay below, as a share.
    pub fn band(self) -> f64 {
        match self {
            Class::Streaming => 0.25,
            Class::Arithmetic => 0.60,
            Class::Cache => 0.50,
            Class::Latency => 0.50,
        }
    }
}

/// The clocks that waves waited at a source line.
#[derive(Clone, Debug, Serialize)]
pub struct LineStalls {
    /// The line; `None` for instructions without one.
    pub source: Option<SourceLine>,
    /// Clocks, summed over the waves that were simulated.
    pub clocks: f64,
    /// Of all such clocks.
    pub share: f64,
    /// What most of them were for.
    pub reason: Stall,
}

/// The time if something were different.
#[derive(Clone, Debug, Serialize)]
pub struct WhatIf {
    /// What.
    pub what: String,
    /// Seconds.
    pub seconds: f64,
}

/// What a launch is predicted to take.
#[derive(Clone, Debug, Serialize)]
pub struct Prediction {
    /// The card.
    pub card: &'static str,
    /// Shader clock in MHz.
    pub clock_mhz: f64,
    /// Seconds, the launch included.
    pub seconds: f64,
    /// Seconds of it that a launch takes before any wave runs.
    pub launch_seconds: f64,
    /// The kernel's class, and the error that is to be expected, as a share.
    pub class: Class,
    /// See [`Prediction::class`].
    pub band: f64,
    /// What limits it.
    pub limiter: String,
    /// The share of the time that each resource is busy.
    pub busy: Vec<(&'static str, f64)>,
    /// Waves on a SIMD: on average, and at most by the kernel's registers, LDS and workgroups.
    pub waves: (f64, u32),
    /// Bytes that each level answers: L0, L1, L2, Infinity Cache, DRAM; and that DRAM writes.
    pub bytes: [f64; 6],
    /// Clocks that waves wait, by reason, as shares of their lives.
    pub stalls: Vec<(Stall, f64)>,
    /// The lines at which most of them wait.
    pub lines: Vec<LineStalls>,
    /// What else it could be.
    pub what_if: Vec<WhatIf>,
    /// The first waves of one unit, for a picture.
    #[serde(skip)]
    pub spans: Vec<Span>,
    /// The share of the launch's workgroups that were traced.
    pub sampled: f64,
}

/// What to predict.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// The caches hold nothing of the launch's memory. By default they hold what such a launch has left there, as far as
    /// it fits.
    pub cold: bool,
    /// Fill [`Prediction::what_if`], which takes three times as long.
    pub what_if: bool,
}

/// Predicts a launch on a card.
pub fn predict(card: &Card, recorded: &Recorded, options: Options) -> Prediction {
    let occupancy = Occupancy::of(card, recorded);
    let costs: Vec<Option<Cost>> = costs(card, recorded);
    let answers = cache::answer(card, recorded, occupancy.workgroups, options.cold);
    let outcome = Engine::new(card, recorded, &answers, &costs, occupancy).run();
    let clocks = clocks(card, recorded, &outcome, occupancy);
    let seconds = clocks / (card.clock_mhz * 1e6) + card.launch * 1e-9;
    let mut prediction = describe(card, recorded, &answers, &outcome, occupancy, seconds);
    if options.what_if {
        prediction.what_if = what_if(card, recorded, &answers, &costs, occupancy);
    }
    prediction
}

fn costs(card: &Card, recorded: &Recorded) -> Vec<Option<Cost>> {
    let facts = &recorded.facts;
    let of = |inst: &amdgpu_emulator::inst::Inst| Cost::of(card, inst, facts.wave_size);
    facts.instructions.iter().map(|inst| inst.as_ref().map(of)).collect()
}

/// Clocks of the whole launch, by those of the sample.
fn clocks(card: &Card, recorded: &Recorded, outcome: &Outcome, occupancy: Occupancy) -> f64 {
    let all = recorded.facts.workgroups;
    let traced = recorded.workgroups.len() as u64;
    let finished = &outcome.finished;
    let active = u64::from(card.units).min(all);
    let sampled = SAMPLED.min(active as u32);
    // Workgroups that start together end together: only behind three rounds of them their ends tell a rate.
    if traced >= all || (finished.len() as u32) < occupancy.workgroups * sampled * 3 {
        return outcome.end * (all as f64 / traced.max(1) as f64).max(1.0);
    }
    // The middle of the sample is the steady state.
    let (from, to) = (finished.len() / 4, finished.len() * 3 / 4);
    let each = (finished[to] - finished[from]) / (to - from) as f64;
    // What is shared cannot give more in the long run, whatever its queues take up at first.
    let shared = outcome.busy[5..].iter().copied().fold(0.0, f64::max) * outcome.end;
    let each = each.max(shared / finished.len() as f64);
    let missing = (all - traced) as f64 / active as f64 * f64::from(sampled);
    outcome.end + missing * each
}

fn what_if(
    card: &Card,
    recorded: &Recorded,
    answers: &Answers,
    costs: &[Option<Cost>],
    occupancy: Occupancy,
) -> Vec<WhatIf> {
    let seconds = |card: &Card, occupancy: Occupancy| {
        let outcome = Engine::new(card, recorded, answers, costs, occupancy).run();
        clocks(card, recorded, &outcome, occupancy) / (card.clock_mhz * 1e6) + card.launch * 1e-9
    };
    let most = recorded.facts.gfx.most_waves_per_simd();
    let mut list = Vec::new();
    let mut add = |what: String, seconds| list.push(WhatIf { what, seconds });
    if occupancy.waves < most {
        let twice =
            Occupancy { waves: (occupancy.waves * 2).min(most), workgroups: occupancy.workgroups * 2 };
        add(format!("room for {} waves on a SIMD", twice.waves), seconds(card, twice));
    }
    if occupancy.waves > 1 {
        let half = Occupancy { waves: occupancy.waves / 2, workgroups: (occupancy.workgroups / 2).max(1) };
        add(format!("room for {} waves on a SIMD", half.waves), seconds(card, half));
    }
    let slower = Card { clock_mhz: card.clock_mhz * 0.8, ..*card };
    add(format!("{:.0} MHz", slower.clock_mhz), seconds(&slower, occupancy));
    list
}

fn describe(
    card: &Card,
    recorded: &Recorded,
    answers: &Answers,
    outcome: &Outcome,
    occupancy: Occupancy,
    seconds: f64,
) -> Prediction {
    let launch_seconds = card.launch * 1e-9;
    let mut busy: Vec<(&'static str, f64)> = LIMITS.into_iter().zip(outcome.busy).collect();
    busy.sort_by(|one, two| two.1.total_cmp(&one.1));
    let (first, share) = busy[0];
    let (class, limiter) = match first {
        _ if launch_seconds > seconds * 0.5 => (Class::Latency, "launch".to_owned()),
        _ if share < 0.6 => (
            Class::Latency,
            format!("latency, with {} of {} waves on a SIMD", round(waves(outcome)), occupancy.waves),
        ),
        "DRAM" | "Infinity Cache" => (Class::Streaming, first.to_owned()),
        "VALU" | "matrix unit" | "LDS" | "SALU" => (Class::Arithmetic, first.to_owned()),
        "dispatch" => (Class::Latency, first.to_owned()),
        _ => (Class::Cache, first.to_owned()),
    };
    let scale = recorded.facts.workgroups as f64 / recorded.workgroups.len().max(1) as f64;
    let mut bytes = [0.0; 6];
    for (into, &asked) in bytes.iter_mut().zip(answers.asked.iter().chain([&answers.written])) {
        *into = asked as f64 * scale;
    }
    debug_assert_eq!(DRAM, 4);
    let mut stalls: BTreeMap<Stall, f64> = BTreeMap::new();
    outcome.stalls.iter().for_each(|(&(_, why), &clocks)| *stalls.entry(why).or_default() += clocks);
    let mut stalls: Vec<_> =
        stalls.into_iter().map(|(why, clocks)| (why, clocks / outcome.wave_clocks.max(1.0))).collect();
    stalls.sort_by(|one, two| two.1.total_cmp(&one.1));
    let traced = recorded.workgroups.len() as f64 / recorded.facts.workgroups as f64;
    Prediction {
        card: card.name,
        clock_mhz: card.clock_mhz,
        seconds,
        launch_seconds,
        class,
        band: class.band(),
        limiter,
        busy,
        waves: (waves(outcome), occupancy.waves),
        bytes,
        stalls,
        lines: lines(recorded, outcome),
        what_if: Vec::new(),
        spans: outcome.spans.clone(),
        sampled: traced,
    }
}

fn round(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// Waves on a SIMD on average.
fn waves(outcome: &Outcome) -> f64 {
    outcome.wave_clocks / (outcome.end.max(1.0) * f64::from(outcome.simds.max(1)))
}

/// Stalls by the user's source line, most first.
fn lines(recorded: &Recorded, outcome: &Outcome) -> Vec<LineStalls> {
    type Key<'a> = Option<(&'a str, u32)>;
    let mut lines: BTreeMap<Key<'_>, (Option<&SourceLine>, BTreeMap<Stall, f64>)> = BTreeMap::new();
    for (&(index, why), &clocks) in &outcome.stalls {
        let source = &recorded.facts.sources[index as usize];
        let line = source.iter().find(|line| line.is_users()).or(source.first());
        let key = line.map(|line| (&*line.file, line.line));
        let (_, reasons) = lines.entry(key).or_insert((line, BTreeMap::new()));
        *reasons.entry(why).or_default() += clocks;
    }
    let all: f64 = outcome.stalls.values().sum();
    let mut lines: Vec<LineStalls> = lines
        .into_values()
        .map(|(source, reasons)| {
            let clocks = reasons.values().sum();
            let most = reasons.iter().max_by(|one, two| one.1.total_cmp(two.1));
            LineStalls {
                source: source.cloned(),
                clocks,
                share: clocks / all.max(1.0),
                reason: most.map_or(Stall::Pipe, |(&why, _)| why),
            }
        })
        .collect();
    lines.sort_by(|one, two| two.clocks.total_cmp(&one.clocks));
    lines
}
