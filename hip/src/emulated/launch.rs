//! Launches: the checks that come before one, and the arguments.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use amdgpu_emulator::{
    ArgKind, Fault, FaultReport, Finding, Geometry, GeometryError, HiddenArg, KernelInfo, Launch, Limits,
};

use super::Runtime;
use super::module::Function;
use super::stream::{Stream, StreamFault};
use super::work::Work;
use crate::codes::*;
use crate::error::Error;
use crate::journal;
use crate::report::takes_text;
use crate::types::*;
use amdgpu_journal::occupancy::occupancy;
use amdgpu_journal::print_fault;
use amdgpu_journal::record::LaunchRecord;
use amdgpu_journal::settings::{BUDGET_VARIABLE, write_profile};

/// Whether the device and the kernel support a launch of this geometry.
fn check(geometry: &Geometry, function: &Function) -> Result<(), Error> {
    let info = &function.info;
    let gfx = function.module.object.gfx();
    let Geometry { grid, block, dynamic_lds } = *geometry;
    let (size, limits) = (geometry.work_items(), Limits::of(gfx));
    let kernel = || info.name.clone();
    let configuration = |problem| Err(Error::Configuration { kernel: kernel(), problem });
    let resources = |problem| Err(Error::Resources { kernel: kernel(), problem });
    match geometry.check(&limits, info.max_workgroup_size, info.lds_size) {
        Ok(()) => {}
        Err(GeometryError::Zero) => {
            return configuration(format!(
                "a grid of {grid:?} workgroups of {block:?} work-items has a zero"
            ));
        }
        Err(GeometryError::Grid) => {
            return configuration(format!(
                "a grid of {grid:?} workgroups; the device takes {:?}",
                limits.grid
            ));
        }
        Err(GeometryError::Block | GeometryError::WorkItems) => {
            return configuration(format!(
                "workgroups of {block:?}, {size} work-items; the device takes {}",
                limits.work_items
            ));
        }
        Err(GeometryError::GridItems) => {
            return configuration(format!(
                "a grid of {grid:?} workgroups of {block:?} work-items passes 2^32 work-items along an axis"
            ));
        }
        Err(GeometryError::Compiled) => {
            return resources(format!(
                "workgroups of {size} work-items; it was compiled for at most {}",
                info.max_workgroup_size
            ));
        }
        Err(GeometryError::Lds { bytes }) => {
            return resources(format!(
                "{bytes} bytes of LDS ({} of its own, {dynamic_lds} launch-sized); a workgroup has at most {}",
                info.lds_size, limits.lds
            ));
        }
    }
    if occupancy(gfx, info, size as u32, dynamic_lds).workgroups == 0 {
        return resources(format!(
            "workgroups of {size} work-items with {} vector registers each, more than a {gfx} has",
            info.vgprs
        ));
    }
    Ok(())
}

