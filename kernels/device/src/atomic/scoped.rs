//! Atomic operations of any scope, on global and on workgroup memory.

use core::cell::UnsafeCell;

pub use core::sync::atomic::Ordering;

use super::raw;
use crate::{bf16, f16};

/// How far away an operation is seen: among the lanes of the wave, in the workgroup, on the whole device (an agent), or by the
/// host and other devices too. A wider scope costs more: caches between the two sides are written back or invalidated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// The wave. PTX has nothing narrower than the workgroup, and takes that.
    Wave,
    /// The workgroup. All that workgroup memory needs.
    Workgroup,
    /// The device: other workgroups of this launch, and later launches.
    Agent,
    /// All devices and the host. The only scope for memory of the host; there GPUs have few of these instructions, and
    /// additions of floats become loops.
    System,
}

/// Orders the memory accesses of this lane before it against those behind it, for those who see them at `scope`: as
/// `core::sync::atomic::fence`, which is always system-wide.
///
/// It does not wait for other lanes: that is a [`barrier`](crate::workgroup::barrier).
#[inline(always)]
pub fn fence(scope: Scope, ordering: Ordering) {
    // SAFETY: touches no memory
    unsafe {
        match ordering {
            Ordering::Acquire => raw::fence_acquire(scope),
            Ordering::Release => raw::fence_release(scope),
            Ordering::AcqRel => raw::fence_acq_rel(scope),
            Ordering::SeqCst => raw::fence_seq_cst(scope),
            _ => panic!("there is no relaxed fence"),
        }
    }
}

/// A value in memory that work-items change at the same time: in global memory or in the workgroup's, as core's `AtomicU32` and
/// the like, but also of floats, and with a [`Scope`].
///
/// The instruction is that of the memory the compiler sees the address come from, and works for both where it cannot see it.
/// Integers wrap. Sums of floats depend on the order of the additions, which is not fixed. On the host the operations are
/// plain, as a launch there is one work-item.
///
/// ```no_run
/// use amdgpu_device::atomic::{Atomic, Ordering::Relaxed, Scope};
///
/// /// Adds up the rounded values, and finds the largest.
/// unsafe fn count(sum: *mut u64, largest: *mut f32, x: f32) {
///     // SAFETY: both are aligned, and all accesses of this launch are atomic
///     let (sum, largest) = unsafe { (Atomic::from_ptr(sum), Atomic::from_ptr(largest)) };
///     sum.fetch_add(x as u64, Scope::Agent, Relaxed);
///     largest.fetch_max(x, Scope::Agent, Relaxed);
/// }
/// ```
#[repr(transparent)]
pub struct Atomic<T>(UnsafeCell<T>);

// SAFETY: all accesses are atomic
unsafe impl<T: AtomicValue> Sync for Atomic<T> {}

/// Two floats in one word, which one instruction adds to: of `f16` or `bf16`.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[repr(C, align(4))]
pub struct Pair<T>(
    /// The lower half, at the lower address.
    pub T,
    /// The upper half.
    pub T,
);

#[allow(clippy::missing_safety_doc, reason = "what must hold is the traits' own")]
mod sealed {
    use super::Scope;

    /// What the operations of a type are made of; the addresses are aligned, and those of global or workgroup memory.
    pub trait Sealed: Copy {
        /// The integer of the same size.
        type Word: Copy + Eq;
        fn word(self) -> Self::Word;
        fn of_word(word: Self::Word) -> Self;
        unsafe fn load(scope: Scope, p: *mut Self) -> Self;
        unsafe fn store(scope: Scope, p: *mut Self, value: Self);
        unsafe fn swap(scope: Scope, p: *mut Self, value: Self) -> Self;
        unsafe fn swap_if(scope: Scope, p: *mut Self, expected: Self, value: Self) -> Self;
    }

    pub trait Number: Sealed {
        unsafe fn add(scope: Scope, p: *mut Self, value: Self) -> Self;
        unsafe fn sub(scope: Scope, p: *mut Self, value: Self) -> Self;
        unsafe fn min(scope: Scope, p: *mut Self, value: Self) -> Self;
        unsafe fn max(scope: Scope, p: *mut Self, value: Self) -> Self;
    }

    pub trait Bits: Sealed {
        unsafe fn and(scope: Scope, p: *mut Self, value: Self) -> Self;
        unsafe fn or(scope: Scope, p: *mut Self, value: Self) -> Self;
        unsafe fn xor(scope: Scope, p: *mut Self, value: Self) -> Self;
    }
}

