//! Modules that are refused, and their neighbours that are not.

use super::*;
use crate::module;

/// A module with one kernel whose body this is, with work-item id `%id` and workgroup id `%group`.
fn kernel(body: &str) -> String {
    format!(
        "define amdgpu_kernel void @k(ptr addrspace(1) %p, i32 %n) #0 !dbg !9 {{\nstart:\n  \
         %id = tail call i32 @llvm.amdgcn.workitem.id.x(), !dbg !10\n  \
         %group = tail call i32 @llvm.amdgcn.workgroup.id.x(), !dbg !10\n{body}}}\n\
         !8 = !DIFile(filename: \"src/lib.rs\", directory: \".\")\n\
         !9 = distinct !DISubprogram(name: \"k\", linkageName: \"_RNvCs_5crate1k\", file: !8, line: 1)\n\
         !10 = !DILocation(line: 10, column: 1, scope: !9)\n\
         !11 = !DILocation(line: 11, column: 1, scope: !9)\n\
         !12 = !DILocation(line: 12, column: 1, scope: !9)\n\
         !20 = !DIFile(filename: \"/amdgpu-device/src/workgroup.rs\", directory: \"\")\n\
         !21 = distinct !DISubprogram(name: \"barrier\", linkageName: \"_RNvNtCs_13amdgpu_device9workgroup7barrier\", file: !20)\n\
         !22 = !DILocation(line: 77, column: 1, scope: !21, inlinedAt: !12)\n\
         !23 = distinct !DISubprogram(name: \"divergent\", linkageName: \"_RINvNtCs_13amdgpu_device9workgroup9divergentuE\", file: !20)\n\
         !24 = distinct !DILocation(line: 90, column: 1, scope: !23, inlinedAt: !12)\n\
         !25 = distinct !DILexicalBlock(scope: !21, file: !20, line: 76)\n\
         !26 = !DILocation(line: 77, column: 1, scope: !25, inlinedAt: !24)\n"
    )
}

fn divergences(text: &str, one_wave: impl Fn(&str) -> bool) -> Vec<Divergence> {
    let functions = module::functions(text);
    super::divergences(text, &functions, &Calls::of(&functions), 32, one_wave)
}

/// Operations and lines that are refused.
fn refused(module: &str) -> Vec<(String, String, String)> {
    let line = |place: Option<String>| place.unwrap_or_default().replace("src/lib.rs:", "");
    divergences(module, |_| false)
        .into_iter()
        .map(|d| (d.operation.replace("llvm.amdgcn.", ""), line(d.place), line(d.branch)))
        .collect()
}

fn found(operation: &str, line: &str, branch: &str) -> (String, String, String) {
    (operation.to_owned(), line.to_owned(), branch.to_owned())
}

const BARRIER: &str = "  tail call void @llvm.amdgcn.s.barrier(), !dbg !22\n";

/// `if condition { body }` on a value `%c`.
fn only_if(condition: &str, body: &str) -> String {
    kernel(&format!(
        "{condition}  br i1 %c, label %then, label %end, !dbg !11\nthen:\n{body}  br label %end\nend:\n  ret void\n"
    ))
}

#[test]
fn a_barrier_that_some_work_items_come_to_is_refused() {
    let by_id = only_if("  %c = icmp ult i32 %id, %n\n", BARRIER);
    assert_eq!(refused(&by_id), [found("s.barrier", "12", "11")]);
    let text = divergences(&by_id, |_| false)[0].to_string();
    assert_eq!(
        text,
        "the barrier at src/lib.rs:12 of kernel `k` (llvm.amdgcn.s.barrier) is not reached by the whole workgroup: \
         the branch at src/lib.rs:11 is not taken alike"
    );
    for uniform in [
        "  %c = icmp ult i32 %group, %n\n",
        "  %v = load i32, ptr addrspace(1) %p\n  %c = icmp ult i32 %v, %n\n",
        "  %c = icmp ult i32 %n, 5\n",
    ] {
        assert_eq!(refused(&only_if(uniform, BARRIER)), [], "{uniform}");
    }
    assert_eq!(divergences(&by_id, |name| name == "k"), [], "a workgroup of one wave");
}

