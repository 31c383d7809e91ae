//! Every instance of every family on every target, on random inputs, against the host models.
//!
//! The seed is fixed, so that a failure repeats, and one more run has a random seed, which is printed.
//! `VERIFY_CASES` says how many random cases each kernel gets.

mod common;

use candle_amdgpu::{Device, kernels};
use candle_amdgpu_verify::{FAMILIES, Family, Options, Outcome, verify_all};
use std::hash::{BuildHasher, RandomState};

fn cases() -> u32 {
    std::env::var("VERIFY_CASES").map_or(4, |n| n.parse().expect("VERIFY_CASES is a number"))
}

fn check(arch: &str, options: Options) {
    println!("seed {}", options.seed);
    let device = common::device(arch);
    let jobs: Vec<(&dyn Family, _, &Device)> = FAMILIES
        .iter()
        .flat_map(|&family| family.module().kernels().iter().map(move |kernel| (family, kernel)))
        .map(|(family, kernel)| (family, kernel, &device))
        .collect();
    let outcomes = verify_all(&jobs, options, &|_| {}).expect("the device works");
    let failed: Vec<&Outcome> = outcomes.iter().filter(|outcome| outcome.failure.is_some()).collect();
    for outcome in &failed {
        println!("{} on {}:\n{}\n", outcome.kernel, outcome.arch, outcome.failure.as_deref().unwrap_or(""));
    }
    assert!(failed.is_empty(), "{} of {} kernels are wrong on {arch}", failed.len(), outcomes.len());
    let least = u64::from(options.cases) + u64::from(options.fixed);
    assert!(outcomes.iter().all(|outcome| outcome.cases >= least));
}

#[test]
fn all_kernels_agree_with_their_models_on_gfx1030() {
    check("gfx1030", Options { fixed: true, cases: cases(), seed: 1030 });
}

#[test]
fn all_kernels_agree_with_their_models_on_gfx1100() {
    check("gfx1100", Options { fixed: true, cases: cases(), seed: 1100 });
}

#[test]
fn all_kernels_agree_with_their_models_on_gfx90a() {
    check("gfx90a", Options { fixed: true, cases: cases(), seed: 90 });
}

#[test]
fn all_kernels_agree_with_their_models_from_a_random_seed() {
    let seed = RandomState::new().hash_one(0);
    let arch = common::ARCHS[seed as usize % 3];
    check(arch, Options { fixed: false, cases: cases(), seed });
}

#[test]
fn every_family_of_the_build_is_verified() {
    for module in kernels::MODULES {
        assert!(
            candle_amdgpu_verify::family(module.name()).is_some(),
            "the family `{}` is in no list of verified ones",
            module.name()
        );
    }
}
