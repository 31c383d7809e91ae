//! The page for people.

use super::document::{Document, Kind, Part, Verified};
use crate::conformance::ulps;
use crate::profile::{count, escape, grouped};
use amdgpu_conformance::operation::{Element, Group, Operand};
use amdgpu_conformance::{Accuracy, Comparison, Difference, Run, Verdict};
use serde_json::Value;
use std::fmt::Write;

/// Differences of an operation under a setting that the page shows.
const SHOWN: usize = 12;
/// Elements of an operand that it shows.
const ELEMENTS: usize = 4;

/// The whole page, with nothing outside of it.
pub fn page(document: &Document) -> String {
    let compared: Vec<Comparison> = document.parts.iter().flat_map(Part::compared).collect();
    let verified: Vec<Verified> = document.parts.iter().flat_map(Part::verified).collect();
    let mut html = format!(
        "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'>\
         <meta name='viewport' content='width=device-width, initial-scale=1'>\
         <title>{name}: report</title><style>{css}{more}</style></head><body><main>\n\
         <h1>{name}</h1><p>{target}, {backend}. {conclusion}.</p>\n{tiles}",
        name = escape(document.device_name()),
        css = include_str!("../profile/page.css"),
        more = include_str!("page.css"),
        target = escape(document.target()),
        backend = escape(&document.backend),
        conclusion = escape(&document.conclusion()),
        tiles = tiles(document, &compared, &verified),
    );
    html += &devices(document);
    html += &instructions(document, &compared);
    html += &kernels(document, &verified);
    html += &measurements(document);
    html += &parts(document);
    let _ = writeln!(
        html,
        "<footer>{} with kernels compiled by {}; schema {}, seed {}, {}, {:.0} s. report.json has all of this.</footer>\n\
         </main></body></html>",
        escape(&document.program),
        escape(&document.compiler),
        document.schema,
        document.settings.seed,
        escape(&document.started),
        document.seconds,
    );
    html
}

fn verdict(verdict: Verdict) -> String {
    let name = name(verdict);
    format!("<span class='verdict {name}'>{name}</span>")
}

fn name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Equal => "equal",
        Verdict::Close => "close",
        Verdict::Different => "different",
        Verdict::Failed => "failed",
    }
}

fn tiles(document: &Document, compared: &[Comparison], verified: &[Verified]) -> String {
    let mut tiles = Vec::new();
    let mut tile = |well: bool, value: String, what: String| {
        let class = if well { "equal" } else { "different" };
        tiles.push(format!(
            "<div class='tile'><b class='{class}'>{}</b><span>{}</span></div>",
            escape(&value),
            escape(&what)
        ));
    };
    if !compared.is_empty() {
        let worse = compared.iter().filter(|c| c.verdict > Verdict::Close).count();
        let inputs: usize = compared.iter().flat_map(|c| &c.runs).map(|run| run.cases).sum();
        let close = compared.iter().filter(|c| c.verdict == Verdict::Close).count();
        let within = match close {
            0 => String::new(),
            n => format!("; {n} within what the manuals leave open"),
        };
        tile(
            worse == 0,
            format!("{} of {}", grouped((compared.len() - worse) as u64), grouped(compared.len() as u64)),
            format!(
                "instructions and sequences agree with the emulator, on {} inputs{within}",
                grouped(inputs as u64)
            ),
        );
    }
    if !verified.is_empty() {
        let wrong = verified.iter().filter(|row| row.failure.is_some()).count();
        let elements: u64 = verified.iter().map(|row| row.elements).sum();
        tile(
            wrong == 0,
            format!("{} of {}", grouped((verified.len() - wrong) as u64), grouped(verified.len() as u64)),
            format!("kernels agree with the host model, on {} elements", grouped(elements)),
        );
    }
    let best =
        document.parts.iter().flat_map(Part::measured).filter_map(|row| row.times).map(|t| t.copy_bandwidth);
    if let Some(best) = best.max_by(f64::total_cmp) {
        tile(
            true,
            format!("{:.0} GB/s", best / 1e9),
            "is what a copy within the device reaches at most".to_owned(),
        );
    }
    let badly = document.parts.iter().filter(|part| !matches!(part.ended.code, Some(0 | 1))).count();
    tile(
        badly == 0,
        format!("{} of {}", document.parts.len() - badly, document.parts.len()),
        "parts ran to their end".to_owned(),
    );
    format!("<div class='tiles'>{}</div>\n", tiles.concat())
}

