//! What a kernel's Rust function says about itself, as the attribute leaves it in the code object.
//!
//! `#[amdgpu_kernel]` puts one record for each instance into the section `.amdgpu.kernels`: numbers that only
//! rustc can know (sizes of argument types, evaluated constants), the source file, and JSON text for the rest.
//! Little-endian throughout; the layout is `amdgpu_device::signature::Record`. Structures among the arguments have records of their
//! own in the same section, `amdgpu_device::signature::StructureRecord`.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

/// Name of the section that holds the records.
pub const SECTION: &str = ".amdgpu.kernels";
/// First word of each record: `AMDK`.
pub const MAGIC: u32 = u32::from_le_bytes(*b"AMDK");
/// Version of the record layout that this crate reads.
pub const VERSION: u32 = 2;
/// First word of a structure's record: `AMDS`.
const STRUCTURE: u32 = u32::from_le_bytes(*b"AMDS");
/// Version of a structure's record.
const STRUCTURE_VERSION: u32 = 1;

/// One kernel: a named instance of a Rust function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    /// Name of the entry point, such as `affine_f32`.
    pub name: String,
    /// Doc comment of the Rust function, lines joined by `\n`; may be empty.
    pub doc: String,
    /// Source file, relative to the root of the workspace that it was compiled in.
    pub file: String,
    /// Line of the Rust function in that file.
    pub line: u32,
    /// The arguments, in order.
    pub args: Vec<Arg>,
    /// Under which geometry the kernel is meant to be launched.
    pub launch: LaunchHints,
}

/// One argument of a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arg {
    /// Name of the parameter.
    pub name: String,
    /// Its Rust type.
    #[serde(rename = "type")]
    pub ty: ArgType,
    /// Its size in bytes, as rustc laid it out for the device.
    pub size: u32,
    /// The structure that it is or points to, if it is not a scalar.
    #[serde(default)]
    pub structure: Option<Structure>,
    /// `#[nullable]`: the pointer may be null.
    #[serde(default)]
    pub nullable: bool,
    /// `#[by_row]`: the memory has a row of the launch's `columns` elements for each of its rows, several of which may share a
    /// workgroup.
    #[serde(default)]
    pub by_row: bool,
    /// `#[len(expr)]`: the buffer must hold at least so many elements. A Rust expression over the integer
    /// parameters, meant to be evaluated in `i128`.
    #[serde(default)]
    pub len: Option<String>,
    /// `#[layout(numel, num_dims, of(…))]`: this pointer is a strided layout in device memory.
    #[serde(default)]
    pub layout: Option<LayoutOf>,
    /// `#[tensors(a[b, c], w[..rank])]`: this pointer has the dimensions and then the strides of the first tensor, of the
    /// next and so on (all `usize`, strides in elements).
    #[serde(default)]
    pub tensors: Vec<TensorOf>,
    /// `#[along(num_dims, of(a))]`: behind the words of the tensor are the sizes of some of its dimensions, and then the
    /// strides that they have in a contiguous tensor.
    #[serde(default)]
    pub along: Option<AlongOf>,
    /// `#[value(expr)]`: what a typed launch passes, computed from the other arguments and the sizes of tensors.
    #[serde(default)]
    pub value: Option<String>,
    /// `#[requires(a <= b, …)]`: what must hold of the arguments, or the kernel reads or writes elsewhere.
    #[serde(default)]
    pub requires: Vec<String>,
    /// `#[promise("…")]`: what must hold of the memory that no one can check before the launch.
    #[serde(default)]
    pub promise: Option<String>,
    /// `#[align(n)]`: the address must be a multiple of so many bytes.
    #[serde(default)]
    pub align: Option<u32>,
}

/// One tensor of `#[tensors(…)]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TensorOf {
    /// Name of the pointer parameter to its elements.
    pub of: String,
    /// Names of its dimensions in formulas, where their number is fixed. A name that several have is one size.
    #[serde(default)]
    pub dims: Vec<String>,
    /// Name of the parameter that holds the number of dimensions, where it is not.
    #[serde(default)]
    pub rank: Option<String>,
}

/// Chosen dimensions of a tensor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlongOf {
    /// Name of the parameter that holds their number.
    pub num_dims: String,
    /// Name of the pointer to the tensor's elements.
    pub of: String,
}

