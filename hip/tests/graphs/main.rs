//! Graphs, from nodes and from captured streams. A capture concerns all threads, so that one test runs at a time.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/kernels.rs"]
#[macro_use]
mod kernels;
#[path = "../common/objects.rs"]
mod objects;

mod captures;
mod launches;
mod nodes;
mod parameters;
mod support;
