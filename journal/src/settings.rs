//! The variables for how emulated devices run launches: read once, when the devices are selected.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use amdgpu_emulator::{Jit, LaunchOptions, Output, Running, Stream, Watch};

use crate::journal::Journal;
use crate::record::LaunchRecord;
use crate::speaker;

/// The variable that switches check mode on for a whole process.
pub const CHECK_VARIABLE: &str = "CANDLE_AMDGPU_CHECK";

/// The variable that names a file for what emulated devices run and find, for another program to read; see
/// [`journal`](crate::journal).
pub const JOURNAL_VARIABLE: &str = "CANDLE_AMDGPU_JOURNAL";

/// The variable that switches profiling on for a whole process, and says where the lines go.
pub const PROFILE_VARIABLE: &str = "CANDLE_AMDGPU_PROFILE";

/// The variable whose number determines a random order of workgroups and waves.
pub const SEED_VARIABLE: &str = "CANDLE_AMDGPU_SEED";

/// The variable that says how many instructions a wave may execute.
pub const BUDGET_VARIABLE: &str = "CANDLE_AMDGPU_BUDGET";

/// The variable that says after how many seconds a launch counts as long.
pub const PATIENCE_VARIABLE: &str = "CANDLE_AMDGPU_PATIENCE";

/// The variable that says whether kernels are compiled for the host.
pub const JIT_VARIABLE: &str = Jit::VARIABLE;

/// The variable that silences the message about functions that emulated devices lack.
pub const WARN_VARIABLE: &str = "CANDLE_AMDGPU_WARN_ABSENT";

/// Seconds after which a launch counts as long by default.
const PATIENCE: Duration = Duration::from_secs(10);

/// Variables have wrong values: each with what it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct WrongVariables(pub String);

/// What the variables say.
pub struct Settings {
    /// How devices run launches before anyone changes it.
    pub options: LaunchOptions,
    profile: Option<ProfileOutput>,
    pub(crate) journal: Option<Journal>,
}

