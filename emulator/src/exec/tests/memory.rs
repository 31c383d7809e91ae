use super::*;
use crate::fault::{Access, Nearest, Space};
use Gfx::{Gfx90a, Gfx942, Gfx1011, Gfx1030, Gfx1100, Gfx1151, Gfx1201};

/// Memory with 256 bytes, each of which holds its offset.
fn bytes() -> (Memory, u64) {
    let memory = Memory::new(1 << 24).unwrap();
    let address = memory.alloc(256, None).unwrap();
    memory.write(address, &(0..=255).collect::<Vec<u8>>()).unwrap();
    (memory, address)
}

fn set_address(wave: &mut Wave, register: usize, address: u64) {
    wave.sgpr[register] = address as u32;
    wave.sgpr[register + 1] = (address >> 32) as u32;
}

fn read<const N: usize>(memory: &Memory, address: u64) -> [u8; N] {
    let mut bytes = [0; N];
    memory.read(address, &mut bytes).unwrap();
    bytes
}

#[test]
fn scalar_loads_add_register_and_constant_offsets() {
    let (memory, address) = bytes();
    // asm Gfx1100
    let program = "
        s_load_b32 s4, s[0:1], 0x8 ; f4000100 f8000008
        s_load_b64 s[6:7], s[0:1], s2 offset:0x4 ; f4040180 04000004
        s_load_b128 s[8:11], s[0:1], 0x10 ; f4080200 f8000010
    ";
    let out = run_with(Gfx1100, &memory, program, |wave, _| {
        set_address(wave, 0, address);
        wave.sgpr[2] = 0x20;
    });
    assert_eq!(out.s(4), 0x0b0a_0908);
    assert_eq!(out.s64(6), 0x2b2a_2928_2726_2524);
    assert_eq!((out.s(8), out.s(11)), (0x1312_1110, 0x1f1e_1d1c));
    // asm Gfx1201
    let program = "
        s_load_i8 s4, s[0:1], 0xff ; f4010100 f80000ff
        s_load_u16 s5, s[0:1], 0xfe ; f4016140 f80000fe
        s_load_b96 s[8:10], s[0:1], 0x4 ; f400a200 f8000004
    ";
    let out = run_with(Gfx1201, &memory, program, |wave, _| set_address(wave, 0, address));
    assert_eq!((out.s(4), out.s(5), out.s(10)), (u32::MAX, 0xfffe, 0x0f0e_0d0c));
}

/// Both registers of VCC are written, also where a wave has 32 lanes, and what reads the mask sees it.
#[test]
fn scalar_loads_reach_vcc() {
    let (memory, address) = bytes();
    // asm Gfx1100
    let wave32 = "
        s_load_b64 vcc, s[4:5], null ; f4041a82 f8000000
        v_cndmask_b32_e32 v0, 7, v1, vcc_lo ; 02000287
        s_mov_b32 s6, vcc_hi ; be86006b
        s_cbranch_vccnz 1 ; bfa40001
        s_mov_b32 s7, 1 ; be870081
    ";
    // asm Gfx90a
    let wave64 = "
        s_load_dwordx2 vcc, s[4:5], 0x0 ; c0061a82 00000000
        v_cndmask_b32_e32 v0, 7, v1, vcc ; 00000287
        s_mov_b32 s6, vcc_hi ; be86006b
    ";
    for (gfx, program) in [(Gfx1100, wave32), (Gfx90a, wave64)] {
        let out = run_with(gfx, &memory, program, |wave, _| {
            set_address(wave, 4, address);
            set_lanes(wave, 1, |_| 9);
        });
        let mask = 0x0706_0504_0302_0100_u64;
        for lane in 0..out.wave.size() as usize {
            let expected = if mask >> lane & 1 != 0 { 9 } else { 7 };
            assert_eq!(out.v(0, lane), expected, "{gfx}, lane {lane}");
        }
        assert_eq!((out.s(6), out.s(7)), (0x0706_0504, 0), "{gfx}");
    }
}

#[test]
fn a_scalar_load_past_the_end_is_a_fault() {
    let (memory, address) = bytes();
    // asm Gfx1100
    let program = "
        s_load_b64 s[4:5], s[0:1], 0xfc ; f4040100 f80000fc
    ";
    let out = run_with(Gfx1100, &memory, program, |wave, _| set_address(wave, 0, address));
    let Fault::OutOfBounds { access: Access::Read, address: at, size: 8, nearest } = out.fault() else {
        panic!("{:?}", out.fault)
    };
    assert_eq!((*at, nearest.offset), (address + 0xfc, 0xfc));
}

#[test]
fn buffer_loads_of_scalars_stop_at_the_records() {
    let (memory, address) = bytes();
    // asm Gfx1100
    let program = "
        s_buffer_load_b64 s[8:9], s[0:3], 0x4 ; f4240200 f8000004
    ";
    let out = run_with(Gfx1100, &memory, program, |wave, _| {
        set_address(wave, 0, address);
        wave.sgpr[2] = 8;
        wave.sgpr[9] = 1;
    });
    assert_eq!(out.s64(8), 0x0706_0504);
}

