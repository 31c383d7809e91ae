//! Quantized matrices: the formats, element by element as the GGUF specification has them, and products with the exact
//! sums of integers that kernels form.

use super::{DType, Value};

/// A quantized format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the formats")]
pub enum Format {
    Q4_0,
    Q4_1,
    Q5_0,
    Q5_1,
    Q8_0,
    Q8_1,
    Q2K,
    Q3K,
    Q4K,
    Q5K,
    Q6K,
    Q8K,
}

/// An element: `scale · quant − minimum`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Element {
    /// Factor of the quant: a product of two fields of the block, exact in f64.
    pub scale: f64,
    /// What is subtracted, also exact.
    pub minimum: f64,
    /// The quant with its sign.
    pub quant: i32,
}

impl Element {
    /// The value, rounded once to f32.
    pub fn to_f32(self) -> f32 {
        (self.scale * f64::from(self.quant) - self.minimum) as f32
    }
}

impl Format {
    /// All formats.
    pub const ALL: [Format; 12] = [
        Format::Q4_0,
        Format::Q4_1,
        Format::Q5_0,
        Format::Q5_1,
        Format::Q8_0,
        Format::Q8_1,
        Format::Q2K,
        Format::Q3K,
        Format::Q4K,
        Format::Q5K,
        Format::Q6K,
        Format::Q8K,
    ];

