//! Each mechanism of the model, by two kernels that differ in it alone: the test fails if the mechanism is switched off.

#[path = "../../tests/support/mod.rs"]
mod support;

use amdgpu_emulator::{CodeObject, Gfx, Launch, LaunchOptions, Machine, MachineOptions};
use amdgpu_timing::{Card, Options, Prediction, Recording, predict};
use support::Kernel;

/// A launch of a program on an RX 7900 XTX.
struct Case {
    program: &'static str,
    groups: u32,
    work_items: u32,
    lds: u32,
    vgprs: u32,
}

impl Case {
    fn of(program: &'static str) -> Case {
        Case { program, groups: 96, work_items: 128, lds: 4096, vgprs: 32 }
    }

    fn predict(&self) -> Prediction {
        let card = Card::named("RX 7900 XTX").expect("a card");
        let mut options = MachineOptions::default();
        options.memory_bytes = 1 << 30;
        let machine = Machine::new(Gfx::Gfx1100, options).expect("address space");
        let buffer = machine.alloc(1 << 29).expect("memory");
        let mut kernel = Kernel::new(Gfx::Gfx1100, self.program);
        kernel.args = &[(8, "global_buffer")];
        kernel.lds = self.lds;
        let elf = kernel.elf_with(|metadata| {
            metadata["amdhsa.kernels"][0][".vgpr_count"] = self.vgprs.into();
        });
        let object = CodeObject::parse(&elf).expect("a code object");
        let kernel = machine.load(&object).expect("loads").kernel("test").expect("the kernel");
        let recording = Recording::new(card, u64::MAX);
        let mut options = LaunchOptions::default();
        options.trace = Some(recording.trace());
        let kernarg = &buffer.to_le_bytes();
        let (grid, block) = ([self.groups, 1, 1], [self.work_items, 1, 1]);
        machine.launch(&kernel, &Launch { grid, block, dynamic_lds: 0, kernarg, options }).expect("no fault");
        predict(&card, &recording.take().expect("a recording"), Options::default())
    }

    /// Seconds without the launch.
    fn seconds(&self) -> f64 {
        let prediction = self.predict();
        prediction.seconds - prediction.launch_seconds
    }
}

/// How much longer the first one takes.
fn ratio(one: &Case, two: &Case) -> f64 {
    one.seconds() / two.seconds()
}

#[test]
fn lanes_that_meet_in_a_bank_take_turns() {
    let ratio = ratio(&Case::of(CONFLICTS), &Case::of(NO_CONFLICTS));
    assert!((4.0..33.0).contains(&ratio), "{ratio}");
    assert_eq!(Case::of(CONFLICTS).predict().limiter, "LDS");
}

#[test]
fn what_a_cache_holds_comes_sooner() {
    let [new, same] = [NEW_LINES, SAME_LINES].map(|program| Case::of(program).predict());
    assert!(new.seconds > same.seconds * 1.5, "{} and {}", new.seconds, same.seconds);
    // A workgroup comes to 2 KiB in each of 64 rounds, or always to the same.
    let once = 96.0 * 2048.0;
    assert!(new.bytes[2..5].iter().sum::<f64>() >= once * 64.0, "{:?}", new.bytes);
    assert!(same.bytes[2..5].iter().sum::<f64>() < once * 4.0, "{:?}", same.bytes);
}

#[test]
fn more_waves_hide_more_latency() {
    // Waves of one workgroup each, which wait for memory: 16 fit a SIMD, or 5.
    let with = |vgprs| Case { groups: 48 * 64, work_items: 32, lds: 0, vgprs, ..Case::of(ONE_LOAD) };
    let (few, many) = (with(256).predict(), with(32).predict());
    assert_eq!((few.waves.1, many.waves.1), (5, 16));
    assert!(few.seconds > many.seconds * 1.3, "{} and {}", few.seconds, many.seconds);
}

