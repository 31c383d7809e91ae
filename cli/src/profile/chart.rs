//! Drawings, as SVG inside a page: colours are the page's variables, so that they suit light and dark.

use super::summary::{Roofline, Summary, UnitRow, grouped, percent};
use amdgpu_emulator::fault::SourceLine;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Text that stands in XML.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// One bar of all executed instructions, by unit.
pub fn mix(units: &[UnitRow], total: u64) -> String {
    let mut svg = open("Instruction mix", 1000.0, 34.0);
    let mut x = 0.0;
    for row in units {
        let width = 1000.0 * row.counts.executed as f64 / total.max(1) as f64;
        let name = row.unit.name();
        let share = percent(row.counts.executed, total);
        let _ = write!(
            svg,
            "<g><title>{name}: {} ({share})</title>\
             <rect x='{x:.2}' y='0' width='{:.2}' height='34' rx='2' style='fill:var(--{})'/>",
            grouped(row.counts.executed),
            (width - 1.5).max(0.4),
            name.to_lowercase(),
        );
        let label = format!("{name} {share}");
        // As wide as its letters at most are.
        if width > 18.0 + 7.5 * label.chars().count() as f64 {
            let _ = write!(svg, "<text x='{:.2}' y='22' class='on'>{label}</text>", x + 9.0);
        }
        svg += "</g>";
        x += width;
    }
    svg + "</svg>"
}

/// Operations per second against operations per byte, both logarithmic.
pub fn roofline(roofline: &Roofline) -> String {
    const WIDTH: f64 = 1000.0;
    const HEIGHT: f64 = 400.0;
    const LEFT: f64 = 84.0;
    const RIGHT: f64 = 24.0;
    const TOP: f64 = 26.0;
    const BOTTOM: f64 = 52.0;
    let peaks = &roofline.peaks;
    let top = peaks.matrix_operations.unwrap_or(0.0).max(peaks.operations);
    let (best, worst) = (roofline.intensity_best, roofline.intensity_worst);
    let ridge = top / peaks.bandwidth;
    let seen = |x: f64, otherwise: f64| if x > 0.0 { x } else { otherwise };
    let low = seen(best, 0.1).min(seen(worst, 0.1)).min(0.1).log10().floor();
    let high = (ridge * 4.0).max(best * 2.0).max(worst * 2.0).log10().ceil();
    let floor = (peaks.bandwidth * 10_f64.powf(low)).log10().floor();
    let ceiling = (top * 1.5).log10().max(floor + 1.0);
    let x = |v: f64| LEFT + (v.log10() - low) / (high - low) * (WIDTH - LEFT - RIGHT);
    let y = |v: f64| HEIGHT - BOTTOM - (v.log10() - floor) / (ceiling - floor) * (HEIGHT - TOP - BOTTOM);

    let mut svg = open("Roofline", WIDTH, HEIGHT);
    for decade in low as i32..=high as i32 {
        let at = x(10_f64.powi(decade));
        let _ = write!(
            svg,
            "<path d='M{at:.1} {TOP}V{:.1}' class='grid'/><text x='{at:.1}' y='{:.1}' class='mid'>{}</text>",
            HEIGHT - BOTTOM,
            HEIGHT - BOTTOM + 18.0,
            plain(decade)
        );
    }
    for decade in floor as i32..=ceiling.floor() as i32 {
        let at = y(10_f64.powi(decade));
        let _ = write!(
            svg,
            "<path d='M{LEFT} {at:.1}H{:.1}' class='grid'/><text x='{:.1}' y='{:.1}' class='end'>{}</text>",
            WIDTH - RIGHT,
            LEFT - 8.0,
            at + 4.0,
            rate(10_f64.powi(decade))
        );
    }
    let _ = write!(
        svg,
        "<text x='{:.1}' y='{:.1}' class='mid soft'>operations for each byte</text>\
         <text x='{LEFT}' y='14' class='soft'>operations per second</text>",
        (LEFT + WIDTH - RIGHT) / 2.0,
        HEIGHT - 12.0
    );

    // The slope of memory, up to the highest roof, then the roofs from where they meet it.
    let _ = write!(
        svg,
        "<path d='M{:.1} {:.1}L{:.1} {:.1}' class='roof'/>",
        x(10_f64.powf(low)),
        y(peaks.bandwidth * 10_f64.powf(low)),
        x(ridge),
        y(top)
    );
    // The slope's name, where it is not over the kernel's points.
    let points = [best, worst].into_iter().filter(|&point| point > 0.0);
    let free =
        |from: &f64| points.clone().all(|point| !(x(*from) - 10.0..x(*from) + 150.0).contains(&x(point)));
    let places = [0.3, 0.03, 0.6].map(|part| 10_f64.powf(low + (ridge.log10() - low) * part));
    let middle = places.into_iter().find(free).unwrap_or(places[0]);
    let slope = (y(top) - y(peaks.bandwidth * 10_f64.powf(low))) / (x(ridge) - x(10_f64.powf(low)));
    let _ = write!(
        svg,
        "<text x='0' y='-8' transform='translate({:.1} {:.1}) rotate({:.1})'>{} of memory</text>",
        x(middle),
        y(peaks.bandwidth * middle),
        slope.atan().to_degrees(),
        bandwidth(peaks.bandwidth)
    );
    let roofs = [(Some(peaks.operations), "vector"), (peaks.matrix_operations, "matrix, f16")];
    for (peak, what) in roofs.into_iter().filter_map(|(peak, what)| Some((peak?, what))) {
        let at = y(peak);
        let _ = write!(
            svg,
            "<path d='M{:.1} {at:.1}H{:.1}' class='roof'/><text x='{:.1}' y='{:.1}' class='end'>{} {what}</text>",
            x(peak / peaks.bandwidth),
            WIDTH - RIGHT,
            WIDTH - RIGHT - 6.0,
            at - 7.0,
            rate(peak)
        );
    }

    // The kernel lies between all of its traffic and each buffer once, under the roof of its instructions.
    if best > 0.0 {
        let attained = |intensity: f64| roofline.roof().min(intensity * peaks.bandwidth);
        if worst > 0.0 {
            let _ = write!(
                svg,
                "<path d='M{:.1} {:.1}L{:.1} {:.1}' class='span'/>\
                 <circle cx='{:.1}' cy='{:.1}' r='5.5' class='worst'><title>each cache line that an instruction touches \
                 is moved: {worst:.3} operations for each byte</title></circle>",
                x(worst),
                y(attained(worst)),
                x(best),
                y(attained(best)),
                x(worst),
                y(attained(worst)),
            );
        }
        let _ = write!(
            svg,
            "<path d='M{0:.1} {1:.1}V{2:.1}' class='drop'/><circle cx='{0:.1}' cy='{1:.1}' r='6.5' class='best'>\
             <title>each buffer is moved once: {best:.3} operations for each byte</title></circle>\
             <text x='{3:.1}' y='{4:.1}' class='strong'>{best:.2} op/B: at most {5}</text>",
            x(best),
            y(attained(best)),
            HEIGHT - BOTTOM,
            x(best) + 12.0,
            y(attained(best)) + 24.0,
            rate(attained(best)),
        );
    }
    svg + "</svg>"
}

