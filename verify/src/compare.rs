//! Results against expectations.

use super::{Call, Tolerance, is_cuda};
use crate::reference::{Array, Value};
use std::fmt;

/// A result that is not what it must be.
#[derive(Clone, Debug)]
pub struct Miss {
    /// The call.
    pub call: String,
    /// What is wrong with its results.
    pub what: String,
}

impl fmt::Display for Miss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}", self.call, self.what)
    }
}

/// Compares the memory of parameter `arg`, and gives the largest distance in ulp.
pub(super) fn compare(
    call: &Call,
    arg: usize,
    got: &Array,
    expected: &Array,
    tolerance: Tolerance,
) -> Result<u64, Miss> {
    if got == expected {
        return Ok(0);
    }
    let bounds = if let Tolerance::Within(bounds) = tolerance { bounds(call) } else { Vec::new() };
    let mut largest = 0;
    let mut first = None;
    let mut wrong = 0;
    for i in 0..expected.len() {
        let (got, expected) = (got.get(i), expected.get(i));
        let distance = got.ulps(expected);
        if near(got, expected, distance, tolerance, bounds.get(i)) {
            largest = largest.max(distance.unwrap_or(0));
        } else {
            wrong += 1;
            first = first.or(Some((i, got, expected, distance)));
        }
    }
    let Some((i, got, expected, distance)) = first else { return Ok(largest) };
    let name = call.kernel.args[arg].name;
    let distance = distance.map_or_else(String::new, |ulps| format!(", {ulps} ulp apart"));
    let what = format!(
        "{wrong} {} of `{name}` {} wrong; the first is {name}[{i}] = {got}, it must be {expected}\
         {distance} ({tolerance}); {}",
        if wrong == 1 { "element" } else { "elements" },
        if wrong == 1 { "is" } else { "are" },
        call.explain(arg, i)
    );
    Err(Miss { call: call.to_string(), what })
}

fn near(
    got: Value,
    expected: Value,
    distance: Option<u64>,
    tolerance: Tolerance,
    bound: Option<&f64>,
) -> bool {
    match tolerance {
        Tolerance::Bits => got == expected,
        Tolerance::Exact => got == expected || got.is_nan() && expected.is_nan(),
        Tolerance::Ulp(limit) => distance.is_some_and(|ulps| ulps <= limit),
        Tolerance::Within(_) => {
            let exact = got == expected || got.is_nan() && expected.is_nan();
            // NVIDIA GPUs take other numbers of elements together. Among infinities of both signs that decides between NaN and
            // one of them.
            let is_mixed =
                || bound.is_some_and(|bound| bound.is_infinite()) && expected.is_nan() && is_cuda();
            exact
                || bound.is_some_and(|bound| (got.to_f64() - expected.to_f64()).abs() <= *bound)
                || got.to_f64().is_infinite() && is_mixed()
        }
        Tolerance::Near { relative, absolute } => {
            let (got, expected) = (got.to_f64(), expected.to_f64());
            distance == Some(0) || (got - expected).abs() <= absolute + relative * expected.abs()
        }
    }
}
