//! What MODE's fields do to f32, f16, packed f16 and f64: each format under every setting of its own fields, and of the
//! fields of the other formats, which must not matter.

use super::*;
use crate::gfx::Gfx::*;

/// A format's instructions: addition and multiplication, text and encoding, on gfx1100 and gfx90a.
struct Format {
    /// Bits of an element, and how often it stands in a register.
    bits: u32,
    packed: bool,
    /// MODE's bits of rounding and of denormals.
    round: u32,
    denormals: u32,
    add: [(Gfx, &'static str, &'static str); 2],
    multiply: [(Gfx, &'static str, &'static str); 2],
    /// One, a quarter of the distance to the next number above, the same below (negative), and one's neighbours.
    one: u64,
    above: u64,
    below: u64,
    next: [u64; 2],
    /// The least denormal, a power of two, and their product; the least normal number, one half, and their product.
    widened: [u64; 3],
    narrowed: [u64; 3],
}

const FORMATS: [Format; 4] = [
    Format {
        bits: 32,
        packed: false,
        round: 0,
        denormals: 4,
        add: [
            (Gfx1100, "v_add_f32_e32 v0, v1, v2", "01050006"),
            (Gfx90a, "v_add_f32_e32 v0, v1, v2", "01050002"),
        ],
        multiply: [
            (Gfx1100, "v_mul_f32_e32 v0, v1, v2", "01050010"),
            (Gfx90a, "v_mul_f32_e32 v0, v1, v2", "0105000a"),
        ],
        one: 0x3f80_0000,
        above: 0x3300_0000,
        below: 0xb280_0000,
        next: [0x3f80_0001, 0x3f7f_ffff],
        widened: [1, 0x4e80_0000, 0x0400_0000],
        narrowed: [0x0080_0000, 0x3f00_0000, 0x0040_0000],
    },
    Format {
        bits: 16,
        packed: false,
        round: 2,
        denormals: 6,
        add: [
            (Gfx1100, "v_add_f16_e32 v0.l, v1.l, v2.l", "01050064"),
            (Gfx90a, "v_add_f16_e32 v0, v1, v2", "0105003e"),
        ],
        multiply: [
            (Gfx1100, "v_mul_f16_e32 v0.l, v1.l, v2.l", "0105006a"),
            (Gfx90a, "v_mul_f16_e32 v0, v1, v2", "01050044"),
        ],
        one: 0x3c00,
        above: 0x0c00,
        below: 0x8800,
        next: [0x3c01, 0x3bff],
        widened: [1, 0x6c00, 0x0c00],
        narrowed: [0x0400, 0x3800, 0x0200],
    },
    Format {
        bits: 16,
        packed: true,
        round: 2,
        denormals: 6,
        add: [
            (Gfx1100, "v_pk_add_f16 v0, v1, v2", "00400fcc01050218"),
            (Gfx90a, "v_pk_add_f16 v0, v1, v2", "00408fd301050218"),
        ],
        multiply: [
            (Gfx1100, "v_pk_mul_f16 v0, v1, v2", "004010cc01050218"),
            (Gfx90a, "v_pk_mul_f16 v0, v1, v2", "004090d301050218"),
        ],
        one: 0x3c00,
        above: 0x0c00,
        below: 0x8800,
        next: [0x3c01, 0x3bff],
        widened: [1, 0x6c00, 0x0c00],
        narrowed: [0x0400, 0x3800, 0x0200],
    },
    Format {
        bits: 64,
        packed: false,
        round: 2,
        denormals: 6,
        add: [
            (Gfx1100, "v_add_f64 v[0:1], v[2:3], v[4:5]", "000027d702090200"),
            (Gfx90a, "v_add_f64 v[0:1], v[2:3], v[4:5]", "000080d202090200"),
        ],
        multiply: [
            (Gfx1100, "v_mul_f64 v[0:1], v[2:3], v[4:5]", "000028d702090200"),
            (Gfx90a, "v_mul_f64 v[0:1], v[2:3], v[4:5]", "000081d202090200"),
        ],
        one: 0x3ff0_0000_0000_0000,
        above: 0x3c90_0000_0000_0000,
        below: 0xbc80_0000_0000_0000,
        next: [0x3ff0_0000_0000_0001, 0x3fef_ffff_ffff_ffff],
        widened: [1, 0x4630_0000_0000_0000, 0x0310_0000_0000_0000],
        narrowed: [0x0010_0000_0000_0000, 0x3fe0_0000_0000_0000, 0x0008_0000_0000_0000],
    },
];

