//! What a kernel's Rust function states about itself, from the record in its code object: how it is launched, and how much
//! memory it needs.

use crate::arg_value::ArgValue;
use crate::formula::evaluate;
use amdgpu_build::packed;
use amdgpu_build::signature::{self, SECTION};
use amdgpu_build::{Arg, LayoutOf, Signature};
use anyhow::{Context, Result, bail, ensure};
use candle_amdgpu::kernel::{lanes_of_row, workgroup_of_rows};
use candle_amdgpu::{CodeObject, Count, LaunchConfig, LoadedModule};
use std::collections::HashMap;

/// The record of a kernel.
pub struct Stated(pub Signature);

/// The numbers that formulas name.
pub type Values = HashMap<String, Count>;

/// The most words of sizes and strides that are looked at.
const MOST_WORDS: usize = 1 << 12;

impl Stated {
    /// Of a kernel of a loaded module; `None` if it has no records, or none of it.
    pub fn of_loaded(loaded: &LoadedModule, kernel: &str) -> Result<Option<Stated>> {
        match (loaded.code(), loaded.packed_ptx()) {
            (Some(code), _) => Stated::of(code, kernel),
            (None, Some(packed)) => {
                let records = packed::records(packed).context("the records of the kernels' signatures")?;
                Ok(records.into_iter().find(|record| record.name == kernel).map(Stated))
            }
            (None, None) => Ok(None),
        }
    }

    /// Of the kernel of this name; `None` if the code object has no records, or none of it.
    pub fn of(code: &CodeObject, kernel: &str) -> Result<Option<Stated>> {
        let Some(section) = code.section(SECTION) else { return Ok(None) };
        let records = signature::parse_section(section).context("the records of the kernels' signatures")?;
        Ok(records.into_iter().find(|record| record.name == kernel).map(Stated))
    }

    /// The names and types of its parameters.
    pub fn parameters(&self) -> String {
        self.0.args.iter().map(|arg| format!("{}: {}", arg.name, arg.ty)).collect::<Vec<_>>().join(", ")
    }

    /// The names of its parameters.
    pub fn names(&self) -> Vec<String> {
        self.0.args.iter().map(|arg| arg.name.clone()).collect()
    }

    /// The value of an integer in a made-up problem: `size`, but one dimension.
    pub fn integer(&self, arg: &Arg, size: u64) -> i128 {
        let is_rank = self.0.args.iter().any(|other| {
            other.layout.as_ref().is_some_and(|layout| layout.num_dims == arg.name)
                || other.tensors.iter().any(|tensor| tensor.rank.as_ref() == Some(&arg.name))
                || other.along.as_ref().is_some_and(|along| along.num_dims == arg.name)
        });
        if is_rank { 1 } else { size.into() }
    }

    /// How long each memory must be in a made-up problem where all sizes are `size`; `elements` if nothing says it,
    /// `None` for numbers and for layouts.
    pub fn lengths(&self, size: u64, elements: usize) -> Vec<Option<u128>> {
        let of_elements = Count(elements as i128);
        let mut values = Values::new();
        for arg in &self.0.args {
            if arg.ty.is_pointer() {
                values.insert(format!("{}.len()", arg.name), of_elements);
            } else {
                let value = Count(self.integer(arg, size));
                values.insert(arg.name.clone(), value);
                if let Some(formula) = arg.value.as_ref().filter(|formula| formula.starts_with("numel_of_")) {
                    values.insert(formula.clone(), value);
                }
            }
        }
        let length = |arg: &Arg| {
            let is_memory = arg.ty.is_pointer() && arg.layout.is_none() && arg.tensors.is_empty();
            let layouts = self.0.args.iter().filter_map(|other| other.layout.as_ref());
            let of_layout =
                layouts.filter(|layout| layout.of.contains(&arg.name)).map(|layout| &layout.numel);
            let of_tensor = format!("numel_of_{}", arg.name);
            let formulas = arg.len.iter().chain(of_layout).chain([&of_tensor]);
            let stated =
                formulas.filter_map(|formula| evaluate(formula, &|name| values.get(name).copied())).max();
            is_memory.then(|| stated.unwrap_or(of_elements).get())
        };
        self.0.args.iter().map(length).collect()
    }

    /// What is known of the arguments' values.
    fn values(&self, given: &[ArgValue]) -> Values {
        let mut values = Values::new();
        for (arg, given) in self.0.args.iter().zip(given) {
            match given {
                ArgValue::Number(value) if !value.dtype().is_float() => {
                    values.insert(arg.name.clone(), Count(value.to_int()));
                }
                ArgValue::Memory(memory) => {
                    values.insert(format!("{}.len()", arg.name), Count(memory.len() as i128));
                }
                ArgValue::Null => {
                    values.insert(format!("{}.len()", arg.name), Count(0));
                }
                ArgValue::Number(_) => {}
            }
        }
        // What a typed launch passes as a tensor's number of elements says it too.
        for arg in &self.0.args {
            if let (Some(formula), Some(&value)) = (&arg.value, values.get(&arg.name))
                && formula.starts_with("numel_of_")
            {
                values.entry(formula.clone()).or_insert(value);
            }
        }
        values
    }