impl Settings {
    /// Those of this process.
    ///
    /// # Errors
    /// All that is wrong, as one error.
    pub fn get() -> Result<&'static Settings, WrongVariables> {
        static SETTINGS: OnceLock<Result<Settings, WrongVariables>> = OnceLock::new();
        SETTINGS
            .get_or_init(|| Settings::read(|name| std::env::var_os(name)))
            .as_ref()
            .map_err(WrongVariables::clone)
    }

    /// From the variables' values. All that are wrong are one error.
    fn read(value: impl Fn(&str) -> Option<OsString>) -> Result<Settings, WrongVariables> {
        let value = |name| value(name).filter(|value| !value.is_empty());
        let mut problems = Vec::new();
        let mut wrong = |name: &str, value: &OsString, expected: &str| {
            problems.push(format!("{name}=`{}`: {expected}", value.display()));
        };
        let mut options = LaunchOptions::default();
        if let Some(text) = value(CHECK_VARIABLE) {
            match text.to_str() {
                Some("1") => options.check = true,
                Some("all") => (options.check, options.keep_going) = (true, true),
                Some("0") => {}
                _ => wrong(
                    CHECK_VARIABLE,
                    &text,
                    "must be 1 (on), all (on, and go on behind findings) or 0 (off)",
                ),
            }
        }
        if let Some(text) = value(SEED_VARIABLE) {
            options.shuffle = text.to_str().and_then(|text| text.parse().ok());
            if options.shuffle.is_none() {
                wrong(SEED_VARIABLE, &text, "must be a whole number from 0 to 2^64 - 1");
            }
        }
        if let Some(text) = value(BUDGET_VARIABLE) {
            match text.to_str().and_then(|text| text.parse().ok()).filter(|&budget: &u64| budget > 0) {
                Some(budget) => options.instruction_budget = budget,
                None => wrong(BUDGET_VARIABLE, &text, "must be a number of instructions, 1 or more"),
            }
        }
        if let Some(text) = value(JIT_VARIABLE) {
            match text.to_str().and_then(Jit::from_name) {
                Some(jit) => options.jit = jit,
                None => wrong(JIT_VARIABLE, &text, "must be 1 (on), 0 (off), always or compared"),
            }
        }
        let mut patience = Some(PATIENCE);
        if let Some(text) = value(PATIENCE_VARIABLE) {
            let seconds = text.to_str().and_then(|text| text.parse().ok());
            match seconds.and_then(|seconds: f64| Duration::try_from_secs_f64(seconds).ok()) {
                Some(after) => patience = Some(after).filter(|after| !after.is_zero()),
                None => wrong(PATIENCE_VARIABLE, &text, "must be a number of seconds, or 0 for no messages"),
            }
        }
        options.output = Output::new(write_to_c);
        options.watch = patience.map(|after| Watch { after, tell: Arc::new(say) });
        if let Some(text) = value(WARN_VARIABLE).filter(|text| text != "0" && text != "1") {
            wrong(WARN_VARIABLE, &text, "must be 1 (on) or 0 (off)");
        }
        let mut profile = None;
        if let Some(text) = value(PROFILE_VARIABLE).filter(|text| text != "0") {
            options.profile = true;
            match text.to_str() {
                Some("journal") if value(JOURNAL_VARIABLE).is_some() => {}
                Some("journal") => wrong(PROFILE_VARIABLE, &text, &format!("needs {JOURNAL_VARIABLE}")),
                _ => match ProfileOutput::open(&text) {
                    Ok(output) => profile = Some(output),
                    Err(error) => {
                        wrong(PROFILE_VARIABLE, &text, &format!("the file cannot be written: {error}"));
                    }
                },
            }
        }
        let mut journal = None;
        if let Some(file) = value(JOURNAL_VARIABLE) {
            match Journal::open(&file) {
                Ok(open) => journal = Some(open),
                Err(error) => wrong(JOURNAL_VARIABLE, &file, &format!("the file cannot be written: {error}")),
            }
        }
        if problems.is_empty() {
            Ok(Settings { options, profile, journal })
        } else {
            Err(WrongVariables(problems.join("; ")))
        }
    }
}

/// Where a long launch is, for the person who waits.
fn say(running: &Running) {
    crate::say(running);
}

/// Writes what device code prints into C's own buffers, so that it keeps its place among what the program prints.
fn write_to_c(stream: Stream, text: &[u8]) {
    unsafe extern "C" {
        static stdout: *mut libc::FILE;
        static stderr: *mut libc::FILE;
    }
    // SAFETY: the streams of the C library, which a program may replace but not remove; the text is valid for its size.
    unsafe {
        let file = match stream {
            Stream::Stdout => stdout,
            Stream::Stderr => stderr,
        };
        libc::fwrite(text.as_ptr().cast(), 1, text.len(), file);
    }
}

/// Where profiles go, and in which format.
struct ProfileOutput {
    to: Mutex<Box<dyn Write + Send>>,
    format: Format,
}

#[derive(Clone, Copy)]
enum Format {
    Line,
    Full,
    Folded,
}

impl ProfileOutput {
    fn open(value: &OsString) -> std::io::Result<ProfileOutput> {
        let (to, format): (Box<dyn Write + Send>, _) = match value.to_str() {
            Some("1") => (Box::new(std::io::stderr()), Format::Line),
            Some("full") => (Box::new(std::io::stderr()), Format::Full),
            _ => {
                let is_folded = value.as_encoded_bytes().ends_with(b".folded");
                let format = if is_folded { Format::Folded } else { Format::Line };
                (Box::new(File::options().create(true).append(true).open(value)?), format)
            }
        };
        Ok(ProfileOutput { to: Mutex::new(to), format })
    }

