//! Modules and launches.

mod common;
#[path = "common/kernels.rs"]
#[macro_use]
mod kernels;
#[path = "common/objects.rs"]
mod objects;

use std::ffi::{CString, c_void};
use std::ptr::{null, null_mut};

use common::*;
use kernels::*;
use objects::code_object;

#[test]
fn a_kernel_computes_on_every_target() {
    for device in 0..3 {
        let kernels = Kernels::on(device);
        let input: Vec<f32> = (0..1000).map(|n| n as f32 / 8.0).collect();
        let (a, b) = (upload(&input), malloc(4000));
        let (n, block, mul, add) = (1000u64, 256u32, 3.0f32, -0.5f32);
        // One pointer more than there are arguments, as Candle has it.
        let mut params = params![n, block, a, b, mul, add, n];
        let before = counters(device).unwrap();
        ok(launch(kernels.get("affine"), [4, 1, 1], [256, 1, 1], 0, null_mut(), &mut params));
        let output = download::<f32>(b, 1000);
        assert!(input.iter().zip(&output).all(|(x, y)| *y == x * 3.0 - 0.5), "{output:?}");
        let after = counters(device).unwrap();
        assert!(after.launches > before.launches);
        assert!(after.lane_instructions >= before.lane_instructions + 4000);
        assert!(after.wave_instructions > before.wave_instructions);
        free(a);
        free(b);
    }
}

#[test]
fn arguments_of_every_size_by_pointers_and_by_buffer() {
    for device in 0..3 {
        let kernels = Kernels::on(device);
        let mixed = kernels.get("mixed");
        let out = malloc(8);
        let (a, b, c, d) = (1u8, 0x1234u16, 1.5f64, 0.25f32);
        ok(launch(mixed, [1; 3], [1; 3], 0, null_mut(), &mut params![a, b, c, d, out]));
        assert_eq!(download::<f64>(out, 1), [1.0 + 4660.0 + 1.5 + 0.25]);

        #[repr(C)]
        struct Packed(u8, u16, f64, f32, *mut c_void);
        let packed = Packed(2, 1, 8.0, 0.5, out);
        let size = size_of::<Packed>();
        let key = |key: usize| key as *mut c_void;
        let buffer = [
            key(HIP_LAUNCH_PARAM_BUFFER_POINTER),
            (&raw const packed).cast::<c_void>().cast_mut(),
            key(HIP_LAUNCH_PARAM_BUFFER_SIZE),
            (&raw const size).cast::<c_void>().cast_mut(),
            key(HIP_LAUNCH_PARAM_END),
        ];
        let with = |mut extra: Vec<*mut c_void>| {
            // SAFETY: the lists are as HIP describes them, or wrong in a way that it looks for.
            unsafe {
                hipModuleLaunchKernel(mixed, 1, 1, 1, 1, 1, 1, 0, null_mut(), null_mut(), extra.as_mut_ptr())
            }
        };
        ok(with(buffer.to_vec()));
        assert_eq!(download::<f64>(out, 1), [11.5]);

        let mut short = buffer;
        let less = size - 1;
        short[3] = (&raw const less).cast::<c_void>().cast_mut();
        fails(with(short.to_vec()), hipErrorInvalidValue, "31 were given");
        let mut unknown = buffer;
        unknown[0] = key(9);
        fails(with(unknown.to_vec()), hipErrorInvalidValue, "unknown key 9");
        fails(with(vec![key(3)]), hipErrorInvalidValue, "BUFFER_SIZE");
        fails(with(buffer[2..].to_vec()), hipErrorInvalidValue, "BUFFER_POINTER");
        free(out);
    }
}

