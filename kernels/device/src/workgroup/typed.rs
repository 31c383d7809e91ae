//! Typed workgroup memory.

use crate::atomic::{Atomic, AtomicValue};

/// Workgroup memory of the kernel's own with room for a value of a type: an array, a structure, a number. It is uninitialised.
///
/// Each place in the source is memory of its own, for each type that a generic function has there; no two overlap, nor do they
/// overlap what the launch gives ([`dynamic`](crate::workgroup::dynamic)) or what functions of this library use. A function that
/// is called twice has the same memory both times, as a `static` would be.
///
/// A kernel has as much as the places that it reaches need, known when it is compiled. More than a target has, 64 KiB on most, is
/// an error of the build.
///
/// ```no_run
/// use amdgpu_device::grid::local_id_x;
/// use amdgpu_device::workgroup::barrier_local;
/// use amdgpu_device::workgroup_memory;
///
/// #[derive(Clone, Copy)]
/// struct Best {
///     value: f32,
///     place: u32,
/// }
///
/// unsafe fn example(x: f32) {
///     let (sums, best) = (workgroup_memory!([f32; 256]), workgroup_memory!(Best));
///     let id = local_id_x() as usize;
///     // SAFETY: each work-item writes its own element, and none is read before the barrier
///     unsafe {
///         sums.set(id, x);
///         if id == 0 {
///             best.write(Best { value: x, place: 0 });
///         }
///     }
///     barrier_local();
/// }
/// ```
#[macro_export]
macro_rules! workgroup_memory {
    ($t:ty) => {{
        /// Tells this place from all others.
        struct Place;
        $crate::workgroup::place::<Place, $t>()
    }};
}

/// Workgroup memory that has room for a `T`, which may be a slice. It is an address: copies are of the same memory.
///
/// What is there is what work-items have written; nothing keeps them from writing at the same time. Between a write and an
/// access of another work-item there must be a barrier, or both are atomic.
pub struct Local<T: ?Sized>(*mut T);

impl<T: ?Sized> Clone for Local<T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: ?Sized> Copy for Local<T> {}

impl<T: ?Sized> Local<T> {
    /// Its address.
    #[inline(always)]
    pub fn as_ptr(self) -> *mut T {
        self.0
    }
}

impl<T> Local<T> {
    /// Reads all of it.
    ///
    /// # Safety
    /// It has been written, and no other work-item writes it at the same time.
    #[inline(always)]
    pub unsafe fn read(self) -> T
    where
        T: Copy,
    {
        // SAFETY: the caller's
        unsafe { self.0.read() }
    }

    /// Writes all of it.
    ///
    /// # Safety
    /// No other work-item reads or writes it at the same time.
    #[inline(always)]
    pub unsafe fn write(self, value: T)
    where
        T: Copy,
    {
        // SAFETY: the caller's
        unsafe { self.0.write(value) }
    }
}

impl<T, const N: usize> Local<[T; N]> {
    /// The same memory as a slice.
    #[inline(always)]
    pub fn as_slice(self) -> Local<[T]> {
        Local(self.0)
    }
}

/// Methods that arrays and slices have alike.
macro_rules! elements {
    ($($(const $N:ident: usize)? for $t:ty: |$this:ident| $len:expr;)*) => {$(
        impl<T $(, const $N: usize)?> Local<$t> {
            /// How many elements it has.
            #[inline(always)]
            #[allow(clippy::len_without_is_empty)]
            pub fn len(self) -> usize {
                let $this = self;
                $len
            }

            /// The address of an element. In a build with checks an element that does not exist is a panic.
            ///
            /// # Safety
            /// `index` is below [`len`](Self::len).
            #[inline(always)]
            pub unsafe fn at(self, index: usize) -> *mut T {
                #[cfg(amdgpu_checks)]
                if index >= self.len() {
                    crate::fail!("an element of workgroup memory that does not exist");
                }
                // SAFETY: the caller's
                unsafe { self.0.cast::<T>().add(index) }
            }

            /// Reads an element.
            ///
            /// # Safety
            /// It exists, has been written, and no other work-item writes it at the same time.
            #[inline(always)]
            pub unsafe fn get(self, index: usize) -> T
            where
                T: Copy,
            {
                // SAFETY: the caller's
                unsafe { self.at(index).read() }
            }

            /// Writes an element.
            ///
            /// # Safety
            /// It exists, and no other work-item reads or writes it at the same time.
            #[inline(always)]
            pub unsafe fn set(self, index: usize, value: T)
            where
                T: Copy,
            {
                // SAFETY: the caller's
                unsafe { self.at(index).write(value) }
            }

            /// An element that work-items change at the same time.
            ///
            /// # Safety
            /// It exists, and all accesses between two barriers are atomic.
            #[inline(always)]
            pub unsafe fn atomic<'a>(self, index: usize) -> &'a Atomic<T>
            where
                T: AtomicValue,
            {
                // SAFETY: the caller's
                unsafe { Atomic::from_ptr(self.at(index)) }
            }
        }
    )*};
}
elements! {
    const N: usize for [T; N]: |_this| N;
    for [T]: |this| this.0.len();
}

/// The workgroup memory that the launch gives (`lds_bytes`) as elements, uninitialised: all of it, behind what the kernel has of
/// its own. Each call returns the same memory.
#[inline(always)]
pub fn dynamic<T>() -> Local<[T]> {
    const { assert!(align_of::<T>() <= 16, "workgroup memory is aligned to 16 bytes") };
    const { assert!(size_of::<T>() > 0, "elements without a size need no memory") };
    #[cfg(any(target_arch = "amdgpu", target_arch = "nvptx64"))]
    // SAFETY: an address, and a number of the launch's own memory or a register
    let (start, bytes) = unsafe {
        (
            crate::intrinsics::amdgpu_device_workgroup_memory(),
            crate::intrinsics::amdgpu_device_dynamic_bytes(),
        )
    };
    #[cfg(not(any(target_arch = "amdgpu", target_arch = "nvptx64")))]
    let (start, bytes) = (super::memory::<u8>(), 0_u32);
    // The divisor is a constant other than 0.
    let count = bytes as usize / size_of::<T>();
    Local(core::ptr::slice_from_raw_parts_mut(start.cast(), count))
}

/// What [`workgroup_memory!`] gives: memory that belongs to the two types.
#[doc(hidden)]
#[inline(always)]
pub fn place<Place, T>() -> Local<T> {
    const { assert!(align_of::<T>() <= 16, "workgroup memory is aligned to 16 bytes") };
    const { assert!(size_of::<T>() <= 160 << 10, "no target has so much workgroup memory") };
    Local(slot::<Place, T>())
}

/// A function that is compiled once for each place and type, and never into another: amdgpu-build replaces the call in it by the
/// address of memory that is the function's own.
#[inline(never)]
#[allow(clippy::extra_unused_type_parameters, reason = "each place has a function of its own")]
fn slot<Place, T>() -> *mut T {
    #[cfg(any(target_arch = "amdgpu", target_arch = "nvptx64"))]
    // SAFETY: an address
    unsafe {
        crate::intrinsics::amdgpu_device_workgroup_slot(size_of::<T>(), align_of::<T>()).cast()
    }
    #[cfg(not(any(target_arch = "amdgpu", target_arch = "nvptx64")))]
    super::memory()
}
