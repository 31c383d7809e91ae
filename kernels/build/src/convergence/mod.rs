//! Refuses kernels in which not all participants reach a barrier, or an operation among the lanes of a wave.
//!
//! A convergent operation is right only where control flow is uniform for its scope: a barrier where the whole workgroup
//! takes the same way, a ballot or a shuffle where the whole wave does. Neither rustc's MIR nor the source says so, and
//! both a mistake in the source and a transformation that is right for a CPU break it in silence. So the module is
//! looked at as it is after all optimisation:
//!
//! 1. [`crate::module`] reads functions and instructions; [`ops`] knows what each gives to whom.
//! 2. Values are followed from work-item ids, memory, and operations of the wave to branches, with the control dependence
//!    of phis and with values that leave a loop at different times. The result for each value is the largest group in
//!    which it is surely the same.
//! 3. [`flow`] says what each branch decides: an operation there is refused if its scope is larger than that group.
//!
//! `amdgpu_device::workgroup::divergent` says that it is intended.

use std::collections::{BTreeMap, BTreeSet, HashMap};

mod flow;
mod ops;

use crate::module::{Calls, Function, Inst, Locations, Place};
use flow::{Flow, Influence, Loop};
use ops::Scope;
use ops::Uniform;

/// Part of the mangled name of the function that says that it is meant.
const MEANT: &str = "13amdgpu_device9workgroup9divergent";

/// A convergent operation in control flow that is not the same for all who take part in it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Divergence {
    /// The participants.
    scope: Scope,
    /// The operation, as LLVM calls it.
    pub operation: String,
    /// Where it is, `src/lib.rs:12`, if the module says so.
    pub place: Option<String>,
    /// The same of the branch.
    pub branch: Option<String>,
    /// The kernels that it is in, sorted.
    pub kernels: Vec<String>,
}

impl std::fmt::Display for Divergence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let unknown = || "an unknown line".to_owned();
        let (whole, what) = match self.scope {
            Scope::Workgroup => ("workgroup", "barrier"),
            Scope::Wave => ("wave", "wave operation"),
        };
        let kernels = match self.kernels.as_slice() {
            [] => String::new(),
            [one] => format!(" of kernel `{one}`"),
            [first, others @ ..] => format!(" of kernel `{first}` and {} more", others.len()),
        };
        write!(
            f,
            "the {what} at {}{kernels} ({}) is not reached by the whole {whole}: the branch at {} is not taken alike",
            self.place.clone().unwrap_or_else(unknown),
            self.operation,
            self.branch.clone().unwrap_or_else(unknown),
        )
    }
}

/// Looks at the functions of an optimised module for waves of so many lanes. `one_wave` says of a kernel whether its
/// workgroups have a single wave, in which a barrier is nothing.
pub(crate) fn divergences(
    text: &str,
    functions: &[Function],
    calls: &Calls,
    wave: u32,
    one_wave: impl Fn(&str) -> bool,
) -> Vec<Divergence> {
    let analysis = Analysis::of(functions, calls, wave);
    // Each function's refusals, once however many kernels call it. Most modules have none, and need no locations.
    let refused: BTreeMap<usize, Vec<_>> = analysis
        .states
        .keys()
        .map(|&at| (at, analysis.refused(at)))
        .filter(|(_, some)| !some.is_empty())
        .collect();
    if refused.is_empty() {
        return Vec::new();
    }
    let locations = Locations::of(text);
    let mut found: BTreeMap<Divergence, BTreeSet<String>> = BTreeMap::new();
    for (kernel, function) in functions.iter().enumerate().filter(|(_, function)| function.is_kernel) {
        let ignored = one_wave(function.name).then_some(Scope::Workgroup);
        let within = calls.from(kernel).into_iter().chain([kernel]);
        for &(scope, inst, branch) in within.filter_map(|at| refused.get(&at)).flatten() {
            let places = locations.places(inst.location);
            if Some(scope) == ignored || places.iter().any(|place| place.function.contains(MEANT)) {
                continue;
            }
            let one = Divergence {
                scope,
                operation: inst.callee().unwrap_or("inline assembly").to_owned(),
                place: in_the_crate(&places),
                branch: in_the_crate(&locations.places(branch.location)),
                kernels: Vec::new(),
            };
            found.entry(one).or_default().insert(function.name.to_owned());
        }
    }
    let with_kernels =
        found.into_iter().map(|(one, kernels)| Divergence { kernels: Vec::from_iter(kernels), ..one });
    with_kernels.collect()
}

/// How many barriers the machine code of a module must have: in workgroups of a single wave they are nothing.
pub(crate) fn barriers(functions: &[Function], one_wave: impl Fn(&str) -> bool) -> usize {
    let waits = functions.iter().filter(|function| !(function.is_kernel && one_wave(function.name)));
    waits.flat_map(|f| &f.blocks).flat_map(|b| &b.insts).filter(|inst| ops::waits(inst)).count()
}

