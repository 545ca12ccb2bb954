//! Profiles: which functions a run spends its cycles and its constraints in, with the calls that lead to them, and its loops.
//!
//! Functions are symbols. Calls and returns are those of the standard calling convention: a jump that links x1 or x5 calls, a
//! jump to x1 or x5 returns.

use crate::elf::readable;
use crate::input::Input;
use crate::isa::{Chip, Isa, SINK};
use crate::machine::{CLASSES, Machine, REFRESH, Recorder};
use crate::op::Op;
use crate::program::Program;
use crate::run::MAX_CYCLES;
use crate::sizes::{Sizes, refresh_template};
use crate::trap::RunError;
use std::collections::HashMap;

/// The maximum depth of call stacks: deeper calls are attributed to the function at this depth.
const MAX_DEPTH: usize = 500;

/// The maximum total length of all call stacks. Beyond it, functions are counted without their callers.
const MAX_FRAMES: usize = 1 << 18;

/// The number of return addresses that are kept, and how many of them a return is compared with: a program may call without ever
/// returning.
const MAX_CALLERS: usize = 1 << 16;
const MAX_RETURNS: usize = 1000;

/// The cost of a run, or of a part of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost {
    /// The number of cycles: one for each instruction, several for some calls.
    pub cycles: u64,
    /// The number of constraints of these instructions and of the refreshes that they need.
    pub constraints: u64,
}

impl std::ops::AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        self.cycles += other.cycles;
        self.constraints += other.constraints;
    }
}

/// A function and what it cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// The name of its symbol, or its address.
    pub name: String,
    /// Its own instructions.
    pub own: Cost,
    /// The same, with the functions that it called.
    pub total: Cost,
    /// The number of calls.
    pub calls: u64,
    /// The constraints of its own instructions by chip, the largest first.
    pub chips: Vec<(Chip, u64)>,
}

/// A loop: the instructions from the target of a backward branch to this branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// The function.
    pub function: String,
    /// The address of the first instruction.
    pub start: u32,
    /// The address of the branch.
    pub end: u32,
    /// The number of times that the branch was taken.
    pub iterations: u64,
    /// The cost of the instructions, without refreshes and without functions that they call.
    pub cost: Cost,
}

/// A profile of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The whole run.
    pub total: Cost,
    /// The functions, those with most constraints of their own first.
    pub functions: Vec<Function>,
    /// The loops, those with most constraints first.
    pub loops: Vec<Loop>,
    /// Call stacks, outermost function first, as indices of `functions`, with the cost of the innermost function's own
    /// instructions.
    pub stacks: Vec<(Vec<usize>, Cost)>,
}

impl Profile {
    /// Executes a program of RV32IM and profiles it, with constraints for subcircuits of these sizes.
    ///
    /// # Errors
    /// If the program traps, has not ended after `max_cycles`, or is too large for the input.
    ///
    /// # Panics
    /// If the program is for another instruction set.
    pub fn of(
        program: &Program,
        input: &Input,
        max_cycles: u64,
        sizes: Sizes,
    ) -> Result<Self, RunError> {
        assert_eq!(program.isa(), Isa::Rv32im, "only RV32IM has a calling convention");
        let mut machine = Machine::new(program, input)?;
        let mut profiler = Profiler::new(program, sizes);
        let last = max_cycles.min(MAX_CYCLES);
        match machine.run(last + 1, &mut profiler)? {
            Some(exit) => {
                // The exit belongs to the boundary and has no operation.
                profiler.cycles(exit.pc, 1);
                Ok(profiler.finish())
            }
            None => Err(machine.too_long(last)),
        }
    }
}

/// A function in a call stack.
struct Node {
    /// The address of the function.
    function: u32,
    parent: Option<usize>,
    /// The number of functions from the first one to this one.
    depth: usize,
    children: HashMap<u32, usize>,
    cycles: u64,
    calls: u64,
    /// The operations by class.
    ops: [u64; CLASSES],
}

struct Profiler<'a> {
    program: &'a Program,
    constraints: [u64; CLASSES],
    nodes: Vec<Node>,
    /// The depths of all nodes together.
    frames: usize,
    /// The nodes without a caller, by function.
    roots: HashMap<u32, usize>,
    current: usize,
    /// The callers: their nodes and the addresses that calls return to.
    callers: Vec<(usize, u32)>,
    /// By word of the image.
    words: Vec<Cost>,
    /// The backward branches by word of the image: how often they were taken, and where they go.
    backward: Vec<(u64, u32)>,
}

