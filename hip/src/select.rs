//! Which devices there are: AMD GPUs through the real library, NVIDIA GPUs through the CUDA driver, or emulated ones.
//!
//! `CANDLE_AMDGPU_DEVICE` selects them, once per process:
//!
//! | value | devices |
//! |---|---|
//! | `auto`, or unset | the GPUs of the real libamdhip64 if it loads and has any, otherwise those of `emulator` |
//! | `hip` | the GPUs of the real libamdhip64; without any, every call fails and says why |
//! | `cuda` | NVIDIA GPUs, through the CUDA driver; without any, every call fails and says why |
//! | `emulator` | one emulated device for each of gfx1100, gfx1030 and gfx90a, in this order |
//! | `emulator:gfx1201` | one emulated device of that target |
//! | `emulator:gfx90a,gfx1100` | one emulated device for each name, in this order |

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};

use amdgpu_emulator::{Gfx, MachineError};
use amdgpu_journal::settings::Settings;

use crate::codes::*;
use crate::cuda::CudaError;
use crate::emulated::Runtime;
use crate::journal;
use crate::real::{RealLibrary, RealLibraryError};
use crate::report::{TakesText, takes_text};

/// The variable that selects the devices.
pub const DEVICE_VARIABLE: &str = "CANDLE_AMDGPU_DEVICE";

/// The targets of `emulator`, one device each.
pub const DEFAULT_TARGETS: [Gfx; 3] = [Gfx::Gfx1100, Gfx::Gfx1030, Gfx::Gfx90a];

/// Why there are no devices.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum SelectError {
    /// The choice is misspelt.
    #[error(
        "{DEVICE_VARIABLE}=`{value}`: {problem}; the choices are auto, hip, cuda, emulator, and emulator:TARGET[,TARGET…] with TARGET one of {targets}",
        targets = Gfx::ALL.map(Gfx::name).join(", ")
    )]
    Choice {
        /// What was given.
        value: String,
        /// Which part of it is wrong.
        problem: String,
    },
    /// Other variables have wrong values.
    #[error("{0}")]
    Variables(String),
    /// `hip` was asked for and is not available.
    #[error("{DEVICE_VARIABLE}=hip, but {0}; use `auto` or `emulator` to run without an AMD GPU")]
    Real(#[from] RealLibraryError),
    /// `cuda` was asked for and is not available.
    #[error("{DEVICE_VARIABLE}=cuda, but {0}; use `auto` or `emulator` to run without an NVIDIA GPU")]
    Cuda(#[from] CudaError),
    /// The host has no address space left for an emulated device, or too old a CPU.
    #[error("no emulated device can be made: {0}")]
    Machine(#[from] MachineError),
    /// A device was chosen after the first call had settled it.
    #[error("the devices are chosen already ({0}); choose before the first HIP call of the process")]
    TooLate(String),
}

debug_is_display!(SelectError);

impl SelectError {
    /// The HIP code for it.
    pub fn code(&self) -> hipError_t {
        match self {
            SelectError::Choice { .. } | SelectError::Variables(_) | SelectError::TooLate(_) => {
                hipErrorInvalidValue
            }
            SelectError::Real(_) | SelectError::Cuda(_) => hipErrorNoDevice,
            SelectError::Machine(MachineError::Cpu) => hipErrorNotSupported,
            SelectError::Machine(_) => hipErrorOutOfMemory,
        }
    }
}

/// What [`DEVICE_VARIABLE`] can say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// Real GPUs if there are any, otherwise the emulator.
    Auto,
    /// Real GPUs.
    Hip,
    /// NVIDIA GPUs.
    Cuda,
    /// Emulated devices of these targets.
    Emulator(Vec<Gfx>),
}

impl std::str::FromStr for Choice {
    type Err = SelectError;

    fn from_str(value: &str) -> Result<Choice, SelectError> {
        let wrong = |problem: String| SelectError::Choice { value: value.to_owned(), problem };
        match value.split_once(':') {
            None => match value {
                "auto" => Ok(Choice::Auto),
                "hip" => Ok(Choice::Hip),
                "cuda" => Ok(Choice::Cuda),
                "emulator" => Ok(Choice::Emulator(DEFAULT_TARGETS.to_vec())),
                _ => Err(wrong("no such choice".to_owned())),
            },
            Some(("emulator", targets)) => targets
                .split(',')
                .map(|name| {
                    Gfx::from_name(name.trim()).map_err(|_| wrong(format!("no such target `{name}`")))
                })
                .collect::<Result<_, _>>()
                .map(Choice::Emulator),
            Some((word, _)) => Err(wrong(format!("`{word}` takes nothing after a colon"))),
        }
    }
}

/// Where calls go.
pub(crate) enum Backend {
    Real(RealLibrary),
    Emulated(Box<Runtime>),
}

struct Selected {
    backend: Backend,
    reason: String,
}

static SELECTED: OnceLock<Result<Selected, SelectError>> = OnceLock::new();
static CHOSEN: Mutex<Option<Choice>> = Mutex::new(None);

/// Selects the devices from within the program, instead of through [`DEVICE_VARIABLE`].
///
/// # Errors
/// The choice is misspelt, or a call has settled the devices already.
pub fn choose(choice: &str) -> Result<(), SelectError> {
    let choice = choice.parse()?;
    let mut chosen = CHOSEN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    match SELECTED.get() {
        None => {
            *chosen = Some(choice);
            Ok(())
        }
        Some(Ok(selected)) => Err(SelectError::TooLate(selected.reason.clone())),
        Some(Err(error)) => Err(SelectError::TooLate(error.to_string())),
    }
}

fn select() -> Result<Selected, SelectError> {
    // Held while selecting, so that `choose` cannot come too late without noticing.
    let mut chosen = CHOSEN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    // What is not UTF-8 is not a choice either, and the error shows it.
    let value = std::env::var_os(DEVICE_VARIABLE).map(|value| value.to_string_lossy().into_owned());
    let (choice, by) = match (chosen.take(), value) {
        (Some(choice), _) => (choice, "the program chose it".to_owned()),
        (None, Some(value)) if !value.is_empty() => (value.parse()?, format!("{DEVICE_VARIABLE}={value}")),
        _ => (Choice::Auto, format!("{DEVICE_VARIABLE} is not set")),
    };
    amdgpu_journal::speak_as("amdhip64");
    let settings = Settings::get().map_err(|wrong| SelectError::Variables(wrong.0))?;
    let emulated = |targets: &[Gfx], reason| -> Result<Selected, SelectError> {
        journal::write(|| journal::Entry::Devices {
            targets: targets.iter().map(|gfx| gfx.name().to_owned()).collect(),
        });
        Ok(Selected {
            backend: Backend::Emulated(Box::new(Runtime::new(targets, &settings.options)?)),
            reason,
        })
    };
    match choice {
        Choice::Emulator(targets) => emulated(&targets, by),
        Choice::Hip => {
            let library = RealLibrary::load()?;
            let reason = format!("{by}; {library}");
            Ok(Selected { backend: Backend::Real(library), reason })
        }
        Choice::Cuda => {
            let library = RealLibrary::cuda()?;
            let reason = format!("{by}; {library}");
            Ok(Selected { backend: Backend::Real(library), reason })
        }
        Choice::Auto => match RealLibrary::load() {
            Ok(library) => {
                let reason = format!("{by}; {library}");
                Ok(Selected { backend: Backend::Real(library), reason })
            }
            Err(error) => emulated(&DEFAULT_TARGETS, format!("{by}; {error}")),
        },
    }
}

fn selected() -> Result<&'static Selected, SelectError> {
    static IS_SAID: AtomicBool = AtomicBool::new(false);
    let selected = SELECTED.get_or_init(select);
    if let Err(error) = selected
        && !takes_text()
        && !IS_SAID.swap(true, Ordering::Relaxed)
    {
        // C callers see a code only, so the text has to go where a person can read it.
        drop(writeln!(std::io::stderr(), "amdhip64: {error}"));
    }
    selected.as_ref().map_err(SelectError::clone)
}

