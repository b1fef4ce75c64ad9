"""Self-play: many concurrent games, one move in each at a time, searched in shared batches.

Every random draw is keyed by the run's seed, the number of the game and the number of the move, so that an unfinished
game is determined by its moves and their recorded searches.
"""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pondertree import validation
from pondertree.errors import GameContractError, InvalidArgumentError, UsageError
from pondertree.game import as_contract_error
from pondertree.learn.config import Config, GameSpec, SelfPlayConfig, next_state
from pondertree.learn.data import GameRecord, LegalActions, check_games, observation_bytes, reward_of
from pondertree.learn.self_play.episode import CONSECUTIVE_SEARCHES, Episode, Resignation
from pondertree.learn.self_play.searches import searches_of
from pondertree.random import Random, fold, fold_array, uniform_array
from pondertree.validation import brief

#: Purposes of a game's random streams.
OPENING, BUDGET, CHOICE, CHECK = 101, 102, 103, 104


class SearchOutcome(NamedTuple):
    """The searches of N positions with L legal actions in total."""

    legal: LegalActions
    policy: NDArray[np.float32]
    """Policy targets over the legal actions [L]."""
    values: NDArray[np.float64]
    """Root values for the player to move [N]."""
    best: NDArray[np.int64]
    """Best actions [N]."""


def single_thread() -> None:
    """Limits PyTorch to one thread in a worker thread, where more would contend."""
    import torch

    torch.set_num_threads(1)


