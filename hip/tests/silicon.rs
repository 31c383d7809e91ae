//! What every backend must do alike, on whichever devices `CANDLE_AMDGPU_DEVICE` names: the emulator's unless it is set. On a
//! GPU that runs on its own these calls are asynchronous for the first time.

use std::ffi::c_void;
use std::process::Command;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use amdhip64::*;

/// Set for the process that a test starts to be ended by its kernel.
const TRAP: &str = "AMDHIP_TEST_TRAP";
/// Seconds that the test of two threads takes.
const SECONDS: &str = "AMDHIP_TEST_SECONDS";

#[track_caller]
fn ok(code: hipError_t) {
    assert_eq!(code, hipSuccess, "{}: {:?}", error_name(code), last_error());
}

/// Takes the emulator where nothing else is asked for; whether the devices are NVIDIA's.
fn setup() -> bool {
    if std::env::var_os(DEVICE_VARIABLE).is_none() {
        // Another test of this process may have been first.
        let _ = choose("emulator:gfx1100");
    }
    let info = backend_info().expect("there are devices");
    matches!(info.kind, BackendKind::Cuda { .. })
}

fn malloc(bytes: usize) -> *mut c_void {
    let mut pointer = null_mut();
    // SAFETY: the result is valid for writing.
    ok(unsafe { hipMalloc(&mut pointer, bytes) });
    pointer
}

fn numbers(count: usize, seed: u32) -> Vec<u32> {
    (0..count as u32).map(|n| (n ^ seed).wrapping_mul(2_654_435_761)).collect()
}

fn download(pointer: *const c_void, count: usize) -> Vec<u32> {
    let mut data = vec![0; count];
    // SAFETY: the vector has as many bytes.
    ok(unsafe { hipMemcpyDtoH(data.as_mut_ptr().cast(), pointer.cast_mut(), 4 * count) });
    data
}

#[test]
fn copies_and_fills() {
    setup();
    let data = numbers(100_000, 1);
    let bytes = 4 * data.len();
    let (a, b) = (malloc(bytes), malloc(bytes));
    let mut back = vec![0u32; data.len()];
    // SAFETY: all memory has as many bytes as are copied.
    unsafe {
        for (to, from) in
            [(HIP_MEMCPY_HOST_TO_DEVICE, HIP_MEMCPY_DEVICE_TO_HOST), (HIP_MEMCPY_DEFAULT, HIP_MEMCPY_DEFAULT)]
        {
            ok(hipMemset(a, 0, bytes));
            ok(hipMemcpy(a, data.as_ptr().cast(), bytes, to));
            ok(hipMemcpy(b, a, bytes, HIP_MEMCPY_DEVICE_TO_DEVICE));
            back.fill(0);
            ok(hipMemcpy(back.as_mut_ptr().cast(), b, bytes, from));
            assert_eq!(back, data);
        }
        // Rows of 12 bytes, 20 apart on the host and 64 on the device.
        ok(hipMemset(b, 0x11, bytes));
        ok(hipMemcpy2D(b, 64, data.as_ptr().cast(), 20, 12, 100, HIP_MEMCPY_HOST_TO_DEVICE));
        let rows = download(b, 16 * 100);
        for (i, row) in rows.chunks(16).enumerate() {
            assert_eq!(row[..3], data[5 * i..5 * i + 3]);
            assert_eq!(row[3..], [0x1111_1111; 13]);
        }
        ok(hipMemset2D(b, 64, 0x22, 8, 50));
        assert_eq!(download(b, 3), [0x2222_2222, 0x2222_2222, data[2]]);
        ok(hipMemsetD8(a, 3, 8));
        ok(hipMemsetD16(a.byte_add(8), 0x1234, 2));
        ok(hipMemsetD32(a.byte_add(12), 0x789a_bcde, 2));
        assert_eq!(download(a, 5), [0x0303_0303, 0x0303_0303, 0x1234_1234, 0x789a_bcde, 0x789a_bcde]);
        // Nothing to do is no error.
        ok(hipMemcpy(null_mut(), std::ptr::null(), 0, HIP_MEMCPY_DEFAULT));
        ok(hipMemset(a, 0, 0));
        ok(hipFree(null_mut()));
        let mut none = std::ptr::dangling_mut::<c_void>();
        ok(hipMalloc(&mut none, 0));
        assert!(none.is_null());
        ok(hipFree(a));
        ok(hipFree(b));
        let extent = hipExtent { width: 100, height: 7, depth: 3 };
        let mut pitched: hipPitchedPtr = std::mem::zeroed();
        ok(hipMalloc3D(&mut pitched, extent));
        ok(hipMemset3D(pitched, 0x55, extent));
        let mut block = [0u8; 100 * 7 * 3];
        let mut copy: hipMemcpy3DParms = std::mem::zeroed();
        copy.srcPtr = pitched;
        copy.dstPtr = hipPitchedPtr { ptr: block.as_mut_ptr().cast(), pitch: 100, xsize: 100, ysize: 7 };
        (copy.extent, copy.kind) = (extent, HIP_MEMCPY_DEVICE_TO_HOST);
        ok(hipMemcpy3D(&copy));
        assert!(block.iter().all(|&byte| byte == 0x55));
        ok(hipFree(pitched.ptr));
    }
}

