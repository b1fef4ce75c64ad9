"""The kinds of cases: a single search, tree reuse between moves, a forest, a trace."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pondertree
from fingerprint_cases.transcript import Transcript, sparse

Options = Mapping[str, Any]
Case = Callable[[Transcript], None]
Cases = Iterator[tuple[str, Case]]


def run(search: Callable[[], Any], root: Callable[[], Any], **options: Any) -> Case:
    """One call of `run`."""

    def case(transcript: Transcript) -> None:
        given = root()
        found = search().run(**given, **options) if isinstance(given, dict) else search().run(given, **options)
        for result in found if isinstance(found, list) else [found]:
            transcript.result(result)

    return case


def reused(search: Callable[[], Any], root: Callable[[], Any], moves: int, add_noise: bool | None = None) -> Case:
    """A tree reused between moves: advanced by the best, the second best and the last move in turn."""

    def case(transcript: Transcript) -> None:
        given = root()
        tree = search().tree(**given) if isinstance(given, dict) else search().tree(given)
        for move in range(moves):
            result = tree.simulate(add_noise=add_noise).result()
            transcript.result(result)
            known = list(result.root.children)
            by_visits = sorted(known, key=lambda action: -result.visits[action])
            try:
                tree.advance((result.action, by_visits[:2][-1], known[-1])[move % 3])
            except pondertree.GameOverError:
                break
        transcript.result(tree.simulate(20).result())

    return case


def forest(search: Callable[[], Any], states: Callable[[], Sequence[Any]], **options: Any) -> Case:
    """A forest that is searched, partly advanced and reset, and searched again."""

    def case(transcript: Transcript) -> None:
        roots = states()
        given = {name: options[name] for name in ("seeds", "root_actions") if name in options}
        trees = search().forest(roots, **given)
        noise = options.get("add_noise")
        for _ in range(2):
            trees.simulate(options.get("n"), add_noise=noise)
            transcript.answer("actions", trees.actions(), trees.visits().sum(axis=1))
            transcript.write("values", trees.values(), "policies", [sparse(row) for row in trees.policies()])
            transcript.write("root policies", *trees.root_policies())
            actions = trees.actions().tolist()
            for row, action in enumerate(actions):
                if row % 3 == 1:
                    trees.reset(row, roots[0])
                elif not trees.state(row).play(action).is_terminal:
                    trees.advance(row, action)
        trees.simulate(options.get("n"), add_noise=noise)
        for result in trees.results(temperature=options.get("temperature")):
            transcript.result(result)

    return case


def traced(search: Callable[[], Any], root: Callable[[], Any]) -> Case:
    """Every descent with the scores of all moves."""

    def case(transcript: Transcript) -> None:
        given = root()
        trees = search().forest(**given) if isinstance(given, dict) else search().forest([given])
        trees.simulate()
        for row in trees.trace(0):
            transcript.write("simulation", row["simulation"], row["path"], row["values"], row["scores"])
        transcript.result(trees.result(0))

    return case


def named(prefix: str, options: Options) -> str:
    """Returns a case's name: prefix and options, with objects by their class."""
    shown = (f"{name}={_shown(value)}" for name, value in options.items())
    return " ".join((prefix, *shown))


def _shown(value: Any) -> str:
    if isinstance(value, str | int | float | tuple | list | None):
        return str(value).replace(" ", "").replace("'", "")
    return value.__name__ if callable(value) and hasattr(value, "__name__") else type(value).__name__
