//! What the compiled kernels say about themselves.

use candle_amdgpu::{CodeObject, kernels};

/// Kernels that may use scratch memory or spill, with the reason.
const EXCEPTIONS: [(&str, &str); 0] = [];

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
                let bad = info.scratch_size > 0 || info.vgpr_spills > 0 || info.sgpr_spills > 0;
                if bad && !EXCEPTIONS.iter().any(|(name, _)| *name == kernel.name) {
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
                assert!(
                    info.max_workgroup_size >= 1024,
                    "Candle launches {} in workgroups of 1024",
                    kernel.name
                );
            }
        }
    }
}
