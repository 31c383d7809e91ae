//! Instructions that do the same in every lane: the traits that say what, and the handlers that loop.

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use super::fetch::{self, Extra};
use super::mode::Mode;
use super::ty::{Ty, TyInfo};
use crate::exec::isa::{self, Exec};
use crate::exec::op::{Dst, Run, Src};
use crate::exec::wave::LANES;
use crate::exec::{Env, Flow, Op, Row, Wave};

/// From up to three values of a lane to one.
pub(crate) trait Lane: 'static {
    type A: Ty;
    type B: Ty;
    type C: Ty;
    type D: Ty;

    /// Most kernels are made of it: worth a function of its own from sources to destination.
    const HOT: bool = false;

    /// The definition, right under every mode.
    fn lane(mode: &Mode, a: V<Self::A>, b: V<Self::B>, c: V<Self::C>) -> V<Self::D>;

    /// Whether [`Lane::saturated`] differs from [`Lane::lane`].
    const SATURATES: bool = false;

    /// The definition with the clamp bit set, for integers.
    #[inline(always)]
    fn saturated(mode: &Mode, a: V<Self::A>, b: V<Self::B>, c: V<Self::C>) -> V<Self::D> {
        Self::lane(mode, a, b, c)
    }

    /// Whether [`Lane::host`] gives the same bits as [`Lane::lane`] under this mode, NaNs apart.
    #[inline(always)]
    fn host_ok(_: &Mode) -> bool {
        false
    }

    /// The host's own arithmetic. A lane whose result is a NaN is computed again by the definition,
    /// since hosts differ in a NaN's sign and payload.
    #[inline(always)]
    fn host(_: V<Self::A>, _: V<Self::B>, _: V<Self::C>) -> V<Self::D> {
        Default::default()
    }
}

/// As [`Lane`], with a bit per lane read (VCC or a scalar), written, or both.
pub(crate) trait MaskLane: 'static {
    type A: Ty;
    type B: Ty;
    type C: Ty;
    type D: Ty;
    /// Reads a mask.
    const IN: bool;
    /// Writes a mask.
    const OUT: bool;

    fn lane(mode: &Mode, a: V<Self::A>, b: V<Self::B>, c: V<Self::C>, bit: bool) -> (V<Self::D>, bool);

    /// Whether [`MaskLane::saturate`] does anything.
    const SATURATES: bool = false;

    /// What the clamp bit makes of a result and its bit, for integers.
    #[inline(always)]
    fn saturate(value: V<Self::D>, _: bool) -> V<Self::D> {
        value
    }

    #[inline(always)]
    fn host_ok(_: &Mode) -> bool {
        false
    }

    /// The host's own arithmetic, where it has the definition's bits, NaNs included.
    #[inline(always)]
    fn host(_: V<Self::A>, _: V<Self::B>, _: V<Self::C>, _: bool) -> (V<Self::D>, bool) {
        Default::default()
    }
}

/// The value of a type.
pub(crate) type V<T> = <T as Ty>::V;

