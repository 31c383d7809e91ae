//! A profile as a page that needs nothing else.

use super::baseline::{Change, Comparison};
use super::chart::{self, escape};
use super::findings;
use super::sources::Sources;
use super::summary::{LineRow, Summary, count, grouped, name, percent, short, time};
use super::terminal::{File, by_file, cost, ranges};
use super::timing;
use amdgpu_emulator::profile::InstructionProfile;
use std::fmt::Write;

/// The page.
pub fn page(s: &Summary, sources: &Sources, comparison: Option<&Comparison>) -> String {
    let name = escape(&s.kernel);
    let sizes = |sizes: [u32; 3]| sizes.map(|n| n.to_string()).join(" × ");
    format!(
        "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'>\
         <meta name='viewport' content='width=device-width, initial-scale=1'>\
         <title>{name} on {gfx}</title><style>{css}</style></head><body><main>\n\
         <h1>{name}</h1><p>on {gfx}: {groups} ({grid}) of {workgroup}, in {waves} of {wave} lanes.</p>\n\
         {tiles}\n{findings}{comparison}{time}\
         <h2>Instruction mix</h2><p>What the waves executed, by the unit that executes it. Every number is an exact count.</p>\n\
         <div class='card'>{mix}{units}</div>\n\
         <h2>Units</h2><p>The least time that each unit of a {card} needs for this, by its throughput alone: no latency, no waiting. The \
         longest bounds the kernel.</p>\n<div class='card'>{budget}</div>\n\
         <h2>Roofline</h2><p>What the published peaks of a {card} allow. An operation is one lane's result of a vector \
         instruction; a fused multiply-add is two. The filled point counts each of the kernel's buffers once, the hollow \
         one every cache line that an instruction touches: caches put a real GPU between them.</p>\n\
         <div class='card'>{roofline}</div>\n\
         <h2>Source</h2><p>Instructions that each line stands for, and their share of all, alone and with what is inlined \
         under it, and the most vector registers that are live there. Lines of the standard library count for the line that \
         called them.</p>\n{source}\n\
         <h2>Calls</h2><p>Inlined functions under those that call them, the wider the more instructions.</p>\n\
         <div class='card'>{flame}</div>\n\
         <h2>Instructions</h2>{program}<p style='margin-top:12px'>The {shown} that executed most.</p>\n\
         <div class='card'>{instructions}</div>\n\
         <footer>candle-amdgpu {version}, on the emulator: counts are exact.</footer>\n</main></body></html>\n",
        gfx = s.gfx,
        css = include_str!("page.css"),
        groups = count(s.workgroups, "workgroup"),
        grid = sizes(s.grid),
        workgroup = sizes(s.workgroup),
        waves = count(s.waves, "wave"),
        wave = s.wave_size,
        tiles = tiles(s),
        findings = findings(s),
        comparison = comparison.map_or(String::new(), compared),
        budget = budget(s),
        time = s.prediction.as_ref().map_or(String::new(), timing::html),
        program = program_order(s, sources),
        mix = chart::mix(&s.units, s.total.executed),
        units = units(s),
        card = escape(&s.roofline.peaks.of),
        roofline = chart::roofline(&s.roofline),
        source = source(s, sources),
        flame = chart::flame(s),
        shown = SHOWN.min(s.instructions.len()),
        instructions = instructions(s),
        version = env!("CARGO_PKG_VERSION"),
    )
}

