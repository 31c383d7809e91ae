//! The same forward passes on Candle's CPU backend: the definition that a kernel is tested against.

use crate::map::same_shape;
use crate::{LayoutExt, Result};
use candle_amdgpu::{bf16, f16};
use candle_core::{CpuStorage, Layout, Shape, WithDType};
use std::mem;

/// A float that is computed in `f32` and rounded once, as a kernel's `T::from_f32(f(x.to_f32()))` does.
pub trait Float: WithDType {
    /// The same number.
    fn to_f32(self) -> f32;

    /// The nearest number of the type, of two the even one.
    fn from_f32(x: f32) -> Self;
}

impl Float for f32 {
    fn to_f32(self) -> f32 {
        self
    }

    fn from_f32(x: f32) -> f32 {
        x
    }
}

impl Float for f16 {
    fn to_f32(self) -> f32 {
        self.to_f32()
    }

    fn from_f32(x: f32) -> f16 {
        f16::from_f32(x)
    }
}

impl Float for bf16 {
    fn to_f32(self) -> f32 {
        self.to_f32()
    }

    fn from_f32(x: f32) -> bf16 {
        bf16::from_f32(x)
    }
}

/// A tensor as a `CustomOp` gets it.
type Tensor<'a> = (&'a CpuStorage, &'a Layout);

/// A new tensor of `x`'s shape, whose elements are `f`'s of its own.
///
/// # Errors
/// If `x` has other elements.
pub fn map1<T: WithDType, U: WithDType>(
    x: &CpuStorage,
    layout: &Layout,
    f: impl Fn(T) -> U,
) -> Result<(CpuStorage, Shape)> {
    new(layout, elements(x, layout)?.map(f))
}

/// The same of two tensors of one shape, each with its own strides.
///
/// # Errors
/// If one has other elements, or the shapes differ.
pub fn map2<T1: WithDType, T2: WithDType, U: WithDType>(
    op: &'static str,
    [(x1, l1), (x2, l2)]: [Tensor<'_>; 2],
    f: impl Fn(T1, T2) -> U,
) -> Result<(CpuStorage, Shape)> {
    same_shape(op, l1, l2)?;
    new(l1, elements(x1, l1)?.zip(elements(x2, l2)?).map(|(a, b)| f(a, b)))
}

/// The same of three.
///
/// # Errors
/// As for [`map2`].
pub fn map3<T1: WithDType, T2: WithDType, T3: WithDType, U: WithDType>(
    op: &'static str,
    [(x1, l1), (x2, l2), (x3, l3)]: [Tensor<'_>; 3],
    f: impl Fn(T1, T2, T3) -> U,
) -> Result<(CpuStorage, Shape)> {
    same_shape(op, l1, l2)?;
    same_shape(op, l1, l3)?;
    let all = elements(x1, l1)?.zip(elements(x2, l2)?).zip(elements(x3, l3)?);
    new(l1, all.map(|((a, b), c)| f(a, b, c)))
}

/// Changes each element of a tensor, in place.
///
/// # Errors
/// If it has other elements.
pub fn update1<T: WithDType>(x: &mut CpuStorage, layout: &Layout, f: impl Fn(T) -> T) -> Result<()> {
    let places = layout.to_amdgpu()?;
    change(x, |data: &mut [T]| places.indices().for_each(|i| data[i] = f(data[i])))
}

/// The same with another tensor of the shape, which is read.
///
/// # Errors
/// If one has other elements, or the shapes differ.
pub fn update2<T: WithDType, T2: WithDType>(
    op: &'static str,
    (x, layout): (&mut CpuStorage, &Layout),
    (x2, l2): Tensor<'_>,
    f: impl Fn(T, T2) -> T,
) -> Result<()> {
    same_shape(op, layout, l2)?;
    let (places, others) = (layout.to_amdgpu()?, elements(x2, l2)?);
    change(x, |data: &mut [T]| places.indices().zip(others).for_each(|(i, b)| data[i] = f(data[i], b)))
}

/// The same with two other tensors.
///
/// # Errors
/// As for [`update2`].
pub fn update3<T: WithDType, T2: WithDType, T3: WithDType>(
    op: &'static str,
    (x, layout): (&mut CpuStorage, &Layout),
    [(x2, l2), (x3, l3)]: [Tensor<'_>; 2],
    f: impl Fn(T, T2, T3) -> T,
) -> Result<()> {
    same_shape(op, layout, l2)?;
    same_shape(op, layout, l3)?;
    let places = layout.to_amdgpu()?;
    let others = elements(x2, l2)?.zip(elements(x3, l3)?);
    change(x, |data: &mut [T]| {
        places.indices().zip(others).for_each(|(i, (b, c))| data[i] = f(data[i], b, c));
    })
}

fn new<U: WithDType>(layout: &Layout, elements: impl Iterator<Item = U>) -> Result<(CpuStorage, Shape)> {
    Ok((U::to_cpu_storage_owned(elements.collect()), layout.shape().clone()))
}

/// Lets `f` change the memory.
fn change<T: WithDType>(x: &mut CpuStorage, f: impl FnOnce(&mut [T])) -> Result<()> {
    // An error before the memory is taken out.
    x.as_slice::<T>()?;
    let mut data = T::cpu_storage_data(mem::replace(x, T::to_cpu_storage_owned(Vec::new())))?;
    f(&mut data);
    *x = T::to_cpu_storage_owned(data);
    Ok(())
}

/// A tensor's elements, in the order of its shape.
fn elements<'a, T: WithDType>(x: &'a CpuStorage, layout: &Layout) -> Result<std::vec::IntoIter<T>> {
    let (data, places): (&'a [T], _) = (x.as_slice()?, layout.to_amdgpu()?);
    Ok(places.indices().map(|i| data[i]).collect::<Vec<_>>().into_iter())
}