    /// The name in lower case, as in kernels' names: `q4_0`, `q4_k`.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Q4_0 => "q4_0",
            Format::Q4_1 => "q4_1",
            Format::Q5_0 => "q5_0",
            Format::Q5_1 => "q5_1",
            Format::Q8_0 => "q8_0",
            Format::Q8_1 => "q8_1",
            Format::Q2K => "q2_k",
            Format::Q3K => "q3_k",
            Format::Q4K => "q4_k",
            Format::Q5K => "q5_k",
            Format::Q6K => "q6_k",
            Format::Q8K => "q8_k",
        }
    }

    /// Elements of a block.
    pub const fn elements(self) -> usize {
        match self {
            Format::Q4_0 | Format::Q4_1 | Format::Q5_0 | Format::Q5_1 | Format::Q8_0 | Format::Q8_1 => 32,
            _ => 256,
        }
    }

    /// Bytes of a block.
    pub const fn bytes(self) -> usize {
        match self {
            Format::Q4_0 => 18,
            Format::Q4_1 => 20,
            Format::Q5_0 => 22,
            Format::Q5_1 => 24,
            Format::Q8_0 => 34,
            Format::Q8_1 => 36,
            Format::Q2K => 84,
            Format::Q3K => 110,
            Format::Q4K => 144,
            Format::Q5K => 176,
            Format::Q6K => 210,
            Format::Q8K => 292,
        }
    }

    /// Whether elements have a minimum.
    pub const fn has_minimum(self) -> bool {
        matches!(self, Format::Q4_1 | Format::Q5_1 | Format::Q2K | Format::Q4K | Format::Q5K)
    }

    /// How much larger the unsigned quants of a block are than their values, for the format whose products are formed with
    /// the unsigned ones.
    const fn offset(self) -> i32 {
        if matches!(self, Format::Q4_0) { 8 } else { 0 }
    }

    /// How many neighbouring elements share scale and minimum.
    pub const fn shared(self) -> usize {
        match self {
            Format::Q2K | Format::Q3K | Format::Q6K => 16,
            _ => 32,
        }
    }

    /// Where a block has f16 fields. (q8_K has an f32 at 0 instead.)
    pub const fn halves(self) -> &'static [usize] {
        match self {
            Format::Q4_0 | Format::Q5_0 | Format::Q8_0 => &[0],
            Format::Q4_1 | Format::Q5_1 | Format::Q8_1 | Format::Q4K | Format::Q5K => &[0, 2],
            Format::Q2K => &[80, 82],
            Format::Q3K => &[108],
            Format::Q6K => &[208],
            Format::Q8K => &[],
        }
    }

    /// Element `i` of a block.
    ///
    /// # Panics
    /// If the block is shorter than [`bytes`](Self::bytes), or `i` is not below [`elements`](Self::elements).
    pub fn element(self, block: &[u8], i: usize) -> Element {
        assert!(i < self.elements());
        let half = |at: usize| {
            Value::new(DType::F16, u16::from_le_bytes([block[at], block[at + 1]]).into()).to_f64()
        };
        // A nibble of 16 bytes at `at`: the low one of byte i for the first 16 elements, then the high ones.
        let nibble = |at: usize| i32::from(block[at + i % 16] >> (4 * (i / 16)) & 15);
        let bit = |at: usize, bit: usize| i32::from(block[at + bit / 8] >> (bit % 8) & 1);
        let signed = |at: usize| i32::from(block[at] as i8);
        match self {
            Format::Q4_0 => Element { scale: half(0), minimum: 0.0, quant: nibble(2) - 8 },
            Format::Q4_1 => Element { scale: half(0), minimum: -half(2), quant: nibble(4) },
            Format::Q5_0 => {
                Element { scale: half(0), minimum: 0.0, quant: (nibble(6) | bit(2, i) << 4) - 16 }
            }
            Format::Q5_1 => Element { scale: half(0), minimum: -half(2), quant: nibble(8) | bit(4, i) << 4 },
            Format::Q8_0 => Element { scale: half(0), minimum: 0.0, quant: signed(2 + i) },
            Format::Q8_1 => Element { scale: half(0), minimum: 0.0, quant: signed(4 + i) },
            Format::Q2K => {
                let both = block[i / 16];
                let quant = i32::from(block[16 + i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3);
                let minimum = half(82) * f64::from(both >> 4);
                Element { scale: half(80) * f64::from(both & 15), minimum, quant }
            }
            Format::Q3K => {
                let low = i32::from(block[32 + i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3);
                let high = i32::from(block[i % 32] >> (i / 32) & 1);
                let scale = i / 16;
                let four = block[96 + scale % 8] >> (scale / 8 * 4) & 15;
                let two = block[104 + scale % 4] >> (scale / 4 * 2) & 3;
                let scale = f64::from(four | two << 4) - 32.0;
                Element { scale: half(108) * scale, minimum: 0.0, quant: (low | high << 2) - 4 }
            }
            Format::Q4K | Format::Q5K => {
                let (scale, minimum) = six_bits(&block[4..16], i / 32);
                let nibbles = if self == Format::Q4K { 16 } else { 48 };
                let mut quant = i32::from(block[nibbles + i / 64 * 32 + i % 32] >> (i % 64 / 32 * 4) & 15);
                if self == Format::Q5K {
                    quant |= i32::from(block[16 + i % 32] >> (i / 32) & 1) << 4;
                }
                let minimum = half(2) * f64::from(minimum);
                Element { scale: half(0) * f64::from(scale), minimum, quant }
            }
            Format::Q6K => {
                let low = block[i / 128 * 64 + i % 64] >> (i % 128 / 64 * 4) & 15;
                let high = block[128 + i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
                let scale = half(208) * f64::from(signed(192 + i / 16));
                Element { scale, minimum: 0.0, quant: i32::from(low | high << 4) - 32 }
            }
            Format::Q8K => {
                let d = f32::from_le_bytes([block[0], block[1], block[2], block[3]]);
                Element { scale: d.into(), minimum: 0.0, quant: signed(4 + i) }
            }
        }
    }

    /// The elements of consecutive blocks.
    pub fn dequantize(self, blocks: &[u8]) -> Vec<Element> {
        let blocks = blocks.chunks_exact(self.bytes());
        blocks.flat_map(|block| (0..self.elements()).map(|i| self.element(block, i))).collect()
    }
}

/// Scale and minimum of group `group` of 32, from q4_K's and q5_K's 12 bytes.
fn six_bits(bytes: &[u8], group: usize) -> (u8, u8) {
    if group < 4 {
        (bytes[group] & 63, bytes[group + 4] & 63)
    } else {
        let low = bytes[group + 4];
        (low & 15 | bytes[group - 4] >> 6 << 4, low >> 4 | bytes[group] >> 6 << 4)
    }
}

/// A block of q8_1 of 32 values, in the arithmetic of the kernel: `d = max|x| / 127`, the quants are `x / d`, rounded
/// half away from zero and saturated, a NaN becomes 0; the sum is one of f32 in a fixed order.
pub fn quantize_q8_1(values: &[f32; 32]) -> [u8; 36] {
    let largest = values.iter().fold(0.0_f32, |m, x| if x.abs() > m { x.abs() } else { m });
    let mut sums: Vec<f32> = values.chunks(4).map(|x| (x[0] + x[1]) + (x[2] + x[3])).collect();
    while sums.len() > 1 {
        let half = sums.len() / 2;
        sums = (0..half).map(|i| sums[i] + sums[i + half]).collect();
    }
    let d = largest / 127.0;
    let mut block = [0; 36];
    let half = |x: f32| (Value::from_f64(DType::F16, x.into()).bits() as u16).to_le_bytes();
    block[..2].copy_from_slice(&half(d));
    block[2..4].copy_from_slice(&half(sums[0]));
    for (byte, x) in block[4..].iter_mut().zip(values) {
        *byte = if largest == 0.0 { 0 } else { (x / d).round() as i8 as u8 };
    }
    block
}

/// An element of a block of q8_1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Activation {
    /// Factor of the quant.
    pub d: f64,
    /// The sum of the block's 32 elements before they were quantized, as it is in the block.
    pub sum: f64,
    /// The quant.
    pub quant: i32,
}

impl Activation {
    /// The elements of consecutive blocks.
    pub fn of_blocks(blocks: &[u8]) -> Vec<Activation> {
        let half = |block: &[u8], at: usize| {
            Value::new(DType::F16, u16::from_le_bytes([block[at], block[at + 1]]).into()).to_f64()
        };
        let blocks = blocks.chunks_exact(Format::Q8_1.bytes());
        let elements = blocks.flat_map(|block| {
            let (d, sum) = (half(block, 0), half(block, 2));
            block[4..].iter().map(move |&quant| Activation { d, sum, quant: (quant as i8).into() })
        });
        elements.collect()
    }
}

/// What a kernel multiplies first, which matters for scales that are infinite or NaN. With q4_0, quants still have their
/// offset: `scale · (d · product − offset · sum)`, with the sum that the vector's block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// A matrix by few vectors: `d · (scale · product − minimum · sum)`, 16 elements at a time.
    Vector,
    /// A matrix by many: `scale · (d · product) − minimum · (d · sum)`, as many elements as share a scale.
    Tile,
}

