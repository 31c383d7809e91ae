//! Exact AMDGPU emulator.
