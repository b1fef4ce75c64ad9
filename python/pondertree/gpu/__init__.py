"""Searches on a GPU: batches in flight, captured CUDA graphs, and trees that live on the device."""