    fn text(&self, record: &LaunchRecord) -> String {
        let line = format!("{}: profile: {record}\n", speaker());
        match (self.format, &record.report.profile) {
            (Format::Full, Some(profile)) => format!("{line}{profile}\n"),
            (Format::Folded, Some(profile)) => profile.folded(),
            _ => line,
        }
    }
}

/// Writes a launch's profile to where the variable says; without the variable, nowhere.
pub fn write_profile(record: &LaunchRecord) {
    let output = Settings::get().ok().and_then(|settings| settings.profile.as_ref());
    if let Some(output) = output {
        let text = output.text(record);
        let mut to = output.to.lock().unwrap_or_else(PoisonError::into_inner);
        // A full disk must not fail the program that is profiled.
        drop(to.write_all(text.as_bytes()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(values: &[(&str, &str)]) -> Result<Settings, String> {
        let find =
            |name: &str| values.iter().find(|(other, _)| *other == name).map(|(_, value)| value.into());
        Settings::read(find).map_err(|error| error.to_string())
    }

    #[test]
    fn right_values_are_taken() {
        let options = read(&[]).unwrap().options;
        assert_eq!((options.check, options.shuffle, options.instruction_budget), (false, None, 1 << 32));
        assert_eq!(options.watch.unwrap().after, PATIENCE);
        let values = [
            (CHECK_VARIABLE, "1"),
            (SEED_VARIABLE, "7"),
            (BUDGET_VARIABLE, "1000"),
            (PATIENCE_VARIABLE, "0.5"),
            (PROFILE_VARIABLE, "full"),
        ];
        let options = read(&values).unwrap().options;
        assert_eq!((options.check, options.shuffle, options.instruction_budget), (true, Some(7), 1000));
        assert_eq!(options.watch.unwrap().after, Duration::from_millis(500));
        assert!(options.profile && !options.keep_going);
        assert_eq!(read(&[(JIT_VARIABLE, "0")]).unwrap().options.jit, Jit::Off);
        let options = read(&[(CHECK_VARIABLE, "all")]).unwrap().options;
        assert!(options.check && options.keep_going);
        let off =
            [(CHECK_VARIABLE, "0"), (SEED_VARIABLE, ""), (PATIENCE_VARIABLE, "0"), (PROFILE_VARIABLE, "0")];
        let options = read(&off).unwrap().options;
        assert!(!options.check && !options.profile && options.watch.is_none() && options.shuffle.is_none());
    }

    #[test]
    fn wrong_values_are_one_error() {
        for (name, value, text) in [
            (CHECK_VARIABLE, "foo", "must be 1 (on), all (on, and go on behind findings) or 0 (off)"),
            (SEED_VARIABLE, "-1", "must be a whole number"),
            (WARN_VARIABLE, "no", "must be 1 (on) or 0 (off)"),
            (BUDGET_VARIABLE, "0", "must be a number of instructions"),
            (BUDGET_VARIABLE, "2^20", "must be a number of instructions"),
            (JIT_VARIABLE, "yes", "must be 1 (on), 0 (off)"),
            (PATIENCE_VARIABLE, "nan", "must be a number of seconds"),
            (PATIENCE_VARIABLE, "-1", "must be a number of seconds"),
            (PATIENCE_VARIABLE, "1e99", "must be a number of seconds"),
            (PROFILE_VARIABLE, "/nowhere/x.txt", "cannot be written"),
            (PROFILE_VARIABLE, "journal", "needs CANDLE_AMDGPU_JOURNAL"),
            (JOURNAL_VARIABLE, "/nowhere/x.jsonl", "cannot be written"),
        ] {
            let error = read(&[(name, value)]).err().unwrap();
            assert!(error.starts_with(&format!("{name}=`{value}`: ")) && error.contains(text), "{error}");
        }
        let both = read(&[(SEED_VARIABLE, "a"), (CHECK_VARIABLE, "b")]).err().unwrap();
        assert!(both.contains("CHECK=`b`") && both.contains("; CANDLE_AMDGPU_SEED=`a`"), "{both}");
    }
}
