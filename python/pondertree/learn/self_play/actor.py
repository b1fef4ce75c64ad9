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

from pondertree import validation
from pondertree.envs.gymnasium import check_reward
from pondertree.errors import GameContractError, InvalidArgumentError, UsageError
from pondertree.game import game_mistakes
from pondertree.learn.config.game_spec import GameSpec, play_in
from pondertree.learn.config.schema import Config
from pondertree.learn.config.sections import SelfPlayConfig
from pondertree.learn.data.observations import kept_bytes
from pondertree.learn.data.records import GameRecord, check_games
from pondertree.learn.data.targets import LegalActions
from pondertree.learn.self_play.episode import IN_A_ROW, GameUnderWay, Resignation
from pondertree.learn.self_play.searches import searches_of
from pondertree.random import Random, fold, fold_array, uniform_array
from pondertree.validation import brief

#: What the streams of random numbers of a game are for.
OPENING, BUDGET, CHOICE, CHECK = 101, 102, 103, 104


class Searched(NamedTuple):
    """What searches have found in N positions with L legal actions together."""

    legal: LegalActions
    policy: NDArray[np.float32]
    """What is learned, over the legal actions [L]."""
    values: NDArray[np.float64]
    """[N], for the player to move."""
    best: NDArray[np.int64]
    """The best actions [N]."""


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
        self.lost = 0
        """Episodes under way that could not be taken up again, since their environment does not repeat itself."""
        self.resignation = Resignation(config.self_play)
        self.games: list[GameUnderWay] = []
        self._workers: ThreadPoolExecutor | None = None

    def begin(self, known: frozenset[int] = frozenset()) -> None:
        """Fills up with new games. Those in `known` were finished before and are not played again."""
        self.games = [game for game in self.games if game.number not in known][: self._play.games_at_once]
        self.next_number = max([self.next_number, *(number + 1 for number in known)])
        while len(self.games) < self._play.games_at_once:
            self.games.append(self._new_game())

    def move(self, version: int) -> list[GameRecord]:
        """One move in every game; the games that ended. `version` are the steps of learning behind the network."""
        games = self.games
        lengths = np.array([len(game.moves) for game in games], dtype=np.uint64)
        keys = fold_array(np.array([game.key for game in games], dtype=np.uint64), lengths)
        full = np.full(len(games), True)
        if self._play.full_share < 1.0:
            full = uniform_array(keys, BUDGET) < self._play.full_share
        parts = self._parts()
        if len(parts) == 1:
            found = [self._search_games(parts[0], keys, full)]
        else:
            # What a part finds depends on its own games alone, so it does not matter which is faster.
            found = list(self._pool().map(lambda part: self._search_games(part, keys, full), parts))
        finished = []
        for part, searched in zip(parts, found, strict=True):
            taken = slice(part.start, part.stop)
            plies = np.array([game.plies for game in games[taken]])
            actions = self._choose(searched, plies, keys[taken]).tolist()
            rows = zip(
                part,
                actions,
                searched.values.tolist(),
                full[taken].tolist(),
                searched.legal.parts(searched.legal.actions),
                searched.legal.parts(searched.policy),
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

    def _parts(self) -> list[range]:
        """The places of the games, a part for each worker."""
        workers = min(max(self._play.workers, 1), len(self.games))
        ends = [len(self.games) * number // workers for number in range(workers + 1)]
        return [range(first, end) for first, end in itertools.pairwise(ends)]

    def _search_games(self, places: range, keys: NDArray[np.uint64], full: NDArray[np.bool_]) -> Searched:
        """Searches the positions of some games in one forest."""
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
        policy = self._searches.policies(self._config, forest, legal, shares)
        return Searched(legal, policy, forest.values(), forest.actions())

    def _pool(self) -> ThreadPoolExecutor:
        if self._workers is None:
            self._workers = ThreadPoolExecutor(self._play.workers, "self-play", initializer=single_thread)
        return self._workers

    def close(self) -> None:
        """Ends the threads of the workers."""
        if self._workers is not None:
            self._workers.shutdown()
            self._workers = None

    def _play_move(self, game: GameUnderWay, action: int, value: float) -> GameRecord | None:
        """Plays a move that a search found worth `value`; the record, if the game is over then."""
        player = game.state.to_play
        if self._spec.is_environment:
            # What is seen of an environment is kept: its positions cannot be reached again by rules.
            game.seen.append(kept_bytes(game.state.observation(), self._spec))
        state = game.state = play_in(game.state, action)
        with game_mistakes(self._spec.info, "when asked about a state"):
            is_over = bool(state.is_terminal)
            if self._spec.info.has_rewards:
                game.rewards.append(float(state.rewards()[0]))
                check_reward(game.rewards[-1], f"{self._spec.info.name}.rewards() gave, after action {action},")
            elif is_over:
                returns = [float(number) for number in state.returns()]
        if self._spec.info.has_rewards:
            return self._rewarded(game, is_over)
        if is_over:
            if game.given_up >= 0:
                self.resignation.learn(returns[game.given_up] > -1.0)
            return game.record(returns)
        if game.plies >= self._play.max_moves:
            return game.record([0.0] * self._spec.info.num_players, cut=True)
        return self._resigned(game, player, value) if self.resignation.is_wanted else None

    def _rewarded(self, game: GameUnderWay, is_over: bool) -> GameRecord | None:
        """The record of a game of rewards, if it is over. One that is too long would have had more."""
        if not is_over and game.plies < self._play.max_moves:
            return None
        if not is_over and hasattr(game.state, "leave"):
            game.state.close()
        return game.record([sum(game.rewards)], cut=not is_over or bool(getattr(game.state, "truncated", False)))

    def _choose(self, searched: Searched, plies: NDArray[np.int64], keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The moves to play: drawn in the first moves of a game, then the best."""
        actions = searched.best.copy()
        early = plies < self._play.temperature_moves
        if self._play.temperature > 0.0 and early.any():
            numbers = uniform_array(keys[early], CHOICE)
            actions[early] = searched.legal.drawn(searched.policy, early, numbers, self._play.temperature)
        return actions

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

    def _new_game(self) -> GameUnderWay:
        number = self.next_number
        self.next_number += 1
        key = fold(self._key, number)
        game = GameUnderWay(number, key, self._spec.start(key))
        if self._play.opening_plies == 0:
            return game
        numbers = Random(game.key, OPENING)
        if numbers.uniform() < self._play.opening_share:
            for _ in range(numbers.below(self._play.opening_plies + 1)):
                legal = game.state.legal_actions()
                action = int(legal[numbers.choose(len(legal))])
                after = play_in(game.state, action)
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
        """Goes on from what `saved` gave; anything else is refused before a game is played."""
        check_games(records, self._spec, finished=False)
        try:
            self.next_number = validation.whole_number(data["next_number"], "next_number", most=1 << 62)
            self.moves_played = validation.whole_number(data["moves_played"], "moves_played", most=1 << 62)
            self.resignation = Resignation(self._play, [bool(wrong) for wrong in data["checked"]])
            lows = [[validation.whole_number(count, "low") for count in low] for low in data["low"]]
            players = [validation.whole_number(player, "given_up", least=-1, most=1) for player in data["given_up"]]
        except (KeyError, TypeError) as error:
            raise InvalidArgumentError(f"self_play is no state of self-play: {brief(repr(error))}") from None
        if not len(records) == len(lows) == len(players):
            raise InvalidArgumentError(f"low and given_up must be told of each of the {len(records)} games")
        for record, low in zip(records, lows, strict=True):
            if len(low) != 2 or record.number >= self.next_number:
                raise InvalidArgumentError(f"game {record.number} does not fit the counters beside it")
        self.games = []
        for record, low, given_up in zip(records, lows, players, strict=True):
            try:
                game = GameUnderWay.of_record(record, fold(self._key, record.number), self._spec)
            except (GameContractError, UsageError):
                if not self._spec.is_environment:
                    raise
                self.lost += 1
                continue
            game.low, game.given_up = low, given_up
            self.games.append(game)
