//! Whole launches: what the dispatcher sets up, barriers, orders of execution, refusals.

mod support;

use amdgpu_emulator::{
    CodeObject, Fault, FaultReport, Gfx, Launch, LaunchOptions, LoadError, Machine, MachineOptions, Report,
    Running, Watch,
};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::{Kernel, words};

fn machine(gfx: Gfx) -> Machine {
    let mut options = MachineOptions::default();
    options.memory_bytes = 1 << 26;
    Machine::new(gfx, options).expect("address space")
}

fn launch(
    machine: &Machine,
    object: &CodeObject,
    grid: [u32; 3],
    block: [u32; 3],
    kernarg: &[u8],
    options: LaunchOptions,
) -> Result<Report, FaultReport> {
    let kernel = machine.load(object).expect("loads").kernel("test").expect("the kernel");
    machine.launch(&kernel, &Launch { grid, block, dynamic_lds: 0, kernarg, options })
}

/// Writes the packed work-item id to out[workgroup * 8 + work-item].
// asm Gfx1100
const IDS: &str = "
    s_load_b64 s[8:9], s[0:1], null ; f4040200 f8000000
    v_and_b32_e32 v1, 0x3ff, v0 ; 360200ff 000003ff
    v_bfe_u32 v2, v0, 10, 10 ; d6100002 02291500
    v_lshl_add_u32 v1, v2, 2, v1 ; d6460001 04050502
    s_lshl_b32 s5, s2, 3 ; 84058302
    v_add_nc_u32_e32 v1, s5, v1 ; 4a020205
    v_lshlrev_b32_e32 v1, 2, v1 ; 30020282
    s_waitcnt lgkmcnt(0) ; bf89fc07
    global_store_b32 v1, v0, s[8:9] ; dc6a0000 00080001
";

#[test]
fn work_item_ids_are_packed_and_workgroup_ids_follow_the_user_registers() {
    let machine = machine(Gfx::Gfx1100);
    let out = machine.alloc(4 * 8 * 3).unwrap();
    let mut kernel = Kernel::new(Gfx::Gfx1100, IDS);
    kernel.args = &[(8, "global_buffer")];
    let report =
        launch(&machine, &kernel.build(), [3, 1, 1], [4, 2, 1], &out.to_le_bytes(), LaunchOptions::default())
            .unwrap();
    assert_eq!((report.workgroups, report.waves), (3, 3));
    assert_eq!((report.wave_instructions, report.lane_instructions), (30, 240));
    let expected: Vec<u32> =
        (0..3).flat_map(|_| (0..2).flat_map(|y| (0..4).map(move |x| x | y << 10))).collect();
    assert_eq!(words(&machine, out, 24), expected);
}

/// gfx10 has the ids in registers of their own.
// asm Gfx1030
const SEPARATE_IDS: &str = "
    s_load_dwordx2 s[8:9], s[0:1], null ; f4040200 fa000000
    v_lshl_add_u32 v3, v1, 2, v0 ; d7460003 04010501
    v_lshl_add_u32 v3, v2, 3, v3 ; d7460003 040d0702
    v_lshlrev_b32_e32 v4, 2, v3 ; 34080682
    s_waitcnt lgkmcnt(0) ; bf8cc07f
    global_store_dword v4, v3, s[8:9] ; dc708000 00080304
";

/// Writes the smallest f16 as an f32.
// asm Gfx1100
const WIDEN: &str = "
    s_load_b64 s[8:9], s[0:1], null ; f4040200 f8000000
    v_mov_b32_e32 v1, 0 ; 7e020280
    v_mov_b32_e32 v3, 1 ; 7e060281
    v_cvt_f32_f16_e32 v2, v3.l ; 7e041703
    s_waitcnt lgkmcnt(0) ; bf89fc07
    global_store_b32 v1, v2, s[8:9] ; dc6a0000 00080201
";

