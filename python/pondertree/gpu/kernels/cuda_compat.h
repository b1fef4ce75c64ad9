// The dialect of the kernels: CUDA, or C for a CPU (tests), where a warp has one lane and a block one thread.

#pragma once

#ifdef __CUDACC_RTC__
#define LANES 32
#define DEVICE static __device__ __forceinline__
#define SHUFFLE(x, lane) __shfl_sync(0xffffffffu, (x), (lane))
#define SHUFFLE_XOR(x, step) __shfl_xor_sync(0xffffffffu, (x), (step))
#define SHUFFLE_UP(x, step) __shfl_up_sync(0xffffffffu, (x), (step))
#define BALLOT(bit) __ballot_sync(0xffffffffu, (bit))
#define COUNT_BITS(bits) __popc(bits)
#define SYNC_WARP() __syncwarp()
#define SYNC_BLOCK() __syncthreads()
#define SHARED __shared__
#define UNROLLED _Pragma("unroll")
#define INFINITE __longlong_as_double(0x7ff0000000000000LL)
#else
#include <math.h>
#define LANES 1
#define DEVICE static
#define SHUFFLE(x, lane) (x)
#define SHUFFLE_XOR(x, step) (x)
#define SHUFFLE_UP(x, step) (x)
#define BALLOT(bit) ((bit) ? 1u : 0u)
#define COUNT_BITS(bits) __builtin_popcount(bits)
#define SYNC_WARP()
#define SYNC_BLOCK()
#define SHARED static
#define UNROLLED
#define INFINITE HUGE_VAL
#endif

typedef long long int64;
typedef unsigned long long uint64;
