//! As much of a module of LLVM IR as an analysis of calls and control flow needs, from its text.

use std::collections::{BTreeSet, HashMap, HashSet};

/// A function with a body.
pub(crate) struct Function<'a> {
    pub name: &'a str,
    /// Whether a host launches it.
    pub is_kernel: bool,
    /// How many of the first values are its parameters.
    pub params: usize,
    /// How many values it has.
    pub values: usize,
    /// The first one is where it begins.
    pub blocks: Vec<Block<'a>>,
}

/// Instructions that follow each other. The last one is the terminator.
#[derive(Default)]
pub(crate) struct Block<'a> {
    pub insts: Vec<Inst<'a>>,
    pub successors: Vec<usize>,
}

/// An instruction.
pub(crate) struct Inst<'a> {
    /// The value that it makes, if it makes one.
    pub result: Option<usize>,
    /// `load`, `phi`, `call`.
    pub opcode: &'a str,
    /// Everything behind the result's name, without metadata.
    pub text: &'a str,
    /// The values that it uses. Labels are not values.
    pub operands: Vec<usize>,
    /// Which metadata says where it comes from.
    pub location: Option<u32>,
}

impl<'a> Inst<'a> {
    /// The function that a call names: a direct call of a function, or of an intrinsic.
    pub fn callee(&self) -> Option<&'a str> {
        if self.opcode != "call" || self.assembly().is_some() {
            return None;
        }
        called(self.text)
    }

    /// The text and the constraints of inline assembly.
    pub fn assembly(&self) -> Option<(&'a str, &'a str)> {
        if self.opcode != "call" {
            return None;
        }
        let (before, quoted) = self.text.split_once(" asm ")?;
        if before.contains('@') {
            return None;
        }
        let mut parts = quoted.split('"');
        Some((parts.nth(1)?, parts.nth(1)?))
    }
}

/// Every function that a module defines.
pub(crate) fn functions(module: &str) -> Vec<Function<'_>> {
    let mut functions = Vec::new();
    let types = module.lines().filter_map(|line| line.strip_prefix('%')?.split_once(" = type "));
    let types: HashSet<&str> = types.map(|(name, _)| name).collect();
    let mut lines = module.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("define ") {
            let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "}").collect();
            functions.extend(function(line, &body, &types));
        }
    }
    functions
}

/// Which of a module's functions call which.
pub(crate) struct Calls<'a> {
    named: HashMap<&'a str, usize>,
    /// For each function, those with a body that it calls.
    direct: Vec<BTreeSet<usize>>,
    /// Whether each function calls one without a body that is not an intrinsic, or through a pointer.
    leaves: Vec<bool>,
}

impl<'a> Calls<'a> {
    pub fn of(functions: &'a [Function<'a>]) -> Self {
        let named = functions.iter().enumerate().map(|(at, f)| (f.name, at)).collect();
        let mut calls = Calls { named, direct: Vec::new(), leaves: Vec::new() };
        for function in functions {
            let (mut direct, mut leaves) = (BTreeSet::new(), false);
            for inst in function.blocks.iter().flat_map(|block| &block.insts) {
                let is_call = inst.opcode == "call" && inst.assembly().is_none();
                match calls.callee(inst) {
                    Some(callee) => drop(direct.insert(callee)),
                    None => leaves |= is_call && !inst.callee().is_some_and(|name| name.starts_with("llvm.")),
                }
            }
            calls.direct.push(direct);
            calls.leaves.push(leaves);
        }
        calls
    }

    /// The function with a body that an instruction calls.
    pub fn callee(&self, inst: &Inst) -> Option<usize> {
        self.named.get(inst.callee()?).copied()
    }

    /// All functions with a body that come to run by a function's calls: itself only if it is called again.
    pub fn from(&self, function: usize) -> BTreeSet<usize> {
        let mut reached = BTreeSet::new();
        let mut todo = Vec::from_iter(&self.direct[function]);
        while let Some(&next) = todo.pop() {
            if reached.insert(next) {
                todo.extend(&self.direct[next]);
            }
        }
        reached
    }

    /// Whether a function may run again before it returns.
    pub fn recurses(&self, function: usize) -> bool {
        let reached = self.from(function);
        reached.contains(&function) || self.leaves[function] || reached.iter().any(|&f| self.leaves[f])
    }
}

