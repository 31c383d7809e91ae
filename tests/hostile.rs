//! Wrong uses of the host interface: errors with the values in them, nothing lost, the same text on every route. A
//! program of its own, since the counts are of the whole process.

mod common;

use candle_amdgpu::kernels::affine::affine_f32;
use candle_amdgpu::{
    AFFINE, CodeObject, Device, DeviceBuffer, Error, FILL, LaunchConfig, Layout, Result, Stream,
};
use std::thread;

const AUTO: LaunchConfig = LaunchConfig::auto();

fn devices_that_are_not_there() {
    let error = Device::new(77).unwrap_err();
    assert!(matches!(error, Error::NoDevice { ordinal: 77, count: 3, .. }), "{error}");
    let error = Device::of_arch("gfx000").unwrap_err().to_string();
    assert!(error.contains("gfx000") && error.contains("gfx90a"), "{error}");
}

fn sizes_and_ranges(stream: &Stream) {
    for elements in [usize::MAX, usize::MAX / 8 + 1] {
        let error = DeviceBuffer::<f64>::zeros(stream, elements).unwrap_err();
        assert_eq!(error, Error::TooManyBytes { elements, size: 8 });
    }
    let error = DeviceBuffer::<f64>::zeros(stream, 1 << 40).unwrap_err().to_string();
    assert!(error.contains(&(8_u64 << 40).to_string()) && error.contains("are free"), "{error}");

    let mut buffer = DeviceBuffer::from_slice(stream, &[1_u8; 10]).unwrap();
    let out = |start, end| Error::OutOfRange { start, end, len: 10 };
    assert_eq!(buffer.slice(3..11).map(drop), Err(out(3, 11)));
    assert_eq!(buffer.slice(11..).map(drop), Err(out(11, 10)));
    #[allow(clippy::reversed_empty_ranges, reason = "what is to be refused")]
    let reversed = buffer.slice_mut(5..2).map(drop);
    assert_eq!(reversed, Err(out(5, 2)));
    assert!(matches!(buffer.slice(..=usize::MAX).map(drop), Err(Error::OutOfRange { .. })));
    assert_eq!(buffer.slice(10..).unwrap().len(), 0);

    for (shape, strides) in
        [(&[usize::MAX, 2][..], &[2, 1][..]), (&[2, 2], &[usize::MAX, 1]), (&[2], &[1, 1])]
    {
        let error = Layout::new(shape, strides, 0).unwrap_err();
        assert!(matches!(error, Error::BadLayout { .. }), "{error}");
        assert!(error.to_string().contains(&format!("{shape:?}")), "{error}");
    }
    assert!(Layout::contiguous(&[usize::MAX, usize::MAX]).is_err());
    assert!(Layout::flat(4).with_offset(usize::MAX).is_err());
}

/// A damaged code object is either refused or still valid; it never ends the program. Whatever was loaded of it is freed.
fn damaged_code_objects(device: &Device) {
    let object = FILL.object(device.arch()).unwrap().bytes;
    let load = |bytes: &[u8]| match device.load_code_object("damaged", bytes) {
        Ok(module) => drop(module),
        Err(Error::BadCodeObject { module, reason }) => assert!(module == "damaged" && !reason.is_empty()),
        Err(Error::Hip { detail, .. }) => assert!(detail.is_some_and(|text| !text.is_empty())),
        Err(other) => panic!("{other}"),
    };
    for end in [0, 1, 4, 16, 63, 64, 200, object.len() / 2, object.len() - 1] {
        load(&object[..end]);
    }
    let mut bytes = object.to_vec();
    // The header and the tables behind it byte by byte, then here and there.
    for at in (0..512).chain((512..object.len()).step_by(object.len() / 64)) {
        bytes[at] ^= 0xff;
        load(&bytes);
        bytes[at] = object[at];
    }
}

