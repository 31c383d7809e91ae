//! A sample of the models, on the device and on the CPU.
//!
//! `MODELS_SEED=N` draws another; `cargo test --test sample -- --ignored` runs all of them.

use candle_amdgpu_models::table::{Row, counts};
use candle_amdgpu_models::{DTYPES, Model, all};
use candle_core::{DType, Device};

/// How many are drawn.
const SAMPLE: usize = 10;

fn check(models: impl IntoIterator<Item = Model>, dtypes: &[DType]) -> Vec<Row> {
    let device = Device::new_cuda(0).unwrap();
    let rows: Vec<_> = models.into_iter().map(|model| Row::new(model, &device, dtypes)).collect();
    let wrong: Vec<_> = rows.iter().filter_map(Row::wrong).collect();
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
    rows
}

#[test]
fn a_sample_agrees_with_the_cpu() {
    let seed: u64 = std::env::var("MODELS_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let mut models: Vec<_> = all().into_iter().filter(|model| !model.is_long()).collect();
    // SplitMix64, which puts the models into another order.
    let key = |index: usize| {
        let mut z = seed.wrapping_add(index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z ^ (z >> 27)
    };
    let mut keyed: Vec<_> = models.drain(..).enumerate().map(|(index, model)| (key(index), model)).collect();
    keyed.sort_by_key(|(key, _)| *key);
    check(keyed.into_iter().take(SAMPLE).map(|(_, model)| model), &DTYPES[..1]);
}

/// The goal is 95 of 100 models that the CPU runs.
#[test]
#[ignore = "takes minutes"]
fn all_agree_with_the_cpu_but_what_candle_cannot_run() {
    let (agree, run) = counts(&check(all(), &DTYPES));
    assert!(agree * 100 >= run * 95, "{agree} of {run}");
}
