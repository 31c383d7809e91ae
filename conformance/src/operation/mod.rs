//! What is compared: one kernel for each operation of a target, and what goes into it and comes out of it.
//!
//! Vector, scalar and memory instructions come from the emulator's instruction tables, so that an instruction that the
//! decoder knows is also compared; what the tables do not say about an operand stands here. The build script includes this
//! module too: it makes the kernels, the library makes their inputs.

use amdgpu_emulator::Gfx;
use serde::{Deserialize, Serialize};

/// What the bits of an operand are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the names say it")]
pub enum Element {
    /// A byte, or a pair of 4-bit numbers.
    B8,
    /// A byte that is a float with four exponent bits.
    Fp8,
    /// A byte that is a float with five exponent bits.
    Bf8,
    B16,
    F16,
    Bf16,
    B32,
    F32,
    B64,
    F64,
    /// One bit, in a word of its own.
    Bit,
}

impl Element {
    /// Bits of it.
    pub const fn bits(self) -> u32 {
        match self {
            Element::B8 | Element::Fp8 | Element::Bf8 => 8,
            Element::B16 | Element::F16 | Element::Bf16 => 16,
            Element::B32 | Element::F32 | Element::Bit => 32,
            Element::B64 | Element::F64 => 64,
        }
    }

    /// Bits of the mantissa that are stored and of the exponent; nothing for what is no float.
    pub const fn float(self) -> Option<(u32, u32)> {
        Some(match self {
            Element::Fp8 => (3, 4),
            Element::Bf8 => (2, 5),
            Element::F16 => (10, 5),
            Element::Bf16 => (7, 8),
            Element::F32 => (23, 8),
            Element::F64 => (52, 11),
            _ => return None,
        })
    }
}

/// One operand: so many 32-bit words full of elements.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Operand {
    /// Its name in the tables.
    pub name: String,
    /// What it is made of.
    pub element: Element,
    /// 32-bit words of it.
    pub words: usize,
}

impl Operand {
    fn new(name: &str, element: Element, words: usize) -> Operand {
        Operand { name: name.to_owned(), element, words }
    }
}

/// Which operations run together.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the names say it")]
pub enum Group {
    /// Vector arithmetic on floats, conversions from and to them included.
    Float,
    /// Comparisons and classes.
    Compare,
    /// Vector arithmetic on integers.
    Integer,
    /// Two or more numbers in a register.
    Packed,
    /// Dot products.
    Dot,
    /// WMMA and MFMA.
    Matrix,
    /// Between the lanes of a wave.
    Lanes,
    /// The scalar unit.
    Scalar,
    /// Workgroup memory.
    Lds,
    /// Global and flat memory, atomics.
    Memory,
    /// What the compiler makes of an operation: divisions, roots, exponentials.
    Sequence,
}

impl Group {
    /// All of them.
    pub const ALL: [Group; 11] = [
        Group::Float,
        Group::Compare,
        Group::Integer,
        Group::Packed,
        Group::Dot,
        Group::Matrix,
        Group::Lanes,
        Group::Scalar,
        Group::Lds,
        Group::Memory,
        Group::Sequence,
    ];

    /// As on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Group::Float => "float",
            Group::Compare => "compare",
            Group::Integer => "integer",
            Group::Packed => "packed",
            Group::Dot => "dot",
            Group::Matrix => "matrix",
            Group::Lanes => "lanes",
            Group::Scalar => "scalar",
            Group::Lds => "lds",
            Group::Memory => "memory",
            Group::Sequence => "sequence",
        }
    }
}

/// How exactly the manuals say what a result is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Accuracy {
    /// To the bit.
    Exact,
    /// Within so many units in the last place.
    Ulps(u64),
    /// The order of additions, and what is rounded between them, is the hardware's.
    Order,
}

/// A setting of the register MODE.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Mode {
    /// What it is called in a report.
    pub name: &'static str,
    /// Its lower ten bits: rounding, denormals, DX10_CLAMP, IEEE.
    pub bits: u32,
}

