//! Resetting a device, alone in its process.

mod common;

use std::ptr::null_mut;

use common::*;

#[test]
fn a_reset_frees_what_one_device_holds() {
    on(1);
    let other = upload(&[1u8, 2, 3]);
    on(0);
    let before = held_resources().unwrap();
    let block = malloc(64);
    // SAFETY: every pointer is valid for writing.
    unsafe {
        let (mut stream, mut event) = (null_mut(), null_mut());
        ok(hipStreamCreate(&mut stream));
        ok(hipEventCreate(&mut event));
        assert_eq!(held_resources().unwrap().handles, before.handles + 2);
        ok(hipDeviceReset());
        fails(hipStreamSynchronize(stream), hipErrorInvalidHandle, "not a stream");
        fails(hipEventQuery(event), hipErrorInvalidHandle, "not an event");
        fails(hipFree(block), hipErrorInvalidValue, "not the start");
        assert_eq!(held_resources().unwrap(), before);
        let (mut free_bytes, mut total) = (0, 0);
        ok(hipMemGetInfo(&mut free_bytes, &mut total));
        assert_eq!(free_bytes, total);
        // And the device works.
        free(upload(&[1u32]));
    }
    assert_eq!(download::<u8>(other, 3), [1, 2, 3]);
    free(other);
}
