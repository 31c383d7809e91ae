//! Vector instructions, from the tables.

use amdgpu_emulator::listing::{self, Listed};
use amdgpu_emulator::{Generation, Gfx};

use super::{
    ARITHMETIC, Accuracy, Body, DEFAULT, Element, Group, Mode, NO_DX10_CLAMP, NO_IEEE, OUTPUT_MODIFIERS,
    Operand, Operation, Registers, symbol,
};

const SECTIONS: [&str; 6] = ["vop1", "vop2", "vopc", "vop3", "vop3p", "mai"];

/// Left out, by parts of the name: no results, graphics, operands outside of vector registers (`lanes.rs` has those), and what
/// the emulator does not have.
const WITHOUT: [&str; 25] = [
    "v_nop",
    "v_pipeflush",
    "v_clrexcp",
    "v_movrel",
    "v_swap",
    "v_interp_",
    "v_screen_partition",
    "v_readfirstlane",
    "v_readlane",
    "v_writelane",
    "v_permlane",
    "v_accvgpr",
    "v_div_scale",
    "v_ashr_pk_",
    "v_cvt_scalef32_",
    "v_cvt_sr_bf16_f32",
    "v_cvt_sr_f16_f32",
    "v_prng_",
    "_ld_scale_",
    "f8f6f4",
    "v_smfmac_i32_16x16x128",
    "v_smfmac_f32_16x16x128",
    "v_smfmac_i32_32x32x64",
    "v_smfmac_f32_32x32x64",
    "v_s_",
];

pub(super) fn operations(gfx: Gfx, list: &mut Vec<Operation>) {
    for listed in listing::instructions(gfx) {
        let left_out = WITHOUT.iter().any(|part| listed.name.contains(part));
        if SECTIONS.contains(&listed.section) && !left_out {
            of(gfx, &listed, list);
        }
    }
    for (ty, element, words) in [("f32", Element::F32, 1), ("f64", Element::F64, 2)] {
        div_scale(gfx, ty, element, words, list);
    }
}

/// An instruction's own name, without the size of an encoding.
fn tokens(name: &str) -> impl Iterator<Item = &str> {
    name.split('_').skip(1)
}

/// A type that a part of a mnemonic names.
fn element_of(token: &str) -> Option<Element> {
    Some(match token {
        "f16" => Element::F16,
        "bf16" => Element::Bf16,
        "f32" | "xf32" => Element::F32,
        "f64" => Element::F64,
        "u16" | "i16" | "b16" => Element::B16,
        "u32" | "i32" | "b32" | "u24" | "i24" => Element::B32,
        "u64" | "i64" | "b64" => Element::B64,
        "u8" | "i8" | "b8" | "iu8" | "iu4" | "u4" | "i4" | "ubyte0" | "ubyte1" | "ubyte2" | "ubyte3" => {
            Element::B8
        }
        "fp8" => Element::Fp8,
        "bf8" => Element::Bf8,
        _ => return None,
    })
}

/// What a mnemonic says of its operands: the types that it names, in order. MFMA's older names run shape and type together.
fn named(name: &str) -> Vec<Element> {
    let joined = |token: &str| {
        let at = token.rfind('x')? + 1;
        let ty = token[at..].trim_start_matches(|c: char| c.is_ascii_digit());
        element_of(ty)
    };
    tokens(name).filter_map(|token| element_of(token).or_else(|| joined(token))).collect()
}

