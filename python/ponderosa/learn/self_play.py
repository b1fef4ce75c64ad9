"""Self-play: many games side by side, one move in each of them at a time, all searched in the same batches.

Every random choice of a game is drawn from a key made of the training's seed, the number of the game and the number of
the move. A game that is under way is therefore told completely by its moves and what was recorded with them.
"""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ponderosa.learn.config import Config, SelfPlayConfig
from ponderosa.learn.game_spec import GameSpec
from ponderosa.learn.game_under_way import GameUnderWay
from ponderosa.learn.records import GameRecord
from ponderosa.learn.resignation import IN_A_ROW, Resignation
from ponderosa.learn.searches import searches_of
from ponderosa.reference.random import Random, fold

#: What the streams of random numbers of a game are for.
OPENING, BUDGET, CHOICE, CHECK = 101, 102, 103, 104


class Searched(NamedTuple):
    """What a search has found."""

    legal: NDArray[np.uint16]
    policy: NDArray[np.float32]
    """What is learned, over the legal actions."""
    value: float
    action: int
    """The best."""


def single_thread() -> None:
    """One thread for PyTorch in a thread that is one of several: they would only wait for each other."""
    import torch

    torch.set_num_threads(1)


class SelfPlay:
    """Games under way, always as many; a game that ends is replaced by the next."""

    def __init__(self, spec: GameSpec, config: Config, evaluator: Any) -> None:
        self._spec = spec
        self._config = config
        self._play: SelfPlayConfig = config.self_play
        self._searches = searches_of(config)
        self._search = self._searches.to_learn(config, evaluator)
        self._key = fold(0, config.seed)
        self.next_number = 0
        """The number of the next game."""
        self.moves_played = 0
        self.resignation = Resignation(config.self_play)
        self.games: list[GameUnderWay] = []
        self._workers: ThreadPoolExecutor | None = None

    def begin(self, known: frozenset[int] = frozenset()) -> None:
        """Fills up with new games. Those in `known` were finished before and are not played again."""
        self.games = [game for game in self.games if game.number not in known]
        self.next_number = max([self.next_number, *(number + 1 for number in known)])
        while len(self.games) < self._play.games_at_once:
            self.games.append(self._new_game())

    def move(self, version: int) -> list[GameRecord]:
        """One move in every game; the games that ended. `version` are the steps of learning behind the network."""
        keys = [fold(game.key, len(game.moves)) for game in self.games]
        full = [self._is_full(key) for key in keys]
        parts = self._parts()
        if len(parts) == 1:
            searched = self._search_games(parts[0], keys, full)
        else:
            # What a part finds depends on its own games alone, so it does not matter which is faster.
            found = self._pool().map(lambda part: self._search_games(part, keys, full), parts)
            searched = [one for part in found for one in part]
        finished = []
        for place, game in enumerate(self.games):
            ended = self._play_move(game, searched[place], keys[place], full[place], version)
            if ended is not None:
                finished.append(ended)
                self.games[place] = self._new_game()
        self.moves_played += len(keys)
        return finished

    def _parts(self) -> list[range]:
        """The places of the games, a part for each worker."""
        workers = min(max(self._play.workers, 1), len(self.games))
        ends = [len(self.games) * number // workers for number in range(workers + 1)]
        return [range(first, end) for first, end in itertools.pairwise(ends)]

    def _search_games(self, places: range, keys: list[int], full: list[bool]) -> list[Searched]:
        """Searches the positions of some games in one forest."""
        chosen = [full[place] for place in places]
        forest = self._search.forest(
            [self.games[place].state for place in places], seeds=[keys[place] for place in places]
        )
        if all(chosen):
            forest.simulate(self._play.simulations, add_noise=self._searches.add_noise)
        else:
            counts = [self._play.simulations if one else self._play.fast_simulations for one in chosen]
            forest.simulate(counts, add_noise=chosen)
        values, actions = forest.values().tolist(), forest.actions().tolist()
        legal = [np.array(self.games[place].state.legal_actions(), dtype=np.uint16) for place in places]
        policies = self._searches.policies(self._config, forest, legal)
        return [Searched(*found) for found in zip(legal, policies, values, actions, strict=True)]

    def _pool(self) -> ThreadPoolExecutor:
        if self._workers is None:
            self._workers = ThreadPoolExecutor(self._play.workers, "self-play", initializer=single_thread)
        return self._workers

    def close(self) -> None:
        """Ends the threads of the workers."""
        if self._workers is not None:
            self._workers.shutdown()
            self._workers = None

    def _play_move(
        self, game: GameUnderWay, searched: Searched, key: int, full: bool, version: int
    ) -> GameRecord | None:
        """Plays the move that a search has chosen; the record, if the game is over then."""
        play, state = self._play, game.state
        action = self._choose(game, searched, key)
        player, value = state.to_play, searched.value
        game.moves.append(action)
        game.values.append(value)
        game.versions.append(version)
        game.full.append(full)
        game.actions.append(searched.legal)
        game.policy.append(searched.policy)
        game.state = state.play(action)
        if game.state.is_terminal:
            returns = [float(number) for number in game.state.returns()]
            if game.given_up >= 0:
                self.resignation.learn(returns[game.given_up] > -1.0)
            return game.record(returns)
        if game.plies >= play.max_moves:
            return game.record([0.0] * self._spec.info.num_players, cut=True)
        return self._resigned(game, player, value)

    def _choose(self, game: GameUnderWay, searched: Searched, key: int) -> int:
        if len(game.moves) >= self._play.temperature_moves or self._play.temperature == 0.0:
            return searched.action
        shares = searched.policy.astype(np.float64)
        if self._play.temperature != 1.0:
            with np.errstate(divide="ignore"):
                logits = np.log(shares) / self._play.temperature
            shares = np.exp(logits - logits.max())
        ends = np.cumsum(shares)
        drawn = int(np.searchsorted(ends, Random(key, CHOICE).uniform() * ends[-1], side="right"))
        return int(searched.legal[min(drawn, len(ends) - 1)])

    def _resigned(self, game: GameUnderWay, player: int, value: float) -> GameRecord | None:
        """The record of a game that a player gives up now."""
        if self._spec.info.num_players != 2 or game.given_up >= 0:
            return None
        game.low[player] = game.low[player] + 1 if self.resignation.gives_up(value) else 0
        if game.low[player] < IN_A_ROW:
            return None
        if Random(game.key, CHECK).uniform() < self._play.resign_check:
            game.given_up = player
            return None
        if not self.resignation.is_allowed:
            return None
        return game.record([-1.0 if one == player else 1.0 for one in (0, 1)], resigned=True)

    def _is_full(self, key: int) -> bool:
        return self._play.full_share >= 1.0 or Random(key, BUDGET).uniform() < self._play.full_share

    def _new_game(self) -> GameUnderWay:
        number = self.next_number
        self.next_number += 1
        game = GameUnderWay(number, fold(self._key, number), self._spec.factory())
        if self._play.opening_plies == 0:
            return game
        numbers = Random(game.key, OPENING)
        if numbers.uniform() < self._play.opening_share:
            for _ in range(numbers.below(self._play.opening_plies + 1)):
                legal = game.state.legal_actions()
                action = int(legal[numbers.choose(len(legal))])
                after = game.state.play(action)
                if after.is_terminal:
                    break
                game.opening.append(action)
                game.state = after
        return game

    def saved(self) -> tuple[list[GameRecord], dict[str, Any]]:
        """The games under way, and the plain data it takes to go on with them."""
        return [game.record([]) for game in self.games], {
            "next_number": self.next_number,
            "moves_played": self.moves_played,
            "low": [list(game.low) for game in self.games],
            "given_up": [game.given_up for game in self.games],
            "checked": self.resignation.checked,
        }

    def restore(self, records: list[GameRecord], data: dict[str, Any]) -> None:
        """Goes on from what `saved` gave."""
        self.next_number = int(data["next_number"])
        self.moves_played = int(data["moves_played"])
        self.resignation = Resignation(self._play, [bool(wrong) for wrong in data["checked"]])
        self.games = []
        for record, low, given_up in zip(records, data["low"], data["given_up"], strict=True):
            game = GameUnderWay.of_record(record, fold(self._key, record.number), self._spec)
            game.low, game.given_up = [int(count) for count in low], int(given_up)
            self.games.append(game)