/// A page for all kernels of a program, those with most instructions first.
pub fn program_page(program: &str, kernels: &[(u64, Summary)], sources: &Sources) -> String {
    let all: u64 = kernels.iter().map(|(_, s)| s.total.executed).sum();
    let mut html = format!(
        "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'>\
         <meta name='viewport' content='width=device-width, initial-scale=1'>\
         <title>{program}</title><style>{css}</style></head><body><main>\n\
         <h1>{program}</h1><p>{kernels} on emulated devices, {instructions} wave instructions. Every number is an exact count of \
         all launches of a kernel.</p>\n<div class='card'><table><tr><th>kernel<th style='text-align:left'>target<th>launches\
         <th>executed<th>share<th>lanes active<th>bytes needed<th>bytes moved<th>conflicts</tr>",
        program = escape(program),
        css = include_str!("page.css"),
        kernels = count(kernels.len() as u64, "kernel"),
        instructions = grouped(all),
    );
    for (number, (launches, s)) in kernels.iter().enumerate() {
        let _ = write!(
            html,
            "<tr><td>{name}<td>{gfx}<td class='n'>{launches}<td class='n'>{executed}<td class='n'>{share}<td class='n'>{lanes}\
             <td class='n'>{needed}<td class='n'>{moved}<td class='n'>{conflicts}</tr>",
            name = match number < DETAILED {
                true => format!("<a href='#k{number}'>{}</a>", escape(&s.kernel)),
                false => escape(&s.kernel),
            },
            gfx = s.gfx,
            launches = grouped(*launches),
            executed = grouped(s.total.executed),
            share = percent(s.total.executed, all),
            lanes = percent(s.total.active_lanes, s.total.lanes),
            needed = or_dot(s.memory.needed),
            moved = or_dot(s.memory.moved),
            conflicts = or_dot(s.total.bank_conflicts),
        );
    }
    html += "</table></div>\n";
    for (number, (launches, s)) in kernels.iter().enumerate().take(DETAILED) {
        let sizes = |sizes: [u32; 3]| sizes.map(|n| n.to_string()).join(" × ");
        let _ = write!(
            html,
            "<h1 id='k{number}' style='margin-top:56px'>{name}</h1><p>{launches} on {gfx}, {groups} in all; the last launch had \
             {grid} of {workgroup}. {vgprs} VGPRs, {sgprs} SGPRs, {lds} bytes of LDS, {scratch} of scratch memory; {fit} on a \
             SIMD.</p>\n{findings}<div class='card'>{mix}{units}{budget}</div>\n<h2>Source</h2>\n{source}\n\
             <h2>Calls</h2>\n<div class='card'>{flame}</div>\n<h2>Instructions</h2>\n{program}<div class='card'>{instructions}\
             </div>\n",
            findings = findings(s),
            budget = budget(s),
            program = program_order(s, sources),
            name = escape(&s.kernel),
            launches = count(*launches, "launch").replace("launchs", "launches"),
            gfx = s.gfx,
            groups = count(s.workgroups, "workgroup"),
            grid = sizes(s.grid),
            workgroup = sizes(s.workgroup),
            vgprs = s.vgprs,
            sgprs = s.sgprs,
            lds = s.lds_bytes,
            scratch = s.scratch_bytes,
            fit = count(s.waves_per_simd.into(), "wave"),
            mix = chart::mix(&s.units, s.total.executed),
            units = units(s),
            source = source(s, sources),
            flame = chart::flame(s),
            instructions = instructions(s),
        );
    }
    let _ = writeln!(
        html,
        "<footer>candle-amdgpu {}, on the emulator: exact counts, no times.</footer>\n</main></body></html>",
        env!("CARGO_PKG_VERSION")
    );
    html
}

/// Kernels of a program that have more than a line.
const DETAILED: usize = 20;

fn tiles(s: &Summary) -> String {
    let per_element = match s.elements {
        0 => "there is no buffer".to_owned(),
        n => format!("{:.1} lane instructions for each element", s.total.active_lanes as f64 / n as f64),
    };
    let tiles = [
        (grouped(s.total.executed), format!("wave instructions; {per_element}")),
        (percent(s.total.active_lanes, s.total.lanes), "of lanes active".to_owned()),
        (grouped(s.memory.buffers), "bytes in buffers".to_owned()),
        (
            percent(s.memory.needed, s.memory.moved),
            format!("of {} bytes in cache lines touched were needed", grouped(s.memory.moved)),
        ),
        (
            s.waves_per_simd.to_string(),
            format!(
                "{} on a SIMD: {}; {} VGPRs, {} SGPRs, {} bytes of LDS",
                if s.waves_per_simd == 1 { "wave" } else { "waves" },
                s.occupancy_limit,
                s.vgprs,
                s.sgprs,
                s.lds_bytes
            ),
        ),
        (
            grouped(s.total.bank_conflicts),
            format!("LDS cycles lost to bank conflicts, of {}", grouped(s.total.lds_cycles)),
        ),
        (
            time(s.roofline.seconds),
            format!("is the least that the peaks allow: bound by {}", s.roofline.bound_by),
        ),
    ];
    let tile = |(value, what): (String, String)| {
        format!("<div class='tile'><b>{}</b><span>{}</span></div>", escape(&value), escape(&what))
    };
    format!("<div class='tiles'>{}</div>", tiles.map(tile).concat())
}

