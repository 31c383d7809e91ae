//! What a wrong call of a wrapper is told by the compiler.

#[test]
fn wrong_calls_do_not_compile() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/*.rs");
}