/// What a `#[layout(numel, num_dims, of(a, b))]` pointer describes. It points to `num_dims` dimensions, then
/// `num_dims` strides of `a`, then those of `b` (all `usize`, strides in elements), or is null if all are
/// contiguous.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayoutOf {
    /// Name of the parameter that holds the number of elements.
    pub numel: String,
    /// Name of the parameter that holds the number of dimensions.
    pub num_dims: String,
    /// Names of the pointer parameters that it lays out, in the order of their strides.
    pub of: Vec<String>,
}

/// A structure with `#[derive(KernelArg)]`, laid out as in C.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Structure {
    /// Its name in Rust.
    pub name: String,
    /// Doc comment, lines joined by `\n`; may be empty.
    #[serde(default)]
    pub doc: String,
    /// Its size in bytes.
    pub size: u32,
    /// Its alignment in bytes.
    pub align: u32,
    /// The fields, in order.
    pub fields: Vec<Field>,
}

/// A field of a [`Structure`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Doc comment, lines joined by `\n`; may be empty.
    #[serde(default)]
    pub doc: String,
    /// Where it begins, in bytes.
    pub offset: u32,
    /// How many elements it has, if it is an array.
    #[serde(default)]
    pub count: Option<u32>,
    /// The scalar type, or the structure's name, of the field or of the array's elements.
    #[serde(rename = "type")]
    pub ty: String,
    /// Bytes of one element.
    pub element_size: u32,
    /// The structure, if it is one.
    #[serde(default)]
    pub structure: Option<Structure>,
}

impl Structure {
    /// Whether some bytes of it belong to no field.
    pub fn has_padding(&self) -> bool {
        let mut end = 0;
        for field in &self.fields {
            if field.offset != end || field.structure.as_ref().is_some_and(Structure::has_padding) {
                return true;
            }
            end += field.element_size * field.count.unwrap_or(1);
        }
        end != self.size
    }

    /// Whether some bits of it have no meaning: it has padding or a `bool`, so that memory cannot be read as this type.
    pub fn has_invalid_bits(&self) -> bool {
        let is_invalid = |field: &Field| {
            field.ty == "bool" || field.structure.as_ref().is_some_and(Structure::has_invalid_bits)
        };
        self.has_padding() || self.fields.iter().any(is_invalid)
    }
}

impl std::fmt::Display for Field {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.count {
            Some(count) => write!(f, "[{}; {count}]", self.ty),
            None => f.write_str(&self.ty),
        }
    }
}

/// Rust type of an argument. Names are as the device crate spells them: `usize`, `u8`, `f32`, `f16`, `bf16`,
/// `f8e4m3`, `bool`, … Those of structures are their own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ArgType {
    /// Passed by value: a scalar or a structure.
    Value(String),
    /// Address of device memory.
    Pointer {
        /// `*mut` (written or read and written), not `*const`.
        mutable: bool,
        /// Element type, a scalar or a structure.
        pointee: String,
    },
}

/// Launch geometry that a kernel asks for. It is right under any other as well.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchHints {
    /// Lanes of one workgroup in x, y and z.
    pub workgroup: [u32; 3],
    /// Upper bound of lanes in one workgroup; a larger launch is an error.
    pub max_workgroup_size: u32,
    /// How many items (elements, mostly) one lane handles.
    pub items_per_lane: u32,
    /// Workgroup memory (LDS) in bytes, sized at launch.
    pub lds_bytes: u32,
    /// Number of items, a Rust expression over the integer parameters. The grid is then
    /// `ceil(items / (workgroup.x × items_per_lane))` workgroups in x.
    #[serde(default)]
    pub items: Option<String>,
    /// Number of rows, each of which is a workgroup, as an expression over the integer parameters and the lengths of
    /// memory. Excludes `items`.
    #[serde(default)]
    pub rows: Option<String>,
    /// Number of items of a row, as an expression over the integer parameters. A workgroup has only as many whole waves, and
    /// no more lanes than `workgroup`, as `columns / items_per_lane` lanes need.
    #[serde(default)]
    pub columns: Option<String>,
    /// Workgroups in x, y and z, as expressions over the integer parameters. Excludes `items` and `rows`.
    #[serde(default)]
    pub grid: Option<[String; 3]>,
    /// Workgroup memory in bytes as an expression over the integer parameters, where it is no constant; then
    /// `lds_bytes` is 0.
    #[serde(default)]
    pub lds: Option<String>,
}

