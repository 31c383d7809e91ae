//! Communication between emulated devices: between threads, in groups of one thread, and between processes, all types and operations
//! against a model on the host.
//!
//! Each test runs in a process of its own with four devices, since a process chooses its devices once. On GPUs
//! (`CANDLE_AMDGPU_DEVICE=cuda` or `hip`), what the library defines is tested, with as many ranks as there are GPUs.

use candle_amdgpu::{bf16, f8e4m3, f16};
use cudarc::driver::{CudaContext, CudaSlice, CudaStream, DeviceRepr, ValidAsZeroBits};
use cudarc::nccl::result::NcclError;
use cudarc::nccl::sys::{self, ncclResult_t};
use cudarc::nccl::{Comm, Id, NcclType, ReduceOp, group_end, group_start, result};
use std::env;
use std::ffi::c_char;
use std::fmt::Debug;
use std::process::{Child, Command};
use std::sync::Arc;
use std::thread;

type Error = Box<dyn std::error::Error + Send + Sync>;

const DEVICE: &str = "CANDLE_AMDGPU_DEVICE";
const FOUR: &str = "emulator:gfx1100,gfx1030,gfx90a,gfx1100";
/// Rank, number of ranks and id of a process.
const PART: &str = "NCCL_TEST_PART";

/// This program with the test of that name alone, on four devices.
fn alone(test: &str, part: Option<String>) -> Result<Child, Error> {
    let mut command = Command::new(env::current_exe()?);
    command.args(["--exact", test, "--nocapture"]).env_remove(PART);
    if !on_gpus() {
        command.env(DEVICE, FOUR);
    }
    Ok(command.envs(part.map(|part| (PART, part))).spawn()?)
}

/// Whether the devices are real.
fn on_gpus() -> bool {
    env::var(DEVICE).is_ok_and(|devices| devices == "cuda" || devices == "hip")
}

/// How many of these ranks there are devices for.
fn sizes(wanted: &[usize]) -> Result<Vec<usize>, Error> {
    let count = if on_gpus() { CudaContext::device_count()? } else { 4 };
    Ok(wanted.iter().copied().filter(|&size| size as i32 <= count).collect())
}

/// Runs a test of this crate's own operations on four emulated devices.
fn on_four(test: &str, body: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
    if on_gpus() {
        println!("skipped: the library decides");
        return Ok(());
    }
    on_all(test, body)
}

/// Runs a test on four devices, or on the GPUs that there are.
fn on_all(test: &str, body: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
    if on_gpus() {
        return body();
    }
    if env::var(DEVICE).is_ok_and(|devices| devices == FOUR) {
        return body();
    }
    assert!(alone(test, None)?.wait()?.success(), "{test} failed with four devices");
    Ok(())
}

fn stream(device: usize) -> Result<Arc<CudaStream>, Error> {
    Ok(CudaContext::new(device)?.new_stream()?)
}

/// One rank's part, on the device of that number.
fn comm(rank: usize, size: usize, id: Id) -> Result<Comm, Error> {
    Ok(Comm::from_rank(stream(rank)?, rank, size, id)?)
}