/// Words and elements of an operand: by its type in the table where that says it, otherwise by the mnemonic.
fn operand(listed: &Listed, field: &str, ty: Option<&str>) -> Operand {
    let types = named(listed.name);
    let is_result = field == "vdst";
    let words = match ty {
        Some("64" | "i64" | "f64") => 2,
        Some(bits) => bits.parse::<usize>().map_or(1, |bits| bits / 32),
        None => 1,
    };
    let matrix = is_matrix(listed.name);
    let dot = listed.name.contains("_dot");
    let from_name = if is_result {
        result(listed.name, &types, words)
    } else if matrix {
        match (field, &types[..]) {
            ("src0", [_, a, ..]) => *a,
            ("src1", [_, _, b]) => *b,
            ("src1", [_, a]) => *a,
            ("src2", [c, ..]) if !listed.name.contains("smfmac") && !listed.name.contains("swmmac") => *c,
            ("src0" | "src1", [a]) => *a,
            _ => Element::B32,
        }
    } else if dot && field != "src2" {
        match types[..] {
            [_, _, b] if field != "src0" => b,
            [_, a, ..] => a,
            _ => Element::B32,
        }
    } else if dot {
        types.first().copied().unwrap_or(Element::B32)
    } else if listed.name.contains("cvt") {
        types.last().copied().unwrap_or(Element::B32)
    } else if listed.name.contains("pk_") {
        // Packed math in one type.
        types.first().copied().unwrap_or(Element::B32)
    } else {
        Element::B32
    };
    let fits = |element: Element| element.bits() as usize <= 32 * words;
    let element = match ty {
        Some("f16") if matches!(from_name, Element::Fp8 | Element::Bf8) => from_name,
        Some("f16" | "v2f16") => Element::F16,
        Some("m16") if listed.name.contains("mix") => Element::F32,
        Some("v2bf16") => Element::Bf16,
        Some("i16" | "b16") if !is_result => Element::B16,
        Some("f32") if listed.name != "v_cndmask_b32" => Element::F32,
        Some("f64") => Element::F64,
        Some("i64") => Element::B64,
        _ if fits(from_name) => from_name,
        _ => Element::B32,
    };
    // The exponent of a scaling, the second operand of a class test.
    let element = match (field, listed.name) {
        ("src1" | "vsrc1", name) if name.contains("ldexp_f16") => Element::B16,
        ("src1" | "vsrc1", name) if name.contains("_class_") => Element::B32,
        (_, name) if name.contains("v_cvt_f32_ubyte") && !is_result => Element::B32,
        ("src1", name) if name.contains("cvt_sr_") => Element::B32,
        ("src2", name) if name.contains("cndmask") => Element::B32,
        _ => element,
    };
    Operand::new(field, element, words)
}

fn is_matrix(name: &str) -> bool {
    ["v_wmma", "v_swmmac", "v_mfma", "v_smfmac"].iter().any(|prefix| name.starts_with(prefix))
}

/// What a result is made of.
fn result(name: &str, types: &[Element], words: usize) -> Element {
    let first = types.first().copied().unwrap_or(Element::B32);
    let element = if name.contains("pack_b32_f16") {
        Element::F16
    } else if name.contains("cvt_pk_u8") || name.contains("sad") || name.contains("frexp_exp") {
        Element::B32
    } else {
        first
    };
    if element.bits() as usize > 32 * words { Element::B32 } else { element }
}

/// The group of an instruction.
fn group(name: &str, inputs: &[Operand], outputs: &[Operand]) -> Group {
    let floats = || inputs.iter().chain(outputs).any(|operand| operand.element.float().is_some());
    if is_matrix(name) {
        Group::Matrix
    } else if name.starts_with("v_cmp") {
        Group::Compare
    } else if name.contains("_dot") {
        Group::Dot
    } else if name.starts_with("v_pk_") {
        Group::Packed
    } else if floats() {
        Group::Float
    } else {
        Group::Integer
    }
}

/// How exact a result is.
fn accuracy(name: &str, group: Group) -> Accuracy {
    const APPROXIMATE: [&str; 7] = ["_rcp_", "_rsq_", "_sqrt_", "_exp_", "_log_", "_sin_", "_cos_"];
    let float = |name: &str| name.contains("_f32") || name.contains("_f16") || name.contains("_f64");
    if APPROXIMATE.iter().any(|part| name.contains(part)) && !name.contains("frexp") {
        // f64: 2^29.
        Accuracy::Ulps(if name.contains("f64") { 1 << 29 } else { 1 })
    } else if matches!(group, Group::Matrix | Group::Dot) && float(name) {
        Accuracy::Order
    } else {
        Accuracy::Exact
    }
}

/// The settings of MODE that matter.
fn modes(gfx: Gfx, group: Group, inputs: &[Operand], outputs: &[Operand]) -> Vec<Mode> {
    let floats = inputs.iter().chain(outputs).any(|operand| operand.element.float().is_some());
    match group {
        Group::Float | Group::Packed | Group::Compare | Group::Dot if floats => {
            let mut modes = ARITHMETIC.to_vec();
            if gfx.generation() != Generation::Gfx12 {
                modes.push(NO_IEEE);
            }
            modes
        }
        Group::Matrix if floats => vec![DEFAULT, ARITHMETIC[3], ARITHMETIC[4]],
        _ => vec![DEFAULT],
    }
}

/// One form of an instruction.
struct Form {
    /// Behind the name in a report.
    label: &'static str,
    /// Before and behind each source.
    around: [(&'static str, &'static str); 3],
    /// Behind the operands.
    suffix: String,
    /// Instead of those that follow from the operands.
    modes: Option<Vec<Mode>>,
    /// Instead of the table's types.
    sources: Option<Element>,
    /// The half of a register that a 16-bit operand is.
    half: &'static str,
}