impl Arg {
    /// A plain argument.
    pub fn new(name: &str, ty: ArgType, size: u32) -> Arg {
        Arg {
            name: name.to_owned(),
            ty,
            size,
            structure: None,
            nullable: false,
            by_row: false,
            len: None,
            layout: None,
            tensors: Vec::new(),
            along: None,
            value: None,
            requires: Vec::new(),
            promise: None,
            align: None,
        }
    }

    /// The structure that it is, if it is passed by value.
    pub fn structure_by_value(&self) -> Option<&Structure> {
        self.structure.as_ref().filter(|_| !self.ty.is_pointer())
    }

    /// At a multiple of how many bytes it is in the kernarg block.
    pub fn kernarg_align(&self) -> u32 {
        self.structure_by_value().map_or(self.size.max(1), |structure| structure.align)
    }

    /// All formulas.
    fn formulas(&mut self) -> impl Iterator<Item = &mut String> {
        self.len.iter_mut().chain(&mut self.value).chain(&mut self.requires)
    }
}

impl Signature {
    /// Each tensor that an argument has the sizes and strides of.
    pub fn tensors(&self) -> impl Iterator<Item = &TensorOf> {
        self.args.iter().flat_map(|arg| &arg.tensors)
    }

    /// What formulas can name beside the arguments, in this order: of each tensor the number of elements, then those
    /// dimensions that no tensor before it has; then the numbers of elements along chosen dimensions.
    pub fn derived(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for tensor in self.tensors() {
            names.push(format!("numel_of_{}", tensor.of));
            for dim in &tensor.dims {
                if !names.contains(dim) {
                    names.push(dim.clone());
                }
            }
        }
        names.extend(self.alongs().map(|along| format!("along_of_{}", along.of)));
        names
    }

    /// The dimensions that the caller of a launch chooses.
    pub fn alongs(&self) -> impl Iterator<Item = &AlongOf> {
        self.args.iter().filter_map(|arg| arg.along.as_ref())
    }

    /// Whether the wrapper itself computes an argument: from layouts or other arguments.
    pub fn is_filled_in(&self, arg: &Arg) -> bool {
        let is_rank = self.tensors().any(|tensor| tensor.rank.as_ref() == Some(&arg.name))
            || self.alongs().any(|along| along.num_dims == arg.name);
        let is_words = arg.layout.is_some() || !arg.tensors.is_empty();
        is_rank || is_words || arg.value.is_some() || self.layout_over(&arg.name).is_some()
    }

    /// What the caller of this kernel must guarantee because nothing can check it before the launch: for a pointer, what must
    /// hold for its memory. A kernel without such a pointer is launched by a safe function.
    pub fn promises(&self) -> Vec<(&str, &str)> {
        let laid_out = |name: &String| {
            let mut layouts = self.args.iter().filter_map(|arg| arg.layout.as_ref());
            layouts.any(|layout| layout.of.contains(name)) || self.tensors().any(|tensor| tensor.of == *name)
        };
        let promise = |arg: &Arg| -> Option<&'static str> {
            let has_bound =
                arg.len.is_some() || arg.layout.is_some() || !arg.tensors.is_empty() || laid_out(&arg.name);
            (arg.ty.is_pointer() && !has_bound).then_some("must have as many elements as the kernel accesses")
        };
        let of = |arg| Some((arg, promise(arg)?));
        self.args
            .iter()
            .filter_map(|arg| match &arg.promise {
                Some(text) => Some((arg.name.as_str(), text.as_str())),
                None => of(arg).map(|(arg, text)| (arg.name.as_str(), text)),
            })
            .collect()
    }

    /// The argument of this name.
    pub fn arg(&self, name: &str) -> Option<&Arg> {
        self.args.iter().find(|a| a.name == name)
    }

    /// The layout argument that takes its number of elements or dimensions from the argument `name`.
    pub fn layout_over(&self, name: &str) -> Option<(&Arg, &LayoutOf)> {
        self.args
            .iter()
            .filter_map(|a| Some((a, a.layout.as_ref()?)))
            .find(|(_, l)| l.numel == name || l.num_dims == name)
    }
}

