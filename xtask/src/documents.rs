//! Checks of the Markdown: links lead somewhere, the guide's Rust is quoted from files that are compiled, every page of the
//! guide is in its table of contents, its page of environment variables is complete, and the README lists every target.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Component, Path, PathBuf};

use amdgpu_emulator::Gfx;
use anyhow::{Context, Result, bail};
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use crate::shell;

/// Folders that are not ours, or come from a build.
const SKIPPED: [&str; 2] = ["target", "node_modules"];

/// Where the guide's Rust is quoted from. All of it is compiled by other checks.
const QUOTED: [&str; 5] = ["examples", "host", "kernels", "tests", "verify"];

/// The page with all environment variables.
const VARIABLES: &str = "guide/src/environment.md";

/// Names in sources that read the environment which do not belong on that page: what cargo, rustup and apt set or read, and
/// what a test sets for the process that it starts.
const NOT_OURS: [&str; 11] = [
    "AMDHIP_TEST_ABSENT",
    "AMDHIP_TEST_PROBE",
    "AMDHIP_TEST_TRAP",
    "DEBIAN_FRONTEND",
    "FAKE_DEVICES",
    "FORGETFUL",
    "HOME",
    "LIBRARY_PRINTS",
    "NCCL_TEST_PART",
    "OUT_DIR",
    "PATH",
];
const NOT_OURS_PREFIXES: [&str; 2] = ["CARGO", "RUST"];

/// Checks all Markdown of the repository, and prints how much there was.
pub fn run(_: bool) -> Result<()> {
    let root = shell::workspace();
    let mut pages = BTreeMap::new();
    for file in files(root, "md")? {
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        pages.insert(file, Page::parse(&text));
    }
    let mut wrong = links(&pages, root);
    let sources = QUOTED.iter().map(|folder| files(&root.join(folder), "rs")).collect::<Result<Vec<_>>>()?;
    let sources = sources.concat().iter().map(fs::read_to_string).collect::<Result<Vec<_>, _>>()?;
    wrong.extend(guide(&pages, &root.join("guide/src"), &sources));
    let code = ["rs", "c", "hip", "py", "toml"].map(|extension| files(root, extension));
    let mut code = code.into_iter().collect::<Result<Vec<_>>>()?.concat();
    // Its exceptions and tests have names of their own.
    code.retain(|file| !file.ends_with("xtask/src/documents.rs"));
    code.push(root.join(".cargo/config.toml"));
    let code = code.iter().map(fs::read_to_string).collect::<Result<Vec<_>, _>>()?;
    wrong.extend(variables(pages.get(&root.join(VARIABLES)).unwrap_or(&Page::default()), &code));
    wrong.extend(targets(&fs::read_to_string(root.join("README.md"))?));
    if !wrong.is_empty() {
        bail!("{}", wrong.join("\n"));
    }
    let links: usize = pages.values().map(|page| page.links.len()).sum();
    println!("{links} links in {} files", pages.len());
    Ok(())
}

/// All files below `folder` with this extension, sorted; none of a hidden folder.
fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with('.') || SKIPPED.contains(&&*name) {
            continue;
        }
        if path.is_dir() {
            found.extend(files(&path, extension)?);
        } else if path.extension().is_some_and(|e| e == extension) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// What a check needs to know of a Markdown file.
#[derive(Default)]
struct Page {
    links: Vec<String>,
    anchors: BTreeSet<String>,
    /// Code blocks: language and text.
    blocks: Vec<(String, String)>,
    /// Code within a line.
    spans: BTreeSet<String>,
}

impl Page {
    fn parse(text: &str) -> Page {
        let mut page = Page::default();
        let mut heading: Option<String> = None;
        let mut block: Option<(String, String)> = None;
        let mut seen: HashMap<String, u32> = HashMap::new();
        for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
            match event {
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    page.links.push(dest_url.into_string());
                }
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => {
                    let slug = slug(&heading.take().unwrap_or_default());
                    // Of headings that are alike, the second has a 1 behind it.
                    let count = seen.entry(slug.clone()).or_default();
                    page.anchors.insert(if *count == 0 { slug } else { format!("{slug}-{count}") });
                    *count += 1;
                }
                Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language))) => {
                    block = Some((language.into_string(), String::new()));
                }
                Event::End(TagEnd::CodeBlock) => page.blocks.extend(block.take()),
                Event::Text(ref text) | Event::Code(ref text) => {
                    if matches!(event, Event::Code(_)) {
                        page.spans.insert(text.to_string());
                    }
                    if let Some(heading) = &mut heading {
                        heading.push_str(text);
                    }
                    if let Some((_, code)) = &mut block {
                        code.push_str(text);
                    }
                }
                _ => {}
            }
        }
        page
    }
}

