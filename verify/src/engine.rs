//! Draws, runs and shrinks.

use super::launch::{Ran, run};
use super::{Draw, Family, Miss};
use crate::reference::DType;
use candle_amdgpu::kernel::{ArgType, Kernel};
use candle_amdgpu::{Device, Result};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How much is tested.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Whether the cases run that do not depend on the seed: sizes at the edges of waves and workgroups, a large one, every
    /// value of short types.
    pub fixed: bool,
    /// Random cases for each kernel.
    pub cases: u32,
    /// The seed of the random numbers.
    pub seed: u64,
}

/// The outcome for one kernel on one device.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The kernel.
    pub kernel: &'static str,
    /// The device's target.
    pub arch: String,
    /// Launches made.
    pub cases: u64,
    /// Elements compared.
    pub elements: u64,
    /// The largest distance in ulp.
    pub ulps: u64,
    /// Why it failed: the smallest case found, and what is wrong with it.
    pub failure: Option<String>,
}

/// Verifies one kernel of a family on a device.
///
/// # Errors
/// If the device cannot be used. What a kernel does wrong, faults included, is in the outcome.
pub fn verify(
    family: &dyn Family,
    kernel: &'static Kernel,
    device: &Device,
    options: Options,
) -> Result<Outcome> {
    // A device that cannot load the kernel does not make it wrong.
    device.load(family.module())?;
    let stream = device.stream()?;
    let totals = Totals::default();
    let case = |draw: &Draw| -> Result<(), String> {
        let Some(call) = family.call(kernel, draw) else {
            return Err(format!("the family `{}` has no model of {}", kernel.family, kernel.name));
        };
        let expected = family.expected(&call);
        match run(&call, &expected, family, &stream) {
            Ok(Ran::Right { elements, ulps }) => {
                totals.add(elements, ulps);
                Ok(())
            }
            Ok(Ran::Wrong(miss)) => Err(miss.to_string()),
            Err(error) => Err(Miss { call: call.to_string(), what: error.to_string() }.to_string()),
        }
    };
    let short = kernel.args.iter().filter(|arg| {
        let read = matches!(arg.ty, ArgType::Pointer { mutable: false, .. });
        read && DType::from_name(arg.ty.element()).is_some_and(|dtype| dtype.bits() <= 16)
    });
    let fixed = if options.fixed { Draw::fixed(short.count()) } else { Vec::new() };
    let failure = fixed.iter().find_map(|draw| case(draw).err()).or_else(|| random(&case, options));
    Ok(Outcome {
        kernel: kernel.name,
        arch: device.arch().to_owned(),
        cases: totals.cases.get(),
        elements: totals.elements.get(),
        ulps: totals.ulps.get(),
        failure,
    })
}

/// Verifies each kernel on its device, side by side as the cores allow, in the order given. `done` is told of each
/// as it ends.
///
/// # Errors
/// If a device cannot be used.
pub fn verify_all(
    jobs: &[(&dyn Family, &'static Kernel, &Device)],
    options: Options,
    done: &(dyn Fn(&Outcome) + Sync),
) -> Result<Vec<Outcome>> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut outcomes = Vec::new();
        while let Some((index, (family, kernel, device))) = {
            let index = next.fetch_add(1, Ordering::Relaxed);
            jobs.get(index).map(|job| (index, job))
        } {
            let outcome = verify(*family, kernel, device, options)?;
            done(&outcome);
            outcomes.push((index, outcome));
        }
        Ok(outcomes)
    };
    let mut outcomes = std::thread::scope(|scope| -> Result<Vec<_>> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let mut outcomes = Vec::new();
        for worker in workers {
            outcomes.extend(worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
        }
        Ok(outcomes)
    })?;
    outcomes.sort_by_key(|(index, _)| *index);
    Ok(outcomes.into_iter().map(|(_, outcome)| outcome).collect())
}

/// Runs random cases; gives the text of the smallest one that fails.
pub(super) fn random(case: &dyn Fn(&Draw) -> Result<(), String>, options: Options) -> Option<String> {
    let config = Config { cases: options.cases, failure_persistence: None, ..Config::default() };
    let mut seed = [0; 32];
    seed[..8].copy_from_slice(&options.seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let result = TestRunner::new_with_rng(config, rng)
        .run(&Draw::strategy(), |draw| case(&draw).map_err(TestCaseError::fail));
    match result {
        Ok(()) => None,
        Err(TestError::Fail(reason, _) | TestError::Abort(reason)) => {
            Some(format!("{reason}\n(seed {})", options.seed))
        }
    }
}

#[derive(Default)]
struct Totals {
    cases: Cell<u64>,
    elements: Cell<u64>,
    ulps: Cell<u64>,
}

impl Totals {
    fn add(&self, elements: u64, ulps: u64) {
        self.cases.set(self.cases.get() + 1);
        self.elements.set(self.elements.get() + elements);
        self.ulps.set(self.ulps.get().max(ulps));
    }
}
