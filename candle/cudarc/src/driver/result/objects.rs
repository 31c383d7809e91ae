//! Attributes of kernels, graphs, pools of memory and memory of other programs, by handles.

use super::DriverError;
use super::hip::{hip, raw, refused};
use std::ffi::{c_int, c_uint, c_void};
use std::ptr;

/// Attributes of kernels.
pub mod function {
    use super::{DriverError, c_uint, hip, refused};
    use crate::driver::sys::{CUfunc_cache_enum, CUfunction, CUfunction_attribute_enum};

    /// An attribute of a kernel.
    ///
    /// # Safety
    /// It is live.
    ///
    /// # Errors
    /// For what kernels do not have here.
    pub unsafe fn get_function_attribute(
        f: CUfunction,
        attribute: CUfunction_attribute_enum,
    ) -> Result<i32, DriverError> {
        let mut value = 0;
        // SAFETY: as promised by the caller; writes the number.
        unsafe { hip!(hipFuncGetAttribute(&mut value, attribute as c_uint, f.cast()))? };
        Ok(value)
    }

    /// Sets an attribute of a kernel. AMD's kernels may have all of the workgroup memory (LDS) and no preference, so that a value in
    /// range makes no difference.
    ///
    /// # Safety
    /// It is live.
    ///
    /// # Errors
    /// If there is not as much workgroup memory, or the attribute cannot be set.
    pub unsafe fn set_function_attribute(
        f: CUfunction,
        attribute: CUfunction_attribute_enum,
        value: i32,
    ) -> Result<(), DriverError> {
        use CUfunction_attribute_enum::*;
        match attribute {
            CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES => {
                // SAFETY: as promised by the caller.
                let most = unsafe { get_function_attribute(f, attribute)? };
                if (0..=most).contains(&value) {
                    return Ok(());
                }
                let why =
                    format!("{value} bytes of workgroup memory (LDS) at launch: the kernel can have {most}");
                Err(refused("cuFuncSetAttribute", &why))
            }
            CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT => Ok(()),
            other => Err(refused("cuFuncSetAttribute", &format!("{other:?} cannot be set on AMD GPUs"))),
        }
    }

    /// A preference between cache and workgroup memory (LDS), which are apart on AMD GPUs.
    ///
    /// # Safety
    /// The kernel is live.
    ///
    /// # Errors
    /// None; the signature is cudarc's.
    pub unsafe fn set_function_cache_config(
        _f: CUfunction,
        _attribute: CUfunc_cache_enum,
    ) -> Result<(), DriverError> {
        Ok(())
    }
}

/// Graphs, by HIP's handles.
pub mod graph {
    use super::{DriverError, hip, ptr, raw};
    use crate::driver::sys::{CUgraph, CUgraphExec, CUgraphInstantiate_flags, CUstream};
    use candle_amdgpu::Graph;
    use std::collections::HashMap;
    use std::sync::{Mutex, PoisonError};

    /// Graphs that a queue has recorded, by their handles: they have memory that each run uses.
    #[derive(Default)]
    struct Recorded {
        graphs: HashMap<usize, Kept>,
        /// Which graph one that can be launched is of.
        execs: HashMap<usize, usize>,
    }

    struct Kept {
        graph: Graph,
        execs: usize,
        destroyed: bool,
    }

    static RECORDED: Mutex<Option<Recorded>> = Mutex::new(None);

    fn recorded<T>(f: impl FnOnce(&mut Recorded) -> T) -> T {
        f(RECORDED.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default())
    }

    /// Hands a graph over to its handle.
    pub(in super::super) fn keep(graph: Graph) -> CUgraph {
        let handle = graph.as_raw();
        recorded(|all| all.graphs.insert(handle.addr(), Kept { graph, execs: 0, destroyed: false }));
        handle
    }

    /// Makes a graph ready to run.
    ///
    /// # Safety
    /// It is live.
    ///
    /// # Errors
    /// What the runtime reports.
    pub unsafe fn instantiate(
        graph: CUgraph,
        flags: CUgraphInstantiate_flags,
    ) -> Result<CUgraphExec, DriverError> {
        let known = CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH
            | CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
        let mut exec = ptr::null_mut();
        let flags = u64::from(flags.0 & known.0);
        // SAFETY: as promised by the caller; writes the handle.
        unsafe { hip!(hipGraphInstantiateWithFlags(&mut exec, graph.cast(), flags))? };
        recorded(|all| {
            if let Some(kept) = all.graphs.get_mut(&graph.addr()) {
                kept.execs += 1;
                all.execs.insert(exec.addr(), graph.addr());
            }
        });
        Ok(exec.cast())
    }

