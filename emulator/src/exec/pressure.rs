//! How many vector registers hold something that is still needed, instruction by instruction.

use super::code::Code;
use crate::exec::control;
use crate::inst::{Inst, Operand};

/// A set of vector registers, accumulation registers behind the others.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Set([u64; 8]);

impl Set {
    fn of<'a>(operands: impl Iterator<Item = &'a Operand>) -> Set {
        let mut set = Set::default();
        for operand in operands {
            let (first, count) = match *operand {
                Operand::Vgpr { index, count } => (usize::from(index), usize::from(count)),
                Operand::VgprHalf { index, .. } => (usize::from(index), 1),
                Operand::Agpr { index, count } => (256 + usize::from(index), usize::from(count)),
                _ => continue,
            };
            for register in first..(first + count).min(512) {
                set.0[register / 64] |= 1 << (register % 64);
            }
        }
        set
    }

    fn or(self, other: Set) -> Set {
        Set(std::array::from_fn(|i| self.0[i] | other.0[i]))
    }

    fn without(self, other: Set) -> Set {
        Set(std::array::from_fn(|i| self.0[i] & !other.0[i]))
    }

    fn len(self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }
}

/// What an instruction reads and what it overwrites.
fn accesses(inst: &Inst) -> (Set, Set) {
    let halves = || [Some(inst), inst.vopd_y.as_deref()].into_iter().flatten();
    let reads = Set::of(halves().flat_map(|half| half.srcs()));
    let writes = Set::of(halves().flat_map(|half| half.dsts()));
    let updates = Set::of(halves().filter(|half| updates(half)).flat_map(|half| half.dsts()));
    (reads.or(updates), writes)
}

/// Whether what an instruction writes depends on what was there.
fn updates(inst: &Inst) -> bool {
    const NAMES: [&str; 6] = ["mac", "dot2c", "dot4c", "dot8c", "writelane", "d16"];
    NAMES.iter().any(|name| inst.name.contains(name))
        || inst.mods.dpp.is_some()
        || inst.mods.sdwa.is_some()
        || inst.dsts().iter().any(|dst| matches!(dst, Operand::VgprHalf { .. }))
}

/// The vector registers that are live at each of the `executed` instructions, which ascend: before it or behind it, whichever
/// are more. Paths that were not taken do not count.
///
/// As a compiler sees it, lane by lane: a write ends what a register held, whichever lanes are on.
pub(crate) fn live_vgprs(code: &Code, executed: &[u32]) -> Vec<u32> {
    let place = |index: u32| executed.binary_search(&index).ok();
    let inst = |index: u32| code.insts[index as usize].as_ref();
    let accesses: Vec<(Set, Set)> =
        executed.iter().map(|&index| inst(index).map_or_else(Default::default, accesses)).collect();
    let successors: Vec<[Option<usize>; 2]> = executed
        .iter()
        .map(|&index| {
            let Some(inst) = inst(index) else { return [None; 2] };
            let ends = inst.name.starts_with("s_endpgm") || matches!(inst.name, "s_branch" | "s_setpc_b64");
            let jumps = control::branch_distance(inst).is_some() && inst.name != "s_call_b64";
            let target = jumps.then(|| u32::try_from(code.ops[index as usize].imm).ok()).flatten();
            [(!ends).then(|| place(index + 1)).flatten(), target.and_then(place)]
        })
        .collect();
    let mut before = vec![Set::default(); executed.len()];
    let behind = |before: &[Set], at: usize| {
        successors[at].iter().flatten().fold(Set::default(), |set, &next| set.or(before[next]))
    };
    loop {
        let mut settled = true;
        for at in (0..executed.len()).rev() {
            let (reads, writes) = accesses[at];
            let live = behind(&before, at).without(writes).or(reads);
            settled &= live == before[at];
            before[at] = live;
        }
        if settled {
            break;
        }
    }
    (0..executed.len()).map(|at| before[at].len().max(behind(&before, at).or(accesses[at].1).len())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gfx::Gfx;

    /// Live registers of gfx1100 code.
    fn live(words: &[u32]) -> Vec<u32> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let code = Code::prepare(Gfx::Gfx1100, &[(0, &bytes)], &[]);
        let executed: Vec<u32> = (0..code.insts.iter().flatten().count() as u32).collect();
        live_vgprs(&code, &executed)
    }

    #[test]
    fn a_register_is_live_from_its_write_to_its_last_read() {
        // v_mov_b32 v1, v0; v_mov_b32 v2, v0; v_add_f32 v3, v1, v2; v_mov_b32 v4, v3; s_endpgm
        assert_eq!(live(&[0x7e02_0300, 0x7e04_0300, 0x0606_0501, 0x7e08_0303, 0xbfb0_0000]), [2, 2, 2, 1, 0]);
    }

    #[test]
    fn an_accumulator_is_read_and_a_loop_keeps_what_the_next_round_needs() {
        // loop: v_fmac_f32 v2, v0, v1; s_cbranch_scc1 loop; v_mov_b32 v0, v2; s_endpgm
        assert_eq!(live(&[0x5604_0300, 0xbfa2_fffe, 0x7e00_0302, 0xbfb0_0000]), [3, 3, 1, 0]);
    }
}
