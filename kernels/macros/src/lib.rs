//! `#[amdgpu_kernel]`: makes named GPU kernels of one generic Rust function. Use it through `amdgpu_device`, which
//! re-exports it and has what its output refers to.

#![warn(unreachable_pub)]

use proc_macro::TokenStream;

mod attribute;
mod expand;
mod formula;
mod function;
mod instances;
mod json;
mod structure;

/// Makes a function a GPU kernel, or several: one for each combination of its generic parameters' instances.
///
/// ```
/// use amdgpu_device::prelude::*;
///
/// /// `out[i] = inp[i] · mul + add`
/// #[amdgpu_kernel(
///     name = "scale_{T}",
///     T in [f32, f64, f8_e4m3: f8e4m3],
///     launch(workgroup = 256, items = count),
/// )]
/// pub unsafe fn scale<T: Scalar>(
///     count: usize,
///     #[len(count)] inp: *const T,
///     #[len(count)] out: *mut T,
///     mul: T,
///     add: T,
/// ) {
///     global_stride(count, |i| unsafe {
///         out.add(i).write(inp.add(i).read().mul(mul).add(add));
///     });
/// }
/// ```
///
/// The function itself stays as it is, for the host too. For a GPU target each instance becomes an
/// `extern "gpu-kernel"` entry; for AMD GPUs a record of its signature joins it in the code object, from which
/// amdgpu-build generates the typed wrapper. Parameters are plain values (`KernelArg`), structures of them with
/// `#[derive(KernelArg)]`, and raw pointers to either.
///
/// # Keys
/// - `name = "…"`: name of the entry. `{T}` becomes the name of `T`'s instance. Default: the function's name.
/// - `T in [f32, name: Type]`: instances of the type parameter `T`. The text before a colon replaces the type's own
///   name in the kernel's name.
/// - `const N in [1, 2, name: 4]`: instances of the const parameter `N`.
/// - `launch(…)`: the geometry that the kernel asks for. It must be right under any other as well.
///   - `workgroup = 256` or `[x, y, z]`: lanes of a workgroup (default 256). Items are along x: lanes that differ in y
///     and z alone share theirs.
///   - `max_workgroup = 1024`: upper bound of lanes; the compiler relies on it, a larger launch is an error.
///   - `items_per_lane = 1`: items that one lane handles.
///   - `items = expr`: number of items; the grid is `ceil(items / (x × items_per_lane))`.
///   - `rows = expr`, instead of `items`: each workgroup is a row, and the kernel knows how many rows there are from
///     nothing else. A caller's grid must be that many workgroups, of any size.
///   - `columns = expr`, beside `rows`: items of a row. A workgroup then has only as many whole waves, up to `workgroup`, as
///     `columns / items_per_lane` lanes need, and short rows share one: see `#[by_row]`.
///   - `grid = [x, y, z]`: workgroups, instead of `items`.
///   - `lds_bytes = expr`: bytes of workgroup memory.
///
///   `workgroup`, `max_workgroup` and `items_per_lane` are constants and may use the generic parameters. `items`, `rows`, `columns`,
///   `grid`, `lds_bytes` and `#[len]` may use integer parameters, const parameters, integers, `+ - * / %`,
///   parentheses, the methods `div_ceil`, `min`, `max`, and `pointer.len()`, the number of elements that the caller
///   gave (a constant `lds_bytes` may be any constant).
///
/// Several `#[amdgpu_kernel]` on one function add up.
///
/// # Safety of kernels
/// The caller of a launch provides buffers that hold what the attributes and the layouts say, and that nothing else writes
/// meanwhile. The typed wrappers check it as far as the attributes go.
///
/// # On parameters
/// - `#[layout(numel, num_dims, of(a, b))]`: this pointer to `usize` has `num_dims` dimensions, then the strides (in
///   elements) of `a`, then those of `b`; null means that all are contiguous.
/// - `#[tensors(a[n, c], w[..rank])]`: this pointer to `usize` has the dimensions and then the strides (in elements) of the
///   tensor at `a`, then those of `w`. `a` has two dimensions; `w` has as many as the parameter `rank` says. A name that
///   two tensors have is one size. With `#[nullable]`, null means that a single tensor is contiguous.
/// - `#[along(rank, of(a))]`, beside `#[tensors(a[…])]`: behind these words are, for as many dimensions of `a` as the
///   parameter `rank` says, their sizes, and then the strides that they have in a contiguous tensor. The caller
///   of the launch says which dimensions they are.
/// - `#[value(expr)]`: what a typed launch passes for this integer, so that the caller does not have to.
/// - `#[len(expr)]`: the buffer must hold at least so many elements.
/// - `#[requires(a >= 1, a % b == 0 || c == 0)]`: what must hold of the arguments, or the kernel would go out of bounds.
/// - `#[align(16)]`: the address must be a multiple of so many bytes.
/// - `#[nullable]`: the pointer may be null.
/// - `#[by_row]`, of a kernel with `rows` and `columns`: the memory has a row of `columns` elements for each row of the launch, and
///   rows that need half a wave or less share a workgroup: each z of it is a row, and x times y, a power of two of no more than a
///   wave's lanes, are the lanes that it has. In such a kernel `Team::of_row` stands for these lanes. The rows that are left when
///   workgroups are full get a launch of their own, to which these pointers are moved.
/// - `#[promise("…")]`: what must hold of the memory that no one can check before the launch. The typed wrapper is unsafe
///   then, as it is where a pointer has neither a length nor a layout.
///
/// In `value`, `len` and `requires` the dimensions of tensors have their names, `a.numel()` is a tensor's number of
/// elements, `a.along()` that of the dimensions chosen by `along`, and paths of constants (`F::BYTES`) and `const { … }`
/// stand for numbers that the compiler knows. In `len` and `requires`, `grid.x` and `block.y` are the launch's
/// workgroups, and a workgroup's lanes.
#[proc_macro_attribute]
pub fn amdgpu_kernel(attribute: TokenStream, item: TokenStream) -> TokenStream {
    expand::kernel(attribute.into(), item.into()).into()
}

/// Makes a structure an argument of kernels, by value or as what a pointer points to.
///
/// ```
/// use amdgpu_device::prelude::*;
///
/// /// How to blur.
/// #[derive(Clone, Copy, KernelArg)]
/// #[repr(C)]
/// pub struct Blur {
///     /// Neighbours on each side.
///     pub radius: u32,
///     /// Of the neighbours, the nearest first.
///     pub weights: [f32; 4],
/// }
/// ```
///
/// amdgpu-build writes a structure of the same name, fields and layout beside the typed wrappers, which take it.
///
/// Fields are plain values, structures that derive `KernelArg`, and arrays of either. Pointers are arguments of their own, so that
/// lengths and layouts can be checked. Needed are `#[repr(C)]`, `Clone` and `Copy`, names for the fields and no generic
/// parameters.
#[proc_macro_derive(KernelArg)]
pub fn kernel_arg(item: TokenStream) -> TokenStream {
    structure::derive(item.into()).into()
}