/// The backend; the first call settles it for the process.
pub(crate) fn backend() -> Result<&'static Backend, SelectError> {
    selected().map(|selected| &selected.backend)
}

/// What calls go to, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackendInfo {
    /// What kind it is.
    pub kind: BackendKind,
    /// Why it was taken: the variable's value, and what was found of the real library.
    pub reason: String,
}

/// Kinds of backend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BackendKind {
    /// The real libamdhip64.
    Hip {
        /// The file it was loaded from, as given to the loader.
        library: String,
        /// How many GPUs it has.
        devices: usize,
    },
    /// NVIDIA GPUs, through the CUDA driver.
    Cuda {
        /// The driver's library, as given to the loader, and its version.
        library: String,
        /// How many GPUs it has.
        devices: usize,
    },
    /// Emulated devices of these targets.
    Emulator(Vec<Gfx>),
}

/// What calls go to, and why; settles it if no call has yet.
///
/// # Errors
/// [`DEVICE_VARIABLE`] is misspelt, or asks for GPUs that are not there.
pub fn backend_info() -> Result<BackendInfo, SelectError> {
    let _text = TakesText::new();
    let selected = selected()?;
    let kind = match &selected.backend {
        Backend::Real(library) => {
            let (name, devices) = (library.name().to_owned(), library.devices());
            match library.is_cuda() {
                true => BackendKind::Cuda { library: name, devices },
                false => BackendKind::Hip { library: name, devices },
            }
        }
        Backend::Emulated(runtime) => BackendKind::Emulator(runtime.targets()),
    };
    Ok(BackendInfo { kind, reason: selected.reason.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_parse() {
        let parse = |text: &str| text.parse::<Choice>();
        assert_eq!(parse("auto").unwrap(), Choice::Auto);
        assert_eq!(parse("hip").unwrap(), Choice::Hip);
        assert_eq!(parse("cuda").unwrap(), Choice::Cuda);
        assert_eq!(parse("emulator").unwrap(), Choice::Emulator(DEFAULT_TARGETS.to_vec()));
        assert_eq!(parse("emulator:gfx1201").unwrap(), Choice::Emulator(vec![Gfx::Gfx1201]));
        assert_eq!(
            parse("emulator:gfx90a, gfx1100").unwrap(),
            Choice::Emulator(vec![Gfx::Gfx90a, Gfx::Gfx1100])
        );
    }

    #[test]
    fn a_typo_lists_the_choices() {
        for wrong in
            ["emulater", "HIP", "cuda:0", "emulator:gfx11", "emulator:", "hip:0", "emulator:gfx1100,,"]
        {
            let error = wrong.parse::<Choice>().unwrap_err();
            let text = error.to_string();
            assert_eq!(error.code(), hipErrorInvalidValue);
            assert!(
                text.contains(wrong)
                    && text.contains("auto, hip, cuda, emulator")
                    && text.contains("gfx1201"),
                "{text}"
            );
        }
    }
}
