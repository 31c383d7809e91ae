//! What kernels cost, beside the committed tables: `tests/data/table/FAMILY.tsv` has a line for each kernel, and a column
//! for each target with its instructions, code bytes and vector registers.
//!
//! Another compiler generates other code: unless it is the one that made the tables, differences are only printed.

use amdgpu_emulator::decode::decode_wave;
use candle_amdgpu::{CodeObject, KernelInfo, Module, kernels};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The variable that `cargo xtask table` sets to have the tables written.
const WRITE: &str = "CANDLE_AMDGPU_WRITE_TABLE";

/// What the code of a kernel is.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct Cost {
    instructions: u64,
    bytes: u64,
    vgprs: u64,
}

impl Cost {
    fn of(code: &CodeObject, info: &KernelInfo) -> Cost {
        let start = info.descriptor.entry as usize;
        let mut rest = &code.image()[start..start + info.code_bytes as usize];
        let mut instructions = 0;
        while !rest.is_empty() {
            let inst = decode_wave(code.gfx(), info.wave_size, rest).expect("an instruction");
            instructions += 1;
            rest = &rest[usize::from(inst.size)..];
        }
        Cost { instructions, bytes: info.code_bytes, vgprs: info.vgprs.into() }
    }

    fn parse(field: &str) -> Option<Cost> {
        let mut numbers = field.split(' ').map(str::parse);
        let mut number = || numbers.next()?.ok();
        Some(Cost { instructions: number()?, bytes: number()?, vgprs: number()? })
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.instructions, self.bytes, self.vgprs)
    }
}

/// A family's costs, by kernel and target.
#[derive(Default, PartialEq, Eq, Debug)]
struct Table {
    compiler: String,
    targets: Vec<String>,
    rows: BTreeMap<String, Vec<Cost>>,
}

impl Table {
    fn of(module: &Module) -> Table {
        let mut table = Table { compiler: kernels::COMPILER.to_owned(), ..Table::default() };
        for object in module.objects() {
            table.targets.push(object.gfx.to_owned());
            let code = CodeObject::parse(object.bytes).expect("a code object");
            for info in code.kernels() {
                table.rows.entry(info.name.clone()).or_default().push(Cost::of(&code, info));
            }
        }
        table
    }

    fn parse(text: &str) -> Option<Table> {
        let mut lines = text.lines();
        let compiler = lines.next()?.strip_prefix("# ")?.to_owned();
        let targets = lines.next()?.strip_prefix("kernel\t")?.split('\t').map(str::to_owned).collect();
        let row = |line: &str| {
            let (name, costs) = line.split_once('\t')?;
            Some((name.to_owned(), costs.split('\t').map(Cost::parse).collect::<Option<_>>()?))
        };
        Some(Table { compiler, targets, rows: lines.map(row).collect::<Option<_>>()? })
    }

    fn text(&self) -> String {
        let mut text = format!("# {}\nkernel\t{}\n", self.compiler, self.targets.join("\t"));
        for (name, costs) in &self.rows {
            let costs: Vec<_> = costs.iter().map(Cost::to_string).collect();
            text += &format!("{name}\t{}\n", costs.join("\t"));
        }
        text
    }

    fn cost(&self, kernel: &str, target: &str) -> Option<Cost> {
        let column = self.targets.iter().position(|t| t == target)?;
        self.rows.get(kernel)?.get(column).copied()
    }

    /// What is different in `new`, on the targets that both have: sums first.
    fn differences(&self, new: &Table) -> Vec<String> {
        let mut lines = Vec::new();
        for target in new.targets.iter().filter(|t| self.targets.contains(t)) {
            let names: BTreeSet<_> = self.rows.keys().chain(new.rows.keys()).collect();
            let (mut old_sum, mut new_sum) = (0, 0);
            let mut of_target = Vec::new();
            for name in names {
                let (old, new) = (self.cost(name, target), new.cost(name, target));
                old_sum += old.map_or(0, |cost| cost.instructions);
                new_sum += new.map_or(0, |cost| cost.instructions);
                of_target.extend(match (old, new) {
                    (Some(old), Some(new)) if old != new => Some(format!("    {name}: {old} is now {new}")),
                    (Some(_), None) => Some(format!("    {name} is gone")),
                    (None, Some(new)) => Some(format!("    {name} is new: {new}")),
                    _ => None,
                });
            }
            if !of_target.is_empty() {
                lines.push(format!(
                    "  {target}: {} kernels, {} of them differ; {old_sum} instructions are now {new_sum}",
                    new.rows.len(),
                    of_target.len()
                ));
                lines.extend(of_target);
            }
        }
        lines
    }
}

fn path(family: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/table").join(family).with_extension("tsv")
}

#[test]
fn kernels_cost_what_the_committed_tables_say() {
    let write = std::env::var_os(WRITE).is_some();
    // Past the test harness, which keeps the output of what succeeds.
    let mut out = std::io::stderr();
    let mut stale = false;
    for module in kernels::MODULES {
        let (new, path) = (Table::of(module), path(module.name()));
        let old =
            std::fs::read_to_string(&path).ok().and_then(|text| Table::parse(&text)).unwrap_or_default();
        let differences = old.differences(&new);
        if !differences.is_empty() || old.targets.is_empty() {
            writeln!(out, "{}: (instructions, bytes, registers)", module.name()).expect("standard error");
            differences.iter().for_each(|line| writeln!(out, "{line}").expect("standard error"));
            stale |= old.compiler == new.compiler || old.targets.is_empty();
        }
        if write {
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("the folder can be made");
            std::fs::write(&path, new.text()).expect("the table can be written");
        }
    }
    assert!(
        write || !stale,
        "kernels cost other than tests/data/table/ says: run `cargo xtask table` and commit"
    );
}

#[test]
fn a_table_is_read_as_it_was_written_and_compared_line_by_line() {
    let cost = |instructions| Cost { instructions, bytes: 8 * instructions, vgprs: 3 };
    let table = |rows: &[(&str, u64)]| Table {
        compiler: "rustc 1.96.0".to_owned(),
        targets: vec!["gfx1100".to_owned()],
        rows: rows.iter().map(|&(name, n)| (name.to_owned(), vec![cost(n)])).collect(),
    };
    let old = table(&[("a", 10), ("b", 20), ("c", 30)]);
    assert_eq!(Table::parse(&old.text()).unwrap(), old);
    assert_eq!(old.differences(&old), Vec::<String>::new());
    assert_eq!(
        old.differences(&table(&[("a", 10), ("b", 21), ("d", 5)])),
        [
            "  gfx1100: 3 kernels, 3 of them differ; 60 instructions are now 36",
            "    b: 20 160 3 is now 21 168 3",
            "    c is gone",
            "    d is new: 5 40 3",
        ]
    );
}
