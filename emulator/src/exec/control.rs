//! What moves the program counter, barriers, waits, hints and messages.

use super::code::plain;
use super::isa::Exec;
use super::op::{Dst, Flow, Kind, Op, Src, Unit};
use super::salu::handler;
use super::wave::{WaitsFor, slot};
use super::{Env, Wave, named};
use crate::fault::Fault;
use crate::gfx::{Generation, Gfx};
use crate::inst::{Format, Inst, Operand};
use crate::memory;

/// The message of `s_sendmsg` that the host hears; the others are about graphics.
const MSG_INTERRUPT: u64 = 1;
/// Messages of `s_sendmsg_rtn` that have an answer; the others' is zero.
const MSG_RTN_GET_REALTIME: u16 = 0x83;

/// The trap of `llvm.debugtrap`: without a debugger AMD's trap handler returns at once, as LLVM's "User Guide for AMDGPU
/// Backend" says under "Trap Handler ABI".
const DEBUG_TRAP: u8 = 3;

/// The number of an `s_trap`, which has four bits from gfx12 on and eight before.
fn trap_id(gfx: Gfx, simm: u16) -> u8 {
    match gfx.generation() {
        Generation::Gfx12 => simm as u8 & 0xf,
        _ => simm as u8,
    }
}

/// The distance of a branch or relative call in dwords from the next instruction; `None` for other instructions.
pub(super) fn branch_distance(inst: &Inst) -> Option<i64> {
    let name = inst.name;
    let relative = name.starts_with("s_branch")
        || name.starts_with("s_cbranch_") && name != "s_cbranch_join"
        || name == "s_call_b64"
        || name.starts_with("s_subvector_loop");
    if !relative || !matches!(inst.format, Format::Sopp | Format::Sopk) {
        return None;
    }
    inst.operands.iter().rev().find_map(|operand| match *operand {
        Operand::Imm(distance) => Some(i64::from(distance as i16)),
        _ => None,
    })
}

