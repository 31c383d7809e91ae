//! Launches as packets ask for them, on memory that somebody else has mapped and given out.

mod support;

use amdgpu_emulator::{
    CodeObject, Fault, FaultReport, Gfx, Interrupt, Kernel as Loaded, LaunchOptions, Machine, MemoryError,
    PacketLaunch, Report,
};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use support::{Kernel, words};

const PAGE: u64 = 4096;

/// Addresses that a machine has its memory in.
struct Window {
    start: *mut u8,
}

impl Window {
    const LAYOUT: Layout = match Layout::from_size_align(1 << 20, 4096) {
        Ok(layout) => layout,
        Err(_) => panic!(),
    };

    fn new() -> Window {
        // SAFETY: the size is not zero.
        let start = unsafe { alloc_zeroed(Self::LAYOUT) };
        assert!(!start.is_null());
        Window { start }
    }

    fn page(&self, number: u64) -> u64 {
        self.start.expose_provenance() as u64 + number * PAGE
    }

    fn machine(&self, gfx: Gfx) -> Machine {
        // SAFETY: tests drop their machines first.
        unsafe { Machine::over(gfx, self.page(0)..self.page(256)) }.unwrap()
    }

    /// A page that nobody has been given yet, and arguments that are its address.
    fn arguments(&self, machine: &Machine) -> (u64, u64) {
        let (out, kernarg) = (self.page(1), self.page(3));
        machine.place(kernarg, PAGE, "arguments", true).unwrap();
        machine.write(kernarg, &out.to_le_bytes()).unwrap();
        (out, kernarg)
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // SAFETY: it was allocated so.
        unsafe { dealloc(self.start, Self::LAYOUT) };
    }
}

/// A kernel whose arguments are at an address.
fn packet(kernarg: u64, grid: [u32; 3], block: [u32; 3], options: LaunchOptions) -> PacketLaunch {
    PacketLaunch { grid, block, lds: 0, scratch: 0, kernarg, packet: 0, queue: 0, options }
}

fn loaded(machine: &Machine, program: &str, base: u64) -> Loaded {
    let mut kernel = Kernel::new(machine.gfx(), program);
    kernel.args = &[(8, "global_buffer")];
    machine.adopt(&kernel.build(), base).kernel("test").unwrap()
}

/// Writes the work-item's x and y, plus one each, to out[workgroup * 8 + x + 4 y].
// asm Gfx1100
const IDS: &str = "
    s_load_b64 s[8:9], s[0:1], null ; f4040200 f8000000
    v_and_b32_e32 v1, 0x3ff, v0 ; 360200ff 000003ff
    v_bfe_u32 v2, v0, 10, 10 ; d6100002 02291500
    v_lshl_add_u32 v1, v2, 2, v1 ; d6460001 04050502
    s_lshl_b32 s5, s2, 3 ; 84058302
    v_add_nc_u32_e32 v1, s5, v1 ; 4a020205
    v_lshlrev_b32_e32 v1, 2, v1 ; 30020282
    v_add_nc_u32_e32 v0, 0x401, v0 ; 4a0000ff 00000401
    s_waitcnt lgkmcnt(0) ; bf89fc07
    global_store_b32 v1, v0, s[8:9] ; dc6a0000 00080001
";

#[test]
fn the_last_workgroup_of_an_axis_has_what_is_left() {
    let window = Window::new();
    let machine = window.machine(Gfx::Gfx1100);
    let (out, kernarg) = window.arguments(&machine);
    machine.place(out, PAGE, "out", false).unwrap();
    let kernel = loaded(&machine, IDS, window.page(8));
    for check in [false, true] {
        machine.fill(out, 0, PAGE).unwrap();
        let mut options = LaunchOptions::default();
        options.check = check;
        // Three workgroups along x: four wide, four wide, and two wide.
        let report =
            machine.launch_packet(&kernel, &packet(kernarg, [10, 2, 1], [4, 2, 1], options)).unwrap();
        assert_eq!((report.workgroups, report.waves), (3, 3));
        let whole: Vec<u32> = (0..2).flat_map(|y| (0..4).map(move |x| (x + 1) | (y + 1) << 10)).collect();
        let part: Vec<u32> = [1, 2].into_iter().flat_map(|y| [1 | y << 10, 2 | y << 10, 0, 0]).collect();
        assert_eq!(words(&machine, out, 24), [whole.clone(), whole, part].concat());
    }
    let refused = |grid, block| match machine
        .launch_packet(&kernel, &packet(kernarg, grid, block, LaunchOptions::default()))
    {
        Err(report) => report.fault().kind(),
        Ok(_) => "nothing".into(),
    };
    assert_eq!(refused([0, 1, 1], [1, 1, 1]), "Geometry");
    assert_eq!(refused([1, 1, 1], [1, 0, 1]), "Geometry");
    assert_eq!(refused([1, 1, 1], [1024, 2, 1]), "WorkgroupSize");
}