impl Format {
    fn sign(&self) -> u64 {
        1 << (self.bits - 1)
    }

    /// The result of an instruction under MODE.
    fn run(&self, (gfx, text, hex): (Gfx, &str, &str), mode: u32, inputs: [u64; 2]) -> u64 {
        let mut lab = Lab::new(gfx);
        lab.mode(mode);
        if self.bits == 64 {
            lab.set64(2, inputs[0]).set64(4, inputs[1]).run(text, hex);
            return lab.get64(0, 0);
        }
        let spread = |value: u64| if self.packed { value as u32 * 0x1_0001 } else { value as u32 };
        lab.set(1, |_| spread(inputs[0])).set(2, |_| spread(inputs[1])).run(text, hex);
        let got = lab.get(0, 0);
        if self.packed {
            assert_eq!(got >> 16, got & 0xffff, "{text} MODE {mode:#x}: the halves differ");
        }
        u64::from(got) & (u64::MAX >> (64 - self.bits))
    }

    /// MODE with a format's fields, and all others as different as can be.
    fn mode(&self, round: u32, denormals: u32) -> u32 {
        let others = (self.round ^ 2, self.denormals ^ 2);
        round << self.round
            | (round ^ 3) << others.0
            | denormals << self.denormals
            | (denormals ^ 3) << others.1
    }
}

#[test]
fn every_format_rounds_as_its_own_field_says() {
    for format in &FORMATS {
        let Format { one, above, below, next: [up, down], .. } = *format;
        let sign = format.sign();
        // To nearest, toward +infinity, toward -infinity, toward zero.
        let cases = [
            ([one, above], [one, up, one, one]),
            ([one, below], [one, one, down, down]),
            ([one | sign, above | sign], [one | sign, one | sign, up | sign, one | sign]),
            ([one | sign, below & !sign], [one | sign, down | sign, one | sign, down | sign]),
        ];
        for instruction in format.add {
            for (inputs, expected) in cases {
                for (round, expected) in expected.into_iter().enumerate() {
                    let mode = format.mode(round as u32, 3);
                    let got = format.run(instruction, mode, inputs);
                    let (gfx, text, _) = instruction;
                    assert_eq!(got, expected, "{gfx} {text} MODE {mode:#x} {inputs:#x?}");
                }
            }
        }
    }
}

#[test]
fn every_format_keeps_denormals_as_its_own_field_says() {
    for format in &FORMATS {
        let Format { widened, narrowed, .. } = *format;
        let sign = format.sign();
        for instruction in format.multiply {
            for denormals in 0..4 {
                let mode = format.mode(0, denormals);
                let (gfx, text, _) = instruction;
                for sign in [0, sign] {
                    // Bit 0 keeps denormal sources, bit 1 denormal results; what is flushed keeps its sign.
                    let got = format.run(instruction, mode, [widened[0] | sign, widened[1]]);
                    let expected = if denormals & 1 != 0 { widened[2] | sign } else { sign };
                    assert_eq!(got, expected, "{gfx} {text} MODE {mode:#x}: a denormal source");
                    let got = format.run(instruction, mode, [narrowed[0] | sign, narrowed[1]]);
                    let expected = if denormals & 2 != 0 { narrowed[2] | sign } else { sign };
                    assert_eq!(got, expected, "{gfx} {text} MODE {mode:#x}: a denormal result");
                }
            }
        }
    }
}