/// Runs a function for each rank, in a thread of its own.
fn ranks(size: usize, body: impl Fn(Comm) -> Result<(), Error> + Sync) -> Result<(), Error> {
    let id = Id::new()?;
    thread::scope(|scope| {
        let body = &body;
        let threads: Vec<_> =
            (0..size).map(|rank| scope.spawn(move || body(comm(rank, size, id)?))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no rank panics"))
    })
}

/// A type of elements, and its numbers in `f64`.
trait Element: NcclType + DeviceRepr + ValidAsZeroBits + Copy + PartialEq + Debug + Send + Sync {
    /// Whether the type is an integer, whose mean is rounded towards zero.
    const INTEGER: bool;
    /// A number that the type has.
    fn of(x: f64) -> Self;
}

macro_rules! elements {
    ($($ty:ident: $integer:literal, $x:ident => $of:expr;)*) => {$(
        impl Element for $ty {
            const INTEGER: bool = $integer;

            fn of($x: f64) -> $ty {
                $of
            }
        }
    )*};
}

elements! {
    i8: true, x => x as i8;
    u8: true, x => x as u8;
    i32: true, x => x as i32;
    u32: true, x => x as u32;
    i64: true, x => x as i64;
    u64: true, x => x as u64;
    f16: false, x => f16::from_f64(x);
    bf16: false, x => bf16::from_f64(x);
    f32: false, x => x as f32;
    f64: false, x => x;
    f8e4m3: false, x => f8e4m3::from_f64(x);
}

/// Elements of a rank: 0 to 2, whose sums, products and means over four ranks every type has.
fn numbers(rank: usize, count: usize) -> Vec<f64> {
    (0..count).map(|i| ((2 * i + 2 * rank + i * rank / 3) % 3) as f64).collect()
}

fn typed<T: Element>(numbers: &[f64]) -> Vec<T> {
    numbers.iter().map(|&x| T::of(x)).collect()
}

const OPS: [ReduceOp; 5] = [ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Max, ReduceOp::Min, ReduceOp::Avg];

/// What the elements of all ranks become.
fn model<T: Element>(size: usize, count: usize, op: ReduceOp) -> Vec<T> {
    let all: Vec<_> = (0..size).map(|rank| numbers(rank, count)).collect();
    let one = |i: usize| {
        let terms = all.iter().map(|numbers| numbers[i]);
        let sum: f64 = terms.clone().sum();
        T::of(match op {
            ReduceOp::Sum => sum,
            ReduceOp::Prod => terms.product(),
            ReduceOp::Max => terms.fold(f64::MIN, f64::max),
            ReduceOp::Min => terms.fold(f64::MAX, f64::min),
            ReduceOp::Avg if T::INTEGER => (sum / size as f64).trunc(),
            ReduceOp::Avg => sum / size as f64,
        })
    };
    (0..count).map(one).collect()
}

/// All operations of one type.
fn all_calls<T: Element>(comm: &Comm) -> Result<(), Error> {
    let (rank, size, stream) = (comm.rank(), comm.world_size(), comm.stream());
    let up = |data: &[T]| stream.clone_htod(data);
    let down = |data: &CudaSlice<T>| stream.clone_dtoh(data);
    for count in [1, 5, 2000] {
        let own = up(&typed(&numbers(rank, count)))?;
        let part = |rank: usize| typed::<T>(&numbers(rank, count));
        let root = size as i32 - 1;
        let is_root = rank == size - 1;
        for op in &OPS {
            let expected = model::<T>(size, count, *op);
            let mut out = stream.alloc_zeros::<T>(count)?;
            comm.all_reduce(&own, &mut out, op)?;
            assert_eq!(down(&out)?, expected, "{op:?} of {size} ranks");
            let mut in_place = own.try_clone()?;
            comm.all_reduce_in_place(&mut in_place, op)?;
            assert_eq!(down(&in_place)?, expected);

            let mut out = stream.alloc_zeros::<T>(count)?;
            comm.reduce(&own, is_root.then_some(&mut out), op, root)?;
            assert_eq!(down(&out)?, if is_root { expected } else { vec![T::of(0.0); count] });
            let mut in_place = own.try_clone()?;
            comm.reduce_in_place(&mut in_place, op, 0)?;
            let expected = if rank == 0 { model::<T>(size, count, *op) } else { part(rank) };
            assert_eq!(down(&in_place)?, expected);

            let long = up(&typed(&numbers(rank, size * count)))?;
            let mut out = stream.alloc_zeros::<T>(count)?;
            comm.reduce_scatter(&long, &mut out, op)?;
            assert_eq!(down(&out)?, model::<T>(size, size * count, *op)[rank * count..][..count]);
        }

        let mut all = stream.alloc_zeros::<T>(size * count)?;
        comm.all_gather(&own, &mut all)?;
        assert_eq!(down(&all)?, (0..size).flat_map(part).collect::<Vec<_>>());

        let mut out = stream.alloc_zeros::<T>(count)?;
        comm.broadcast(is_root.then_some(&own), &mut out, root)?;
        assert_eq!(down(&out)?, part(size - 1));
        let mut in_place = own.try_clone()?;
        comm.broadcast_in_place(&mut in_place, 0)?;
        assert_eq!(down(&in_place)?, part(0));

        // Around the ring, and to this rank itself.
        let (next, previous) = ((rank + 1) % size, (rank + size - 1) % size);
        let (mut from_previous, mut from_self) =
            (stream.alloc_zeros::<T>(count)?, stream.alloc_zeros::<T>(count)?);
        {
            let view = own.as_view();
            let (previous_view, self_view) = (from_previous.as_view_mut(), from_self.as_view_mut());
            let mut group = comm.group();
            group.send(view, next as i32)?;
            group.recv(previous_view, previous as i32)?;
            group.send(view, rank as i32)?;
            group.recv(self_view, rank as i32)?;
        }
        assert_eq!(down(&from_previous)?, part(previous));
        assert_eq!(down(&from_self)?, part(rank));
    }
    Ok(())
}

fn all_types(comm: &Comm) -> Result<(), Error> {
    all_calls::<i8>(comm)?;
    all_calls::<u8>(comm)?;
    all_calls::<i32>(comm)?;
    all_calls::<u32>(comm)?;
    all_calls::<i64>(comm)?;
    all_calls::<u64>(comm)?;
    all_calls::<f16>(comm)?;
    all_calls::<bf16>(comm)?;
    all_calls::<f32>(comm)?;
    all_calls::<f64>(comm)?;
    all_calls::<f8e4m3>(comm)
}

#[test]
fn threads_agree_with_the_model() -> Result<(), Error> {
    on_all("threads_agree_with_the_model", || {
        for size in sizes(&[1, 2, 4])? {
            ranks(size, |comm| all_types(&comm))?;
        }
        Ok(())
    })
}

#[test]
fn processes_agree_with_the_model() -> Result<(), Error> {
    let name = "processes_agree_with_the_model";
    if let Ok(part) = env::var(PART) {
        let [rank, size, id] = part.split(' ').collect::<Vec<_>>().try_into().map_err(|_| "three words")?;
        let mut internal = [0; 128];
        for (i, byte) in internal.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&id[2 * i..][..2], 16)? as c_char;
        }
        return all_types(&comm(rank.parse()?, size.parse()?, Id::uninit(internal))?);
    }
    for size in sizes(&[2, 4])? {
        let id = Id::new()?;
        let text: String = id.internal().iter().map(|&byte| format!("{:02x}", byte as u8)).collect();
        let children = (0..size).map(|rank| alone(name, Some(format!("{rank} {size} {text}"))));
        for mut child in children.collect::<Result<Vec<_>, _>>()? {
            assert!(child.wait()?.success(), "a process of {size} failed");
        }
    }
    Ok(())
}