#[test]
fn wrong_arguments_are_refused() {
    let kernels = Kernels::on(0);
    let function = kernels.get("mixed");
    // SAFETY: null is allowed, and is the error.
    unsafe {
        let code = hipModuleLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, null_mut(), null_mut(), null_mut());
        fails(code, hipErrorInvalidValue, "none were given");
        let (mut params, mut extra) = ([null_mut(); 5], [3 as *mut c_void]);
        fails(
            launch(function, [1; 3], [1; 3], 0, null_mut(), &mut params),
            hipErrorInvalidValue,
            "argument 0 (",
        );
        let code = hipModuleLaunchKernel(
            function,
            1,
            1,
            1,
            1,
            1,
            1,
            0,
            null_mut(),
            params.as_mut_ptr(),
            extra.as_mut_ptr(),
        );
        fails(code, hipErrorInvalidValue, "given twice");
        // A kernel without arguments needs none.
        let nothing = kernels.get("nothing");
        ok(hipModuleLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, 0, null_mut(), null_mut(), null_mut()));
    }
}

#[test]
fn geometry_is_checked_before_anything_runs() {
    let kernels = Kernels::on(0);
    let nothing = kernels.get("nothing");
    let run = |grid, block, lds| launch(nothing, grid, block, lds, null_mut(), &mut [null_mut()]);
    ok(run([1, 65535, 1], [1, 1, 1], 0));
    ok(run([1, 1, 1], [32, 16, 2], 65536));
    fails(run([0, 1, 1], [1, 1, 1], 0), hipErrorInvalidConfiguration, "has a zero");
    fails(run([1, 1, 1], [1, 0, 1], 0), hipErrorInvalidConfiguration, "has a zero");
    fails(run([1, 1, 65536], [1, 1, 1], 0), hipErrorInvalidConfiguration, "the device takes");
    fails(run([1, 1, 1], [1025, 1, 1], 0), hipErrorInvalidConfiguration, "1025 work-items");
    fails(run([1, 1, 1], [32, 33, 1], 0), hipErrorInvalidConfiguration, "1056 work-items");
    fails(run([1, 1, 1], [u32::MAX; 3], 0), hipErrorInvalidConfiguration, "the device takes 1024");
    fails(run([i32::MAX as u32, 1, 1], [4, 1, 1], 0), hipErrorInvalidConfiguration, "2^32");
    fails(run([1, 1, 1], [1, 1, 1], 65537), hipErrorLaunchOutOfResources, "at most 65536");
    fails(run([1, 1, 1], [1, 1, 1], u32::MAX), hipErrorLaunchOutOfResources, "of LDS");
    let out = malloc(256);
    let greedy = kernels.get("greedy");
    let run = |block, lds| launch(greedy, [1; 3], [block, 1, 1], lds, null_mut(), &mut params![out]);
    ok(run(64, 24576));
    assert_eq!(download::<u32>(out, 64), (0..64).collect::<Vec<_>>());
    fails(run(65, 0), hipErrorLaunchOutOfResources, "compiled for at most 64");
    fails(run(64, 24577), hipErrorLaunchOutOfResources, "40960 of its own");
    free(out);
}

#[test]
fn launch_sized_lds_works() {
    for device in 0..3 {
        let kernels = Kernels::on(device);
        let data: Vec<u32> = (0..64).map(|n| n * n).collect();
        let block = upload(&data);
        ok(launch(kernels.get("reverse"), [1; 3], [64, 1, 1], 256, null_mut(), &mut params![block]));
        assert_eq!(download::<u32>(block, 64), data.into_iter().rev().collect::<Vec<_>>());
        free(block);
    }
}

#[test]
fn variables_are_found_and_shared_with_kernels() {
    for device in 0..3 {
        let kernels = Kernels::on(device);
        let out = malloc(16);
        let run = || {
            ok(launch(kernels.get("read_table"), [1; 3], [1; 3], 0, null_mut(), &mut params![out]));
            download::<u32>(out, 4)
        };
        assert_eq!(run(), [10, 20, 30, 40]);
        let (mut table, mut size) = (null_mut(), 0);
        // SAFETY: every pointer is valid.
        unsafe {
            ok(hipModuleGetGlobal(&mut table, &mut size, kernels.0, c"table".as_ptr()));
            assert_eq!(size, 16);
            assert_eq!(download::<u32>(table, 4), [10, 20, 30, 40]);
            ok(hipMemsetD32(table, 7, 2));
            assert_eq!(run(), [7, 7, 30, 40]);
            fails(hipMemsetD32(table, 7, 5), hipErrorInvalidValue, "16 bytes");
            ok(hipModuleGetGlobal(null_mut(), null_mut(), kernels.0, c"table".as_ptr()));
            let code = hipModuleGetGlobal(&mut table, &mut size, kernels.0, c"chair".as_ptr());
            fails(code, hipErrorNotFound, "`chair`");
            // A kernel is not a variable.
            let code = hipModuleGetGlobal(&mut table, &mut size, kernels.0, c"affine".as_ptr());
            fails(code, hipErrorNotFound, "`affine`");
        }
        free(out);
    }
}