/// Libraries that were linked with `-ffast-math` set it for the whole program.
#[cfg(target_arch = "x86_64")]
#[test]
fn denormals_are_there_whatever_the_calling_program_has_set() {
    fn set(value: u32) -> u32 {
        let mut before = 0u32;
        let (old, new) = (&raw mut before, &raw const value);
        // SAFETY: the instructions access the variables; the settings are those of the processor's manual.
        unsafe { std::arch::asm!("stmxcsr [{}]", "ldmxcsr [{}]", in(reg) old, in(reg) new) };
        before
    }
    let machine = machine(Gfx::Gfx1100);
    let out = machine.alloc(4).unwrap();
    let mut kernel = Kernel::new(Gfx::Gfx1100, WIDEN);
    kernel.args = &[(8, "global_buffer")];
    for check in [false, true] {
        let mut options = LaunchOptions::default();
        options.check = check;
        // Denormals are zero, and rounding is up.
        let flush = 0x1f80 | 1 << 15 | 1 << 6 | 2 << 13;
        let before = set(flush);
        let result = launch(&machine, &kernel.build(), [1; 3], [1; 3], &out.to_le_bytes(), options);
        let after = set(before) & !0x3f;
        result.unwrap();
        assert_eq!(words(&machine, out, 1), [2f32.powi(-24).to_bits()]);
        assert_eq!(after, flush, "the program's settings are what they were");
    }
}

#[test]
fn work_item_ids_have_registers_of_their_own_on_gfx10() {
    let machine = machine(Gfx::Gfx1030);
    let out = machine.alloc(4 * 16).unwrap();
    let mut kernel = Kernel::new(Gfx::Gfx1030, SEPARATE_IDS);
    kernel.args = &[(8, "global_buffer")];
    launch(&machine, &kernel.build(), [1, 1, 1], [4, 2, 2], &out.to_le_bytes(), LaunchOptions::default())
        .unwrap();
    assert_eq!(words(&machine, out, 16), (0..16).collect::<Vec<_>>());
}

/// Stores the hidden arguments and the workgroup id as gfx12 gives it.
// asm Gfx1201
const HIDDEN: &str = "
    s_load_b64 s[8:9], s[0:1], 0x0 ; f4002200 f8000000
    s_load_b128 s[12:15], s[0:1], 0x8 ; f4004300 f8000008
    s_mov_b32 s4, ttmp9 ; be840075
    s_lshr_b32 s5, ttmp7, 16 ; 85059073
    v_mov_b32_e32 v1, 0 ; 7e020280
    s_wait_kmcnt 0x0 ; bfc70000
    v_mov_b32_e32 v4, s12 ; 7e08020c
    v_mov_b32_e32 v5, s13 ; 7e0a020d
    v_mov_b32_e32 v6, s14 ; 7e0c020e
    v_mov_b32_e32 v7, s15 ; 7e0e020f
    v_mov_b32_e32 v8, s4 ; 7e100204
    v_mov_b32_e32 v9, s5 ; 7e120205
    global_store_b128 v1, v[4:7], s[8:9] ; ee074008 02000000 00000001
    global_store_b64 v1, v[8:9], s[8:9] offset:16 ; ee06c008 04000000 00001001
";

#[test]
fn hidden_arguments_hold_the_geometry() {
    let machine = machine(Gfx::Gfx1201);
    let out = machine.alloc(24).unwrap();
    let mut kernel = Kernel::new(Gfx::Gfx1201, HIDDEN);
    kernel.args = &[
        (8, "global_buffer"),
        (4, "hidden_block_count_x"),
        (4, "hidden_block_count_z"),
        (2, "hidden_group_size_x"),
        (2, "hidden_group_size_y"),
        (2, "hidden_remainder_x"),
        (2, "hidden_grid_dims"),
    ];
    let mut options = LaunchOptions::default();
    options.threads = 1;
    launch(&machine, &kernel.build(), [5, 1, 7], [16, 2, 1], &out.to_le_bytes(), options).unwrap();
    // The last workgroup wrote last.
    assert_eq!(words(&machine, out, 6), [5, 7, 16 | 2 << 16, 3 << 16, 4, 6]);
}

/// Every wave writes its number to LDS, waits, and reads its neighbour's.
// asm Gfx90a
const EXCHANGE: &str = "
    s_load_dwordx2 s[8:9], s[0:1], 0x0 ; c0060200 00000000
    v_and_b32_e32 v0, 0x3ff, v0 ; 260000ff 000003ff
    v_lshlrev_b32_e32 v1, 2, v0 ; 24020082
    ds_write_b32 v1, v0 ; d81a0000 00000001
    s_waitcnt lgkmcnt(0) ; bf8cc07f
    s_barrier ; bf8a0000
    v_xor_b32_e32 v2, 0x100, v1 ; 2a0402ff 00000100
    ds_read_b32 v3, v2 ; d86c0000 03000002
    s_waitcnt lgkmcnt(0) ; bf8cc07f
    global_store_dword v1, v3, s[8:9] ; dc708000 00080301
";

