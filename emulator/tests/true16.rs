//! Kernels that LLVM compiled with halves of vector registers as operands (`-mattr=+real-true16`), run from code object
//! to results. Their source is `data/true16/halves.ll`.

mod support;

use amdgpu_emulator::{Gfx, Launch, LaunchOptions, Machine, MachineOptions, decode};
use support::Kernel;

const LANES: usize = 32;

const FLOATS_GFX1100: &str = "
    s_load_b128 s[0:3], s[0:1], null ; f4080000 f8000000
    v_lshlrev_b32_e32 v1, 2, v0 ; 30020082
    v_lshlrev_b32_e32 v0, 4, v0 ; 30000084
    s_waitcnt lgkmcnt(0) ; bf89fc07
    global_load_b32 v3, v1, s[0:1] ; dc520000 03000001
    s_waitcnt vmcnt(0) ; bf8903f7
    v_mov_b16_e32 v4.l, v3.h ; 7e083983
    v_cmp_lt_f16_e32 vcc_lo, v3.l, v3.h ; 7c030703
    v_fma_f16 v2.l, v3.h, v3.h, v3.l op_sel:[1,1,0,0] ; d6481802 040e0703
    s_delay_alu instid0(VALU_DEP_3) ; bf870003
    v_pk_mul_f16 v1, v3, v4 ; cc104001 18020903
    v_mul_f16_e32 v1.h, v3.h, v3.h ; 6b030783
    v_pk_add_f16 v6, v3, v4 ; cc0f4006 18020903
    v_cndmask_b16 v2.h, v3.h, v3.l, vcc_lo ; d65d4802 01aa0703
    v_pk_add_f16 v3, v4, v3 neg_lo:[0,1] neg_hi:[0,1] ; cc0f4203 58020704
    v_cvt_f32_f16_e32 v5, v1.l ; 7e0a1701
    v_sqrt_f16_e32 v4.l, v1.h ; 7e08ab81
    v_cvt_i16_f16_e32 v4.h, v1.l ; 7f08a701
    v_mov_b16_e32 v1.h, v6.l ; 7f023906
    v_mov_b16_e32 v3.h, v3.l ; 7f063903
    v_mul_f32_e32 v5, 0x3e800000, v5 ; 100a0aff 3e800000
    s_delay_alu instid0(VALU_DEP_1) | instskip(NEXT) | instid1(VALU_DEP_1) ; bf870091
    v_add_f32_e32 v5, 0.5, v5 ; 060a0af0
    v_cvt_f16_f32_e32 v3.l, v5 ; 7e061505
    global_store_b128 v0, v[1:4], s[2:3] ; dc760000 00020100
    s_endpgm ; bfb00000
";

const FLOATS_GFX1201: &str = "
    s_load_b128 s[0:3], s[0:1], 0x0 ; f4004000 f8000000
    v_lshlrev_b32_e32 v1, 2, v0 ; 30020082
    v_lshlrev_b32_e32 v0, 4, v0 ; 30000084
    s_wait_kmcnt 0x0 ; bfc70000
    global_load_b32 v3, v1, s[0:1] ; ee050000 00000003 00000001
    s_wait_loadcnt 0x0 ; bfc00000
    v_mov_b16_e32 v4.l, v3.h ; 7e083983
    v_cmp_lt_f16_e32 vcc_lo, v3.l, v3.h ; 7c030703
    v_fma_f16 v2.l, v3.h, v3.h, v3.l op_sel:[1,1,0,0] ; d6481802 040e0703
    s_delay_alu instid0(VALU_DEP_3) ; bf870003
    v_pk_mul_f16 v1, v3, v4 ; cc104001 18020903
    v_mul_f16_e32 v1.h, v3.h, v3.h ; 6b030783
    v_pk_add_f16 v6, v3, v4 ; cc0f4006 18020903
    v_cndmask_b16 v2.h, v3.h, v3.l, vcc_lo ; d65d4802 01aa0703
    v_pk_add_f16 v3, v4, v3 neg_lo:[0,1] neg_hi:[0,1] ; cc0f4203 58020704
    v_cvt_f32_f16_e32 v5, v1.l ; 7e0a1701
    v_sqrt_f16_e32 v4.l, v1.h ; 7e08ab81
    v_cvt_i16_f16_e32 v4.h, v1.l ; 7f08a701
    v_mov_b16_e32 v1.h, v6.l ; 7f023906
    v_mov_b16_e32 v3.h, v3.l ; 7f063903
    v_mul_f32_e32 v5, 0x3e800000, v5 ; 100a0aff 3e800000
    s_delay_alu instid0(VALU_DEP_1) | instskip(NEXT) | instid1(VALU_DEP_1) ; bf870091
    v_add_f32_e32 v5, 0.5, v5 ; 060a0af0
    v_cvt_f16_f32_e32 v3.l, v5 ; 7e061505
    global_store_b128 v0, v[1:4], s[2:3] ; ee074002 00800000 00000000
    s_endpgm ; bfb00000
