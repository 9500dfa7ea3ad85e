//! The pieces of a program, and how the record of a piece becomes events again.
//!
//! A record has only the values that the reader cannot compute. Constants and the addresses of globals are in the table
//! of the program. Every frame has registers, one per site of its function: if an event uses a result of the same
//! frame, it is the last result of that site. The reader repeats integer arithmetic (`Formula`). A record has a loaded
//! value only if it differs from the expected one: the last value that was stored in a variable of the frame, or that
//! the same site loaded before.

use super::format::{self, Head, Layout, Record};
use super::formula::{Formula, Term};

/// Where a word of an event comes from.
#[derive(Clone, Copy, Debug)]
pub enum Source {
    Constant(u64),
    Stored(u8),
    Register(u32),
    Below,
    Computed(u32),
    /// The value of a variable, of this many bytes, unless the record has it.
    Variable(u32, u8),
    /// What the same site has made last, unless the record has it.
    Again(u32, u8),
    /// What was returned last.
    Returned,
    /// An argument of the last call.
    Argument(u32),
}

/// An origin and a number, as the table has them.
pub type Origin = (u8, u64);

#[derive(Clone, Copy, Debug)]
struct Step {
    kind: u8,
    site: u32,
    a: Source,
    b: Source,
}

#[derive(Debug)]
pub struct Piece {
    function: u32,
    /// Bytes of its record without what is expected, of what is loaded again, and of what variables hold.
    sizes: [u32; 3],
    steps: Vec<Step>,
}

impl Piece {
    pub fn events(&self) -> u64 {
        self.steps.len() as u64
    }

    /// Of its record, in bytes.
    pub fn size(&self, layout: Layout) -> usize {
        let [least, again, variables] = self.sizes;
        (match layout {
            Layout::Expected => least,
            Layout::Known => least + again,
            Layout::Everything => least + again + variables,
        }) as usize
    }
}

pub type StepRow = (u8, u32, u8, u64, u8, u64);
pub type FormulaRow = (u8, u8, u64, Vec<(u8, u64, u8, u64)>);

/// What a program is made of, as its table says.
#[derive(Default)]
pub struct Program {
    /// First site and number of sites, per function.
    pub functions: Vec<(u32, u32)>,
    pub pieces: Vec<Piece>,
    formulas: Vec<Formula>,
}

impl Program {
    /// From the rows of a table. `place` gives the address of a global.
    pub fn new(
        functions: Vec<(u32, u32)>,
        pieces: Vec<(u32, Vec<StepRow>)>,
        formulas: Vec<FormulaRow>,
        sites: usize,
        place: &dyn Fn(u64) -> Option<u64>,
    ) -> Result<Self, String> {
        let source = |(origin, number): Origin, itself: u32| {
            Ok(match (origin, number) {
                (0, value) => Source::Constant(value),
                (1, 1 | 2 | 4 | 8) => Source::Stored(number as u8),
                (2, _) => Source::Register(number as u32),
                (3, id) => Source::Constant(place(id).ok_or_else(|| format!("global {id} has no address"))?),
                (4, 4) => Source::Below,
                (5, _) if (number as usize) < formulas.len() => Source::Computed(number as u32),
                (6, _) if matches!(number % 16, 1 | 2 | 4 | 8) => {
                    Source::Variable((number / 16) as u32, (number % 16) as u8)
                }
                (7, 1 | 2 | 4 | 8) => Source::Again(itself, number as u8),
                (8, 0) => Source::Returned,
                (9, _) => Source::Argument(number as u32),
                _ => return Err(format!("the table has a word of origin {origin}, {number}")),
            })
        };
        let mut this = Self { functions, ..Self::default() };
        for (function, rows) in pieces {
            let Some(&(first, _)) = this.functions.get(function as usize) else {
                return Err(format!("a piece in the table refers to function {function}, which is not in the table"));
            };
            let mut piece = Piece { function, sizes: [4, 0, 0], steps: Vec::with_capacity(rows.len()) };
            for (kind, site, a, x, b, y) in rows {
                let itself = site.wrapping_sub(first);
                let step = Step { kind, site, a: source((a, x), itself)?, b: source((b, y), itself)? };
                if site == 0 || site as usize >= sites {
                    return Err(format!("an event in the table refers to site {site}, which is not in the table"));
                }
                for word in [step.a, step.b] {
                    let (part, width) = match word {
                        Source::Stored(width) => (0, width),
                        Source::Below => (0, 4),
                        Source::Again(_, width) => (1, width),
                        Source::Variable(_, width) => (2, width),
                        _ => continue,
                    };
                    piece.sizes[part] += u32::from(width);
                }
                piece.steps.push(step);
            }
            this.pieces.push(piece);
        }
        for (op, bits, base, rows) in &formulas {
            let terms = (rows.iter())
                .map(|&(origin, number, bits, factor)| {
                    let source = source((origin, number), 0)?;
                    match source {
                        Source::Constant(_) | Source::Register(_) => {
                            Ok(Term { source, bits: bits.clamp(1, 64), factor })
                        }
                        _ => Err("a formula in the table uses an unknown value".to_owned()),
                    }
                })
                .collect::<Result<Vec<_>, _>>()?;
            this.formulas.push(Formula::new(*op, *bits, *base, terms)?);
        }
        Ok(this)
    }
}

