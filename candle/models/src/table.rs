//! The table of models: which run on the device, how far they are from the CPU, and what is in the way of the others.

use std::fmt::Write;

use candle_core::{DType, Device};

use crate::{DTYPES, Kind, Model, Outcome, bound};

/// What Candle's CUDA backend lacks, or its models get wrong there: the models, the dtypes, and what it is.
const CANDLES: &[(&str, &[DType], &str)] = &[
    ("based", &DTYPES, APART),
    ("chatglm", &DTYPES, APART),
    ("qwen3_moe", &DTYPES, CUDA_ALONE),
    ("quantized_qwen3_moe", &DTYPES, CUDA_ALONE),
    ("mmdit sd3", &DTYPES, F16_ALONE),
    ("mmdit sd3.5", &DTYPES, F16_ALONE),
];

const CUDA_ALONE: &str =
    "Its experts have no CPU backend that they could be compared with; `moe_gemm` is tested by itself.";

const F16_ALONE: &str = "This model makes numbers of f16 whatever its weights are.";

const APART: &str = "Candle's CUDA backend multiplies only matrices that lie one behind another; this model's are rows of a larger one.";

/// A model and how its runs compare.
pub struct Row {
    model: Model,
    outcomes: Vec<(DType, Outcome)>,
}

impl Row {
    /// Runs a model in the dtypes that it has, out of these.
    pub fn new(model: Model, device: &Device, dtypes: &[DType]) -> Row {
        let dtypes = dtypes.iter().filter(|&&dtype| model.has(dtype));
        Row { model, outcomes: dtypes.map(|&dtype| (dtype, model.compare(device, dtype))).collect() }
    }

    /// The model's name.
    pub fn name(&self) -> &'static str {
        self.model.name
    }

    /// What is wrong, if something is that is not Candle's.
    pub fn wrong(&self) -> Option<String> {
        let name = self.model.name;
        let wrong = self.outcomes.iter().filter_map(|(dtype, outcome)| {
            let bound = bound(self.model.kind, *dtype);
            match outcome {
                Outcome::Difference(off) if *off <= bound => None,
                Outcome::Difference(off) => {
                    Some(format!("{name} {dtype:?}: off by {off:.1e}, at most {bound:.0e} is right"))
                }
                Outcome::Device(_) if candles(name, *dtype).is_some() => None,
                Outcome::Device(error) => Some(format!("{name} {dtype:?}: {error}")),
                // A model that the CPU cannot run in f32 is one that is not set up as it should be.
                Outcome::Cpu(error) if *dtype == DType::F32 && candles(name, *dtype).is_none() => {
                    Some(format!("{name} {dtype:?} on the CPU: {error}"))
                }
                Outcome::Cpu(_) => None,
            }
        });
        let wrong: Vec<_> = wrong.collect();
        if wrong.is_empty() { None } else { Some(wrong.join("\n")) }
    }

    /// Whether every run that the CPU can do agrees; `None` if there is none.
    fn agrees(&self) -> Option<bool> {
        let outcome = |(dtype, outcome): &(DType, Outcome)| match outcome {
            Outcome::Difference(off) => Some(*off <= bound(self.model.kind, *dtype)),
            Outcome::Device(_) => Some(false),
            Outcome::Cpu(_) => None,
        };
        self.outcomes.iter().filter_map(outcome).reduce(|a, b| a && b)
    }
}

/// What Candle gets wrong, if it is known.
fn candles(name: &str, dtype: DType) -> Option<&'static str> {
    let found = CANDLES.iter().find(|(model, dtypes, _)| *model == name && dtypes.contains(&dtype));
    found.map(|(_, _, what)| *what)
}

/// The first line of an error, without what would end a cell of a table.
fn brief(error: &str) -> String {
    let line = error.lines().next().unwrap_or_default().replace('|', "/").replace('`', "'");
    match line.char_indices().nth(100) {
        Some((at, _)) => format!("`{}…`", &line[..at]),
        None => format!("`{line}`"),
    }
}

/// How many models agree, out of those that the CPU runs.
pub fn counts(rows: &[Row]) -> (usize, usize) {
    let agreements: Vec<_> = rows.iter().filter_map(Row::agrees).collect();
    (agreements.iter().filter(|&&agrees| agrees).count(), agreements.len())
}

