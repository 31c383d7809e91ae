//! Candle's kernels, on AMD GPUs and on an exact AMDGPU emulator: what candle-core 0.11.1 finds in place of the
//! crate of this name.
//!
//! A [`Module`] is one of the eleven families in `candle-amdgpu`. Candle hands its text to
//! `cudarc::driver::CudaContext::load_module`, which in this project's `cudarc` takes it for the family's name.

#[cfg(feature = "cutile")]
compile_error!(
    "the feature `cutile` stands for kernels in NVIDIA's cuTile that candle-amdgpu's candle-kernels does not offer: \
     turn off the feature `cutile` of candle-core or candle-nn"
);

mod dense;
mod experts;
pub mod ffi;
mod run;

pub use candle_amdgpu::{ALL_IDS, Id};

/// A family's kernels.
pub struct Module {
    id: Id,
    key: &'static str,
}

impl Module {
    /// Its position in [`ALL_IDS`].
    pub fn index(&self) -> usize {
        self.id as usize
    }

    /// What this project's `cudarc` loads it by.
    pub fn ptx(&self) -> &'static str {
        self.key
    }
}

macro_rules! modules {
    ($($name:ident $id:ident $key:literal)*) => {$(
        #[doc = concat!("The module of [`Id::", stringify!($id), "`].")]
        pub const $name: Module = Module { id: Id::$id, key: concat!("candle-amdgpu:", $key) };
    )*};
}

modules! {
    AFFINE Affine "affine"
    BINARY Binary "binary"
    CAST Cast "cast"
    CONV Conv "conv"
    FILL Fill "fill"
    INDEXING Indexing "indexing"
    QUANTIZED Quantized "quantized"
    REDUCE Reduce "reduce"
    SORT Sort "sort"
    TERNARY Ternary "ternary"
    UNARY Unary "unary"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_keys_are_those_of_the_families() {
        let modules = [AFFINE, BINARY, CAST, CONV, FILL, INDEXING, QUANTIZED, REDUCE, SORT, TERNARY, UNARY];
        for (i, module) in modules.iter().enumerate() {
            assert_eq!(module.index(), i);
            assert_eq!(ALL_IDS[i] as usize, i);
            assert_eq!(module.ptx(), format!("candle-amdgpu:{}", candle_amdgpu::ALL_IDS[i].name()));
        }
    }
}