impl Form {
    fn new(label: &'static str, suffix: impl Into<String>) -> Form {
        Form { label, around: [("", ""); 3], suffix: suffix.into(), modes: None, sources: None, half: ".l" }
    }

    fn under(mut self, modes: Vec<Mode>) -> Form {
        self.modes = Some(modes);
        self
    }
}

/// The forms of an instruction with so many sources.
fn forms(gfx: Gfx, listed: &Listed, group: Group) -> Vec<Form> {
    let name = listed.name;
    let mut forms = vec![Form::new("", if name.starts_with("v_bitop3") { "bitop3:0x6a" } else { "" })];
    let is = |names: &[&str]| names.iter().any(|part| name.starts_with(part));
    let only_e32 = listed.operands.contains(&"e32only");
    let sources: Vec<&str> =
        listed.operands.iter().copied().filter(|o| o.starts_with("src") || o.starts_with("vsrc")).collect();
    let all = |ty: &[&str]| {
        !sources.is_empty() && sources.iter().all(|o| o.split_once(':').is_some_and(|(_, t)| ty.contains(&t)))
    };
    if name.starts_with("v_bitop3") {
        forms.push(Form::new("0xd1", "bitop3:0xd1"));
        return forms;
    }
    if listed.section != "vop3p"
        && !only_e32
        && all(&["f16", "f32", "f64"])
        && !["cndmask", "ldexp", "_f32_fp8", "_f32_bf8"].iter().any(|part| name.contains(part))
    {
        let mut form = Form::new("-|a| -b |c|", "");
        form.around = [("-|", "|"), ("-", ""), ("|", "|")];
        forms.push(form);
    }
    let arithmetic = [
        "v_add_f",
        "v_sub_f",
        "v_mul_f",
        "v_fma_f",
        "v_pk_fma_f16",
        "v_pk_add_f16",
        "v_pk_mul_f16",
        "v_min_f",
        "v_max_f",
        "v_fma_mix",
    ];
    if is(&arithmetic) {
        let clamped = vec![DEFAULT, NO_DX10_CLAMP];
        let clamped = if gfx.generation() == Generation::Gfx12 { vec![DEFAULT] } else { clamped };
        forms.push(Form::new("clamp", "clamp").under(clamped));
    }
    if is(&["v_add_f32", "v_mul_f32", "v_fma_f32", "v_add_f16", "v_mul_f64"]) {
        for (label, suffix) in [("mul:2", "mul:2"), ("mul:4", "mul:4"), ("div:2", "div:2")] {
            forms.push(Form::new(label, suffix).under(vec![OUTPUT_MODIFIERS, DEFAULT]));
        }
    }
    let saturating = [
        "v_add_u16",
        "v_sub_u16",
        "v_add_u32",
        "v_sub_u32",
        "v_add_nc_u32",
        "v_sub_nc_u32",
        "v_add_nc_u16",
        "v_sub_nc_u16",
        "v_add_nc_i16",
        "v_sub_nc_i16",
        "v_add_nc_i32",
        "v_sub_nc_i32",
        "v_add_i32",
        "v_sub_i32",
        "v_add_i16",
        "v_sub_i16",
        "v_mad_u32_u24",
        "v_mad_i32_i24",
        "v_mad_u16",
        "v_mad_i16",
        "v_pk_add_u16",
        "v_pk_sub_u16",
        "v_pk_add_i16",
        "v_pk_sub_i16",
        "v_pk_mad_u16",
        "v_pk_mad_i16",
        "v_dot4_i32",
        "v_dot8_i32",
        "v_dot4_u32_u8",
        "v_dot8_u32_u4",
        "v_dot2_i32_i16",
        "v_dot2_u32_u16",
        "v_mad_u32_u16",
        "v_mad_i32_i16",
        "v_sad_u8",
        "v_sad_u16",
        "v_sad_u32",
    ];
    if is(&saturating) {
        forms.push(Form::new("clamp", "clamp"));
    }
    let count = sources.len();
    let list = |bits: [u8; 3]| bits[..count.min(3)].iter().map(u8::to_string).collect::<Vec<_>>().join(",");
    let packed = name.starts_with("v_pk_") && listed.section == "vop3p" && !name.contains("mov");
    if packed {
        let (low, high) = (list([1, 0, 1]), list([0, 1, 0]));
        forms.push(Form::new("halves", format!("op_sel:[{low}] op_sel_hi:[{high}]")));
        if all(&["v2f16"]) || name.ends_with("_f32") {
            let (low, high) = (list([1, 0, 1]), list([0, 1, 1]));
            forms.push(Form::new("negated", format!("neg_lo:[{low}] neg_hi:[{high}]")));
        }
    }
    if name.starts_with("v_fma_mix") || name.starts_with("v_mad_mix") {
        for (label, suffix) in
            [("f16 f16 f16", "op_sel_hi:[1,1,1]"), ("upper f16 f16 f16", "op_sel:[1,1,1] op_sel_hi:[1,1,1]")]
        {
            forms.push(Form { sources: Some(Element::F16), ..Form::new(label, suffix) });
        }
        let mut form = Form::new("f32 -f32 |f32|", "");
        form.around = [("", ""), ("-", ""), ("|", "|")];
        forms.push(form);
    }
    // The upper half of a register: from gfx11 on of every 16-bit operand, before where the 64-bit encoding can reach it.
    let half = |word: &&str| [":i16", ":f16", ":b16"].iter().any(|ty| word.ends_with(ty));
    if matches!(gfx.generation(), Generation::Gfx11 | Generation::Gfx12) {
        if listed.operands.iter().any(half) {
            forms.push(Form { half: ".h", ..Form::new("upper halves", "") });
        }
    } else if listed.section == "vop3"
        && group != Group::Dot
        && listed.operands[0] == "vdst:b16"
        && listed.operands[1..].iter().all(half)
        && !name.contains("legacy")
        && (!name.contains("mul_lo_u16") && !name.contains("rev") || gfx.generation() != Generation::Gfx10)
    {
        let ones = vec!["1"; count + 1].join(",");
        forms.push(Form::new("upper halves", format!("op_sel:[{ones}]")));
    }
    if ["iu8", "iu4"].iter().any(|ty| name.contains(ty)) {
        forms.push(Form::new("signed", "neg_lo:[1,1,0]"));
        forms.push(Form::new("signed and unsigned", "neg_lo:[1,0,0]"));
        if !name.contains("dot") {
            forms.push(Form::new("signed, clamp", "neg_lo:[1,1,0] clamp"));
        }
    }
    forms
}

