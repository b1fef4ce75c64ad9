"""The properties of the terms of a trace: they make up the scores exactly, and explain the choice."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pondertree.game import CHANCE
from pondertree.trace import ChoiceTerms, EdgeTerms, Scores, TraceRow

EDGE = {"action", "visits", "in_flight", "total", "proven"}
PRIORS = {"prior", "clean_prior"}
MODEL = {"reward", "discount", "value"}
SCORED = {"q", "excluded", "score"}
GUMBEL = {*EDGE, *PRIORS, *SCORED, "completed_q", "sigma"}
KEYS = {
    ("ucb1", "untried"): EDGE,
    ("ucb1", "score"): {*EDGE, *SCORED, "virtual_loss", "exploration"},
    ("puct", "untried"): {*EDGE, *PRIORS},
    ("puct", "score"): {
        *(*EDGE, *PRIORS, *SCORED),
        *("virtual_loss", "first_play_urgency", "exploration", "forced_visits"),
    },
    ("log_puct", "score"): {*EDGE, *PRIORS, *MODEL, *SCORED, "normalized_q", "exploration"},
    ("gumbel", "score"): {*GUMBEL, "improved_policy", "visit_share"},
    ("gumbel", "halving"): {*GUMBEL, "gumbel", "logit", "scheduled_visits", "considered"},
    ("chance", "balanced"): {*EDGE, "probability", "score"},
    ("chance", "sample"): {*EDGE, "probability", "score"},
}
CHOICE = {"player", "visits", "rule", "how", "edges"}
SHARED = {
    "ucb1": set(),
    "puct": {"exploration_weight"},
    "log_puct": {"exploration_weight", "low", "scale"},
    "gumbel": {"mixed_value", "sigma_weight", "low", "span"},
    "chance": set(),
}


def check_terms(rows: Sequence[TraceRow]) -> None:
    """Checks every choice of a trace."""
    for row in rows:
        assert len(row["path"]) == len(row["scores"]) == len(row["terms"])
        for action, scores, choice in zip(row["path"], row["scores"], row["terms"], strict=True):
            check_keys(choice)
            edges = {edge["action"]: edge for edge in choice["edges"]}
            if choice["rule"] == "chance":
                check_outcome(action, scores, choice)
                continue
            if scores is None:
                assert choice["how"] == "untried"
                # In the order of categories, the first; else any.
                assert action == next(iter(edges)) if "category" in edges[action] else action in edges
                continue
            for edge in choice["edges"]:
                check_edge(choice, edge)
            known = [(edge["action"], edge["score"]) for edge in choice["edges"] if not edge["excluded"]]
            if choice["how"] == "halving":
                assert set(scores) <= set(known)
            else:
                assert scores == known
            check_chosen(choice, edges[action])


def check_outcome(action: int, scores: Scores | None, choice: ChoiceTerms) -> None:
    """The outcome of a balanced choice has the highest score, the lowest number of equals."""
    assert choice["player"] == CHANCE
    assert choice["how"] == ("sample" if scores is None else "balanced")
    assert [edge["score"] for edge in choice["edges"]] == (
        [None] * len(choice["edges"]) if scores is None else [score for _, score in scores]
    )
    assert action in {edge["action"] for edge in choice["edges"]}
    assert choice["visits"] == sum(edge["visits"] + edge["in_flight"] for edge in choice["edges"])
    if scores is not None:
        for edge in choice["edges"]:
            assert edge["score"] == edge["probability"] / (edge["visits"] + edge["in_flight"] + 1.0)
        assert max(scores, key=lambda scored: (scored[1], -scored[0]))[0] == action


def check_keys(choice: ChoiceTerms) -> None:
    rule, how = choice["rule"], choice["how"]
    extra = {"considered_visits", "considered_actions"} if how == "halving" else set()
    normalizes = is_normalized(choice)
    if normalizes:
        extra = {"low", "scale"}
    assert set(choice) == {*CHOICE, *extra} | (SHARED[rule] if how != "untried" else set())
    for edge in choice["edges"]:
        optional = (MODEL if rule == "gumbel" else set()) | ({"category"} if rule == "puct" else set())
        expected = KEYS[rule, "score" if how == "forced" else how]
        if normalizes:
            expected = expected - {"virtual_loss"} | {"normalized_q"}
        assert expected <= set(edge) <= expected | optional


def is_normalized(choice: ChoiceTerms) -> bool:
    """Whether UCB1 or PUCT scored values on the scale of the tree."""
    return choice["rule"] in ("ucb1", "puct") and "scale" in choice


def check_edge(choice: ChoiceTerms, edge: EdgeTerms) -> None:
    """The terms give the score, and the statistics the terms, to the bit."""
    visits = edge["visits"] + edge["in_flight"]
    assert (edge["score"] is None) == edge["excluded"]
    assert edge["proven"] == -1 or not edge["excluded"]
    if "virtual_loss" in edge:
        assert edge["virtual_loss"] in (0, edge["in_flight"])
        if edge["proven"] is not None:
            assert edge["q"] == edge["proven"]
        elif visits:
            assert edge["q"] == (edge["total"] - edge["virtual_loss"]) / visits
        if choice["rule"] == "puct":
            assert edge["first_play_urgency"] == (visits == 0 and edge["proven"] is None)
    elif is_normalized(choice) and edge["proven"] is not None:
        assert edge["q"] == edge["proven"]
    elif edge["proven"] is None:
        assert edge["q"] == (edge["total"] / edge["visits"] if edge["visits"] else None)
    if "prior" in edge and "exploration" in edge:
        assert edge["exploration"] == choice["exploration_weight"] * edge["prior"] / (1.0 + visits)
    score = score_of(choice, edge, visits)
    assert edge["excluded"] or edge["score"] == score
    if edge.get("value") is not None:
        assert edge["q"] == pytest.approx(edge["reward"] + edge["discount"] * edge["value"], abs=1e-9)


def score_of(choice: ChoiceTerms, edge: EdgeTerms, visits: int) -> float:
    if is_normalized(choice):
        if edge["q"] is not None:
            assert edge["normalized_q"] == (edge["q"] - choice["low"]) * choice["scale"]
        elif choice["rule"] == "ucb1":
            assert edge["normalized_q"] == 0.0
        assert edge.get("first_play_urgency", edge["q"] is None) == (edge["q"] is None)
        return edge["normalized_q"] + edge["exploration"]
    if choice["rule"] in ("ucb1", "puct"):
        return edge["q"] + edge["exploration"]
    if choice["rule"] == "log_puct":
        value = 0.0 if edge["q"] is None else (edge["q"] - choice["low"]) * choice["scale"]
        assert edge["normalized_q"] == value
        return value + edge["exploration"]
    assert edge["completed_q"] == (choice["mixed_value"] if edge["q"] is None else edge["q"])
    assert edge["sigma"] == choice["sigma_weight"] * ((edge["completed_q"] - choice["low"]) / choice["span"])
    if choice["how"] == "halving":
        return max(-1e9, edge["gumbel"] + edge["logit"] + edge["sigma"])
    assert edge["visit_share"] == visits / choice["visits"]
    return edge["improved_policy"] - edge["visit_share"]


def check_chosen(choice: ChoiceTerms, chosen: EdgeTerms) -> None:
    assert not chosen["excluded"]
    if choice["how"] == "forced":
        assert 0 < chosen["visits"] + chosen["in_flight"] < chosen["forced_visits"]
        return
    if choice["how"] == "halving":
        assert chosen["considered"]
    rivals = [edge for edge in choice["edges"] if not edge["excluded"] and edge.get("considered", True)]
    assert chosen["score"] == max(edge["score"] for edge in rivals)
