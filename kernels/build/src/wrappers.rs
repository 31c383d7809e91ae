//! Turns signatures into the Rust source that the host crate includes: one module for each family with its code
//! objects, the table of its kernels and a typed launch wrapper for each.
//!
//! A wrapper is one call into `candle_amdgpu::generated`, which has all checks; what a kernel's arguments mean
//! stands in the table. So a thousand wrappers compile in about the time of their type checks.

use crate::signature::{Arg, ArgType, Field, Signature, Structure, TensorOf};
use std::fmt::Write;
use std::path::PathBuf;

/// What is generated for one family (one module of kernels).
#[derive(Clone, Debug)]
pub struct Family {
    /// Name, a Rust identifier: `affine`.
    pub name: String,
    /// Its kernels, the same on every target, sorted by name.
    pub kernels: Vec<Signature>,
    /// Target (`gfx1100`) and absolute path of its code object.
    pub objects: Vec<(String, PathBuf)>,
}

/// Where code objects are from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// What compiled them: `rustc 1.96.0 (…), LLVM 22`. Empty without code objects.
    pub compiler: String,
    /// Whether they came with the package.
    pub prebuilt: bool,
    /// Which kernels were asked for, if not all: names and patterns.
    pub selection: String,
}

/// The source text for `families`, to be included in a module of its own.
pub fn generate(families: &[Family], origin: &Origin) -> String {
    let mut out = String::from("// Made by amdgpu-build from the kernels' signatures.\n\n");
    for family in families {
        family_module(&mut out, family, &origin.selection);
    }
    out.push_str("/// Every family of kernels that this build has.\n");
    out.push_str("pub static MODULES: &[&::candle_amdgpu::Module] = &[");
    for family in families {
        write!(out, "&{}::MODULE, ", ident(&family.name)).expect(STRING);
    }
    let Origin { compiler, prebuilt, .. } = origin;
    write!(
        out,
        "];\n\n\
         /// What compiled the code objects: rustc's and LLVM's versions. Empty without code objects.\n\
         #[allow(dead_code)]\npub static COMPILER: &str = {compiler:?};\n\n\
         /// Whether the code objects came with the package, and were not compiled by this build.\n\
         #[allow(dead_code)]\npub static PREBUILT: bool = {prebuilt};\n"
    )
    .expect(STRING);
    out
}

/// Writing to a `String` does not fail.
const STRING: &str = "a String takes any text";

fn family_module(out: &mut String, family: &Family, selection: &str) {
    let Family { name, kernels, objects } = family;
    let selected = if selection.is_empty() { String::new() } else { format!(".selected({selection:?})") };
    write!(
        out,
        "/// Launch wrappers of the {} `{name}` kernels.\n#[allow(non_snake_case, clippy::all)]\npub mod {} {{\n\
         use ::candle_amdgpu::generated::*;\n\n\
         /// The code objects and the table of this family.\n\
         pub static MODULE: Module = Module::new({name:?}, &OBJECTS, &KERNELS){selected};\n\n\
         static OBJECTS: [Object; {}] = [\n",
        kernels.len(),
        ident(name),
        objects.len(),
    )
    .expect(STRING);
    for (gfx, path) in objects {
        writeln!(out, "Object {{ gfx: {gfx:?}, bytes: include_bytes!({path:?}) }},").expect(STRING);
    }
    write!(out, "];\n\n/// What each kernel of this family takes, sorted by name.\n").expect(STRING);
    writeln!(out, "pub static KERNELS: [Kernel; {}] = [", kernels.len()).expect(STRING);
    let mut formulas = Formulas::default();
    for kernel in kernels {
        table_entry(out, &mut formulas, name, kernel);
    }
    out.push_str("];\n\n");
    for (i, formula) in formulas.0.iter().enumerate() {
        writeln!(out, "const F{i}: Formula = {formula};").expect(STRING);
    }
    let mut structures = Vec::new();
    for structure in kernels.iter().flat_map(|kernel| &kernel.args).filter_map(|arg| arg.structure.as_ref()) {
        collect(&mut structures, structure);
    }
    for structure in structures {
        definition(out, structure);
    }
    for (i, kernel) in kernels.iter().enumerate() {
        wrapper(out, i, kernel);
    }
    out.push_str("}\n\n");
}