/// The loop over 32 lanes: of sources to results; lane masks come in and out, too.
///
/// # Safety
/// It may use CPU features that [`isa`] found at run time.
type Core = unsafe fn(&Mode, clamp: bool, bits: u32, &[Rows<'_>; 3], &mut Out) -> u32;

/// An instruction's loop, and what its operands are.
pub(crate) struct Lanes {
    core: Core,
    src: [TyInfo; 3],
    dst: TyInfo,
    mask_in: bool,
    mask_out: bool,
}

/// What an instruction is, apart from one encoding's operands.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    /// Without modifiers.
    pub plain: Run,
    /// With any of them.
    pub general: Run,
    /// Lane by lane by the definition: the oracle of the tests.
    #[cfg(test)]
    pub reference: Run,
    pub src: [TyInfo; 3],
    pub dst: TyInfo,
    /// The last source is the destination.
    pub accumulates: bool,
    /// Reads a lane mask.
    pub mask_in: bool,
    /// Writes a lane mask.
    pub mask_out: bool,
    /// 16-bit results leave the other half alone on gfx9, too.
    pub keeps_half: bool,
}

impl Entry {
    pub fn lane<L: Lane>() -> Entry {
        let entry = Self::of::<Values<L>>();
        if L::HOT { Entry { plain: isa::select::<Hot<L>>(), ..entry } } else { entry }
    }

    pub fn mask<M: MaskLane>() -> Entry {
        Self::of::<Masks<M>>()
    }

    fn of<L: Loops>() -> Entry {
        #[cfg(target_arch = "x86_64")]
        if isa::ONLY_V3 || isa::is_v3() {
            return Self::with::<L, V3<L>>();
        }
        Self::with::<L, Base<L>>()
    }

    /// With the loop as `C` has it.
    fn with<L: Loops, C: Compiled>() -> Entry {
        Entry {
            plain: isa::select::<Plain<C>>(),
            general: isa::select::<General<C>>(),
            #[cfg(test)]
            reference: isa::select::<General<Reference<L>>>(),
            src: L::SRC,
            dst: L::DST,
            accumulates: false,
            mask_in: L::IN,
            mask_out: L::OUT,
            keeps_half: false,
        }
    }

    /// The last source is the destination (`v_fmac_f32`).
    pub fn accumulating(self) -> Entry {
        Entry { accumulates: true, ..self }
    }

    pub fn keeping_half(self) -> Entry {
        Entry { keeps_half: true, ..self }
    }
}

/// An operand of half a wave: its low and its high dwords.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    pub(super) lo: &'a Row,
    pub(super) hi: &'a Row,
}

impl<'a> Rows<'a> {
    /// The rows of a source without modifiers, in place where it is a vector register.
    #[inline(always)]
    pub(super) fn of(wave: &'a Wave, src: Src, bits: u32, half: usize, temps: &'a mut Temps) -> Rows<'a> {
        let [lo, hi] = temps;
        if bits == 0 {
            return Rows { lo: &Row::ZERO, hi: &Row::ZERO };
        }
        let lo = row(wave, src, half, lo);
        let hi = if bits == 64 { row(wave, src.dword(1), half, hi) } else { lo };
        Rows { lo, hi }
    }

    #[inline(always)]
    fn get<T: Ty>(self, lane: usize) -> T::V {
        T::get(self.lo.0[lane], self.hi.0[lane])
    }
}

#[inline(always)]
fn row<'a>(wave: &'a Wave, src: Src, half: usize, temp: &'a mut MaybeUninit<Row>) -> &'a Row {
    match src {
        Src::Vgpr(register) => wave.vgpr(register, half),
        Src::Sgpr(slot) => temp.write(Row::splat(wave.sgpr[usize::from(slot)])),
        Src::Const([value, _]) => temp.write(Row::splat(value)),
    }
}

/// Room for a source that is not in place.
pub(super) type Temps = [MaybeUninit<Row>; 2];

const fn temps() -> Temps {
    [const { MaybeUninit::uninit() }; 2]
}

/// 32 results.
pub(crate) struct Out {
    pub lo: Row,
    pub hi: Row,
}

impl Out {
    pub(super) const ZERO: Out = Out { lo: Row::ZERO, hi: Row::ZERO };

    #[inline(always)]
    fn put<T: Ty>(&mut self, lane: usize, value: T::V) {
        let (lo, hi) = T::put(value);
        self.lo.0[lane] = lo;
        if T::INFO.bits == 64 {
            self.hi.0[lane] = hi;
        }
    }

    #[inline(always)]
    fn get<T: Ty>(&self, lane: usize) -> T::V {
        T::get(self.lo.0[lane], self.hi.0[lane])
    }
}