/// The control instruction `inst`, prepared.
pub(crate) fn lookup(gfx: Gfx, inst: &Inst) -> Option<Op> {
    let simm = inst.raw[0] as u16;
    let nothing = || Op::new::<Nothing>(Unit::Control, inst);
    let with = |mut op: Op, imm: u64| {
        op.imm = imm;
        op
    };
    Some(match inst.name {
        "s_branch" => Op::new::<Branch<ALWAYS>>(Unit::Branch, inst),
        "s_cbranch_scc0" => Op::new::<Branch<SCC0>>(Unit::Branch, inst),
        "s_cbranch_scc1" => Op::new::<Branch<SCC1>>(Unit::Branch, inst),
        "s_cbranch_vccz" => Op::new::<Branch<VCCZ>>(Unit::Branch, inst),
        "s_cbranch_vccnz" => Op::new::<Branch<VCCNZ>>(Unit::Branch, inst),
        "s_cbranch_execz" => Op::new::<Branch<EXECZ>>(Unit::Branch, inst),
        "s_cbranch_execnz" => Op::new::<Branch<EXECNZ>>(Unit::Branch, inst),
        // There is no debugger, so its conditions are false.
        "s_cbranch_cdbgsys"
        | "s_cbranch_cdbguser"
        | "s_cbranch_cdbgsys_or_user"
        | "s_cbranch_cdbgsys_and_user" => nothing(),
        "s_call_b64" => plain::<Call>(Unit::Branch, inst),
        "s_setpc_b64" => Op::with_operands::<SetPc>(Unit::Branch, inst, Kind::B64),
        "s_swappc_b64" => Op::with_operands::<SwapPc>(Unit::Branch, inst, Kind::B64),
        "s_getpc_b64" => plain::<GetPc>(Unit::Salu, inst),
        "s_endpgm" | "s_endpgm_saved" => Op::new::<End>(Unit::Control, inst),
        "s_barrier" => Op::new::<Barrier>(Unit::Control, inst),
        "s_barrier_signal" if is_of_workgroup(inst) => Op::new::<Signal<false>>(Unit::Control, inst),
        "s_barrier_signal_isfirst" if is_of_workgroup(inst) => Op::new::<Signal<true>>(Unit::Control, inst),
        "s_barrier_wait" if is_of_workgroup(inst) => Op::new::<Wait>(Unit::Control, inst),
        "s_subvector_loop_begin" => plain::<SubvectorBegin>(Unit::Branch, inst),
        "s_subvector_loop_end" => plain::<SubvectorEnd>(Unit::Branch, inst),
        "s_sleep" | "s_sleep_var" => Op::new::<Sleep>(Unit::Control, inst),
        "s_trap" => match trap_id(gfx, simm) {
            DEBUG_TRAP => nothing(),
            id => with(Op::new::<Trap>(Unit::Control, inst), u64::from(id)),
        },
        "s_round_mode" => with(Op::new::<SetMode<0>>(Unit::Control, inst), u64::from(simm & 0xf)),
        "s_denorm_mode" => with(Op::new::<SetMode<4>>(Unit::Control, inst), u64::from(simm & 0xf)),
        "s_set_gpr_idx_off" => Op::new::<GprIndexOff>(Unit::Control, inst),
        "s_set_gpr_idx_mode" => with(Op::new::<GprIndexMode>(Unit::Control, inst), u64::from(simm & 0xf)),
        "s_sendmsg" => message(inst, Op::new::<Message>(Unit::Control, inst)),
        "s_sendmsg_rtn_b32" => message(inst, plain::<MessageReturn<false>>(Unit::Control, inst)),
        "s_sendmsg_rtn_b64" => message(inst, plain::<MessageReturn<true>>(Unit::Control, inst)),
        "s_nop"
        | "s_waitcnt"
        | "s_waitcnt_vscnt"
        | "s_waitcnt_vmcnt"
        | "s_waitcnt_expcnt"
        | "s_waitcnt_lgkmcnt"
        | "s_waitcnt_depctr"
        | "s_wait_alu"
        | "s_wait_idle"
        | "s_wait_event"
        | "s_wait_loadcnt"
        | "s_wait_storecnt"
        | "s_wait_samplecnt"
        | "s_wait_bvhcnt"
        | "s_wait_expcnt"
        | "s_wait_dscnt"
        | "s_wait_kmcnt"
        | "s_wait_loadcnt_dscnt"
        | "s_wait_storecnt_dscnt"
        | "s_delay_alu"
        | "s_clause"
        | "s_inst_prefetch"
        | "s_set_inst_prefetch_distance"
        | "s_setprio"
        | "s_setprio_inc_wg"
        | "s_sethalt"
        | "s_setkill"
        | "s_wakeup"
        | "s_code_end"
        | "s_incperflevel"
        | "s_decperflevel"
        | "s_icache_inv"
        | "s_ttracedata"
        | "s_ttracedata_imm"
        | "s_version"
        | "s_singleuse_vdst" => nothing(),
        // The trap handler of a debugger would be told; the wave goes on.
        "s_sendmsghalt" => nothing(),
        _ => return named::lookup(inst),
    })
}

const ALWAYS: u8 = 0;
const SCC0: u8 = 1;
const SCC1: u8 = 2;
const VCCZ: u8 = 3;
const VCCNZ: u8 = 4;
const EXECZ: u8 = 5;
const EXECNZ: u8 = 6;

struct Branch<const CONDITION: u8>;

