//! A profile as text.

use super::baseline::Comparison;
use super::findings::{Finding, Place};
use super::sources::Sources;
use super::summary::{LineRow, Summary, count, grouped, name, percent, short, time};
use crate::output::{print, print_table, table};
use anyhow::Result;
use std::collections::BTreeMap;

/// Totals, units and the lines that executed most.
pub fn print_summary(s: &Summary, most: usize) -> Result<()> {
    let sizes = |sizes: [u32; 3]| sizes.map(|n| n.to_string()).join("×");
    let (total, roofline) = (&s.total, &s.roofline);
    print(&format!(
        "{} on {}: {} ({}) of {} lanes, {}\n\
         {} wave instructions, {} of lanes active; {} for each of {} elements, per lane\n\
         {} VGPRs, {} SGPRs, {} bytes of LDS: {} on a SIMD ({})\n\
         device memory: {} bytes in buffers, {} needed by lanes, {} in cache lines touched ({} of those needed)\n\
         roofline ({}): {} operations, {:.2} for each byte of the buffers; at best {}, bound by {}\n",
        s.kernel,
        s.gfx,
        count(s.workgroups, "workgroup"),
        sizes(s.grid),
        sizes(s.workgroup),
        count(s.waves, "wave"),
        grouped(total.executed),
        percent(total.active_lanes, total.lanes),
        per(total.active_lanes, s.elements),
        grouped(s.elements),
        s.vgprs,
        s.sgprs,
        s.lds_bytes,
        count(s.waves_per_simd.into(), "wave"),
        s.occupancy_limit,
        grouped(s.memory.buffers),
        grouped(s.memory.needed),
        grouped(s.memory.moved),
        percent(s.memory.needed, s.memory.moved),
        roofline.peaks.of,
        grouped(roofline.operations + roofline.matrix_operations),
        roofline.intensity_best,
        time(roofline.seconds),
        roofline.bound_by,
    ))?;

    for (number, finding) in (1..).zip(&s.findings) {
        print(&finding_text(number, finding))?;
    }
    if !s.findings.is_empty() {
        print("")?;
    }

    let mut units =
        table(["unit", "executed", "share", "lanes", "bytes needed", "bytes moved", "conflicts"], 1);
    for row in &s.units {
        let c = &row.counts;
        units.add_row([
            row.unit.name().to_owned(),
            grouped(c.executed),
            percent(c.executed, total.executed),
            percent(c.active_lanes, c.lanes),
            bytes(c.bytes_needed),
            bytes(c.bytes_moved),
            bytes(c.bank_conflicts),
        ]);
    }
    print_table(&units)?;
    print("")?;

    let header =
        ["executed", "share", "with calls", "lanes", "live", "bytes moved", "conflicts", "line", "source"];
    let mut lines = table(header, 0);
    for column in [7, 8] {
        if let Some(column) = lines.column_mut(column) {
            column.set_cell_alignment(comfy_table::CellAlignment::Left);
        }
    }
    let executed = s.lines.iter().filter(|row| row.counts.executed > 0).count();
    for row in s.lines.iter().take(most.min(executed)) {
        let c = &row.counts;
        let (at, code) = match &row.file {
            Some(file) => (format!("{}:{}", name(file), row.line), row.text.clone().unwrap_or_default()),
            None => ("(no source position)".to_owned(), String::new()),
        };
        lines.add_row([
            grouped(c.executed),
            percent(c.executed, total.executed),
            percent(row.with_calls, total.executed),
            percent(c.active_lanes, c.lanes),
            row.live_vgprs.to_string(),
            bytes(c.bytes_moved),
            bytes(c.bank_conflicts),
            at,
            code.chars().take(70).collect(),
        ]);
    }
    print_table(&lines)?;
    let more = executed.saturating_sub(most);
    if more > 0 {
        let s = if more == 1 { "" } else { "s" };
        print(&format!("({more} more line{s}; --lines {executed} shows all)"))?;
    }
    Ok(())
}

/// A finding in two lines.
fn finding_text(number: usize, finding: &Finding) -> String {
    let at = match &finding.at {
        Some(Place { file, line }) => format!(" ({}:{line})", name(file)),
        None => String::new(),
    };
    let cost = cost(finding);
    format!("{number}. {}{at}; {cost}\n   {}", finding.what, finding.advice)
}

/// What a finding costs, in words.
pub fn cost(finding: &Finding) -> String {
    match finding.cost {
        Some(cost) => format!("costs at most {:.0} %", cost * 100.0),
        None => "its cost is not counted".to_owned(),
    }
}

