//! What operations are given: values at the edges, combined with each other, and random ones.

use crate::operation::{Element, Operand, Operation, WORKGROUP};

/// The inputs of all lanes of a launch.
#[derive(Clone, Debug)]
pub struct Inputs {
    /// 32-bit words, [`Operation::input_words`] for each lane.
    pub words: Vec<u32>,
    /// Lanes.
    pub lanes: usize,
    /// Neighbouring lanes that have the same.
    pub alike: usize,
}

/// A generator of which each value is a function of the seed and of how many were drawn.
struct Random(u64);

impl Random {
    fn new(seed: u64, name: &str) -> Random {
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        });
        Random(seed ^ hash)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, bound: usize) -> usize {
        (((self.next() >> 32) * bound as u64) >> 32) as usize
    }
}

/// The inputs of an operation: about `cases` of them, or all that there are where one number of 16 bits is all that goes in.
pub fn inputs(operation: &Operation, cases: usize, seed: u64) -> Inputs {
    let alike = if operation.uniform { WORKGROUP } else { 1 };
    // What a result held before matters for few instructions, and then takes part as a number.
    let operands = &operation.inputs;
    let numbers: Vec<usize> = (0..operands.len()).filter(|&i| operands[i].name != "old").collect();
    let all = match numbers[..] {
        [one] if operands[one].element.bits() <= 16 && operands[one].words == 1 && alike == 1 => 1 << 16,
        _ => 0,
    };
    let cases = if alike > 1 { (cases / 16).max(64) } else { cases.max(all) };
    let cases = (cases * alike).next_multiple_of(WORKGROUP) / alike;
    let mut random = Random::new(seed, &operation.name);
    // Every value at an edge meets every other one, as far as there is room for that.
    let edges: Vec<Vec<u64>> = operands.iter().map(|operand| edges(operand.element)).collect();
    let pairs: usize = numbers.iter().map(|&i| edges[i].len()).product();
    let mut words = Vec::with_capacity(cases * alike * operation.input_words());
    for case in 0..cases {
        let start = words.len();
        let mut rest = case;
        for (i, operand) in operands.iter().enumerate() {
            let per_word = (32 / operand.element.bits()).max(1) as usize;
            let wanted =
                if operand.element.bits() == 64 { operand.words / 2 } else { operand.words * per_word };
            let is_number = numbers.contains(&i);
            let chosen = if all > 0 && is_number {
                Some((case & 0xffff) as u64)
            } else if is_number && pairs <= cases && case < pairs {
                let value = edges[i][rest % edges[i].len()];
                rest /= edges[i].len();
                Some(value)
            } else {
                None
            };
            let mut elements = Vec::with_capacity(wanted);
            for n in 0..wanted {
                elements.push(match chosen {
                    // The other half of a register has another number.
                    Some(value) if n == 0 => value,
                    _ => draw(operation, operand, &edges[i], &mut random),
                });
            }
            push(&mut words, operand.element, &elements);
        }
        for _ in 1..alike {
            words.extend_from_within(start..start + operation.input_words());
        }
    }
    Inputs { words, lanes: cases * alike, alike }
}

/// Elements in words, the first ones lowest.
fn push(words: &mut Vec<u32>, element: Element, elements: &[u64]) {
    match element.bits() {
        64 => words.extend(elements.iter().flat_map(|&e| [e as u32, (e >> 32) as u32])),
        32 => words.extend(elements.iter().map(|&e| e as u32)),
        bits => words.extend(elements.chunks(32 / bits as usize).map(|chunk| {
            let place = |(i, &e): (usize, &u64)| (e as u32) << (i as u32 * bits);
            chunk.iter().enumerate().map(place).fold(0, |word, part| word | part)
        })),
    }
}

fn draw(operation: &Operation, operand: &Operand, edges: &[u64], random: &mut Random) -> u64 {
    let sparse = operation.name.contains("smfmac") || operation.name.contains("swmmac");
    if sparse && operand.name == "src2" {
        // Which two of four: in ascending order, or the result is undefined.
        return (0..8).fold(0, |word, _| word << 4 | [4, 8, 9, 12, 13, 14][random.below(6)]);
    }
    if operand.element == Element::Bit {
        return random.next() & 1;
    }
    if operation.small_integers {
        return small(operand.element, random.below(7) as i64 - 3);
    }
    let bits = operand.element.bits();
    let mask = u64::MAX >> (64 - bits);
    match (operand.element.float(), random.below(8)) {
        (_, 0 | 1) => edges[random.below(edges.len())],
        (Some((mantissa, exponent)), 2..=6) => {
            // Near one, so that sums and products are of numbers that matter to each other.
            let bias = (1u64 << (exponent - 1)) - 1;
            let near = (bias + random.below(17.min(bias as usize)) as u64).saturating_sub(8.min(bias / 2));
            let digits = random.next() & ((1 << mantissa) - 1);
            let digits = match random.below(4) {
                // Few digits, so that results are exact or ties.
                0 => digits & !((1 << (mantissa / 2)) - 1),
                1 => digits | ((1 << (mantissa / 2)) - 1),
                _ => digits,
            };
            (random.next() & 1) << (mantissa + exponent) | near << mantissa | digits
        }
        (None, 2 | 3) => {
            // Of any length.
            let value = random.next() & mask;
            value >> random.below(bits as usize)
        }
        _ => random.next() & mask,
    }
}