/// A dot product, and how far from it a kernel may be that adds its terms in f32.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Product {
    /// The sum, of terms that are exact but for f64's rounding.
    pub value: f64,
    /// Largest distance that f32 rounding explains: one for each addition of a term, whatever the order, and three for
    /// the term itself, each of at most 2^-24 of the sum of all magnitudes.
    pub bound: f64,
}

impl Product {
    /// Of terms with their magnitudes.
    fn of_terms(terms: impl Iterator<Item = (f64, f64)>) -> Product {
        let (mut value, mut magnitude, mut count) = (0.0, 0.0, 0);
        for (term, size) in terms {
            value += term;
            magnitude += size;
            count += 1;
        }
        // The last addend is for results among f32's subnormals.
        Product { value, bound: f64::from(count + 4) * 2_f64.powi(-24) * magnitude + 2_f64.powi(-140) }
    }

    /// Of a row of elements of `format` with blocks of q8_1: of as many elements as the kernel takes together, the exact
    /// sum of products of integers, times both scales.
    ///
    /// # Panics
    /// If there are fewer elements in `vector` than in `row`.
    pub fn quantized(format: Format, row: &[Element], vector: &[Activation], order: Order) -> Product {
        let unit = if order == Order::Vector { 16 } else { format.shared() };
        let offset = format.offset();
        Product::of_terms(row.chunks(unit).zip(vector.chunks(unit)).map(|(x, y)| {
            let product: i32 = x.iter().zip(y).map(|(x, y)| (x.quant + offset) * y.quant).sum();
            let (product, offset) = (f64::from(product), f64::from(offset));
            let (Element { scale, minimum, .. }, Activation { d, sum: stored, .. }) = (x[0], y[0]);
            if offset != 0.0 {
                // A unit's part of the block's sum.
                let sum = offset * stored * (unit as f64 / 32.0);
                return (scale * (d * product - sum), (scale * product * d).abs() + (scale * sum).abs());
            }
            let sum = f64::from(y.iter().map(|y| y.quant).sum::<i32>());
            let term = match order {
                _ if !format.has_minimum() => scale * (d * product),
                Order::Vector => d * (scale * product - minimum * sum),
                Order::Tile => scale * (d * product) - minimum * (d * sum),
            };
            (term, (scale * product * d).abs() + (minimum * sum * d).abs())
        }))
    }

