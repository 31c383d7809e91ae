//! Typed functions of kernels on Candle's memory, and modules by their text.

use candle_amdgpu::kernels::affine::{MODULE, affine_f32};
use candle_amdgpu::{DeviceBuffer, LaunchConfig};
use candle_amdgpu_ops::{
    DeviceExt, LayoutExt, StorageExt, WrapErr, code_object_text, map1, map2, map3, unsupported, update1,
    update2,
};
use candle_core::backend::BackendStorage;
use candle_core::cuda_backend::cudarc::driver::{LaunchConfig as CudaConfig, PushKernelArg};
use candle_core::cuda_backend::{CudaDevice, CudaStorage};
use candle_core::{
    CpuStorage, CustomOp1, CustomOp2, CustomOp3, DType, Device, InplaceOp1, InplaceOp2, Layout, Result,
    Shape, Storage, Tensor, bail,
};

type Fwd = Result<(CudaStorage, Shape)>;

/// `2·x + 1` by the typed function of Candle's own kernel, which takes the place of one's own.
struct TwicePlusOne;

impl CustomOp1 for TwicePlusOne {
    fn name(&self) -> &'static str {
        "twice_plus_one"
    }

    fn cpu_fwd(&self, _: &CpuStorage, _: &Layout) -> Result<(CpuStorage, Shape)> {
        bail!("not on the CPU")
    }

    fn cuda_fwd(&self, x: &CudaStorage, layout: &Layout) -> Fwd {
        match x.dtype() {
            DType::F32 => map1(x, layout, |s, c, l, x, y| affine_f32(s, c, l, x, y, 2.0, 1.0)),
            dtype => Err(unsupported(self.name(), dtype)),
        }
    }
}

#[test]
fn a_typed_function_takes_tensors_of_any_strides() -> Result<()> {
    let device = Device::new_cuda(0)?;
    let x = Tensor::arange(0_f32, 24.0, &device)?.reshape((2, 3, 4))?;
    let views = [
        x.clone(),
        x.transpose(0, 2)?,
        x.narrow(1, 1, 2)?,
        x.narrow(2, 3, 1)?.broadcast_as((2, 3, 5))?,
        x.narrow(0, 0, 0)?,
        x.get(1)?.get(2)?.get(3)?,
    ];
    for view in views {
        let expected = ((view.to_device(&Device::Cpu)? * 2.0)? + 1.0)?;
        let actual = view.apply_op1_no_bwd(&TwicePlusOne)?;
        assert_eq!(actual.dims(), view.dims());
        let flat = |x: &Tensor| x.contiguous()?.flatten_all()?.to_vec1::<f32>();
        assert_eq!(flat(&actual)?, flat(&expected)?);
    }
    let error = x.to_dtype(DType::F64)?.apply_op1_no_bwd(&TwicePlusOne).unwrap_err().to_string();
    assert!(error.contains("F64") && error.contains("twice_plus_one"), "{error}");
    Ok(())
}

/// What the launch reports is Candle's error, and a kernel's other elements are one before it.
struct Wrong;

impl CustomOp1 for Wrong {
    fn name(&self) -> &'static str {
        "wrong"
    }

    fn cpu_fwd(&self, _: &CpuStorage, _: &Layout) -> Result<(CpuStorage, Shape)> {
        bail!("not on the CPU")
    }

    fn cuda_fwd(&self, x: &CudaStorage, layout: &Layout) -> Fwd {
        map1(x, layout, |stream, config, layout, x, y| {
            let mut short = DeviceBuffer::<f32>::zeros(stream, 1)?;
            affine_f32(stream, config, layout, x, &mut short, 2.0, 1.0)?;
            affine_f32(stream, config, layout, x, y, 2.0, 1.0)
        })
    }
}

