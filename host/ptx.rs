//! PTX: kernels as text that the CUDA driver compiles.
//!
//! What a build embeds is packed, each kernel by itself (`amdgpu-build`'s `packed` writes it), so that a program waits for
//! the compilation of those kernels that it launches. PTX from elsewhere is one text, which is compiled as a whole.

use crate::error_slot::DeviceErrorSlot;
use crate::kernel::Kernel;
use crate::sys::{self, hip, hipFunction_t, hipModule_t};
use crate::{Device, Result};
use amdgpu_emulator::{KernelArg, KernelInfo};
use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::io::Read;
use std::ops::Range;
use std::ptr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The variable that kernels record errors in.
const VARIABLE: &[u8] = b"amdgpu_device_error";
/// What packed PTX begins with.
const MAGIC: [u8; 8] = *b"NVPTXPK1";
/// Most memory that unpacking may take beside the text, in KiB.
const MEMORY: u32 = 1 << 16;
/// The most text that a group may have.
const MAX_GROUP: u32 = 1 << 28;
/// The end of a target's name that [`for_hopper`] is for.
pub(crate) const HOPPER: &str = ":sm_90";
/// What lines begin with that are for sm_90a alone, as comments of a text for all; and what those end with that it replaces.
const FOR_HOPPER: &str = "//sm_90a ";
const FOR_OTHERS: &str = "//sm_80";
/// Lanes of a warp.
const WARP: u32 = 32;
/// Work-items of a workgroup, at most, of a kernel that does not say.
const MAX_LANES: u32 = 1024;

/// Kernels as text.
pub(crate) struct Text {
    source: Source,
    device: Device,
}

enum Source {
    /// One text.
    Whole { text: CString, module: Mutex<Option<Compiled>> },
    /// Groups of kernels, and where each kernel is.
    Packed { all: Cow<'static, [u8]>, groups: Vec<Group>, places: HashMap<String, Place> },
}

struct Group {
    /// Where it is, packed.
    at: Range<usize>,
    bytes: usize,
    text: OnceLock<String>,
}

struct Place {
    group: usize,
    start: usize,
    bytes: usize,
    module: Mutex<Option<Compiled>>,
}

/// What the driver made of a text.
struct Compiled {
    handle: hipModule_t,
    /// Where its kernels record errors: freed after the module is unloaded.
    _fault: Option<Arc<DeviceErrorSlot>>,
}

// SAFETY: HIP's handles may be used from any thread.
unsafe impl Send for Compiled {}

/// Why text is not PTX.
type Problem = String;

impl Text {
    /// Reads PTX, packed or not, and what its kernels take: that of `kernels` where they are known.
    pub(crate) fn read(
        device: &Device,
        bytes: Cow<'static, [u8]>,
        kernels: &'static [Kernel],
    ) -> std::result::Result<(Text, Vec<KernelInfo>), Problem> {
        let (source, infos) = match bytes.starts_with(&MAGIC) {
            true => packed(bytes, kernels)?,
            false => whole(&bytes)?,
        };
        Ok((Text { source, device: device.clone() }, infos))
    }

    /// The kernel of that name, compiled now if it is not yet. Kernels are compiled side by side, each once.
    pub(crate) fn function(&self, name: &str) -> Result<hipFunction_t> {
        let compiled = match &self.source {
            Source::Whole { module, .. } => module,
            Source::Packed { places, .. } => {
                let place = places.get(name).ok_or_else(|| self.refuse(name, "there is no such kernel"))?;
                &place.module
            }
        };
        let mut compiled = compiled.lock().unwrap_or_else(PoisonError::into_inner);
        self.device.make_current()?;
        let module = match &*compiled {
            Some(module) => module,
            None => {
                let text = self.text_of(name)?;
                let mut handle = ptr::null_mut();
                // SAFETY: the text ends with a zero byte.
                unsafe { hip!(hipModuleLoadData(&mut handle, text.as_ptr().cast()))? };
                // From here on the module is unloaded if something fails.
                let mut module = Compiled { handle, _fault: None };
                // Most texts have no variable for errors, and the driver need not be asked for it.
                if text.to_bytes().windows(VARIABLE.len()).any(|word| word == VARIABLE) {
                    module._fault = self.device.error_slots().register(handle)?;
                }
                compiled.insert(module)
            }
        };
        let text = CString::new(name).map_err(|_| self.refuse(name, "the name has a zero byte"))?;
        let mut function = ptr::null_mut();
        // SAFETY: the module is loaded, the name ends with a zero byte.
        unsafe { hip!(hipModuleGetFunction(&mut function, module.handle, text.as_ptr()))? };
        Ok(function)
    }

