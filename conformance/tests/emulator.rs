//! The emulator beside itself, and beside one that is wrong.

use std::collections::HashSet;

use amdgpu_conformance::operation::{Group, Operation, operations};
use amdgpu_conformance::{
    Accuracy, Emulated, Executor, Launch, Options, Verdict, compare, inputs, object, targets,
};
use amdgpu_emulator::{Gfx, listing};

/// An emulated device whose results are changed.
struct Altered<F>(Emulated, F);

impl<F: FnMut(&mut Vec<u32>)> Executor for Altered<F> {
    fn run(&mut self, kernel: &str, launch: Launch<'_>) -> Result<Vec<u32>, String> {
        let mut words = self.0.run(kernel, launch)?;
        self.1(&mut words);
        Ok(words)
    }
}

fn device(gfx: Gfx) -> Emulated {
    Emulated::new(gfx, &object(gfx).expect("a target of this build")).expect("a device")
}

fn find(gfx: Gfx, name: &str) -> Operation {
    operations(gfx).into_iter().find(|operation| operation.name == name).expect(name)
}

const FEW: Options = Options { cases: 64, seed: 1, differences: 10 };

#[test]
fn the_emulator_equals_itself_in_every_operation() {
    for gfx in targets() {
        let (mut first, mut second) = (device(gfx), device(gfx));
        for mut operation in operations(gfx) {
            operation.modes.truncate(2);
            let found = compare(&operation, &mut first, &mut second, FEW);
            let errors: Vec<_> = found.runs.iter().filter_map(|run| run.error.as_deref()).collect();
            assert_eq!(found.verdict, Verdict::Equal, "{gfx} {}: {errors:?}", operation.name);
            assert!(found.runs.iter().all(|run| run.cases >= 64), "{gfx} {}", operation.name);
        }
    }
}

#[test]
fn one_bit_is_found_and_told() {
    for gfx in targets() {
        let operation = find(gfx, "v_mul_lo_u32");
        let mut wrong = Altered(device(gfx), |words: &mut Vec<u32>| words[5] ^= 0x100);
        let found = compare(&operation, &mut wrong, &mut device(gfx), FEW);
        let run = &found.runs[0];
        assert_eq!((found.verdict, run.differing, run.kinds.bits), (Verdict::Different, 1, 1));
        let difference = &run.differences[0];
        let [first, second] =
            [&difference.first, &difference.second].map(|hex| u32::from_str_radix(hex, 16).expect(hex));
        assert_eq!((difference.lane, first ^ second), (5, 0x100));
        let words = &inputs(&operation, FEW.cases, FEW.seed).words[5 * operation.input_words()..];
        assert_eq!(words[1].wrapping_mul(words[2]), second, "the inputs are those of the lane");
        assert_eq!(difference.inputs[1], [format!("{:08x}", words[1])]);
    }
}

#[test]
fn an_error_that_is_allowed_is_close_and_a_larger_one_is_not() {
    let Some(gfx) = targets().next() else { return };
    // Near one no result is at an edge.
    let shifted = |by: u32| {
        move |words: &mut Vec<u32>| {
            let normal = |word: &&mut u32| (0x3000_0000..0x4f00_0000).contains(*word);
            words.iter_mut().filter(normal).for_each(|word| *word += by);
        }
    };
    let of = |name: &str, by: u32| {
        compare(&find(gfx, name), &mut Altered(device(gfx), shifted(by)), &mut device(gfx), FEW)
    };
    assert_eq!(find(gfx, "v_rcp_f32").accuracy, Accuracy::Ulps(1));
    let one = of("v_rcp_f32", 1);
    assert_eq!((one.verdict, one.runs[0].largest_ulps), (Verdict::Close, Some(1)));
    assert!(one.runs[0].differing > 10);
    assert_eq!(of("v_rcp_f32", 2).verdict, Verdict::Different);
    assert_eq!(of("v_add_f32", 1).verdict, Verdict::Different);
    // Differences beyond those that are kept are counted.
    let many = of("v_add_f32", 1);
    let run = &many.runs[0];
    assert_eq!((run.differences.len(), run.differing as u64), (10, 10 + run.left_out));
}