";

const INTEGERS_GFX1100: &str = "
    s_load_b128 s[0:3], s[0:1], null ; f4080000 f8000000
    v_lshlrev_b32_e32 v5, 1, v0 ; 300a0081
    v_xor_b32_e32 v6, 1, v0 ; 3a0c0081
    v_lshlrev_b32_e32 v0, 4, v0 ; 30000084
    s_waitcnt lgkmcnt(0) ; bf89fc07
    s_clause 0x2 ; bf850002
    global_load_d16_b16 v1, v5, s[0:1] ; dc820000 01000005
    global_load_d16_hi_b16 v1, v5, s[0:1] offset:64 ; dc8e0040 01000005
    global_load_d16_i8 v2, v5, s[0:1] offset:129 ; dc7e0081 02000005
    v_lshlrev_b32_e32 v6, 1, v6 ; 300c0c81
    s_waitcnt vmcnt(0) ; bf8903f7
    v_mul_lo_u16 v3.l, v1.h, v2.l op_sel:[1,0,0] ; d7050803 00020501
    v_ashrrev_i16 v4.l, 2, v2.l ; d73a0004 00020482
    s_delay_alu instid0(VALU_DEP_2) | instskip(SKIP_2) | instid1(VALU_DEP_3) ; bf8701b2
    v_xor_b16 v2.h, v3.l, v1.l op_sel:[0,0,1] ; d7644002 00020303
    v_cmp_lt_u16_e32 vcc_lo, v1.h, v3.l ; 7c720781
    v_add_nc_u16 v1.h, v1.h, v1.l op_sel:[1,0,1] ; d7034801 00020301
    v_lshrrev_b16 v3.h, 3, v2.h op_sel:[0,1,1] ; d7395003 00020483
    ds_store_b16_d16_hi v5, v1 ; da840000 00000105
    v_max_i16 v5.l, v2.l, v1.l ; d70a0005 00020302
    v_cvt_f16_i16_e32 v5.h, v2.l ; 7f0aa302
    v_cndmask_b16 v4.l, v4.l, v3.h, vcc_lo ; d65d1004 01aa0704
    s_waitcnt lgkmcnt(0) ; bf89fc07
    buffer_gl0_inv ; e0ac0000 00000000
    ds_load_u16_d16_hi v4, v6 ; da9c0000 04000006
    s_waitcnt lgkmcnt(0) ; bf89fc07
    s_clause 0x1 ; bf850001
    global_store_b96 v0, v[3:5], s[2:3] ; dc720000 00020300
    global_store_d16_hi_b16 v0, v3, s[2:3] offset:14 ; dc96000e 00020300
    s_endpgm ; bfb00000
";

