//! What is known of kernels before any is loaded: the tables that `amdgpu-build` generates.

use crate::{Count, Error, LaunchConfig, Layout, Result};
use amdgpu_emulator::Gfx;
use std::fmt;

/// A set of kernels that is loaded as a unit, compiled for several targets.
#[derive(Clone, Copy, Debug)]
pub struct Module {
    name: &'static str,
    objects: &'static [Object],
    kernels: &'static [Kernel],
    selection: &'static str,
}

impl Module {
    /// A module of code objects and the kernels in each of them, sorted by name. `amdgpu-build` generates these.
    pub const fn new(name: &'static str, objects: &'static [Object], kernels: &'static [Kernel]) -> Module {
        Module { name, objects, kernels, selection: "" }
    }

    /// The same of a build that was told by `CANDLE_AMDGPU_KERNELS` which kernels to compile.
    pub const fn selected(self, selection: &'static str) -> Module {
        Module { selection, ..self }
    }

    /// What `CANDLE_AMDGPU_KERNELS` said when it was built: names and patterns, or nothing where all kernels are here.
    pub const fn selection(&self) -> &'static str {
        self.selection
    }

    /// Its name: the family's.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Its kernels, sorted by name.
    pub const fn kernels(&self) -> &'static [Kernel] {
        self.kernels
    }

    /// Its code objects, one for each target.
    pub const fn objects(&self) -> &'static [Object] {
        self.objects
    }

    /// The kernel of that name.
    pub fn kernel(&self, name: &str) -> Option<&'static Kernel> {
        let index = self.kernels.binary_search_by(|kernel| kernel.name.cmp(name)).ok()?;
        Some(&self.kernels[index])
    }

    /// The kernel of that name, which this build may not have.
    #[cfg(feature = "kernels")]
    pub(crate) fn known_kernel(&self, name: &str) -> crate::Result<&'static Kernel> {
        let names = self.kernels.iter().map(|kernel| kernel.name);
        self.kernel(name).ok_or_else(|| Error::unknown_kernel(self.name, name, names, self.selection))
    }

    /// The code object for a target such as `gfx1101`: its own, or one of a target with the same instruction set
    /// (gfx1100's), which [`amdgpu_emulator::retarget`] turns into one for it.
    pub fn object(&self, arch: &str) -> Option<&'static Object> {
        let exact = self.objects.iter().find(|object| object.gfx == arch);
        exact.or_else(|| {
            let isa = |name: &str| Gfx::from_name(name).ok().map(Gfx::isa);
            let wanted = isa(arch)?;
            self.objects.iter().find(|object| isa(object.gfx) == Some(wanted))
        })
    }

    /// The same, which the module must have.
    ///
    /// # Errors
    /// [`Error::NoCodeObject`], which says what to build.
    pub fn object_for(&self, arch: &str) -> crate::Result<&'static Object> {
        self.object(arch).ok_or_else(|| crate::Error::NoCodeObject {
            module: self.name.to_owned(),
            arch: arch.to_owned(),
            have: self.objects.iter().map(|object| object.gfx.to_owned()).collect(),
        })
    }
}

/// The target of PTX, which every NVIDIA GPU has.
pub const NVPTX: &str = "nvptx";

/// A module compiled for one target.
#[derive(Clone, Copy)]
pub struct Object {
    /// The target, such as `gfx1100`, or [`NVPTX`].
    pub gfx: &'static str,
    /// An ELF file; of [`NVPTX`], packed PTX.
    pub bytes: &'static [u8],
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Object({}, {} bytes)", self.gfx, self.bytes.len())
    }
}

/// A kernel as its Rust function states it.
#[derive(Debug)]
pub struct Kernel {
    /// Family (module).
    pub family: &'static str,
    /// Name of the entry point.
    pub name: &'static str,
    /// Doc comment of the function.
    pub doc: &'static str,
    /// Source file.
    pub file: &'static str,
    /// Line of the function.
    pub line: u32,
    /// Its arguments.
    pub args: &'static [Arg],
    /// What formulas get of tensors, behind the values of the arguments.
    pub derived: &'static [&'static str],
    /// How it is meant to be launched.
    pub geometry: LaunchHints,
}

