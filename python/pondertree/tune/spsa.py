"""Simultaneous perturbation stochastic approximation (SPSA): optimisation by noisy comparisons.

Every step perturbs all parameters at once by random signs, compares the two opposite points, and moves towards the
better one: one comparison per step for any number of parameters (Spall 1998, "Implementation of the simultaneous
perturbation algorithm").

Each step is a line of a record with a checksum, from which a run resumes exactly.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pondertree import validation
from pondertree.errors import InvalidArgumentError
from pondertree.files import reading
from pondertree.match.record import LineFile, check_same_settings, read_line, settings_of_header
from pondertree.random import fold

FORMAT = "pondertree spsa"
VERSION = 1
#: Spall's exponents: decay of the step size and of the perturbation.
ALPHA, GAMMA = 0.602, 0.101


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A tuned parameter."""

    name: str
    start: float
    step: float
    """The initial perturbation, in the parameter's unit, or as a factor if `log`."""
    low: float
    high: float
    log: bool = False
    """Whether the coordinate is logarithmic."""

    @property
    def unit(self) -> float:
        return math.log(self.step) if self.log else self.step

    def to_number(self, value: float) -> float:
        """Converts a value to a coordinate, in units of `step`."""
        return (math.log(value) if self.log else value) / self.unit

    def to_value(self, number: float) -> float:
        """Converts a coordinate to a value within the bounds."""
        value = math.exp(number * self.unit) if self.log else number * self.unit
        return min(max(value, self.low), self.high)


@dataclass(frozen=True, slots=True)
class Step:
    """One comparison."""

    number: int
    signs: tuple[int, ...]
    score: float
    """Score of the point with these signs against the opposite one, in [0, 1]."""
    numbers: tuple[float, ...]
    """Coordinates after the step."""


#: (values of one point, values of the other, seed) -> score of the first, in [0, 1].
Compare = Callable[[Sequence[float], Sequence[float], int], float]


def run_spsa(
    parameters: Sequence[Parameter],
    compare: Compare,
    *,
    iterations: int,
    gain: float = 1.0,
    seed: int = 0,
    record: str | os.PathLike[str] | None = None,
    resume: bool = False,
    about: Mapping[str, Any] | None = None,
    progress: Callable[[list[Step]], object] | None = None,
) -> tuple[list[float], list[Step]]:
    """Returns (the values found, all steps): the mean over the second half of the steps, since single steps are noisy.

    `gain` is the initial step size for a comparison with score 1. `about` holds further settings that a record must
    match on resume. A resumed run may have other `iterations`, but keeps the schedule of the original number.
    `progress` is called with all steps after each.
    """
    iterations = validation.count(iterations, "iterations")
    gain = validation.positive_number(gain, "gain")
    seed = validation.whole_number(seed, "seed")
    settings = {
        "parameters": [asdict(one) for one in parameters],
        "iterations": iterations,
        "gain": gain,
        "seed": seed,
        **(about or {}),
    }
    steps: list[Step] = []
    file = None if record is None else _Record(record, settings, resume)
    planned = iterations
    try:
        if file is not None:
            steps, planned = file.known, file.planned
            if steps and progress is not None:
                progress(steps)
        start = tuple(one.to_number(one.start) for one in parameters)
        while len(steps) < iterations:
            here = np.array(steps[-1].numbers if steps else start)
            step = take_step(parameters, compare, here, len(steps), planned, gain, seed)
            if file is not None:
                file.write(asdict(step))
            steps.append(step)
            if progress is not None:
                progress(steps)
    finally:
        if file is not None:
            file.close()
    return best_values(parameters, steps), steps


def take_step(
    parameters: Sequence[Parameter],
    compare: Compare,
    here: NDArray[np.float64],
    number: int,
    planned: int,
    gain: float,
    seed: int,
) -> Step:
    """Takes one SPSA step; `planned` is the number of iterations of the schedule."""
    signs = np.random.default_rng([seed, number]).choice((-1.0, 1.0), size=len(parameters))
    distance = (number + 1.0) ** -GAMMA
    points = [
        [one.to_value(at) for one, at in zip(parameters, here + side * distance * signs, strict=True)]
        for side in (1.0, -1.0)
    ]
    score = validation.number(compare(points[0], points[1], fold(seed, number)), "score", least=0.0, most=1.0)
    # Spall's stability constant A: nearly constant steps in the first tenth.
    stability = 1.0 + planned / 10.0
    size = gain * (stability / (stability + number)) ** ALPHA / distance
    # The score difference estimates the slope along the signs.
    moved = here + size * (2.0 * score - 1.0) * signs
    within = [one.to_number(one.to_value(at)) for one, at in zip(parameters, moved, strict=True)]
    return Step(number, tuple(int(sign) for sign in signs), score, tuple(within))


def best_values(parameters: Sequence[Parameter], steps: Sequence[Step]) -> list[float]:
    """Returns the mean over the second half of the steps."""
    if not steps:
        return [one.start for one in parameters]
    second = np.array([step.numbers for step in steps[len(steps) // 2 :]])
    return [one.to_value(float(at)) for one, at in zip(parameters, second.mean(axis=0), strict=True)]


def _step_of(data: Mapping[str, Any], parameters: Sequence[Parameter]) -> Step:
    """Validates a step of a record."""
    signs = tuple(validation.number(sign, "signs") for sign in data["signs"])
    numbers = tuple(validation.number(one, "numbers") for one in data["numbers"])
    if not len(signs) == len(numbers) == len(parameters) or not set(signs) <= {-1.0, 1.0}:
        raise InvalidArgumentError(f"signs (-1 or 1) and numbers must be {len(parameters)}, one for each parameter")
    for one, number in zip(parameters, numbers, strict=True):
        validation.number(number, one.name, least=one.to_number(one.low) - 1e-6, most=one.to_number(one.high) + 1e-6)
    score = validation.number(data["score"], "score", least=0.0, most=1.0)
    return Step(validation.whole_number(data["number"], "number"), tuple(map(int, signs)), score, numbers)


class _Record(LineFile):
    """The record of an SPSA run: a line with its settings, then one per step."""

    CONTENT = "an SPSA run"

    def __init__(self, path: str | os.PathLike[str], settings: dict[str, Any], resume: bool) -> None:
        self.known: list[Step] = []
        #: The iterations of the original run.
        self.planned = int(settings["iterations"])
        self._settings = settings
        header = {"format": FORMAT, "version": VERSION, "settings": settings}
        super().__init__(path, "record", header, self._read, resume=resume)

    def _read(self, content: bytes) -> None:
        parameters = [Parameter(**one) for one in self._settings["parameters"]]
        for number, line in enumerate(content.split(b"\n")[:-1], start=-1):
            with reading(self.path, f"the record of {self.CONTENT} (line {number + 2})"):
                data = read_line(line)
                if number < 0:
                    recorded = settings_of_header(data, FORMAT, VERSION)
                    self.planned = validation.count(recorded["iterations"], "iterations")
                    check_same_settings(recorded, self._settings, self.path, mutable=("iterations",))
                elif data["number"] != number:
                    raise ValueError(f"step {number} is missing")
                else:
                    self.known.append(_step_of(data, parameters))
