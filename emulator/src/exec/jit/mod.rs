//! Kernels as the host's own instructions: blocks that waves come to often are compiled for x86-64 with AVX2.
//!
//! The interpreter stays the definition. Compiled code does what its handlers do, bit by bit; whatever has no code of its
//! own, and every result that is a NaN, is left to the handlers, which compiled code calls. Faults, barriers and the ends of
//! turns come at the same instructions. Check mode and profile mode run in the interpreter.
//!
//! [`compile`] has the blocks, [`salu`] and [`valu`] what is compiled, [`asm`] the encodings.

mod asm;
mod compile;
mod memory;
mod moves;
mod salu;
#[cfg(test)]
mod tests;
mod valu;

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use self::compile::{ELSEWHERE, FLOAT_MODE, OUT_OF_TURN, Setup};
use self::memory::Pages;
use super::{Code, Env, Flow, Row, Wave};
use crate::dispatch::run_wave;
use crate::gfx::Gfx;
use crate::machine::Jit;

/// Instructions of a code object that waves execute before any is compiled: then it is worth its time.
const WORTH_COMPILING: u64 = 20_000;

/// What compiled code keeps beside the wave.
#[repr(C, align(32))]
struct Frame {
    /// EXEC, lane by lane; written where it is needed.
    masks: MaybeUninit<[u32; 64]>,
    /// [`Wave::executed`] at the end of the turn.
    end: u64,
    /// Where instructions' blocks are; zero where there is none.
    entries: *const AtomicUsize,
    /// A half of EXEC, while a handler has the other one.
    kept: u32,
}

/// A code object's compiled code.
#[derive(Default)]
pub(crate) struct Store {
    /// Instructions that were interpreted.
    interpreted: AtomicU64,
    /// By [`number`].
    variants: [OnceLock<Variant>; 8],
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("interpreted", &self.interpreted).finish_non_exhaustive()
    }
}

/// Compiled code for one [`Setup`].
struct Variant {
    entries: Box<[AtomicUsize]>,
    units: Mutex<Vec<Pages>>,
}

/// The variant for a setup.
fn number(setup: Setup) -> usize {
    usize::from(setup.ieee) | (setup.halves - 1) << 1 | usize::from(setup.apart) << 2
}

/// An entry that cannot be compiled.
const NOT_COMPILED: usize = 1;

impl Variant {
    fn new(code: &Code) -> Variant {
        Variant { entries: code.ops.iter().map(|_| AtomicUsize::new(0)).collect(), units: Mutex::default() }
    }

    /// Where the block of an instruction is; compiles it if that has not been done.
    fn entry(&self, code: &Code, index: u32, setup: Setup) -> Option<usize> {
        let entry = self.entries.get(index as usize)?;
        match entry.load(Ordering::Acquire) {
            0 => {}
            NOT_COMPILED => return None,
            known => return Some(known),
        }
        let mut units = self.units.lock().unwrap_or_else(PoisonError::into_inner);
        if entry.load(Ordering::Acquire) == 0 {
            let pages = compile::compile(code, index, setup)
                .and_then(|compiled| Some((Pages::new(&compiled.code)?, compiled.entries)));
            match pages {
                Some((pages, entries)) => {
                    for (first, offset) in entries {
                        self.entries[first as usize].store(pages.at(offset), Ordering::Release);
                    }
                    units.push(pages);
                }
                // Compiled code must not go there.
                None => return None,
            }
        }
        Some(entry.load(Ordering::Acquire)).filter(|&known| known > NOT_COMPILED)
    }
}

type Enter = unsafe extern "sysv64" fn(usize, *mut Wave, *mut (), *mut Frame, *mut Row, u64) -> u32;

/// The way into compiled code, if the host allows any.
fn enter() -> Option<Enter> {
    static PAGES: OnceLock<Option<Pages>> = OnceLock::new();
    let pages = PAGES.get_or_init(|| {
        // AVX2 is what handlers are compiled for, but with the feature `any-x86-64`.
        if !super::isa::is_v3() {
            return None;
        }
        Pages::new(&compile::enter()?)
    });
    // SAFETY: that is what the code there is.
    pages.as_ref().map(|pages| unsafe { std::mem::transmute::<usize, Enter>(pages.at(0)) })
}

/// Executes up to `turn` instructions.
pub(crate) fn run(jit: Jit, wave: &mut Wave, env: &mut Env<'_>, turn: u64) -> Flow {
    let code: &Code = env.code;
    let store = &code.jit;
    let worth = match jit {
        // Perturbation is the handlers' own.
        _ if env.perturb.is_some() => return run_wave(wave, env, turn),
        Jit::Off => return run_wave(wave, env, turn),
        Jit::On => store.interpreted.load(Ordering::Relaxed) >= WORTH_COMPILING,
        Jit::Always | Jit::Compared => true,
    };
    let Some(enter) = enter().filter(|_| worth) else {
        let before = wave.executed;
        let flow = run_wave(wave, env, turn);
        store.interpreted.fetch_add(wave.executed - before, Ordering::Relaxed);
        return flow;
    };
    let end = wave.executed + turn;
    let mut frame = Frame { masks: MaybeUninit::uninit(), end, entries: std::ptr::null(), kept: 0 };
    loop {
        let left = end - wave.executed;
        if left == 0 {
            return Flow::Next;
        }
        let setup = Setup {
            ieee: wave.mode & FLOAT_MODE.0 == FLOAT_MODE.1,
            halves: wave.halves(),
            flushes_dots: env.gfx == Gfx::Gfx90a,
            apart: jit == Jit::Compared,
        };
        let variant = store.variants[number(setup)].get_or_init(|| Variant::new(code));
        let Some(entry) = variant.entry(code, wave.pc, setup) else { return run_wave(wave, env, left) };
        frame.entries = variant.entries.as_ptr();
        let compare = (jit == Jit::Compared).then(|| tests_of_block(wave, code, setup)).flatten();
        let rows = wave.rows_mut();
        // SAFETY: the entry is code for this setup, of instructions that this code object has; wave, environment and frame
        // are what it expects, and nobody else has them.
        let result = unsafe { enter(entry, wave, std::ptr::from_mut(env).cast(), &mut frame, rows, left) };
        if let Some(mut other) = compare {
            other.check(wave, env);
        }
        match result {
            ELSEWHERE => {}
            OUT_OF_TURN => return run_wave(wave, env, end - wave.executed),
            _ => return flow_of(result),
        }
    }
}

fn flow_of(result: u32) -> Flow {
    [Flow::Next, Flow::Barrier, Flow::Yield, Flow::End, Flow::Fault][result as usize % 5]
}

/// A wave as it was before a block, for the interpreter.
struct Other {
    wave: Wave,
    first: u32,
}

/// The wave's copy, if the block at its place changes registers alone.
fn tests_of_block(wave: &Wave, code: &Code, setup: Setup) -> Option<Other> {
    compile::is_pure(code, wave.pc, setup).then(|| Other { wave: wave.copy(), first: wave.pc })
}

impl Other {
    /// Has the interpreter execute the block, and compares.
    #[expect(clippy::panic, reason = "a difference is a bug, which must not go unnoticed")]
    fn check(&mut self, wave: &Wave, env: &mut Env<'_>) {
        while self.wave.executed < wave.executed {
            run_wave(&mut self.wave, env, 1);
        }
        if let Some(difference) = self.wave.difference(wave) {
            let instructions: Vec<String> = (self.first..self.wave.pc.max(self.first + 1))
                .filter_map(|index| env.code.text_of(index))
                .collect();
            panic!("compiled code differs from the interpreter: {difference}, after {instructions:#?}");
        }
    }
}
