//! Modules by a text, for interfaces that take nothing else, such as Candle's `get_or_load_custom_func`.

use crate::Module;
use std::ptr;
use std::sync::{Mutex, PoisonError};

/// What the texts begin with; a number follows, then the module's name.
const BEGINS: &str = "candle-amdgpu:module:";

/// Modules that have a text.
static KEYS: Mutex<Vec<(&'static Module, &'static str)>> = Mutex::new(Vec::new());

impl Module {
    /// The text that stands for this module where an interface takes the text of a PTX program. It is valid in this process
    /// only, and always the same.
    ///
    /// This project's cudarc loads the module for it, on any target that the module has code for.
    pub fn ptx(&'static self) -> &'static str {
        let mut keys = KEYS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, key)) = keys.iter().find(|(module, _)| ptr::eq(*module, self)) {
            return key;
        }
        let key = format!("{BEGINS}{}:{}", keys.len(), self.name()).leak();
        keys.push((self, key));
        key
    }

    /// The module that a text of [`Module::ptx`] stands for; none for any other text.
    pub fn of_ptx(text: &str) -> Option<&'static Module> {
        if !text.starts_with(BEGINS) {
            return None;
        }
        let keys = KEYS.lock().unwrap_or_else(PoisonError::into_inner);
        keys.iter().find(|(_, key)| *key == text).map(|(module, _)| *module)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_stands_for_its_module_alone() {
        static ONE: Module = Module::new("smooth", &[], &[]);
        static OTHER: Module = Module::new("smooth", &[], &[]);
        let (one, other) = (ONE.ptx(), OTHER.ptx());
        assert_ne!(one, other);
        assert_eq!(one, ONE.ptx());
        assert!(ptr::eq(Module::of_ptx(one).unwrap(), &ONE));
        assert!(ptr::eq(Module::of_ptx(other).unwrap(), &OTHER));
        for text in ["", "smooth", BEGINS, "candle-amdgpu:module:999:smooth"] {
            assert!(Module::of_ptx(text).is_none(), "{text}");
        }
    }
}
