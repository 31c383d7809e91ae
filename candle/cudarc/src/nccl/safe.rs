//! Communication by slices.

use super::{result, sys};
use crate::driver::{CudaContext, CudaStream, CudaView, CudaViewMut, DevicePtr, DevicePtrMut, SyncOnDrop};
use candle_amdgpu::{bf16, f8e4m3, f16};
use result::{NcclError, NcclStatus};
use std::ffi::{c_char, c_int};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Arc;

pub use result::{group_end, group_start};

/// One rank's part in a communication: it has a device, and a queue that its operations are in.
#[derive(Debug)]
pub struct Comm {
    comm: sys::ncclComm_t,
    stream: Arc<CudaStream>,
    rank: usize,
    world_size: usize,
}

/// What the ranks of one communication have in common. One rank creates it, and hands its bytes to the others.
#[derive(Clone, Copy, Debug)]
pub struct Id {
    id: sys::ncclUniqueId,
}

impl Id {
    /// A new one. The process must live until all ranks have joined.
    ///
    /// # Errors
    /// If there is no library, or the system has no sockets.
    pub fn new() -> Result<Id, NcclError> {
        Ok(Id { id: result::get_uniqueid()? })
    }

    /// The one with these bytes.
    pub fn uninit(internal: [c_char; 128]) -> Id {
        Id { id: sys::ncclUniqueId { internal } }
    }

    /// Its bytes.
    pub fn internal(&self) -> &[c_char; 128] {
        &self.id.internal
    }
}

/// Makes the calls of a block as one.
///
/// # Panics
/// If one of them fails.
#[macro_export]
macro_rules! group {
    ($calls:block) => {{
        $crate::nccl::group_start().unwrap();
        $calls
        $crate::nccl::group_end().unwrap();
    }};
}

/// What is done with the elements of all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReduceOp {
    /// They are added.
    Sum,
    /// They are multiplied.
    Prod,
    /// The largest is taken.
    Max,
    /// The smallest is taken.
    Min,
    /// Their mean is taken.
    Avg,
}

impl ReduceOp {
    fn code(self) -> sys::ncclRedOp_t {
        match self {
            ReduceOp::Sum => sys::ncclRedOp_t::ncclSum,
            ReduceOp::Prod => sys::ncclRedOp_t::ncclProd,
            ReduceOp::Max => sys::ncclRedOp_t::ncclMax,
            ReduceOp::Min => sys::ncclRedOp_t::ncclMin,
            ReduceOp::Avg => sys::ncclRedOp_t::ncclAvg,
        }
    }
}

/// A type of elements that can be communicated.
pub trait NcclType {
    /// Its number.
    fn as_nccl_type() -> sys::ncclDataType_t;
}

macro_rules! types {
    ($($ty:ty = $code:ident)*) => {$(
        impl NcclType for $ty {
            fn as_nccl_type() -> sys::ncclDataType_t {
                sys::ncclDataType_t::$code
            }
        }
    )*};
}

types! {
    i8 = ncclInt8
    u8 = ncclUint8
    i32 = ncclInt32
    u32 = ncclUint32
    i64 = ncclInt64
    u64 = ncclUint64
    f16 = ncclFloat16
    bf16 = ncclBfloat16
    f32 = ncclFloat32
    f64 = ncclFloat64
    f8e4m3 = ncclFloat8e4m3
}

/// A number of ranks, or a rank, as NCCL takes it.
fn number(n: usize) -> Result<c_int, NcclError> {
    c_int::try_from(n).map_err(|_| NcclError(sys::ncclResult_t::ncclInvalidArgument))
}

/// An error, unless there are `need` elements or more.
fn holds(have: usize, need: Option<usize>) -> Result<(), NcclError> {
    match need {
        Some(need) if have >= need => Ok(()),
        _ => Err(NcclError(sys::ncclResult_t::ncclInvalidArgument)),
    }
}

