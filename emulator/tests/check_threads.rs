//! Check mode on several threads: the report and the memory of one thread, whatever workgroups do to each other.

mod support;

use std::collections::BTreeMap;

use amdgpu_emulator::{CodeObject, Gfx, Launch, LaunchOptions, Machine, MachineOptions};
use support::Kernel;
use support::hostile::Random;

/// A lane's access in each step is in a table of pairs: what it does, and where.
// asm Gfx1100
const HEAD: &str = "
    s_load_b128 s[4:7], s[0:1], null ; f4080100 f8000000
    s_load_b64 s[10:11], s[0:1], 0x10 ; f4040280 f8000010
    v_and_b32_e32 v0, 0x3ff, v0 ; 360000ff 000003ff
    s_lshl_b32 s3, s2, 6 ; 84038602
    v_add_nc_u32_e32 v0, s3, v0 ; 4a000003
    v_lshlrev_b32_e32 v1, 3, v0 ; 30020083
    v_mov_b32_e32 v4, 0 ; 7e080280
    s_mov_b32 s8, exec_lo ; be88007e
    s_waitcnt lgkmcnt(0) ; bf89fc07
";

/// What is stored depends on what was loaded.
// asm Gfx1100
const STEP: &str = "
    global_load_b64 v[2:3], v1, s[4:5] ; dc560000 02040001
    s_waitcnt vmcnt(0) ; bf8903f7
    v_add_nc_u32_e32 v0, v0, v4 ; 4a000900
    v_cmpx_eq_u32_e32 0, v2 ; 7d940480
    global_load_u8 v4, v3, s[6:7] ; dc420000 04060003
    s_mov_b32 exec_lo, s8 ; befe0008
    v_cmpx_eq_u32_e32 1, v2 ; 7d940481
    global_store_b8 v3, v0, s[6:7] ; dc620000 00060003
    s_mov_b32 exec_lo, s8 ; befe0008
    v_cmpx_eq_u32_e32 2, v2 ; 7d940482
    global_store_b16 v3, v0, s[6:7] ; dc660000 00060003
    s_mov_b32 exec_lo, s8 ; befe0008
    v_cmpx_eq_u32_e32 3, v2 ; 7d940483
    global_load_b32 v4, v3, s[6:7] ; dc520000 04060003
    s_mov_b32 exec_lo, s8 ; befe0008
    v_cmpx_eq_u32_e32 4, v2 ; 7d940484
    global_store_b32 v3, v0, s[6:7] ; dc6a0000 00060003
    s_mov_b32 exec_lo, s8 ; befe0008
    v_cmpx_eq_u32_e32 5, v2 ; 7d940485
    global_atomic_add_u32 v3, v0, s[6:7] ; dcd60000 00060003
    s_mov_b32 exec_lo, s8 ; befe0008
    v_cmpx_eq_u32_e32 6, v2 ; 7d940486
    s_cbranch_execz 1 ; bfa50001
    s_trap 2 ; bf900002
    s_mov_b32 exec_lo, s8 ; befe0008
    s_waitcnt vmcnt(0) ; bf8903f7
    s_waitcnt_vscnt null, 0x0 ; bc7c0000
    s_add_u32 s4, s4, s10 ; 80040a04
    s_addc_u32 s5, s5, 0 ; 82058005
";

const STEPS: u32 = 4;
/// Work-items of a workgroup: two waves.
const BLOCK: u32 = 64;
/// What a step does with a place.
const LOAD_BYTE: u32 = 0;
const STORE_BYTE: u32 = 1;
const STORE_SHORT: u32 = 2;
const LOAD: u32 = 3;
const STORE: u32 = 4;
const ADD: u32 = 5;
const TRAP: u32 = 6;
const NOTHING: u32 = 7;

/// What a launch works on.
#[derive(Clone)]
struct Work {
    grid: u32,
    /// Step by step what each work-item does, and where.
    table: Vec<[u32; 2]>,
    /// Bytes of data, and how many of them the host has written.
    bytes: u64,
    written: u64,
}

