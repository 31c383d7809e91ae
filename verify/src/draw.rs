//! What calls are made of, drawn at random or fixed.

use crate::reference::{Array, DType, Kind, Value};
use candle_amdgpu::{LaunchConfig, Layout};
use proptest::prelude::*;
use std::fmt;

/// Raw material of a call: proptest draws it and shrinks it.
#[derive(Clone, Debug)]
pub struct Draw {
    /// A layout of rank 0 to 6: contiguous, permuted, broadcast, with gaps, with an offset. Its number of elements
    /// is the size of the problem.
    pub layout: Layout,
    /// More layouts of the same shape, for further operands.
    pub others: [Layout; 2],
    /// Where memory begins, in elements after a multiple of 256 bytes; one for each operand.
    pub shifts: [usize; 4],
    /// For a kernel that can work in place.
    pub in_place: bool,
    /// Small numbers for any use by a family; they shrink towards 0.
    pub small: [usize; 8],
    /// What elements hold.
    pub values: Values,
    /// The geometry.
    pub grid: Grid,
}

/// The geometry that a call is launched with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grid {
    /// The kernel's own.
    Own,
    /// Candle's: a lane for each item, in workgroups of 1,024.
    Candle,
    /// Workgroups and their lanes, whatever the number of items.
    Odd {
        /// Workgroups.
        workgroups: u32,
        /// Lanes of each.
        lanes: u32,
    },
    /// One that the family chose.
    Explicit(LaunchConfig),
}

/// What elements hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// A mixture of all classes: zeros, subnormals, extremes, infinities, NaN, ordinary numbers, random bits.
    Seed(u64),
    /// Operands of 8- or 16-bit types take every value: the first one those of its bits in turn, the others in an order
    /// that pairs them with other values of the first, all pairs where two have 8 bits. Everything else as with a seed.
    Every(u64),
}

impl Draw {
    /// `numel` contiguous elements.
    pub fn flat(numel: usize, values: Values, grid: Grid) -> Draw {
        let layout = Layout::flat(numel);
        Draw {
            others: [layout.clone(), layout.clone()],
            layout,
            shifts: [0; 4],
            in_place: false,
            small: [0; 8],
            values,
            grid,
        }
    }

    /// Cases that always run: sizes that just fill waves and workgroups, a large one and, for a kernel that reads operands of
    /// 8 or 16 bits, every value of them; where it reads several (`short` says how many), in two orders.
    pub fn fixed(short: usize) -> Vec<Draw> {
        const SIZES: [usize; 18] =
            [0, 1, 2, 15, 31, 32, 33, 63, 64, 65, 255, 256, 257, 1023, 1024, 1025, 4099, 150_001];
        let sized = |(i, &n): (usize, &usize)| {
            let grid = if i % 2 == 0 { Grid::Own } else { Grid::Candle };
            Draw::flat(n, Values::Seed(i as u64), grid)
        };
        let mut draws: Vec<Draw> = SIZES.iter().enumerate().map(sized).collect();
        let orders = short.min(2) as u64;
        draws.extend((0..orders).map(|seed| Draw::flat(1 << 16, Values::Every(seed), Grid::Own)));
        draws
    }

    /// Random cases.
    pub fn strategy() -> impl Strategy<Value = Draw> {
        let layouts =
            shape().prop_flat_map(|shape| [layout(shape.clone()), layout(shape.clone()), layout(shape)]);
        let shifts = prop::array::uniform4(prop_oneof![Just(0_usize), 0..17_usize]);
        let small = prop::array::uniform8(0..33_usize);
        let seed = any::<u64>().no_shrink();
        (layouts, shifts, any::<bool>(), small, seed, grid()).prop_map(
            |([layout, a, b], shifts, in_place, small, seed, grid)| Draw {
                layout,
                others: [a, b],
                shifts,
                in_place,
                small,
                values: Values::Seed(seed),
                grid,
            },
        )
    }

    /// `len` elements for the operand of that number.
    pub fn array(&self, dtype: DType, len: usize, operand: u64) -> Array {
        let mut random = self.random(operand);
        match self.values {
            Values::Every(_) if dtype.bits() <= 16 => {
                // An odd factor and an offset permute the values of 16 bits.
                let (factor, offset) = (random.bits() | 1, random.bits());
                let bits = |i: usize| match operand {
                    0 => i as u64,
                    1 if dtype.bits() == 8 => (i >> 8) as u64,
                    _ => (i as u64).wrapping_mul(factor).wrapping_add(offset),
                };
                Array::from_fn(dtype, len, |i| Value::new(dtype, bits(i)))
            }
            _ => Array::from_fn(dtype, len, |_| random.value(dtype)),
        }
    }

    /// A single value.
    pub fn value(&self, dtype: DType, operand: u64) -> Value {
        self.random(operand).value(dtype)
    }

