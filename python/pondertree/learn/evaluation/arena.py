"""Matches and episodes in one batch, all positions of a player searched at once; and the file of evaluation games."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from pondertree import validation
from pondertree.errors import InvalidArgumentError, StorageError
from pondertree.evaluators.batch import Batch
from pondertree.evaluators.protocol import evaluate_batch
from pondertree.files import reading
from pondertree.learn.config import GameSpec, next_state
from pondertree.learn.data import MOVE_OUTCOMES, draw_outcomes, reward_of
from pondertree.match.notation import parse_move
from pondertree.match.openings import Opening, RandomOpenings, default_plies
from pondertree.random import Random, fold
from pondertree.search.base import Search

#: Purpose of the moves of the reference players.
CHOICE = 106
#: Longer games are scored as draws.
MAX_PLIES = 1000
#: Longer episodes are truncated.
MAX_STEPS = 20_000


class BatchPlayer(Protocol):
    """Chooses a move in each of many positions."""

    def __call__(self, states: Sequence[Any], seeds: Sequence[int]) -> list[int]:
        """Returns an action for each state; all randomness comes from the seeds."""
        ...


def search_player(search: Search) -> BatchPlayer:
    """Returns a player of a search's best moves, without noise."""

    def choose(states: Sequence[Any], seeds: Sequence[int]) -> list[int]:
        return [result.action for result in search.run(list(states), seeds=list(seeds), add_noise=None)]

    return choose


def bare_policy(evaluator: Any) -> BatchPlayer:
    """Returns a player that takes the legal move of highest prior, without a search: of an evaluator or a model."""

    def choose(states: Sequence[Any], seeds: Sequence[int]) -> list[int]:
        if hasattr(evaluator, "initial_inference"):
            observations = np.stack([np.array(state.observation(), dtype=np.float32) for state in states])
            policy = np.asarray(evaluator.initial_inference(observations)[1])
        else:
            policy = np.asarray(evaluate_batch(evaluator, Batch.of(states)).policy)
        listed = [[int(action) for action in state.legal_actions()] for state in states]
        return [legal[int(np.argmax(logits[legal]))] for legal, logits in zip(listed, policy, strict=True)]

    return choose


def random_player(states: Sequence[Any], seeds: Sequence[int]) -> list[int]:
    """Plays uniformly random legal moves."""
    return [int(draw_uniform(list(state.legal_actions()), seed)) for state, seed in zip(states, seeds, strict=True)]


def greedy_player(states: Sequence[Any], seeds: Sequence[int]) -> list[int]:
    """Plays a move of the highest immediate reward, at random among equal ones."""
    chosen = []
    for state, seed in zip(states, seeds, strict=True):
        actions = [int(action) for action in state.legal_actions()]
        rewards = [float(next_state(state, action).rewards()[0]) for action in actions]
        most = max(rewards)
        best = [action for action, reward in zip(actions, rewards, strict=True) if reward == most]
        chosen.append(draw_uniform(best, seed))
    return chosen


def draw_uniform(actions: list[int], seed: int) -> int:
    """Returns one of these actions."""
    return actions[Random(seed, CHOICE).choose(len(actions))]


def play_episodes(player: BatchPlayer, spec: GameSpec, count: int, seed: int) -> list[float]:
    """Returns the returns of `count` concurrent episodes of one player, each with its own seed."""
    returns = [0.0] * count
    states = [spec.start(fold(seed, number)) for number in range(count)]

    def draw_until_decision(number: int, step: int) -> None:
        key = fold(fold(fold(seed, number), MOVE_OUTCOMES), step)
        states[number], _, reward = draw_outcomes(states[number], spec.info, key)
        returns[number] += reward

    for number in range(count):
        draw_until_decision(number, 0)
    for step in range(MAX_STEPS):
        running = [number for number, state in enumerate(states) if not state.is_terminal]
        if not running:
            break
        seeds = [fold(fold(seed, number), step) for number in running]
        actions = player([states[number] for number in running], seeds)
        for number, action in zip(running, actions, strict=True):
            states[number] = next_state(states[number], action)
            returns[number] += reward_of(states[number], spec.info, action)
            draw_until_decision(number, step + 1)
    return returns


@dataclass(frozen=True, slots=True)
class ArenaGame:
    """A game between two players."""

    side: int
    """Which player of the game `one` was: 0 or 1."""
    opening: list[int]
    """The random moves at the start, and the outcomes of chance between them."""
    moves: list[int]
    """The moves and outcomes after them."""
    returns: tuple[float, ...]
    """The result for each player of the game; 0 if truncated."""

    @property
    def points(self) -> float:
        """Points of `one`: 0, 1/2 or 1."""
        return (self.returns[self.side] + 1.0) / 2.0