/// A decade as a number.
fn plain(decade: i32) -> String {
    if decade < 0 {
        format!("{:.*}", decade.unsigned_abs() as usize, 10_f64.powi(decade))
    } else {
        grouped(10_u64.pow(decade.unsigned_abs()))
    }
}

fn rate(per_second: f64) -> String {
    match per_second {
        r if r >= 1e15 => format!("{} Pop/s", short(r / 1e15)),
        r if r >= 1e12 => format!("{} Top/s", short(r / 1e12)),
        r if r >= 1e9 => format!("{} Gop/s", short(r / 1e9)),
        r => format!("{} Mop/s", short(r / 1e6)),
    }
}

fn bandwidth(per_second: f64) -> String {
    if per_second >= 1e12 {
        format!("{} TB/s", short(per_second / 1e12))
    } else {
        format!("{} GB/s", short(per_second / 1e9))
    }
}

/// Three digits at most behind the point's left.
fn short(x: f64) -> String {
    if x >= 100.0 || (x - x.round()).abs() < 1e-9 { format!("{x:.0}") } else { format!("{x:.1}") }
}

/// Functions by who calls whom, from the kernel down: the wider, the more instructions.
pub fn flame(s: &Summary) -> String {
    let mut root = Frame::default();
    for instruction in &s.instructions {
        root.add(instruction.source.iter().rev(), instruction.counts.executed);
    }
    let depth = root.depth();
    let mut svg = open("Flame graph", 1000.0, depth as f64 * 22.0);
    root.draw(&mut svg, &s.kernel, s.total.executed, 0.0, 0.0);
    svg + "</svg>"
}

/// A function in one place of the tree of calls.
#[derive(Default)]
struct Frame<'a> {
    executed: u64,
    callees: BTreeMap<&'a str, Frame<'a>>,
}

