"""The ladder of anchor opponents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from tests.support.learning import small

from pondertree.errors import InvalidArgumentError
from pondertree.learn import train
from pondertree.learn.config.defaults import default_config
from pondertree.learn.config.sections import EvaluationConfig
from pondertree.learn.evaluation.ladder import first_opponent, opponents_of, play_ladder, uncalibrated
from pondertree.learn.evaluation.metrics import read_metrics

RUNGS = ("UCT 1", "UCT 2", "UCT 4", "UCT 8")
LADDER: dict[str, Any] = {"games": 8, "simulations": 200, "solve": True, "ladder": RUNGS[:3], "ladder_score": 0.6}


def line(**matches: list[int]) -> dict[str, Any]:
    named = {name.replace("_", " "): counts for name, counts in matches.items()}
    return {"kind": "evaluation", "name": "step 1", "matches": named}


@pytest.mark.parametrize(
    ("begin", "scores", "met"),
    [
        (0, {"UCT 1": 0.5}, ["UCT 1"]),
        (0, {"UCT 1": 0.8, "UCT 2": 0.79}, ["UCT 1", "UCT 2"]),
        (0, {"UCT 1": 1.0, "UCT 2": 1.0, "UCT 4": 1.0, "UCT 8": 1.0}, list(RUNGS)),
        (3, {"UCT 8": 1.0}, ["UCT 8"]),
        (3, {"UCT 8": 0.2, "UCT 4": 0.1, "UCT 2": 0.21}, ["UCT 8", "UCT 4", "UCT 2"]),
        (0, {"UCT 1": 0.0}, ["UCT 1"]),
        # The direction does not change within one evaluation.
        (1, {"UCT 2": 0.9, "UCT 4": 0.0}, ["UCT 2", "UCT 4"]),
        (1, {"UCT 2": 0.0, "UCT 1": 1.0}, ["UCT 2", "UCT 1"]),
    ],
)
def test_ladder_stops_at_opponent_neither_too_weak_nor_too_strong(
    begin: int, scores: dict[str, float], met: list[str]
) -> None:
    assert play_ladder(RUNGS, begin, 0.8, scores.__getitem__) == met


def test_evaluation_starts_with_last_opponent_of_previous_one() -> None:
    assert first_opponent(RUNGS, []) == 0
    lines = [line(UCT_1=[0, 0, 0, 0, 2], UCT_2=[1, 0, 1, 0, 0]), {"kind": "round"}, line(step_1=[0, 0, 2, 0, 0])]
    assert first_opponent(RUNGS, lines) == 1
    # Opponents removed from the ladder are ignored.
    assert first_opponent(("UCT 4", "UCT 8"), lines) == 0


def test_uncalibrated_anchors_are_paired_down_to_weakest() -> None:
    assert uncalibrated(RUNGS, ["UCT 1"], []) == []
    assert uncalibrated(RUNGS, ["UCT 4"], []) == [("UCT 2", "UCT 1"), ("UCT 4", "UCT 2")]
    known = {**line(), "references": {"UCT 2": {"UCT 1": [0, 0, 2, 0, 0]}}}
    assert uncalibrated(RUNGS, ["UCT 2", "UCT 4"], [known, line()]) == [("UCT 4", "UCT 2")]


def evaluations(out: Path) -> list[dict[str, Any]]:
    lines = read_metrics(out / "metrics.jsonl")
    return [
        {key: value for key, value in line.items() if key != "elapsed"}
        for line in lines
        if line["kind"] == "evaluation"
    ]


def test_resumed_run_continues_ladder_where_it_stopped(tmp_path: Path) -> None:
    """200 simulations with proofs beat UCT with 1 or 2 without training; the next evaluation starts there."""
    config = small(tmp_path / "one", steps=4).with_values(evaluation=LADDER)
    train(config)
    [first] = evaluations(tmp_path / "one")
    assert list(first["matches"]) == ["UCT 1", "UCT 2", "UCT 4"]
    assert all(first["scores"][name] >= 0.6 for name in ("UCT 1", "UCT 2"))
    assert {above: list(below) for above, below in first["references"].items()} == {
        "UCT 2": ["UCT 1"],
        "UCT 4": ["UCT 2"],
    }
    assert first["elo_low"] <= first["elo"] <= first["elo_high"]
    result = train(config.with_values(steps=8), resume=True)
    [again, second] = evaluations(tmp_path / "one")
    assert again == first
    assert next(iter(second["matches"])) == "UCT 4"
    assert list(second["matches"])[-1] == "step 4"
    assert second["references"] == {}, "opponents meet each other once"
    assert len(result.evaluations) == 2
    # The run is deterministic in its seed.
    train(small(tmp_path / "other", steps=4).with_values(evaluation=LADDER))
    assert evaluations(tmp_path / "other") == [first]


def test_fixed_opponents_are_played_in_every_evaluation(tmp_path: Path) -> None:
    fixed = {**LADDER, "uct_simulations": (2, 1), "games": 2}
    train(small(tmp_path, steps=2).with_values(evaluation=fixed))
    [found] = evaluations(tmp_path)
    assert (list(found["matches"]), found["references"]) == (["UCT 1", "UCT 2"], {})
    # Without fixed opponents and ladder, only predecessors are met, and there is no Elo.
    train(small(tmp_path, steps=4).with_values(evaluation={**fixed, "uct_simulations": ()}), resume=True)
    assert list(evaluations(tmp_path)[-1]["matches"]) == ["step 2"]
    assert evaluations(tmp_path)[-1]["elo"] is None


def test_default_ladder_starts_with_uct_100_and_uses_hybrid_for_chess() -> None:
    for game in ("tic-tac-toe", "connect4", "othello", "chess"):
        names = opponents_of(default_config(game))
        assert names[0] == "UCT 100"
        assert any(name.startswith("Hybrid") for name in names) == (game == "chess")
        assert default_config(game).evaluation.uct_simulations is None


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"ladder": "UCT 100"}, "evaluation.ladder must be a list"),
        ({"ladder": ("UCT 100", "UCB 7")}, r"evaluation.ladder\[1\] must be a search and its simulations"),
        ({"ladder": (100,)}, r"evaluation.ladder\[0\] must be"),
        ({"ladder": ("UCT 0",)}, r"evaluation.ladder\[0\] must be"),
        ({"ladder": ("UCT 5", "UCT 5")}, "must name each opponent once"),
        ({"ladder_score": 0.5}, "evaluation.ladder_score must be above 0.5"),
        ({"ladder_score": 1.5}, "evaluation.ladder_score must be"),
    ],
)
def test_invalid_ladder_is_refused_with_field_name(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        EvaluationConfig(**values)


def test_hybrid_anchor_is_refused_outside_chess(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with pytest.raises(InvalidArgumentError, match=r"evaluation.ladder\[1\]: Hybrid plays chess and not tic_tac_toe"):
        train(small(out, steps=1).with_values(evaluation={"ladder": ["UCT 5", "Hybrid 5"]}))
    assert not out.exists()
