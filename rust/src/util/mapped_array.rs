//! Long arrays of numbers in mapped memory. They use large pages where the system has them, so a random read costs one
//! cache miss and not two. They grow without a copy.

use memmap2::MmapMut;
use std::io;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

/// Zeroed memory; large pages are only asked for.
pub(crate) fn mapped(bytes: usize) -> io::Result<MmapMut> {
    let memory = MmapMut::map_anon(bytes)?;
    advise(&memory);
    Ok(memory)
}

/// More memory with the same content; what is new is zero.
pub(crate) fn remap(memory: &mut MmapMut, bytes: usize) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    // SAFETY: no reference into the mapping exists while it is borrowed mutably.
    unsafe {
        memory.remap(bytes, memmap2::RemapOptions::new().may_move(true))?;
    }
    #[cfg(not(target_os = "linux"))]
    {
        let mut larger = MmapMut::map_anon(bytes)?;
        larger[..memory.len()].copy_from_slice(memory);
        *memory = larger;
    }
    advise(memory);
    Ok(())
}

fn advise(memory: &MmapMut) {
    #[cfg(target_os = "linux")]
    {
        let _ = memory.advise(memmap2::Advice::HugePage);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = memory;
}

mod sealed {
    /// Numbers of which any bytes are one, and zeros are zero.
    pub trait Number: Copy {}
    impl Number for u8 {}
    impl Number for u32 {}
    impl Number for u64 {}
}

/// An array that grows at its end.
pub struct MappedArray<T: sealed::Number> {
    memory: MmapMut,
    len: usize,
    kind: PhantomData<T>,
}

impl<T: sealed::Number> MappedArray<T> {
    const LEAST_BYTES: usize = 1 << 16;

    /// So many zeros. Memory that is not written to is not taken.
    pub fn zeros(len: usize) -> io::Result<Self> {
        let memory = mapped((len * size_of::<T>()).max(Self::LEAST_BYTES))?;
        Ok(MappedArray { memory, len, kind: PhantomData })
    }

    /// Make it longer; what is new is zero.
    pub fn grow(&mut self, len: usize) -> io::Result<()> {
        let bytes = len * size_of::<T>();
        if bytes > self.memory.len() {
            let more = self.memory.len() * 2;
            remap(&mut self.memory, bytes.max(more))?;
        }
        self.len = self.len.max(len);
        Ok(())
    }

    pub fn bytes(&self) -> usize {
        self.len * size_of::<T>()
    }
}

impl<T: sealed::Number> Deref for MappedArray<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: the mapping is page-aligned, has room for `len` numbers, and any bytes are a number.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr().cast(), self.len) }
    }
}

impl<T: sealed::Number> DerefMut for MappedArray<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.memory.as_mut_ptr().cast(), self.len) }
    }
}

/// Ask the processor to have an element at hand soon.
#[inline]
pub fn prefetch<T>(slice: &[T], at: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(element) = slice.get(at) {
        // SAFETY: a prefetch has no effect but on the cache, and the address is inside the slice.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(element).cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (slice, at);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_keeps_its_content_and_grows_by_zeros() {
        let mut array = MappedArray::<u32>::zeros(0).unwrap();
        let mut plain = Vec::new();
        for n in 1..300u32 {
            let len = plain.len();
            plain.extend(0..n);
            array.grow(plain.len()).unwrap();
            array[len..].copy_from_slice(&plain[len..]);
            array.grow(plain.len() + 3).unwrap();
            plain.extend([0; 3]);
        }
        assert_eq!(*array, plain);
        assert_eq!(array.bytes(), plain.len() * 4);
        assert!(MappedArray::<u64>::zeros(100_000).unwrap().iter().all(|&n| n == 0));
    }
}