#[test]
fn loads_extend_and_fill_halves() {
    let (memory, address) = bytes();
    // asm Gfx1100
    let program = "
        global_load_u8 v1, v0, s[0:1] offset:128 ; dc420080 01000000
        global_load_i8 v2, v0, s[0:1] offset:128 ; dc460080 02000000
        global_load_u16 v3, v0, s[0:1] offset:128 ; dc4a0080 03000000
        global_load_i16 v4, v0, s[0:1] offset:128 ; dc4e0080 04000000
        global_load_d16_b16 v5, v0, s[0:1] offset:128 ; dc820080 05000000
        global_load_d16_hi_i8 v6, v0, s[0:1] offset:128 ; dc8a0080 06000000
        global_load_b96 v[8:10], v0, s[0:1] offset:16 ; dc5a0010 08000000
    ";
    let out = run_with(Gfx1100, &memory, program, |wave, _| {
        set_address(wave, 0, address);
        set_lanes(wave, 0, |lane| lane as u32);
        for register in 5..7 {
            set_lanes(wave, register, |_| 0x7777_6666);
        }
    });
    assert_eq!(out.fault, None);
    let byte = |lane: usize| 128 + lane as u32;
    for lane in [0, 13, 31] {
        let half = byte(lane) | byte(lane + 1) << 8;
        assert_eq!(out.v(1, lane), byte(lane));
        assert_eq!(out.v(2, lane), byte(lane) | 0xffff_ff00);
        assert_eq!(out.v(3, lane), half);
        assert_eq!(out.v(4, lane), half | 0xffff_0000);
        assert_eq!(out.v(5, lane), half | 0x7777_0000);
        assert_eq!(out.v(6, lane), 0xff00_6666 | byte(lane) << 16);
        assert_eq!(out.v(10, lane) & 0xff, 24 + lane as u32);
    }
}

#[test]
fn wide_loads_and_stores_are_the_same_with_and_without_gaps() {
    let memory = Memory::new(1 << 24).unwrap();
    // asm Gfx90a
    let program = "
        global_load_dwordx4 v[4:7], v0, s[0:1] ; dc5c8000 04000000
        global_store_dwordx4 v1, v[4:7], s[2:3] ; dc7c8000 00020401
    ";
    for (stride, exec) in [(16, u64::MAX), (32, u64::MAX), (16, 0x8000_0001_7fff_fffe)] {
        let from = memory.alloc(64 * 32, None).unwrap();
        let into = memory.alloc(64 * 16, None).unwrap();
        let contents: Vec<u8> = (0..64u32 * 32).map(|n| (n * 7) as u8).collect();
        memory.write(from, &contents).unwrap();
        let out = run_with(Gfx90a, &memory, program, |wave, _| {
            set_address(wave, 0, from);
            set_address(wave, 2, into);
            set_lanes(wave, 0, |lane| lane as u32 * stride);
            set_lanes(wave, 1, |lane| lane as u32 * 16);
            set_address(wave, usize::from(slot::EXEC), exec);
        });
        assert_eq!(out.fault, None);
        for lane in 0..64u32 {
            let stored: [u8; 16] = read(&memory, into + u64::from(lane) * 16);
            let at = (lane * stride) as usize;
            let expected: [u8; 16] = contents[at..at + 16].try_into().unwrap();
            let active = exec >> lane & 1 != 0;
            assert_eq!(stored, if active { expected } else { [0; 16] }, "lane {lane}, stride {stride}");
        }
    }
}

#[test]
fn an_access_outside_names_lane_and_allocation() {
    let (memory, address) = bytes();
    // asm Gfx1030
    let program = "
        global_store_dword v0, v1, s[0:1] ; dc708000 00000100
    ";
    let out = run_with(Gfx1030, &memory, program, |wave, _| {
        set_address(wave, 0, address);
        set_lanes(wave, 0, |lane| if lane == 21 { 253 } else { 0 });
    });
    let nearest = Nearest { allocation: memory.allocation(address), offset: 253 };
    let fault = Fault::OutOfBounds { access: Access::Write, address: address + 253, size: 4, nearest };
    assert_eq!(out.fault, Some((fault, Some(21))));
    // The same address in a lane that is off does not matter.
    let out = run_with(Gfx1030, &memory, program, |wave, _| {
        set_address(wave, 0, address);
        set_lanes(wave, 0, |lane| if lane == 21 { 253 } else { 0 });
        wave.sgpr[usize::from(slot::EXEC)] = !(1 << 21);
    });
    assert_eq!(out.fault, None);
}

#[test]
fn freed_memory_is_named_as_such() {
    let (memory, address) = bytes();
    memory.free(address).unwrap();
    // asm Gfx1030
    let program = "
        global_load_dword v1, v0, s[0:1] ; dc308000 01000000
    ";
    let out = run_with(Gfx1030, &memory, program, |wave, _| set_address(wave, 0, address));
    assert!(matches!(out.fault(), Fault::UseAfterFree { access: Access::Read, .. }), "{:?}", out.fault);
}

