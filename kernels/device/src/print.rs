//! Printing from a kernel: [`printf!`](crate::printf).
//!
//! On AMD GPUs the host prints: the kernel hands it packets through the buffer that HIP's runtime, or the emulator, gives every
//! kernel that asks for it, as `printf` of a HIP kernel does. NVIDIA's driver has a function for it.

/// Prints as C's `printf` does: a literal format, and numbers. Each lane that comes here prints; in which order is unspecified.
///
/// A number is one of Rust's integers or floats; the conversion must be that of its C type: `%d` and `%u` for 32 bits and less,
/// `%lld` and `%llu` for 64 bits, `%f`, `%g` or `%e` for floats.
///
/// It is for looking for mistakes: a wave waits until the host has answered. On AMD GPUs it needs a launch by HIP, which
/// prints when the stream is synchronised or earlier. On the host, where a launch is one work-item, nothing is printed.
///
/// ```no_run
/// # let (i, x) = (1_usize, 2.0_f32);
/// amdgpu_device::printf!("element %llu is %g\n", i, x);
/// ```
#[macro_export]
macro_rules! printf {
    ($format:literal $(, $value:expr)* $(,)?) => {{
        const TEXT: &str = concat!($format, "\0");
        const WORDS: usize = TEXT.len().div_ceil(8);
        const FORMAT: [u64; WORDS] = $crate::print::pack::<WORDS>(TEXT);
        $crate::print::print(TEXT, &FORMAT, [$($crate::print::Printed::word($value)),*])
    }};
}

/// A number as C passes it to `printf`.
#[diagnostic::on_unimplemented(message = "`{Self}` is not a number that `printf!` prints")]
pub trait Printed: Copy {
    /// The value, and how many bytes of it C passes.
    #[doc(hidden)]
    fn word(self) -> (u64, usize);
}

macro_rules! printed {
    ($($t:ty: $bytes:literal |$x:ident| $word:expr;)*) => {$(
        impl Printed for $t {
            #[inline(always)]
            fn word(self) -> (u64, usize) {
                let $x = self;
                ($word, $bytes)
            }
        }
    )*};
}
printed! {
    u8: 4 |x| x.into();
    u16: 4 |x| x.into();
    u32: 4 |x| x.into();
    u64: 8 |x| x;
    usize: 8 |x| x as u64;
    i8: 4 |x| u64::from(x as i32 as u32);
    i16: 4 |x| u64::from(x as i32 as u32);
    i32: 4 |x| u64::from(x as u32);
    i64: 8 |x| x as u64;
    isize: 8 |x| x as u64;
    bool: 4 |x| x.into();
    f32: 8 |x| f64::from(x).to_bits();
    f64: 8 |x| x.to_bits();
    crate::f16: 8 |x| x.to_f64().to_bits();
    crate::bf16: 8 |x| x.to_f64().to_bits();
    crate::f8e4m3: 8 |x| x.to_f64().to_bits();
}

/// A text as words, filled up with zeros.
#[doc(hidden)]
pub const fn pack<const WORDS: usize>(text: &str) -> [u64; WORDS] {
    let (text, mut words, mut i) = (text.as_bytes(), [0; WORDS], 0);
    while i < text.len() {
        words[i / 8] |= (text[i] as u64) << (8 * (i % 8));
        i += 1;
    }
    words
}

/// Prints; `text` and `format` are the same format, which ends with a zero byte.
#[doc(hidden)]
#[inline(always)]
pub fn print<const VALUES: usize>(text: &'static str, format: &[u64], values: [(u64, usize); VALUES]) {
    #[cfg(target_arch = "amdgpu")]
    {
        let _ = text;
        host::message(format, values.map(|(word, _)| word));
    }
    #[cfg(target_arch = "nvptx64")]
    {
        let _ = format;
        unsafe extern "C" {
            fn vprintf(format: *const u8, values: *const u8) -> i32;
        }
        // Numbers stand where a C structure would have them.
        let mut memory = [0_u64; VALUES];
        let mut at = 0;
        for (word, bytes) in values {
            at = (at + bytes - 1) & !(bytes - 1);
            // SAFETY: no number is longer than a word
            unsafe {
                let place = memory.as_mut_ptr().cast::<u8>().add(at);
                if bytes == 8 {
                    place.cast::<u64>().write(word)
                } else {
                    place.cast::<u32>().write(word as u32)
                }
            }
            at += bytes;
        }
        // SAFETY: the driver's function; the text ends with a zero byte, and the numbers are those that the caller gave
        unsafe { vprintf(text.as_ptr(), memory.as_ptr().cast()) };
    }
    #[cfg(not(any(target_arch = "amdgpu", target_arch = "nvptx64")))]
    let _ = (text, format, values);
}

#[cfg(target_arch = "amdgpu")]
mod host {
    use crate::atomic::{Atomic, Ordering, Scope};
    use crate::wave;
    use crate::workgroup::divergent;

    /// The buffer that the runtime gives.
    #[repr(C)]
    struct Buffer {
        headers: *mut Header,
        payloads: *mut [[u64; 8]; 64],
        doorbell: *mut Signal,
        free: u64,
        ready: u64,
        index_mask: u64,
    }

    /// What a packet is for, and whether it waits.
    #[repr(C)]
    struct Header {
        next: u64,
        active: u64,
        service: u32,
        control: u32,
    }