impl<'a> Profiler<'a> {
    fn new(program: &'a Program, sizes: Sizes) -> Self {
        let mut constraints = [0; CLASSES];
        for chip in Chip::every() {
            constraints[chip.index()] = sizes.constraints(chip) as u64;
        }
        constraints[REFRESH] = refresh_template().constraints() as u64;
        let length = program.image.len();
        let mut profiler = Self {
            program,
            constraints,
            nodes: Vec::new(),
            frames: 0,
            roots: HashMap::new(),
            current: 0,
            callers: Vec::new(),
            words: vec![Cost::default(); length],
            backward: vec![(0, 0); length],
        };
        profiler.current = profiler.node(None, profiler.function(program.entry));
        profiler.nodes[0].calls = 1;
        profiler
    }

    /// The address of the symbol that an instruction belongs to.
    fn symbol(&self, pc: u32) -> Option<u32> {
        self.program.symbol(pc).map(|(_, offset)| pc - offset)
    }

    /// The address of the function that is called at a pc: without a symbol, its own.
    fn function(&self, pc: u32) -> u32 {
        self.symbol(pc).unwrap_or(pc)
    }

    fn node(&mut self, parent: Option<usize>, function: u32) -> usize {
        let known = |parent: Option<usize>| match parent {
            Some(parent) => self.nodes[parent].children.get(&function),
            None => self.roots.get(&function),
        };
        if let Some(node) = known(parent) {
            return *node;
        }
        let depth = |parent: Option<usize>| parent.map_or(1, |parent| self.nodes[parent].depth + 1);
        let parent = parent.filter(|_| self.frames + depth(parent) <= MAX_FRAMES);
        if let Some(node) = known(parent) {
            return *node;
        }
        let (node, depth) = (self.nodes.len(), depth(parent));
        self.frames += depth;
        let (children, ops) = (HashMap::new(), [0; CLASSES]);
        self.nodes.push(Node { function, parent, depth, children, cycles: 0, calls: 0, ops });
        let siblings = match parent {
            Some(parent) => &mut self.nodes[parent].children,
            None => &mut self.roots,
        };
        siblings.insert(function, node);
        node
    }

    fn cycles(&mut self, pc: u32, count: u64) {
        self.nodes[self.current].cycles += count;
        self.words[(pc / 4 - self.program.base) as usize].cycles += count;
    }

    fn call(&mut self, target: u32, returns_to: u32) {
        if self.callers.len() == MAX_CALLERS {
            self.callers.drain(..MAX_CALLERS / 2);
        }
        self.callers.push((self.current, returns_to));
        if self.callers.len() <= MAX_DEPTH {
            let function = self.function(target);
            self.current = self.node(Some(self.current), function);
        }
        self.nodes[self.current].calls += 1;
    }

    /// A jump that does not link: a return, a jump within the function, or a tail call.
    fn jump(&mut self, target: u32, may_return: bool) {
        // Not only the last caller: longjmp returns over several.
        let last = self.callers.len().saturating_sub(MAX_RETURNS);
        let find = |is_it: &dyn Fn(&(usize, u32)) -> bool| {
            let found = self.callers[last..].iter().rposition(is_it).filter(|_| may_return);
            found.map(|place| last + place)
        };
        if let Some(place) = find(&|(_, returns_to)| *returns_to == target) {
            self.current = self.callers[place].0;
            self.callers.truncate(place);
            return;
        }
        let function = match self.symbol(target) {
            Some(function) if function != self.nodes[self.current].function => function,
            _ => return,
        };
        // setjmp has returned already when longjmp returns to where it was called.
        match find(&|(node, _)| self.nodes[*node].function == function) {
            Some(place) => {
                self.current = self.callers[place].0;
                self.callers.truncate(place);
            }
            _ if self.callers.len() <= MAX_DEPTH => {
                self.current = self.node(self.nodes[self.current].parent, function);
                self.nodes[self.current].calls += 1;
            }
            _ => {}
        }
    }