    fn text_of(&self, name: &str) -> Result<Cow<'_, CStr>> {
        let (all, groups, places) = match &self.source {
            Source::Whole { text, .. } => return Ok(Cow::Borrowed(text.as_c_str())),
            Source::Packed { all, groups, places } => (all, groups, places),
        };
        let place = places.get(name).ok_or_else(|| self.refuse(name, "there is no such kernel"))?;
        let group = &groups[place.group];
        let text = match group.text.get() {
            Some(text) => text,
            None => {
                let text = unpack(&all[group.at.clone()], group.bytes)
                    .map_err(|problem| self.refuse(name, &problem))?;
                // Another thread may have been first, with the same text.
                group.text.get_or_init(|| text)
            }
        };
        let text = text.get(place.start..place.start + place.bytes);
        let text = text.ok_or_else(|| self.refuse(name, "the packed text ends before its kernels do"))?;
        let text = match self.device.properties().target.ends_with(HOPPER) {
            true => for_hopper(text),
            false => Cow::Borrowed(text),
        };
        let text = CString::new(&*text).map_err(|_| self.refuse(name, "the text has a zero byte"))?;
        Ok(Cow::Owned(text))
    }

    fn refuse(&self, name: &str, problem: &str) -> crate::Error {
        crate::Error::BadCodeObject { module: name.to_owned(), reason: format!("PTX: {problem}") }
    }

    /// The packed PTX, if it is packed.
    pub(crate) fn packed(&self) -> Option<&[u8]> {
        match &self.source {
            Source::Whole { .. } => None,
            Source::Packed { all, .. } => Some(all),
        }
    }

    /// The handle of the module, if it is one and loaded.
    pub(crate) fn handle(&self) -> hipModule_t {
        let Source::Whole { module, .. } = &self.source else { return ptr::null_mut() };
        let module = module.lock().unwrap_or_else(PoisonError::into_inner);
        module.as_ref().map_or(ptr::null_mut(), |module| module.handle)
    }
}

impl Drop for Compiled {
    fn drop(&mut self) {
        // SAFETY: the handle is ours; functions keep the module alive.
        unsafe { sys::hipModuleUnload(self.handle) };
    }
}

/// Numbers and bytes from the front of packed PTX.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes(&mut self, count: usize) -> std::result::Result<&'a [u8], Problem> {
        let (bytes, rest) = self.0.split_at_checked(count).ok_or("it is cut off")?;
        self.0 = rest;
        Ok(bytes)
    }

    fn number(&mut self) -> std::result::Result<usize, Problem> {
        let bytes = self.bytes(4)?;
        Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize)
    }
}

fn packed(
    all: Cow<'static, [u8]>,
    kernels: &'static [Kernel],
) -> std::result::Result<(Source, Vec<KernelInfo>), Problem> {
    let mut reader = Reader(&all);
    reader.bytes(MAGIC.len())?;
    // The records are for the build.
    let records = reader.number()?;
    reader.bytes(records)?;
    let count = reader.number()?;
    let (mut sizes, mut places) = (Vec::new(), HashMap::new());
    for group in 0..count {
        let (packed, unpacked, names) = (reader.number()?, reader.number()?, reader.number()?);
        if unpacked > MAX_GROUP as usize {
            return Err(format!("a group of {unpacked} bytes"));
        }
        let mut start = 0;
        for _ in 0..names {
            let (name, bytes) = (reader.number()?, reader.number()?);
            let name = std::str::from_utf8(reader.bytes(name)?).map_err(|error| error.to_string())?;
            places.insert(name.to_owned(), Place { group, start, bytes, module: Mutex::default() });
            start += bytes;
        }
        sizes.push((packed, unpacked));
    }
    let mut groups = Vec::new();
    for (packed, unpacked) in sizes {
        let start = all.len() - reader.0.len();
        reader.bytes(packed)?;
        groups.push(Group { at: start..start + packed, bytes: unpacked, text: OnceLock::new() });
    }
    let known = |name: &String| kernels.iter().find(|kernel| kernel.name == name).map(info_of);
    let mut infos: Vec<KernelInfo> = places.keys().filter_map(known).collect();
    if infos.len() < places.len() {
        // Of kernels without a table, the text itself says what they take.
        for group in &groups {
            let text = unpack(&all[group.at.clone()], group.bytes)?;
            infos.extend(
                entries(&text)?.into_iter().filter(|info| kernels.iter().all(|k| k.name != info.name)),
            );
        }
    }
    Ok((Source::Packed { all, groups, places }, infos))
}

