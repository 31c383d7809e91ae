//! Functions of HIP that are not written here. Each is exported, so that a program which only links one loads and runs: real
//! devices get the call as it is, emulated ones refuse it.

use std::collections::HashSet;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::{Mutex, PoisonError};

#[cfg(not(all(target_arch = "x86_64", not(windows))))]
use crate::codes::hipErrorNotSupported;
use crate::codes::{hipError_t, hipSuccess};
use crate::error::{Error, boundary, last_command_code};
use amdgpu_journal::settings::WARN_VARIABLE;

use crate::journal;
use crate::select::{Backend, backend};
use crate::types::{hipChannelFormatDesc, hipStream_t};

/// An absent function's name, with a zero at its end.
#[repr(transparent)]
struct Slot(&'static str);

/// What the call of an absent function goes on to: the real function, or [`refused`].
extern "C" fn resolve(slot: &'static Slot) -> *const c_void {
    let mut target = refused as *const c_void;
    let name = slot.0.trim_end_matches('\0');
    boundary(name, || match backend()? {
        Backend::Emulated(_) => {
            warn(name);
            Err(Error::Unsupported(format!("emulated devices do not have {name}")))
        }
        Backend::Real(library) => {
            // SAFETY: a function is an address, and nobody calls it here.
            match unsafe { library.function::<*const c_void>(super::c_name(slot.0)) } {
                Some(real) => {
                    target = real;
                    Ok(hipSuccess)
                }
                None => Err(super::missing(library, name)),
            }
        }
    });
    target
}

/// What the call that [`resolve`] refused returns.
extern "C" fn refused() -> hipError_t {
    last_command_code()
}

/// Says once for each function that a program called it.
fn warn(name: &'static str) {
    static SAID: Mutex<Option<HashSet<&'static str>>> = Mutex::new(None);
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    if !said.get_or_insert_default().insert(name) {
        return;
    }
    journal::write(|| journal::Entry::Absent { function: name.to_owned() });
    if std::env::var_os(WARN_VARIABLE).is_none_or(|value| value != "0") {
        eprintln!("amdhip64: {name} is not there on emulated devices; it returned hipErrorNotSupported");
    }
}

/// Keeps the arguments, whatever they are, asks [`resolve`] where the call goes, and jumps there. The address of the slot is
/// in `rax`.
///
/// # Safety
/// It is jumped to from a function of C, before that has done anything else, with a slot's address in `rax`.
#[cfg(all(target_arch = "x86_64", not(windows)))]
#[unsafe(naked)]
unsafe extern "C" fn pass_on() {
    core::arch::naked_asm!(
        "push rdi", "push rsi", "push rdx", "push rcx", "push r8", "push r9",
        "sub rsp, 136",
        "movups [rsp], xmm0", "movups [rsp + 16], xmm1", "movups [rsp + 32], xmm2", "movups [rsp + 48], xmm3",
        "movups [rsp + 64], xmm4", "movups [rsp + 80], xmm5", "movups [rsp + 96], xmm6", "movups [rsp + 112], xmm7",
        "mov rdi, rax",
        "call {resolve}",
        "movups xmm0, [rsp]", "movups xmm1, [rsp + 16]", "movups xmm2, [rsp + 32]", "movups xmm3, [rsp + 48]",
        "movups xmm4, [rsp + 64]", "movups xmm5, [rsp + 80]", "movups xmm6, [rsp + 96]", "movups xmm7, [rsp + 112]",
        "add rsp, 136",
        "pop r9", "pop r8", "pop rcx", "pop rdx", "pop rsi", "pop rdi",
        "jmp rax",
        resolve = sym resolve,
    )
}

macro_rules! absent {
    ($($name:ident)*) => {$(
        const _: () = {
            static SLOT: Slot = Slot(concat!(stringify!($name), "\0"));

            /// HIP's function of this name.
            ///
            /// # Safety
            /// As HIP says of it.
            #[cfg(all(target_arch = "x86_64", not(windows)))]
            #[unsafe(naked)]
            #[unsafe(no_mangle)]
            #[allow(non_snake_case)]
            unsafe extern "C" fn $name() {
                core::arch::naked_asm!("lea rax, [rip + {slot}]", "jmp {pass_on}", slot = sym SLOT, pass_on = sym pass_on)
            }

            // Arguments are passed on where the registers that they may be in are known.
            #[cfg(not(all(target_arch = "x86_64", not(windows))))]
            #[unsafe(no_mangle)]
            #[allow(non_snake_case)]
            extern "C" fn $name() -> hipError_t {
                resolve(&SLOT);
                match refused() { 0 => hipErrorNotSupported, code => code }
            }
        };
    )*};
}

absent! {
    __hipRegisterSurface __hipRegisterTexture hipBindTexture hipBindTexture2D hipBindTextureToArray
    hipBindTextureToMipmappedArray hipChooseDevice hipChooseDeviceR0000 hipConfigureCall hipCtxDisablePeerAccess
    hipCtxEnablePeerAccess hipCtxGetCacheConfig hipCtxGetSharedMemConfig hipCtxSetCacheConfig
    hipCtxSetSharedMemConfig hipDestroyExternalMemory hipDeviceGetTexture1DLinearMaxWidth
    hipDevicePrimaryCtxSetFlags hipDrvPointerGetAttributes hipExtDisableLogging hipExtEnableLogging
    hipExtGetLinkTypeAndHopCount hipExtLaunchMultiKernelMultiDevice hipExtSetLoggingParams
    hipExtStreamCreateWithCUMask hipExtStreamGetCUMask hipExternalMemoryGetMappedBuffer hipFreeMipmappedArray
    hipGLGetDevices hipGetDriverEntryPoint hipGetDriverEntryPoint_spt hipGetMipmappedArrayLevel
    hipGetProcAddress hipGetProcAddress_spt hipGetTextureAlignmentOffset hipGetTextureObjectResourceDesc
    hipGetTextureObjectResourceViewDesc hipGetTextureObjectTextureDesc hipGetTextureReference
    hipGraphAddExternalSemaphoresSignalNode hipGraphAddExternalSemaphoresWaitNode
    hipGraphExecExternalSemaphoresSignalNodeSetParams hipGraphExecExternalSemaphoresWaitNodeSetParams
    hipGraphExternalSemaphoresSignalNodeGetParams hipGraphExternalSemaphoresSignalNodeSetParams
    hipGraphExternalSemaphoresWaitNodeGetParams hipGraphExternalSemaphoresWaitNodeSetParams
    hipGraphicsGLRegisterBuffer hipGraphicsGLRegisterImage hipGraphicsMapResources
    hipGraphicsResourceGetMappedPointer hipGraphicsSubResourceGetMappedArray hipGraphicsUnmapResources
    hipGraphicsUnregisterResource hipImportExternalMemory hipKernelGetAttribute hipKernelGetFunction
    hipKernelGetLibrary hipKernelGetName hipKernelGetParamInfo hipKernelSetAttribute hipLaunchByPtr
    hipLaunchCooperativeKernelMultiDevice hipLibraryEnumerateKernels hipLibraryGetKernel
    hipLibraryGetKernelCount hipLibraryLoadData hipLibraryLoadFromFile hipLibraryUnload hipLinkAddData
    hipLinkAddFile hipLinkComplete hipLinkCreate hipLinkDestroy hipMallocMipmappedArray hipMemAdvise_v2
    hipMemGetHandleForAddressRange hipMemGetMemPool hipMemMapArrayAsync hipMemPoolExportPointer
    hipMemPoolExportToShareableHandle hipMemPoolGetAccess hipMemPoolImportFromShareableHandle
    hipMemPoolImportPointer hipMemPoolSetAccess hipMemPrefetchAsync_v2 hipMemPrefetchBatchAsync
    hipMemRangeGetAttribute hipMemRangeGetAttributes hipMemSetMemPool hipMemcpy3DBatchAsync hipMemcpy3DPeer
    hipMemcpy3DPeerAsync hipMemcpyBatchAsync hipMipmappedArrayCreate hipMipmappedArrayDestroy
    hipMipmappedArrayGetLevel hipMipmappedArrayGetMemoryRequirements hipModuleGetTexRef
    hipModuleLaunchCooperativeKernelMultiDevice hipOccupancyAvailableDynamicSMemPerBlock hipPointerSetAttribute
    hipSetValidDevices hipSetupArgument hipStreamAttachMemAsync hipStreamCopyAttributes hipStreamGetAttribute
    hipStreamGetId hipStreamSetAttribute hipTexObjectCreate hipTexObjectDestroy hipTexObjectGetResourceDesc
    hipTexObjectGetResourceViewDesc hipTexObjectGetTextureDesc hipTexRefGetAddress hipTexRefGetAddressMode
    hipTexRefGetArray hipTexRefGetBorderColor hipTexRefGetFilterMode hipTexRefGetFlags hipTexRefGetFormat
    hipTexRefGetMaxAnisotropy hipTexRefGetMipMappedArray hipTexRefGetMipmapFilterMode
    hipTexRefGetMipmapLevelBias hipTexRefGetMipmapLevelClamp hipTexRefSetAddress hipTexRefSetAddress2D
    hipTexRefSetAddressMode hipTexRefSetArray hipTexRefSetBorderColor hipTexRefSetFilterMode hipTexRefSetFlags
    hipTexRefSetFormat hipTexRefSetMaxAnisotropy hipTexRefSetMipmapFilterMode hipTexRefSetMipmapLevelBias
    hipTexRefSetMipmapLevelClamp hipTexRefSetMipmappedArray hipUnbindTexture
}

/// The kernel's or function's name that a profiler asks for: there is none to give.
macro_rules! nameless {
    ($($(#[$doc:meta])* $name:ident($type:ty);)*) => {$(
        $(#[$doc])*
        #[allow(non_snake_case)]
        #[unsafe(no_mangle)]
        pub extern "C" fn $name(_: $type) -> *const c_char {
            warn(stringify!($name));
            let unknown: &CStr = c"unknown";
            unknown.as_ptr()
        }
    )*};
}

nameless! {
    /// The name of a function by its number.
    hipApiName(u32);
    /// The name of a kernel by its handle.
    hipKernelNameRef(*const c_void);
    /// The name of a kernel by its host address.
    hipKernelNameRefByPtr(*const c_void);
}

/// The description of an element of an array or a texture.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub extern "C" fn hipCreateChannelDesc(
    x: c_int,
    y: c_int,
    z: c_int,
    w: c_int,
    f: u32,
) -> hipChannelFormatDesc {
    hipChannelFormatDesc { x, y, z, w, f }
}

/// The device of a stream; it is the answer itself, -1 if there is no such stream.
///
/// # Safety
/// On real devices, `stream` is one of theirs.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub unsafe extern "C" fn hipGetStreamDeviceId(stream: hipStream_t) -> c_int {
    let mut device = -1;
    boundary("hipGetStreamDeviceId", || {
        device = match backend()? {
            Backend::Emulated(runtime) => runtime.stream(stream)?.device as c_int,
            Backend::Real(library) => {
                // SAFETY: the type is HIP's own.
                let real = unsafe {
                    library.function::<unsafe extern "C" fn(hipStream_t) -> c_int>(c"hipGetStreamDeviceId")
                };
                let real = real.ok_or_else(|| super::missing(library, "hipGetStreamDeviceId"))?;
                // SAFETY: the caller's contract.
                unsafe { real(stream) }
            }
        };
        Ok(hipSuccess)
    });
    device
}