def count_pairs(games: Sequence[ArenaGame]) -> list[int]:
    """Counts consecutive pairs of games by the points of `one`: 0, 1/2, 1, 3/2, 2."""
    counts = [0] * 5
    for first, second in zip(games[::2], games[1::2], strict=True):
        counts[round(2.0 * (first.points + second.points))] += 1
    return counts


def play_games(one: BatchPlayer, other: BatchPlayer, spec: GameSpec, pairs: int, seed: int) -> list[ArenaGame]:
    """Plays each of `pairs` random openings twice: `one` is player 0 of even games and player 1 of odd ones.

    Both games of a pair draw their outcomes of chance from the same numbers.
    """
    openings = RandomOpenings(spec.factory, seed, default_plies(spec.factory))
    starts = [_opened(openings[number], spec.factory) for number in range(pairs)]
    states = [state for _, state in starts for _ in range(2)]
    moves: list[list[int]] = [[] for _ in states]

    def draw_until_decision(number: int, ply: int) -> None:
        key = fold(fold(fold(seed, number // 2), MOVE_OUTCOMES), ply)
        states[number], outcomes, _ = draw_outcomes(states[number], spec.info, key)
        moves[number] += outcomes

    for number in range(len(states)):
        draw_until_decision(number, 0)
    for ply in range(MAX_PLIES):
        running = [number for number, state in enumerate(states) if not state.is_terminal]
        if not running:
            break
        for player, place in ((one, 0), (other, 1)):
            mine = [
                number
                for number in running
                if not states[number].is_terminal and (states[number].to_play + number) % 2 == place
            ]
            if mine:
                seeds = [fold(fold(seed, number), ply) for number in mine]
                for number, action in zip(mine, player([states[number] for number in mine], seeds), strict=True):
                    states[number] = next_state(states[number], action)
                    moves[number].append(action)
                    draw_until_decision(number, 2 * ply + place + 1)
    return [
        ArenaGame(
            number % 2,
            starts[number // 2][0],
            moves[number],
            tuple(float(value) for value in state.returns()) if state.is_terminal else (0.0, 0.0),
        )
        for number, state in enumerate(states)
    ]


def _opened(opening: Opening, factory: Callable[[], Any]) -> tuple[list[int], Any]:
    """Returns (actions of an opening, state after it)."""
    state, actions = opening.root(factory), []
    for text in opening.moves:
        actions.append(parse_move(state, text))
        state = next_state(state, actions[-1])
    return actions, state


FORMAT = "pondertree-evaluation-games"
VERSION = 1


@dataclass(frozen=True, slots=True)
class EvaluationGame:
    """A game of the evaluated player against an opponent."""

    opponent: str
    game: ArenaGame


def games_path(step: int) -> str:
    """Returns the path of the games of a step's player in the run folder."""
    return f"players/step-{step:09d}.games.json"


def games_bytes(games: list[EvaluationGame]) -> bytes:
    """Serialises games."""
    data = [
        {
            "opponent": one.opponent,
            "side": one.game.side,
            "opening": one.game.opening,
            "moves": one.game.moves,
            "returns": one.game.returns,
        }
        for one in games
    ]
    return json.dumps({"format": FORMAT, "version": VERSION, "games": data}, separators=(",", ":")).encode() + b"\n"


def read_games(path: Path) -> list[EvaluationGame]:
    """Reads games; the legality of their moves is checked when they are replayed."""
    with reading(path, "a file of evaluation games", StorageError) as file:
        data = json.loads(file.read_bytes())
        if data["format"] != FORMAT or data["version"] != VERSION:
            raise StorageError(f"it is {validation.shown(data['format'])}; this version reads {FORMAT} {VERSION}")
        return [
            EvaluationGame(
                validation.text(one["opponent"], "opponent"),
                ArenaGame(
                    validation.whole_number(one["side"], "side", most=1),
                    _actions(one["opening"]),
                    _actions(one["moves"]),
                    _returns(one["returns"]),
                ),
            )
            for one in data["games"]
        ]


def _actions(values: list[int]) -> list[int]:
    return [validation.whole_number(value, "an action", most=(1 << 16) - 1) for value in values]


def _returns(values: list[float]) -> tuple[float, ...]:
    if len(values) != 2:
        raise InvalidArgumentError(f"returns must be two numbers, not {validation.shown(values)}")
    return tuple(validation.number(value, "a return", least=-1.0, most=1.0) for value in values)


#: Players without a network that evaluations with returns are compared with.
REFERENCE_PLAYERS: dict[str, BatchPlayer] = {"random": random_player, "greedy": greedy_player}
