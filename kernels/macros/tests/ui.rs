//! What a user sees who holds `#[amdgpu_kernel]` wrong: each file in `ui/` must fail with the text beside it.

#[test]
fn wrong_uses_are_explained() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/ui/pass.rs");
    cases.compile_fail("tests/ui/fail/*.rs");
}
