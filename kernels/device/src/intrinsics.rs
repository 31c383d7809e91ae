//! Functions that Rust cannot say, written as LLVM IR in amdgpu-build (`intrinsics.rs` there) and linked before the
//! optimiser runs, so that all of them are inlined.

#[cfg(any(target_arch = "amdgpu", target_arch = "nvptx64"))]
unsafe extern "C" {
    /// Start of the workgroup memory that the launch gave, aligned to 16 bytes.
    pub(crate) fn amdgpu_device_workgroup_memory() -> *mut u8;
    /// The same value, which the build takes for uniform in the workgroup.
    pub(crate) fn amdgpu_device_uniform_in_workgroup(value: u32) -> u32;
    /// Two words of the module's, zero at first, for the barrier of a grid.
    pub(crate) fn amdgpu_device_grid_barrier() -> *mut u32;
    /// Ends the kernel with a text.
    pub(crate) fn amdgpu_device_fail(text: *const u8, len: u32) -> !;
    /// Bytes of workgroup memory that the launch gave.
    pub(crate) fn amdgpu_device_workgroup_memory_bytes() -> u32;
    /// Bytes of workgroup memory that the launch gave, without those that the kernel has of its own.
    pub(crate) fn amdgpu_device_dynamic_bytes() -> u32;
    /// Not a function: in `workgroup/typed.rs` amdgpu-build puts the address of new workgroup memory in place of the call.
    pub(crate) fn amdgpu_device_workgroup_slot(bytes: usize, align: usize) -> *mut u8;
    /// 4 KiB of workgroup memory that a kernel has of its own, whatever the launch gives.
    pub(crate) fn amdgpu_device_fixed_memory_4k() -> *mut u8;
    /// 8 KiB of it.
    pub(crate) fn amdgpu_device_fixed_memory_8k() -> *mut u8;
    /// 16 KiB of it.
    pub(crate) fn amdgpu_device_fixed_memory_16k() -> *mut u8;
    /// 32 KiB of it.
    pub(crate) fn amdgpu_device_fixed_memory_32k() -> *mut u8;
    /// 40 KiB of it.
    pub(crate) fn amdgpu_device_fixed_memory_40k() -> *mut u8;
    /// The same number, which the optimiser does not know.
    pub(crate) fn amdgpu_device_opaque_f32(x: f32) -> f32;
    /// `c` plus the dot product of four signed bytes.
    pub(crate) fn amdgpu_device_dot4(a: u32, b: u32, c: i32) -> i32;
    /// Barrier of the workgroup that orders workgroup memory and global memory.
    pub(crate) fn amdgpu_device_barrier();
    /// Barrier of the workgroup that orders workgroup memory alone.
    pub(crate) fn amdgpu_device_barrier_local();
    /// Reads a word of memory that no work-item writes during the launch.
    pub(crate) fn amdgpu_device_load_constant(address: *const usize) -> usize;
    pub(crate) fn amdgpu_device_atomic_add_f32(address: *mut f32, value: f32);
    pub(crate) fn amdgpu_device_atomic_add_f64(address: *mut f64, value: f64);
    pub(crate) fn amdgpu_device_atomic_add_u32(address: *mut u32, value: u32) -> u32;
    pub(crate) fn amdgpu_device_atomic_add_u64(address: *mut u64, value: u64) -> u64;
    pub(crate) fn amdgpu_device_atomic_load_u32(address: *const u32) -> u32;
    /// The same number, hidden from the compiler.
    pub(crate) fn amdgpu_device_opaque(x: u32) -> u32;
    /// The same number, hidden from the compiler; all lanes have the same.
    pub(crate) fn amdgpu_device_opaque_uniform(x: usize) -> usize;
    /// Whether the target has the matrix instructions below; a constant.
    pub(crate) fn amdgpu_device_has_matrix() -> bool;
    /// Adds the products of 64 bytes of k of 16 rows of A and B: `sums` has the lane's results, `a` and `b` the
    /// lane's chunks.
    pub(crate) fn amdgpu_device_matrix_f16(sums: *mut f32, a: *const u32, b: *const u32);
    pub(crate) fn amdgpu_device_matrix_bf16(sums: *mut f32, a: *const u32, b: *const u32);
    /// Adds the products of two pairs to a sum.
    pub(crate) fn amdgpu_device_dot2_f16(a: u32, b: u32, sum: f32) -> f32;
    /// The module's variable for errors, as `error.rs` lays it out.
    pub(crate) fn amdgpu_device_error_slot() -> *mut u32;
    /// Compares and swaps; returns what was there.
    pub(crate) fn amdgpu_device_atomic_swap_if_u32(address: *mut u32, expected: u32, new: u32) -> u32;
}