    /// Numbers that depend on this draw and on `operand` alone.
    pub fn random(&self, operand: u64) -> Random {
        let (Values::Seed(seed) | Values::Every(seed)) = self.values;
        Random(seed ^ operand.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }
}

/// Reproducible random numbers (SplitMix64; Steele, Lea, Flood 2014).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`, or 0.
    pub fn below(&mut self, limit: usize) -> usize {
        ((u128::from(self.bits()) * limit as u128) >> 64) as usize
    }

    /// A value of any class: a quarter special ones, a quarter random bits, half ordinary numbers.
    pub fn value(&mut self, dtype: DType) -> Value {
        match self.bits() % 4 {
            0 => self.special(dtype),
            1 => Value::new(dtype, self.bits()),
            _ if dtype.is_float() => {
                let unit = (self.bits() >> 11) as f64 / (1_u64 << 53) as f64;
                Value::from_f64(dtype, 8.0 * unit - 4.0)
            }
            _ => Value::from_int(dtype, self.below(201) as i128 - 100),
        }
    }

    /// A value at the edge of its type.
    fn special(&mut self, dtype: DType) -> Value {
        let top = 1_u64 << (dtype.bits() - 1);
        match dtype.kind() {
            Kind::Integer { .. } => {
                let edges = [0, 1, u64::MAX, top, top - 1, top + 1];
                Value::new(dtype, edges[self.below(edges.len())])
            }
            Kind::Float { mantissa, .. } => {
                let one = Value::from_f64(dtype, 1.0).bits();
                let infinity = Value::from_f64(dtype, f64::INFINITY).bits();
                let least_normal = 1 << mantissa;
                let edges = [
                    0,
                    1,
                    least_normal - 1,
                    least_normal,
                    one,
                    one + 1,
                    infinity - 1,
                    infinity,
                    infinity + 1,
                    Value::from_f64(dtype, f64::NAN).bits(),
                    top - 1,
                ];
                let sign = if self.bits() & 1 == 0 { 0 } else { top };
                Value::new(dtype, edges[self.below(edges.len())] | sign)
            }
        }
    }
}

impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Grid::Own => write!(f, "with its own geometry"),
            Grid::Candle => write!(f, "with a lane for each item in workgroups of 1024"),
            Grid::Odd { workgroups, lanes } => write!(f, "as {workgroups} workgroups of {lanes}"),
            Grid::Explicit(LaunchConfig::Explicit { grid, block, lds_bytes }) => {
                write!(f, "as {grid:?} workgroups of {block:?} lanes with {lds_bytes} bytes of LDS")
            }
            Grid::Explicit(_) => write!(f, "with its own geometry"),
        }
    }
}

fn grid() -> impl Strategy<Value = Grid> {
    prop_oneof![
        3 => Just(Grid::Own),
        2 => Just(Grid::Candle),
        1 => (1..6_u32, prop::sample::select(vec![1, 33, 64, 100, 256, 1000, 1024]))
            .prop_map(|(workgroups, lanes)| Grid::Odd { workgroups, lanes }),
    ]
}

/// Shapes of rank 0 to 6 with at most some thousand elements; a fifth are vectors of any length.
fn shape() -> impl Strategy<Value = Vec<usize>> {
    let dim = prop_oneof![
        1 => Just(0_usize),
        3 => Just(1),
        12 => 2..6_usize,
        3 => prop::sample::select(vec![7_usize, 8, 16, 31, 33, 64, 100]),
    ];
    prop_oneof![
        1 => (0..5000_usize).prop_map(|n| vec![n]),
        4 => prop::collection::vec(dim, 0..=6).prop_map(|mut shape| {
            while shape.iter().product::<usize>() > 6000 {
                shape.pop();
            }
            shape
        }),
    ]
}

/// How the elements of a shape lie.
#[derive(Clone, Copy, Debug)]
enum How {
    Contiguous,
    Permuted,
    Broadcast,
    Gaps,
}

fn layout(shape: Vec<usize>) -> impl Strategy<Value = Layout> {
    let how = prop_oneof![Just(How::Contiguous), Just(How::Permuted), Just(How::Broadcast), Just(How::Gaps),];
    (Just(shape), how, any::<u64>().no_shrink(), prop_oneof![Just(0_usize), 0..40_usize])
        .prop_map(|(shape, how, seed, offset)| lay_out(&shape, how, seed, offset))
}

fn lay_out(shape: &[usize], how: How, seed: u64, offset: usize) -> Layout {
    let mut random = Random(seed);
    let rank = shape.len();
    // Dimensions from the outermost in memory to the innermost.
    let mut order: Vec<usize> = (0..rank).collect();
    if matches!(how, How::Permuted) {
        for i in (1..rank).rev() {
            order.swap(i, random.below(i + 1));
        }
    }
    let mut strides = vec![0; rank];
    let mut next = 1;
    for &dim in order.iter().rev() {
        let repeated = matches!(how, How::Broadcast) && random.bits() & 1 == 0;
        if !repeated {
            strides[dim] = next;
            let gap = if matches!(how, How::Gaps) { random.below(3) } else { 0 };
            next *= shape[dim].max(1) + gap;
        }
    }
    Layout::new(shape, &strides, offset).expect("some thousand elements can be addressed")
}
