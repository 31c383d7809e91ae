use super::*;
use crate::fault::{Access, Space};
use Gfx::{Gfx90a, Gfx1030, Gfx1100};

fn word(lds: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(lds[at..at + 4].try_into().unwrap())
}

#[test]
fn stores_and_loads_of_every_width_meet() {
    // asm Gfx1100
    let program = "
        ds_store_b32 v0, v1 offset:16 ; d8340010 00000100
        ds_load_b32 v2, v0 offset:16 ; d8d80010 02000000
        ds_load_u8 v3, v0 offset:17 ; d8e80011 03000000
        ds_load_i16 v4, v0 offset:16 ; d8ec0010 04000000
        ds_load_u16_d16_hi v5, v0 offset:16 ; da9c0010 05000000
    ";
    let out = run(Gfx1100, program, |wave, _| {
        set_lanes(wave, 0, |lane| lane as u32 * 4);
        set_lanes(wave, 1, |lane| 0x8081_8283 + lane as u32);
        set_lanes(wave, 5, |_| 0x1234);
    });
    assert_eq!(out.fault, None);
    let value = 0x8081_8283 + 9;
    assert_eq!((out.v(2, 9), out.v(3, 9)), (value, value >> 8 & 0xff));
    assert_eq!((out.v(4, 9), out.v(5, 9)), (value & 0xffff | 0xffff_0000, value << 16 | 0x1234));
    assert_eq!(word(&out.lds, 16 + 36), value);
}

#[test]
fn two_addresses_are_scaled_by_the_element() {
    // asm Gfx90a
    let program = "
        ds_write2_b32 v0, v1, v2 offset0:1 offset1:130 ; d81c8201 00020100
        ds_read2st64_b32 v[4:5], v3 offset1:1 ; d8700100 04000003
        ds_read2_b64 v[6:9], v3 offset0:1 offset1:2 ; d8ee0201 06000003
    ";
    let out = run(Gfx90a, program, |wave, env| {
        set_lanes(wave, 0, |lane| if lane < 32 { lane as u32 * 8 } else { 0 });
        set_lanes(wave, 1, |lane| lane as u32);
        set_lanes(wave, 2, |lane| 1000 + lane as u32);
        wave.sgpr[127] = 0;
        for (n, cell) in env.lds.chunks_mut(4).enumerate() {
            cell.copy_from_slice(&(n as u32 + 7000).to_le_bytes());
        }
    });
    assert_eq!(out.fault, None);
    assert_eq!((word(&out.lds, 4 + 8 * 5), word(&out.lds, 130 * 4 + 8 * 5)), (5, 1005));
    assert_eq!((out.v(4, 0), out.v(5, 0)), (7000, 7064));
    assert_eq!((out.v(6, 0), out.v(8, 0)), (7002, 7004));
}

#[test]
fn beyond_the_workgroups_lds_is_a_fault() {
    // asm Gfx1030
    let program = "
        ds_write_b64 v0, v[2:3] offset:8 ; d9340008 00000200
    ";
    let out = run(Gfx1030, program, |wave, _| set_lanes(wave, 0, |lane| if lane == 3 { 1012 } else { 0 }));
    let fault = Fault::LdsOutOfBounds { access: Access::Write, offset: 1020, size: 8, limit: 1024 };
    assert_eq!(out.fault, Some((fault, Some(3))));
    let out = run(Gfx1030, program, |wave, _| {
        set_lanes(wave, 0, |lane| if lane == 3 { 1012 } else { 0 });
        wave.sgpr[usize::from(slot::EXEC)] = !8;
    });
    assert_eq!(out.fault, None);
}

