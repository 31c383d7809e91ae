//! What a launch does.

use std::ffi::c_void;
use std::ptr::{null, null_mut};

use crate::common::*;
use crate::kernels::{Kernels, launch};
use crate::support::*;

#[test]
fn host_functions_are_called_in_their_place_and_may_call_hip() {
    let _alone = alone();
    take_calls();
    /// # Safety
    /// `data` is a block of device memory.
    unsafe extern "C" fn read(data: *mut c_void) {
        let value = download::<u32>(data, 1)[0];
        CALLS.lock().unwrap().push(value as usize);
    }
    let (block, stream) = (malloc(4), stream(0));
    // SAFETY: the block outlives the launches.
    unsafe {
        begin(stream, 0);
        ok(hipMemsetD32Async(block, 5, 1, stream));
        ok(hipLaunchHostFunc(stream, Some(read), block));
        ok(hipMemsetD32Async(block, 6, 1, stream));
        ok(hipLaunchHostFunc(stream, Some(note), 77 as *mut c_void));
        ok(hipLaunchHostFunc(stream, Some(read), block));
        let graph = end(stream);
        assert_eq!(kinds(graph), [FILL, HOST, FILL, HOST, HOST]);
        assert!(take_calls().is_empty());
        let exec = instantiate(graph);
        run(exec);
        run(exec);
        assert_eq!(take_calls(), [5, 77, 6, 5, 77, 6]);

        let node = nodes(graph)[3];
        let mut params = hipHostNodeParams { r#fn: None, userData: null_mut() };
        ok(hipGraphHostNodeGetParams(node, &mut params));
        assert_eq!(
            (params.r#fn.map(|f| f as usize), params.userData as usize),
            (Some(note as *const () as usize), 77)
        );
        params.userData = 78 as *mut c_void;
        ok(hipGraphExecHostNodeSetParams(exec, node, &params));
        run(exec);
        assert_eq!(take_calls(), [5, 78, 6]);
        ok(hipGraphHostNodeGetParams(node, &mut params));
        assert_eq!(params.userData as usize, 77, "the graph itself has not changed");
        params.userData = 79 as *mut c_void;
        ok(hipGraphHostNodeSetParams(node, &params));
        let other = instantiate(graph);
        run(other);
        assert_eq!(take_calls(), [5, 79, 6]);
        params.r#fn = None;
        fails(hipGraphHostNodeSetParams(node, &params), hipErrorInvalidValue, "null");
        fails(
            hipGraphHostNodeGetParams(nodes(graph)[0], &mut params),
            hipErrorInvalidValue,
            "must call a host function",
        );
        destroy_exec(exec);
        destroy_exec(other);
        destroy(graph);
    }
    destroy_stream(stream);
    free(block);
}

#[test]
fn a_fault_of_a_node_drops_the_rest_of_the_launch() {
    let _alone = alone();
    take_calls();
    let kernels = Kernels::on(0);
    let (block, stream) = (malloc(8), stream(0));
    // SAFETY: parameters are the kernels'.
    unsafe {
        ok(hipMemset(block, 0, 8));
        begin(stream, 0);
        ok(hipMemsetD32Async(block, 1, 1, stream));
        let (at, offset, value) = (block, 100u64, 1u32);
        ok(launch(kernels.get("poke"), [1, 1, 1], [1, 1, 1], 0, stream, &mut params![at, offset, value]));
        ok(hipMemsetD32Async(block, 2, 2, stream));
        ok(hipLaunchHostFunc(stream, Some(note), null_mut()));
        let graph = end(stream);
        let exec = instantiate(graph);
        for _ in 0..2 {
            ok(hipGraphLaunch(exec, stream));
            fails(hipStreamSynchronize(stream), hipErrorIllegalAddress, "poke");
            assert_eq!(download::<u32>(block, 2), [1, 0]);
        }
        assert!(take_calls().is_empty());
        destroy_exec(exec);
        destroy(graph);
    }
    destroy_stream(stream);
    free(block);
}

#[test]
fn memory_of_a_graph_is_in_use_between_its_nodes() {
    let _alone = alone();
    let (out, stream) = (malloc(4), stream(0));
    let usage = |attribute| {
        let mut bytes = 0u64;
        // SAFETY: the result is valid for writing.
        ok(unsafe { hipDeviceGetGraphMemAttribute(0, attribute, (&raw mut bytes).cast()) });
        bytes
    };
    // SAFETY: pointers are valid.
    unsafe {
        assert_eq!((usage(0), usage(2)), (0, 0));
        begin(stream, 0);
        let mut memory = null_mut();
        ok(hipMallocAsync(&mut memory, 1000, stream));
        ok(hipMemsetD32Async(memory, 7, 250, stream));
        ok(hipMemcpyDtoDAsync(out, memory, 4, stream));
        ok(hipFreeAsync(memory, stream));
        fails(hipFreeAsync(out, stream), hipErrorInvalidValue, "memory of the graph that is captured");
        let graph = end(stream);
        assert_eq!(kinds(graph), [HIP_GRAPH_NODE_TYPE_MEM_ALLOC, FILL, COPY, HIP_GRAPH_NODE_TYPE_MEM_FREE]);
        let mut params: hipMemAllocNodeParams = std::mem::zeroed();
        ok(hipGraphMemAllocNodeGetParams(nodes(graph)[0], &mut params));
        assert_eq!((params.bytesize, params.dptr), (1000, memory));
        let mut freed = null_mut::<c_void>();
        ok(hipGraphMemFreeNodeGetParams(nodes(graph)[3], (&raw mut freed).cast()));
        assert_eq!(freed, memory);
        let exec = instantiate(graph);
        run(exec);
        run(exec);
        assert_eq!(download::<u32>(out, 1), [7]);
        assert_eq!((usage(0), usage(1), usage(2)), (0, 1000, 1000));
        fails(
            hipGraphInstantiate(&mut null_mut(), graph, null_mut(), null_mut(), 0),
            hipErrorNotSupported,
            "once",
        );
        fails(hipGraphClone(&mut null_mut(), graph), hipErrorNotSupported, "memory of its own");
        fails(hipGraphDestroyNode(nodes(graph)[0]), hipErrorNotSupported, "memory");
        fails(hipFree(memory), hipErrorInvalidValue, "not in use");
        destroy(graph);
        assert_eq!(usage(2), 1000);
        destroy_exec(exec);
        assert_eq!(usage(2), 0);
        fails(hipMemset(memory, 0, 4), hipErrorInvalidValue, "which was freed");

        // Without a node that frees it, the program does, or the next launch.
        let graph = new_graph();
        let mut params: hipMemAllocNodeParams = std::mem::zeroed();
        params.poolProps.allocType = 1;
        params.poolProps.locationType = 1;
        params.bytesize = 64;
        let [mut allocated, mut second] = [null_mut(); 2];
        ok(hipGraphAddMemAllocNode(&mut allocated, graph, null(), 0, &mut params));
        add_fill(graph, &[allocated], words(params.dptr, 3, 16));
        let [mut exec, mut freeing] = [null_mut(); 2];
        ok(hipGraphInstantiateWithFlags(&mut exec, graph, 0));
        run(exec);
        assert_eq!(download::<u32>(params.dptr, 16), [3; 16]);
        fails(hipGraphLaunch(exec, stream), hipErrorInvalidValue, "has not been freed");
        ok(hipFree(params.dptr));
        run(exec);
        ok(hipFreeAsync(params.dptr, stream));
        destroy_exec(exec);
        let [mut flags, mut twice] = [HIP_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH, 0];
        fails(hipGraphInstantiateWithFlags(&mut freeing, graph, flags), hipErrorNotSupported, "once");
        fails(
            hipGraphInstantiateWithFlags(&mut freeing, graph, 16),
            hipErrorInvalidValue,
            "hipGraphInstantiateFlags",
        );
        let again = new_graph();
        ok(hipGraphAddMemAllocNode(&mut second, again, null(), 0, &mut params));
        let mut free_node = null_mut();
        let elsewhere = hipGraphAddMemFreeNode(&mut free_node, graph, null(), 0, params.dptr);
        fails(elsewhere, hipErrorInvalidValue, "the graph's own");
        ok(hipGraphInstantiateWithFlags(&mut freeing, again, flags));
        run(freeing);
        run(freeing);
        ok(hipGraphExecGetFlags(freeing, &mut twice));
        assert_eq!(twice, flags);
        flags = 0;
        assert_eq!(flags, 0);
        ok(hipGraphAddMemFreeNode(&mut free_node, again, &second, 1, params.dptr));
        let more = hipGraphAddMemFreeNode(&mut free_node, again, &second, 1, params.dptr);
        fails(more, hipErrorInvalidValue, "already");
        params.bytesize = 0;
        fails(
            hipGraphAddMemAllocNode(&mut second, again, null(), 0, &mut params),
            hipErrorInvalidValue,
            "pinned",
        );
        params.bytesize = 8;
        params.poolProps.locationId = 3;
        fails(
            hipGraphAddMemAllocNode(&mut second, again, null(), 0, &mut params),
            hipErrorInvalidValue,
            "device 3",
        );
        destroy_exec(freeing);
        destroy(again);
        destroy(graph);
        assert_eq!((usage(0), usage(2)), (0, 0));
        assert!(usage(1) > 0);
        ok(hipDeviceSetGraphMemAttribute(0, 1, (&raw mut twice).cast()));
        assert_eq!(usage(1), 0);
        fails(hipDeviceSetGraphMemAttribute(0, 0, (&raw mut twice).cast()), hipErrorInvalidValue, "1 or 3");
        fails(hipDeviceGetGraphMemAttribute(0, 4, (&raw mut twice).cast()), hipErrorInvalidValue, "0 to 3");
        ok(hipDeviceGraphMemTrim(0));
    }
    destroy_stream(stream);
    free(out);
}

#[test]
fn a_seed_draws_an_order_that_the_edges_allow() {
    let _alone = alone();
    let block = malloc(4);
    let results = |is_ordered: bool| {
        let graph = new_graph();
        let mut behind: Vec<hipGraphNode_t> = Vec::new();
        for value in 0..4 {
            let node = add_fill(graph, &behind, words(block, value, 1));
            if is_ordered {
                behind = vec![node];
            }
        }
        let exec = instantiate(graph);
        let mut options = launch_options(0).unwrap();
        let mut results = std::collections::BTreeSet::new();
        for seed in 0..40 {
            options.shuffle = Some(seed);
            set_launch_options(0, options.clone()).unwrap();
            run(exec);
            results.extend(download::<u32>(block, 1));
        }
        options.shuffle = None;
        set_launch_options(0, options).unwrap();
        run(exec);
        assert_eq!(download::<u32>(block, 1), [3], "without a seed, nodes come as they were added");
        destroy_exec(exec);
        destroy(graph);
        results.into_iter().collect::<Vec<_>>()
    };
    assert_eq!(results(true), [3]);
    assert_eq!(results(false), [0, 1, 2, 3], "any of them can come last");
    free(block);
}

#[test]
fn values_that_a_graph_waits_for_and_writes() {
    let _alone = alone();
    let (word, block) = (malloc(8), malloc(4));
    let op = |operation, value, flags| memory_op(operation, word, value, flags);
    let mut list =
        [op(HIP_STREAM_MEM_OP_WAIT_VALUE_32, 3, 1), op(HIP_STREAM_MEM_OP_WRITE_VALUE_64, 1 << 33, 0)];
    let params = |list: &mut [hipStreamBatchMemOpParams]| hipBatchMemOpNodeParams {
        ctx: null_mut(),
        count: list.len() as u32,
        paramArray: list.as_mut_ptr(),
        flags: 0,
    };
    let (graph, waits) = (new_graph(), stream(1));
    // SAFETY: pointers are valid for what is read and written through them.
    unsafe {
        let mut node = null_mut();
        ok(hipGraphAddBatchMemOpNode(&mut node, graph, null(), 0, &params(&mut list)));
        let fill = add_fill(graph, &[node], words(block, 5, 1));
        assert_eq!(kinds(graph), [HIP_GRAPH_NODE_TYPE_BATCH_MEM_OP, FILL]);
        let mut found = params(&mut []);
        ok(hipGraphBatchMemOpNodeGetParams(node, &mut found));
        assert_eq!(std::slice::from_raw_parts(found.paramArray, found.count as usize), list);
        fails(hipGraphBatchMemOpNodeGetParams(fill, &mut found), hipErrorInvalidValue, "list of operations");
        let exec = instantiate(graph);
        ok(hipMemset(word, 0, 8));
        ok(hipMemset(block, 0, 4));
        ok(hipGraphLaunch(exec, waits));
        fails(hipStreamQuery(waits), hipErrorNotReady, "has not come");
        ok(hipStreamWriteValue32(null_mut(), word, 3, 0));
        ok(hipStreamSynchronize(waits));
        assert_eq!((download::<u64>(word, 1), download::<u32>(block, 1)), (vec![1 << 33], vec![5]));
        // In the launchable graph alone: nothing to wait for.
        ok(hipGraphExecBatchMemOpNodeSetParams(exec, node, &params(&mut list[1..])));
        run(exec);
        ok(hipGraphBatchMemOpNodeSetParams(node, &mut params(&mut list[..1])));
        ok(hipGraphBatchMemOpNodeGetParams(node, &mut found));
        assert_eq!(found.count, 1);
        fails(
            hipGraphBatchMemOpNodeSetParams(fill, &mut params(&mut list)),
            hipErrorInvalidValue,
            "of the kind",
        );
        fails(hipGraphAddBatchMemOpNode(&mut node, graph, null(), 0, null()), hipErrorInvalidValue, "null");
        destroy_exec(exec);

        // A captured wait is such a node, and so does not hold the capture up.
        begin(waits, 0);
        ok(hipStreamWaitValue32(waits, word, 9, 1, u32::MAX));
        ok(hipStreamWriteValue32(waits, word, 1, 0));
        let captured = end(waits);
        assert_eq!(kinds(captured), [HIP_GRAPH_NODE_TYPE_BATCH_MEM_OP; 2]);
        destroy(captured);
    }
    destroy(graph);
    destroy_stream(waits);
    free(word);
    free(block);
}