#[test]
fn flat_addresses_reach_lds_scratch_and_global_memory() {
    let (memory, address) = bytes();
    // asm Gfx1100
    let program = "
        flat_load_b32 v2, v[0:1] ; dc500000 027c0000
    ";
    let out = run_with(Gfx1100, &memory, program, |wave, env| {
        env.lds[8..12].copy_from_slice(&0x1122_3344u32.to_le_bytes());
        let global = address + 4;
        let targets = [global, 0x10000 << 32 | 8, 0x20000 << 32 | 60];
        set_lanes(wave, 0, |lane| targets[lane % 3] as u32);
        set_lanes(wave, 1, |lane| (targets[lane % 3] >> 32) as u32);
    });
    assert_eq!(out.fault, None);
    assert_eq!((out.v(2, 0), out.v(2, 1), out.v(2, 2)), (0x0706_0504, 0x1122_3344, 0));
    let out = run_with(Gfx1100, &memory, program, |wave, _| {
        set_lanes(wave, 0, |_| 1022);
        set_lanes(wave, 1, |_| 0x10000);
    });
    let fault = Fault::LdsOutOfBounds { access: Access::Read, offset: 1022, size: 4, limit: 1024 };
    assert_eq!(out.fault, Some((fault, Some(0))));
}

#[test]
fn scratch_is_private_to_each_lane_and_offsets_are_signed() {
    // asm Gfx1100
    let program = "
        scratch_store_b32 off, v0, s0 offset:-4 ; dc691ffc 00000000
        scratch_load_b32 v1, off, s1 ; dc510000 01010000
        scratch_load_b32 v2, v3, off offset:4 ; dc510004 02fc0003
    ";
    let out = run(Gfx1100, program, |wave, _| {
        (wave.sgpr[0], wave.sgpr[1]) = (12, 8);
        set_lanes(wave, 0, |lane| 100 + lane as u32);
        set_lanes(wave, 3, |_| 4);
    });
    assert_eq!(out.fault, None);
    assert_eq!((out.v(1, 0), out.v(1, 31), out.v(2, 17)), (100, 131, 117));
    // asm Gfx1100
    let program = "
        scratch_load_b32 v1, off, s0 offset:-4 ; dc511ffc 01000000
    ";
    let out = run(Gfx1100, program, |_, _| {});
    let fault = Fault::ScratchOutOfBounds { access: Access::Read, offset: -4, size: 4, limit: 64 };
    assert_eq!(out.fault, Some((fault, Some(0))));
}

#[test]
fn atomics_apply_lane_by_lane_and_return_the_old_value() {
    let (memory, address) = bytes();
    memory.fill(address, 0, 256).unwrap();
    // asm Gfx1100
    let program = "
        global_atomic_add_u32 v2, v0, v1, s[0:1] glc ; dcd64000 02000100
        global_atomic_max_i32 v0, v1, s[0:1] offset:4 ; dcea0004 00000100
        global_atomic_cmpswap_b32 v5, v0, v[3:4], s[0:1] offset:8 glc ; dcd24008 05000300
        global_atomic_add_f32 v0, v6, s[0:1] offset:12 ; dd5a000c 00000600
        global_atomic_add_u64 v0, v[8:9], s[0:1] offset:16 ; dd0e0010 00000800
    ";
    let out = run_with(Gfx1100, &memory, program, |wave, _| {
        set_address(wave, 0, address);
        set_lanes(wave, 1, |lane| lane as u32 + 1);
        set_lanes(wave, 3, |lane| lane as u32 + 1);
        set_lanes(wave, 4, |lane| lane as u32);
        set_lanes(wave, 6, |_| 0.5f32.to_bits());
        set_lanes(wave, 8, |_| u32::MAX);
    });
    assert_eq!(out.fault, None);
    // Lane n finds the sum of 1 to n.
    assert_eq!((out.v(2, 0), out.v(2, 31)), (0, 31 * 32 / 2));
    assert_eq!(u32::from_le_bytes(read(&memory, address)), 32 * 33 / 2);
    assert_eq!(u32::from_le_bytes(read(&memory, address + 4)), 32);
    assert_eq!((out.v(5, 31), u32::from_le_bytes(read(&memory, address + 8))), (31, 32));
    assert_eq!(f32::from_le_bytes(read(&memory, address + 12)), 16.0);
    assert_eq!(u64::from_le_bytes(read(&memory, address + 16)), 32 * u64::from(u32::MAX));
}

#[test]
fn a_misaligned_atomic_is_a_fault() {
    let (memory, address) = bytes();
    // asm Gfx942
    let program = "
        global_atomic_add v0, v1, s[0:1] ; dd088000 00000100
    ";
    let out = run_with(Gfx942, &memory, program, |wave, _| {
        set_address(wave, 0, address);
        set_lanes(wave, 0, |lane| if lane == 40 { 2 } else { 0 });
    });
    let fault = Fault::Misaligned {
        access: Access::Atomic,
        space: Space::Global,
        address: address + 2,
        size: 4,
        alignment: 4,
    };
    assert_eq!(out.fault, Some((fault, Some(40))));
}

