//! Strided layouts, as Candle passes them.

/// Layout of `TENSORS` tensors of one shape: `num_dims` dimensions, then the strides of each tensor, in elements.
#[derive(Clone, Copy)]
pub struct Layout<const TENSORS: usize> {
    num_dims: usize,
    info: *const usize,
}

/// Where an element is in each tensor, in elements.
pub type Offsets<const TENSORS: usize> = [usize; TENSORS];

impl<const TENSORS: usize> Layout<TENSORS> {
    /// The contiguous layout.
    pub const CONTIGUOUS: Self = Layout { num_dims: 0, info: core::ptr::null() };

    /// The layout at `info`, or the contiguous one if it is null.
    ///
    /// # Safety
    /// `info` is null or points to `num_dims · (1 + TENSORS)` words that nothing writes during the launch.
    #[inline(always)]
    pub unsafe fn new(num_dims: usize, info: *const usize) -> Self {
        Layout { num_dims: if info.is_null() { 0 } else { num_dims }, info }
    }

    #[inline(always)]
    fn word(&self, index: usize) -> usize {
        // SAFETY: `new`'s
        unsafe { load_constant(self.info.add(index)) }
    }

    /// Size of a dimension.
    #[inline(always)]
    pub fn dim(&self, d: usize) -> usize {
        self.word(d)
    }

    /// Stride of a dimension in one of the tensors, in elements.
    #[inline(always)]
    pub fn stride(&self, tensor: usize, d: usize) -> usize {
        self.word((1 + tensor) * self.num_dims + d)
    }

    /// Number of dimensions; 0 for the contiguous layout.
    #[inline(always)]
    pub fn num_dims(&self) -> usize {
        self.num_dims
    }

    /// Where it is.
    #[inline(always)]
    pub(crate) fn info(&self) -> *const usize {
        self.info
    }

    /// Whether all tensors are contiguous, the last dimension innermost.
    #[inline(always)]
    pub fn is_contiguous(&self) -> bool {
        (0..TENSORS).all(|t| self.is_contiguous_in(t))
    }

    /// Whether one of the tensors is contiguous.
    #[inline(always)]
    pub fn is_contiguous_in(&self, tensor: usize) -> bool {
        let mut expected = 1;
        let mut d = self.num_dims;
        while d > 0 {
            d -= 1;
            let dim = self.dim(d);
            if dim > 1 && self.stride(tensor, d) != expected {
                return false;
            }
            expected *= dim;
        }
        true
    }

    /// Where element number `index` (the last dimension runs fastest) of `numel` is in each tensor.
    ///
    /// Dimensions that can be walked as one in all tensors are: only between the others is there a division, of
    /// 32 bits unless `numel` needs more.
    #[inline(always)]
    pub fn offsets(&self, index: usize, numel: usize) -> Offsets<TENSORS> {
        let mut offsets = [0usize; TENSORS];
        if self.num_dims == 0 {
            return [index; TENSORS];
        }
        let mut d = self.num_dims - 1;
        let mut rest = index;
        let mut dim = self.dim(d);
        let mut strides: [usize; TENSORS] = core::array::from_fn(|t| self.stride(t, d));
        while d > 0 {
            d -= 1;
            let outer: [usize; TENSORS] = core::array::from_fn(|t| self.stride(t, d));
            let outer_dim = self.dim(d);
            if outer_dim == 1 {
                continue;
            }
            if (0..TENSORS).all(|t| outer[t] == strides[t].wrapping_mul(dim)) {
                dim *= outer_dim;
                continue;
            }
            // An inner dimension of 1 costs a division by 1, and is rare.
            let (quotient, remainder) = divide(rest, dim, numel);
            for t in 0..TENSORS {
                offsets[t] = offsets[t].wrapping_add(remainder.wrapping_mul(strides[t]));
            }
            (rest, dim, strides) = (quotient, outer_dim, outer);
        }
        for t in 0..TENSORS {
            offsets[t] = offsets[t].wrapping_add(rest.wrapping_mul(strides[t]));
        }
        offsets
    }
}

/// Quotient and remainder of numbers up to `limit`. Unspecified if `b` is 0.
///
/// 32 bits where they suffice: a division of 64 bits is over a hundred instructions.
#[inline(always)]
pub fn divide(a: usize, b: usize, limit: usize) -> (usize, usize) {
    if limit as u64 <= u64::from(u32::MAX) {
        // Instead of a branch to a panic: one instruction, and no division by 0, which LLVM takes as impossible.
        // SAFETY: it is at least 1
        unsafe { divide_narrow(a, (b as u32).max(1) as usize) }
    } else {
        divide_wide(a, b)
    }
}

/// Quotient and remainder of numbers of 32 bits.
///
/// # Safety
/// The lower 32 bits of `b` are not 0.
#[inline(always)]
pub(crate) unsafe fn divide_narrow(a: usize, b: usize) -> (usize, usize) {
    let (a, b) = (a as u32, b as u32);
    // SAFETY: the divisor is not 0
    let quotient = unsafe { a.checked_div(b).unwrap_unchecked() };
    (quotient as usize, (a - quotient * b) as usize)
}

/// Quotient and remainder of any numbers, bit by bit: slow, but short, and it stands in every kernel for the rare
/// layout that is neither contiguous nor below 2^32 elements.
#[inline]
pub(crate) fn divide_wide(a: usize, b: usize) -> (usize, usize) {
    let (mut quotient, mut remainder) = (0, 0);
    let mut bit = usize::BITS - a.leading_zeros();
    while bit > 0 {
        bit -= 1;
        remainder = remainder << 1 | (a >> bit) & 1;
        let fits = remainder >= b;
        remainder -= if fits { b } else { 0 };
        quotient = quotient << 1 | usize::from(fits);
    }
    (quotient, remainder)
}

/// Reads a word that no work-item writes during the launch (a scalar load where the address is uniform).
///
/// # Safety
/// There is such a word, which nothing writes during the launch.
#[inline(always)]
unsafe fn load_constant(address: *const usize) -> usize {
    #[cfg(any(target_arch = "amdgpu", target_arch = "nvptx64"))]
    // SAFETY: the caller's
    unsafe {
        crate::intrinsics::amdgpu_device_load_constant(address)
    }
    #[cfg(not(any(target_arch = "amdgpu", target_arch = "nvptx64")))]
    // SAFETY: the caller's
    unsafe {
        *address
    }
}
