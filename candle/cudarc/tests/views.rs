//! Parts of device memory, and memory as elements of another type, by cudarc's names.

use cudarc::cublas::sys::cublasOperation_t::{CUBLAS_OP_N, CUBLAS_OP_T};
use cudarc::cublas::{CudaBlas, Gemv, GemvConfig};
use cudarc::driver::{CudaContext, CudaStream};
use std::sync::Arc;

type Error = Box<dyn std::error::Error>;

fn stream() -> Result<Arc<CudaStream>, Error> {
    Ok(CudaContext::new(0)?.new_stream()?)
}

#[test]
fn memory_is_split_into_parts() -> Result<(), Error> {
    let stream = stream()?;
    let mut slice = stream.memcpy_stod(&[0_u32, 1, 2, 3, 4, 5])?;
    let (first, second) = slice.split_at(2);
    assert_eq!((stream.memcpy_dtov(&first)?, stream.memcpy_dtov(&second)?), (vec![0, 1], vec![2, 3, 4, 5]));
    let (third, fourth) = second.split_at(4);
    assert_eq!((third.len(), fourth.len()), (4, 0));
    assert!(slice.try_split_at(7).is_none() && second.try_split_at(5).is_none());
    let (first, mut second) = slice.split_at_mut(2);
    assert!(second.try_split_at_mut(5).is_none());
    let (mut low, high) = second.split_at_mut(2);
    stream.memcpy_dtod(&high, &mut low)?;
    stream.memcpy_dtod(&first.into_view(), &mut second.slice_mut(2..))?;
    assert_eq!(stream.clone_dtoh(&second.slice(1..))?, [5, 0, 1]);
    assert_eq!(stream.clone_dtoh(&slice)?, [0, 1, 4, 5, 0, 1]);
    let sums: Vec<u32> = slice
        .as_view()
        .chunks_exact(2)
        .map(|pair| Ok(stream.clone_dtoh(&pair)?.iter().sum()))
        .collect::<Result<_, Error>>()?;
    assert_eq!(sums, [1, 9, 1]);
    for (i, mut pair) in slice.as_view_mut().chunks_exact_mut(3).enumerate() {
        stream.memcpy_htod(&[i as u32; 2], &mut pair)?;
    }
    assert_eq!(stream.clone_dtoh(&slice)?, [0, 0, 4, 1, 1, 1]);
    assert!(stream.null::<f64>()?.is_empty());
    Ok(())
}

#[test]
#[should_panic(expected = "there must be no rest")]
fn parts_of_equal_size_have_no_rest() {
    let slice = stream().unwrap().clone_htod(&[0_u8; 5]).unwrap();
    assert_eq!(slice.as_view().chunks_exact(2).count(), 2);
}

#[test]
fn memory_is_read_and_written_as_another_type_if_it_is_large_enough() -> Result<(), Error> {
    let stream = stream()?;
    let mut slice = stream.clone_htod(&[1.0_f32, 2.0, 3.0])?;
    // SAFETY: all bytes are numbers of either type.
    unsafe {
        let bits = slice.transmute::<u32>(3).expect("as many bytes");
        assert_eq!(stream.clone_dtoh(&bits)?, [1.0_f32, 2.0, 3.0].map(f32::to_bits));
        assert_eq!(stream.clone_dtoh(&slice.slice(1..).transmute::<u64>(1).expect("8 bytes"))?.len(), 1);
        assert!(slice.transmute::<u64>(2).is_none() && slice.transmute::<u8>(13).is_none());
        assert!(slice.transmute::<u64>(usize::MAX).is_none());
        let mut bytes = slice.transmute_mut::<u8>(4).expect("fewer bytes");
        stream.memcpy_htod(&4.0_f32.to_ne_bytes(), &mut bytes)?;
        let mut half = slice.as_view_mut();
        assert!(half.transmute_mut::<u16>(7).is_none() && half.transmute::<u16>(6).is_some());
    }
    assert_eq!(stream.clone_dtoh(&slice)?, [4.0, 2.0, 3.0]);
    Ok(())
}

#[test]
fn a_matrix_multiplies_a_vector_with_distances() -> Result<(), Error> {
    let stream = stream()?;
    let mut blas = CudaBlas::new(stream.clone())?;
    // Two rows and three columns, of which one has a row more in memory; each second number of x and each third of y.
    let a = stream.clone_htod(&[1.0_f32, 4.0, 9.0, 2.0, 5.0, 9.0, 3.0, 6.0, 9.0])?;
    let x = stream.clone_htod(&[1.0_f32, 9.0, 2.0, 9.0, 3.0, 9.0])?;
    let mut y = stream.clone_htod(&[10.0_f32, 0.0, 0.0, 20.0, 0.0, 0.0, 30.0])?;
    let config =
        GemvConfig { trans: CUBLAS_OP_N, m: 2, n: 3, alpha: 2.0, lda: 3, incx: 2, beta: 0.5, incy: 3 };
    // SAFETY: the operands are as large.
    unsafe { blas.gemv(config, &a, &x, &mut y)? };
    assert_eq!(stream.clone_dtoh(&y)?, [33.0, 0.0, 0.0, 74.0, 0.0, 0.0, 30.0]);
    let config = GemvConfig { trans: CUBLAS_OP_T, alpha: 1.0, beta: 0.0, ..config };
    // SAFETY: as above; its own queue is a new one.
    unsafe {
        blas.set_stream(None)?;
        stream.synchronize()?;
        blas.gemv(config, &a, &x, &mut y)?;
    }
    assert_eq!(stream.clone_dtoh(&y)?, [9.0, 0.0, 0.0, 12.0, 0.0, 0.0, 15.0]);
    Ok(())
}