/// An argument of a kernel.
#[derive(Debug)]
pub struct Arg {
    /// Name of the parameter.
    pub name: &'static str,
    /// Its Rust type.
    pub ty: ArgType,
    /// Its size in bytes.
    pub size: u32,
    /// Whether the pointer may be null.
    pub nullable: bool,
    /// Bytes of an element, if the memory has a row for each row of the launch; else 0.
    pub row_of: usize,
    /// How many elements the memory must have at least.
    pub len: Option<Formula>,
    /// For a pointer to shapes and strides: what it lays out.
    pub layout: Option<LayoutOf>,
    /// For a pointer to sizes and strides of tensors that have sizes of their own: these.
    pub tensors: &'static [TensorOf],
    /// Beside a tensor: dimensions of it that are chosen at launch, behind its words.
    pub along: Option<AlongOf>,
    /// The value, if it follows from others.
    pub value: Option<Formula>,
    /// Conditions that must hold: each gives 0 if it does not.
    pub requires: &'static [Formula],
    /// What the caller must guarantee because nothing can check it: such a kernel's wrapper is unsafe.
    pub promise: Option<&'static str>,
    /// The address must be a multiple of this many bytes.
    pub align: usize,
}

impl Arg {
    /// An argument about which nothing else is known.
    pub const fn new(name: &'static str, ty: ArgType, size: u32) -> Arg {
        Arg {
            name,
            ty,
            size,
            nullable: false,
            row_of: 0,
            len: None,
            layout: None,
            tensors: &[],
            along: None,
            value: None,
            requires: &[],
            promise: None,
            align: 1,
        }
    }

    /// Whether its memory holds what layouts say.
    pub const fn takes_layouts(&self) -> bool {
        self.layout.is_some() || !self.tensors.is_empty()
    }

    /// What its memory holds for these layouts; nothing if the pointer is null, as it may be of contiguous operands.
    pub fn words(&self, operands: &[&Layout]) -> Vec<usize> {
        let shapes = operands.iter().flat_map(|operand| operand.shape().iter().chain(operand.strides()));
        let strides = operands.iter().flat_map(|operand| operand.strides());
        let contiguous = operands.iter().all(|operand| operand.is_contiguous());
        match operands {
            _ if contiguous && (self.layout.is_some() || self.nullable) => Vec::new(),
            [first, ..] if self.layout.is_some() => first.shape().iter().chain(strides).copied().collect(),
            _ => shapes.copied().collect(),
        }
    }
}

/// Chosen dimensions of a tensor. An argument's memory has their sizes, followed by their strides in a contiguous tensor.
#[derive(Debug)]
pub struct AlongOf {
    /// The argument with their number.
    pub num_dims: usize,
    /// Position of the product of their sizes among the values that formulas get.
    pub numel: usize,
}

/// A tensor whose sizes and strides are in an argument's memory. Numbers named `dims` and `numel` are positions among the
/// values that formulas get.
#[derive(Debug)]
pub struct TensorOf {
    /// The pointer to its elements.
    pub of: usize,
    /// The argument with the number of dimensions, where that is not fixed.
    pub rank: Option<usize>,
    /// Its sizes. Those at the same position are equal.
    pub dims: &'static [usize],
    /// Its number of elements.
    pub numel: usize,
}

impl Kernel {
    /// How many numbers a formula gets: of the arguments, of tensors, and the geometry.
    pub fn value_count(&self) -> usize {
        self.args.len() + self.derived.len() + 6
    }

    /// Whether short rows share a workgroup.
    pub(crate) fn rows_share_workgroups(&self) -> bool {
        self.geometry.columns.is_some() && self.args.iter().any(|arg| arg.row_of > 0)
    }

    /// Whether layouts or other arguments determine the argument at this position.
    pub fn is_filled_in(&self, index: usize) -> bool {
        let arg = &self.args[index];
        let is_of_layout =
            |a: &Arg| a.layout.as_ref().is_some_and(|l| l.numel == index || l.num_dims == index);
        let is_rank = |a: &Arg| {
            a.tensors.iter().any(|tensor| tensor.rank == Some(index))
                || a.along.as_ref().is_some_and(|along| along.num_dims == index)
        };
        arg.layout.is_some()
            || !arg.tensors.is_empty()
            || arg.value.is_some()
            || self.args.iter().any(|a| is_of_layout(a) || is_rank(a))
    }

