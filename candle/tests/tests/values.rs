//! Each operation of Candle's tensor API, on the device and on the CPU.

use candle_amdgpu_tests::{check, ops};

#[test]
fn affine() {
    check(&ops::elementwise::affine());
}

#[test]
fn functions_of_one_tensor() {
    check(&ops::elementwise::unary());
}

#[test]
fn functions_of_two_tensors() {
    check(&ops::elementwise::binary());
}

#[test]
fn comparisons() {
    check(&ops::elementwise::compare());
}

#[test]
fn selections() {
    check(&ops::elementwise::select());
}

#[test]
fn conversions() {
    check(&ops::elementwise::cast());
}

#[test]
fn constants_and_copies() {
    check(&ops::elementwise::fill());
}

#[test]
fn products_of_matrices() {
    check(&ops::matmul::ops());
}

#[test]
fn elements_by_their_numbers() {
    check(&ops::indexing::ops());
}

#[test]
fn reductions() {
    check(&ops::reduce::ops());
}

#[test]
fn norms_softmax_and_rotary_embeddings() {
    check(&ops::reduce::nn());
}

#[test]
fn convolutions_pools_and_upsampling() {
    check(&ops::conv::ops());
}

#[test]
fn sorts() {
    check(&ops::sort::ops());
}