/// DX10_CLAMP: the clamp modifier makes 0 of NaN, and otherwise leaves it.
#[test]
fn clamp_takes_nan_to_zero_in_every_format_if_mode_says_so() {
    const CLAMPED: [(&str, &str); 4] = [
        ("v_add_f32_e64 v0, v1, v2 clamp", "008003d501050200"),
        ("v_add_f16_e64 v0.l, v1.l, v2.l clamp", "008032d501050200"),
        ("v_pk_add_f16 v0, v1, v2 clamp", "00c00fcc01050218"),
        ("v_add_f64 v[0:1], v[2:3], v[4:5] clamp", "008027d702090200"),
    ];
    const NANS: [u64; 4] = [0x7fc0_1234, 0x7e12, 0x7e12, 0x7ff8_0000_0000_1234];
    for ((format, (text, hex)), nan) in FORMATS.iter().zip(CLAMPED).zip(NANS) {
        let run = |mode, value| format.run((Gfx1100, text, hex), mode, [value, 0]);
        assert_eq!(run(0x1f0, nan), 0, "{text}");
        assert_eq!(run(0x0f0, nan), nan, "{text}");
        // Everything else is brought between 0 and 1 either way.
        for mode in [0x1f0, 0x0f0] {
            assert_eq!(run(mode, format.one | format.sign()), 0, "{text} MODE {mode:#x}");
            assert_eq!(run(mode, format.narrowed[1]), format.narrowed[1], "{text} MODE {mode:#x}");
            assert_eq!(run(mode, format.widened[1]), format.one, "{text} MODE {mode:#x}");
        }
    }
}

/// IEEE: a signalling NaN wins against a number, quieted; without it loses, as a quiet one does in both.
#[test]
fn maximum_of_a_signalling_nan_depends_on_ieee_in_every_format() {
    const MAXIMA: [(usize, &str, &str, u64, u64); 3] = [
        (0, "v_max_f32_e32 v0, v1, v2", "01050020", 0x7f80_0001, 0x7fc0_0001),
        (1, "v_max_f16_e32 v0.l, v1.l, v2.l", "01050072", 0x7c01, 0x7e01),
        (
            3,
            "v_max_f64 v[0:1], v[2:3], v[4:5]",
            "00002ad702090200",
            0x7ff0_0000_0000_0001,
            0x7ff8_0000_0000_0001,
        ),
    ];
    for (format, text, hex, signalling, quiet) in MAXIMA {
        let format = &FORMATS[format];
        let run = |mode, inputs| format.run((Gfx1100, text, hex), mode, inputs);
        let one = format.one;
        assert_eq!(run(0x3f0, [signalling, one]), quiet, "{text}");
        assert_eq!(run(0x3f0, [one, signalling]), quiet, "{text}");
        assert_eq!(run(0x1f0, [signalling, one]), one, "{text}");
        assert_eq!(run(0x1f0, [one, signalling]), one, "{text}");
        for mode in [0x3f0, 0x1f0] {
            assert_eq!(run(mode, [quiet, one]), one, "{text} MODE {mode:#x}");
        }
    }
}

/// Instructions of gfx8's set keep the destination's high half, gfx9's zero it; `v_mad_legacy_f16` is the latter.
#[test]
fn f16_products_and_sums_keep_the_high_half() {
    for gfx in [Gfx::Gfx90a, Gfx::Gfx942] {
        let mut lab = Lab::new(gfx);
        let mut result = |register: u16, text: &str, hex: &str| {
            lab.set(1, |_| 0x7777_4000).set(2, |_| 0x6666_3c00).set(register, |_| 0xabcd_4200);
            lab.run(text, hex).get(register, 63)
        };
        // 2 * 1 + 3, and with a constant of 1: 2 * 1 + 1.
        assert_eq!(result(3, "v_mac_f16_e32 v3, v1, v2", "01050646"), 0xabcd_4500);
        assert_eq!(result(3, "v_mac_f16_e64 v3, v1, v2", "030023d101050200"), 0xabcd_4500);
        let dpp = "v_mac_f16_dpp v3, v1, v2 quad_perm:[0,1,2,3] row_mask:0xf bank_mask:0xf";
        assert_eq!(result(3, dpp, "fa04064601e400ff"), 0xabcd_4500);
        assert_eq!(result(5, "v_madak_f16 v5, v1, v2, 0x3c00", "01050a4a003c0000"), 0xabcd_4200);
        assert_eq!(result(6, "v_madmk_f16 v6, v1, 0x3c00, v2", "01050c48003c0000"), 0xabcd_4200);
        assert_eq!(result(7, "v_mad_legacy_f16 v7, v1, v2, v7", "0700ead101051e04"), 0x4500);
    }
}