#[test]
fn waves_of_a_workgroup_meet_at_a_barrier_in_any_order() {
    let machine = machine(Gfx::Gfx90a);
    let out = machine.alloc(4 * 128).unwrap();
    let mut kernel = Kernel::new(Gfx::Gfx90a, EXCHANGE);
    kernel.args = &[(8, "global_buffer")];
    kernel.lds = 512;
    for shuffle in [None, Some(0), Some(1), Some(99)] {
        machine.fill(out, 0xff, 512).unwrap();
        let mut options = LaunchOptions::default();
        options.shuffle = shuffle;
        launch(&machine, &kernel.build(), [1, 1, 1], [128, 1, 1], &out.to_le_bytes(), options).unwrap();
        assert_eq!(words(&machine, out, 128), (0..128).map(|n| n ^ 64).collect::<Vec<_>>(), "{shuffle:?}");
    }
}

/// out[workgroup] += 1 in every lane, and fails in workgroup 7 and up.
// asm Gfx1100
const FAIL_FROM_7: &str = "
    s_cmp_lt_u32 s2, 7 ; bf0a8702
    s_cbranch_scc1 1 ; bfa20001
    s_trap 2 ; bf900002
    s_nop 0 ; bf800000
";

#[test]
fn the_lowest_workgroup_that_faults_is_reported_whatever_the_threads() {
    let machine = machine(Gfx::Gfx1100);
    let object = Kernel::new(Gfx::Gfx1100, FAIL_FROM_7).build();
    let mut reports = Vec::new();
    for threads in [1, 2, 4] {
        let mut options = LaunchOptions::default();
        options.threads = threads;
        let report = launch(&machine, &object, [4096, 1, 1], [256, 1, 1], &[], options).unwrap_err();
        assert_eq!(*report.fault(), Fault::Trap { id: 2 });
        assert_eq!(report.site().unwrap().workgroup, [7, 0, 0]);
        reports.push(report.to_string());
    }
    assert_eq!(reports[0], reports[1]);
    assert_eq!(reports[0], reports[2]);
}

#[test]
fn an_endless_loop_runs_out_of_its_budget() {
    // asm Gfx1100
    let program = "
        s_branch 65535 ; bfa0ffff
    ";
    let machine = machine(Gfx::Gfx1100);
    let mut options = LaunchOptions::default();
    options.instruction_budget = 1000;
    let report =
        launch(&machine, &Kernel::new(Gfx::Gfx1100, program).build(), [1; 3], [32, 1, 1], &[], options)
            .unwrap_err();
    assert_eq!(*report.fault(), Fault::Budget { budget: 1000 });
}

#[test]
fn a_launch_that_takes_long_says_where_it_is() {
    // asm Gfx1100
    let program = "
        s_nop 0 ; bf800000
        s_branch 65534 ; bfa0fffe
    ";
    let machine = machine(Gfx::Gfx1100);
    let object = Kernel::new(Gfx::Gfx1100, program).build();
    for (check, shuffle) in [(false, None), (true, None), (false, Some(7))] {
        let told = Arc::new(Mutex::new(Vec::new()));
        let to = told.clone();
        let tell = Arc::new(move |running: &Running| to.lock().unwrap().push(running.clone()));
        let mut options = LaunchOptions::default();
        (options.check, options.shuffle) = (check, shuffle);
        options.watch = Some(Watch { after: Duration::ZERO, tell });
        options.instruction_budget = 1000;
        launch(&machine, &object, [1; 3], [32, 1, 1], &[], options.clone()).unwrap_err();
        assert_eq!(*told.lock().unwrap(), [], "nobody looks at the clock so soon");
        options.instruction_budget = 100_000;
        launch(&machine, &object, [1; 3], [32, 1, 1], &[], options).unwrap_err();
        let told = told.lock().unwrap();
        let first = &told[0];
        assert_eq!(
            (first.kernel.as_str(), first.gfx, first.ended, first.workgroups),
            ("test", Gfx::Gfx1100, 0, 1)
        );
        assert!((65_536..65_600).contains(&first.executed), "{first}");
        let text = first.to_string();
        assert!(text.starts_with("still running after "), "{text}");
        assert!(text.contains(" s: kernel test on gfx1100, 0 of 1 workgroup done, 65"), "{text}");
        assert!(text.contains(" instructions by workgroup (0, 0, 0), wave 0\n  at 0x"), "{text}");
        assert!(text.ends_with(": s_branch 65534") || text.ends_with(": s_nop 0"), "{text}");
    }
}

