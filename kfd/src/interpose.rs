//! The C library's functions that this library stands in front of.
//!
//! Each looks whether the call is about the driver, by its path or by a number of a file that `open` has given out here, and
//! otherwise passes it on. Nothing is locked on that way, so that the calls that this library makes itself come through.

use std::cell::UnsafeCell;
use std::ffi::{CStr, CString, c_void};
use std::io::Read as _;
use std::os::fd::FromRawFd as _;
use std::sync::atomic::{AtomicI32, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use libc::{DIR, FILE, c_char, c_int, c_ulong, dirent, dirent64, mode_t, off_t, size_t};

use crate::card::Card;
use crate::process::Process;
use crate::topology::{self, Entry, FIRST_RENDER};
use crate::window::{Window, address};
use crate::{ioctl as requests, real, settings};

/// What a file's number stands for: nothing of ours, the driver, or a card's render node.
const DRIVER: u8 = 1;
const RENDER: u8 = 2;

/// Numbers of files that can be ours.
const MOST_FILES: usize = 1 << 16;
static FILES: [AtomicU8; MOST_FILES] = [const { AtomicU8::new(0) }; MOST_FILES];

fn file(fd: c_int) -> u8 {
    usize::try_from(fd).ok().and_then(|fd| FILES.get(fd)).map_or(0, |file| file.load(Ordering::Relaxed))
}

/// The cards that the topology shows.
fn cards() -> &'static [Card] {
    static CARDS: OnceLock<Vec<Card>> = OnceLock::new();
    CARDS.get_or_init(|| settings::targets().into_iter().map(Card::of).collect())
}

fn fail(errno: c_int) -> c_int {
    // SAFETY: this thread's own variable.
    unsafe { *libc::__errno_location() = errno };
    -1
}

/// A path of the driver.
enum Path {
    Driver,
    Render(usize),
    Topology(Entry),
    /// A name in the topology or among render nodes where there is nothing.
    Nothing,
}

/// What a path is of; `None` if it is not the driver's.
///
/// # Safety
/// `path` is null or a C string.
unsafe fn look_up(path: *const c_char) -> Option<Path> {
    if path.is_null() {
        return None;
    }
    // SAFETY: the caller's contract.
    let path = unsafe { CStr::from_ptr(path) }.to_bytes();
    // Most paths are neither.
    if !(path.starts_with(b"/dev/") || path.starts_with(b"/sys/") || path.starts_with(b"/proc/modules")) {
        return None;
    }
    let path = std::str::from_utf8(path).ok()?;
    if path == "/dev/kfd" {
        return Some(Path::Driver);
    }
    if let Some(number) = path.strip_prefix("/dev/dri/renderD") {
        let device = number.parse().ok().and_then(|number: u32| number.checked_sub(FIRST_RENDER));
        let device = device.map(|device| device as usize).filter(|&device| device < cards().len());
        return Some(device.map_or(Path::Nothing, Path::Render));
    }
    if !topology::covers(path) {
        return None;
    }
    let entry = topology::entry(cards(), path, system_modules);
    Some(entry.map_or(Path::Nothing, Path::Topology))
}

/// The system's own list of modules.
fn system_modules() -> String {
    // SAFETY: the path is a C string.
    let fd = unsafe { real::open(c"/proc/modules".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC, 0) };
    let mut text = String::new();
    if fd >= 0 {
        // SAFETY: the file was just opened and is nobody else's.
        let _ = unsafe { std::fs::File::from_raw_fd(fd) }.read_to_string(&mut text);
    }
    text
}

/// A file that has a text, to be read from its beginning.
fn file_of(text: &str) -> c_int {
    // SAFETY: the name is a C string; the file is our own until it is given out.
    unsafe {
        let fd = libc::memfd_create(c"candle-amdgpu topology".as_ptr(), libc::MFD_CLOEXEC);
        if fd >= 0 {
            libc::write(fd, text.as_ptr().cast(), text.len());
            libc::lseek(fd, 0, libc::SEEK_SET);
        }
        fd
    }
}