#[cfg(all(target_arch = "amdgpu", feature = "wave64"))]
unsafe extern "C" {
    pub fn amdgpu_device_matrix_f32(sums: *mut f32, a: *const u32, b: *const u32);
    pub fn amdgpu_device_matrix_f64(sums: *mut f64, a: *const u32, b: *const u32);
}

#[cfg(target_arch = "amdgpu")]
unsafe extern "C" {
    /// What a cooperative launch's workgroups have in common; null in other launches.
    pub(crate) fn amdgpu_device_grid_info() -> *const u8;
    /// The buffer for calls of the host, or null.
    pub(crate) fn amdgpu_device_host_calls() -> *mut u8;
    /// Interrupts the host for an event of HSA's.
    pub(crate) fn amdgpu_device_interrupt(event: u32);
    /// As the other types' above, of 16 signed bytes of each row: the lane has a chunk of them in a wave of 32, a word in one of 64.
    pub(crate) fn amdgpu_device_matrix_i8_16(sums: *mut i32, a: *const u32, b: *const u32);
    /// The same of 32, of which a lane has twice as many words.
    pub(crate) fn amdgpu_device_matrix_i8_32(sums: *mut i32, a: *const u32, b: *const u32);
    /// The same address, in global memory.
    pub(crate) fn amdgpu_device_global(address: usize) -> *const u8;
    /// No instruction is scheduled across.
    pub(crate) fn amdgpu_device_sched_barrier();
    pub(crate) fn amdgpu_device_workgroup_size_x() -> u32;
    pub(crate) fn amdgpu_device_workgroup_size_y() -> u32;
    pub(crate) fn amdgpu_device_workgroup_size_z() -> u32;
    pub(crate) fn amdgpu_device_workgroups_x() -> u32;
    pub(crate) fn amdgpu_device_workgroups_y() -> u32;
    pub(crate) fn amdgpu_device_workgroups_z() -> u32;
}

#[cfg(target_arch = "nvptx64")]
unsafe extern "C" {
    /// The same value, which the build takes for uniform in the warp.
    pub fn amdgpu_device_uniform(value: u32) -> u32;
    /// Brings the cache line of an address into the second-level cache.
    pub fn amdgpu_device_prefetch(address: *const u8);
    /// The kernel's loads are the first to leave the cache.
    pub fn amdgpu_device_loads_once();
    /// Its stores are.
    pub fn amdgpu_device_stores_once();
    /// A tile of sums of products over 16 signed bytes.
    pub fn amdgpu_device_tile_s8_16(sums: *mut [i32; 4], a: *const [u32; 2], b: *const [u32; 1]);
    /// The same over 32.
    pub fn amdgpu_device_tile_s8_32(sums: *mut [i32; 4], a: *const [u32; 4], b: *const [u32; 2]);
    /// What `stream.rs` says.
    pub fn amdgpu_device_stream_copy(to: *mut u8, from: *const u8);
    pub fn amdgpu_device_stream_end_group();
    pub fn amdgpu_device_stream_wait_1();
    pub fn amdgpu_device_stream_wait_2();
    pub fn amdgpu_device_stream_meet();
}
