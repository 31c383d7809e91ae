//! A small GPT and a small ResNet learn on the device as on the CPU.

use candle_amdgpu_models::training::{Curves, Network};
use candle_core::{DType, Device};

/// Both curves, and what is wrong with them.
fn curves(network: Network, dtype: DType, steps: usize) -> Curves {
    let device = Device::new_cuda(0).unwrap();
    let curves = Curves::new(network, dtype, &device, steps).unwrap();
    print!("{curves}");
    let wrong = curves.wrong();
    assert!(wrong.is_none(), "{network:?} in {dtype:?}: {}", wrong.unwrap());
    curves
}

#[test]
fn the_first_steps_of_a_gpt_are_the_cpus() {
    curves(Network::Gpt, DType::F32, 8);
}

#[test]
fn the_first_steps_of_a_resnet_are_the_cpus() {
    curves(Network::ResNet, DType::F32, 8);
}

#[test]
#[ignore = "takes minutes"]
fn two_hundred_steps_learn_as_on_the_cpu() {
    for network in [Network::Gpt, Network::ResNet] {
        for dtype in [DType::F32, DType::BF16] {
            curves(network, dtype, 200);
        }
    }
}