/// What [`Lane`] and [`MaskLane`] have in common: loops over 32 lanes.
trait Loops: 'static {
    const SRC: [TyInfo; 3];
    const DST: TyInfo;
    const IN: bool;
    const OUT: bool;
    /// With the host's arithmetic where that is right, or (`HOST` false) by the definition alone.
    fn run<const HOST: bool>(m: &Mode, clamp: bool, bits: u32, rows: &[Rows<'_>; 3], out: &mut Out) -> u32;
}

struct Values<L>(PhantomData<L>);

impl<L: Lane> Loops for Values<L> {
    const SRC: [TyInfo; 3] = [L::A::INFO, L::B::INFO, L::C::INFO];
    const DST: TyInfo = L::D::INFO;
    const IN: bool = false;
    const OUT: bool = false;

    #[inline(always)]
    fn run<const HOST: bool>(m: &Mode, clamp: bool, _: u32, [a, b, c]: &[Rows<'_>; 3], out: &mut Out) -> u32 {
        if HOST && L::host_ok(m) {
            let mut nan = 0;
            for i in 0..LANES {
                let value = L::host(a.get::<L::A>(i), b.get::<L::B>(i), c.get::<L::C>(i));
                nan |= u32::from(L::D::is_nan(value));
                out.put::<L::D>(i, value);
            }
            if nan != 0 {
                for i in 0..LANES {
                    if L::D::is_nan(out.get::<L::D>(i)) {
                        let value = L::lane(m, a.get::<L::A>(i), b.get::<L::B>(i), c.get::<L::C>(i));
                        out.put::<L::D>(i, value);
                    }
                }
            }
        } else if L::SATURATES && clamp {
            for i in 0..LANES {
                out.put::<L::D>(i, L::saturated(m, a.get::<L::A>(i), b.get::<L::B>(i), c.get::<L::C>(i)));
            }
        } else {
            for i in 0..LANES {
                out.put::<L::D>(i, L::lane(m, a.get::<L::A>(i), b.get::<L::B>(i), c.get::<L::C>(i)));
            }
        }
        0
    }
}

struct Masks<M>(PhantomData<M>);

impl<M: MaskLane> Loops for Masks<M> {
    const SRC: [TyInfo; 3] = [M::A::INFO, M::B::INFO, M::C::INFO];
    const DST: TyInfo = M::D::INFO;
    const IN: bool = M::IN;
    const OUT: bool = M::OUT;

    #[inline(always)]
    fn run<const HOST: bool>(
        m: &Mode,
        clamp: bool,
        bits: u32,
        [a, b, c]: &[Rows<'_>; 3],
        out: &mut Out,
    ) -> u32 {
        let mut mask = 0;
        if HOST && M::host_ok(m) {
            for i in 0..LANES {
                let bit = bits >> i & 1 != 0;
                let (value, bit) = M::host(a.get::<M::A>(i), b.get::<M::B>(i), c.get::<M::C>(i), bit);
                out.put::<M::D>(i, value);
                mask |= u32::from(bit) << i;
            }
        } else {
            for i in 0..LANES {
                let bit = bits >> i & 1 != 0;
                let (value, bit) = M::lane(m, a.get::<M::A>(i), b.get::<M::B>(i), c.get::<M::C>(i), bit);
                out.put::<M::D>(i, value);
                mask |= u32::from(bit) << i;
            }
        }
        if M::SATURATES && clamp {
            for i in 0..LANES {
                out.put::<M::D>(i, M::saturate(out.get::<M::D>(i), mask >> i & 1 != 0));
            }
        }
        mask
    }
}

type Handler = unsafe fn(&mut Wave, &Env<'_>, &Op, &Lanes) -> Flow;

/// A loop compiled for a level, or the definition's, and what surrounds it at that level.
trait Compiled: 'static {
    const LANES: Lanes;
    const PLAIN: Handler = plain_base;
    const MODIFIED: Handler = modified_base;
}

const fn lanes<L: Loops>(core: Core) -> Lanes {
    Lanes { core, src: L::SRC, dst: L::DST, mask_in: L::IN, mask_out: L::OUT }
}

struct Base<L>(PhantomData<L>);
impl<L: Loops> Compiled for Base<L> {
    const LANES: Lanes = lanes::<L>(base::<L>);
}
fn base<L: Loops>(m: &Mode, clamp: bool, bits: u32, rows: &[Rows<'_>; 3], out: &mut Out) -> u32 {
    L::run::<true>(m, clamp, bits, rows, out)
}

#[cfg(target_arch = "x86_64")]
struct V3<L>(PhantomData<L>);
#[cfg(target_arch = "x86_64")]
impl<L: Loops> Compiled for V3<L> {
    const LANES: Lanes = lanes::<L>(v3::<L>);
    const PLAIN: Handler = plain_v3;
    const MODIFIED: Handler = modified_v3;
}
/// The loops over the lanes, compiled for the instructions of a newer CPU.
///
/// # Safety
/// The CPU has them.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
fn v3<L: Loops>(m: &Mode, clamp: bool, bits: u32, rows: &[Rows<'_>; 3], out: &mut Out) -> u32 {
    L::run::<true>(m, clamp, bits, rows, out)
}

#[cfg(test)]
struct Reference<L>(PhantomData<L>);
#[cfg(test)]
impl<L: Loops> Compiled for Reference<L> {
    const LANES: Lanes = lanes::<L>(definition::<L>);
}
#[cfg(test)]
fn definition<L: Loops>(m: &Mode, clamp: bool, bits: u32, rows: &[Rows<'_>; 3], out: &mut Out) -> u32 {
    L::run::<false>(m, clamp, bits, rows, out)
}

/// The loop of one instruction, inlined or called. A trait, since a closure that is not inlined is compiled for
/// the baseline.
trait Run32 {
    fn run(&self, m: &Mode, bits: u32, rows: &[Rows<'_>; 3], out: &mut Out) -> u32;
}

impl<L: Lane> Run32 for Values<L> {
    #[inline(always)]
    fn run(&self, m: &Mode, bits: u32, rows: &[Rows<'_>; 3], out: &mut Out) -> u32 {
        <Self as Loops>::run::<true>(m, false, bits, rows, out)
    }
}

impl Run32 for &Lanes {
    #[inline(always)]
    fn run(&self, m: &Mode, bits: u32, rows: &[Rows<'_>; 3], out: &mut Out) -> u32 {
        // SAFETY: `Entry::of` chose the loop for this machine.
        unsafe { (self.core)(m, false, bits, rows, out) }
    }
}

/// Executes an instruction without modifiers.
#[inline(always)]
fn plain(wave: &mut Wave, env: &Env<'_>, op: &Op, lanes: &Lanes, run: impl Run32) -> Flow {
    let mode = Mode::new(wave.mode, env.perturb);
    let mut masks = [0; 2];
    for half in 0..wave.halves() {
        let exec = wave.exec(half);
        if exec == 0 {
            continue;
        }
        let bits = if lanes.mask_in { wave.mask(op.src[3], half) } else { 0 };
        let mut out = Out::ZERO;
        let (mut a, mut b, mut c) = (temps(), temps(), temps());
        let rows = [
            Rows::of(wave, op.src[0], lanes.src[0].bits, half, &mut a),
            Rows::of(wave, op.src[1], lanes.src[1].bits, half, &mut b),
            Rows::of(wave, op.src[2], lanes.src[2].bits, half, &mut c),
        ];
        masks[half] = run.run(&mode, bits, &rows, &mut out) & exec;
        let Dst::Vgpr(register) = op.dst[0] else { continue };
        if lanes.dst.bits == 16 && !Extra(op.imm).zeroes_half() {
            let old = wave.vgpr(register, half);
            for i in 0..LANES {
                out.lo.0[i] = out.lo.0[i] & 0xffff | old.0[i] & 0xffff_0000;
            }
        }
        wave.write_masked(register, half, exec, &out.lo);
        if lanes.dst.bits == 64 {
            wave.write_masked(register + 1, half, exec, &out.hi);
        }
    }
    if lanes.mask_out {
        fetch::write_mask(wave, op, masks);
    }
    Flow::Next
}

/// Computes half a wave; returns the lanes that are written, and the lane mask.
#[inline(always)]
fn modified_half(wave: &Wave, op: &Op, lanes: &Lanes, mode: &Mode, half: usize, out: &mut Out) -> (u32, u32) {
    let mut written = wave.exec(half);
    let (mut a, mut b, mut c) = (temps(), temps(), temps());
    let rows = [
        fetch::source(wave, op, (0, half), lanes.src[0], mode, &mut written, &mut a),
        fetch::source(wave, op, (1, half), lanes.src[1], mode, &mut written, &mut b),
        fetch::source(wave, op, (2, half), lanes.src[2], mode, &mut written, &mut c),
    ];
    let bits = if lanes.mask_in { wave.mask(op.src[3], half) } else { 0 };
    // SAFETY: `Entry::of` chose the loop for this machine.
    let mask = unsafe { (lanes.core)(mode, op.mods.clamp, bits, &rows, out) };
    (written, mask & written)
}

/// Executes an instruction with modifiers.
#[inline(always)]
fn modified(wave: &mut Wave, env: &Env<'_>, op: &Op, lanes: &Lanes) -> Flow {
    let mode = Mode::new(wave.mode, env.perturb);
    // DPP may read the other half, so nothing is written before both are computed.
    let (mut first, mut second) = (Out::ZERO, Out::ZERO);
    let (written, mask) = modified_half(wave, op, lanes, &mode, 0, &mut first);
    let mut masks = [mask, 0];
    if wave.halves() == 2 {
        let (written, mask) = modified_half(wave, op, lanes, &mode, 1, &mut second);
        masks[1] = mask;
        fetch::finish(wave, op, 1, written, lanes.dst, &mode, &mut second);
    }
    fetch::finish(wave, op, 0, written, lanes.dst, &mode, &mut first);
    if lanes.mask_out {
        fetch::write_mask(wave, op, masks);
    }
    Flow::Next
}

fn plain_base(wave: &mut Wave, env: &Env<'_>, op: &Op, lanes: &Lanes) -> Flow {
    plain(wave, env, op, lanes, lanes)
}

fn modified_base(wave: &mut Wave, env: &Env<'_>, op: &Op, lanes: &Lanes) -> Flow {
    modified(wave, env, op, lanes)
}

/// [`plain`], compiled for the instructions of a newer CPU.
///
/// # Safety
/// The CPU has them.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
fn plain_v3(wave: &mut Wave, env: &Env<'_>, op: &Op, lanes: &Lanes) -> Flow {
    plain(wave, env, op, lanes, lanes)
}

/// [`modified`], compiled for the instructions of a newer CPU.
///
/// # Safety
/// The CPU has them.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
fn modified_v3(wave: &mut Wave, env: &Env<'_>, op: &Op, lanes: &Lanes) -> Flow {
    modified(wave, env, op, lanes)
}

/// An instruction that most kernels are made of, without modifiers, in one piece.
struct Hot<L>(PhantomData<L>);

impl<L: Lane> Exec for Hot<L> {
    #[inline(always)]
    fn exec(wave: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow {
        // The loop is inlined: nothing calls that of these.
        plain(wave, env, op, &lanes::<Values<L>>(|_, _, _, _, _| 0), Values::<L>(PhantomData))
    }
}

/// An instruction without modifiers.
struct Plain<C>(PhantomData<C>);

impl<C: Compiled> Exec for Plain<C> {
    #[inline(always)]
    fn exec(wave: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow {
        // SAFETY: `Entry::of` chose `C` for this machine.
        unsafe { (C::PLAIN)(wave, env, op, const { &C::LANES }) }
    }
}

/// An instruction with modifiers, DPP or SDWA.
struct General<C>(PhantomData<C>);

impl<C: Compiled> Exec for General<C> {
    #[inline(always)]
    fn exec(wave: &mut Wave, env: &mut Env<'_>, op: &Op) -> Flow {
        // SAFETY: `Entry::of` chose `C` for this machine.
        unsafe { (C::MODIFIED)(wave, env, op, const { &C::LANES }) }
    }
}

/// An [`Entry`] from a closure over one to three typed operands:
/// `lane!(|a: U32, b: U32| -> U32 { … })`. Behind it, `clamp { … }` is the saturating form. With `m;` in
/// front it sees the [`Mode`], with `hot` it is [`Lane::HOT`], and `host if { … } { … }` behind is the host's arithmetic and when it is right.
macro_rules! lane {
    (hot |$a:ident: $A:ty| -> $D:ty $body:block) => {
        lane!(@ _m, $a: $A, _b: $crate::exec::valu::ty::Nil, _c: $crate::exec::valu::ty::Nil, $D, $body
            # const HOT: bool = true;)
    };
    (hot |$a:ident: $A:ty, $b:ident: $B:ty| -> $D:ty $body:block $(clamp $clamp:block)?) => {
        lane!(@ _m, $a: $A, $b: $B, _c: $crate::exec::valu::ty::Nil, $D, $body $(, $clamp)?
            # const HOT: bool = true;)
    };
    (hot |$a:ident: $A:ty, $b:ident: $B:ty, $c:ident: $C:ty| -> $D:ty $body:block) => {
        lane!(@ _m, $a: $A, $b: $B, $c: $C, $D, $body # const HOT: bool = true;)
    };
    (|$a:ident: $A:ty| -> $D:ty $body:block $(clamp $clamp:block)?) => {
        lane!(@ _m, $a: $A, _b: $crate::exec::valu::ty::Nil, _c: $crate::exec::valu::ty::Nil, $D, $body $(, $clamp)?)
    };
    (|$a:ident: $A:ty, $b:ident: $B:ty| -> $D:ty $body:block $(clamp $clamp:block)?) => {
        lane!(@ _m, $a: $A, $b: $B, _c: $crate::exec::valu::ty::Nil, $D, $body $(, $clamp)?)
    };
    (|$a:ident: $A:ty, $b:ident: $B:ty, $c:ident: $C:ty| -> $D:ty $body:block $(clamp $clamp:block)?) => {
        lane!(@ _m, $a: $A, $b: $B, $c: $C, $D, $body $(, $clamp)?)
    };
    ($m:ident; |$a:ident: $A:ty| -> $D:ty $body:block $(host if $ok:block $host:block)?) => {
        lane!(@ $m, $a: $A, _b: $crate::exec::valu::ty::Nil, _c: $crate::exec::valu::ty::Nil, $D, $body
            $(; $ok, $host)?)
    };
    ($m:ident; |$a:ident: $A:ty, $b:ident: $B:ty| -> $D:ty $body:block $(host if $ok:block $host:block)?) => {
        lane!(@ $m, $a: $A, $b: $B, _c: $crate::exec::valu::ty::Nil, $D, $body $(; $ok, $host)?)
    };
    ($m:ident; |$a:ident: $A:ty, $b:ident: $B:ty, $c:ident: $C:ty| -> $D:ty $body:block
     $(host if $ok:block $host:block)?) => {
        lane!(@ $m, $a: $A, $b: $B, $c: $C, $D, $body $(; $ok, $host)?)
    };
    (@ $m:ident, $a:ident: $A:ty, $b:ident: $B:ty, $c:ident: $C:ty, $D:ty, $body:block
     $(, $clamp:block)? $(; $ok:block, $host:block)? $(# $hot:item)?) => {{
        struct Op;
        impl $crate::exec::valu::lane::Lane for Op {
            type A = $A;
            type B = $B;
            type C = $C;
            type D = $D;
            $($hot)?
            #[inline(always)]
            fn lane(
                $m: &$crate::exec::valu::mode::Mode,
                $a: $crate::exec::valu::lane::V<$A>,
                $b: $crate::exec::valu::lane::V<$B>,
                $c: $crate::exec::valu::lane::V<$C>,
            ) -> $crate::exec::valu::lane::V<$D> {
                $body
            }
            $(
                const SATURATES: bool = true;
                #[inline(always)]
                fn saturated(
                    _: &$crate::exec::valu::mode::Mode,
                    $a: $crate::exec::valu::lane::V<$A>,
                    $b: $crate::exec::valu::lane::V<$B>,
                    $c: $crate::exec::valu::lane::V<$C>,
                ) -> $crate::exec::valu::lane::V<$D> {
                    $clamp
                }
            )?
            $(
                #[inline(always)]
                fn host_ok($m: &$crate::exec::valu::mode::Mode) -> bool {
                    $ok
                }
                #[inline(always)]
                fn host(
                    $a: $crate::exec::valu::lane::V<$A>,
                    $b: $crate::exec::valu::lane::V<$B>,
                    $c: $crate::exec::valu::lane::V<$C>,
                ) -> $crate::exec::valu::lane::V<$D> {
                    $host
                }
            )?
        }
        $crate::exec::valu::lane::Entry::lane::<Op>()
    }};
}

pub(crate) use lane;