fn devices(document: &Document) -> String {
    let mut html = String::from("<h2>Device and system</h2>\n<div class='card'><dl>");
    let mut entry = |name: &str, value: &str| {
        if !value.is_empty() {
            let _ = write!(html, "<dt>{}<dd>{}", escape(name), escape(value));
        }
    };
    let system = &document.system;
    let text = |value: &Value| match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let os =
        [system.distribution.as_deref().unwrap_or(&system.os), system.kernel.as_deref().unwrap_or_default()];
    entry("System", os.join(", ").trim_end_matches(", "));
    entry("Processor", &format!("{}, {}", system.architecture, count(system.cores as u64, "core")));
    entry("Runtime", &text(&document.runtime_version));
    entry("Driver", &text(&document.driver_version));
    entry(
        "Kernel module",
        system.amdgpu_module.as_deref().or(system.nvidia_module.as_deref()).unwrap_or_default(),
    );
    entry("ROCm", system.rocm.as_deref().unwrap_or_default());
    html += "</dl></div>\n<div class='card'><table><tr><th>device<th style='text-align:left'>target<th>wave<th>CUs<th>clock, MHz\
             <th>memory clock, MHz<th>bus, bits<th>L2, KiB<th>LDS, KiB<th>memory, GiB</tr>";
    for device in &document.devices {
        let number = |key: &str| device[key].as_u64().map_or("·".to_owned(), grouped);
        let per =
            |key: &str, by: f64| device[key].as_f64().map_or("·".to_owned(), |n| format!("{:.1}", n / by));
        let own = device["ordinal"] == document.device;
        let name = escape(device["name"].as_str().unwrap_or_default());
        let _ = write!(
            html,
            "<tr><td>{}<td>{}<td class='n'>{}<td class='n'>{}<td class='n'>{}<td class='n'>{}<td class='n'>{}<td class='n'>{}\
             <td class='n'>{}<td class='n'>{}</tr>",
            if own { format!("<b>{name}</b>") } else { name },
            escape(device["target"].as_str().unwrap_or_default()),
            number("wave_size"),
            number("compute_units"),
            number("clock_mhz"),
            number("memory_clock_mhz"),
            number("memory_bus_bits"),
            per("l2_bytes", 1024.0),
            per("lds_bytes", 1024.0),
            per("memory_total", (1u64 << 30) as f64),
        );
    }
    html + "</table></div>\n"
}

fn instructions(document: &Document, compared: &[Comparison]) -> String {
    let mut parts = document.parts.iter().filter(|part| part.kind == Kind::Conformance).peekable();
    if parts.peek().is_none() {
        return String::new();
    }
    let mut html = String::from("<h2>Single instructions</h2>\n");
    if let Some(skipped) = parts.clone().find_map(|part| part.result["skipped"].as_str()) {
        let _ = writeln!(html, "<p>{}.</p>", escape(skipped));
        return html;
    }
    html += "<p>Each runs on the device and on an emulated one, on the same inputs. Equal: every bit. Close: within the error that \
             the manuals state, or where the order of additions is the hardware’s.</p>\n<div class='card'><table><tr><th>group\
             <th>operations<th>inputs<th>equal<th>close<th>different<th>failed</tr>";
    for group in Group::ALL {
        let of: Vec<&Comparison> = compared.iter().filter(|c| c.group == group).collect();
        if of.is_empty() {
            continue;
        }
        let are = |verdict: Verdict| match of.iter().filter(|c| c.verdict == verdict).count() {
            0 => "·".to_owned(),
            n => grouped(n as u64),
        };
        let inputs: usize = of.iter().flat_map(|c| &c.runs).map(|run| run.cases).sum();
        let _ = write!(
            html,
            "<tr><td>{}<td class='n'>{}<td class='n'>{}<td class='n'>{}<td class='n'>{}<td class='n'>{}<td class='n'>{}</tr>",
            group.name(),
            grouped(of.len() as u64),
            grouped(inputs as u64),
            are(Verdict::Equal),
            are(Verdict::Close),
            are(Verdict::Different),
            are(Verdict::Failed),
        );
    }
    html += "</table></div>\n";
    // The worst first.
    let mut unequal: Vec<&Comparison> = compared.iter().filter(|c| c.verdict != Verdict::Equal).collect();
    unequal.sort_by_key(|c| std::cmp::Reverse(c.verdict));
    for comparison in unequal {
        html += &operation(comparison);
    }
    html
}

