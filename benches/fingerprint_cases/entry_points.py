"""Cases of functions and of the specifications' entry points."""

from __future__ import annotations

from exact import TableModel

import pondertree
from fingerprint_cases.case import Cases
from fingerprint_cases.models import observation
from fingerprint_cases.positions import (
    COMPILED,
    FENS,
    board,
    position,
    table,
)
from fingerprint_cases.transcript import Transcript
from pondertree import UCT, chess


def entry_point_cases() -> Cases:
    """Playouts, `search` and `get_policy`, the specifications' functions, chess knowledge."""

    def playouts(transcript: Transcript) -> None:
        for game in (*COMPILED, "two_players", "three_players", "rewards_2"):
            for seed in range(6):
                depth = None if seed % 2 else 5
                value = pondertree.playout(position(game, seed), seed % 2, depth, seed=seed)
                transcript.answer(game, seed, value)

    def choices(transcript: Transcript) -> None:
        for game in COMPILED:
            search = UCT(60, seed=24)
            transcript.answer(game, [search.search(position(game, plies), 1.0) for plies in range(5)])
            transcript.answer(*search.get_policy(position(game, 2)))
        network = chess.MCTS(table("chess"), num_simulations=40, seed=24)
        transcript.answer(network.search(board("middlegame")), *network.get_policy(board("tactics"), add_noise=True))
        for name in FENS:
            transcript.answer(name, chess.mcts_search(board(name), iterations=40, seed=24))
        for seed in range(5):
            config = pondertree.MCTSConfig(num_simulations=20, num_players=1)
            seen = observation(seed)["observation"]
            action = pondertree.select_action(TableModel(6), config, seen, [0, 2, 3, 5], seed=seed)
            transcript.answer("select_action", action)

    def knowledge(transcript: Transcript) -> None:
        for name in FENS:
            state = board(name)
            found = chess.mate_search(state, 3)
            transcript.answer(name, found.kind, found.n, found.move, found.line, found.nodes)
            kinds = chess.categorize(state)
            transcript.answer([(action, int(kind)) for action, kind in kinds.items()])
            transcript.answer([chess.see(state, action) for action in state.legal_actions()])
            transcript.answer(chess.perft(state, 3))

    yield "playout", playouts
    yield "search, get_policy and the specifications' entry points", choices
    yield "chess knowledge", knowledge