#[test]
fn two_operations_in_one_instruction_take_the_time_of_one() {
    let with = |program| Case { groups: 48 * 16, lds: 0, ..Case::of(program) };
    let ratio = ratio(&with(SINGLE), &with(DUAL));
    assert!((1.5..2.5).contains(&ratio), "{ratio}");
}

#[test]
fn a_result_is_waited_for() {
    // One wave on a SIMD: nobody else fills its pauses.
    let with = |program| Case { work_items: 32, lds: 0, groups: 48, ..Case::of(program) };
    let ratio = ratio(&with(CHAIN), &with(SINGLE));
    assert!((2.0..6.0).contains(&ratio), "{ratio}");
}

#[test]
fn what_is_busiest_limits() {
    let case = Case { groups: 48 * 16, lds: 0, ..Case::of(SINGLE) };
    let prediction = case.predict();
    assert_eq!(prediction.limiter, "VALU");
    let busiest = prediction.busy[0];
    assert!(busiest.1 > 0.6 && busiest.1 <= 1.0, "{busiest:?}");
}

// asm Gfx1100
const NO_CONFLICTS: &str = "
    v_and_b32_e32 v0, 31, v0 ; 3600009f
    v_lshlrev_b32_e32 v1, 2, v0 ; 30020082
    s_movk_i32 s6, 0x40 ; b0060040
    ds_load_b32 v4, v1 ; d8d80000 04000001
    ds_load_b32 v5, v1 ; d8d80000 05000001
    ds_load_b32 v6, v1 ; d8d80000 06000001
    ds_load_b32 v7, v1 ; d8d80000 07000001
    ds_load_b32 v8, v1 ; d8d80000 08000001
    ds_load_b32 v9, v1 ; d8d80000 09000001
    ds_load_b32 v10, v1 ; d8d80000 0a000001
    ds_load_b32 v11, v1 ; d8d80000 0b000001
    s_waitcnt lgkmcnt(0) ; bf89fc07
    s_sub_i32 s6, s6, 1 ; 81868106
    s_cmp_lg_u32 s6, 0 ; bf078006
    s_cbranch_scc1 65516 ; bfa2ffec
";

// asm Gfx1100
const CONFLICTS: &str = "
    v_and_b32_e32 v0, 31, v0 ; 3600009f
    v_lshlrev_b32_e32 v1, 7, v0 ; 30020087
    s_movk_i32 s6, 0x40 ; b0060040
    ds_load_b32 v4, v1 ; d8d80000 04000001
    ds_load_b32 v5, v1 ; d8d80000 05000001
    ds_load_b32 v6, v1 ; d8d80000 06000001
    ds_load_b32 v7, v1 ; d8d80000 07000001
    ds_load_b32 v8, v1 ; d8d80000 08000001
    ds_load_b32 v9, v1 ; d8d80000 09000001
    ds_load_b32 v10, v1 ; d8d80000 0a000001
    ds_load_b32 v11, v1 ; d8d80000 0b000001
    s_waitcnt lgkmcnt(0) ; bf89fc07
    s_sub_i32 s6, s6, 1 ; 81868106
    s_cmp_lg_u32 s6, 0 ; bf078006
    s_cbranch_scc1 65516 ; bfa2ffec
";

