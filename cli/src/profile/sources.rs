//! The text of source files.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// How the paths of `amdgpu-device` begin in kernels of another workspace.
const DEVICE: &str = "/amdgpu-device/";

/// Finds source files by the paths that debug information has, and keeps their lines.
pub struct Sources {
    folders: Vec<PathBuf>,
    files: RefCell<HashMap<String, Option<Rc<Vec<String>>>>>,
}

impl Sources {
    /// Looks in these folders, then here, then where this program was built.
    pub fn new(mut folders: Vec<PathBuf>) -> Sources {
        folders.extend([PathBuf::from("."), Path::new(env!("CARGO_MANIFEST_DIR")).join("..")]);
        Sources { folders, files: RefCell::default() }
    }

    /// The lines of a file; `None` if it is not found.
    pub fn file(&self, name: &str) -> Option<Rc<Vec<String>>> {
        self.files.borrow_mut().entry(name.to_owned()).or_insert_with(|| self.read(name)).clone()
    }

    fn read(&self, name: &str) -> Option<Rc<Vec<String>>> {
        let name = match name.strip_prefix(DEVICE) {
            Some(file) => &format!("kernels/device/{file}"),
            None => name,
        };
        let base = Path::new(name).file_name()?;
        // An absolute path stays what it is when it is joined.
        let whole = self.folders.iter().map(|folder| folder.join(name));
        let text = whole
            .chain(self.folders.iter().map(|folder| folder.join(base)))
            .find_map(|path| std::fs::read_to_string(path).ok())?;
        Some(Rc::new(text.lines().map(str::to_owned).collect()))
    }

    /// One line, without its indentation.
    pub fn line(&self, file: &str, line: u32) -> Option<String> {
        let file = self.file(file)?;
        Some(file.get(usize::try_from(line).ok()?.checked_sub(1)?)?.trim().to_owned())
    }
}
