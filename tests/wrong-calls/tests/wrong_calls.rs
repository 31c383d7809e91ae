//! What the compiler says about wrong calls of wrappers.

#[test]
fn wrong_calls_do_not_compile() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("calls/*.rs");
}