/// The bytes of a kernel's explicit arguments, from one pointer per argument or from an `extra` list.
///
/// # Safety
/// `params`, unless null, has a pointer for each argument, valid for its size; `extra`, unless null, is a list as
/// HIP describes it, and its buffer is valid for its size.
unsafe fn arguments(
    info: &KernelInfo,
    params: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> Result<Vec<u8>, Error> {
    let wrong = |problem: String| Error::Arguments { kernel: info.name.clone(), problem };
    let size = info.explicit_size() as usize;
    let mut bytes = vec![0; size];
    match (params.is_null(), extra.is_null()) {
        (true, true) if size == 0 => {}
        (true, true) => return Err(wrong(format!("it has {size} bytes of arguments and none were given"))),
        (false, false) => {
            return Err(wrong("arguments were given twice, as kernelParams and as extra".to_owned()));
        }
        (false, true) => {
            for (index, arg) in info.args.iter().filter(|arg| !arg.is_hidden()).enumerate() {
                // SAFETY: there is a pointer for each argument.
                let value = unsafe { *params.add(index) };
                if value.is_null() {
                    let name = arg.name.as_deref().unwrap_or("unnamed");
                    return Err(wrong(format!("the pointer to argument {index} ({name}) is null")));
                }
                let (at, size) = (arg.offset as usize, arg.size as usize);
                // SAFETY: the pointer is valid for the argument's size.
                bytes[at..at + size]
                    .copy_from_slice(unsafe { std::slice::from_raw_parts(value.cast(), size) });
            }
        }
        (true, false) => {
            // SAFETY: `extra` is such a list.
            let buffer = unsafe { extra_buffer(extra) }.map_err(wrong)?;
            if buffer.len() < size {
                return Err(wrong(format!(
                    "it has {size} bytes of arguments and {} were given",
                    buffer.len()
                )));
            }
            bytes.copy_from_slice(&buffer[..size]);
        }
    }
    Ok(bytes)
}

/// # Safety
/// As [`arguments`] says of `extra`.
unsafe fn extra_buffer<'a>(extra: *mut *mut c_void) -> Result<&'a [u8], String> {
    let (mut buffer, mut size) = (std::ptr::null::<u8>(), None);
    // Each key may stand once, so a list without its end is noticed.
    for pair in 0..3 {
        // SAFETY: the list goes on until its end key, and every key before has a value.
        let key = unsafe { *extra.add(pair * 2) } as usize;
        if key == HIP_LAUNCH_PARAM_END {
            let size = size.ok_or("the extra list has no HIP_LAUNCH_PARAM_BUFFER_SIZE")?;
            if buffer.is_null() && size > 0 {
                return Err("the extra list has no HIP_LAUNCH_PARAM_BUFFER_POINTER".to_owned());
            }
            // SAFETY: the list's buffer is valid for its size.
            return Ok(if size == 0 { &[] } else { unsafe { std::slice::from_raw_parts(buffer, size) } });
        }
        // SAFETY: as above.
        let value = unsafe { *extra.add(pair * 2 + 1) };
        match key {
            HIP_LAUNCH_PARAM_BUFFER_POINTER => buffer = value.cast(),
            HIP_LAUNCH_PARAM_BUFFER_SIZE if value.is_null() => {
                return Err("the buffer's size is a null pointer".to_owned());
            }
            // SAFETY: the value of this key points to the size.
            HIP_LAUNCH_PARAM_BUFFER_SIZE => size = Some(unsafe { *value.cast::<usize>() }),
            other => return Err(format!("the extra list has the unknown key {other}")),
        }
    }
    Err("the extra list has no HIP_LAUNCH_PARAM_END".to_owned())
}

/// A kernel with its arguments.
#[derive(Clone)]
pub(crate) struct KernelWork {
    /// What the program named the kernel by: a host address, or a handle.
    pub(crate) name: usize,
    pub(crate) function: Arc<Function>,
    pub(crate) geometry: Geometry,
    pub(crate) attributes: Attributes,
    kernarg: Arc<[u8]>,
    /// Address of each argument in `kernarg`.
    pointers: Arc<[usize]>,
}

/// What a program can say of a kernel beside its geometry.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Attributes {
    pub(crate) is_cooperative: bool,
    pub(crate) priority: i32,
    pub(crate) window: hipAccessPolicyWindow,
}

impl Attributes {
    /// Those of a launch whose workgroups wait for each other.
    pub(crate) const COOPERATIVE: Attributes =
        Attributes { is_cooperative: true, priority: 0, window: hipAccessPolicyWindow::NONE };
}

impl KernelWork {
    /// One pointer per argument, valid for as long as this, or a clone of it, is there; null if there is none.
    pub(crate) fn params(&self) -> *mut *mut c_void {
        match self.pointers.is_empty() {
            true => std::ptr::null_mut(),
            false => self.pointers.as_ptr().cast::<*mut c_void>().cast_mut(),
        }
    }
}

