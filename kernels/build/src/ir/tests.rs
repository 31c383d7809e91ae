use super::*;
use crate::module;
use crate::signature::{Arg, ArgType, LaunchHints, LayoutOf};

fn kernel() -> Signature {
    let pointer = |name: &str, layout| {
        let ty = ArgType::Pointer { mutable: true, pointee: "f32".to_owned() };
        Arg { layout, ..Arg::new(name, ty, 8) }
    };
    let layout = LayoutOf { numel: "n".to_owned(), num_dims: "d".to_owned(), of: vec![] };
    Signature {
        name: "k".to_owned(),
        doc: String::new(),
        file: String::new(),
        line: 1,
        args: vec![pointer("info", Some(layout)), pointer("out", None)],
        launch: LaunchHints {
            workgroup: [64, 1, 1],
            max_workgroup_size: 256,
            items_per_lane: 1,
            lds_bytes: 0,
            items: None,
            rows: None,
            columns: None,
            grid: None,
            lds: None,
        },
    }
}

#[test]
fn functions_to_call_are_not_inlined() {
    let called =
        "@_RINvNtNtCsab_13amdgpu_device11elementwise8outlined5fetchKj1_ECs4_k(i64 %x) unnamed_addr #1";
    let other = "define internal void @_RNvNtCsab_4core5array3mapNtNtCsab_13amdgpu_device11elementwise8outlined() #2 {\n}\n";
    let ir = amdgpu(&format!("define %R {called} {{\n}}\n{other}"), &[]);
    assert!(ir.starts_with(&format!("define internal %R {called} noinline {{\n}}\n{other}")), "{ir}");
}

#[test]
fn functions_that_do_not_call_themselves_say_so() {
    let ir = "define amdgpu_kernel void @k(ptr %f) #0 {\n  call void @a()\n  ret void\n}\n\
              define internal void @a() #1 !dbg !3 {\n  call void @b()\n  ret void\n}\n\
              define internal void @b() {\n  call void @llvm.f()\n  ret void\n}\n\
              define internal void @c() {\n  call void @d()\n  ret void\n}\n\
              define internal void @d() {\n  call void @c()\n  ret void\n}\n\
              define internal void @e(ptr %f) {\n  call void %f(ptr @k)\n  ret void\n}\n\
              define internal void @f() {\n  call void @elsewhere()\n  ret void\n}\n";
    let functions = module::functions(ir);
    assert_eq!(without_recursion(&functions, &Calls::of(&functions)), "a,norecurse\nb,norecurse\n");
}

#[test]
fn pointers_of_kernels_become_global() {
    let ir = "define amdgpu_kernel void @k(ptr noundef %info, ptr noundef %out) unnamed_addr #0 !dbg !9 {\n\
              start:\n  call void @f(ptr noundef %info, ptr %out, i8 %out_1)\n  ret void\n}\n\
              define void @f(ptr %out) {\n";
    let expected = "define amdgpu_kernel void @k(ptr addrspace(1) noalias readonly noundef %info, \
                    ptr addrspace(1) noundef %out) unnamed_addr #0 \
                    \"amdgpu-flat-work-group-size\"=\"1,256\" \"uniform-work-group-size\"=\"true\" !dbg !9 {\n\
                    start:\n  %info.generic = addrspacecast ptr addrspace(1) %info to ptr\n  \
                    %out.generic = addrspacecast ptr addrspace(1) %out to ptr\n  \
                    call void @f(ptr noundef %info.generic, ptr %out.generic, i8 %out_1)\n  ret void\n}\n\
                    define void @f(ptr %out) {\n";
    let out = amdgpu(ir, &[kernel()]);
    assert_eq!(out.split_once(TRAP).map(|(kernels, _)| kernels), Some(expected));
}

#[test]
fn arguments_have_their_names_again() {
    let ir = "define amdgpu_kernel void @k(ptr noundef captures(none) %0, ptr %out) {\n  %1 = alloca i8\n  \
              %info = addrspacecast ptr addrspace(5) %1 to ptr\n  store ptr %0, ptr %info\n  ret void\n}\n";
    let out = amdgpu(ir, &[kernel()]);
    let expected =
        "@k(ptr addrspace(1) noalias readonly noundef captures(none) %info, ptr addrspace(1) %out)";
    assert!(out.contains(expected), "{out}");
    assert!(out.contains("%info.copy = addrspacecast ptr addrspace(5) %1 to ptr\n"), "{out}");
    assert!(out.contains("store ptr %info.generic, ptr %info.copy\n"), "{out}");
}

#[test]
fn functions_that_nothing_defines_are_found_in_ptx() {
    let ptx = ".version 7.0\n.extern .func  (.param .b32 func_retval0) fmodf\n(\n\t.param .b32 fmodf_param_0\n)\n;\n\
               .extern .func abort()\n;\n.extern .func  (.param .b32 func_retval0) vprintf\n(\n)\n;\n\
               .func helper()\n{\n}\n.visible .entry k(\n)\n{\n}\n";
    assert_eq!(undefined(ptx), ["fmodf", "abort"]);
}

#[test]
fn strings_of_ir_are_bytes_again() {
    assert_eq!(unescape("A\\00\\FFb\\5C\\\\n"), [b'A', 0, 255, b'b', b'\\', b'\\', b'n']);
}

#[test]
fn each_place_gets_workgroup_memory_of_its_own() {
    let function = |name: &str, bytes: u32| {
        format!(
            "define internal ptr @{name}() #1 {{\n  %_1 = call ptr @amdgpu_device_workgroup_slot(i64 noundef {bytes}, i64 \
             noundef 4) #5, !dbg !7\n  ret ptr %_1, !dbg !8\n}}\n"
        )
    };
    let declared = "declare ptr @amdgpu_device_workgroup_slot(i64, i64)\n";
    let ir = workgroup_memory([&function("a", 256), &function("b", 0), declared].concat());
    let slots: Vec<&str> =
        ir.lines().filter(|line| line.contains(" = internal addrspace(3) global ")).collect();
    // A variable without a size would be what the launch gives.
    assert!(
        slots[0].ends_with("[256 x i8] poison, align 4") && slots[1].ends_with("[1 x i8] poison, align 4"),
        "{ir}"
    );
    let names: Vec<&str> = slots.iter().filter_map(|line| line.split(' ').next()).collect();
    assert_ne!(names[0], names[1]);
    for name in names {
        assert!(
            ir.contains(&format!("  %_1 = addrspacecast ptr addrspace(3) {name} to ptr, !dbg !7\n")),
            "{ir}"
        );
    }
    assert!(!ir.contains("call ptr"), "{ir}");
    let other = "define void @c() {\n  ret void\n}\n";
    assert_eq!(workgroup_memory(other.to_owned()), other);
}
