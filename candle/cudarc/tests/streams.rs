//! Queues, events, graphs and pinned memory, by cudarc's names.

use candle_amdgpu::kernel::NVPTX;
mod common;

use common::{Error, affine, context, launch};
use cudarc::driver::sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE;
use cudarc::driver::sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
use cudarc::driver::sys::CUstreamCaptureStatus::{
    CU_STREAM_CAPTURE_STATUS_ACTIVE, CU_STREAM_CAPTURE_STATUS_NONE,
};
use cudarc::driver::sys::{CUevent_flags, CUgraphInstantiate_flags};
use cudarc::driver::{CudaContext, LaunchConfig, PushKernelArg, result};

#[test]
fn a_graph_runs_as_often_as_it_is_launched() -> Result<(), Error> {
    let context = context()?;
    let (stream, function) = (context.new_stream()?, affine(&context)?);
    let mut x = stream.clone_htod(&[0_f32; 5])?;
    let mut y = stream.alloc_zeros::<f32>(5)?;
    assert_eq!(stream.capture_status()?, CU_STREAM_CAPTURE_STATUS_NONE);
    stream.begin_capture(CU_STREAM_CAPTURE_MODE_RELAXED)?;
    assert_eq!(stream.capture_status()?, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    launch(&stream, &function, x.len(), &x, &mut y)?;
    stream.memcpy_dtod(&y, &mut x)?;
    let graph = stream.end_capture(CUgraphInstantiate_flags::default())?.expect("there is one");
    assert_eq!(stream.capture_status()?, CU_STREAM_CAPTURE_STATUS_NONE);
    // Nothing has run yet.
    assert_eq!(stream.clone_dtoh(&x)?, [0.0; 5]);
    graph.upload()?;
    for expected in [1_f32, 3.0, 7.0, 15.0] {
        graph.launch()?;
        assert_eq!(stream.clone_dtoh(&x)?, [expected; 5]);
    }
    Ok(())
}

/// The host's numbers may be gone when the graph runs.
#[test]
fn host_memory_that_a_graph_copies_is_kept() -> Result<(), Error> {
    let context = context()?;
    let stream = context.new_stream()?;
    let mut x = stream.alloc_zeros::<u32>(4)?;
    stream.begin_capture(CU_STREAM_CAPTURE_MODE_RELAXED)?;
    let mut numbers = vec![1_u32, 2, 3, 4];
    stream.memcpy_htod(&numbers, &mut x)?;
    numbers.fill(9);
    drop(numbers);
    let flags = CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
    let graph = stream.end_capture(flags)?.expect("there is one");
    for i in 0..3_u32 {
        // Other uploads of the same queue meanwhile.
        stream.memcpy_htod(&[i; 4], &mut x)?;
        graph.launch()?;
        assert_eq!(stream.clone_dtoh(&x)?, [1, 2, 3, 4]);
    }
    Ok(())
}

#[test]
fn a_graph_can_be_replaced_while_the_next_is_recorded() -> Result<(), Error> {
    let context = context()?;
    let stream = context.new_stream()?;
    let mut x = stream.alloc_zeros::<u32>(4)?;
    let mut graphs = Vec::new();
    for i in 1..4_u32 {
        stream.begin_capture(CU_STREAM_CAPTURE_MODE_RELAXED)?;
        graphs.clear();
        stream.memcpy_htod(&[i; 4], &mut x)?;
        let graph = stream.end_capture(CUgraphInstantiate_flags::default())?.expect("there is one");
        graph.launch()?;
        assert_eq!(stream.clone_dtoh(&x)?, [i; 4]);
        graphs.push(graph);
    }
    Ok(())
}

#[test]
fn ending_what_has_not_begun_is_an_error() -> Result<(), Error> {
    let stream = context()?.new_stream()?;
    let error = stream.end_capture(CUgraphInstantiate_flags::default()).unwrap_err().to_string();
    assert!(error.contains("hipStreamEndCapture"), "{error}");
    Ok(())
}

#[test]
fn a_forked_queue_starts_after_the_one_that_it_comes_from() -> Result<(), Error> {
    let context = context()?;
    let (stream, function) = (context.new_stream()?, affine(&context)?);
    // SAFETY: the queues are ordered by hand.
    unsafe { context.disable_event_tracking() };
    let x = stream.clone_htod(&vec![1_f32; 5000])?;
    let (mut y, mut z) = (stream.alloc_zeros::<f32>(5000)?, stream.alloc_zeros::<f32>(5000)?);
    launch(&stream, &function, x.len(), &x, &mut y)?;
    let other = stream.fork()?;
    assert_ne!(*stream, *other);
    launch(&other, &function, y.len(), &y, &mut z)?;
    stream.join(&other)?;
    assert_eq!(stream.clone_dtoh(&z)?, vec![7_f32; 5000]);
    let event = other.record_event(None)?;
    stream.wait(&event)?;
    stream.synchronize()?;
    assert!(event.is_complete());
    Ok(())
}

#[test]
fn events_measure_time_if_they_are_told_to() -> Result<(), Error> {
    let context = context()?;
    let (stream, function) = (context.new_stream()?, affine(&context)?);
    let x = stream.clone_htod(&vec![1_f32; 5000])?;
    let mut y = stream.alloc_zeros::<f32>(5000)?;
    let start = stream.record_event(Some(CUevent_flags::CU_EVENT_DEFAULT))?;
    launch(&stream, &function, x.len(), &x, &mut y)?;
    let end = context.new_event(Some(CUevent_flags::CU_EVENT_DEFAULT))?;
    end.record(&stream)?;
    let ms = start.elapsed_ms(&end)?;
    assert!(ms.is_finite() && ms >= 0.0, "{ms} ms");
    assert!(end.try_is_complete()?);
    // Without flags they do not.
    let error = stream.record_event(None)?.elapsed_ms(&end).unwrap_err().to_string();
    assert!(error.contains("hipEventElapsedTime"), "{error}");
    // Around a launch.
    let (len, dims, null, mul, add) = (x.len(), 1_usize, 0_usize, 2_f32, 1_f32);
    let mut builder = stream.launch_builder(&function);
    builder.arg(&len).arg(&dims).arg(&null).arg(&x).arg(&mut y).arg(&mul).arg(&add);
    builder.record_kernel_launch(CUevent_flags::CU_EVENT_DEFAULT);
    // SAFETY: these are the kernel's arguments, and both have as many elements.
    let events = unsafe { builder.launch(LaunchConfig::for_num_elems(len as u32))? };
    let (before, after) = events.expect("they were asked for");
    assert!(before.elapsed_ms(&after)? >= 0.0);
    Ok(())
}

#[test]
fn pinned_memory_is_copied_both_ways() -> Result<(), Error> {
    let context = context()?;
    let stream = context.default_stream();
    // SAFETY: it begins as zeros.
    let mut numbers = unsafe { context.alloc_pinned::<f32>(6)? };
    assert_eq!((numbers.as_slice()?, numbers.num_bytes()), (&[0_f32; 6][..], 24));
    numbers.as_mut_slice()?.copy_from_slice(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let there = stream.clone_htod(&numbers)?;
    numbers.as_mut_slice()?.fill(0.0);
    stream.memcpy_dtoh(&there, &mut numbers)?;
    assert_eq!(numbers.as_slice()?, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    // SAFETY: it is empty.
    assert!(unsafe { context.alloc_pinned::<f32>(0)? }.is_empty());
    Ok(())
}

#[test]
fn a_device_says_what_it_is() -> Result<(), Error> {
    let context = context()?;
    context.bind_to_thread()?;
    let (free, total) = context.mem_get_info()?;
    assert!(free <= total && total == context.total_mem()?, "{free} of {total}");
    let lanes = context.attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE)?;
    assert!([32, 64].contains(&lanes), "{lanes} lanes");
    if context.device().arch() != NVPTX {
        assert!((9..=12).contains(&context.compute_capability()?.0));
    }
    result::init()?;
    assert_eq!(result::device::get(0)?, context.cu_device());
    assert!(result::device::get(99).is_err());
    assert_eq!(result::device::get_name(0)?, context.name()?);
    assert_eq!(result::device::get_count()?, CudaContext::device_count()?);
    let stream = context.default_stream();
    // SAFETY: the queue is live.
    unsafe {
        result::stream::synchronize(stream.cu_stream())?;
        let status = result::stream::is_capturing(stream.cu_stream())?;
        assert_eq!(status, CU_STREAM_CAPTURE_STATUS_NONE);
    }
    Ok(())
}
