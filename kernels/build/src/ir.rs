//! Edits of LLVM IR that neither rustc nor the LLVM tools have a switch for. They work on text, one `define` line at a
//! time.

use crate::module::{Calls, Function};
use crate::signature::{self, RecordError, Signature};

/// The signatures that the attribute left in a module.
///
/// # Errors
/// If a record is damaged.
pub fn signatures(ir: &str) -> Result<Vec<Signature>, RecordError> {
    let records =
        ir.lines().filter(|l| is_record(l)).filter_map(|l| l.split_once("c\"AMD")).map(|(_, text)| {
            let mut bytes = unescape(&format!("AMD{}", text.split('"').next().unwrap_or_default()));
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            bytes
        });
    signature::parse_section(&records.collect::<Vec<_>>().concat())
}

fn is_record(line: &str) -> bool {
    let is_one = |name: &str| name.ends_with(".signature") || name.ends_with(".structure");
    line.starts_with('@') && line.split_once(" = ").is_some_and(|(name, _)| is_one(name))
}

/// The bytes of an LLVM string constant.
fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = |d: u8| (d as char).to_digit(16).map(|d| d as u8);
        match (first, tail) {
            (b'\\', [h, l, after @ ..]) if hex(*h).is_some() && hex(*l).is_some() => {
                bytes.push(hex(*h).unwrap_or(0) << 4 | hex(*l).unwrap_or(0));
                rest = after;
            }
            (b'\\', [b'\\', after @ ..]) => {
                bytes.push(b'\\');
                rest = after;
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    bytes
}

/// The functions that PTX declares and nothing defines, apart from those that the CUDA driver has.
pub fn undefined(ptx: &str) -> Vec<String> {
    let of_the_driver = ["vprintf", "malloc", "free", "__assertfail"];
    let mut names = Vec::new();
    for declared in ptx.split(".extern .func").skip(1) {
        // A result comes before the name: `.extern .func  (.param .b32 func_retval0) fmodf`.
        let declared = declared.trim_start();
        let declared = match declared.strip_prefix('(') {
            Some(result) => result.split_once(')').map_or("", |(_, rest)| rest).trim_start(),
            None => declared,
        };
        let name = declared.split(|c: char| c.is_whitespace() || "(;".contains(c)).next().unwrap_or_default();
        if !of_the_driver.contains(&name) {
            names.push(name.to_owned());
        }
    }
    names
}

/// A module that was made for one processor, for another.
pub fn for_cpu(ir: &str, from: &str, to: &str) -> String {
    ir.replace(&format!("\"target-cpu\"=\"{from}\""), &format!("\"target-cpu\"=\"{to}\""))
}

/// A module in which nothing needs the kernels that `drop` names, so that LLVM's passes begin by removing them.
pub fn without(ir: &str, drop: impl Fn(&str) -> bool) -> String {
    let mut out = String::with_capacity(ir.len() + ir.len() / 64);
    for line in ir.lines() {
        let rest = ["define amdgpu_kernel void @", "define ptx_kernel void @"]
            .iter()
            .find_map(|start| line.strip_prefix(start))
            .filter(|rest| rest.split_once('(').is_some_and(|(name, _)| drop(name)));
        match rest {
            Some(_) => out.push_str(&line.replacen("define", "define internal", 1)),
            None => out.push_str(line),
        }
        out.push('\n');
    }
    out
}

/// Gives workgroup memory to the functions of amdgpu-device that stand for it: a variable of its own to each, whose address takes
/// the place of a call that says how many bytes it has and how they are aligned. Rust has no word for such memory.
pub fn workgroup_memory(ir: String) -> String {
    const CALL: &str = " = call ";
    const SLOT: &str = "@amdgpu_device_workgroup_slot(";
    if !ir.contains(SLOT) {
        return ir;
    }
    let mut out = String::with_capacity(ir.len() + 1024);
    let mut variables = String::new();
    for (number, line) in ir.lines().enumerate() {
        let call = line.split_once(CALL).and_then(|(result, call)| Some((result, call.split_once(SLOT)?.1)));
        let Some((result, rest)) = call else {
            out.push_str(line);
            out.push('\n');
            continue;
        };
        let (arguments, tail) = rest.split_once(')').unwrap_or((rest, ""));
        let numbers = arguments.split(',').filter_map(|a| a.rsplit(' ').next()?.parse::<u64>().ok());
        let [bytes, align] = numbers.collect::<Vec<_>>()[..] else {
            // The linker then names the function that is not there.
            out.push_str(line);
            out.push('\n');
            continue;
        };
        // The function's attributes go, the line in the source stays.
        let location = tail.find(", !dbg").map_or("", |at| &tail[at..]);
        let bytes = bytes.max(1);
        variables += &format!(
            "@amdgpu_device_slot.{number} = internal addrspace(3) global [{bytes} x i8] poison, align {align}\n"
        );
        out += &format!(
            "{result} = addrspacecast ptr addrspace(3) @amdgpu_device_slot.{number} to ptr{location}\n"
        );
    }
    out + &variables
}

/// Prepares a module for amdgcn: launch bounds for each kernel, pointer arguments that LLVM knows to be global, and
/// arguments that have their names, which the metadata then shows.
///
/// rustc has no word for the first two. Without the bounds LLVM assumes 1,024 work-items; without the address space
/// every access is a flat one, which waits for workgroup memory too.
pub fn amdgpu(ir: &str, signatures: &[Signature]) -> String {
    let ir = ir.replace("call void @llvm.trap()", "call void @amdgpu_device_trap()");
    let mut out = String::with_capacity(ir.len() + ir.len() / 16);
    let mut lines = ir.lines();
    while let Some(line) = lines.next() {
        let kernel = line
            .strip_prefix("define amdgpu_kernel void @")
            .and_then(|rest| rest.split_once('('))
            .and_then(|(name, rest)| Some((signatures.iter().find(|s| s.name == name)?, rest)));
        match kernel {
            Some((kernel, rest)) => {
                let body: Vec<&str> = lines.by_ref().take_while(|l| *l != "}").collect();
                out.push_str(&entry(kernel, rest, &body));
            }
            None if line.starts_with("define ") && OUTLINED.iter().all(|part| line.contains(part)) => {
                let line =
                    line.replacen("define internal", "define", 1).replacen("define", "define internal", 1);
                out.push_str(&with_attributes(&line, "noinline"));
                out.push('\n');
            }
            None => {
                out.push_str(line);
                out.push('\n');
            }
        }
    }
    out.push_str(TRAP);
    if out.contains(COPY_OF_KERNARG) {
        out += &format!("declare {COPY_OF_KERNARG}(ptr addrspace(5), ptr addrspace(4), i64, i1 immarg)\n");
    }
    if !ir.contains("@llvm.amdgcn.endpgm(") {
        out.push_str("declare void @llvm.amdgcn.endpgm() cold noreturn nounwind\n");
    }
    out
}

/// Copies a structure from the kernarg block.
const COPY_OF_KERNARG: &str = "void @llvm.memcpy.p5.p4.i64";

/// In the names of functions that kernels call and that are not to be inlined: those of amdgpu-device's `elementwise::outlined`. rustc
/// has no `inline(never)` for this target.
const OUTLINED: [&str; 2] = ["@_RINvNtNtC", "13amdgpu_device11elementwise8outlined"];

/// What marks the functions that do not call themselves, in lines as opt's `-forceattrs-csv-path` reads them.
///
/// LLVM sees it of a function that calls nothing but intrinsics that say so. Of a call of any other function it assumes that
/// it comes back, so that the kernel's stack has no known size: AMD's runtime then gives every lane one.
pub fn without_recursion(functions: &[Function], calls: &Calls) -> String {
    let plain = (0..functions.len()).filter(|&at| !functions[at].is_kernel && !calls.recurses(at));
    plain.map(|at| format!("{},norecurse\n", functions[at].name)).collect()
}

/// What a panic does. Not `llvm.trap`: for gfx11 LLVM 22 makes a loop of it, and forgets to expand the pseudo
/// instructions of the blocks behind.
const TRAP: &str = "
define internal void @amdgpu_device_trap() alwaysinline cold noreturn nounwind {
  call void asm sideeffect \"s_trap 2\", \"\"()
  call void @llvm.amdgcn.endpgm()
  unreachable
}
";

/// One kernel, from the text after `(` and its body.
fn entry(kernel: &Signature, rest: &str, body: &[&str]) -> String {
    let (params, tail) = params(rest);
    let mut body: Vec<String> = body.iter().map(|&l| l.to_owned()).collect();
    let mut rename = |from: &str, to: &str| {
        for line in &mut body {
            *line = renamed(line, from, to);
        }
    };
    let mut typed = Vec::new();
    let mut casts = String::new();
    for (param, arg) in params.iter().zip(&kernel.args) {
        let (ty, value) = param.rsplit_once(" %").unwrap_or((param, &arg.name));
        let name = &arg.name;
        // rustc leaves a parameter without its name whose function it inlined, and gives the name to a copy.
        if value != name {
            rename(name, &format!("{name}.copy"));
            rename(value, name);
        }
        match ty.strip_prefix("ptr") {
            Some(_) if let Some(structure) = arg.structure_by_value() => {
                // The function may write its structure; the copy becomes registers.
                let (size, align) = (structure.size, structure.align);
                rename(name, &format!("{name}.generic"));
                casts += &format!(
                    "  %{name}.own = alloca [{size} x i8], align {align}, addrspace(5)\n  \
                     call {COPY_OF_KERNARG}(ptr addrspace(5) align {align} %{name}.own, \
                     ptr addrspace(4) align {align} %{name}, i64 {size}, i1 false)\n  \
                     %{name}.generic = addrspacecast ptr addrspace(5) %{name}.own to ptr\n"
                );
                typed.push(format!("ptr addrspace(4) byref([{size} x i8]) align {align} %{name}"));
            }
            Some(attributes) => {
                rename(name, &format!("{name}.generic"));
                casts += &format!("  %{name}.generic = addrspacecast ptr addrspace(1) %{name} to ptr\n");
                // A layout is not written during the launch: its loads may move freely.
                let constant = if arg.layout.is_some() { " noalias readonly" } else { "" };
                typed.push(format!("ptr addrspace(1){constant}{attributes} %{name}"));
            }
            None => typed.push(format!("{ty} %{name}")),
        }
    }
    let bounds = format!(
        "\"amdgpu-flat-work-group-size\"=\"1,{}\" \"uniform-work-group-size\"=\"true\"",
        kernel.launch.max_workgroup_size
    );
    let define = format!("define amdgpu_kernel void @{}({}){tail}", kernel.name, typed.join(", "));
    let mut out = with_attributes(&define, &bounds) + "\n";
    // The label of the first block, if it has one.
    let labelled = body.first().is_some_and(|l| !l.starts_with(' '));
    if labelled {
        out += &(body.remove(0) + "\n");
    }
    out += &casts;
    for line in body {
        out += &(line + "\n");
    }
    out + "}\n"
}

/// The parameters up to the closing parenthesis, and what comes after it.
fn params(rest: &str) -> (Vec<&str>, &str) {
    let (mut params, mut depth, mut from) = (Vec::new(), 0, 0);
    for (i, c) in rest.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' if depth == 0 => {
                params.push(rest[from..i].trim());
                params.retain(|p| !p.is_empty());
                return (params, &rest[i + 1..]);
            }
            ')' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                params.push(rest[from..i].trim());
                from = i + 1;
            }
            _ => (),
        }
    }
    (params, "")
}

