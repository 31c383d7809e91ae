//! The scalar unit's instructions, from the tables. A workgroup is a case: all its lanes have the same inputs.

use amdgpu_emulator::listing;
use amdgpu_emulator::{Generation, Gfx};

use super::{ARITHMETIC, Accuracy, Body, DEFAULT, Element, Group, Operand, Operation, Registers, symbol};

/// Left out, by parts of the name: control, messages, what reads or writes M0 or the program counter.
const WITHOUT: [&str; 21] = [
    "s_movrel",
    "pc_b64",
    "s_rfe",
    "sendmsg",
    "barrier",
    "alloc_vgpr",
    "sleep",
    "gpr_idx",
    "cbranch",
    "s_call",
    "subvector",
    "waitcnt",
    "s_trap",
    "reg_",
    "s_version",
    "s_setvskip",
    "fork",
    "_join",
    "s_setprio",
    "s_getpc",
    "s_get_pc",
];

pub(super) fn operations(gfx: Gfx, list: &mut Vec<Operation>) {
    for listed in listing::instructions(gfx) {
        let of_unit = ["sop1", "sop2", "sopc", "sopk"].contains(&listed.section);
        if !of_unit || WITHOUT.iter().any(|part| listed.name.contains(part)) {
            continue;
        }
        let name = listed.name;
        let (mut inputs, mut outputs, mut words) = (Vec::new(), Vec::new(), Vec::new());
        let mut sources = 0;
        for word in &listed.operands {
            let (field, ty) = word.split_once(':').map_or((*word, "32"), |(field, ty)| (field, ty));
            let count = if matches!(ty, "64" | "i64") { 2 } else { 1 };
            match field {
                "sdst" => {
                    let element = element(name, true, count);
                    outputs.push(Operand::new("sdst", element, count));
                    words.push("{out0}".to_owned());
                }
                "ssrc0" | "ssrc1" => {
                    inputs.push(Operand::new(field, element(name, false, count), count));
                    words.push(format!("{{source{sources}}}"));
                    sources += 1;
                }
                "imm" | "dec" => words.push("0x8123".to_owned()),
                "k" | "imm32" => words.push("0x40400000".to_owned()),
                _ => words.clear(),
            }
        }
        if words.len() != listed.operands.len() {
            continue;
        }
        let tied = outputs.len();
        let old = outputs.iter().map(|output: &Operand| Operand { name: "old".to_owned(), ..output.clone() });
        let mut inputs: Vec<Operand> = old.chain(inputs).collect();
        inputs.push(Operand::new("scc", Element::Bit, 1));
        outputs.push(Operand::new("scc", Element::Bit, 1));
        let mut operands = words.join(", ");
        for i in 0..sources {
            operands = operands.replace(&format!("{{source{i}}}"), &format!("{{in{}}}", i + tied));
        }
        let scc = outputs.len() - 1;
        let mut text = format!(
            "s_cmp_lg_u32 {{in{}}}, 0\n{name} {operands}\ns_cselect_b32 {{out{scc}}}, 1, 0",
            inputs.len() - 1
        );
        if name.ends_with("exec_b32") || name.ends_with("exec_b64") {
            // The lanes that were on are on again behind it; what it left of them is a result.
            let (ty, exec, kept, count) = match name.ends_with("b64") {
                true => ("b64", "exec", "s[40:41]", 2),
                false => ("b32", "exec_lo", "s40", 1),
            };
            if count == 2 && gfx.wave_size() == 32 {
                continue;
            }
            let element = if count == 2 { Element::B64 } else { Element::B32 };
            text = format!(
                "s_mov_{ty} {kept}, {exec}\n{text}\ns_mov_{ty} {{out{}}}, {exec}\ns_mov_{ty} {exec}, {kept}",
                scc + 1
            );
            outputs.push(Operand::new("exec", element, count));
        }
        let float = inputs.iter().chain(&outputs).any(|operand| operand.element.float().is_some());
        list.push(Operation {
            name: name.to_owned(),
            kernel: symbol(name),
            group: Group::Scalar,
            inputs,
            outputs,
            modes: if float { ARITHMETIC.to_vec() } else { vec![DEFAULT] },
            accuracy: Accuracy::Exact,
            uniform: true,
            small_integers: false,
            body: Body::Assembly { text, tied, registers: Registers::Scalar },
        });
    }
    if gfx.generation() == Generation::Gfx12 {
        transcendental(list);
    }
}

fn element(name: &str, is_result: bool, words: usize) -> Element {
    if words == 2 {
        return Element::B64;
    }
    let of = |token: &str| match token {
        "f16" => Some(Element::F16),
        "f32" => Some(Element::F32),
        "i32" | "u32" | "b32" => Some(Element::B32),
        _ => None,
    };
    let mut types = name.split('_').filter_map(of);
    let found = if is_result { types.next() } else { types.next_back() };
    found.unwrap_or(Element::B32)
}

/// Those of the vector unit that have scalar operands.
fn transcendental(list: &mut Vec<Operation>) {
    for function in ["exp", "log", "rcp", "rsq", "sqrt"] {
        for (ty, element) in [("f32", Element::F32), ("f16", Element::F16)] {
            let name = format!("v_s_{function}_{ty}");
            list.push(Operation {
                kernel: symbol(&name),
                group: Group::Scalar,
                inputs: vec![Operand::new("old", element, 1), Operand::new("src0", element, 1)],
                outputs: vec![Operand::new("vdst", element, 1)],
                modes: ARITHMETIC.to_vec(),
                accuracy: Accuracy::Ulps(1),
                uniform: true,
                small_integers: false,
                body: Body::Assembly {
                    text: format!("{name} {{out0}}, {{in1}}"),
                    tied: 1,
                    registers: Registers::Scalar,
                },
                name,
            });
        }
    }
}
