//! Convolutions through cuDNN's names. With candle-core's feature `cudnn`, `cargo xtask test --full` runs them through Candle.

use cudarc::cudnn::sys::cudnnConvolutionFwdAlgo_t::CUDNN_CONVOLUTION_FWD_ALGO_GEMM;
use cudarc::cudnn::sys::cudnnConvolutionMode_t::{CUDNN_CONVOLUTION, CUDNN_CROSS_CORRELATION};
use cudarc::cudnn::sys::cudnnTensorFormat_t::{CUDNN_TENSOR_NCHW, CUDNN_TENSOR_NHWC};
use cudarc::cudnn::{ConvForward, Cudnn, CudnnError};
use cudarc::driver::{CudaContext, CudaSlice, CudaStream};
use std::sync::Arc;

type Error = Box<dyn std::error::Error>;

fn stream() -> Result<Arc<CudaStream>, Error> {
    Ok(CudaContext::new(0)?.default_stream())
}

/// A convolution of f32, with `factors` alpha and beta.
struct Conv {
    x: [i32; 4],
    strides: Option<[i32; 4]>,
    w: [i32; 4],
    y: [i32; 4],
    pad: [i32; 2],
    stride: [i32; 2],
    dilation: [i32; 2],
    factors: (f32, f32),
}

const SMALL: Conv = Conv {
    x: [1, 1, 3, 3],
    strides: None,
    w: [1, 1, 2, 2],
    y: [1, 1, 2, 2],
    pad: [0; 2],
    stride: [1; 2],
    dilation: [1; 2],
    factors: (1.0, 0.0),
};

impl Conv {
    fn run(&self, x: &[f32], w: &[f32]) -> Result<Vec<f32>, Error> {
        let stream = stream()?;
        let cudnn = Cudnn::new(stream.clone())?;
        let conv =
            cudnn.create_conv2d::<f32>(self.pad, self.stride, self.dilation, CUDNN_CROSS_CORRELATION)?;
        let x_like = match self.strides {
            Some(strides) => cudnn.create_4d_tensor_ex::<f32>(self.x, strides)?,
            None => cudnn.create_4d_tensor::<f32>(CUDNN_TENSOR_NCHW, self.x)?,
        };
        let w_like = cudnn.create_4d_filter::<f32>(CUDNN_TENSOR_NCHW, self.w)?;
        let y_like = cudnn.create_4d_tensor::<f32>(CUDNN_TENSOR_NCHW, self.y)?;
        let forward = ConvForward { conv: &conv, x: &x_like, w: &w_like, y: &y_like };
        let bytes = forward.get_workspace_size(forward.pick_algorithm()?)?;
        let mut workspace = stream.alloc_zeros::<u8>(bytes)?;
        let (x, w) = (stream.clone_htod(x)?, stream.clone_htod(w)?);
        let mut y = stream.clone_htod(&vec![9_f32; self.y.iter().product::<i32>() as usize])?;
        let algorithm = CUDNN_CONVOLUTION_FWD_ALGO_GEMM;
        // SAFETY: the memory is as large as the descriptors say.
        unsafe {
            forward.launch::<CudaSlice<u8>, _, _, _>(
                algorithm,
                Some(&mut workspace),
                self.factors,
                &x,
                &w,
                &mut y,
            )?;
        }
        Ok(stream.clone_dtoh(&y)?)
    }

    fn refused(&self) -> String {
        self.run(&[1.0; 64], &[1.0; 64]).expect_err("it is not offered").to_string()
    }
}

#[test]
fn convolutions_have_the_values_of_their_definition() -> Result<(), Error> {
    let x: Vec<f32> = (1..=9_u8).map(f32::from).collect();
    assert_eq!(SMALL.run(&x, &[1.0, 2.0, 3.0, 4.0])?, [37.0, 47.0, 67.0, 77.0]);
    // The image on its side, by its strides.
    let turned = Conv { strides: Some([9, 9, 1, 3]), ..SMALL };
    assert_eq!(turned.run(&x, &[1.0, 2.0, 3.0, 4.0])?, [35.0, 65.0, 45.0, 75.0]);
    let padded = Conv { pad: [1; 2], stride: [2; 2], ..SMALL };
    assert_eq!(padded.run(&x, &[1.0, 2.0, 3.0, 4.0])?, [4.0, 18.0, 36.0, 77.0]);
    let wide = Conv { y: [1, 1, 1, 1], dilation: [2; 2], ..SMALL };
    assert_eq!(wide.run(&x, &[1.0, 2.0, 3.0, 4.0])?, [1.0 + 6.0 + 21.0 + 36.0]);
    // In one dimension, the way that Candle asks for it.
    let line =
        Conv { x: [1, 1, 9, 1], w: [1, 1, 2, 1], y: [1, 1, 5, 1], pad: [1, 0], stride: [2, 1], ..SMALL };
    assert_eq!(line.run(&x, &[1.0, 10.0])?, [10.0, 32.0, 54.0, 76.0, 98.0]);
    // Sums over no channels, and results without elements.
    let none = Conv { x: [1, 0, 3, 3], w: [1, 0, 2, 2], ..SMALL };
    assert_eq!(none.run(&[], &[])?, [0.0; 4]);
    assert!(Conv { x: [0, 1, 3, 3], y: [0, 1, 2, 2], ..SMALL }.run(&[], &[1.0; 4])?.is_empty());
    Ok(())
}

#[test]
fn what_there_is_no_kernel_for_is_an_error_that_says_so() -> Result<(), Error> {
    let says = |error: String, what: &str| {
        assert!(error.contains("candle-amdgpu's cudarc") && error.contains(what), "{error}");
    };
    says(Conv { factors: (2.0, 0.0), ..SMALL }.refused(), "factors 2 and 0");
    says(Conv { factors: (1.0, 1.0), ..SMALL }.refused(), "factors 1 and 1");
    says(Conv { y: [1, 1, 3, 2], ..SMALL }.refused(), "sizes do not fit");
    says(Conv { w: [1, 2, 2, 2], ..SMALL }.refused(), "sizes do not fit");
    says(Conv { stride: [1, 2], y: [1, 1, 2, 1], ..SMALL }.refused(), "differ in height and width");
    says(Conv { x: [1, 1, -3, 3], ..SMALL }.refused(), "include -3");
    says(Conv { stride: [0, 0], ..SMALL }.refused(), "a stride of 0");
    let cudnn = Cudnn::new(stream()?)?;
    let refused = |error: Option<CudnnError>| error.expect("it is not offered").to_string();
    says(refused(cudnn.create_4d_tensor::<f32>(CUDNN_TENSOR_NHWC, [1; 4]).err()), "CUDNN_TENSOR_NHWC");
    says(refused(cudnn.create_conv2d::<f32>([0; 2], [1; 2], [1; 2], CUDNN_CONVOLUTION).err()), "mirrored");
    Ok(())
}
