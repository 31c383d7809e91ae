//! Loading, looking up and untyped launches.

mod common;

use candle_amdgpu::{
    AFFINE, ALL_IDS, Device, DeviceBuffer, Error, FILL, LaunchConfig, Module, QUANTIZED, REDUCE, Stream, f16,
};
use std::ffi::c_void;
use std::ptr;
use std::sync::{Arc, Barrier};
use std::thread;

#[test]
fn a_module_is_loaded_once_for_each_device() {
    let [a, b] = ["gfx1100", "gfx90a"].map(common::device);
    let loaded = a.load(&AFFINE).unwrap();
    assert!(Arc::ptr_eq(&loaded, &a.load(&AFFINE).unwrap()));
    let again = Device::new(a.ordinal()).unwrap();
    assert!(Arc::ptr_eq(&loaded, &again.load(&AFFINE).unwrap()), "another handle to the same device");
    assert!(!Arc::ptr_eq(&loaded, &b.load(&AFFINE).unwrap()), "another device");
}

#[test]
fn threads_share_one_loaded_module() {
    let device = common::device("gfx1030");
    let start = Barrier::new(8);
    let modules: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|i| {
                let (device, start) = (&device, &start);
                scope.spawn(move || {
                    start.wait();
                    let name = ["fill_f32", "fill_u8", "copy2d_f32"][i % 3];
                    let function = device.get_or_load_func(name, &FILL).unwrap();
                    assert_eq!(function.name(), name);
                    (Arc::as_ptr(function.module()) as usize, function.as_raw() as usize, name)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let (module, ..) = modules[0];
    assert!(modules.iter().all(|(m, ..)| *m == module));
    for (_, handle, name) in &modules {
        let function = device.get_or_load_func(name, &FILL).unwrap();
        assert_eq!(function.as_raw() as usize, *handle, "the same handle in every thread");
    }
}

#[test]
fn a_launch_by_name_gets_workgroups_of_the_kernels_own_that_do_as_much() {
    let device = common::device("gfx1100");
    let explicit = |grid, block| LaunchConfig::explicit(grid, block, 0);
    let own = |module, name, grid, block| {
        device.get_or_load_func(name, module).unwrap().own_geometry_or(explicit(grid, [block, 1, 1]))
    };
    assert_eq!(own(&AFFINE, "affine_f32", [9, 1, 1], 1024), LaunchConfig::Auto);
    // A workgroup is a row, of whatever size.
    let rows = own(&REDUCE, "softmax_f32", [9, 1, 1], 1024);
    assert_eq!(rows, LaunchConfig::Rows { grid: [9, 1, 1] });
    // A row for each workgroup of 256 lanes in x, or for each of a workgroup's 8 in y; the same parts of rows in y.
    assert_eq!(own(&QUANTIZED, "get_rows_q4_0", [32, 8, 1], 256), explicit([4, 8, 1], [16, 8, 1]));
    assert_eq!(own(&QUANTIZED, "dequantize_block_q4_K_f32", [64, 1, 1], 32), explicit([8, 1, 1], [32, 8, 1]));
    // Rows that do not fill the last workgroup: it would read indices that do not exist.
    let kept = own(&QUANTIZED, "get_rows_q4_0", [33, 8, 1], 256);
    assert_eq!(kept, explicit([33, 8, 1], [256, 1, 1]));
    // Elements of rows that are as long as an argument says, and a workgroup for each row in y.
    assert_eq!(own(&QUANTIZED, "quantize_q8_1", [43, 3, 1], 256), explicit([3, 3, 1], [128, 1, 1]));
}

#[test]
fn an_unknown_name_is_an_error_that_names_the_nearest() {
    let error = common::device("gfx1100").get_or_load_func("afine_f32", &AFFINE).unwrap_err();
    assert!(matches!(&error, Error::UnknownKernel { near, .. } if near[0] == "affine_f32"), "{error}");
    assert!(error.to_string().contains("module `affine` has no kernel `afine_f32`"), "{error}");
}

#[test]
fn a_kernel_that_was_not_compiled_is_an_error_that_says_why() {
    let objects = AFFINE.objects().to_vec().leak();
    let module: &'static Module =
        Box::leak(Box::new(Module::new("affine", objects, &[]).selected("affine_f64,badd_*")));
    let error = common::device("gfx1100").get_or_load_func("no_such", module).unwrap_err();
    assert_eq!(
        error.to_string(),
        "module `affine` has no kernel `no_such`: this build has only what CANDLE_AMDGPU_KERNELS=affine_f64,badd_* selects"
    );
}

#[test]
fn a_name_with_a_zero_byte_is_an_error() {
    let error = common::device("gfx1100").get_or_load_func("affine\0f32", &AFFINE).unwrap_err();
    assert!(matches!(error, Error::UnknownKernel { .. }));
}

#[test]
fn a_module_without_code_for_the_target_says_how_to_get_it() {
    static EMPTY: Module = Module::new("empty", &[], &[]);
    let error = common::device("gfx1100").get_or_load_func("k", &EMPTY).unwrap_err().to_string();
    assert!(
        error.contains("no code object for gfx1100") && error.contains("CANDLE_AMDGPU_ARCHS=gfx1100"),
        "{error}"
    );
}

#[test]
fn bytes_that_are_no_code_object_are_an_error() {
    let device = common::device("gfx1100");
    let error = device.load_code_object("mine", b"not an ELF file").unwrap_err();
    assert!(matches!(&error, Error::BadCodeObject { module, .. } if module == "mine"), "{error}");
    let other = AFFINE.object("gfx90a").unwrap();
    let error = device.load_code_object("other", other.bytes).unwrap_err().to_string();
    assert!(error.contains("for gfx90a, the device is a gfx1100"), "{error}");
}

#[test]
fn a_code_object_of_ones_own_is_loaded_and_launched() {
    let device = common::device("gfx1100");
    let stream = device.stream().unwrap();
    let module = device.load_code_object("mine", AFFINE.object("gfx1100").unwrap().bytes).unwrap();
    assert_eq!(module.names().len(), AFFINE.kernels().len());
    let function = module.function("affine_f16").unwrap();
    let x = DeviceBuffer::from_slice(&stream, &[f16::from_f32(1.5); 40]).unwrap();
    let mut y = DeviceBuffer::zeros(&stream, 40).unwrap();
    let launch = function.launch_builder(&stream).value(40_usize).value(1_usize).null();
    let launch = launch.memory(&x).memory_mut::<f16>(&mut y).value(f16::from_f32(2.0)).value(f16::ONE);
    // SAFETY: the arguments are those of `affine_f16`, the buffers have 40 elements.
    unsafe { launch.launch(LaunchConfig::for_num_elems(40)).unwrap() };
    assert_eq!(y.to_vec().unwrap(), [f16::from_f32(4.0); 40]);
}

/// Arguments by address, as Candle passes them.
fn launch_by_address(stream: &Stream, config: LaunchConfig, surplus: bool) -> Result<Vec<f32>, Error> {
    let function = stream.device().get_or_load_func("affine_f32", &AFFINE)?;
    let x = DeviceBuffer::from_slice(stream, &[1.0_f32, 2.0, 3.0])?;
    let mut y = DeviceBuffer::<f32>::zeros(stream, 3)?;
    let (numel, dims, info) = (3_usize, 1_usize, ptr::null::<usize>());
    let (from, to, mul, add) = (x.as_ptr(), y.as_mut_ptr(), 2.0_f32, 0.5_f32);
    let mut args: Vec<*const c_void> = vec![
        ptr::from_ref(&numel).cast(),
        ptr::from_ref(&dims).cast(),
        ptr::from_ref(&info).cast(),
        ptr::from_ref(&from).cast(),
        ptr::from_ref(&to).cast(),
        ptr::from_ref(&mul).cast(),
        ptr::from_ref(&add).cast(),
    ];
    if surplus {
        args.push(ptr::from_ref(&numel).cast());
    }
    // SAFETY: the arguments are those of `affine_f32`, the buffers have three elements.
    unsafe { function.launch(stream, config, &args)? };
    y.to_vec()
}

#[test]
fn arguments_by_address_are_launched_under_either_geometry() {
    for arch in common::ARCHS {
        let stream = common::stream(arch);
        for config in [LaunchConfig::auto(), LaunchConfig::for_num_elems(3)] {
            assert_eq!(
                launch_by_address(&stream, config, false).unwrap(),
                [2.5, 4.5, 6.5],
                "{arch} {config:?}"
            );
        }
        assert_eq!(launch_by_address(&stream, LaunchConfig::auto(), true).unwrap(), [2.5, 4.5, 6.5]);
    }
}

#[test]
fn too_few_arguments_are_an_error() {
    let stream = common::stream("gfx1100");
    let function = stream.device().get_or_load_func("affine_f32", &AFFINE).unwrap();
    // SAFETY: nothing is launched.
    let error = unsafe { function.launch(&stream, LaunchConfig::for_num_elems(1), &[]) }.unwrap_err();
    assert_eq!(error, Error::TooFewArguments { kernel: "affine_f32".into(), given: 0, need: 7 });
}

#[test]
fn an_argument_of_the_wrong_size_is_an_error() {
    let stream = common::stream("gfx1100");
    let function = stream.device().get_or_load_func("fill_f32", &FILL).unwrap();
    let mut buffer = DeviceBuffer::<f32>::zeros(&stream, 4).unwrap();
    let launch =
        function.launch_builder(&stream).memory_mut::<f32>(&mut buffer).value(1.0_f64).value(4_usize);
    // SAFETY: nothing is launched.
    let error = unsafe { launch.launch(LaunchConfig::auto()) }.unwrap_err();
    assert_eq!(error, Error::ArgumentSize { kernel: "fill_f32".into(), index: 1, given: 8, need: 4 });
}

#[test]
fn all_ids_have_modules_in_order() {
    assert_eq!(ALL_IDS.len(), 11);
    assert_eq!(ALL_IDS[0].module().name(), "affine");
    assert_eq!(ALL_IDS[10].module().name(), "unary");
}

#[test]
fn a_function_of_one_device_is_refused_on_another() {
    let stream = common::stream("gfx90a");
    let function = common::device("gfx1100").get_or_load_func("fill_f32", &FILL).unwrap();
    let mut buffer = DeviceBuffer::<f32>::zeros(&stream, 4).unwrap();
    let launch =
        function.launch_builder(&stream).memory_mut::<f32>(&mut buffer).value(1.0_f32).value(4_usize);
    // SAFETY: nothing is launched.
    let error = unsafe { launch.launch(LaunchConfig::auto()) }.unwrap_err();
    assert!(matches!(error, Error::WrongDevice { .. }), "{error}");
}

#[test]
fn a_fault_comes_with_the_next_synchronisation_and_names_the_place() {
    for arch in common::ARCHS {
        let stream = common::stream(arch);
        if amdhip64::emulator(stream.device().ordinal()).is_none() {
            continue; // A GPU does not forgive it.
        }
        let function = stream.device().get_or_load_func("fill_f32", &FILL).unwrap();
        let launch = function.launch_builder(&stream).value(0x1000_usize).value(1.0_f32).value(64_usize);
        // SAFETY: not what the kernel expects, but the device is an emulated one, which reports that.
        unsafe { launch.launch(LaunchConfig::auto()).unwrap() };
        let error = stream.synchronize().unwrap_err().to_string();
        for part in ["hipStreamSynchronize failed", "fill_f32", arch, "0x1000", "store"] {
            assert!(error.contains(part), "{arch}: no `{part}` in: {error}");
        }
        // The stream goes on.
        let buffer = DeviceBuffer::from_slice(&stream, &[1_u8; 3]).unwrap();
        assert_eq!(buffer.to_vec().unwrap(), [1; 3]);
    }
}