    /// Frees what [`instantiate`] made.
    ///
    /// # Safety
    /// It is live, and nobody uses it afterwards.
    ///
    /// # Errors
    /// What the runtime reports.
    pub unsafe fn exec_destroy(graph_exec: CUgraphExec) -> Result<(), DriverError> {
        // SAFETY: as promised by the caller.
        unsafe { hip!(hipGraphExecDestroy(graph_exec.cast()))? };
        let unused = recorded(|all| {
            let graph = all.execs.remove(&graph_exec.addr())?;
            let kept = all.graphs.get_mut(&graph)?;
            kept.execs -= 1;
            if kept.execs == 0 && kept.destroyed { all.graphs.remove(&graph) } else { None }
        });
        drop(unused.map(|kept| kept.graph));
        Ok(())
    }

    /// Frees a graph. What was made of it can still be launched.
    ///
    /// # Safety
    /// It is live, and nobody uses it afterwards.
    ///
    /// # Errors
    /// What the runtime reports.
    pub unsafe fn destroy(graph: CUgraph) -> Result<(), DriverError> {
        let found = recorded(|all| {
            let kept = all.graphs.get_mut(&graph.addr())?;
            kept.destroyed = true;
            Some(if kept.execs == 0 { all.graphs.remove(&graph.addr()) } else { None })
        });
        match found {
            // Its own end destroys it, now or with the last that can be launched.
            Some(unused) => {
                drop(unused.map(|kept| kept.graph));
                Ok(())
            }
            // SAFETY: as promised by the caller.
            None => unsafe { hip!(hipGraphDestroy(graph.cast())) },
        }
    }

    /// Enqueues all of it.
    ///
    /// # Safety
    /// The graph is live, the queue null or live.
    ///
    /// # Errors
    /// What the runtime reports.
    pub unsafe fn launch(graph_exec: CUgraphExec, stream: CUstream) -> Result<(), DriverError> {
        // SAFETY: as promised by the caller.
        unsafe { hip!(hipGraphLaunch(graph_exec.cast(), raw(stream))) }
    }

    /// Prepares the first launch.
    ///
    /// # Safety
    /// As for [`launch`].
    ///
    /// # Errors
    /// What the runtime reports.
    pub unsafe fn upload(graph_exec: CUgraphExec, stream: CUstream) -> Result<(), DriverError> {
        // SAFETY: as promised by the caller.
        unsafe { hip!(hipGraphUpload(graph_exec.cast(), raw(stream))) }
    }
}

/// Pools that memory is allocated from in the order of a queue.
pub mod mem_pool {
    use super::{DriverError, c_uint, c_void, hip, ptr, raw};
    use crate::driver::sys::{CUdeviceptr, CUmemPool_attribute, CUmemPoolProps, CUmemoryPool, CUstream};

    /// A new pool.
    ///
    /// # Safety
    /// The properties are readable.
    ///
    /// # Errors
    /// What the runtime reports.
    pub unsafe fn create(pool_props: *const CUmemPoolProps) -> Result<CUmemoryPool, DriverError> {
        let mut pool = ptr::null_mut();
        // SAFETY: as promised by the caller; the structures are the same; writes the handle.
        unsafe { hip!(hipMemPoolCreate(&mut pool, pool_props.cast()))? };
        Ok(pool.cast())
    }

    /// Frees a pool, once its memory is.
    ///
    /// # Safety
    /// It is live, and nobody uses it afterwards.
    ///
    /// # Errors
    /// What the runtime reports.
    pub unsafe fn destroy(pool: CUmemoryPool) -> Result<(), DriverError> {
        // SAFETY: as promised by the caller.
        unsafe { hip!(hipMemPoolDestroy(pool.cast())) }
    }

    /// Gives unused memory back, but for so many bytes.
    ///
    /// # Safety
    /// It is live.
    ///
    /// # Errors
    /// What the runtime reports.
    pub unsafe fn trim_to(pool: CUmemoryPool, min_bytes_to_keep: usize) -> Result<(), DriverError> {
        // SAFETY: as promised by the caller.
        unsafe { hip!(hipMemPoolTrimTo(pool.cast(), min_bytes_to_keep)) }
    }

    /// An attribute of a pool.
    ///
    /// # Safety
    /// It is live, and there is room for the attribute's type.
    ///
    /// # Errors
    /// What the runtime reports.
    pub unsafe fn get_attribute(
        pool: CUmemoryPool,
        attr: CUmemPool_attribute,
        value: *mut c_void,
    ) -> Result<(), DriverError> {
        // SAFETY: as promised by the caller.
        unsafe { hip!(hipMemPoolGetAttribute(pool.cast(), attr as c_uint, value)) }
    }

