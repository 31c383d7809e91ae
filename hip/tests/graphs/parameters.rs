//! Parameters of nodes, in graphs and in what can be launched.

use std::ffi::c_void;
use std::ptr::{null, null_mut};

use crate::common::*;
use crate::kernels::Kernels;
use crate::support::*;

#[test]
fn parameters_of_kernels_can_be_read_and_changed() {
    let _alone = alone();
    let kernels = Kernels::on(0);
    let affine = kernels.get("affine");
    let input = upload(&[1f32; 64]);
    let output = malloc(256);
    let graph = new_graph();
    let node = Affine::new(input, output, 3.0, 4.0).add(affine, graph, &[]);
    let exec = instantiate(graph);
    // SAFETY: the parameters are the kernel's, and what HIP gives is valid until they change.
    unsafe {
        let mut params: hipKernelNodeParams = std::mem::zeroed();
        ok(hipGraphKernelNodeGetParams(node, &mut params));
        assert_eq!((params.func, params.gridDim.x, params.blockDim.x), (affine, 1, 64));
        assert_eq!(*(*params.kernelParams.add(4)).cast::<f32>(), 3.0);
        assert_eq!(*(*params.kernelParams.add(2)).cast::<*mut c_void>(), input);
        // As programs that update a graph do: one argument replaced, the others as they were.
        let factor = 5f32;
        let mut all: Vec<_> = (0..6).map(|at| *params.kernelParams.add(at)).collect();
        all[4] = (&raw const factor).cast::<c_void>().cast_mut();
        params.kernelParams = all.as_mut_ptr();
        ok(hipGraphExecKernelNodeSetParams(exec, node, &params));
        run(exec);
        assert_eq!(download::<f32>(output, 64), [9.0; 64]);
        ok(hipGraphKernelNodeSetParams(node, &params));
        let mut again: hipKernelNodeParams = std::mem::zeroed();
        ok(hipGraphKernelNodeGetParams(node, &mut again));
        assert_eq!(*(*again.kernelParams.add(4)).cast::<f32>(), 5.0);
        // The same by an `extra` list: 8 + 4 + 4 (gap) + 8 + 8 + 4 + 4 bytes.
        let mut bytes = [0u8; 40];
        bytes[..8].copy_from_slice(&64u64.to_le_bytes());
        bytes[8..12].copy_from_slice(&64u32.to_le_bytes());
        bytes[16..24].copy_from_slice(&(input as u64).to_le_bytes());
        bytes[24..32].copy_from_slice(&(output as u64).to_le_bytes());
        bytes[32..36].copy_from_slice(&7f32.to_le_bytes());
        let mut size = bytes.len();
        let mut extra: [*mut c_void; 5] = [
            HIP_LAUNCH_PARAM_BUFFER_POINTER as *mut c_void,
            bytes.as_mut_ptr().cast(),
            HIP_LAUNCH_PARAM_BUFFER_SIZE as *mut c_void,
            (&raw mut size).cast(),
            HIP_LAUNCH_PARAM_END as *mut c_void,
        ];
        params.kernelParams = null_mut();
        params.extra = extra.as_mut_ptr();
        ok(hipGraphExecKernelNodeSetParams(exec, node, &params));
        run(exec);
        assert_eq!(download::<f32>(output, 64), [7.0; 64]);

        // Another kernel, then what is no kernel at all.
        params.func = kernels.get("nothing");
        params.extra = null_mut();
        ok(hipGraphExecKernelNodeSetParams(exec, node, &params));
        run(exec);
        params.func = output;
        fails(
            hipGraphExecKernelNodeSetParams(exec, node, &params),
            hipErrorInvalidDeviceFunction,
            "not a kernel",
        );
        params.func = null_mut();
        fails(hipGraphKernelNodeSetParams(node, &params), hipErrorInvalidValue, "null");
        params.func = affine;
        params.blockDim.x = 2048;
        fails(hipGraphKernelNodeSetParams(node, &params), hipErrorInvalidConfiguration, "2048");
        let empty = add_empty(graph, &[]);
        fails(hipGraphKernelNodeGetParams(empty, &mut again), hipErrorInvalidValue, "must be a kernel");
        fails(hipGraphExecKernelNodeSetParams(exec, empty, &params), hipErrorInvalidValue, "instantiated");
        let foreign = Kernels::on(1);
        on(0);
        let elsewhere = foreign.get("nothing");
        params.func = elsewhere;
        params.blockDim.x = 1;
        fails(hipGraphExecKernelNodeSetParams(exec, node, &params), hipErrorInvalidHandle, "device 1");
    }
    destroy_exec(exec);
    destroy(graph);
    free(input);
    free(output);
}

