//! One operation on two devices.

use serde::{Deserialize, Serialize};

use crate::inputs::inputs;
use crate::operation::{Accuracy, Element, Group, Mode, Operand, Operation};

/// What runs kernels of the code object: a device, or something that stands for one.
pub trait Executor {
    /// Runs a kernel on lanes in workgroups of [`WORKGROUP`](crate::operation::WORKGROUP), and gives the words that it
    /// wrote, so many for each lane.
    ///
    /// # Errors
    /// What went wrong, for people.
    fn run(&mut self, kernel: &str, launch: Launch<'_>) -> Result<Vec<u32>, String>;
}

/// A launch.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// The inputs of all lanes.
    pub input: &'a [u32],
    /// How many lanes.
    pub lanes: usize,
    /// Words that a lane writes.
    pub output_words: usize,
    /// The setting of MODE.
    pub mode: u32,
}

/// How much is compared.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Inputs of an operation, at least.
    pub cases: usize,
    /// Seed of what is drawn.
    pub seed: u64,
    /// Differences that are kept of an operation under a mode; all are counted.
    pub differences: usize,
}

/// What a comparison came to. The worst of several counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// All bits are the same.
    Equal,
    /// They differ by what the manuals allow.
    Close,
    /// They differ.
    Different,
    /// One of the two could not run it.
    Failed,
}

/// Results of one kind that differ.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Kinds {
    /// Both are NaN, with other bits.
    pub nan: u64,
    /// Zeros of different signs.
    pub zero: u64,
    /// A zero for a denormal.
    pub denormal: u64,
    /// Floats that differ otherwise.
    pub value: u64,
    /// What is no float.
    pub bits: u64,
}

/// A lane's results that differ.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Difference {
    /// Which lane of the launch.
    pub lane: usize,
    /// The lane's inputs: the elements of each operand in hexadecimal, the lowest first.
    pub inputs: Vec<Vec<String>>,
    /// Which result differs.
    pub output: usize,
    /// Which of its elements.
    pub element: usize,
    /// That element of the first device.
    pub first: String,
    /// And of the second.
    pub second: String,
    /// Units in the last place between them, where both are numbers.
    pub ulps: Option<u64>,
}

/// An operation under one setting of MODE.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Run {
    /// The setting's name.
    pub mode: String,
    /// The bits of MODE.
    pub mode_bits: u32,
    /// What came of it.
    pub verdict: Verdict,
    /// Inputs that were compared.
    pub cases: usize,
    /// Inputs with results that differ.
    pub differing: usize,
    /// Elements that differ, by kind.
    pub kinds: Kinds,
    /// Units in the last place between numbers that differ, at most.
    pub largest_ulps: Option<u64>,
    /// The first of them, and of those the first elements.
    pub differences: Vec<Difference>,
    /// Elements that differ and are not listed.
    pub left_out: u64,
    /// Why it could not run: which device, and its error.
    pub error: Option<String>,
}

/// An operation.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Comparison {
    /// Its name.
    pub name: String,
    /// What it belongs to.
    pub group: Group,
    /// What may differ.
    pub accuracy: Accuracy,
    /// What goes in.
    pub inputs: Vec<Operand>,
    /// What comes out.
    pub outputs: Vec<Operand>,
    /// The worst of all runs.
    pub verdict: Verdict,
    /// Under each setting.
    pub runs: Vec<Run>,
}

/// Runs an operation on two devices under each of its settings.
pub fn compare(
    operation: &Operation,
    first: &mut dyn Executor,
    second: &mut dyn Executor,
    options: Options,
) -> Comparison {
    let inputs = inputs(operation, options.cases, options.seed);
    let launch = |mode: Mode| Launch {
        input: &inputs.words,
        lanes: inputs.lanes,
        output_words: operation.output_words(),
        mode: mode.bits,
    };
    let runs: Vec<Run> = operation
        .modes
        .iter()
        .map(|&mode| {
            let of = |who: &str, executor: &mut dyn Executor| {
                executor.run(&operation.kernel, launch(mode)).map_err(|error| format!("{who}: {error}"))
            };
            let both = of("first device", first).and_then(|a| Ok((a, of("second device", second)?)));
            let cases = inputs.lanes / inputs.alike;
            let mut run = Run {
                mode: mode.name.to_owned(),
                mode_bits: mode.bits,
                verdict: Verdict::Equal,
                cases,
                differing: 0,
                kinds: Kinds::default(),
                largest_ulps: None,
                differences: Vec::new(),
                left_out: 0,
                error: None,
            };
            match both {
                Ok((first, second)) => {
                    for lane in 0..inputs.lanes {
                        look(operation, lane, &inputs.words, &first, &second, options.differences, &mut run);
                    }
                    // Lanes that are alike are one case.
                    run.differing = run.differing.div_ceil(inputs.alike);
                    run.verdict = verdict(operation.accuracy, &run);
                }
                Err(error) => {
                    run.cases = 0;
                    run.verdict = Verdict::Failed;
                    run.error = Some(error);
                }
            }
            run
        })
        .collect();
    Comparison {
        name: operation.name.clone(),
        group: operation.group,
        accuracy: operation.accuracy,
        inputs: operation.inputs.clone(),
        outputs: operation.outputs.clone(),
        verdict: runs.iter().map(|run| run.verdict).max().unwrap_or(Verdict::Equal),
        runs,
    }
}