    /// The kernel's own geometry for these arguments, where waves have `wave` lanes; `None` if there is nothing to do.
    pub fn geometry(&self, given: &[ArgValue], wave: u32) -> Result<Option<LaunchConfig>> {
        let launch = &self.0.launch;
        let values = self.values(given);
        let number = |formula: &String| -> Result<u128> {
            let value = evaluate(formula, &|name| values.get(name).copied());
            Ok(value
                .with_context(|| format!("`{formula}` cannot be computed: give --grid and --block"))?
                .get())
        };
        let clamp = |n: u128| u32::try_from(n).unwrap_or(u32::MAX);
        let mut grid = if let Some([x, y, z]) = &launch.grid {
            [number(x)?, number(y)?, number(z)?].map(clamp)
        } else if let Some(items) = &launch.items {
            let lanes = launch.workgroup[0].max(1);
            let each = u128::from(lanes) * u128::from(launch.items_per_lane);
            // A dispatch counts lanes in 32 bits; every kernel strides by its grid.
            [clamp(number(items)?.div_ceil(each.max(1))).min(u32::MAX / lanes), 1, 1]
        } else if let Some(rows) = &launch.rows {
            [clamp(number(rows)?), 1, 1]
        } else {
            bail!("the kernel states no launch geometry: give --grid and --block");
        };
        if grid.contains(&0) {
            return Ok(None);
        }
        let lds = match &launch.lds {
            Some(formula) => clamp(number(formula)?),
            None => launch.lds_bytes,
        };
        let mut block = launch.workgroup;
        if let Some(columns) = &launch.columns {
            let (rows, columns) = (grid[0].into(), number(columns)?);
            let [lanes, shared] = workgroup_of_rows(rows, columns, launch.items_per_lane, wave, block[0]);
            if !self.0.args.iter().any(|arg| arg.by_row) {
                block[0] = lanes_of_row(columns, launch.items_per_lane, wave, block[0]);
            } else if grid[0].is_multiple_of(shared) {
                (grid[0], block) = (grid[0] / shared, [lanes, 1, shared]);
            } else {
                // One launch: rows that would not fill their last workgroup have one each.
                block[0] = lanes;
            }
        }
        Ok(Some(LaunchConfig::explicit(grid, block, lds)))
    }

    /// Whether the arguments are consistent and all memory is as long as the kernel needs it, as far as that follows from
    /// what it states. With `lenient`, memory may be shorter.
    pub fn check(&self, given: &[ArgValue], config: Option<LaunchConfig>, lenient: bool) -> Result<()> {
        let mut values = self.values(given);
        if let Some(LaunchConfig::Explicit { grid, block, .. }) = config {
            for (name, sizes) in [("grid", grid), ("block", block)] {
                for (axis, size) in ["x", "y", "z"].into_iter().zip(sizes) {
                    values.insert(format!("{name}.{axis}"), Count(size.into()));
                }
            }
        }
        let spans = self.spans(given, &mut values, lenient)?;
        let evaluate = |formula: &str| evaluate(formula, &|name| values.get(name).copied());
        for (index, (arg, given)) in self.0.args.iter().zip(given).enumerate() {
            for condition in arg.requires.iter().filter(|_| config.is_some()) {
                if evaluate(condition) == Some(Count(0)) {
                    bail!("`{condition}` does not hold{}", self.named_in(condition, &values));
                }
            }
            let ArgValue::Memory(memory) = given else { continue };
            let stated = arg.len.as_ref().and_then(|len| Some((evaluate(len)?.get(), len.clone())));
            let need = [spans[index].clone(), stated]
                .into_iter()
                .flatten()
                .max_by_key(|(need, _): &(u128, String)| *need);
            let have = memory.len() as u128;
            if let Some((need, why)) = need.as_ref().filter(|(need, _)| have < *need && !lenient) {
                bail!(
                    "`{}` has {} and needs {need} ({why}); `candle-amdgpu check` runs it all the same",
                    arg.name,
                    elements(have)
                );
            }
            // The kernel would get a null pointer, which means something else.
            ensure!(
                have > 0 || !arg.nullable || need.is_some_and(|(need, _)| need == 0),
                "`{}` has no elements: give null if the kernel is to do without it",
                arg.name
            );
        }
        Ok(())
    }

