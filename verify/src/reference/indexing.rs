//! Indexing: elements picked by ids, and written or added where ids say, one after the other.

use super::{Array, Value};

/// What an id asks for, in a dimension of `size`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// This index.
    At(usize),
    /// Nothing: the largest value of the ids' type.
    Nothing,
    /// An index out of range, which is reported; nothing is read or written.
    Outside,
}

/// What an id asks for.
pub fn place(id: Value, size: usize) -> Place {
    let signed = matches!(id.dtype().kind(), super::Kind::Integer { signed: true });
    let bits = id.dtype().bits() - u32::from(signed);
    match id.to_int() {
        index if index == (1_i128 << bits) - 1 => Place::Nothing,
        index if index >= 0 && index < size as i128 => Place::At(index as usize),
        _ => Place::Outside,
    }
}

/// Sizes of a tensor (left, dim, right) around the dimension that is indexed.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Product of the dimensions before.
    pub left: usize,
    /// The dimension of what is read.
    pub source: usize,
    /// The dimension of what is written.
    pub target: usize,
    /// Product of the dimensions after.
    pub right: usize,
}

/// `out` after `out[l, k, r] = inp[l, id(l, k, r), r]`; `id` is given the number of the element of `out`.
pub fn pick(out: &Array, inp: &Array, sizes: Sizes, id: impl Fn(usize) -> Value) -> Array {
    let Sizes { left, source, target, right } = sizes;
    let mut out = out.clone();
    for i in 0..left * target * right {
        let (pre, post) = (i / (target * right), i % right);
        match place(id(i), source) {
            Place::At(index) => out.set(i, inp.get((pre * source + index) * right + post)),
            Place::Nothing => out.set(i, Value::new(out.dtype(), 0)),
            Place::Outside => {}
        }
    }
    out
}

/// `out` after `out[l, id(l, j, r), r] = arrive(out[…], inp[l, j, r])` for each element of `inp` in order; `id` is given
/// its number.
pub fn arrive(
    out: &Array,
    inp: &Array,
    sizes: Sizes,
    id: impl Fn(usize) -> Value,
    arrive: impl Fn(Value, Value) -> Value,
) -> Array {
    let Sizes { left, source, target, right } = sizes;
    let mut out = out.clone();
    for i in 0..left * source * right {
        let (pre, post) = (i / (source * right), i % right);
        if let Place::At(index) = place(id(i), target) {
            let at = (pre * target + index) * right + post;
            out.set(at, arrive(out.get(at), inp.get(i)));
        }
    }
    out
}