/// The text for sm_90a, whose own instructions (`wgmma`, larger `mma`) no other architecture has, if it has lines for that.
fn for_hopper(text: &str) -> Cow<'_, str> {
    if !text.contains(FOR_HOPPER) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        if line.trim_end().ends_with(FOR_OTHERS) {
            continue;
        }
        match line.trim_start().strip_prefix(FOR_HOPPER) {
            Some(own) => out.push_str(own),
            None if line.starts_with(".version ") => out.push_str(".version 8.0\n"),
            None if line.starts_with(".target ") => out.push_str(".target sm_90a\n"),
            None => out.push_str(line),
        }
    }
    Cow::Owned(out)
}

fn unpack(packed: &[u8], bytes: usize) -> std::result::Result<String, Problem> {
    let mut text = String::with_capacity(bytes);
    lzma_rust2::LzmaReader::new_mem_limit(packed, MEMORY, None)
        .and_then(|reader| reader.take(bytes as u64).read_to_string(&mut text))
        .map_err(|error| format!("it cannot be unpacked: {error}"))?;
    Ok(text)
}

fn whole(bytes: &[u8]) -> std::result::Result<(Source, Vec<KernelInfo>), Problem> {
    let bytes = bytes.strip_suffix(&[0]).unwrap_or(bytes);
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not text")?;
    if !text.lines().any(|line| line.trim_start().starts_with(".version")) {
        return Err("it has no `.version`; an NVIDIA GPU takes PTX".to_owned());
    }
    let infos = entries(text)?;
    let text = CString::new(text).map_err(|_| "the text has a zero byte")?;
    Ok((Source::Whole { text, module: Mutex::default() }, infos))
}

/// What a kernel of a table takes.
fn info_of(kernel: &Kernel) -> KernelInfo {
    let mut offset = 0_u32;
    let args = kernel.args.iter().map(|arg| {
        let size = arg.size;
        offset = offset.next_multiple_of(size.max(1));
        let at = offset;
        offset += size;
        KernelArg::explicit(Some(arg.name.to_owned()), at, size, arg.ty.is_pointer())
    });
    let args = args.collect();
    KernelInfo::of_text(kernel.name.to_owned(), args, kernel.geometry.max_workgroup_size, WARP)
}

/// The kernels of a text, with the sizes of their parameters.
fn entries(text: &str) -> std::result::Result<Vec<KernelInfo>, Problem> {
    let mut found = Vec::new();
    for (at, word) in text.match_indices(".entry") {
        // Not in a comment.
        let line = text[..at].rfind('\n').map_or(0, |end| end + 1);
        if text[line..at].contains("//") {
            continue;
        }
        let rest = text[at + word.len()..].trim_start();
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%')));
        let (name, rest) = rest.split_at(end.unwrap_or(rest.len()));
        let (head, _) = rest.split_once('{').ok_or_else(|| format!("kernel `{name}` has no body"))?;
        let (list, directives) = match head.trim_start().strip_prefix('(') {
            Some(list) => {
                list.split_once(')').ok_or_else(|| format!("kernel `{name}` has no end of parameters"))?
            }
            None => ("", head),
        };
        let mut offset = 0_u32;
        let mut args = Vec::new();
        for parameter in list.split(',').map(str::trim).filter(|parameter| !parameter.is_empty()) {
            let (size, align, is_pointer) = parameter_size(parameter)
                .ok_or_else(|| format!("kernel `{name}` has the parameter `{parameter}`"))?;
            offset = offset.next_multiple_of(align.max(1));
            args.push(KernelArg::explicit(None, offset, size, is_pointer));
            offset =
                offset.checked_add(size).ok_or_else(|| format!("kernel `{name}` has too many parameters"))?;
        }
        found.push(KernelInfo::of_text(name.to_owned(), args, most_lanes(directives), WARP));
    }
    Ok(found)
}

/// Size and alignment of a parameter such as `.param .align 8 .b8 name[16]`, and whether it is known to be an address.
fn parameter_size(parameter: &str) -> Option<(u32, u32, bool)> {
    let mut words = parameter.split_whitespace().peekable();
    let (mut size, mut align) = (None, None);
    let mut is_pointer = false;
    while let Some(word) = words.next() {
        match word {
            ".align" => {
                let value = words.next()?.parse::<u32>().ok().filter(|align| align.is_power_of_two())?;
                // Behind `.ptr` it is that of the memory.
                if !is_pointer {
                    align = Some(value);
                }
            }
            ".ptr" => is_pointer = true,
            _ => {
                if let Some(kind) = word.strip_prefix('.') {
                    let bits = kind.trim_start_matches(|c: char| c.is_ascii_alphabetic());
                    size =
                        size.or(bits.parse::<u32>().ok().filter(|bits| bits % 8 == 0).map(|bits| bits / 8));
                } else if let Some((_, count)) = word.split_once('[') {
                    let count = count.strip_suffix(']')?.parse::<u32>().ok()?;
                    let element = size?;
                    align = align.or(Some(element));
                    size = Some(element.checked_mul(count)?);
                }
            }
        }
    }
    let size = size?;
    Some((size, align.unwrap_or(size), is_pointer))
}