/// The innermost place in the crate that is built; else the innermost of all. Files of other crates have absolute names.
fn in_the_crate(places: &[Place]) -> Option<String> {
    let own = |place: &&Place| !place.file.starts_with('/') && !place.function.contains("13amdgpu_device");
    let place = places.iter().find(own).or(places.first())?;
    Some(format!("{}:{}", place.file, place.line))
}

/// Values and control flow of the functions that kernels with convergent operations come to.
struct Analysis<'a> {
    functions: &'a [Function<'a>],
    calls: &'a Calls<'a>,
    /// How many lanes a wave has.
    wave: u32,
    /// For each function, the scopes of the convergent operations in it and in what it calls.
    scopes: Vec<BTreeSet<Scope>>,
    states: BTreeMap<usize, State>,
}

/// What is known of one function.
struct State {
    flow: Flow,
    /// For each block with a branch, what that decides.
    influences: HashMap<usize, Influence>,
    /// For each value the largest group that it is the same in.
    values: Vec<Uniform>,
    /// Which values are the work-item's id, in a kernel that has but one.
    ids: Vec<bool>,
    /// The block that makes each value; none makes a parameter.
    defined: Vec<Option<usize>>,
    /// For each block, what decides between the ways that meet there.
    joins: Vec<Uniform>,
    /// For each loop, by how many its turns are the same in number.
    turns: Vec<Uniform>,
    /// For each block, what decides whether it is come to.
    control: Vec<Uniform>,
    /// What the function returns.
    returns: Uniform,
}

impl<'a> Analysis<'a> {
    fn of(functions: &'a [Function<'a>], calls: &'a Calls<'a>, wave: u32) -> Self {
        let own: Vec<BTreeSet<Scope>> = functions
            .iter()
            .map(|f| f.blocks.iter().flat_map(|b| &b.insts).filter_map(ops::scope).collect())
            .collect();
        let with_called = |at: usize| {
            let scopes = calls.from(at).into_iter().chain([at]).flat_map(|within| &own[within]);
            scopes.copied().collect::<BTreeSet<Scope>>()
        };
        let scopes: Vec<_> = (0..functions.len()).map(with_called).collect();
        let roots = (0..functions.len()).filter(|&at| functions[at].is_kernel && !scopes[at].is_empty());
        let roots: BTreeSet<usize> = roots.collect();
        let within: BTreeSet<usize> =
            roots.iter().flat_map(|&at| calls.from(at)).chain(roots.clone()).collect();
        let states = within.into_iter().map(|at| (at, State::of(&functions[at]))).collect();
        let mut analysis = Analysis { functions, calls, wave, scopes, states };
        analysis.run(roots);
        analysis
    }

    /// Follows values until nothing changes: parameters are what the calls give them.
    fn run(&mut self, kernels: BTreeSet<usize>) {
        let mut seen = kernels.clone();
        let mut todo = kernels;
        let mut callers: HashMap<usize, BTreeSet<usize>> = HashMap::new();
        while let Some(at) = todo.pop_last() {
            let function = &self.functions[at];
            loop {
                let mut changed = false;
                for block in self.states[&at].flow.order().collect::<Vec<_>>() {
                    for inst in &function.blocks[block].insts {
                        let callee = self.calls.callee(inst);
                        let operands = self.states[&at].operands(inst, block);
                        let mut now = match callee {
                            Some(callee) => {
                                callers.entry(callee).or_default().insert(at);
                                if self.pass(callee, inst, at, block) | seen.insert(callee) {
                                    todo.insert(callee);
                                }
                                self.states[&callee].returns
                            }
                            None => self.states[&at].result(inst, operands, self.wave),
                        };
                        let state = self.states.get_mut(&at).expect(ANALYSED);
                        if inst.opcode == "phi" {
                            now = now.max(state.joins[block]);
                        }
                        if let Some(result) = inst.result {
                            changed |= now > state.values[result];
                            state.values[result] = now.max(state.values[result]);
                        }
                        if inst.opcode == "ret" {
                            let now = operands.max(*state.joins.last().unwrap_or(&Uniform::Lane));
                            if now > state.returns {
                                state.returns = now;
                                todo.extend(callers.get(&at).into_iter().flatten());
                            }
                        }
                        if matches!(inst.opcode, "br" | "switch") && state.flow.branches(block) {
                            changed |= state.decide(block, operands);
                        }
                    }
                }
                if !changed {
                    break;
                }
            }
        }
    }

    /// Gives a call's arguments to the function's parameters; whether that was new to it.
    fn pass(&mut self, callee: usize, call: &Inst, from: usize, block: usize) -> bool {
        // Constants are not operands, so the positions are unknown: every parameter is treated like the worst argument.
        let worst = self.states[&from].operands(call, block);
        let mut changed = false;
        let params = self.functions[callee].params;
        for value in &mut self.states.get_mut(&callee).expect(ANALYSED).values[..params] {
            changed |= worst > *value;
            *value = worst.max(*value);
        }
        changed
    }

    /// The operations of a function, and its calls of functions with such operations, that not all participants reach, each
    /// with a branch that decides it.
    fn refused(&self, at: usize) -> Vec<(Scope, &'a Inst<'a>, &'a Inst<'a>)> {
        let (function, state) = (&self.functions[at], &self.states[&at]);
        let mut refused = Vec::new();
        for block in state.flow.order() {
            let flow = state.control[block];
            for inst in &function.blocks[block].insts {
                let called =
                    self.calls.callee(inst).into_iter().flat_map(|callee| &self.scopes[callee]).copied();
                for scope in ops::scope(inst).into_iter().chain(called) {
                    if !scope.is_whole_in(flow) {
                        refused
                            .extend(state.decider(block, flow, function).map(|branch| (scope, inst, branch)));
                    }
                }
            }
        }
        refused
    }
}

