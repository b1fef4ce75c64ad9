"""The contract of states for the compiled games, the examples, and the random games of tests."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from examples.games.coin_row import CoinRow
from examples.games.double_move import DoubleMove
from examples.games.nim import Nim
from examples.games.triangle import Triangle

import pondertree
from pondertree import _core, games
from pondertree.game import COMPILED, CompiledGame, Game, describe
from pondertree.games import Chess, ConnectFour, Othello, TicTacToe, by_name, find, name_of, name_of_info, player_names
from pondertree.testing import check_game
from pondertree.testing.tabular import TabularGame, TabularState

#: The most moves that a game may take, where it is known.
LONGEST = {TicTacToe: 9, ConnectFour: 42, Othello: 130, Nim: 10, CoinRow: 9, Triangle: 5, DoubleMove: 9}


@pytest.mark.parametrize("game", [*COMPILED, Nim, CoinRow, Triangle, DoubleMove])
def test_every_game_fulfils_the_contract(game: Any) -> None:
    assert isinstance(game(), Game)
    moves = LONGEST.get(game, 2000)
    report = check_game(game, games=5 if game is Chess else 20, max_moves=moves)
    assert report.unfinished == 0
    assert report.longest <= moves


@pytest.mark.parametrize("registered", COMPILED.values(), ids=lambda game: game.name)
def test_registered_game_is_found_by_all_its_names(registered: CompiledGame) -> None:
    for name in (registered.name, registered.command, *registered.aliases, registered.command.upper()):
        assert find(name) is by_name(name) is registered.state
    assert name_of(registered.state) == name_of_info(describe(registered.state())) == registered.command
    assert player_names(registered.state, 2) == tuple(registered.players)
    assert getattr(games, registered.state.__name__) is registered.state


def test_no_two_games_share_a_name() -> None:
    names = [name for game in COMPILED.values() for name in {game.name, game.command, *game.aliases}]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    "fen",
    [
        "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
        "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1",
        "4k3/PPP3PP/8/8/8/8/ppp3pp/4K3 b - - 0 1",
        "8/8/4k3/8/8/3NKN2/8/8 b - - 96 120",
    ],
)
def test_chess_fulfils_the_contract_from_any_position(fen: str) -> None:
    assert check_game(lambda: Chess(fen), games=2).games == 2


@pytest.mark.parametrize("players", [1, 2, 3])
@pytest.mark.parametrize("order", ["alternate", "random", "double"])
@pytest.mark.parametrize("rewards", [False, True])
def test_random_games_fulfil_the_contract(
    players: int, order: Any, rewards: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Their observations are plain numbers, as the reference is written without NumPy.
    numbers = TabularState.observation
    monkeypatch.setattr(TabularState, "observation", lambda state: np.array(numbers(state), dtype=np.float32))
    for seed in range(5):
        game = TabularGame(seed, players=players, turn_order=order, rewards=rewards, zero_sum=players == 2)
        assert check_game(game.start, games=5).unfinished == 0


# --- Pickles of compiled states -----------------------------------------------------------------------------------


def assert_alike(one: Any, other: Any) -> None:
    assert type(one) is type(other)
    assert one == other
    assert hash(one) == hash(other)
    assert str(one) == str(other)
    assert one.legal_actions() == other.legal_actions()
    assert (one.to_play, one.is_terminal, one.returns()) == (other.to_play, other.is_terminal, other.returns())
    assert np.array_equal(one.observation(), other.observation())


@pytest.mark.parametrize("game", list(COMPILED))
def test_state_pickle_round_trips(game: Any) -> None:
    """At every move of a game, and the copy plays on as the state does."""
    numbers = np.random.default_rng(1)
    state = copied = game()
    for _ in range(120):
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            assert_alike(pickle.loads(pickle.dumps(state, protocol)), state)
        assert_alike(copied, state)
        assert_alike(pickle.loads(pickle.dumps(copied)), state)
        assert_alike(copy.deepcopy(state), state)
        if state.is_terminal:
            break
        action = int(numbers.choice(state.legal_actions()))
        state, copied = state.play(action), pickle.loads(pickle.dumps(copied)).play(action)


def test_chess_pickle_keeps_the_history() -> None:
    state = Chess("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 7 30")
    for _ in range(2):
        for text in ("a1b1", "a8b8", "b1a1", "b8a8"):
            state = state.play(state.parse_action(text))
            back = pickle.loads(pickle.dumps(state))
            assert_alike(back, state)
            assert (back.repetitions, back.fen()) == (state.repetitions, state.fen())
    # The castling rights went with the first moves, so the first position of all has not come back.
    assert back.repetitions == 1
    for text in ("a1b1", "a8b8", "b1a1", "b8a8"):
        state, back = state.play(state.parse_action(text)), back.play(back.parse_action(text))
        assert_alike(back, state)
    assert back.repetitions == 2


def test_node_states_pickle() -> None:
    node = pondertree.UCT(50, seed=1).run(Chess(), temperature=1.0).root
    while node.children:
        node = next(iter(node.children.values()))
        assert_alike(pickle.loads(pickle.dumps(node.state)), node.state)


def test_state_from_a_search_refuses_pickle() -> None:
    seen: list[Any] = []

    class Looks:
        def evaluate_states(self, states: Any) -> tuple[None, np.ndarray]:
            seen.extend(states)
            return None, np.zeros(len(states))

    pondertree.AlphaZero(Looks(), 3, seed=1).run(ConnectFour())
    with pytest.raises(pondertree.UsageError, match="came out of a search"):
        pickle.dumps(seen[-1])
    assert_alike(copy.deepcopy(seen[-1]), seen[-1])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("ConnectFour", None, b"\x09\x00"), "action 9 is not legal"),
        (("TicTacToe", None, b"\x00\x00\x00\x00"), "action 0 is not legal"),
        (("Chess", "nonsense", b""), "nonsense"),
        (("Chess", None, b"\x00"), "1 bytes"),
        (("Checkers", None, b""), "Checkers"),
        (("Othello", "a position", b""), "Othello.*a position"),
    ],
)
def test_tampered_pickle_is_refused(arguments: tuple[Any, ...], words: str) -> None:
    with pytest.raises(pondertree.PondertreeError, match=words):
        _core.restore(*arguments)
