//! Philox4x32-10, and the numbers made from it.
//!
//! J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.

/// The block of random bits for a counter and a key, least significant word first.
pub fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let [a, b] = [u64::from(counter[0]) * 0xd251_1f53, u64::from(counter[2]) * 0xcd9e_8d57];
        counter = [
            (b >> 32) as u32 ^ counter[1] ^ key[0],
            b as u32,
            (a >> 32) as u32 ^ counter[3] ^ key[1],
            a as u32,
        ];
        key = [key[0].wrapping_add(0x9e37_79b9), key[1].wrapping_add(0xbb67_ae85)];
    }
    counter
}

/// Block number `number` of a sequence.
pub fn block(seed: u64, number: u64, sequence: u64) -> [u32; 4] {
    let words = |x: u64| [x as u32, (x >> 32) as u32];
    let ([a, b], [c, d]) = (words(number), words(sequence));
    philox([a, b, c, d], words(seed))
}

/// The four uniform numbers of a block for f32, the two for f64: in [0, 1), or in (0, 1] if `upper`.
pub fn uniform(block: [u32; 4], double: bool, upper: bool) -> Vec<f64> {
    let upper = u64::from(upper);
    if double {
        wide(block).map(|bits| ((bits >> 11) + upper) as f64 * 2_f64.powi(-53)).to_vec()
    } else {
        block.map(|bits| (u64::from(bits >> 8) + upper) as f64 * 2_f64.powi(-24)).to_vec()
    }
}

/// The normal numbers of a block, and how far a kernel's may be from them.
pub fn normal(block: [u32; 4], double: bool, mean: f64, deviation: f64) -> Vec<(f64, f64)> {
    let unit = if double { f64::EPSILON / 2.0 } else { f64::from(f32::EPSILON) / 2.0 };
    let pair = |u: f64, v: f64| {
        let (radius, angle) = ((-2.0 * u.ln()).sqrt(), std::f64::consts::TAU * v);
        [angle.cos(), angle.sin()].map(|x| {
            let z = radius * x;
            // The angle, up to 2π, is rounded twice (2π itself and the product) and the cosine is off by two ulp; near
            // u = 1 the radius is as inexact as u's rounding makes its logarithm, where that is small itself.
            let about_z =
                radius * unit * (2.0 * std::f64::consts::TAU + 6.0) + 4.0 * unit * radius.max(unit.sqrt());
            let value = mean + deviation * z;
            (value, deviation.abs() * about_z + unit * (deviation * z).abs() + 2.0 * unit * value.abs())
        })
    };
    if double {
        let [u, v] = wide(block).map(|bits| bits >> 11);
        pair((u + 1) as f64 * 2_f64.powi(-53), v as f64 * 2_f64.powi(-53)).to_vec()
    } else {
        // As the kernel rounds them.
        let positive = |bits: u32| f64::from(bits as f32 + 1.0) * 2_f64.powi(-32);
        let part = |bits: u32| f64::from(bits >> 8) * 2_f64.powi(-24);
        let [a, b, c, d] = block;
        [pair(positive(a), part(b)), pair(positive(c), part(d))].concat()
    }
}

fn wide([a, b, c, d]: [u32; 4]) -> [u64; 2] {
    [u64::from(a) | u64::from(b) << 32, u64::from(c) | u64::from(d) << 32]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors that Random123 publishes for philox4x32 with 10 rounds (`kat_vectors`).
    #[test]
    fn philox_gives_the_published_blocks() {
        let all = u32::MAX;
        assert_eq!(philox([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(philox([all; 4], [all; 2]), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
        assert_eq!(
            philox([0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344], [0xa409_3822, 0x299f_31d0]),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }
}
