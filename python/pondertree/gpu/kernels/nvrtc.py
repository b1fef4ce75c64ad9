"""CUDA kernels, compiled at run time with the NVRTC that PyTorch ships, and launched through the driver API."""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch


class CompilationError(Exception):
    """No compiler is available, or it reported errors; the message is the compiler's. Callers fall back."""


class NotLaunchedError(RuntimeError):
    """A compiled kernel could not be launched."""


class Kernel:
    """A compiled kernel."""

    def __init__(self, driver: Any, function: ctypes.c_void_p) -> None:
        self._driver, self._function = driver, function

    def launch(self, blocks: int, threads: int, arguments: Sequence[Any]) -> None:
        """Launches the kernel on the current stream. Arguments are `ctypes` values, which are copied."""
        addresses = (ctypes.c_void_p * len(arguments))(*(ctypes.addressof(argument) for argument in arguments))
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        size = (blocks, 1, 1, threads, 1, 1, 0)
        status = self._driver.cuLaunchKernel(self._function, *map(ctypes.c_uint, size), stream, addresses, None)
        if status != 0:
            raise NotLaunchedError(f"the search's kernel could not be launched: error {status} of CUDA")


@functools.cache
def kernel(source: Path, name: str, options: tuple[str, ...], device: int) -> Kernel:
    """The kernel `name` of a source file, compiled for a device."""
    with torch.cuda.device(device):
        # Creates the device's CUDA context, which the module is loaded into.
        torch.cuda.current_stream().synchronize()
        major, minor = torch.cuda.get_device_capability(device)
        image = compile_source(source, (*options, f"--gpu-architecture=sm_{major}{minor}"))
        try:
            driver = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
        except OSError as error:
            raise CompilationError(str(error)) from error
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        _check(driver.cuModuleLoadData(ctypes.byref(module), image), "load")
        _check(driver.cuModuleGetFunction(ctypes.byref(function), module, name.encode()), "find")
        return Kernel(driver, function)


def compile_source(source: Path, options: Sequence[str]) -> bytes:
    """Compiles a source file to machine code, for which no device is needed."""
    compiler = _compiler()
    program = ctypes.c_void_p()
    text = source.read_bytes()
    _check(compiler.nvrtcCreateProgram(ctypes.byref(program), text, source.name.encode(), 0, None, None), "read")
    try:
        # Headers are in the same folder.
        arguments = [f"--include-path={source.parent}", *options]
        names = (ctypes.c_char_p * len(arguments))(*(option.encode() for option in arguments))
        if compiler.nvrtcCompileProgram(program, len(arguments), names) != 0:
            log = _text(compiler.nvrtcGetProgramLogSize, compiler.nvrtcGetProgramLog, program)
            raise CompilationError(log.decode(errors="replace"))
        return _text(compiler.nvrtcGetCUBINSize, compiler.nvrtcGetCUBIN, program)
    except AttributeError as error:  # NVRTC before CUDA 11.1
        raise CompilationError(str(error)) from error
    finally:
        compiler.nvrtcDestroyProgram(ctypes.byref(program))


@functools.cache
def _compiler() -> Any:
    """NVRTC of PyTorch's CUDA version: as already loaded, from the system, or from the `nvidia` wheels."""
    version = (torch.version.cuda or "").split(".")[0]
    if not version:
        raise CompilationError("PyTorch was built without CUDA")
    name = f"nvrtc64_{version}0_0.dll" if sys.platform == "win32" else f"libnvrtc.so.{version}"
    packages = Path(torch.__file__).parent.parent / "nvidia"
    for candidate in (name, *map(str, sorted(packages.glob(f"*/*/{name}")))):
        try:
            return ctypes.CDLL(candidate)
        except OSError:
            continue
    raise CompilationError(f"{name} was not found")


def _text(size_of: Any, get: Any, program: ctypes.c_void_p) -> bytes:
    size = ctypes.c_size_t()
    _check(size_of(program, ctypes.byref(size)), "measure")
    text = ctypes.create_string_buffer(size.value)
    _check(get(program, text), "fetch")
    return text.raw


def _check(status: int, what: str) -> None:
    if status != 0:
        raise CompilationError(f"could not {what} a kernel: error {status} of CUDA")
