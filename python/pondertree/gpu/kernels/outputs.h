// Outputs of networks, of the dtypes in `tree_layout.DTYPE_CODES`.

#pragma once

#include "cuda_compat.h"

#define BFLOAT16 1

// Reads one number; bfloat16 is the upper half of a float32.
DEVICE double number(const void *numbers, int64 at, int type) {
    union {
        unsigned bits;
        float number;
    } read;
    if (type != BFLOAT16) return (double)((const float *)numbers)[at];
    read.bits = (unsigned)((const unsigned short *)numbers)[at] << 16;
    return (double)read.number;
}
