"""Prints how environments of many packages are copied for a search: the method, its cost, randomness, the verdict.

A verdict is compared with what is known of the environment (the last column of `ENVIRONMENTS`), and the copies with the
environment itself: 20 steps predicted by copies, with the environment's own random numbers where it draws some, equal
the steps that follow, and the samples that a search sees do not depend on these numbers. Environments of packages that
are not installed are left out, and counted. `--json` prints one object per environment.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import json
import logging
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import gymnasium  # noqa: E402 (the tests' environments are below the root)

from pondertree import UCT  # noqa: E402
from pondertree.envs import from_gymnasium, from_pettingzoo, record  # noqa: E402
from pondertree.envs.probe import same  # noqa: E402
from pondertree.envs.randomness import fingerprint, own_generators, preserved, reseed, shared_generators  # noqa: E402
from pondertree.errors import SnapshotError  # noqa: E402

#: Steps that are compared with the environment itself.
STEPS = 20


class Case(NamedTuple):
    """An environment and what its verdict must be."""

    name: str
    make: Callable[[], Any]
    method: str
    """The method of copying, or "refused"."""
    is_random: bool
    trap: str = ""
    """What copies by `copy.deepcopy` get wrong, or where randomness hides."""


def _made(name: str, module: str = "gymnasium", *, recorded: bool = False, bins: int = 0, **options: Any) -> Any:
    package = importlib.import_module(module)
    if module in ("ale_py", "minigrid"):
        gymnasium.register_envs(package)
    if module == "minatar":
        importlib.import_module("minatar.gym").register_envs()
    env = gymnasium.make(name, **options)
    env = gymnasium.wrappers.DiscretizeAction(env, bins) if bins else env
    return record(env) if recorded else env


def _case(
    name: str, method: str, is_random: bool, trap: str = "", module: str = "gymnasium", title: str = "", **options: Any
) -> Case:
    return Case(title or name, lambda: _made(name, module, **options), method, is_random, trap)


def _own(name: str, method: str, is_random: bool, trap: str, *, recorded: bool = False) -> Case:
    def make() -> Any:
        env = getattr(importlib.import_module("tests.support.hidden_randomness"), name)()
        return record(env, make=type(env)) if recorded else env

    return Case(f"{name} (tests)" + (", recorded" if recorded else ""), make, method, is_random, trap)


_EZPICKLE = "deepcopy gives a fresh environment"
_ALE = {"module": "ale_py", "repeat_action_probability": 0.0}

#: BipedalWalker has no row: an episode is not repeated exactly in the same instance, now and then, so that whether its
#: replay passes the probe differs from run to run.
ENVIRONMENTS = [
    _case("CartPole-v1", "copy", False),
    _case("MountainCar-v0", "copy", False),
    _case("Acrobot-v1", "copy", False),
    _case("Pendulum-v1", "copy", False, bins=5),
    _case("FrozenLake-v1", "copy", True, "its generator is copied along"),
    _case("Blackjack-v1", "copy", True, "its generator is copied along; the hidden card is searched"),
    _case("CliffWalking-v1", "copy", True, "draws numbers that change nothing", title="CliffWalking-v1"),
    _case("Taxi-v4", "copy", True, "draws numbers that change nothing"),
    _case("LunarLander-v3", "refused", True, "compiled world", title="LunarLander-v3"),
    _case("LunarLander-v3", "replay", True, _EZPICKLE, recorded=True, title="LunarLander-v3, recorded"),
    _case("InvertedPendulum-v5", "mujoco", False, _EZPICKLE, "mujoco", bins=3),
    _case("Hopper-v5", "mujoco", False, _EZPICKLE, "mujoco", bins=3),
    _case("HalfCheetah-v5", "mujoco", False, _EZPICKLE, "mujoco", bins=3),
    _case("ALE/Pong-v5", "ale", False, _EZPICKLE, title="ALE/Pong-v5, not sticky", **_ALE),
    _case("ALE/Breakout-v5", "ale", False, _EZPICKLE, title="ALE/Breakout-v5, not sticky", **_ALE),
    _case("ALE/Freeway-v5", "ale", False, _EZPICKLE, title="ALE/Freeway-v5, not sticky", **_ALE),
    _case("ALE/Breakout-v5", "refused", True, "sticky actions are drawn in compiled code", "ale_py"),
    _case("MiniGrid-Empty-5x5-v0", "copy", False, "", "minigrid"),
    _case("MiniGrid-DoorKey-6x6-v0", "copy", False, "", "minigrid"),
    _case("MiniGrid-LavaGapS5-v0", "copy", False, "", "minigrid"),
    _case("MiniGrid-FourRooms-v0", "copy", False, "", "minigrid"),
    _case("MiniGrid-Dynamic-Obstacles-5x5-v0", "copy", True, "its generator is copied along", "minigrid"),
    _case("BabyAI-GoToRedBall-v0", "copy", False, "", "minigrid"),
    _case("MinAtar/Breakout-v1", "copy", True, "a RandomState that Gymnasium does not know", "minatar"),
    _case("MinAtar/Asterix-v1", "copy", True, "a RandomState that Gymnasium does not know", "minatar"),
    _case("MinAtar/Freeway-v1", "copy", True, "a RandomState that Gymnasium does not know", "minatar"),
    _own("LyingCopy", "copy", False, _EZPICKLE),
    _own("LyingNoise", "copy", True, _EZPICKLE),
    _own("SpaceNoise", "copy", True, "samples its action space"),
    _own("ClosureNoise", "copy", True, "a generator in a closure, which deepcopy shares"),
    _own("MethodNoise", "copy", True, "a bound method of a generator"),
    _own("NestedNoise", "copy", True, "a generator in a list in a dict"),
    _own("ModuleNoise", "copy", True, "a generator of the module"),
    _own("ClassNoise", "copy", True, "a generator of the class"),
    _own("GlobalNoise", "copy", True, "numpy.random"),
    _own("PythonNoise", "copy", True, "random"),
    _own("SystemNoise", "refused", True, "os.urandom"),
    _own("Registered", "refused", False, "state in a table of the module"),
    _own("Registered", "replay", False, "state in a table of the module", recorded=True),
    _own("ClassList", "refused", False, "a list of the class"),
]


def _zoo(name: str, is_random: bool, module: str = "pygame") -> Case:
    def make() -> Any:
        importlib.import_module(module)
        return importlib.import_module("pettingzoo").make("aec", f"classic/{name}")

    return Case(f"{name} of PettingZoo", make, "copy", is_random, _EZPICKLE)


#: PettingZoo's classic environments; those with hidden information with open cards.
AGENTS = [
    _zoo("chess-v6", False, "chess"),
    _zoo("connect_four-v3", False),
    _zoo("go-v5", False),
    _zoo("hanabi-v5", True, "pyspiel"),
    _zoo("leduc_holdem-v4", False, "rlcard"),
    _zoo("rps-v2", False),
    _zoo("texas_holdem-v4", False, "rlcard"),
    _zoo("texas_holdem_no_limit-v6", False, "rlcard"),
    _zoo("tictactoe-v3", False),
]


def verdict(case: Case) -> dict[str, Any]:
    """Returns the row of an environment: method, cost in microseconds, randomness, and whether all of it is right."""
    env = case.make()
    env.reset(seed=3)
    if hasattr(env, "agent_selection"):
        return _verdict_on_agents(case, env)
    env.action_space.seed(3)
    actions = [index % 2 for index in range(STEPS)]
    for action in actions[:3]:
        env.step(_native(env, action))
    row = {"name": case.name, "trap": case.trap, "method": "refused", "cost_us": None, "random": None}
    before = fingerprint(own_generators(env))
    try:
        state = from_gymnasium(env, seed=1)
    except SnapshotError:
        row["right"] = case.method == "refused"
        return row
    row |= {"method": state.snapshot_method, "cost_us": round(state.snapshot_cost * 1e6), "random": state.is_random}
    right = (case.method, case.is_random) == (state.snapshot_method, state.is_random)
    right &= fingerprint(own_generators(env)) == before
    right &= _does_not_foresee(state, env, actions) if state.is_random else True
    right &= _predicts_with_its_draws(state, env, actions) if state.is_random else _predicts(state, env, actions)
    row["right"] = right
    return row


def _native(env: Any, action: int) -> Any:
    space = env.action_space
    return action + int(space.start) if isinstance(space, gymnasium.spaces.Discrete) else action


def _predicts(state: Any, env: Any, actions: list[int]) -> bool:
    """Whether the steps of copies are those of the environment."""
    for action in actions:
        if state.is_terminal:
            break
        state = state.play(action)
        observation, reward, terminated, truncated, _ = env.step(_native(env, action))
        if not same((observation, reward), (state._observation, state.rewards()[0])):
            return False
        if (terminated or truncated) != state.is_terminal:
            return False
    return True


def _does_not_foresee(state: Any, env: Any, actions: list[int]) -> bool:
    """Whether samples are the same whatever the environment itself is going to draw."""
    generators = [*own_generators(env), *shared_generators(env)]
    with preserved(generators):
        reseed(generators, 0xF0E5EE)
        other = from_gymnasium(env, seed=1)
    for sample, action in enumerate(actions):
        if state.is_terminal or other.is_terminal:
            break
        state, other = (each.play(action).play(sample) for each in (state, other))
        if not same((state._observation, state.rewards()), (other._observation, other.rewards())):
            return False
    return bool(state.is_terminal == other.is_terminal)


def _predicts_with_its_draws(state: Any, env: Any, actions: list[int]) -> bool:
    """Whether the steps of a copy that draws the environment's own numbers are those of the environment."""
    snapshots = state._game.snapshots
    expected = []
    with preserved(shared_generators(env)):
        copied = snapshots.restore(state._token)
        for action in actions:
            expected.append(
                snapshots._access.step(copied, _native(env, action))[:4]
            )  # `perform` restores shared generators
            if any(expected[-1][2:]):
                break
    return all(same(env.step(_native(env, action))[:4], each) for action, each in zip(actions, expected, strict=False))


