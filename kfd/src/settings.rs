//! The variables: read once, when the process first opens the driver.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use amdgpu_emulator::{Gfx, LaunchOptions, Watch};

use crate::say;

/// The variable that names the targets to emulate, one card each.
pub const TARGETS_VARIABLE: &str = "CANDLE_AMDGPU_KFD";

/// The targets of a process that does not name any.
pub const DEFAULT_TARGETS: [Gfx; 1] = [Gfx::Gfx90a];

/// What the variables say.
pub struct Settings {
    /// The cards.
    pub targets: Vec<Gfx>,
    /// How they run kernels.
    pub options: LaunchOptions,
    /// Where the line of each launch goes, if it goes anywhere.
    pub profile: Profile,
}

/// What is written of each launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Profile {
    /// Nothing.
    Off,
    /// A line.
    Line,
    /// The line, and tables by unit and source line.
    Full,
}

impl Settings {
    /// Those of this process. What is wrong is said on standard error, and taken as unset.
    pub fn of_process() -> Settings {
        let (settings, problems) = Settings::read(|name| std::env::var_os(name));
        problems.iter().for_each(say);
        settings
    }

    fn read(value: impl Fn(&str) -> Option<OsString>) -> (Settings, Vec<String>) {
        let mut problems = Vec::new();
        let mut read = |name: &str, expected: &str, take: &mut dyn FnMut(&str) -> Option<()>| {
            let Some(text) = value(name).filter(|text| !text.is_empty()) else { return };
            if text.to_str().and_then(take).is_none() {
                problems.push(format!("{name}=`{}`: {expected}", text.display()));
            }
        };
        let mut targets = DEFAULT_TARGETS.to_vec();
        let mut options = LaunchOptions::default();
        let mut profile = Profile::Off;
        let mut patience = Some(Duration::from_secs(10));
        let names = Gfx::ALL.map(Gfx::name).join(", ");
        read(
            TARGETS_VARIABLE,
            &format!("must be targets with commas between them, of {names}"),
            &mut |text| {
                targets = text.split(',').map(|name| name.trim().parse().ok()).collect::<Option<_>>()?;
                Some(())
            },
        );
        read(
            "CANDLE_AMDGPU_CHECK",
            "must be 1 (on), all (on, and go on behind findings) or 0 (off)",
            &mut |text| {
                (options.check, options.keep_going) = match text {
                    "0" => (false, false),
                    "1" => (true, false),
                    "all" => (true, true),
                    _ => return None,
                };
                Some(())
            },
        );
        read("CANDLE_AMDGPU_SEED", "must be a whole number from 0 to 2^64 - 1", &mut |text| {
            options.shuffle = Some(text.parse().ok()?);
            Some(())
        });
        read("CANDLE_AMDGPU_BUDGET", "must be a number of instructions, 1 or more", &mut |text| {
            options.instruction_budget = text.parse().ok().filter(|&budget| budget > 0)?;
            Some(())
        });
        read("CANDLE_AMDGPU_PATIENCE", "must be a number of seconds, or 0 for no messages", &mut |text| {
            let after = Duration::try_from_secs_f64(text.parse().ok()?).ok()?;
            patience = Some(after).filter(|after| !after.is_zero());
            Some(())
        });
        read("CANDLE_AMDGPU_PROFILE", "must be 1 (a line), full (tables) or 0 (off)", &mut |text| {
            profile = match text {
                "0" => Profile::Off,
                "1" => Profile::Line,
                "full" => Profile::Full,
                _ => return None,
            };
            Some(())
        });
        options.profile = profile != Profile::Off;
        options.watch = patience.map(|after| Watch { after, tell: Arc::new(|running| say(running)) });
        (Settings { targets, options, profile }, problems)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(values: &[(&str, &str)]) -> (Settings, Vec<String>) {
        Settings::read(|name| values.iter().find(|(other, _)| *other == name).map(|(_, value)| value.into()))
    }

    #[test]
    fn right_values_are_taken() {
        let (settings, problems) = read(&[]);
        assert!(problems.is_empty() && settings.targets == DEFAULT_TARGETS && !settings.options.check);
        let (settings, problems) = read(&[
            (TARGETS_VARIABLE, "gfx1030, gfx90a"),
            ("CANDLE_AMDGPU_CHECK", "all"),
            ("CANDLE_AMDGPU_SEED", "7"),
            ("CANDLE_AMDGPU_BUDGET", "1000"),
            ("CANDLE_AMDGPU_PATIENCE", "0"),
            ("CANDLE_AMDGPU_PROFILE", "full"),
        ]);
        assert!(problems.is_empty(), "{problems:?}");
        assert_eq!(settings.targets, [Gfx::Gfx1030, Gfx::Gfx90a]);
        let options = settings.options;
        assert!(options.check && options.keep_going && options.profile && options.watch.is_none());
        assert_eq!((options.shuffle, options.instruction_budget), (Some(7), 1000));
    }

    #[test]
    fn wrong_values_are_named_and_have_no_effect() {
        let (settings, problems) = read(&[(TARGETS_VARIABLE, "gfx1"), ("CANDLE_AMDGPU_CHECK", "yes")]);
        assert_eq!(settings.targets, DEFAULT_TARGETS);
        assert!(problems[0].starts_with("CANDLE_AMDGPU_KFD=`gfx1`: ") && problems[1].contains("must be 1"));
    }
}