#[test]
fn errors_are_shown_as_their_text() {
    let machine = machine(Gfx::Gfx1100);
    let object = Kernel::new(Gfx::Gfx1100, "s_branch 65535 ; bfa0ffff").build();
    let mut options = LaunchOptions::default();
    options.instruction_budget = 10;
    let fault = launch(&machine, &object, [1; 3], [32, 1, 1], &[], options).unwrap_err();
    assert_eq!(format!("{fault:?}"), fault.to_string());
    let memory = machine.alloc(1 << 40).unwrap_err();
    assert_eq!(format!("{memory:?}"), memory.to_string());
    let object = CodeObject::parse(b"no ELF file").unwrap_err();
    assert_eq!(format!("{object:?}"), object.to_string());
    let gfx = "gfx0".parse::<Gfx>().unwrap_err();
    assert_eq!(format!("{gfx:?}"), gfx.to_string());
}

#[test]
fn an_instruction_that_is_not_executed_names_itself() {
    // Images decode by name only.
    let program = "
        image_load ; f0000f84 00000004
    ";
    let machine = machine(Gfx::Gfx1100);
    let object = Kernel::new(Gfx::Gfx1100, program).build();
    let report = launch(&machine, &object, [1; 3], [32, 1, 1], &[], LaunchOptions::default()).unwrap_err();
    let Fault::Unsupported { instruction, gfx } = report.fault() else { panic!("{report}") };
    assert!(instruction.starts_with("image_load"), "{instruction}");
    assert_eq!((*gfx, report.kernel()), (Gfx::Gfx1100, "test"));
}

#[test]
fn refused_launches_say_what_is_wrong_and_run_nothing() {
    let machine = machine(Gfx::Gfx1100);
    let mut kernel = Kernel::new(Gfx::Gfx1100, IDS);
    kernel.args = &[(8, "global_buffer")];
    kernel.max_workgroup_size = 256;
    let object = kernel.build();
    let refused = |grid, block, kernarg: &[u8]| {
        let report = launch(&machine, &object, grid, block, kernarg, LaunchOptions::default()).unwrap_err();
        assert!(report.site().is_none());
        report.fault().clone()
    };
    let (grid, block) = ([1, 0, 1], [1, 1, 1]);
    assert_eq!(refused(grid, block, &[0; 8]), Fault::Geometry { grid, block });
    assert_eq!(refused([1; 3], [257, 1, 1], &[0; 8]), Fault::WorkgroupSize { size: 257, limit: 256 });
    assert_eq!(refused([1; 3], [1; 3], &[0; 4]), Fault::Arguments { given: 4, needed: 8 });
    let (grid, block) = ([u32::MAX, 1, 1], [2, 1, 1]);
    assert_eq!(refused(grid, block, &[0; 8]), Fault::Geometry { grid, block });
}

#[test]
fn a_code_object_for_another_target_is_refused() {
    let object = Kernel::new(Gfx::Gfx1030, SEPARATE_IDS).build();
    let error = machine(Gfx::Gfx1100).load(&object).unwrap_err();
    assert_eq!(error, LoadError::WrongTarget { code_object: Gfx::Gfx1030.into(), machine: Gfx::Gfx1100 });
}

#[test]
fn machines_have_memory_at_the_same_addresses_in_every_run() {
    let machine = machine(Gfx::Gfx1100);
    let address = machine.alloc(100).unwrap();
    // The lowest free slot of fixed places, and the first page stays free.
    assert_eq!(address % 0x100_0000_0000, 0x1000);
}

#[test]
fn preloaded_arguments_are_in_registers_and_the_code_that_loads_them_is_skipped() {
    // asm Gfx90a
    let program = "
        v_mov_b32_e32 v1, 0 ; 7e020280
        v_mov_b32_e32 v2, s4 ; 7e040204
        global_store_dword v1, v2, s[2:3] ; dc708000 00020201
    ";
    // 256 bytes for firmware that cannot preload.
    let program = "s_trap 2 ; bf920002\n".repeat(64) + program;
    let machine = machine(Gfx::Gfx90a);
    let out = machine.alloc(4).unwrap();
    let mut kernel = Kernel::new(Gfx::Gfx90a, &program);
    kernel.args = &[(8, "global_buffer"), (4, "by_value")];
    (kernel.user_sgprs, kernel.preload) = (5, 3);
    let kernarg = [&out.to_le_bytes()[..], &77u32.to_le_bytes()].concat();
    launch(&machine, &kernel.build(), [1; 3], [1; 3], &kernarg, LaunchOptions::default()).unwrap();
    assert_eq!(words(&machine, out, 1), [77]);
}