/// A launch's report, addresses relative to where memory starts, and the data after it.
fn run(object: &CodeObject, work: &Work, threads: usize, shuffle: Option<u64>) -> (String, Vec<u8>) {
    let mut options = MachineOptions::default();
    options.memory_bytes = 1 << 24;
    let machine = Machine::new(Gfx::Gfx1100, options).expect("address space");
    let kernel = machine.load(object).expect("loads").kernel("test").expect("the kernel");
    let table: Vec<u8> = work.table.iter().flatten().flat_map(|word| word.to_le_bytes()).collect();
    let pairs = machine.alloc(table.len() as u64).expect("memory");
    machine.write(pairs, &table).expect("it fits");
    let data = machine.alloc(work.bytes).expect("memory");
    machine.fill(data, 7, work.written).expect("it fits");
    let stride = u64::from(work.grid * BLOCK) * 8;
    let kernarg: Vec<u8> = [pairs, data, stride].iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut options = LaunchOptions::default();
    (options.check, options.threads, options.shuffle) = (true, threads, shuffle);
    // Counts are part of the report.
    options.profile = work.grid % 4 == 1;
    let (grid, block) = ([work.grid, 1, 1], [BLOCK, 1, 1]);
    let launch = Launch { grid, block, dynamic_lds: 0, kernarg: &kernarg, options };
    let report = match machine.launch(&kernel, &launch) {
        Ok(report) => format!("passes: {report:?}"),
        Err(fault) => support::relative(&fault.to_string(), pairs & !0xffff_ffff),
    };
    let mut bytes = vec![0; work.bytes as usize];
    machine.read(data, &mut bytes).expect("allocated");
    (report, bytes)
}

fn object() -> CodeObject {
    let program = HEAD.to_owned() + &STEP.repeat(STEPS as usize);
    let mut kernel = Kernel::new(Gfx::Gfx1100, &program);
    kernel.args = &[(8, "global_buffer"), (8, "global_buffer"), (8, "by_value")];
    kernel.build()
}

/// Work in which most workgroups keep to bytes of their own, which begin anywhere in a dword, and one in `strays` of
/// the steps leads elsewhere.
fn work(random: &mut Random, strays: usize) -> Work {
    let grid = 2 + random.below(12) as u32;
    let own = 256 + random.below(9) as u64;
    let bytes = own * u64::from(grid) + 16;
    // Whole dwords, parts of them, or both, and in some cases counters that all share.
    let kinds: &[u32] = [
        &[LOAD, STORE][..],
        &[LOAD_BYTE, STORE_BYTE, STORE_SHORT],
        &[LOAD_BYTE, STORE_BYTE, STORE_SHORT, LOAD, STORE, ADD, NOTHING],
    ][random.below(3)];
    let own = if kinds.contains(&LOAD) { own & !3 } else { own };
    let mut table = Vec::new();
    for _ in 0..STEPS {
        for item in 0..u64::from(grid * BLOCK) {
            let kind = kinds[random.below(kinds.len())];
            let size = [1, 1, 2, 4, 4, 4, 1, 1][kind as usize];
            let workgroup = item / u64::from(BLOCK);
            // A lane has four bytes of its workgroup's: waves seldom meet.
            let mut at = own * workgroup + item % u64::from(BLOCK) * 4 + random.below(5 - size) as u64;
            if random.below(strays) == 0 {
                at = random.below(bytes as usize - size) as u64;
            }
            if kind == ADD || kinds.len() == 2 {
                at &= !3;
            }
            table.push([kind, at as u32]);
        }
    }
    if random.below(16) == 0 {
        let at = random.below(table.len());
        table[at][0] = TRAP;
    }
    let written = if random.below(4) == 0 { bytes - random.below(64) as u64 } else { bytes };
    Work { grid, table, bytes, written }
}

/// Whether workgroups race, and whether waves of one do, by what the table says; only for whole dwords.
fn races(work: &Work) -> (bool, bool) {
    let mut accesses: BTreeMap<u32, Vec<(u32, u32, bool)>> = BTreeMap::new();
    let items = (0..work.grid * BLOCK).cycle();
    for (item, &[kind, place]) in items.zip(&work.table).filter(|(_, [kind, _])| [LOAD, STORE].contains(kind))
    {
        accesses.entry(place / 4).or_default().push((item / BLOCK, item / 32, kind == STORE));
    }
    let any = |differ: fn((u32, u32), (u32, u32)) -> bool| {
        accesses.values().any(|list| {
            let pairs = list.iter().flat_map(|one| list.iter().map(move |other| (one, other)));
            pairs.into_iter().any(|(a, b)| (a.2 || b.2) && differ((a.0, a.1), (b.0, b.1)))
        })
    };
    (any(|a, b| a.0 != b.0), any(|a, b| a.0 == b.0 && a.1 != b.1))
}

/// What strikes the eye in a report.
fn kind_of(report: &str) -> &'static str {
    let kinds = ["passes", "races with", "uninitialised", "trap"];
    kinds.into_iter().find(|kind| report.contains(kind)).unwrap_or("else")
}