/// Adds a structure and those in it, each once.
fn collect<'a>(known: &mut Vec<&'a Structure>, structure: &'a Structure) {
    for inner in structure.fields.iter().filter_map(|field| field.structure.as_ref()) {
        collect(known, inner);
    }
    if !known.contains(&structure) {
        known.push(structure);
    }
}

/// The host's structure for one of a kernel's, with a check that it is laid out as on the device.
fn definition(out: &mut String, structure: &Structure) {
    let Structure { name, doc, size, align, fields } = structure;
    // A scalar is aligned to its size.
    let of_field = |field: &Field| field.structure.as_ref().map_or(field.element_size, |inner| inner.align);
    let natural = fields.iter().map(of_field).max().unwrap_or(1);
    let align_more = if *align > natural { format!(", align({align})") } else { String::new() };
    let name = ident(name);
    writeln!(
        out,
        "#[doc = {:?}]\n#[allow(missing_docs)]\n#[derive(Clone, Copy, Debug, PartialEq)]\n#[repr(C{align_more})]\n\
         pub struct {name} {{",
        without_links(doc)
    )
    .expect(STRING);
    for field in fields {
        writeln!(out, "#[doc = {:?}]\npub {}: {field},", without_links(&field.doc), ident(&field.name))
            .expect(STRING);
    }
    write!(
        out,
        "}}\n\nconst _: () = {{\nassert!(size_of::<{name}>() == {size} && align_of::<{name}>() == {align});\n"
    )
    .expect(STRING);
    for Field { name: field, offset, .. } in fields {
        writeln!(out, "assert!(std::mem::offset_of!({name}, {}) == {offset});", ident(field)).expect(STRING);
    }
    write!(
        out,
        "}};\n\n// SAFETY: it has the device's layout, as just checked.\nunsafe impl KernelStructure for {name} {{}}\n\n"
    )
    .expect(STRING);
    if !structure.has_invalid_bits() {
        write!(
            out,
            "// SAFETY: the same, and all its bits belong to numbers.\nunsafe impl Element for {name} {{}}\n\n"
        )
        .expect(STRING);
    }
}