#[test]
fn a_barrier_that_was_copied_to_both_sides_is_refused_twice() {
    let module = kernel(
        "  %c = icmp ult i32 %id, %n\n  br i1 %c, label %one, label %other, !dbg !11\n\
         one:\n  tail call void @llvm.amdgcn.s.barrier(), !dbg !22\n  br label %end\n\
         other:\n  tail call void @llvm.amdgcn.s.barrier(), !dbg !10\n  br label %end\nend:\n  ret void\n",
    );
    assert_eq!(refused(&module), [found("s.barrier", "10", "11"), found("s.barrier", "12", "11")]);
}

#[test]
fn a_branch_that_each_wave_takes_as_a_whole_is_for_wave_operations_alone() {
    let shuffle = "  %s = tail call i32 @llvm.amdgcn.ds.bpermute(i32 %id, i32 %n), !dbg !12\n";
    let first = "  %w = tail call i32 @llvm.amdgcn.readfirstlane.i32(i32 %id)\n  %c = icmp eq i32 %w, 0\n";
    assert_eq!(refused(&only_if(first, shuffle)), []);
    assert_eq!(refused(&only_if(first, BARRIER)), [found("s.barrier", "12", "11")]);
    let ballot = "  %b = icmp ult i32 %id, %n\n  %w = tail call i32 @llvm.amdgcn.ballot.i32(i1 %b)\n  %c = icmp ne i32 %w, 0\n";
    assert_eq!(refused(&only_if(ballot, shuffle)), []);
    assert_eq!(refused(&only_if(ballot, BARRIER)), [found("s.barrier", "12", "11")]);
    let lane = "  %c = icmp ult i32 %id, %n\n";
    assert_eq!(refused(&only_if(lane, shuffle)), [found("ds.bpermute", "12", "11")]);
    let first_of_some = "  %s = tail call i32 @llvm.amdgcn.readfirstlane.i32(i32 %id)\n";
    assert_eq!(refused(&only_if(lane, first_of_some)), [], "any lanes may do it");
}

#[test]
fn on_nvidia_gpus_too() {
    let shuffle =
        "  %s = tail call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 -1, i32 %n, i32 0, i32 31), !dbg !12\n";
    let of = |condition: &str, operation| {
        let module = only_if(condition, operation).replace("amdgcn.workitem.id", "nvvm.read.ptx.sreg.tid");
        refused(&module.replace("amdgcn.workgroup.id", "nvvm.read.ptx.sreg.ctaid"))
    };
    let of_a_wave = [
        "  %w = lshr i32 %id, 5\n  %c = icmp eq i32 %w, %n\n",
        "  %w = tail call i32 asm \"mov.b32 $0, $1; // uniform in the wave\", \"=r,r\"(i32 %id)\n  %c = icmp eq i32 %w, %n\n",
    ];
    for condition in of_a_wave {
        assert_eq!(of(condition, shuffle), [], "{condition}");
        assert_eq!(of(condition, BARRIER), [found("s.barrier", "12", "11")], "{condition}");
    }
    let bytes =
        "  %w = tail call i32 @llvm.nvvm.read.ptx.sreg.dynamic_smem_size()\n  %c = icmp eq i32 %w, %n\n";
    assert_eq!(of(bytes, BARRIER), []);
    let lane = "  %c = icmp ult i32 %id, %n\n";
    assert_eq!(of(lane, shuffle), [found("llvm.nvvm.shfl.sync.idx.i32", "12", "11")]);
    let more = "  %y = tail call i32 @llvm.nvvm.read.ptx.sreg.tid.y()\n  %w = lshr i32 %id, 5\n  %c = icmp eq i32 %w, %y\n";
    assert_eq!(of(more, shuffle), [found("llvm.nvvm.shfl.sync.idx.i32", "12", "11")]);
}