impl Comm {
    /// A communication among these queues, each on a device of its own, for one thread; the rank is the position. Its calls go into
    /// groups: each would wait for the others, which come later.
    ///
    /// # Errors
    /// If two are on one device, or what the library reports.
    pub fn from_devices(streams: Vec<Arc<CudaStream>>) -> Result<Vec<Comm>, NcclError> {
        let world_size = streams.len();
        let devices: Vec<c_int> =
            streams.iter().map(|stream| number(stream.context().ordinal())).collect::<Result<_, _>>()?;
        let mut comms = vec![ptr::null_mut(); world_size];
        // SAFETY: there is room for as many, and they are written before they are used.
        unsafe { result::comm_init_all(comms.as_mut_ptr(), number(world_size)?, devices.as_ptr())? };
        let comm = |(rank, (comm, stream))| Comm { comm, stream, rank, world_size };
        Ok(comms.into_iter().zip(streams).enumerate().map(comm).collect())
    }

    /// This rank's part in a communication of `world_size`, in a thread or a process of its own. It waits for the others.
    ///
    /// # Errors
    /// If the rank is taken, two are on one device, or what the library reports.
    pub fn from_rank(
        stream: Arc<CudaStream>,
        rank: usize,
        world_size: usize,
        id: Id,
    ) -> Result<Comm, NcclError> {
        if let Err(error) = stream.context().bind_to_thread() {
            stream.stream().fail(error.reason().clone());
            return Err(NcclError(sys::ncclResult_t::ncclUnhandledCudaError));
        }
        let mut comm = MaybeUninit::uninit();
        // SAFETY: writes the handle, unless it fails.
        let comm = unsafe {
            result::comm_init_rank(comm.as_mut_ptr(), number(world_size)?, id.id, number(rank)?)?;
            comm.assume_init()
        };
        Ok(Comm { comm, stream, rank, world_size })
    }

    /// The queue.
    pub fn stream(&self) -> Arc<CudaStream> {
        self.stream.clone()
    }

    /// The device.
    pub fn context(&self) -> &Arc<CudaContext> {
        self.stream.context()
    }

    /// The number of the device.
    pub fn ordinal(&self) -> usize {
        self.context().ordinal()
    }

    /// The rank.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// How many ranks there are.
    pub fn world_size(&self) -> usize {
        self.world_size
    }

    fn queue(&self) -> sys::cudaStream_t {
        self.stream.cu_stream().cast()
    }

    /// Elements for one rank, which receives as many.
    ///
    /// # Errors
    /// What the library reports.
    pub fn send<S: DevicePtr<T>, T: NcclType>(&self, data: &S, peer: i32) -> Result<(), NcclError> {
        let (from, _order) = data.device_ptr(&self.stream);
        // SAFETY: the slice has as many elements; the guard orders other queues.
        unsafe { self.send_(from, data.len(), T::as_nccl_type(), peer) }.map(drop)
    }

    /// Elements of one rank, which sends as many.
    ///
    /// # Errors
    /// What the library reports.
    pub fn recv<R: DevicePtrMut<T>, T: NcclType>(
        &self,
        buff: &mut R,
        peer: i32,
    ) -> Result<NcclStatus, NcclError> {
        let count = buff.len();
        let (to, _order) = buff.device_ptr_mut(&self.stream);
        // SAFETY: as above.
        unsafe { self.recv_(to, count, T::as_nccl_type(), peer) }
    }

    /// The elements of `root`, whose `sendbuff` must be there, for all ranks.
    ///
    /// # Errors
    /// If `sendbuff` is missing or shorter, or what the library reports.
    pub fn broadcast<S: DevicePtr<T>, R: DevicePtrMut<T>, T: NcclType>(
        &self,
        sendbuff: Option<&S>,
        recvbuff: &mut R,
        root: i32,
    ) -> Result<NcclStatus, NcclError> {
        let count = recvbuff.len();
        self.root_has(root, sendbuff.map(DeviceLen::of::<T, S>), count)?;
        let (from, _read) = sendbuff.map(|data| data.device_ptr(&self.stream)).unzip();
        let (to, _written) = recvbuff.device_ptr_mut(&self.stream);
        // SAFETY: as above.
        unsafe { self.broadcast_(from.unwrap_or(0), to, count, T::as_nccl_type(), root) }
    }