fn table_entry(out: &mut String, formulas: &mut Formulas, family: &str, kernel: &Signature) {
    let Signature { name, doc, file, line, args, launch } = kernel;
    writeln!(
        out,
        "Kernel {{ family: {family:?}, name: {name:?}, doc: {doc:?}, file: {file:?}, line: {line}, args: &["
    )
    .expect(STRING);
    for arg in args {
        let ty = match &arg.ty {
            ArgType::Value(name) => format!("ArgType::Value({name:?})"),
            ArgType::Pointer { mutable, pointee } => {
                format!("ArgType::Pointer {{ mutable: {mutable}, pointee: {pointee:?} }}")
            }
        };
        let layout = match &arg.layout {
            None => "None".to_owned(),
            Some(l) => format!(
                "Some(LayoutOf {{ numel: {}, num_dims: {}, of: &{:?} }})",
                position(kernel, &l.numel),
                position(kernel, &l.num_dims),
                l.of.iter().map(|name| position(kernel, name)).collect::<Vec<_>>(),
            ),
        };
        let tensors: Vec<_> = arg.tensors.iter().map(|tensor| tensor_of(kernel, tensor)).collect();
        let along = arg.along.as_ref().map_or("None".to_owned(), |along| {
            let numel = value_of(kernel, &format!("along_of_{}", along.of));
            let num_dims = position(kernel, &along.num_dims);
            format!("Some(AlongOf {{ num_dims: {num_dims}, numel: {numel} }})")
        });
        let requires: Vec<_> = arg.requires.iter().map(|text| formulas.condition(kernel, text)).collect();
        let promises = kernel.promises();
        let promise = promises.iter().find(|(name, _)| *name == arg.name).map(|(_, text)| text);
        writeln!(
            out,
            "Arg {{ name: {:?}, ty: {ty}, size: {}, nullable: {}, row_of: {}, len: {}, layout: {layout}, tensors: &[{}], along: {along}, value: {}, \
             requires: &[{}], promise: {promise:?}, align: {} }},",
            arg.name,
            arg.size,
            arg.nullable,
            if arg.by_row { format!("size_of::<{}>()", arg.ty.element()) } else { "0".to_owned() },
            formulas.optional(kernel, arg.len.as_deref()),
            tensors.join(", "),
            formulas.optional(kernel, arg.value.as_deref()),
            requires.join(", "),
            arg.align.unwrap_or(1),
        )
        .expect(STRING);
    }
    let grid = match &launch.grid {
        None => "None".to_owned(),
        Some(xyz) => format!("Some([{}])", xyz.each_ref().map(|e| formulas.named(kernel, e)).join(", ")),
    };
    writeln!(
        out,
        "], derived: &{:?}, geometry: LaunchHints {{ workgroup: {:?}, max_workgroup_size: {}, items_per_lane: {}, lds_bytes: {}, \
         items: {}, rows: {}, columns: {}, grid: {grid}, lds: {} }} }},",
        kernel.derived(),
        launch.workgroup,
        launch.max_workgroup_size,
        launch.items_per_lane,
        launch.lds_bytes,
        formulas.optional(kernel, launch.items.as_deref()),
        formulas.optional(kernel, launch.rows.as_deref()),
        formulas.optional(kernel, launch.columns.as_deref()),
        formulas.optional(kernel, launch.lds.as_deref()),
    )
    .expect(STRING);
}

/// A `TensorOf`; its numbers are positions among the values that formulas get.
fn tensor_of(kernel: &Signature, tensor: &TensorOf) -> String {
    let rank = tensor.rank.as_ref().map(|name| position(kernel, name));
    let dims: Vec<_> = tensor.dims.iter().map(|name| value_of(kernel, name)).collect();
    let numel = value_of(kernel, &format!("numel_of_{}", tensor.of));
    format!(
        "TensorOf {{ of: {}, rank: {rank:?}, dims: &{dims:?}, numel: {numel} }}",
        position(kernel, &tensor.of)
    )
}

/// Position of a number that follows from tensors, among the values that formulas get.
fn value_of(kernel: &Signature, name: &str) -> usize {
    let derived = kernel.derived();
    let at = derived.iter().position(|known| known == name).expect("`derived` has all names of tensors");
    kernel.args.len() + at
}

/// The different formulas of a family. Kernels share most, and each is a function that has to be compiled.
#[derive(Default)]
struct Formulas(Vec<String>);

impl Formulas {
    /// `Some(name)` or `None`.
    fn optional(&mut self, kernel: &Signature, expression: Option<&str>) -> String {
        expression.map_or_else(|| "None".to_owned(), |e| format!("Some({})", self.named(kernel, e)))
    }

    /// Name of the constant for an expression.
    fn named(&mut self, kernel: &Signature, expression: &str) -> String {
        self.constant(formula(kernel, expression, "Count::from"))
    }

    /// Name of the constant for a condition.
    fn condition(&mut self, kernel: &Signature, expression: &str) -> String {
        self.constant(formula(kernel, expression, "Count::of_condition"))
    }

    fn constant(&mut self, formula: String) -> String {
        let index = self.0.iter().position(|known| *known == formula).unwrap_or_else(|| {
            self.0.push(formula);
            self.0.len() - 1
        });
        format!("F{index}")
    }
}