const INTEGERS_GFX1201: &str = "
    s_load_b128 s[0:3], s[0:1], 0x0 ; f4004000 f8000000
    v_lshlrev_b32_e32 v5, 1, v0 ; 300a0081
    v_xor_b32_e32 v6, 1, v0 ; 3a0c0081
    v_lshlrev_b32_e32 v0, 4, v0 ; 30000084
    s_wait_kmcnt 0x0 ; bfc70000
    global_load_d16_b16 v1, v5, s[0:1] ; ee080000 00000001 00000005
    s_wait_loadcnt 0x0 ; bfc00000
    s_clause 0x1 ; bf850001
    global_load_d16_hi_b16 v1, v5, s[0:1] offset:64 ; ee08c000 00000001 00004005
    global_load_d16_i8 v2, v5, s[0:1] offset:129 ; ee07c000 00000002 00008105
    v_lshlrev_b32_e32 v6, 1, v6 ; 300c0c81
    s_wait_loadcnt 0x0 ; bfc00000
    v_mul_lo_u16 v3.l, v1.h, v2.l op_sel:[1,0,0] ; d7050803 00020501
    v_ashrrev_i16 v4.l, 2, v2.l ; d73a0004 00020482
    s_delay_alu instid0(VALU_DEP_2) | instskip(SKIP_2) | instid1(VALU_DEP_3) ; bf8701b2
    v_xor_b16 v2.h, v3.l, v1.l op_sel:[0,0,1] ; d7644002 00020303
    v_cmp_lt_u16_e32 vcc_lo, v1.h, v3.l ; 7c720781
    v_add_nc_u16 v1.h, v1.h, v1.l op_sel:[1,0,1] ; d7034801 00020301
    v_lshrrev_b16 v3.h, 3, v2.h op_sel:[0,1,1] ; d7395003 00020483
    ds_store_b16_d16_hi v5, v1 ; da840000 00000105
    v_max_i16 v5.l, v2.l, v1.l ; d70a0005 00020302
    v_cvt_f16_i16_e32 v5.h, v2.l ; 7f0aa302
    v_cndmask_b16 v4.l, v4.l, v3.h, vcc_lo ; d65d1004 01aa0704
    s_wait_dscnt 0x0 ; bfc60000
    global_inv scope:SCOPE_SE ; ee0ac07c 00040000 00000000
    ds_load_u16_d16_hi v4, v6 ; da9c0000 04000006
    s_wait_dscnt 0x0 ; bfc60000
    s_clause 0x1 ; bf850001
    global_store_b96 v0, v[3:5], s[2:3] ; ee070002 01800000 00000000
    global_store_d16_hi_b16 v0, v3, s[2:3] offset:14 ; ee094002 01800000 00000e00
    s_endpgm ; bfb00000
";

/// The machine code of a program whose lines have LLVM's text with names for the halves of registers.
fn assemble(gfx: Gfx, program: &str) -> Vec<u8> {
    let mut code = Vec::new();
    for line in program.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (text, words) = line.split_once(" ; ").expect("text ; dwords");
        let words = words.split(' ').map(|word| u32::from_str_radix(word, 16).expect("a dword"));
        let bytes: Vec<u8> = words.flat_map(u32::to_le_bytes).collect();
        let inst = decode::decode(gfx, &bytes).unwrap_or_else(|error| panic!("{gfx} {text}: {error}"));
        assert_eq!(decode::print(gfx, &inst, None).half_registers(true).to_string(), text, "{gfx}");
        code.extend(bytes);
    }
    code
}

/// Launches one workgroup of one wave over the bytes of `input`; what it wrote, 16 bytes a lane.
fn run(gfx: Gfx, program: &str, lds: u32, input: &[u8]) -> Vec<[u16; 8]> {
    let mut options = MachineOptions::default();
    options.memory_bytes = 1 << 26;
    let machine = Machine::new(gfx, options).expect("address space");
    let mut kernel = Kernel::new(gfx, "");
    kernel.code = Some(assemble(gfx, program));
    kernel.args = &[(8, "global_buffer"), (8, "global_buffer")];
    kernel.lds = lds;
    let kernel = machine.load(&kernel.build()).expect("loads").kernel("test").expect("the kernel");

    let from = machine.alloc(input.len() as u64).expect("memory");
    machine.write(from, input).expect("allocated");
    let to = machine.alloc(16 * LANES as u64).expect("memory");
    // What no lane writes stays.
    machine.write(to, &[0xaa; 16 * LANES]).expect("allocated");
    let kernarg: Vec<u8> = [from, to].into_iter().flat_map(u64::to_le_bytes).collect();
    let (grid, block) = ([1; 3], [LANES as u32, 1, 1]);
    let mut options = LaunchOptions::default();
    options.check = true;
    machine
        .launch(&kernel, &Launch { grid, block, dynamic_lds: 0, kernarg: &kernarg, options })
        .unwrap_or_else(|fault| panic!("{gfx}: {fault}"));

    let mut out = vec![0; 16 * LANES];
    machine.read(to, &mut out).expect("allocated");
    let halves = |lane: &[u8]| std::array::from_fn(|i| u16::from_le_bytes([lane[2 * i], lane[2 * i + 1]]));
    out.chunks_exact(16).map(halves).collect()
}

