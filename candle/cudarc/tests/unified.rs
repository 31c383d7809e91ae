//! Memory that host and devices have at the same address, and memory by its address, by cudarc's names.

mod common;

use common::{Error, affine, context, launch};
use cudarc::driver::sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY;
use cudarc::driver::sys::CUmem_advise::CU_MEM_ADVISE_SET_READ_MOSTLY;
use cudarc::driver::sys::CUmemAttach_flags::{
    CU_MEM_ATTACH_GLOBAL, CU_MEM_ATTACH_HOST, CU_MEM_ATTACH_SINGLE,
};
use cudarc::driver::sys::{CUmemLocation, CUmemLocationType};
use cudarc::driver::{CudaContext, DevicePtr, UnifiedSlice, result};
use std::sync::Arc;

/// 0, 1, 2 and so on, attached to all queues or to the host.
fn counted(context: &Arc<CudaContext>, len: usize, global: bool) -> Result<UnifiedSlice<f32>, Error> {
    // SAFETY: floats have any bytes.
    let mut slice = unsafe { context.alloc_unified::<f32>(len, global)? };
    for (i, x) in slice.as_mut_slice()?.iter_mut().enumerate() {
        *x = i as f32;
    }
    Ok(slice)
}

#[test]
fn host_and_kernels_use_the_same_memory_without_copies() -> Result<(), Error> {
    let context = context()?;
    assert_eq!(context.attribute(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY)?, 1);
    let function = affine(&context)?;
    for global in [true, false] {
        let mut x = counted(&context, 100, global)?;
        assert_eq!(x.attach_mode(), if global { CU_MEM_ATTACH_GLOBAL } else { CU_MEM_ATTACH_HOST });
        let mut y = counted(&context, 100, global)?;
        for stream in [context.default_stream(), context.new_stream()?] {
            x.prefetch()?;
            launch(&stream, &function, x.len(), &x, &mut y)?;
            // The host waits for the queue by itself.
            assert_eq!(y.as_slice()?[99], 199.0);
            x.as_mut_slice()?[99] = 99.0;
        }
    }
    Ok(())
}

#[test]
fn the_bytes_of_new_memory_are_zero() -> Result<(), Error> {
    // SAFETY: numbers have any bytes.
    let slice = unsafe { context()?.alloc_unified::<u64>(33, true)? };
    assert_eq!(slice.as_slice()?, [0; 33]);
    assert_eq!((slice.len(), slice.num_bytes(), slice.is_empty()), (33, 264, false));
    // SAFETY: as above.
    let empty = unsafe { context()?.alloc_unified::<u64>(0, true)? };
    assert!(empty.is_empty() && empty.as_slice()?.is_empty());
    Ok(())
}

#[test]
fn copies_take_it_as_memory_of_the_host_and_of_the_device() -> Result<(), Error> {
    let context = context()?;
    let stream = context.new_stream()?;
    let mut slice = counted(&context, 10, true)?;
    let copy = stream.clone_htod(&slice)?;
    assert_eq!(stream.clone_dtoh(&copy)?, stream.clone_dtoh(&slice)?);
    stream.memset_zeros(&mut slice.slice_mut(..4))?;
    assert_eq!(slice.as_slice()?, [0., 0., 0., 0., 4., 5., 6., 7., 8., 9.]);
    let (first, second) = slice.split_at(5);
    assert_eq!(stream.clone_dtoh(&second)?, [5., 6., 7., 8., 9.]);
    assert_eq!(stream.clone_dtoh(&first.slice(3..))?, [0., 4.]);
    assert!(slice.try_split_at(11).is_none() && slice.try_slice(9..11).is_none());
    let (mut first, second) = slice.split_at_mut(5);
    stream.memcpy_dtod(&second, &mut first)?;
    assert_eq!(slice.as_slice()?, [5., 6., 7., 8., 9., 5., 6., 7., 8., 9.]);
    Ok(())
}

