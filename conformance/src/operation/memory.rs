//! Memory instructions, from the tables: each lane on memory of its own, so that no order matters.

use amdgpu_emulator::listing::{self, Listed};
use amdgpu_emulator::{Generation, Gfx};

use super::{ARITHMETIC, Accuracy, Body, DEFAULT, Element, Group, Operand, Operation, Space, symbol};

/// Left out, by parts of the name: between lanes (`lanes.rs` has those that are), other memories, cache control, and what the
/// emulator does not have.
const WITHOUT: [&str; 25] = [
    "permute",
    "swizzle",
    "nop",
    "consume",
    "append",
    "bvh",
    "addtid",
    "_gs_reg",
    "gws",
    "ordered",
    "src2",
    "condxchg",
    "_tr_",
    "load_lds",
    "_lds_",
    "global_inv",
    "global_wb",
    "block",
    "buffer_",
    "ds_read_b64_tr",
    "prefetch",
    "svs",
    "monitor",
    "_inv",
    "_wb",
];

/// Bytes of LDS of a lane: the widest access, for 64 lanes.
const LANE_BYTES: usize = 32;

pub(super) fn operations(gfx: Gfx, list: &mut Vec<Operation>) {
    for listed in listing::instructions(gfx) {
        if WITHOUT.iter().any(|part| listed.name.contains(part)) {
            continue;
        }
        match listed.section {
            "ds" => lds(&listed, list),
            "global" | "flat" => global(gfx, &listed, list),
            _ => {}
        }
    }
}

fn words(ty: Option<&str>) -> usize {
    match ty {
        Some("i64" | "f64") => 2,
        Some(bits) => bits.parse::<usize>().map_or(1, |bits| bits / 32),
        None => 1,
    }
}

/// What a mnemonic says that is stored.
fn element(name: &str, words: usize) -> Element {
    let has = |ty: &str| name.contains(ty);
    if has("pk_add_f16") {
        Element::F16
    } else if has("pk_add_bf16") {
        Element::Bf16
    } else if has("f64")
        || (has("fmin") || has("fmax") || has("fcmpswap")) && words.is_multiple_of(2) && has("_x2")
    {
        Element::F64
    } else if has("f32") || has("_fmin") || has("_fmax") || has("_fcmpswap") {
        Element::F32
    } else if words == 2 && (has("64") || has("_x2")) {
        Element::B64
    } else {
        Element::B32
    }
}

fn operation(
    name: String,
    group: Group,
    (inputs, outputs): (Vec<Operand>, Vec<Operand>),
    results: usize,
    space: Space,
    text: String,
) -> Operation {
    let float = inputs.iter().any(|operand| operand.element.float().is_some());
    // Rounding and denormals of atomics are the memory's, whatever MODE says; both are to agree on that.
    let modes = if float { vec![DEFAULT, ARITHMETIC[3], ARITHMETIC[4]] } else { vec![DEFAULT] };
    Operation {
        kernel: symbol(&name),
        name,
        group,
        inputs,
        outputs,
        modes,
        accuracy: Accuracy::Exact,
        uniform: false,
        small_integers: false,
        body: Body::Memory { text, space, results },
    }
}

