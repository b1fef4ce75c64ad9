"""Learns move scores and evaluation weights from the moves and scores of a stronger engine (the teacher).

    python scripts/learn_from_teacher.py label games.jsonl labels.jsonl --program stockfish --nodes 4000
    python scripts/learn_from_teacher.py moves labels.jsonl move_scores.json     # MoveScores.from_file
    python scripts/learn_from_teacher.py weights labels.jsonl weights.json       # Pesto.from_file

`games.jsonl` is the record of a match or of self-play (`pondertree match --out`, `pondertree tune --self-play`). Some
positions of each game are sampled, most of them after one or two random moves: a search visits many positions that no
game reaches, and must refute bad moves. The teacher is any UCI program.

Move scores are fitted to the teacher's move by logistic regression over the legal moves, on top of the category
weights. Evaluation weights are fitted as by `pondertree tune`, to the teacher's score instead of the result, in quiet
positions. Every tenth game is held back for validation.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import chess.engine
import numpy as np

from pondertree._core import MoveWeights
from pondertree.chess import MoveScores, Pesto
from pondertree.chess.config import CATEGORY_WEIGHTS
from pondertree.games import Chess
from pondertree.tune.features import Features, errors, pesto_of, weights_of
from pondertree.tune.fitting import FitOptions, fit, unpack

#: Positions before this ply belong to the opening.
FIRST_PLY = 8
#: Numbers of random moves before labelling a position, equally likely.
RANDOM_MOVES = (0, 0, 1, 1, 2)
#: Positions with larger scores are decided and left out.
MAX_CENTIPAWNS = 1200
#: Every n-th game is held back for validation.
HELD_BACK = 10
BATCH, EPOCHS, RATE = 2048, 24, 0.03


def replay(moves: list[str]) -> Any:
    """Returns the state after these moves, with its history."""
    state: Any = Chess()
    for move in moves:
        state = state.play(state.parse_action(move))
    return state


def label(given: argparse.Namespace) -> None:
    """Labels positions of games with the teacher's moves and scores."""
    random_numbers = random.Random(given.seed)
    games = []
    for line in given.source.read_text(encoding="utf-8").splitlines():
        games += [game["moves"] for game in json.loads(line).get("games", []) if len(game["moves"]) > FIRST_PLY]
    random_numbers.shuffle(games)
    with (
        chess.engine.SimpleEngine.popen_uci(given.program) as teacher,
        given.out.open("w", encoding="utf-8") as out,
    ):
        for number, game in enumerate(games):
            plies = range(FIRST_PLY, len(game))
            for ply in random_numbers.sample(plies, min(given.per_game, len(plies))):
                moves, state = list(game[:ply]), replay(game[:ply])
                for _ in range(random_numbers.choice(RANDOM_MOVES)):
                    if not state.is_terminal:
                        action = random_numbers.choice(state.legal_actions())
                        moves.append(state.action_to_string(action))
                        state = state.play(action)
                if state.is_terminal or len(state.legal_actions()) < 2:
                    continue
                board = chess.Board(state.fen())
                reply = teacher.play(board, chess.engine.Limit(nodes=given.nodes), info=chess.engine.INFO_SCORE)
                score = reply.info["score"].relative.score()
                if reply.move is not None:
                    out.write(
                        json.dumps({"game": number, "moves": moves, "best": reply.move.uci(), "score": score}) + "\n"
                    )


def read(source: Path) -> Iterator[tuple[int, Any, str, int | None]]:
    """Yields (game, position, the teacher's move, its centipawns or None for a mate)."""
    for line in source.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        yield row["game"], replay(row["moves"]), row["best"], row["score"]


class Choices:
    """Positions with the features of their legal moves, labelled with the teacher's move."""

    def __init__(self) -> None:
        # Lists until `freeze`, then arrays.
        self.features: Any = []
        self.shares: Any = []
        self.moves: Any = [0]
        self.positions: Any = [0]
        self.chosen: Any = []
        self.offsets: Any = []

    def add(self, state: Any, best: str) -> None:
        """Appends a position and the teacher's move."""
        action = state.parse_action(best)
        for other, category, features in MoveWeights.features(state, 0):
            if other == action:
                self.chosen.append(len(self.offsets))
            self.offsets.append(float(np.log(CATEGORY_WEIGHTS[category])))
            self.features += [feature for feature, _ in features]
            self.shares += [share for _, share in features]
            self.moves.append(len(self.features))
        self.positions.append(len(self.offsets))

    def freeze(self) -> Choices:
        """Converts the lists to arrays and returns self."""
        for name in ("features", "shares", "moves", "positions", "chosen", "offsets"):
            setattr(self, name, np.array(getattr(self, name)))
        return self

    def error(self, weights: Any, first: int, last: int) -> tuple[float, Any]:
        """Returns the mean cross-entropy over positions `first` to `last`, and its gradient."""
        move, end = self.positions[first], self.positions[last]
        low, high = self.moves[move], self.moves[end]
        features, shares = self.features[low:high], self.shares[low:high]
        starts, sizes = self.moves[move:end] - low, np.diff(self.moves[move : end + 1])
        scores = np.add.reduceat(shares * weights[features], starts) + self.offsets[move:end]
        rows, lengths = self.positions[first:last] - move, np.diff(self.positions[first : last + 1])
        scores -= np.repeat(np.maximum.reduceat(scores, rows), lengths)
        exponentials = np.exp(scores)
        totals = np.add.reduceat(exponentials, rows)
        chosen = self.chosen[first:last] - move
        error = float(np.mean(np.log(totals) - scores[chosen]))
        slopes = exponentials / np.repeat(totals, lengths)
        slopes[chosen] -= 1.0
        gradient = np.bincount(features, shares * np.repeat(slopes, sizes), minlength=len(weights))
        return error, gradient / (last - first)