impl LaunchHints {
    /// Lanes of one workgroup.
    pub fn workgroup_size(&self) -> u32 {
        self.workgroup.iter().product()
    }

    /// How many items one workgroup handles. Where the kernel states no number of them, its launch alone says how much
    /// there is to do, and items are the lanes of Candle's launch in x. `None` where the workgroups are counted
    /// otherwise: each is a row, or formulas say how many there are.
    ///
    /// Lanes that differ in y and z alone share their items, but in a kernel without a number of items each of them has
    /// a row or block of its own: its workgroup stands for so many of Candle's.
    pub fn items_per_workgroup(&self) -> Option<u32> {
        match self {
            LaunchHints { items: Some(_), .. } => Some(self.workgroup[0] * self.items_per_lane),
            LaunchHints { rows: None, grid: None, .. } => Some(self.workgroup_size() * self.items_per_lane),
            _ => None,
        }
    }

    /// Bytes of workgroup memory; where they depend on arguments, the most that the expression allows, if it ends
    /// with `.min(NUMBER)`.
    pub fn most_lds_bytes(&self) -> u32 {
        let most = self.lds.as_deref().and_then(|text| text.strip_suffix(')')?.rsplit_once(".min("));
        most.and_then(|(_, most)| most.parse().ok()).unwrap_or(self.lds_bytes)
    }
}

impl ArgType {
    /// Whether it is an address.
    pub fn is_pointer(&self) -> bool {
        matches!(self, ArgType::Pointer { .. })
    }

    /// Name of the value's type, or of what the pointer points to.
    pub fn element(&self) -> &str {
        match self {
            ArgType::Value(name) => name,
            ArgType::Pointer { pointee, .. } => pointee,
        }
    }
}

impl std::fmt::Display for ArgType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ArgType::Value(name) => f.write_str(name),
            ArgType::Pointer { mutable: true, pointee } => write!(f, "*mut {pointee}"),
            ArgType::Pointer { mutable: false, pointee } => write!(f, "*const {pointee}"),
        }
    }
}

/// Why a section of records cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The code object has no such section.
    #[error("the code object has no section `{SECTION}`: no function in it carries `#[amdgpu_kernel]`")]
    Missing,
    /// Bytes that are not a record.
    #[error("the section `{SECTION}` is damaged at byte {at} of {len}: {what}")]
    Damaged {
        /// Offset in the section.
        at: usize,
        /// Length of the section.
        len: usize,
        /// What is wrong there.
        what: String,
    },
    /// A record of another version.
    #[error(
        "the section `{SECTION}` has records of version {found}, but this amdgpu-build reads version {VERSION}: use \
         amdgpu-device and amdgpu-build of the same release"
    )]
    Version {
        /// Version found.
        found: u32,
    },
}

/// Reads all records of a section, sorted by kernel name.
///
/// # Errors
/// If bytes are not what the attribute writes.
pub fn parse_section(section: &[u8]) -> Result<Vec<Signature>, RecordError> {
    let mut records = Vec::new();
    let mut structures = HashMap::new();
    let mut at = 0;
    while at < section.len() {
        let cursor = Cursor { section, at };
        // The next record is aligned like this one.
        at += if cursor.word(0)? == STRUCTURE {
            let (element, structure, length) = cursor.structure()?;
            structures.insert(element, structure);
            length
        } else {
            let record = Record::at(cursor)?;
            let length = record.words[2] as usize;
            records.push(record);
            length
        };
    }
    let structures = Structures(structures);
    let mut signatures =
        records.iter().map(|record| record.signature(&structures)).collect::<Result<Vec<_>, _>>()?;
    signatures.sort_by(|a: &Signature, b| a.name.cmp(&b.name));
    Ok(signatures)
}

/// The JSON text of a record: what the attribute knows without rustc's types.
#[derive(Deserialize)]
struct Text {
    name: String,
    doc: String,
    args: Vec<ArgText>,
    launch: LaunchText,
}

