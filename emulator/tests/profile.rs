//! What profile mode counts.

mod support;

use amdgpu_emulator::{Gfx, Launch, LaunchOptions, Machine, MachineOptions, Profile, Unit};
use support::Kernel;

fn profile(gfx: Gfx, program: &str, lds: u32, threads: usize) -> Profile {
    let mut options = MachineOptions::default();
    options.memory_bytes = 1 << 26;
    let machine = Machine::new(gfx, options).expect("address space");
    let buffer = machine.alloc(1 << 16).expect("memory");
    let mut kernel = Kernel::new(gfx, program);
    kernel.args = &[(8, "global_buffer")];
    kernel.lds = lds;
    let kernel = machine.load(&kernel.build()).expect("loads").kernel("test").expect("the kernel");
    let mut options = LaunchOptions::default();
    options.profile = true;
    options.threads = threads;
    let kernarg = &buffer.to_le_bytes();
    let launch = Launch { grid: [100, 1, 1], block: [64, 1, 1], dynamic_lds: 0, kernarg, options };
    *machine.launch(&kernel, &launch).expect("no fault").profile.expect("a profile")
}

// asm Gfx1100
const STRIDED: &str = "
    s_load_b64 s[4:5], s[0:1], null ; f4040100 f8000000
    v_and_b32_e32 v0, 31, v0 ; 3600009f
    v_lshlrev_b32_e32 v1, 2, v0 ; 30020082
    v_lshlrev_b32_e32 v2, 7, v0 ; 30040087
    s_waitcnt lgkmcnt(0) ; bf89fc07
    global_load_b32 v3, v1, s[4:5] ; dc520000 03040001
    global_load_b32 v4, v2, s[4:5] ; dc520000 04040002
    ds_store_b32 v1, v0 ; d8340000 00000001
    ds_store_b32 v2, v0 ; d8340000 00000002
    v_cmp_gt_u32_e32 vcc_lo, 8, v0 ; 7c980088
    s_and_saveexec_b32 s6, vcc_lo ; be86206a
    v_mov_b32_e32 v5, v0 ; 7e0a0300
    s_barrier ; bfbd0000
";

#[test]
fn strides_cost_cache_lines_and_banks() {
    let profile = profile(Gfx::Gfx1100, STRIDED, 4096, 2);
    let find = |text: &str| {
        let found = profile.instructions.iter().find(|instruction| instruction.text.starts_with(text));
        found.unwrap_or_else(|| panic!("{text}: {profile}")).counts
    };
    // 200 waves; 32 lanes of 4 bytes.
    let dense = find("global_load_b32 v3");
    assert_eq!((dense.executed, dense.bytes_needed, dense.bytes_moved), (200, 200 * 128, 200 * 128));
    let strided = find("global_load_b32 v4");
    assert_eq!((strided.bytes_needed, strided.bytes_moved), (200 * 128, 200 * 32 * 128));
    assert_eq!(find("ds_store_b32 v1").bank_conflicts, 0);
    assert_eq!(find("ds_store_b32 v2").bank_conflicts, 200 * 31);
    assert_eq!(find("ds_store_b32 v2").lds_cycles, 200 * 32);
    let divergent = find("v_mov_b32_e32 v5");
    assert_eq!((divergent.active_lanes, divergent.lanes), (200 * 8, 200 * 32));
    assert_eq!(profile.by_unit()[&Unit::Lds].executed, 400);
    assert_eq!((profile.total().executed, profile.total().barriers), (200 * 14, 200));
    // The argument's address, from one line of 128 bytes.
    let scalar = find("s_load_b64");
    assert_eq!((scalar.bytes_needed, scalar.bytes_moved), (200 * 8, 200 * 128));
}

// Accesses of four dwords: of neighbours next to each other, and 128 bytes apart.
// asm Gfx1100
const WIDE: &str = "
    v_and_b32_e32 v0, 31, v0 ; 3600009f
    v_lshlrev_b32_e32 v1, 4, v0 ; 30020084
    v_lshlrev_b32_e32 v2, 7, v0 ; 30040087
    ds_store_b128 v1, v[4:7] ; db7c0000 00000401
    ds_store_b128 v2, v[4:7] ; db7c0000 00000402
    s_waitcnt lgkmcnt(0) ; bf89fc07
    ds_load_b128 v[4:7], v1 ; dbfc0000 04000001
    s_waitcnt lgkmcnt(0) ; bf89fc07
    s_endpgm ; bfb00000
";

#[test]
fn a_wide_access_meets_in_banks_among_eight_lanes_at_once() {
    let profile = profile(Gfx::Gfx1100, WIDE, 4096, 2);
    let find = |text: &str| {
        let found = profile.instructions.iter().find(|instruction| instruction.text.starts_with(text));
        let counts = found.unwrap_or_else(|| panic!("{text}: {profile}")).counts;
        (counts.lds_cycles / counts.executed, counts.bank_conflicts / counts.executed)
    };
    assert_eq!(find("ds_store_b128 v1"), (4, 0));
    assert_eq!(find("ds_store_b128 v2"), (32, 28));
    assert_eq!(find("ds_load_b128"), (4, 0));
}

#[test]
fn counts_do_not_depend_on_the_threads() {
    assert_eq!(profile(Gfx::Gfx1100, STRIDED, 4096, 1), profile(Gfx::Gfx1100, STRIDED, 4096, 4));
}

#[test]
fn registers_bound_the_waves_per_simd() {
    let mut kernel = Kernel::new(Gfx::Gfx1100, STRIDED);
    kernel.args = &[(8, "global_buffer")];
    let waves = |vgprs: u32| {
        let elf = kernel.elf_with(|metadata| metadata["amdhsa.kernels"][0][".vgpr_count"] = vgprs.into());
        amdgpu_emulator::CodeObject::parse(&elf).unwrap().kernels()[0].waves_per_simd(Gfx::Gfx1100)
    };
    // 1536 registers in granules of 24.
    assert_eq!((waves(24), waves(96), waves(97), waves(256)), (16, 16, 12, 5));
}

// asm Gfx1100
const TWO_CALLS: &str = "
    s_getpc_b64 s[8:9] ; be884700
    s_add_u32 s8, s8, 20 ; 80089408
    s_addc_u32 s9, s9, 0 ; 82098009
    s_swappc_b64 s[10:11], s[8:9] ; be8a4908
    s_swappc_b64 s[10:11], s[8:9] ; be8a4908
    s_branch 2 ; bfa00002
    v_mov_b32_e32 v5, v0 ; 7e0a0300
    s_setpc_b64 s[10:11] ; be80480a
";

#[test]
fn a_function_counts_apart_for_each_place_that_calls_it() {
    let profile = profile(Gfx::Gfx1100, TWO_CALLS, 0, 2);
    let of =
        |text: &str| profile.instructions.iter().filter(|i| i.text.starts_with(text)).collect::<Vec<_>>();
    let calls = of("s_swappc_b64");
    assert_eq!(
        calls.iter().map(|call| (call.counts.executed, &call.calls[..])).collect::<Vec<_>>(),
        [(200, &[][..]); 2]
    );
    for text in ["v_mov_b32_e32", "s_setpc_b64"] {
        let under: Vec<_> = of(text).iter().map(|i| (i.counts.executed, i.calls.clone())).collect();
        assert_eq!(under, [(200, vec![calls[0].pc]), (200, vec![calls[1].pc])], "{text}");
    }
    // What runs behind the calls is the kernel's own.
    assert!(of("s_branch")[0].calls.is_empty());
    assert_eq!(profile.total().executed, 200 * (6 + 2 * 2 + 1));
}