/// Opens what a path of the driver leads to.
fn open_path(path: Path, flags: c_int) -> c_int {
    let kind = match path {
        Path::Nothing => return fail(libc::ENOENT),
        Path::Topology(Entry::File(text)) => return file_of(&text),
        Path::Topology(Entry::Folder(_)) => return fail(libc::EISDIR),
        Path::Driver => DRIVER,
        Path::Render(device) => RENDER + (device as u8).min(u8::MAX - RENDER),
    };
    if Process::open().is_none() {
        return fail(libc::ENODEV);
    }
    // A number of its own, which the system does not give to another file.
    // SAFETY: the path is a C string.
    let fd = unsafe { real::open(c"/dev/null".as_ptr(), libc::O_RDWR | flags & libc::O_CLOEXEC, 0) };
    match usize::try_from(fd).ok().and_then(|fd| FILES.get(fd)) {
        Some(file) => {
            file.store(kind, Ordering::Relaxed);
            fd
        }
        None if fd < 0 => fd,
        None => {
            // SAFETY: the file was just opened.
            unsafe { real::close(fd) };
            fail(libc::EMFILE)
        }
    }
}

macro_rules! opens {
    ($($name:ident)*) => {$(
        /// As the C library's function of this name, and opens the driver's files.
        ///
        /// # Safety
        /// As the C library has it.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
            // SAFETY: the caller's contract.
            unsafe {
                match look_up(path) {
                    Some(path) => open_path(path, flags),
                    None => real::open(path, flags | LARGE, mode),
                }
            }
        }
    )*};
}

/// Files of any size: all there are with 64-bit offsets.
const LARGE: c_int = 0;

opens! { open open64 }

/// As the C library's function, and opens the driver's files.
///
/// # Safety
/// As the C library has it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __open_2(path: *const c_char, flags: c_int) -> c_int {
    // SAFETY: the caller's contract; without a mode no file is created.
    unsafe { open(path, flags, 0) }
}

/// As the C library's function, and opens the driver's files.
///
/// # Safety
/// As the C library has it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __open64_2(path: *const c_char, flags: c_int) -> c_int {
    // SAFETY: as in `__open_2`.
    unsafe { open(path, flags, 0) }
}

macro_rules! opens_at {
    ($($name:ident)*) => {$(
        /// As the C library's function of this name, and opens the driver's files by their full paths.
        ///
        /// # Safety
        /// As the C library has it.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(folder: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
            // SAFETY: the caller's contract.
            unsafe {
                match look_up(path) {
                    Some(path) => open_path(path, flags),
                    None => real::openat(folder, path, flags, mode),
                }
            }
        }
    )*};
}

opens_at! { openat openat64 }

macro_rules! opens_streams {
    ($($name:ident)*) => {$(
        /// As the C library's function of this name, and opens the driver's files.
        ///
        /// # Safety
        /// As the C library has it.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(path: *const c_char, mode: *const c_char) -> *mut FILE {
            // SAFETY: the caller's contract.
            unsafe {
                let Some(found) = look_up(path) else { return real::fopen(path, mode) };
                let fd = open_path(found, libc::O_CLOEXEC);
                if fd < 0 { std::ptr::null_mut() } else { libc::fdopen(fd, mode) }
            }
        }
    )*};
}

opens_streams! { fopen fopen64 }

/// As the C library's function.
///
/// # Safety
/// As the C library has it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn close(fd: c_int) -> c_int {
    if file(fd) != 0 {
        FILES[fd as usize].store(0, Ordering::Relaxed);
    }
    // SAFETY: the caller's contract.
    unsafe { real::close(fd) }
}

/// As the C library's function, and answers requests to the driver.
///
/// # Safety
/// As the C library has it; the arguments of a request are what its number says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ioctl(fd: c_int, request: c_ulong, arguments: *mut c_void) -> c_int {
    match file(fd) {
        DRIVER if requests::is_ours(request) => match Process::get() {
            Some(process) => match requests::answer(process, request, arguments) {
                Ok(()) => 0,
                Err(errno) => fail(errno),
            },
            None => fail(libc::EBADF),
        },
        0 => {
            // SAFETY: the caller's contract.
            unsafe { real::ioctl(fd, request, arguments) }
        }
        _ => fail(libc::ENOTTY),
    }
}

