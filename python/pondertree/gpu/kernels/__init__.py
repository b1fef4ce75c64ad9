"""CUDA kernels, compiled at run time with NVRTC."""