/// Memory and streams made here, used and dropped on threads whose current device is another.
fn foreign_threads() {
    let [here, there] = ["gfx1100", "gfx90a"].map(common::device);
    let stream = here.stream().unwrap();
    let x = DeviceBuffer::from_slice(&stream, &[1.0_f32; 100]).unwrap();
    let mut y = DeviceBuffer::zeros(&stream, 100).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            let other = there.stream().unwrap();
            let z = DeviceBuffer::from_slice(&other, &[5.0_f32; 100]).unwrap();
            affine_f32(&stream, AUTO, &Layout::flat(100), &x, &mut y, 2.0, 1.0).unwrap();
            let error = affine_f32(&stream, AUTO, &Layout::flat(100), &z, &mut y, 2.0, 1.0).unwrap_err();
            assert!(matches!(error, Error::WrongDevice { memory: 2, stream: 0, .. }), "{error}");
        });
    });
    assert_eq!(y.to_vec().unwrap(), [3.0; 100]);
    thread::spawn(move || {
        there.synchronize().unwrap();
        drop((x, y, stream));
    })
    .join()
    .unwrap();
}

/// A thread that panics while it owns memory frees it, and leaves the device usable.
fn a_panic() {
    let result = thread::Builder::new().spawn(|| {
        let stream = common::stream("gfx1030");
        let _buffer = DeviceBuffer::<f32>::zeros(&stream, 100).unwrap();
        std::panic::resume_unwind(Box::new("as a user's code might"));
    });
    assert!(result.unwrap().join().is_err());
    common::device("gfx1030").synchronize().unwrap();
}

/// A write out of bounds, launched on a buffer that is shorter than the kernel is told.
fn out_of_bounds(stream: &Stream) -> Result<()> {
    let mut short = DeviceBuffer::<f32>::zeros(stream, 10)?;
    let function = stream.device().get_or_load_func("fill_f32", &FILL)?;
    let launch = function.launch_builder(stream).memory_mut(&mut short).value(1.0_f32).value(11_usize);
    // SAFETY: the arguments are of the right types; that the memory is too short is the point, and the emulator says so.
    unsafe { launch.launch(LaunchConfig::auto())? };
    stream.synchronize()
}

/// The emulator's report, HIP's last fault and error, and the host crate's error have one text.
fn one_text_on_every_route() {
    let device = common::device("gfx90a");
    let stream = device.stream().unwrap();
    let error = out_of_bounds(&stream).unwrap_err();
    let report = amdhip64::last_fault_report(device.ordinal()).unwrap().to_string();
    assert!(report.contains("write of 4 bytes") && report.contains("(40 bytes"), "{report}");
    assert!(report.contains("fill.rs"), "{report}");
    assert_eq!(amdhip64::last_fault(device.ordinal()).as_ref(), Some(&report));
    let Error::Hip { detail, .. } = &error else { panic!("{error}") };
    assert_eq!(detail.as_ref(), Some(&report));
    assert!(error.to_string().ends_with(&report), "{error}");
    assert_eq!(amdhip64::last_error().unwrap().text, report);
    stream.synchronize().expect("reported once");

    // Bytes that are not a code object give the parser's message, whichever function loads them.
    let parsed = CodeObject::parse(b"nothing").unwrap_err().to_string();
    let error = device.load_code_object("mine", b"nothing").unwrap_err().to_string();
    assert!(error.contains(&parsed), "`{parsed}` is not in `{error}`");
}

#[test]
fn what_is_wrong_is_an_error_and_nothing_is_lost() {
    amdhip64::set_print_faults(false);
    // These modules stay loaded.
    for arch in common::ARCHS {
        let device = common::device(arch);
        device.load(&AFFINE).unwrap();
        device.load(&FILL).unwrap();
    }
    let all = || {
        devices_that_are_not_there();
        for arch in common::ARCHS {
            sizes_and_ranges(&common::stream(arch));
        }
        damaged_code_objects(&common::device("gfx1030"));
        foreign_threads();
        a_panic();
        one_text_on_every_route();
    };
    all();
    let held = amdhip64::held_resources().unwrap();
    let free = || common::ARCHS.map(|arch| common::device(arch).memory_info().unwrap().free);
    let before = free();
    all();
    assert_eq!(amdhip64::held_resources().unwrap(), held);
    assert_eq!(free(), before);
}
