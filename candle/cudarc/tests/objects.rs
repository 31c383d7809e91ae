//! What cudarc has beside queues and memory: attributes of kernels, graphs by handles, pools, and errors of what there is not.

mod common;

use common::{Error, affine, context, launch};
use cudarc::driver::result::{self, ctx, device, graph, mem_pool, occupancy, stream};
use cudarc::driver::sys::{
    CUctx_flags, CUfunc_cache, CUfunction_attribute_enum, CUgraphInstantiate_flags, CUlimit,
    CUmemPool_attribute, CUmemPoolProps, CUresult, CUstreamCaptureMode,
};
use cudarc::driver::{CudaContext, LaunchConfig, Profiler, PushKernelArg, SyncOnDrop};
use std::ffi::{c_int, c_void};
use std::fs::File;
use std::sync::atomic::{AtomicU32, Ordering};

#[test]
fn a_kernel_has_attributes_and_an_occupancy() -> Result<(), Error> {
    let context = context()?;
    let function = affine(&context)?;
    assert!(function.num_regs()? > 0 && function.max_threads_per_block()? >= 256);
    assert_eq!([function.shared_size_bytes()?, function.local_size_bytes()?], [0, 0]);
    assert!(
        function.const_size_bytes()? >= 0 && function.ptx_version()? >= 0 && function.binary_version()? >= 0
    );
    let dynamic = CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    let most = function.get_attribute(dynamic)?;
    function.set_attribute(dynamic, most)?;
    let error = function.set_attribute(dynamic, most + 1).unwrap_err();
    assert!(error.to_string().contains(&format!("the kernel can have {most}")), "{error}");
    function.set_function_cache_config(CUfunc_cache::CU_FUNC_CACHE_PREFER_L1)?;
    let running = function.occupancy_max_active_blocks_per_multiprocessor(256, 0, None)?;
    assert!(running > 1);
    let one = function.occupancy_available_dynamic_smem_per_block(1, 256)?;
    let all = function.occupancy_available_dynamic_smem_per_block(running, 256)?;
    assert!(one as i32 == most && all < one, "{one}, {all}");
    assert_eq!(function.occupancy_available_dynamic_smem_per_block(1000, 256)?, 0);
    extern "C" fn none(_: c_int) -> usize {
        0
    }
    let (grid, block) = function.occupancy_max_potential_block_size(none, 0, 0, None)?;
    assert!(grid > 0 && block.is_multiple_of(32));
    let (_, limited) = function.occupancy_max_potential_block_size(none, 0, 64, None)?;
    assert!(limited <= 64);
    // SAFETY: the kernel is live.
    let by_handle = unsafe { occupancy::max_potential_block_size(function.cu_function(), None, 0, 0)? };
    assert!(by_handle.0 > 0 && by_handle.1 > 0);
    let config = LaunchConfig::for_num_elems(1);
    let stream = context.default_stream();
    let error = function.occupancy_max_active_clusters(config, &stream).unwrap_err();
    assert!(error.to_string().contains("no clusters"), "{error}");
    assert!(function.occupancy_max_potential_cluster_size(config, &stream).is_err());
    Ok(())
}

#[test]
fn a_context_has_limits_and_a_name_of_its_own() -> Result<(), Error> {
    let context = CudaContext::new_non_primary(0, 0)?;
    assert!(context.is_primary() && !context.is_in_multi_stream_mode());
    let _queue = context.new_stream_with_priority(0)?;
    assert!(context.is_in_multi_stream_mode());
    // SAFETY: the context is live.
    let same = unsafe { CudaContext::from_raw_context(0, context.cu_device(), context.cu_ctx())? };
    assert_eq!(same, context);
    assert_eq!(context.uuid()?, device::get_uuid(0)?);
    assert!(context.get_limit(CUlimit::CU_LIMIT_STACK_SIZE)? > 0);
    assert!(context.set_limit(CUlimit::CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, 1).is_err());
    context.set_limit(CUlimit::CU_LIMIT_STACK_SIZE, 2048)?;
    context.set_flags(CUctx_flags::CU_CTX_SCHED_AUTO)?;
    context.set_blocking_synchronize()?;
    context.set_cache_config(CUfunc_cache::CU_FUNC_CACHE_PREFER_EQUAL)?;
    assert_eq!(context.get_cache_config()?, CUfunc_cache::CU_FUNC_CACHE_PREFER_NONE);
    // SAFETY: it has no preconditions.
    let handle = unsafe { ctx::create_v4(std::ptr::null_mut(), 0, 0)? };
    assert_eq!(handle, context.cu_ctx());
    let error = CUresult::CUDA_ERROR_INVALID_VALUE.result().unwrap_err();
    assert_eq!(error.error_name()?, c"hipErrorInvalidValue");
    assert_eq!(error.error_string()?, c"invalid argument");
    let _profiler = Profiler::new()?;
    // What cannot be returned, the next synchronisation returns.
    context.record_err(Err::<(), _>(error));
    assert!(context.default_stream().synchronize().is_err());
    // SAFETY: it is refused on emulated devices.
    let error = unsafe { context.import_external_memory(File::open("/dev/null")?, 1) }.unwrap_err();
    assert!(error.to_string().contains("hipImportExternalMemory"), "{error}");
    Ok(())
}

