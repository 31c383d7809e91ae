//! What the report holds, as it is written to JSON.

use super::child::without_personal_data;
use crate::profile::{count, grouped};
use amdgpu_conformance::{Comparison, Verdict};
use anyhow::Result;
use candle_amdgpu::kernels::COMPILER;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// The form of the JSON. It changes when a reader of the old form would misread the new one.
pub const SCHEMA: u32 = 1;

/// The whole report.
#[derive(Serialize, Deserialize)]
pub struct Document {
    /// [`SCHEMA`].
    pub schema: u32,
    /// This program and its version.
    pub program: String,
    /// What compiled the kernels.
    pub compiler: String,
    /// When it began, in UTC.
    pub started: String,
    /// How long it took until this was written.
    pub seconds: f64,
    /// Whether all parts have run.
    pub complete: bool,
    /// Whether every part that ran ended well and found nothing.
    pub agrees: bool,
    /// What the user chose.
    pub settings: Settings,
    /// What it ran on besides the device.
    pub system: System,
    /// Where calls went: `hip`, `cuda` or `emulator`, and the text of `devices`.
    pub backend: String,
    /// The runtime's and the driver's versions, as `devices --json` has them.
    pub runtime_version: Value,
    /// As above.
    pub driver_version: Value,
    /// All devices, as `devices --json` has them.
    pub devices: Vec<Value>,
    /// The number of the one that was tried.
    pub device: usize,
    /// What was run, in this order.
    pub parts: Vec<Part>,
}

/// What the user chose.
#[derive(Serialize, Deserialize)]
pub struct Settings {
    /// Of all random numbers.
    pub seed: u64,
    /// Random cases of a kernel.
    pub cases: u32,
    /// Inputs of an instruction.
    pub inputs: usize,
    /// Differences listed.
    pub differences: usize,
    /// Families; all if there are none.
    pub families: Vec<String>,
    /// Groups of instructions; all if there are none.
    pub groups: Vec<String>,
    /// Parts of instructions' names.
    pub only: Vec<String>,
}

/// The machine, as far as it is nobody's own.
#[derive(Serialize, Deserialize)]
pub struct System {
    /// `linux`.
    pub os: String,
    /// The distribution.
    pub distribution: Option<String>,
    /// Linux's release.
    pub kernel: Option<String>,
    /// The processor's instruction set.
    pub architecture: String,
    /// Its cores.
    pub cores: usize,
    /// Version of the driver's module.
    pub amdgpu_module: Option<String>,
    /// Of the NVIDIA driver.
    pub nvidia_module: Option<String>,
    /// The ROCm that is installed in the usual place.
    pub rocm: Option<String>,
}

/// What a part is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Conformance,
    Verify,
    Bench,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Conformance => "conformance",
            Kind::Verify => "verify",
            Kind::Bench => "bench",
        }
    }
}

/// A process and what it found.
#[derive(Serialize, Deserialize)]
pub struct Part {
    /// What it is about.
    pub kind: Kind,
    /// The family or group.
    pub of: String,
    /// What `candle-amdgpu` was called with.
    pub arguments: Vec<String>,
    /// How long it took.
    pub seconds: f64,
    /// How it ended.
    pub ended: Ended,
    /// What the command printed as JSON; of `conformance`, `operations` and how many of them did not run.
    pub result: Value,
}

/// How a process ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ended {
    /// Which way.
    pub how: How,
    /// Its exit code, or the signal.
    pub code: Option<i32>,
    /// What it last wrote to standard error.
    pub error: Option<String>,
}

/// Ways to end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    Exited,
    Signal,
    /// It took too long and was stopped.
    Stopped,
    NotStarted,
}

impl Ended {
    /// The more, the worse.
    pub fn badness(&self) -> (How, i32) {
        (self.how, self.code.unwrap_or(0))
    }

    pub fn is_well(&self) -> bool {
        self.how == How::Exited && self.code == Some(0) && self.error.is_none()
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.how, self.code) {
            (How::Exited, Some(code)) => write!(f, "exit status {code}"),
            (How::Exited, None) => f.write_str("it ended"),
            (How::Signal, Some(signal)) => write!(f, "signal {signal}"),
            (How::Signal, None) => f.write_str("a signal"),
            (How::Stopped, _) => f.write_str("stopped"),
            (How::NotStarted, _) => f.write_str("not started"),
        }
    }
}

