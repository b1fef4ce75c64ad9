"""The cases of the GPU benchmark and their bars, shared by both sides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Game:
    """A game and its network."""

    state: str
    pgx: str
    planes: int
    board: tuple[int, int]
    channels: int
    blocks: int
    actions: int


GAMES = {
    "connect_four": Game("ConnectFour", "connect_four", 3, (6, 7), 64, 5, 7),
    "chess": Game("Chess", "chess", 119, (8, 8), 128, 10, 4672),
}


@dataclass(frozen=True)
class GameCase:
    """A search with a network; Pondertree runs two groups of `batch` trees."""

    game: str
    search: str
    batch: int
    simulations: int
    times_mctx: float | None = None
    """The bar for the speed relative to mctx, at `batch` trees or at twice as many, whichever is faster.

    None: the case has no peer.
    """
    share: float | None = None
    """The bar for the share of the bare network's rate."""
    solve: bool = False
    """Whether proven results are propagated, as by default; mctx has no such option."""
    plays_on: bool = False
    """Whether trees are reused from the move before, as in self-play."""


@dataclass(frozen=True)
class LatentCase:
    """A search in a learned model."""

    search: str
    batch: int
    simulations: int
    actions: int
    times_mctx: float
    width: int = 512


CASES: dict[str, GameCase | LatentCase] = {
    "Connect 4, 256 x 64": GameCase("connect_four", "puct", 256, 64, 3, 0.5),
    "Connect 4, 1024 x 64": GameCase("connect_four", "puct", 1024, 64, 2, 0.75),
    "Connect 4, 4096 x 64": GameCase("connect_four", "puct", 4096, 64, 1.3, 0.75),
    "Connect 4, 1024 x 400": GameCase("connect_four", "puct", 1024, 400, 3, 0.75),
    "Connect 4, Gumbel, 1024 x 64": GameCase("connect_four", "gumbel", 1024, 64, 1),
    "Connect 4, solving, 1024 x 64": GameCase("connect_four", "puct", 1024, 64, solve=True),
    "Connect 4, self-play, 1024 x 64": GameCase("connect_four", "puct", 1024, 64, plays_on=True),
    "chess, 256 x 64": GameCase("chess", "puct", 256, 64, 10),
    "chess, 1024 x 64": GameCase("chess", "puct", 1024, 64, 20, 0.7),
    "chess, 256 x 400": GameCase("chess", "puct", 256, 400, 100),
    "MuZero, 256 x 50, 18 actions": LatentCase("puct", 256, 50, 18, 5),
    "MuZero, 1024 x 50, 18 actions": LatentCase("puct", 1024, 50, 18, 5),
    "Gumbel MuZero, 1024 x 50, 18 actions": LatentCase("gumbel", 1024, 50, 18, 1),
    "MuZero, 1024 x 200, 64 actions": LatentCase("puct", 1024, 200, 64, 20),
    "MuZero, 256 x 50, 4672 actions": LatentCase("puct", 256, 50, 4672, 20),
}

#: Selected on the command line like a case.
AGREEMENT = "agreement"


def cases(named: Sequence[str], *, small: bool = False) -> dict[str, GameCase | LatentCase]:
    """Selects cases whose names contain one of these words, ignoring case; all if there are none."""
    words = [word.casefold() for word in named]
    return {
        name: replace(case, batch=4, simulations=4) if small else case
        for name, case in CASES.items()
        if not words or any(word in name.casefold() for word in words)
    }


def with_agreement(named: Sequence[str]) -> bool:
    """Whether the agreement run is selected."""
    return not named or any(word.casefold() == AGREEMENT for word in named)


def unknown(named: Sequence[str]) -> list[str]:
    """Words that select nothing."""
    return [word for word in named if not cases([word]) and not with_agreement([word])]
