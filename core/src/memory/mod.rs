//! The allocator of search trees.

pub(crate) mod block;
mod pages;
pub(crate) mod slab;