#[test]
fn errors_are_candles() -> Result<()> {
    let device = Device::new_cuda(0)?;
    let error = Tensor::zeros(3, DType::F32, &device)?.apply_op1_no_bwd(&Wrong).unwrap_err();
    assert!(error.to_string().contains("affine_f32: `out` has 1 element"), "{error}");
    let error = Tensor::zeros(3, DType::F64, &device)?.apply_op1_no_bwd(&Wrong).unwrap_err();
    assert!(error.to_string().contains("expected: F32, got: F64"), "{error}");
    Ok(())
}

/// `a + b` and `a + b + c`, as copies and additions in place: any kernels serve to show which memory is whose.
struct Add;

fn add(out: &mut DeviceBuffer<f32>, x: Vec<f32>) -> candle_amdgpu::Result<()> {
    let sum: Vec<_> = out.to_vec()?.iter().zip(x).map(|(a, b)| a + b).collect();
    out.copy_from_slice(&sum)
}

/// The elements of a tensor, by its layout.
fn elements(
    x: &candle_amdgpu::Layout,
    memory: &impl candle_amdgpu::DeviceRead<f32>,
    stream: &candle_amdgpu::Stream,
) -> candle_amdgpu::Result<Vec<f32>> {
    let mut out = DeviceBuffer::zeros(stream, x.numel())?;
    affine_f32(stream, LaunchConfig::auto(), x, memory, &mut out, 1.0, 0.0)?;
    out.to_vec()
}

impl CustomOp2 for Add {
    fn name(&self) -> &'static str {
        "add"
    }

    fn cpu_fwd(&self, _: &CpuStorage, _: &Layout, _: &CpuStorage, _: &Layout) -> Result<(CpuStorage, Shape)> {
        bail!("not on the CPU")
    }

    fn cuda_fwd(&self, a: &CudaStorage, al: &Layout, b: &CudaStorage, bl: &Layout) -> Fwd {
        map2("add", [(a, al), (b, bl)], |stream, config, [al, bl], a, b, out| {
            let mut sum = DeviceBuffer::zeros(stream, al.numel())?;
            add(&mut sum, elements(al, a, stream)?)?;
            add(&mut sum, elements(bl, b, stream)?)?;
            let flat = candle_amdgpu::Layout::flat(sum.len());
            affine_f32(stream, config, &flat, &sum, out, 1.0, 0.0)
        })
    }
}

impl CustomOp3 for Add {
    fn name(&self) -> &'static str {
        "add3"
    }

    fn cpu_fwd(
        &self,
        _: &CpuStorage,
        _: &Layout,
        _: &CpuStorage,
        _: &Layout,
        _: &CpuStorage,
        _: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        bail!("not on the CPU")
    }

    fn cuda_fwd(
        &self,
        a: &CudaStorage,
        al: &Layout,
        b: &CudaStorage,
        bl: &Layout,
        c: &CudaStorage,
        cl: &Layout,
    ) -> Fwd {
        map3("add3", [(a, al), (b, bl), (c, cl)], |stream, config, [al, bl, cl], a, b, c, out| {
            let mut sum = DeviceBuffer::zeros(stream, al.numel())?;
            add(&mut sum, elements(al, a, stream)?)?;
            add(&mut sum, elements(bl, b, stream)?)?;
            add(&mut sum, elements(cl, c, stream)?)?;
            let flat = candle_amdgpu::Layout::flat(sum.len());
            affine_f32(stream, config, &flat, &sum, out, 1.0, 0.0)
        })
    }
}

impl InplaceOp1 for Add {
    fn name(&self) -> &'static str {
        "double"
    }

    fn cpu_fwd(&self, _: &mut CpuStorage, _: &Layout) -> Result<()> {
        bail!("not on the CPU")
    }

    fn cuda_fwd(&self, x: &mut CudaStorage, layout: &Layout) -> Result<()> {
        update1(x, layout, |stream, config, layout, x| {
            // Candle's kernel takes null for its output's own memory.
            let flat = candle_amdgpu::Layout::flat(layout.numel());
            let mut part = x.slice_mut(layout.offset()..layout.offset() + layout.numel());
            affine_f32(stream, config, &flat, candle_amdgpu::Null, &mut part, 2.0, 0.0)
        })
    }
}