#[test]
fn modules_load_from_files_and_bundles() {
    on(1);
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let file = folder.join("module.elf");
    std::fs::write(&file, code_object("gfx1030")).unwrap();
    let path = CString::new(file.to_str().unwrap()).unwrap();

    // A Clang offload bundle with three entries.
    let parts: [(&str, &[u8]); 3] = [
        ("host-x86_64-unknown-linux--", b""),
        ("hipv4-amdgcn-amd-amdhsa--gfx1100", code_object("gfx1100")),
        ("hipv4-amdgcn-amd-amdhsa--gfx1030", code_object("gfx1030")),
    ];
    let mut bundle = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
    bundle.extend(3u64.to_le_bytes());
    let mut offset = 4096u64;
    for (name, bytes) in parts {
        for number in [offset, bytes.len() as u64, name.len() as u64] {
            bundle.extend(number.to_le_bytes());
        }
        bundle.extend(name.bytes());
        offset += bytes.len() as u64;
    }
    bundle.resize(4096, 0);
    parts.iter().for_each(|(_, bytes)| bundle.extend(*bytes));

    let (mut a, mut b, mut c, mut count) = (null_mut(), null_mut(), null_mut(), 0);
    // SAFETY: every pointer is valid, and the images are whole.
    unsafe {
        ok(hipModuleLoad(&mut a, path.as_ptr()));
        ok(hipModuleLoadData(&mut b, bundle.as_ptr().cast()));
        ok(hipModuleLoadFatBinary(&mut c, bundle.as_ptr().cast()));
        ok(hipModuleGetFunctionCount(&mut count, b));
        assert_eq!(count, 11);
        for module in [a, b, c] {
            ok(hipModuleUnload(module));
        }
        ok(hipModuleLoadDataEx(&mut a, code_object("gfx1030").as_ptr().cast(), 0, null_mut(), null_mut()));
        ok(hipModuleUnload(a));
        on(2);
        fails(hipModuleLoadData(&mut b, bundle.as_ptr().cast()), hipErrorNoBinaryForGpu, "gfx90a");
        fails(
            hipModuleLoad(&mut a, path.as_ptr()),
            hipErrorNoBinaryForGpu,
            "is for gfx1030; device 2 is gfx90a",
        );
        fails(hipModuleLoad(&mut a, c"/nowhere/x.elf".as_ptr()), hipErrorFileNotFound, "/nowhere/x.elf");
        fails(hipModuleLoad(&mut a, null()), hipErrorInvalidValue, "`fname` is null");
        fails(hipModuleLoadData(&mut a, null()), hipErrorInvalidValue, "`image` is null");
        fails(
            hipModuleLoadData(null_mut(), bundle.as_ptr().cast()),
            hipErrorInvalidValue,
            "`module` is null",
        );
        fails(hipModuleLoadData(&mut a, [7u8; 64].as_ptr().cast()), hipErrorInvalidImage, "starts with");
        let host = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        fails(hipModuleLoadData(&mut a, host.as_ptr().cast()), hipErrorInvalidImage, "AMDGPU");
    }
}