/// A `Formula`: from the values of all arguments (of memory, the lengths) to that of `expression`, where only the
/// parameters that it names are bound.
fn formula(kernel: &Signature, expression: &str, into: &str) -> String {
    let mut bindings = String::new();
    let derived = kernel.derived();
    let values = kernel.args.iter().map(|arg| &arg.name).chain(&derived);
    for (i, value) in values.enumerate() {
        if names(expression).any(|name| name == value) {
            write!(bindings, "let {} = v[{i}]; ", ident(value)).expect(STRING);
        }
    }
    for (i, dimensions) in ["grid", "block"].into_iter().enumerate() {
        if ["x", "y", "z"].iter().any(|d| expression.contains(&format!("{dimensions}.{d}"))) {
            let at = kernel.args.len() + derived.len() + 3 * i;
            write!(bindings, "let {dimensions} = Dimensions::at(v, {at}); ").expect(STRING);
        }
    }
    let values = if bindings.is_empty() { "_" } else { "v" };
    format!("Formula {{ text: {expression:?}, eval: |{values}| {{ {bindings}{into}({expression}) }} }}")
}

/// The identifiers in an expression, but for those of fields and methods.
fn names(expression: &str) -> impl Iterator<Item = &str> {
    let words = expression.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.'));
    words.map(|word| word.split('.').next().unwrap_or(word))
}

/// Position of the argument `name`, which the attribute has checked to exist.
fn position(kernel: &Signature, name: &str) -> usize {
    kernel
        .args
        .iter()
        .position(|arg| arg.name == name)
        .unwrap_or_else(|| panic!("kernel `{}` has no argument `{name}`", kernel.name))
}

