//! Which cards there are. How they run kernels is what [`amdgpu_journal::settings`] reads, as for HIP's emulated devices.

use amdgpu_emulator::Gfx;

use crate::say;

/// The variable that names the targets to emulate, one card each.
pub const TARGETS_VARIABLE: &str = "CANDLE_AMDGPU_KFD";

/// The targets of a process that does not name any.
pub const DEFAULT_TARGETS: [Gfx; 1] = [Gfx::Gfx90a];

/// The targets that the variable names. What is wrong is said on standard error, and there are no cards then.
pub fn targets() -> Vec<Gfx> {
    match std::env::var(TARGETS_VARIABLE) {
        Ok(text) if !text.is_empty() => read(&text).unwrap_or_else(|name| {
            let names = Gfx::ALL.map(Gfx::name).join(", ");
            say(format_args!("{TARGETS_VARIABLE}=`{text}`: there is no target `{name}`; there are {names}"));
            Vec::new()
        }),
        _ => DEFAULT_TARGETS.to_vec(),
    }
}

/// The targets of a list with commas between them; a name that is none is the error.
fn read(text: &str) -> Result<Vec<Gfx>, String> {
    text.split(',').map(|name| name.trim().parse().map_err(|_| name.trim().to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_have_commas_between_them() {
        assert_eq!(read("gfx1030, gfx90a"), Ok(vec![Gfx::Gfx1030, Gfx::Gfx90a]));
        assert_eq!(read("gfx1030,gfx1"), Err("gfx1".to_owned()));
    }
}