/// What has changed since the baseline.
pub fn print_comparison(comparison: &Comparison, most: usize) -> Result<()> {
    match &comparison.other {
        Some(other) => print(&format!("\nSince the baseline, which is {other}:"))?,
        None => print("\nSince the baseline:")?,
    }
    if comparison.totals.is_empty() && comparison.lines.is_empty() {
        return print("nothing has changed");
    }
    for (changes, names) in [(&comparison.totals, ["", ""]), (&comparison.lines, ["line", "source"])] {
        if changes.is_empty() {
            continue;
        }
        let mut rows = table([names[0], "before", "now", "difference", names[1]], 1);
        if let Some(column) = rows.column_mut(4) {
            column.set_cell_alignment(comfy_table::CellAlignment::Left);
        }
        for change in changes.iter().take(if names[0].is_empty() { usize::MAX } else { most }) {
            rows.add_row([
                change.of.clone(),
                grouped(change.before),
                grouped(change.now),
                change.difference(),
                change.text.chars().take(70).collect(),
            ]);
        }
        print_table(&rows)?;
    }
    Ok(())
}

/// Each file's source; in front of each line what it executed itself, and its share with what is inlined under it.
pub fn annotated(s: &Summary, sources: &Sources) -> Result<()> {
    for File { name, own, lines } in by_file(s) {
        print(&format!(
            "\n{} ({} of the instructions)\n    executed  with calls",
            short(name),
            percent(own, s.total.executed)
        ))?;
        let Some(text) = sources.file(name) else {
            print("  not found; --sources FOLDER says where it is")?;
            continue;
        };
        for (i, range) in ranges(lines.keys().copied(), 3, text.len()).into_iter().enumerate() {
            if i > 0 {
                print("                          ⋮")?;
            }
            for line in range {
                let (count, share) = match lines.get(&line) {
                    Some(row) => (bytes(row.counts.executed), percent(row.with_calls, s.total.executed)),
                    None => Default::default(),
                };
                let text = &text[line as usize - 1];
                print(format!("{count:>12} {share:>7} {line:>5}  {text}").trim_end())?;
            }
        }
    }
    Ok(())
}

/// The lines of a file that executed something, themselves or by what is inlined under them.
pub struct File<'a> {
    pub name: &'a str,
    /// Instructions of its own lines.
    pub own: u64,
    pub lines: BTreeMap<u32, &'a LineRow>,
}

/// The kernel's own file first, then those with most instructions.
pub fn by_file(s: &Summary) -> Vec<File<'_>> {
    let mut files: BTreeMap<&str, BTreeMap<u32, &LineRow>> = BTreeMap::new();
    for row in s.lines.iter().filter(|row| row.line > 0) {
        if let Some(file) = row.file.as_deref() {
            files.entry(file).or_default().insert(row.line, row);
        }
    }
    let mut files: Vec<File<'_>> = files
        .into_iter()
        .map(|(name, lines)| {
            let own = lines.values().map(|row| row.counts.executed).sum();
            File { name, own, lines }
        })
        .collect();
    let outermost = s.instructions.iter().filter_map(|i| Some(&*i.source.last()?.file)).next();
    files.sort_by_key(|file| (Some(file.name) != outermost, std::cmp::Reverse(file.own)));
    files
}

/// Line numbers with `around` lines before and after each, joined where they meet.
pub fn ranges(lines: impl Iterator<Item = u32>, around: u32, last: usize) -> Vec<std::ops::Range<u32>> {
    let end = u32::try_from(last).unwrap_or(u32::MAX).saturating_add(1);
    let mut ranges: Vec<std::ops::Range<u32>> = Vec::new();
    for line in lines.filter(|&line| line < end) {
        let (from, to) = (line.saturating_sub(around).max(1), (line + around + 1).min(end));
        match ranges.last_mut() {
            Some(range) if from <= range.end => range.end = range.end.max(to),
            _ => ranges.push(from..to),
        }
    }
    ranges
}

fn bytes(n: u64) -> String {
    if n == 0 { "·".to_owned() } else { grouped(n) }
}

fn per(part: u64, whole: u64) -> String {
    if whole == 0 { "–".to_owned() } else { format!("{:.1}", part as f64 / whole as f64) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_join_where_they_meet() {
        assert_eq!(ranges([2, 8, 30].into_iter(), 3, 31), [1..12, 27..32]);
        assert_eq!(ranges([40].into_iter(), 3, 31), []);
    }
}
