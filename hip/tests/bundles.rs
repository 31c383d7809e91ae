//! Compressed offload bundles, wherever a program gives one.

mod common;

use std::ffi::{CString, c_char, c_void};
use std::ptr::null_mut;

use common::*;

/// `emulator/tests/data/bundles`: a kernel that adds 1 to each of a workgroup's numbers, for gfx1100 and gfx90a.
const BUNDLES: [(&str, &[u8]); 6] = [
    ("zlib-1", include_bytes!("../../emulator/tests/data/bundles/zlib-1.ccob")),
    ("zlib-2", include_bytes!("../../emulator/tests/data/bundles/zlib-2.ccob")),
    ("zlib-3", include_bytes!("../../emulator/tests/data/bundles/zlib-3.ccob")),
    ("zstd-1", include_bytes!("../../emulator/tests/data/bundles/zstd-1.ccob")),
    ("zstd-2", include_bytes!("../../emulator/tests/data/bundles/zstd-2.ccob")),
    ("zstd-3", include_bytes!("../../emulator/tests/data/bundles/zstd-3.ccob")),
];

fn adds_one(launch: impl FnOnce(&mut [*mut c_void]) -> hipError_t) {
    let numbers = upload(&[41u32; 64]);
    let mut params = [(&raw const numbers).cast_mut().cast::<c_void>()];
    ok(launch(&mut params));
    assert_eq!(download::<u32>(numbers, 64), [42; 64]);
    free(numbers);
}

/// Launches the kernel of a module, and unloads it.
fn runs(module: hipModule_t) {
    let mut function = null_mut();
    // SAFETY: the names and pointers are valid; the kernel takes one pointer.
    unsafe {
        ok(hipModuleGetFunction(&mut function, module, c"add_one".as_ptr()));
        adds_one(|params| {
            let (params, none) = (params.as_mut_ptr(), null_mut());
            hipModuleLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, null_mut(), params, none)
        });
        ok(hipModuleUnload(module));
    }
}

#[test]
fn modules_load_from_compressed_bundles() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    for (name, bundle) in BUNDLES {
        // A program's bundles lie behind each other: what follows one must not matter.
        let image = [bundle, &[0xa5; 300]].concat();
        let file = folder.join(format!("{name}.ccob"));
        std::fs::write(&file, bundle).unwrap();
        let (image, path) = (image.as_ptr().cast(), CString::new(file.to_str().unwrap()).unwrap());
        let mut module = null_mut();
        for device in [0, 2] {
            on(device);
            // SAFETY: the pointers are valid, and the bundle is whole.
            unsafe {
                ok(hipModuleLoadData(&mut module, image));
                runs(module);
                ok(hipModuleLoadDataEx(&mut module, image, 0, null_mut(), null_mut()));
                runs(module);
                ok(hipModuleLoadFatBinary(&mut module, image));
                runs(module);
                ok(hipModuleLoad(&mut module, path.as_ptr()));
                runs(module);
            }
        }
        on(1);
        // SAFETY: as above.
        unsafe {
            fails(hipModuleLoadData(&mut module, image), hipErrorNoBinaryForGpu, "gfx90a:xnack-");
            fails(hipModuleLoad(&mut module, path.as_ptr()), hipErrorNoBinaryForGpu, "gfx90a:xnack-");
        }
    }
}

#[test]
fn a_damaged_bundle_is_an_image_that_cannot_be_loaded() {
    on(0);
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    for (n, (name, bundle)) in BUNDLES.into_iter().enumerate() {
        let version = n % 3 + 1;
        let hash = [12, 16, 24][version - 1];
        let with = |at: usize, value: u8| {
            let mut bytes = bundle.to_vec();
            bytes[at] = value;
            bytes
        };
        let mut module = null_mut();
        for (bytes, words) in [
            (with(4, 9), "has version 9"),
            (with(6, 9), "compression method 9"),
            (with(hash, bundle[hash] ^ 1), "have the hash"),
            (with(hash - 1 - (version == 3) as usize * 4, 0x70), "claim"),
        ] {
            // SAFETY: the bytes are as many as the header says.
            let code = unsafe { hipModuleLoadData(&mut module, bytes.as_ptr().cast()) };
            fails(code, hipErrorInvalidImage, words);
        }
        let file = folder.join(format!("{name}.short"));
        std::fs::write(&file, &bundle[..bundle.len() - 9]).unwrap();
        let path = CString::new(file.to_str().unwrap()).unwrap();
        // SAFETY: the path is a C string.
        let code = unsafe { hipModuleLoad(&mut module, path.as_ptr()) };
        let words = if version == 1 { "ends before it is complete" } else { "claims to have" };
        fails(code, hipErrorInvalidImage, words);
        assert!(check_image(bundle).is_ok());
        assert!(check_image(&bundle[..bundle.len() - 9]).is_err());
    }
}

/// What the compiler puts around a fat binary.
#[repr(C)]
struct Wrapper {
    magic: u32,
    version: u32,
    binary: *const c_void,
    unused: *const c_void,
}

#[test]
fn programs_with_compressed_fat_binaries_run() {
    for (n, (_, bundle)) in BUNDLES.into_iter().enumerate() {
        let host = bundle[n..].as_ptr().cast::<c_void>();
        let wrapper =
            Wrapper { magic: 0x4849_5046, version: 1, binary: bundle.as_ptr().cast(), unused: null_mut() };
        let name = c"add_one".as_ptr().cast_mut();
        let one = dim3 { x: 1, y: 1, z: 1 };
        on(2);
        // SAFETY: the arguments are as a compiler passes them; the kernel takes one pointer.
        unsafe {
            let modules = __hipRegisterFatBinary((&raw const wrapper).cast());
            assert!(!modules.is_null());
            __hipRegisterFunction(
                modules,
                host,
                name,
                name.cast_const().cast::<c_char>(),
                0,
                null_mut(),
                null_mut(),
                null_mut(),
                null_mut(),
                null_mut(),
            );
            adds_one(|params| {
                hipLaunchKernel(host, one, dim3 { x: 64, ..one }, params.as_mut_ptr(), 0, null_mut())
            });
            __hipUnregisterFatBinary(modules);
        }
    }
}
