//! `is_I_T`, `gather_I_T`, `s_I_T`, `sa_I_T` and `ia_I_T`

use super::{Call, Draw, Expected, Family, Input, Operand, Random, Tolerance};
use crate::reference::indexing::{Place, Sizes, arrive, pick, place};
use crate::reference::{Array, DType, Value};
use candle_amdgpu::{Error, INDEXING, Kernel, Layout, Module};

pub(super) struct Indexing;

impl Family for Indexing {
    fn module(&self) -> &'static Module {
        &INDEXING
    }

    fn call(&self, kernel: &'static Kernel, draw: &Draw) -> Option<Call> {
        let operation = operation(kernel)?;
        let shape = Shape::of(operation, draw);
        let Sizes { left, source, target, right } = shape.sizes;
        let layouts = match operation {
            Operation::Select => vec![vec![shape.ids.clone()]],
            _ => vec![],
        };
        let indexed =
            if matches!(operation, Operation::Select | Operation::Gather) { source } else { target };
        let memory =
            |data, operand: usize| Some(Input::Memory(Operand { data, shift: draw.shifts[operand] }));
        Call::new(kernel, draw.grid, layouts, |name, dtype| {
            let number = |n: usize| Some(Input::Value(Value::from_int(dtype, n as i128)));
            match name {
                "ids" => {
                    let mut random = draw.random(7);
                    let wild = draw.small[3] > 24;
                    let id = |_| id(dtype, indexed, wild, &mut random);
                    memory(Array::from_fn(dtype, shape.ids.required_len(), id), 0)
                }
                "inp" => memory(draw.array(dtype, left * source * right, 1), 1),
                "out" => memory(draw.array(dtype, left * target * right, 2), 2),
                "numel" => number(left * target * right),
                "left_size" => number(left),
                "src_dim_size" => number(source),
                "dst_dim_size" => number(target),
                "right_size" => number(right),
                "ids_dim_size" => number(if matches!(operation, Operation::Add) { source } else { target }),
                _ => None,
            }
        })
    }

    fn expected(&self, call: &Call) -> Vec<Expected> {
        let Some(operation) = operation(call.kernel) else { return Vec::new() };
        let number = |name| call.value(name).to_int() as usize;
        let memory = |name| call.memory(name).expect("never null");
        let (ids, inp, out) = (memory("ids"), memory("inp"), memory("out"));
        let (left, right) = (number("left_size"), number("right_size"));
        let sizes = |source, target| Sizes { left, source, target, right };
        let add = |old, new| old + new;
        let data = match operation {
            Operation::Select => {
                let layout = &call.layouts[0][0];
                let places: Vec<usize> = layout.indices().collect();
                let id = |i| ids.get(places[i / right % places.len()]);
                pick(out, inp, sizes(number("src_dim_size"), places.len()), id)
            }
            Operation::Gather => {
                pick(out, inp, sizes(number("src_dim_size"), number("ids_dim_size")), |i| ids.get(i))
            }
            Operation::Scatter => {
                let sizes = sizes(number("src_dim_size"), number("dst_dim_size"));
                arrive(out, inp, sizes, |i| ids.get(i), |_, new| new)
            }
            Operation::ScatterAdd => {
                let sizes = sizes(number("src_dim_size"), number("dst_dim_size"));
                arrive(out, inp, sizes, |i| ids.get(i), add)
            }
            Operation::Add => {
                let (source, target) = (number("ids_dim_size"), number("dst_dim_size"));
                arrive(out, inp, sizes(source, target), |i| ids.get(i / right % source), add)
            }
        };
        // What is copied keeps its bits, a NaN's too.
        let adds = matches!(operation, Operation::ScatterAdd | Operation::Add);
        let tolerance = if adds { Tolerance::Exact } else { Tolerance::Bits };
        vec![Expected { arg: call.position("out"), data, tolerance }]
    }

    fn is_faulty(&self, call: &Call) -> bool {
        self.ids(call).any(|(_, id, size)| place(id, size) == Place::Outside)
    }

    fn is_fault(&self, call: &Call, error: &Error) -> bool {
        let Error::IndexOutOfRange { kernel, position, index, size } = error else { return false };
        let name = call.kernel.name.replace("f8_e4m3", "f8e4m3");
        let is_it = |(i, id, dim): (usize, Value, usize)| {
            place(id, dim) == Place::Outside
                && (i as u64, id.to_int() as i64, dim as u64) == (*position, *index, *size)
        };
        *kernel == name && self.ids(call).any(is_it)
    }
}