#[test]
fn reports_and_memory_are_those_of_one_thread() {
    let object = object();
    let mut seen = BTreeMap::<&str, u32>::new();
    for case in 0..300 {
        let mut random = Random::of_case(case);
        let strays = [20, 400, 4000, usize::MAX >> 34][random.below(4)];
        let work = work(&mut random, strays);
        let shuffle = (random.below(3) == 0).then(|| random.next());
        let expected = run(&object, &work, 1, shuffle);
        let kind = kind_of(&expected.0);
        *seen.entry(kind).or_default() += 1;
        if work.table.iter().all(|[kind, _]| [LOAD, STORE].contains(kind)) && kind != "uninitialised" {
            let (workgroups, waves) = races(&work);
            assert!(!workgroups || kind == "races with", "case {case}: {}", expected.0);
            assert!(workgroups || waves || kind == "passes", "case {case}: {}", expected.0);
        }
        for threads in [2, 3, 8] {
            let found = run(&object, &work, threads, shuffle);
            assert_eq!(found.0, expected.0, "case {case}, {threads} threads");
            assert!(found.1 == expected.1, "case {case}, {threads} threads: other memory");
        }
    }
    for kind in ["passes", "races with", "uninitialised", "trap"] {
        assert!(seen.get(kind).is_some_and(|&count| count >= 5), "{seen:?}");
    }
}

/// Workgroups that work on a page of data; some of their lanes do what `pairs` says: step, workgroup, lane, kind, place.
fn few(grid: u32, written: u64, pairs: &[(u32, u32, u32, u32, u32)]) -> Work {
    let mut table = vec![[NOTHING, 0]; (STEPS * grid * BLOCK) as usize];
    for &(step, workgroup, lane, kind, place) in pairs {
        table[((step * grid + workgroup) * BLOCK + lane) as usize] = [kind, place];
    }
    Work { grid, table, bytes: 4096, written }
}

/// That every one of some launches on several threads gives the report of one thread, which contains `text`.
fn always(work: &Work, text: &str) {
    let object = object();
    let expected = run(&object, work, 1, None);
    assert!(expected.0.contains(text), "{}", expected.0);
    for turn in 0..10 {
        for threads in [2, 3, 4] {
            let found = run(&object, work, threads, None);
            assert_eq!(found.0, expected.0, "{threads} threads, turn {turn}");
            assert!(found.1 == expected.1, "{threads} threads, turn {turn}: other memory");
        }
    }
}

/// So many workgroups that each thread gets some, a quarter of a thread's at a time.
const MANY: u32 = 256;

#[test]
fn a_race_of_two_workgroups_far_from_each_other_is_always_found() {
    let pairs =
        |kinds: [u32; 2]| few(MANY, 4096, &[(0, 3, 5, kinds[0], 64), (2, MANY - 1, 40, kinds[1], 64)]);
    for kinds in [[LOAD, STORE], [STORE, LOAD], [STORE, STORE], [ADD, STORE], [STORE, ADD], [ADD, LOAD]] {
        always(&pairs(kinds), "races with");
    }
    for kinds in [[LOAD, LOAD], [ADD, ADD], [STORE, NOTHING]] {
        always(&pairs(kinds), "passes");
    }
}

#[test]
fn bytes_that_another_wave_of_the_workgroup_has_pushed_out_of_a_cell_race_too() {
    // The last wave's byte is nobody else's; the first one's is.
    let far = MANY - 1;
    let bytes = [(0, 3, 5, LOAD_BYTE, 64), (0, far, 0, STORE_BYTE, 64), (0, far, 32, STORE_BYTE, 65)];
    always(&few(MANY, 4096, &bytes), "races with a read");
    let bytes = [(0, 3, 5, STORE_BYTE, 64), (0, far, 0, LOAD_BYTE, 64), (0, far, 32, LOAD_BYTE, 65)];
    always(&few(MANY, 4096, &bytes), "races with a write");
    let apart = [(0, 3, 5, STORE_BYTE, 67), (0, far, 0, STORE_BYTE, 64), (0, far, 32, STORE_BYTE, 65)];
    always(&few(MANY, 4096, &apart), "passes");
    // A store that an atomic of its own wave follows.
    let atomics = [(0, 3, 5, ADD, 64), (0, far, 0, STORE, 64), (1, far, 0, ADD, 64)];
    always(&few(MANY, 4096, &atomics), "races with an atomic access");
}

#[test]
fn what_a_thread_has_written_too_early_is_unwritten_again() {
    // The last workgroup of what a thread takes at a time reads what the first one of another thread's writes.
    let pairs: Vec<_> = (1..8)
        .flat_map(|part| [(3, part * 32 - 1, 0, LOAD, part * 128), (0, part * 32, 0, STORE, part * 128)])
        .collect();
    always(&few(MANY, 0, &pairs), "uninitialised");
    always(&few(MANY, 4096, &pairs), "races with");
}