#[test]
fn a_graph_is_recorded_and_run_by_handles() -> Result<(), Error> {
    let context = context()?;
    let (queue, function) = (context.default_stream(), affine(&context)?);
    let mut x = queue.clone_htod(&[1.0_f32, 2.0])?;
    let mut y = queue.alloc_zeros::<f32>(2)?;
    let flags = CUgraphInstantiate_flags::default();
    // SAFETY: handles are live as long as they are used.
    unsafe {
        let handle = queue.cu_stream();
        stream::begin_capture(handle, CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED)?;
        launch(&queue, &function, 2, &x, &mut y)?;
        let recorded = stream::end_capture(handle)?;
        let exec = graph::instantiate(recorded, flags)?;
        // What was made of it outlives it.
        graph::destroy(recorded)?;
        graph::upload(exec, handle)?;
        graph::launch(exec, handle)?;
        assert_eq!(queue.clone_dtoh(&y)?, [3.0, 5.0]);
        queue.memcpy_htod(&[5.0, 6.0], &mut x)?;
        graph::launch(exec, handle)?;
        assert_eq!(queue.clone_dtoh(&y)?, [11.0, 13.0]);
        graph::exec_destroy(exec)?;
    }
    Ok(())
}

#[test]
fn memory_comes_from_pools_and_changes_owners() -> Result<(), Error> {
    let context = context()?;
    let queue = context.default_stream();
    // SAFETY: handles are live, and sizes are those of the memory.
    unsafe {
        let pool = mem_pool::create(&CUmemPoolProps::of_device(context.cu_device()))?;
        let mut keep = 1_u64 << 20;
        let threshold = CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        mem_pool::set_attribute(pool, threshold, (&raw mut keep).cast())?;
        let mut found = 0_u64;
        mem_pool::get_attribute(pool, threshold, (&raw mut found).cast())?;
        assert_eq!(found, keep);
        let usual = device::get_default_mem_pool(context.cu_device())?;
        assert_eq!(device::get_mem_pool(context.cu_device())?, usual);
        device::set_mem_pool(context.cu_device(), pool)?;
        assert_eq!(device::get_mem_pool(context.cu_device())?, pool);
        device::set_mem_pool(context.cu_device(), usual)?;
        let address = mem_pool::alloc_async(pool, 8, queue.cu_stream())?;
        let mut slice = queue.upgrade_device_ptr::<f32>(address, 2);
        queue.memcpy_htod(&[1.0, 2.0], &mut slice)?;
        let other = queue.clone_htod(&[0.0_f32, 0.0])?.leak();
        let (to, from) = (context.cu_ctx(), context.cu_ctx());
        result::memcpy_peer_async(to, other, from, address, 8, queue.cu_stream())?;
        let copy = queue.upgrade_device_ptr::<f32>(other, 2);
        assert_eq!(queue.clone_dtoh(&copy)?, [1.0, 2.0]);
        drop((slice, copy));
        queue.synchronize()?;
        mem_pool::trim_to(pool, 0)?;
        mem_pool::destroy(pool)?;
    }
    Ok(())
}

#[test]
fn the_host_is_called_and_waits_where_it_is_asked_to() -> Result<(), Error> {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    extern "C" fn call(by: *mut c_void) {
        CALLS.fetch_add(by.addr() as u32, Ordering::Relaxed);
    }
    let context = context()?;
    let queue = context.default_stream();
    let event = Some(context.new_event(None)?);
    // SAFETY: the queue is live, and the function uses nothing.
    unsafe { stream::launch_host_function(queue.cu_stream(), call, std::ptr::without_provenance_mut(3))? };
    drop(SyncOnDrop::record_event(&event, &queue));
    drop(SyncOnDrop::sync_stream(&queue));
    assert_eq!(CALLS.load(Ordering::Relaxed), 3);
    assert!(event.is_some_and(|event| event.is_complete()));
    // SAFETY: the queue is live.
    let same = unsafe { context.wrap_borrowed_stream(queue.cu_stream()) };
    assert_eq!(*same, *queue);
    Ok(())
}

#[test]
fn a_cooperative_launch_has_the_callers_geometry() -> Result<(), Error> {
    let context = context()?;
    let (queue, function) = (context.default_stream(), affine(&context)?);
    let (x, mut y) = (queue.clone_htod(&[1.0_f32; 100])?, queue.alloc_zeros::<f32>(100)?);
    let (len, dims, null, mul, add) = (100_usize, 1_usize, 0_usize, 2_f32, 1_f32);
    let mut builder = queue.launch_builder(&function);
    builder.arg(&len).arg(&dims).arg(&null).arg(&x).arg(&mut y).arg(&mul).arg(&add);
    let config = |grid| LaunchConfig { grid_dim: (grid, 1, 1), block_dim: (256, 1, 1), shared_mem_bytes: 0 };
    // SAFETY: these are the kernel's arguments, and both have as many elements.
    unsafe {
        builder.launch_cooperative(config(1))?;
        assert!(builder.launch_cooperative(config(1 << 20)).is_err(), "there is no room for all at once");
    }
    assert_eq!(queue.clone_dtoh(&y)?, [3.0; 100]);
    Ok(())
}
