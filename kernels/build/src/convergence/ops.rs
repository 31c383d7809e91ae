//! What an instruction does for the work-items of a wave and of a workgroup together.

use crate::module::Inst;

/// Among which work-items a value is the same, or a branch taken alike: each one includes those after it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(super) enum Uniform {
    /// All of a workgroup.
    #[default]
    Workgroup,
    /// All of a wave.
    Wave,
    /// None.
    Lane,
}

/// Who takes part in a convergent operation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Scope {
    /// A barrier: the workgroup.
    Workgroup,
    /// A wave operation: the wave.
    Wave,
}

impl Scope {
    /// Whether all take part where control flow is the same so far.
    pub fn is_whole_in(self, flow: Uniform) -> bool {
        match self {
            Scope::Workgroup => flow == Uniform::Workgroup,
            Scope::Wave => flow <= Uniform::Wave,
        }
    }
}

/// Intrinsics in which the lanes of a wave work together, by the beginnings of their names. Those that any lanes may do
/// (`readfirstlane`, which takes the first lane that is there) are not among them.
const WAVE: [&str; 29] = [
    "llvm.amdgcn.ballot",
    "llvm.amdgcn.ds.bpermute",
    "llvm.amdgcn.ds.permute",
    "llvm.amdgcn.ds.read.tr",
    "llvm.amdgcn.ds.load.tr",
    "llvm.amdgcn.ds.swizzle",
    "llvm.amdgcn.fcmp",
    "llvm.amdgcn.global.load.tr",
    "llvm.amdgcn.icmp",
    "llvm.amdgcn.mfma",
    "llvm.amdgcn.smfmac",
    "llvm.amdgcn.mov.dpp",
    "llvm.amdgcn.update.dpp",
    "llvm.amdgcn.permlane",
    "llvm.amdgcn.readlane",
    "llvm.amdgcn.writelane",
    "llvm.amdgcn.set.inactive",
    "llvm.amdgcn.swmmac",
    "llvm.amdgcn.wmma",
    "llvm.amdgcn.wave.reduce",
    "llvm.nvvm.bar.warp",
    "llvm.nvvm.match",
    "llvm.nvvm.mma",
    "llvm.nvvm.wmma",
    "llvm.nvvm.redux",
    "llvm.nvvm.shfl",
    "llvm.nvvm.vote",
    "llvm.nvvm.ldmatrix",
    "llvm.nvvm.elect",
];

/// Those in which a workgroup works together.
const WORKGROUP: [&str; 5] = [
    "llvm.amdgcn.s.barrier",
    "llvm.amdgcn.s.cluster.barrier",
    "llvm.amdgcn.ds.gws",
    "llvm.nvvm.barrier",
    "llvm.nvvm.bar.sync",
];

/// Instructions of assembly that are wave operations, by parts of their names or operands.
const WAVE_ASSEMBLY: [&str; 11] = [
    "permute",
    "permlane",
    "readlane",
    "writelane",
    "swizzle",
    "_dpp",
    "row_",
    "quad_perm",
    "mfma",
    "wmma",
    "shfl.",
];

/// A comment in inline assembly whose source says that its operand is uniform in the wave.
const UNIFORM: &str = "// uniform in the wave";
/// The same for the workgroup.
const UNIFORM_IN_WORKGROUP: &str = "uniform in the workgroup";

/// Who must come to an instruction together.
pub(super) fn scope(inst: &Inst) -> Option<Scope> {
    if let Some((text, _)) = inst.assembly() {
        let has = |parts: &[&str]| parts.iter().any(|part| text.contains(part));
        if has(&["s_barrier", "ds_gws", "bar.sync", "barrier.sync"]) {
            return Some(Scope::Workgroup);
        }
        return has(&WAVE_ASSEMBLY).then_some(Scope::Wave);
    }
    let name = inst.callee()?;
    let is_one_of = |names: &[&str]| names.iter().any(|beginning| name.starts_with(beginning));
    if is_one_of(&WORKGROUP) { Some(Scope::Workgroup) } else { is_one_of(&WAVE).then_some(Scope::Wave) }
}

/// Whether a wave waits for the others of its workgroup at an instruction.
pub(super) fn waits(inst: &Inst) -> bool {
    match (inst.assembly(), inst.callee()) {
        (Some((text, _)), _) => {
            ["s_barrier_wait", "s_barrier\n", "s_barrier;"].iter().any(|name| text.contains(name))
                || text == "s_barrier"
        }
        (None, name) => matches!(name, Some("llvm.amdgcn.s.barrier" | "llvm.amdgcn.s.barrier.wait")),
    }
}