impl Indexing {
    /// Each id that a call follows, with its position and the size of the dimension that it is for.
    fn ids<'a>(&self, call: &'a Call) -> impl Iterator<Item = (usize, Value, usize)> + 'a {
        let number = |name| call.value(name).to_int() as usize;
        let ids = call.memory("ids").expect("never null");
        let (elements, size) = match operation(call.kernel) {
            Some(Operation::Select | Operation::Gather) => (number("numel"), number("src_dim_size")),
            Some(Operation::Add) => (number("left_size") * number("right_size"), number("dst_dim_size")),
            _ => (ids.len(), number("dst_dim_size")),
        };
        // Without elements nothing is launched.
        let places: Vec<usize> = match call.layouts.first() {
            _ if elements == 0 => Vec::new(),
            Some(layouts) => layouts[0].indices().collect(),
            None => (0..ids.len()).collect(),
        };
        places.into_iter().enumerate().map(move |(i, at)| (i, ids.get(at), size))
    }
}

#[derive(Clone, Copy)]
enum Operation {
    Select,
    Gather,
    Scatter,
    ScatterAdd,
    Add,
}

fn operation(kernel: &Kernel) -> Option<Operation> {
    Some(match kernel.name.split_once('_')?.0 {
        "is" => Operation::Select,
        "gather" => Operation::Gather,
        "s" => Operation::Scatter,
        "sa" => Operation::ScatterAdd,
        "ia" => Operation::Add,
        _ => return None,
    })
}

/// The sizes of a call, made of a draw.
struct Shape {
    sizes: Sizes,
    /// Of `index_select`'s ids; contiguous for the others.
    ids: Layout,
}

impl Shape {
    /// The draw's elements are those of the larger of the two tensors: of a shape that is a vector, split at random;
    /// otherwise its dimensions, one of which is indexed.
    fn of(operation: Operation, draw: &Draw) -> Shape {
        let shape = draw.layout.shape();
        // The largest draws are for kernels without a model of whole tensors.
        let shape = if let [n] = shape { &[(*n).min(20_000)] } else { shape };
        let [dim, other, split, ..] = draw.small;
        let product = |dims: &[usize]| dims.iter().product::<usize>();
        let (left, mut one, right) = match shape.len() {
            0 => (1, 1, 1),
            1 => {
                // Many elements are in many columns, or a lane of the emulator takes long.
                let right = if shape[0] > 6000 { 1024 } else { [1, 1, 4, 16, 32, 64, 129, 1024][split % 8] };
                let right = right.min(shape[0].max(1));
                (1 + dim % 3, shape[0] / right / (1 + dim % 3), right)
            }
            rank => {
                let at = dim % rank;
                (product(&shape[..at]), shape[at], product(&shape[at + 1..]))
            }
        };
        // The other dimension is of another size, and mostly so small that ids repeat.
        let two = [one, 1, 3, 16, 40, 67][split % 6].min(1 + 4 * other + one);
        let sizes = |source, target| Sizes { left, source, target, right };
        if matches!(operation, Operation::Select) {
            // The draw's own layout is the ids'.
            let ids = if product(shape) <= 600 { draw.layout.clone() } else { Layout::flat(one.min(600)) };
            let width = [1, 4, 16, 5][split % 4];
            one = ids.numel();
            return Shape { sizes: Sizes { left: 1 + dim % 3, source: two, target: one, right: width }, ids };
        }
        let ids = match operation {
            Operation::Add => one,
            _ => left * one * right,
        };
        let sizes = match operation {
            Operation::Gather => sizes(two, one),
            _ => sizes(one, two),
        };
        Shape { sizes, ids: Layout::flat(ids) }
    }
}

/// An id: an index of a dimension of `size`, now and then the one for nothing, and of `wild` ones also what is out of
/// range.
fn id(dtype: DType, size: usize, wild: bool, random: &mut Random) -> Value {
    let signed = matches!(dtype.kind(), crate::reference::Kind::Integer { signed: true });
    let nothing = (1_i128 << (dtype.bits() - u32::from(signed))) - 1;
    if random.below(16) == 0 || size == 0 && !wild {
        return Value::from_int(dtype, nothing);
    }
    if wild && random.below(16) == 0 {
        let edges = [size as i128, size as i128 + 1, -1, -(size as i128), nothing - 1, 1 << 40];
        return Value::from_int(dtype, edges[random.below(edges.len())]);
    }
    Value::from_int(dtype, (random.below(size) as i128).min(nothing - 1))
}