#[test]
fn parts_of_an_id_are_the_same_within_a_wave() {
    let shuffle = "  %s = tail call i32 @llvm.amdgcn.ds.bpermute(i32 %id, i32 %n), !dbg !12\n";
    let whole = [
        "  %c = icmp ult i32 %id, 64\n",
        "  %c = icmp samesign ugt i32 %id, 31\n",
        "  %w = lshr i32 %id, 5\n  %c = icmp eq i32 %w, %n\n",
        "  %l = zext nneg i32 %id to i64\n  %w = lshr i64 %l, 6\n  %c = icmp eq i64 %w, 1\n",
        "  %w = and i32 %id, 992\n  %c = icmp eq i32 %w, %n\n",
    ];
    for condition in whole {
        assert_eq!(refused(&only_if(condition, shuffle)), [], "{condition}");
        assert_eq!(refused(&only_if(condition, BARRIER)).len(), 1, "{condition}");
        let planes = format!("  %y = tail call i32 @llvm.amdgcn.workitem.id.y()\n{condition}");
        assert_eq!(refused(&only_if(&planes, shuffle)).len(), 1, "rows may end within a wave: {condition}");
    }
    let parts = [
        "  %c = icmp ult i32 %id, 48\n",
        "  %c = icmp ugt i32 %id, 32\n",
        "  %c = icmp eq i32 %id, 32\n",
        "  %w = lshr i32 %id, 4\n  %c = icmp eq i32 %w, 1\n",
        "  %w = and i32 %id, 31\n  %c = icmp eq i32 %w, 0\n",
        "  %x = add i32 %id, %n\n  %c = icmp ult i32 %x, 64\n",
    ];
    for condition in parts {
        assert_eq!(refused(&only_if(condition, shuffle)).len(), 1, "{condition}");
    }
}

#[test]
fn assembly_is_read() {
    let lane = "  %c = icmp ult i32 %id, %n\n";
    let barrier = "  call void asm sideeffect \"s_barrier\", \"~{memory}\"(), !dbg !12\n";
    let dpp = "  %s = call i32 asm \"v_mov_b32_dpp $0, $1 row_shr:1\", \"=v,v\"(i32 %id), !dbg !12\n";
    for (body, name) in [(barrier, "inline assembly"), (dpp, "inline assembly")] {
        assert_eq!(refused(&only_if(lane, body)), [found(name, "12", "11")]);
    }
    let same = "  %w = call i32 asm \"\", \"=s,0\"(i32 %group)\n  %c = icmp eq i32 %w, 0\n";
    assert_eq!(refused(&only_if(same, barrier)), []);
    let other = "  %w = call i32 asm \"\", \"=v,0\"(i32 %id)\n  %c = icmp eq i32 %w, 0\n";
    assert_eq!(refused(&only_if(other, barrier)), [found("inline assembly", "12", "11")]);
}

#[test]
fn loops_whose_turns_differ_are_refused() {
    let turns = |bound: &str| {
        kernel(&format!(
            "  br label %head\nhead:\n  %i = phi i32 [ 0, %start ], [ %next, %head ]\n{BARRIER}  \
             %next = add i32 %i, 1\n  %c = icmp ult i32 %next, {bound}\n  \
             br i1 %c, label %head, label %end, !dbg !11\nend:\n  ret void\n"
        ))
    };
    assert_eq!(refused(&turns("%n")), []);
    assert_eq!(refused(&turns("%id")), [found("s.barrier", "12", "11")]);
}

#[test]
fn what_leaves_a_loop_at_different_turns_differs() {
    let after = |bound: &str| {
        kernel(&format!(
            "  br label %head\nhead:\n  %i = phi i32 [ 0, %start ], [ %next, %head ]\n  %next = add i32 %i, 1\n  \
             %c = icmp ult i32 %next, {bound}\n  br i1 %c, label %head, label %after, !dbg !10\n\
             after:\n  %d = icmp ugt i32 %next, 7\n  br i1 %d, label %then, label %end, !dbg !11\n\
             then:\n{BARRIER}  br label %end\nend:\n  ret void\n"
        ))
    };
    assert_eq!(refused(&after("%n")), []);
    assert_eq!(refused(&after("%id")), [found("s.barrier", "12", "11")]);
}

#[test]
fn a_value_chosen_by_a_branch_differs() {
    let chosen = |condition: &str| {
        kernel(&format!(
            "  %c = icmp ult i32 {condition}, 3\n  br i1 %c, label %one, label %other, !dbg !10\none:\n  br label %meet\n\
             other:\n  br label %meet\nmeet:\n  %x = phi i32 [ 1, %one ], [ 2, %other ]\n  %d = icmp eq i32 %x, 1\n  \
             switch i32 %x, label %end [\n    i32 1, label %then\n    i32 2, label %end\n  ], !dbg !11\n\
             then:\n{BARRIER}  br label %end\nend:\n  ret void\n"
        ))
    };
    assert_eq!(refused(&chosen("%n")), []);
    assert_eq!(refused(&chosen("%id")), [found("s.barrier", "12", "11")]);
}

