//! Uploads, order and errors of streams.

mod common;

use candle_amdgpu::{AFFINE, DeviceBuffer, Error};

#[test]
fn short_uploads_reuse_the_ring_and_long_ones_do_not_need_it() {
    let stream = common::stream("gfx1100");
    let data: Vec<u8> = (0..20_000_u32).map(|i| (i % 251) as u8).collect();
    // In sum many times the ring, in pieces that do not divide it.
    let buffers: Vec<_> = (0..200)
        .map(|i| {
            let mut buffer = DeviceBuffer::alloc(&stream, 1001 + i).unwrap();
            buffer.upload(&data[i..i + buffer.len()]).unwrap();
            buffer
        })
        .collect();
    for (i, buffer) in buffers.iter().enumerate() {
        assert_eq!(buffer.to_vec().unwrap(), data[i..i + buffer.len()], "upload {i}");
    }
    let mut long = DeviceBuffer::zeros(&stream, data.len()).unwrap();
    long.upload(&data).unwrap();
    assert_eq!(long.to_vec().unwrap(), data);
    let mut part = long.slice_mut(7..10).unwrap();
    part.upload(&[1, 2, 3]).unwrap();
    assert_eq!(long.slice(6..11).unwrap().to_vec().unwrap(), [6, 1, 2, 3, 10]);
    assert_eq!(long.upload(&[1]), Err(Error::LengthsDiffer { from: 1, into: 20_000 }));
}

#[test]
fn an_error_that_had_no_one_to_go_to_comes_with_the_next_synchronisation_once() {
    let stream = common::stream("gfx1100");
    let buffer = DeviceBuffer::from_slice(&stream, &[1_u32]).unwrap();
    let first = stream.device().get_or_load_func("no_such_kernel", &AFFINE).unwrap_err();
    stream.fail(first.clone());
    stream.fail(Error::TooManyBytes { elements: 1, size: 1 });
    assert_eq!(buffer.to_vec(), Err(first));
    assert_eq!(buffer.to_vec(), Ok(vec![1]));
}

#[test]
fn a_stream_waits_for_another_and_for_an_event_of_it() {
    let (a, b) = (common::stream("gfx1100"), common::stream("gfx90a"));
    a.wait_for(&b).unwrap();
    a.wait_for(&a).unwrap();
    let event = b.record().unwrap();
    a.wait_event(&event).unwrap();
    event.synchronize().unwrap();
    a.synchronize().unwrap();
}