impl Runtime {
    /// A launch of a kernel, checked, with a copy of its arguments. `name` is what the program calls it by.
    ///
    /// # Safety
    /// As HIP says of `params` and `extra`: one pointer per argument, or a list with a buffer.
    pub(crate) unsafe fn kernel_work(
        &self,
        name: *const c_void,
        function: &Arc<Function>,
        geometry: Geometry,
        params: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) -> Result<KernelWork, Error> {
        check(&geometry, function)?;
        // SAFETY: the caller's contract.
        let kernarg: Arc<[u8]> = unsafe { arguments(&function.info, params, extra)? }.into();
        let explicit = function.info.args.iter().filter(|arg| !arg.is_hidden());
        let pointers = explicit.map(|arg| kernarg.as_ptr() as usize + arg.offset as usize).collect();
        let (name, attributes) = (name as usize, Attributes::default());
        Ok(KernelWork { name, function: function.clone(), geometry, attributes, kernarg, pointers })
    }

    /// Launches a kernel in `stream`.
    ///
    /// # Safety
    /// As for [`Runtime::kernel_work`].
    pub(crate) unsafe fn launch(
        &self,
        name: *const c_void,
        function: &Arc<Function>,
        geometry: Geometry,
        stream: &Arc<Stream>,
        params: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) -> Result<(), Error> {
        // SAFETY: the caller's contract.
        unsafe { self.launch_with(name, function, geometry, stream, params, extra, Attributes::default()) }
    }

    /// As [`Runtime::launch`], with attributes.
    ///
    /// # Safety
    /// As for [`Runtime::kernel_work`].
    #[expect(clippy::too_many_arguments, reason = "the C functions have them")]
    pub(crate) unsafe fn launch_with(
        &self,
        name: *const c_void,
        function: &Arc<Function>,
        geometry: Geometry,
        stream: &Arc<Stream>,
        params: *mut *mut c_void,
        extra: *mut *mut c_void,
        attributes: Attributes,
    ) -> Result<(), Error> {
        // SAFETY: the caller's contract.
        let mut kernel = unsafe { self.kernel_work(name, function, geometry, params, extra)? };
        kernel.attributes = attributes;
        if attributes.is_cooperative {
            self.check_cooperative(&kernel)?;
        }
        if stream.device != function.device {
            return Err(Error::WrongDevice {
                what: "kernel",
                actual: function.device,
                expected: stream.device,
            });
        }
        // SAFETY: the arguments are copied, and a kernel reaches device memory alone.
        unsafe { self.submit(stream, Work::Kernel(kernel)) }
    }

    pub(super) fn launch_now(&self, kernel: &KernelWork) -> Result<(), StreamFault> {
        let KernelWork { function, geometry, kernarg, .. } = kernel;
        let device = &self.devices[function.device];
        let Geometry { grid, block, dynamic_lds } = *geometry;
        let mut options = device.options();
        options.cooperative = kernel.attributes.is_cooperative;
        if options.check && options.cooperative && grid != [1; 3] {
            say_unchecked(&function.info.name);
        }
        let profile = options.profile;
        let launch = Launch { grid, block, dynamic_lds, kernarg, options };
        let result = device.machine.launch(&function.kernel, &launch);
        self.note_peer_writes(device.ordinal);
        journal::write(|| journal::Entry::Launch {
            kernel: function.info.name.clone(),
            gfx: device.gfx.name().to_owned(),
            instructions: result.as_ref().map_or(0, |report| report.wave_instructions),
        });
        let findings = match &result {
            Ok(report) => &report.findings[..],
            Err(fault) => fault.findings(),
        };
        for Finding { report, count, .. } in findings {
            journal::note(report, &report.to_string(), *count, false);
        }
        match result {
            Ok(report) => {
                device.count(&report);
                if profile {
                    let kernel = function.info.name.clone();
                    let record = LaunchRecord { kernel, gfx: device.gfx, grid, block, dynamic_lds, report };
                    write_profile(&record);
                    journal::profile(&record, &function.info, Arc::as_ptr(&function.module).addr() as u64);
                    device.keep(record);
                }
                Ok(())
            }
            Err(fault) => {
                let heap = is_heap(&function.info, &fault);
                let note = match fault.fault() {
                    _ if heap => HEAP_NOTE.to_owned(),
                    Fault::Budget { .. } => format!("\n  note: {BUDGET_VARIABLE} sets another limit"),
                    Fault::OutOfBounds { address, .. } => self.foreign_note(device.ordinal, *address),
                    _ => String::new(),
                };
                let report = format!("{fault}{note}");
                journal::note(&fault, &report, 1, true);
                let is_told = !takes_text();
                if is_told {
                    print_fault(&report);
                }
                let code = if heap { hipErrorNotSupported } else { fault_code(&fault) };
                device.set_last_fault(report.clone(), fault);
                Err(StreamFault { code, report, is_told })
            }
        }
    }
}

