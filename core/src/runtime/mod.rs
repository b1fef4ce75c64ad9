//! No dependencies inside the crate: random numbers, vector math, SIMD dispatch, thread pool.

pub(crate) mod dirichlet;
pub(crate) mod lanes;
pub(crate) mod parallel_vec;
pub(crate) mod random;
pub(crate) mod simd;
pub(crate) mod thread_pool;
#[cfg(feature = "rayon")]
pub(crate) mod thread_pool_ablation;
pub(crate) mod vector_math;
