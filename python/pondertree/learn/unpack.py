"""Packed observations unpacked, where they are learned from."""

from __future__ import annotations

import torch


def unpacked(planes: torch.Tensor, numbers: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    """The observations, float32 [N, *shape], from planes (as int64) and numbers, on the device that these are on."""
    if numbers.dtype == torch.uint8:
        numbers = numbers.float() / 255.0
    if planes.shape[1] == 0:
        return numbers.reshape(len(numbers), *shape)
    cells = torch.arange(shape[1] * shape[2], device=planes.device)
    bits = ((planes[:, :, None] >> cells) & 1).float()
    constant = numbers[:, :, None].expand(-1, -1, len(cells))
    return torch.cat([bits, constant], dim=1).reshape(len(planes), *shape)
