//! Queues, events, modules and launches by their handles, by cudarc's names.

use candle_amdgpu::ALL_IDS;
use cudarc::driver::result::stream::StreamKind;
use cudarc::driver::result::{self, ctx, device, event, module, occupancy, primary_ctx, stream};
use cudarc::driver::sys::{CUevent_flags, CUevent_wait_flags};
use std::ffi::{CString, c_void};

type Error = Box<dyn std::error::Error>;

#[test]
fn a_kernel_is_launched_by_handles_alone() -> Result<(), Error> {
    result::init()?;
    let device = candle_amdgpu::Device::new(device::get(0)? as usize)?;
    let family = ALL_IDS.into_iter().find(|id| id.name() == "affine").expect("there is one");
    let object = family.module().object(device.arch()).expect("it is built for this device");
    let numbers = [1.0_f32, 2.0, 3.0];
    let mut back = [0.0_f32; 3];
    // SAFETY: handles are live, sizes are those of the memory, and the arguments are the kernel's.
    unsafe {
        let context = primary_ctx::retain(0)?;
        ctx::set_current(context)?;
        assert_eq!(ctx::get_current()?, Some(context));
        let module = module::load_data(object.bytes.as_ptr().cast())?;
        let function = module::get_function(module, CString::new("affine_f32")?)?;
        let missing = module::get_function(module, CString::new("no_such_kernel")?).unwrap_err();
        assert!(missing.to_string().contains("hipModuleGetFunction"), "{missing}");
        assert!(occupancy::max_active_block_per_multiprocessor(function, 256, 0)? > 0);
        let (queue, other) =
            (stream::create(StreamKind::NonBlocking)?, stream::create_with_priority(StreamKind::Default, 0)?);
        let (low, high) = stream::get_priority_range()?;
        assert!(low >= high);
        let (x, mut y) = (result::malloc_sync(12)?, result::malloc_sync(12)?);
        result::memcpy_htod_sync(x, &numbers)?;
        let start = event::create(CUevent_flags::CU_EVENT_DEFAULT)?;
        let end = event::create(CUevent_flags::CU_EVENT_DEFAULT)?;
        event::record(start, queue)?;
        let (mut len, mut dims, mut null, mut mul, mut add) = (3_usize, 1_usize, 0_usize, 2_f32, 1_f32);
        let mut from = x;
        let mut arguments = [
            (&raw mut len).cast::<c_void>(),
            (&raw mut dims).cast(),
            (&raw mut null).cast(),
            (&raw mut from).cast(),
            (&raw mut y).cast(),
            (&raw mut mul).cast(),
            (&raw mut add).cast(),
        ];
        result::launch_kernel(function, (1, 1, 1), (256, 1, 1), 0, queue, &mut arguments)?;
        event::record(end, queue)?;
        stream::wait_event(other, end, CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT)?;
        result::memcpy_dtoh_async(&mut back, y, other)?;
        stream::synchronize(other)?;
        assert_eq!(back, [3.0, 5.0, 7.0]);
        event::synchronize(end)?;
        event::query(end)?;
        assert!(event::elapsed(start, end)? >= 0.0);
        ctx::synchronize()?;
        for event in [start, end] {
            event::destroy(event)?;
        }
        for address in [x, y] {
            result::free_sync(address)?;
        }
        for queue in [queue, other] {
            stream::destroy(queue)?;
        }
        module::unload(module)?;
        primary_ctx::release(0)?;
        assert!(primary_ctx::retain(99).is_err());
    }
    Ok(())
}
