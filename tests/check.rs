//! Kernels of every family in the emulator's check mode, with waves in shuffled order: nothing uninitialised is read,
//! nothing races, every load is waited for, and results are right all the same.
//!
//! By default some kernels of each family on one target, since families whose lanes work together have tests of their
//! own; every kernel on every target takes minutes.

mod common;

use candle_amdgpu::{Device, Error, Kernel, Module};
use candle_amdgpu_verify::{Call, Draw, Expected, FAMILIES, Family, Options, Outcome, verify_all};
use common::{alone, set_check_mode};

/// The most elements of a case: larger ones repeat what these do.
const LARGEST: usize = 4099;

/// A family with small cases only.
struct Small(&'static dyn Family);

impl Family for Small {
    fn module(&self) -> &'static Module {
        self.0.module()
    }

    fn call(&self, kernel: &'static Kernel, draw: &Draw) -> Option<Call> {
        if draw.layout.numel() <= LARGEST {
            return self.0.call(kernel, draw);
        }
        self.0.call(kernel, &Draw::flat(LARGEST, draw.values, draw.grid))
    }

    fn expected(&self, call: &Call) -> Vec<Expected> {
        self.0.expected(call)
    }

    fn is_faulty(&self, call: &Call) -> bool {
        self.0.is_faulty(call)
    }

    fn is_fault(&self, call: &Call, error: &Error) -> bool {
        self.0.is_fault(call, error)
    }
}

/// Verifies the kernels that `is_meant` takes of each family, given a kernel and its position.
fn check(archs: &[&str], cases: u32, is_meant: impl Fn(&Kernel, usize) -> bool) {
    let _alone = alone();
    let devices: Vec<Device> = archs.iter().map(|arch| common::device(arch)).collect();
    let families: Vec<Small> = FAMILIES.iter().map(|&family| Small(family)).collect();
    let kernels = families.iter().flat_map(|family| {
        let kernels = family.module().kernels().iter().enumerate();
        kernels
            .filter(|(position, kernel)| is_meant(kernel, *position))
            .map(move |(_, kernel)| (family, kernel))
    });
    // Target by target in turn: a device checks one launch at a time.
    let jobs: Vec<(&dyn Family, _, &Device)> = kernels
        .flat_map(|(family, kernel)| {
            devices.iter().map(move |device| (family as &dyn Family, kernel, device))
        })
        .collect();
    devices.iter().for_each(|device| set_check_mode(device, true));
    let outcomes = verify_all(&jobs, Options { fixed: true, cases, seed: 11 }, &|_| {});
    devices.iter().for_each(|device| set_check_mode(device, false));
    let outcomes = outcomes.expect("the devices work");
    let failed: Vec<&Outcome> = outcomes.iter().filter(|outcome| outcome.failure.is_some()).collect();
    for outcome in &failed {
        println!("{} on {}:\n{}\n", outcome.kernel, outcome.arch, outcome.failure.as_deref().unwrap_or(""));
    }
    assert!(!outcomes.is_empty());
    assert!(failed.is_empty(), "check mode found something in {} of {}", failed.len(), outcomes.len());
}

#[test]
fn kernels_of_every_family_pass_check_mode() {
    check(&["gfx1100"], 1, |_, position| position.is_multiple_of(40));
}

#[test]
#[ignore = "every kernel on three targets takes many minutes"]
fn all_kernels_pass_check_mode() {
    let only = std::env::var("CHECK_FAMILY").ok();
    check(&common::ARCHS, 2, |kernel, _| only.as_deref().is_none_or(|name| name == kernel.family));
}
