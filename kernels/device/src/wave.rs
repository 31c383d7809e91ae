//! The wave: work-items that run in lockstep, 32 or 64 of them by target.
//!
//! All lanes of the wave must come to these calls: keep them out of branches and loops that differ between lanes.
//! A lane reads what the same call of another lane gave. On the host a wave is one lane.

/// Lanes of a wave: 64 on CDNA, 32 on RDNA and on NVIDIA GPUs, 1 on the host.
pub const SIZE: u32 = if cfg!(not(any(target_arch = "amdgpu", target_arch = "nvptx64"))) {
    1
} else if cfg!(feature = "wave64") {
    64
} else {
    32
};

/// This lane in its wave.
#[inline(always)]
pub fn lane() -> u32 {
    #[cfg(target_arch = "amdgpu")]
    {
        use core::arch::amdgpu::{mbcnt_hi, mbcnt_lo};
        let low = mbcnt_lo(!0, 0);
        if SIZE == 64 { mbcnt_hi(!0, low) } else { low }
    }
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: reads a register
    unsafe {
        nvvm::laneid()
    }
    #[cfg(not(any(target_arch = "amdgpu", target_arch = "nvptx64")))]
    0
}

/// Which lanes say yes: bit `i` is lane `i`'s.
#[inline(always)]
pub fn ballot(yes: bool) -> u64 {
    #[cfg(target_arch = "amdgpu")]
    {
        core::arch::amdgpu::ballot(yes)
    }
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: touches no memory
    unsafe {
        u64::from(nvvm::ballot(!0, yes))
    }
    #[cfg(not(any(target_arch = "amdgpu", target_arch = "nvptx64")))]
    u64::from(yes)
}

/// Whether any lane says yes.
#[inline(always)]
pub fn any(yes: bool) -> bool {
    ballot(yes) != 0
}

/// What lane `from` has. `from` is taken modulo [`SIZE`]; it may differ between lanes.
#[inline(always)]
pub fn shuffle_u32(value: u32, from: u32) -> u32 {
    #[cfg(target_arch = "amdgpu")]
    // SAFETY: touches no memory
    unsafe {
        core::arch::amdgpu::ds_bpermute(from.wrapping_mul(4), value)
    }
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: touches no memory
    unsafe {
        nvvm::shuffle(!0, value, from, 31)
    }
    #[cfg(not(any(target_arch = "amdgpu", target_arch = "nvptx64")))]
    {
        let _ = from;
        value
    }
}

/// What the wave's first active lane has, in all lanes that are here; it may be called in branches that differ.
#[inline(always)]
pub fn read_first_lane(value: u32) -> u32 {
    #[cfg(target_arch = "amdgpu")]
    {
        core::arch::amdgpu::readfirstlane_u32(value)
    }
    #[cfg(target_arch = "nvptx64")]
    {
        crate::workgroup::divergent(|| {
            // SAFETY: touches no memory
            unsafe {
                let here = nvvm::activemask();
                nvvm::shuffle(here, value, here.trailing_zeros(), 31)
            }
        })
    }
    #[cfg(not(any(target_arch = "amdgpu", target_arch = "nvptx64")))]
    value
}

/// [`read_first_lane`] of 64 bits.
#[inline(always)]
pub fn read_first_lane_usize(value: usize) -> usize {
    read_first_lane(value as u32) as usize | (read_first_lane((value >> 32) as u32) as usize) << 32
}

/// A value that is the same in all active lanes: tells the build so, which then treats branches on it as uniform, and puts
/// it into a scalar register of an AMD GPU. If it differs between lanes, the result is unspecified.
#[inline(always)]
pub fn uniform_u32(value: u32) -> u32 {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: touches no memory
    unsafe {
        crate::intrinsics::amdgpu_device_uniform(value)
    }
    #[cfg(not(target_arch = "nvptx64"))]
    read_first_lane(value)
}

/// [`uniform_u32`] of 64 bits.
#[inline(always)]
pub fn uniform_usize(value: usize) -> usize {
    uniform_u32(value as u32) as usize | (uniform_u32((value >> 32) as u32) as usize) << 32
}

/// A value that lanes can hand to each other.
pub trait Lane: Copy {
    /// What lane `from` (modulo [`SIZE`]) has.
    fn shuffle(self, from: u32) -> Self;
}

/// A value that consists of 32-bit words, which [groups](crate::group) hand over one by one: numbers, pairs and arrays of them.
pub trait Words: Lane {
    /// The value with each word of it replaced by what `f` makes of it.
    fn words(self, f: impl Fn(u32) -> u32) -> Self;
}