#[test]
fn buffers_clip_at_their_records() {
    let (memory, address) = bytes();
    // asm Gfx1030
    let program = "
        buffer_load_dword v1, v0, s[0:3], 0 offen offset:4 ; e0301004 80000100
        buffer_store_dword v2, v0, s[0:3], s4 offen ; e0701000 04000200
    ";
    let out = run_with(Gfx1030, &memory, program, |wave, _| {
        set_address(wave, 0, address);
        (wave.sgpr[2], wave.sgpr[4]) = (64, 0);
        set_lanes(wave, 0, |lane| lane as u32 * 4);
        set_lanes(wave, 1, |_| 5);
        set_lanes(wave, 2, |_| 0xeeee_eeee);
    });
    assert_eq!(out.fault, None);
    assert_eq!((out.v(1, 14), out.v(1, 15)), (0x3f3e_3d3c, 0));
    assert_eq!(read::<4>(&memory, address + 60), [0xee; 4]);
    assert_eq!(read::<4>(&memory, address + 64), [64, 65, 66, 67]);
}

#[test]
fn loads_to_lds_put_each_lane_behind_m0() {
    let (memory, address) = bytes();
    // asm Gfx942
    let program = "
        s_mov_b32 m0, 0x100 ; befc00ff 00000100
        global_load_lds_dword v0, s[0:1] offset:8 ; dca88008 00000000
        s_mov_b32 m0, 0x200 ; befc00ff 00000200
        global_load_lds_sbyte v0, s[0:1] offset:4 ; dc9c8004 00000000
    ";
    let out = run_with(Gfx942, &memory, program, |wave, _| {
        set_address(wave, 0, address);
        set_lanes(wave, 0, |lane| 3 * lane as u32);
    });
    assert_eq!(out.fault, None);
    let word = |at: usize| u32::from_le_bytes(out.lds[at..at + 4].try_into().unwrap());
    // Lane 50's address is 158; its dword is at M0 + 8 + 4 * 50.
    assert_eq!(word(0x100 + 8 + 200), 0xa1a0_9f9e);
    assert_eq!(word(0x200 + 4 + 200), 0xffff_ff9a);
}

#[test]
fn the_scratch_descriptor_gives_each_lane_its_own_memory() {
    // asm Gfx1030
    let program = "
        buffer_store_dword v0, off, s[0:3], s4 offset:4 ; e0700004 04000000
        buffer_load_dword v1, v2, s[0:3], 0 offen offset:8 ; e0301008 80000102
    ";
    let out = run(Gfx1030, program, |wave, _| {
        // Swizzled, lane number added: what the dispatcher gives a kernel for its stack. The scalar offset counts
        // bytes of all 32 lanes.
        wave.sgpr[0] = wave.scratch_base as u32;
        wave.sgpr[1] = (wave.scratch_base >> 32) as u32 | 1 << 31;
        (wave.sgpr[2], wave.sgpr[3], wave.sgpr[4]) = (u32::MAX, 1 << 23, 8 * 32);
        set_lanes(wave, 0, |lane| lane as u32 + 500);
        set_lanes(wave, 2, |_| 4);
    });
    assert_eq!(out.fault, None);
    assert_eq!((out.v(1, 0), out.v(1, 31)), (500, 531));
}

/// No lane is active: no address is looked at, wherever it leads, and no register is written.
#[test]
fn without_active_lanes_memory_instructions_do_nothing() {
    // asm Gfx1100
    let rdna = "
        s_mov_b32 exec_lo, 0 ; befe0080
        global_load_b32 v0, v[2:3], off ; dc520000 007c0002
        global_store_b32 v[2:3], v0, off ; dc6a0000 007c0002
        global_atomic_add_u32 v0, v[2:3], v1, off glc ; dcd64000 007c0102
        flat_load_b32 v0, v[2:3] ; dc500000 007c0002
        ds_load_b32 v0, v2 ; d8d80000 00000002
        ds_store_b32 v2, v1 ; d8340000 00000102
        ds_add_rtn_u32 v0, v2, v1 ; d8800000 00000102
        ds_permute_b32 v0, v2, v1 ; dac80000 00000102
        ds_bpermute_b32 v0, v2, v1 ; dacc0000 00000102
        buffer_load_b32 v0, v2, s[8:11], 0 offen ; e0500000 80420002
        scratch_load_b32 v0, v2, off ; dc510000 00fc0002
        scratch_store_b32 v2, v1, off ; dc690000 00fc0102
    ";
    // asm Gfx90a
    let cdna = "
        s_mov_b64 exec, 0 ; befe0180
        global_load_dword v0, v[2:3], off ; dc508000 007f0002
        global_store_dword v[2:3], v0, off ; dc708000 007f0002
        global_atomic_add v0, v[2:3], v1, off glc ; dd098000 007f0102
        ds_read_b32 v0, v2 ; d86c0000 00000002
        ds_write_b32 v2, v1 ; d81a0000 00000102
        ds_add_rtn_u32 v0, v2, v1 ; d8400000 00000102
        ds_bpermute_b32 v0, v2, v1 ; d87e0000 00000102
        buffer_load_dword v0, v2, s[8:11], 0 offen ; e0501000 80020002
        scratch_load_dword v0, v2, off ; dc504000 007f0002
    ";
    for (gfx, program) in [(Gfx1100, rdna), (Gfx90a, cdna)] {
        let out = run(gfx, program, |wave, _| {
            set_lanes(wave, 0, |lane| lane as u32 + 7);
            set_lanes(wave, 2, |_| 0xdead_bee1);
            set_lanes(wave, 3, |_| 0x7fff_ffff);
        });
        assert!(out.fault.is_none(), "{gfx}: {:?}", out.fault);
        assert_eq!(out.v(0, 0), 7, "{gfx}");
        assert_eq!(out.v(0, 31), 38, "{gfx}");
    }
}