macro_rules! maps {
    ($($name:ident)*) => {$(
        /// As the C library's function of this name. In the window of cards nothing is mapped but what the driver says.
        ///
        /// # Safety
        /// As the C library has it.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            at: *mut c_void,
            size: size_t,
            protection: c_int,
            flags: c_int,
            fd: c_int,
            offset: off_t,
        ) -> *mut c_void {
            let (start, bytes) = (address(at), size as u64);
            if Window::contains(start, bytes) && let Some(process) = Process::get() {
                return match map_window(process, start, bytes, protection, (fd, offset)) {
                    Ok(()) => at,
                    Err(errno) => {
                        fail(errno);
                        libc::MAP_FAILED
                    }
                };
            }
            if file(fd) != 0 {
                fail(libc::EINVAL);
                return libc::MAP_FAILED;
            }
            // SAFETY: the caller's contract.
            unsafe { real::mmap(at, size, protection, flags, fd, offset) }
        }
    )*};
}

maps! { mmap mmap64 }

/// Maps a range of the window: memory that the driver has allocated, or, where the runtime reserves or gives back addresses,
/// what is there anyway.
fn map_window(
    process: &Process,
    start: u64,
    bytes: u64,
    protection: c_int,
    (fd, offset): (c_int, off_t),
) -> Result<(), c_int> {
    if file(fd) != 0 && protection != libc::PROT_NONE {
        return requests::mmap(process, start, bytes, offset as u64);
    }
    if file(fd) != 0 || bytes == crate::window::SIZE {
        return Ok(());
    }
    process.window.restore(start, bytes).map_err(|error| error.raw_os_error().unwrap_or(libc::ENOMEM))
}

/// As the C library's function. The window of cards stays.
///
/// # Safety
/// As the C library has it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn munmap(at: *mut c_void, size: size_t) -> c_int {
    if Window::contains(address(at), size as u64) && Process::get().is_some() {
        return 0;
    }
    // SAFETY: the caller's contract.
    unsafe { real::munmap(at, size) }
}

/// A folder of the topology that is being read.
struct Folder {
    names: std::vec::IntoIter<String>,
    entry: UnsafeCell<dirent>,
    entry64: UnsafeCell<dirent64>,
}

/// The folders that are open, and how many: most processes have none.
static FOLDERS: Mutex<Vec<usize>> = Mutex::new(Vec::new());
static OPEN_FOLDERS: AtomicUsize = AtomicUsize::new(0);

fn is_folder(folder: *mut DIR) -> bool {
    OPEN_FOLDERS.load(Ordering::Relaxed) != 0
        && FOLDERS.lock().unwrap_or_else(PoisonError::into_inner).contains(&folder.addr())
}

/// As the C library's function, and opens folders of the topology.
///
/// # Safety
/// As the C library has it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn opendir(path: *const c_char) -> *mut DIR {
    // SAFETY: the caller's contract.
    let Some(found) = (unsafe { look_up(path) }) else { return unsafe { real::opendir(path) } };
    let Path::Topology(Entry::Folder(names)) = found else {
        fail(if matches!(found, Path::Nothing) { libc::ENOENT } else { libc::ENOTDIR });
        return std::ptr::null_mut();
    };
    // SAFETY: entries are plain numbers and arrays of them.
    let (entry, entry64) = unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
    let all: Vec<String> = [".", ".."].map(str::to_owned).into_iter().chain(names).collect();
    let folder =
        Folder { names: all.into_iter(), entry: UnsafeCell::new(entry), entry64: UnsafeCell::new(entry64) };
    let folder: *mut DIR = Box::into_raw(Box::new(folder)).cast();
    FOLDERS.lock().unwrap_or_else(PoisonError::into_inner).push(folder.addr());
    OPEN_FOLDERS.fetch_add(1, Ordering::Relaxed);
    folder
}

macro_rules! reads_folders {
    ($($name:ident $field:ident $entry:ty;)*) => {$(
        /// As the C library's function of this name, and reads folders of the topology.
        ///
        /// # Safety
        /// As the C library has it.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(folder: *mut DIR) -> *mut $entry {
            if !is_folder(folder) {
                // SAFETY: the caller's contract; both forms of an entry are the same where offsets have 64 bits.
                return unsafe { real::readdir(folder) }.cast();
            }
            // SAFETY: a folder that `opendir` has made, which one thread reads at a time.
            let folder = unsafe { &mut *folder.cast::<Folder>() };
            let Some(name) = folder.names.next() else { return std::ptr::null_mut() };
            let entry = folder.$field.get_mut();
            entry.d_ino = 1;
            entry.d_name.fill(0);
            for (into, byte) in entry.d_name.iter_mut().zip(name.bytes().take(255)) {
                *into = byte as c_char;
            }
            entry
        }
    )*};
}

