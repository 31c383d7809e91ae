//! Runs one kernel of a code object.
fn main() {}