/// Memory with two allocations of 12 and 28 bytes, in which each byte holds its offset.
fn odd_bytes() -> (Memory, u64, u64) {
    let memory = Memory::new(1 << 24).unwrap();
    let [a, b] = [12, 28].map(|size| {
        let address = memory.alloc(size, None).unwrap();
        memory.write(address, &(0..size as u8).collect::<Vec<u8>>()).unwrap();
        address
    });
    (memory, a, b)
}

/// As compilers widen loads: three dwords to four, seven to eight.
#[test]
fn a_scalar_load_ends_within_the_unit_that_it_is_aligned_to() {
    // asm Gfx90a
    let cdna = "
        s_load_dwordx4 s[8:11], s[0:1], 0x0 ; c00a0200 00000000
        s_load_dwordx8 s[16:23], s[2:3], 0x0 ; c00e0401 00000000
    ";
    // asm Gfx1100
    let gfx11 = "
        s_load_b128 s[8:11], s[0:1], null ; f4080200 f8000000
        s_load_b256 s[16:23], s[2:3], null ; f40c0401 f8000000
        s_buffer_load_b128 s[12:15], s[4:7], null ; f4280302 f8000000
    ";
    // asm Gfx1201
    let gfx12 = "
        s_load_b128 s[8:11], s[0:1], 0x0 ; f4004200 f8000000
        s_load_b256 s[16:23], s[2:3], 0x0 ; f4006401 f8000000
    ";
    let (memory, a, b) = odd_bytes();
    for (gfx, program) in [(Gfx90a, cdna), (Gfx942, cdna), (Gfx1100, gfx11), (Gfx1201, gfx12)] {
        let out = run_with(gfx, &memory, program, |wave, _| {
            set_address(wave, 0, a);
            set_address(wave, 2, b);
            set_address(wave, 4, a);
            wave.sgpr[6] = 16;
        });
        assert_eq!(out.fault, None, "{gfx}");
        assert_eq!([8, 10, 11].map(|register| out.s(register)), [0x0302_0100, 0x0b0a_0908, 0], "{gfx}");
        assert_eq!([22, 23].map(|register| out.s(register)), [0x1b1a_1918, 0], "{gfx}");
        if gfx == Gfx1100 {
            assert_eq!([14, 15].map(|register| out.s(register)), [0x0b0a_0908, 0]);
        }
    }
    // Not aligned, it may reach into the next unit.
    // asm Gfx1100
    let program = "
        s_load_b128 s[8:11], s[0:1], 0x4 ; f4080200 f8000004
    ";
    let out = run_with(Gfx1100, &memory, program, |wave, _| set_address(wave, 0, a));
    assert!(matches!(out.fault(), Fault::OutOfBounds { size: 16, .. }), "{:?}", out.fault);
}

#[test]
fn scalar_stores_reach_memory() {
    // asm Gfx90a
    let cdna = "
        s_store_dword s4, s[0:1], 0x8 ; c0420100 00000008
        s_store_dwordx2 s[4:5], s[0:1], 0x10 ; c0460100 00000010
        s_store_dwordx4 s[4:7], s[0:1], s2 ; c0480100 00000002
        s_buffer_store_dwordx4 s[4:7], s[8:11], 0x20 ; c06a0104 00000020
        s_buffer_store_dword s4, s[8:11], 0x3c ; c0620104 0000003c
        s_scratch_store_dword s4, s[12:13], s3 ; c0540106 00000003
        s_scratch_load_dword s16, s[12:13], s3 ; c0140406 00000003
        s_scratch_load_dwordx2 s[14:15], s[12:13], 0x40 ; c01a0386 00000040
    ";
    // asm Gfx1011
    let gfx10 = "
        s_store_dword s4, s[0:1], 0x8 ; f4400100 fa000008
        s_store_dwordx2 s[4:5], s[0:1], 0x10 ; f4440100 fa000010
        s_store_dwordx4 s[4:7], s[0:1], s2 ; f4480100 04000000
        s_buffer_store_dwordx4 s[4:7], s[8:11], 0x20 ; f4680104 fa000020
        s_buffer_store_dword s4, s[8:11], 0x3c ; f4600104 fa00003c
        s_scratch_store_dword s4, s[12:13], s3 ; f4540106 06000000
        s_scratch_load_dword s16, s[12:13], s3 ; f4140406 06000000
        s_scratch_load_dwordx2 s[14:15], s[12:13], 0x40 ; f4180386 fa000040
    ";
    for (gfx, program) in [(Gfx90a, cdna), (Gfx942, cdna), (Gfx1011, gfx10)] {
        let (memory, address) = bytes();
        let out = run_with(gfx, &memory, program, |wave, _| {
            set_address(wave, 0, address);
            (wave.sgpr[2], wave.sgpr[3]) = (0x40, 2);
            wave.sgpr[4..8].copy_from_slice(&[0x11, 0x22, 0x33, 0x44]);
            set_address(wave, 8, address + 0x80);
            wave.sgpr[10] = 0x28;
            set_address(wave, 12, address + 0x40);
        });
        assert_eq!(out.fault, None, "{gfx}");
        let word = |at: u64| u32::from_le_bytes(read(&memory, address + at));
        assert_eq!([4, 8, 12].map(word), [0x0706_0504, 0x11, 0x0f0e_0d0c], "{gfx}");
        assert_eq!([0x10, 0x14, 0x18].map(word), [0x11, 0x22, 0x1b1a_1918], "{gfx}");
        assert_eq!([0x40, 0x4c, 0x50].map(word), [0x11, 0x44, 0x5352_5150], "{gfx}");
        // The buffer ends 0x28 behind its start.
        assert_eq!([0xa0, 0xa4, 0xa8, 0xbc].map(word), [0x11, 0x22, 0xabaa_a9a8, 0xbfbe_bdbc], "{gfx}");
        // An offset in a register counts 64 bytes.
        assert_eq!((word(0xc0), out.s(16), out.s64(14)), (0x11, 0x11, 0x8786_8584_8382_8180), "{gfx}");
        // The workgroup's scratch memory.
        let own = run_with(gfx, &memory, program, |wave, env| {
            env.scratch = (wave.scratch_base, 64 * 64);
            set_address(wave, 0, address);
            (wave.sgpr[2], wave.sgpr[3], wave.sgpr[4]) = (0x40, 2, 0x99);
            set_address(wave, 8, address);
            set_address(wave, 12, wave.scratch_base);
        });
        assert_eq!((own.fault.as_ref(), own.s(16)), (None, 0x99), "{gfx}");
    }
    // asm Gfx90a
    let program = "
        s_store_dwordx2 s[4:5], s[0:1], 0xfc ; c0460100 000000fc
    ";
    let (memory, address) = bytes();
    let out = run_with(Gfx90a, &memory, program, |wave, _| set_address(wave, 0, address));
    assert!(matches!(out.fault(), Fault::OutOfBounds { access: Access::Write, size: 8, .. }));
}