#[derive(Deserialize)]
struct ArgText {
    name: String,
    #[serde(default)]
    nullable: bool,
    #[serde(default)]
    by_row: bool,
    len: Option<String>,
    layout: Option<LayoutOf>,
    #[serde(default)]
    tensors: Vec<TensorOf>,
    along: Option<AlongOf>,
    value: Option<String>,
    #[serde(default)]
    requires: Vec<String>,
    promise: Option<String>,
    align: Option<u32>,
}

#[derive(Deserialize)]
struct LaunchText {
    items: Option<String>,
    rows: Option<String>,
    columns: Option<String>,
    grid: Option<[String; 3]>,
    lds: Option<String>,
}

/// Number of words before the arguments.
const HEADER: usize = 14;
/// Bytes of one argument: size, kind, name of the element type.
const ARGUMENT: usize = 24;

/// The names of a structure and of its fields.
#[derive(Deserialize)]
struct StructureText {
    name: String,
    #[serde(default)]
    doc: String,
    fields: Vec<FieldText>,
}

#[derive(Deserialize)]
struct FieldText {
    name: String,
    #[serde(default)]
    doc: String,
}

/// Number of words before a structure's element, and then its fields.
const STRUCTURE_HEADER: usize = 7;
/// Bytes of one field: offset, number of elements, and what an argument has.
const FIELD: usize = 8 + ARGUMENT;
/// Kind of an argument that is a structure.
const KIND_STRUCTURE: u32 = 3;

/// The structures of a section by what stands for them in other records. Fields that are structures have their element as `ty`.
struct Structures(HashMap<String, Structure>);

impl Structures {
    /// The structure of this element, with those in it.
    fn get(&self, element: &str) -> Option<Structure> {
        let mut structure = self.0.get(element)?.clone();
        for field in &mut structure.fields {
            field.structure = self.get(&field.ty);
            if let Some(inner) = &field.structure {
                field.ty.clone_from(&inner.name);
            }
        }
        Some(structure)
    }
}

/// Where a record begins.
#[derive(Clone, Copy)]
struct Cursor<'a> {
    section: &'a [u8],
    at: usize,
}

struct Record<'a> {
    cursor: Cursor<'a>,
    /// magic, version, bytes of the record, workgroup x, y, z, max workgroup size, items per lane, LDS bytes,
    /// line, number of arguments, of constants, bytes of the file name, bytes of the text
    words: [u32; HEADER],
}

impl<'a> Record<'a> {
    fn at(cursor: Cursor<'a>) -> Result<Self, RecordError> {
        let mut record = Record { cursor, words: [0; HEADER] };
        for i in 0..HEADER {
            record.words[i] = cursor.word(4 * i)?;
        }
        if record.words[0] != MAGIC {
            return Err(cursor.damaged(0, "a record must begin with `AMDK`"));
        }
        if record.words[1] != VERSION {
            return Err(RecordError::Version { found: record.words[1] });
        }
        if (record.words[2] as usize) < 4 * HEADER || !record.words[2].is_multiple_of(4) {
            return Err(cursor.damaged(8, "impossible length of a record"));
        }
        Ok(record)
    }

    fn signature(&self, structures: &Structures) -> Result<Signature, RecordError> {
        let cursor = self.cursor;
        let [_, _, _, x, y, z, max_workgroup_size, items_per_lane, lds_bytes, line, ..] = self.words;
        let [.., count, constants, file, text] = self.words.map(|w| w as usize);
        let constants_at = 4 * HEADER + ARGUMENT * count;
        let file_at = constants_at + 4 * constants;
        let constants: Vec<u32> =
            (0..constants).map(|i| cursor.word(constants_at + 4 * i)).collect::<Result<_, _>>()?;
        let text_at = file_at + file;
        let file = cursor.text(file_at, file)?.to_owned();
        let json = cursor.text(text_at, text)?;
        let Text { name, doc, args, launch } =
            serde_json::from_str(json).map_err(|e| cursor.damaged(text_at, &e.to_string()))?;
        if args.len() != count {
            return Err(cursor.damaged(40, "number of arguments differs from the text"));
        }
        let mut args: Vec<Arg> = args
            .into_iter()
            .enumerate()
            .map(|(i, text)| self.arg(i, text, structures))
            .collect::<Result<_, _>>()?;
        let LaunchText { mut items, mut rows, mut columns, mut grid, mut lds } = launch;
        let of_launch = items.iter_mut().chain(&mut rows).chain(&mut columns).chain(&mut lds);
        let of_launch = of_launch.chain(grid.iter_mut().flatten());
        for formula in args.iter_mut().flat_map(Arg::formulas).chain(of_launch) {
            for (i, value) in constants.iter().enumerate() {
                *formula = formula.replace(&format!("{{{i}}}"), &value.to_string());
            }
        }
        let workgroup = [x, y, z];
        let launch = LaunchHints {
            workgroup,
            max_workgroup_size,
            items_per_lane,
            lds_bytes,
            items,
            rows,
            columns,
            grid,
            lds,
        };
        Ok(Signature { name, doc, file, line, args, launch })
    }