#[test]
fn a_trap_ends_all_and_a_return_some() {
    let ends = |with: &str| {
        kernel(&format!(
            "  %c = icmp ult i32 %id, %n\n  br i1 %c, label %go, label %stop, !dbg !11\nstop:\n  {with}\n\
             go:\n{BARRIER}  ret void\n"
        ))
    };
    assert_eq!(refused(&ends("unreachable")), []);
    assert_eq!(refused(&ends("ret void")), [found("s.barrier", "12", "11")]);
}

#[test]
fn functions_are_followed() {
    let function = |inside: &str| format!("define internal i32 @f(i32 %x) {{\nstart:\n{inside}}}\n");
    let waits = function(&format!("{BARRIER}  ret i32 %x\n"));
    let call = "  %v = tail call i32 @f(i32 %id), !dbg !12\n";
    let module = only_if("  %c = icmp ult i32 %id, %n\n", call) + &waits;
    assert_eq!(refused(&module), [found("f", "12", "11")]);
    assert_eq!(refused(&(only_if("  %c = icmp ult i32 %group, %n\n", call) + &waits)), []);
    // What it returns, and what it is given.
    let same = function("  ret i32 %x\n");
    let given = |value: &str| format!("  %v = tail call i32 @f(i32 {value})\n  %c = icmp ult i32 %v, 3\n");
    assert_eq!(refused(&(only_if(&given("%group"), BARRIER) + &same)), []);
    assert_eq!(refused(&(only_if(&given("%id"), BARRIER) + &same)), [found("s.barrier", "12", "11")]);
    let inner = "  %c = icmp eq i32 %x, 0\n  br i1 %c, label %then, label %end, !dbg !10\nthen:\n";
    let inner = function(&format!("{inner}{BARRIER}  br label %end\nend:\n  ret i32 0\n"));
    let calls = |value: &str| kernel(&format!("  %v = tail call i32 @f(i32 {value})\n  ret void\n"));
    assert_eq!(refused(&(calls("%group") + &inner)), []);
    assert_eq!(refused(&(calls("%id") + &inner)), [found("s.barrier", "12", "10")]);
}

#[test]
fn who_means_it_may() {
    let meant = BARRIER.replace("!22", "!26");
    assert_eq!(refused(&only_if("  %c = icmp ult i32 %id, %n\n", &meant)), []);
}

#[test]
fn memory_and_atomics() {
    let loaded = |load: &str| only_if(&format!("  %v = {load}\n  %c = icmp eq i32 %v, 0\n"), BARRIER);
    let from_id = "load i32, ptr addrspace(3) %q, align 4";
    let lds = format!("  %q = getelementptr i32, ptr addrspace(3) @lds, i32 %id\n  %v = {from_id}\n");
    assert_eq!(refused(&loaded("load i32, ptr addrspace(3) @lds, align 4")), []);
    assert_eq!(refused(&only_if(&format!("{lds}  %c = icmp eq i32 %v, 0\n"), BARRIER)).len(), 1);
    for each_its_own in [
        "atomicrmw add ptr addrspace(1) %p, i32 1 monotonic",
        "load atomic i32, ptr addrspace(1) %p monotonic, align 4",
        "load i32, ptr addrspace(5) @stack",
    ] {
        assert_eq!(refused(&loaded(each_its_own)).len(), 1, "{each_its_own}");
    }
}

#[test]
fn what_a_workgroup_agrees_on_may_decide_about_barriers() {
    let agreed = |text: &str| {
        only_if(
            &format!("  %u = call i32 asm \"{text}\", \"=s,0\"(i32 %id)\n  %c = icmp ult i32 %u, %n\n"),
            BARRIER,
        )
    };
    assert_eq!(refused(&agreed("; uniform in the workgroup")), []);
    assert_eq!(refused(&agreed("s_nop 0")), [found("s.barrier", "12", "11")]);
}