reads_folders! {
    readdir entry dirent;
    readdir64 entry64 dirent64;
}

/// As the C library's function.
///
/// # Safety
/// As the C library has it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn closedir(folder: *mut DIR) -> c_int {
    if !is_folder(folder) {
        // SAFETY: the caller's contract.
        return unsafe { real::closedir(folder) };
    }
    FOLDERS.lock().unwrap_or_else(PoisonError::into_inner).retain(|&other| other != folder.addr());
    OPEN_FOLDERS.fetch_sub(1, Ordering::Relaxed);
    // SAFETY: a folder that `opendir` has made, which is not used again.
    drop(unsafe { Box::from_raw(folder.cast::<Folder>()) });
    0
}

/// What `stat` says of a path of the driver.
fn status(path: &Path) -> Option<libc::stat> {
    // SAFETY: the structure is plain numbers.
    let mut status: libc::stat = unsafe { std::mem::zeroed() };
    status.st_nlink = 1;
    (status.st_mode, status.st_rdev) = match path {
        Path::Nothing => return None,
        Path::Driver => (libc::S_IFCHR | 0o666, libc::makedev(234, 0)),
        Path::Render(device) => (libc::S_IFCHR | 0o666, libc::makedev(226, FIRST_RENDER + *device as u32)),
        Path::Topology(Entry::File(_)) => (libc::S_IFREG | 0o444, 0),
        Path::Topology(Entry::Folder(_)) => (libc::S_IFDIR | 0o555, 0),
    };
    Some(status)
}

macro_rules! stats {
    ($($name:ident $real:ident;)*) => {$(
        /// As the C library's function of this name, and knows the driver's files.
        ///
        /// # Safety
        /// As the C library has it.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(path: *const c_char, into: *mut libc::stat) -> c_int {
            // SAFETY: the caller's contract; both forms of the structure are the same where offsets have 64 bits.
            unsafe {
                let Some(found) = look_up(path) else { return real::$real(path, into) };
                let Some(status) = status(&found) else { return fail(libc::ENOENT) };
                into.write(status);
                0
            }
        }
    )*};
}

stats! {
    stat stat;
    stat64 stat;
    lstat lstat;
    lstat64 lstat;
}

/// As the C library's function, and knows the driver's files.
///
/// # Safety
/// As the C library has it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn access(path: *const c_char, mode: c_int) -> c_int {
    // SAFETY: the caller's contract.
    match unsafe { look_up(path) } {
        None => {
            // SAFETY: as above.
            unsafe { real::access(path, mode) }
        }
        Some(Path::Nothing) => fail(libc::ENOENT),
        Some(Path::Topology(_)) if mode & libc::W_OK != 0 => fail(libc::EACCES),
        Some(_) => 0,
    }
}

/// The loader's flag by which a library finds its own functions before those in front of them.
#[cfg(target_arch = "x86_64")]
const DEEP: c_int = libc::RTLD_DEEPBIND;

/// The runtime under AMD's libraries, which opens the driver.
#[cfg(target_arch = "x86_64")]
const RUNTIME: &CStr = c"libhsa-runtime64.so.1";

/// As the system's function. A library that is loaded with `RTLD_DEEPBIND`, as this project loads AMD's, would find the C library's
/// `open` and not ours, and so would all that is loaded with it. So the runtime is loaded before it, as usual.
///
/// The system's function looks at who has called it, and so it is jumped to.
///
/// # Safety
/// As the C library has it.
#[cfg(target_arch = "x86_64")]
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void {
    std::arch::naked_asm!(
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "call {before}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "jmp rax",
        before = sym before_dlopen,
    )
}

