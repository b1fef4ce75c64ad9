// What kernels are written in: CUDA, or C for a processor (tests do), where a warp has one lane and a block one thread.

#pragma once

#ifdef __CUDACC_RTC__
#define LANES 32
#define HERE static __device__ __forceinline__
#define SHUFFLE(x, lane) __shfl_sync(0xffffffffu, (x), (lane))
#define SWAP(x, step) __shfl_xor_sync(0xffffffffu, (x), (step))
#define FROM_BELOW(x, step) __shfl_up_sync(0xffffffffu, (x), (step))
#define BALLOT(bit) __ballot_sync(0xffffffffu, (bit))
#define COUNT_BITS(bits) __popc(bits)
#define MEET() __syncwarp()
#define MEET_ALL() __syncthreads()
#define SHARED __shared__
#define UNROLLED _Pragma("unroll")
#define INFINITE __longlong_as_double(0x7ff0000000000000LL)
#else
#include <math.h>
#define LANES 1
#define HERE static
#define SHUFFLE(x, lane) (x)
#define SWAP(x, step) (x)
#define FROM_BELOW(x, step) (x)
#define BALLOT(bit) ((bit) ? 1u : 0u)
#define COUNT_BITS(bits) __builtin_popcount(bits)
#define MEET()
#define MEET_ALL()
#define SHARED static
#define UNROLLED
#define INFINITE HUGE_VAL
#endif

typedef long long word;
typedef unsigned long long bits64;
