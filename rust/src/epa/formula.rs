//! Recomputes results that are not recorded: integer arithmetic, comparisons, conversions, addresses of elements.

use super::program::Source;

pub const LINEAR: u8 = 0;
pub const MUL: u8 = 12;
const SHL: u8 = 20;
const LSHR: u8 = 21;
const ASHR: u8 = 22;
const AND: u8 = 23;
const OR: u8 = 24;
const XOR: u8 = 25;
pub const ICMP: u8 = 42;
const SELECT: u8 = 46;

#[derive(Clone, Copy, Debug)]
pub struct Term {
    pub source: Source,
    pub bits: u8,
    pub factor: u64,
}

/// How a result is computed.
#[derive(Debug)]
pub struct Formula {
    op: u8,
    bits: u8,
    base: u64,
    terms: Vec<Term>,
}

#[inline]
fn mask(value: u64, bits: u8) -> u64 {
    value & (u64::MAX >> (64 - bits))
}

#[inline]
fn signed(value: u64, bits: u8) -> i64 {
    ((value << (64 - bits)) as i64) >> (64 - bits)
}

impl Formula {
    /// From the rows of a table: the opcode of the instruction, the width of the result, and the operands.
    pub fn new(op: u8, bits: u8, base: u64, terms: Vec<Term>) -> Result<Self, String> {
        let operands = match op {
            LINEAR => terms.len(),
            SELECT => 3,
            MUL | SHL..=XOR | ICMP => 2,
            _ => return Err(format!("the table has a formula of opcode {op}")),
        };
        if terms.len() != operands {
            return Err(format!("the table has a formula of opcode {op} with {} operands", terms.len()));
        }
        Ok(Self { op, bits: bits.clamp(1, 64), base, terms })
    }

    #[inline]
    pub fn value(&self, word: impl Fn(Source) -> u64) -> u64 {
        let at = |i: usize| word(self.terms[i].source);
        let sign = |i: usize| signed(at(i), self.terms[i].bits);
        let result = match self.op {
            LINEAR => (self.terms.iter()).fold(self.base, |sum, term| {
                sum.wrapping_add((signed(word(term.source), term.bits) as u64).wrapping_mul(term.factor))
            }),
            MUL => at(0).wrapping_mul(at(1)),
            SHL => at(0).wrapping_shl(at(1) as u32),
            LSHR => at(0).wrapping_shr(at(1) as u32),
            ASHR => sign(0).wrapping_shr(at(1) as u32) as u64,
            AND => at(0) & at(1),
            OR => at(0) | at(1),
            XOR => at(0) ^ at(1),
            SELECT => at(if at(0) & 1 == 1 { 1 } else { 2 }),
            // LLVM's numbers of the predicates.
            _ => u64::from(match self.base {
                32 => at(0) == at(1),
                33 => at(0) != at(1),
                34 => at(0) > at(1),
                35 => at(0) >= at(1),
                36 => at(0) < at(1),
                37 => at(0) <= at(1),
                38 => sign(0) > sign(1),
                39 => sign(0) >= sign(1),
                40 => sign(0) < sign(1),
                _ => sign(0) <= sign(1),
            }),
        };
        mask(result, self.bits)
    }
}
