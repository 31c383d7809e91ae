//! `cargo xtask cudarc-api`: how much of cudarc's public interface the crate in `candle/cudarc` has, by name.
//!
//! Both sources are read line by line, which is enough for code that rustfmt has formatted: functions, types and constants of
//! modules, functions of types and of traits. What our macros define is seen where their calls name it, and what our modules hand on
//! from others counts as theirs.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::{candle, check_downstream, shell};

/// The modules that crates on Candle use.
const MODULES: [&str; 5] = ["driver", "cublas", "cublaslt", "curand", "nccl"];

/// Names of files and folders that are part of an item's path; others are parts of a module.
const IN_PATHS: [&str; 1] = ["result"];

/// Prints what is there and what is missing, with cudarc's newest release of the series.
pub fn run() -> Result<()> {
    let folder = shell::workspace().join("candle");
    let dependencies =
        "real = { package = \"cudarc\", version = \"=0.19.10\", features = [\"cuda-12080\"] }\n";
    let project = check_downstream::unpatched(dependencies, &folder)?;
    let theirs = candle::source(project.path(), "cudarc")?.join("src");
    let mut table = String::from("| module | names | here |\n| --- | ---: | ---: |\n");
    for module in MODULES {
        let ours = folder.join("cudarc/src");
        let (theirs, mut ours) =
            (items(&theirs, module, Read::Definitions)?, items(&ours, module, Read::All)?);
        // One type for both here, with its function.
        if module == "cublaslt" && ours.contains("result::CublasError") {
            ours.insert("result::cublasStatus_t::result".to_owned());
        }
        let missing: Vec<_> = theirs.difference(&ours).map(String::as_str).collect();
        table += &format!("| {module} | {} | {} |\n", theirs.len(), theirs.len() - missing.len());
        println!("{module} lacks {}:\n  {}\n", missing.len(), missing.join(" "));
    }
    print!("{table}");
    Ok(())
}

/// What counts as an item.
#[derive(Clone, Copy, PartialEq)]
enum Read {
    /// What is defined in so many words.
    Definitions,
    /// Also what comes from elsewhere, and words of macros' calls.
    All,
}

/// The public items of a module, in `NAME.rs` and in `NAME/`.
fn items(source: &Path, module: &str, what: Read) -> Result<BTreeSet<String>> {
    let mut items = BTreeSet::new();
    let file = source.join(format!("{module}.rs"));
    if file.exists() {
        read(&file, &[], what, &mut items)?;
    }
    let folder = source.join(module);
    if folder.is_dir() {
        walk(&folder, &[], what, &mut items)?;
    }
    Ok(items)
}

fn walk(folder: &Path, path: &[String], what: Read, items: &mut BTreeSet<String>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let entry = entry?.path();
        let name = entry.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        // CUDA's own declarations are not cudarc's.
        if name == "sys" {
            continue;
        }
        let mut path = path.to_vec();
        if IN_PATHS.contains(&&*name) {
            path.push(name);
        }
        if entry.is_dir() {
            walk(&entry, &path, what, items)?;
        } else if entry.extension().is_some_and(|end| end == "rs") {
            read(&entry, &path, what, items)?;
        }
    }
    Ok(())
}

/// A block that is open: the depth of braces before it, and what it is.
enum Block {
    Module(String),
    /// A type or a trait, whose functions are public if they say so, or always.
    Type(String, bool),
    /// The call of a macro.
    Call,
    Other,
}

fn read(file: &Path, path: &[String], what: Read, items: &mut BTreeSet<String>) -> Result<()> {
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let mut open: Vec<(usize, Block)> = Vec::new();
    let mut depth = 0_usize;
    for line in text.lines() {
        let line = line.split("//").next().unwrap_or_default();
        let words = line.trim_start().trim_start_matches("unsafe ");
        let public = words.strip_prefix("pub ");
        let item = without(public.unwrap_or(words));
        let modules = open.iter().filter_map(|(_, block)| match block {
            Block::Module(name) => Some(name.clone()),
            _ => None,
        });
        let path: Vec<_> = path.iter().cloned().chain(modules).collect();
        let hidden = path.iter().any(|name| name == "tests");
        let inside = open.last().filter(|(before, _)| *before + 1 == depth).map(|(_, block)| block);
        let own = |name: &str| [&path[..], &[name.to_owned()]].concat().join("::");
        let top = open.last().is_none_or(|(_, block)| matches!(block, Block::Module(_)));
        if let Some(name) = after(item, &["fn "]).filter(|_| !hidden) {
            match inside {
                Some(Block::Type(of, always)) if *always || public.is_some() => {
                    items.insert(own(&format!("{of}::{name}")));
                }
                _ if top && public.is_some() => {
                    items.insert(own(name));
                }
                _ => {}
            }
        } else if let Some(names) = item.strip_prefix("use ").filter(|_| public.is_some() && top) {
            if what == Read::All {
                items.extend(handed_on(names).map(own));
            }
        } else if matches!(inside, Some(Block::Call)) && what == Read::All {
            items.extend(line.split('(').next().unwrap_or_default().split(not_in_names).map(own));
        } else if let Some(name) = after(item, &["struct ", "enum ", "trait ", "type ", "const ", "static "])
            && top
            && public.is_some()
            && !hidden
        {
            items.insert(own(name));
        }
        let (opens, closes) = (line.matches('{').count(), line.matches('}').count());
        if opens > closes {
            let block = if let Some(name) = after(item, &["mod "]) {
                Block::Module(name.to_owned())
            } else if let Some(name) = after(item, &["trait "]) {
                Block::Type(name.to_owned(), true)
            } else if item
                .split(not_in_names)
                .next()
                .is_some_and(|name| item[name.len()..].starts_with("! {"))
            {
                Block::Call
            } else if item.starts_with("impl") && !item.contains(" for ") {
                Block::Type(subject(item).to_owned(), false)
            } else {
                Block::Other
            };
            open.push((depth, block));
        }
        depth = (depth + opens).saturating_sub(closes);
        while open.last().is_some_and(|(before, _)| depth <= *before) {
            open.pop();
        }
    }
    Ok(())
}