#[test]
fn a_device_that_fails_fails_the_operation() {
    struct Broken;
    impl Executor for Broken {
        fn run(&mut self, _: &str, _: Launch<'_>) -> Result<Vec<u32>, String> {
            Err("the device is lost".to_owned())
        }
    }
    let Some(gfx) = targets().next() else { return };
    let found = compare(&find(gfx, "v_add_f32"), &mut device(gfx), &mut Broken, FEW);
    assert_eq!(found.verdict, Verdict::Failed);
    assert_eq!(found.runs[0].error.as_deref(), Some("second device: the device is lost"));
}

#[test]
fn the_perturbed_emulator_is_close_where_the_manuals_leave_results_open() {
    // What the emulator moves by an ULP under perturbation are the instructions that are marked here.
    for gfx in Gfx::ISAS {
        for operation in operations(gfx) {
            let open =
                ["v_rcp_f32", "v_rsq_f32", "v_sqrt_f32", "v_exp_f32", "v_log_f32", "v_sin_f32", "v_cos_f32"];
            if open.contains(&operation.name.as_str()) {
                assert_eq!(operation.accuracy, Accuracy::Ulps(1), "{gfx} {}", operation.name);
            }
            let exact = ["v_add_f32", "v_fma_f64", "v_div_fixup_f32", "v_frexp_exp_i32_f32", "v_cvt_f16_f32"];
            if exact.contains(&operation.name.as_str()) {
                assert_eq!(operation.accuracy, Accuracy::Exact, "{gfx} {}", operation.name);
            }
        }
    }
}

#[test]
fn operations_have_names_of_their_own_and_every_group_has_some() {
    for gfx in Gfx::ISAS {
        let list = operations(gfx);
        let mut names: Vec<_> = list.iter().map(|operation| operation.kernel.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), list.len(), "{gfx}");
        for group in Group::ALL {
            let has_matrices = !matches!(gfx, Gfx::Gfx906 | Gfx::Gfx1010 | Gfx::Gfx1011 | Gfx::Gfx1030);
            let expected = match group {
                Group::Matrix => has_matrices,
                Group::Dot => gfx != Gfx::Gfx1010,
                _ => true,
            };
            let there = list.iter().any(|operation| operation.group == group);
            assert_eq!(there, expected, "{gfx} {}", group.name());
        }
    }
}

#[test]
fn most_instructions_of_each_target_are_compared() {
    for gfx in Gfx::ISAS {
        let list = operations(gfx);
        let sections =
            ["vop1", "vop2", "vopc", "vop3", "vop3p", "mai", "sop1", "sop2", "sopc", "ds", "global"];
        let all: Vec<_> =
            listing::instructions(gfx).into_iter().filter(|l| sections.contains(&l.section)).collect();
        let words: HashSet<&str> = list
            .iter()
            .flat_map(|operation| operation.name.split([' ', ',']))
            .flat_map(|word| [word, word.strip_suffix("_dpp").unwrap_or(word)])
            .collect();
        let missing: Vec<&str> =
            all.iter().map(|listed| listed.name).filter(|name| !words.contains(name)).collect();
        assert!(
            missing.len() * 8 < all.len(),
            "{gfx}: {} of {} are not compared: {missing:?}",
            missing.len(),
            all.len()
        );
    }
}

#[test]
fn a_target_that_was_not_built_says_how_to_build_it() {
    let built: Vec<Gfx> = targets().collect();
    if let Some(gfx) = Gfx::ISAS.into_iter().find(|gfx| !built.contains(gfx)) {
        let error = object(gfx).expect_err("it was not built");
        assert!(error.contains(&format!("not for {gfx}: build with CANDLE_AMDGPU_ARCHS={gfx}")), "{error}");
    }
}
