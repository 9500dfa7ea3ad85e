//! The search: all states, layer by layer. So the first state with a property has a shortest run.

use std::iter;
use std::time::Instant;

use super::arena::{Arena, NONE};
use super::program::{Process, Program};
use super::race::Races;
use super::run::{Run, each_initial, each_input, run_to};
use super::state::Layout;
use super::step::{Fault, Machine, Silent};

/// States that are expanded before their successors are looked up: these look-ups wait for memory together.
const BATCH: usize = 16;
/// The number of executed steps between two looks at the clock.
const PERIOD: usize = 1 << 12;
/// The table of the arena has at most 2^32 slots.
const MOST_STATES: usize = 3 << 30;

/// What to look for besides the properties of the program, and when to stop.
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub deadlock: bool,
    pub races: bool,
    /// Stop at the first discovery.
    pub first: bool,
    pub deadline: Option<Instant>,
    pub states: Option<usize>,
    /// Bytes of the visited states.
    pub memory: Option<usize>,
    /// The maximal number of steps of a run.
    pub depth: Option<usize>,
}

/// Why a search ended before it had seen all states.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stop {
    Timeout,
    Memory,
    States,
    Depth,
    /// A number does not fit.
    Numbers,
    /// An input or a free variable has too many values.
    Inputs,
    /// A property or the initial condition reads an array at an index out of range.
    Condition,
    /// Everything that was looked for is found.
    Found,
    /// The caller asked for it.
    Interrupted,
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Narrow(_) | Fault::Numbers => Self::Numbers,
            Fault::Inputs => Self::Inputs,
            Fault::Condition => Self::Condition,
        }
    }
}

/// The results of a search.
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub states: usize,
    pub transitions: u64,
    /// All states within this number of steps were seen.
    pub depth: usize,
    /// The number of states in which all processes have ended.
    pub ended: usize,
    /// None: all states were seen.
    pub stop: Option<Stop>,
    /// A run to each property of the program.
    pub properties: Vec<Option<Run>>,
    pub deadlock: Option<Run>,
    /// A run to a race, and its two processes.
    pub race: Option<(Run, usize, usize)>,
    pub bytes: usize,
}

/// The processes that have a next step, enabled or not, with their locations. In an atomic section, there is one at most.
pub fn ready(program: &Program, layout: &Layout, state: &[u64]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut inside = None;
    for (number, process) in program.processes.iter().enumerate() {
        let location = layout.location(state, program.location(number));
        if location < process.end() {
            found.push((number, location));
            if process.instructions[location].exclusive {
                if inside.is_some() {
                    return Vec::new();
                }
                inside = Some(number);
            }
        }
    }
    found.retain(|&(number, _)| inside.is_none_or(|p| p == number));
    found
}

/// A successor that was not looked up yet; its words are in a buffer.
struct Pending {
    hash: u32,
    parent: u32,
    /// What the table had for the hash before any of the batch was inserted.
    entry: u64,
}

struct Search<'a> {
    program: &'a Program,
    options: &'a Options,
    layout: Layout,
    arena: Arena,
    machine: Machine,
    races: Option<Races>,
    /// The values of the cells in the initial states.
    roots: Vec<Vec<i128>>,
    successors: Vec<u64>,
    pending: Vec<Pending>,
    after: Vec<u64>,
    enabled: Vec<(usize, usize)>,
    locations: Vec<usize>,
    exclusive: bool,
    transitions: u64,
    ended: usize,
    properties: Vec<Option<usize>>,
    deadlock: Option<usize>,
    /// For each process that waits for a lock: the one that holds it. Only valid inside of `is_circular`.
    holders: Vec<usize>,
    race: Option<(usize, usize, usize)>,
    /// How much of what is looked for was not found yet.
    missing: usize,
    /// Whether some state is deeper than the limit.
    deeper: bool,
    /// The executed steps since the last look at the clock.
    work: usize,
}

/// Search all states. `watch` hears the numbers of states and of steps now and then, and says whether to go on.
pub fn search(program: &Program, options: &Options, watch: &mut dyn FnMut(usize, usize) -> bool) -> Report {
    let empty = || Report { properties: vec![None; program.properties.len()], ..Report::default() };
    let Some(layout) = Layout::new(program) else { return Report { stop: Some(Stop::Numbers), ..empty() } };
    let missing = program.properties.len() + usize::from(options.deadlock) + usize::from(options.races);
    let instructions = || program.processes.iter().flat_map(|process| &process.instructions);
    let mut search = Search {
        program,
        options,
        arena: Arena::new(layout.words),
        after: vec![0; layout.words],
        layout,
        machine: Machine::new(program),
        races: options.races.then(|| Races::new(program)),
        roots: Vec::new(),
        successors: Vec::new(),
        pending: Vec::new(),
        enabled: Vec::new(),
        locations: vec![0; program.processes.len()],
        exclusive: instructions().any(|instruction| instruction.exclusive),
        transitions: 0,
        ended: 0,
        properties: vec![None; program.properties.len()],
        deadlock: None,
        holders: vec![usize::MAX; program.processes.len()],
        race: None,
        missing,
        deeper: false,
        work: 0,
    };
    let mut depth = 0;
    let stop = search.layers(&mut depth, watch).err();
    search.report(depth, stop)
}