/// The page of the guide.
pub fn page(rows: &[Row]) -> String {
    let (agree, run) = counts(rows);
    let mut page = format!(
        "# Models of candle-transformers\n\n\
         The models of candle-transformers 0.11.1, with random weights and as small as their configurations can make them, run on an\n\
         emulated device and on Candle's CPU backend: a decoder on a prompt and on one more token, others on one input. Of {run} that\n\
         the CPU runs, {agree} agree in every dtype that the CPU has for them. Where a number stands, the device ran; it is the largest\n\
         difference, as a fraction of the largest number of the output, from the CPU's result in f32, with weights and inputs rounded to\n\
         the dtype. Models that are large whatever their configuration run in f32 alone. At most {:.0e} is agreement in f32, {:.0e} in\n\
         f16, {:.0e} in bf16, and {:.0e} for quantized weights, where the CPU has the values of the weights in f32 and the device rounds\n\
         what they are multiplied by to 8 bits, as Candle does on CUDA.\n\n\
         This page is written by a program, from runs:\n\n    \
         cd candle && cargo run --bin models -- --write ../guide/src/models.md\n\n\
         `cargo run --bin models -- --only llama` runs some of them. `cargo test` in `candle/` runs a sample, and\n\
         `cargo xtask test --full` all of them.\n\n\
         | model | f32 | f16 | bf16 |\n| --- | ---: | ---: | ---: |\n",
        bound(Kind::Float, DType::F32),
        bound(Kind::Float, DType::F16),
        bound(Kind::Float, DType::BF16),
        bound(Kind::Quantized, DType::F32),
    );
    let mut notes = Vec::<String>::new();
    let mut note = |text: String| {
        let number = notes.iter().position(|other| *other == text).unwrap_or_else(|| {
            notes.push(text);
            notes.len() - 1
        });
        format!("no ({})", number + 1)
    };
    let mut line = |row: &Row, dtypes: &[DType]| {
        let cells = dtypes.iter().map(|dtype| {
            let found = row.outcomes.iter().find(|(other, _)| other == dtype);
            match found.map(|(_, outcome)| outcome) {
                None => String::new(),
                Some(Outcome::Difference(off)) if *off == 0.0 => "0".to_owned(),
                Some(Outcome::Difference(off)) => format!("{off:.0e}"),
                Some(Outcome::Cpu(error) | Outcome::Device(error)) => {
                    note(match candles(row.model.name, *dtype) {
                        Some(what) => what.to_owned(),
                        None if matches!(found, Some((_, Outcome::Cpu(_)))) => {
                            format!("The CPU does not run it either: {}.", brief(error))
                        }
                        None => brief(error),
                    })
                }
            }
        });
        format!("| {} | {} |\n", row.model.name, cells.collect::<Vec<_>>().join(" | "))
    };
    let (float, quantized): (Vec<&Row>, Vec<&Row>) =
        rows.iter().partition(|row| row.model.kind == Kind::Float);
    for row in float {
        page += &line(row, &DTYPES);
    }
    page += "\n| model with quantized weights | difference |\n| --- | ---: |\n";
    for row in quantized {
        page += &line(row, &DTYPES[..1]);
    }
    page += "\nWhat \"no\" means:\n\n";
    for (i, text) in notes.iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = writeln!(page, "{}. {text}", i + 1);
    }
    page += UNSUITABLE;
    page
}

/// Models that are not in the table.
const UNSUITABLE: &str = "
Not in the table, since their configurations have one size:

- `mpt` and `quantized_mpt` (3 billion parameters), `nvembed_v2` as a whole and `yi` (7 billion), `persimmon` (a configuration alone);
- `segment_anything::sam` and `segment_anything::tiny_vit`, which take images of 1024 by 1024 pixels; the other parts are in the table.
";

impl std::fmt::Display for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.model.name)?;
        for (dtype, outcome) in &self.outcomes {
            match outcome {
                Outcome::Difference(off) => write!(f, ", {} {off:.0e}", dtype.as_str())?,
                Outcome::Cpu(error) => write!(f, ", {} not on the CPU ({})", dtype.as_str(), brief(error))?,
                Outcome::Device(error) => write!(f, ", {} no ({})", dtype.as_str(), brief(error))?,
            }
        }
        Ok(())
    }
}