/// The fault that struck a thread: in which record, which site.
#[derive(Clone, Copy, Debug)]
pub struct Struck {
    pub at: usize,
    pub site: u32,
    pub before: u64,
    pub after: u64,
    pub how: How,
}

/// What a fault changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// One value, or a call.
    Once,
    /// The value that a store writes.
    Store,
    /// The values of all executions from this one on: these bits are 1, or 0.
    Ones(u64),
    Zeros(u64),
}

impl Struck {
    /// How the fault changes a word of an event in the record at a position: before and after it. None: it does not.
    fn strike(&self, at: usize, step: &Step, word: u64) -> Option<(u64, u64)> {
        let value = matches!(step.kind, format::VALUE | format::LOAD | format::ARGUMENT);
        if step.site != self.site || at < self.at {
            return None;
        }
        if at == self.at {
            let here =
                if self.how == How::Store { step.kind == format::STORE } else { value || step.kind == format::CALL };
            return here.then_some((self.before, self.after));
        }
        // The record may contain the changed value, or the reader may have computed the right one.
        match self.how {
            How::Ones(bits) if value => Some(((word | bits) ^ bits, word | bits)),
            How::Zeros(bits) if value => Some(((word & !bits) ^ bits, word & !bits)),
            _ => None,
        }
    }
}

struct Frame {
    pointer: u64,
    function: u32,
    first: usize,
}

/// What the reader knows of a site, in a frame.
#[derive(Clone, Copy, Default)]
struct Register {
    /// Its last result.
    made: u64,
    /// What was last stored there, if it is a variable.
    holds: u64,
}

/// Where the parts of a record are, as far as they were read: what is always there, what is loaded again, variables.
struct Cursor {
    layout: Layout,
    at: [usize; 3],
}

/// Reads the records of one thread, one after the other.
pub struct Decoder<'a> {
    program: &'a Program,
    bytes: &'a [u8],
    at: usize,
    /// How many events of the last record, which is not whole, have happened.
    partial: usize,
    fault: Option<Struck>,
    frames: Vec<Frame>,
    registers: Vec<Register>,
    /// Of the last call.
    arguments: Vec<u64>,
    returned: u64,
}

impl<'a> Decoder<'a> {
    pub fn new(program: &'a Program, bytes: &'a [u8], partial: usize, fault: Option<Struck>) -> Self {
        let (frames, registers, arguments) = (Vec::new(), Vec::new(), Vec::new());
        Self { program, bytes, at: 0, partial, fault, frames, registers, arguments, returned: 0 }
    }

    /// Show everything up to a place. `whole` is where the records that are whole end.
    pub fn run(&mut self, to: usize, whole: usize, visit: &mut impl FnMut(Record)) {
        while self.at < to {
            match format::head(self.bytes, self.at) {
                Some(Head::Piece(number, layout)) => {
                    let piece = &self.program.pieces[number as usize];
                    // One that is not whole has everything so far: what can be left out is known at its end.
                    let (done, layout) =
                        if self.at < whole { (piece.steps.len(), layout) } else { (self.partial, Layout::Everything) };
                    self.piece(piece, layout, done, visit);
                    self.at += piece.size(layout);
                }
                Some(Head::Own { words, .. }) => {
                    if let Some(record) = format::own(self.bytes, self.at) {
                        visit(record);
                    }
                    self.at += Head::own(words);
                }
                None => return,
            }
        }
    }