    /// The elements of `root` for all ranks, in place.
    ///
    /// # Errors
    /// What the library reports.
    pub fn broadcast_in_place<R: DevicePtrMut<T>, T: NcclType>(
        &self,
        recvbuff: &mut R,
        root: i32,
    ) -> Result<NcclStatus, NcclError> {
        let count = recvbuff.len();
        let (to, _order) = recvbuff.device_ptr_mut(&self.stream);
        // SAFETY: as above.
        unsafe { self.broadcast_(to, to, count, T::as_nccl_type(), root) }
    }

    /// The elements of all ranks, in their order, for all.
    ///
    /// # Errors
    /// If `recvbuff` is shorter than that, or what the library reports.
    pub fn all_gather<S: DevicePtr<T>, R: DevicePtrMut<T>, T: NcclType>(
        &self,
        sendbuff: &S,
        recvbuff: &mut R,
    ) -> Result<NcclStatus, NcclError> {
        holds(recvbuff.len(), sendbuff.len().checked_mul(self.world_size))?;
        let (from, _read) = sendbuff.device_ptr(&self.stream);
        let (to, _written) = recvbuff.device_ptr_mut(&self.stream);
        // SAFETY: as above.
        unsafe { self.all_gather_(from, to, sendbuff.len(), T::as_nccl_type()) }
    }

    /// The elements of all ranks in one, for all.
    ///
    /// # Errors
    /// If `recvbuff` is shorter, or what the library reports.
    pub fn all_reduce<S: DevicePtr<T>, R: DevicePtrMut<T>, T: NcclType>(
        &self,
        sendbuff: &S,
        recvbuff: &mut R,
        reduce_op: &ReduceOp,
    ) -> Result<NcclStatus, NcclError> {
        holds(recvbuff.len(), Some(sendbuff.len()))?;
        let (from, _read) = sendbuff.device_ptr(&self.stream);
        let (to, _written) = recvbuff.device_ptr_mut(&self.stream);
        // SAFETY: as above.
        unsafe { self.all_reduce_(from, to, sendbuff.len(), T::as_nccl_type(), *reduce_op) }
    }

    /// The elements of all ranks in one, for all, in place.
    ///
    /// # Errors
    /// What the library reports.
    pub fn all_reduce_in_place<R: DevicePtrMut<T>, T: NcclType>(
        &self,
        buff: &mut R,
        reduce_op: &ReduceOp,
    ) -> Result<NcclStatus, NcclError> {
        let count = buff.len();
        let (to, _order) = buff.device_ptr_mut(&self.stream);
        // SAFETY: as above.
        unsafe { self.all_reduce_(to, to, count, T::as_nccl_type(), *reduce_op) }
    }

    /// The elements of all ranks in one, for `root`, whose `recvbuff` must be there.
    ///
    /// # Errors
    /// If `recvbuff` is missing or shorter, or what the library reports.
    pub fn reduce<S: DevicePtr<T>, R: DevicePtrMut<T>, T: NcclType>(
        &self,
        sendbuff: &S,
        recvbuff: Option<&mut R>,
        reduce_op: &ReduceOp,
        root: i32,
    ) -> Result<NcclStatus, NcclError> {
        let count = sendbuff.len();
        self.root_has(root, recvbuff.as_deref().map(DeviceLen::of::<T, R>), count)?;
        let (from, _read) = sendbuff.device_ptr(&self.stream);
        let (to, _written) = recvbuff.map(|data| data.device_ptr_mut(&self.stream)).unzip();
        // SAFETY: as above.
        unsafe { self.reduce_(from, to.unwrap_or(0), count, T::as_nccl_type(), *reduce_op, root) }
    }