#[test]
fn atomics_return_what_was_there() {
    // asm Gfx1100
    let program = "
        ds_add_rtn_u32 v2, v0, v1 ; d8800000 02000100
        ds_min_i32 v0, v3 offset:4 ; d8140004 00000300
        ds_cmpstore_rtn_b32 v4, v0, v5, v6 offset:8 ; d8c00008 04060500
    ";
    let out = run(Gfx1100, program, |wave, _| {
        set_lanes(wave, 1, |_| 2);
        set_lanes(wave, 3, |lane| (-(lane as i32)) as u32);
        set_lanes(wave, 5, |lane| lane as u32 + 1);
        set_lanes(wave, 6, |lane| lane as u32);
    });
    assert_eq!((out.v(2, 31), word(&out.lds, 0)), (62, 64));
    assert_eq!(word(&out.lds, 4) as i32, -31);
    assert_eq!((out.v(4, 31), word(&out.lds, 8)), (31, 32));
    // Before gfx11 the comparand is the first of the two data operands.
    // asm Gfx1030
    let program = "
        ds_cmpst_rtn_b32 v4, v0, v6, v5 offset:8 ; d8c00008 04050600
    ";
    let out = run(Gfx1030, program, |wave, _| {
        set_lanes(wave, 5, |lane| lane as u32 + 1);
        set_lanes(wave, 6, |lane| lane as u32);
    });
    assert_eq!((out.v(4, 31), word(&out.lds, 8)), (31, 32));
    // asm Gfx1030
    let program = "
        ds_add_u32 v0, v1 offset:2 ; d8000002 00000100
    ";
    let out = run(Gfx1030, program, |_, _| {});
    let (access, space) = (Access::Atomic, Space::Lds);
    let fault = Fault::Misaligned { access, space, address: 2, size: 4, alignment: 4 };
    assert_eq!(out.fault, Some((fault, Some(0))));
}

#[test]
fn permutes_wrap_around_and_skip_inactive_lanes() {
    // asm Gfx1100
    let program = "
        ds_bpermute_b32 v2, v0, v1 ; dacc0000 02000100
        ds_permute_b32 v3, v0, v1 ; dac80000 03000100
    ";
    let out = run(Gfx1100, program, |wave, _| {
        set_lanes(wave, 0, |lane| ((lane as u32 + 1) * 4) + if lane == 5 { 128 } else { 0 });
        set_lanes(wave, 1, |lane| 100 + lane as u32);
        wave.sgpr[usize::from(slot::EXEC)] = !(1 << 7);
    });
    // Lane n pulls from n + 1; 31 wraps to 0, and lane 7 is off.
    assert_eq!((out.v(2, 0), out.v(2, 5), out.v(2, 31)), (101, 106, 100));
    assert_eq!((out.v(2, 6), out.v(2, 7)), (0, 0));
    // Lane n pushes to n + 1; nobody pushes to lane 8, for lane 7 is off.
    assert_eq!((out.v(3, 1), out.v(3, 6), out.v(3, 0), out.v(3, 8)), (100, 105, 131, 0));
}

#[test]
fn swizzles_follow_their_pattern() {
    // asm Gfx1100
    let program = "
        ds_swizzle_b32 v1, v0 offset:swizzle(QUAD_PERM,3,2,1,0) ; d8d4801b 01000000
        ds_swizzle_b32 v2, v0 offset:swizzle(SWAP,16) ; d8d4401f 02000000
        ds_swizzle_b32 v3, v0 offset:swizzle(REVERSE,8) ; d8d41c1f 03000000
        ds_swizzle_b32 v4, v0 offset:swizzle(BROADCAST,32,5) ; d8d400a0 04000000
    ";
    let out = run(Gfx1100, program, |wave, _| set_lanes(wave, 0, |lane| lane as u32));
    for lane in 0..32 {
        assert_eq!(out.v(1, lane), lane as u32 ^ 3);
        assert_eq!(out.v(2, lane), lane as u32 ^ 16);
        assert_eq!(out.v(3, lane), lane as u32 ^ 7);
        assert_eq!(out.v(4, lane), 5);
    }
}

