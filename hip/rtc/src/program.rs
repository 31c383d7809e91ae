//! A program: its source, and what became of it.

use std::ffi::{CStr, CString};
use std::path::{Component, Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use crate::clang::{Clang, Missing};
use crate::{device, lowered, *};

/// What programs have without HIP's headers.
pub const BUILTIN: &str = include_str!("builtin.h");

/// Why a call is refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refused {
    #[error("the header's name `{0}` leaves the folder of the program")]
    HeaderName(String),
    #[error(transparent)]
    NoCompiler(#[from] Missing),
    #[error("option `{option}`: {problem}")]
    Option { option: String, problem: &'static str },
    #[error(
        "there is no target: give --offload-arch=gfx…, or load libamdhip64 before, whose current device is taken otherwise"
    )]
    NoTarget,
    #[error("the compiler cannot be run: {0}")]
    Io(#[from] io::Error),
    #[error("the program is wrong")]
    Compilation,
    #[error("the program is not compiled")]
    NotCompiled,
    #[error("the program is compiled already")]
    IsCompiled,
    #[error("no such name was asked for, or the code lacks it")]
    NoName,
}

impl Refused {
    pub fn code(&self) -> hiprtcResult {
        match self {
            Refused::HeaderName(_) => HIPRTC_ERROR_PROGRAM_CREATION_FAILURE,
            Refused::NoCompiler(_) | Refused::Io(_) => HIPRTC_ERROR_INTERNAL_ERROR,
            Refused::Option { .. } | Refused::NoTarget => HIPRTC_ERROR_INVALID_OPTION,
            Refused::Compilation => HIPRTC_ERROR_COMPILATION,
            Refused::NotCompiled => HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION,
            Refused::IsCompiled => HIPRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION,
            Refused::NoName => HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID,
        }
    }
}

/// What [`hiprtcCreateProgram`] makes.
pub(crate) struct Program {
    source: Vec<u8>,
    name: String,
    headers: Vec<(PathBuf, Vec<u8>)>,
    expressions: Vec<String>,
    lowered: Vec<Option<CString>>,
    /// With a zero at its end.
    log: Vec<u8>,
    code: Option<Vec<u8>>,
    is_bitcode: bool,
}

/// A name that stays in the folder that it is relative to.
fn stays_inside(name: &str) -> Result<PathBuf, Refused> {
    let path = Path::new(name);
    let is_plain = |part: Component| matches!(part, Component::Normal(_) | Component::CurDir);
    match !name.is_empty() && path.components().all(is_plain) {
        true => Ok(path.to_owned()),
        false => Err(Refused::HeaderName(name.to_owned())),
    }
}

impl Program {
    pub fn new(
        source: &[u8],
        name: Option<String>,
        headers: Vec<(String, Vec<u8>)>,
    ) -> Result<Program, Refused> {
        let headers = headers.into_iter().map(|(name, text)| Ok((stays_inside(&name)?, text)));
        // It is for messages; slashes in it name nothing.
        let name = name.unwrap_or_else(|| "program.hip".to_owned()).replace(['/', '\n', '"', '\\'], "_");
        Ok(Program {
            source: source.to_vec(),
            name,
            headers: headers.collect::<Result<_, Refused>>()?,
            expressions: Vec::new(),
            lowered: Vec::new(),
            log: vec![0],
            code: None,
            is_bitcode: false,
        })
    }

    pub fn add_name(&mut self, expression: &CStr) -> Result<(), Refused> {
        if self.code.is_some() {
            return Err(Refused::IsCompiled);
        }
        let expression = expression.to_str().map_err(|_| Refused::NoName)?.to_owned();
        if !self.expressions.contains(&expression) {
            self.expressions.push(expression);
        }
        Ok(())
    }

    pub fn lowered(&self, expression: &CStr) -> Result<&CStr, Refused> {
        if self.code.is_none() {
            return Err(Refused::NotCompiled);
        }
        let is_it = |other: &String| other.as_bytes() == expression.to_bytes();
        let at = self.expressions.iter().position(is_it);
        at.and_then(|at| self.lowered.get(at)?.as_deref()).ok_or(Refused::NoName)
    }

    pub fn code(&self) -> Result<&[u8], Refused> {
        self.code.as_deref().filter(|_| !self.is_bitcode).ok_or(Refused::NotCompiled)
    }

    pub fn bitcode(&self) -> Result<&[u8], Refused> {
        self.code.as_deref().filter(|_| self.is_bitcode).ok_or(Refused::NotCompiled)
    }

    pub fn log(&self) -> Result<&[u8], Refused> {
        Ok(&self.log)
    }

    pub fn compile(&mut self, options: &[String]) -> Result<(), Refused> {
        let result = self.try_compile(options);
        if let Err(refused) = &result
            && !matches!(refused, Refused::Compilation)
        {
            self.set_log(format!("hiprtc: {refused}\n").into_bytes());
        }
        result
    }

    fn set_log(&mut self, mut log: Vec<u8>) {
        log.retain(|&byte| byte != 0);
        log.push(0);
        self.log = log;
    }

    fn try_compile(&mut self, options: &[String]) -> Result<(), Refused> {
        let clang = Clang::find()?;
        let mut options = Options::of(options)?;
        if options.targets.is_empty() {
            options.targets.push(device::current().ok_or(Refused::NoTarget)?);
        }
        let folder = tempfile::Builder::new().prefix("hiprtc-").tempdir()?;
        let headers = folder.path().join("include");
        fs::create_dir(&headers)?;
        for (name, text) in &self.headers {
            let path = headers.join(name);
            path.parent().map_or(Ok(()), fs::create_dir_all)?;
            fs::write(path, text)?;
        }
        fs::write(folder.path().join("builtin.h"), BUILTIN)?;
        let (input, output) = (folder.path().join("program.hip"), folder.path().join("code"));
        let mut source = format!("#line 1 \"{}\"\n", self.name).into_bytes();
        source.extend(&self.source);
        source
            .extend(format!("\n#line 1 \"hiprtc's names\"\n{}", lowered::source(&self.expressions)).bytes());
        fs::write(&input, source)?;

        let mut command = Command::new(&clang.program);
        command.args(["-x", "hip", "--cuda-device-only", "-O3"]);
        command.args(options.targets.iter().map(|target| format!("--offload-arch={target}")));
        command.arg(match options.targets.len() {
            1 => "--no-gpu-bundle-output",
            _ => "--gpu-bundle-output",
        });
        let has_hip = clang.has_hip() && !options.others.iter().any(|option| option == "-nogpuinc");
        match (has_hip, &clang.headers, &clang.libraries) {
            (true, Some(headers), Some(libraries)) => {
                command.args(["-include", "hip/hip_runtime.h"]);
                if headers != Path::new("/usr/include") {
                    command.arg("-isystem").arg(headers);
                }
                command.arg(format!("--rocm-path={}", headers.parent().unwrap_or(headers).display()));
                command.arg(format!("--rocm-device-lib-path={}", libraries.display()));
            }
            _ => {
                // Programs may include it, as all others must.
                let own = folder.path().join("hip");
                fs::create_dir(&own)?;
                fs::write(own.join("hip_runtime.h"), "")?;
                command.arg("-I").arg(folder.path());
                command.args(["-nogpuinc", "-nogpulib", "-D__HIPCC_RTC__=1", "-include"]);
                command.arg(folder.path().join("builtin.h"));
            }
        }
        if options.is_bitcode {
            command.args(["-fgpu-rdc", "-emit-llvm", "-c"]);
        }
        command.args(&options.others).arg("-I").arg(&headers).arg("-o").arg(&output).arg(&input);
        let ran = command.output()?;
        let mut log = ran.stderr;
        if !ran.status.success() {
            log.extend(format!("hiprtc: compiled by {}\n", clang.version()).bytes());
            self.set_log(log);
            return Err(Refused::Compilation);
        }
        self.set_log(log);
        let code = fs::read(&output)?;
        let count = self.expressions.len();
        let names = match count {
            0 => Some(Vec::new()),
            _ => lowered::names(&code, count),
        };
        self.lowered = names.unwrap_or_default().into_iter().map(|name| CString::new(name?).ok()).collect();
        (self.code, self.is_bitcode) = (Some(code), options.is_bitcode);
        Ok(())
    }
}

/// Options, sorted.
struct Options {
    targets: Vec<String>,
    is_bitcode: bool,
    others: Vec<String>,
}

impl Options {
    fn of(options: &[String]) -> Result<Options, Refused> {
        let mut sorted = Options { targets: Vec::new(), is_bitcode: false, others: Vec::new() };
        let mut options = options.iter().map(|option| option.trim()).filter(|option| !option.is_empty());
        while let Some(option) = options.next() {
            let (name, value) =
                option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
            let refuse = |problem| Refused::Option { option: option.to_owned(), problem };
            match name {
                "--offload-arch" | "--gpu-architecture" | "-arch" => {
                    let value = value.or_else(|| options.next()).ok_or_else(|| refuse("names no target"))?;
                    if !value.starts_with("gfx") {
                        return Err(refuse("is no AMD GPU's target: those begin with gfx"));
                    }
                    sorted.targets.push(value.to_owned());
                }
                "-fgpu-rdc" | "-relocatable-device-code" | "--relocatable-device-code" => {
                    sorted.is_bitcode = value != Some("false");
                }
                "-o" | "-x" | "-c" | "-S" | "-E" => return Err(refuse("hiprtc itself decides it")),
                // What nvrtc has and means nothing here.
                "-default-device" | "--device-as-default-execution-space" => {}
                _ => sorted.others.push(option.to_owned()),
            }
        }
        sorted.targets.dedup();
        Ok(sorted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(options: &str) -> Result<Options, Refused> {
        Options::of(&options.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn targets_are_told_from_other_options() {
        let options = of("--gpu-architecture=gfx90a -DN=4 -arch gfx1030 -I /x -default-device").unwrap();
        assert_eq!(options.targets, ["gfx90a", "gfx1030"]);
        assert_eq!(options.others, ["-DN=4", "-I", "/x"]);
        assert!(!options.is_bitcode && of("-fgpu-rdc").unwrap().is_bitcode);
        for (wrong, text) in
            [("-arch=sm_80", "begin with gfx"), ("-arch", "names no target"), ("-o x", "decides")]
        {
            let error = of(wrong).err().unwrap();
            assert!(error.to_string().contains(text), "{error}");
            assert_eq!(error.code(), HIPRTC_ERROR_INVALID_OPTION);
        }
    }

    #[test]
    fn headers_stay_in_their_folder() {
        for name in ["../x.h", "/etc/x.h", "a/../../x.h", ""] {
            assert!(stays_inside(name).is_err(), "{name}");
        }
        assert_eq!(stays_inside("a/b.h").unwrap(), Path::new("a/b.h"));
    }
}