class SelfPlay:
    """A fixed number of concurrent games; a finished one is replaced by the next."""

    def __init__(self, spec: GameSpec, config: Config, evaluator: Any) -> None:
        self._spec = spec
        self._config = config
        self._play: SelfPlayConfig = config.self_play
        self._searches = searches_of(config)
        self._search = self._searches.self_play_search(config, spec.info, evaluator)
        self._key = fold(0, config.seed)
        self.next_number = 0
        """Number of the next game."""
        self.moves_played = 0
        self.lost = 0
        """Unfinished episodes that could not be resumed, since their environment is not reproducible."""
        self.resignation = Resignation(config.self_play)
        self.games: list[Episode] = []
        self._workers: ThreadPoolExecutor | None = None

    def begin(self, known: frozenset[int] = frozenset()) -> None:
        """Starts new games up to `games_at_once`; removes unfinished copies of the finished games `known`."""
        self.games = [game for game in self.games if game.number not in known][: self._play.games_at_once]
        self.next_number = max([self.next_number, *(number + 1 for number in known)])
        while len(self.games) < self._play.games_at_once:
            self.games.append(self._new_game())

    def move(self, version: int) -> list[GameRecord]:
        """Plays one move in every game and returns the finished games; `version` is the network's optimiser step."""
        games = self.games
        lengths = np.array([len(game.moves) for game in games], dtype=np.uint64)
        keys = fold_array(np.array([game.key for game in games], dtype=np.uint64), lengths)
        full = np.full(len(games), True)
        if self._play.full_share < 1.0:
            full = uniform_array(keys, BUDGET) < self._play.full_share
        partitions = self._partitions()
        if len(partitions) == 1:
            found = [self._search_games(partitions[0], keys, full)]
        else:
            # Results of a partition depend on its own games alone, so scheduling does not affect them.
            found = list(self._executor().map(lambda part: self._search_games(part, keys, full), partitions))
        finished = []
        for part, searched in zip(partitions, found, strict=True):
            taken = slice(part.start, part.stop)
            plies = np.array([game.plies for game in games[taken]])
            actions = self._choose(searched, plies, keys[taken]).tolist()
            rows = zip(
                part,
                actions,
                searched.values.tolist(),
                full[taken].tolist(),
                searched.legal.split(searched.legal.actions),
                searched.legal.split(searched.policy),
                strict=True,
            )
            for place, action, value, is_full, legal, policy in rows:
                game = games[place]
                game.moves.append(action)
                game.values.append(value)
                game.versions.append(version)
                game.full.append(is_full)
                game.actions.append(legal)
                game.policy.append(policy)
                ended = self._play_move(game, action, value)
                if ended is not None:
                    finished.append(ended)
                    games[place] = self._new_game()
        self.moves_played += len(keys)
        return finished

    def _partitions(self) -> list[range]:
        """Partitions the games among the workers."""
        workers = min(max(self._play.workers, 1), len(self.games))
        ends = [len(self.games) * number // workers for number in range(workers + 1)]
        return [range(first, end) for first, end in itertools.pairwise(ends)]

    def _search_games(self, places: range, keys: NDArray[np.uint64], full: NDArray[np.bool_]) -> SearchOutcome:
        """Searches the positions of a partition in one forest."""
        states = [self.games[place].state for place in places]
        chosen = full[places.start : places.stop]
        forest = self._search.forest(states, seeds=keys[places.start : places.stop].tolist())
        if chosen.all():
            forest.simulate(self._play.simulations, add_noise=self._searches.add_noise)
        else:
            counts = np.where(chosen, self._play.simulations, self._play.fast_simulations)
            forest.simulate(counts.tolist(), add_noise=chosen.tolist())
        counts, actions, shares = forest.root_policies()
        legal = LegalActions(counts, actions)
        policy = self._searches.policies(self._config, self._spec.info, forest, legal, shares)
        return SearchOutcome(legal, policy, forest.values(), forest.actions())

    def _executor(self) -> ThreadPoolExecutor:
        if self._workers is None:
            self._workers = ThreadPoolExecutor(self._play.workers, "self-play", initializer=single_thread)
        return self._workers

    def close(self) -> None:
        """Shuts down the worker threads."""
        if self._workers is not None:
            self._workers.shutdown()
            self._workers = None

    def _play_move(self, game: Episode, action: int, value: float) -> GameRecord | None:
        """Plays a searched move of root value `value`; returns the record if that ends the game."""
        player = game.state.to_play
        if self._spec.is_environment:
            # Recorded, since positions of an environment cannot be replayed.
            game.seen.append(observation_bytes(game.state.observation(), self._spec))
        info = self._spec.info
        game.state = next_state(game.state, action)
        reward = reward_of(game.state, info, action)
        game.score += reward
        # As in the search: g = r + discount * g after a decision, and undiscounted after an outcome.
        reward += self._config.returns.discount * game.draw_until_decision(info)
        with as_contract_error(info, "while reading its state"):
            is_over = bool(game.state.is_terminal)
            if is_over and not info.has_rewards:
                returns = [float(number) for number in game.state.returns()]
        if info.has_rewards:
            game.rewards.append(reward)
            return self._rewarded(game, is_over)
        if is_over:
            if game.would_resign >= 0:
                self.resignation.add_check(returns[game.would_resign] > -1.0)
            return game.record(returns)
        if game.plies >= self._play.max_moves:
            return game.record([0.0] * info.num_players, cut=True)
        return self._resign(game, player, value) if self.resignation.is_enabled else None

    def _rewarded(self, game: Episode, is_over: bool) -> GameRecord | None:
        """Returns the record of a game of rewards if it is over or truncated."""
        if not is_over and game.plies < self._play.max_moves:
            return None
        if not is_over and self._spec.is_environment:
            game.state.close()
        return game.record([game.score], cut=not is_over or bool(getattr(game.state, "truncated", False)))

    def _choose(self, searched: SearchOutcome, plies: NDArray[np.int64], keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Selects the moves: sampled early in a game, then the best."""
        actions = searched.best.copy()
        early = plies < self._play.temperature_moves
        if self._play.temperature > 0.0 and early.any():
            numbers = uniform_array(keys[early], CHOICE)
            actions[early] = searched.legal.sample(searched.policy, early, numbers, self._play.temperature)
        return actions

    def _resign(self, game: Episode, player: int, value: float) -> GameRecord | None:
        """Returns the record if the player to move resigns."""
        if self._spec.info.num_players != 2 or game.would_resign >= 0:
            return None
        game.low[player] = game.low[player] + 1 if self.resignation.is_below_threshold(value) else 0
        if game.low[player] < CONSECUTIVE_SEARCHES:
            return None
        if Random(game.key, CHECK).uniform() < self._play.resign_check:
            game.would_resign = player
            return None
        if not self.resignation.is_allowed:
            return None
        return game.record([-1.0 if one == player else 1.0 for one in (0, 1)], resigned=True)

    def _new_game(self) -> Episode:
        number = self.next_number
        self.next_number += 1
        key = fold(self._key, number)
        game = Episode.at_first_decision(number, key, self._spec)
        if self._play.opening_plies == 0:
            return game
        numbers = Random(game.key, OPENING)
        if numbers.uniform() >= self._play.opening_share:
            return game
        for _ in range(numbers.below(self._play.opening_plies + 1)):
            legal = game.state.legal_actions()
            action = int(legal[numbers.choose(len(legal))])
            if not game.play_opening(action, self._spec.info):
                break
        return game

    def snapshot(self) -> tuple[list[GameRecord], dict[str, Any]]:
        """Returns the unfinished games and JSON-compatible state to resume them."""
        return [game.record([]) for game in self.games], {
            "next_number": self.next_number,
            "moves_played": self.moves_played,
            "low": [list(game.low) for game in self.games],
            "given_up": [game.would_resign for game in self.games],
            "checked": list(self.resignation.checked),
        }

    def restore(self, records: list[GameRecord], data: dict[str, Any]) -> None:
        """Restores what `snapshot` returned, after validation."""
        check_games(records, self._spec, finished=False)
        try:
            self.next_number = validation.whole_number(data["next_number"], "next_number", most=1 << 62)
            self.moves_played = validation.whole_number(data["moves_played"], "moves_played", most=1 << 62)
            self.resignation = Resignation(self._play, [bool(wrong) for wrong in data["checked"]])
            lows = [[validation.whole_number(count, "low") for count in low] for low in data["low"]]
            players = [validation.whole_number(player, "given_up", least=-1, most=1) for player in data["given_up"]]
        except (KeyError, TypeError) as error:
            raise InvalidArgumentError(f"self_play is not a state of self-play: {brief(repr(error))}") from None
        if not len(records) == len(lows) == len(players):
            raise InvalidArgumentError(f"low and given_up must have one entry for each of the {len(records)} games")
        for record, low in zip(records, lows, strict=True):
            if len(low) != 2 or record.number >= self.next_number:
                raise InvalidArgumentError(f"game {record.number} contradicts the counters")
        self.games = []
        for record, low, would_resign in zip(records, lows, players, strict=True):
            try:
                game = Episode.of_record(record, fold(self._key, record.number), self._spec)
            except (GameContractError, UsageError):
                if not self._spec.is_environment:
                    raise
                self.lost += 1
                continue
            game.low, game.would_resign = low, would_resign
            self.games.append(game)
