//! Structures as arguments, and in memory.

use amdgpu_device::prelude::*;

/// How [`blur`] weighs its neighbours.
#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
pub struct Blur {
    /// Neighbours on each side, at most 3.
    pub radius: u32,
    /// Of the element itself, then of its neighbours, the nearest first.
    pub weights: [f32; 4],
}

/// `out[i]` is the weighted sum of `inp[i]` and its neighbours; what is outside counts as 0.
///
/// # Safety
/// The memory is what the attributes say, and no one else writes it.
#[amdgpu_kernel(name = "blur_{T}", T in [f32, f16, bf16], launch(workgroup = 64, items = count))]
pub unsafe fn blur<T: Float>(
    count: usize,
    blur: Blur,
    #[len(count)] inp: *const T,
    #[len(count)] out: *mut T,
) {
    global_stride(count, |i| {
        let mut sum = 0.0;
        let mut distance = 0;
        while distance <= blur.radius as usize {
            let mut add = |at: usize| {
                if at < count {
                    // SAFETY: the index is below `count`
                    sum += unsafe { inp.add(at).read() }.to_f32() * blur.weights[distance & 3];
                }
            };
            add(i + distance);
            if distance > 0 {
                add(i.wrapping_sub(distance));
            }
            distance += 1;
        }
        // SAFETY: as above
        unsafe { out.add(i).write(T::from_f32(sum)) };
    });
}

/// A part of [`Mixed`], with padding at its end.
#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
pub struct Inner {
    /// Any number.
    pub wide: f64,
    /// Any number.
    pub half: f16,
    /// Whether it counts.
    pub on: bool,
}

/// Fields of many types, with padding between them.
#[derive(Clone, Copy, KernelArg)]
#[repr(C, align(16))]
pub struct Mixed {
    /// A byte, with seven of padding behind.
    pub byte: u8,
    /// Two structures.
    pub inner: [Inner; 2],
    /// A number below zero.
    pub short: i16,
    /// Any number.
    pub brain: bf16,
    /// Any number.
    pub tiny: f8e4m3,
    /// Any number.
    pub size: usize,
}

/// Two words: alone, the compiler would pass each for itself.
#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
pub struct Pair {
    /// The first.
    pub a: u32,
    /// The second.
    pub b: f32,
}

/// Writes each field, in order, between what stands before the structures and what stands after them. The structures are changed in
/// between, which no other work-item may see.
///
/// # Safety
/// The memory is what the attribute says, and no one else writes it.
#[amdgpu_kernel(launch(workgroup = 32, grid = [2, 1, 1]))]
pub unsafe fn fields(
    before: u8,
    mut mixed: Mixed,
    mut pair: Pair,
    after: u32,
    #[len(64 * 15)] out: *mut f64,
) {
    let [id, _] = amdgpu_device::id::global_2d();
    pair.a += id as u32;
    mixed.inner[id % 2].wide += id as f64;
    mixed.size += pair.a as usize;
    let [first, second] = mixed.inner;
    let flag = |on: bool| if on { 1.0 } else { 0.0 };
    let values = [
        before as f64,
        mixed.byte as f64,
        first.wide,
        first.half.to_f32() as f64,
        flag(first.on),
        second.wide,
        second.half.to_f32() as f64,
        flag(second.on),
        mixed.short as f64,
        mixed.brain.to_f32() as f64,
        mixed.tiny.to_f32() as f64,
        mixed.size as f64,
        pair.a as f64,
        pair.b as f64,
        after as f64,
    ];
    let mut i = 0;
    while i < 15 {
        // SAFETY: 15 numbers for each of the 64 work-items
        unsafe { out.add(id * 15 + i).write(values[i]) };
        i += 1;
    }
}

/// A body in a plane.
#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
pub struct Body {
    /// Where it is.
    pub at: [f32; 2],
    /// Where it goes, in one unit of time.
    pub velocity: [f32; 2],
}

/// Moves each body for `time`, and turns those around that have left the square of `side`.
///
/// # Safety
/// The memory is what the attribute says, and no one else writes it.
#[amdgpu_kernel(launch(workgroup = 64, items = count))]
pub unsafe fn step(count: usize, time: f32, side: f32, #[len(count)] bodies: *mut Body) {
    global_stride(count, |i| {
        // SAFETY: the index is below `count`
        let body = unsafe { &mut *bodies.add(i) };
        let mut axis = 0;
        while axis < 2 {
            body.at[axis] += body.velocity[axis] * time;
            if body.at[axis] < 0.0 || body.at[axis] > side {
                body.velocity[axis] = -body.velocity[axis];
            }
            axis += 1;
        }
    });
}