/// A type of 4 or 8 bytes that memory can change atomically: `u32`, `i32`, `u64`, `i64`, `f32`, `f64`, and [`Pair`]s of `f16`
/// and `bf16`.
#[diagnostic::on_unimplemented(
    message = "memory has no atomic operations on `{Self}`",
    note = "there are those on u32, i32, u64, i64, f32, f64, Pair<f16> and Pair<bf16>"
)]
pub trait AtomicValue: sealed::Sealed {}
/// Those that can be added to and compared: all of them.
pub trait AtomicNumber: AtomicValue + sealed::Number {}
/// Those that have single bits: the integers.
#[diagnostic::on_unimplemented(message = "there are no atomic operations on single bits of `{Self}`")]
pub trait AtomicBits: AtomicValue + sealed::Bits {}

impl<T: AtomicValue> Atomic<T> {
    /// The value at an address.
    ///
    /// # Safety
    /// The address is aligned to the size of the value and that of global or workgroup memory, which stays valid for `'a`; it is
    /// not that of a local variable. Where other work-items use the value meanwhile they do so by atomic operations.
    #[inline(always)]
    pub const unsafe fn from_ptr<'a>(address: *mut T) -> &'a Self {
        // SAFETY: the caller's
        unsafe { &*address.cast() }
    }

    /// Its address.
    #[inline(always)]
    pub const fn as_ptr(&self) -> *mut T {
        self.0.get()
    }

    /// The value. `ordering` is `Relaxed`, `Acquire` or `SeqCst`.
    #[inline(always)]
    pub fn load(&self, scope: Scope, ordering: Ordering) -> T {
        match ordering {
            Ordering::Relaxed | Ordering::Acquire => {}
            Ordering::SeqCst => fence(scope, Ordering::SeqCst),
            _ => panic!("a load releases nothing"),
        }
        // SAFETY: `from_ptr`'s
        let value = unsafe { T::load(scope, self.as_ptr()) };
        acquire(scope, ordering);
        value
    }

    /// Stores a value. `ordering` is `Relaxed`, `Release` or `SeqCst`.
    #[inline(always)]
    pub fn store(&self, value: T, scope: Scope, ordering: Ordering) {
        if matches!(ordering, Ordering::Acquire | Ordering::AcqRel) {
            panic!("a store acquires nothing");
        }
        release(scope, ordering);
        // SAFETY: `from_ptr`'s
        unsafe { T::store(scope, self.as_ptr(), value) };
        if ordering == Ordering::SeqCst {
            fence(scope, Ordering::SeqCst);
        }
    }

    #[inline(always)]
    fn change(&self, scope: Scope, ordering: Ordering, operation: impl FnOnce(*mut T) -> T) -> T {
        release(scope, ordering);
        let old = operation(self.as_ptr());
        acquire(scope, ordering);
        old
    }

    /// Stores a value and returns the one before.
    #[inline(always)]
    pub fn swap(&self, value: T, scope: Scope, ordering: Ordering) -> T {
        // SAFETY: `from_ptr`'s
        self.change(scope, ordering, |p| unsafe { T::swap(scope, p, value) })
    }

    /// Stores `new` if the value is `current`, bit for bit, and returns what was there: as `Ok` if it was stored.
    ///
    /// `ordering` is that of both outcomes.
    ///
    /// # Errors
    /// The value, if it was another one.
    #[inline(always)]
    pub fn compare_exchange(&self, current: T, new: T, scope: Scope, ordering: Ordering) -> Result<T, T> {
        // SAFETY: `from_ptr`'s
        let seen = self.change(scope, ordering, |p| unsafe { T::swap_if(scope, p, current, new) });
        if seen.word() == current.word() { Ok(seen) } else { Err(seen) }
    }

    /// Stores what `change` makes of the value and returns the one before. `change` may be called several times.
    #[inline(always)]
    pub fn fetch_update(&self, scope: Scope, ordering: Ordering, mut change: impl FnMut(T) -> T) -> T {
        // SAFETY: `from_ptr`'s
        self.change(scope, ordering, |p| unsafe { update(scope, p, &mut change) })
    }
}

/// # Safety
/// That of [`Atomic::from_ptr`].
#[inline(always)]
unsafe fn update<T: sealed::Sealed>(scope: Scope, p: *mut T, mut change: impl FnMut(T) -> T) -> T {
    // SAFETY: the caller's
    unsafe {
        let mut old = T::load(scope, p);
        loop {
            let seen = T::swap_if(scope, p, old, change(old));
            if seen.word() == old.word() {
                return old;
            }
            old = seen;
        }
    }
}