#[test]
fn one_thread_has_several_ranks_in_a_group() -> Result<(), Error> {
    on_all("one_thread_has_several_ranks_in_a_group", || {
        for size in sizes(&[2, 4])? {
            let comms = Comm::from_devices((0..size).map(stream).collect::<Result<_, _>>()?)?;
            let mut sums = Vec::new();
            let mut parts = Vec::new();
            for comm in &comms {
                let stream = comm.stream();
                sums.push(stream.clone_htod(&typed::<f32>(&numbers(comm.rank(), 100)))?);
                parts.push((stream.clone_htod(&[comm.rank() as u32])?, stream.alloc_zeros::<u32>(size)?));
            }
            group_start()?;
            for (comm, (sum, (own, all))) in comms.iter().zip(sums.iter_mut().zip(&mut parts)) {
                comm.all_reduce_in_place(sum, &ReduceOp::Sum)?;
                // Groups nest.
                cudarc::group!({
                    comm.all_gather(own, all)?;
                });
            }
            group_end()?;
            for (comm, (sum, (_, all))) in comms.iter().zip(sums.iter().zip(&parts)) {
                assert_eq!(comm.stream().clone_dtoh(sum)?, model::<f32>(size, 100, ReduceOp::Sum));
                assert_eq!(comm.stream().clone_dtoh(all)?, (0..size as u32).collect::<Vec<_>>());
            }
        }
        Ok(())
    })
}

/// The sum of one element of each rank.
fn sum<T: Element>(elements: &[T]) -> Result<T, Error> {
    let result = std::sync::Mutex::new(None);
    ranks(elements.len(), |comm| {
        let stream = comm.stream();
        let mut data = stream.clone_htod(&[elements[comm.rank()]])?;
        comm.all_reduce_in_place(&mut data, &ReduceOp::Sum)?;
        let sum = stream.clone_dtoh(&data)?[0];
        let before = result.lock().expect("no rank panics").replace(sum);
        assert!(before.is_none_or(|before| before == sum), "all ranks have the same sum");
        Ok(())
    })?;
    let sum = result.into_inner().expect("no rank panics");
    Ok(sum.ok_or("there are ranks")?)
}