macro_rules! lanes {
    ($($t:ty: |$x:ident, $from:ident| $read:expr, |$f:ident| $words:expr;)*) => {$(
        impl Lane for $t {
            #[inline(always)]
            fn shuffle(self, $from: u32) -> Self {
                let $x = self;
                $read
            }
        }

        impl Words for $t {
            #[inline(always)]
            fn words(self, $f: impl Fn(u32) -> u32) -> Self {
                let $x = self;
                $words
            }
        }
    )*};
}
lanes! {
    u32: |x, from| shuffle_u32(x, from), |f| f(x);
    i32: |x, from| shuffle_u32(x as u32, from) as i32, |f| f(x as u32) as i32;
    f32: |x, from| f32::from_bits(shuffle_u32(x.to_bits(), from)), |f| f32::from_bits(f(x.to_bits()));
    u64: |x, from| {
        let [low, high] = [x as u32, (x >> 32) as u32].map(|half| u64::from(shuffle_u32(half, from)));
        low | high << 32
    }, |f| u64::from(f(x as u32)) | u64::from(f((x >> 32) as u32)) << 32;
    i64: |x, from| (x as u64).shuffle(from) as i64, |f| (x as u64).words(f) as i64;
    f64: |x, from| f64::from_bits(x.to_bits().shuffle(from)), |f| f64::from_bits(x.to_bits().words(f));
    u8: |x, from| shuffle_u32(u32::from(x), from) as u8, |f| f(u32::from(x)) as u8;
    u16: |x, from| shuffle_u32(u32::from(x), from) as u16, |f| f(u32::from(x)) as u16;
    i16: |x, from| shuffle_u32(x as u32, from) as i16, |f| f(x as u32) as i16;
    crate::f16: |x, from| crate::f16::from_bits(x.to_bits().shuffle(from)), |f| crate::f16::from_bits(x.to_bits().words(f));
    crate::bf16: |x, from| crate::bf16::from_bits(x.to_bits().shuffle(from)), |f| crate::bf16::from_bits(x.to_bits().words(f));
    crate::f8e4m3: |x, from| crate::f8e4m3::from_bits(x.to_bits().shuffle(from)), |f| crate::f8e4m3::from_bits(f(u32::from(x.to_bits())) as u8);
    i8: |x, from| shuffle_u32(x as u32, from) as i8, |f| f(x as u32) as i8;
    usize: |x, from| (x as u64).shuffle(from) as usize, |f| (x as u64).words(f) as usize;
    bool: |x, from| shuffle_u32(u32::from(x), from) != 0, |f| f(u32::from(x)) != 0;
}

impl<A: Lane, B: Lane> Lane for (A, B) {
    #[inline(always)]
    fn shuffle(self, from: u32) -> Self {
        (self.0.shuffle(from), self.1.shuffle(from))
    }
}

impl<A: Words, B: Words> Words for (A, B) {
    #[inline(always)]
    fn words(self, f: impl Fn(u32) -> u32) -> Self {
        (self.0.words(&f), self.1.words(&f))
    }
}

impl<T: Lane, const N: usize> Lane for [T; N] {
    #[inline(always)]
    fn shuffle(self, from: u32) -> Self {
        self.map(|x| x.shuffle(from))
    }
}

impl<T: Words, const N: usize> Words for [T; N] {
    #[inline(always)]
    fn words(self, f: impl Fn(u32) -> u32) -> Self {
        self.map(|x| x.words(&f))
    }
}

/// Combines `WIDTH` neighbouring lanes (a power of two up to [`SIZE`]); each of them gets the result.
///
/// In each step a lane combines its value with that of the lane whose number differs in one bit, so that all of them
/// combine the same pairs: for a commutative `combine` the result is the same in all lanes, bit for bit.
#[inline(always)]
pub fn reduce_within<const WIDTH: u32, T: Lane>(value: T, combine: impl Fn(T, T) -> T) -> T {
    let lane = lane();
    let mut value = value;
    let mut distance = WIDTH / 2;
    while distance > 0 {
        value = combine(value, value.shuffle(lane ^ distance));
        distance /= 2;
    }
    value
}

/// As [`reduce_within`], where the `width` is not known to the compiler. It is the same in all lanes.
#[inline(always)]
pub fn reduce_among<T: Lane>(width: u32, value: T, combine: impl Fn(T, T) -> T) -> T {
    let lane = lane();
    let mut value = value;
    let mut distance = width / 2;
    while distance > 0 {
        value = combine(value, value.shuffle(lane ^ distance));
        distance /= 2;
    }
    value
}

/// Combines all lanes of the wave; each of them gets the result.
#[inline(always)]
pub fn reduce<T: Lane>(value: T, combine: impl Fn(T, T) -> T) -> T {
    reduce_within::<SIZE, T>(value, combine)
}

#[cfg(target_arch = "nvptx64")]
mod nvvm {
    unsafe extern "C" {
        #[link_name = "llvm.nvvm.activemask"]
        pub fn activemask() -> u32;
        #[link_name = "llvm.nvvm.read.ptx.sreg.laneid"]
        pub fn laneid() -> u32;
        #[link_name = "llvm.nvvm.vote.ballot.sync"]
        pub fn ballot(members: u32, yes: bool) -> u32;
        #[link_name = "llvm.nvvm.shfl.sync.idx.i32"]
        pub fn shuffle(members: u32, value: u32, from: u32, clamp: u32) -> u32;
    }
}
