//! Which kernels of a crate are compiled to machine code.

use crate::signature::Signature;

/// Names of kernels, with `*` for any text. Without any, all kernels are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection(Vec<String>);

impl Selection {
    /// Every kernel.
    pub const ALL: Selection = Selection(Vec::new());

    /// A list with commas or white space between the names.
    pub fn parse(list: &str) -> Selection {
        let names = list.split(|c: char| c == ',' || c.is_whitespace()).filter(|name| !name.is_empty());
        let mut names: Vec<String> = names.map(str::to_owned).collect();
        names.sort();
        names.dedup();
        Selection(names)
    }

    /// Whether every kernel is meant.
    pub fn is_all(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a kernel is meant.
    pub fn has(&self, kernel: &str) -> bool {
        self.is_all() || self.0.iter().any(|name| matches(name.as_bytes(), kernel.as_bytes()))
    }

    /// Those that are meant.
    pub fn of(&self, mut signatures: Vec<Signature>) -> Vec<Signature> {
        signatures.retain(|signature| self.has(&signature.name));
        signatures
    }

    /// The names that no kernel has.
    pub fn unmatched(&self, kernels: &[&Signature]) -> impl Iterator<Item = &str> {
        let unknown = |name: &&String| !kernels.iter().any(|k| matches(name.as_bytes(), k.name.as_bytes()));
        self.0.iter().filter(unknown).map(String::as_str)
    }
}

impl std::fmt::Display for Selection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.join(","))
    }
}

fn matches(pattern: &[u8], name: &[u8]) -> bool {
    match pattern {
        [] => name.is_empty(),
        [b'*', rest @ ..] => (0..=name.len()).any(|skipped| matches(rest, &name[skipped..])),
        [first, rest @ ..] => name.split_first().is_some_and(|(c, tail)| c == first && matches(rest, tail)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_names_and_patterns() {
        let all = Selection::parse(" , \n");
        assert!(all.is_all() && all.has("affine_f32"));
        let some = Selection::parse("softmax_*,\n  gemm_f32_*x*, affine_f32,affine_f32");
        assert_eq!(some.to_string(), "affine_f32,gemm_f32_*x*,softmax_*");
        let has = ["softmax_f32", "softmax_", "gemm_f32_64x16", "affine_f32"];
        let has_not = ["softmax", "gemm_f16_64x16", "gemm_f32_64", "affine_f32x", "xaffine_f32", ""];
        assert_eq!(has.map(|name| some.has(name)), [true; 4]);
        assert_eq!(has_not.map(|name| some.has(name)), [false; 6]);
    }
}
