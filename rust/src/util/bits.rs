//! Sets of small numbers.

/// A set of numbers below a bound.
#[derive(Clone, Default)]
pub(crate) struct Bits(Vec<u64>);

impl Bits {
    /// None of the numbers below.
    pub fn none(bound: usize) -> Bits {
        Bits(vec![0; bound.div_ceil(64)])
    }

    /// All of them, and perhaps a few more.
    pub fn all(bound: usize) -> Bits {
        Bits(vec![u64::MAX; bound.div_ceil(64)])
    }

    #[inline]
    pub fn contains(&self, number: u32) -> bool {
        self.0[number as usize / 64] >> (number % 64) & 1 == 1
    }

    /// Whether it is new.
    #[inline]
    pub fn insert(&mut self, number: u32) -> bool {
        let (word, bit) = (&mut self.0[number as usize / 64], 1 << (number % 64));
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    /// Whether it was in.
    #[inline]
    pub fn remove(&mut self, number: u32) -> bool {
        let (word, bit) = (&mut self.0[number as usize / 64], 1 << (number % 64));
        let known = *word & bit != 0;
        *word &= !bit;
        known
    }

    /// In order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let numbers = |(at, &word): (usize, &u64)| {
            let mut left = word;
            std::iter::from_fn(move || {
                let lowest = (left != 0).then(|| left.trailing_zeros())?;
                left &= left - 1;
                Some(at as u32 * 64 + lowest)
            })
        };
        self.0.iter().enumerate().flat_map(numbers)
    }
}