fn lds(listed: &Listed, list: &mut Vec<Operation>) {
    let name = listed.name;
    let (mut inputs, mut outputs, mut operands) = (Vec::new(), Vec::new(), Vec::new());
    let mut data = Vec::new();
    for word in &listed.operands {
        let (field, ty) = word.split_once(':').map_or((*word, None), |(field, ty)| (field, Some(ty)));
        let count = words(ty);
        match field {
            "vdst" => {
                let operand = Operand::new("vdst", element(name, count), count);
                inputs.push(Operand { name: "old".to_owned(), ..operand.clone() });
                outputs.push(operand);
                operands.push("{out0}".to_owned());
            }
            "addr" => operands.push("{address}".to_owned()),
            "data0" | "data1" => {
                data.push(count);
                operands.push(format!("{{data{}}}", data.len() - 1));
                inputs.push(Operand::new(field, element(name, count), count));
            }
            _ => return,
        }
    }
    if !operands.iter().any(|word| word == "{address}") {
        return;
    }
    let results = outputs.len();
    let mut operands = operands.join(", ");
    for i in 0..data.len() {
        operands = operands.replace(&format!("{{data{i}}}"), &format!("{{in{}}}", i + results));
    }
    let pair = ["2addr", "read2", "write2", "wrxchg2"].iter().any(|part| name.contains(part));
    let far = name.contains("stride64") || name.contains("2st64");
    let bytes = if name.contains("64") && !name.ends_with("b32") { 8 } else { 4 };
    let (space, held, offsets) = if far {
        // Two places 64 elements apart: the first of all lanes, then the second of all lanes.
        let space = Space::Lds { lane_bytes: bytes, chunks: 2, distance: 64 * bytes };
        (space, 2 * bytes / 4, "offset0:0 offset1:1")
    } else if pair {
        let space = Space::Lds { lane_bytes: LANE_BYTES, chunks: 1, distance: 0 };
        (space, LANE_BYTES / 4, "offset0:1 offset1:0")
    } else {
        let space = Space::Lds { lane_bytes: LANE_BYTES, chunks: 1, distance: 0 };
        let offset = if is_wide(name) { "" } else { "offset:8" };
        (space, LANE_BYTES / 4, offset)
    };
    let held = Operand::new("memory", element(name, data.first().copied().unwrap_or(1)), held);
    inputs.push(held.clone());
    outputs.push(held);
    let text = format!("{name} {operands} {offsets}");
    list.push(operation(name.to_owned(), Group::Lds, (inputs, outputs), results, space, text));
}

/// Whether an access is of 12 or 16 bytes.
fn is_wide(name: &str) -> bool {
    name.contains("b96") || name.contains("b128")
}

fn global(gfx: Gfx, listed: &Listed, list: &mut Vec<Operation>) {
    let name = listed.name;
    let atomic = name.contains("atomic");
    let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
    let (mut with, mut without) = (Vec::new(), Vec::new());
    let mut data = 1;
    for word in &listed.operands {
        let (field, ty) = word.split_once(':').map_or((*word, None), |(field, ty)| (field, Some(ty)));
        let count = words(ty);
        let mut both = |word: &str| {
            with.push(word.to_owned());
            without.push(word.to_owned());
        };
        match field {
            "vdst" | "rtn" => {
                let operand = Operand::new("vdst", element(name, count), count);
                inputs.push(Operand { name: "old".to_owned(), ..operand.clone() });
                outputs.push(operand);
                with.push("{out0}".to_owned());
                if field == "vdst" {
                    without.push("{out0}".to_owned());
                }
            }
            "vaddr" => both("{address}"),
            "vdata" => {
                data = count;
                both("{data}");
                inputs.push(Operand::new("vdata", element(name, count), count));
            }
            "saddr" => both("off"),
            _ => return,
        }
    }
    let element = element(name, data);
    let held = Operand::new("memory", element, 4);
    let suffix = match gfx.generation() {
        Generation::Gfx12 => "th:TH_ATOMIC_RETURN",
        Generation::Cdna if matches!(gfx, Gfx::Gfx942 | Gfx::Gfx950) => "sc0",
        _ => "glc",
    };
    // Not every float atomic gives its old value on every target.
    let may_return = !["gfx908"].contains(&gfx.name()) || !name.contains("f16") && !name.contains("f32");
    let title = if atomic { format!("{name} returning") } else { name.to_owned() };
    if !atomic || may_return {
        let results = outputs.len();
        let operands = with.join(", ").replace("{data}", &format!("{{in{results}}}"));
        let text = format!("{name} {operands} {}", if atomic { suffix } else { "" });
        let (mut inputs, mut outputs) = (inputs.clone(), outputs.clone());
        inputs.push(held.clone());
        outputs.push(held.clone());
        list.push(operation(title, Group::Memory, (inputs, outputs), results, Space::Global, text));
    }
    // Subtraction down to zero always gives the old value.
    if atomic && !name.contains("csub") {
        let operands = without.join(", ").replace("{data}", "{in0}");
        let inputs: Vec<Operand> =
            inputs.into_iter().filter(|operand| operand.name != "old").chain([held.clone()]).collect();
        let text = format!("{name} {operands}");
        list.push(operation(name.to_owned(), Group::Memory, (inputs, vec![held]), 0, Space::Global, text));
    }
}