    /// HSA's signal.
    #[repr(C)]
    struct Signal {
        kind: i64,
        value: u64,
        mailbox: *mut u64,
        event: u32,
    }

    /// The service that prints.
    const PRINTF: u32 = 2;
    /// Words of a lane's part of a packet behind the first.
    const WORDS: usize = 7;

    /// Hands a message over, in as many packets as it needs: where to (0 is standard output), the format, and the values.
    #[inline(always)]
    pub(super) fn message<const VALUES: usize>(format: &[u64], values: [u64; VALUES]) {
        // SAFETY: an address
        let buffer = unsafe { crate::intrinsics::amdgpu_device_host_calls() }.cast::<Buffer>();
        if buffer.is_null() {
            return;
        }
        let count = 1 + format.len() + VALUES;
        let (mut sent, mut number) = (0, 0_u64);
        while sent < count {
            let now = (count - sent).min(WORDS);
            let first =
                u64::from(sent == 0) | u64::from(sent + now == count) << 1 | (now as u64) << 5 | number << 8;
            let word = |i: usize| {
                let at = sent + i;
                if at == 0 || i >= now {
                    0
                } else if at <= format.len() {
                    format[at - 1]
                } else {
                    values[at - 1 - format.len()]
                }
            };
            // SAFETY: the runtime's buffer
            number = unsafe { call(buffer, first, word) } >> 8;
            sent += now;
        }
    }

    /// Hands a packet over for all lanes that are here, and waits for the answer.
    ///
    /// # Safety
    /// The buffer is the runtime's.
    #[inline(always)]
    unsafe fn call(buffer: *mut Buffer, first: u64, word: impl Fn(usize) -> u64) -> u64 {
        let lane = wave::lane();
        let here = divergent(|| wave::ballot(true));
        let leads = lane == wave::read_first_lane(lane);
        // SAFETY: addresses of the buffer, all accesses of which that others see are atomic
        unsafe {
            let free = Atomic::from_ptr(&raw mut (*buffer).free);
            let ready = Atomic::from_ptr(&raw mut (*buffer).ready);
            let (headers, mask) = ((*buffer).headers, (*buffer).index_mask);
            let of = |name: u64| headers.add((name & mask) as usize);
            let mut name = 0;
            if leads {
                name = free.load(Scope::System, Ordering::Acquire);
                loop {
                    // 0 is no packet: another wave gives one back.
                    if name != 0 {
                        let next = Atomic::from_ptr(&raw mut (*of(name)).next)
                            .load(Scope::System, Ordering::Relaxed);
                        if free.compare_exchange(name, next, Scope::System, Ordering::AcqRel).is_ok() {
                            break;
                        }
                    }
                    core::arch::amdgpu::s_sleep::<1>();
                    name = free.load(Scope::System, Ordering::Acquire);
                }
            }
            let name = wave::read_first_lane_usize(name as usize) as u64;
            let header = of(name);
            let words = (*buffer)
                .payloads
                .add((name & mask) as usize)
                .cast::<[u64; 8]>()
                .add(lane as usize)
                .cast::<u64>();
            words.write(first);
            crate::unroll!(WORDS, I => words.add(1 + I).write(word(I)));
            if leads {
                (*header).active = here;
                (*header).service = PRINTF;
                let control = Atomic::from_ptr(&raw mut (*header).control);
                control.store(1, Scope::System, Ordering::Relaxed);
                loop {
                    let top = ready.load(Scope::System, Ordering::Relaxed);
                    Atomic::from_ptr(&raw mut (*header).next).store(top, Scope::System, Ordering::Relaxed);
                    if ready.compare_exchange(top, name, Scope::System, Ordering::AcqRel).is_ok() {
                        break;
                    }
                }
                ring((*buffer).doorbell);
                while control.load(Scope::System, Ordering::Acquire) & 1 != 0 {
                    core::arch::amdgpu::s_sleep::<1>();
                }
            }
            // The other lanes' answers are there when the first lane has seen that its own is.
            crate::atomic::fence(Scope::System, Ordering::Acquire);
            let answer = Atomic::from_ptr(words).load(Scope::System, Ordering::Relaxed);
            if leads {
                // Another name for the packet, so that who still holds the old one does not take it for unchanged.
                let name = name.wrapping_add(mask + 1);
                let name = if name == 0 { mask + 1 } else { name };
                loop {
                    let top = free.load(Scope::System, Ordering::Relaxed);
                    Atomic::from_ptr(&raw mut (*header).next).store(top, Scope::System, Ordering::Relaxed);
                    if free.compare_exchange(top, name, Scope::System, Ordering::AcqRel).is_ok() {
                        break;
                    }
                }
            }
            answer
        }
    }

    /// Wakes whoever waits for the signal.
    ///
    /// # Safety
    /// It is a signal.
    #[inline(always)]
    unsafe fn ring(signal: *mut Signal) {
        // SAFETY: the caller's
        unsafe {
            Atomic::from_ptr(&raw mut (*signal).value).fetch_add(1, Scope::System, Ordering::Release);
            let mailbox = (*signal).mailbox;
            if !mailbox.is_null() {
                let event = (*signal).event;
                Atomic::from_ptr(mailbox).store(event.into(), Scope::System, Ordering::Release);
                crate::intrinsics::amdgpu_device_interrupt(event);
            }
        }
    }
}
