"""Runs kernels under callgrind, with separate counts. Started by `instructions.py`.

Instrumentation is on during the kernels alone, by Valgrind's client requests: the instruction sequence of valgrind.h
for x86-64, called through ctypes.
"""

from __future__ import annotations

import ctypes
import gc
import mmap
import sys
from collections.abc import Callable

from kernels import KERNELS

#: callgrind.h: VG_USERREQ_TOOL_BASE('C', 'T') and the requests from there on.
_BASE = ord("C") << 24 | ord("T") << 16
ZERO_STATS, DUMP_STATS_AT, START_INSTRUMENTATION, STOP_INSTRUMENTATION = (_BASE + place for place in (1, 3, 4, 5))

#: mov rax, rdi; xor edx, edx; rol rdi by 3, 13, 61 and 51; xchg rbx, rbx; mov rax, rdx; ret
_CODE = bytes.fromhex("4889f8 31d2 48c1c703 48c1c70d 48c1c73d 48c1c733 4887db 4889d0 c3")


def client_request() -> Callable[..., int]:
    """Returns the function for client requests, a no-op outside Valgrind."""
    memory = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    memory.write(_CODE)
    # This reference keeps the memory mapped.
    code = ctypes.c_char.from_buffer(memory)
    function = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.POINTER(ctypes.c_uint64))

    def request(number: int, argument: int = 0) -> int:
        return int(function(ctypes.addressof(code))((ctypes.c_uint64 * 6)(number, argument)))

    return request


def main() -> None:
    """Runs the named kernels, by default all."""
    request = client_request()
    for name in sys.argv[1:] or KERNELS:
        prepare = KERNELS[name]
        label = ctypes.create_string_buffer(name.encode())
        # Caches are filled, and Python's bytecode is specialised.
        prepare()()
        work = prepare()
        gc.collect()
        gc.disable()
        request(START_INSTRUMENTATION)
        request(ZERO_STATS)
        work()
        request(DUMP_STATS_AT, ctypes.addressof(label))
        request(STOP_INSTRUMENTATION)
        gc.enable()


if __name__ == "__main__":
    main()