impl<const CONDITION: u8> Exec for Branch<CONDITION> {
    #[inline(always)]
    fn exec(w: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow {
        let taken = match CONDITION {
            ALWAYS => true,
            SCC0 => !w.scc(),
            SCC1 => w.scc(),
            VCCZ => w.vcc64() == 0,
            VCCNZ => w.vcc64() != 0,
            EXECZ => w.exec64() == 0,
            _ => w.exec64() != 0,
        };
        if taken { go_to(w, env, op) } else { Flow::Next }
    }
}

/// Jumps to a target that preparation resolved.
#[inline(always)]
fn go_to(w: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow {
    if op.imm == u64::from(u32::MAX) {
        return bad_branch(env, op);
    }
    w.pc = op.imm as u32;
    Flow::Next
}

#[cold]
fn bad_branch(env: &mut Env<'_>, op: &Op) -> Flow {
    let next = env.code.address_of(op.inst) + u64::from(op.size) * 4;
    let inst = env.code.insts.get(op.inst as usize).and_then(Option::as_ref);
    let distance = inst.and_then(branch_distance).unwrap_or(0);
    env.raise(Fault::IllegalPc { pc: next.wrapping_add_signed(distance * 4) }, None)
}

/// Jumps to an absolute address.
fn go_to_address(w: &mut Wave, env: &mut Env<'_>, address: u64) -> Flow {
    // The program counter has 48 bits, and its low two are zero.
    let address = address & 0xffff_ffff_fffc;
    let pc = address.wrapping_sub(env.base);
    match env.code.index_of(pc) {
        Some(index) => {
            w.clear(env.code.registers_at(index));
            w.pc = index;
            Flow::Next
        }
        None => {
            let inside = memory::find(&env.view, address).is_some_and(|a| a.base == env.base);
            env.raise(Fault::IllegalPc { pc: if inside { pc } else { address } }, None)
        }
    }
}

/// The address of the instruction after `op`.
fn next_address(env: &Env<'_>, op: &Op) -> u64 {
    env.base + env.code.address_of(op.inst) + u64::from(op.size) * 4
}

/// Notes a call, unless there is no code where it leads.
fn called(w: &mut Wave, op: &Op, flow: Flow) -> Flow {
    if flow == Flow::Next {
        w.called(op.inst);
    }
    flow
}

struct Call;
impl Exec for Call {
    fn exec(w: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow {
        w.set_scalar64(op.dst[0], next_address(env, op));
        let flow = go_to(w, env, op);
        if flow == Flow::Next {
            w.clear(env.code.registers_at(w.pc));
        }
        called(w, op, flow)
    }
}

struct SetPc;
impl Exec for SetPc {
    fn exec(w: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow {
        let flow = go_to_address(w, env, w.scalar64(op.src[0]));
        w.returned();
        flow
    }
}

struct SwapPc;
impl Exec for SwapPc {
    fn exec(w: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow {
        let target = w.scalar64(op.src[0]);
        w.set_scalar64(op.dst[0], next_address(env, op));
        let flow = go_to_address(w, env, target);
        called(w, op, flow)
    }
}

/// A loop of up to two passes, over the low half of a wave of 64 lanes and over its high half: each as far as it has lanes
/// that are on. The scalar register keeps the half of EXEC that is not in use. A wave of 32 lanes makes one pass.
struct SubvectorBegin;
impl Exec for SubvectorBegin {
    fn exec(w: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow {
        let exec = w.exec64();
        if exec == 0 {
            return go_to(w, env, op);
        }
        let (low, high) = (exec as u32, (exec >> 32) as u32);
        w.set_scalar(op.dst[0], if low == 0 { 0 } else { high });
        if low != 0 {
            set_high_half(w, 0);
        }
        Flow::Next
    }
}

struct SubvectorEnd;
impl Exec for SubvectorEnd {
    fn exec(w: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow {
        let Dst::Sgpr(register) = op.dst[0] else { return Flow::Next };
        let (exec, saved) = (w.exec64(), w.sgpr[usize::from(register)]);
        let low_slot = usize::from(slot::EXEC);
        if exec >> 32 != 0 {
            // That was the pass over the high half.
            w.sgpr[low_slot] = saved;
            return Flow::Next;
        }
        if saved == 0 || w.halves() == 1 {
            return Flow::Next;
        }
        w.sgpr[usize::from(register)] = exec as u32;
        set_high_half(w, saved);
        w.sgpr[low_slot] = 0;
        go_to(w, env, op)
    }
}

/// Sets EXEC's high half, which a wave of 32 lanes does not have.
fn set_high_half(w: &mut Wave, value: u32) {
    if w.halves() == 2 {
        w.sgpr[usize::from(slot::EXEC) + 1] = value;
    }
}

struct End;
impl Exec for End {
    fn exec(_: &mut Wave, env: &mut Env<'_>, _: &Op) -> Flow {
        if let Some(flow) = env.barrier_divergence(true) {
            return flow;
        }
        env.alive -= 1;
        env.open_barrier_if_complete();
        Flow::End
    }
}

struct Sleep;
impl Exec for Sleep {
    fn exec(_: &mut Wave, _: &mut Env<'_>, _: &Op) -> Flow {
        Flow::Yield
    }
}

struct Trap;
impl Exec for Trap {
    fn exec(_: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow {
        env.raise(Fault::Trap { id: op.imm as u8 }, None)
    }
}

/// A wave that arrives waits until as many have arrived as are alive.
struct Barrier;
impl Exec for Barrier {
    fn exec(w: &mut Wave, env: &mut Env<'_>, _: &Op) -> Flow {
        if let Some(flow) = env.barrier_divergence(false) {
            return flow;
        }
        (w.waits_for, w.waits_on) = (env.arrive(), WaitsFor::Workgroup);
        if env.opened >= w.waits_for { Flow::Next } else { Flow::Barrier }
    }
}

/// Whether a barrier instruction of gfx12 names the workgroup's barrier.
fn is_of_workgroup(inst: &Inst) -> bool {
    inst.operands.iter().any(|operand| match *operand {
        Operand::InlineInt(id) => i32::from(id) == named::WORKGROUP,
        Operand::Imm(id) => i32::from(id as i16) == named::WORKGROUP,
        _ => false,
    })
}

struct Signal<const IS_FIRST: bool>;
impl<const IS_FIRST: bool> Exec for Signal<IS_FIRST> {
    fn exec(w: &mut Wave, env: &mut Env<'_>, _: &Op) -> Flow {
        if IS_FIRST {
            w.set_scc(env.arrived == 0);
        }
        if let Some(flow) = env.barrier_divergence(false) {
            return flow;
        }
        env.arrive();
        Flow::Next
    }
}

/// Takes the wave's note that the barrier has opened, and waits for one if there is none: a wave that has not
/// signalled may wait for ever.
struct Wait;
impl Exec for Wait {
    fn exec(w: &mut Wave, env: &mut Env<'_>, _: &Op) -> Flow {
        if env.opened > w.passed {
            w.passed = env.opened;
            return Flow::Next;
        }
        (w.waits_for, w.waits_on) = (env.opened + 1, WaitsFor::Workgroup);
        w.passed = w.waits_for;
        Flow::Barrier
    }
}

/// The answer's message number goes to `imm`.
fn message(inst: &Inst, mut op: Op) -> Op {
    let id = inst.operands.iter().find_map(|operand| match *operand {
        Operand::SendMsg(id) => Some(id),
        Operand::Imm(id) => Some(id as u16),
        _ => None,
    });
    op.imm = u64::from(id.unwrap_or(0));
    op.src[0] = Src::ZERO;
    op
}

handler! {
    Nothing |_w, _env, _op| {}
    Message |w, env, op| {
        if let Some(interrupt) = env.interrupt && op.imm & 0xf == MSG_INTERRUPT { (interrupt.0)(w.m0()) }
    }
    GetPc |w, env, op| { w.set_scalar64(op.dst[0], next_address(env, op)) }
    SetMode<const SHIFT: u32> |w, _env, op| { w.mode = w.mode & !(0xf << SHIFT) | (op.imm as u32) << SHIFT }
    GprIndexOff |w, _env, _op| { w.gpr_index = 0 }
    GprIndexMode |w, _env, op| {
        w.gpr_index = op.imm as u32;
        w.sgpr[usize::from(slot::M0)] = w.m0() & !0xf000 | w.gpr_index << 12;
    }
    MessageReturn<const WIDE: bool> |w, env, op| {
        let answer = if op.imm as u16 == MSG_RTN_GET_REALTIME { env.now(w) } else { 0 };
        w.set_scalar(op.dst[0], answer as u32);
        if WIDE { w.set_scalar(op.dst[0].dword(1), (answer >> 32) as u32) }
    }
}