/// What to change, costliest first.
fn findings(s: &Summary) -> String {
    if s.findings.is_empty() {
        return "<h2>What to change</h2><p>None of the usual wastes costs 5 % of the busiest unit's time.</p>\n".to_owned();
    }
    let mut html = "<h2>What to change</h2><p>Costliest first. A cost is a share of the busiest unit's time: the most that a remedy can \
                    bring.</p>\n<ol class='findings'>"
        .to_owned();
    for finding in &s.findings {
        let at = match &finding.at {
            Some(findings::Place { file, line }) => {
                format!(" <code>{}:{line}</code>", escape(name(file)))
            }
            None => String::new(),
        };
        let _ = write!(
            html,
            "<li class='card'><div class='cost'><span style='width:{:.0}%'></span></div><b>{}</b>{at} <small>{}</small><p>{}</p></li>",
            finding.cost.unwrap_or(0.0) * 100.0,
            escape(&finding.what),
            cost(finding),
            escape(&finding.advice)
        );
    }
    html + "</ol>\n"
}

/// What has changed since a baseline.
fn compared(comparison: &Comparison) -> String {
    let of = comparison.other.as_ref().map_or(String::new(), |other| format!(", which is {}", escape(other)));
    let mut html = format!("<h2>Since the baseline{of}</h2>\n");
    if comparison.totals.is_empty() && comparison.lines.is_empty() {
        return html + "<p>Nothing has changed.</p>\n";
    }
    for (changes, most) in [(&comparison.totals, usize::MAX), (&comparison.lines, SHOWN)] {
        if changes.is_empty() {
            continue;
        }
        html += "<div class='card'><table><tr><th><th>before<th>now<th>difference<th style='text-align:left'></tr>";
        for change @ Change { of, text, before, now } in changes.iter().take(most) {
            let _ = write!(
                html,
                "<tr><td>{}<td class='n'>{}<td class='n'>{}<td class='n'>{}<td><code>{}</code></tr>",
                escape(of),
                grouped(*before),
                grouped(*now),
                change.difference(),
                escape(text)
            );
        }
        html += "</table></div>\n";
    }
    html
}

/// The least time of each unit.
fn budget(s: &Summary) -> String {
    let most = s.budget.most();
    let mut table = String::from(
        "<table class='budget'><tr><th>unit<th>at least<th style='text-align:left'>of the longest</tr>",
    );
    for (name, seconds) in s.budget.named().into_iter().filter(|(_, seconds)| *seconds > 0.0) {
        let share = seconds / most * 100.0;
        let _ = write!(
            table,
            "<tr><td>{name}<td class='n'>{}<td><div class='cost'><span style='width:{share:.1}%'></span></div> {share:.0} %</tr>",
            time(seconds)
        );
    }
    table + "</table>"
}

/// Every instruction that was executed under the source line that it comes from, in the order of addresses.
fn program_order(s: &Summary, sources: &Sources) -> String {
    let mut html = String::from(
        "<details class='program'><summary>In program order, with their source</summary><table><tr><th>instruction<th>executed\
         <th>lanes active<th>live VGPRs<th>bytes moved<th>conflicts</tr>",
    );
    let mut last = None;
    for instruction in &s.instructions {
        let place = findings::place(instruction);
        if place != last {
            if let Some((file, line)) = place {
                let text = sources.line(file, line).unwrap_or_default();
                let _ = write!(
                    html,
                    "<tr class='from'><td colspan='6'><small>{}:{line}</small> <code>{}</code></tr>",
                    escape(name(file)),
                    escape(&text)
                );
            }
            last = place;
        }
        let c = &instruction.counts;
        let _ = write!(
            html,
            "<tr><td><span class='dot' style='background:var(--{})'></span><code>{}</code><td class='n'>{}<td class='n'>{}\
             <td class='n'>{}<td class='n'>{}<td class='n'>{}</tr>",
            instruction.unit.name().to_lowercase(),
            escape(&instruction.text),
            grouped(c.executed),
            percent(c.active_lanes, c.lanes),
            instruction.live_vgprs,
            or_dot(c.bytes_moved),
            or_dot(c.bank_conflicts),
        );
    }
    html + "</table></details>"
}