fn wrapper(out: &mut String, index: usize, kernel: &Signature) {
    let mut params = String::new();
    let mut slots = String::new();
    let mut layouts = String::new();
    let mut notes = String::new();
    for arg in &kernel.args {
        let name = ident(&arg.name);
        if let Some(layout) = &arg.layout {
            let param = layout_param(kernel, arg);
            if let [_] = layout.of.as_slice() {
                write!(params, "\n    {param}: &Layout,").expect(STRING);
                write!(layouts, "&[{param}], ").expect(STRING);
            } else {
                write!(params, "\n    {param}: [&Layout; {}],", layout.of.len()).expect(STRING);
                write!(layouts, "&{param}, ").expect(STRING);
            }
            writeln!(notes, "- `{param}`: shape and strides of {}", list(&layout.of)).expect(STRING);
        }
        if !arg.tensors.is_empty() {
            layouts.push_str("&[");
            for tensor in &arg.tensors {
                let param = tensor_param(kernel, tensor);
                write!(params, "\n    {param}: &Layout,").expect(STRING);
                write!(layouts, "{param}, ").expect(STRING);
                write!(notes, "- `{param}`: shape and strides of `{}`", tensor.of).expect(STRING);
                let dims = list(&tensor.dims);
                let dims = if dims.is_empty() { dims } else { format!(", whose dimensions are {dims}") };
                writeln!(notes, "{dims}").expect(STRING);
            }
            if let (Some(along), [tensor]) = (&arg.along, arg.tensors.as_slice()) {
                params.push_str("\n    dims: &[usize],");
                write!(layouts, "&{}.contiguous_dims(dims)?, ", tensor_param(kernel, tensor)).expect(STRING);
                writeln!(notes, "- `dims`: which dimensions of `{}`, each once", along.of).expect(STRING);
            }
            layouts.push_str("], ");
        }
        for condition in &arg.requires {
            writeln!(notes, "- `{condition}`").expect(STRING);
        }
        if kernel.is_filled_in(arg) {
            slots.push_str("Slot::FILLED_IN, ");
            continue;
        }
        let element = arg.ty.element();
        let ty = match (&arg.ty, arg.nullable) {
            (ArgType::Value(_), _) => element.to_owned(),
            (ArgType::Pointer { mutable: false, .. }, false) => format!("&impl DeviceRead<{element}>"),
            (ArgType::Pointer { mutable: false, .. }, true) => format!("impl ReadOrNull<{element}>"),
            (ArgType::Pointer { mutable: true, .. }, false) => format!("&mut impl DeviceWrite<{element}>"),
            (ArgType::Pointer { mutable: true, .. }, true) => format!("impl WriteOrNull<{element}>"),
        };
        write!(params, "\n    {name}: {ty},").expect(STRING);
        match (&arg.ty, arg.nullable) {
            (ArgType::Value(_), _) if arg.structure.is_some() => write!(slots, "Slot::structure(&{name}), "),
            (ArgType::Value(_), _) => write!(slots, "Slot::value({name}), "),
            (ArgType::Pointer { mutable: false, .. }, false) => write!(slots, "Slot::read({name}), "),
            (ArgType::Pointer { mutable: true, .. }, false) => write!(slots, "Slot::write({name}), "),
            (_, true) => write!(slots, "{name}.slot(), "),
        }
        .expect(STRING);
        if let Some(len) = &arg.len {
            writeln!(notes, "- `{}`: at least `{len}` elements", arg.name).expect(STRING);
        }
        if let Some(bytes) = arg.align {
            writeln!(notes, "- `{}`: at a multiple of {bytes} bytes", arg.name).expect(STRING);
        }
        if arg.nullable {
            writeln!(notes, "- `{}`: may be [`Null`](::candle_amdgpu::Null)", arg.name).expect(STRING);
        }
    }
    let promises = kernel.promises();
    let mut safety = String::new();
    for (name, text) in &promises {
        let head = if safety.is_empty() { "\n# Safety\n" } else { "" };
        writeln!(safety, "{head}- `{name}`: {text}").expect(STRING);
    }
    let doc = format!(
        "{}\n\n{notes}{safety}\n# Errors\nBefore anything is launched: a buffer that is too short, a geometry \
         that the device does not support, a target without a code object. Otherwise what the launch reports.",
        without_links(&kernel.doc)
    );
    let (unsafety, promised) = match promises.as_slice() {
        [] => ("", ""),
        _ => ("unsafe ", "; the caller keeps the promises"),
    };
    // A parameter a line: compilers cut long lines in their messages, and differently by line number.
    writeln!(
        out,
        "#[doc = {:?}]\n\
         pub {unsafety}fn {}(\n    stream: &impl AsStream,\n    config: LaunchConfig,{params}\n) -> Result<()> {{\n\
         // SAFETY: the slots have the types of the kernel's parameters{promised}.\n\
         unsafe {{ launch(&MODULE, &KERNELS[{index}], stream, config, &[{layouts}], &mut [{slots}]) }}\n}}\n",
        doc.trim_start(),
        ident(&kernel.name),
    )
    .expect(STRING);
}

/// A doc comment whose links to items, which are not in scope where the wrapper stands, are their names alone.
fn without_links(doc: &str) -> String {
    let mut out = String::with_capacity(doc.len());
    let mut rest = doc;
    while let Some((before, link)) = rest.split_once("[`") {
        let Some((name, after)) = link.split_once("`]") else { break };
        out.extend([before, "`", name, "`"]);
        let target = after.strip_prefix('(').and_then(|path| path.split_once(')'));
        rest = target.map_or(after, |(_, after)| after);
    }
    out + rest
}

/// The parameter that stands for a layout's three arguments: `layout`, or with the name of the pointer in front
/// where the kernel has several.
fn layout_param(kernel: &Signature, arg: &Arg) -> String {
    match kernel.args.iter().filter(|a| a.layout.is_some()).count() {
        1 => "layout".to_owned(),
        _ => format!("{}_layout", arg.name),
    }
}