#[test]
fn scalar_atomics_return_what_was_there() {
    // asm Gfx90a
    let cdna = "
        s_atomic_add s4, s[0:1], 0x8 ; c20a0100 00000008
        s_atomic_add s5, s[0:1], 0x8 glc ; c20b0140 00000008
        s_atomic_umax_x2 s[6:7], s[0:1], 0x10 glc ; c29f0180 00000010
        s_atomic_cmpswap s[12:13], s[0:1], 0x0 glc ; c2070300 00000000
        s_atomic_cmpswap_x2 s[16:19], s[0:1], 0x18 ; c2860400 00000018
        s_atomic_inc s20, s[0:1], 0x20 glc ; c22f0500 00000020
        s_atomic_swap s21, s[0:1], 0x24 glc ; c2030540 00000024
        s_buffer_atomic_sub s22, s[8:11], 0xc glc ; c10f0584 0000000c
        s_buffer_atomic_or s23, s[8:11], 0x40 glc ; c12705c4 00000040
    ";
    // asm Gfx1011
    let gfx10 = "
        s_atomic_add s4, s[0:1], 0x8 ; f6080100 fa000008
        s_atomic_add s5, s[0:1], 0x8 glc ; f6090140 fa000008
        s_atomic_umax_x2 s[6:7], s[0:1], 0x10 glc ; f69d0180 fa000010
        s_atomic_cmpswap s[12:13], s[0:1], null glc ; f6050300 fa000000
        s_atomic_cmpswap_x2 s[16:19], s[0:1], 0x18 ; f6840400 fa000018
        s_atomic_inc s20, s[0:1], 0x20 glc ; f62d0500 fa000020
        s_atomic_swap s21, s[0:1], 0x24 glc ; f6010540 fa000024
        s_buffer_atomic_sub s22, s[8:11], 0xc glc ; f50d0584 fa00000c
        s_buffer_atomic_or s23, s[8:11], 0x40 glc ; f52505c4 fa000040
    ";
    for (gfx, program) in [(Gfx90a, cdna), (Gfx942, cdna), (Gfx1011, gfx10)] {
        let (memory, address) = bytes();
        let out = run_with(gfx, &memory, program, |wave, _| {
            set_address(wave, 0, address);
            set_address(wave, 8, address + 0x80);
            wave.sgpr[10] = 0x28;
            wave.sgpr[4..8].copy_from_slice(&[5, 6, u32::MAX, u32::MAX]);
            wave.sgpr[12..14].copy_from_slice(&[0x77, 0x0302_0100]);
            wave.sgpr[16..20].copy_from_slice(&[0x88, 0, 0x1b1a_1918, 0x1f1e_1d1c]);
            wave.sgpr[20..24].copy_from_slice(&[0x10, 0x21, 1, 0xff]);
        });
        assert_eq!(out.fault, None, "{gfx}");
        let word = |at: u64| u32::from_le_bytes(read(&memory, address + at));
        // Without `glc` the register stays.
        assert_eq!((out.s(4), out.s(5), word(8)), (5, 0x0b0a_0908 + 5, 0x0b0a_0908 + 11), "{gfx}");
        assert_eq!((out.s64(6), word(0x10)), (0x1716_1514_1312_1110, u32::MAX), "{gfx}");
        assert_eq!((out.s(12), out.s(13), word(0)), (0x0302_0100, 0x0302_0100, 0x77), "{gfx}");
        assert_eq!((out.s(16), word(0x18), word(0x1c)), (0x88, 0x88, 0), "{gfx}");
        // The limit is below what is there, which so becomes zero.
        assert_eq!((out.s(20), word(0x20)), (0x2322_2120, 0), "{gfx}");
        assert_eq!((out.s(21), word(0x24)), (0x2726_2524, 0x21), "{gfx}");
        assert_eq!((out.s(22), word(0x8c)), (0x8f8e_8d8c, 0x8f8e_8d8b), "{gfx}");
        // Beyond the records.
        assert_eq!((out.s(23), word(0xc0)), (0, 0xc3c2_c1c0), "{gfx}");
    }
}