/// Numbers for a function's values, in the order in which they are met.
struct Values<'a, 't> {
    numbers: HashMap<&'a str, usize>,
    /// Names of types, not of values.
    types: &'t HashSet<&'a str>,
}

impl<'a> Values<'a, '_> {
    fn number(&mut self, name: &'a str) -> usize {
        let next = self.numbers.len();
        *self.numbers.entry(name).or_insert(next)
    }
}

fn function<'a>(define: &'a str, body: &[&'a str], types: &HashSet<&'a str>) -> Option<Function<'a>> {
    let (head, rest) = define.split_once('@')?;
    let (name, rest) = name_at(rest);
    let mut values = Values { numbers: HashMap::new(), types };
    for_each_name(rest, |name, _| {
        if !types.contains(name) {
            values.number(name);
        }
    });
    let params = values.numbers.len();

    let mut labels = HashMap::new();
    let mut count = usize::from(body.first().is_some_and(|line| label(line).is_none()));
    for name in body.iter().filter_map(|line| label(line)) {
        labels.insert(name, count);
        count += 1;
    }
    // Only the first block may be without a label, and then a number is its name.
    let block_of = |name: &str| labels.get(name).copied().unwrap_or(0);

    let mut blocks: Vec<Block> = Vec::with_capacity(count);
    let mut lines = body.iter();
    while let Some(&line) = lines.next() {
        if label(line).is_some() || blocks.is_empty() {
            blocks.push(Block::default());
        }
        let text = line.trim_start();
        if label(line).is_some() || text.is_empty() || text.starts_with([';', '#']) {
            continue;
        }
        let block = blocks.last_mut()?;
        let mut inst = instruction(text, &mut values);
        let mut jumps = |line: &'a str| {
            for_each_name(line, |name, before| {
                if before.ends_with("label ") {
                    block.successors.push(block_of(name));
                }
            });
        };
        if matches!(inst.opcode, "br" | "switch") {
            jumps(text);
        }
        if inst.opcode == "switch" && !text.contains(']') {
            for case in lines.by_ref() {
                jumps(case);
                if case.trim_start().starts_with(']') {
                    inst.location = location(case);
                    break;
                }
            }
        }
        block.insts.push(inst);
    }
    let is_kernel = head.contains("amdgpu_kernel") || head.contains("ptx_kernel");
    Some(Function { name, is_kernel, params, values: values.numbers.len(), blocks })
}

/// The name of the block that begins at a line.
fn label(line: &str) -> Option<&str> {
    if line.starts_with([' ', ';', '#', '\t', '}']) || line.is_empty() {
        return None;
    }
    if let Some(quoted) = line.strip_prefix('"') {
        return Some(&line[..quoted.find('"')? + 2]);
    }
    Some(line.split_once(':')?.0)
}

fn instruction<'a>(line: &'a str, values: &mut Values<'a, '_>) -> Inst<'a> {
    let location = location(line);
    let line = line.find(", !").map_or(line, |end| &line[..end]);
    let (result, text) = match line.strip_prefix('%') {
        Some(rest) => {
            let (name, rest) = name_at(rest);
            (Some(values.number(name)), rest.trim_start_matches(" = "))
        }
        None => (None, line),
    };
    let mut words = text.split(' ');
    let opcode = match words.next().unwrap_or_default() {
        "tail" | "musttail" | "notail" => words.next().unwrap_or_default(),
        word => word,
    };
    let mut operands = Vec::new();
    for_each_name(text, |name, before| {
        let is_label = before.ends_with("label ")
            || opcode == "phi" && before.ends_with(", ") && {
                // `[ %value, %block ]`
                text[before.len() + 1 + name.len()..].starts_with(" ]")
            };
        if !is_label && !values.types.contains(name) {
            operands.push(values.number(name));
        }
    });
    Inst { result, opcode, text, operands, location }
}

