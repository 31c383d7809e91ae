use amdgpu_device::prelude::*;

#[derive(Clone, Copy, KernelArg)]
pub struct Unordered {
    pub rows: u32,
}

#[derive(Clone, Copy, KernelArg)]
#[repr(C, packed)]
pub struct Packed {
    pub rows: u32,
}

#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
pub struct Unnamed(pub u32);

#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
pub struct Empty {}

#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
pub struct Generic<T> {
    pub rows: T,
}

#[derive(Clone, Copy, KernelArg)]
#[repr(u32)]
pub enum Mode {
    Fast,
}

#[derive(Clone, Copy, KernelArg)]
#[repr(C)]
pub struct Text {
    pub name: &'static str,
}

fn main() {}