#[test]
fn sums_are_in_the_order_of_the_ranks_and_rounded_to_the_type_each() -> Result<(), Error> {
    on_four("sums_are_in_the_order_of_the_ranks_and_rounded_to_the_type_each", || {
        let half = |x: f32| f16::from_f32(x);
        // Above 2048 the type has even numbers only: 2049 becomes 2048, twice.
        assert_eq!(sum(&[half(2048.0), half(1.0), half(1.0)])?, half(2048.0));
        assert_eq!(sum(&[half(1.0), half(1.0), half(2048.0)])?, half(2050.0));
        assert_eq!(sum(&[half(60000.0), half(60000.0), half(-60000.0)])?, f16::INFINITY);
        let brain = |x: f32| bf16::from_f32(x);
        assert_eq!(sum(&[brain(256.0), brain(1.0), brain(1.0), brain(1.0)])?, brain(256.0));
        assert_eq!(sum(&[brain(1.0), brain(1.0), brain(1.0), brain(256.0)])?, brain(260.0));
        // 3 is half of the distance between 16 and 18, and 17 is not there.
        assert_eq!(sum(&[f8e4m3::from_f32(16.0), f8e4m3::from_f32(1.0)])?, f8e4m3::from_f32(16.0));
        assert_eq!(sum(&[16_777_216.0_f32, 1.0, 1.0])?, 16_777_216.0);
        assert_eq!(sum(&[200_u8, 100, 1])?, 45);
        assert_eq!(sum(&[i64::MAX, 1])?, i64::MIN);
        Ok(())
    })
}

fn is(error: &NcclError, result: ncclResult_t) {
    assert_eq!(error.0, result);
}

#[test]
fn calls_that_do_not_fit_are_errors_for_all() -> Result<(), Error> {
    on_four("calls_that_do_not_fit_are_errors_for_all", || {
        ranks(2, |comm| {
            let stream = comm.stream();
            let mut four = stream.alloc_zeros::<f32>(4)?;
            let mut two = stream.alloc_zeros::<f32>(2)?;
            // Another count.
            let data = if comm.rank() == 0 { &mut four } else { &mut two };
            is(&comm.all_reduce_in_place(data, &ReduceOp::Sum).unwrap_err(), ncclResult_t::ncclInvalidUsage);
            let text = result::last_error();
            assert!(text.contains("AllReduce (Sum) of 4 × ncclFloat32"), "{text}");
            assert!(text.contains("AllReduce (Sum) of 2 × ncclFloat32"), "{text}");
            // Another operation.
            let op = if comm.rank() == 0 { ReduceOp::Sum } else { ReduceOp::Max };
            is(&comm.all_reduce_in_place(&mut four, &op).unwrap_err(), ncclResult_t::ncclInvalidUsage);
            // Another type.
            let mut words = stream.alloc_zeros::<u32>(4)?;
            let error = match comm.rank() {
                0 => comm.all_reduce_in_place(&mut four, &ReduceOp::Sum),
                _ => comm.all_reduce_in_place(&mut words, &ReduceOp::Sum),
            };
            is(&error.unwrap_err(), ncclResult_t::ncclInvalidUsage);
            // And afterwards they communicate as before.
            comm.all_reduce_in_place(&mut four, &ReduceOp::Sum)?;
            Ok(())
        })
    })
}

#[test]
fn wrong_arguments_are_errors_at_once() -> Result<(), Error> {
    on_four("wrong_arguments_are_errors_at_once", || {
        ranks(2, |comm| {
            let stream = comm.stream();
            let four = stream.alloc_zeros::<f32>(4)?;
            let mut three = stream.alloc_zeros::<f32>(3)?;
            let invalid = |result: Result<_, NcclError>| {
                is(&result.map(drop).unwrap_err(), ncclResult_t::ncclInvalidArgument);
            };
            invalid(comm.all_reduce(&four, &mut three, &ReduceOp::Sum).map(drop));
            invalid(comm.all_gather(&four, &mut three).map(drop));
            invalid(comm.reduce_scatter(&four, &mut three, &ReduceOp::Sum).map(drop));
            invalid(comm.reduce(&four, Some(&mut three), &ReduceOp::Sum, comm.rank() as i32).map(drop));
            invalid(
                comm.reduce(&four, None::<&mut CudaSlice<f32>>, &ReduceOp::Sum, comm.rank() as i32).map(drop),
            );
            invalid(comm.broadcast(None::<&CudaSlice<f32>>, &mut three, comm.rank() as i32).map(drop));
            invalid(comm.broadcast_in_place(&mut three, 2).map(drop));
            invalid(comm.send(&four, -1).map(drop));
            Ok(())
        })?;
        is(&Comm::from_rank(stream(0)?, 2, 2, Id::new()?).unwrap_err(), ncclResult_t::ncclInvalidArgument);
        is(
            &Comm::from_rank(stream(0)?, 0, 1, Id::uninit([7; 128])).unwrap_err(),
            ncclResult_t::ncclInvalidArgument,
        );
        let twice = Comm::from_devices(vec![stream(1)?, stream(1)?]).unwrap_err();
        is(&twice, ncclResult_t::ncclInvalidUsage);
        assert!(result::last_error().contains("both on device 1"), "{}", result::last_error());
        Ok(())
    })
}