    /// The arguments that take layouts, with their positions.
    pub fn layout_args(&self) -> impl Iterator<Item = (usize, &'static Arg)> {
        let args = self.args.iter().enumerate();
        args.filter(|(_, arg)| arg.takes_layouts())
    }

    /// The pointers that these layouts are of, one for each layout.
    pub fn laid_out(&self) -> impl Iterator<Item = impl Iterator<Item = usize>> {
        self.layout_args().map(|(_, arg)| {
            let shared = arg.layout.as_ref().map_or(&[][..], |layout| layout.of);
            shared.iter().copied().chain(arg.tensors.iter().map(|tensor| tensor.of))
        })
    }

    /// Completes the values of the arguments, at the front of `values`, which has [`value_count`](Self::value_count): what
    /// layouts and other arguments say.
    ///
    /// # Errors
    /// If shapes contradict each other or the kernel, or a number that follows from arguments does not fit its own.
    ///
    /// # Panics
    /// If there is not an entry in `layouts` for each of [`layout_args`](Self::layout_args).
    pub fn complete(&self, layouts: &[&[&Layout]], values: &mut [Count]) -> Result<()> {
        assert_eq!(layouts.len(), self.layout_args().count(), "{}: one entry for each layout", self.name);
        let mut known = vec![false; values.len()];
        for ((_, arg), operands) in self.layout_args().zip(layouts) {
            if let Some(spec) = &arg.layout {
                assert_eq!(operands.len(), spec.of.len(), "{}: one layout for each operand", self.name);
                let Some(first) = operands.first() else { continue };
                if operands.iter().any(|operand| operand.shape() != first.shape()) {
                    return Err(Error::ShapesDiffer {
                        kernel: self.name.to_owned(),
                        shapes: operands.iter().map(|operand| operand.shape().to_vec()).collect(),
                    });
                }
                values[spec.numel] = Count(first.numel() as i128);
                values[spec.num_dims] = Count(first.rank() as i128);
                continue;
            }
            let mut tensors = *operands;
            if let (Some(along), Some((dims, rest))) = (&arg.along, operands.split_last()) {
                values[along.numel] = Count(dims.numel() as i128);
                values[along.num_dims] = Count(dims.rank() as i128);
                tensors = rest;
            }
            assert_eq!(tensors.len(), arg.tensors.len(), "{}: one layout for each tensor", self.name);
            for (tensor, layout) in arg.tensors.iter().zip(tensors) {
                values[tensor.numel] = Count(layout.numel() as i128);
                if let Some(rank) = tensor.rank {
                    values[rank] = Count(layout.rank() as i128);
                    continue;
                }
                let bad = |reason| Error::BadShape {
                    kernel: self.name.to_owned(),
                    arg: self.args[tensor.of].name.to_owned(),
                    shape: layout.shape().to_vec(),
                    reason,
                };
                if layout.rank() != tensor.dims.len() {
                    return Err(bad(format!("it must have {} dimensions", tensor.dims.len())));
                }
                for (i, (&at, &size)) in tensor.dims.iter().zip(layout.shape()).enumerate() {
                    let size = Count(size as i128);
                    if known[at] && values[at] != size {
                        return Err(bad(format!(
                            "dimension {i} must be {}, as of the tensor before",
                            values[at].0
                        )));
                    }
                    (known[at], values[at]) = (true, size);
                }
            }
        }
        for (index, arg) in self.args.iter().enumerate() {
            let Some(formula) = &arg.value else { continue };
            let value = (formula.eval)(values);
            let most = if arg.size >= 8 { u64::MAX.into() } else { (1_i128 << (8 * arg.size)) - 1 };
            if !(0..=most).contains(&value.0) {
                return Err(Error::Requirement {
                    kernel: self.name.to_owned(),
                    requirement: format!("0 <= {} <= {most}", formula.text),
                    values: format!("{} = {}", formula.text, value.0),
                });
            }
            values[index] = value;
        }
        Ok(())
    }

    /// Whether the values of the arguments are enough to evaluate a formula of this kernel: a length may also name sizes of
    /// tensors, or the geometry, which a launch by name does not know.
    pub fn is_of_arguments(&self, formula: &Formula) -> bool {
        let names = |name: &str| is_named(formula.text, name);
        !self.derived.iter().any(|&name| names(name)) && !names("grid") && !names("block")
    }

