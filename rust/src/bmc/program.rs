//! A program in flat form. Code is in postfix order: operands are pushed, operators replace them by their result. Jumps go
//! forward only, so each piece of code ends.

/// One operation of code. Cells are numbered through all variables; the location of process p is the cell `values + p`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Op {
    /// Push a number of 64 bits.
    Const(i64),
    /// Push one of the large numbers of the program.
    Large(u32),
    Load(u32),
    /// Pop an index; push the cell of an array.
    LoadAt {
        base: u32,
        count: u32,
    },
    Input(u32),
    /// Push whether a process is at a location.
    At {
        process: u32,
        location: u32,
    },
    /// Replace the top by whether it is 0.
    Not,
    /// Replace the top by whether it is not 0.
    Truth,
    Wrap {
        bits: u32,
        signed: bool,
    },
    Add,
    Subtract,
    Multiply,
    AddModular,
    SubtractModular,
    MultiplyModular,
    ShiftLeftModular,
    Divide,
    Modulo,
    Quotient,
    Remainder,
    And,
    Or,
    Xor,
    ShiftLeft,
    ShiftRight,
    Equal,
    Unequal,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    /// If the top is 0, jump and keep it; otherwise pop it.
    AndJump(u32),
    /// If the top is not 0, replace it by 1 and jump; otherwise pop it.
    OrJump(u32),
    /// Pop; jump if it is 0.
    Unless(u32),
    Jump(u32),
    /// Pop a number into a cell.
    Store(u32),
    /// Pop a number, then an index that was checked, and store the number there.
    StoreAt {
        base: u32,
    },
    /// The step fails unless the top is an index of an array of that many cells.
    Check(u32),
    /// Pop; the step is not enabled if it is 0.
    Require,
    /// Pop; the step fails if it is 0, and sets this flag.
    Ensure(u32),
    /// The step ends, and its process goes to a location.
    Goto(u32),
    /// The code of a condition ends: its value is on top.
    Return,
}

impl Op {
    /// The operation of that name, as Python sends it.
    pub fn named(name: &str, a: i64, b: i64) -> Option<Self> {
        let first = u32::try_from(a);
        let second = u32::try_from(b);
        Some(match name {
            "const" => Self::Const(a),
            "large" => Self::Large(first.ok()?),
            "load" => Self::Load(first.ok()?),
            "load at" => Self::LoadAt { base: first.ok()?, count: second.ok()? },
            "input" => Self::Input(first.ok()?),
            "at" => Self::At { process: first.ok()?, location: second.ok()? },
            "not" => Self::Not,
            "truth" => Self::Truth,
            "wrap" => Self::Wrap { bits: first.ok()?, signed: b != 0 },
            "+" => Self::Add,
            "-" => Self::Subtract,
            "*" => Self::Multiply,
            "+ modular" => Self::AddModular,
            "- modular" => Self::SubtractModular,
            "* modular" => Self::MultiplyModular,
            "<< modular" => Self::ShiftLeftModular,
            "/" => Self::Divide,
            "%" => Self::Modulo,
            "quot" => Self::Quotient,
            "rem" => Self::Remainder,
            "&" => Self::And,
            "|" => Self::Or,
            "^" => Self::Xor,
            "<<" => Self::ShiftLeft,
            ">>" => Self::ShiftRight,
            "==" => Self::Equal,
            "!=" => Self::Unequal,
            "<" => Self::Less,
            "<=" => Self::LessEqual,
            ">" => Self::Greater,
            ">=" => Self::GreaterEqual,
            "and jump" => Self::AndJump(first.ok()?),
            "or jump" => Self::OrJump(first.ok()?),
            "unless" => Self::Unless(first.ok()?),
            "jump" => Self::Jump(first.ok()?),
            "store" => Self::Store(first.ok()?),
            "store at" => Self::StoreAt { base: first.ok()? },
            "check" => Self::Check(first.ok()?),
            "require" => Self::Require,
            "ensure" => Self::Ensure(first.ok()?),
            "goto" => Self::Goto(first.ok()?),
            "return" => Self::Return,
            _ => return None,
        })
    }