    /// Of a row of elements, each rounded to f32, with a vector.
    pub fn dequantized(row: &[Element], vector: &[f32]) -> Product {
        Product::of_terms(row.iter().zip(vector).map(|(x, &y)| {
            let term = f64::from(x.to_f32()) * f64::from(y);
            (term, term.abs())
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_of_each_format_says_what_its_specification_says() {
        // d = 2 (and 0.5 for the second f16), every quant bit set.
        for format in Format::ALL {
            let mut block = vec![0xff_u8; format.bytes()];
            for (at, half) in format.halves().iter().zip([[0x00, 0x40], [0x00, 0x38]]) {
                block[*at..at + 2].copy_from_slice(&half);
            }
            if format == Format::Q8K {
                block[..4].copy_from_slice(&2.0_f32.to_le_bytes());
            }
            let expected = match format {
                Format::Q4_0 => 2.0 * 7.0,
                Format::Q4_1 => 2.0 * 15.0 + 0.5,
                Format::Q5_0 => 2.0 * 15.0,
                Format::Q5_1 => 2.0 * 31.0 + 0.5,
                Format::Q8_0 | Format::Q8_1 | Format::Q8K => -2.0,
                Format::Q2K => 2.0 * 15.0 * 3.0 - 0.5 * 15.0,
                Format::Q3K => 2.0 * 31.0 * 3.0,
                Format::Q4K => 2.0 * 63.0 * 15.0 - 0.5 * 63.0,
                Format::Q5K => 2.0 * 63.0 * 31.0 - 0.5 * 63.0,
                Format::Q6K => -2.0 * 31.0,
            };
            for element in format.dequantize(&block) {
                assert_eq!(element.to_f32(), expected, "{format:?}");
            }
        }
    }

    #[test]
    fn a_product_takes_the_sum_from_the_block_for_the_offset_and_from_the_quants_for_the_minimum() {
        // One block of all quants 1, scale 1 and minimum −1, by one of d = 0.5, sum 20, and all quants 2.
        let row = |minimum| vec![Element { scale: 1.0, minimum, quant: 1 }; 32];
        let vector = vec![Activation { d: 0.5, sum: 20.0, quant: 2 }; 32];
        let value = |format, minimum, order| Product::quantized(format, &row(minimum), &vector, order).value;
        for order in [Order::Vector, Order::Tile] {
            assert_eq!(value(Format::Q4_0, 0.0, order), (1.0 + 8.0) * 32.0 - 8.0 * 20.0);
            assert_eq!(value(Format::Q5_0, 0.0, order), 32.0);
            assert_eq!(value(Format::Q4_1, -1.0, order), 32.0 + 32.0);
        }
    }

    #[test]
    fn quantized_values_are_half_a_step_away_at_most() {
        let values: [f32; 32] = std::array::from_fn(|i| (i as f32 * 0.7).sin() * 3.0);
        let block = quantize_q8_1(&values);
        let largest = values.iter().fold(0.0_f32, |m, x| m.max(x.abs()));
        for (i, x) in values.iter().enumerate() {
            let y = f64::from(block[4 + i] as i8) * f64::from(largest) / 127.0;
            assert!((y - f64::from(*x)).abs() <= f64::from(largest) / 253.0, "{x} became {y}");
        }
        assert_eq!(quantize_q8_1(&[0.0; 32]), [0; 36]);
    }
}
