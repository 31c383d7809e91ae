//! Kernels as LLVM IR. rustc has no inline assembly for AMD GPUs yet, and compiles once for all targets with the same wave
//! size; inline assembly in LLVM IR gives exactly the instruction that is meant, for the very target.

use std::fmt::Write;

use amdgpu_emulator::{Generation, Gfx};

use super::{Body, Element, Operand, Operation, Registers, Space, WORKGROUP, operations};

const HEAD: &str = "\
target triple = \"amdgcn-amd-amdhsa\"
declare i32 @llvm.amdgcn.workgroup.id.x()
declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.readfirstlane.i32(i32)
!llvm.module.flags = !{!0}
!0 = !{i32 1, !\"amdhsa_code_object_version\", i32 500}
attributes #0 = { nounwind \"amdgpu-flat-work-group-size\"=\"64,64\" }
attributes #1 = { convergent nounwind }
@lds = internal addrspace(3) global [8192 x i8] poison, align 16
";

/// A module with the kernels of all operations of a target.
pub fn module(gfx: Gfx) -> String {
    let mut text = HEAD.to_owned();
    let mut declared = Vec::new();
    for operation in operations(gfx) {
        if let Body::Ir { declarations, .. } = &operation.body {
            for line in declarations.lines().map(str::trim).filter(|line| !line.is_empty()) {
                if !declared.iter().any(|known| known == line) {
                    declared.push(line.to_owned());
                    text += line;
                    text.push('\n');
                }
            }
        }
        text += &Kernel { gfx, operation: &operation, text: String::new(), next: 0 }.text();
    }
    text
}

/// The type of an operand's register.
fn register(operand: &Operand) -> String {
    words_type(operand.words)
}

fn words_type(words: usize) -> String {
    match words {
        1 => "i32".to_owned(),
        2 => "i64".to_owned(),
        n => format!("<{n} x i32>"),
    }
}

/// The type of a value in IR.
fn value(operand: &Operand) -> String {
    let scalar = match operand.element {
        Element::F16 => "half",
        Element::Bf16 => "bfloat",
        Element::F32 => "float",
        Element::F64 => "double",
        Element::B8 | Element::Fp8 | Element::Bf8 => "i8",
        Element::B16 => "i16",
        Element::B32 | Element::Bit => "i32",
        Element::B64 => "i64",
    };
    match operand.words * 32 / operand.element.bits() as usize {
        1 => scalar.to_owned(),
        n => format!("<{n} x {scalar}>"),
    }
}

struct Kernel<'a> {
    gfx: Gfx,
    operation: &'a Operation,
    text: String,
    next: usize,
}