#[test]
fn memory_is_mapped_piece_by_piece_where_it_was_reserved() {
    setup();
    let location = hipMemLocation { type_: HIP_MEM_LOCATION_TYPE_DEVICE, id: 0 };
    let prop = hipMemAllocationProp {
        type_: HIP_MEM_ALLOCATION_TYPE_PINNED,
        requestedHandleTypes: 0,
        location,
        win32HandleMetaData: null_mut(),
        compressionType: 0,
        gpuDirectRDMACapable: 0,
        usage: 0,
    };
    // SAFETY: results, properties and descriptions are valid; memory has as many bytes as are copied.
    unsafe {
        let mut piece = 0;
        ok(hipMemGetAllocationGranularity(&mut piece, &prop, 0));
        assert!(piece.is_power_of_two());
        let mut base = null_mut();
        ok(hipMemAddressReserve(&mut base, 64 * piece, 0, null_mut(), 0));
        let mut handles = [null_mut(); 2];
        for (i, handle) in handles.iter_mut().enumerate() {
            let at = base.byte_add(i * piece);
            ok(hipMemCreate(handle, piece, &prop, 0));
            ok(hipMemMap(at, piece, 0, *handle, 0));
            let flags = HIP_MEM_ACCESS_FLAGS_PROT_READ_WRITE;
            ok(hipMemSetAccess(at, piece, &hipMemAccessDesc { location, flags }, 1));
        }
        // Across both pieces.
        let data = numbers(1000, 5);
        let at = base.byte_add(piece - 2000);
        ok(hipMemcpy(at, data.as_ptr().cast(), 4000, HIP_MEMCPY_HOST_TO_DEVICE));
        assert_eq!(download(at, 1000), data);
        // The second piece keeps what it has where it is mapped next.
        let second = base.byte_add(piece);
        ok(hipMemUnmap(second, piece));
        let elsewhere = base.byte_add(7 * piece);
        ok(hipMemMap(elsewhere, piece, 0, handles[1], 0));
        let flags = HIP_MEM_ACCESS_FLAGS_PROT_READ_WRITE;
        ok(hipMemSetAccess(elsewhere, piece, &hipMemAccessDesc { location, flags }, 1));
        assert_eq!(download(elsewhere, 500), data[500..]);
        let mut access = 0;
        ok(hipMemGetAccess(&mut access, &location, elsewhere));
        assert_eq!(access, u64::from(flags));
        ok(hipMemUnmap(base, piece));
        ok(hipMemUnmap(elsewhere, piece));
        handles.into_iter().for_each(|handle| ok(hipMemRelease(handle)));
        ok(hipMemAddressFree(base, 64 * piece));
    }
}

