//! PTX after LLVM, which has no way to ask for what stands here.

use std::fmt::Write;

/// What a kernel says of its loads and of its stores, as a comment (`memory.rs` of amdgpu-device).
const LOADS_ONCE: &str = "// loads once";
const STORES_ONCE: &str = "// stores once";

/// Lets what a kernel loads or stores be the first to leave the cache, where it says so.
pub fn evict_first(ptx: &str) -> String {
    let mut out = String::with_capacity(ptx.len());
    let mut rest = ptx;
    // The brace that ends a function stands at the beginning of a line.
    while let Some(end) = rest.find("\n}\n") {
        let (function, after) = rest.split_at(end + 3);
        rest = after;
        let loads = function.contains(LOADS_ONCE);
        let stores = function.contains(STORES_ONCE);
        for line in function.split_inclusive('\n') {
            match line.strip_suffix(";\n") {
                Some(load) if loads && load.contains("ld.global.") => {
                    out.push_str(&line.replace("ld.global.", "ld.global.cs."));
                }
                Some(store) if stores && store.contains("st.global.") => {
                    let store = store.replace("st.global.", "st.global.L2::cache_hint.");
                    writeln!(out, "{store}, %evict_first;").expect("to a string");
                }
                _ => out.push_str(line),
            }
            if stores && line == "{\n" {
                out.push_str("\t.reg .b64 %evict_first;\n");
                out.push_str("\tcreatepolicy.fractional.L2::evict_first.b64 %evict_first, 1.0;\n");
            }
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::evict_first;

    #[test]
    fn kernels_say_what_leaves_the_cache_first() {
        let kernel = |says: &str| {
            format!(
                ".visible .entry k(\n)\n{{\n\t.reg .b32 %r<3>;\n\t{says}\n\t@%p1 ld.global.b32 %r1, [%rd1];\n\t\
                 st.global.b32 [%rd2], %r1;\n\tst.shared.b32 [%rd2], %r1;\n\tret;\n\n}}\n"
            )
        };
        let ptx = [kernel("// loads once"), kernel("nothing"), kernel("// stores once")].concat();
        let out = evict_first(&ptx);
        let [loads, neither, stores, rest] = out.split("\n}\n").collect::<Vec<_>>()[..] else {
            panic!("{out}")
        };
        assert_eq!(rest, "");
        assert_eq!(format!("{neither}\n}}\n"), kernel("nothing"));
        assert!(loads.contains("@%p1 ld.global.cs.b32 %r1, [%rd1];") && loads.contains("\tst.global.b32"));
        assert!(stores.contains("\tst.global.L2::cache_hint.b32 [%rd2], %r1, %evict_first;"));
        assert!(stores.contains("@%p1 ld.global.b32 %r1") && stores.contains("\tst.shared.b32 [%rd2], %r1;"));
        assert_eq!(stores.matches("createpolicy").count(), 1);
    }
}
