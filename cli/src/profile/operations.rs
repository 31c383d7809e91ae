//! How many operations an instruction is.

/// Operations of one lane of a vector instruction, from LLVM's text: 1 for what computes a result, 2 for a fused
/// multiply-add, as many more as there are in a packed or dot product instruction, 0 for what only moves.
pub fn per_lane(text: &str) -> u64 {
    text.split(" :: ").map(|half| one(half.split_whitespace().next().unwrap_or_default())).sum()
}

fn one(mnemonic: &str) -> u64 {
    let Some(name) = mnemonic.strip_prefix("v_") else { return 0 };
    let name = name.strip_prefix("dual_").unwrap_or(name);
    const MOVES: [&str; 13] = [
        "mov",
        "cndmask",
        "perm",
        "readlane",
        "readfirstlane",
        "writelane",
        "swap",
        "accvgpr",
        "nop",
        "bfi",
        "and_b",
        "or_b",
        "xor_b",
    ];
    if MOVES.iter().any(|start| name.starts_with(start)) {
        return 0;
    }
    let (packed, name) = match name.strip_prefix("pk_") {
        Some(name) => (2, name),
        None => (1, name),
    };
    let each = match name {
        _ if name.starts_with("dot2") => 4,
        _ if name.starts_with("dot4") => 8,
        _ if name.starts_with("dot8") => 16,
        _ if ["fma", "mad", "mac"].iter().any(|start| name.starts_with(start)) => 2,
        _ => 1,
    };
    packed * each
}

/// Operations of one execution of a matrix instruction by a wave: twice the product of its sizes.
pub fn of_matrix(text: &str) -> u64 {
    let mnemonic = text.split_whitespace().next().unwrap_or_default();
    let numbers = |part: &str| -> Option<u64> {
        let digits: String = part.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    };
    let sizes = mnemonic.split('_').find_map(|part| {
        let mut sizes = part.split('x').map(numbers);
        Some(sizes.next()?? * sizes.next()?? * sizes.next()??)
    });
    // Several small products at once: as the mnemonic says, and 16 for the smallest, which older ones do not say.
    let blocks = mnemonic.split('_').find_map(|part| part.strip_suffix('b')?.parse::<u64>().ok());
    let blocks = blocks.unwrap_or(if mnemonic.contains("_4x4x") { 16 } else { 1 });
    2 * sizes.unwrap_or(0) * blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes() {
        for (text, operations) in [
            ("v_add_f32_e32 v0, v1, v2", 1),
            ("v_fma_f32 v0, v1, v2, v3", 2),
            ("v_fmac_f32_e32 v0, v1, v2", 2),
            ("v_pk_fma_f16 v0, v1, v2, v3", 4),
            ("v_pk_add_f16 v0, v1, v2", 2),
            ("v_dot4_i32_iu8 v0, v1, v2, v3", 8),
            ("v_mov_b32_e32 v0, v1", 0),
            ("v_dual_fmac_f32 v0, v1, v2 :: v_dual_mov_b32 v3, v4", 2),
            ("s_add_u32 s0, s1, s2", 0),
        ] {
            assert_eq!(per_lane(text), operations, "{text}");
        }
    }

    #[test]
    fn matrices() {
        for (text, operations) in [
            ("v_wmma_f32_16x16x16_f16 v[0:7], v[8:15], v[16:23], v[0:7]", 8192),
            ("v_mfma_f32_32x32x8f16 a[0:15], v[0:1], v[2:3], a[0:15]", 16384),
            ("v_mfma_f32_16x16x4_4b_f16 v[0:15], v[0:1], v[2:3], v[0:15]", 8192),
            ("v_mfma_f32_4x4x4f16 a[0:3], v[0:1], v[2:3], a[0:3]", 2048),
            ("v_mfma_f64_16x16x4f64 a[0:7], v[0:1], v[2:3], a[0:7]", 2048),
        ] {
            assert_eq!(of_matrix(text), operations, "{text}");
        }
    }
}
