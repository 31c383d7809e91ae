//! How long the kernel is predicted to take: options, text, and a picture of one unit.

use super::chart::escape;
use super::sources::Sources;
use super::summary::{name, time};
use crate::output::{print, print_table, table};
use amdgpu_emulator::Gfx;
use amdgpu_timing::{CARDS, Card, Options, Prediction, Recording, Stall, predict};
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use std::fmt::Write;

/// Whether, and for which card.
#[derive(Args)]
pub struct Timing {
    /// Predict how long the kernel takes on a card, and what limits it
    #[arg(long)]
    pub time: bool,
    /// The card, as in "RX 7900 XTX" [default: one of the target]
    #[arg(long, value_name = "NAME", requires = "time")]
    card: Option<String>,
    /// The card's shader clock [default: the one that it was measured with under load]
    #[arg(long, value_name = "MHZ", requires = "time", value_parser = clap::value_parser!(u32).range(100..=5000))]
    clock: Option<u32>,
    /// Predict the first launch, which finds nothing in caches, rather than one behind others like it
    #[arg(long, requires = "time")]
    cold: bool,
}

impl Timing {
    /// The card that is asked for, which must have the target.
    pub fn card(&self, gfx: Gfx) -> Result<Card> {
        let names = || CARDS.map(|card| card.name).join(", ");
        let mut card = match &self.card {
            None => {
                let card = Card::of(gfx);
                card.with_context(|| {
                    format!(
                        "there is no card with {} among those that are described: {}",
                        gfx.name(),
                        names()
                    )
                })?
            }
            Some(wanted) => match Card::named(wanted) {
                Some(card) => card,
                None => bail!("no card `{wanted}` is described; there are {}", names()),
            },
        };
        ensure!(
            card.gfx == gfx,
            "{} has {}, and the kernel ran on {}: choose the target with --gfx",
            card.name,
            card.gfx.name(),
            gfx.name()
        );
        if let Some(clock) = self.clock {
            card.clock_mhz = f64::from(clock);
        }
        Ok(card)
    }
}

/// Workgroups that are traced: what comes behind is alike in all kernels that have so many.
const MOST_TRACED: u64 = 1 << 16;

/// What records a launch for a card.
pub fn recording(card: Card) -> Recording {
    Recording::new(card, MOST_TRACED)
}

/// The prediction of a launch that was recorded.
pub fn of(timing: &Timing, card: &Card, recording: &Recording) -> Result<Prediction> {
    let recorded = recording.take().context("the launch was not recorded")?;
    Ok(predict(card, &recorded, Options { cold: timing.cold, what_if: true }))
}

fn reason(stall: Stall) -> &'static str {
    match stall {
        Stall::Memory => "memory",
        Stall::Lds => "LDS",
        Stall::Scalar => "scalar loads",
        Stall::Dependency => "a result",
        Stall::Pipe => "a busy unit",
        Stall::Barrier => "a barrier",
    }
}