    /// Sets an attribute of a pool.
    ///
    /// # Safety
    /// It is live, and there is a value of the attribute's type.
    ///
    /// # Errors
    /// What the runtime reports.
    pub unsafe fn set_attribute(
        pool: CUmemoryPool,
        attr: CUmemPool_attribute,
        value: *mut c_void,
    ) -> Result<(), DriverError> {
        // SAFETY: as promised by the caller.
        unsafe { hip!(hipMemPoolSetAttribute(pool.cast(), attr as c_uint, value)) }
    }

    /// Memory of a pool with any content, in the order of a queue. Free it by [`free_async`](super::super::free_async).
    ///
    /// # Safety
    /// The pool is live, the queue null or live. What is read has been written before.
    ///
    /// # Errors
    /// If there is no memory.
    pub unsafe fn alloc_async(
        pool: CUmemoryPool,
        num_bytes: usize,
        stream: CUstream,
    ) -> Result<CUdeviceptr, DriverError> {
        let mut address = ptr::null_mut();
        // SAFETY: as promised by the caller; writes the address.
        unsafe { hip!(hipMallocFromPoolAsync(&mut address, num_bytes, pool.cast(), raw(stream)))? };
        Ok(address as CUdeviceptr)
    }
}

/// Memory of other programs, such as Vulkan's. Emulated devices have none.
pub mod external_memory {
    use super::{DriverError, c_int, c_uint, c_void, ptr};
    use crate::driver::result::hip::checked;
    use crate::driver::sys::{CUdeviceptr, CUexternalMemory};

    /// What HIP imports.
    #[repr(C)]
    struct Handle {
        kind: c_uint,
        /// A union of a file's number and two pointers.
        handle: [u64; 2],
        size: u64,
        flags: c_uint,
        reserved: [c_uint; 16],
    }

    /// What HIP maps of it.
    #[repr(C)]
    struct Part {
        offset: u64,
        size: u64,
        flags: c_uint,
        reserved: [c_uint; 16],
    }

    const OPAQUE_FD: c_uint = 1;

    // `amdhip` has these for C programs: real devices get the call, emulated ones refuse it.
    unsafe extern "C" {
        fn hipImportExternalMemory(memory: *mut *mut c_void, handle: *const Handle) -> c_uint;
        fn hipDestroyExternalMemory(memory: *mut c_void) -> c_uint;
        fn hipExternalMemoryGetMappedBuffer(
            address: *mut *mut c_void,
            memory: *mut c_void,
            part: *const Part,
        ) -> c_uint;
    }

    /// Memory of a file's number, which belongs to the runtime from now on.
    ///
    /// # Safety
    /// It is such a file, and has so many bytes.
    ///
    /// # Errors
    /// On emulated devices, or what the runtime reports.
    pub unsafe fn import_external_memory_opaque_fd(
        fd: c_int,
        size: u64,
    ) -> Result<CUexternalMemory, DriverError> {
        let handle = [u64::from(fd.cast_unsigned()), 0];
        let handle = Handle { kind: OPAQUE_FD, handle, size, flags: 0, reserved: [0; 16] };
        let mut memory = ptr::null_mut();
        let _text = amdhip64::TakesText::new();
        // SAFETY: as promised by the caller; writes the handle.
        checked("hipImportExternalMemory", unsafe { hipImportExternalMemory(&mut memory, &handle) })?;
        Ok(memory)
    }

    /// Gives it back.
    ///
    /// # Safety
    /// It is live, and nobody uses it afterwards.
    ///
    /// # Errors
    /// What the runtime reports.
    pub unsafe fn destroy_external_memory(external_memory: CUexternalMemory) -> Result<(), DriverError> {
        let _text = amdhip64::TakesText::new();
        // SAFETY: as promised by the caller.
        checked("hipDestroyExternalMemory", unsafe { hipDestroyExternalMemory(external_memory) })
    }

    /// The address of a part of it.
    ///
    /// # Safety
    /// It is live, and has such a part.
    ///
    /// # Errors
    /// What the runtime reports.
    pub unsafe fn get_mapped_buffer(
        external_memory: CUexternalMemory,
        offset: u64,
        size: u64,
    ) -> Result<CUdeviceptr, DriverError> {
        let part = Part { offset, size, flags: 0, reserved: [0; 16] };
        let mut address = ptr::null_mut();
        let _text = amdhip64::TakesText::new();
        // SAFETY: as promised by the caller; writes the address.
        let code = unsafe { hipExternalMemoryGetMappedBuffer(&mut address, external_memory, &part) };
        checked("hipExternalMemoryGetMappedBuffer", code)?;
        Ok(address as CUdeviceptr)
    }
}
