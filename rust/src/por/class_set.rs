//! Small sets of transition classes, as bits.

const WORDS: usize = 4;
pub const MOST_CLASSES: usize = 64 * WORDS;

/// A set of classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClassSet([u64; WORDS]);

impl ClassSet {
    pub fn one(class: usize) -> ClassSet {
        let mut set = ClassSet::default();
        set.0[class / 64] = 1 << (class % 64);
        set
    }

    pub fn has(&self, class: usize) -> bool {
        self.0[class / 64] >> (class % 64) & 1 == 1
    }

    pub fn with(self, other: ClassSet) -> ClassSet {
        ClassSet(std::array::from_fn(|i| self.0[i] | other.0[i]))
    }

    pub fn without(self, other: ClassSet) -> ClassSet {
        ClassSet(std::array::from_fn(|i| self.0[i] & !other.0[i]))
    }

    pub fn meets(self, other: ClassSet) -> bool {
        (0..WORDS).any(|i| self.0[i] & other.0[i] != 0)
    }

    pub fn first(self) -> Option<usize> {
        let word = self.0.iter().position(|&word| word != 0)?;
        Some(word * 64 + self.0[word].trailing_zeros() as usize)
    }

    pub fn is_empty(&self) -> bool {
        *self == ClassSet::default()
    }

    pub fn len(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..WORDS).flat_map(move |word| {
            let mut bits = self.0[word];
            std::iter::from_fn(move || {
                let bit = bits.trailing_zeros() as usize;
                bits &= bits.wrapping_sub(1);
                (bit < 64).then_some(word * 64 + bit)
            })
        })
    }
}

impl FromIterator<usize> for ClassSet {
    fn from_iter<T: IntoIterator<Item = usize>>(classes: T) -> ClassSet {
        classes.into_iter().fold(ClassSet::default(), |set, class| set.with(ClassSet::one(class)))
    }
}
