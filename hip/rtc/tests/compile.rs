//! Programs that are compiled here and run on emulated devices. Skipped where there is no clang.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::Mutex;

use amdhip64::*;
use hiprtc::*;

const SAXPY: &str = "
#include <hip/hip_runtime.h>
#include \"scale.h\"
template <typename T> __global__ void saxpy(T a, const T* x, T* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = SCALE * a * x[i] + y[i];
}
__device__ int counter = 7;
extern \"C\" __global__ void count() { atomicAdd(&counter, 1); }
";

/// Variables are the process's.
static ALONE: Mutex<()> = Mutex::new(());

struct Program(hiprtcProgram);

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: it was made below, and is destroyed once.
        unsafe { assert_eq!(hiprtcDestroyProgram(&mut self.0), HIPRTC_SUCCESS) };
        assert!(self.0.is_null());
    }
}

fn program(source: &str, headers: &[(&str, &str)]) -> Result<Program, hiprtcResult> {
    let strings = |list: Vec<&str>| list.into_iter().map(|s| CString::new(s).unwrap()).collect::<Vec<_>>();
    let names = strings(headers.iter().map(|(name, _)| *name).collect());
    let texts = strings(headers.iter().map(|(_, text)| *text).collect());
    let pointers = |list: &[CString]| list.iter().map(|s| s.as_ptr()).collect::<Vec<_>>();
    let (names, texts) = (pointers(&names), pointers(&texts));
    let source = CString::new(source).unwrap();
    let mut made = null_mut();
    // SAFETY: the strings end in zeros, and the lists are as long as the call says.
    let code = unsafe {
        hiprtcCreateProgram(
            &mut made,
            source.as_ptr(),
            c"saxpy.hip".as_ptr(),
            headers.len() as c_int,
            texts.as_ptr(),
            names.as_ptr(),
        )
    };
    if code == HIPRTC_SUCCESS { Ok(Program(made)) } else { Err(code) }
}

impl Program {
    fn compile(&self, options: &[&CStr]) -> hiprtcResult {
        let options: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        // SAFETY: the program is there, and the list is as long as the call says.
        unsafe { hiprtcCompileProgram(self.0, options.len() as c_int, options.as_ptr()) }
    }

    fn output(
        &self,
        size: unsafe extern "C" fn(hiprtcProgram, *mut usize) -> hiprtcResult,
        copy: unsafe extern "C" fn(hiprtcProgram, *mut c_char) -> hiprtcResult,
    ) -> Result<Vec<u8>, hiprtcResult> {
        let mut bytes = 0;
        // SAFETY: the program is there, and there is room for what is copied.
        unsafe {
            match size(self.0, &mut bytes) {
                HIPRTC_SUCCESS => {}
                code => return Err(code),
            }
            let mut all = vec![0u8; bytes];
            match copy(self.0, all.as_mut_ptr().cast()) {
                HIPRTC_SUCCESS => Ok(all),
                code => Err(code),
            }
        }
    }

    fn code(&self) -> Result<Vec<u8>, hiprtcResult> {
        self.output(hiprtcGetCodeSize, hiprtcGetCode)
    }

    fn log(&self) -> String {
        let log = self.output(hiprtcGetProgramLogSize, hiprtcGetProgramLog).unwrap();
        CStr::from_bytes_with_nul(&log).unwrap().to_str().unwrap().to_owned()
    }

    fn add(&self, expression: &CStr) -> hiprtcResult {
        // SAFETY: the program is there.
        unsafe { hiprtcAddNameExpression(self.0, expression.as_ptr()) }
    }

    fn lowered(&self, expression: &CStr) -> Result<&CStr, hiprtcResult> {
        let mut name = null();
        // SAFETY: the program is there, and its names with it.
        unsafe {
            match hiprtcGetLoweredName(self.0, expression.as_ptr(), &mut name) {
                HIPRTC_SUCCESS => Ok(CStr::from_ptr(name)),
                code => Err(code),
            }
        }
    }
}

