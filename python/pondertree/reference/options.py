"""Checks of what a search is told, which name the option and say what would be right."""

from __future__ import annotations

import math


def at_least(least: int, **numbers: int) -> None:
    """Each of the numbers, given by name, must be `least` or more."""
    for name, number in numbers.items():
        if number < least:
            raise ValueError(f"{name} must be at least {least}, not {number}")


def not_negative(**numbers: float) -> None:
    """Each of the numbers, given by name, must be finite and not below 0."""
    for name, number in numbers.items():
        if not (math.isfinite(number) and number >= 0.0):
            raise ValueError(f"{name} must be finite and not negative, not {number}")


def tagged(value: float | tuple[str, float], name: str, tag: str) -> tuple[bool, float]:
    """A number, or a pair of `tag` and a number: whether it is tagged, and the number."""
    is_tagged = isinstance(value, tuple)
    if isinstance(value, tuple):
        if len(value) != 2 or value[0] != tag:
            raise ValueError(f'{name} must be a number or ("{tag}", number), not {value!r}')
        value = value[1]
    if not math.isfinite(value):
        raise ValueError(f"{name} must be finite, not {value}")
    return is_tagged, float(value)


def check_noise(alpha: float, share: float, alpha_name: str, share_name: str) -> None:
    """Noise at the root must have a concentration, and a share of the priors."""
    if alpha <= 0.0:
        raise ValueError(f"{alpha_name} must be above 0, not {alpha}")
    between(0.0, 1.0, **{share_name: share})


def between(least: float, most: float, **numbers: float) -> None:
    """Each of the numbers, given by name, must be from `least` to `most`."""
    for name, number in numbers.items():
        if not least <= number <= most:
            raise ValueError(f"{name} must be from {least:g} to {most:g}, not {number}")