/// What a kernel was compiled for is the runtime's business: a card needs registers for all waves.
#[test]
fn a_workgroup_may_be_larger_than_what_the_kernel_was_compiled_for() {
    let window = Window::new();
    let machine = window.machine(Gfx::Gfx1100);
    let kernarg = window.page(3);
    machine.place(kernarg, PAGE, "arguments", true).unwrap();
    let run = |vgprs, block| {
        // asm Gfx1100
        let mut kernel = Kernel::new(Gfx::Gfx1100, "\n    s_nop 0 ; bf800000\n");
        (kernel.max_workgroup_size, kernel.vgprs) = (256, vgprs);
        let kernel = machine.adopt(&kernel.build(), window.page(8)).kernel("test").unwrap();
        let result = machine
            .launch_packet(&kernel, &packet(kernarg, [block, 1, 1], [block, 1, 1], LaunchOptions::default()));
        result.map(|report| report.waves).map_err(|report| report.fault().kind())
    };
    assert_eq!(run(32, 512), Ok(16));
    assert_eq!(run(32, 1024), Ok(32));
    assert_eq!(run(32, 1025), Err("WorkgroupSize".into()));
    // Six waves on each of four SIMD units.
    assert_eq!(run(240, 768), Ok(24));
    assert_eq!(run(240, 769), Err("WorkgroupSize".into()));
    assert_eq!(run(256, 256), Ok(8));
}

#[test]
fn a_smaller_workgroup_has_fewer_waves() {
    let window = Window::new();
    let machine = window.machine(Gfx::Gfx1100);
    let kernarg = window.page(3);
    machine.place(kernarg, PAGE, "arguments", true).unwrap();
    // asm Gfx1100
    let kernel = loaded(&machine, "\n    s_barrier ; bfbd0000\n", window.page(8));
    let run = |grid| {
        machine.launch_packet(&kernel, &packet(kernarg, [grid, 1, 1], [128, 1, 1], LaunchOptions::default()))
    };
    assert_eq!(run(128).unwrap().waves, 4);
    let report = run(128 + 33).unwrap();
    assert_eq!((report.workgroups, report.waves, report.lane_instructions), (2, 6, 2 * (128 + 33)));
}

#[test]
fn memory_of_the_host_is_reached_under_another_address() {
    let window = Window::new();
    let machine = window.machine(Gfx::Gfx1100);
    let host: Vec<AtomicU32> = (0..1024).map(|_| AtomicU32::new(0)).collect();
    let start = host.as_ptr().cast_mut().cast::<u8>();
    let (alias, kernarg) = (window.page(4), window.page(6));
    let mut arguments = alias.wrapping_add(64).to_le_bytes().to_vec();
    arguments.resize(64, 0);
    // SAFETY: the vectors outlive the machine's accesses.
    unsafe {
        machine.place_alias(alias, PAGE, start).unwrap();
        machine.place_alias(kernarg, 64, arguments.as_mut_ptr()).unwrap();
        // Neither twice nor over another one nor outside.
        for (address, size) in
            [(alias, 8), (alias - PAGE, PAGE + 1), (window.page(256), 8), (alias + PAGE, 0)]
        {
            assert!(machine.place_alias(address, size, start).is_err());
        }
    }
    let kernel = loaded(&machine, IDS, window.page(8));
    let launch = |check| {
        let mut options = LaunchOptions::default();
        options.check = check;
        machine.launch_packet(&kernel, &packet(kernarg, [3, 1, 1], [4, 1, 1], options))
    };
    for check in [false, true] {
        launch(check).unwrap();
        let there = host[15..20].iter().map(|word| word.swap(0, Ordering::Relaxed));
        assert_eq!(there.collect::<Vec<_>>(), [0, 1 | 1 << 10, 2 | 1 << 10, 3 | 1 << 10, 0]);
    }
    assert_eq!(machine.host_address(alias + 8, 8), Some(start.wrapping_add(8)));
    assert_eq!(machine.host_address(alias + PAGE - 4, 8), None);
    machine.displace(alias).unwrap();
    assert!(matches!(launch(false).unwrap_err().fault(), Fault::OutOfBounds { .. }));
}

/// Adds one to out[0].
// asm Gfx1100
const READ: &str = "
    s_load_b64 s[8:9], s[0:1], null ; f4040200 f8000000
    v_mov_b32_e32 v1, 0 ; 7e020280
    s_waitcnt lgkmcnt(0) ; bf89fc07
    global_load_b32 v2, v1, s[8:9] ; dc520000 02080001
    s_waitcnt vmcnt(0) ; bf8903f7
    v_add_nc_u32_e32 v2, 1, v2 ; 4a040481
    global_store_b32 v1, v2, s[8:9] offset:4 ; dc6a0004 00080201