/// What a value is the same among, if its operands are among `operands`. Calls of functions with a body and phis are for
/// the caller.
pub(super) fn result(inst: &Inst, operands: Uniform) -> Uniform {
    use Uniform::{Lane, Wave, Workgroup};
    match inst.opcode {
        "atomicrmw" | "cmpxchg" => Lane,
        // One wave may be later than another.
        "load" if inst.text.starts_with("load atomic") => operands.max(Wave),
        "load" if inst.text.contains("addrspace(5)") => Lane,
        "call" => match (inst.assembly(), inst.callee()) {
            (Some((text, constraints)), _) => assembly(text, constraints, operands),
            (None, Some(name)) => intrinsic(name, operands),
            (None, None) => Lane,
        },
        "alloca" => Workgroup,
        _ => operands,
    }
}

/// Whether an instruction of a kernel with one dimension makes of the work-item's id, which is among its operands, what is
/// the same within each wave: waves are made of ids that follow each other.
pub(super) fn is_of_a_wave(inst: &Inst, wave: u32) -> bool {
    let mut words = inst.text.split([' ', ',']).filter(|word| !word.is_empty());
    let constant = words.clone().next_back().and_then(|word| word.parse::<i64>().ok());
    let (Some(constant), Some(operation)) = (constant, words.next()) else { return false };
    let whole = |bound: i64| bound % i64::from(wave) == 0;
    match operation {
        "lshr" | "ashr" => constant >= i64::from(wave.ilog2()),
        "and" => whole(constant),
        "icmp" => words.any(|word| match word {
            "ult" | "uge" | "slt" | "sge" => whole(constant),
            "ugt" | "ule" | "sgt" | "sle" => whole(constant + 1),
            _ => false,
        }),
        _ => false,
    }
}

/// Whether an instruction gives the work-item's id, or hands it on in another width.
pub(super) fn is_id(inst: &Inst, of_an_id: bool) -> bool {
    let hands_on = matches!(inst.opcode, "zext" | "sext" | "trunc" | "freeze");
    let is_one = matches!(inst.callee(), Some("llvm.amdgcn.workitem.id.x" | "llvm.nvvm.read.ptx.sreg.tid.x"));
    is_one || hands_on && of_an_id
}

/// The result is in the registers that the constraints name first: for all lanes, or one for each.
fn assembly(text: &str, constraints: &str, operands: Uniform) -> Uniform {
    if text.contains(UNIFORM_IN_WORKGROUP) {
        return Uniform::Workgroup;
    }
    if text.contains(UNIFORM) {
        return operands.min(Uniform::Wave);
    }
    let of_the_wave = constraints.starts_with("=s") || constraints.starts_with("={s");
    let has_inputs = constraints.split(',').any(|part| !part.starts_with(['=', '~']));
    match (of_the_wave, has_inputs) {
        (true, true) => operands.min(Uniform::Wave),
        (true, false) => Uniform::Wave,
        (false, true) => operands,
        (false, false) => Uniform::Lane,
    }
}

fn intrinsic(name: &str, operands: Uniform) -> Uniform {
    use Uniform::{Lane, Wave, Workgroup};
    let is_one_of = |names: &[&str]| names.iter().any(|beginning| name.starts_with(beginning));
    let of_the_wave = [
        "llvm.amdgcn.ballot",
        "llvm.amdgcn.icmp",
        "llvm.amdgcn.fcmp",
        "llvm.amdgcn.wave.",
        "llvm.amdgcn.s.mem",
        "llvm.amdgcn.s.getreg",
        "llvm.amdgcn.s.get.",
        "llvm.amdgcn.s.barrier",
        "llvm.readcyclecounter",
        "llvm.readsteadycounter",
        "llvm.nvvm.vote.ballot",
        "llvm.nvvm.vote.any",
        "llvm.nvvm.vote.all",
        "llvm.nvvm.read.ptx.sreg.warpid",
    ];
    let of_the_workgroup = [
        "llvm.amdgcn.workgroup.",
        "llvm.amdgcn.dispatch.",
        "llvm.amdgcn.implicitarg.ptr",
        "llvm.amdgcn.kernarg.segment.ptr",
        "llvm.amdgcn.queue.ptr",
        "llvm.nvvm.read.ptx.sreg.ctaid",
        "llvm.nvvm.read.ptx.sreg.nctaid",
        "llvm.nvvm.read.ptx.sreg.ntid",
        "llvm.nvvm.read.ptx.sreg.dynamic_smem_size",
    ];
    let of_a_lane = [
        "llvm.amdgcn.workitem.id",
        "llvm.amdgcn.mbcnt",
        "llvm.amdgcn.mfma",
        "llvm.amdgcn.smfmac",
        "llvm.amdgcn.wmma",
        "llvm.amdgcn.swmmac",
        "llvm.nvvm.read.ptx.sreg",
        "llvm.nvvm.mma",
        "llvm.nvvm.wmma",
    ];
    if is_one_of(&["llvm.amdgcn.readfirstlane", "llvm.amdgcn.readlane"]) {
        operands.min(Wave)
    } else if is_one_of(&of_the_wave) {
        Wave
    } else if is_one_of(&of_the_workgroup) {
        Workgroup
    } else if is_one_of(&of_a_lane) || name.contains(".atomic.") || !name.starts_with("llvm.") {
        Lane
    } else {
        operands
    }
}
