"""Fits of PeSTO weights by our L-BFGS and by SciPy's: time, evaluations of the error, and the errors reached.

    PYTHONPATH=. python benches/texel_fit.py [POSITIONS]

Positions are of random games, with results drawn from known weights. Needs SciPy, which OpenSpiel brings.
`docs/decisions/023-libraries.md` has a record.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from typing import Any

from scipy.optimize import minimize
from tests.support.tuning import drawn_by

from pondertree.chess import Pesto
from pondertree.chess.weights import MAX_WEIGHT
from pondertree.tune import FitOptions, fitting, material_only
from pondertree.tune.features import weights_of
from pondertree.tune.texel import prepare

ROUNDS = 3


def fit_by_scipy(train: Any, held_back: Any, start: Pesto, options: FitOptions) -> fitting.FitState:
    """Fits as `fitting.fit` does, with the steps of SciPy's L-BFGS-B and the same early stopping."""
    anchor = weights_of(start)
    state = fitting.begin(train, held_back, start, options)

    def after_step(parameters: Any) -> None:
        nonlocal state
        state = replace(state, parameters=parameters.copy(), iteration=state.iteration + 1)
        state = fitting.validate(state, train, held_back)
        if state.is_over(options):
            raise StopIteration

    limit = MAX_WEIGHT / 100.0
    bounds = [(-limit, limit)] * (len(state.parameters) - 1) + [(None, None)]
    minimize(
        lambda parameters: fitting.cost_and_gradient(train, parameters, anchor, options),
        state.parameters,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        callback=after_step,
        options={"maxcor": fitting.MEMORY, "maxiter": options.iterations, "ftol": fitting.MIN_DECREASE, "gtol": 0.0},
    )
    return state


def main() -> None:
    """Prints a line for each of the options, the two methods and the rounds."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 60_000
    dataset = prepare(drawn_by(Pesto(scale=200.0), count), material_only(), held_back=0.1)
    evaluate, calls = fitting.cost_and_gradient, [0]

    def counted(*arguments: Any) -> Any:
        calls[0] += 1
        return evaluate(*arguments)

    fitting.cost_and_gradient = counted  # type: ignore[assignment]
    arguments = dataset.train, dataset.validation_set, material_only()
    for options in (FitOptions(), FitOptions(patience=300)):
        for _ in range(ROUNDS):
            for name, fit in (("ours", lambda *given: fitting.fit(*given)[0]), ("SciPy", fit_by_scipy)):
                calls[0], began = 0, time.perf_counter()
                state = fit(*arguments, options)
                seconds = time.perf_counter() - began
                print(
                    f"patience {options.patience:3}  {name:5}  {seconds:6.2f} s  {state.iteration:3} steps  "
                    f"{calls[0]:3} evaluations  training {state.history[-1][0]:.6f}  validation {state.best_error:.6f}"
                )


if __name__ == "__main__":
    main()