/// A kernel as `verify --json` has it.
#[derive(Deserialize)]
pub struct Verified {
    pub family: String,
    pub kernel: String,
    pub launches: u64,
    pub elements: u64,
    pub largest_ulp: u64,
    pub failure: Option<String>,
}

/// A kernel as `bench --json` has it.
#[derive(Deserialize)]
pub struct Measured {
    pub family: String,
    pub kernel: String,
    pub elements: u64,
    pub buffer_bytes: u64,
    pub times: Option<Times>,
    pub counts: Option<Counts>,
    pub failure: Option<String>,
}

/// Times on a GPU.
#[derive(Deserialize)]
pub struct Times {
    pub seconds: f64,
    pub bandwidth: f64,
    pub copy_bandwidth: f64,
}

/// Counts on the emulator.
#[derive(Deserialize)]
pub struct Counts {
    pub wave_instructions: u64,
    pub instructions_per_element: f64,
    pub bytes_moved: u64,
}

impl Part {
    /// The rows of a result.
    fn rows<T: serde::de::DeserializeOwned>(&self, key: &str) -> Vec<T> {
        let list = self.result[key].as_array().map(Vec::as_slice).unwrap_or_default();
        list.iter().filter_map(|row| serde_json::from_value(row.clone()).ok()).collect()
    }

    pub fn verified(&self) -> Vec<Verified> {
        if self.kind == Kind::Verify { self.rows("results") } else { Vec::new() }
    }

    pub fn measured(&self) -> Vec<Measured> {
        if self.kind == Kind::Bench { self.rows("kernels") } else { Vec::new() }
    }

    pub fn compared(&self) -> Vec<Comparison> {
        if self.kind == Kind::Conformance { self.rows("operations") } else { Vec::new() }
    }

    /// What it came to, in a few words.
    pub fn outcome(&self) -> String {
        let skipped = self.result["skipped"].as_str();
        let found = match self.kind {
            _ if skipped.is_some() => skipped.unwrap_or_default().to_owned(),
            _ if self.result.is_null() => "no result".to_owned(),
            Kind::Conformance => {
                let all = self.compared();
                let are = |verdict: Verdict| all.iter().filter(|c| c.verdict == verdict).count();
                let mut text =
                    format!("{} of {} equal", are(Verdict::Equal), count(all.len() as u64, "operation"));
                for (verdict, word) in [
                    (Verdict::Close, "close"),
                    (Verdict::Different, "DIFFERENT"),
                    (Verdict::Failed, "FAILED"),
                ] {
                    if are(verdict) > 0 {
                        text += &format!(", {} {word}", are(verdict));
                    }
                }
                text
            }
            Kind::Verify => {
                let all = self.verified();
                match all.iter().filter(|row| row.failure.is_some()).count() {
                    0 => format!("{} agree", count(all.len() as u64, "kernel")),
                    wrong => format!("{wrong} of {} WRONG", count(all.len() as u64, "kernel")),
                }
            }
            Kind::Bench => {
                let all = self.measured();
                match all.iter().filter(|row| row.failure.is_some()).count() {
                    0 => format!("{} measured", count(all.len() as u64, "kernel")),
                    wrong => format!("{wrong} of {} FAILED", count(all.len() as u64, "kernel")),
                }
            }
        };
        match (&self.ended.how, self.ended.code) {
            (How::Exited, Some(0 | 1)) => found,
            _ => format!("{found}; {}", self.ended),
        }
    }

    /// Itself in a line for the terminal.
    pub fn line(&self) -> String {
        let name = format!("{} {}", self.kind.name(), self.of);
        format!("{name:<24} {:>7.1} s  {}", self.seconds, self.outcome())
    }
}

impl Document {
    /// The report before anything has run. `devices` is what `devices --json` printed.
    pub fn new(devices: &Value, device: usize, settings: Settings) -> Result<Document> {
        let devices = without_personal_data(devices.clone());
        Ok(Document {
            schema: SCHEMA,
            program: concat!("candle-amdgpu ", env!("CARGO_PKG_VERSION")).to_owned(),
            compiler: COMPILER.to_owned(),
            started: utc(SystemTime::now()),
            seconds: 0.0,
            complete: false,
            agrees: true,
            settings,
            system: System::this(),
            backend: devices["backend"].as_str().unwrap_or_default().to_owned(),
            runtime_version: devices["runtime_version"].clone(),
            driver_version: devices["driver_version"].clone(),
            devices: devices["devices"].as_array().cloned().unwrap_or_default(),
            device,
            parts: Vec::new(),
        })
    }

