//! SlotAllocator: small numbers under which positions are kept outside. A slot never moves; one that is given back is given out again.

/// Hands out slots.
#[derive(Clone, Debug, Default)]
pub struct SlotAllocator {
    free: Vec<u32>,
    next: u32,
}

impl SlotAllocator {
    /// A slot nobody has.
    pub fn allocate(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        })
    }

    /// How many slots there have been at the same time: all are below.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.next as usize
    }

    /// SlotAllocator that are free again.
    pub fn release(&mut self, slots: &[u32]) {
        self.free.extend(slots.iter().rev());
    }
}