/// Prepares a module for nvptx64: launch bounds, and no records, which PTX has no section for.
pub fn nvptx(ir: &str, signatures: &[Signature]) -> String {
    let mut out = String::with_capacity(ir.len());
    for line in ir.lines().filter(|l| !is_record(l)) {
        let kernel = line
            .strip_prefix("define ptx_kernel void @")
            .and_then(|rest| rest.split_once('('))
            .and_then(|(name, _)| signatures.iter().find(|s| s.name == name));
        match kernel {
            Some(kernel) => {
                let most = kernel.launch.max_workgroup_size;
                let mut bounds = format!("\"nvvm.maxntid\"=\"{most}\"");
                // Left to itself, ptxas keeps registers few and loads apart. A kernel that has small workgroups and allows
                // no large ones has registers for loads that are on their way together: 128 at least.
                if kernel.launch.workgroup_size() < most && most <= 256 {
                    bounds.push_str(" \"nvvm.minctasm\"=\"2\"");
                }
                out.push_str(&with_attributes(line, &bounds));
            }
            None => out.push_str(line),
        }
        out.push('\n');
    }
    out
}

/// A `define` line with more function attributes. They stand before the metadata and the brace.
fn with_attributes(define: &str, attributes: &str) -> String {
    let end = define.find(" !").unwrap_or_else(|| define.rfind(" {").unwrap_or(define.len()));
    format!("{} {attributes}{}", &define[..end], &define[end..])
}

/// The line with the local value `%from` under another name.
fn renamed(line: &str, from: &str, to: &str) -> String {
    let name = format!("%{from}");
    let mut out = String::new();
    let mut rest = line;
    while let Some(at) = rest.find(&name) {
        let (before, after) = (&rest[..at], &rest[at + name.len()..]);
        let whole = !after.starts_with(|c: char| c.is_ascii_alphanumeric() || "_.-$".contains(c));
        out.push_str(before);
        out.push_str(&if whole { format!("%{to}") } else { name.clone() });
        rest = after;
    }
    out + rest
}

#[cfg(test)]
mod tests;