";

#[test]
fn what_was_written_stays_written_until_the_owner_says_otherwise() {
    let window = Window::new();
    let machine = window.machine(Gfx::Gfx1100);
    let (out, kernarg) = window.arguments(&machine);
    let kernel = loaded(&machine, READ, window.page(8));
    let launch = || -> Result<Report, FaultReport> {
        let mut options = LaunchOptions::default();
        options.check = true;
        machine.launch_packet(&kernel, &packet(kernarg, [1; 3], [1; 3], options))
    };
    let kind = || launch().map_or_else(|report| report.fault().kind(), |_| "nothing".into());
    assert_eq!(kind(), "OutOfBounds");
    machine.place(out, PAGE, "out", false).unwrap();
    assert_eq!(kind(), "Uninitialised");
    machine.write(out, &[1, 0, 0, 0]).unwrap();
    assert_eq!(kind(), "nothing");
    // Mapped to the card again, it has what it had.
    machine.displace(out).unwrap();
    assert_eq!(kind(), "UseAfterFree");
    machine.place(out, PAGE, "out", false).unwrap();
    assert_eq!(kind(), "nothing");
    machine.displace(out).unwrap();
    machine.forget(out, PAGE);
    machine.place(out, PAGE, "out", false).unwrap();
    assert_eq!(kind(), "Uninitialised");
    // A copy from what the host writes is written.
    machine.copy(out, kernarg, 8).unwrap();
    assert_eq!(kind(), "nothing");
    machine.displace(out).unwrap();
    machine.place(out, PAGE, "out", true).unwrap();
    machine.forget(out, PAGE);
    assert_eq!(kind(), "nothing", "the host writes to it");
    assert_eq!(machine.alloc(8), Err(MemoryError::OutOfMemory { bytes: 8, free: 0, total: 0 }));
    let overlapping = machine.place(out + PAGE - 1, 8, "x", false);
    assert_eq!(overlapping, Err(MemoryError::NotLendable { address: out + PAGE - 1, size: 8 }));
}

#[test]
fn a_wave_interrupts_the_host() {
    let window = Window::new();
    let machine = window.machine(Gfx::Gfx1030);
    let kernarg = window.page(3);
    machine.place(kernarg, PAGE, "arguments", true).unwrap();
    // asm Gfx1030
    let program = "
    s_mov_b32 m0, 7 ; befc0387
    s_sendmsg sendmsg(MSG_INTERRUPT) ; bf900001
    s_nop 0 ; bf800000
";
    let kernel = loaded(&machine, program, window.page(8));
    let heard: Arc<Mutex<Vec<u32>>> = Arc::default();
    let mut options = LaunchOptions::default();
    options.interrupt = Some(Interrupt(Arc::new({
        let heard = heard.clone();
        move |m0| heard.lock().unwrap().push(m0)
    })));
    machine.launch_packet(&kernel, &packet(kernarg, [2, 1, 1], [1, 1, 1], options)).unwrap();
    assert_eq!(*heard.lock().unwrap(), [7, 7]);
}

#[test]
fn code_without_a_file_runs() {
    let window = Window::new();
    let machine = window.machine(Gfx::Gfx1100);
    let (out, kernarg) = window.arguments(&machine);
    machine.place(out, PAGE, "out", false).unwrap();
    // As `Kernel` makes the descriptor: wave32, the arguments' address in two registers, and one workgroup id.
    let object = Kernel::new(Gfx::Gfx1100, IDS).build();
    let info = &object.kernels()[0];
    let mut descriptor = [0; 64];
    descriptor[48..52].copy_from_slice(&info.descriptor.rsrc1.to_le_bytes());
    descriptor[52..56].copy_from_slice(&info.descriptor.rsrc2.to_le_bytes());
    descriptor[56..58].copy_from_slice(&info.descriptor.properties.to_le_bytes());
    let mut code = vec![0xff; 256];
    code.extend(support::assemble(Gfx::Gfx1100, IDS));
    let bare = CodeObject::bare(Gfx::Gfx1100, "bare", code, &descriptor, 256);
    let kernel = machine.adopt(&bare, window.page(8)).kernel("bare").unwrap();
    assert_eq!((kernel.info().wave_size, kernel.info().name.as_str()), (32, "bare"));
    machine.launch_packet(&kernel, &packet(kernarg, [2, 1, 1], [2, 1, 1], LaunchOptions::default())).unwrap();
    assert_eq!(words(&machine, out, 3), [1 | 1 << 10, 2 | 1 << 10, 0]);
}
