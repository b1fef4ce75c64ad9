"""What is measured on a GPU, and the bars. Both sides read it, so that they measure the same."""

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
    """A search with a network; ours has two groups of `batch` trees."""

    game: str
    search: str
    batch: int
    simulations: int
    times_mctx: float | None = None
    """How many times as fast as mctx it is to be, at the batch or at our number of trees, whichever is better.

    Without it, there is no peer.
    """
    share: float | None = None
    """How much of the bare network's rate it is to have."""
    solve: bool = False
    """Whether ends that are met are proven, as they are by default. mctx has nothing like it."""
    plays_on: bool = False
    """Whether trees have been searched and played on before, as in self-play."""


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

#: Not a case, but asked for in the same way.
AGREEMENT = "agreement"


def cases(named: Sequence[str], *, small: bool = False) -> dict[str, GameCase | LatentCase]:
    """Those whose names have one of these words in them, in any case of letters; all if there are none."""
    words = [word.casefold() for word in named]
    return {
        name: replace(case, batch=4, simulations=4) if small else case
        for name, case in CASES.items()
        if not words or any(word in name.casefold() for word in words)
    }


def with_agreement(named: Sequence[str]) -> bool:
    """Whether it is asked for."""
    return not named or any(word.casefold() == AGREEMENT for word in named)


def unknown(named: Sequence[str]) -> list[str]:
    """The words that are in no name."""
    return [word for word in named if not cases([word]) and not with_agreement([word])]