macro_rules! changes {
    ($Trait:ident: $($(#[$doc:meta])* $name:ident = $operation:ident;)*) => {
        impl<T: $Trait> Atomic<T> {$(
            $(#[$doc])*
            #[inline(always)]
            pub fn $name(&self, value: T, scope: Scope, ordering: Ordering) -> T {
                // SAFETY: `from_ptr`'s
                self.change(scope, ordering, |p| unsafe { T::$operation(scope, p, value) })
            }
        )*}
    };
}
changes! { AtomicNumber:
    /// Adds, and returns the value before. The order of several additions is not fixed, so neither is the rounding of their sum.
    fetch_add = add;
    /// Subtracts, and returns the value before.
    fetch_sub = sub;
    /// Stores the smaller of the two, and returns the value before. A NaN gives way to a number; which zero is smaller is
    /// unspecified.
    fetch_min = min;
    /// Stores the larger of the two, and returns the value before. A NaN gives way to a number; which zero is larger is
    /// unspecified.
    fetch_max = max;
}
changes! { AtomicBits:
    /// Keeps the bits that `value` has too, and returns the value before.
    fetch_and = and;
    /// Sets the bits of `value`, and returns the value before.
    fetch_or = or;
    /// Flips the bits of `value`, and returns the value before.
    fetch_xor = xor;
}

#[inline(always)]
fn release(scope: Scope, ordering: Ordering) {
    match ordering {
        Ordering::Release | Ordering::AcqRel => fence(scope, Ordering::Release),
        Ordering::SeqCst => fence(scope, Ordering::SeqCst),
        _ => {}
    }
}

#[inline(always)]
fn acquire(scope: Scope, ordering: Ordering) {
    if matches!(ordering, Ordering::Acquire | Ordering::AcqRel | Ordering::SeqCst) {
        fence(scope, Ordering::Acquire);
    }
}

/// The smaller of two numbers, or the only one.
#[inline(always)]
#[allow(clippy::eq_op)]
fn smaller<H: Copy + PartialOrd>(a: H, b: H) -> H {
    if a != a || b < a { b } else { a }
}

/// The larger of two numbers, or the only one.
#[inline(always)]
#[allow(clippy::eq_op)]
fn larger<H: Copy + PartialOrd>(a: H, b: H) -> H {
    if a != a || b > a { b } else { a }
}

macro_rules! value {
    ($t:ty as $word:ident: |$x:ident| $to:expr, |$y:ident| $of:expr, $load:ident $store:ident $swap:ident $swap_if:ident) => {
        impl sealed::Sealed for $t {
            type Word = $word;
            #[inline(always)]
            fn word(self) -> $word {
                let $x = self;
                $to
            }
            #[inline(always)]
            fn of_word($y: $word) -> Self {
                $of
            }
            #[inline(always)]
            unsafe fn load(scope: Scope, p: *mut Self) -> Self {
                // SAFETY: the caller's
                Self::of_word(unsafe { raw::$load(scope, p.cast()) })
            }
            #[inline(always)]
            unsafe fn store(scope: Scope, p: *mut Self, value: Self) {
                // SAFETY: the caller's
                unsafe { raw::$store(scope, p.cast(), value.word()) }
            }
            #[inline(always)]
            unsafe fn swap(scope: Scope, p: *mut Self, value: Self) -> Self {
                // SAFETY: the caller's
                Self::of_word(unsafe { raw::$swap(scope, p.cast(), value.word()) })
            }
            #[inline(always)]
            unsafe fn swap_if(scope: Scope, p: *mut Self, expected: Self, value: Self) -> Self {
                // SAFETY: the caller's
                Self::of_word(unsafe { raw::$swap_if(scope, p.cast(), expected.word(), value.word()) })
            }
        }
        impl AtomicValue for $t {}
        impl AtomicNumber for $t {}
    };
}
value!(u32 as u32: |x| x, |x| x, load_u32 store_u32 swap_u32 swap_if_u32);
value!(i32 as u32: |x| x as u32, |x| x as i32, load_u32 store_u32 swap_u32 swap_if_u32);
value!(u64 as u64: |x| x, |x| x, load_u64 store_u64 swap_u64 swap_if_u64);
value!(i64 as u64: |x| x as u64, |x| x as i64, load_u64 store_u64 swap_u64 swap_if_u64);
value!(f32 as u32: |x| x.to_bits(), |x| f32::from_bits(x), load_u32 store_u32 swap_u32 swap_if_u32);
value!(f64 as u64: |x| x.to_bits(), |x| f64::from_bits(x), load_u64 store_u64 swap_u64 swap_if_u64);

/// Operations that are one of the functions in `raw`, of a type or of the word that it is.
macro_rules! operations {
    ($Trait:ident: $($t:ty, $($name:ident $function:ident),*;)*) => {$(
        impl sealed::$Trait for $t {$(
            #[inline(always)]
            unsafe fn $name(scope: Scope, p: *mut Self, value: Self) -> Self {
                // SAFETY: the caller's
                unsafe { raw::$function(scope, p.cast(), value as _) as _ }
            }
        )*}
    )*};
}
operations! { Number:
    u32, add add_u32, sub sub_u32, min umin_u32, max umax_u32;
    i32, add add_u32, sub sub_u32, min min_u32, max max_u32;
    u64, add add_u64, sub sub_u64, min umin_u64, max umax_u64;
    i64, add add_u64, sub sub_u64, min min_u64, max max_u64;
}
operations! { Bits:
    u32, and and_u32, or or_u32, xor xor_u32;
    i32, and and_u32, or or_u32, xor xor_u32;
    u64, and and_u64, or or_u64, xor xor_u64;
    i64, and and_u64, or or_u64, xor xor_u64;
}
impl AtomicBits for u32 {}
impl AtomicBits for i32 {}
impl AtomicBits for u64 {}
impl AtomicBits for i64 {}

macro_rules! floats {
    ($($t:ident $add:ident $min:ident $max:ident;)*) => {$(
        impl sealed::Number for $t {
            #[inline(always)]
            unsafe fn add(scope: Scope, p: *mut Self, value: Self) -> Self {
                // SAFETY: the caller's
                unsafe { raw::$add(scope, p, value) }
            }
            #[inline(always)]
            unsafe fn sub(scope: Scope, p: *mut Self, value: Self) -> Self {
                // SAFETY: the caller's
                unsafe { raw::$add(scope, p, -value) }
            }
            #[inline(always)]
            unsafe fn min(scope: Scope, p: *mut Self, value: Self) -> Self {
                // SAFETY: the caller's
                unsafe { raw::$min(scope, p, value) }
            }
            #[inline(always)]
            unsafe fn max(scope: Scope, p: *mut Self, value: Self) -> Self {
                // SAFETY: the caller's
                unsafe { raw::$max(scope, p, value) }
            }
        }
    )*};
}
floats! {
    f32 fadd_f32 fmin_f32 fmax_f32;
    f64 fadd_f64 fmin_f64 fmax_f64;
}

macro_rules! pairs {
    ($($t:ident $add:ident;)*) => {$(
        value!(
            Pair<$t> as u32:
            |x| u32::from(x.0.to_bits()) | u32::from(x.1.to_bits()) << 16,
            |x| Pair($t::from_bits(x as u16), $t::from_bits((x >> 16) as u16)),
            load_u32 store_u32 swap_u32 swap_if_u32
        );
        impl sealed::Number for Pair<$t> {
            #[inline(always)]
            unsafe fn add(scope: Scope, p: *mut Self, value: Self) -> Self {
                use sealed::Sealed;
                // SAFETY: the caller's
                Self::of_word(unsafe { raw::$add(scope, p.cast(), value.word()) })
            }
            #[inline(always)]
            unsafe fn sub(scope: Scope, p: *mut Self, value: Self) -> Self {
                // SAFETY: the caller's
                unsafe { Self::add(scope, p, Pair(-value.0, -value.1)) }
            }
            #[inline(always)]
            unsafe fn min(scope: Scope, p: *mut Self, value: Self) -> Self {
                // SAFETY: the caller's
                unsafe { update(scope, p, |old| Pair(smaller(old.0, value.0), smaller(old.1, value.1))) }
            }
            #[inline(always)]
            unsafe fn max(scope: Scope, p: *mut Self, value: Self) -> Self {
                // SAFETY: the caller's
                unsafe { update(scope, p, |old| Pair(larger(old.0, value.0), larger(old.1, value.1))) }
            }
        }
    )*};
}
pairs! {
    f16 fadd_f16x2;
    bf16 fadd_bf16x2;
}
