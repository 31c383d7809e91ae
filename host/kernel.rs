//! What is known of kernels before any is loaded: the tables that `amdgpu-build` generates.

use crate::{Count, LaunchConfig};
use amdgpu_emulator::Gfx;
use std::fmt;

/// A set of kernels that is loaded as one, compiled for several targets.
#[derive(Clone, Copy, Debug)]
pub struct Module {
    name: &'static str,
    objects: &'static [Object],
    kernels: &'static [Kernel],
}

impl Module {
    /// A module of code objects and the kernels in each of them, sorted by name. `amdgpu-build` generates these.
    pub const fn new(name: &'static str, objects: &'static [Object], kernels: &'static [Kernel]) -> Module {
        Module { name, objects, kernels }
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
        self.kernel(name).ok_or_else(|| crate::Error::UnknownKernel {
            module: self.name.to_owned(),
            name: name.to_owned(),
            count: self.kernels.len(),
            near: Vec::new(),
        })
    }

    /// The code object for a target such as `gfx1101`: its own, or one of a target with the same instruction set
    /// (gfx1100's), which [`amdgpu_emulator::retarget`] makes one for it.
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
    /// [`Error::NoCodeObject`](crate::Error::NoCodeObject), which says what to build.
    pub fn object_for(&self, arch: &str) -> crate::Result<&'static Object> {
        self.object(arch).ok_or_else(|| crate::Error::NoCodeObject {
            module: self.name.to_owned(),
            arch: arch.to_owned(),
            have: self.objects.iter().map(|object| object.gfx.to_owned()).collect(),
        })
    }
}

/// A code object: a module compiled for one target.
#[derive(Clone, Copy)]
pub struct Object {
    /// The target, such as `gfx1100`.
    pub gfx: &'static str,
    /// An ELF file.
    pub bytes: &'static [u8],
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Object({}, {} bytes)", self.gfx, self.bytes.len())
    }
}

/// A kernel as its Rust function says it.
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
    /// How it is meant to be launched.
    pub geometry: Geometry,
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
    /// How many elements the memory must have at least.
    pub len: Option<Formula>,
    /// For a pointer to shapes and strides: what it lays out.
    pub layout: Option<LayoutOf>,
}

/// The Rust type of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgType {
    /// Passed by value.
    Scalar(&'static str),
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

    /// The scalar type, or that of the elements pointed to.
    pub const fn element(&self) -> &'static str {
        match self {
            ArgType::Scalar(name) => name,
            ArgType::Pointer { pointee, .. } => pointee,
        }
    }
}

impl fmt::Display for ArgType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ArgType::Scalar(name) => f.write_str(name),
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

/// The launch geometry that a kernel states for itself. It is right under any other, too.
#[derive(Debug)]
pub struct Geometry {
    /// Lanes of a workgroup in x, y and z.
    pub workgroup: [u32; 3],
    /// Most lanes of a workgroup that the kernel is compiled for.
    pub max_workgroup_size: u32,
    /// Items that one lane handles.
    pub items_per_lane: u32,
    /// Bytes of workgroup memory, where it is a constant.
    pub lds_bytes: u32,
    /// Number of items: the grid is as large as they need.
    pub items: Option<Formula>,
    /// Or the number of rows: each workgroup is one, of whatever size, and the grid says how many there are.
    pub rows: Option<Formula>,
    /// Or the grid in workgroups.
    pub grid: Option<[Formula; 3]>,
    /// Bytes of workgroup memory, where it depends on arguments.
    pub lds: Option<Formula>,
}

impl Geometry {
    /// For a kernel that is told by its launch alone how much there is to do: workgroups of its own that do what `grid`
    /// workgroups of `block` lanes would. Its items are their lanes in x, and lanes with another y or z have others.
    ///
    /// `None` if it states neither several items for a lane nor several rows for a workgroup, or if the lanes are not a
    /// whole number of workgroups with several rows, of which the last would have rows that nobody asked for.
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
    /// As the kernel says it.
    pub text: &'static str,
    /// From the values of all arguments: an integer's own, the number of elements of memory, 0 for others.
    pub eval: fn(&[Count]) -> Count,
}

impl fmt::Debug for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text)
    }
}