    fn piece(&mut self, piece: &Piece, layout: Layout, done: usize, visit: &mut impl FnMut(Record)) {
        let parts = [4, piece.size(Layout::Expected), piece.size(Layout::Known)];
        let mut cursor = Cursor { layout, at: parts.map(|offset| self.at + offset) };
        if piece.steps.first().is_some_and(|s| !matches!(s.kind, format::ENTER | format::LANDING)) {
            self.settle(piece.function);
        }
        let struck = self.fault.filter(|fault| fault.at <= self.at);
        for step in &piece.steps[..done.min(piece.steps.len())] {
            let mut words = [self.word(step.a, &mut cursor), self.word(step.b, &mut cursor), 0];
            let changed = usize::from(matches!(step.kind, format::LOAD | format::STORE));
            if let Some((before, after)) = struck.and_then(|fault| fault.strike(self.at, step, words[changed])) {
                if step.kind != format::CALL {
                    words[changed] = after;
                }
                visit(Record { kind: format::FAULT, detail: 0, site: step.site, words: [before, after, 0] });
            }
            match step.kind {
                format::VALUE | format::ALLOCA => self.know(step.site, words[0]),
                format::LOAD => self.know(step.site, words[1]),
                format::STORE => self.hold(step.a, words[1]),
                format::CALL => self.arguments.clear(),
                format::ARGUMENT => self.arguments.push(words[0]),
                format::RETURN => self.returned = words[0],
                format::ENTER => self.enter(piece.function, words[0]),
                format::LANDING => {
                    self.leave(|frame| frame.pointer < words[0]);
                    self.settle(piece.function);
                }
                _ => {}
            }
            visit(Record { kind: step.kind, detail: 0, site: step.site, words });
            if step.kind == format::RETURN
                && let Some(frame) = self.frames.pop()
            {
                self.registers.truncate(frame.first);
            }
        }
    }

    #[inline]
    fn word(&self, source: Source, cursor: &mut Cursor) -> u64 {
        let mut take = |part: usize, width: u8| {
            let at = cursor.at[part];
            cursor.at[part] += usize::from(width);
            format::bytes(self.bytes, at, usize::from(width)).unwrap_or(0)
        };
        match source {
            Source::Constant(value) => value,
            Source::Stored(width) => take(0, width),
            Source::Again(_, width) if cursor.layout <= Layout::Known => take(1, width),
            Source::Variable(_, width) if cursor.layout == Layout::Everything => take(2, width),
            Source::Variable(number, _) => self.slot(number).holds,
            Source::Again(number, _) | Source::Register(number) => self.slot(number).made,
            Source::Returned => self.returned,
            Source::Argument(number) => self.arguments.get(number as usize).copied().unwrap_or(0),
            Source::Below => {
                let distance = take(0, 4);
                self.frames.last().map_or(0, |f| f.pointer.wrapping_sub(distance))
            }
            Source::Computed(number) => self.program.formulas[number as usize].value(|source| self.register(source)),
        }
    }

    #[inline]
    fn register(&self, source: Source) -> u64 {
        match source {
            Source::Constant(value) => value,
            Source::Register(number) => self.slot(number).made,
            _ => 0,
        }
    }

    #[inline]
    fn slot(&self, number: u32) -> Register {
        let first = self.frames.last().map_or(0, |f| f.first);
        self.registers.get(first + number as usize).copied().unwrap_or_default()
    }

    /// Remember the value of a variable of the frame. If the register is no variable, the value is never read.
    #[inline]
    fn hold(&mut self, address: Source, value: u64) {
        let (Some(frame), Source::Register(number)) = (self.frames.last(), address) else { return };
        if let Some(register) = self.registers.get_mut(frame.first + number as usize) {
            register.holds = value;
        }
    }