#[test]
fn a_rank_that_leaves_is_an_error_for_those_that_wait() -> Result<(), Error> {
    on_four("a_rank_that_leaves_is_an_error_for_those_that_wait", || {
        ranks(4, |comm| {
            let mut data = comm.stream().clone_htod(&[comm.rank() as u32])?;
            // What it sent before it leaves arrives.
            if comm.rank() == 3 {
                comm.send(&data, 0)?;
                return Ok(());
            }
            if comm.rank() == 0 {
                comm.recv(&mut data, 3)?;
                assert_eq!(comm.stream().clone_dtoh(&data)?, [3]);
            }
            let error = comm.all_reduce_in_place(&mut data, &ReduceOp::Sum).unwrap_err();
            is(&error, ncclResult_t::ncclRemoteError);
            Ok(())
        })
    })
}

#[test]
fn a_split_has_the_ranks_of_one_color_in_the_order_of_the_key() -> Result<(), Error> {
    on_four("a_split_has_the_ranks_of_one_color_in_the_order_of_the_key", || {
        let id = Id::new()?;
        let part = move |rank: usize| -> Result<(), Error> {
            let stream = stream(rank)?;
            let (mut whole, mut part) = (std::ptr::null_mut(), std::ptr::null_mut());
            // SAFETY: the handles are live until they are destroyed.
            unsafe {
                stream.context().bind_to_thread()?;
                let unique = sys::ncclUniqueId { internal: *id.internal() };
                result::comm_init_rank(&mut whole, 4, unique, rank as i32)?;
                assert_eq!(result::comm_cu_device(whole)?, rank as i32);
                // 0 and 2 are one part, 3 and 1 another, in this order.
                let color = (rank % 2) as i32;
                let key = if color == 0 { rank as i32 } else { -(rank as i32) };
                result::comm_split(whole, color, key, &mut part, std::ptr::null_mut())?;
                assert_eq!(result::comm_count(part)?, 2);
                assert_eq!(result::comm_user_rank(part)?, [0, 1, 1, 0][rank]);
                // Each adds its own multiple.
                let factor = 10_f32.powi(rank as i32);
                let mut op = sys::ncclRedOp_t::ncclSum;
                let (f32_, host) =
                    (sys::ncclDataType_t::ncclFloat32, sys::ncclScalarResidence_t::ncclScalarHostImmediate);
                let scalar = std::ptr::from_ref(&factor).cast_mut().cast();
                result::reduce_op_create_pre_mul_sum(&mut op, scalar, f32_, host, part)?;
                let data = stream.clone_htod(&[2_f32])?;
                let address = {
                    use cudarc::driver::DevicePtr;
                    data.device_ptr(&stream).0
                };
                let queue = stream.cu_stream().cast();
                result::all_reduce(address as *const _, address as *mut _, 1, f32_, op, part, queue)?;
                assert_eq!(stream.clone_dtoh(&data)?, [[202.0, 2020.0][rank % 2]]);
                result::reduce_op_destroy(op, part)?;
                assert!(result::reduce_op_destroy(op, part).is_err());
                // One that takes no part.
                let mut none = part;
                result::comm_split(part, if rank < 2 { -1 } else { 0 }, 0, &mut none, std::ptr::null_mut())?;
                assert_eq!(none.is_null(), rank < 2);
                if !none.is_null() {
                    assert_eq!(result::comm_count(none)?, 1);
                    result::comm_destroy(none)?;
                }
                result::comm_destroy(part)?;
                result::comm_destroy(whole)?;
            }
            Ok(())
        };
        thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|rank| scope.spawn(move || part(rank))).collect();
            threads.into_iter().try_for_each(|thread| thread.join().expect("no rank panics"))
        })
    })
}