fn location(line: &str) -> Option<u32> {
    let (_, number) = line.split_once("!dbg !")?;
    number.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// The name at the beginning of a text that followed `%` or `@`, with its quotes if it has any, and the rest.
fn name_at(text: &str) -> (&str, &str) {
    let end = match text.strip_prefix('"') {
        Some(quoted) => quoted.find('"').map_or(text.len(), |end| end + 2),
        None => text.find(|c: char| !c.is_ascii_alphanumeric() && !"-$._".contains(c)).unwrap_or(text.len()),
    };
    text.split_at(end)
}

/// The name of the function that a call names before its arguments.
fn called(call: &str) -> Option<&str> {
    let mut at = 0;
    while let Some(found) = call[at..].find(['%', '@']) {
        let (sigil, rest) = call[at + found..].split_at(1);
        let (name, rest) = name_at(rest);
        if rest.starts_with('(') {
            return (sigil == "@").then_some(name);
        }
        at += found + 1 + name.len();
    }
    None
}

/// Calls `each` with the name of each local value or label in a text, and with the text before its `%`.
fn for_each_name<'a>(text: &'a str, mut each: impl FnMut(&'a str, &'a str)) {
    let mut at = 0;
    while let Some(found) = text[at..].find(['%', '"', '@']) {
        let start = at + found;
        let rest = &text[start + 1..];
        at = match text.as_bytes()[start] {
            b'"' => start + 1 + rest.find('"').map_or(rest.len(), |end| end + 1),
            sigil => {
                let (name, _) = name_at(rest);
                if sigil == b'%' {
                    each(name, &text[..start]);
                }
                start + 1 + name.len()
            }
        };
    }
}

/// Where instructions come from, by the metadata of a module.
pub(crate) struct Locations<'a>(HashMap<u32, &'a str>);

/// A place in a source file, and the function that it is in.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct Place<'a> {
    pub file: &'a str,
    pub line: u32,
    /// As the mangled name says it.
    pub function: &'a str,
}

impl<'a> Locations<'a> {
    pub fn of(module: &'a str) -> Self {
        let numbered = module.lines().filter_map(|line| {
            let (number, node) = line.strip_prefix('!')?.split_once(" = ")?;
            Some((number.parse().ok()?, node))
        });
        Locations(numbered.collect())
    }

    /// The place of an instruction, the place where the function there was inlined, and so on outwards.
    pub fn places(&self, location: Option<u32>) -> Vec<Place<'a>> {
        let mut places = Vec::new();
        let mut next = location;
        while let Some(node) = next.and_then(|number| self.0.get(&number)) {
            next = field(node, "inlinedAt: !");
            places.extend(self.place(node));
            if places.len() > MOST_INLINED {
                break;
            }
        }
        places
    }

    fn place(&self, location: &str) -> Option<Place<'a>> {
        let line = field(location, "line: ")?;
        let mut scope = *self.0.get(&field(location, "scope: !")?)?;
        let file = text(self.0.get(&field(scope, "file: !")?)?, "filename: \"")?;
        while !scope.contains("!DISubprogram(") {
            scope = self.0.get(&field(scope, "scope: !")?)?;
        }
        let function = text(scope, "linkageName: \"").or_else(|| text(scope, "name: \""))?;
        Some(Place { file, line, function })
    }
}

/// More functions inlined into one another than this are a circle, which LLVM does not write.
const MOST_INLINED: usize = 1000;

fn field(node: &str, name: &str) -> Option<u32> {
    let (_, rest) = node.split_once(name)?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

fn text<'a>(node: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = node.split_once(name)?;
    Some(rest.split_once('"')?.0)
}
