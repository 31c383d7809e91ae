//! Running other programs: where they are, how they were called, how they failed.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The root folder of the workspace.
pub fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask/ lies in the workspace")
}

/// The folder that cargo builds into.
pub fn target_dir() -> PathBuf {
    let named = env::var_os("CARGO_TARGET_DIR").filter(|dir| !dir.is_empty());
    workspace().join(named.unwrap_or_else(|| "target".into()))
}

/// Cargo, as the one that runs this task, in the root folder.
pub fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(workspace()).stdin(Stdio::null());
    command
}

/// Whether a program is in PATH.
pub fn in_path(program: &str) -> bool {
    env::var_os("PATH").is_some_and(|path| env::split_paths(&path).any(|dir| dir.join(program).is_file()))
}

/// Whether a command starts and exits with 0; what it prints is dropped.
pub fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// What a command prints, if it starts and exits with 0.
pub fn output(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs a command whose output the user sees; an error has its text and its exit status.
pub fn run(command: &mut Command) -> Result<()> {
    let text = text(command);
    let status = command.status().with_context(|| format!("`{text}` does not start"))?;
    if !status.success() {
        bail!("`{text}` failed ({status})");
    }
    Ok(())
}

/// Tells the user about something that does not stop the task.
pub fn warn(text: &str) {
    eprintln!("warning: {text}");
}

/// The command line, with quotes where a shell would need them.
pub fn text(command: &Command) -> String {
    let word = |word: &OsStr| {
        let word = word.to_string_lossy();
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@".contains(c);
        if !word.is_empty() && word.chars().all(plain) {
            word.into_owned()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    // Cargo and rustup name each other by full paths, which say nothing to a reader.
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    std::iter::once(program).chain(command.get_args()).map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_has_the_command_and_its_status() {
        let error = run(Command::new("sh").args(["-c", "exit 3"])).unwrap_err().to_string();
        assert_eq!(error, "`sh -c 'exit 3'` failed (exit status: 3)");
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let error = run(&mut Command::new("/nowhere/no-such-program")).unwrap_err().to_string();
        assert_eq!(error, "`no-such-program` does not start");
    }

    #[test]
    fn words_are_quoted_as_a_shell_needs_it() {
        let mut command = Command::new("/usr/bin/cargo");
        command.args(["test", "a b", "", "it's"]);
        assert_eq!(text(&command), r"cargo test 'a b' '' 'it'\''s'");
    }
}
