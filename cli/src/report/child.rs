//! This program as a process of its own, and what of its output may be passed on.

use super::document::{Ended, How};
use anyhow::{Context, Result};
use serde_json::Value;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// This program.
pub struct Program {
    path: PathBuf,
    patience: Duration,
}

/// What a process printed and how it ended.
pub struct Output {
    pub stdout: String,
    pub ended: Ended,
}

impl Program {
    /// The program that is running. A process of it that takes longer is stopped.
    pub fn this(patience: Duration) -> Result<Program> {
        let path = std::env::current_exe().context("cannot find this program's own file")?;
        Ok(Program::at(path, patience))
    }

    /// The program in this file.
    pub fn at(path: PathBuf, patience: Duration) -> Program {
        Program { path, patience }
    }

    /// Runs it to its end.
    pub fn run(&self, arguments: &[String]) -> Output {
        let mut command = Command::new(&self.path);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Backtraces have paths.
        command.env("RUST_BACKTRACE", "0");
        match command.spawn() {
            Ok(child) => self.follow(child),
            Err(error) => {
                let error = Some(format!("cannot start a process: {error}"));
                Output { stdout: String::new(), ended: Ended { how: How::NotStarted, code: None, error } }
            }
        }
    }

    fn follow(&self, mut child: Child) -> Output {
        let out = child.stdout.take().map(|pipe| thread::spawn(|| read(pipe)));
        let err = child.stderr.take().map(|pipe| thread::spawn(|| read(pipe)));
        let began = Instant::now();
        let mut stopped = false;
        let status = loop {
            match child.try_wait() {
                Ok(Some(status)) => break Some(status),
                Ok(None) if !stopped && began.elapsed() > self.patience => {
                    stopped = true;
                    // It may have ended by itself in this moment.
                    let _ = child.kill();
                }
                Ok(None) => thread::sleep(Duration::from_millis(10)),
                Err(_) => break None,
            }
            // A process that waits for the driver may not even be killed.
            if began.elapsed() > self.patience + Duration::from_secs(30) {
                break None;
            }
        };
        let text = |reader: Option<thread::JoinHandle<String>>| match reader {
            // Of a process that is still there, nobody knows when its output ends.
            Some(reader) if status.is_some() => reader.join().unwrap_or_default(),
            _ => String::new(),
        };
        let (stdout, stderr) = (text(out), text(err));
        let ended = self.ended(status, stopped, &stderr);
        Output { stdout, ended }
    }

    fn ended(&self, status: Option<ExitStatus>, stopped: bool, stderr: &str) -> Ended {
        let last = stderr.trim().trim_start_matches("error: ");
        let error = (!last.is_empty()).then(|| clean(&tail(last)));
        match status {
            _ if stopped => {
                let seconds = self.patience.as_secs();
                let text = format!("it did not end within {seconds} s");
                let error = Some(error.map_or(text.clone(), |error| format!("{text}; {error}")));
                Ended { how: How::Stopped, code: None, error }
            }
            None => Ended { how: How::Stopped, code: None, error },
            Some(status) => match (status.code(), status.signal()) {
                (Some(0), _) => Ended { how: How::Exited, code: Some(0), error: None },
                (Some(code), _) => Ended { how: How::Exited, code: Some(code), error },
                (None, signal) => Ended { how: How::Signal, code: signal, error },
            },
        }
    }
}

fn read(mut pipe: impl Read) -> String {
    let mut bytes = Vec::new();
    // What could be read is what there is.
    let _ = pipe.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The last lines of a text.
fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(30)..].join("\n")
}

/// A value with all texts [`clean`].
pub fn without_personal_data(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(clean(&text)),
        Value::Array(list) => list.into_iter().map(without_personal_data).collect(),
        Value::Object(map) => {
            map.into_iter().map(|(key, value)| (key, without_personal_data(value))).collect()
        }
        other => other,
    }
}

/// Roots of paths that the build writes into code objects in place of a machine's own.
const REMAPPED: [&str; 4] = ["/amdgpu-device/", "/rust/library/", "/cargo/", "/candle-amdgpu"];

/// A text without folders: of a path the file's name is left.
pub fn clean(text: &str) -> String {
    let mut cleaned = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('/') {
        let (before, path) = rest.split_at(at);
        cleaned += before;
        let starts = before.chars().next_back().is_none_or(|c| c.is_whitespace() || "\"'`(=:,<[".contains(c));
        let end = path.find(|c: char| c.is_whitespace() || "\"'`),;<>]".contains(c)).unwrap_or(path.len());
        let (path, behind) = path.split_at(end);
        // A division, a unit, a relative path and a path of the build's own are no folders of this machine.
        let own = REMAPPED.iter().any(|root| path.starts_with(root));
        match path.rfind('/') {
            Some(last) if starts && last > 0 && !own => {
                cleaned += "…/";
                cleaned += &path[last + 1..];
            }
            _ => cleaned += path,
        }
        rest = behind;
    }
    cleaned + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lose_their_folders() {
        assert_eq!(
            clean("HIP of /opt/rocm/lib/libamdhip64.so.6 (CANDLE_AMDGPU_DEVICE=hip)"),
            "HIP of …/libamdhip64.so.6 (CANDLE_AMDGPU_DEVICE=hip)"
        );
        assert_eq!(clean("cannot read `/home/jane/x y`"), "cannot read `…/x y`");
        assert_eq!(clean("PATH=/home/jane/bin:/usr/bin"), "PATH=…/bin");
        for harmless in
            ["2 GB/s", "a / b", "./kernels/src/fill.rs:7:1", "/amdgpu-device/src/grid.rs:84:9 in x", ""]
        {
            assert_eq!(clean(harmless), harmless);
        }
        let nested = serde_json::json!({ "a": ["/srv/secret/file.rs:3", 7] });
        assert_eq!(without_personal_data(nested), serde_json::json!({ "a": ["…/file.rs:3", 7] }));
    }

    #[test]
    fn a_process_that_does_not_end_is_stopped() {
        let program = Program { path: "/bin/sh".into(), patience: Duration::from_millis(200) };
        let sh = |text: &str| program.run(&["-c".to_owned(), text.to_owned()]);
        let hangs = sh("echo begun; exec sleep 60");
        assert_eq!((hangs.stdout.as_str(), hangs.ended.how), ("begun\n", How::Stopped));
        let dies = sh("echo 'it was /home/jane/a.so' >&2; kill -9 $$");
        assert_eq!((dies.ended.how, dies.ended.code), (How::Signal, Some(9)));
        assert_eq!(dies.ended.error.as_deref(), Some("it was …/a.so"));
        let fails = sh("exit 3");
        assert_eq!((fails.ended.how, fails.ended.code), (How::Exited, Some(3)));
    }
}
