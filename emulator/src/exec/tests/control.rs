use super::*;
use Gfx::{Gfx90a, Gfx1030, Gfx1100, Gfx1201};

#[test]
fn branches_go_where_their_distance_says() {
    // asm Gfx1100
    let program = "
        s_mov_b32 s0, 5 ; be800085
        s_add_i32 s1, s1, s0 ; 81010001
        s_sub_i32 s0, s0, 1 ; 81808100
        s_cmp_lg_u32 s0, 0 ; bf078000
        s_cbranch_scc1 65532 ; bfa2fffc
    ";
    assert_eq!(run(Gfx1100, program, |_, _| {}).s(1), 15);
    let program = "
        s_cbranch_execz 1 ; bfa50001
        s_mov_b32 s0, 1 ; be800081
        s_cbranch_vccnz 1 ; bfa40001
        s_mov_b32 s1, 1 ; be810081
    ";
    let out = run(Gfx1100, program, |wave, _| {
        wave.sgpr[usize::from(slot::EXEC)] = 0;
        wave.sgpr[usize::from(slot::VCC)] = 1;
    });
    assert_eq!((out.s(0), out.s(1)), (0, 0));
}

#[test]
fn vcc_high_does_not_count_in_a_wave_of_32() {
    // asm Gfx1030
    let program = "
        s_cbranch_vccz 1 ; bf860001
        s_mov_b32 s0, 1 ; be800381
    ";
    let out = run(Gfx1030, program, |wave, _| wave.sgpr[usize::from(slot::VCC) + 1] = 1);
    assert_eq!(out.s(0), 0);
}

#[test]
fn a_call_returns() {
    // asm Gfx1100
    let program = "
        s_getpc_b64 s[0:1] ; be804700
        s_add_u32 s0, s0, 20 ; 80009400
        s_addc_u32 s1, s1, 0 ; 82018001
        s_swappc_b64 s[2:3], s[0:1] ; be824900
        s_mov_b32 s5, 9 ; be850089
        s_branch 2 ; bfa00002
        s_mov_b32 s4, 7 ; be840087
        s_setpc_b64 s[2:3] ; be804802
    ";
    // The callee is 20 bytes behind the instruction after s_getpc; s_setpc returns behind s_swappc.
    let out = run(Gfx1100, program, |_, _| {});
    assert_eq!(out.fault, None);
    assert_eq!((out.s(4), out.s(5)), (7, 9));
}

#[test]
fn a_jump_out_of_the_code_is_a_fault() {
    // asm Gfx1100
    let program = "
        s_branch 100 ; bfa00064
    ";
    assert_eq!(*run(Gfx1100, program, |_, _| {}).fault(), Fault::IllegalPc { pc: 404 });
    let program = "
        s_mov_b32 s0, 0x12345678 ; be8000ff 12345678
        s_setpc_b64 s[0:1] ; be804800
    ";
    assert!(matches!(run(Gfx1100, program, |_, _| {}).fault(), Fault::IllegalPc { .. }));
    // Into the literal of the first instruction.
    let program = "
        s_mov_b32 s0, 0x12345678 ; be8000ff 12345678
        s_branch 65534 ; bfa0fffe
    ";
    assert_eq!(*run(Gfx1100, program, |_, _| {}).fault(), Fault::IllegalPc { pc: 4 });
}

#[test]
fn traps_carry_their_number() {
    // asm Gfx1100
    let program = "
        s_trap 2 ; bf900002
    ";
    assert_eq!(*run(Gfx1100, program, |_, _| {}).fault(), Fault::Trap { id: 2 });
}

#[test]
fn vgpr_indexing_adds_m0_to_the_selected_operands() {
    // asm Gfx90a
    let program = "
        s_set_gpr_idx_on s0, gpr_idx(SRC0) ; bf110100
        v_mov_b32_e32 v0, v1 ; 7e000301
        s_set_gpr_idx_off ; bf9c0000
        v_mov_b32_e32 v5, v1 ; 7e0a0301
    ";
    let out = run(Gfx90a, program, |wave, _| {
        wave.sgpr[0] = 2;
        set_lanes(wave, 1, |_| 10);
        set_lanes(wave, 3, |lane| lane as u32);
    });
    assert_eq!((out.v(0, 63), out.v(5, 63)), (63, 10));
}

#[test]
fn split_barriers_open_when_all_have_signalled() {
    // asm Gfx1201
    let program = "
        s_barrier_signal -1 ; be804ec1
        s_barrier_wait 0xffff ; bf94ffff
        s_mov_b32 s0, 1 ; be800081
    ";
    let out = run(Gfx1201, program, |_, _| {});
    assert_eq!(out.s(0), 1);
}

