//! Data races of a state: the next steps of two processes are enabled, they access the same shared cell, one of them writes
//! it, and not both synchronize.

use super::program::{Instruction, Op, Program};
use super::run::each_input;
use super::state::Layout;
use super::step::{Fault, Machine, Recorder};

/// The shared variables that a step may read or write, as bits. Several variables can have the same bit.
#[derive(Clone, Copy, Default)]
struct Filter {
    reads: u64,
    writes: u64,
    synchronizes: bool,
}

/// For each process and location: what its step may access.
pub struct Races {
    filters: Vec<Vec<Filter>>,
}

impl Races {
    pub fn new(program: &Program) -> Self {
        let filter = |instruction: &Instruction| {
            let mut found = Filter { synchronizes: instruction.synchronizes, ..Filter::default() };
            let bit = |cell: u32| {
                let variable = program.owners[cell as usize];
                if program.variables[variable].shared { 1 << (variable % 64) } else { 0_u64 }
            };
            for op in program.code(instruction.code) {
                match *op {
                    Op::Load(cell) => found.reads |= bit(cell),
                    Op::LoadAt { base, count } if count > 0 => found.reads |= bit(base),
                    Op::Store(cell) | Op::StoreAt { base: cell } => found.writes |= bit(cell),
                    _ => {}
                }
            }
            found
        };
        Self { filters: program.processes.iter().map(|p| p.instructions.iter().map(filter).collect()).collect() }
    }

    /// Two processes with a race in a state. `enabled`: the processes with an enabled step, and their locations.
    pub fn find(
        &self,
        program: &Program,
        layout: &Layout,
        machine: &mut Machine,
        state: &[u64],
        enabled: &[(usize, usize)],
    ) -> Result<Option<(usize, usize)>, Fault> {
        for (n, &first) in enabled.iter().enumerate() {
            for &second in &enabled[n + 1..] {
                let (a, b) = (self.filters[first.0][first.1], self.filters[second.0][second.1]);
                let possible = a.writes & (b.reads | b.writes) | a.reads & b.writes;
                if possible == 0 || a.synchronizes && b.synchronizes {
                    continue;
                }
                let a = Accesses::of(program, layout, machine, state, first)?;
                let b = Accesses::of(program, layout, machine, state, second)?;
                if a.conflict(&b) || b.conflict(&a) {
                    return Ok(Some((first.0, second.0)));
                }
            }
        }
        Ok(None)
    }
}

/// The cells that a step reads and writes.
#[derive(Default)]
struct Accesses {
    reads: Vec<usize>,
    writes: Vec<usize>,
}

impl Recorder for Accesses {
    fn read(&mut self, cell: usize) {
        self.reads.push(cell);
    }

    fn write(&mut self, cell: usize) {
        self.writes.push(cell);
    }
}

impl Accesses {
    /// The accesses of a step to shared cells, over all inputs with which it is enabled.
    fn of(
        program: &Program,
        layout: &Layout,
        machine: &mut Machine,
        state: &[u64],
        at: (usize, usize),
    ) -> Result<Self, Fault> {
        let mut found = Self::default();
        let mut after = vec![0; state.len()];
        each_input(program, &program.processes[at.0].instructions[at.1], &mut |inputs| {
            let mut one = Self::default();
            if machine.step(program, layout, state, &mut after, at, inputs, &mut one)? {
                let shared = |cell: &usize| program.variables[program.owners[*cell]].shared;
                found.reads.extend(one.reads.into_iter().filter(shared));
                found.writes.extend(one.writes.into_iter().filter(shared));
                found.reads.sort_unstable();
                found.reads.dedup();
                found.writes.sort_unstable();
                found.writes.dedup();
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// Whether this step writes what the other one accesses.
    fn conflict(&self, other: &Self) -> bool {
        self.writes.iter().any(|cell| other.writes.contains(cell) || other.reads.contains(cell))
    }
}
