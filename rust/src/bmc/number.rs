//! The arithmetic of programs on machine numbers. A result that does not fit is `None`, never a wrong number. Steps are
//! executed with 64 bits first, and with 128 bits if these are not enough.

/// A machine number: `i64` or `i128`.
pub trait Number: Copy + Ord {
    const ZERO: Self;
    const ONE: Self;

    /// A number of 64 bits.
    fn small(value: i64) -> Self;
    /// A number of 128 bits, if it fits.
    fn wide(value: i128) -> Option<Self>;
    /// The number as 128 bits.
    fn widened(self) -> i128;
    /// The number of a cell: `sign` is the bit of the sign in `raw`, 0 for a cell without a sign.
    fn loaded(raw: u64, sign: u64) -> Option<Self>;
    /// The number as an index.
    fn index(self) -> Option<usize>;

    fn add(self, other: Self) -> Option<Self>;
    fn subtract(self, other: Self) -> Option<Self>;
    fn multiply(self, other: Self) -> Option<Self>;
    /// The sum modulo 2^64 (or 2^128): only a `wrap` to 64 bits or less may follow. So for the next two.
    fn add_modular(self, other: Self) -> Self;
    fn subtract_modular(self, other: Self) -> Self;
    fn multiply_modular(self, other: Self) -> Self;
    fn shift_left_modular(self, other: Self) -> Option<Self>;
    /// Division that rounds towards zero.
    fn quotient(self, other: Self) -> Option<Self>;
    fn remainder(self, other: Self) -> Option<Self>;
    /// Division that rounds down.
    fn divide(self, other: Self) -> Option<Self>;
    fn modulo(self, other: Self) -> Option<Self>;
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    fn shift_left(self, other: Self) -> Option<Self>;
    fn shift_right(self, other: Self) -> Option<Self>;
    /// The number modulo 2^bits, from 0 or with a sign.
    fn wrap(self, bits: u32, signed: bool) -> Option<Self>;
}