impl InplaceOp2 for Add {
    fn name(&self) -> &'static str {
        "assign"
    }

    fn cpu_fwd(&self, _: &mut CpuStorage, _: &Layout, _: &CpuStorage, _: &Layout) -> Result<()> {
        bail!("not on the CPU")
    }

    fn cuda_fwd(&self, x: &mut CudaStorage, xl: &Layout, y: &CudaStorage, yl: &Layout) -> Result<()> {
        update2("assign", (x, xl), (y, yl), |stream, config, [xl, yl], x, y| {
            let mut part = x.slice_mut(xl.offset()..xl.offset() + xl.numel());
            affine_f32(stream, config, yl, y, &mut part, 1.0, 0.0)
        })
    }
}

#[test]
fn two_and_three_tensors_have_layouts_of_their_own() -> Result<()> {
    let device = Device::new_cuda(0)?;
    let x = Tensor::arange(0_f32, 6.0, &device)?.reshape((2, 3))?;
    let y = (Tensor::arange(0_f32, 6.0, &device)? * 10.0)?.reshape((3, 2))?.t()?;
    let z = Tensor::new(100_f32, &device)?.broadcast_as((2, 3))?;
    let two = x.apply_op2_no_bwd(&y, &Add)?.to_vec2::<f32>()?;
    assert_eq!(two, [[0.0, 21.0, 42.0], [13.0, 34.0, 55.0]]);
    let three = x.apply_op3_no_bwd(&y, &z, &Add)?.to_vec2::<f32>()?;
    assert_eq!(three, [[100.0, 121.0, 142.0], [113.0, 134.0, 155.0]]);
    let error = x.apply_op2_no_bwd(&y.t()?, &Add).unwrap_err().to_string();
    assert!(error.contains("shape mismatch in add"), "{error}");

    x.narrow(0, 1, 1)?.inplace_op1(&Add)?;
    assert_eq!(x.to_vec2::<f32>()?, [[0.0, 1.0, 2.0], [6.0, 8.0, 10.0]]);
    x.narrow(0, 1, 1)?.inplace_op2(&y.narrow(0, 0, 1)?, &Add)?;
    assert_eq!(x.to_vec2::<f32>()?, [[0.0, 1.0, 2.0], [0.0, 20.0, 40.0]]);
    Ok(())
}

fn cuda(device: &Device) -> Result<&CudaDevice> {
    device.as_cuda_device()
}

#[test]
fn memory_is_seen_without_a_copy() -> Result<()> {
    let device = Device::new_cuda(0)?;
    let x = Tensor::new(&[1_f32, 2.0, 3.0, 4.0], &device)?;
    let (storage, layout) = x.storage_and_layout();
    let Storage::Cuda(storage) = &*storage else { bail!("it is on the device") };
    let view = storage.view::<f32>()?;
    let slice = storage.as_cuda_slice::<f32>()?;
    assert_eq!(view.as_ptr() as usize, candle_amdgpu::DeviceRead::<f32>::memory(slice).address() as usize);
    assert_eq!(view.slice(1..3).w()?.to_vec().w()?, [2.0, 3.0]);
    assert_eq!(layout.to_amdgpu()?.shape(), [4]);
    assert!(storage.view::<u32>().is_err());
    let stream = cuda(&device)?.amdgpu_stream();
    assert_eq!(stream.device().ordinal(), 0);
    // A stream of another owner is ordered with Candle's.
    let other = stream.device().stream().w()?;
    let mut out = cuda(&device)?.uninit::<f32>(4)?;
    affine_f32(&other, LaunchConfig::auto(), &layout.to_amdgpu()?, slice, &mut out, 3.0, 0.0).w()?;
    affine_f32(
        &cuda(&device)?.cuda_stream(),
        LaunchConfig::auto(),
        &candle_amdgpu::Layout::flat(4),
        candle_amdgpu::Null,
        &mut out,
        1.0,
        1.0,
    )
    .w()?;
    let mut storage = CudaStorage::wrap_cuda_slice(out, cuda(&device)?.clone());
    assert_eq!(storage.view::<f32>()?.to_vec().w()?, [4.0, 7.0, 10.0, 13.0]);
    storage.view_mut::<f32>()?.fill_bytes(0).w()?;
    assert_eq!(storage.view::<f32>()?.to_vec().w()?, [0.0; 4]);
    Ok(())
}