/// An operation with its differences.
fn operation(comparison: &Comparison) -> String {
    let mut html = format!(
        "<details><summary>{}{} <small>{}</small></summary><div>",
        escape(&comparison.name),
        verdict(comparison.verdict),
        match comparison.accuracy {
            Accuracy::Exact => String::new(),
            Accuracy::Ulps(1) => "may be off by 1 ULP".to_owned(),
            Accuracy::Ulps(n) => format!("may be off by {} ULP", grouped(n)),
            Accuracy::Order => "adds in an order of the hardware’s".to_owned(),
        }
    );
    html += "<table><tr><th>MODE<th style='text-align:left'>verdict<th>inputs<th>differ<th>largest ULP<th>NaN<th>sign of zero\
             <th>denormal<th>number<th>other bits</tr>";
    for run in &comparison.runs {
        let kinds = run.kinds;
        let cell = |n: u64| if n == 0 { "·".to_owned() } else { grouped(n) };
        let _ = write!(
            html,
            "<tr><td>{} <small>{:#x}</small><td>{}<td class='n'>{}<td class='n'>{}<td class='n'>{}<td class='n'>{}\
             <td class='n'>{}<td class='n'>{}<td class='n'>{}<td class='n'>{}</tr>",
            escape(&run.mode),
            run.mode_bits,
            verdict(run.verdict),
            grouped(run.cases as u64),
            cell(run.differing as u64),
            run.largest_ulps.map_or("·".to_owned(), ulps),
            cell(kinds.nan),
            cell(kinds.zero),
            cell(kinds.denormal),
            cell(kinds.value),
            cell(kinds.bits),
        );
    }
    html += "</table>";
    for run in comparison.runs.iter().filter(|run| run.verdict != Verdict::Equal) {
        if let Some(error) = &run.error {
            let _ = write!(html, "<p>{}:</p><pre>{}</pre>", escape(&run.mode), escape(error));
        }
        if !run.differences.is_empty() {
            html += &differences(comparison, run);
        }
    }
    html + "</div></details>\n"
}

fn differences(comparison: &Comparison, run: &Run) -> String {
    let all = run.differences.len() as u64 + run.left_out;
    let shown = run.differences.len().min(SHOWN);
    let mut html = format!(
        "<p>{}, {} of {}:</p><table><tr><th>lane",
        escape(&run.mode),
        shown,
        count(all, "difference")
    );
    for operand in &comparison.inputs {
        let _ = write!(html, "<th style='text-align:left'>{}", escape(&operand.name));
    }
    html += "<th style='text-align:left'>result<th style='text-align:left'>device<th style='text-align:left'>emulator<th>ULP</tr>";
    for difference in run.differences.iter().take(SHOWN) {
        html += &row(comparison, difference);
    }
    html + "</table>"
}

fn row(comparison: &Comparison, difference: &Difference) -> String {
    let mut html = format!("<tr><td class='n'>{}", difference.lane);
    for (operand, elements) in comparison.inputs.iter().zip(&difference.inputs) {
        let mut shown: Vec<String> =
            elements.iter().take(ELEMENTS).map(|hex| readable(operand.element, hex)).collect();
        if elements.len() > ELEMENTS {
            shown.push(format!("… {} more", elements.len() - ELEMENTS));
        }
        let _ = write!(html, "<td><code>{}</code>", shown.join("<br>"));
    }
    let output: Option<&Operand> = comparison.outputs.get(difference.output);
    let element = output.map_or(Element::B32, |operand| operand.element);
    let _ = write!(
        html,
        "<td>{}{}<td><code>{}</code><td><code>{}</code><td class='n'>{}</tr>",
        escape(output.map_or("", |operand| &operand.name)),
        if difference.element > 0 { format!("[{}]", difference.element) } else { String::new() },
        readable(element, &difference.first),
        readable(element, &difference.second),
        difference.ulps.map_or("·".to_owned(), ulps),
    );
    html
}

