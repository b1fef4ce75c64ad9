//! The allocator of the trees: pages of the operating system, slabs of blocks, typed blocks.

pub(crate) mod block;
mod pages;
pub(crate) mod slab;