#[test]
fn functions_and_modules_end_together() {
    let kernels = Kernels::on(0);
    let function = kernels.get("nothing");
    assert_eq!(kernels.get("nothing"), function);
    let mut other = null_mut();
    // SAFETY: every pointer is valid.
    unsafe {
        let code = hipModuleGetFunction(&mut other, kernels.0, c"affinity".as_ptr());
        fails(code, hipErrorNotFound, "no kernel `affinity`; it has abort, affine, forever,");
        fails(hipModuleGetFunction(&mut other, kernels.0, null()), hipErrorInvalidValue, "null");
        fails(
            hipModuleGetFunction(&mut other, function, c"nothing".as_ptr()),
            hipErrorInvalidHandle,
            "not a module",
        );
        ok(hipModuleUnload(kernels.0));
        fails(
            launch(function, [1; 3], [1; 3], 0, null_mut(), &mut [null_mut()]),
            hipErrorInvalidHandle,
            "not a function",
        );
        fails(
            hipModuleGetFunction(&mut other, kernels.0, c"nothing".as_ptr()),
            hipErrorInvalidHandle,
            "not a module",
        );
        fails(hipModuleUnload(kernels.0), hipErrorInvalidHandle, "not a module");
    }
}

#[test]
fn a_kernel_runs_on_its_own_device_only() {
    let kernels = Kernels::on(0);
    let function = kernels.get("nothing");
    on(1);
    let run = |stream| launch(function, [1; 3], [1; 3], 0, stream, &mut [null_mut()]);
    fails(run(null_mut()), hipErrorInvalidHandle, "kernel belongs to device 0, not to device 1");
    let mut stream = null_mut();
    // SAFETY: the stream is valid for writing.
    unsafe {
        ok(hipStreamCreate(&mut stream));
        fails(run(stream), hipErrorInvalidHandle, "belongs to device 0");
        ok(hipStreamDestroy(stream));
        // A stream of the kernel's device does, whatever the current device.
        on(0);
        ok(hipStreamCreate(&mut stream));
        on(1);
        ok(run(stream));
        ok(hipStreamDestroy(stream));
    }
}

#[test]
fn attributes_and_occupancy_follow_the_code_object() {
    let kernels = Kernels::on(0);
    let (greedy, affine) = (kernels.get("greedy"), kernels.get("affine"));
    let attribute = |number, function| {
        let mut value = -1;
        // SAFETY: the value is valid for writing.
        ok(unsafe { hipFuncGetAttribute(&mut value, number, function) });
        value
    };
    // Largest workgroup, LDS, scratch, registers, launch-sized LDS.
    assert_eq!((attribute(0, greedy), attribute(1, greedy)), (64, 40960));
    assert_eq!((attribute(0, affine), attribute(1, affine), attribute(3, affine)), (1024, 0, 0));
    assert!((1..=32).contains(&attribute(4, affine)));
    assert_eq!(attribute(8, greedy), 24576);
    let (mut grid, mut block, mut count) = (0, 0, 0);
    // SAFETY: every pointer is valid for writing.
    unsafe {
        fails(hipFuncGetAttribute(&mut count, 10, greedy), hipErrorInvalidValue, "0 to 9");
        fails(hipFuncGetAttribute(&mut count, 0, kernels.0), hipErrorInvalidHandle, "not a function");
        // 128 KiB of LDS take three workgroups of 40 KiB; without LDS, 64 waves of 32 fill the processor.
        ok(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&mut count, greedy, 64, 0));
        assert_eq!(count, 3);
        ok(hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&mut count, affine, 256, 0, 0));
        assert_eq!(count, 8);
        let code = hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&mut count, affine, 0, 0);
        fails(code, hipErrorInvalidValue, "1 to 1024");
        ok(hipModuleOccupancyMaxPotentialBlockSize(&mut grid, &mut block, affine, 0, 0));
        assert_eq!((grid, block), (48 * 2, 1024));
        ok(hipModuleOccupancyMaxPotentialBlockSizeWithFlags(&mut grid, &mut block, greedy, 0, 32, 0));
        assert_eq!((grid, block), (48 * 3, 32));
    }
}