impl Runtime {
    /// What a fault report adds where an address is another device's.
    fn foreign_note(&self, device: usize, address: u64) -> String {
        match self.blocks.find(address).filter(|block| block.device != device) {
            Some(block) => format!(
                "\n  note: it is memory of device {}, to which hipDeviceEnablePeerAccess gives device {device} access",
                block.device
            ),
            None => String::new(),
        }
    }

    /// Refuses more workgroups that wait for each other than a device holds at once.
    pub(crate) fn check_cooperative(&self, kernel: &KernelWork) -> Result<(), Error> {
        let KernelWork { function, geometry: Geometry { grid, block, dynamic_lds }, .. } = kernel;
        let size = block.iter().product();
        let each = occupancy(function.module.object.gfx(), &function.info, size, *dynamic_lds).workgroups;
        let multiprocessors = self.devices[function.device].specs.multiprocessors;
        let workgroups = grid.iter().map(|&n| u64::from(n)).fold(1, u64::saturating_mul);
        let fit = u64::from(each) * u64::from(multiprocessors);
        if workgroups > fit {
            let kernel = function.info.name.clone();
            return Err(Error::CooperativeTooLarge { kernel, workgroups, fit, each, multiprocessors });
        }
        Ok(())
    }
}

/// Says once that check mode does not look at launches whose workgroups wait for each other.
fn say_unchecked(kernel: &str) {
    static SAID: AtomicBool = AtomicBool::new(false);
    if !SAID.swap(true, Ordering::Relaxed) {
        eprintln!("amdhip64: check mode does not look at cooperative launches, such as that of `{kernel}`");
    }
}

/// What a fault report adds where the fault is that a kernel looked for its heap.
const HEAP_NOTE: &str = "\n  note: the kernel allocates memory (malloc, free, new or delete in device code), which emulated devices cannot do; \
                         the access goes to the missing heap";

/// Whether a fault is an access to the heap, which is null.
fn is_heap(info: &KernelInfo, report: &FaultReport) -> bool {
    let near_null = matches!(report.fault(), Fault::OutOfBounds { address, .. } if *address < 4096);
    near_null && info.args.iter().any(|arg| arg.kind == ArgKind::Hidden(HiddenArg::HeapV1))
}

fn fault_code(report: &FaultReport) -> hipError_t {
    match report.fault() {
        Fault::OutOfBounds { .. }
        | Fault::UseAfterFree { .. }
        | Fault::LdsOutOfBounds { .. }
        | Fault::ScratchOutOfBounds { .. }
        | Fault::StackOverflow { .. }
        | Fault::Misaligned { .. } => hipErrorIllegalAddress,
        Fault::Budget { .. } => hipErrorLaunchTimeOut,
        Fault::Memory(_) => hipErrorOutOfMemory,
        Fault::HostCall { .. } => hipErrorNotSupported,
        _ => hipErrorLaunchFailure,
    }
}
