//! What typed launches check before anything is launched: that no buffer is an element too short, of any kernel.

mod common;

use candle_amdgpu_verify::{FAMILIES, Options, check_bounds};
use std::collections::BTreeMap;

#[test]
fn no_buffer_of_any_kernel_may_be_an_element_shorter() {
    let stream = common::stream("gfx1100");
    let mut failures = Vec::new();
    for family in FAMILIES {
        for kernel in family.module().kernels() {
            let options = Options { fixed: true, cases: 12, seed: 7 };
            failures.extend(check_bounds(*family, kernel, &stream, options).err());
        }
    }
    assert!(failures.is_empty(), "{} kernels:\n{}", failures.len(), failures.join("\n"));
}

/// Kernels that a safe function cannot launch, with what their callers must guarantee: ids in device memory decide what is
/// read, and Candle's argument list does not give the amount of memory.
const PROMISES: &str = "\
10 kernels, get_rows_q2_K to get_rows_q8_0
  `src0` has a row of `ne00` elements at `nb01` times each index in `src1`
3 kernels, get_rows_bf16 to get_rows_f32
  `src0` has a row of `ne00` elements at `nb01` times each index in `src1`
6 kernels, indexed_moe_forward_q2k_q8_1 to indexed_moe_forward_q8_0_q8_1
  `all_weights` has `n` rows of `k` elements for each expert in `indices`
";

#[test]
fn few_wrappers_are_unsafe_and_each_says_why() {
    let mut functions: BTreeMap<_, Vec<&str>> = BTreeMap::new();
    let (mut all, mut unchecked) = (0, 0);
    for kernel in FAMILIES.iter().flat_map(|family| family.module().kernels()) {
        all += 1;
        let promises: Vec<_> = kernel.promises().map(|(arg, why)| format!("  `{arg}` {why}\n")).collect();
        if !promises.is_empty() {
            unchecked += 1;
            functions.entry((kernel.file, kernel.line, promises.concat())).or_default().push(kernel.name);
        }
    }
    let mut text = String::new();
    for ((.., promises), names) in &functions {
        text += &format!("{} kernels, {} to {}\n{promises}", names.len(), names[0], names[names.len() - 1]);
    }
    println!("{unchecked} of {all} typed wrappers are unsafe:\n{text}");
    assert_eq!(text, PROMISES);
}
