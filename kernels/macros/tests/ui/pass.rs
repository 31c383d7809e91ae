use amdgpu_device::prelude::*;

pub trait Operation {
    fn apply(x: f32) -> f32;
}
pub struct Negate;
impl Operation for Negate {
    fn apply(x: f32) -> f32 {
        -x
    }
}

/// Two type parameters, twice.
#[amdgpu_kernel(name = "cast_{S}_{T}", S in [f32, f64], T in [u8, f8_e4m3: f8e4m3])]
#[amdgpu_kernel(name = "cast_{S}_{T}", S in [i64], T in [f16])]
pub unsafe fn cast<S: Scalar, T: Scalar>(count: usize, from: *const S, to: *mut T) {
    let _ = (count, from, to);
}

#[amdgpu_kernel(name = "{O}_{N}", O in [uneg: Negate], const N in [1, two: 1 + 1], launch(
    workgroup = [32, N, 1],
    max_workgroup = 64 * N,
    grid = [rows, (count + 1).div_ceil(N)],
    lds_bytes = 4 * N * 32,
))]
pub unsafe fn operation<O: Operation, const N: usize>(
    rows: u32,
    count: usize,
    #[len(rows * 2)] x: *mut f32,
) {
    let _ = (rows, count, x, O::apply(1.0));
}

/// Tensors with sizes of their own, and what must hold of them.
#[amdgpu_kernel]
pub unsafe fn tensors(
    #[value(x.numel())] numel: usize,
    rank: usize,
    sums: usize,
    #[tensors(x[..rank])]
    #[along(sums, of(x))]
    #[requires(x.along() <= numel || numel == 0, numel % const { size_of::<u32>() } == 0)]
    info: *const usize,
    x: *const u32,
    #[len(numel / x.along().max(1) * f32::DIGITS)]
    #[align(16)]
    out: *mut f32,
    #[promise("has what the kernel reads")] other: *const u8,
) {
    let _ = (numel, rank, sums, info, x, out, other);
}

/// How to blur.
#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
pub struct Blur {
    pub radius: u32,
    pub r#type: [Kind; 2],
}

#[derive(Clone, Copy, KernelArg)]
#[repr(C, align(8))]
pub struct Kind {
    pub on: bool,
}

pub type Alias = Blur;
pub type Real = f32;

/// Structures by value and in memory, under another name too, and a parameter with the name of the function.
#[amdgpu_kernel(name = "blur_{K}", K in [kinds: Kind, words: u32])]
pub unsafe fn blur<K: KernelArg>(blur: Alias, scale: Real, kind: K, kinds: *mut Kind) {
    let _ = (blur.r#type[0].on, scale, kind, kinds);
}

#[amdgpu_kernel]
pub fn plain(lds: u32) {
    let _ = lds;
}

#[amdgpu_kernel(launch(lds_bytes = 8 * lds.max(4)))]
pub fn sized(lds: u32) {
    let _ = lds;
}

fn main() {
    plain(1);
    sized(1);
}