#[test]
fn memory_of_the_host_and_of_both() {
    setup();
    let data = numbers(5000, 2);
    let bytes = 4 * data.len();
    // SAFETY: all memory has as many bytes as are copied.
    unsafe {
        let (mut pinned, mut managed) = (null_mut(), null_mut());
        ok(hipHostMalloc(&mut pinned, bytes, 0));
        ok(hipMallocManaged(&mut managed, bytes, 1));
        pinned.cast::<u32>().copy_from(data.as_ptr(), data.len());
        let device = malloc(bytes);
        ok(hipMemcpy(device, pinned, bytes, HIP_MEMCPY_DEFAULT));
        ok(hipMemcpy(managed, device, bytes, HIP_MEMCPY_DEFAULT));
        ok(hipDeviceSynchronize());
        assert_eq!(std::slice::from_raw_parts(managed.cast::<u32>(), data.len()), data);
        let mut mapped = null_mut();
        ok(hipHostGetDevicePointer(&mut mapped, pinned, 0));
        ok(hipMemsetD32(mapped, 7, 10));
        ok(hipDeviceSynchronize());
        assert_eq!(std::slice::from_raw_parts(pinned.cast::<u32>(), 10), [7; 10]);
        let kind = |pointer: *const c_void| {
            let mut attributes: hipPointerAttribute_t = std::mem::zeroed();
            ok(hipPointerGetAttributes(&mut attributes, pointer));
            attributes.type_
        };
        assert_eq!(kind(device), HIP_MEMORY_TYPE_DEVICE);
        assert_eq!(kind(pinned), HIP_MEMORY_TYPE_HOST);
        assert_eq!(kind(managed), HIP_MEMORY_TYPE_MANAGED);
        assert_eq!(kind(data.as_ptr().cast()), HIP_MEMORY_TYPE_UNREGISTERED);
        let (mut base, mut size) = (null_mut(), 0);
        ok(hipMemGetAddressRange(&mut base, &mut size, device.byte_add(100)));
        assert_eq!((base, size), (device, bytes));
        let (mut free, mut total) = (0, 0);
        ok(hipMemGetInfo(&mut free, &mut total));
        assert!(0 < free && free <= total);
        let mut too_large = null_mut();
        assert_eq!(hipMalloc(&mut too_large, 1 << 50), hipErrorOutOfMemory);
        let text = last_error().unwrap().text;
        assert!(text.contains("1125899906842624 bytes") && text.contains("are free"), "{text}");
        assert_eq!(hipGetLastError(), hipErrorOutOfMemory);
        assert_eq!(hipGetLastError(), hipSuccess);
        ok(hipFree(device));
        ok(hipFree(managed));
        ok(hipHostFree(pinned));
        assert_eq!(hipMalloc(null_mut(), 4), hipErrorInvalidValue);
    }
}

#[test]
fn what_a_device_is() {
    let is_cuda = setup();
    // SAFETY: each pointer is valid for what is written.
    unsafe {
        let mut count = 0;
        ok(hipGetDeviceCount(&mut count));
        assert!(count > 0);
        let mut p: hipDeviceProp_tR0600 = std::mem::zeroed();
        ok(hipGetDevicePropertiesR0600(&mut p, 0));
        let mut old: hipDeviceProp_tR0000 = std::mem::zeroed();
        ok(hipGetDeviceProperties(&mut old, 0));
        assert_eq!((old.totalGlobalMem, old.multiProcessorCount), (p.totalGlobalMem, p.multiProcessorCount));
        let number = |attribute| {
            let mut value = -1;
            ok(hipDeviceGetAttribute(&mut value, attribute, 0));
            value
        };
        assert_eq!(
            (number(87), number(63), number(56)),
            (p.warpSize, p.multiProcessorCount, p.maxThreadsPerBlock)
        );
        let name: String = p.gcnArchName.iter().take_while(|&&c| c != 0).map(|&c| c as u8 as char).collect();
        assert_eq!(name.starts_with("nvptx:sm_"), is_cuda, "{name}");
        assert_eq!(hipGetDevicePropertiesR0600(&mut p, count), hipErrorInvalidDevice);
        let mut id = [0; 32];
        ok(hipDeviceGetPCIBusId(id.as_mut_ptr(), 32, 0));
        let mut found = -1;
        ok(hipDeviceGetByPCIBusId(&mut found, id.as_ptr()));
        assert_eq!(found, 0);
        if is_cuda {
            assert_eq!(
                hipCreateTextureObject(null_mut(), null_mut(), null_mut(), null_mut()),
                hipErrorNotSupported
            );
            assert!(last_error().unwrap().text.contains("hipCreateTextureObject"));
        }
    }
}