// asm Gfx1100
const SAME_LINES: &str = "
    s_load_b64 s[4:5], s[0:1], null ; f4040100 f8000000
    v_and_b32_e32 v0, 0x3ff, v0 ; 360000ff 000003ff
    v_lshlrev_b32_e32 v1, 2, v0 ; 30020082
    s_lshl_b32 s7, s2, 17 ; 84079102
    s_movk_i32 s8, 0x0 ; b0080000
    v_add_nc_u32_e32 v1, s7, v1 ; 4a020207
    s_waitcnt lgkmcnt(0) ; bf89fc07
    s_movk_i32 s6, 0x40 ; b0060040
    global_load_b32 v4, v1, s[4:5] ; dc520000 04040001
    global_load_b32 v5, v1, s[4:5] offset:256 ; dc520100 05040001
    global_load_b32 v6, v1, s[4:5] offset:512 ; dc520200 06040001
    global_load_b32 v7, v1, s[4:5] offset:768 ; dc520300 07040001
    global_load_b32 v8, v1, s[4:5] offset:1024 ; dc520400 08040001
    global_load_b32 v9, v1, s[4:5] offset:1280 ; dc520500 09040001
    global_load_b32 v10, v1, s[4:5] offset:1536 ; dc520600 0a040001
    global_load_b32 v11, v1, s[4:5] offset:1792 ; dc520700 0b040001
    s_waitcnt vmcnt(0) ; bf8903f7
    v_add_nc_u32_e32 v1, s8, v1 ; 4a020208
    s_sub_i32 s6, s6, 1 ; 81868106
    s_cmp_lg_u32 s6, 0 ; bf078006
    s_cbranch_scc1 65515 ; bfa2ffeb
";

// asm Gfx1100
const NEW_LINES: &str = "
    s_load_b64 s[4:5], s[0:1], null ; f4040100 f8000000
    v_and_b32_e32 v0, 0x3ff, v0 ; 360000ff 000003ff
    v_lshlrev_b32_e32 v1, 2, v0 ; 30020082
    s_lshl_b32 s7, s2, 17 ; 84079102
    s_movk_i32 s8, 0x800 ; b0080800
    v_add_nc_u32_e32 v1, s7, v1 ; 4a020207
    s_waitcnt lgkmcnt(0) ; bf89fc07
    s_movk_i32 s6, 0x40 ; b0060040
    global_load_b32 v4, v1, s[4:5] ; dc520000 04040001
    global_load_b32 v5, v1, s[4:5] offset:256 ; dc520100 05040001
    global_load_b32 v6, v1, s[4:5] offset:512 ; dc520200 06040001
    global_load_b32 v7, v1, s[4:5] offset:768 ; dc520300 07040001
    global_load_b32 v8, v1, s[4:5] offset:1024 ; dc520400 08040001
    global_load_b32 v9, v1, s[4:5] offset:1280 ; dc520500 09040001
    global_load_b32 v10, v1, s[4:5] offset:1536 ; dc520600 0a040001
    global_load_b32 v11, v1, s[4:5] offset:1792 ; dc520700 0b040001
    s_waitcnt vmcnt(0) ; bf8903f7
    v_add_nc_u32_e32 v1, s8, v1 ; 4a020208
    s_sub_i32 s6, s6, 1 ; 81868106
    s_cmp_lg_u32 s6, 0 ; bf078006
    s_cbranch_scc1 65515 ; bfa2ffeb
";

// asm Gfx1100
const ONE_LOAD: &str = "
    s_load_b64 s[4:5], s[0:1], null ; f4040100 f8000000
    v_and_b32_e32 v0, 0x3ff, v0 ; 360000ff 000003ff
    v_lshlrev_b32_e32 v1, 2, v0 ; 30020082
    s_waitcnt lgkmcnt(0) ; bf89fc07
    s_movk_i32 s6, 0x40 ; b0060040
    global_load_b32 v4, v1, s[4:5] ; dc520000 04040001
    s_waitcnt vmcnt(0) ; bf8903f7
    s_sub_i32 s6, s6, 1 ; 81868106
    s_cmp_lg_u32 s6, 0 ; bf078006
    s_cbranch_scc1 65530 ; bfa2fffa
";