/// A small integer in a format.
fn small(element: Element, value: i64) -> u64 {
    let mask = u64::MAX >> (64 - element.bits());
    let Some((mantissa, exponent)) = element.float() else { return value as u64 & mask };
    if value == 0 {
        return 0;
    }
    let (sign, magnitude) = (u64::from(value < 0), value.unsigned_abs());
    let top = 63 - magnitude.leading_zeros();
    let bias = (1u64 << (exponent - 1)) - 1;
    let digits = (magnitude << (63 - top) << 1) >> (64 - mantissa);
    sign << (mantissa + exponent) | (bias + u64::from(top)) << mantissa | digits
}

/// The values of a format at which instructions behave in a special way.
pub fn edges(element: Element) -> Vec<u64> {
    let bits = element.bits();
    let Some((mantissa, exponent)) = element.float() else {
        if element == Element::Bit {
            return vec![0, 1];
        }
        let mut list: Vec<u64> = vec![
            0,
            1,
            2,
            3,
            5,
            7,
            8,
            15,
            16,
            24,
            31,
            32,
            33,
            63,
            64,
            0x7f,
            0x80,
            0xff,
            0x100,
            0x7fff,
            0x8000,
            0xffff,
            0x1_0000,
            0x7f_ffff,
            0x80_0000,
            0xff_ffff,
            0x7fff_ffff,
            0x8000_0000,
            0x8000_0001,
            0xffff_fff0,
            0xffff_ffff,
            0xaaaa_5555_aaaa_5555,
            0x0123_4567_89ab_cdef,
            1 << 32,
            1 << 53,
            i64::MAX as u64,
            1 << 63,
            u64::MAX,
            u64::MAX - 1,
        ];
        let mask = u64::MAX >> (64 - bits);
        list.iter_mut().for_each(|value| *value &= mask);
        list.sort_unstable();
        list.dedup();
        return list;
    };
    let one = ((1u64 << (exponent - 1)) - 1) << mantissa;
    let ulp = 1u64;
    let infinity = ((1u64 << exponent) - 1) << mantissa;
    let quiet = 1u64 << (mantissa - 1);
    let unit = 1u64 << mantissa;
    let mut list = vec![
        0,
        1,
        quiet,
        unit - 1,
        unit,
        unit + 1,
        one - unit,
        one - ulp,
        one,
        one + ulp,
        one + quiet,
        one + unit,
        one + unit + quiet,
        one + unit * (u64::from(mantissa) + 1),
        infinity - 1,
        infinity,
        infinity | quiet,
        infinity | quiet | 1,
        infinity | 1,
        infinity | (quiet - 1),
    ];
    // Where integers and narrower formats end.
    let scaled = |e: i64| (one as i64 + e * unit as i64) as u64;
    match element {
        Element::F32 => list.extend([
            scaled(31),
            scaled(31) - 1,
            scaled(32),
            scaled(63),
            scaled(-14),
            scaled(-25),
            0x477f_e000,
            0x477f_f000,
            0x3f80_1000,
            0x43e0_0000,
            0x4780_0000,
            0x3dcc_cccd,
            0x4049_0fdb,
        ]),
        Element::F64 => list.extend([
            scaled(31),
            scaled(32),
            scaled(63),
            scaled(-126),
            scaled(-149),
            scaled(128) - 1,
            0x41df_ffff_ffc0_0000,
            0x41ef_ffff_ffe0_0000,
            0x3fb9_9999_9999_999a,
            0x4009_21fb_5444_2d18,
        ]),
        Element::F16 => list.extend([0x7800, 0x4e40, 0x2e66]),
        _ => {}
    }
    let sign = 1u64 << (bits - 1);
    list.iter().flat_map(|&value| [value, value | sign]).collect()
}