    /// Takes account of what has run.
    pub fn finish(&mut self, seconds: f64, complete: bool) {
        self.seconds = seconds;
        self.complete = complete;
        self.agrees = self.parts.iter().all(|part| part.ended.is_well());
    }

    /// The device that was tried.
    pub fn chosen(&self) -> &Value {
        let is = |device: &&Value| device["ordinal"] == self.device;
        self.devices.iter().find(is).unwrap_or(&Value::Null)
    }

    pub fn device_name(&self) -> &str {
        self.chosen()["name"].as_str().unwrap_or("a device without a name")
    }

    pub fn target(&self) -> &str {
        self.chosen()["target"].as_str().unwrap_or("unknown")
    }

    pub fn is_nvidia(&self) -> bool {
        self.chosen()["backend"] == "cuda"
    }

    /// All in a sentence or two.
    pub fn conclusion(&self) -> String {
        let compared: Vec<Comparison> = self.parts.iter().flat_map(Part::compared).collect();
        let verified: Vec<Verified> = self.parts.iter().flat_map(Part::verified).collect();
        let mut sentences = Vec::new();
        if !compared.is_empty() {
            let inputs: usize = compared.iter().flat_map(|c| &c.runs).map(|run| run.cases).sum();
            let unequal = compared.iter().filter(|c| c.verdict > Verdict::Close).count();
            let close = compared.iter().filter(|c| c.verdict == Verdict::Close).count();
            let what = count(compared.len() as u64, "operation");
            sentences.push(match unequal {
                0 => format!("{what} on {} inputs agree with the emulator", grouped(inputs as u64)),
                n => {
                    format!("{} from the emulator, of {what} on {} inputs", differ(n), grouped(inputs as u64))
                }
            });
            if close > 0 {
                sentences.push(format!("{close} of them within what the manuals leave open"));
            }
        }
        if !verified.is_empty() {
            let what = count(verified.len() as u64, "kernel");
            sentences.push(match verified.iter().filter(|row| row.failure.is_some()).count() {
                0 => format!("{what} agree with the host model"),
                n => format!("{} from the host model, of {what}", differ(n)),
            });
        }
        let badly = self
            .parts
            .iter()
            .filter(|part| !matches!((part.ended.how, part.ended.code), (How::Exited, Some(0 | 1))));
        match badly.count() {
            0 => {}
            n => sentences.push(format!("{} did not end well", count(n as u64, "part"))),
        }
        let end = if self.complete { "" } else { " (not all parts have run)" };
        format!(
            "{}{end}",
            if sentences.is_empty() { "nothing to compare".to_owned() } else { sentences.join("; ") }
        )
    }
}

impl System {
    fn this() -> System {
        let line = |path: &str| {
            let text = std::fs::read_to_string(Path::new(path)).ok()?;
            Some(text.lines().next()?.trim().to_owned()).filter(|line| !line.is_empty())
        };
        let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
        let distribution = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
        System {
            os: std::env::consts::OS.to_owned(),
            distribution: distribution.map(|name| name.trim_matches('"').to_owned()),
            kernel: line("/proc/sys/kernel/osrelease"),
            architecture: std::env::consts::ARCH.to_owned(),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            amdgpu_module: line("/sys/module/amdgpu/version"),
            nvidia_module: line("/sys/module/nvidia/version"),
            rocm: line("/opt/rocm/.info/version"),
        }
    }
}

/// That so many differ.
fn differ(n: usize) -> String {
    format!("{} {}", grouped(n as u64), if n == 1 { "differs" } else { "differ" })
}

/// A time as ISO 8601 has it.
fn utc(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (mut days, of_day) = (seconds / 86_400, seconds % 86_400);
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while days >= lengths[month] {
        days -= lengths[month];
        month += 1;
    }
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year}-{:02}-{:02}T{hour:02}:{minute:02}:{second:02}Z", month + 1, days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn times_are_dates() {
        let of = |seconds| utc(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(of(0), "1970-01-01T00:00:00Z");
        assert_eq!(of(951_827_696), "2000-02-29T12:34:56Z");
        assert_eq!(of(1_767_225_599), "2025-12-31T23:59:59Z");
    }
}
