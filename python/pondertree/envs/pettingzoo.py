"""PettingZoo environments (AEC) as games: one player per agent, from the state that the environment is in now."""

from __future__ import annotations

import re
import secrets
from typing import Any, Final, NamedTuple

from pondertree import validation
from pondertree.config import discount_factor
from pondertree.envs.copied_state import SAMPLES, Faults, ProbeCache, check_given
from pondertree.envs.methods import Given
from pondertree.envs.pettingzoo_agents import NOTHING, AgentTable
from pondertree.envs.pettingzoo_state import ZooState, state_class
from pondertree.envs.snapshots import find_snapshots
from pondertree.errors import GameContractError, GameOverError, InvalidArgumentError, PondertreeError, UsageError
from pondertree.optional import require
from pondertree.random import fold
from pondertree.validation import shown

#: Games of PettingZoo in which agents do not see the whole state.
HIDDEN_INFORMATION: Final = frozenset(
    {"gin_rummy", "hanabi", "leduc_holdem", "rps", "texas_holdem", "texas_holdem_no_limit"}
)
#: Games of PettingZoo whose only rewards are results from -1 to 1 at the end.
RESULTS_ONLY: Final = frozenset({"chess", "connect_four", "go", "tictactoe"})


def from_pettingzoo(
    env: Any,
    *,
    snapshot: Given | None = None,
    discount: float = 1.0,
    seed: int | None = None,
    random: bool | None = None,
    samples: int = SAMPLES,
    perfect_information: bool | None = None,
    results_only: bool | None = None,
) -> ZooState:
    """Returns the state that an AEC environment is in now, wrappers included, as a position of a game.

    The environment itself is never stepped or reset; how it is copied is probed (`state.snapshot_method`). Agents are
    players by their index in `possible_agents`, and the rewards of an action are what each agent gets until the next
    decision. Agents whose episode is over never decide: the adapter performs the `None` actions that they owe.

    - `snapshot`: `(save(env) -> token, restore(env, token))`, for an environment that cannot be copied otherwise.
    - `discount`: that of each action in searches from here, unless they have their own: g = reward + discount * g.
    - `seed`: of the samples of random steps; drawn if it is None (`state.seed`).
    - `random`: whether steps are random; None takes what the probe finds. False makes the numbers that a step draws a
      function of the actions before it.
    - `samples`: number of equally likely outcomes of a random step.
    - `perfect_information`: True searches an environment of hidden information or simultaneous moves as if all were
      open. Otherwise those are refused: a copy shows a search the cards of every agent.
    - `results_only`: whether the only rewards are results from -1 to 1 at the end, which a search can prove; None holds
      for chess, Connect Four, Go and tic-tac-toe of PettingZoo, and for `as_pettingzoo` of games without rewards.
    """
    name = _checked_name(env)
    if not validation.optional_flag(perfect_information, "perfect_information"):
        _refuse_hidden(env, name)
    if not hasattr(env, "agent_selection"):
        raise UsageError(f"{name} has no state yet: call env.reset() first")
    if not env.agents:
        raise GameOverError(f"the episode of {name} is over: there is nothing to search")
    discount = discount_factor(discount, "discount")
    samples = validation.whole_number(samples, "samples", least=1, most=65_535)
    results_only = _results_only(env, name, validation.optional_flag(results_only, "results_only"))
    seed = secrets.randbits(63) if seed is None else validation.whole_number(seed, "seed")
    check_given(snapshot)
    table = _probed_table(
        env, name, _Options(discount, samples, results_only, snapshot, validation.optional_flag(random, "random"))
    )
    snapshots = table.snapshots
    copied = snapshots.restore(snapshots.save(env))
    try:
        reading = snapshots.perform(copied, NOTHING) if table.owes_none(copied) else table.read(copied)
    except PondertreeError:
        raise
    except Exception as error:
        raise GameContractError(f"{name} cannot be read: {type(error).__name__}: {error}") from error
    kind = state_class(results_only, snapshots.is_random and random is not False)
    return kind.first(table, copied, reading, fold(seed, 0), seed)


class _Options(NamedTuple):
    """The options of `from_pettingzoo` on which a table depends."""

    discount: float
    samples: int
    results_only: bool
    snapshot: Given | None
    random: bool | None


#: Tables by environment, since probes take longer than short searches: a player calls `from_pettingzoo` at every move.
_tables: ProbeCache[AgentTable] = ProbeCache(lambda table: table.snapshots)


def _probed_table(env: Any, name: str, options: _Options) -> AgentTable:
    """Returns the table of an environment, whose way of copying was probed."""
    known = _tables.get(env, options)
    if known is not None and known.agents == tuple(env.possible_agents):
        return known
    table = AgentTable(env, name, discount=options.discount, samples=options.samples, results_only=options.results_only)
    faults = Faults()
    with faults.reported():
        table.snapshots = find_snapshots(
            env,
            name,
            step=faults.noting(table.step),
            sample_action=faults.noting(table.sample_action),
            given=options.snapshot,
            reset=table.reset,
            random=options.random,
        )
    table.is_probed = False
    _tables.put(env, options, table, options.snapshot)
    return table


def _checked_name(env: Any) -> str:
    """Returns the name of an environment; raises `InvalidArgumentError` for anything but an AEC environment."""
    pettingzoo = require("pettingzoo", "envs", "from_pettingzoo")
    if isinstance(env, type) or not callable(getattr(env, "step", None)):
        raise InvalidArgumentError(f"env must be an AEC environment of PettingZoo, not {shown(env)}")
    metadata = getattr(env, "metadata", None)
    named = metadata.get("name") if isinstance(metadata, dict) else None
    name = str(named or type(env).__name__)
    if isinstance(env, pettingzoo.ParallelEnv):
        raise InvalidArgumentError(
            f"{name} is a parallel environment, whose agents move at once: a search needs turns, as AEC environments "
            "have them"
        )
    if not all(hasattr(env, each) for each in ("possible_agents", "observe", "last", "action_space")):
        raise InvalidArgumentError(f"env must be an AEC environment of PettingZoo, not {shown(env)}")
    return name


def _kind_of(name: str) -> str:
    """Returns a name without its version."""
    return re.sub(r"_v\d+$", "", name)


def _refuse_hidden(env: Any, name: str) -> None:
    if _kind_of(name) in HIDDEN_INFORMATION:
        raise InvalidArgumentError(
            f"{name} has hidden information, which is not supported: a copy of the environment shows a search what "
            "other agents hold. perfect_information=True searches it as if all were open"
        )
    metadata = getattr(env, "metadata", None)
    if isinstance(metadata, dict) and metadata.get("is_parallelizable", False):
        raise InvalidArgumentError(
            f"{name} is parallelizable: its agents choose without knowing what the others choose in the same round, "
            "but a search would know. perfect_information=True searches it as if moves were open"
        )


def _results_only(env: Any, name: str, given: bool | None) -> bool:
    if given is None:
        return _kind_of(name) in RESULTS_ONLY or getattr(getattr(env, "unwrapped", env), "results_only", False) is True
    return given
