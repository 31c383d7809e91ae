//! What the compiler makes of operations that are no single instruction: kernels are full of these.

use amdgpu_emulator::Gfx;

use super::{Accuracy, Body, DEFAULT, Element, Group, Operand, Operation, symbol};

/// Name, types of the inputs, type of the result, LLVM IR, declarations.
type Row = (&'static str, &'static [Element], Element, &'static str, &'static str);

const F16: Element = Element::F16;
const F32: Element = Element::F32;
const F64: Element = Element::F64;
const B32: Element = Element::B32;
const B64: Element = Element::B64;

const ROWS: [Row; 39] = [
    ("f32 / f32", &[F32, F32], F32, "%out0 = fdiv float %in0, %in1", ""),
    ("f64 / f64", &[F64, F64], F64, "%out0 = fdiv double %in0, %in1", ""),
    ("f16 / f16", &[F16, F16], F16, "%out0 = fdiv <2 x half> %in0, %in1", ""),
    ("f32 % f32", &[F32, F32], F32, "%out0 = frem float %in0, %in1", ""),
    (
        "sqrt f32",
        &[F32],
        F32,
        "%out0 = call float @llvm.sqrt.f32(float %in0)",
        "declare float @llvm.sqrt.f32(float)",
    ),
    (
        "sqrt f64",
        &[F64],
        F64,
        "%out0 = call double @llvm.sqrt.f64(double %in0)",
        "declare double @llvm.sqrt.f64(double)",
    ),
    (
        "exp f32",
        &[F32],
        F32,
        "%out0 = call float @llvm.exp.f32(float %in0)",
        "declare float @llvm.exp.f32(float)",
    ),
    (
        "exp2 f32",
        &[F32],
        F32,
        "%out0 = call float @llvm.exp2.f32(float %in0)",
        "declare float @llvm.exp2.f32(float)",
    ),
    (
        "log f32",
        &[F32],
        F32,
        "%out0 = call float @llvm.log.f32(float %in0)",
        "declare float @llvm.log.f32(float)",
    ),
    (
        "log2 f32",
        &[F32],
        F32,
        "%out0 = call float @llvm.log2.f32(float %in0)",
        "declare float @llvm.log2.f32(float)",
    ),
    (
        "log10 f32",
        &[F32],
        F32,
        "%out0 = call float @llvm.log10.f32(float %in0)",
        "declare float @llvm.log10.f32(float)",
    ),
    (
        "sin f32",
        &[F32],
        F32,
        "%out0 = call float @llvm.sin.f32(float %in0)",
        "declare float @llvm.sin.f32(float)",
    ),
    (
        "cos f32",
        &[F32],
        F32,
        "%out0 = call float @llvm.cos.f32(float %in0)",
        "declare float @llvm.cos.f32(float)",
    ),
    (
        "fma f32",
        &[F32, F32, F32],
        F32,
        "%out0 = call float @llvm.fma.f32(float %in0, float %in1, float %in2)",
        "declare float @llvm.fma.f32(float, float, float)",
    ),
    (
        "minnum f32",
        &[F32, F32],
        F32,
        "%out0 = call float @llvm.minnum.f32(float %in0, float %in1)",
        "declare float @llvm.minnum.f32(float, float)",
    ),
    (
        "maxnum f64",
        &[F64, F64],
        F64,
        "%out0 = call double @llvm.maxnum.f64(double %in0, double %in1)",
        "declare double @llvm.maxnum.f64(double, double)",
    ),
    (
        "minimum f32",
        &[F32, F32],
        F32,
        "%out0 = call float @llvm.minimum.f32(float %in0, float %in1)",
        "declare float @llvm.minimum.f32(float, float)",
    ),
    (
        "maximumnum f32",
        &[F32, F32],
        F32,
        "%out0 = call float @llvm.maximumnum.f32(float %in0, float %in1)",
        "declare float @llvm.maximumnum.f32(float, float)",
    ),
    (
        "round f32",
        &[F32],
        F32,
        "%out0 = call float @llvm.round.f32(float %in0)",
        "declare float @llvm.round.f32(float)",
    ),
    (
        "round f64",
        &[F64],
        F64,
        "%out0 = call double @llvm.round.f64(double %in0)",
        "declare double @llvm.round.f64(double)",
    ),
    (
        "f32 as i64",
        &[F32],
        B64,
        "%out0 = call i64 @llvm.fptosi.sat.i64.f32(float %in0)",
        "declare i64 @llvm.fptosi.sat.i64.f32(float)",
    ),
    (
        "f32 as u64",
        &[F32],
        B64,
        "%out0 = call i64 @llvm.fptoui.sat.i64.f32(float %in0)",
        "declare i64 @llvm.fptoui.sat.i64.f32(float)",
    ),
    (
        "f64 as i64",
        &[F64],
        B64,
        "%out0 = call i64 @llvm.fptosi.sat.i64.f64(double %in0)",
        "declare i64 @llvm.fptosi.sat.i64.f64(double)",
    ),
    (
        "f64 as u64",
        &[F64],
        B64,
        "%out0 = call i64 @llvm.fptoui.sat.i64.f64(double %in0)",
        "declare i64 @llvm.fptoui.sat.i64.f64(double)",
    ),
    (
        "f32 as i8",
        &[F32],
        B32,
        "%x = call i8 @llvm.fptosi.sat.i8.f32(float %in0)\n%out0 = sext i8 %x to i32",
        "declare i8 @llvm.fptosi.sat.i8.f32(float)",
    ),
    (
        "f32 as u8",
        &[F32],
        B32,
        "%x = call i8 @llvm.fptoui.sat.i8.f32(float %in0)\n%out0 = zext i8 %x to i32",
        "declare i8 @llvm.fptoui.sat.i8.f32(float)",
    ),
    ("i64 as f32", &[B64], F32, "%out0 = sitofp i64 %in0 to float", ""),
    ("u64 as f32", &[B64], F32, "%out0 = uitofp i64 %in0 to float", ""),
    ("i64 as f64", &[B64], F64, "%out0 = sitofp i64 %in0 to double", ""),
    ("u64 as f64", &[B64], F64, "%out0 = uitofp i64 %in0 to double", ""),
    ("i64 * i64", &[B64, B64], B64, "%out0 = mul i64 %in0, %in1", ""),
    (
        "u32 / u32",
        &[B32, B32],
        B32,
        "%one = call i32 @llvm.umax.i32(i32 %in1, i32 1)\n%out0 = udiv i32 %in0, %one",
        "declare i32 @llvm.umax.i32(i32, i32)",
    ),
    (
        "u64 / u64",
        &[B64, B64],
        B64,
        "%one = call i64 @llvm.umax.i64(i64 %in1, i64 1)\n%out0 = udiv i64 %in0, %one",
        "declare i64 @llvm.umax.i64(i64, i64)",
    ),
    (
        "u64 % u64",
        &[B64, B64],
        B64,
        "%one = call i64 @llvm.umax.i64(i64 %in1, i64 1)\n%out0 = urem i64 %in0, %one",
        "declare i64 @llvm.umax.i64(i64, i64)",
    ),
    (
        "i32 saturating add",
        &[B32, B32],
        B32,
        "%out0 = call i32 @llvm.sadd.sat.i32(i32 %in0, i32 %in1)",
        "declare i32 @llvm.sadd.sat.i32(i32, i32)",
    ),
    (
        "u64 leading zeros",
        &[B64],
        B64,
        "%out0 = call i64 @llvm.ctlz.i64(i64 %in0, i1 false)",
        "declare i64 @llvm.ctlz.i64(i64, i1)",
    ),
    (
        "u64 ones",
        &[B64],
        B64,
        "%out0 = call i64 @llvm.ctpop.i64(i64 %in0)",
        "declare i64 @llvm.ctpop.i64(i64)",
    ),
    (
        "f32 to f16 and back",
        &[F32],
        F32,
        "%x = fptrunc float %in0 to half\n%out0 = fpext half %x to float",
        "",
    ),
    (
        "f32 to bf16 and back",
        &[F32],
        F32,
        "%x = fptrunc float %in0 to bfloat\n%out0 = fpext bfloat %x to float",
        "",
    ),
];

