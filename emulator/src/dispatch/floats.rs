//! The processor's settings for floats, which are the calling program's.
//!
//! A program, or a library of its, that was linked with `-ffast-math` has denormals flushed to zero in all of its threads, and
//! may round in another direction. Whoever executes instructions needs neither.

/// While there is one, this thread computes as IEEE 754 says: rounding to nearest, with denormals.
pub(super) struct Ieee {
    before: u64,
}

impl Ieee {
    pub fn new() -> Ieee {
        let before = get();
        set(DEFAULT);
        Ieee { before }
    }
}

impl Drop for Ieee {
    fn drop(&mut self) {
        set(self.before);
    }
}

#[cfg(target_arch = "x86_64")]
const DEFAULT: u64 = 0x1f80;

#[cfg(target_arch = "x86_64")]
fn get() -> u64 {
    let mut value = 0u32;
    // SAFETY: the instruction writes the four bytes that it is given the address of.
    unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut value, options(nostack, preserves_flags)) };
    value.into()
}

#[cfg(target_arch = "x86_64")]
fn set(value: u64) {
    let value = value as u32;
    // SAFETY: the instruction reads the four bytes that it is given the address of; the value is the default, or one that was there
    // before.
    unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const value, options(nostack, preserves_flags)) };
}

#[cfg(target_arch = "aarch64")]
const DEFAULT: u64 = 0;

#[cfg(target_arch = "aarch64")]
fn get() -> u64 {
    let value: u64;
    // SAFETY: the register can be read, and nothing else changes.
    unsafe { std::arch::asm!("mrs {}, fpcr", out(reg) value, options(nomem, nostack, preserves_flags)) };
    value
}

#[cfg(target_arch = "aarch64")]
fn set(value: u64) {
    // SAFETY: the value is the default, or one that was there before.
    unsafe { std::arch::asm!("msr fpcr, {}", in(reg) value, options(nomem, nostack, preserves_flags)) };
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const DEFAULT: u64 = 0;

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn get() -> u64 {
    DEFAULT
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn set(_: u64) {}
