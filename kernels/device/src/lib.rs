//! Device library.
#![no_std]