    /// How many numbers it pops and pushes.
    fn arity(self) -> (usize, usize) {
        match self {
            Self::Const(_) | Self::Large(_) | Self::Load(_) | Self::Input(_) | Self::At { .. } => (0, 1),
            Self::LoadAt { .. } | Self::Not | Self::Truth | Self::Wrap { .. } | Self::Check(_) => (1, 1),
            Self::AndJump(_) | Self::OrJump(_) | Self::Unless(_) | Self::Store(_) => (1, 0),
            Self::Require | Self::Ensure(_) | Self::Return => (1, 0),
            Self::StoreAt { .. } => (2, 0),
            Self::Jump(_) | Self::Goto(_) => (0, 0),
            _ => (2, 1),
        }
    }
}

/// A variable: a number of cells, and the values that it is known to take. Cells grow if there are others.
#[derive(Clone, Debug)]
pub struct Variable {
    pub cells: usize,
    pub low: i128,
    pub high: i128,
    /// Whether accesses to it can race: shared, and not the flag of a check.
    pub shared: bool,
}

/// Where a piece of code begins.
pub type Code = usize;

/// The step of a process at a location.
#[derive(Clone, Debug)]
pub struct Instruction {
    pub code: Code,
    /// The domain of each input, by its number.
    pub inputs: Vec<usize>,
    pub waits: bool,
    /// If it waits for a lock that only its owner can release: the owner, as the number of a process plus one.
    pub owner: Option<Code>,
    pub synchronizes: bool,
    pub exclusive: bool,
}

#[derive(Clone, Debug)]
pub struct Process {
    pub instructions: Vec<Instruction>,
    pub spawned: bool,
    pub required: bool,
    /// For each location, the end and stuck too: the cells whose values do not matter there. They are stored as 0.
    pub dead: Vec<Vec<usize>>,
}

impl Process {
    /// The location of a process that has ended.
    pub fn end(&self) -> usize {
        self.instructions.len()
    }

    /// The location of a process after a failed check.
    pub fn stuck(&self) -> usize {
        self.instructions.len() + 1
    }
}

/// The initial value of a cell.
#[derive(Clone, Copy, Debug)]
pub enum Initial {
    Value(i128),
    /// Any value of a domain.
    Free(usize),
}

#[derive(Clone, Debug, Default)]
pub struct Program {
    pub ops: Vec<Op>,
    pub variables: Vec<Variable>,
    pub processes: Vec<Process>,
    /// The values of inputs and free variables. None: too many to enumerate.
    pub domains: Vec<Option<Vec<i128>>>,
    pub initial: Vec<Initial>,
    pub large: Vec<i128>,
    /// The initial condition, and the properties that are looked for.
    pub conditions: Vec<Code>,
    pub properties: Vec<Code>,
    /// The cell of the flag of indices out of range.
    pub bounds: Option<usize>,
    /// Of each cell of a value: its variable. `finish` computes this and the next ones.
    pub owners: Vec<usize>,
    pub stack: usize,
    /// Where each piece of code ends, in the order of the pieces' beginnings.
    pub ends: Vec<(Code, usize)>,
}

impl Program {
    /// The number of cells without locations.
    pub fn values(&self) -> usize {
        self.initial.len()
    }

    /// The cell of the location of a process.
    pub fn location(&self, process: usize) -> usize {
        self.values() + process
    }

    /// The operations of a piece of code.
    pub fn code(&self, at: Code) -> &[Op] {
        let found = self.ends.partition_point(|&(start, _)| start < at);
        &self.ops[at..self.ends[found].1]
    }