#[test]
fn parameters_of_copies_and_fills_can_be_read_and_changed() {
    let _alone = alone();
    let (a, b) = (upload(&[1u32, 2, 3, 4]), malloc(64));
    let graph = new_graph();
    let fill = add_fill(graph, &[], words(b, 0x0101, 16));
    let copy = add_copy(graph, &[fill], b, a, 8, ON_DEVICE);
    let exec = instantiate(graph);
    // SAFETY: pointers are valid for what is read and written through them.
    unsafe {
        run(exec);
        assert_eq!(download::<u32>(b, 3), [1, 2, 0x0101]);
        let mut params: hipMemcpy3DParms = std::mem::zeroed();
        ok(hipGraphMemcpyNodeGetParams(copy, &mut params));
        assert_eq!(
            (params.srcPtr.ptr, params.dstPtr.ptr, params.extent.width, params.kind),
            (a, b, 8, ON_DEVICE)
        );
        // Words 1 and 2 to word 5.
        params.srcPtr.pitch = 16;
        params.srcPos.x = 4;
        params.dstPtr.pitch = 64;
        params.dstPos.x = 20;
        ok(hipGraphExecMemcpyNodeSetParams(exec, copy, &mut params));
        run(exec);
        assert_eq!(download::<u32>(b, 8), [257, 257, 257, 257, 257, 2, 3, 257]);
        ok(hipGraphExecMemcpyNodeSetParams1D(exec, copy, b, a, 16, ON_DEVICE));
        run(exec);
        assert_eq!(download::<u32>(b, 5), [1, 2, 3, 4, 257]);
        let changed = hipGraphExecMemcpyNodeSetParams1D(exec, copy, b, a, 16, HIP_MEMCPY_DEFAULT);
        fails(changed, hipErrorInvalidValue, "keeps its kind");
        ok(hipGraphMemcpyNodeSetParams1D(copy, a, b, 4, HIP_MEMCPY_DEFAULT));
        let mut driver: HIP_MEMCPY3D = std::mem::zeroed();
        ok(hipDrvGraphMemcpyNodeGetParams(copy, &mut driver));
        assert_eq!(
            (driver.srcDevice, driver.dstDevice, driver.WidthInBytes, driver.srcMemoryType),
            (b, a, 4, 11)
        );
        fails(hipGraphMemcpyNodeSetParams(copy, null()), hipErrorInvalidValue, "null");
        fails(hipGraphMemcpyNodeSetParams1D(copy, a, b, 4, 9), hipErrorInvalidMemcpyDirection, "copy kind 9");
        fails(
            hipGraphMemcpyNodeSetParams1D(copy, a, b, 400, ON_DEVICE),
            hipErrorInvalidValue,
            "pass the end",
        );
        fails(
            hipGraphMemcpyNodeSetParams1D(copy, a, b, 0, ON_DEVICE),
            hipErrorInvalidValue,
            "something to copy",
        );
        fails(hipGraphMemcpyNodeSetParams1D(fill, a, b, 4, ON_DEVICE), hipErrorInvalidValue, "of the kind");
        params.srcArray = a;
        fails(hipGraphMemcpyNodeSetParams(copy, &params), hipErrorInvalidHandle, "not an array");

        let mut set = words(null_mut(), 0, 0);
        ok(hipGraphMemsetNodeGetParams(fill, &mut set));
        assert_eq!((set.dst, set.elementSize, set.value, set.width, set.height), (b, 4, 0x0101, 16, 1));
        // Two rows of one 16-bit element.
        let rows = hipMemsetParams { dst: b, elementSize: 2, height: 2, pitch: 32, value: 0xabcd, width: 1 };
        ok(hipGraphExecMemsetNodeSetParams(exec, fill, &rows));
        ok(hipMemset(b, 0, 64));
        ok(hipGraphExecMemcpyNodeSetParams1D(exec, copy, a, a, 4, ON_DEVICE));
        run(exec);
        let words_of_rows = download::<u32>(b, 16);
        assert_eq!((words_of_rows[0], words_of_rows[1], words_of_rows[8]), (0xabcd, 0, 0xabcd));
        for (params, words) in [
            (hipMemsetParams { elementSize: 3, ..rows }, "1, 2 or 4"),
            (hipMemsetParams { width: 0, ..rows }, "something to fill"),
            (hipMemsetParams { height: 0, ..rows }, "something to fill"),
            (hipMemsetParams { pitch: 1, ..rows }, "a row's bytes"),
            (hipMemsetParams { height: 4, ..rows }, "pass the end"),
            (hipMemsetParams { dst: null_mut(), ..rows }, "null"),
        ] {
            fails(hipGraphMemsetNodeSetParams(fill, &params), hipErrorInvalidValue, words);
            let mut node = null_mut();
            fails(hipGraphAddMemsetNode(&mut node, graph, null(), 0, &params), hipErrorInvalidValue, words);
        }
        // A node of a graph that is off does nothing.
        ok(hipGraphNodeSetEnabled(exec, fill, 0));
        let mut on = 9;
        ok(hipGraphNodeGetEnabled(exec, fill, &mut on));
        assert_eq!(on, 0);
        ok(hipMemset(b, 0, 64));
        run(exec);
        assert_eq!(download::<u32>(b, 1), [0]);
        ok(hipGraphNodeSetEnabled(exec, fill, 1));
        run(exec);
        assert_eq!(download::<u32>(b, 1), [0xabcd]);
        let empty = add_empty(graph, &[]);
        let other = instantiate(graph);
        fails(hipGraphNodeSetEnabled(other, empty, 0), hipErrorInvalidValue, "switched off");
        destroy_exec(other);
    }
    destroy_exec(exec);
    destroy(graph);
    free(a);
    free(b);
}