#[test]
fn only_the_queue_that_it_is_attached_to_may_use_it() -> Result<(), Error> {
    let context = context()?;
    let function = affine(&context)?;
    let (mine, other) = (context.new_stream()?, context.default_stream());
    let mut x = counted(&context, 4, true)?;
    let mut y = counted(&context, 4, true)?;
    x.attach(&mine, CU_MEM_ATTACH_SINGLE)?;
    launch(&mine, &function, x.len(), &x, &mut y)?;
    assert_eq!(y.as_slice()?, [1., 3., 5., 7.]);
    let refused = launch(&other, &function, x.len(), &x, &mut y).unwrap_err().to_string();
    assert!(refused.contains("attached to another queue"), "{refused}");
    assert!(x.check_device_access(&other).is_err() && x.check_device_access(&mine).is_ok());
    // A copy cannot say so at once; the next synchronisation does.
    assert!(other.clone_dtoh(&x.slice(..2)).and_then(|_| other.synchronize()).is_err());
    x.attach(&other, CU_MEM_ATTACH_GLOBAL)?;
    assert_eq!(mine.clone_dtoh(&x)?, [0., 1., 2., 3.]);
    assert_eq!(other.clone_dtoh(&x)?, [0., 1., 2., 3.]);
    Ok(())
}

#[test]
fn memory_by_its_address_is_allocated_set_copied_and_freed() -> Result<(), Error> {
    let context = context()?;
    context.bind_to_thread()?;
    let stream = context.new_stream()?;
    let total = result::mem_get_info()?.1;
    assert_eq!(total, context.mem_get_info()?.1);
    let numbers: Vec<u32> = (0..25).collect();
    let mut back = vec![0_u32; 25];
    // SAFETY: each address is that of 100 bytes, freed once; host memory outlives the queue's work.
    unsafe {
        let (a, b) = (result::malloc_sync(100)?, result::malloc_async(stream.cu_stream(), 100)?);
        // Other tests allocate, too, but not as much as there is.
        assert!(result::mem_get_info()?.0 <= total - 200);
        result::memcpy_htod_sync(a, &numbers)?;
        result::memcpy_dtod_async(b, a, 100, stream.cu_stream())?;
        result::memcpy_dtoh_async(&mut back, b, stream.cu_stream())?;
        stream.synchronize()?;
        assert_eq!(back, numbers);
        result::memset_d8_async(b, 1, 50, stream.cu_stream())?;
        stream.synchronize()?;
        result::memset_d8_sync(a, 2, 4)?;
        result::memcpy_dtod_sync(b + 96, a, 4)?;
        result::memcpy_dtoh_sync(&mut back, b)?;
        assert_eq!((back[0], back[11], back[13], back[24]), (0x0101_0101, 0x0101_0101, 13, 0x0202_0202));
        result::memcpy_htod_async(b, &numbers, stream.cu_stream())?;
        result::free_async(b, stream.cu_stream())?;
        stream.synchronize()?;
        result::free_sync(a)?;
        let host = result::malloc_host(64, 0)?;
        host.cast::<u8>().write_bytes(7, 64);
        result::free_host(host)?;
        let shared = result::malloc_managed(64, CU_MEM_ATTACH_GLOBAL)?;
        let device = CUmemLocation { type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, id: 0 };
        let near = CUmemLocation { type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST, id: 0 };
        result::mem_advise(shared, 64, CU_MEM_ADVISE_SET_READ_MOSTLY, device)?;
        result::mem_prefetch_async(shared, 64, device, stream.cu_stream())?;
        result::mem_prefetch_async(shared, 64, near, stream.cu_stream())?;
        result::memory_free(shared)?;
        let error = result::memory_free(shared).unwrap_err().to_string();
        assert!(error.contains("hipFree"), "{error}");
    }
    let slice = stream.clone_htod(&numbers)?;
    // SAFETY: the slice has as many bytes.
    unsafe { result::memcpy_dtoh_sync(&mut back, slice.device_ptr(&stream).0)? };
    assert_eq!(back, numbers);
    Ok(())
}