def learn_moves(given: argparse.Namespace) -> None:
    """Fits move scores with Adam and a linearly decaying rate; keeps the weights with the best validation error."""
    train, validation_set = Choices(), Choices()
    for game, state, best, _ in read(given.source):
        (train if game % HELD_BACK else validation_set).add(state, best)
    train, validation_set = train.freeze(), validation_set.freeze()
    count, num_validation = len(train.positions) - 1, len(validation_set.positions) - 1
    weights = np.zeros(len(MoveScores().weights))
    mean, square, steps = np.zeros_like(weights), np.zeros_like(weights), 0
    best_error, best_weights = validation_set.error(weights, 0, num_validation)[0], weights
    print(f"{count} positions, {num_validation} held back; error without scores {best_error:.4f}")
    order = np.random.default_rng(given.seed)
    for epoch in range(EPOCHS):
        for batch in order.permutation(-(-count // BATCH)):
            first = int(batch) * BATCH
            _, gradient = train.error(weights, first, min(first + BATCH, count))
            gradient += 2.0 * given.regularisation * weights
            steps += 1
            mean = 0.9 * mean + 0.1 * gradient
            square = 0.999 * square + 0.001 * gradient**2
            rate = RATE * (1.0 - epoch / EPOCHS) * np.sqrt(1.0 - 0.999**steps) / (1.0 - 0.9**steps)
            weights = weights - rate * mean / (np.sqrt(square) + 1e-8)
        error = validation_set.error(weights, 0, num_validation)[0]
        if error < best_error:
            best_error, best_weights = error, weights
        print(f"epoch {epoch + 1}: {error:.4f}", flush=True)
    MoveScores([round(weight) for weight in np.clip(1000.0 * best_weights, -20_000, 20_000)]).to_file(given.out)


def learn_weights(given: argparse.Namespace) -> None:
    """Fits the weights of the evaluation, from the published ones, with their scale."""
    start = Pesto.published()
    parts: list[tuple[list[Any], list[float], set[int]]] = [([], [], set()), ([], [], set())]
    for game, state, best, score in read(given.source):
        is_tactical = state.is_capture(state.parse_action(best)) or len(best) > 4
        if score is None or abs(score) > MAX_CENTIPAWNS or is_tactical:
            continue
        if start.quiescence_search(state)[0] == start.eval(state):
            states, targets, games = parts[game % HELD_BACK == 0]
            states.append(state)
            targets.append(1.0 / (1.0 + np.exp(-score / start.scale)))
            games.add(game)
    rows = []
    for states, targets, games in parts:
        starts, terms, counts, phases = start.compiled.features(states)
        taper = phases / start.compiled.full_phase
        rows.append(Features(starts, terms, counts.astype(np.float64), taper, np.array(targets), len(games)))
    train, validation_set = rows
    before = errors(validation_set, weights_of(start), start.scale)
    print(f"{len(train)} quiet positions, {len(validation_set)} held back: {before}")
    options = FitOptions(regularisation=given.regularisation, fit_scale=False, patience=12)
    state, _ = fit(train, validation_set, start, options)
    weights, _ = unpack(state.best)
    print(f"after {state.iteration} steps: {errors(validation_set, weights, start.scale)}")
    pesto_of(weights, start.scale, start).to_file(given.out)


def main() -> int:
    """Parses the command line and runs the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for name, work, regularisation in (
        ("label", label, 0.0),
        ("moves", learn_moves, 1e-5),
        ("weights", learn_weights, 3.0),
    ):
        command = commands.add_parser(name, help=work.__doc__)
        command.add_argument("source", type=Path)
        command.add_argument("out", type=Path)
        command.add_argument("--seed", type=int, default=1)
        command.add_argument("--regularisation", type=float, default=regularisation)
        command.set_defaults(work=work)
        if work is label:
            command.add_argument("--program", default="stockfish")
            command.add_argument("--nodes", type=int, default=4000)
            command.add_argument("--per-game", type=int, default=12)
    given = parser.parse_args()
    given.work(given)
    return 0


if __name__ == "__main__":
    sys.exit(main())