#[test]
fn a_launchable_graph_takes_the_parameters_of_one_of_its_shape() {
    let _alone = alone();
    let kernels = Kernels::on(0);
    let affine = kernels.get("affine");
    let (a, b) = (upload(&[1f32; 64]), malloc(256));
    // Fill, kernel, copy; the last two wait for the first.
    let make = |value: u32, mul: f32, kind: u32| {
        let graph = new_graph();
        let fill = add_fill(graph, &[], words(b, value, 64));
        let kernel = Affine::new(a, b, mul, 0.0).add(affine, graph, &[fill]);
        let copy = add_copy(graph, &[fill], a, a, 4, kind);
        (graph, [fill, kernel, copy])
    };
    let (graph, _) = make(1, 2.0, ON_DEVICE);
    let exec = instantiate(graph);
    // SAFETY: pointers are null or valid.
    unsafe {
        let (mut node, mut result) = (null_mut(), 99);
        let (same, _) = make(5, 8.0, ON_DEVICE);
        ok(hipGraphExecUpdate(exec, same, &mut node, &mut result));
        assert_eq!((node, result), (null_mut(), HIP_GRAPH_EXEC_UPDATE_SUCCESS));
        run(exec);
        assert_eq!(download::<f32>(b, 64), [8.0; 64]);
        // None of these changes anything, also where only the last node is wrong.
        let (more, _) = make(1, 3.0, ON_DEVICE);
        add_empty(more, &[]);
        let (kind, [.., changed]) = make(1, 3.0, HIP_MEMCPY_DEFAULT);
        let (edge, [_, kernel, copy]) = make(1, 3.0, ON_DEVICE);
        ok(hipGraphAddDependencies(edge, &kernel, &copy, 1));
        let other = new_graph();
        let first = add_fill(other, &[], words(b, 1, 64));
        Affine::new(a, b, 3.0, 0.0).add(affine, other, &[first]);
        let empty = add_empty(other, &[first]);
        for (graph, at, code) in [
            (more, null_mut(), HIP_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED),
            (kind, changed, HIP_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED),
            (edge, copy, HIP_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED),
            (other, empty, HIP_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED),
        ] {
            let updated = hipGraphExecUpdate(exec, graph, &mut node, &mut result);
            fails(updated, hipErrorGraphExecUpdateFailure, "was not updated");
            assert_eq!((node, result), (at, code));
        }
        run(exec);
        assert_eq!(download::<f32>(b, 64), [8.0; 64]);
        fails(hipGraphExecUpdate(exec, same, null_mut(), &mut result), hipErrorInvalidValue, "null");
        fails(hipGraphExecUpdate(exec, exec, &mut node, &mut result), hipErrorInvalidValue, "not a graph");
        // A kernel on another device.
        on(1);
        let foreign = Kernels::on(1);
        let (nothing, mut params) = (foreign.get("nothing"), std::mem::zeroed::<hipKernelNodeParams>());
        params.func = nothing;
        params.gridDim = dim3 { x: 1, y: 1, z: 1 };
        params.blockDim = params.gridDim;
        let there = new_graph();
        let mut kernel = null_mut();
        ok(hipGraphAddKernelNode(&mut kernel, there, null(), 0, &params));
        on(0);
        let here = new_graph();
        params.func = kernels.get("nothing");
        ok(hipGraphAddKernelNode(&mut node, here, null(), 0, &params));
        let local = instantiate(here);
        let updated = hipGraphExecUpdate(local, there, &mut node, &mut result);
        fails(updated, hipErrorGraphExecUpdateFailure, "another device");
        assert_eq!((node, result), (kernel, HIP_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE));
        destroy_exec(local);
        for graph in [graph, same, more, kind, edge, other, here, there] {
            destroy(graph);
        }
    }
    destroy_exec(exec);
    free(a);
    free(b);
}