    /// The elements that layouts reach in each argument's memory, and how that follows. Adds sizes of tensors to `values`.
    fn spans(
        &self,
        given: &[ArgValue],
        values: &mut Values,
        lenient: bool,
    ) -> Result<Vec<Option<(u128, String)>>> {
        let mut spans = vec![None; self.0.args.len()];
        let at = |name: &str| self.0.args.iter().position(|arg| arg.name == name);
        for (arg, given) in self.0.args.iter().zip(given) {
            if let Some(LayoutOf { numel, num_dims, of }) = &arg.layout {
                let (Some(&elements), Some(&rank)) = (values.get(numel), values.get(num_dims)) else {
                    continue;
                };
                let Some(mut words) = words(given)? else {
                    for operand in of.iter().filter_map(|name| at(name)) {
                        spans[operand] = Some((elements.get(), numel.clone()));
                    }
                    continue;
                };
                let rank = usize::try_from(rank.get()).unwrap_or(usize::MAX);
                let Some(shape) = words.take(rank) else {
                    if lenient {
                        continue;
                    }
                    bail!("`{}` has fewer words than {num_dims} = {rank} sizes", arg.name);
                };
                let product = product(&shape);
                ensure!(
                    lenient || product == elements.get(),
                    "the sizes in `{}` are those of {product} elements; {numel} is {}",
                    arg.name,
                    elements.0
                );
                for name in of {
                    let Some(strides) = words.take(rank) else {
                        if lenient {
                            break;
                        }
                        bail!("`{}` ends before the {rank} strides of `{name}`", arg.name);
                    };
                    if let Some(operand) = at(name) {
                        let why = format!("shape {shape:?}, strides {strides:?}");
                        spans[operand] = Some((span(&shape, &strides), why));
                    }
                }
            }
            if arg.tensors.is_empty() {
                continue;
            }
            let Some(mut words) = words(given)? else {
                // All are contiguous.
                for tensor in &arg.tensors {
                    let numel = format!("numel_of_{}", tensor.of);
                    if let (Some(count), Some(operand)) = (values.get(&numel), at(&tensor.of)) {
                        spans[operand] = Some((count.get(), "all of it is contiguous".to_owned()));
                    }
                }
                continue;
            };
            for tensor in &arg.tensors {
                let rank = match &tensor.rank {
                    Some(name) => match values.get(name) {
                        Some(rank) => usize::try_from(rank.get()).unwrap_or(usize::MAX),
                        None => break,
                    },
                    None => tensor.dims.len(),
                };
                let (Some(shape), Some(strides)) = (words.take(rank), words.take(rank)) else {
                    if lenient {
                        break;
                    }
                    bail!(
                        "`{}` ends before the {rank} sizes and {rank} strides of `{}`",
                        arg.name,
                        tensor.of
                    );
                };
                values.insert(format!("numel_of_{}", tensor.of), Count(saturated(product(&shape))));
                for (name, &size) in tensor.dims.iter().zip(&shape) {
                    values.insert(name.clone(), Count(size.into()));
                }
                if let Some(operand) = at(&tensor.of) {
                    let why = format!("shape {shape:?}, strides {strides:?}");
                    spans[operand] = Some((span(&shape, &strides), why));
                }
            }
            if let Some(along) = &arg.along
                && let Some(rank) = values.get(&along.num_dims)
                && let Some(shape) = words.take(usize::try_from(rank.get()).unwrap_or(usize::MAX))
            {
                values.insert(format!("along_of_{}", along.of), Count(saturated(product(&shape))));
            }
        }
        Ok(spans)
    }

    /// `, with numel = 4`
    fn named_in(&self, condition: &str, values: &Values) -> String {
        let words = condition.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        let mut named: Vec<String> = Vec::new();
        for word in words {
            if let Some(value) = values.get(word) {
                let text = format!("{word} = {}", value.0);
                if !named.contains(&text) {
                    named.push(text);
                }
            }
        }
        if named.is_empty() { String::new() } else { format!(", with {}", named.join(", ")) }
    }
}

/// `1 element`, `2 elements`.
fn elements(count: u128) -> String {
    format!("{count} {}", if count == 1 { "element" } else { "elements" })
}

fn saturated(n: u128) -> i128 {
    i128::try_from(n).unwrap_or(i128::MAX)
}

fn product(shape: &[u64]) -> u128 {
    if shape.contains(&0) {
        return 0;
    }
    shape.iter().fold(1_u128, |product, &size| product.saturating_mul(size.into()))
}

/// Elements from the first to the last that such a tensor has.
fn span(shape: &[u64], strides: &[u64]) -> u128 {
    if shape.contains(&0) {
        return 0;
    }
    let reach = |(&size, &stride): (&u64, &u64)| u128::from(size - 1) * u128::from(stride);
    shape.iter().zip(strides).map(reach).fold(1, u128::saturating_add)
}

/// Sizes and strides of a layout, taken one after the other.
struct Words(Vec<u64>);

impl Words {
    fn take(&mut self, count: usize) -> Option<Vec<u64>> {
        (count <= self.0.len()).then(|| self.0.drain(..count).collect())
    }
}

/// What the memory of a layout holds; `None` if there is none.
fn words(given: &ArgValue) -> Result<Option<Words>> {
    let ArgValue::Memory(memory) = given else { return Ok(None) };
    let first = memory.first(MOST_WORDS)?;
    Ok(Some(Words((0..first.len()).map(|i| first.get(i).bits()).collect())))
}
