//! Packed states. Each cell has as many bits as its values need so far; no cell crosses a word. A value that needs more bits
//! widens the cell: then all states are packed again (`arena`).

use super::number::Number;
use super::program::Program;

/// A value that does not fit in its cell yet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Narrow {
    pub cell: usize,
    pub value: i128,
}

/// Where a cell is, and how its value is written: in two's complement if it has a sign.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    word: u32,
    shift: u32,
    mask: u64,
    /// The bit of the sign, or 0.
    sign: u64,
}

/// The bits that a variable needs.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Width {
    bits: u32,
    signed: bool,
}

impl Width {
    /// The bits for all numbers of a range. None: more than 64.
    fn of(low: i128, high: i128) -> Option<Self> {
        let signed = low < 0;
        let bits = |n: i128| i128::BITS - n.leading_zeros();
        let needed = if signed { bits(high.max(!low).max(0)) + 1 } else { bits(high.max(0)) };
        (needed <= 64).then_some(Self { bits: needed, signed })
    }

    /// The bits for one more value, with some to spare.
    fn with(self, value: i128) -> Option<Self> {
        let (low, high) = self.range();
        let exact = Self::of(low.min(value), high.max(value))?;
        let bits = match exact.bits {
            0 | 1 | 64 => exact.bits,
            // Not 64 without a sign: there would be no room for a negative number later.
            33.. if !exact.signed => 63,
            needed => needed.next_power_of_two(),
        };
        Some(Self { bits, signed: exact.signed })
    }

    fn range(self) -> (i128, i128) {
        if self.signed { (-(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1) } else { (0, (1 << self.bits) - 1) }
    }
}

/// The places of all cells in a packed state.
#[derive(Clone, Debug)]
pub struct Layout {
    cells: Vec<Cell>,
    widths: Vec<Width>,
    pub words: usize,
    /// For each process and location: the bits that stay, word by word. Empty: all of them.
    kept: Vec<Vec<Vec<u64>>>,
}

impl Layout {
    /// The layout for the values that are known so far. None: a value does not fit in 64 bits.
    pub fn new(program: &Program) -> Option<Self> {
        let widths: Option<Vec<Width>> = program.variables.iter().map(|v| Width::of(v.low, v.high)).collect();
        Some(Self::place(program, widths?))
    }

    /// A layout with room for a value. None: the value does not fit in 64 bits.
    pub fn widened(&self, program: &Program, narrow: Narrow) -> Option<Self> {
        let mut widths = self.widths.clone();
        let variable = program.owners[narrow.cell];
        widths[variable] = widths[variable].with(narrow.value)?;
        Some(Self::place(program, widths))
    }

    fn place(program: &Program, widths: Vec<Width>) -> Self {
        let of_location = |p: &super::program::Process| Width::of(0, p.stuck() as i128).expect("few locations");
        let needed: Vec<Width> = (program.owners.iter().map(|&variable| widths[variable]))
            .chain(program.processes.iter().map(of_location))
            .collect();
        // The widest first: later ones fill the gaps.
        let mut order: Vec<usize> = (0..needed.len()).collect();
        order.sort_by_key(|&cell| std::cmp::Reverse(needed[cell].bits));
        let mut cells = vec![Cell::default(); needed.len()];
        let mut used: Vec<u32> = vec![0];
        let mut open = 0;
        for cell in order {
            let Width { bits, signed } = needed[cell];
            while used[open] == 64 && open + 1 < used.len() {
                open += 1;
            }
            let word = (open..used.len()).find(|&w| used[w] + bits <= 64).unwrap_or_else(|| {
                used.push(0);
                used.len() - 1
            });
            cells[cell] = Cell {
                word: word as u32,
                shift: used[word] % 64,
                mask: if bits == 64 { u64::MAX } else { (1 << bits) - 1 },
                sign: if signed { 1 << (bits - 1) } else { 0 },
            };
            used[word] += bits;
        }
        let words = used.len();
        let kept_at = |dead: &Vec<usize>| {
            if dead.is_empty() {
                return Vec::new();
            }
            let mut kept = vec![u64::MAX; words];
            for &cell in dead {
                let Cell { word, shift, mask, .. } = cells[cell];
                kept[word as usize] &= !(mask << shift);
            }
            kept
        };
        let kept = program.processes.iter().map(|p| p.dead.iter().map(kept_at).collect()).collect();
        Self { cells, widths, words, kept }
    }

    #[inline(always)]
    fn raw(&self, state: &[u64], cell: usize) -> (u64, u64) {
        let Cell { word, shift, mask, sign } = self.cells[cell];
        ((state[word as usize] >> shift) & mask, sign)
    }

    /// The value of a cell. None: a number of this type cannot have it.
    #[inline(always)]
    pub fn load<N: Number>(&self, state: &[u64], cell: usize) -> Option<N> {
        let (raw, sign) = self.raw(state, cell);
        N::loaded(raw, sign)
    }

    /// The location of a process, from its cell.
    #[inline(always)]
    pub fn location(&self, state: &[u64], cell: usize) -> usize {
        self.raw(state, cell).0 as usize
    }

    /// Write a cell.
    #[inline(always)]
    pub fn store<N: Number>(&self, state: &mut [u64], cell: usize, value: N) -> Result<(), Narrow> {
        let Cell { word, shift, mask, sign } = self.cells[cell];
        let raw = value.widened() as u64 & mask;
        if N::loaded(raw, sign) != Some(value) {
            return Err(Narrow { cell, value: value.widened() });
        }
        let there = &mut state[word as usize];
        *there = *there & !(mask << shift) | raw << shift;
        Ok(())
    }

    /// Write the location of a process, and set the locals that do not matter there to 0.
    #[inline(always)]
    pub fn arrive(&self, state: &mut [u64], cell: usize, process: usize, location: usize) {
        let Cell { word, shift, mask, .. } = self.cells[cell];
        let there = &mut state[word as usize];
        *there = *there & !(mask << shift) | (location as u64) << shift;
        for (word, kept) in state.iter_mut().zip(&self.kept[process][location]) {
            *word &= kept;
        }
    }

    /// Pack a state of a narrower layout.
    pub fn repack(&self, narrow: &Self, from: &[u64], to: &mut [u64]) {
        to.fill(0);
        for (cell, place) in self.cells.iter().enumerate() {
            let (raw, sign) = narrow.raw(from, cell);
            // In two's complement, the value of 64 bits has the value of every narrower cell in its last bits.
            let value = (raw ^ sign).wrapping_sub(sign);
            to[place.word as usize] |= (value & place.mask) << place.shift;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_width_has_room_for_its_range() {
        let width = |low, high| Width::of(low, high).map(|w| (w.bits, w.signed));
        assert_eq!(width(0, 0), Some((0, false)));
        assert_eq!(width(0, 1), Some((1, false)));
        assert_eq!(width(0, 255), Some((8, false)));
        assert_eq!(width(-1, 0), Some((1, true)));
        assert_eq!(width(-129, 3), Some((9, true)));
        assert_eq!(width(-1, 127), Some((8, true)));
        assert_eq!(width(0, u64::MAX.into()), Some((64, false)));
        assert_eq!(width(i64::MIN.into(), i64::MAX.into()), Some((64, true)));
        assert_eq!(width(-1, u64::MAX.into()), None);
        for value in [-5_i128, 0, 1, 2, 3, 100, -(1 << 63), (1 << 64) - 1] {
            let (low, high) = Width { bits: 0, signed: false }.with(value).unwrap().range();
            assert!((low..=high).contains(&value), "{value}");
        }
    }
}
