//! A stream's unused memory is what its next allocations get. Emulated devices do so only if a variable says it, so that each test
//! is a program of its own.

mod common;

use candle_amdgpu::kernels::affine::affine_f32;
use candle_amdgpu::{CaptureMode, DeviceBuffer, LaunchConfig, Layout, Result, Stream};
use std::process::Command;

/// Runs a test of this file that is ignored otherwise, with the cache on.
fn run(name: &str) {
    let mut child = Command::new(std::env::current_exe().expect("this program"));
    child.args(["--exact", name, "--ignored", "--nocapture", "--test-threads", "1"]);
    let output = child.env("CANDLE_AMDGPU_MEMORY_CACHE", "1").output().expect("it runs");
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

/// Twice each number, plus one.
fn affine(stream: &Stream, x: &DeviceBuffer<f32>) -> Result<DeviceBuffer<f32>> {
    let mut y = DeviceBuffer::alloc(stream, x.len())?;
    affine_f32(stream, LaunchConfig::auto(), &Layout::flat(x.len()), x, &mut y, 2.0, 1.0)?;
    Ok(y)
}

#[test]
fn memory_is_used_again() {
    run("again");
}

#[test]
#[ignore = "a program that `memory_is_used_again` runs"]
fn again() {
    let (a, b) = (common::stream("gfx1100"), common::stream("gfx1100"));
    let address = |buffer: &DeviceBuffer<f32>| buffer.as_ptr() as usize;
    let first = DeviceBuffer::from_slice(&a, &[1.0; 1000]).unwrap();
    let was = address(&first);
    drop(first);
    // Of another stream, or of another size, it is other memory; of about that size on that stream, it is the same.
    let other = DeviceBuffer::<f32>::zeros(&b, 1000).unwrap();
    let large = DeviceBuffer::<f32>::zeros(&a, 2000).unwrap();
    let same = DeviceBuffer::<f32>::zeros(&a, 950).unwrap();
    assert!(address(&other) != was && address(&large) != was && address(&same) == was);
    assert_eq!(same.to_vec().unwrap(), [0.0; 950]);
    // Intermediate results take turns in few blocks, also where another stream reads them.
    let mut addresses = std::collections::BTreeSet::new();
    let mut x = DeviceBuffer::from_slice(&a, &[0.0; 300]).unwrap();
    for i in 1..=20_i32 {
        let y = affine(&a, &x).unwrap();
        let z = affine(&b, &y).unwrap();
        assert_eq!(z.to_vec().unwrap(), [((1_i64 << (i + 1)) - 1) as f32; 300]);
        x = y;
        addresses.insert(address(&x));
    }
    assert!(addresses.len() <= 3, "{addresses:x?}");
}

#[test]
fn a_graph_keeps_what_it_uses() {
    run("graph");
}

#[test]
#[ignore = "a program that `a_graph_keeps_what_it_uses` runs"]
fn graph() {
    let stream = common::stream("gfx1100");
    let x = DeviceBuffer::from_slice(&stream, &[3.0_f32; 256]).unwrap();
    let mut y = DeviceBuffer::<f32>::zeros(&stream, 256).unwrap();
    let was = x.as_ptr();
    stream.begin_capture(CaptureMode::Global).unwrap();
    affine_f32(&stream, LaunchConfig::auto(), &Layout::flat(256), &x, &mut y, 2.0, 1.0).unwrap();
    drop(x);
    let graph = stream.end_capture(true).unwrap();
    let new = DeviceBuffer::from_slice(&stream, &[0.0_f32; 256]).unwrap();
    assert!(new.as_ptr() != was);
    graph.launch().unwrap();
    assert_eq!(y.to_vec().unwrap(), [7.0; 256]);
    assert_eq!(new.to_vec().unwrap(), [0.0; 256]);
    drop(graph);
    assert!(DeviceBuffer::<f32>::alloc(&stream, 256).unwrap().as_ptr() == was);
}

#[test]
fn unused_memory_goes_where_it_is_needed() {
    run("full");
}

#[test]
#[ignore = "a program that `unused_memory_goes_where_it_is_needed` runs"]
fn full() {
    let stream = common::stream("gfx1100");
    let block = 64 << 20;
    let unused: Vec<_> = (0..4).map(|_| DeviceBuffer::<u8>::alloc(&stream, block).unwrap()).collect();
    drop(unused);
    // Nothing is left but what the stream has put by.
    let free = stream.device().memory_info().unwrap().free;
    let rest = DeviceBuffer::<u8>::alloc(&stream, free - block / 2).unwrap();
    let other = DeviceBuffer::<u8>::alloc(&stream, 2 * block).unwrap();
    assert!(rest.len() + other.len() > free);
    assert!(DeviceBuffer::<u8>::alloc(&stream, free).is_err());
}