/// Loads the runtime if `dlopen` is about to load something with a scope of its own; gives the system's `dlopen`.
///
/// # Safety
/// `path` is null or a C string.
#[cfg(target_arch = "x86_64")]
unsafe extern "C" fn before_dlopen(path: *const c_char, flags: c_int) -> *mut c_void {
    let function = real::DLOPEN.get();
    if flags & DEEP != 0 && !path.is_null() && !function.is_null() {
        // SAFETY: the system's function of this name has this type.
        let load = unsafe {
            std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*const c_char, c_int) -> *mut c_void>(
                function,
            )
        };
        // SAFETY: the caller's contract.
        let path = unsafe { CStr::from_ptr(path) }.to_bytes();
        // Beside a library that is named by its path, then where the loader looks.
        let folder = path.iter().rposition(|&byte| byte == b'/').map_or(&b""[..], |end| &path[..=end]);
        let beside = CString::new([folder, RUNTIME.to_bytes()].concat()).unwrap_or_default();
        for name in [beside.as_c_str(), RUNTIME] {
            // SAFETY: a C string; loading the runtime runs its constructors alone.
            if !unsafe { load(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) }.is_null() {
                break;
            }
        }
    }
    function
}

/// A card as libdrm's device: what its handle points to.
struct DrmDevice {
    card: &'static Card,
    name: CString,
    /// A file of its render node, from when the device is first asked for.
    node: AtomicI32,
}

/// All cards, so that a place in the list is a device.
fn drm_devices() -> &'static [DrmDevice] {
    static DEVICES: OnceLock<Vec<DrmDevice>> = OnceLock::new();
    let device = |card: &'static Card| DrmDevice {
        card,
        name: CString::new(card.marketing_name()).unwrap_or_default(),
        node: AtomicI32::new(-1),
    };
    DEVICES.get_or_init(|| cards().iter().map(device).collect())
}

/// The card of a handle; `None` if the handle is libdrm's own.
fn drm_device(handle: *mut c_void) -> Option<&'static DrmDevice> {
    drm_devices().iter().find(|device| std::ptr::from_ref(*device).addr() == handle.addr())
}

/// libdrm's function, of which the runtime learns a card's name.
///
/// # Safety
/// As libdrm has it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn amdgpu_device_initialize(
    fd: c_int,
    major: *mut u32,
    minor: *mut u32,
    device: *mut *mut c_void,
) -> c_int {
    let Some(number) = file(fd).checked_sub(RENDER).map(usize::from) else {
        // SAFETY: the caller's contract.
        return unsafe { real::amdgpu_device_initialize(fd, major, minor, device) };
    };
    let Some(found) = drm_devices().get(number) else { return -libc::ENODEV };
    if found.node.load(Ordering::Relaxed) < 0 {
        // The caller may close its own.
        found.node.store(open_path(Path::Render(number), libc::O_CLOEXEC), Ordering::Relaxed);
    }
    // SAFETY: the caller's contract.
    unsafe {
        major.write(3);
        minor.write(0);
        device.write(std::ptr::from_ref(found).cast_mut().cast());
    }
    0
}

/// libdrm's function.
///
/// # Safety
/// As libdrm has it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn amdgpu_device_deinitialize(device: *mut c_void) -> c_int {
    match drm_device(device) {
        Some(_) => 0,
        // SAFETY: the caller's contract.
        None => unsafe { real::amdgpu_device_deinitialize(device) },
    }
}

/// libdrm's function.
///
/// # Safety
/// As libdrm has it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn amdgpu_device_get_fd(device: *mut c_void) -> c_int {
    match drm_device(device) {
        Some(found) => found.node.load(Ordering::Relaxed),
        // SAFETY: the caller's contract.
        None => unsafe { real::amdgpu_device_get_fd(device) },
    }
}

/// libdrm's function: the card's number and family, which is what the runtime looks at. The rest of the structure stays.
///
/// # Safety
/// As libdrm has it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn amdgpu_query_gpu_info(device: *mut c_void, info: *mut c_void) -> c_int {
    match drm_device(device) {
        Some(DrmDevice { card, .. }) => {
            // `struct amdgpu_gpu_info` begins with the device's number, two revisions and the family.
            // SAFETY: the caller's contract.
            unsafe { info.cast::<[u32; 4]>().write_unaligned([card.device_id, 0, 0, card.family()]) };
            0
        }
        // SAFETY: the caller's contract.
        None => unsafe { real::amdgpu_query_gpu_info(device, info) },
    }
}

/// libdrm's function.
///
/// # Safety
/// As libdrm has it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn amdgpu_get_marketing_name(device: *mut c_void) -> *const c_char {
    match drm_device(device) {
        Some(found) => found.name.as_ptr(),
        // SAFETY: the caller's contract.
        None => unsafe { real::amdgpu_get_marketing_name(device) },
    }
}