fn share(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// In text.
pub fn print_prediction(p: &Prediction, sources: &Sources, most: usize) -> Result<()> {
    let busy: Vec<String> =
        p.busy.iter().take(5).map(|(what, of)| format!("{what} {}", share(*of))).collect();
    let stalls: Vec<String> =
        p.stalls.iter().map(|(why, of)| format!("{} {}", reason(*why), share(*of))).collect();
    print(&format!(
        "\npredicted on a {} at {:.0} MHz: {}, give or take {} ({} of it the launch)\n\
         limited by {}; busy: {}\n\
         {:.1} of {} waves on a SIMD; of their clocks they wait for: {}\n\
         bytes from L0 {}, L1 {}, L2 {}, Infinity Cache {}, DRAM {}; written to DRAM {}",
        p.card,
        p.clock_mhz,
        time(p.seconds),
        share(p.band),
        time(p.launch_seconds),
        p.limiter,
        busy.join(", "),
        p.waves.0,
        p.waves.1,
        stalls.join(", "),
        bytes(p.bytes[0]),
        bytes(p.bytes[1]),
        bytes(p.bytes[2]),
        bytes(p.bytes[3]),
        bytes(p.bytes[4]),
        bytes(p.bytes[5]),
    ))?;
    for what_if in &p.what_if {
        let change = (what_if.seconds / p.seconds - 1.0) * 100.0;
        print(&format!("with {}: {} ({change:+.0} %)", what_if.what, time(what_if.seconds)))?;
    }
    print("")?;
    let mut rows = table(["stalled", "mostly for", "line", "source"], 0);
    for column in [1, 2, 3] {
        if let Some(column) = rows.column_mut(column) {
            column.set_cell_alignment(comfy_table::CellAlignment::Left);
        }
    }
    for line in p.lines.iter().take(most) {
        let (at, text) = match &line.source {
            Some(source) => {
                let text = sources.line(&source.file, source.line).unwrap_or_default();
                (format!("{}:{}", name(&source.file), source.line), text)
            }
            None => ("(no source position)".to_owned(), String::new()),
        };
        rows.add_row([
            share(line.share),
            reason(line.reason).to_owned(),
            at,
            text.chars().take(70).collect(),
        ]);
    }
    print_table(&rows)
}

fn bytes(bytes: f64) -> String {
    match bytes {
        b if b < 1e4 => format!("{b:.0}"),
        b if b < 1e7 => format!("{:.1} kB", b / 1e3),
        b if b < 1e10 => format!("{:.1} MB", b / 1e6),
        b => format!("{:.1} GB", b / 1e9),
    }
}

/// Waves that the picture has.
const ROWS: u32 = 48;

/// For the page: the numbers, and what the first waves of one unit did.
pub fn html(p: &Prediction) -> String {
    let mut html = format!(
        "<h2>Time</h2><p>Predicted on a {} at {:.0} MHz: <b>{}</b>, give or take {}; limited by {}. The picture shows the first \
         waves of one unit (a compute unit, on RDNA a workgroup processor), a row each: grey where a wave executes, coloured where it \
         waits.</p>\n<div class='card'>{}<table><tr><th>busy<th>share</tr>",
        escape(p.card),
        p.clock_mhz,
        time(p.seconds),
        share(p.band),
        escape(&p.limiter),
        timeline(p),
    );
    for (what, of) in &p.busy {
        let _ = write!(html, "<tr><td>{what}<td class='n'>{}</tr>", share(*of));
    }
    html += "</table><table><tr><th>with<th>time</tr>";
    for what_if in &p.what_if {
        let _ = write!(html, "<tr><td>{}<td class='n'>{}</tr>", escape(&what_if.what), time(what_if.seconds));
    }
    html += "</table><table><tr><th>line<th>mostly for<th>stalled</tr>";
    for line in p.lines.iter().take(20) {
        let at = line.source.as_ref().map_or("(no source position)".to_owned(), |source| {
            format!("{}:{}", escape(name(&source.file)), source.line)
        });
        let _ =
            write!(html, "<tr><td>{at}<td>{}<td class='n'>{}</tr>", reason(line.reason), share(line.share));
    }
    html += "</table></div>\n";
    html
}

fn timeline(p: &Prediction) -> String {
    let mut numbers: Vec<u32> = p.spans.iter().map(|span| span.wave).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers.truncate(ROWS as usize);
    let row = |wave: u32| numbers.binary_search(&wave).ok();
    let shown = || p.spans.iter().filter(|span| row(span.wave).is_some());
    let end = shown().map(|span| span.end).fold(1.0, f64::max);
    let height = numbers.len() * 8 + 40;
    let mut svg =
        format!("<svg viewBox='0 0 900 {height}' width='100%' role='img' aria-label='timeline of one unit'>");
    let colours = |stall: Option<Stall>| match stall {
        None => "#9aa3ad",
        Some(Stall::Memory) => "#c8553d",
        Some(Stall::Lds) => "#d9a441",
        Some(Stall::Scalar) => "#7b6fb0",
        Some(Stall::Dependency) => "#5b8db8",
        Some(Stall::Pipe) => "#4f9d69",
        Some(Stall::Barrier) => "#8c6d46",
    };
    // Lives first, what they waited for on top.
    for lives in [true, false] {
        for span in shown().filter(|span| span.stall.is_none() == lives) {
            let Some(row) = row(span.wave) else { continue };
            let (x, width) = (span.start / end * 900.0, (span.end - span.start) / end * 900.0);
            if width < 0.2 {
                continue;
            }
            let _ = write!(
                svg,
                "<rect x='{x:.1}' y='{}' width='{width:.1}' height='7' fill='{}'/>",
                row * 8,
                colours(span.stall)
            );
        }
    }
    let (mut x, y) = (0, height - 14);
    let reasons = [Stall::Memory, Stall::Lds, Stall::Scalar, Stall::Dependency, Stall::Pipe, Stall::Barrier];
    for stall in [None].into_iter().chain(reasons.map(Some)) {
        let text = stall.map_or("executes", reason);
        let _ = write!(
            svg,
            "<rect x='{x}' y='{}' width='10' height='10' fill='{}'/><text x='{}' y='{y}' font-size='11'>{text}</text>",
            y - 9,
            colours(stall),
            x + 14
        );
        x += 110;
    }
    let _ =
        write!(svg, "<text x='899' y='{y}' font-size='11' text-anchor='end'>{end:.0} clocks</text></svg>");
    svg
}