/// A function that is called is one of those that kernels come to.
const ANALYSED: &str = "whatever a kernel comes to is analysed";

impl State {
    fn of(function: &Function) -> State {
        let flow = Flow::of(function);
        let blocks = function.blocks.len();
        let mut defined = vec![None; function.values];
        for (block, result) in
            function.blocks.iter().enumerate().flat_map(|(at, b)| b.insts.iter().map(move |i| (at, i.result)))
        {
            result.into_iter().for_each(|value| defined[value] = Some(block));
        }
        let mut ids = vec![false; function.values];
        let insts = || flow.order().flat_map(|block| &function.blocks[block].insts);
        let more = [
            "llvm.amdgcn.workitem.id.y",
            "llvm.amdgcn.workitem.id.z",
            "llvm.nvvm.read.ptx.sreg.tid.y",
            "llvm.nvvm.read.ptx.sreg.tid.z",
        ];
        if function.is_kernel && !insts().any(|inst| inst.callee().is_some_and(|name| more.contains(&name))) {
            for inst in insts() {
                let of_an_id = inst.operands.iter().any(|&operand| ids[operand]);
                inst.result.into_iter().for_each(|result| ids[result] = ops::is_id(inst, of_an_id));
            }
        }
        State {
            ids,
            defined,
            influences: HashMap::new(),
            values: vec![Uniform::Workgroup; function.values],
            joins: vec![Uniform::Workgroup; blocks + 1],
            turns: vec![Uniform::Workgroup; flow.loops.len()],
            control: vec![Uniform::Workgroup; blocks + 1],
            returns: Uniform::Workgroup,
            flow,
        }
    }

    /// What an instruction's operands are the same among, where it is: a value that leaves a loop is the last one of each
    /// work-item's own turns.
    fn operands(&self, inst: &Inst, block: usize) -> Uniform {
        let group = |&operand: &usize| {
            let left = |(turns, of): &(&Uniform, &Loop)| {
                **turns > Uniform::Workgroup
                    && !of.contains[block]
                    && self.defined[operand].is_some_and(|at| of.contains[at])
            };
            let turns = self.turns.iter().zip(&self.flow.loops).filter(left).map(|(turns, _)| *turns);
            turns.fold(self.values[operand], Uniform::max)
        };
        inst.operands.iter().map(group).max().unwrap_or_default()
    }

    /// What an instruction's result is the same among.
    fn result(&self, inst: &Inst, operands: Uniform, wave: u32) -> Uniform {
        let of_an_id = inst.operands.iter().any(|&operand| self.ids[operand]);
        if of_an_id && ops::is_of_a_wave(inst, wave) { Uniform::Wave } else { ops::result(inst, operands) }
    }

    /// Notes what a branch decides, that is the same in such a group; whether that was new.
    fn decide(&mut self, block: usize, group: Uniform) -> bool {
        if group == Uniform::Workgroup {
            return false;
        }
        let State { flow, influences, joins, turns, control, .. } = self;
        let influence = influences.entry(block).or_insert_with(|| flow.influence(block));
        let mut changed = false;
        let mut raise = |one: &mut Uniform| {
            changed |= group > *one;
            *one = group.max(*one);
        };
        influence.blocks.iter().for_each(|&block| raise(&mut control[block]));
        influence.joins.iter().for_each(|&block| raise(&mut joins[block]));
        for (turns, of) in turns.iter_mut().zip(&flow.loops) {
            if of.contains[block] && influence.blocks.contains(&of.header) {
                raise(turns);
            }
        }
        changed
    }

    /// The branch nearest to a block that decides in such a group whether it is come to.
    fn decider<'a>(&self, block: usize, group: Uniform, function: &'a Function<'a>) -> Option<&'a Inst<'a>> {
        let decides = self.influences.iter().filter(|(branch, influence)| {
            influence.blocks.contains(&block) && self.branch(**branch, function) >= group
        });
        let (&nearest, _) = decides.min_by_key(|(branch, influence)| (influence.blocks.len(), **branch))?;
        function.blocks[nearest].insts.last()
    }

    fn branch(&self, block: usize, function: &Function) -> Uniform {
        function.blocks[block].insts.last().map_or(Uniform::Workgroup, |last| self.operands(last, block))
    }
}

#[cfg(test)]
mod tests;