/// Work-items of a workgroup that `.maxntid` or `.reqntid` allow.
fn most_lanes(directives: &str) -> u32 {
    let stated = [".maxntid", ".reqntid"].iter().find_map(|word| directives.split_once(word));
    let Some((_, numbers)) = stated else { return MAX_LANES };
    let line = numbers.lines().next().unwrap_or_default();
    let line = line.split("//").next().unwrap_or_default();
    let product = line.split(',').map(|number| number.trim().parse::<u32>().unwrap_or(1)).product::<u32>();
    if product == 0 { MAX_LANES } else { product }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "// .entry none\n.version 7.8\n.target sm_80\n.address_size 64\n\
        .visible .entry first(\n\t.param .u64 first_param_0,\n\t.param .u64 .ptr .align 1 first_param_1,\n\
        \t.param .f32 first_param_2,\n\t.param .align 8 .b8 first_param_3[24],\n\t.param .u8 first_param_4\n)\n\
        .maxntid 256, 2, 1 // @first\n{\n\tret;\n}\n.entry second\n{\n\tret;\n}\n";

    #[test]
    fn a_text_for_hopper_has_its_own_lines_in_place_of_others() {
        let text = ".version 7.8\n.target sm_80\n\t// begin inline asm\n\t//sm_90a wide %r1;\n\tnarrow %r1; //sm_80\n\tadd %r2;\n";
        let own = ".version 8.0\n.target sm_90a\n\t// begin inline asm\nwide %r1;\n\tadd %r2;\n";
        assert_eq!(for_hopper(text), own);
        let other = ".version 7.8\n.target sm_80\n\tadd %r2; //sm_80\n";
        assert_eq!(for_hopper(other), other);
    }

    #[test]
    fn a_text_says_what_its_kernels_take() {
        let infos = entries(TEXT).unwrap();
        assert_eq!(infos.iter().map(|info| info.name.as_str()).collect::<Vec<_>>(), ["first", "second"]);
        let args: Vec<_> = infos[0].args.iter().map(|arg| (arg.offset, arg.size)).collect();
        assert_eq!(args, [(0, 8), (8, 8), (16, 4), (24, 24), (48, 1)]);
        assert_eq!((infos[0].max_workgroup_size, infos[1].max_workgroup_size), (512, 1024));
        assert_eq!((infos[0].wave_size, infos[0].kernarg_size, infos[1].args.len()), (32, 49, 0));
    }

    #[test]
    fn what_is_no_ptx_says_so() {
        let error = |bytes: &[u8]| whole(bytes).map(drop).unwrap_err();
        assert!(error(b"\xff\xfe").contains("not text"));
        assert!(error(b"hello").contains(".version"));
        let wrong = TEXT.replace(".f32", ".f33");
        assert!(error(wrong.as_bytes()).contains("first_param_2"), "{}", error(wrong.as_bytes()));
        assert!(whole(&[TEXT.as_bytes(), &[0]].concat()).is_ok(), "with a zero at its end, as C has it");
    }

    #[test]
    fn what_the_build_packs_is_read_here() {
        let text = TEXT.replace("second\n{", "second()\n{");
        let bytes = amdgpu_build::packed::pack(&text, &[]).unwrap();
        assert_eq!(amdgpu_build::packed::MAGIC, MAGIC);
        let (source, mut infos) = packed(Cow::Owned(bytes.clone()), &[]).unwrap();
        infos.sort_by(|a, b| a.name.cmp(&b.name));
        assert_eq!(infos, entries(&text).unwrap());
        let Source::Packed { all, groups, places } = &source else { panic!("packed") };
        let group = unpack(&all[groups[0].at.clone()], groups[0].bytes).unwrap();
        let place = &places["second"];
        let second = &group[place.start..place.start + place.bytes];
        assert!(
            second.starts_with("// .entry none\n.version") && !second.contains("first_param"),
            "{second}"
        );
        for end in 0..bytes.len() {
            // No length makes it panic.
            let _ = packed(Cow::Owned(bytes[..end].to_vec()), &[]);
        }
        assert!(packed(Cow::Owned(bytes[..bytes.len() - 1].to_vec()), &[]).is_err());
    }
}