    fn finish(self) -> Profile {
        let costs: Vec<Cost> = self.nodes.iter().map(|node| self.own(node)).collect();
        let mut functions = HashMap::<u32, (Function, [u64; CLASSES])>::new();
        let (mut total, mut stacks) = (Cost::default(), Vec::new());
        for (node, own) in self.nodes.iter().zip(&costs) {
            let mut path = vec![node];
            while let Some(parent) = path.last().expect("it has the node").parent {
                path.push(&self.nodes[parent]);
            }
            total += *own;
            for (at, above) in path.iter().enumerate() {
                let (function, ops) = functions.entry(above.function).or_insert_with(|| {
                    let (own, total) = Default::default();
                    let name = self.name(above.function);
                    (Function { name, own, total, calls: 0, chips: Vec::new() }, [0; CLASSES])
                });
                if at == 0 {
                    function.own += *own;
                    function.calls += node.calls;
                    ops.iter_mut().zip(node.ops).for_each(|(sum, ops)| *sum += ops);
                }
                // A recursive function is in the path several times.
                if !path[..at].iter().any(|below| below.function == above.function) {
                    function.total += *own;
                }
            }
            if own.cycles > 0 {
                stacks.push((path.iter().rev().map(|it| it.function).collect::<Vec<_>>(), *own));
            }
        }
        let mut functions: Vec<(u32, Function)> = functions
            .into_iter()
            .map(|(at, (function, ops))| (at, Function { chips: self.chips(&ops), ..function }))
            .collect();
        functions.sort_by_key(|(at, it)| (u64::MAX - it.own.constraints, *at));
        let places: HashMap<u32, usize> = functions.iter().map(|(at, _)| *at).zip(0..).collect();
        let stacks = stacks.into_iter().map(|(stack, own)| {
            (stack.into_iter().map(|function| places[&function]).collect(), own)
        });
        let functions = functions.into_iter().map(|(_, function)| function).collect();
        Profile { total, functions, loops: self.loops(), stacks: stacks.collect() }
    }

    fn name(&self, function: u32) -> String {
        match self.program.symbol(function) {
            Some((name, 0)) => readable(name),
            _ => format!("{function:#x}"),
        }
    }

    fn own(&self, node: &Node) -> Cost {
        let constraints = node.ops.iter().zip(self.constraints).map(|(ops, each)| ops * each).sum();
        Cost { cycles: node.cycles, constraints }
    }

    fn chips(&self, ops: &[u64; CLASSES]) -> Vec<(Chip, u64)> {
        let of = |chip: Chip| ops[chip.index()] * self.constraints[chip.index()];
        let mut chips: Vec<_> = Isa::Rv32im
            .chips()
            .iter()
            .map(|chip| (*chip, of(*chip)))
            .filter(|it| it.1 > 0)
            .collect();
        chips.sort_by_key(|(chip, constraints)| (u64::MAX - constraints, *chip));
        chips
    }

    fn loops(&self) -> Vec<Loop> {
        // A loop with several ways back has one entry, up to the last of them.
        let mut found = HashMap::<u32, (u32, u64)>::new();
        for (word, (taken, target)) in (self.program.base..).zip(&self.backward) {
            if *taken > 0 {
                let (end, iterations) = found.entry(*target).or_insert((0, 0));
                *end = 4 * word;
                *iterations += taken;
            }
        }
        let place = |pc: u32| (pc / 4 - self.program.base) as usize;
        let mut loops: Vec<Loop> = found
            .into_iter()
            .map(|(start, (end, iterations))| {
                let mut cost = Cost::default();
                self.words[place(start)..=place(end)].iter().for_each(|word| cost += *word);
                let function = self.name(self.function(start));
                Loop { function, start, end, iterations, cost }
            })
            .collect();
        loops.sort_by_key(|it| (u64::MAX - it.cost.constraints, it.start));
        loops
    }
}

/// Reports whether a register holds return addresses in the standard calling convention.
fn is_link(register: u8) -> bool {
    register == 1 || register == 5
}

impl Recorder for Profiler<'_> {
    fn op(&mut self, class: usize, op: Op) {
        self.nodes[self.current].ops[class] += 1;
        // A refresh belongs to the instruction that needs it, which comes next.
        if class == REFRESH {
            return;
        }
        let chip = Isa::Rv32im.chips()[class];
        self.cycles(op.pc, chip.cycles().into());
        let word = (op.pc / 4 - self.program.base) as usize;
        self.words[word].constraints += self.constraints[class];
        match chip {
            Chip::Jump | Chip::JumpReg => {
                let (target, may_return) = match chip {
                    Chip::Jump => (op.imm, false),
                    _ => (op.address() & !1, op.rd == SINK && is_link(op.rs1)),
                };
                match is_link(op.rd) {
                    true => self.call(target, op.pc.wrapping_add(4)),
                    false => self.jump(target, may_return),
                }
            }
            _ => {}
        }
        let is_branch = matches!(chip, Chip::BranchEqual | Chip::BranchBelow | Chip::BranchLess)
            || chip == Chip::Jump && op.rd == SINK;
        // The immediate of a branch is the next pc.
        if is_branch && op.imm <= op.pc && self.symbol(op.imm) == self.symbol(op.pc) {
            self.backward[word] = (self.backward[word].0 + 1, op.imm);
        }
    }
}