/// Adds its number to a list, in the order of calls.
///
/// # Safety
/// `data` points to a counter and the word for its value.
unsafe extern "C" fn note(data: *mut c_void) {
    // SAFETY: the test passes a word and a counter that outlive the stream's work.
    let (order, slot) = unsafe { *data.cast::<(&AtomicU32, &AtomicU32)>() };
    slot.store(order.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
}

#[test]
fn streams_keep_their_order() {
    setup();
    let bytes = 4 << 20;
    // SAFETY: memory and what callbacks get outlive the streams' work.
    unsafe {
        let (mut first, mut second, mut done) = (null_mut(), null_mut(), null_mut());
        ok(hipStreamCreateWithFlags(&mut first, HIP_STREAM_NON_BLOCKING));
        ok(hipStreamCreateWithPriority(&mut second, HIP_STREAM_NON_BLOCKING, -1));
        ok(hipEventCreateWithFlags(&mut done, HIP_EVENT_DISABLE_TIMING));
        let (a, b) = (malloc(bytes), malloc(bytes));
        let (order, early, late) = (AtomicU32::new(0), AtomicU32::new(0), AtomicU32::new(0));
        let (at_first, at_second) = ((&order, &early), (&order, &late));
        for round in 0..50u32 {
            order.store(0, Ordering::SeqCst);
            ok(hipMemsetD32Async(a, round as i32, bytes / 4, first));
            ok(hipLaunchHostFunc(first, Some(note), (&raw const at_first).cast_mut().cast()));
            ok(hipEventRecord(done, first));
            // The second stream reads what the first one writes, and then the first overwrites it.
            ok(hipStreamWaitEvent(second, done, 0));
            ok(hipMemcpyDtoDAsync(b, a, bytes, second));
            ok(hipLaunchHostFunc(second, Some(note), (&raw const at_second).cast_mut().cast()));
            ok(hipEventRecord(done, second));
            ok(hipStreamWaitEvent(first, done, 0));
            ok(hipMemsetD32Async(a, -1, bytes / 4, first));
            ok(hipStreamSynchronize(second));
            assert_eq!((early.load(Ordering::SeqCst), late.load(Ordering::SeqCst)), (1, 2));
            assert_eq!(download(b, bytes / 4), vec![round; bytes / 4], "round {round}");
        }
        ok(hipStreamSynchronize(first));
        ok(hipStreamQuery(first));
        let mut device = -1;
        ok(hipStreamGetDevice(first, &mut device));
        assert_eq!(device, 0);
        let (mut start, mut stop) = (null_mut(), null_mut());
        ok(hipEventCreate(&mut start));
        ok(hipEventCreate(&mut stop));
        ok(hipEventRecord(start, first));
        ok(hipMemsetD32Async(a, 1, bytes / 4, first));
        ok(hipEventRecord(stop, first));
        ok(hipEventSynchronize(stop));
        ok(hipEventQuery(stop));
        let mut ms = -1.0;
        ok(hipEventElapsedTime(&mut ms, start, stop));
        assert!((0.0..10_000.0).contains(&ms), "{ms}");
        for event in [done, start, stop] {
            ok(hipEventDestroy(event));
        }
        ok(hipStreamDestroy(first));
        ok(hipStreamDestroy(second));
        ok(hipFree(a));
        ok(hipFree(b));
        // The thread's own default stream.
        let mut own = vec![0u32; 100];
        let c = malloc(400);
        ok(hipMemsetAsync_spt(c, 0x44, 400, null_mut()));
        ok(hipMemcpy_spt(own.as_mut_ptr().cast(), c, 400, HIP_MEMCPY_DEVICE_TO_HOST));
        assert_eq!(own, [0x4444_4444; 100]);
        ok(hipFree(c));
    }
}

/// Two threads with four streams each allocate, fill, copy across streams and free, and check every result.
#[test]
fn threads_streams_and_a_pool_under_pressure() {
    setup();
    let seconds = std::env::var(SECONDS).ok().and_then(|text| text.parse().ok()).unwrap_or(0.3);
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    let work = |thread: u32| {
        // SAFETY: memory lives until the stream that uses it has been waited for.
        unsafe {
            ok(hipSetDevice(0));
            let mut streams = [null_mut(); 4];
            let mut event = null_mut();
            for stream in &mut streams {
                ok(hipStreamCreateWithFlags(stream, HIP_STREAM_NON_BLOCKING));
            }
            ok(hipEventCreateWithFlags(&mut event, HIP_EVENT_DISABLE_TIMING));
            let (mut rounds, mut state) = (0u64, thread.wrapping_mul(0x9e37_79b9) | 1);
            let mut random = |below: u32| {
                state ^= state << 13;
                state ^= state >> 17;
                state ^= state << 5;
                state % below
            };
            while rounds < 20 || Instant::now() < end {
                let words = 1 + random(300_000) as usize;
                let data = numbers(words, random(u32::MAX));
                let (mut a, mut b) = (null_mut(), null_mut());
                let (from, to) = (streams[random(4) as usize], streams[random(4) as usize]);
                ok(hipMallocAsync(&mut a, 4 * words, from));
                ok(hipMemcpyHtoDAsync(a, data.as_ptr().cast(), 4 * words, from));
                ok(hipEventRecord(event, from));
                ok(hipStreamWaitEvent(to, event, 0));
                ok(hipMallocAsync(&mut b, 4 * words, to));
                ok(hipMemsetAsync(b, 0x77, 4 * words, to));
                let part = random(words as u32) as usize;
                ok(hipMemcpyDtoDAsync(b, a, 4 * part, to));
                let mut back = vec![0u32; words];
                ok(hipMemcpyDtoHAsync(back.as_mut_ptr().cast(), b, 4 * words, to));
                ok(hipEventRecord(event, to));
                ok(hipStreamWaitEvent(from, event, 0));
                ok(hipFreeAsync(a, from));
                ok(hipFreeAsync(b, to));
                ok(hipStreamSynchronize(to));
                assert_eq!(back[..part], data[..part], "thread {thread}, round {rounds}");
                assert!(
                    back[part..].iter().all(|&word| word == 0x7777_7777),
                    "thread {thread}, round {rounds}"
                );
                rounds += 1;
            }
            for stream in streams {
                ok(hipStreamSynchronize(stream));
                ok(hipStreamDestroy(stream));
            }
            ok(hipEventDestroy(event));
            rounds
        }
    };
    let rounds = std::thread::scope(|scope| {
        let threads = [1, 2].map(|thread| scope.spawn(move || work(thread)));
        threads.map(|thread| thread.join().expect("no round fails"))
    });
    println!("{rounds:?} rounds in {seconds} s");
}

const PTX: &[u8] = b"
.version 7.0
.target sm_70
.address_size 64
.visible .global .align 4 .u32 setting = 5;
.visible .entry scale(.param .u64 p, .param .u32 n, .param .u32 by)
{
    .reg .pred %q; .reg .b32 %r<8>; .reg .b64 %d<5>;
    ld.param.u64 %d1, [p]; ld.param.u32 %r1, [n]; ld.param.u32 %r2, [by];
    mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mov.u32 %r5, %tid.x;
    mad.lo.u32 %r6, %r3, %r4, %r5;
    setp.ge.u32 %q, %r6, %r1;
    @%q bra END;
    cvta.to.global.u64 %d2, %d1;
    mul.wide.u32 %d3, %r6, 4;
    add.u64 %d4, %d2, %d3;
    ld.global.u32 %r7, [%d4];
    mul.lo.u32 %r7, %r7, %r2;
    st.global.u32 [%d4], %r7;
END:
    ret;
}
.visible .entry traps()
{
    trap;
    ret;
}
\0";

#[test]
fn kernels_of_ptx() {
    if !setup() {
        return;
    }
    // SAFETY: the text ends with a zero byte, and the arguments are the kernel's.
    unsafe {
        let (mut module, mut function) = (null_mut(), null_mut());
        ok(hipModuleLoadData(&mut module, PTX.as_ptr().cast()));
        ok(hipModuleGetFunction(&mut function, module, c"scale".as_ptr()));
        let data = numbers(1000, 3);
        let mut memory = malloc(4000);
        ok(hipMemcpyHtoD(memory, data.as_ptr().cast(), 4000));
        let (mut n, mut by) = (1000u32, 3u32);
        let mut params: [*mut c_void; 3] =
            [(&raw mut memory).cast(), (&raw mut n).cast(), (&raw mut by).cast()];
        let list = params.as_mut_ptr();
        ok(hipModuleLaunchKernel(function, 8, 1, 1, 128, 1, 1, 0, null_mut(), list, null_mut()));
        // The same arguments in one buffer, and 100 KiB of workgroup memory.
        let mut buffer = [0u8; 16];
        buffer[..8].copy_from_slice(&(memory as u64).to_le_bytes());
        buffer[8..12].copy_from_slice(&n.to_le_bytes());
        buffer[12..].copy_from_slice(&5u32.to_le_bytes());
        let mut size = buffer.len();
        let key = |key: usize| key as *mut c_void;
        let mut extra =
            [key(1), buffer.as_mut_ptr().cast(), key(2), (&raw mut size).cast(), key(HIP_LAUNCH_PARAM_END)];
        let extra = extra.as_mut_ptr();
        ok(hipModuleLaunchKernel(function, 8, 1, 1, 128, 1, 1, 100 << 10, null_mut(), null_mut(), extra));
        ok(hipDeviceSynchronize());
        let expected: Vec<u32> = data.iter().map(|n| n.wrapping_mul(15)).collect();
        assert_eq!(download(memory, 1000), expected);
        let code = hipModuleLaunchKernel(function, 8, 1, 1, 2048, 1, 1, 0, null_mut(), list, null_mut());
        assert_eq!(code, hipErrorInvalidConfiguration);
        let text = last_error().unwrap().text;
        assert!(text.contains("`scale`") && text.contains("2048 work-items"), "{text}");
        let (mut address, mut bytes) = (null_mut(), 0);
        ok(hipModuleGetGlobal(&mut address, &mut bytes, module, c"setting".as_ptr()));
        assert_eq!((download(address, 1), bytes), (vec![5], 4));
        assert_eq!(hipModuleGetFunction(&mut function, module, c"none".as_ptr()), hipErrorNotFound);
        let mut value = 0;
        ok(hipModuleGetFunction(&mut function, module, c"scale".as_ptr()));
        ok(hipFuncGetAttribute(&mut value, 4, function));
        assert!((1..256).contains(&value), "{value} registers");
        ok(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&mut value, function, 128, 0));
        assert!(value > 0);
        ok(hipModuleUnload(module));
        ok(hipFree(memory));
        let wrong = String::from_utf8_lossy(PTX).replace("mad.lo", "mad.low");
        assert_ne!(hipModuleLoadData(&mut module, wrong.as_ptr().cast()), hipSuccess);
        let text = last_error().unwrap().text;
        assert!(text.contains("ptxas") && text.contains("line 11"), "the compiler's log is in {text}");
    }
}