    fn arg(&self, index: usize, text: ArgText, structures: &Structures) -> Result<Arg, RecordError> {
        let at = 4 * HEADER + ARGUMENT * index;
        let (size, kind, element) = self.cursor.argument(at)?;
        let structure = structures.get(&element);
        let name = structure.as_ref().map_or(element, |structure| structure.name.clone());
        let ty = match kind {
            KIND_STRUCTURE if structure.is_none() => {
                return Err(self.cursor.damaged(at, "the record of a structure is not there"));
            }
            0 | KIND_STRUCTURE => ArgType::Value(name),
            1 => ArgType::Pointer { mutable: false, pointee: name },
            2 => ArgType::Pointer { mutable: true, pointee: name },
            _ => return Err(self.cursor.damaged(at + 4, "unknown kind of argument")),
        };
        let ArgText { name, nullable, by_row, len, layout, tensors, along, value, requires, promise, align } =
            text;
        Ok(Arg {
            name,
            ty,
            size,
            structure,
            nullable,
            by_row,
            len,
            layout,
            tensors,
            along,
            value,
            requires,
            promise,
            align,
        })
    }
}

impl<'a> Cursor<'a> {
    /// What stands for a structure, the structure without those in it, and the length of the record.
    fn structure(self) -> Result<(String, Structure, usize), RecordError> {
        let mut words = [0; STRUCTURE_HEADER];
        for (i, word) in words.iter_mut().enumerate() {
            *word = self.word(4 * i)?;
        }
        let [_, version, length, size, align, count, text] = words;
        if version != STRUCTURE_VERSION {
            return Err(RecordError::Version { found: version });
        }
        let fields_at = 4 * STRUCTURE_HEADER + ARGUMENT - 8;
        let text_at = fields_at + FIELD * count as usize;
        if (length as usize) < text_at || !length.is_multiple_of(4) {
            return Err(self.damaged(8, "impossible length of a record"));
        }
        let element = self.text(4 * STRUCTURE_HEADER, ARGUMENT - 8)?.to_owned();
        let StructureText { name, doc, fields: texts } =
            serde_json::from_str(self.text(text_at, text as usize)?)
                .map_err(|e| self.damaged(text_at, &e.to_string()))?;
        if texts.len() != count as usize {
            return Err(self.damaged(20, "number of fields differs from the text"));
        }
        let field = |(i, FieldText { name, doc }): (usize, FieldText)| {
            let at = fields_at + FIELD * i;
            let (element_size, _, ty) = self.argument(at + 8)?;
            let count = Some(self.word(at + 4)?).filter(|&count| count != 0);
            Ok(Field { name, doc, offset: self.word(at)?, count, ty, element_size, structure: None })
        };
        let fields = texts.into_iter().enumerate().map(field).collect::<Result<_, RecordError>>()?;
        Ok((element, Structure { name, doc, size, align, fields }, length as usize))
    }

    /// An argument's size, kind and element.
    fn argument(self, at: usize) -> Result<(u32, u32, String), RecordError> {
        let element = self.text(at + 8, ARGUMENT - 8)?.trim_end_matches('\0').to_owned();
        Ok((self.word(at)?, self.word(at + 4)?, element))
    }