/// Bits, and the number that they are.
fn readable(element: Element, hex: &str) -> String {
    match number(element, hex) {
        Some(number) => format!("{} <small>{}</small>", escape(hex), escape(&number)),
        None => escape(hex),
    }
}

/// A float in decimal. Formats of eight bits differ between targets, and stay bits.
fn number(element: Element, hex: &str) -> Option<String> {
    let bits = u64::from_str_radix(hex, 16).ok()?;
    let (mantissa, exponent) = element.float().filter(|_| element.bits() > 8)?;
    let digits = bits & ((1 << mantissa) - 1);
    let power = (bits >> mantissa & ((1 << exponent) - 1)) as i32;
    let sign = if bits >> (mantissa + exponent) & 1 == 1 { "-" } else { "" };
    let bias = (1 << (exponent - 1)) - 1;
    let unit = (1u64 << mantissa) as f64;
    match (power, digits) {
        (p, 0) if p == (1 << exponent) - 1 => return Some(format!("{sign}inf")),
        (p, d) if p == (1 << exponent) - 1 => {
            let quiet = d >> (mantissa - 1) & 1 == 1;
            return Some(format!("{sign}{}", if quiet { "NaN" } else { "signalling NaN" }));
        }
        _ => {}
    }
    let value = match (element, power) {
        (Element::F32, _) => f64::from(f32::from_bits(bits as u32).abs()),
        (Element::F64, _) => f64::from_bits(bits).abs(),
        (_, 0) => digits as f64 / unit * 2f64.powi(1 - bias),
        (_, power) => (1.0 + digits as f64 / unit) * 2f64.powi(power - bias),
    };
    // As few digits as tell it from its neighbours.
    let plain = value == 0.0 || (1e-4..1e7).contains(&value);
    Some(match (element, plain) {
        (Element::F32, true) => format!("{sign}{}", value as f32),
        (Element::F32, false) => format!("{sign}{:e}", value as f32),
        (Element::F64, false) => format!("{sign}{value:e}"),
        (_, true) => format!("{sign}{value}"),
        (_, false) => format!("{sign}{value:.5e}"),
    })
}

fn kernels(document: &Document, verified: &[Verified]) -> String {
    let parts: Vec<&Part> = document.parts.iter().filter(|part| part.kind == Kind::Verify).collect();
    if parts.is_empty() {
        return String::new();
    }
    let mut html = String::from(
        "<h2>Kernels</h2>\n<p>Each kernel on random inputs against the host model, which rounds where the kernel does.</p>\n\
         <div class='card'><table><tr><th>family<th>kernels<th>launches<th>elements<th>largest ULP<th>wrong</tr>",
    );
    for part in &parts {
        let of = part.verified();
        let wrong = of.iter().filter(|row| row.failure.is_some()).count();
        let _ = write!(
            html,
            "<tr><td>{}<td class='n'>{}<td class='n'>{}<td class='n'>{}<td class='n'>{}<td class='n'>{}</tr>",
            escape(&part.of),
            of.len(),
            grouped(of.iter().map(|row| row.launches).sum()),
            grouped(of.iter().map(|row| row.elements).sum()),
            grouped(of.iter().map(|row| row.largest_ulp).max().unwrap_or(0)),
            match wrong {
                0 if of.is_empty() => "<span class='verdict failed'>no result</span>".to_owned(),
                0 => "·".to_owned(),
                n => format!("<span class='verdict different'>{n}</span>"),
            },
        );
    }
    html += "</table></div>\n";
    for row in verified {
        if let Some(failure) = &row.failure {
            let _ = writeln!(
                html,
                "<details><summary>{}{} <small>{}</small></summary><div><pre>{}</pre></div></details>",
                escape(&row.kernel),
                verdict(Verdict::Different),
                escape(&row.family),
                escape(failure)
            );
        }
    }
    html
}