impl Kernel<'_> {
    fn line(&mut self, line: &str) {
        self.text += "  ";
        self.text += line;
        self.text.push('\n');
    }

    /// A new value.
    fn let_be(&mut self, what: &str) -> String {
        let name = format!("%v{}", self.next);
        self.next += 1;
        self.line(&format!("{name} = {what}"));
        name
    }

    fn text(mut self) -> String {
        let operation = self.operation;
        let _ = writeln!(
            self.text,
            "define amdgpu_kernel void @{}(ptr addrspace(1) %in, ptr addrspace(1) %out, i32 %mode) #0 {{",
            operation.kernel
        );
        let group = self.let_be("call i32 @llvm.amdgcn.workgroup.id.x()");
        let lane = self.let_be("call i32 @llvm.amdgcn.workitem.id.x()");
        let first = self.let_be(&format!("mul i32 {group}, {WORKGROUP}"));
        let id = self.let_be(&format!("add i32 {first}, {lane}"));
        let wide = self.let_be(&format!("zext i32 {id} to i64"));
        let place = |kernel: &mut Self, base: &str, words: usize| {
            let offset = kernel.let_be(&format!("mul i64 {wide}, {}", words * 4));
            kernel.let_be(&format!("getelementptr i8, ptr addrspace(1) {base}, i64 {offset}"))
        };
        let input = place(&mut self, "%in", operation.input_words());
        let output = place(&mut self, "%out", operation.output_words());
        match &operation.body {
            Body::Assembly { text, tied, registers } => {
                self.assembly(text, *tied, *registers, &input, &output)
            }
            Body::Ir { text, .. } => self.ir(text, &input, &output),
            Body::Memory { text, space, results } => {
                self.memory(text, *space, *results, &lane, &input, &output)
            }
        }
        self.line("ret void");
        self.text += "}\n";
        self.text
    }

    fn at(&mut self, base: &str, words: usize) -> String {
        self.let_be(&format!("getelementptr i8, ptr addrspace(1) {base}, i64 {}", words * 4))
    }

    fn load(&mut self, ty: &str, from: &str) -> String {
        self.let_be(&format!("load {ty}, ptr addrspace(1) {from}, align 4"))
    }

    /// The inputs, in registers.
    fn inputs(&mut self, operands: &[Operand], input: &str, scalar: impl Fn(usize) -> bool) -> Vec<String> {
        let mut at = 0;
        let mut values = Vec::new();
        for (i, operand) in operands.iter().enumerate() {
            let from = self.at(input, at);
            at += operand.words;
            values.push(if scalar(i) {
                self.uniform(&from, operand.words)
            } else {
                self.load(&register(operand), &from)
            });
        }
        values
    }

    /// Words that all lanes have alike, in scalar registers.
    fn uniform(&mut self, from: &str, words: usize) -> String {
        let mut parts = Vec::new();
        for i in 0..words {
            let at = self.at(from, i);
            let word = self.load("i32", &at);
            parts.push(self.let_be(&format!("call i32 @llvm.amdgcn.readfirstlane.i32(i32 {word})")));
        }
        self.join(&parts)
    }

    fn join(&mut self, words: &[String]) -> String {
        if let [word] = words {
            return word.clone();
        }
        let n = words.len();
        let mut vector = "poison".to_owned();
        for (i, word) in words.iter().enumerate() {
            vector = self.let_be(&format!("insertelement <{n} x i32> {vector}, i32 {word}, i32 {i}"));
        }
        if n == 2 { self.let_be(&format!("bitcast <2 x i32> {vector} to i64")) } else { vector }
    }

    fn store(&mut self, ty: &str, value: &str, to: &str) {
        self.line(&format!("store {ty} {value}, ptr addrspace(1) {to}, align 4"));
    }

    /// What stands between instructions that depend on each other in ways that the assembler does not look after.
    fn settle(&self) -> &'static str {
        match self.gfx.generation() {
            Generation::Cdna if self.operation.group == super::Group::Matrix => "s_nop 15\ns_nop 15",
            Generation::Cdna => "s_nop 7\ns_nop 7",
            Generation::Gfx10 | Generation::Gfx11 => "s_waitcnt_depctr 0x0\ns_nop 7",
            Generation::Gfx12 => "s_wait_alu 0x0\ns_nop 7",
        }
    }

    fn wait(&self) -> &'static str {
        match self.gfx.generation() {
            Generation::Cdna => "s_waitcnt vmcnt(0) lgkmcnt(0)",
            Generation::Gfx10 | Generation::Gfx11 => {
                "s_waitcnt vmcnt(0) lgkmcnt(0)\ns_waitcnt_vscnt null, 0x0"
            }
            Generation::Gfx12 => {
                "s_wait_loadcnt 0x0\ns_wait_storecnt 0x0\ns_wait_dscnt 0x0\ns_wait_kmcnt 0x0"
            }
        }
    }

    /// A call of inline assembly; gives a value for each result.
    fn call(
        &mut self,
        text: &str,
        results: &[(String, &str)],
        arguments: &[(String, String, String)],
        clobbers: &[&str],
    ) -> Vec<String> {
        let mut text = text.replace("{settle}", self.settle()).replace("{wait}", self.wait());
        for i in (0..results.len()).rev() {
            text = text.replace(&format!("{{out{i}}}"), &format!("${i}"));
        }
        for i in (0..arguments.len()).rev() {
            text = text.replace(&format!("{{in{i}}}"), &format!("${}", results.len() + i));
        }
        let text: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let text = text.join("\\0A");
        let mut constraints: Vec<String> = results.iter().map(|(_, c)| (*c).to_owned()).collect();
        constraints.extend(arguments.iter().map(|(_, _, c)| c.clone()));
        for (register, clobber) in
            [("vcc", "~{vcc}"), ("s40", "~{s40}"), ("s[40:41]", "~{s[40:41]}"), ("m0", "~{m0}")]
        {
            if text.contains(register) {
                constraints.push(clobber.to_owned());
            }
        }
        constraints.extend(clobbers.iter().map(|c| (*c).to_owned()));
        let types: Vec<&str> = results.iter().map(|(ty, _)| ty.as_str()).collect();
        let ty = match types[..] {
            [] => "void".to_owned(),
            [one] => one.to_owned(),
            _ => format!("{{ {} }}", types.join(", ")),
        };
        let arguments: Vec<String> = arguments.iter().map(|(ty, value, _)| format!("{ty} {value}")).collect();
        let call = format!(
            "call {ty} asm sideeffect \"{text}\", \"{}\"({}) #1",
            constraints.join(","),
            arguments.join(", ")
        );
        match types.len() {
            0 => {
                self.line(&call);
                Vec::new()
            }
            1 => vec![self.let_be(&call)],
            n => {
                let whole = self.let_be(&call);
                (0..n).map(|i| self.let_be(&format!("extractvalue {ty} {whole}, {i}"))).collect()
            }
        }
    }

    fn assembly(&mut self, text: &str, tied: usize, registers: Registers, input: &str, output: &str) {
        let operation = self.operation;
        let scalar = |i: usize| match registers {
            Registers::Vector | Registers::Accumulation | Registers::ScalarResult => false,
            Registers::Scalar => true,
            Registers::ScalarSource => i >= tied,
        };
        let values = self.inputs(&operation.inputs, input, scalar);
        // Results of several instructions must not lie where a later one reads.
        let result = match registers {
            Registers::Vector | Registers::ScalarSource => "=&v",
            Registers::Accumulation => "=&a",
            Registers::Scalar | Registers::ScalarResult => "=&s",
        };
        let results: Vec<(String, &str)> =
            operation.outputs.iter().map(|operand| (register(operand), result)).collect();
        let mut arguments: Vec<(String, String, String)> = Vec::new();
        for (i, (operand, value)) in operation.inputs.iter().zip(values).enumerate() {
            let constraint = match registers {
                _ if i < tied => i.to_string(),
                // What is added to.
                Registers::Accumulation if i + 1 == operation.inputs.len() => "a".to_owned(),
                Registers::Vector | Registers::Accumulation | Registers::ScalarResult => "v".to_owned(),
                Registers::Scalar | Registers::ScalarSource => "s".to_owned(),
            };
            arguments.push((register(operand), value, constraint));
        }
        arguments.push(("i32".to_owned(), "%mode".to_owned(), "s".to_owned()));
        let bits = if self.gfx.generation() == Generation::Gfx12 { 8 } else { 10 };
        let text = format!(
            "s_setreg_b32 hwreg(1, 0, {bits}), {{in{}}}\n{{settle}}\n{text}\n{{settle}}",
            arguments.len() - 1
        );
        let values = self.call(&text, &results, &arguments, &[]);
        self.outputs(&values, output);
    }

    fn outputs(&mut self, values: &[String], output: &str) {
        let mut at = 0;
        for (operand, value) in self.operation.outputs.iter().zip(values) {
            let to = self.at(output, at);
            at += operand.words;
            self.store(&register(operand), value, &to);
        }
    }

    fn ir(&mut self, text: &str, input: &str, output: &str) {
        let operation = self.operation;
        let mut at = 0;
        for (i, operand) in operation.inputs.iter().enumerate() {
            let from = self.at(input, at);
            at += operand.words;
            self.line(&format!("%in{i} = load {}, ptr addrspace(1) {from}, align 4", value(operand)));
        }
        text.lines().for_each(|line| self.line(line.trim()));
        let mut at = 0;
        for (i, operand) in operation.outputs.iter().enumerate() {
            let to = self.at(output, at);
            at += operand.words;
            self.store(&value(operand), &format!("%out{i}"), &to);
        }
    }

    fn memory(&mut self, text: &str, space: Space, results: usize, lane: &str, input: &str, output: &str) {
        let operation = self.operation;
        let values = self.inputs(&operation.inputs, input, |_| false);
        let held = operation.inputs.len() - 1;
        let words = operation.inputs[held].words;
        let out_at = operation.output_words() - words;
        let before = operation.input_words() - words;
        // The lane's own memory.
        let (address, address_ty, pieces) = match space {
            Space::Global => {
                let base = self.at(output, out_at);
                let address = self.let_be(&format!("ptrtoint ptr addrspace(1) {base} to i64"));
                let mut pieces = Vec::new();
                for i in 0..words {
                    pieces.push((self.at(&base, i), "addrspace(1)"));
                }
                (address, "i64", pieces)
            }
            Space::Lds { lane_bytes, chunks, distance } => {
                let offset = self.let_be(&format!("mul i32 {lane}, {lane_bytes}"));
                let base = self.let_be(&format!("getelementptr i8, ptr addrspace(3) @lds, i32 {offset}"));
                let address = self.let_be(&format!("ptrtoint ptr addrspace(3) {base} to i32"));
                let mut pieces = Vec::new();
                for i in 0..words {
                    let chunk = words / chunks;
                    let at = i / chunk * distance + i % chunk * 4;
                    let place = format!("getelementptr i8, ptr addrspace(3) {base}, i32 {at}");
                    pieces.push((self.let_be(&place), "addrspace(3)"));
                }
                (address, "i32", pieces)
            }
        };
        for (i, (place, space)) in pieces.iter().enumerate() {
            let from = self.at(input, before + i);
            let word = self.load("i32", &from);
            self.line(&format!("store volatile i32 {word}, ptr {space} {place}, align 4"));
        }
        let outputs: Vec<(String, &str)> =
            operation.outputs[..results].iter().map(|operand| (register(operand), "=&v")).collect();
        let mut arguments: Vec<(String, String, String)> = Vec::new();
        for (i, operand) in operation.inputs[..held].iter().enumerate() {
            let constraint = if i < results { i.to_string() } else { "v".to_owned() };
            arguments.push((register(operand), values[i].clone(), constraint));
        }
        arguments.push((address_ty.to_owned(), address, "v".to_owned()));
        arguments.push(("i32".to_owned(), "%mode".to_owned(), "s".to_owned()));
        let bits = if self.gfx.generation() == Generation::Gfx12 { 8 } else { 10 };
        let text = format!(
            "{{wait}}\ns_setreg_b32 hwreg(1, 0, {bits}), {{in{}}}\n{{settle}}\n{}\n{{wait}}\n{{settle}}",
            arguments.len() - 1,
            text.replace("{address}", &format!("{{in{}}}", arguments.len() - 2))
        );
        let values = self.call(&text, &outputs, &arguments, &["~{memory}"]);
        self.outputs(&values, output);
        if let Space::Lds { .. } = space {
            for (i, (place, space)) in pieces.iter().enumerate() {
                let word = self.let_be(&format!("load volatile i32, ptr {space} {place}, align 4"));
                let to = self.at(output, out_at + i);
                self.store("i32", &word, &to);
            }
        }
    }
}