/// What kernels start with: round to nearest even, keep denormals.
pub const DEFAULT: Mode = Mode { name: "default", bits: 0x3f0 };
/// The other directions of rounding, and denormals that count as zeros.
const ARITHMETIC: [Mode; 5] = [
    DEFAULT,
    Mode { name: "round up", bits: 0x3f5 },
    Mode { name: "round down", bits: 0x3fa },
    Mode { name: "round to zero", bits: 0x3ff },
    Mode { name: "flush denormals", bits: 0x300 },
];
/// Without the IEEE bit; gfx12 has none.
const NO_IEEE: Mode = Mode { name: "no IEEE bit", bits: 0x1f0 };
/// Where a NaN is not clamped to zero.
const NO_DX10_CLAMP: Mode = Mode { name: "no DX10 clamp", bits: 0x2f0 };
/// Where output modifiers work.
const OUTPUT_MODIFIERS: Mode = Mode { name: "flush denormals, no IEEE bit", bits: 0x100 };

/// One operation of a target.
#[derive(Clone, Debug)]
pub struct Operation {
    /// Unique among those of the target: the mnemonic, and what is special about this form of it.
    pub name: String,
    /// The kernel's symbol.
    pub kernel: String,
    /// What it runs with.
    pub group: Group,
    /// What a lane gives to it.
    pub inputs: Vec<Operand>,
    /// What it leaves.
    pub outputs: Vec<Operand>,
    /// The settings of MODE to compare it under.
    pub modes: Vec<Mode>,
    /// What may differ.
    pub accuracy: Accuracy,
    /// Whether all lanes of a wave have the same inputs.
    pub uniform: bool,
    /// Whether inputs are such that every order of additions gives the same.
    pub small_integers: bool,
    body: Body,
}

impl Operation {
    /// 32-bit words that a lane reads.
    pub fn input_words(&self) -> usize {
        self.inputs.iter().map(|operand| operand.words).sum()
    }

    /// 32-bit words that a lane writes.
    pub fn output_words(&self) -> usize {
        self.outputs.iter().map(|operand| operand.words).sum()
    }
}

/// What the kernel does between loading inputs and storing outputs.
#[derive(Clone, Debug)]
enum Body {
    /// Assembly. `{outN}` and `{inN}` are operands. The first `tied` outputs start as the inputs of the same number.
    Assembly { text: String, tied: usize, registers: Registers },
    /// LLVM IR that makes `%out0` of `%in0`, `%in1`, …, typed by their elements, and the declarations it needs.
    Ir { text: String, declarations: String },
    /// Assembly on memory of the lane's own: the last input is what it holds before, the last output what it holds behind.
    Memory { text: String, space: Space, results: usize },
}

/// Where assembly has its operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Registers {
    Vector,
    /// Results and what is added to in accumulation registers.
    Accumulation,
    Scalar,
    /// Outputs in scalar registers, inputs in vector registers.
    ScalarResult,
    /// Inputs in scalar registers but for the old value of a result.
    ScalarSource,
}

/// A memory that a lane has some of: `words` at its address, and as many at each further `distance` in bytes.
#[derive(Clone, Copy, Debug)]
enum Space {
    Lds { lane_bytes: usize, chunks: usize, distance: usize },
    Global,
}

/// Work-items of a workgroup: as many as the widest wave.
pub const WORKGROUP: usize = 64;

/// The operations of a target, sorted by group and name.
pub fn operations(gfx: Gfx) -> Vec<Operation> {
    let mut list = Vec::new();
    vector::operations(gfx, &mut list);
    lanes::operations(gfx, &mut list);
    scalar::operations(gfx, &mut list);
    memory::operations(gfx, &mut list);
    sequence::operations(gfx, &mut list);
    list.sort_by(|a, b| (a.group, &a.name).cmp(&(b.group, &b.name)));
    list.dedup_by(|a, b| a.name == b.name);
    list
}

mod ir;
mod lanes;
mod memory;
mod scalar;
mod sequence;
mod vector;

#[allow(unused_imports, reason = "only the build script makes the module")]
pub use ir::module;

/// A kernel's symbol for a name.
fn symbol(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}
