//! What the compiled kernels say about themselves.

use amdgpu_emulator::decode::decode_wave;
use candle_amdgpu::{AFFINE, CodeObject, FILL, KernelInfo, Module, kernels};

/// How many scalar registers a kernel may spill, to lanes of a vector register, with some to spare for other versions of
/// the compiler: none, but for
/// - the reductions of any layout, which need more than the 102 that there are, and the steps of sorts on gfx90a;
/// - f64 functions on erf, tanh and powers, whose polynomials' constants are scalars, and powers, sines and cosines on gfx90a;
/// - convolutions, their windows as rows, and scatter_add, whose sizes and strides of 64 bits do not fit either, outside
///   of the loops that add and copy: mostly on gfx90a, fewer elsewhere;
/// - quantized products with many columns on gfx90a, of which `mul_mat_q5_0` spills one;
/// - the matrix products, whose three matrices have strides of 64 bits, outside of the loop that adds.
fn allowed_sgpr_spills(kernel: &str, gfx: &str) -> u32 {
    let (function, _) = kernel.split_once('_').unwrap_or((kernel, ""));
    match kernel {
        "uerf_f64" | "ugelu_erf_f64" | "unormcdf_f64" | "utanh_f64" | "upowf_f64" => 16,
        _ if ["upowf", "usin", "ucos"].contains(&function) && gfx == "gfx90a" => 12,
        _ if kernel.starts_with("indexed_moe_forward_") && gfx == "gfx90a" => 7,
        _ if kernel.starts_with("mul_mat_q") && gfx == "gfx90a" => 4,
        _ if function == "fast" && gfx == "gfx90a" => 48,
        _ if function == "fast" => 12,
        _ if kernel.starts_with("asort_step_") && gfx == "gfx90a" => 16,
        _ if kernel.starts_with("im2col") && gfx == "gfx90a" => 86,
        _ if kernel.starts_with("im2col") => 10,
        _ if kernel.starts_with("conv") && gfx == "gfx90a" => 112,
        _ if kernel.starts_with("conv") => 64,
        _ if function == "sa" && gfx == "gfx90a" => 27,
        _ if function == "sa" => 2,
        _ if function == "s" && gfx == "gfx90a" => 8,
        _ if ["gemm", "gemv"].contains(&function) => 56,
        _ => 0,
    }
}

#[test]
fn no_kernel_uses_scratch_or_spills() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for module in kernels::MODULES {
        for object in module.objects() {
            let code = CodeObject::parse(object.bytes).expect("a code object");
            assert_eq!(code.gfx().name(), object.gfx);
            for kernel in module.kernels() {
                let info = code.kernel(kernel.name).expect("every kernel is in every code object");
                let allowed = allowed_sgpr_spills(kernel.name, object.gfx);
                if info.dynamic_stack {
                    wrong.push(format!("{} {}: a dynamic stack, which is scratch", kernel.name, object.gfx));
                }
                if info.scratch_size > 0 || info.vgpr_spills > 0 || info.sgpr_spills > allowed {
                    wrong.push(format!(
                        "{} {}: {} bytes of scratch, {} + {} spills",
                        kernel.name, object.gfx, info.scratch_size, info.vgpr_spills, info.sgpr_spills
                    ));
                }
                seen += 1;
            }
        }
    }
    assert!(seen > 0, "there is no kernel to look at");
    assert!(wrong.is_empty(), "{} of {seen}:\n{}", wrong.len(), wrong.join("\n"));
}

/// LLVM compiles for the registers of the target that it is told, and a sibling's file is smaller: gfx1102 has 1,024 for each
/// lane of a SIMD where gfx1100 has 1,536.
#[test]
fn a_workgroup_of_the_largest_size_fits_on_every_sibling() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for (module, object) in kernels::MODULES.iter().flat_map(|m| m.objects().iter().map(move |o| (m, o))) {
        let code = CodeObject::parse(object.bytes).expect("a code object");
        for (kernel, sibling) in
            module.kernels().iter().flat_map(|k| code.gfx().siblings().map(move |s| (k, s)))
        {
            let info = code.kernel(kernel.name).expect("every kernel is in every code object");
            let lds = kernel.geometry.lds_bytes;
            if amdhip64::occupancy(sibling, info, info.max_workgroup_size, lds).workgroups == 0 {
                wrong.push(format!("{} {sibling}: {} registers", kernel.name, info.vgprs));
            }
            seen += 1;
        }
    }
    assert!(seen > kernels::MODULES.len(), "there are siblings");
    assert!(wrong.is_empty(), "{} of {seen}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn signatures_are_those_of_the_code_objects() {
    for module in kernels::MODULES {
        for object in module.objects() {
            let code = CodeObject::parse(object.bytes).expect("a code object");
            assert_eq!(code.kernels().len(), module.kernels().len(), "{} {}", module.name(), object.gfx);
            for kernel in module.kernels() {
                let info = code.kernel(kernel.name).expect("every kernel is in every code object");
                let sizes: Vec<_> = info.args.iter().filter(|a| !a.is_hidden()).map(|a| a.size).collect();
                let stated: Vec<_> = kernel.args.iter().map(|a| a.size).collect();
                assert_eq!(sizes, stated, "{}", kernel.name);
                assert!(kernel.geometry.workgroup.iter().product::<u32>() <= info.max_workgroup_size);
                // Candle launches no matrix product but cuBLAS's, and quantized ones in workgroups of up to 256.
                let most = match module.name() {
                    "gemm" => 64,
                    "quantized" => 256,
                    _ => 1024,
                };
                assert!(
                    info.max_workgroup_size >= most,
                    "Candle launches {} in workgroups of {most}",
                    kernel.name
                );
            }
        }
    }
}

/// Names of the instructions of a kernel.
fn instructions(code: &CodeObject, info: &KernelInfo) -> Vec<&'static str> {
    let start = info.descriptor.entry as usize;
    let mut bytes = &code.image()[start..start + info.code_bytes as usize];
    let mut names = Vec::new();
    while !bytes.is_empty() {
        let inst = decode_wave(code.gfx(), info.wave_size, bytes).expect("an instruction");
        names.push(inst.name);
        bytes = &bytes[usize::from(inst.size)..];
    }
    names
}

#[test]
fn contiguous_access_moves_sixteen_bytes_per_lane() {
    let mut missing = Vec::new();
    let mut need = |module: &Module, kernel: String, accesses: &[&str]| {
        for object in module.objects() {
            let code = CodeObject::parse(object.bytes).expect("a code object");
            let names = instructions(&code, code.kernel(&kernel).expect("a kernel"));
            for access in accesses {
                let wide = |name: &&&str| {
                    name.starts_with(access) && (name.ends_with("x4") || name.ends_with("b128"))
                };
                if names.iter().find(wide).is_none() {
                    missing.push(format!("{kernel} on {} has no 16-byte {access}", object.gfx));
                }
            }
        }
    };
    // Not f8e4m3, whose conversions leave no registers for 16 of them: it moves 8 bytes.
    for dtype in ["u8", "i16", "f16", "bf16", "u32", "f32", "i64", "f64"] {
        need(&AFFINE, format!("affine_{dtype}"), &["global_load", "global_store"]);
        need(&FILL, format!("fill_{dtype}"), &["global_store"]);
        need(&FILL, format!("const_set_{dtype}"), &["global_store"]);
        need(&FILL, format!("copy2d_{dtype}"), &["global_load", "global_store"]);
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}