// asm Gfx1100
const SINGLE: &str = "
    s_movk_i32 s6, 0x40 ; b0060040
    v_fmac_f32_e32 v4, v20, v25 ; 56083314
    v_fmac_f32_e32 v5, v21, v26 ; 560a3515
    v_fmac_f32_e32 v6, v22, v27 ; 560c3716
    v_fmac_f32_e32 v7, v23, v24 ; 560e3117
    v_fmac_f32_e32 v8, v20, v25 ; 56103314
    v_fmac_f32_e32 v9, v21, v26 ; 56123515
    v_fmac_f32_e32 v10, v22, v27 ; 56143716
    v_fmac_f32_e32 v11, v23, v24 ; 56163117
    v_fmac_f32_e32 v12, v20, v25 ; 56183314
    v_fmac_f32_e32 v13, v21, v26 ; 561a3515
    v_fmac_f32_e32 v14, v22, v27 ; 561c3716
    v_fmac_f32_e32 v15, v23, v24 ; 561e3117
    v_fmac_f32_e32 v16, v20, v25 ; 56203314
    v_fmac_f32_e32 v17, v21, v26 ; 56223515
    v_fmac_f32_e32 v18, v22, v27 ; 56243716
    v_fmac_f32_e32 v19, v23, v24 ; 56263117
    s_sub_i32 s6, s6, 1 ; 81868106
    s_cmp_lg_u32 s6, 0 ; bf078006
    s_cbranch_scc1 65517 ; bfa2ffed
";

// asm Gfx1100
const DUAL: &str = "
    s_movk_i32 s6, 0x40 ; b0060040
    v_dual_fmac_f32 v4, v22, v27 :: v_dual_fmac_f32 v5, v23, v24 ; c8003716 04043117
    v_dual_fmac_f32 v6, v20, v25 :: v_dual_fmac_f32 v7, v21, v26 ; c8003314 06063515
    v_dual_fmac_f32 v8, v22, v27 :: v_dual_fmac_f32 v9, v23, v24 ; c8003716 08083117
    v_dual_fmac_f32 v10, v20, v25 :: v_dual_fmac_f32 v11, v21, v26 ; c8003314 0a0a3515
    v_dual_fmac_f32 v12, v22, v27 :: v_dual_fmac_f32 v13, v23, v24 ; c8003716 0c0c3117
    v_dual_fmac_f32 v14, v20, v25 :: v_dual_fmac_f32 v15, v21, v26 ; c8003314 0e0e3515
    v_dual_fmac_f32 v16, v22, v27 :: v_dual_fmac_f32 v17, v23, v24 ; c8003716 10103117
    v_dual_fmac_f32 v18, v20, v25 :: v_dual_fmac_f32 v19, v21, v26 ; c8003314 12123515
    s_sub_i32 s6, s6, 1 ; 81868106
    s_cmp_lg_u32 s6, 0 ; bf078006
    s_cbranch_scc1 65517 ; bfa2ffed
";

// asm Gfx1100
const CHAIN: &str = "
    s_movk_i32 s6, 0x40 ; b0060040
    v_fmac_f32_e32 v4, v20, v24 ; 56083114
    v_fmac_f32_e32 v4, v20, v24 ; 56083114
    v_fmac_f32_e32 v4, v20, v24 ; 56083114
    v_fmac_f32_e32 v4, v20, v24 ; 56083114
    v_fmac_f32_e32 v4, v20, v24 ; 56083114
    v_fmac_f32_e32 v4, v20, v24 ; 56083114
    v_fmac_f32_e32 v4, v20, v24 ; 56083114
    v_fmac_f32_e32 v4, v20, v24 ; 56083114
    v_fmac_f32_e32 v4, v20, v24 ; 56083114
    v_fmac_f32_e32 v4, v20, v24 ; 56083114
    v_fmac_f32_e32 v4, v20, v24 ; 56083114
    v_fmac_f32_e32 v4, v20, v24 ; 56083114
    v_fmac_f32_e32 v4, v20, v24 ; 56083114
    v_fmac_f32_e32 v4, v20, v24 ; 56083114
    v_fmac_f32_e32 v4, v20, v24 ; 56083114
    v_fmac_f32_e32 v4, v20, v24 ; 56083114
    s_sub_i32 s6, s6, 1 ; 81868106
    s_cmp_lg_u32 s6, 0 ; bf078006
    s_cbranch_scc1 65517 ; bfa2ffed
";
