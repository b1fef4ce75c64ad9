"""The first difference between the traces of two searches.

Final visit counts show only that the engine and the reference implementation differ; the first differing row shows
where.
"""

from __future__ import annotations

from collections.abc import Sequence

from pondertree.trace import ChoiceTerms, Scores, TraceRow


def first_difference(a: Sequence[TraceRow], b: Sequence[TraceRow]) -> str | None:
    """Returns a description of the first difference between traces `a` and `b`; None if they are equal.

    Numbers are compared exactly. A row is compared in the order of the descent (at each depth the scores, their terms,
    then the action; the values last), so that the report names the cause of a difference and not its consequence.
    """
    for row_a, row_b in zip(a, b, strict=False):
        difference = _difference_of_rows(row_a, row_b)
        if difference is not None:
            return difference
    if len(a) != len(b):
        return f"equal for {min(len(a), len(b))} simulations, then one ends: a has {len(a)}, b has {len(b)}"
    return None


def _difference_of_rows(a: TraceRow, b: TraceRow) -> str | None:
    if a["simulation"] != b["simulation"]:
        return f"the simulation numbers differ: {a['simulation']} in a, {b['simulation']} in b"
    where = f"simulation {a['simulation']}"
    path_a, path_b = list(a["path"]), list(b["path"])
    for depth in range(max(len(path_a), len(path_b))):
        here = f"{where}, depth {depth}, after actions {path_a[:depth]}"
        if depth >= len(path_a) or depth >= len(path_b):
            longer, other = ("b", "a") if depth >= len(path_a) else ("a", "b")
            return f"{here}: {other} stops, {longer} goes on with action {(path_a + path_b[depth:])[depth]}"
        difference = _difference_of_scores(a["scores"][depth], b["scores"][depth])
        difference = difference or _difference_of_terms(a["terms"][depth], b["terms"][depth])
        if difference is not None:
            return f"{here}: {difference}"
        if path_a[depth] != path_b[depth]:
            how = "opens" if a["scores"][depth] is None else "takes, from equal scores,"
            return f"{here}: a {how} action {path_a[depth]}, b action {path_b[depth]}"
    values_a, values_b = list(a["values"]), list(b["values"])
    if values_a != values_b:
        return f"{where}, path {path_a}: the values backed up differ: {values_a} in a, {values_b} in b"
    return None


def _difference_of_scores(a: Scores | None, b: Scores | None) -> str | None:
    if a is None or b is None:
        if a is None and b is None:
            return None
        opening, choosing = ("a", "b") if a is None else ("b", "a")
        return f"{opening} opens an action, {choosing} chooses by score"
    actions_a, actions_b = [action for action, _ in a], [action for action, _ in b]
    if actions_a != actions_b:
        return f"the compared actions differ: {actions_a} in a, {actions_b} in b"
    for (action, score_a), (_, score_b) in zip(a, b, strict=True):
        if score_a != score_b:
            return f"action {action} scores {score_a!r} in a, {score_b!r} in b"
    return None


def _difference_of_terms(a: ChoiceTerms, b: ChoiceTerms) -> str | None:
    pairs: list[tuple[str, dict[str, object], dict[str, object]]]
    pairs = [("the choice", {**a, "edges": []}, {**b, "edges": []})]
    actions_a, actions_b = ([edge["action"] for edge in choice["edges"]] for choice in (a, b))
    if actions_a != actions_b:
        return f"the recorded actions differ: {actions_a} in a, {actions_b} in b"
    edges = zip(a["edges"], b["edges"], strict=True)
    pairs += [(f"action {one['action']}", {**one}, {**other}) for one, other in edges]
    for what, one, other in pairs:
        for name in [*one, *(name for name in other if name not in one)]:
            in_a, in_b = one.get(name, "nothing"), other.get(name, "nothing")
            if in_a != in_b:
                return f"the term {name} of {what} differs: {in_a!r} in a, {in_b!r} in b"
    return None
