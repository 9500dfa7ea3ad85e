//! Arithmetic with fractions. What needs more than 64 bits, or a float, is left to CPython.

use super::operators::{OVERFLOW, ZERO, floor_divide};
use crate::vm::program::Binary;
use crate::vm::value::Value;
use crate::vm::value::library::Fraction;
use crate::vm::{Answer, Bail};
use std::rc::Rc;

const OPERANDS: Bail = Bail(&"an operator on a Fraction and something else");

pub fn fraction(numerator: i128, denominator: i128) -> Answer<Value> {
    if denominator == 0 {
        return Err(ZERO);
    }
    Ok(Value::Fraction(Rc::new(Fraction::new(numerator, denominator).ok_or(OVERFLOW)?)))
}

/// `left operator right`, where one of them is a fraction.
pub fn fractions(operator: Binary, left: &Value, right: &Value) -> Answer<Value> {
    let a = Fraction::of(left).ok_or(OPERANDS)?;
    let b = Fraction::of(right).ok_or(OPERANDS)?;
    let (n, m) = (i128::from(a.numerator), i128::from(b.numerator));
    let (d, e) = (i128::from(a.denominator), i128::from(b.denominator));
    // Products of two numbers of 64 bits fit. Their sum may need one bit more.
    let sum = |x: Option<i128>| x.ok_or(OVERFLOW);
    match operator {
        Binary::Add => fraction(sum((n * e).checked_add(m * d))?, d * e),
        Binary::Subtract => fraction(sum((n * e).checked_sub(m * d))?, d * e),
        Binary::Multiply => fraction(n * m, d * e),
        Binary::Divide => fraction(n * e, d * m),
        Binary::FloorDivide => floor(a, b).map(Value::Int),
        Binary::Modulo => {
            let quotient = i128::from(floor(a, b)?);
            let part = sum(quotient.checked_mul(m).and_then(|part| part.checked_mul(d)))?;
            fraction(sum((n * e).checked_sub(part))?, d * e)
        }
        _ => Err(OPERANDS),
    }
}

fn floor(a: Fraction, b: Fraction) -> Answer<i64> {
    let cross = |x: i64, y: i64| x.checked_mul(y).ok_or(OVERFLOW);
    floor_divide(cross(a.numerator, b.denominator)?, cross(a.denominator, b.numerator)?)
}
