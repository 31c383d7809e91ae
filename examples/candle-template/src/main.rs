//! Fits the squared ReLU of a line to some points by gradient descent, with all that is computed on the device.

use candle_core::{Device, Result, Tensor, Var};

use my_kernels::activation::relu2;
use my_kernels::mix::approach;

fn main() -> Result<()> {
    println!("{}", candle_amdgpu::backend());
    let device = Device::new_cuda(0)?;
    let x = Tensor::new(&[-1.0_f32, 0.0, 0.5, 1.0, 1.5, 2.0], &device)?;
    let y = Tensor::new(&[0.0_f32, 0.25, 1.0, 2.25, 4.0, 6.25], &device)?;
    let slope = Var::new(0.3_f32, &device)?;
    let start = Var::new(0.1_f32, &device)?;
    // Follows the slope at a distance.
    let average = slope.as_tensor().copy()?;
    for step in 0..=60 {
        let line = x.broadcast_mul(&slope)?.broadcast_add(&start)?;
        let loss = (relu2(&line)? - &y)?.sqr()?.mean_all()?;
        if step % 20 == 0 {
            println!("step {step}: loss {:.5}", loss.to_scalar::<f32>()?);
        }
        let gradients = loss.backward()?;
        for var in [&slope, &start] {
            if let Some(gradient) = gradients.get(var) {
                var.set(&(var.as_tensor() - (gradient * 0.02)?)?)?;
            }
        }
        approach(&average, &slope, 0.1)?;
    }
    let [slope, average, start] =
        [slope.as_tensor(), &average, start.as_tensor()].map(Tensor::to_scalar::<f32>);
    println!(
        "y = max({:.3} x + {:.3}, 0)²; the average slope is {:.3}",
        slope?, start?, average?
    );
    Ok(())
}