/// Zeros of both signs are equal and a NaN is not equal to itself: what there is, and what it is compared with.
const FLOATS: [(f64, f64, bool); 4] =
    [(-0.0, 0.0, true), (f64::NAN, f64::NAN, false), (1.0, 1.0, true), (2.0, 3.0, false)];

#[test]
fn compare_and_swap_of_floats_compares_floats() {
    // asm Gfx1030
    let gfx10 = "
        global_atomic_fcmpswap v4, v0, v[2:3], s[0:1] glc ; dcf98000 04000200
        global_atomic_fcmpswap_x2 v[12:13], v1, v[8:11], s[0:1] glc ; dd798000 0c000801
        flat_atomic_fcmpswap v5, v[14:15], v[2:3] glc ; dcf90000 057d020e
        buffer_atomic_fcmpswap v[2:3], v0, s[4:7], 0 offen glc ; e0f85000 80010200
        buffer_atomic_fcmpswap_x2 v[8:11], v1, s[4:7], 0 offen glc ; e1785000 80010801
    ";
    // asm Gfx1100
    let gfx11 = "
        global_atomic_cmpswap_f32 v4, v0, v[2:3], s[0:1] glc ; dd424000 04000200
    ";
    for (gfx, program) in [(Gfx1030, gfx10), (Gfx1011, gfx10), (Gfx1100, gfx11), (Gfx1151, gfx11)] {
        let (memory, address) = bytes();
        let (single, double) = (|x: f64| (x as f32).to_bits(), |x: f64| x.to_bits());
        // Two places for the 32-bit ones with addresses of their own, two for the others.
        for (n, (there, ..)) in FLOATS.into_iter().enumerate() {
            for at in [0, 0x20, 0x80] {
                memory.write(address + at + n as u64 * 4, &single(there).to_le_bytes()).unwrap();
            }
            for at in [0x40, 0xc0] {
                memory.write(address + at + n as u64 * 8, &double(there).to_le_bytes()).unwrap();
            }
        }
        let out = run_with(gfx, &memory, program, |wave, _| {
            wave.sgpr[usize::from(slot::EXEC)] = 0xf;
            set_address(wave, 0, address);
            set_address(wave, 4, address + 0x80);
            wave.sgpr[6] = 0x80;
            set_lanes(wave, 0, |lane| lane as u32 * 4);
            set_lanes(wave, 1, |lane| 0x40 + lane as u32 * 8);
            set_lanes(wave, 2, |_| single(5.0));
            set_lanes(wave, 3, |lane| single(FLOATS[lane % 4].1));
            let (new, compare) = (double(5.0), |lane: usize| double(FLOATS[lane % 4].1));
            set_lanes(wave, 8, |_| new as u32);
            set_lanes(wave, 9, |_| (new >> 32) as u32);
            set_lanes(wave, 10, |lane| compare(lane) as u32);
            set_lanes(wave, 11, |lane| (compare(lane) >> 32) as u32);
            set_lanes(wave, 14, |lane| (address + 0x20) as u32 + lane as u32 * 4);
            set_lanes(wave, 15, |_| (address >> 32) as u32);
        });
        assert_eq!(out.fault, None, "{gfx}");
        for (n, (there, _, swaps)) in FLOATS.into_iter().enumerate() {
            let value = if swaps { 5.0 } else { there };
            let word = |at: u64| u32::from_le_bytes(read(&memory, address + at + n as u64 * 4));
            assert_eq!((out.v(4, n), word(0)), (single(there), single(value)), "{gfx}, {there}");
            if gfx.generation() == Generation::Gfx11 {
                continue;
            }
            let wide = |at: u64| u64::from_le_bytes(read(&memory, address + at + n as u64 * 8));
            let pair = |v: u16| u64::from(out.v(v, n)) | u64::from(out.v(v + 1, n)) << 32;
            assert_eq!((pair(12), wide(0x40)), (double(there), double(value)), "{gfx}, {there}");
            assert_eq!((out.v(5, n), word(0x20)), (single(there), single(value)), "{gfx}, flat {there}");
            assert_eq!((out.v(2, n), word(0x80)), (single(there), single(value)), "{gfx}, buffer {there}");
            assert_eq!((pair(8), wide(0xc0)), (double(there), double(value)), "{gfx}, buffer {there}");
        }
    }
}