/// The anchor of a heading, as GitHub and mdBook make it.
fn slug(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Links that lead nowhere. Those to other hosts are not followed.
fn links(pages: &BTreeMap<PathBuf, Page>, root: &Path) -> Vec<String> {
    let mut wrong = Vec::new();
    for (file, page) in pages {
        let shown = file.strip_prefix(root).unwrap_or(file).display();
        for link in &page.links {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (path, anchor) = link.split_once('#').map_or((&**link, None), |(path, a)| (path, Some(a)));
            let target = if path.is_empty() { file.clone() } else { normal(&file.with_file_name(path)) };
            if !target.exists() {
                wrong.push(format!("{shown}: `{link}` leads to no file"));
                continue;
            }
            let has = |anchor| pages.get(&target).is_none_or(|page| page.anchors.contains(anchor));
            if anchor.is_some_and(|anchor| !has(anchor)) {
                wrong.push(format!("{shown}: `{link}` leads to no heading"));
            }
        }
    }
    wrong
}

/// The path without `..`.
fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(out.pop()),
            Component::CurDir => {}
            part => out.push(part),
        }
    }
    out
}

/// What is wrong in the guide: links out of it, which would be broken in the book; pages that it does not list; and Rust that is
/// not in any source.
fn guide(pages: &BTreeMap<PathBuf, Page>, folder: &Path, sources: &[String]) -> Vec<String> {
    let mut wrong = Vec::new();
    let contents = pages.get(&folder.join("SUMMARY.md")).map_or(&[][..], |page| &page.links);
    for (file, page) in pages.iter().filter(|(file, _)| file.starts_with(folder)) {
        let name = file.strip_prefix(folder).unwrap_or(file).display().to_string();
        if name != "SUMMARY.md" && !contents.contains(&name) {
            wrong.push(format!("{name} is not in the guide's SUMMARY.md"));
        }
        let outside = |link: &&String| link.starts_with("../");
        wrong.extend(
            page.links.iter().filter(outside).map(|link| format!("{name}: `{link}` leaves the guide")),
        );
        let rust = page.blocks.iter().filter(|(language, _)| language == "rust").map(|(_, code)| code);
        let not_quoted = rust.filter(|code| !sources.iter().any(|source| source.contains(&***code)));
        wrong.extend(not_quoted.map(|code| format!("{name}: no source file has\n{code}")));
    }
    wrong
}

/// What is wrong with the page of environment variables: those that the sources read and it lacks, and those that it has and
/// no source knows.
fn variables(page: &Page, sources: &[String]) -> Vec<String> {
    let read: BTreeSet<&str> = sources.iter().flat_map(|source| read_by(source)).collect();
    let missing = read.iter().filter(|name| !page.spans.contains(**name));
    let missing = missing.map(|name| format!("{VARIABLES} lacks `{name}`, which a source reads"));
    let listed = page.spans.iter().filter(|span| is_variable(span) && span.contains('_'));
    let unknown = listed.filter(|name| !sources.iter().any(|source| source.contains(name.as_str())));
    missing.chain(unknown.map(|name| format!("{VARIABLES} has `{name}`, which no source reads"))).collect()
}

/// The environment variables that a source may read: names in the calls that read one, names of ours wherever they are, and in
/// a file with such calls all strings that look like a name, since a call may have the name from a constant or a parameter.
fn read_by(source: &str) -> BTreeSet<&str> {
    let calls = ["env::var", "var_os", "getenv("];
    let reads = calls.iter().any(|call| source.contains(call));
    // Every second piece is a string, but which half they are depends on the quotation marks in comments.
    let strings = source.split('"').filter(|text| {
        is_variable(text) && (text.starts_with("CANDLE_AMDGPU_") || reads && text.contains('_'))
    });
    let called = ["var(", "var_os(", "getenv("].into_iter().flat_map(|call| source.split(call).skip(1));
    let called = called.filter_map(|rest| rest.trim_start().strip_prefix('"')?.split('"').next());
    let ours = |name: &&str| {
        !NOT_OURS.contains(name) && !NOT_OURS_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
    };
    strings.chain(called.filter(|name| is_variable(name))).filter(ours).collect()
}

