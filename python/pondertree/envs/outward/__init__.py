"""Games as environments of other libraries: PettingZoo's for all players, Gymnasium's against an opponent."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pondertree.optional import require

if TYPE_CHECKING:
    from pondertree.envs.outward.gymnasium import OpponentEnvironment
    from pondertree.envs.outward.hosted_game import Observe
    from pondertree.envs.outward.pettingzoo import GameEnvironment


def as_pettingzoo(
    factory: Callable[[], Any],
    *,
    observe: Observe | None = None,
    illegal_reward: float | None = None,
    render_mode: str | None = None,
) -> GameEnvironment:
    """Returns a game as an AEC environment of PettingZoo with the agents `player_0`, `player_1`, ...

    `factory` returns a starting state, compiled or written in Python: a class such as `ConnectFour`, or a function.
    Outcomes of chance are drawn by the generator that `reset(seed=...)` seeds. Observations are dicts: `observation`,
    the array of `state.observation()` or of `observe(state, player)`, and `action_mask`, which is all zeros for agents
    that are not to move. Without `observe` every agent gets the observation of the player to move.

    An illegal action raises `InvalidActionError` and changes nothing. With `illegal_reward` it ends the episode
    instead, as PettingZoo's own environments do: its agent gets that reward, the others 0. `render_mode` may be
    "ansi": `render()` returns `str(state)`.
    """
    require("pettingzoo", "envs", "as_pettingzoo")
    from pondertree.envs.outward.pettingzoo import GameEnvironment

    return GameEnvironment(factory, observe=observe, illegal_reward=illegal_reward, render_mode=render_mode)


def as_gymnasium(
    factory: Callable[[], Any],
    opponent: Any = "random",
    *,
    side: int | str = "first",
    observe: Observe | None = None,
    illegal_reward: float | None = -1.0,
    render_mode: str | None = None,
) -> OpponentEnvironment:
    """Returns one player's side of a game as a Gymnasium environment; the other players are played by an opponent.

    `opponent` is "random", a search such as `UCT(100)`, or a function `state -> action`. A search answers by
    `run(state, seeds=...)`, greedily, with seeds from the environment's generator, so that the seed of `reset`
    determines the episode (unless a time limit stops the search). `side` is "first" (player 0), "second", "random"
    (drawn for each episode; `info["player"]` says which) or the number of a player. Games of one player need no
    opponent.

    Observations are the arrays of `state.observation()` or of `observe(state, player)`. `info["action_mask"]` holds
    1 for each legal action; `action_masks()` returns it as sb3-contrib's MaskablePPO asks for it. The reward is what
    the player got since its last action: the result at the end, or the sum of `rewards()`.

    An illegal action ends the episode with `illegal_reward`, since agents without masks would not learn otherwise;
    with None it raises `InvalidActionError` and changes nothing.
    """
    require("gymnasium", "envs", "as_gymnasium")
    from pondertree.envs.outward.gymnasium import OpponentEnvironment

    return OpponentEnvironment(
        factory, opponent, side=side, observe=observe, illegal_reward=illegal_reward, render_mode=render_mode
    )
