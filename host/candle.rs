//! Candle's eleven families of kernels, by the names that Candle's host code uses.

use crate::{Module, kernels};

/// One of the eleven families.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(usize)]
pub enum Id {
    /// y = a·x + b
    Affine,
    /// Element by element, of two tensors.
    Binary,
    /// From one element type to another.
    Cast,
    /// Convolutions, pools and upsampling.
    Conv,
    /// Constants and copies.
    Fill,
    /// Gather, scatter, index select and index add.
    Indexing,
    /// Quantized matrices.
    Quantized,
    /// Sums, norms, softmax and rotary embeddings.
    Reduce,
    /// Sorting.
    Sort,
    /// Selection by a condition.
    Ternary,
    /// Element by element, of one tensor.
    Unary,
}

/// All eleven, in the order of [`Id`].
pub const ALL_IDS: [Id; 11] = [
    Id::Affine,
    Id::Binary,
    Id::Cast,
    Id::Conv,
    Id::Fill,
    Id::Indexing,
    Id::Quantized,
    Id::Reduce,
    Id::Sort,
    Id::Ternary,
    Id::Unary,
];

impl Id {
    /// The family's name, as in `candle-amdgpu kernels --family NAME`.
    pub const fn name(self) -> &'static str {
        match self {
            Id::Affine => "affine",
            Id::Binary => "binary",
            Id::Cast => "cast",
            Id::Conv => "conv",
            Id::Fill => "fill",
            Id::Indexing => "indexing",
            Id::Quantized => "quantized",
            Id::Reduce => "reduce",
            Id::Sort => "sort",
            Id::Ternary => "ternary",
            Id::Unary => "unary",
        }
    }

    /// The family's module.
    pub const fn module(self) -> &'static Module {
        match self {
            Id::Affine => &AFFINE,
            Id::Binary => &BINARY,
            Id::Cast => &CAST,
            Id::Conv => &CONV,
            Id::Fill => &FILL,
            Id::Indexing => &INDEXING,
            Id::Quantized => &QUANTIZED,
            Id::Reduce => &REDUCE,
            Id::Sort => &SORT,
            Id::Ternary => &TERNARY,
            Id::Unary => &UNARY,
        }
    }
}

macro_rules! modules {
    ($($name:ident $id:ident)*) => {$(
        #[doc = concat!("The module of [`Id::", stringify!($id), "`].")]
        pub static $name: Module = find(Id::$id.name());
    )*};
}

modules! {
    AFFINE Affine
    BINARY Binary
    CAST Cast
    CONV Conv
    FILL Fill
    INDEXING Indexing
    QUANTIZED Quantized
    REDUCE Reduce
    SORT Sort
    TERNARY Ternary
    UNARY Unary
}

/// Matrix products, which Candle takes from cuBLAS; see [`gemm`](crate::gemm).
pub static GEMM: Module = find("gemm");

/// Random numbers, which Candle takes from cuRAND; see [`rng`](crate::rng).
pub static RNG: Module = find("rng");

/// The module of the build with the family's name, or one without kernels.
const fn find(name: &'static str) -> Module {
    let mut i = 0;
    while i < kernels::MODULES.len() {
        if same(kernels::MODULES[i].name().as_bytes(), name.as_bytes()) {
            return *kernels::MODULES[i];
        }
        i += 1;
    }
    Module::new(name, &[], &[])
}

/// `a == b` for constants, where the operator is not available yet.
const fn same(a: &[u8], b: &[u8]) -> bool {
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len() && i == b.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_in_order_and_have_their_modules() {
        assert!(ALL_IDS.is_sorted());
        for (i, id) in ALL_IDS.into_iter().enumerate() {
            assert_eq!(id as usize, i);
            assert_eq!(id.module().name(), id.name());
        }
    }
}