/// Whether a text has the form of an environment variable's name.
fn is_variable(text: &str) -> bool {
    text.len() > 1
        && text.starts_with(|c: char| c.is_ascii_uppercase())
        && !text.ends_with('_')
        && text.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

/// The heading of the README's table of cards.
const CARDS: &str = "| card | target |\n";

/// What is wrong in the README's table of cards: each target is in one row of it.
fn targets(readme: &str) -> Vec<String> {
    let (_, table) = readme.split_once(CARDS).unwrap_or_default();
    let rows = table.lines().filter_map(|line| line.strip_suffix(" |")?.rsplit_once("| ")?.1.into());
    let listed: Vec<&str> =
        rows.flat_map(|cell: &str| cell.split(", ")).filter(|t| t.starts_with("gfx")).collect();
    let count = |name: &str| listed.iter().filter(|target| **target == name).count();
    let wrong =
        Gfx::ALL.into_iter().map(|gfx| (gfx.name(), count(gfx.name()))).filter(|(_, count)| *count != 1);
    let unknown = listed.iter().filter(|name| Gfx::from_name(name).is_err());
    let unknown = unknown.map(|name| format!("README.md: the table of cards has the unknown target {name}"));
    wrong
        .map(|(name, count)| format!("README.md: {name} is in {count} rows of the table of cards"))
        .chain(unknown)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_become_anchors() {
        let page = Page::parse("# On an AMD card\n## `#[len]`, twice\n## `#[len]`, twice\n");
        assert_eq!(page.anchors, ["len-twice", "len-twice-1", "on-an-amd-card"].map(str::to_owned).into());
    }

    #[test]
    fn links_to_nothing_are_found() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("a.md");
        let text =
            "# One\n[a](#one) [b](#two) [c](a.md#one) [d](b.md) [e](https://example.org/x) `[f](g.md)`\n";
        fs::write(&file, text).unwrap();
        let pages = BTreeMap::from([(file, Page::parse(text))]);
        let wrong = links(&pages, root.path());
        assert_eq!(wrong, ["a.md: `#two` leads to no heading", "a.md: `b.md` leads to no file"]);
    }

    #[test]
    fn the_guide_has_its_pages_its_links_and_its_quotations() {
        let page = |name: &str, text| (PathBuf::from("/g").join(name), Page::parse(text));
        let pages = BTreeMap::from([
            page("SUMMARY.md", "[One](one.md)"),
            page("one.md", "[out](../x.md)\n```rust\nfn a() {}\n```\n```rust\nfn b() {}\n```\n"),
            page("two.md", ""),
        ]);
        let wrong = guide(&pages, Path::new("/g"), &["// a\nfn a() {}\n".to_owned()]);
        assert_eq!(
            wrong,
            [
                "one.md: `../x.md` leaves the guide",
                "one.md: no source file has\nfn b() {}\n",
                "two.md is not in the guide's SUMMARY.md",
            ]
        );
    }

    #[test]
    fn variables_that_are_read_and_not_on_the_page_are_found() {
        let page = Page::parse("| `CANDLE_AMDGPU_A` | `B_C` | `OLD_ONE` | `CC` | `auto` |");
        let sources = [
            r#"pub const A: &str = "CANDLE_AMDGPU_A"; // no call"#,
            r#"const N: &str = "B_C"; fn f() { env::var(N); env::var_os("CC"); env::var_os("HOME"); }"#,
            r#"char* x = getenv("DD"); char* y = getenv( "E_F" );"#,
            r#"fn g() { h("CANDLE_AMDGPU_G"); h("NO_CALL_HERE"); }"#,
            r#"fn k() { number("K_L"); } fn number(n: &str) { std::env::var_os(n); env::var("CARGO_X"); }"#,
        ];
        let wrong = variables(&page, &sources.map(str::to_owned));
        let lacks = |name: &str| format!("{VARIABLES} lacks `{name}`, which a source reads");
        let mut expected: Vec<String> = ["CANDLE_AMDGPU_G", "DD", "E_F", "K_L"].map(lacks).into();
        expected.push(format!("{VARIABLES} has `OLD_ONE`, which no source reads"));
        assert_eq!(wrong, expected);
    }

    #[test]
    fn every_target_has_one_row() {
        let rows = format!("| where | gfx9998 |\n\n{CARDS}")
            + &Gfx::ALL.map(|gfx| format!("| a card | {gfx} |\n")).concat();
        assert_eq!(targets(&rows), Vec::<String>::new());
        let wrong = targets(&rows.replace("gfx1011 ", "gfx1010, gfx9999 "));
        assert_eq!(
            wrong,
            [
                "README.md: gfx1010 is in 2 rows of the table of cards",
                "README.md: gfx1011 is in 0 rows of the table of cards",
                "README.md: the table of cards has the unknown target gfx9999",
            ]
        );
    }
}
