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