/// Whether there is a compiler; says so if there is none.
fn is_there() -> bool {
    let probe = program("__global__ void k() {}", &[]).unwrap();
    let is_there = probe.compile(&[c"--offload-arch=gfx1030"]) != HIPRTC_ERROR_INTERNAL_ERROR;
    if !is_there {
        eprintln!("skipped: {}", probe.log());
    }
    is_there
}

fn ok(code: hipError_t) {
    assert_eq!(code, hipSuccess, "{}", last_error().map_or(String::new(), |error| error.text));
}

fn runs(program: &Program) {
    let code = program.code().unwrap();
    let (x, mut y) = ([1.0f32, 2.0, 3.0], [10.0f32, 20.0, 30.0]);
    // SAFETY: the pointers are valid for what the calls read and write.
    unsafe {
        let (mut module, mut kernel) = (null_mut(), null_mut());
        ok(hipModuleLoadData(&mut module, code.as_ptr().cast()));
        ok(hipModuleGetFunction(&mut kernel, module, program.lowered(c"saxpy<float>").unwrap().as_ptr()));
        let (mut dx, mut dy) = (null_mut(), null_mut());
        ok(hipMalloc(&mut dx, 12));
        ok(hipMalloc(&mut dy, 12));
        ok(hipMemcpyHtoD(dx, x.as_ptr().cast(), 12));
        ok(hipMemcpyHtoD(dy, y.as_ptr().cast(), 12));
        let (mut a, mut n) = (0.5f32, 3i32);
        let mut params =
            [(&raw mut a).cast::<c_void>(), (&raw mut dx).cast(), (&raw mut dy).cast(), (&raw mut n).cast()];
        let params = params.as_mut_ptr();
        ok(hipModuleLaunchKernel(kernel, 1, 1, 1, 64, 1, 1, 0, null_mut(), params, null_mut()));
        ok(hipMemcpyDtoH(y.as_mut_ptr().cast(), dy, 12));
        assert_eq!(y, [12.0, 24.0, 36.0]);
        let mut counter = null_mut();
        let name = program.lowered(c"&counter").unwrap();
        ok(hipModuleGetGlobal(&mut counter, null_mut(), module, name.as_ptr()));
        ok(hipModuleGetFunction(&mut kernel, module, c"count".as_ptr()));
        ok(hipModuleLaunchKernel(kernel, 2, 1, 1, 32, 1, 1, 0, null_mut(), null_mut(), null_mut()));
        let mut counted = 0i32;
        ok(hipMemcpyDtoH((&raw mut counted).cast(), counter, 4));
        assert_eq!(counted, 7 + 64);
        ok(hipFree(dx));
        ok(hipFree(dy));
        ok(hipModuleUnload(module));
    }
}

fn saxpy() -> Program {
    let program = program(SAXPY, &[("scale.h", "#pragma once\n#define SCALE 4\n")]).unwrap();
    assert_eq!(program.add(c"saxpy<float>"), HIPRTC_SUCCESS);
    assert_eq!(program.add(c"&counter"), HIPRTC_SUCCESS);
    assert_eq!(program.lowered(c"&counter"), Err(HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION));
    program
}

#[test]
fn a_program_is_compiled_and_runs() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if !is_there() {
        return;
    }
    drop(choose("emulator:gfx1030"));
    let program = saxpy();
    assert_eq!(
        program.compile(&[c"--offload-arch=gfx1030", c"-std=c++17"]),
        HIPRTC_SUCCESS,
        "{}",
        program.log()
    );
    assert_eq!(program.add(c"count"), HIPRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION);
    assert_eq!(program.lowered(c"count"), Err(HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID));
    runs(&program);
}

#[test]
fn without_hips_headers_there_are_built_in_ones() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if !is_there() {
        return;
    }
    drop(choose("emulator:gfx1030"));
    let program = saxpy();
    let options = [c"--offload-arch=gfx1030", c"-nogpuinc"];
    assert_eq!(program.compile(&options), HIPRTC_SUCCESS, "{}", program.log());
    runs(&program);
}