    /// The elements of all ranks in one, for `root`, in place.
    ///
    /// # Errors
    /// What the library reports.
    pub fn reduce_in_place<R: DevicePtrMut<T>, T: NcclType>(
        &self,
        recvbuff: &mut R,
        reduce_op: &ReduceOp,
        root: i32,
    ) -> Result<NcclStatus, NcclError> {
        let count = recvbuff.len();
        let (to, _order) = recvbuff.device_ptr_mut(&self.stream);
        // SAFETY: as above.
        unsafe { self.reduce_(to, to, count, T::as_nccl_type(), *reduce_op, root) }
    }

    /// The elements of all ranks in one, of which each rank gets its part.
    ///
    /// # Errors
    /// If `sendbuff` is shorter than the parts of all, or what the library reports.
    pub fn reduce_scatter<S: DevicePtr<T>, R: DevicePtrMut<T>, T: NcclType>(
        &self,
        sendbuff: &S,
        recvbuff: &mut R,
        reduce_op: &ReduceOp,
    ) -> Result<NcclStatus, NcclError> {
        let count = recvbuff.len();
        holds(sendbuff.len(), count.checked_mul(self.world_size))?;
        let (from, _read) = sendbuff.device_ptr(&self.stream);
        let (to, _written) = recvbuff.device_ptr_mut(&self.stream);
        // SAFETY: as above.
        unsafe { self.reduce_scatter_(from, to, count, T::as_nccl_type(), *reduce_op) }
    }

    /// Collects calls, of this and other parts, until the group is dropped.
    ///
    /// # Panics
    /// If the library does not start one.
    pub fn group(&self) -> Group<'_> {
        group_start().unwrap_or_else(|error| panic!("{error}"));
        Group { comm: self, order: Vec::new() }
    }

    /// Whether memory that `root` needs is there and long enough.
    fn root_has(&self, root: i32, len: Option<usize>, count: usize) -> Result<(), NcclError> {
        match len {
            None if usize::try_from(root) != Ok(self.rank) => Ok(()),
            len => holds(len.unwrap_or(0), Some(count).filter(|_| len.is_some())),
        }
    }
}

/// The length of what has one for several types of elements.
struct DeviceLen;

impl DeviceLen {
    fn of<T, S: crate::driver::DeviceSlice<T>>(slice: &S) -> usize {
        slice.len()
    }
}

macro_rules! raw {
    ($($name:ident = $call:ident($($arg:ident: $ty:ty = $as:expr),*);)*) => {
        /// The calls by address.
        impl Comm {$(
            /// # Safety
            /// Memory has the elements that the call reads or writes, on the queue's device, until it is done.
            unsafe fn $name(&self, $($arg: $ty),*) -> Result<NcclStatus, NcclError> {
                // SAFETY: as promised by the caller; the handle and the queue are live.
                unsafe { result::$call($($as,)* self.comm, self.queue()) }
            }
        )*}
    };
}

raw! {
    send_ = send(from: u64 = from as *const _, count: usize = count, ty: sys::ncclDataType_t = ty, peer: i32 = peer);
    recv_ = recv(to: u64 = to as *mut _, count: usize = count, ty: sys::ncclDataType_t = ty, peer: i32 = peer);
    broadcast_ = broadcast(
        from: u64 = from as *const _, to: u64 = to as *mut _, count: usize = count, ty: sys::ncclDataType_t = ty,
        root: i32 = root
    );
    all_gather_ = all_gather(
        from: u64 = from as *const _, to: u64 = to as *mut _, count: usize = count, ty: sys::ncclDataType_t = ty
    );
    all_reduce_ = all_reduce(
        from: u64 = from as *const _, to: u64 = to as *mut _, count: usize = count, ty: sys::ncclDataType_t = ty,
        op: ReduceOp = op.code()
    );
    reduce_ = reduce(
        from: u64 = from as *const _, to: u64 = to as *mut _, count: usize = count, ty: sys::ncclDataType_t = ty,
        op: ReduceOp = op.code(), root: i32 = root
    );
    reduce_scatter_ = reduce_scatter(
        from: u64 = from as *const _, to: u64 = to as *mut _, count: usize = count, ty: sys::ncclDataType_t = ty,
        op: ReduceOp = op.code()
    );
}