macro_rules! number {
    ($type:ty, $unsigned:ty) => {
        impl Number for $type {
            const ZERO: Self = 0;
            const ONE: Self = 1;

            #[inline(always)]
            fn small(value: i64) -> Self {
                value as $type
            }

            #[inline(always)]
            fn wide(value: i128) -> Option<Self> {
                value.try_into().ok()
            }

            #[inline(always)]
            fn widened(self) -> i128 {
                self as i128
            }

            #[inline(always)]
            fn loaded(raw: u64, sign: u64) -> Option<Self> {
                let signed = (raw ^ sign).wrapping_sub(sign) as i64;
                if sign == 0 && signed < 0 { raw.try_into().ok() } else { Some(signed as $type) }
            }

            #[inline(always)]
            fn index(self) -> Option<usize> {
                self.try_into().ok()
            }

            #[inline(always)]
            fn add(self, other: Self) -> Option<Self> {
                self.checked_add(other)
            }

            #[inline(always)]
            fn subtract(self, other: Self) -> Option<Self> {
                self.checked_sub(other)
            }

            #[inline(always)]
            fn multiply(self, other: Self) -> Option<Self> {
                self.checked_mul(other)
            }

            #[inline(always)]
            fn add_modular(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            #[inline(always)]
            fn subtract_modular(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }

            #[inline(always)]
            fn multiply_modular(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }

            fn shift_left_modular(self, other: Self) -> Option<Self> {
                let by = u32::try_from(other).ok()?;
                Some(self.checked_shl(by).unwrap_or(0))
            }

            fn quotient(self, other: Self) -> Option<Self> {
                self.checked_div(other)
            }

            fn remainder(self, other: Self) -> Option<Self> {
                self.checked_rem(other)
            }

            fn divide(self, other: Self) -> Option<Self> {
                let (quotient, remainder) = (self.checked_div(other)?, self.checked_rem(other)?);
                Some(if remainder != 0 && (remainder < 0) != (other < 0) { quotient - 1 } else { quotient })
            }

            fn modulo(self, other: Self) -> Option<Self> {
                let remainder = self.checked_rem(other)?;
                Some(if remainder != 0 && (remainder < 0) != (other < 0) { remainder + other } else { remainder })
            }

            #[inline(always)]
            fn and(self, other: Self) -> Self {
                self & other
            }

            #[inline(always)]
            fn or(self, other: Self) -> Self {
                self | other
            }

            #[inline(always)]
            fn xor(self, other: Self) -> Self {
                self ^ other
            }

            fn shift_left(self, other: Self) -> Option<Self> {
                if other >= 0 && self == 0 {
                    return Some(0);
                }
                let by = u32::try_from(other).ok()?;
                let shifted = self.checked_shl(by)?;
                (shifted >> by == self).then_some(shifted)
            }

            fn shift_right(self, other: Self) -> Option<Self> {
                if other < 0 {
                    return None;
                }
                let most = <$type>::BITS - 1;
                Some(self >> u32::try_from(other).map_or(most, |by| by.min(most)))
            }

            #[inline(always)]
            fn wrap(self, bits: u32, signed: bool) -> Option<Self> {
                if bits >= <$type>::BITS {
                    // Only a number without a sign can differ from this one, and then it may not fit.
                    return if signed || self >= 0 { Some(self) } else { None };
                }
                let unused = <$type>::BITS - bits;
                let up = self << unused;
                Some(if signed { up >> unused } else { ((up as $unsigned) >> unused) as $type })
            }
        }
    };
}

number!(i64, u64);
number!(i128, u128);

#[cfg(test)]
mod tests {
    use super::*;

    /// Floor division and modulo, from the definition: a = q * b + r, r between 0 and b (b excluded).
    #[test]
    fn division_rounds_down_and_quotients_round_towards_zero() {
        for a in -9_i64..=9 {
            for b in (-4..=4).filter(|&b| b != 0) {
                let (q, r) = (Number::divide(a, b).unwrap(), a.modulo(b).unwrap());
                assert_eq!(a, q * b + r);
                assert!(if b > 0 { (0..b).contains(&r) } else { b < r && r <= 0 }, "{a} {b}");
                let (q, r) = (a.quotient(b).unwrap(), a.remainder(b).unwrap());
                assert_eq!((q, r), ((a as f64 / b as f64).trunc() as i64, a - q * b));
            }
        }
        assert_eq!(Number::divide(1_i64, 0), None);
        assert_eq!(i64::MIN.quotient(-1), None);
    }

    #[test]
    fn a_result_that_does_not_fit_is_none() {
        assert_eq!(i64::MAX.add(1), None);
        assert_eq!(Number::widened(i64::MAX).add(1), Some(1_i128 << 63));
        assert_eq!(1_i64.shift_left(62), Some(1 << 62));
        assert_eq!(1_i64.shift_left(63), None);
        assert_eq!(0_i64.shift_left(1000), Some(0));
        assert_eq!((-1_i64).shift_right(1000), Some(-1));
        assert_eq!(1_i64.shift_right(-1), None);
        assert_eq!(i64::loaded(u64::MAX, 0), None);
        assert_eq!(i128::loaded(u64::MAX, 0), Some(u64::MAX.into()));
        assert_eq!(i64::loaded(0b111, 0b100), Some(-1));
    }

    #[test]
    fn numbers_wrap_in_twos_complement() {
        assert_eq!(200_i64.wrap(8, true), Some(-56));
        assert_eq!((-1_i64).wrap(8, false), Some(255));
        assert_eq!((-1_i64).wrap(64, false), None);
        assert_eq!((-1_i128).wrap(64, false), Some(u64::MAX.into()));
        assert_eq!(i64::MAX.add_modular(1).wrap(64, true), Some(i64::MIN));
    }
}