#[test]
fn float_atomics_of_workgroups_add_up_the_same_whatever_the_threads() {
    // asm Gfx1100
    let program = "
        s_load_b64 s[8:9], s[0:1], null ; f4040200 f8000000
        s_add_u32 s2, s2, 1 ; 80028102
        v_cvt_f32_u32_e32 v0, s2 ; 7e000c02
        v_rcp_f32_e32 v0, v0 ; 7e005500
        v_mov_b32_e32 v1, 0 ; 7e020280
        s_waitcnt lgkmcnt(0) ; bf89fc07
        global_atomic_add_f32 v1, v0, s[8:9] offset:4 ; dd5a0004 00080001
        global_atomic_add_u32 v1, v1, s[8:9] ; dcd60000 00080101
    ";
    let machine = machine(Gfx::Gfx1100);
    let mut kernel = Kernel::new(Gfx::Gfx1100, program);
    kernel.args = &[(8, "global_buffer")];
    let object = kernel.build();
    let sum = |threads| {
        let out = machine.alloc(8).unwrap();
        machine.fill(out, 0, 8).unwrap();
        let mut options = LaunchOptions::default();
        options.threads = threads;
        launch(&machine, &object, [300, 1, 1], [32, 1, 1], &out.to_le_bytes(), options).unwrap();
        words(&machine, out, 2)
    };
    assert_eq!(sum(1), sum(4));
}

/// Each of four workgroups stores its number, waits for the others at a barrier of global wave sync, and reads another's.
// asm Gfx90a
const GLOBAL_SYNC: &str = "
    s_load_dwordx2 s[8:9], s[0:1], 0x0 ; c0060200 00000000
    s_lshl_b32 s3, s2, 2 ; 8e038202
    s_add_u32 s4, s2, 1 ; 80048102
    v_mov_b32_e32 v1, s3 ; 7e020203
    v_mov_b32_e32 v2, s4 ; 7e040204
    s_waitcnt lgkmcnt(0) ; bf8cc07f
    global_store_dword v1, v2, s[8:9] ; dc708000 00080201
    s_waitcnt vmcnt(0) ; bf8c0f70
    s_mov_b32 m0, 0 ; befc0080
    v_mov_b32_e32 v6, 3 ; 7e0c0283
    ds_gws_barrier v6 gds ; d93b0000 00000006
    s_waitcnt lgkmcnt(0) ; bf8cc07f
    s_sub_u32 s5, 12, s3 ; 8085038c
    v_mov_b32_e32 v4, s5 ; 7e080205
    global_load_dword v5, v4, s[8:9] glc ; dc518000 05080004
    s_waitcnt vmcnt(0) ; bf8c0f70
    global_store_dword v1, v5, s[8:9] offset:16 ; dc708010 00080501
";

// asm Gfx90a
const GLOBAL_SYNC_INIT: &str = "
    s_mov_b32 m0, 0 ; befc0080
    v_mov_b32_e32 v6, 3 ; 7e0c0283
    ds_gws_init v6 gds ; d9330000 00000006
";

#[test]
fn workgroups_wait_for_each_other_at_a_global_barrier() {
    let machine = machine(Gfx::Gfx90a);
    let out = machine.alloc(32).unwrap();
    let init = Kernel::new(Gfx::Gfx90a, GLOBAL_SYNC_INIT);
    let mut kernel = Kernel::new(Gfx::Gfx90a, GLOBAL_SYNC);
    kernel.args = &[(8, "global_buffer")];
    let init_launch =
        || launch(&machine, &init.build(), [1, 1, 1], [64, 1, 1], &[], LaunchOptions::default());
    let options = |threads: usize, shuffle: Option<u64>| {
        let mut options = LaunchOptions::default();
        (options.threads, options.shuffle) = (threads, shuffle);
        options
    };
    init_launch().unwrap();
    // The barrier is left as it was before, for the next launch.
    for how in [options(1, None), options(4, None), options(0, Some(7))] {
        machine.fill(out, 0, 32).unwrap();
        let report =
            launch(&machine, &kernel.build(), [4, 1, 1], [64, 1, 1], &out.to_le_bytes(), how).unwrap();
        assert_eq!((report.workgroups, report.waves), (4, 4));
        assert_eq!(words(&machine, out, 8), [1, 2, 3, 4, 4, 3, 2, 1]);
    }
    // One too few never opens it; the fault resets it.
    let too_few = launch(
        &machine,
        &kernel.build(),
        [3, 1, 1],
        [64, 1, 1],
        &out.to_le_bytes(),
        LaunchOptions::default(),
    );
    assert!(matches!(too_few.unwrap_err().fault(), Fault::Deadlock { .. }));
    launch(&machine, &kernel.build(), [1, 1, 1], [64, 1, 1], &out.to_le_bytes(), LaunchOptions::default())
        .unwrap();
}