/// Zeros of both signs are equal, and a NaN is not equal to itself.
#[test]
fn compare_and_store_of_floats_compares_floats() {
    // asm Gfx90a
    let cdna = "
        ds_cmpst_rtn_f32 v4, v0, v1, v2 ; d8620000 04020100
        ds_cmpst_rtn_f64 v[6:7], v3, v[8:9], v[10:11] ; d8e20000 060a0803
    ";
    // asm Gfx1030
    let gfx10 = "
        ds_cmpst_rtn_f32 v4, v0, v1, v2 ; d8c40000 04020100
        ds_cmpst_rtn_f64 v[6:7], v3, v[8:9], v[10:11] ; d9c40000 060a0803
    ";
    // The sources have changed places.
    // asm Gfx1100
    let gfx11 = "
        ds_cmpstore_rtn_f32 v4, v0, v2, v1 ; d8c40000 04010200
        ds_cmpstore_rtn_f64 v[6:7], v3, v[10:11], v[8:9] ; d9c40000 06080a03
    ";
    let floats = [(-0.0, 0.0, true), (f64::NAN, f64::NAN, false), (1.0, 1.0, true), (2.0, 3.0, false)];
    let (single, double) = (|x: f64| (x as f32).to_bits(), |x: f64| x.to_bits());
    for (gfx, program) in [(Gfx90a, cdna), (Gfx1030, gfx10), (Gfx1100, gfx11)] {
        let out = run(gfx, program, |wave, env| {
            wave.sgpr[usize::from(slot::EXEC)] = 0xf;
            wave.sgpr[usize::from(slot::EXEC) + 1] = 0;
            for (n, (there, ..)) in floats.into_iter().enumerate() {
                env.lds[n * 4..][..4].copy_from_slice(&single(there).to_le_bytes());
                env.lds[0x40 + n * 8..][..8].copy_from_slice(&double(there).to_le_bytes());
            }
            set_lanes(wave, 0, |lane| lane as u32 * 4);
            set_lanes(wave, 3, |lane| 0x40 + lane as u32 * 8);
            let compare = |lane: usize| floats[lane % 4].1;
            set_lanes(wave, 1, |lane| single(compare(lane)));
            set_lanes(wave, 2, |_| single(5.0));
            set_lanes(wave, 8, |lane| double(compare(lane)) as u32);
            set_lanes(wave, 9, |lane| (double(compare(lane)) >> 32) as u32);
            set_lanes(wave, 11, |_| (double(5.0) >> 32) as u32);
        });
        assert_eq!(out.fault, None, "{gfx}");
        for (n, (there, _, swaps)) in floats.into_iter().enumerate() {
            let value = if swaps { 5.0 } else { there };
            assert_eq!(
                (out.v(4, n), word(&out.lds, n * 4)),
                (single(there), single(value)),
                "{gfx}, {there}"
            );
            let wide = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
            let stored = wide(word(&out.lds, 0x40 + n * 8), word(&out.lds, 0x44 + n * 8));
            assert_eq!(
                (wide(out.v(6, n), out.v(7, n)), stored),
                (double(there), double(value)),
                "{gfx}, {there}"
            );
        }
    }
}

/// One wave takes what it has given, and is alone at a barrier; whether waves wait, `launch` has.
#[test]
fn global_sync_counts_credits() {
    // asm Gfx90a
    let cdna = "
        ds_gws_init v0 offset:63 gds ; d933003f 00000000
        ds_gws_barrier v0 offset:63 gds ; d93b003f 00000000
        ds_gws_sema_v gds ; d9350000 00000000
        ds_gws_sema_p gds ; d9390000 00000000
        ds_gws_sema_br v2 gds ; d9370000 00000002
        ds_gws_sema_p gds ; d9390000 00000000
        ds_gws_sema_p gds ; d9390000 00000000
        ds_gws_sema_release_all gds ; d9310000 00000000
    ";
    // asm Gfx1030
    let gfx10 = "
        ds_gws_init v0 offset:63 gds ; d866003f 00000000
        ds_gws_barrier v0 offset:63 gds ; d876003f 00000000
        ds_gws_sema_v gds ; d86a0000 00000000
        ds_gws_sema_p gds ; d8720000 00000000
        ds_gws_sema_br v2 gds ; d86e0000 00000002
        ds_gws_sema_p gds ; d8720000 00000000
        ds_gws_sema_p gds ; d8720000 00000000
        ds_gws_sema_release_all gds ; d8620000 00000000
    ";
    for (gfx, program) in [(Gfx90a, cdna), (Gfx::Gfx942, cdna), (Gfx1030, gfx10), (Gfx1100, gfx10)] {
        let out = run(gfx, program, |wave, _| set_lanes(wave, 2, |_| 2));
        assert_eq!(out.fault, None, "{gfx}");
    }
}
