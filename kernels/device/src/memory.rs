//! Vector loads and stores of global memory.

/// Widest access of one work-item in bytes.
pub const VECTOR_BYTES: usize = 16;

/// A vector for the compiler too, or it takes a load apart and shares the first word with another branch's.
#[derive(Clone, Copy)]
#[cfg_attr(any(target_arch = "amdgpu", target_arch = "nvptx64"), repr(simd))]
#[cfg_attr(not(any(target_arch = "amdgpu", target_arch = "nvptx64")), repr(C, align(16)))]
#[allow(dead_code)]
struct Chunk([u32; 4]);

/// Whether an address is a multiple of 16 bytes, as [`load`] and [`store`] require.
#[inline(always)]
pub fn is_aligned<T>(address: *const T) -> bool {
    (address as usize).is_multiple_of(VECTOR_BYTES)
}

/// Loads `N` consecutive elements, 16 bytes at a time where there are so many.
///
/// # Safety
/// The elements can be read, and the address is a multiple of `N · size_of::<T>()` or of 16 bytes, whichever is
/// less. `N · size_of::<T>()` is a power of two.
#[inline(always)]
pub unsafe fn load<T: Copy, const N: usize>(address: *const T) -> [T; N] {
    // SAFETY: the caller's; a type of the same size and the alignment that the caller promised stands for the array
    unsafe {
        match size_of::<[T; N]>() {
            1 => as_array(address.cast::<u8>().read()),
            2 => as_array(address.cast::<u16>().read()),
            4 => as_array(address.cast::<u32>().read()),
            8 => as_array(address.cast::<u64>().read()),
            // Of a vector that is only taken apart into bytes the compiler makes 16 loads, of an integer it does not.
            16 if size_of::<T>() == 1 => as_array(address.cast::<u128>().read()),
            16 => as_array(address.cast::<Chunk>().read()),
            32 => as_array(address.cast::<[Chunk; 2]>().read()),
            64 => as_array(address.cast::<[Chunk; 4]>().read()),
            _ => address.cast::<[T; N]>().read(),
        }
    }
}

/// Says that nothing that this kernel loads is worth keeping in the cache. Only NVIDIA targets can be told so.
#[inline(always)]
pub fn loads_once() {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: touches no memory
    unsafe {
        crate::intrinsics::amdgpu_device_loads_once()
    }
}

/// Says the same of what it stores.
#[inline(always)]
pub fn stores_once() {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: touches no memory
    unsafe {
        crate::intrinsics::amdgpu_device_stores_once()
    }
}

/// Prefetches the cache line of an address. Only NVIDIA targets have an instruction for it.
#[inline(always)]
pub fn prefetch<T>(address: *const T) {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: nothing is read
    unsafe {
        crate::intrinsics::amdgpu_device_prefetch(address.cast())
    }
    #[cfg(not(target_arch = "nvptx64"))]
    let _ = address;
}

/// Stores `N` consecutive elements, 16 bytes at a time where there are so many.
///
/// # Safety
/// As for [`load`]; the elements can be written.
#[inline(always)]
pub unsafe fn store<T: Copy, const N: usize>(address: *mut T, elements: [T; N]) {
    // SAFETY: as above
    unsafe {
        match size_of::<[T; N]>() {
            1 => address.cast::<u8>().write(as_array(elements)),
            2 => address.cast::<u16>().write(as_array(elements)),
            4 => address.cast::<u32>().write(as_array(elements)),
            8 => address.cast::<u64>().write(as_array(elements)),
            16 => address.cast::<Chunk>().write(as_array(elements)),
            32 => address.cast::<[Chunk; 2]>().write(as_array(elements)),
            64 => address.cast::<[Chunk; 4]>().write(as_array(elements)),
            _ => address.cast::<[T; N]>().write(elements),
        }
    }
}

/// The same bytes as another type.
///
/// # Safety
/// Both have the same size, and the bytes of one are valid for the other.
#[inline(always)]
unsafe fn as_array<A, B>(a: A) -> B {
    // SAFETY: the caller's
    unsafe { core::mem::transmute_copy(&a) }
}

/// Evaluates the block with `$n`, the number of elements in 16 bytes, as a constant.
#[macro_export]
macro_rules! by_vector {
    ($t:ty, $n:ident => $body:block) => {
        match const { $crate::memory::VECTOR_BYTES / ::core::mem::size_of::<$t>() } {
            2 => $crate::by_vector!(@ $n 2 $body),
            4 => $crate::by_vector!(@ $n 4 $body),
            8 => $crate::by_vector!(@ $n 8 $body),
            _ => $crate::by_vector!(@ $n 16 $body),
        }
    };
    (@ $n:ident $value:literal $body:block) => {{
        const $n: usize = $value;
        $body
    }};
}

/// Evaluates the expression for each constant `$i` below `$n`, 16 at most, written out: not every target's compiler unrolls
/// a loop around a long function, and an array that it indexes is in scratch memory then.
#[macro_export]
macro_rules! unroll {
    ($n:expr, $i:ident => $body:expr) => {
        $crate::unroll!($n, $i => $body; 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)
    };
    ($n:expr, $i:ident => $body:expr; $($value:literal)*) => {$(
        // Where `$n` is no generic parameter, the compiler sees the constant before it sees that it is not used.
        #[allow(unconditional_panic, clippy::out_of_bounds_indexing)]
        {
            if const { $n > $value } {
                const $i: usize = $value;
                $body;
            }
        }
    )*};
}
