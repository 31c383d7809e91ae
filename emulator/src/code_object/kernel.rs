//! What a code object says of a kernel.

/// One kernel: its arguments and the resources that it needs.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct KernelInfo {
    /// Name, as a launch gives it.
    pub name: String,
    /// Arguments in order, hidden ones last.
    pub args: Vec<KernelArg>,
    /// Bytes of all arguments together, hidden ones included.
    pub kernarg_size: u32,
    /// Bytes of LDS that the kernel always has; launch-sized LDS comes on top.
    pub lds_size: u32,
    /// Bytes of scratch (private memory) per work-item.
    pub scratch_size: u32,
    /// The kernel's stack depth is unknown: it recurses or calls through pointers.
    pub dynamic_stack: bool,
    /// Vector registers per work-item, accumulation registers included where they share a file (gfx90a on).
    pub vgprs: u32,
    /// Accumulation registers per work-item (gfx90a, gfx942).
    pub agprs: u32,
    /// Scalar registers per wave.
    pub sgprs: u32,
    /// Vector registers that were spilled.
    pub vgpr_spills: u32,
    /// Scalar registers that were spilled.
    pub sgpr_spills: u32,
    /// Lanes of a wave, 32 or 64.
    pub wave_size: u32,
    /// The most work-items that a workgroup of this kernel may have.
    pub max_workgroup_size: u32,
    /// Bytes of machine code.
    pub code_bytes: u64,
    /// What the dispatcher reads.
    pub descriptor: KernelDescriptor,
}

impl KernelInfo {
    /// A kernel of which only arguments and workgroups are known, as in text that a driver compiles: no registers, no code.
    pub fn of_text(
        name: String,
        args: Vec<KernelArg>,
        max_workgroup_size: u32,
        wave_size: u32,
    ) -> KernelInfo {
        KernelInfo {
            name,
            kernarg_size: args.iter().map(|arg| arg.offset + arg.size).max().unwrap_or(0),
            args,
            lds_size: 0,
            scratch_size: 0,
            dynamic_stack: false,
            vgprs: 0,
            agprs: 0,
            sgprs: 0,
            vgpr_spills: 0,
            sgpr_spills: 0,
            wave_size,
            max_workgroup_size,
            code_bytes: 0,
            descriptor: KernelDescriptor::default(),
        }
    }

    /// Bytes of the explicit arguments: up to the end of the last one.
    pub fn explicit_size(&self) -> u32 {
        self.args.iter().filter(|arg| !arg.is_hidden()).map(|arg| arg.offset + arg.size).max().unwrap_or(0)
    }
}

/// One argument of a kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct KernelArg {
    /// Name in the source, if the compiler kept it.
    pub name: Option<String>,
    /// Offset in the argument block.
    pub offset: u32,
    /// Size in bytes.
    pub size: u32,
    /// What it is.
    pub kind: ArgKind,
}

impl KernelArg {
    /// An argument that the caller gives.
    pub fn explicit(name: Option<String>, offset: u32, size: u32, is_pointer: bool) -> KernelArg {
        let kind = if is_pointer { ArgKind::GlobalBuffer } else { ArgKind::ByValue };
        KernelArg { name, offset, size, kind }
    }

    /// Whether the dispatcher fills the argument in, not the caller.
    pub fn is_hidden(&self) -> bool {
        matches!(self.kind, ArgKind::Hidden(_))
    }
}

/// What an argument is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ArgKind {
    /// A plain value.
    ByValue,
    /// A pointer to device memory.
    GlobalBuffer,
    /// A pointer to launch-sized LDS.
    DynamicShared,
    /// An argument that only OpenCL has (images, samplers, queues, pipes).
    Opaque,
    /// An argument that the dispatcher fills in.
    Hidden(HiddenArg),
}

/// Arguments that the dispatcher fills in (code object versions 3 to 6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names are the metadata's")]
#[non_exhaustive]
pub enum HiddenArg {
    /// Workgroups along an axis.
    BlockCount(u8),
    /// Work-items of a full workgroup along an axis.
    GroupSize(u8),
    /// Work-items of the partial workgroup along an axis; zero without one.
    Remainder(u8),
    /// First global id along an axis; zero.
    GlobalOffset(u8),
    /// Dimensions of the grid.
    GridDims,
    DynamicLdsSize,
    PrivateBase,
    SharedBase,
    PrintfBuffer,
    HostcallBuffer,
    DefaultQueue,
    CompletionAction,
    MultigridSyncArg,
    HeapV1,
    QueuePtr,
    None,
    /// One that the emulator does not know; it is zero.
    Unknown,
}

/// The fields of a kernel descriptor that a dispatch depends on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct KernelDescriptor {
    /// Address of the first instruction, relative to the load address.
    pub entry: u64,
    /// Bytes of LDS.
    pub lds_size: u32,
    /// Bytes of scratch per work-item.
    pub scratch_size: u32,
    /// Bytes of arguments.
    pub kernarg_size: u32,
    /// `COMPUTE_PGM_RSRC1`.
    pub rsrc1: u32,
    /// `COMPUTE_PGM_RSRC2`.
    pub rsrc2: u32,
    /// `COMPUTE_PGM_RSRC3`.
    pub rsrc3: u32,
    /// Kernel code properties.
    pub properties: u16,
    /// Kernel argument preload: length in the low 7 bits, offset above, in dwords.
    pub preload: u16,
}

impl KernelDescriptor {
    pub(super) const SIZE: usize = 64;

    pub(super) fn parse(bytes: &[u8], address: u64) -> Option<KernelDescriptor> {
        let u32_at = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let u16_at = |at: usize| Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
        let offset = u64::from(u32_at(16)?) | u64::from(u32_at(20)?) << 32;
        Some(KernelDescriptor {
            entry: address.wrapping_add(offset),
            lds_size: u32_at(0)?,
            scratch_size: u32_at(4)?,
            kernarg_size: u32_at(8)?,
            rsrc3: u32_at(44)?,
            rsrc1: u32_at(48)?,
            rsrc2: u32_at(52)?,
            properties: u16_at(56)?,
            preload: u16_at(58)?,
        })
    }

    /// Whether the kernel runs in waves of 32 (`ENABLE_WAVEFRONT_SIZE32`).
    pub fn wave32(&self) -> bool {
        self.properties >> 10 & 1 != 0
    }
}