/// A kernel whose metadata says that it does not know its stack.
fn with_dynamic_stack(kernel: &Kernel<'_>) -> CodeObject {
    let elf = kernel.elf_with(|metadata| metadata["amdhsa.kernels"][0][".uses_dynamic_stack"] = true.into());
    CodeObject::parse(&elf).expect("a code object")
}

#[test]
fn a_stack_of_unknown_size_is_that_of_the_options() {
    // asm Gfx1100
    let last = "scratch_store_b32 off, v1, off offset:1020 ; dc6903fc 007c0100";
    let behind = "scratch_store_b32 off, v1, off offset:1024 ; dc690400 007c0100";
    let last_of_most = "
        v_mov_b32_e32 v2, 0x3ffc ; 7e0402ff 00003ffc
        scratch_store_b32 v2, v1, off ; dc690000 00fc0102
    ";
    let behind_most = "
        v_mov_b32_e32 v2, 0x4000 ; 7e0402ff 00004000
        scratch_store_b32 v2, v1, off ; dc690000 00fc0102
    ";
    let machine = machine(Gfx::Gfx1100);
    let run = |program: &str, own: u32, dynamic: bool, stack: Option<u32>| {
        let mut kernel = Kernel::new(Gfx::Gfx1100, program);
        kernel.scratch = own;
        let object = if dynamic { with_dynamic_stack(&kernel) } else { kernel.build() };
        let mut options = LaunchOptions::default();
        if let Some(stack) = stack {
            options.stack_size = stack;
        }
        launch(&machine, &object, [1, 1, 1], [32, 1, 1], &[], options)
            .map(drop)
            .map_err(|report| report.fault().clone())
    };
    let overflows = |result| matches!(result, Err(Fault::StackOverflow { .. }));
    assert_eq!(run(last, 0, true, None), Ok(()));
    assert!(overflows(run(behind, 0, true, None)));
    assert_eq!(run(behind, 0, true, Some(1040)), Ok(()));
    assert!(overflows(run(last, 16, true, Some(256))));
    // What the kernel itself asks for is more.
    assert_eq!(run(behind, 2048, true, Some(256)), Ok(()));
    // 16 KiB is the most.
    assert_eq!(run(last_of_most, 0, true, Some(1 << 17)), Ok(()));
    assert!(overflows(run(behind_most, 0, true, Some(1 << 17))));
    // A kernel that knows its stack has no more.
    assert!(matches!(run(last, 64, false, Some(4096)), Err(Fault::ScratchOutOfBounds { limit: 64, .. })));
}

/// Stores what its scratch memory holds, and writes to it.
// asm Gfx1100
const DIRTY: &str = "
    s_load_b64 s[4:5], s[0:1], null ; f4040100 f8000000
    v_mov_b32_e32 v1, 0x1234 ; 7e0202ff 00001234
    s_lshl_b32 s3, s2, 2 ; 84038202
    v_mov_b32_e32 v4, s3 ; 7e080203
    scratch_load_b32 v3, off, off offset:1020 ; dc5103fc 037c0000
    s_waitcnt vmcnt(0) ; bf8903f7
    scratch_store_b32 off, v1, off offset:1020 ; dc6903fc 007c0100
    s_waitcnt lgkmcnt(0) ; bf89fc07
    global_store_b32 v4, v3, s[4:5] ; dc6a0000 00040304
";

#[test]
fn scratch_memory_is_zero_for_each_workgroup() {
    let machine = machine(Gfx::Gfx1100);
    let out = machine.alloc(64).unwrap();
    machine.fill(out, 0xff, 64).unwrap();
    let mut kernel = Kernel::new(Gfx::Gfx1100, DIRTY);
    kernel.args = &[(8, "global_buffer")];
    let mut options = LaunchOptions::default();
    options.threads = 1;
    launch(&machine, &with_dynamic_stack(&kernel), [16, 1, 1], [32, 1, 1], &out.to_le_bytes(), options)
        .unwrap();
    assert_eq!(words(&machine, out, 16), [0; 16]);
}