/// The binary16 of a number that has one.
fn f16(x: f32) -> u16 {
    let bits = x.to_bits();
    if x == 0.0 {
        return (bits >> 16) as u16;
    }
    assert!(bits & 0x1fff == 0 && (0x3880_0000..0x4780_0000).contains(&(bits & 0x7fff_ffff)), "{x}");
    (bits >> 16 & 0x8000 | ((bits & 0x7fff_ffff) - 0x3800_0000) >> 13) as u16
}

#[test]
fn floats_in_halves_of_registers() {
    for (gfx, program) in [(Gfx::Gfx1100, FLOATS_GFX1100), (Gfx::Gfx1201, FLOATS_GFX1201)] {
        let pairs: Vec<(f32, f32)> = (0..LANES).map(|i| (i as f32 - 8.0, i as f32 / 2.0 + 1.0)).collect();
        let input: Vec<u8> =
            pairs.iter().flat_map(|&(a, b)| [f16(a), f16(b)]).flat_map(u16::to_le_bytes).collect();
        let out = run(gfx, program, 0, &input);
        for (lane, &(a, b)) in pairs.iter().enumerate() {
            let product = a * b;
            // All of these are exact.
            let expected = [
                f16(product),
                f16(a + b),
                f16(b * b + a),
                f16(a.min(b)),
                f16(product / 4.0 + 0.5),
                f16(b - a),
                f16(b),
                product as i16 as u16,
            ];
            assert_eq!(out[lane], expected, "{gfx} lane {lane}: {a}, {b}");
        }
        // -7 and 1.5: -10.5, -5.5; -4.75, -7; -2.125, 8.5; 1.5, -10.
        assert_eq!(out[1], [0xc940, 0xc580, 0xc4c0, 0xc700, 0xc040, 0x4840, 0x3e00, 0xfff6], "{gfx}");
    }
}

#[test]
fn integers_in_halves_of_registers() {
    for (gfx, program) in [(Gfx::Gfx1100, INTEGERS_GFX1100), (Gfx::Gfx1201, INTEGERS_GFX1201)] {
        let a = |i: usize| (0x4001 * i) as u16;
        let b = |i: usize| 0xff00u16.wrapping_add(19 * i as u16);
        let byte = |i: usize| (37 * i) as u8 as i8;
        let halves = (0..LANES).map(a).chain((0..LANES).map(b));
        let bytes = (0..LANES).map(|i| u16::from(byte(i) as u8) << 8 | 0x55);
        let input: Vec<u8> = halves.chain(bytes).flat_map(u16::to_le_bytes).collect();
        let out = run(gfx, program, 64, &input);
        for (lane, halves) in out.iter().enumerate() {
            let signed = i16::from(byte(lane));
            let product = b(lane).wrapping_mul(signed as u16);
            let shifted = (product ^ a(lane)) >> 3;
            let chosen = if b(lane) < product { shifted } else { (signed >> 2) as u16 };
            let neighbour = a(lane ^ 1).wrapping_add(b(lane ^ 1));
            let most = signed.max(a(lane) as i16) as u16;
            let float = f16(signed.into());
            let expected = [product, shifted, chosen, neighbour, most, float, 0xaaaa, shifted];
            assert_eq!(*halves, expected, "{gfx} lane {lane}");
        }
        // 0x8002, 0xff26 and 74: the neighbour's 0xc003 + 0xff39; 74 is 37 * 2, 0x54a0 in binary16.
        assert_eq!(out[2], [0xc0fc, 0x081f, 0x0012, 0xbf3c, 0x004a, 0x54a0, 0xaaaa, 0x081f], "{gfx}");
    }
}