/// Trap 3 is a debugger's, and nothing without one. gfx12 has four bits of the number, the others eight.
#[test]
fn a_debuggers_trap_does_nothing() {
    // asm Gfx1030
    let old =
        ["s_trap 3 ; bf920003", "s_trap 0x103 ; bf920103", "s_trap 19 ; bf920013", "s_trap 1 ; bf920001"];
    // asm Gfx1100
    let new =
        ["s_trap 3 ; bf900003", "s_trap 0x103 ; bf900103", "s_trap 19 ; bf900013", "s_trap 1 ; bf900001"];
    for gfx in Gfx::ALL {
        let is_old = matches!(gfx.generation(), Generation::Cdna | Generation::Gfx10);
        let fault = |text| run(gfx, text, |_, _| {}).fault.map(|(fault, _)| fault);
        let [debug, high, nineteen, one] = (if is_old { old } else { new }).map(fault);
        assert_eq!((debug, high), (None, None), "{gfx}");
        let is_nineteen = gfx.generation() != Generation::Gfx12;
        assert_eq!(nineteen, is_nineteen.then_some(Fault::Trap { id: 19 }), "{gfx}");
        assert_eq!(one, Some(Fault::Trap { id: 1 }), "{gfx}");
    }
}

/// A pass over each half of a wave of 64 lanes that has lanes on, and none if none has.
#[test]
fn subvector_loops_pass_over_both_halves() {
    // asm Gfx1030
    let gfx10 = "
        s_subvector_loop_begin s0, 3 ; bd800003
        s_add_u32 s2, s2, 1 ; 80028102
        v_add_nc_u32_e32 v1, 1, v1 ; 4a020281
        s_subvector_loop_end s0, 65533 ; be00fffd
    ";
    // asm Gfx1100
    let gfx11 = "
        s_subvector_loop_begin s0, 3 ; bb000003
        s_add_u32 s2, s2, 1 ; 80028102
        v_add_nc_u32_e32 v1, 1, v1 ; 4a020281
        s_subvector_loop_end s0, 65533 ; bb80fffd
    ";
    for (gfx, program) in [(Gfx1030, gfx10), (Gfx1100, gfx11)] {
        for (exec, passes) in [(0x7_0000_0005_u64, 2), (5, 1), (5 << 32, 1), (0, 0)] {
            let out = run(gfx, program, |wave, _| {
                *wave = Wave::new(64);
                wave.sgpr[usize::from(slot::EXEC)] = exec as u32;
                wave.sgpr[usize::from(slot::EXEC) + 1] = (exec >> 32) as u32;
            });
            assert_eq!((out.s(2), out.s64(slot::EXEC)), (passes, exec), "{gfx}, {exec:#x}");
            for lane in 0..64 {
                assert_eq!(u64::from(out.v(1, lane)), exec >> lane & 1, "{gfx}, {exec:#x}, lane {lane}");
            }
        }
        assert_eq!(run(gfx, program, |_, _| {}).s(2), 1, "{gfx}, 32 lanes");
    }
}

/// The state has the signals from bit 16 on, the members from bit 4 on, and whether the barrier is one.
#[test]
fn named_barriers_count_members_and_signals() {
    // asm Gfx1201
    let program = "
        s_get_barrier_state s2, 1 ; be825081
        s_mov_b32 m0, 0x30001 ; befd00ff 00030001
        s_barrier_init m0 ; be80517d
        s_get_barrier_state s4, 1 ; be845081
        s_barrier_signal_isfirst 1 ; be804f81
        s_cselect_b32 s5, 1, 0 ; 98058081
        s_barrier_signal m0 ; be804e7d
        s_get_barrier_state s6, m0 ; be86507d
        s_barrier_join 1 ; be805281
        s_barrier_signal_isfirst 1 ; be804f81
        s_cselect_b32 s7, 1, 0 ; 98078081
        s_get_barrier_state s8, 1 ; be885081
        s_barrier_wait 1 ; bf940001
        s_barrier_leave ; bf950000
        s_cselect_b32 s9, 1, 0 ; 98098081
        s_get_barrier_state s10, 1 ; be8a5081
        s_get_barrier_state s11, -1 ; be8b50c1
    ";
    let out = run(Gfx1201, program, |_, _| {});
    assert_eq!(out.fault, None);
    assert_eq!([2, 4, 6].map(|register| out.s(register)), [0, 0x31, 0x2_0031]);
    // The third signal opened it.
    assert_eq!([5, 7].map(|register| out.s(register)), [1, 0]);
    assert_eq!([8, 9, 10].map(|register| out.s(register)), [0x31, 0, 0x21]);
    assert_eq!(out.s(11), 0x11);
}
