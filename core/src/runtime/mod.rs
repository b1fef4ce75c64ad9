//! What every layer may use: random numbers, vector math, SIMD dispatch, prefetching, threads.

pub mod dirichlet;
pub mod parallel_vec;
pub mod prefetch;
pub mod random;
pub mod simd;
pub mod thread_pool;
#[cfg(feature = "rayon")]
pub mod thread_pool_ablation;
pub mod vector_math;