    /// Check the program, and compute what depends on it. Afterwards, execution needs no checks of its own.
    pub fn finish(mut self) -> Result<Self, String> {
        let owners = self.variables.iter().enumerate().flat_map(|(v, shape)| std::iter::repeat_n(v, shape.cells));
        self.owners = owners.collect();
        if self.owners.len() != self.initial.len() {
            return Err(format!("{} cells, but {} initial values", self.owners.len(), self.initial.len()));
        }
        for initial in &self.initial {
            if let Initial::Free(domain) = *initial
                && domain >= self.domains.len()
            {
                return Err(format!("there is no domain {domain}"));
            }
        }
        let mut pieces: Vec<(Code, usize, Option<usize>)> = Vec::new();
        for (number, process) in self.processes.iter().enumerate() {
            if process.dead.len() != process.stuck() + 1 {
                return Err(format!("process {number}: not one set of dead cells per location"));
            }
            if process.dead.iter().flatten().any(|&cell| cell >= self.values()) {
                return Err(format!("process {number}: there is no such dead cell"));
            }
            for instruction in &process.instructions {
                if instruction.inputs.iter().any(|&domain| domain >= self.domains.len()) {
                    return Err(format!("process {number}: there is no such domain"));
                }
                pieces.push((instruction.code, instruction.inputs.len(), Some(number)));
                pieces.extend(instruction.owner.map(|code| (code, 0, None)));
            }
        }
        pieces.extend(self.conditions.iter().chain(&self.properties).map(|&code| (code, 0, None)));
        for (at, inputs, process) in pieces {
            let (end, stack) = self.checked(at, inputs, process).map_err(|text| format!("code at {at}: {text}"))?;
            self.ends.push((at, end));
            self.stack = self.stack.max(stack);
        }
        self.ends.sort_unstable();
        self.ends.dedup();
        if self.bounds.is_some_and(|cell| cell >= self.values()) {
            return Err("the flag of indices has no cell".to_owned());
        }
        Ok(self)
    }

    /// Where a piece of code ends, and how many numbers it pushes at most.
    fn checked(&self, at: Code, inputs: usize, process: Option<usize>) -> Result<(usize, usize), String> {
        let mut depths: std::collections::HashMap<usize, usize> = std::collections::HashMap::new();
        let mut last = at;
        let mut depth = Some(0);
        let mut most = 0;
        for pc in at..self.ops.len() {
            let op = self.ops[pc];
            // Where paths meet, they must agree on the stack. After a jump, only those that jump here count.
            depth = match (depth, depths.get(&pc)) {
                (Some(d), Some(&other)) if d != other => {
                    return Err(format!("operation {pc}: two depths of the stack"));
                }
                (Some(d), _) | (None, Some(&d)) => Some(d),
                (None, None) => None,
            };
            let Some(d) = depth else { return Err(format!("operation {pc} cannot be reached")) };
            let (pops, pushes) = op.arity();
            let after = d.checked_sub(pops).ok_or_else(|| format!("operation {pc}: the stack is empty"))? + pushes;
            most = most.max(after);
            let is_value = |cell: usize| cell < self.values();
            let fits = match op {
                Op::Large(number) => (number as usize) < self.large.len(),
                Op::Load(cell) | Op::Store(cell) | Op::Ensure(cell) => is_value(cell as usize),
                Op::LoadAt { base, count } => base as usize + count as usize <= self.values(),
                Op::StoreAt { base } => is_value(base as usize),
                Op::Input(number) => (number as usize) < inputs,
                Op::At { process, .. } => (process as usize) < self.processes.len(),
                Op::Wrap { bits, .. } => bits > 0,
                Op::Goto(location) => process.is_some_and(|p| location as usize <= self.processes[p].end()),
                Op::Return => process.is_none() && d == 1,
                _ => true,
            };
            if !fits {
                return Err(format!("operation {pc}: {op:?} does not fit"));
            }
            if let Op::AndJump(to) | Op::OrJump(to) | Op::Unless(to) | Op::Jump(to) = op {
                let to = to as usize;
                let there = if matches!(op, Op::AndJump(_) | Op::OrJump(_)) { after + 1 } else { after };
                if to <= pc || to >= self.ops.len() || *depths.entry(to).or_insert(there) != there {
                    return Err(format!("operation {pc}: a jump to {to}"));
                }
                last = last.max(to);
            }
            depth = if matches!(op, Op::Jump(_) | Op::Goto(_) | Op::Return) { None } else { Some(after) };
            if depth.is_none() && pc >= last {
                return Ok((pc + 1, most));
            }
        }
        Err("it has no end".to_owned())
    }
}
