//! One launch in terms of host data.

use super::Grid;
use crate::reference::{Array, DType, Value};
use candle_amdgpu::kernel::Kernel;
use candle_amdgpu::{Count, Layout};
use std::fmt;

/// A launch: what each parameter gets, and the geometry.
#[derive(Clone)]
pub struct Call {
    /// The kernel.
    pub kernel: &'static Kernel,
    /// One for each parameter.
    pub inputs: Vec<Input>,
    /// For each layout parameter, a layout for each of its operands.
    pub layouts: Vec<Vec<Layout>>,
    /// The geometry.
    pub grid: Grid,
}

/// What a parameter gets.
#[derive(Clone)]
pub enum Input {
    /// A layout, or a number that comes from one.
    Layout,
    /// A value.
    Value(Value),
    /// Device memory with these contents.
    Memory(Operand),
    /// A null pointer.
    Null,
}

/// Device memory of a call.
#[derive(Clone)]
pub struct Operand {
    /// Its contents before the launch.
    pub data: Array,
    /// How many elements it begins after an address that is a multiple of 256.
    pub shift: usize,
}

/// What memory must hold after a call.
pub struct Expected {
    /// The parameter.
    pub arg: usize,
    /// All elements.
    pub data: Array,
    /// How close each must be.
    pub tolerance: Tolerance,
}

/// How close a result must be.
#[derive(Clone, Copy, Debug)]
pub enum Tolerance {
    /// The same bits, also of a NaN and of the sign of zero.
    Bits,
    /// The same value and sign of zero; all NaNs are equal.
    Exact,
    /// At most this many steps from one value of the type to the next.
    Ulp(u64),
    /// At most so far away: a distance for each element of the memory.
    Within(fn(&Call) -> Vec<f64>),
    /// At most this far off, in multiples of the value and beyond that of 1.
    Near {
        /// Share of the value.
        relative: f64,
        /// Distance.
        absolute: f64,
    },
}

impl fmt::Display for Tolerance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tolerance::Bits => f.write_str("all bits must be equal"),
            Tolerance::Exact => f.write_str("the values must be equal"),
            Tolerance::Ulp(most) => write!(f, "at most {most} ulp are allowed"),
            Tolerance::Within(_) => f.write_str("farther than the bound of this element"),
            Tolerance::Near { relative, absolute } => {
                write!(f, "at most {relative} of the value and {absolute} beyond that are allowed")
            }
        }
    }
}

impl Call {
    /// A call of `kernel` whose parameters get what `input` says, by name; `None` if it says nothing for one that
    /// comes from no layout.
    pub fn new(
        kernel: &'static Kernel,
        grid: Grid,
        layouts: Vec<Vec<Layout>>,
        mut input: impl FnMut(&str, DType) -> Option<Input>,
    ) -> Option<Call> {
        let inputs = kernel.args.iter().enumerate().map(|(index, arg)| {
            if kernel.is_filled_in(index) {
                Some(Input::Layout)
            } else {
                // A `bool` is a byte of 0 or 1.
                let element = if arg.ty.element() == "bool" { "u8" } else { arg.ty.element() };
                input(arg.name, DType::from_name(element)?)
            }
        });
        Some(Call { kernel, inputs: inputs.collect::<Option<_>>()?, layouts, grid })
    }

    /// Position of a parameter.
    ///
    /// # Panics
    /// If the kernel has no parameter of this name.
    pub fn position(&self, name: &str) -> usize {
        let position = self.kernel.args.iter().position(|arg| arg.name == name);
        position.unwrap_or_else(|| panic!("{} has no parameter `{name}`", self.kernel.name))
    }

    /// The memory of a parameter, `None` if it is null.
    ///
    /// # Panics
    /// If it is not a pointer.
    pub fn memory(&self, name: &str) -> Option<&Array> {
        match &self.inputs[self.position(name)] {
            Input::Memory(operand) => Some(&operand.data),
            Input::Null => None,
            _ => panic!("{}: `{name}` is not a pointer", self.kernel.name),
        }
    }