/// Without what may stand between `pub` and `fn`.
fn without(item: &str) -> &str {
    ["const unsafe ", "unsafe ", "async "].iter().fold(item, |item, word| match item.strip_prefix(word) {
        Some(rest) => rest,
        None if item.starts_with("const fn ") => &item["const ".len()..],
        None => item,
    })
}

/// What cannot be part of a name.
fn not_in_names(c: char) -> bool {
    !c.is_alphanumeric() && c != '_'
}

/// The names that a `use` hands on, if they are in its line.
fn handed_on(names: &str) -> impl Iterator<Item = &str> {
    let list = names.split_once('{').map_or(names, |(_, list)| list);
    let last = |path: &str| path.rfind(' ').into_iter().chain(path.rfind(':')).max().map_or(0, |at| at + 1);
    list.split([',', '}', ';'])
        .map(str::trim)
        .map(move |path| &path[last(path)..])
        .filter(|name| !name.is_empty())
}

/// The name behind one of these words.
fn after<'a>(item: &'a str, words: &[&str]) -> Option<&'a str> {
    let rest = words.iter().find_map(|word| item.strip_prefix(word))?;
    let end = rest.find(not_in_names).unwrap_or(rest.len());
    (end > 0).then(|| &rest[..end])
}

/// The type of an `impl`, without its parameters.
fn subject(item: &str) -> &str {
    let rest = item.trim_start_matches("impl");
    let mut nested = 0_i32;
    let start = rest.char_indices().find_map(|(at, c)| {
        match c {
            '<' => nested += 1,
            '>' if !rest[..at].ends_with('-') => nested -= 1,
            c if nested == 0 && (c.is_alphanumeric() || c == '_') => return Some(at),
            _ => {}
        }
        None
    });
    let name = &rest[start.unwrap_or(0)..];
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_' && c != ':').unwrap_or(name.len());
    name[..end].rsplit("::").next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_have_the_path_that_users_write() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(
            "driver/safe/core.rs",
            "pub struct A<T> {\n    x: T,\n}\n\nimpl<T: Into<u8>> A<T> {\n    pub fn one(&self) {\n        if true {\n            \
             fn inner() {}\n        }\n    }\n\n    fn hidden() {}\n\n    pub unsafe fn two() {}\n}\n\nimpl Drop for A<u8> {\n    \
             fn drop(&mut self) {}\n}\n\nfn hidden() {}\n\nmod tests {\n    pub fn test() {}\n}\n",
        );
        write(
            "driver/result.rs",
            "pub const fn get() {}\n\npub mod stream {\n    pub unsafe fn wait() {}\n}\n",
        );
        write("driver/sys/mod.rs", "pub fn cuInit() {}\n");
        write("driver.rs", "pub trait B<T> {\n    fn three(&self);\n}\n\npub type C = u8;\n");
        let expected = ["A", "A::one", "A::two", "B", "B::three", "C", "result::get", "result::stream::wait"];
        let found = |what| items(folder.path(), "driver", what).unwrap().into_iter().collect::<Vec<_>>();
        assert_eq!(found(Read::Definitions), expected);
        write(
            "driver/result/calls.rs",
            "pub use super::D;\npub use super::E::{F, G as H};\n\nuse super::I;\n\nmacro_rules! calls {\n    ($n:ident) => {};\n}\n\n\
             calls! {\n    /// J\n    k = cudaK(l: u8);\n    f32: m n;\n}\n",
        );
        assert_eq!(found(Read::Definitions), expected);
        let all = found(Read::All);
        let in_result =
            |names: &[&str]| names.iter().map(|name| format!("result::{name}")).collect::<Vec<_>>();
        assert!(in_result(&["D", "F", "H", "k", "m", "n"]).iter().all(|name| all.contains(name)), "{all:?}");
        assert!(!in_result(&["G", "I", "J", "l"]).iter().any(|name| all.contains(name)), "{all:?}");
    }
}