    /// What the caller must guarantee because nothing can check it before the launch, with the argument that it is about. The
    /// typed wrapper of a kernel with such a promise is unsafe.
    pub fn promises(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.args.iter().filter_map(|arg| Some((arg.name, arg.promise?)))
    }
}

/// Whether a formula names something, not as a field or a method.
pub(crate) fn is_named(formula: &str, name: &str) -> bool {
    let mut words = formula.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.'));
    words.any(|word| word.split('.').next() == Some(name))
}

/// The Rust type of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgType {
    /// Passed by value: a scalar or a structure.
    Value(&'static str),
    /// Address of device memory.
    Pointer {
        /// `*mut`, not `*const`.
        mutable: bool,
        /// Element type.
        pointee: &'static str,
    },
}

impl ArgType {
    /// Whether it is an address.
    pub const fn is_pointer(&self) -> bool {
        matches!(self, ArgType::Pointer { .. })
    }

    /// The value's type, or that of the elements pointed to.
    pub const fn element(&self) -> &'static str {
        match self {
            ArgType::Value(name) => name,
            ArgType::Pointer { pointee, .. } => pointee,
        }
    }
}

impl fmt::Display for ArgType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ArgType::Value(name) => f.write_str(name),
            ArgType::Pointer { mutable: true, pointee } => write!(f, "*mut {pointee}"),
            ArgType::Pointer { mutable: false, pointee } => write!(f, "*const {pointee}"),
        }
    }
}

/// What a layout argument is: dimensions, then strides of each operand, or null if all are contiguous. The
/// numbers are positions of arguments.
#[derive(Debug)]
pub struct LayoutOf {
    /// The argument with the number of elements.
    pub numel: usize,
    /// The argument with the number of dimensions.
    pub num_dims: usize,
    /// The pointers that it lays out.
    pub of: &'static [usize],
}

/// The launch geometry that a kernel states for itself. It is right under any other as well.
#[derive(Debug)]
pub struct LaunchHints {
    /// Work-items of a workgroup in x, y and z.
    pub workgroup: [u32; 3],
    /// Most work-items of a workgroup that the kernel is compiled for.
    pub max_workgroup_size: u32,
    /// Items that one lane handles.
    pub items_per_lane: u32,
    /// Bytes of workgroup memory, if that is a constant.
    pub lds_bytes: u32,
    /// Number of items: the grid is as large as they need.
    pub items: Option<Formula>,
    /// Or the number of rows: each workgroup is one, of whatever size, and the grid says how many there are.
    pub rows: Option<Formula>,
    /// Items of a row: a workgroup has only as many whole waves as they need.
    pub columns: Option<Formula>,
    /// Or the grid in workgroups.
    pub grid: Option<[Formula; 3]>,
    /// Bytes of workgroup memory, if they depend on arguments.
    pub lds: Option<Formula>,
}

/// Work-items of a workgroup that is a row of `columns` items: as many whole waves as they need, and no more than `most`.
pub fn lanes_of_row(columns: u128, items_per_lane: u32, wave: u32, most: u32) -> u32 {
    whole_waves(columns.div_ceil(items_per_lane.max(1).into()), wave, most)
}

fn whole_waves(lanes: u128, wave: u32, most: u32) -> u32 {
    let waves = lanes.div_ceil(wave.max(1).into()).max(1);
    u32::try_from(waves * u128::from(wave)).map_or(most, |lanes| lanes.min(most))
}

/// Items that a lane takes of a row of whole blocks of `items_per_lane` (`kernels/src/reduce/row.rs`).
const HELD_ITEMS: u32 = 16;
/// Lanes whose blocks of 16 bytes are a cache line: fewer would read it in several pieces.
const LINE: u128 = 8;
/// Waves of a workgroup of short rows if there are [`MANY_LANES`] of them, which keep a device busy.
const SHARED_WAVES: u32 = 4;
const MANY_LANES: u128 = 1 << 16;
/// The most rows of a workgroup: NVIDIA GPUs have no larger z.
const MOST_ROWS: u32 = 64;