    /// The value of a parameter.
    ///
    /// # Panics
    /// If it is not a value.
    pub fn value(&self, name: &str) -> Value {
        match self.inputs[self.position(name)] {
            Input::Value(value) => value,
            _ => panic!("{}: `{name}` is not a value", self.kernel.name),
        }
    }

    /// What lengths and geometries are computed from: for each parameter an integer's value, the number of elements of
    /// memory, 0 for others.
    pub fn counts(&self) -> Vec<Count> {
        let values = self
            .inputs
            .iter()
            .map(|input| match input {
                Input::Value(value) if !value.dtype().is_float() => Count(value.to_int()),
                Input::Memory(operand) => Count(operand.data.len() as i128),
                _ => Count(0),
            })
            .chain(std::iter::repeat(Count(0)));
        let mut counts: Vec<Count> = values.take(self.kernel.value_count()).collect();
        let layouts: Vec<Vec<&Layout>> =
            self.layouts.iter().map(|layouts| layouts.iter().collect()).collect();
        let layouts: Vec<&[&Layout]> = layouts.iter().map(Vec::as_slice).collect();
        // Layouts that contradict each other are an error of the launch.
        let _ = self.kernel.complete(&layouts, &mut counts);
        counts.truncate(self.kernel.args.len());
        counts
    }

    /// What the memory holds that a layout parameter points to; `None` if it is null.
    pub fn words(&self, arg: usize) -> Option<Vec<usize>> {
        let layouts = self.kernel.layout_args().zip(&self.layouts).find(|((index, _), _)| *index == arg);
        let ((_, arg), layouts) = layouts?;
        let words = arg.words(&layouts.iter().collect::<Vec<_>>());
        (!words.is_empty()).then_some(words)
    }

    /// The values and the elements of other memory that belong to element `index` of a result.
    pub(super) fn explain(&self, result: usize, index: usize) -> String {
        let mut parts = Vec::new();
        for (i, (arg, input)) in self.kernel.args.iter().zip(&self.inputs).enumerate() {
            match input {
                Input::Value(value) => parts.push(format!("{} = {value}", arg.name)),
                Input::Memory(operand) if i != result || arg.len.is_some() => {
                    let at = self.layout_of(i).map_or(Some(index), |layout| layout.indices().nth(index));
                    let at = at.filter(|&at| at < operand.data.len());
                    let value = at.map(|at| operand.data.get(at));
                    parts.extend(value.map(|value| format!("{} was {value}", arg.name)));
                }
                _ => {}
            }
        }
        parts.join(", ")
    }

    fn layout_of(&self, arg: usize) -> Option<&Layout> {
        self.kernel.laid_out().zip(&self.layouts).find_map(|(mut pointers, layouts)| {
            let operand = pointers.position(|of| of == arg)?;
            layouts.get(operand)
        })
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.kernel.name)?;
        let mut layouts = self.layouts.iter();
        let mut separator = "";
        for (arg, input) in self.kernel.args.iter().zip(&self.inputs) {
            let text = match input {
                Input::Layout if arg.takes_layouts() => layouts
                    .next()
                    .into_iter()
                    .flatten()
                    .map(|l| format!("shape {:?} strides {:?} offset {}", l.shape(), l.strides(), l.offset()))
                    .collect::<Vec<_>>()
                    .join(" and "),
                Input::Layout => continue,
                Input::Value(value) => value.to_string(),
                Input::Memory(Operand { data, shift }) => {
                    format!("{} × {} at 256·k + {}", data.len(), data.dtype(), shift * data.dtype().size())
                }
                Input::Null => "null".to_owned(),
            };
            write!(f, "{separator}{}: {text}", arg.name)?;
            separator = ", ";
        }
        write!(f, ") launched {}", self.grid)
    }
}