/// Launches `2·x + 1` by name.
fn by_name(device: &CudaDevice, module: &str, text: &str) -> Result<Vec<f32>> {
    let function = device.get_or_load_custom_func("affine_f32", module, text)?;
    let x = device.clone_htod(&[1_f32, 2.0, 3.0])?;
    let y = device.alloc_zeros::<f32>(3)?;
    let (numel, dims, null, mul, add) = (x.len(), 1_usize, 0_usize, 2_f32, 1_f32);
    let mut builder = function.builder();
    builder.arg(&numel).arg(&dims).arg(&null).arg(&x).arg(&y).arg(&mul).arg(&add);
    // SAFETY: these are the kernel's arguments, and both have three elements.
    unsafe { builder.launch(CudaConfig::for_num_elems(3)) }.map_err(candle_core::Error::wrap)?;
    device.clone_dtoh(&y)
}

#[test]
fn a_module_is_loaded_by_its_text() -> Result<()> {
    let device = Device::new_cuda(0)?;
    let device = cuda(&device)?;
    assert_eq!(by_name(device, "typed", MODULE.ptx())?, [3.0, 5.0, 7.0]);
    // The second time, Candle has it.
    assert_eq!(by_name(device, "typed", MODULE.ptx())?, [3.0, 5.0, 7.0]);
    let error =
        device.get_or_load_custom_func("affine_f31", "typed", MODULE.ptx()).err().unwrap().to_string();
    assert!(error.contains("has no kernel `affine_f31`"), "{error}");
    let gone = "candle-amdgpu:module:9999:affine";
    assert!(device.get_or_load_custom_func("affine_f32", "gone", gone).is_err());
    Ok(())
}

#[test]
fn a_code_object_is_loaded_as_text() -> Result<()> {
    let device = Device::new_cuda(0)?;
    let device = cuda(&device)?;
    let arch = device.amdgpu_stream().device().arch().to_owned();
    let object = MODULE.objects().iter().find(|object| object.gfx == arch);
    let Some(object) = object else {
        println!("skipped: the build has no code object for {arch} itself");
        return Ok(());
    };
    let text = code_object_text(object.bytes);
    // As a shell's `base64` breaks lines.
    let (begin, digits) = text.split_at("candle-amdgpu:base64:".len());
    let lines: Vec<_> = digits.as_bytes().chunks(76).map(String::from_utf8_lossy).collect();
    let broken = format!("{begin}\n{}\n", lines.join("\n"));
    for (module, text) in [("whole", &text), ("lines", &broken)] {
        assert_eq!(by_name(device, module, text)?, [3.0, 5.0, 7.0]);
    }
    let error =
        |text: &str| device.get_or_load_custom_func("affine_f32", "bad", text).err().unwrap().to_string();
    assert!(error("candle-amdgpu:base64:A*==").contains("byte 1 behind candle-amdgpu:base64:"));
    assert!(error("candle-amdgpu:base64:AAAA").contains("code object"));
    let ptx = error(".version 8.0\n.target sm_80\n");
    assert!(ptx.contains("PTX is a program for NVIDIA's GPUs") && ptx.contains("MODULE.ptx()"), "{ptx}");
    Ok(())
}
