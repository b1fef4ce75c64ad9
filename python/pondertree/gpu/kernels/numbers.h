// Numbers as networks give them.

#pragma once

#include "here.h"

#define BFLOAT16 1

// A number of a network, which may have computed in bfloat16: the upper half of a float32.
HERE double number(const void *numbers, word at, int type) {
    union {
        unsigned bits;
        float number;
    } read;
    if (type != BFLOAT16) return (double)((const float *)numbers)[at];
    read.bits = (unsigned)((const unsigned short *)numbers)[at] << 16;
    return (double)read.number;
}
