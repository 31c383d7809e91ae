//! Names that the user gives, and the message for one that does not exist.

use amdgpu_emulator::Gfx;
use candle_amdgpu::kernel::nearest;
use candle_amdgpu::{Kernel, Module, kernels};
use std::fmt::Write;

/// The message for a name that does not exist: the nearest ones, or all if there are few.
pub fn unknown(what: &str, name: &str, names: &[&str]) -> String {
    let all = match what {
        "kernel" => format!(" `candle-amdgpu kernels` lists all {}", names.len()),
        _ if names.len() > 3 => format!(" There are {}", names.join(", ")),
        _ => String::new(),
    };
    unknown_among(what, name, names, &all)
}

/// The same, with another text for where all of them are.
pub fn unknown_among(what: &str, name: &str, names: &[&str], all: &str) -> String {
    let mut text = format!("there is no {what} `{name}`");
    let quoted: Vec<_> =
        nearest(name, names.iter().copied()).iter().map(|near| format!("`{near}`")).collect();
    if let Some((last, first)) = quoted.split_last() {
        let first = first.join(", ");
        let or = if first.is_empty() { "" } else { " or " };
        // Writing to a string cannot fail.
        let _ = write!(text, "; did you mean {first}{or}{last}?{all}");
    }
    text
}

/// A target, for clap.
pub fn target(name: &str) -> Result<Gfx, String> {
    name.parse().map_err(|_| unknown("target", name, &Gfx::ALL.map(Gfx::name)))
}

/// The module of that family.
pub fn family(name: &str) -> anyhow::Result<&'static Module> {
    let found = kernels::MODULES.iter().find(|module| module.name() == name).copied();
    found.ok_or_else(|| {
        let names: Vec<_> = kernels::MODULES.iter().map(|module| module.name()).collect();
        anyhow::Error::msg(unknown("family", name, &names))
    })
}

/// The kernel of that name.
pub fn kernel(name: &str) -> anyhow::Result<&'static Kernel> {
    kernels::MODULES.iter().find_map(|module| module.kernel(name)).ok_or_else(|| {
        let all = kernels::MODULES.iter().flat_map(|module| module.kernels());
        let names: Vec<_> = all.map(|kernel| kernel.name).collect();
        anyhow::Error::msg(unknown("kernel", name, &names))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_is_answered_with_the_nearest() {
        let names = ["u8", "f16", "f32", "bf16"];
        assert_eq!(
            unknown("type", "f61", &names),
            "there is no type `f61`; did you mean `f16`, `f32` or `u8`? There are u8, f16, f32, bf16"
        );
        assert_eq!(unknown("family", "x", &["fill"]), "there is no family `x`; did you mean `fill`?");
        assert_eq!(unknown("family", "x", &[]), "there is no family `x`");
        assert!(
            target("gfx1110").unwrap_err().starts_with("there is no target `gfx1110`; did you mean `gfx1")
        );
        assert_eq!(target("gfx1100"), Ok(Gfx::Gfx1100));
    }
}