#[test]
fn a_block_is_moved_as_far_as_m0_says() {
    let (memory, address) = bytes();
    // asm Gfx1201
    let program = "
        s_mov_b32 m0, 0x80000005 ; befd00ff 80000005
        global_load_block v[4:35], v0, s[0:1] offset:4 ; ee14c000 00000004 00000400
        scratch_store_block v1, v[4:35], off ; ed15007c 02020000 00000001
    ";
    let out = run_with(Gfx1201, &memory, program, |wave, _| {
        set_address(wave, 0, address);
        set_lanes(wave, 0, |lane| lane as u32);
        (5..35).filter(|&n| n != 6).for_each(|register| set_lanes(wave, register, |_| 0x55));
    });
    let byte = |at: u32| at | (at + 1) << 8 | (at + 2) << 16 | (at + 3) << 24;
    assert_eq!([4, 5, 6, 34].map(|v| out.v(v, 7)), [byte(4 + 7), 0x55, byte(4 + 8 + 7), 0x55]);
    assert_eq!(out.v(35, 7), byte(4 + 124 + 7));
    // Dword 31 is beyond the 64 bytes of a lane, but only it.
    let beyond = Fault::ScratchOutOfBounds { access: Access::Write, offset: 124, size: 4, limit: 64 };
    assert_eq!(out.fault, Some((beyond, Some(0))));
    let program = "
        s_mov_b32 m0, 5 ; befd0085
        scratch_store_block v1, v[4:35], off ; ed15007c 02020000 00000001
        scratch_load_block v[40:71], v1, off ; ed14c07c 00020028 00000001
        global_store_block v0, v[4:35], s[0:1] offset:4 ; ee150000 02000000 00000400
    ";
    let out = run_with(Gfx1201, &memory, program, |wave, _| {
        wave.sgpr[usize::from(slot::EXEC)] = 2;
        set_address(wave, 0, address);
        (4..36)
            .for_each(|register| set_lanes(wave, register, |lane| 100 * lane as u32 + u32::from(register)));
    });
    assert_eq!(out.fault, None);
    assert_eq!([40, 41, 42].map(|v| out.v(v, 1)), [104, 0, 106]);
    assert_eq!(out.v(40, 0), 0);
    let word = |at: u64| u32::from_le_bytes(read(&memory, address + at));
    assert_eq!([0, 4, 8, 12, 16].map(word), [byte(0), 104, byte(8), 106, byte(16)]);
    // Nothing is accessed where M0 has no bit.
    for (m0, faults) in [("s_mov_b32 m0, 1 ; befd0081", false), ("s_mov_b32 m0, 2 ; befd0082", true)] {
        let load = "global_load_block v[4:35], v0, s[0:1] offset:4 ; ee14c000 00000004 00000400";
        let out = run_with(Gfx1201, &memory, &format!("{m0}\n{load}"), |wave, _| {
            set_address(wave, 0, address);
            set_lanes(wave, 0, |_| 248);
        });
        assert_eq!(out.fault.is_some(), faults, "{m0}");
    }
}

/// 32 rows of eight elements are transposed in groups of lanes.
#[test]
fn loads_transpose_between_lanes() {
    let memory = Memory::new(1 << 24).unwrap();
    let address = memory.alloc(512, None).unwrap();
    let halves: Vec<u8> = (0..256u16).flat_map(u16::to_le_bytes).collect();
    memory.write(address, &halves).unwrap();
    // asm Gfx1201
    let program = "
        global_load_tr_b128 v[4:7], v0, s[0:1] ; ee15c000 00000004 00000000
    ";
    let out = run_with(Gfx1201, &memory, program, |wave, _| {
        set_address(wave, 0, address);
        set_lanes(wave, 0, |lane| 16 * lane as u32);
    });
    assert_eq!(out.fault, None);
    // Lane 13 has element 5 of lanes 8 to 15.
    assert_eq!(
        [4, 5, 6, 7].map(|v| out.v(v, 13)),
        [69 | 77 << 16, 85 | 93 << 16, 101 | 109 << 16, 117 | 125 << 16]
    );
    memory.write(address, &(0..=255).collect::<Vec<u8>>()).unwrap();
    let program = "
        global_load_tr_b64 v[4:5], v0, s[0:1] ; ee160000 00000004 00000000
    ";
    let set_up = |wave: &mut Wave| {
        set_address(wave, 0, address);
        set_lanes(wave, 0, |lane| 8 * lane as u32);
    };
    let out = run_with(Gfx1201, &memory, program, |wave, _| set_up(wave));
    assert_eq!(out.fault, None);
    // Lane 13 has element 5 of lanes 4 to 7 and 12 to 15; lane 16 element 0 of lanes 16 to 19 and 24 to 27.
    let bytes = |v: [u32; 4]| v[0] | v[1] << 8 | v[2] << 16 | v[3] << 24;
    assert_eq!([4, 5].map(|v| out.v(v, 13)), [bytes([37, 45, 53, 61]), bytes([101, 109, 117, 125])]);
    assert_eq!([4, 5].map(|v| out.v(v, 16)), [bytes([128, 136, 144, 152]), bytes([192, 200, 208, 216])]);
    // What waves of 64 lanes get is not published.
    let out = run_with(Gfx1201, &memory, program, |wave, _| {
        *wave = Wave::new(64);
        wave.sgpr[usize::from(slot::EXEC)] = 1;
        set_up(wave);
    });
    assert!(matches!(out.fault(), Fault::Unsupported { .. }), "{:?}", out.fault);
}
