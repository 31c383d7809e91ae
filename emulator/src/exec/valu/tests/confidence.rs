//! `INSTRUCTIONS.md` is what the tables say. `BLESS=1 cargo test` rewrites it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use super::super::{dot, matrix, transcendental};
use super::*;
use crate::exec::code::is_supported;

/// How far an instruction's result can be trusted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Confidence {
    Exact,
    Ordered,
    Bounded,
    Unsupported,
}

const SECTIONS: [(Confidence, &str, &str); 4] = [
    (
        Confidence::Bounded,
        "Within a stated error",
        "Hardware specifies a bound, not the bits. Results are the nearest to the exact ones (f32, f16: 0.5001 ULP), \
         and an option moves them within hardware's bound.",
    ),
    (
        Confidence::Ordered,
        "Exact in a chosen order",
        "Floating-point sums of several products: each step is a correctly rounded fused multiply-add, in the order \
         of the operands' elements, after the addend. Hardware's order is not documented.",
    ),
    (
        Confidence::Unsupported,
        "Unsupported",
        "Decoded by name; a kernel that reaches one faults. Images, exports, interpolation and other hardware that \
         compute kernels do without.",
    ),
    (Confidence::Exact, "Exact", "Defined to the bit, and so computed."),
];

/// What manuals leave open or contradict each other about, and what the emulator does.
const OPEN: &str = "
## What manuals leave open

- `v_div_scale`, `v_div_fmas`, `v_div_fixup`: the pseudocode of AMD's manuals leaves out cases and differs between \
generations. Here they behave on every target as measured on gfx1100 and gfx1201 by the public tests of AMD's emulator \
rocjitsu; tinygrad's tests on real hardware agree. Scaling looks at exponents alone, both sources of zero give the \
negative NaN, and `v_div_fixup` replaces whatever the steps left as NaN or infinity.
- Exceptions (TRAPSTS, EXCP_FLAG_USER) are those of IEEE 754; a denormal result is an underflow. Approximations are \
neither inexact nor out of range; dot and matrix products have none.
- `global_load_tr_b64`, `global_load_tr_b128`: elements are placed as others have measured on gfx1201 in waves of 32 \
lanes. In waves of 64 they fault as unsupported.
- Named barriers (gfx12): initialising, joining and leaving are as published for gfx1250.
- `ds_cmpst_f32` and its like compare floats, not bits, as the manuals say.
- A scalar load that begins in an allocation may end past it, within the unit of its own size that it is aligned to. What \
lies past the allocation is undefined; here it reads as zero.
";

fn confidence(gfx: Gfx, inst: &Inst) -> Confidence {
    let float = |name: &str| ["_f32_", "_f16_", "_bf16_", "_f64_"].iter().any(|kind| name.contains(kind));
    if !is_supported(gfx, inst) {
        Confidence::Unsupported
    } else if transcendental::entry(inst.name).is_some() {
        Confidence::Bounded
    } else if float(inst.name) && (dot::entry(gfx, inst).is_some() || matrix::lookup(gfx, inst).is_some()) {
        Confidence::Ordered
    } else {
        Confidence::Exact
    }
}

fn document() -> String {
    // For each mnemonic of a confidence, the targets that have it so.
    let mut names: BTreeMap<(Confidence, &str), BTreeSet<Gfx>> = BTreeMap::new();
    for gfx in Gfx::ISAS {
        let path = format!("{}/tests/data/decode/{gfx}.tsv.gz", env!("CARGO_MANIFEST_DIR"));
        let file = std::fs::File::open(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let mut text = String::new();
        flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("gzip");
        let mut seen: BTreeMap<&str, Confidence> = BTreeMap::new();
        for (hex, _) in text.lines().filter_map(|line| line.split_once('\t')) {
            let Ok(inst) = decode::decode(gfx, &bytes(hex)) else { continue };
            // One form without support does not make the others unsupported.
            let now = confidence(gfx, &inst);
            seen.entry(inst.name).and_modify(|old| *old = (*old).min(now)).or_insert(now);
        }
        for (name, confidence) in seen {
            names.entry((confidence, name)).or_default().insert(gfx);
        }
    }

    let mut text = String::from(
        "# Instructions\n\nWhat the emulator has for each target, by LLVM's mnemonics without the suffix of the \
         encoding, of those that occur in LLVM's assembler tests. A test writes this file from the tables.\n\n\
         | target | exact | exact in a chosen order | within a stated error | unsupported |\n|---|---|---|---|---|\n",
    );
    for gfx in Gfx::ISAS {
        let count = |of| {
            names.iter().filter(|((confidence, _), set)| *confidence == of && set.contains(&gfx)).count()
        };
        let [exact, ordered, bounded, unsupported] =
            [Confidence::Exact, Confidence::Ordered, Confidence::Bounded, Confidence::Unsupported].map(count);
        text += &format!("| {gfx} | {exact} | {ordered} | {bounded} | {unsupported} |\n");
    }
    for (confidence, title, what) in SECTIONS {
        text += &format!("\n## {title}\n\n{what}\n");
        let mut groups: BTreeMap<Vec<Gfx>, Vec<&str>> = BTreeMap::new();
        for ((_, name), targets) in names.iter().filter(|((of, _), _)| *of == confidence) {
            groups.entry(targets.iter().copied().collect()).or_default().push(name);
        }
        for (targets, names) in groups {
            let targets = match targets.len() {
                count if count == Gfx::ISAS.len() => "All targets".to_owned(),
                _ => targets.iter().map(|gfx| gfx.name()).collect::<Vec<_>>().join(", "),
            };
            text += &format!("\n{targets}: {}\n", names.join(", "));
        }
    }
    text + OPEN
}

#[test]
fn the_documented_confidences_are_the_tables() {
    let path = format!("{}/INSTRUCTIONS.md", env!("CARGO_MANIFEST_DIR"));
    let text = document();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &text).unwrap_or_else(|error| panic!("{path}: {error}"));
    }
    let written = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    assert!(
        written == text,
        "INSTRUCTIONS.md is not what the tables say: run the test with BLESS=1 to write it"
    );
}