/// Sequences with an approximation at their end, which may come out differently.
const APPROXIMATE: [(&str, u64); 7] = [
    ("exp f32", 2),
    ("exp2 f32", 1),
    ("log f32", 2),
    ("log2 f32", 1),
    ("log10 f32", 2),
    ("sin f32", 4),
    ("cos f32", 4),
];

pub(super) fn operations(_: Gfx, list: &mut Vec<Operation>) {
    for (name, inputs, result, text, declarations) in ROWS {
        let operand = |name: &str, element: Element| {
            Operand::new(name, element, (element.bits() as usize).div_ceil(32))
        };
        let ulps = APPROXIMATE.iter().find(|(of, _)| *of == name).map(|(_, ulps)| *ulps);
        let kernel = name.replace('/', "div").replace('%', "rem").replace('*', "mul");
        list.push(Operation {
            name: name.to_owned(),
            kernel: format!("sequence_{}", symbol(&kernel)),
            group: Group::Sequence,
            inputs: inputs.iter().zip(["a", "b", "c"]).map(|(e, name)| operand(name, *e)).collect(),
            outputs: vec![operand("result", result)],
            modes: vec![DEFAULT],
            accuracy: ulps.map_or(Accuracy::Exact, Accuracy::Ulps),
            uniform: false,
            small_integers: false,
            body: Body::Ir { text: text.to_owned(), declarations: declarations.to_owned() },
        });
    }
}
