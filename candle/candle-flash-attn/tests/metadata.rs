//! What the compiled kernels say about themselves.

use candle_amdgpu::CodeObject;
use candle_flash_attn::kernels::MODULES;

/// Bytes of scratch memory that a kernel may ask for: on gfx90a LLVM reserves it for scalar registers that it then keeps in lanes of
/// vector registers, and no instruction accesses it.
fn allowed_scratch(kernel: &str, gfx: &str) -> u32 {
    let is_reserved = gfx == "gfx90a"
        && ["_32", "_96"].iter().any(|dim| kernel.starts_with("flash_decode_") && kernel.ends_with(dim));
    if is_reserved { 36 } else { 0 }
}

#[test]
fn no_kernel_spills_vector_registers_or_uses_scratch() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for (module, object) in MODULES.iter().flat_map(|m| m.objects().iter().map(move |o| (m, o))) {
        let code = CodeObject::parse(object.bytes).expect("a code object");
        for kernel in module.kernels() {
            let info = code.kernel(kernel.name).expect("every kernel is in every code object");
            let allowed = allowed_scratch(kernel.name, object.gfx);
            if info.scratch_size > allowed || info.vgpr_spills > 0 || info.dynamic_stack {
                wrong.push(format!(
                    "{} {}: {} bytes of scratch, {} + {} spills of {} + {} registers",
                    kernel.name,
                    object.gfx,
                    info.scratch_size,
                    info.vgpr_spills,
                    info.sgpr_spills,
                    info.vgprs,
                    info.sgprs
                ));
            }
            seen += 1;
        }
    }
    assert!(seen > 0, "there is no kernel to look at");
    assert!(wrong.is_empty(), "{} of {seen}:\n{}", wrong.len(), wrong.join("\n"));
}
