//! Whole kernels, as LLVM makes them, on random numbers: bit by bit what the scalar reference interpreter gets.

mod support;

use support::programs::PROGRAMS;

#[test]
fn kernels_equal_the_scalar_interpreter() {
    for program in PROGRAMS {
        let small = program.with_workgroups(4);
        let (fast, slow) = (small.emulated(), small.interpreted());
        assert!(fast.run(true).is_ok() && fast.run(false).is_ok(), "{}", program.name);
        let executed = slow.run();
        assert!(executed.instructions > 0);
        assert_eq!(fast.output(), executed.output, "{}", program.name);
    }
}