impl Search<'_> {
    fn layers(&mut self, depth: &mut usize, watch: &mut dyn FnMut(usize, usize) -> bool) -> Result<(), Stop> {
        self.start()?;
        let (mut first, mut last) = (0, self.arena.count());
        while first < last {
            let cut = self.options.depth.is_some_and(|most| *depth >= most);
            while first < last {
                let end = last.min(first + BATCH);
                while first < end {
                    let (marks, work) = (self.pending.len(), self.transitions);
                    let expanded = self.expand(first);
                    if cut {
                        self.transitions = work;
                    }
                    match expanded {
                        Ok(()) => first += 1,
                        Err(Fault::Narrow(narrow)) => {
                            self.pending.truncate(marks);
                            self.transitions = work;
                            self.commit(cut)?;
                            self.widen(narrow)?;
                        }
                        Err(fault) => return Err(fault.into()),
                    }
                    if self.pending.len() > PERIOD {
                        break;
                    }
                }
                self.commit(cut)?;
                if self.work > PERIOD {
                    self.work = 0;
                    if !watch(self.arena.count(), *depth) {
                        return Err(Stop::Interrupted);
                    }
                    if self.options.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                        return Err(Stop::Timeout);
                    }
                }
            }
            if self.deeper {
                return Err(Stop::Depth);
            }
            last = self.arena.count();
            *depth += usize::from(first < last);
        }
        Ok(())
    }

    /// The initial states.
    fn start(&mut self) -> Result<(), Stop> {
        let program = self.program;
        let mut roots = Vec::new();
        each_initial(program, &mut |values| {
            let mut state = vec![0; self.layout.words];
            for (cell, &value) in values.iter().enumerate() {
                self.layout.store(&mut state, cell, value)?;
            }
            for &condition in &program.conditions {
                if !self.machine.holds(program, &self.layout, condition, &mut state)? {
                    return Ok(());
                }
            }
            for process in 0..program.processes.len() {
                self.layout.arrive(&mut state, program.location(process), process, 0);
            }
            if self.arena.insert(&state, Arena::hash(&state), NONE).is_some() {
                roots.push(values.to_vec());
            }
            Ok(())
        })?;
        self.roots = roots;
        for state in 0..self.arena.count() {
            self.discover(state)?;
        }
        self.finished()
    }

    fn widen(&mut self, narrow: super::state::Narrow) -> Result<(), Stop> {
        let wider = self.layout.widened(self.program, narrow).ok_or(Stop::Numbers)?;
        self.arena.repack(&self.layout, &wider);
        self.layout = wider;
        self.after = vec![0; self.layout.words];
        self.successors.clear();
        Ok(())
    }

    /// Execute all steps from a state; note a deadlock or a race.
    fn expand(&mut self, number: usize) -> Result<(), Fault> {
        let Self { program, layout, machine, arena, after, pending, successors, .. } = self;
        let state = arena.state(number);
        successors.truncate(pending.len() * layout.words);
        self.enabled.clear();
        let mut inside = None;
        let mut alone = true;
        for (process, code) in program.processes.iter().enumerate() {
            let location = layout.location(state, program.location(process));
            self.locations[process] = location;
            if self.exclusive && location < code.end() && code.instructions[location].exclusive {
                alone &= inside.is_none();
                inside = Some(process);
            }
        }
        for (process, code) in program.processes.iter().enumerate() {
            let location = self.locations[process];
            if location >= code.end() || inside.is_some_and(|p| p != process || !alone) {
                continue;
            }
            let mut count = 0;
            let mut take = |inputs: &[i128]| -> Result<(), Fault> {
                self.work += 1;
                if machine.step(program, layout, state, after, (process, location), inputs, &mut Silent)? {
                    count += 1;
                    successors.extend_from_slice(after);
                    pending.push(Pending { hash: Arena::hash(after), parent: number as u32, entry: 0 });
                }
                Ok(())
            };
            let instruction = &code.instructions[location];
            if instruction.inputs.is_empty() {
                take(&[])?;
            } else {
                each_input(program, instruction, &mut take)?;
            }
            self.transitions += count;
            if count > 0 {
                self.enabled.push((process, location));
            }
        }
        if self.options.deadlock && self.deadlock.is_none() {
            let all = self.enabled.is_empty() && self.is_deadlock();
            if all || self.is_circular(number)? {
                self.deadlock = Some(number);
                self.missing -= 1;
            }
        }
        if let Some(races) = &self.races
            && self.race.is_none()
            && self.enabled.len() > 1
        {
            let state = self.arena.state(number);
            let found = races.find(self.program, &self.layout, &mut self.machine, state, &self.enabled)?;
            if let Some((first, second)) = found {
                self.race = Some((number, first, second));
                self.missing -= 1;
            }
        }
        Ok(())
    }

    /// Whether a state without enabled steps is a deadlock: some required process waits, and no process is at an `assume`
    /// or after a failed check. A process also waits while another one is in an atomic section.
    fn is_deadlock(&self) -> bool {
        let processes = || self.program.processes.iter().zip(&self.locations).enumerate();
        let inside = |process: &Process, location: usize| {
            process.instructions.get(location).is_some_and(|instruction| instruction.exclusive)
        };
        let section = processes().find(|(_, (process, location))| inside(process, **location)).map(|(p, _)| p);
        let mut waits = false;
        for (p, (process, &location)) in processes() {
            if location == process.end() || process.spawned && location == 0 {
                continue;
            }
            let excluded = section.is_some_and(|q| q != p);
            if location > process.end() || !(excluded || process.instructions[location].waits) {
                return false;
            }
            waits |= process.required;
        }
        waits
    }

    /// Whether processes wait for each other in a circle, each for a lock that the next one holds; a circle of one waits for
    /// its own lock. They never continue.
    fn is_circular(&mut self, number: usize) -> Result<bool, Fault> {
        self.holders.fill(usize::MAX);
        let mut enabled = self.enabled.iter().map(|&(process, _)| process).peekable();
        let mut found = false;
        for (process, code) in self.program.processes.iter().enumerate() {
            if enabled.next_if_eq(&process).is_some() {
                continue;
            }
            let Some(owner) = code.instructions.get(self.locations[process]).and_then(|step| step.owner) else {
                continue;
            };
            if !found {
                self.after.copy_from_slice(self.arena.state(number));
                found = true;
            }
            let holder = self.machine.value(self.program, &self.layout, owner, &mut self.after)?;
            self.holders[process] = usize::try_from(holder - 1).unwrap_or(usize::MAX);
        }
        let next = |&process: &usize| self.holders.get(process).copied();
        let returns = |process| iter::successors(next(&process), next).take(self.holders.len()).any(|p| p == process);
        Ok(found && (0..self.holders.len()).any(returns))
    }

    /// Insert the successors, and look for properties in the new states. `cut`: they are too deep to be inserted.
    fn commit(&mut self, cut: bool) -> Result<(), Stop> {
        for pending in &mut self.pending {
            pending.entry = self.arena.touch(pending.hash);
        }
        let touch = |sum, pending: &Pending| sum ^ self.arena.touch_state(pending.hash, pending.entry);
        std::hint::black_box(self.pending.iter().fold(0, touch));
        let (mut pending, successors) = (std::mem::take(&mut self.pending), std::mem::take(&mut self.successors));
        for (&Pending { hash, parent, .. }, state) in pending.iter().zip(successors.chunks_exact(self.layout.words)) {
            if cut {
                self.deeper = self.deeper || !self.arena.contains(state, hash);
            } else if let Some(number) = self.arena.insert(state, hash, parent) {
                self.discover(number)?;
            }
        }
        pending.clear();
        (self.pending, self.successors) = (pending, successors);
        self.finished()?;
        let wants_layer = self.options.deadlock || self.options.races;
        if self.deeper && !wants_layer { Err(Stop::Depth) } else { self.sizes() }
    }

    /// Look for the missing properties in a new state.
    #[inline(always)]
    fn discover(&mut self, number: usize) -> Result<(), Fault> {
        let (program, layout) = (self.program, &self.layout);
        self.after.copy_from_slice(self.arena.state(number));
        for (&code, found) in program.properties.iter().zip(&mut self.properties) {
            if found.is_none() && self.machine.holds(program, layout, code, &mut self.after)? {
                *found = Some(number);
                self.missing -= 1;
            }
        }
        let at_end =
            |(p, process): (usize, &Process)| layout.location(&self.after, program.location(p)) == process.end();
        self.ended += usize::from(program.processes.iter().enumerate().all(at_end));
        Ok(())
    }

    fn finished(&self) -> Result<(), Stop> {
        let wanted = self.properties.len() + usize::from(self.options.deadlock) + usize::from(self.options.races);
        let found = wanted - self.missing;
        if found > 0 && (self.missing == 0 || self.options.first) { Err(Stop::Found) } else { Ok(()) }
    }

    /// Whether there is room for more states.
    fn sizes(&self) -> Result<(), Stop> {
        if self.options.memory.is_some_and(|most| self.arena.bytes_to_grow() > most)
            || self.arena.count() >= MOST_STATES
        {
            return Err(Stop::Memory);
        }
        if self.options.states.is_some_and(|most| self.arena.count() > most) { Err(Stop::States) } else { Ok(()) }
    }

    fn report(mut self, depth: usize, stop: Option<Stop>) -> Report {
        let (program, layout, arena, roots, machine) =
            (self.program, &self.layout, &self.arena, &self.roots, &mut self.machine);
        let mut run = |state: usize| run_to(program, layout, arena, machine, roots, state);
        Report {
            properties: self.properties.iter().map(|found| found.map(&mut run)).collect(),
            deadlock: self.deadlock.map(&mut run),
            race: self.race.map(|(state, first, second)| (run(state), first, second)),
            states: self.arena.count(),
            transitions: self.transitions,
            depth,
            ended: self.ended,
            stop,
            bytes: self.arena.bytes(),
        }
    }
}