fn units(s: &Summary) -> String {
    let mut table = String::from(
        "<table style='margin-top:14px'><tr><th>unit<th>executed<th>share<th>lanes active<th>bytes needed\
         <th>bytes moved<th>atomics</tr>",
    );
    for row in &s.units {
        let (name, c) = (row.unit.name(), &row.counts);
        let _ = write!(
            table,
            "<tr><td><span class='dot' style='background:var(--{})'></span>{name}<td class='n'>{}<td class='n'>{}\
             <td class='n'>{}<td class='n'>{}<td class='n'>{}<td class='n'>{}</tr>",
            name.to_lowercase(),
            grouped(c.executed),
            percent(c.executed, s.total.executed),
            percent(c.active_lanes, c.lanes),
            or_dot(c.bytes_needed),
            or_dot(c.bytes_moved),
            or_dot(c.atomics),
        );
    }
    table + "</table>"
}

/// Each file, the kernel's own and the hottest open.
fn source(s: &Summary, sources: &Sources) -> String {
    let mut html = String::new();
    for (i, File { name, own, lines }) in by_file(s).into_iter().enumerate() {
        let _ = write!(
            html,
            "<details{}><summary>{} <small>{}</small></summary><div class='source'>\
             <div class='head'><i>executed</i><u>share</u><u>with calls</u><u>live</u><u>line</u></div>",
            if i < 2 { " open" } else { "" },
            escape(short(name)),
            percent(own, s.total.executed)
        );
        let text = sources.file(name);
        // Without its text, a file is a list of its lines.
        let last = text.as_ref().map_or(u32::MAX as usize - 1, |text| text.len());
        let around = if text.is_some() { 4 } else { 0 };
        for (i, range) in ranges(lines.keys().copied(), around, last).into_iter().enumerate() {
            if i > 0 {
                html += "<div class='gap'>⋮</div>";
            }
            for line in range {
                let code = text.as_ref().map_or("", |text| &text[line as usize - 1]);
                match lines.get(&line) {
                    Some(row) => html += &hot(row, code, s.total.executed),
                    None => {
                        let _ = write!(
                            html,
                            "<div><i></i><u></u><u></u><u></u><u>{line}</u>{}</div>",
                            escape(code)
                        );
                    }
                }
            }
        }
        html += "</div></details>";
    }
    html
}

/// A line that executed something: the hotter, with what is inlined under it, the stronger its colour.
fn hot(row: &LineRow, code: &str, total: u64) -> String {
    let c = &row.counts;
    let heat = 0.05 + 0.5 * (row.with_calls as f64 / total.max(1) as f64).sqrt();
    let (own, share) = match c.executed {
        0 => (String::new(), String::new()),
        n => (grouped(n), percent(n, total)),
    };
    let live = if row.live_vgprs == 0 { String::new() } else { row.live_vgprs.to_string() };
    format!(
        "<div class='hot' style='background:rgb(var(--heat) / {heat:.2})' title='{} of lanes active, {} bytes moved, {} bank \
         conflicts'><i>{own}</i><u>{share}</u><u>{}</u><u>{live}</u><u>{}</u>{}</div>",
        percent(c.active_lanes, c.lanes),
        grouped(c.bytes_moved),
        grouped(c.bank_conflicts),
        percent(row.with_calls, total),
        row.line,
        escape(code)
    )
}

const SHOWN: usize = 40;

fn instructions(s: &Summary) -> String {
    let mut most: Vec<&InstructionProfile> = s.instructions.iter().collect();
    most.sort_by_key(|instruction| std::cmp::Reverse(instruction.counts.executed));
    let mut table = String::from(
        "<table><tr><th>instruction<th style='text-align:left'>source<th>executed<th>lanes active<th>bytes needed\
         <th>bytes moved<th>conflicts</tr>",
    );
    for instruction in most.into_iter().take(SHOWN) {
        let c = &instruction.counts;
        let at = instruction
            .source
            .first()
            .map_or(String::new(), |line| format!("{}:{}", name(&line.file), line.line));
        let _ = write!(
            table,
            "<tr><td><span class='dot' style='background:var(--{})'></span><code>{}</code><td>{}<td class='n'>{}\
             <td class='n'>{}<td class='n'>{}<td class='n'>{}<td class='n'>{}</tr>",
            instruction.unit.name().to_lowercase(),
            escape(&instruction.text),
            escape(&at),
            grouped(c.executed),
            percent(c.active_lanes, c.lanes),
            or_dot(c.bytes_needed),
            or_dot(c.bytes_moved),
            or_dot(c.bank_conflicts),
        );
    }
    table + "</table>"
}

fn or_dot(n: u64) -> String {
    if n == 0 { "·".to_owned() } else { grouped(n) }
}