    fn bytes(self, offset: usize, len: usize) -> Result<&'a [u8], RecordError> {
        let start = self.at + offset;
        self.section
            .get(start..start + len)
            .ok_or_else(|| self.damaged(offset, "the record ends after the section"))
    }

    fn word(self, offset: usize) -> Result<u32, RecordError> {
        let bytes = self.bytes(offset, 4)?;
        Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    fn text(self, offset: usize, len: usize) -> Result<&'a str, RecordError> {
        std::str::from_utf8(self.bytes(offset, len)?).map_err(|e| self.damaged(offset, &e.to_string()))
    }

    fn damaged(self, offset: usize, what: &str) -> RecordError {
        RecordError::Damaged { at: self.at + offset, len: self.section.len(), what: what.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(name: &str) -> Vec<u8> {
        let json = format!(
            r#"{{"name":"{name}","doc":"d","args":[{{"name":"n"}},{{"name":"out","len":"n * {{0}}"}}],
               "launch":{{"items":"n"}}}}"#
        );
        let file = "src/a.rs";
        let length = (4 * HEADER + 2 * ARGUMENT + 4 + file.len() + json.len()).next_multiple_of(4);
        let words = [MAGIC, VERSION, length as u32, 256, 1, 1, 1024, 4, 0, 7, 2, 1, 8, json.len() as u32];
        let mut bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        for (kind, element) in [(0u32, "usize"), (2, "f32")] {
            bytes.extend(8u32.to_le_bytes().into_iter().chain(kind.to_le_bytes()).chain(element.bytes()));
            bytes.resize(bytes.len() + 16 - element.len(), 0);
        }
        bytes.extend(18_u32.to_le_bytes());
        bytes.extend(file.bytes().chain(json.bytes()));
        bytes.resize(length, 0);
        bytes
    }

    #[test]
    fn records_come_back_sorted_by_name() {
        let section = [record("zeta"), record("a")].concat();
        let signatures = parse_section(&section).unwrap();
        let names: Vec<_> = signatures.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(names, ["a", "zeta"]);
        let s = &signatures[0];
        assert_eq!((s.file.as_str(), s.line), ("src/a.rs", 7));
        assert_eq!(s.launch.workgroup, [256, 1, 1]);
        assert_eq!(s.launch.items_per_workgroup(), Some(1024));
        assert_eq!(s.args[0].ty.to_string(), "usize");
        assert_eq!(s.args[1].ty.to_string(), "*mut f32");
        assert_eq!(s.args[1].len.as_deref(), Some("n * 18"), "with the constant's value");
        assert_eq!(s.args.iter().map(|a| a.size).collect::<Vec<_>>(), [8, 8]);
    }

    /// The record of a structure: fields as offset, count, bytes of an element, kind and element.
    fn structure(
        element: &str,
        [size, align]: [u32; 2],
        fields: &[(u32, u32, u32, u32, &str)],
        json: &str,
    ) -> Vec<u8> {
        let length = 4 * STRUCTURE_HEADER + 16 + FIELD * fields.len() + json.len();
        let words = [STRUCTURE, 1, length as u32, size, align, fields.len() as u32, json.len() as u32];
        let mut bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        bytes.extend(element.bytes());
        for (offset, count, size, kind, element) in fields {
            bytes.extend([offset, count, size, kind].iter().flat_map(|w| w.to_le_bytes()));
            bytes.extend(element.bytes());
            bytes.resize(bytes.len() + 16 - element.len(), 0);
        }
        bytes.extend(json.bytes());
        assert!(bytes.len().is_multiple_of(4));
        bytes
    }

    /// `struct Outer { flag: bool, inner: [Inner; 3] }` with `struct Inner { x: f32 }`.
    fn structures() -> Vec<u8> {
        let outer = r#"{"name":"Outer","doc":"d","fields":[{"name":"flag"},{"name":"inner"}]}  "#;
        let inner = r#"{"name":"Inner","fields":[{"name":"x","doc":"of x"}]}   "#;
        let outer_fields = [(0, 0, 1, 0, "bool"), (4, 3, 4, 3, "00112233445566ff")];
        [
            structure("ffeeddccbbaa9988", [16, 4], &outer_fields, outer),
            structure("00112233445566ff", [4, 4], &[(0, 0, 4, 0, "f32")], inner),
        ]
        .concat()
    }

    /// A kernel whose second argument has this kind and element.
    fn taking(kind: u32, element: &str) -> Vec<u8> {
        let mut record = record("a");
        let at = 4 * HEADER + ARGUMENT;
        record[at..at + 4].copy_from_slice(&16_u32.to_le_bytes());
        record[at + 4..at + 8].copy_from_slice(&kind.to_le_bytes());
        record[at + 8..at + 24].copy_from_slice(element.as_bytes());
        record
    }

    #[test]
    fn a_structure_comes_with_those_in_it_wherever_its_record_is() {
        for section in [
            [taking(3, "ffeeddccbbaa9988"), structures()].concat(),
            [structures(), structures(), taking(3, "ffeeddccbbaa9988")].concat(),
        ] {
            let arg = parse_section(&section).unwrap().remove(0).args.remove(1);
            assert_eq!(arg.ty.to_string(), "Outer");
            assert_eq!(arg.kernarg_align(), 4, "not its size");
            let outer = arg.structure_by_value().unwrap();
            assert_eq!((outer.name.as_str(), outer.doc.as_str(), outer.size), ("Outer", "d", 16));
            let fields: Vec<_> =
                outer.fields.iter().map(|f| (f.name.as_str(), f.offset, f.to_string())).collect();
            assert_eq!(fields, [("flag", 0, "bool".to_owned()), ("inner", 4, "[Inner; 3]".to_owned())]);
            let inner = outer.fields[1].structure.as_ref().unwrap();
            assert_eq!((inner.fields[0].to_string().as_str(), inner.fields[0].doc.as_str()), ("f32", "of x"));
            assert!(outer.has_padding() && outer.has_invalid_bits());
            assert!(!inner.has_padding() && !inner.has_invalid_bits());
        }
        let pointer = [structures(), taking(2, "ffeeddccbbaa9988")].concat();
        let arg = parse_section(&pointer).unwrap().remove(0).args.remove(1);
        assert_eq!(arg.ty.to_string(), "*mut Outer");
        assert!(arg.structure.is_some() && arg.structure_by_value().is_none());
    }

    #[test]
    fn damaged_structures_are_reported() {
        let err = |bytes: &[u8]| parse_section(bytes).unwrap_err().to_string();
        let missing = err(&[taking(3, "0000000000000000"), structures()].concat());
        assert!(missing.contains("the record of a structure is not there"), "{missing}");
        let good = structures();
        assert!(err(&good[..good.len() - 4]).contains("ends after the section"));
        let mut fewer = good.clone();
        fewer[20] = 1;
        assert!(!err(&fewer).is_empty());
        let mut old = good.clone();
        old[4] = 7;
        assert!(err(&old).contains("version 7"));
        let mut endless = good;
        endless[8..12].fill(0);
        assert!(err(&endless).contains("impossible length"));
    }

    #[test]
    fn lanes_in_y_have_items_of_their_own_where_no_number_of_items_is_stated() {
        let mut launch = parse_section(&record("a")).unwrap().remove(0).launch;
        launch.workgroup = [32, 8, 1];
        launch.items_per_lane = 2;
        assert_eq!(launch.items_per_workgroup(), Some(64), "they share those that `items` counts");
        launch.items = None;
        assert_eq!(launch.items_per_workgroup(), Some(512), "eight blocks, each of 64 of Candle's lanes");
        launch.rows = Some("n".to_owned());
        assert_eq!(launch.items_per_workgroup(), None);
        launch.rows = None;
        launch.grid = Some(["n", "1", "1"].map(str::to_owned));
        assert_eq!(launch.items_per_workgroup(), None);
    }

    #[test]
    fn damage_is_reported_where_it_is() {
        let good = record("a");
        let err = |bytes: &[u8]| parse_section(bytes).unwrap_err().to_string();
        let cut = err(&good[..good.len() - 4]);
        assert!(cut.contains("ends after the section"), "{cut}");
        let mut bad = good.clone();
        bad[0] = 0;
        assert!(err(&bad).contains("at byte 0"));
        let mut old = good.clone();
        old[4] = 9;
        assert!(err(&old).contains("version 9"));
        let mut zero = good;
        zero[8..12].fill(0);
        assert!(err(&zero).contains("impossible length"));
    }
}