#[test]
fn a_mistake_is_in_the_log_with_the_programs_own_line() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if !is_there() {
        return;
    }
    let program = program("__global__ void k(int* p) {\n    *p = 1 +;\n}\n", &[]).unwrap();
    assert_eq!(program.compile(&[c"--gpu-architecture=gfx90a"]), HIPRTC_ERROR_COMPILATION);
    let log = program.log();
    assert!(log.contains("saxpy.hip:2:13: error: expected expression"), "{log}");
    assert_eq!(program.code(), Err(HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION));
}

#[test]
fn several_targets_are_a_bundle_and_bitcode_is_bitcode() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if !is_there() {
        return;
    }
    let made = program("__global__ void k() {}", &[]).unwrap();
    let options = [c"--offload-arch=gfx1030", c"--offload-arch=gfx90a"];
    assert_eq!(made.compile(&options), HIPRTC_SUCCESS, "{}", made.log());
    assert!(made.code().unwrap().starts_with(b"__CLANG_OFFLOAD_BUNDLE__"));
    let made = program("__global__ void k() {}", &[]).unwrap();
    assert_eq!(made.compile(&[c"--offload-arch=gfx1030", c"-fgpu-rdc"]), HIPRTC_SUCCESS, "{}", made.log());
    assert!(made.output(hiprtcGetBitcodeSize, hiprtcGetBitcode).unwrap().starts_with(b"BC\xc0\xde"));
    assert!(made.code().is_err());
}

#[test]
fn without_a_compiler_the_log_says_what_to_install() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let made = program("__global__ void k() {}", &[]).unwrap();
    // SAFETY: tests that read variables hold the same lock.
    unsafe { std::env::set_var(CLANG_VARIABLE, "/nowhere/clang") };
    let code = made.compile(&[c"--offload-arch=gfx1030"]);
    // SAFETY: as above.
    unsafe { std::env::remove_var(CLANG_VARIABLE) };
    assert_eq!(code, HIPRTC_ERROR_INTERNAL_ERROR);
    let log = made.log();
    assert!(log.contains("CANDLE_AMDGPU_CLANG=/nowhere/clang: there is no such program"), "{log}");
}

#[test]
fn wrong_calls_are_refused() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let made = program("__global__ void k() {}", &[]).unwrap();
    assert_eq!(made.code(), Err(HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION));
    assert_eq!(program("", &[("../x.h", "")]).err(), Some(HIPRTC_ERROR_PROGRAM_CREATION_FAILURE));
    // SAFETY: null is what each refuses.
    unsafe {
        let none = null_mut();
        assert_eq!(
            hiprtcCreateProgram(null_mut(), c"".as_ptr(), null(), 0, null(), null()),
            HIPRTC_ERROR_INVALID_INPUT
        );
        assert_eq!(hiprtcCompileProgram(none, 0, null()), HIPRTC_ERROR_INVALID_PROGRAM);
        assert_eq!(hiprtcCompileProgram(made.0, 1, null()), HIPRTC_ERROR_INVALID_INPUT);
        assert_eq!(hiprtcGetCode(made.0, null_mut()), HIPRTC_ERROR_INVALID_INPUT);
        assert_eq!(hiprtcGetCodeSize(made.0, null_mut()), HIPRTC_ERROR_INVALID_INPUT);
        assert_eq!(hiprtcDestroyProgram(null_mut()), HIPRTC_ERROR_INVALID_INPUT);
        assert_eq!(hiprtcVersion(null_mut(), null_mut()), HIPRTC_ERROR_INVALID_INPUT);
        let name = |code| CStr::from_ptr(hiprtcGetErrorString(code)).to_str().unwrap();
        assert_eq!(name(HIPRTC_ERROR_COMPILATION), "HIPRTC_ERROR_COMPILATION");
        assert_eq!(name(77), "Invalid HIPRTC error code");
    }
}
