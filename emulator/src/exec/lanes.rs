//! Moving data between memory and the lanes of half a wave, for every kind of memory.
//!
//! Each memory unit turns its lanes' addresses into host addresses, checks them, and leaves the rest to this file.

use super::atomic::Operation;
use super::wave::{LANES, Row, Wave};
use super::{Env, Flow, Op};
use crate::fault::{Access, Fault, Space};
use crate::memory::pointer;

/// One address per lane of half a wave.
pub(super) type Addresses = [u64; LANES];

/// The lanes of a mask, in ascending order.
#[inline(always)]
pub(super) fn lanes_of(mut mask: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = mask.trailing_zeros() as usize;
        mask &= mask.wrapping_sub(1);
        (lane < LANES).then_some(lane)
    })
}

/// One access of half a wave.
#[derive(Clone, Copy)]
pub(super) struct Lanes<'a> {
    pub op: &'a Op,
    pub access: Access,
    pub half: usize,
    pub mask: u32,
    pub addresses: &'a Addresses,
    /// Bytes of each lane.
    pub size: u32,
}

/// What a load gets from memory: `N` dwords from `BYTES` bytes.
pub(super) trait Load<const N: usize> {
    const BYTES: u32;
    /// Bits of the destination that stay.
    const KEEP: u32 = 0;
    /// # Safety
    /// `BYTES` bytes can be read at `from`.
    unsafe fn get(from: *const u8) -> [u32; N];
}

/// What a store puts into memory.
pub(super) trait Store<const N: usize> {
    const BYTES: u32;
    /// # Safety
    /// `BYTES` bytes can be written at `into`.
    unsafe fn put(into: *mut u8, value: [u32; N]);
}

macro_rules! loads {
    ($($name:ident: $bytes:literal, keep $keep:literal, |$p:ident| $value:expr;)*) => {$(
        pub(super) struct $name;
        impl Load<1> for $name {
            const BYTES: u32 = $bytes;
            const KEEP: u32 = $keep;
            #[inline(always)]
            unsafe fn get($p: *const u8) -> [u32; 1] {
                // SAFETY: by the caller's promise.
                unsafe { [$value] }
            }
        }
    )*};
}

loads! {
    U8: 1, keep 0, |p| u32::from(p.read());
    I8: 1, keep 0, |p| p.cast::<i8>().read() as u32;
    U16: 2, keep 0, |p| u32::from(p.cast::<u16>().read_unaligned());
    I16: 2, keep 0, |p| p.cast::<i16>().read_unaligned() as u32;
    D16U8: 1, keep 0xffff_0000, |p| u32::from(p.read());
    D16I8: 1, keep 0xffff_0000, |p| u32::from(p.cast::<i8>().read() as u16);
    D16: 2, keep 0xffff_0000, |p| u32::from(p.cast::<u16>().read_unaligned());
    D16HiU8: 1, keep 0xffff, |p| u32::from(p.read()) << 16;
    D16HiI8: 1, keep 0xffff, |p| u32::from(p.cast::<i8>().read() as u16) << 16;
    D16Hi: 2, keep 0xffff, |p| u32::from(p.cast::<u16>().read_unaligned()) << 16;
}

/// `N` dwords.
pub(super) struct Dwords<const N: usize>;

impl<const N: usize> Load<N> for Dwords<N> {
    const BYTES: u32 = 4 * N as u32;
    #[inline(always)]
    unsafe fn get(from: *const u8) -> [u32; N] {
        // SAFETY: by the caller's promise.
        unsafe { from.cast::<[u32; N]>().read_unaligned() }
    }
}

impl<const N: usize> Store<N> for Dwords<N> {
    const BYTES: u32 = 4 * N as u32;
    #[inline(always)]
    unsafe fn put(into: *mut u8, value: [u32; N]) {
        // SAFETY: by the caller's promise.
        unsafe { into.cast::<[u32; N]>().write_unaligned(value) }
    }
}

/// A byte of a register, from bit `SHIFT` on.
pub(super) struct Byte<const SHIFT: u32>;
impl<const SHIFT: u32> Store<1> for Byte<SHIFT> {
    const BYTES: u32 = 1;
    #[inline(always)]
    unsafe fn put(into: *mut u8, [value]: [u32; 1]) {
        // SAFETY: by the caller's promise.
        unsafe { into.write((value >> SHIFT) as u8) }
    }
}

/// A half of a register, from bit `SHIFT` on.
pub(super) struct Short<const SHIFT: u32>;
impl<const SHIFT: u32> Store<1> for Short<SHIFT> {
    const BYTES: u32 = 2;
    #[inline(always)]
    unsafe fn put(into: *mut u8, [value]: [u32; 1]) {
        // SAFETY: by the caller's promise.
        unsafe { into.cast::<u16>().write_unaligned((value >> SHIFT) as u16) }
    }
}