impl Drop for Comm {
    fn drop(&mut self) {
        // SAFETY: the handle is live, and used nowhere else any more. An error cannot be returned here.
        let _ = unsafe { result::comm_abort(self.comm) };
    }
}

/// Calls that are made as one when it is dropped: those of several parts in one thread, and several of one part.
///
/// They take views, whose memory is borrowed until then; so views are made before the group.
#[derive(Debug)]
pub struct Group<'a> {
    comm: &'a Comm,
    order: Vec<SyncOnDrop<'a>>,
}

impl Drop for Group<'_> {
    /// # Panics
    /// If one of the calls fails.
    fn drop(&mut self) {
        if let Err(error) = group_end()
            && !std::thread::panicking()
        {
            panic!("{error} ({})", result::last_error());
        }
    }
}

impl<'g> Group<'g> {
    /// The part that began it.
    pub fn comm(&self) -> &'g Comm {
        self.comm
    }

    fn reads<'s: 'g, T>(&mut self, view: CudaView<'s, T>) -> u64 {
        self.order.push(self.comm.stream.borrow_from(view.stream));
        view.address
    }

    fn writes<'r: 'g, T>(&mut self, view: CudaViewMut<'r, T>) -> u64 {
        self.order.push(self.comm.stream.borrow_from(view.stream));
        view.address
    }

    /// See [`Comm::send`].
    ///
    /// # Errors
    /// What the library reports.
    pub fn send<'s: 'g, T: NcclType>(&mut self, data: CudaView<'s, T>, peer: i32) -> Result<(), NcclError> {
        let (count, from) = (data.len(), self.reads(data));
        // SAFETY: the view has as many elements and is borrowed as long as the group; the guards order other queues.
        unsafe { self.comm.send_(from, count, T::as_nccl_type(), peer) }.map(drop)
    }

    /// See [`Comm::recv`].
    ///
    /// # Errors
    /// What the library reports.
    pub fn recv<'r: 'g, T: NcclType>(
        &mut self,
        buff: CudaViewMut<'r, T>,
        peer: i32,
    ) -> Result<NcclStatus, NcclError> {
        let (count, to) = (buff.len(), self.writes(buff));
        // SAFETY: as above.
        unsafe { self.comm.recv_(to, count, T::as_nccl_type(), peer) }
    }

    /// See [`Comm::broadcast`].
    ///
    /// # Errors
    /// If `sendbuff` is missing or shorter, or what the library reports.
    pub fn broadcast<'s: 'g, 'r: 'g, T: NcclType>(
        &mut self,
        sendbuff: Option<CudaView<'s, T>>,
        recvbuff: CudaViewMut<'r, T>,
        root: i32,
    ) -> Result<NcclStatus, NcclError> {
        let count = recvbuff.len();
        self.comm.root_has(root, sendbuff.as_ref().map(CudaView::len), count)?;
        let from = sendbuff.map_or(0, |view| self.reads(view));
        let to = self.writes(recvbuff);
        // SAFETY: as above.
        unsafe { self.comm.broadcast_(from, to, count, T::as_nccl_type(), root) }
    }

    /// See [`Comm::broadcast_in_place`].
    ///
    /// # Errors
    /// What the library reports.
    pub fn broadcast_in_place<'r: 'g, T: NcclType>(
        &mut self,
        recvbuff: CudaViewMut<'r, T>,
        root: i32,
    ) -> Result<NcclStatus, NcclError> {
        let (count, to) = (recvbuff.len(), self.writes(recvbuff));
        // SAFETY: as above.
        unsafe { self.comm.broadcast_(to, to, count, T::as_nccl_type(), root) }
    }

    /// See [`Comm::all_gather`].
    ///
    /// # Errors
    /// If `recvbuff` is shorter than what all send, or what the library reports.
    pub fn all_gather<'s: 'g, 'r: 'g, T: NcclType>(
        &mut self,
        sendbuff: CudaView<'s, T>,
        recvbuff: CudaViewMut<'r, T>,
    ) -> Result<NcclStatus, NcclError> {
        let count = sendbuff.len();
        holds(recvbuff.len(), count.checked_mul(self.comm.world_size))?;
        let (from, to) = (self.reads(sendbuff), self.writes(recvbuff));
        // SAFETY: as above.
        unsafe { self.comm.all_gather_(from, to, count, T::as_nccl_type()) }
    }

    /// See [`Comm::all_reduce`].
    ///
    /// # Errors
    /// If `recvbuff` is shorter, or what the library reports.
    pub fn all_reduce<'s: 'g, 'r: 'g, T: NcclType>(
        &mut self,
        sendbuff: CudaView<'s, T>,
        recvbuff: CudaViewMut<'r, T>,
        reduce_op: &ReduceOp,
    ) -> Result<NcclStatus, NcclError> {
        let count = sendbuff.len();
        holds(recvbuff.len(), Some(count))?;
        let (from, to) = (self.reads(sendbuff), self.writes(recvbuff));
        // SAFETY: as above.
        unsafe { self.comm.all_reduce_(from, to, count, T::as_nccl_type(), *reduce_op) }
    }

    /// See [`Comm::all_reduce_in_place`].
    ///
    /// # Errors
    /// What the library reports.
    pub fn all_reduce_in_place<'r: 'g, T: NcclType>(
        &mut self,
        buff: CudaViewMut<'r, T>,
        reduce_op: &ReduceOp,
    ) -> Result<NcclStatus, NcclError> {
        let (count, to) = (buff.len(), self.writes(buff));
        // SAFETY: as above.
        unsafe { self.comm.all_reduce_(to, to, count, T::as_nccl_type(), *reduce_op) }
    }

    /// See [`Comm::reduce`].
    ///
    /// # Errors
    /// If `recvbuff` is missing or shorter, or what the library reports.
    pub fn reduce<'s: 'g, 'r: 'g, T: NcclType>(
        &mut self,
        sendbuff: CudaView<'s, T>,
        recvbuff: Option<CudaViewMut<'r, T>>,
        reduce_op: &ReduceOp,
        root: i32,
    ) -> Result<NcclStatus, NcclError> {
        let count = sendbuff.len();
        self.comm.root_has(root, recvbuff.as_ref().map(CudaViewMut::len), count)?;
        let from = self.reads(sendbuff);
        let to = recvbuff.map_or(0, |view| self.writes(view));
        // SAFETY: as above.
        unsafe { self.comm.reduce_(from, to, count, T::as_nccl_type(), *reduce_op, root) }
    }

    /// See [`Comm::reduce_in_place`].
    ///
    /// # Errors
    /// What the library reports.
    pub fn reduce_in_place<'s: 'g, T: NcclType>(
        &mut self,
        recvbuff: CudaViewMut<'s, T>,
        reduce_op: &ReduceOp,
        root: i32,
    ) -> Result<NcclStatus, NcclError> {
        let (count, to) = (recvbuff.len(), self.writes(recvbuff));
        // SAFETY: as above.
        unsafe { self.comm.reduce_(to, to, count, T::as_nccl_type(), *reduce_op, root) }
    }

    /// See [`Comm::reduce_scatter`].
    ///
    /// # Errors
    /// If `sendbuff` is shorter than the parts of all, or what the library reports.
    pub fn reduce_scatter<'s: 'g, 'r: 'g, T: NcclType>(
        &mut self,
        sendbuff: CudaView<'s, T>,
        recvbuff: CudaViewMut<'r, T>,
        reduce_op: &ReduceOp,
    ) -> Result<NcclStatus, NcclError> {
        let count = recvbuff.len();
        holds(sendbuff.len(), count.checked_mul(self.comm.world_size))?;
        let (from, to) = (self.reads(sendbuff), self.writes(recvbuff));
        // SAFETY: as above.
        unsafe { self.comm.reduce_scatter_(from, to, count, T::as_nccl_type(), *reduce_op) }
    }
}
