//! rocm-rs as published, on this crate's runtime: alone, and its memory and streams in the typed wrappers.

mod common;

use candle_amdgpu::kernels::affine::affine_f32;
use candle_amdgpu::{AFFINE, Device, DeviceBuffer, LaunchConfig, Layout, Null};
use rocm_rs::hip::kernel::AsKernelArg;
use rocm_rs::hip::{self, DeviceMemory, Dim3, Function, Module};
use rocm_rs::kernel_args;

/// The device of a target, current for the calling thread as rocm-rs expects.
fn current(arch: &str) -> (Device, hip::Device) {
    let device = common::device(arch);
    let theirs = hip::Device::new(device.ordinal() as i32).unwrap();
    theirs.set_current().unwrap();
    (device, theirs)
}

#[test]
fn plain_rocm_rs_launches_a_code_object() {
    for arch in common::ARCHS {
        let (_, device) = current(arch);
        let properties = device.properties().unwrap();
        assert!(!properties.name.is_empty() && properties.max_threads_per_block >= 1024);

        let n = 1000_usize;
        let mut x = DeviceMemory::<f32>::new(n).unwrap();
        let y = DeviceMemory::<f32>::new(n).unwrap();
        let data: Vec<f32> = (0..n).map(|i| i as f32).collect();
        x.copy_from_host(&data).unwrap();

        let module = Module::load_data(AFFINE.object(arch).unwrap().bytes).unwrap();
        let function = module.get_function("affine_f32").unwrap();
        let (dims, info, mul, add) = (1_usize, 0_usize, 2.0_f32, 0.5_f32);
        let stream = device.get_stream().unwrap();
        function
            .launch(
                Dim3 { x: 1, y: 1, z: 1 },
                Dim3 { x: 1024, y: 1, z: 1 },
                0,
                Some(&stream),
                kernel_args!(n, dims, info, x, y, mul, add),
            )
            .unwrap();
        stream.synchronize().unwrap();
        let mut out = vec![0.0; n];
        y.copy_to_host(&mut out).unwrap();
        assert!(out.iter().zip(&data).all(|(y, x)| *y == 2.0 * x + 0.5), "{arch}");
    }
}