def _verdict_on_agents(case: Case, env: Any) -> dict[str, Any]:
    """Returns the row of an environment of PettingZoo."""
    before = repr((env.agent_selection, env.last(), fingerprint(own_generators(env))))
    row = {"name": case.name, "trap": case.trap, "method": "refused", "cost_us": None, "random": None}
    try:
        state = from_pettingzoo(env, perfect_information=True, seed=1)
    except SnapshotError:
        return row | {"right": case.method == "refused"}
    row |= {"method": state.snapshot_method, "cost_us": round(state.snapshot_cost * 1e6), "random": state.is_random}
    right = (case.method, case.is_random) == (state.snapshot_method, state.is_random)
    UCT(50, seed=1, normalize="tree").run(state)
    right &= repr((env.agent_selection, env.last(), fingerprint(own_generators(env)))) == before
    while not (state.is_random or state.is_terminal or state.steps == STEPS):
        legal = state.legal_actions()
        action = legal[len(legal) // 2]
        state = state.play(action)
        env.step(action)
        rewards = [env.rewards[agent] for agent in env.possible_agents]
        while env.agents and (env.terminations[env.agent_selection] or env.truncations[env.agent_selection]):
            env.step(None)
        right &= same(rewards, list(state._reading.rewards))
        right &= state.is_terminal == (not env.agents)
        if not state.is_terminal:
            right &= state.agent == env.agent_selection and same(_seen(env), state._reading.observation)
    return row | {"right": right}


def _seen(env: Any) -> Any:
    observation = env.observe(env.agent_selection)
    return observation["observation"] if isinstance(observation, dict) else observation


def installed(case: Case) -> bool:
    """Whether the packages of an environment are installed."""
    try:
        case.make().close()
    except (ImportError, gymnasium.error.DependencyNotInstalled):
        return False
    return True


def main() -> int:
    """Prints the table; returns 1 if a verdict is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("names", nargs="*", help="parts of names; all environments without any")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable()
    cases = [
        case
        for case in [*ENVIRONMENTS, *AGENTS]
        if not arguments.names or any(each in case.name for each in arguments.names)
    ]
    wrong = count = missing = 0
    if not arguments.json:
        print("| environment | trap | method | us per copy | random | verdict |\n|---|---|---|---|---|---|")
    for case in cases:
        with contextlib.redirect_stderr(io.StringIO()):
            if not installed(case):
                missing += 1
                continue
            row = verdict(case)
        count, wrong = count + 1, wrong + (not row["right"])
        if arguments.json:
            print(json.dumps(row), flush=True)
        else:
            random = {None: "-", True: "yes", False: "no"}[row["random"]]
            cost = "-" if row["cost_us"] is None else row["cost_us"]
            print(
                f"| {row['name']} | {row['trap']} | {row['method']} | {cost} | {random} | "
                f"{'right' if row['right'] else 'WRONG'} |",
                flush=True,
            )
    if not arguments.json:
        print(f"\n{count - wrong} of {count} verdicts are right; {missing} environments are not installed.")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