/// Whether every lane's access directly follows the one before it.
#[inline(always)]
fn is_contiguous(addresses: &Addresses, bytes: u32) -> bool {
    let mut difference = 0;
    for lane in 0..LANES {
        difference |= addresses[lane] ^ addresses[0].wrapping_add(lane as u64 * u64::from(bytes));
    }
    difference == 0
}

/// Loads into `N` registers from `register` on, in the lanes of `mask`.
///
/// # Safety
/// `L::BYTES` bytes can be read at the address of every lane of `mask`.
#[inline(always)]
pub(super) unsafe fn load<L: Load<N>, const N: usize>(
    w: &mut Wave,
    register: u16,
    half: usize,
    mask: u32,
    addresses: &Addresses,
) {
    if mask == u32::MAX && L::KEEP == 0 {
        if L::BYTES == 4 * N as u32 && is_contiguous(addresses, L::BYTES) {
            let from = pointer(addresses[0]).cast_const().cast::<[[u32; N]; LANES]>();
            // SAFETY: the lanes' ranges, all readable, make up this one.
            let values = unsafe { from.read_unaligned() };
            for dword in 0..N {
                let row = w.vgpr_mut(register + dword as u16, half);
                for lane in 0..LANES {
                    row.0[lane] = values[lane][dword];
                }
            }
            return;
        }
        for lane in 0..LANES {
            // SAFETY: by the caller's promise.
            let value = unsafe { L::get(pointer(addresses[lane])) };
            for dword in 0..N {
                w.vgpr_mut(register + dword as u16, half).0[lane] = value[dword];
            }
        }
        return;
    }
    for lane in lanes_of(mask) {
        // SAFETY: by the caller's promise.
        let value = unsafe { L::get(pointer(addresses[lane])) };
        for dword in 0..N {
            let cell = &mut w.vgpr_mut(register + dword as u16, half).0[lane];
            *cell = *cell & L::KEEP | value[dword];
        }
    }
}

/// Stores `N` registers from `register` on, in the lanes of `mask`.
///
/// # Safety
/// `S::BYTES` bytes can be written at the address of every lane of `mask`.
#[inline(always)]
pub(super) unsafe fn store<S: Store<N>, const N: usize>(
    w: &Wave,
    register: u16,
    half: usize,
    mask: u32,
    addresses: &Addresses,
) {
    let rows: [&Row; N] = std::array::from_fn(|dword| w.vgpr(register + dword as u16, half));
    if mask == u32::MAX && S::BYTES == 4 * N as u32 && is_contiguous(addresses, S::BYTES) {
        let mut values = [[0; N]; LANES];
        for dword in 0..N {
            for lane in 0..LANES {
                values[lane][dword] = rows[dword].0[lane];
            }
        }
        let into = pointer(addresses[0]).cast::<[[u32; N]; LANES]>();
        // SAFETY: the lanes' ranges, all writable, make up this one.
        unsafe { into.write_unaligned(values) };
        return;
    }
    for lane in lanes_of(mask) {
        let value = std::array::from_fn(|dword| rows[dword].0[lane]);
        // SAFETY: by the caller's promise.
        unsafe { S::put(pointer(addresses[lane]), value) };
    }
}

/// What a load to LDS fetches: bytes, and whether they are sign-extended to the dword that LDS gets.
#[derive(Clone, Copy)]
pub(super) struct Fetch {
    pub bytes: u32,
    pub signed: bool,
}

impl Fetch {
    /// The shape that a mnemonic's end names; wider ones than a dword do not exist.
    pub fn parse(shape: &str) -> Option<Fetch> {
        let (bytes, signed) = match shape {
            "ubyte" | "u8" => (1, false),
            "sbyte" | "i8" => (1, true),
            "ushort" | "u16" => (2, false),
            "sshort" | "i16" => (2, true),
            "dword" | "b32" => (4, false),
            _ => return None,
        };
        Some(Fetch { bytes, signed })
    }

    /// For an instruction's constant.
    pub fn pack(self) -> u64 {
        u64::from(self.bytes) << 40 | u64::from(self.signed) << 43
    }

    pub fn unpack(imm: u64) -> Fetch {
        Fetch { bytes: (imm >> 40) as u32 & 7, signed: imm >> 43 & 1 != 0 }
    }
}