/// Adds the forms of an instruction.
fn of(gfx: Gfx, listed: &Listed, list: &mut Vec<Operation>) {
    let name = listed.name;
    let mask = if gfx.wave_size() == 64 { "vcc" } else { "vcc_lo" };
    let (mut inputs, mut outputs, mut words) = (Vec::new(), Vec::new(), Vec::new());
    let (mut before, mut after) = (String::new(), String::new());
    let mut sources = 0;
    // From gfx11 on, assembly says which half of a register a 16-bit operand is.
    let halves = matches!(gfx.generation(), Generation::Gfx11 | Generation::Gfx12);
    let half = |ty: Option<&str>| match ty {
        Some("b16" | "f16" | "i16") if halves => "{half}",
        _ => "",
    };
    // The old value of the result is an input, the first one.
    for word in &listed.operands {
        let (field, ty) = word.split_once(':').map_or((*word, None), |(field, ty)| (field, Some(ty)));
        match field {
            "vdst" => {
                outputs.push(operand(listed, field, ty));
                words.push(format!("{{out0}}{}", half(ty)));
            }
            "src2" if name == "v_cndmask_b16" => words.push(mask.to_owned()),
            "src0" | "src1" | "src2" | "vsrc1" => {
                inputs.push(operand(listed, field, ty));
                words.push(format!("{{left{sources}}}{{source{sources}}}{}{{right{sources}}}", half(ty)));
                sources += 1;
            }
            "sdst" | "vcc" if sources == 0 => words.push(mask.to_owned()),
            "vcc" => words.push(mask.to_owned()),
            "k" => words.push(if name.ends_with("f16") { "0x4200" } else { "0x40400000" }.to_owned()),
            "e32only" => {}
            _ => return,
        }
    }
    let mut tied = outputs.len();
    let masks_out = listed
        .operands
        .iter()
        .position(|word| *word == "sdst" || *word == "vcc")
        .is_some_and(|at| listed.operands[..at].iter().all(|word| !word.contains("src")));
    let masks_in = listed.operands.last() == Some(&"vcc") && listed.operands.len() > 2
        || ["v_div_fmas_f32", "v_div_fmas_f64", "v_cndmask_b16"].contains(&name);
    let exec = if gfx.wave_size() == 64 { "exec" } else { "exec_lo" };
    let mov = if gfx.wave_size() == 64 { "s_mov_b64" } else { "s_mov_b32" };
    let writes_exec = name.starts_with("v_cmpx");
    if masks_in {
        inputs.push(Operand::new("vcc", Element::Bit, 1));
        before = format!("v_cmp_ne_u32 {mask}, 0, {{mask_in}}\n{{settle}}\n");
    }
    if writes_exec {
        let kept = if gfx.wave_size() == 64 { "s[40:41]" } else { "s40" };
        before = format!("v_mov_b32 {{mask_out}}, 0\n{mov} {kept}, {exec}\n");
        after = format!("{{settle}}\nv_mov_b32 {{mask_out}}, 1\n{mov} {exec}, {kept}\n");
        outputs.push(Operand::new("exec", Element::Bit, 1));
    } else if masks_out {
        after = format!("{{settle}}\nv_cndmask_b32 {{mask_out}}, 0, 1, {mask}\n");
        outputs.push(Operand::new(if listed.section == "vop3" { "sdst" } else { "vcc" }, Element::Bit, 1));
    }
    tied = tied.min(outputs.len());
    let group = group(name, &inputs, &outputs);
    for form in forms(gfx, listed, group) {
        let mut inputs = inputs.clone();
        if let Some(element) = form.sources {
            inputs.iter_mut().for_each(|operand| operand.element = element);
        }
        // Old values of results come first.
        let old = outputs[..tied].iter().map(|output| Operand { name: "old".to_owned(), ..output.clone() });
        let inputs: Vec<Operand> = old.chain(inputs).collect();
        let mut operands = words.join(", ");
        for (i, (left, right)) in form.around.iter().enumerate() {
            operands = operands
                .replace(&format!("{{left{i}}}"), left)
                .replace(&format!("{{source{i}}}"), &format!("{{in{}}}", i + tied))
                .replace(&format!("{{right{i}}}"), right);
        }
        let operands = operands.replace("{half}", form.half);
        let text = format!("{before}{name} {operands} {}\n{after}", form.suffix)
            .replace("{mask_out}", &format!("{{out{}}}", outputs.len() - 1))
            .replace("{mask_in}", &format!("{{in{}}}", inputs.len() - 1));
        let title = [name, form.label].join(" ").trim_end().to_owned();
        let registers = match gfx {
            Gfx::Gfx908 if group == Group::Matrix => Registers::Accumulation,
            _ => Registers::Vector,
        };
        let accuracy = accuracy(name, group);
        let modes = form.modes.unwrap_or_else(|| modes(gfx, group, &inputs, &outputs));
        let operation = Operation {
            kernel: symbol(&title),
            name: title.clone(),
            group,
            inputs,
            outputs: outputs.clone(),
            modes,
            accuracy,
            uniform: false,
            small_integers: false,
            body: Body::Assembly { text, tied, registers },
        };
        if group == Group::Matrix && accuracy == Accuracy::Order {
            let name = format!("{title}, small integers");
            list.push(Operation {
                kernel: symbol(&name),
                name,
                modes: vec![DEFAULT],
                accuracy: Accuracy::Exact,
                small_integers: true,
                ..operation.clone()
            });
        }
        list.push(operation);
    }
}

/// The instruction wants its first source to be one of the others.
fn div_scale(gfx: Gfx, ty: &str, element: Element, words: usize, list: &mut Vec<Operation>) {
    let mask = if gfx.wave_size() == 64 { "vcc" } else { "vcc_lo" };
    for (label, first) in [("of the denominator", "{in1}"), ("of the numerator", "{in2}")] {
        let name = format!("v_div_scale_{ty} {label}");
        let text = format!(
            "v_div_scale_{ty} {{out0}}, {mask}, {first}, {{in1}}, {{in2}}\n{{settle}}\n\
             v_cndmask_b32 {{out1}}, 0, 1, {mask}\n"
        );
        list.push(Operation {
            kernel: symbol(&name),
            name,
            group: Group::Float,
            inputs: vec![
                Operand::new("old", element, words),
                Operand::new("src1", element, words),
                Operand::new("src2", element, words),
            ],
            outputs: vec![Operand::new("vdst", element, words), Operand::new("vcc", Element::Bit, 1)],
            modes: ARITHMETIC.to_vec(),
            accuracy: Accuracy::Exact,
            uniform: false,
            small_integers: false,
            body: Body::Assembly { text, tied: 1, registers: Registers::Vector },
        });
    }
}