#[test]
fn scalar_registers_limit_occupancy_where_waves_share_them() {
    // gfx90a: 92 and the trap handler's 16 take 112 of 800, 7 waves on each of 4 units; 8 fit by anything else.
    for (device, workgroups) in [(2, 28), (1, 64), (0, 64)] {
        let kernels = Kernels::on(device);
        let (scalars, nothing) = (kernels.get("scalars"), kernels.get("nothing"));
        let info = amdgpu_emulator::CodeObject::parse(code_object(kernels::TARGETS[device])).unwrap();
        let info = info.kernel("scalars").unwrap();
        let count = |function, size| {
            let mut count = 0;
            // SAFETY: the count is valid for writing.
            ok(unsafe { hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&mut count, function, size, 0) });
            count
        };
        let wave = info.wave_size as i32;
        assert_eq!(
            (count(scalars, wave), count(nothing, wave)),
            (workgroups, if device == 2 { 32 } else { 64 })
        );
        let found = occupancy(kernels::TARGETS[device].parse().unwrap(), info, 64, 0);
        let expected = if device == 2 { (7, Limit::ScalarRegisters) } else { (16, Limit::Waves) };
        assert_eq!((found.waves_per_simd, found.limit), expected);
        if device == 2 {
            assert_eq!(info.sgprs, 92);
            // Workgroups of 4 waves each: 28 waves are 7 of them.
            assert_eq!(count(scalars, 256), 7);
        }
    }
}

#[test]
fn extended_launches_count_work_items_and_record_events() {
    let kernels = Kernels::on(0);
    let input = upload(&[2.0f32; 128]);
    let (n, block, mul, add) = (128u64, 64u32, 2.0f32, 1.0f32);
    let (mut start, mut stop, mut ms) = (null_mut(), null_mut(), -1.0);
    let mut params = params![n, block, input, input, mul, add];
    let affine = kernels.get("affine");
    // SAFETY: every pointer is valid for writing, and there is a pointer per argument.
    unsafe {
        ok(hipEventCreate(&mut start));
        ok(hipEventCreate(&mut stop));
        let mut run = |global| {
            let params = params.as_mut_ptr();
            hipExtModuleLaunchKernel(
                affine,
                global,
                1,
                1,
                64,
                1,
                1,
                0,
                null_mut(),
                params,
                null_mut(),
                start,
                stop,
                0,
            )
        };
        ok(run(128));
        ok(hipEventElapsedTime(&mut ms, start, stop));
        assert!(ms >= 0.0);
        assert_eq!(download::<f32>(input, 128), [5.0; 128]);
        fails(run(100), hipErrorInvalidConfiguration, "not a whole number");
        ok(hipEventDestroy(start));
        ok(hipEventDestroy(stop));
    }
    free(input);
}

/// Runs the kernel whose workgroups wait for each other.
fn grid_sum(
    kernel: hipFunction_t,
    groups: u32,
    by: impl FnOnce(*mut *mut c_void) -> hipError_t,
) -> hipError_t {
    let bytes = groups as usize * 4;
    let (data, out) = (malloc(bytes), malloc(bytes));
    assert!(!kernel.is_null());
    let code = by(params![data, out].as_mut_ptr());
    if code == hipSuccess {
        let sum = groups * (groups + 1) / 2;
        assert_eq!(download::<u32>(out, groups as usize), vec![sum; groups as usize]);
    }
    free(data);
    free(out);
    code
}

#[test]
fn workgroups_of_a_cooperative_launch_wait_for_each_other() {
    for device in 0..3 {
        let kernels = Kernels::on(device);
        let kernel = kernels.get("grid_sum");
        // Every combination of ways to ask for it, and another order of workgroups.
        for (groups, seed) in [(1, None), (7, None), (300, None), (300, Some(5))] {
            let mut options = launch_options(device).unwrap();
            options.shuffle = seed;
            set_launch_options(device, options).unwrap();
            // SAFETY: the kernel has two arguments.
            let cooperative = |params| unsafe {
                hipModuleLaunchCooperativeKernel(kernel, groups, 1, 1, 1, 1, 1, 0, null_mut(), params)
            };
            ok(grid_sum(kernel, groups, cooperative));
        }
        let mut options = launch_options(device).unwrap();
        options.shuffle = None;
        set_launch_options(device, options).unwrap();
        // As an attribute of a launch.
        // SAFETY: all zeros is a value; the kernel has two arguments.
        unsafe {
            let mut attribute: hipLaunchAttribute = std::mem::zeroed();
            attribute.id = HIP_LAUNCH_ATTRIBUTE_COOPERATIVE;
            attribute.val.cooperative = 1;
            let mut config: HIP_LAUNCH_CONFIG = std::mem::zeroed();
            [config.gridDimX, config.gridDimY, config.gridDimZ] = [12, 1, 1];
            [config.blockDimX, config.blockDimY, config.blockDimZ] = [1, 1, 1];
            (config.attrs, config.numAttrs) = (&mut attribute, 1);
            ok(grid_sum(kernel, 12, |params| hipDrvLaunchKernelEx(&config, kernel, params, null_mut())));
            attribute.id = 77;
            let wrong = hipDrvLaunchKernelEx(&config, kernel, null_mut(), null_mut());
            fails(wrong, hipErrorInvalidValue, "2 (cooperative)");
            config.attrs = null_mut();
            let wrong = hipDrvLaunchKernelEx(&config, kernel, null_mut(), null_mut());
            fails(wrong, hipErrorInvalidValue, "null");
        }
    }
}

