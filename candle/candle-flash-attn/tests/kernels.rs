//! The kernels beside attention in `f64`.

mod common;

use candle_flash_attn::launch::{Type, Way};
use common::{Case, Layout};
use proptest::prelude::*;

const TYPES: [Type; 2] = [Type::F16, Type::Bf16];

/// Head sizes that have a kernel of their own, and one between each two.
const DIMENSIONS: [usize; 13] = [8, 32, 40, 64, 72, 96, 104, 128, 160, 192, 256, 264, 512];

#[test]
fn every_head_size_of_both_types() {
    for ty in TYPES {
        for dim in DIMENSIONS {
            let case = Case { ty, dim, scale: 1.0 / (dim as f32).sqrt(), ..Case::default() };
            let forward = Case { way: Way::Forward, lengths: vec![[35, 67]], right: Some(0), ..case.clone() };
            forward.check().unwrap();
            let few = Case { way: Way::Split(2), lengths: vec![[2, 300]], group: 3, ..case };
            few.check().unwrap();
        }
    }
}

#[test]
fn queries_without_keys_have_zeros() {
    // The first three queries are before all keys.
    for way in [Way::Forward, Way::Split(1), Way::Split(3)] {
        let case = Case { way, lengths: vec![[7, 4]], right: Some(0), ..Case::default() };
        case.check().unwrap();
        Case { lengths: vec![[3, 0], [0, 5], [2, 40]], memory: Layout::Packed, ..case }.check().unwrap();
    }
}

#[test]
fn a_window_ends_where_it_says() {
    // Around the borders of a tile, where a mask that is off by one shows.
    for way in [Way::Forward, Way::Split(1)] {
        for (left, right) in
            [(Some(63), None), (Some(64), Some(0)), (None, Some(31)), (Some(0), Some(0)), (Some(1), Some(2))]
        {
            let case = Case { way, lengths: vec![[66, 130]], left, right, dim: 32, ..Case::default() };
            case.check().unwrap();
        }
    }
}

#[test]
fn scores_that_grow_are_rescaled() {
    // Large scores: each tile has a greater maximum than the one before for some query.
    for ty in TYPES {
        for way in [Way::Forward, Way::Split(2)] {
            let case = Case { ty, way, lengths: vec![[20, 600]], scale: 3.0, dim: 32, ..Case::default() };
            case.check().unwrap();
        }
    }
}

fn memory() -> impl Strategy<Value = Layout> {
    prop_oneof![
        Just(Layout::Dense),
        (0_usize..3).prop_map(|gap| Layout::HeadsFirst(8 * gap)),
        Just(Layout::Packed),
        prop_oneof![Just(32_usize), Just(96), Just(256)].prop_map(Layout::Paged),
    ]
}

fn way() -> impl Strategy<Value = Way> {
    prop_oneof![Just(Way::Auto), Just(Way::Forward), (1_u32..5).prop_map(Way::Split)]
}

fn window() -> impl Strategy<Value = Option<usize>> {
    prop_oneof![2 => Just(None), 2 => Just(Some(0)), 3 => (1_usize..90).prop_map(Some)]
}

prop_compose! {
    fn case()(
        (memory, lengths) in (memory(), prop::collection::vec((0_usize..80, 0_usize..200), 1..4)),
        way in way(),
        ty in prop::sample::select(TYPES.to_vec()),
        (kv_heads, group) in (1_usize..3, prop::sample::select(vec![1_usize, 2, 3, 8])),
        dim in prop::sample::select(DIMENSIONS.to_vec()),
        (left, right) in (window(), window()),
        scale in prop_oneof![8 => 0.01_f32..0.5, 1 => -0.3_f32..0.0],
        softcap in prop_oneof![3 => Just(0.0_f32), 1 => 0.5_f32..30.0],
        sloped in any::<bool>(),
        ranges in prop::collection::vec((-4_i32..150, 0_i32..60).prop_map(|(from, count)| [from.max(0), from.max(0) + count]), 0..3),
        seed in any::<u64>(),
    ) -> Case {
        let dense = matches!(memory, Layout::Dense | Layout::HeadsFirst(_));
        let first = lengths[0];
        // Elements of the f64 model's work are bounded, so that large heads have few of them.
        let most = 4096 / dim.max(32) + 8;
        let lengths = lengths
            .iter()
            .map(|&(q, k)| if dense { first } else { (q, k) })
            .map(|(q, k)| [q.min(most), k])
            .collect();
        Case { ty, way, lengths, kv_heads, group, dim, left, right, scale, softcap, sloped, ranges, memory, seed }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, max_shrink_iters: 64, ..ProptestConfig::default() })]
    #[test]
    fn any_attention_is_that_of_the_model(case in case()) {
        prop_assert_eq!(case.check(), Ok(()));
    }
}
