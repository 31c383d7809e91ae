//! Stopping a kernel with a message.

/// Stops the kernel like [`trap`](crate::trap); the emulator's report has the text, and what the CUDA driver prints.
///
/// `text` ends with a zero byte, which is not part of it; the macros [`ensure!`](crate::ensure) and [`fail!`](crate::fail) see to
/// that.
#[doc(hidden)]
#[cold]
#[inline(always)]
pub fn fail(text: &'static str) -> ! {
    #[cfg(any(target_arch = "amdgpu", target_arch = "nvptx64"))]
    // SAFETY: the text is a constant; ends the wave
    unsafe {
        crate::intrinsics::amdgpu_device_fail(text.as_ptr(), text.len() as u32)
    }
    #[cfg(not(any(target_arch = "amdgpu", target_arch = "nvptx64")))]
    panic!("{}", text.trim_end_matches('\0'));
}

/// Stops the kernel with a message, a literal: what `panic!` would be, which loses its text on a GPU.
///
/// ```no_run
/// # let kind = 3;
/// match kind {
///     0 => {}
///     _ => amdgpu_device::fail!("a kind that this kernel does not know"),
/// }
/// ```
#[macro_export]
macro_rules! fail {
    ($text:literal) => {
        $crate::report::fail(concat!($text, "\0"))
    };
}

/// Stops the kernel with a message where a condition does not hold: what `assert!` would be, which loses its text on a GPU.
///
/// ```no_run
/// # let (start, end) = (1, 2);
/// amdgpu_device::ensure!(start <= end, "rows end before they begin");
/// ```
#[macro_export]
macro_rules! ensure {
    ($condition:expr $(,)?) => {
        $crate::ensure!($condition, concat!("it does not hold that ", stringify!($condition)))
    };
    ($condition:expr, $text:expr $(,)?) => {
        if !$condition {
            $crate::report::fail(concat!($text, "\0"))
        }
    };
}

/// The value of an `Option` or a `Result`, or the kernel stops with a message, a literal: what `expect` would be, which loses
/// its text on a GPU.
///
/// ```no_run
/// # let slots = [Some(1), None];
/// let first = amdgpu_device::expect!(slots[0], "the first slot is always taken");
/// ```
#[macro_export]
macro_rules! expect {
    ($value:expr, $text:literal $(,)?) => {
        match ::core::iter::Iterator::next(&mut ::core::iter::IntoIterator::into_iter($value)) {
            Some(value) => value,
            None => $crate::fail!($text),
        }
    };
}