#[test]
fn a_cooperative_launch_has_to_fit() {
    let kernels = Kernels::on(0);
    let mut properties = -1;
    // SAFETY: the results are valid for writing; the launches are refused.
    unsafe {
        ok(hipDeviceGetAttribute(&mut properties, 10, 0));
        assert_eq!(properties, 1);
        let (mut each, mut units) = (0, 0);
        let greedy = kernels.get("greedy");
        ok(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&mut each, greedy, 64, 0));
        ok(hipDeviceGetAttribute(&mut units, 63, 0));
        // 40 KiB of 128 KiB.
        assert_eq!(each, 3);
        let most = (each * units) as u32;
        let out = malloc(256);
        let mut all = params![out];
        let mut launch = |groups| {
            hipModuleLaunchCooperativeKernel(greedy, groups, 1, 1, 64, 1, 1, 0, null_mut(), all.as_mut_ptr())
        };
        ok(launch(most));
        let words = format!("{} workgroups that wait for each other; {most} fit", most + 1);
        fails(launch(most + 1), hipErrorCooperativeLaunchTooLarge, &words);
        let affine = kernels.get("affine");
        let code = hipModuleLaunchCooperativeKernel(affine, 0, 1, 1, 1, 1, 1, 0, null_mut(), null_mut());
        fails(code, hipErrorInvalidConfiguration, "has a zero");
        ok(hipDeviceSynchronize());
        free(out);
    }
}

#[test]
fn a_graph_holds_a_cooperative_launch() {
    let kernels = Kernels::on(1);
    let kernel = kernels.get("grid_sum");
    let (data, out) = (malloc(64), malloc(64));
    // SAFETY: the kernel has two arguments; pointers are valid.
    unsafe {
        let mut graph = null_mut();
        ok(hipGraphCreate(&mut graph, 0));
        let mut params: hipKernelNodeParams = std::mem::zeroed();
        params.func = kernel;
        (params.gridDim, params.blockDim) = (dim3 { x: 16, y: 1, z: 1 }, dim3 { x: 1, y: 1, z: 1 });
        let mut arguments = params![data, out];
        params.kernelParams = arguments.as_mut_ptr();
        let mut node = null_mut();
        ok(hipGraphAddKernelNode(&mut node, graph, null(), 0, &params));
        let mut value: hipKernelNodeAttrValue = std::mem::zeroed();
        value.cooperative = 1;
        ok(hipGraphKernelNodeSetAttribute(node, HIP_LAUNCH_ATTRIBUTE_COOPERATIVE, &value));
        let mut exec = null_mut();
        ok(hipGraphInstantiate(&mut exec, graph, null_mut(), null_mut(), 0));
        ok(hipGraphLaunch(exec, null_mut()));
        ok(hipStreamSynchronize(null_mut()));
        assert_eq!(download::<u32>(out, 16), [136; 16]);
        // Too many workgroups are refused for as long as the node is cooperative.
        params.gridDim.x = 1 << 20;
        let refused = hipGraphKernelNodeSetParams(node, &params);
        fails(refused, hipErrorCooperativeLaunchTooLarge, "1048576 workgroups");
        value.cooperative = 0;
        ok(hipGraphKernelNodeSetAttribute(node, HIP_LAUNCH_ATTRIBUTE_COOPERATIVE, &value));
        ok(hipGraphKernelNodeSetParams(node, &params));
        value.cooperative = 1;
        let refused = hipGraphKernelNodeSetAttribute(node, HIP_LAUNCH_ATTRIBUTE_COOPERATIVE, &value);
        fails(refused, hipErrorCooperativeLaunchTooLarge, "1048576 workgroups");
        ok(hipGraphExecDestroy(exec));
        ok(hipGraphDestroy(graph));
    }
    free(data);
    free(out);
}