#[test]
fn kernels_have_attributes() {
    let _alone = alone();
    let kernels = Kernels::on(0);
    let block = malloc(256);
    let graph = new_graph();
    let affine = Affine::new(block, block, 1.0, 1.0);
    let (one, two) =
        (affine.add(kernels.get("affine"), graph, &[]), affine.add(kernels.get("affine"), graph, &[]));
    // SAFETY: pointers are valid, and the field that the attribute names is set.
    unsafe {
        let mut value: hipKernelNodeAttrValue = std::mem::zeroed();
        value.priority = -1;
        ok(hipGraphKernelNodeSetAttribute(one, HIP_LAUNCH_ATTRIBUTE_PRIORITY, &value));
        value.cooperative = 1;
        ok(hipGraphKernelNodeSetAttribute(one, HIP_LAUNCH_ATTRIBUTE_COOPERATIVE, &value));
        ok(hipGraphKernelNodeCopyAttributes(one, two));
        for node in [one, two] {
            ok(hipGraphKernelNodeGetAttribute(node, HIP_LAUNCH_ATTRIBUTE_PRIORITY, &mut value));
            assert_eq!(value.priority, -1);
            ok(hipGraphKernelNodeGetAttribute(node, HIP_LAUNCH_ATTRIBUTE_COOPERATIVE, &mut value));
            assert_eq!(value.cooperative, 1);
        }
        value.priority = 2;
        fails(hipGraphKernelNodeSetAttribute(one, 8, &value), hipErrorInvalidValue, "-1, 0 or 1");
        let mut window = hipAccessPolicyWindow { hitRatio: 0.5, ..Default::default() };
        value.accessPolicyWindow = window;
        ok(hipGraphKernelNodeSetAttribute(one, 1, &value));
        ok(hipGraphKernelNodeGetAttribute(one, 1, &mut value));
        assert_eq!(value.accessPolicyWindow, window);
        for wrong in [(1.5, 0, 0), (-0.5, 0, 0), (0.5, 2, 0), (0.5, 0, 1)] {
            (window.hitRatio, window.missProp, window.num_bytes) = wrong;
            value.accessPolicyWindow = window;
            fails(
                hipGraphKernelNodeSetAttribute(one, 1, &value),
                hipErrorInvalidValue,
                "accessPolicyMaxWindowSize",
            );
        }
        fails(hipGraphKernelNodeSetAttribute(one, 3, &value), hipErrorInvalidValue, "access policy window");
        fails(
            hipGraphKernelNodeGetAttribute(one, 3, &mut value),
            hipErrorInvalidValue,
            "access policy window",
        );
        let empty = add_empty(graph, &[]);
        fails(hipGraphKernelNodeSetAttribute(empty, 2, &value), hipErrorInvalidValue, "must be a kernel");
        fails(hipGraphKernelNodeCopyAttributes(one, empty), hipErrorInvalidValue, "must be a kernel");
    }
    destroy(graph);
    free(block);
}