/// A trap ends the process's context: the text names the kernel, and every call after it says what to do.
#[test]
fn a_trap_names_the_kernel() {
    if std::env::var_os(TRAP).is_some() {
        if !setup() {
            return;
        }
        // SAFETY: the text ends with a zero byte; the kernel has no arguments.
        unsafe {
            let (mut module, mut function) = (null_mut(), null_mut());
            ok(hipModuleLoadData(&mut module, PTX.as_ptr().cast()));
            ok(hipModuleGetFunction(&mut function, module, c"traps".as_ptr()));
            ok(hipModuleLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, null_mut(), null_mut(), null_mut()));
            println!("first: {} {}", error_name(hipDeviceSynchronize()), last_error().unwrap().text);
            let mut pointer = null_mut();
            println!("then: {} {}", error_name(hipMalloc(&mut pointer, 4)), last_error().unwrap().text);
        }
        return;
    }
    if !setup() {
        return;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    let output =
        command.args(["--exact", "a_trap_names_the_kernel", "--nocapture"]).env(TRAP, "1").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let line =
        |start: &str| text.lines().find(|line| line.contains(start)).unwrap_or_else(|| panic!("{text}"));
    let first = line("first: ");
    assert!(first.contains("hipErrorLaunchFailure") && first.contains("in kernel `traps`"), "{first}");
    assert!(first.contains("end the process"), "{first}");
    let then = line("then: ");
    assert!(then.contains("hipErrorContextIsDestroyed") && then.contains("`traps`"), "{then}");
    assert!(then.contains("end the process"), "{then}");
}