/// Loads a dword per lane of `mask` to LDS, at M0 + the instruction's offset + four times the lane's number.
///
/// # Safety
/// As many bytes as are fetched can be read at the address of every lane of `mask`.
pub(super) unsafe fn load_to_lds(
    w: &Wave,
    env: &mut Env<'_>,
    op: &Op,
    (half, mask): (usize, u32),
    addresses: &Addresses,
) -> Option<Flow> {
    let fetch = Fetch::unpack(op.imm);
    let start = (w.m0() & 0xffff).wrapping_add(op.imm as u32);
    let number = |lane: usize| (half * LANES + lane) as u32;
    let offsets: Addresses = std::array::from_fn(|lane| u64::from(start.wrapping_add(number(lane) * 4)));
    let (access, limit) = (Access::Write, env.lds.len() as u32);
    if let Some(lane) = lanes_of(mask).find(|&lane| offsets[lane] + 4 > u64::from(limit)) {
        let fault = Fault::LdsOutOfBounds { access, offset: offsets[lane], size: 4, limit };
        return Some(env.raise(fault, Some(number(lane))));
    }
    let base = env.lds.as_mut_ptr().expose_provenance() as u64;
    let into = offsets.map(|offset| base + offset);
    if let Some(flow) = env.note_lds(w, Lanes { op, access, half, mask, addresses: &into, size: 4 }) {
        return Some(flow);
    }
    for lane in lanes_of(mask) {
        let mut bytes = [0; 4];
        // SAFETY: by the caller's promise; `fetch.bytes` is at most 4.
        unsafe {
            pointer(addresses[lane]).copy_to_nonoverlapping(bytes.as_mut_ptr(), fetch.bytes as usize);
        }
        let value = u32::from_le_bytes(bytes);
        let value = match (fetch.signed, fetch.bytes) {
            (true, 1) => value as i8 as u32,
            (true, 2) => value as i16 as u32,
            _ => value,
        };
        env.lds[offsets[lane] as usize..][..4].copy_from_slice(&value.to_le_bytes());
    }
    None
}

/// The operands of an atomic: first data register, first destination register if the old value is wanted.
#[derive(Clone, Copy)]
pub(super) struct AtomicOperands {
    pub operation: Operation,
    pub wide: bool,
    /// Data; where there are two operands, the other one follows it unless `compare` says where it is.
    pub data: u16,
    pub compare: u16,
    pub old: Option<u16>,
}

impl AtomicOperands {
    pub fn bytes(self) -> u32 {
        if self.wide { 8 } else { 4 }
    }
}

/// Applies an atomic in the lanes of `mask`, in ascending order.
///
/// # Safety
/// The address of every lane of `mask` is valid and aligned to the access.
pub(super) unsafe fn atomic(w: &mut Wave, at: AtomicOperands, half: usize, mask: u32, addresses: &Addresses) {
    for lane in lanes_of(mask) {
        let read = |register: u16| w.vgpr(register, half).0[lane];
        let read64 = |register| u64::from(read(register)) | u64::from(read(register + 1)) << 32;
        let address = addresses[lane];
        let old = if at.wide {
            // SAFETY: by the caller's promise.
            unsafe { at.operation.global64(address, read64(at.data), read64(at.compare)) }
        } else {
            // SAFETY: by the caller's promise.
            u64::from(unsafe { at.operation.global32(address, read(at.data), read(at.compare)) })
        };
        if let Some(register) = at.old {
            w.vgpr_mut(register, half).0[lane] = old as u32;
            if at.wide {
                w.vgpr_mut(register + 1, half).0[lane] = (old >> 32) as u32;
            }
        }
    }
}

/// Faults unless every lane's address is a multiple of `alignment`.
#[inline(always)]
pub(super) fn check_alignment(
    env: &mut Env<'_>,
    space: Space,
    (half, mask): (usize, u32),
    addresses: &Addresses,
    size: u32,
) -> Option<Flow> {
    let lane = lanes_of(mask).find(|&lane| !addresses[lane].is_multiple_of(u64::from(size)))?;
    let (access, address, alignment) = (Access::Atomic, addresses[lane], size);
    let fault = Fault::Misaligned { access, space, address, size, alignment };
    Some(env.raise(fault, Some((half * LANES + lane) as u32)))
}

/// Faults unless every lane's bytes lie in an allocation.
#[inline(always)]
pub(super) fn check_global(env: &mut Env<'_>, lanes: Lanes<'_>) -> Option<Flow> {
    let Lanes { op, access, half, mask, addresses, size } = lanes;
    if all_within(addresses, mask, env.hit(op), size) {
        return None;
    }
    let lane = lanes_of(mask).find(|&lane| !env.is_valid(op, addresses[lane], size))?;
    Some(env.out_of_bounds(access, addresses[lane], size, Some((half * LANES + lane) as u32)))
}

/// Turns the lanes' addresses that are aliases into the host's. The lanes that are none; they are not checked yet.
#[cold]
pub(super) fn resolve_aliases(env: &Env<'_>, mask: u32, addresses: &mut Addresses, size: u32) -> u32 {
    let mut others = 0;
    for lane in lanes_of(mask) {
        match env.alias(addresses[lane], size) {
            Some(host) => addresses[lane] = host,
            None => others |= 1 << lane,
        }
    }
    others
}

/// Whether `size` bytes at every lane's address lie within a range of `bytes` bytes at `base`.
#[inline(always)]
pub(super) fn all_within(addresses: &Addresses, mask: u32, (base, bytes): (u64, u64), size: u32) -> bool {
    let Some(last) = bytes.checked_sub(u64::from(size)) else { return mask == 0 };
    let mut outside = 0;
    for (lane, address) in addresses.iter().enumerate() {
        outside |= u32::from(address.wrapping_sub(base) > last) << lane;
    }
    outside & mask == 0
}
