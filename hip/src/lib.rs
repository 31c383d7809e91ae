//! The libamdhip64 interface.