fn verdict(accuracy: Accuracy, run: &Run) -> Verdict {
    if run.differing == 0 {
        return Verdict::Equal;
    }
    let kinds = run.kinds;
    let only_values = kinds.nan + kinds.zero + kinds.denormal + kinds.bits == 0;
    let ulps = run.largest_ulps;
    match accuracy {
        Accuracy::Ulps(limit) if only_values && ulps.is_some_and(|ulps| ulps <= limit) => Verdict::Close,
        // A number for a NaN or an infinity is no matter of order.
        Accuracy::Order if kinds.bits + kinds.nan == 0 && ulps != Some(u64::MAX) => Verdict::Close,
        _ => Verdict::Different,
    }
}

/// Compares the results of a lane.
fn look(
    operation: &Operation,
    lane: usize,
    input: &[u32],
    first: &[u32],
    second: &[u32],
    keep: usize,
    run: &mut Run,
) {
    let words = operation.output_words();
    let range = lane * words..(lane + 1) * words;
    let (first, second) = (&first[range.clone()], &second[range]);
    if first == second {
        return;
    }
    run.differing += 1;
    let mut at = 0;
    for (output, operand) in operation.outputs.iter().enumerate() {
        let place = at..at + operand.words;
        at = place.end;
        let pairs = elements(operand, &first[place.clone()]).zip(elements(operand, &second[place]));
        for (element, (a, b)) in pairs.enumerate().filter(|(_, (a, b))| a != b) {
            let ulps = kind(operand.element, a, b, &mut run.kinds);
            run.largest_ulps = run.largest_ulps.max(ulps);
            if run.differences.len() == keep {
                run.left_out += 1;
                continue;
            }
            let inputs = &input[lane * operation.input_words()..];
            let mut from = 0;
            let inputs = operation.inputs.iter().map(|operand| {
                let words = &inputs[from..from + operand.words];
                from += operand.words;
                elements(operand, words).map(|e| hex(operand.element, e)).collect()
            });
            run.differences.push(Difference {
                lane,
                inputs: inputs.collect(),
                output,
                element,
                first: hex(operand.element, a),
                second: hex(operand.element, b),
                ulps,
            });
        }
    }
}

/// The elements of an operand's words.
fn elements<'a>(operand: &Operand, words: &'a [u32]) -> impl Iterator<Item = u64> + 'a {
    let bits = operand.element.bits();
    let count = words.len() * 32 / bits as usize;
    (0..count).map(move |i| match bits {
        64 => u64::from(words[2 * i]) | u64::from(words[2 * i + 1]) << 32,
        _ => {
            let at = i * bits as usize;
            u64::from(words[at / 32]) >> (at % 32) & (u64::MAX >> (64 - bits))
        }
    })
}

fn hex(element: Element, bits: u64) -> String {
    format!("{bits:0digits$x}", digits = element.bits() as usize / 4)
}

/// Counts a difference by its kind; units in the last place between numbers, the most there is where one of the two is no
/// number, and nothing between NaNs and for what is no float.
fn kind(element: Element, a: u64, b: u64, kinds: &mut Kinds) -> Option<u64> {
    let Some((mantissa, exponent)) = element.float() else {
        kinds.bits += 1;
        return None;
    };
    let sign = 1u64 << (mantissa + exponent);
    let infinity = ((1u64 << exponent) - 1) << mantissa;
    let magnitude = |x: u64| x & (sign - 1);
    // Formats of eight bits have their own ideas of what is NaN.
    let is_nan = |x: u64| element.bits() > 8 && magnitude(x) > infinity;
    let denormal = |x: u64| magnitude(x) != 0 && magnitude(x) < 1 << mantissa;
    if is_nan(a) && is_nan(b) {
        kinds.nan += 1;
        return None;
    }
    let zero = |x: u64| magnitude(x) == 0;
    if zero(a) && zero(b) {
        kinds.zero += 1;
        return Some(0);
    }
    if zero(a) && denormal(b) || denormal(a) && zero(b) {
        kinds.denormal += 1;
    } else {
        kinds.value += 1;
    }
    if is_nan(a) || is_nan(b) {
        return Some(u64::MAX);
    }
    let ordered = |x: u64| if x & sign == 0 { magnitude(x) as i128 } else { -(magnitude(x) as i128) };
    Some((ordered(a) - ordered(b)).unsigned_abs().try_into().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_told_apart() {
        let mut kinds = Kinds::default();
        let mut of = |a: f32, b: f32| kind(Element::F32, a.to_bits().into(), b.to_bits().into(), &mut kinds);
        assert_eq!(of(1.0, 1.0 + f32::EPSILON), Some(1));
        assert_eq!(of(f32::from_bits(1), -f32::from_bits(1)), Some(2));
        assert_eq!(of(0.0, -0.0), Some(0));
        assert_eq!(of(0.0, f32::from_bits(5)), Some(5));
        assert_eq!(of(f32::NAN, -f32::NAN), None);
        assert_eq!(of(f32::NAN, 1.0), Some(u64::MAX));
        assert_eq!(of(f32::MAX, f32::INFINITY), Some(1));
        assert_eq!(kind(Element::B32, 1, 2, &mut kinds), None);
        assert_eq!(kinds, Kinds { nan: 1, zero: 1, denormal: 1, value: 4, bits: 1 });
    }

    #[test]
    fn elements_are_cut_out_of_words() {
        let operand = |element, words| Operand { name: String::new(), element, words };
        let of = |element, words: &[u32]| elements(&operand(element, words.len()), words).collect::<Vec<_>>();
        assert_eq!(of(Element::F16, &[0x2222_1111, 0x4444_3333]), [0x1111, 0x2222, 0x3333, 0x4444]);
        assert_eq!(of(Element::Fp8, &[0x4433_2211]), [0x11, 0x22, 0x33, 0x44]);
        assert_eq!(of(Element::F64, &[0x3333_4444, 0x1111_2222]), [0x1111_2222_3333_4444]);
        assert_eq!(hex(Element::Bf16, 0x3f8), "03f8");
    }
}
