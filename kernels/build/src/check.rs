//! Compares what LLVM wrote into a code object with what the Rust signatures say.

use amdgpu_emulator::{ArgKind, CodeObject, Generation, KernelInfo};

use crate::error::{Error, Result};
use crate::signature::Signature;

/// Checks that kernels and signatures correspond, argument by argument.
///
/// # Errors
/// The first difference.
pub fn check(object: &CodeObject, signatures: &[Signature]) -> Result<()> {
    for kernel in object.kernels() {
        if !signatures.iter().any(|s| s.name == kernel.name) {
            let what =
                "it has no signature: write `#[amdgpu_kernel]` instead of `extern \"gpu-kernel\"`".to_owned();
            return Err(Error::Mismatch {
                kernel: kernel.name.clone(),
                target: object.gfx().to_string(),
                place: "unknown".to_owned(),
                what,
            });
        }
    }
    for signature in signatures {
        let result = match object.kernel(&signature.name) {
            Some(kernel) => compare(kernel, signature),
            None => Err("the code object has no such kernel".to_owned()),
        };
        result.map_err(|what| Error::Mismatch {
            kernel: signature.name.clone(),
            target: object.gfx().to_string(),
            place: format!("{}:{}", signature.file, signature.line),
            what,
        })?;
    }
    Ok(())
}

/// How many barriers a code object has. A split one counts where it waits. Counted are words, not instructions: a literal
/// that is the same (before gfx11 the float -1.078125) would count too.
pub fn barriers(object: &CodeObject) -> usize {
    let barrier: u32 = match object.gfx().generation() {
        Generation::Cdna | Generation::Gfx10 => 0xbf8a_0000,
        Generation::Gfx11 => 0xbfbd_0000,
        // s_barrier_wait -1
        Generation::Gfx12 => 0xbf94_ffff,
    };
    let mut count = 0;
    for range in object.text_ranges() {
        let index = |address: u64| usize::try_from(address).unwrap_or(usize::MAX);
        let code = object.image().get(index(range.start)..index(range.end)).unwrap_or_default();
        count += code.chunks_exact(4).filter(|word| **word == barrier.to_le_bytes()).count();
    }
    count
}

fn compare(kernel: &KernelInfo, signature: &Signature) -> std::result::Result<(), String> {
    let args: Vec<_> = kernel.args.iter().filter(|a| !a.is_hidden()).collect();
    if args.len() != signature.args.len() {
        return Err(format!("it takes {} arguments instead of {}", args.len(), signature.args.len()));
    }
    let mut offset = 0;
    for (i, (found, expected)) in args.iter().zip(&signature.args).enumerate() {
        offset = u32::next_multiple_of(offset, expected.kernarg_align());
        let is_pointer = matches!(found.kind, ArgKind::GlobalBuffer);
        let same = found.name.as_deref() == Some(&expected.name)
            && found.offset == offset
            && found.size == expected.size
            && is_pointer == expected.ty.is_pointer();
        if !same {
            return Err(format!(
                "argument {i} is `{}`, {} bytes at {}, {:?}, instead of `{}: {}`, {} bytes at {offset}",
                found.name.as_deref().unwrap_or("?"),
                found.size,
                found.offset,
                found.kind,
                expected.name,
                expected.ty,
                expected.size,
            ));
        }
        offset += expected.size;
    }
    if kernel.max_workgroup_size != signature.launch.max_workgroup_size {
        return Err(format!(
            "it is for workgroups of up to {} instead of {}",
            kernel.max_workgroup_size, signature.launch.max_workgroup_size
        ));
    }
    Ok(())
}