    #[inline]
    fn know(&mut self, site: u32, value: u64) {
        let Some(frame) = self.frames.last() else { return };
        let first = self.program.functions[frame.function as usize].0;
        if let Some(register) = self.registers.get_mut(frame.first + (site.wrapping_sub(first)) as usize) {
            register.made = value;
        }
    }

    fn enter(&mut self, function: u32, pointer: u64) {
        self.leave(|frame| frame.pointer <= pointer);
        let first = self.registers.len();
        self.frames.push(Frame { pointer, function, first });
        self.registers.resize(first + self.program.functions[function as usize].1 as usize, Register::default());
    }

    fn leave(&mut self, gone: impl Fn(&Frame) -> bool) {
        while let Some(frame) = self.frames.pop_if(|frame| gone(frame)) {
            self.registers.truncate(frame.first);
        }
    }

    /// A piece of this function is next: whatever was called has been left, without a return if it is still here.
    fn settle(&mut self, function: u32) {
        if self.frames.last().is_some_and(|frame| frame.function == function) {
            return;
        }
        if self.frames.iter().any(|frame| frame.function == function) {
            self.leave(|frame| frame.function != function);
        } else {
            self.enter(function, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::formula::{ICMP, LINEAR, MUL};
    use super::*;

    /// A function of five sites: entry, an alloca, a load, `load * 3 - 1` in 8 bits, a return.
    fn program() -> Program {
        let formulas = vec![
            (MUL, 8, 0, vec![(2, 2, 8, 1), (0, 3, 8, 1)]),
            (LINEAR, 8, u64::MAX, vec![(2, 3, 8, 1)]),
            (ICMP, 1, 40, vec![(2, 2, 8, 1), (0, 0, 8, 1)]),
        ];
        let first = vec![(format::ENTER, 1, 1, 8, 0, 0), (format::ALLOCA, 2, 4, 4, 0, 16)];
        let second = vec![
            (format::LOAD, 3, 2, 1, 1, 1),
            (format::VALUE, 4, 5, 0, 0, 0),
            (format::VALUE, 5, 5, 1, 0, 0),
            (format::VALUE, 6, 5, 2, 0, 0),
            (format::STORE, 7, 2, 1, 2, 4),
        ];
        let third = vec![(format::RETURN, 8, 2, 4, 0, 0)];
        let pieces = vec![(0, first), (0, second), (0, third)];
        Program::new(vec![(1, 8)], pieces, formulas, 9, &|_| None).unwrap()
    }

    fn enter(frame: u64) -> Vec<u8> {
        [&0u32.to_le_bytes()[..], &frame.to_le_bytes(), &32u32.to_le_bytes()].concat()
    }

    fn load(value: u8) -> Vec<u8> {
        [&1u32.to_le_bytes()[..], &[value]].concat()
    }

    fn read(bytes: &[u8], whole: usize, partial: usize, fault: Option<Struck>) -> Vec<(u8, [u64; 2])> {
        let program = program();
        let mut found = Vec::new();
        let mut decoder = Decoder::new(&program, bytes, partial, fault);
        decoder.run(bytes.len(), whole, &mut |r| found.push((r.kind, [r.words[0], r.words[1]])));
        found
    }

    #[test]
    fn what_is_not_stored_is_known() {
        let bytes = [enter(1000), load(100)].concat();
        let found = read(&bytes, bytes.len(), 0, None);
        // 100 * 3 is 44 in eight bits; 100 is not less than 0, but 200 is: it has a sign.
        assert_eq!(found[..4], [(5, [1000, 0]), (4, [968, 16]), (2, [968, 100]), (1, [44, 0])]);
        assert_eq!(found[4..], [(1, [43, 0]), (1, [0, 0]), (3, [968, 43])]);
        let bytes = [enter(1000), load(200)].concat();
        assert_eq!(read(&bytes, bytes.len(), 0, None)[5], (1, [1, 0]));
    }

    #[test]
    fn every_frame_has_its_own_registers() {
        let end = 2u32.to_le_bytes().to_vec();
        let bytes = [enter(1000), load(10), enter(900), load(1), end.clone(), end].concat();
        let returns: Vec<_> =
            read(&bytes, bytes.len(), 0, None).into_iter().filter(|r| r.0 == format::RETURN).collect();
        assert_eq!(returns, [(6, [2, 0]), (6, [29, 0])]);
    }

    #[test]
    fn a_record_that_is_not_whole_has_what_has_happened() {
        let whole = enter(1000).len();
        let bytes = [enter(1000), load(10)].concat();
        assert_eq!(read(&bytes, whole, 2, None).len(), 4);
    }

    #[test]
    fn a_fault_changes_what_is_computed_from_there_on() {
        let bytes = [enter(1000), load(10)].concat();
        let fault = Struck { at: enter(1000).len(), site: 4, before: 30, after: 31, how: How::Once };
        let found = read(&bytes, bytes.len(), 0, Some(fault));
        assert_eq!(found[3..6], [(format::FAULT, [30, 31]), (1, [31, 0]), (1, [30, 0])]);
    }

    /// A variable (site 2) is given what a load (3) has found, then loaded (4); all in one byte each.
    fn expecting(records: &[&[u8]], whole: usize, partial: usize) -> Vec<[u64; 2]> {
        let first = vec![(format::ENTER, 1, 1, 8, 0, 0), (format::ALLOCA, 2, 4, 4, 0, 1)];
        let second =
            vec![(format::LOAD, 3, 0, 77, 7, 1), (format::STORE, 4, 2, 1, 2, 2), (format::LOAD, 5, 2, 1, 6, 16 + 1)];
        let program = Program::new(vec![(1, 5)], vec![(0, first), (0, second)], vec![], 6, &|_| None).unwrap();
        let bytes = [&enter(1000)[..], &records.concat()].concat();
        let mut found = Vec::new();
        let mut decoder = Decoder::new(&program, &bytes, partial, None);
        let whole = enter(1000).len() + whole;
        decoder.run(bytes.len(), whole, &mut |r| found.push([r.words[0], r.words[1]]));
        found.split_off(2)
    }

    #[test]
    fn what_is_not_as_expected_is_in_the_record() {
        let (all, known, none) = ([1, 0, 0, 0, 7, 7], [1, 0, 0, 0x20, 8], [1, 0, 0, 0x40]);
        let loaded = |words: &[[u64; 2]]| words.iter().map(|w| w[1]).collect::<Vec<_>>();
        let found = expecting(&[&none, &all, &none, &known, &none], 23, 0);
        assert_eq!(loaded(&found), [0, 0, 0, 7, 7, 7, 7, 7, 7, 8, 8, 8, 8, 8, 8]);
        let overwritten = [1, 0, 0, 0, 7, 9];
        assert_eq!(loaded(&expecting(&[&overwritten, &none], 10, 0)), [7, 7, 9, 7, 7, 7]);
    }

    #[test]
    fn a_record_that_is_not_whole_has_everything() {
        let open = [1, 0, 0, 0x40, 7, 9];
        assert_eq!(expecting(&[&open], 0, 3), [[77, 7], [968, 7], [968, 9]]);
        assert_eq!(expecting(&[&open], 0, 1), [[77, 7]]);
    }

    #[test]
    fn tables_that_make_no_sense_are_refused() {
        let none = |_: u64| None;
        let refused = |pieces, formulas| Program::new(vec![(1, 8)], pieces, formulas, 9, &none).is_err();
        assert!(refused(vec![(1, vec![])], vec![]), "a function that is not there");
        assert!(refused(vec![(0, vec![(1, 9, 0, 0, 0, 0)])], vec![]), "a site");
        assert!(refused(vec![(0, vec![(1, 1, 1, 3, 0, 0)])], vec![]), "three bytes");
        assert!(refused(vec![(0, vec![(1, 1, 3, 7, 0, 0)])], vec![]), "a global without an address");
        assert!(refused(vec![(0, vec![(1, 1, 6, 16 + 5, 0, 0)])], vec![]), "a variable of five bytes");
        assert!(refused(vec![(0, vec![(1, 1, 7, 0, 0, 0)])], vec![]), "nothing again");
        assert!(refused(vec![], vec![(MUL, 8, 0, vec![])]), "a product of nothing");
        assert!(refused(vec![], vec![(99, 8, 0, vec![])]), "an unknown operation");
    }
}
