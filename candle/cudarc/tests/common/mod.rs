//! The device, and a kernel to launch on it.

use cudarc::driver::{CudaContext, CudaFunction, CudaStream, LaunchArgs, LaunchConfig, PushKernelArg};
use std::sync::Arc;

pub type Error = Box<dyn std::error::Error>;

pub fn context() -> Result<Arc<CudaContext>, Error> {
    Ok(CudaContext::new(0)?)
}

pub fn affine(context: &Arc<CudaContext>) -> Result<CudaFunction, Error> {
    Ok(context.load_module("candle-amdgpu:affine".into())?.load_function("affine_f32")?)
}

/// `y = 2·x + 1`, of `len` elements each.
pub fn launch<M>(
    stream: &CudaStream,
    function: &CudaFunction,
    len: usize,
    x: &M,
    y: &mut M,
) -> Result<(), Error>
where
    for<'a> LaunchArgs<'a>: PushKernelArg<&'a M> + PushKernelArg<&'a mut M>,
{
    let (dims, null, mul, add) = (1_usize, 0_usize, 2_f32, 1_f32);
    let mut builder = stream.launch_builder(function);
    builder.arg(&len).arg(&dims).arg(&null).arg(x).arg(y).arg(&mul).arg(&add);
    // SAFETY: these are the kernel's arguments, and both have as many elements.
    unsafe { builder.launch(LaunchConfig::for_num_elems(len as u32))? };
    Ok(())
}