/// The workgroup of a kernel whose rows may share one (`#[by_row]`): lanes for each row, and how many rows. The lanes do not depend on
/// the number of rows, so that a row's bits do not either: a power of two up to half a wave, or else whole waves, for a row alone.
pub fn workgroup_of_rows(rows: u128, columns: u128, items_per_lane: u32, wave: u32, most: u32) -> [u32; 2] {
    let items = items_per_lane.max(1);
    let blocks = columns.div_ceil(items.into()).max(1);
    let whole = columns.is_multiple_of(items.into());
    let held = if whole { HELD_ITEMS.min(4 * items) / items } else { 1 };
    let lanes = blocks.div_ceil(held.max(1).into()).max(blocks.min(LINE));
    if lanes > u128::from(wave / 2) {
        return [whole_waves(lanes, wave, most), 1];
    }
    let lanes = (lanes as u32).next_power_of_two();
    let waves = if rows.saturating_mul(lanes.into()) >= MANY_LANES { SHARED_WAVES } else { 1 };
    let shared = (waves * wave / lanes).min(MOST_ROWS);
    [lanes, u32::try_from(rows).map_or(shared, |rows| rows.clamp(1, shared))]
}

impl LaunchHints {
    /// Work-items of a workgroup in x, y and z, where waves have `wave` lanes.
    pub(crate) fn block(&self, values: &[Count], wave: u32) -> [u32; 3] {
        let [x, y, z] = self.workgroup;
        let Some(columns) = &self.columns else { return [x, y, z] };
        [lanes_of_row((columns.eval)(values).get(), self.items_per_lane, wave, x), y, z]
    }

    /// For a kernel that learns the amount of work from its launch alone: workgroups of its own size that do what `grid`
    /// workgroups of `block` lanes would. Its items are their lanes in x; lanes with another y or z have other items.
    ///
    /// `None` if it states neither several items per lane nor several rows per workgroup, or if the lanes are not a whole
    /// number of workgroups with several rows, since the last one would have rows that nobody asked for.
    pub(crate) fn cover(&self, grid: [u32; 3], block: [u32; 3]) -> Option<LaunchConfig> {
        let [x, y, z] = self.workgroup;
        let lanes = u64::from(grid[0]) * u64::from(block[0]);
        let each = u64::from(x * y * z) * u64::from(self.items_per_lane);
        let is_row = [y, z] == [1, 1];
        let is_stated = self.items_per_lane > 1 || !is_row;
        if !is_stated || block[1..] != [1, 1] || !is_row && !lanes.is_multiple_of(each) {
            return None;
        }
        let workgroups = u32::try_from(lanes.div_ceil(each)).ok()?;
        Some(LaunchConfig::explicit([workgroups, grid[1], grid[2]], self.workgroup, self.lds_bytes))
    }
}

/// A number that is computed from a kernel's integer arguments and the lengths of its memory.
#[derive(Clone, Copy)]
pub struct Formula {
    /// As the kernel states it.
    pub text: &'static str,
    /// From the values of all arguments (an integer's own, the number of elements of memory, 0 for others), then the numbers
    /// of tensors, the grid and the workgroup. For launches by name, which know no tensors, the formulas for the amount of work
    /// use the arguments alone.
    pub eval: fn(&[Count]) -> Count,
}

impl fmt::Debug for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text)
    }
}

/// The three names that are nearest to `name`, for messages about a name that does not exist.
pub fn nearest<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let mut names: Vec<&str> = names.into_iter().collect();
    names.sort_by_cached_key(|candidate| distance(candidate, name));
    names.truncate(3);
    names
}

/// How many letters must be inserted, removed or exchanged to turn `b` into `a`.
fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::{distance, nearest};

    #[test]
    fn distance_counts_edits() {
        assert_eq!(distance("affine_f32", "affine_f32"), 0);
        assert_eq!(distance("affine_f32", "afine_f16"), 3);
        assert_eq!(distance("", "abc"), 3);
    }

    #[test]
    fn the_nearest_name_comes_first() {
        let names = ["fill_u8", "affine_f16", "affine_f32", "affine_u8", "uexp_f32"];
        assert_eq!(nearest("afine_f32", names), ["affine_f32", "affine_f16", "affine_u8"]);
    }
}
