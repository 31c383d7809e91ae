//! Edits of LLVM IR that neither rustc nor the LLVM tools have a switch for. They work on text, one `define` line at a
//! time.

use crate::signature::{self, RecordError, Signature};

/// The signatures that the attribute left in a module.
///
/// # Errors
/// If a record is damaged.
pub fn signatures(ir: &str) -> Result<Vec<Signature>, RecordError> {
    let records =
        ir.lines().filter(|l| is_record(l)).filter_map(|l| l.split_once("c\"AMDK")).map(|(_, text)| {
            let mut bytes = unescape(&format!("AMDK{}", text.split('"').next().unwrap_or_default()));
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            bytes
        });
    signature::parse_section(&records.collect::<Vec<_>>().concat())
}

fn is_record(line: &str) -> bool {
    line.starts_with('@') && line.split_once(" = ").is_some_and(|(name, _)| name.ends_with(".signature"))
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

/// A module that was made for one processor, for another.
pub fn for_cpu(ir: &str, from: &str, to: &str) -> String {
    ir.replace(&format!("\"target-cpu\"=\"{from}\""), &format!("\"target-cpu\"=\"{to}\""))
}

/// Prepares a module for amdgcn: launch bounds for each kernel, and pointer arguments that LLVM knows to be global.
///
/// rustc has no word for either. Without the first LLVM assumes 1,024 work items; without the second every access is
/// a flat one, which waits for workgroup memory too.
pub fn amdgpu(ir: &str, signatures: &[Signature]) -> String {
    let mut out = String::with_capacity(ir.len() + ir.len() / 16);
    let mut lines = ir.lines();
    while let Some(line) = lines.next() {
        let kernel = line
            .strip_prefix("define amdgpu_kernel void @")
            .and_then(|rest| rest.split_once('('))
            .and_then(|(name, _)| signatures.iter().find(|s| s.name == name));
        let Some(kernel) = kernel else {
            out.push_str(line);
            out.push('\n');
            continue;
        };
        let bounds = format!(
            "\"amdgpu-flat-work-group-size\"=\"1,{}\" \"uniform-work-group-size\"=\"true\"",
            kernel.launch.max_workgroup_size
        );
        out.push_str(&with_attributes(&global_pointers(line, kernel), &bounds));
        out.push('\n');
        // The label of the first block, if it has one.
        let mut body: Vec<&str> = lines.by_ref().take_while(|l| *l != "}").collect();
        if let Some(label) = body.first().copied().filter(|l| !l.starts_with(' ')) {
            body.remove(0);
            out.push_str(label);
            out.push('\n');
        }
        for arg in pointers(kernel) {
            out.push_str(&format!("  %{arg}.generic = addrspacecast ptr addrspace(1) %{arg} to ptr\n"));
        }
        for line in body {
            let renamed =
                pointers(kernel).fold(line.to_owned(), |l, arg| rename(&l, arg, &format!("{arg}.generic")));
            out.push_str(&renamed);
            out.push('\n');
        }
        out.push_str("}\n");
    }
    out
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
                let bounds = format!("\"nvvm.maxntid\"=\"{}\"", kernel.launch.max_workgroup_size);
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

fn pointers(kernel: &Signature) -> impl Iterator<Item = &str> {
    kernel.args.iter().filter(|a| a.ty.is_pointer()).map(|a| a.name.as_str())
}

/// A `define` line whose pointer parameters are in the global address space.
fn global_pointers(define: &str, kernel: &Signature) -> String {
    let mut define = define.to_owned();
    for arg in kernel.args.iter().filter(|a| a.ty.is_pointer()) {
        // From the parameter's name back to its type, over attributes such as `noundef`.
        let at = [", ", ")"].iter().find_map(|end| define.find(&format!(" %{}{end}", arg.name)));
        let Some(ty) = at.and_then(|at| define[..at].rfind("ptr")) else { continue };
        // A layout is not written during the launch: its loads may move freely.
        let global =
            if arg.layout.is_some() { "ptr addrspace(1) noalias readonly" } else { "ptr addrspace(1)" };
        define.replace_range(ty..ty + 3, global);
    }
    define
}

/// The line with the local value `%from` under another name.
fn rename(line: &str, from: &str, to: &str) -> String {
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
mod tests {
    use super::*;
    use crate::signature::{Arg, ArgType, LaunchHints, LayoutOf};

    fn kernel() -> Signature {
        let pointer = |name: &str, layout| Arg {
            name: name.to_owned(),
            ty: ArgType::Pointer { mutable: true, pointee: "f32".to_owned() },
            size: 8,
            nullable: false,
            len: None,
            layout,
        };
        let layout = LayoutOf { numel: "n".to_owned(), num_dims: "d".to_owned(), of: vec![] };
        Signature {
            name: "k".to_owned(),
            doc: String::new(),
            file: String::new(),
            line: 1,
            args: vec![pointer("info", Some(layout)), pointer("out", None)],
            launch: LaunchHints {
                workgroup: [64, 1, 1],
                max_workgroup_size: 256,
                items_per_lane: 1,
                lds_bytes: 0,
                items: None,
                grid: None,
                lds: None,
            },
        }
    }

    #[test]
    fn pointers_of_kernels_become_global() {
        let ir = "define amdgpu_kernel void @k(ptr noundef %info, ptr noundef %out) unnamed_addr #0 !dbg !9 {\n\
                  start:\n  call void @f(ptr noundef %info, ptr %out, i8 %out_1)\n  ret void\n}\n\
                  define void @f(ptr %out) {\n";
        let expected = "define amdgpu_kernel void @k(ptr addrspace(1) noalias readonly noundef %info, \
                        ptr addrspace(1) noundef %out) unnamed_addr #0 \
                        \"amdgpu-flat-work-group-size\"=\"1,256\" \"uniform-work-group-size\"=\"true\" !dbg !9 {\n\
                        start:\n  %info.generic = addrspacecast ptr addrspace(1) %info to ptr\n  \
                        %out.generic = addrspacecast ptr addrspace(1) %out to ptr\n  \
                        call void @f(ptr noundef %info.generic, ptr %out.generic, i8 %out_1)\n  ret void\n}\n\
                        define void @f(ptr %out) {\n";
        assert_eq!(amdgpu(ir, &[kernel()]), expected);
    }

    #[test]
    fn strings_of_ir_are_bytes_again() {
        assert_eq!(unescape("A\\00\\FFb\\5C\\\\n"), [b'A', 0, 255, b'b', b'\\', b'\\', b'n']);
    }
}