/// The parameter that stands for a tensor's sizes and strides: `layout`, or with the name of the pointer in front where the
/// kernel has several.
fn tensor_param(kernel: &Signature, tensor: &TensorOf) -> String {
    match kernel.tensors().count() {
        1 => "layout".to_owned(),
        _ => format!("{}_layout", tensor.of),
    }
}

/// `` `a`, `b` ``
fn list(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// `name`, raw where it is a keyword of Rust.
fn ident(name: &str) -> String {
    const KEYWORDS: [&str; 13] =
        ["as", "box", "dyn", "final", "fn", "gen", "in", "loop", "match", "mod", "move", "ref", "type"];
    if KEYWORDS.contains(&name) { format!("r#{name}") } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signature::{AlongOf, LaunchHints, LayoutOf};

    fn arg(name: &str, ty: ArgType) -> Arg {
        Arg::new(name, ty, 8)
    }

    fn scalar(name: &str, ty: &str) -> Arg {
        arg(name, ArgType::Value(ty.into()))
    }

    fn pointer(name: &str, mutable: bool, pointee: &str) -> Arg {
        arg(name, ArgType::Pointer { mutable, pointee: pointee.into() })
    }

    fn affine() -> Signature {
        let layout = LayoutOf { numel: "numel".into(), num_dims: "num_dims".into(), of: vec!["inp".into()] };
        Signature {
            name: "affine_f32".into(),
            doc: " y = a x + b".into(),
            file: "src/affine.rs".into(),
            line: 3,
            args: vec![
                scalar("numel", "usize"),
                scalar("num_dims", "usize"),
                Arg { layout: Some(layout), ..pointer("info", false, "usize") },
                Arg { nullable: true, ..pointer("inp", false, "f32") },
                Arg { len: Some("numel".into()), ..pointer("out", true, "f32") },
                scalar("mul", "f32"),
            ],
            launch: LaunchHints {
                workgroup: [256, 1, 1],
                max_workgroup_size: 1024,
                items_per_lane: 4,
                lds_bytes: 0,
                items: Some("numel".into()),
                rows: None,
                columns: None,
                grid: None,
                lds: None,
            },
        }
    }

    #[test]
    fn layout_arguments_collapse_into_one_parameter() {
        let mut out = String::new();
        wrapper(&mut out, 0, &affine());
        assert!(
            out.contains(
                "pub fn affine_f32(\n    stream: &impl AsStream,\n    config: LaunchConfig,\n    layout: &Layout,\n    \
                 inp: impl ReadOrNull<f32>,\n    out: &mut impl DeviceWrite<f32>,\n    mul: f32,\n) -> Result<()>"
            ),
            "{out}"
        );
        assert!(
            out.contains(
                "&[&[layout], ], &mut [Slot::FILLED_IN, Slot::FILLED_IN, Slot::FILLED_IN, inp.slot(), \
                 Slot::write(out), Slot::value(mul), ]"
            ),
            "{out}"
        );
    }

    fn sum() -> Signature {
        let tensor = TensorOf { of: "inp".into(), dims: vec![], rank: Some("rank".into()) };
        let along = AlongOf { num_dims: "sums".into(), of: "inp".into() };
        let mut kernel = affine();
        kernel.args = vec![
            Arg { value: Some("numel_of_inp".into()), ..scalar("numel", "usize") },
            scalar("rank", "usize"),
            scalar("sums", "usize"),
            Arg { tensors: vec![tensor], along: Some(along), ..pointer("info", false, "usize") },
            pointer("inp", false, "f32"),
            Arg { len: Some("numel / along_of_inp".into()), ..pointer("out", true, "f32") },
        ];
        kernel
    }

    #[test]
    fn chosen_dimensions_are_a_parameter() {
        let kernel = sum();
        let mut out = String::new();
        wrapper(&mut out, 0, &kernel);
        assert!(
            out.contains(
                "pub fn affine_f32(\n    stream: &impl AsStream,\n    config: LaunchConfig,\n    layout: &Layout,\n    \
                 dims: &[usize],\n    inp: &impl DeviceRead<f32>,\n    out: &mut impl DeviceWrite<f32>,\n) -> Result<()>"
            ),
            "{out}"
        );
        assert!(
            out.contains("&[&[layout, &layout.contiguous_dims(dims)?, ], ], &mut [Slot::FILLED_IN,"),
            "{out}"
        );
        let f = formula(&kernel, "numel / along_of_inp", "Count::from");
        assert!(f.contains("let numel = v[0]; let along_of_inp = v[7]; Count::from("), "{f}");
        assert_eq!(kernel.derived(), ["numel_of_inp", "along_of_inp"]);
    }

    #[test]
    fn what_no_check_knows_makes_a_wrapper_unsafe() {
        let mut kernel = affine();
        kernel.args[4].len = None;
        kernel.args[3].promise = Some("has what the ids say".into());
        let mut out = String::new();
        wrapper(&mut out, 0, &kernel);
        assert!(out.contains("pub unsafe fn affine_f32("), "{out}");
        let safety = "# Safety\\n- `inp`: has what the ids say\\n- `out`: must have as many elements as the kernel accesses";
        assert!(out.contains(safety), "{out}");
    }

    #[test]
    fn the_launch_is_bound_by_its_dimensions() {
        let f = formula(&affine(), "grid.x * block.y", "Count::from");
        assert!(f.contains("let grid = Dimensions::at(v, 6); let block = Dimensions::at(v, 9); "), "{f}");
        let names: Vec<_> = names("(x.len()).max(grid.y) * a1").filter(|name| !name.is_empty()).collect();
        assert_eq!(names, ["x", "grid", "a1"]);
        let f = formula(&affine(), "numel >= 1", "Count::of_condition");
        assert!(f.ends_with("Count::of_condition(numel >= 1) } }"), "{f}");
    }

    #[test]
    fn links_to_what_the_host_does_not_have_become_names() {
        for (doc, plain) in [
            ("as [`a::b`](crate::a::b), with [`N`] rows", "as `a::b`, with `N` rows"),
            ("`x[i]` = 2, see [there](https://example.org)", "`x[i]` = 2, see [there](https://example.org)"),
            ("[`open", "[`open"),
        ] {
            assert_eq!(without_links(doc), plain);
        }
    }

    #[test]
    fn expressions_bind_the_parameters_they_name() {
        let f = formula(&affine(), "numel * 2", "Count::from");
        assert_eq!(
            f,
            "Formula { text: \"numel * 2\", eval: |v| { let numel = v[0]; Count::from(numel * 2) } }"
        );
    }

    #[test]
    fn a_family_has_objects_table_and_list() {
        let family = Family {
            name: "affine".into(),
            kernels: vec![affine()],
            objects: vec![("gfx1100".into(), "/out/affine.gfx1100".into())],
        };
        let origin = Origin {
            compiler: "rustc 1.96.0, LLVM 22".into(),
            prebuilt: true,
            selection: "affine_*,badd_f32".into(),
        };
        let out = generate(&[family], &origin);
        assert!(out.contains("&KERNELS).selected(\"affine_*,badd_f32\");"));
        assert!(out.contains("COMPILER: &str = \"rustc 1.96.0, LLVM 22\";"));
        assert!(out.contains("PREBUILT: bool = true;"));
        assert!(out.contains("Object { gfx: \"gfx1100\", bytes: include_bytes!(\"/out/affine.gfx1100\") }"));
        assert!(out.contains("LayoutOf { numel: 0, num_dims: 1, of: &[3] }"));
        assert!(out.contains("const F0: Formula = ") && !out.contains("const F1"));
        assert!(out.contains("&[&affine::MODULE, ]"));
    }
}