impl<'a> Frame<'a> {
    fn add(&mut self, mut stack: impl Iterator<Item = &'a SourceLine>, executed: u64) {
        self.executed += executed;
        if let Some(line) = stack.next() {
            let name = line.function.as_deref().unwrap_or("?");
            self.callees.entry(name).or_default().add(stack, executed);
        }
    }

    fn depth(&self) -> usize {
        1 + self.callees.values().map(Frame::depth).max().unwrap_or(0)
    }

    fn draw(&self, svg: &mut String, name: &str, total: u64, x: f64, y: f64) {
        let width = 1000.0 * self.executed as f64 / total.max(1) as f64;
        if width < 0.6 {
            return;
        }
        // The same function has the same colour everywhere.
        let hash = name.bytes().fold(7_u32, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into()));
        let _ = write!(
            svg,
            "<g><title>{}: {} ({})</title><rect x='{x:.2}' y='{y:.1}' width='{:.2}' height='21' rx='2' \
             class='flame f{}'/>",
            escape(name),
            grouped(self.executed),
            percent(self.executed, total),
            (width - 0.8).max(0.3),
            hash % 6
        );
        let room = ((width - 10.0) / 7.0).max(0.0) as usize;
        let label = without_generics(name);
        if room >= 4 {
            let text: String = if label.chars().count() > room {
                label.chars().take(room - 1).chain(['…']).collect()
            } else {
                label
            };
            let _ = write!(
                svg,
                "<text x='{:.2}' y='{:.1}' class='on'>{}</text>",
                x + 5.0,
                y + 15.0,
                escape(&text)
            );
        }
        *svg += "</g>";
        let mut at = x;
        for (name, callee) in &self.callees {
            callee.draw(svg, name, total, at, y + 22.0);
            at += 1000.0 * callee.executed as f64 / total.max(1) as f64;
        }
    }
}

/// A function's name without what stands in angle brackets.
fn without_generics(name: &str) -> String {
    let (mut depth, mut text) = (0_usize, String::new());
    for c in name.chars() {
        match c {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            c if depth == 0 => text.push(c),
            _ => {}
        }
    }
    text
}

fn open(label: &str, width: f64, height: f64) -> String {
    format!("<svg viewBox='0 0 {width} {height}' role='img' aria-label='{label}'>")
}

#[cfg(test)]
mod tests {
    use super::super::peaks::Peaks;
    use super::*;
    use amdgpu_emulator::profile::Counts;
    use amdgpu_emulator::{Gfx, Unit};

    #[test]
    fn a_units_name_stands_where_it_fits() {
        let row = |unit, executed| {
            let mut counts = Counts::default();
            counts.executed = executed;
            UnitRow { unit, counts }
        };
        let bar = |branch| mix(&[row(Unit::Valu, 1000 - branch), row(Unit::Branch, branch)], 1000);
        for (branch, text, fits) in [(79, "branch 7.9 %", false), (150, "branch 15 %", true)] {
            let bar = bar(branch);
            assert_eq!(bar.contains(&format!("{text}</text>")), fits, "{bar}");
            assert!(bar.contains("VALU") && bar.contains(&format!("<title>branch: {branch} ")), "{bar}");
        }
    }

    #[test]
    fn the_slopes_name_is_not_over_the_kernels_points() {
        for (best, worst) in [(5.38, 1.79), (0.2, 0.12), (60.0, 0.9), (1000.0, 2.5)] {
            let svg = roofline(&Roofline {
                peaks: Peaks::of(Gfx::Gfx1100),
                operations: 1,
                matrix_operations: 0,
                intensity_best: best,
                intensity_worst: worst,
                seconds: 1.0,
                bound_by: "memory",
            });
            let numbers = |before: &str| -> Vec<f64> {
                let number = |rest: &str| rest.split([' ', '\'']).next().unwrap().parse().unwrap();
                svg.split(before).skip(1).map(number).collect()
            };
            let name = numbers("translate(")[0];
            let points = numbers("cx='");
            assert_eq!(points.len(), 2);
            assert!(points.iter().all(|x| !(name..name + 140.0).contains(x)), "{name}: {points:?}");
        }
    }

    #[test]
    fn names_and_numbers_are_short() {
        assert_eq!(without_generics("zip<f32, {closure_env#0}<u8>>"), "zip");
        assert_eq!([rate(61.4e12), rate(1e9), bandwidth(960e9)], ["61.4 Top/s", "1 Gop/s", "960 GB/s"]);
        assert_eq!([plain(-2), plain(3)], ["0.01", "1,000"]);
        assert_eq!(escape("a<b> & \"c\""), "a&lt;b&gt; &amp; &quot;c&quot;");
    }
}