#[test]
fn typed_wrappers_take_rocm_rs_memory_and_streams() {
    for arch in common::ARCHS {
        let (_, device) = current(arch);
        let stream = device.get_stream().unwrap();
        let mut x = DeviceMemory::<f32>::new(6).unwrap();
        let mut y = DeviceMemory::<f32>::new(6).unwrap();
        x.copy_from_host(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        let transposed = Layout::contiguous(&[2, 3]).unwrap().transpose(0, 1).unwrap();
        affine_f32(&stream, LaunchConfig::auto(), &transposed, &x, &mut y, 1.0, 1.0).unwrap();
        affine_f32(&stream, LaunchConfig::auto(), &Layout::flat(6), Null, &mut y, 10.0, 0.0).unwrap();
        stream.synchronize().unwrap();
        let mut out = [0.0; 6];
        y.copy_to_host(&mut out).unwrap();
        assert_eq!(out, [10.0, 40.0, 20.0, 50.0, 30.0, 60.0], "{arch}");
    }
}

#[test]
fn a_short_rocm_rs_buffer_is_an_error() {
    let (_, device) = current("gfx1100");
    let stream = device.get_stream().unwrap();
    let x = DeviceMemory::<f32>::new(3).unwrap();
    let mut y = DeviceMemory::<f32>::new(4).unwrap();
    let error =
        affine_f32(&stream, LaunchConfig::auto(), &Layout::flat(4), &x, &mut y, 1.0, 1.0).unwrap_err();
    assert!(error.to_string().starts_with("affine_f32: `inp` has 3 elements, but needs 4 ("), "{error}");
}

#[test]
fn rocm_rs_launches_a_function_of_this_crate() {
    let (ours, theirs) = current("gfx90a");
    let function = ours.get_or_load_func("affine_f32", &AFFINE).unwrap();
    let theirs_function: Function = function.to_rocm_rs();
    let stream = ours.stream().unwrap();
    let x = DeviceBuffer::from_slice(&stream, &[3.0_f32; 8]).unwrap();
    let mut y = DeviceBuffer::<f32>::zeros(&stream, 8).unwrap();
    stream.synchronize().unwrap();
    let (n, dims, info, mul, add) = (8_usize, 1_usize, 0_usize, 2.0_f32, 1.0_f32);
    let (from, to) = (x.as_ptr() as usize, y.as_mut_ptr() as usize);
    let one = Dim3 { x: 1, y: 1, z: 1 };
    let block = Dim3 { x: 64, y: 1, z: 1 };
    theirs_function.launch(one, block, 0, None, kernel_args!(n, dims, info, from, to, mul, add)).unwrap();
    theirs.synchronize().unwrap();
    assert_eq!(y.to_vec().unwrap(), [7.0; 8]);
}

#[test]
fn the_rest_of_rocm_rs_hip_module_answers() {
    let (_, device) = current("gfx1030");
    assert!(hip::is_hip_available() && hip::device_count().unwrap() >= 1);
    hip::init().unwrap();
    assert!(hip::print_devices_info().unwrap().contains("gfx1030"));
    assert!(hip::runtime_version().unwrap() > 0 && hip::driver_version().unwrap() > 0);
    let memory = hip::memory_info().unwrap();
    assert!(0 < memory.free && memory.free <= memory.total);

    let stream = device.get_stream_with_flags(hip::stream_flags::NON_BLOCKING).unwrap();
    assert_eq!((stream.get_flags().unwrap(), stream.get_device().unwrap()), (1, device.id()));
    let (least, greatest) = hip::Stream::priority_range().unwrap();
    let urgent = device.get_stream_with_priority(0, greatest).unwrap();
    assert!(urgent.get_priority().unwrap() == greatest && greatest <= least);

    let timer = hip::Timer::new().unwrap();
    timer.start(&stream).unwrap();
    let mut a = DeviceMemory::<u32>::new(100).unwrap();
    let mut b = DeviceMemory::<u32>::new(100).unwrap();
    a.copy_from_host_async((0..100).collect::<Vec<u32>>(), &stream).unwrap();
    stream.synchronize().unwrap();
    b.copy_from_device(&a).unwrap();
    a.memset(0).unwrap();
    // Neither waits, and a stream of this kind does not wait for them.
    device.synchronize().unwrap();
    let pending = (
        b.copy_to_host_async(vec![0; 100], &stream).unwrap(),
        a.copy_to_host_async(vec![1; 3], &stream).unwrap(),
    );
    let (from_b, from_a) = stream.synchronize_memory(pending).unwrap();
    assert_eq!((from_b, from_a), ((0..100).collect(), vec![0; 3]));
    timer.stop(&stream).unwrap();
    assert!(timer.elapsed_time().unwrap() >= 0.0);

    let event = hip::Event::with_flags(hip::event_flags::DISABLE_TIMING).unwrap();
    event.record(&stream).unwrap();
    urgent.wait_event(&event, 0).unwrap();
    event.synchronize().unwrap();
    event.query().unwrap();
    stream.query().unwrap();
    let (send, receive) = std::sync::mpsc::channel();
    stream.add_callback(move || send.send(7).unwrap()).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(receive.recv().unwrap(), 7);

    let mut pinned = hip::PinnedMemory::<f64>::new(5).unwrap();
    pinned.as_slice_mut().fill(2.5);
    assert_eq!(pinned.get_device_pointer().unwrap(), pinned.as_ptr() as *mut std::ffi::c_void);
    assert_eq!(pinned.as_slice(), [2.5; 5]);

    let missing = hip::Device::new(99).unwrap_err();
    assert!(missing.is_invalid_device());
    assert_eq!(missing.to_string(), "HIP error 101: hipErrorInvalidDevice - invalid device ordinal");
    assert!(DeviceMemory::<u8>::new(1 << 45).err().unwrap().is_out_of_memory());
    device.synchronize().unwrap();
}