#[test]
fn what_is_of_other_processes_and_interfaces_is_refused_with_a_reason() {
    on(0);
    let block = malloc(8);
    // SAFETY: pointers are null or valid, all zeros are values.
    unsafe {
        let mut memory: hipIpcMemHandle_t = std::mem::zeroed();
        let mut of_event: hipIpcEventHandle_t = std::mem::zeroed();
        let mut pointer = null_mut();
        fails(hipIpcGetMemHandle(&mut memory, block), hipErrorNotSupported, "belongs to its process");
        fails(hipIpcGetMemHandle(&mut memory, 8 as *mut c_void), hipErrorInvalidValue, "not device memory");
        fails(hipIpcOpenMemHandle(&mut pointer, memory, 1), hipErrorNotSupported, "belongs to its process");
        fails(hipIpcCloseMemHandle(block), hipErrorInvalidValue, "another process");
        fails(hipIpcGetEventHandle(&mut of_event, null_mut()), hipErrorInvalidHandle, "not an event");
        fails(hipIpcOpenEventHandle(&mut pointer, of_event), hipErrorNotSupported, "belongs to its process");
        fails(hipImportExternalSemaphore(&mut pointer, block), hipErrorNotSupported, "Vulkan");
        let semaphores = [null_mut::<c_void>()];
        let signal = hipSignalExternalSemaphoresAsync(semaphores.as_ptr(), block, 1, null_mut());
        fails(signal, hipErrorNotSupported, "Vulkan");
        let wait = hipWaitExternalSemaphoresAsync(null(), block, 1, null_mut());
        fails(wait, hipErrorInvalidValue, "null");
        fails(hipDestroyExternalSemaphore(block), hipErrorInvalidValue, "imported");
    }
    free(block);
}

#[test]
fn a_profile_has_a_record_for_each_launch() {
    let kernels = Kernels::on(2);
    set_profile(2, true).unwrap();
    // SAFETY: takes no pointer.
    let code = unsafe {
        hipModuleLaunchKernel(
            kernels.get("nothing"),
            3,
            1,
            1,
            65,
            1,
            1,
            16,
            null_mut(),
            null_mut(),
            null_mut(),
        )
    };
    ok(code);
    set_profile(2, false).unwrap();
    let records = take_profile(2).unwrap();
    // Other tests may run at the same time.
    let record = records.iter().find(|record| record.block == [65, 1, 1]).unwrap();
    assert_eq!((&*record.kernel, record.grid, record.dynamic_lds), ("nothing", [3, 1, 1], 16));
    // 65 work-items are two waves of 64.
    assert_eq!((record.report.workgroups, record.report.waves), (3, 6));
}

#[test]
fn threads_launch_at_once() {
    setup();
    std::thread::scope(|scope| {
        for thread in 0..6 {
            scope.spawn(move || {
                let kernels = Kernels::on(thread % 3);
                let affine = kernels.get("affine");
                for round in 0..5 {
                    let data = upload(&vec![round as f32; 300]);
                    let (n, block, mul, add) = (300u64, 128u32, 2.0f32, thread as f32);
                    let mut params = params![n, block, data, data, mul, add];
                    ok(launch(affine, [3, 1, 1], [128, 1, 1], 0, null_mut(), &mut params));
                    assert_eq!(download::<f32>(data, 300), vec![round as f32 * 2.0 + thread as f32; 300]);
                    free(data);
                }
            });
        }
    });
}