fn measurements(document: &Document) -> String {
    let rows: Vec<_> = document.parts.iter().flat_map(Part::measured).collect();
    if rows.is_empty() {
        return String::new();
    }
    let timed = rows.iter().any(|row| row.times.is_some());
    let mut html = String::from("<h2>Measurements</h2>\n");
    html += if timed {
        "<p>The fastest of several rounds. Bandwidth is that of all buffers, each moved once, beside that of a copy of as many \
         bytes.</p>\n<div class='card'><table><tr><th>kernel<th>elements<th>bytes<th>µs<th>GB/s<th>copy, GB/s<th>of copy</tr>"
    } else {
        "<p>Exact counts of the emulator, which has no times.</p>\n<div class='card'><table><tr><th>kernel<th>elements<th>bytes\
         <th>wave instructions<th>for each element<th>bytes moved</tr>"
    };
    for row in rows {
        let _ = write!(
            html,
            "<tr><td>{} <small>{}</small><td class='n'>{}<td class='n'>{}",
            escape(&row.kernel),
            escape(&row.family),
            grouped(row.elements),
            grouped(row.buffer_bytes)
        );
        if let Some(t) = &row.times {
            let _ = write!(
                html,
                "<td class='n'>{:.2}<td class='n'>{:.1}<td class='n'>{:.1}<td class='n'>{:.0} %",
                t.seconds * 1e6,
                t.bandwidth / 1e9,
                t.copy_bandwidth / 1e9,
                100.0 * t.bandwidth / t.copy_bandwidth
            );
        } else if let Some(c) = &row.counts {
            let _ = write!(
                html,
                "<td class='n'>{}<td class='n'>{:.1}<td class='n'>{}",
                grouped(c.wave_instructions),
                c.instructions_per_element,
                grouped(c.bytes_moved)
            );
        } else {
            let failure = row.failure.as_deref().unwrap_or("no result");
            let _ = write!(
                html,
                "<td colspan='4' class='wide'><span class='verdict failed'>failed</span> {}",
                escape(failure)
            );
        }
        html += "</tr>";
    }
    html + "</table></div>\n"
}

fn parts(document: &Document) -> String {
    let mut html = String::from(
        "<h2>Parts</h2>\n<p>Each in a process of its own.</p>\n<div class='card'><table><tr><th>part<th>seconds\
         <th style='text-align:left'>ended<th style='text-align:left'>outcome</tr>",
    );
    for part in &document.parts {
        let _ = write!(
            html,
            "<tr><td>{} {}<td class='n'>{:.1}<td>{}<td class='wide'>{}",
            part.kind.name(),
            escape(&part.of),
            part.seconds,
            match part.ended.is_well() {
                true => "well".to_owned(),
                false => format!("<span class='verdict failed'>{}</span>", escape(&part.ended.to_string())),
            },
            escape(&part.outcome())
        );
        if let Some(error) = &part.ended.error {
            let _ = write!(html, "<pre>{}</pre>", escape(error));
        }
        html += "</tr>";
    }
    html + "</table></div>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_numbers() {
        let of = |element, hex: &str| number(element, hex).unwrap_or_default();
        assert_eq!(of(Element::F32, "3fc00000"), "1.5");
        assert_eq!(of(Element::F32, "80000000"), "-0");
        assert_eq!(
            [of(Element::F32, "cf000000"), of(Element::F32, "cf000001")],
            ["-2.1474836e9", "-2.147484e9"]
        );
        assert_eq!(of(Element::F32, "00000001"), "1e-45");
        assert_eq!(of(Element::F32, "7f800001"), "signalling NaN");
        assert_eq!(of(Element::F16, "fc00"), "-inf");
        assert_eq!(of(Element::Bf16, "4049"), "3.140625");
        assert_eq!(of(Element::F64, "7ff8000000000000"), "NaN");
        assert_eq!(of(Element::F64, "0000000000000001"), "5e-324");
        assert_eq!(number(Element::Fp8, "38"), None);
        assert_eq!(number(Element::B32, "38"), None);
    }
}
