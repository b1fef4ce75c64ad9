"""Trees that grow beside their network or model are the engine's own, edge for edge. The kernel runs here as it is,
compiled for a processor; with a GPU, there too.
"""

from __future__ import annotations

import ctypes
import itertools
from typing import Any

import numpy as np
import pytest
from tests.support.precision import need_cpu_precision
from tests.support.processor import COMPILER, for_a_processor

import pondertree
from pondertree.config import LogPuct, Puct
from pondertree.evaluators import Torch
from pondertree.games import ConnectFour
from pondertree.gpu.offload import Beside
from pondertree.gpu.pipeline import GameTurns
from pondertree.models import TorchModel

torch = pytest.importorskip("torch")

from pondertree.gpu import device_trees  # noqa: E402
from pondertree.gpu import tree_shape as kinds  # noqa: E402 (after the package they need)
from pondertree.gpu.device_trees import DeviceTrees  # noqa: E402
from pondertree.gpu.kernels import launch  # noqa: E402
from pondertree.gpu.kernels.launch import SOURCE, options_of  # noqa: E402
from pondertree.gpu.kernels.nvrtc import NotCompiled, compile_source  # noqa: E402
from pondertree.gpu.tree_layout import Trees  # noqa: E402

# Most models here do not say how many players there are: with one it does not matter.
pytestmark = pytest.mark.filterwarnings("ignore::pondertree.PlayerCountWarning")

TREES = 5


class Dice(torch.nn.Module):  # type: ignore[misc]
    """A model that answers by chance, always the same to the same; few different numbers, so that many are level."""

    def __init__(
        self,
        actions: int,
        *,
        discounts: bool = False,
        ruled_out: bool = False,
        even: bool = False,
        dtype: str = "float32",
    ) -> None:
        super().__init__()
        self.actions, self.discounts, self.ruled_out, self.even = actions, discounts, ruled_out, even
        self.dtype = getattr(torch, dtype)

    def draw(self, hidden: Any, salt: int, count: int) -> Any:
        """Whole numbers from 0 to 8, [rows, count]."""
        mixed = (hidden[:, None] * 48271 + torch.arange(count, device=hidden.device) * 40692 + salt * 9973) % 2147483647
        return (mixed * 16807 % 2147483647) // 127 % 9

    def see(self, hidden: Any) -> tuple[Any, Any]:
        """Logits and values."""
        logits = self.draw(hidden, 1, self.actions).float() * (0.0 if self.even else 0.5)
        if self.ruled_out:
            keep = self.draw(hidden, 2, self.actions) > 3
            keep[:, 0] = True
            logits = logits.masked_fill(~keep, -torch.inf)
        return logits.to(self.dtype), (self.draw(hidden, 3, 1).to(self.dtype) - 4.0) / 4.0

    def initial_inference(self, observations: Any) -> tuple[Any, ...]:
        hidden = observations.reshape(len(observations), -1)[:, 0].long() + 7
        return (hidden, *self.see(hidden))

    def recurrent_inference(self, hidden: Any, actions: Any) -> tuple[Any, ...]:
        after = (hidden * 31 + actions + 1) % 1000003
        reward = (self.draw(after, 4, 1)[:, 0].float() - 4.0) / 8.0
        discount = torch.where(self.draw(after, 5, 1)[:, 0] > 3, -0.75, 0.5)
        return (after, reward, *self.see(after), *([discount] if self.discounts else []))


def beside(monkeypatch: pytest.MonkeyPatch) -> list[DeviceTrees]:
    """Lets trees grow beside a network on a CPU; those that did."""
    opened: list[DeviceTrees] = []
    made = DeviceTrees.__init__

    def note(trees: DeviceTrees, *arguments: Any, **options: Any) -> None:
        made(trees, *arguments, **options)
        opened.append(trees)

    def compiled(device: Any, kind: Any) -> Any:
        library = for_a_processor(SOURCE, options_of(kind, 1))

        def launch(struct: Trees, goes_on: bool) -> None:
            library.step(ctypes.byref(struct), ctypes.c_int(int(goes_on)))

        return launch

    monkeypatch.setattr(DeviceTrees, "__init__", note)
    monkeypatch.setattr(device_trees, "compiled", compiled)
    monkeypatch.setattr(kinds.TreeShape, "may_grow", lambda shape, device: shape.actions <= kinds.MOST_ACTIONS)
    return opened


def planted(search: Any, actions: int, *, two: bool, some: bool) -> Any:
    """A forest of observations, with masks and turns if there are `some`."""
    observations = [np.array([row], dtype=np.float32) for row in range(TREES)]
    options: dict[str, Any] = {}
    if some:
        options["legal_actions"] = [
            [action for action in range(actions) if (action * 7 + row) % 3 or action == row % actions]
            for row in range(TREES)
        ]
    if two:
        options["to_play"] = [row % 2 for row in range(TREES)]
    return search.forest(observation=observations, **options)


def dumped(node: Any) -> Any:
    """A tree as nested tuples."""
    own = (node.visit_count, node.total_value, node.prior, node.clean_prior, node.to_play)
    if node.visit_count == 0:
        return own
    seen = (node.raw_value, node.reward)
    return (*own, *seen, [(action, dumped(child)) for action, child in node.children.items()])


def told(forest: Any) -> list[Any]:
    """All that can be seen of a forest: first what needs the roots alone."""
    shown = [forest.actions().tolist(), forest.visits().tolist(), forest.values().tolist(), forest.policies().tolist()]
    return [*shown, [dumped(result.root) for result in forest.results()]]


SEARCHES: dict[str, Any] = {
    "node": (pondertree.MuZero, {}),
    "tree": (pondertree.MuZero, {"normalize": "tree"}),
    "as they are": (pondertree.MuZero, {"normalize": None}),
    "gumbel": (pondertree.Gumbel, {}),
    "own value": (pondertree.Gumbel, {"use_mixed_value": False, "rescale_values": False, "value_scale": 1.0}),
    "few": (pondertree.Gumbel, {"max_num_considered_actions": 3}),
}
MODELS: dict[str, dict[str, Any]] = {
    "dice": {},
    "discounts": {"discounts": True},
    "ruled out": {"ruled_out": True},
    "even": {"even": True},
    "bfloat16": {"dtype": "bfloat16", "discounts": True},
    "float16": {"dtype": "float16"},
}


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
@pytest.mark.parametrize("actions", [1, 2, 7, 40])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", SEARCHES)
def test_they_are_the_engine_s_own(monkeypatch: pytest.MonkeyPatch, name: str, model: str, actions: int) -> None:
    kind, options = SEARCHES[name]
    two = actions % 2 == 0 or MODELS[model].get("discounts", False)
    found = []
    for grows in (False, True):
        with monkeypatch.context() as patch:
            opened = beside(patch) if grows else []
            search = kind(
                model=TorchModel(Dice(actions, **MODELS[model]), "cpu"),
                num_simulations=60,
                num_players=2 if two else 1,
                discount=0.9,
                seed=3,
                **options,
            )
            forest = planted(search, actions, two=two, some=actions > 2)
            noisy = None if kind is pondertree.Gumbel else True
            first = told(forest.simulate(add_noise=noisy))
            assert len(opened) == int(grows)
            assert not grows or opened[0].rows == 60 * TREES
            # What came home goes on like any other.
            forest.simulate(10)
            for tree, action in enumerate(forest.actions()):
                forest.advance(tree, int(action), observation=np.array([tree + 50], dtype=np.float32))
            found.append([first, told(forest.simulate(25))])
    assert found[0] == found[1]


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
@pytest.mark.parametrize("actions", [3, 4, 6])
@pytest.mark.parametrize("wrong", ["nan", "inf", "reward", "value", "raises", "shape", "axis"])
def test_what_no_model_may_say_is_told_in_words(monkeypatch: pytest.MonkeyPatch, wrong: str, actions: int) -> None:
    class Broken(Dice):
        def recurrent_inference(self, hidden: Any, actions: Any) -> tuple[Any, ...]:
            after, reward, logits, value = super().recurrent_inference(hidden, actions)
            if wrong == "raises":
                raise ZeroDivisionError("one too many")
            if wrong == "shape":
                return after, reward, logits[:, 1:], value
            if wrong == "axis":
                return after, reward, logits.reshape(len(logits), self.actions, 1), value
            spoiled = {"reward": reward, "value": value}.get(wrong, logits)
            spoiled[:] = {"nan": torch.nan, "inf": torch.inf}.get(wrong, torch.nan)
            return after, reward, logits, value

    said = []
    for grows in (False, True):
        with monkeypatch.context() as patch:
            if grows:
                beside(patch)
            search = pondertree.MuZero(model=TorchModel(Broken(actions), "cpu"), num_simulations=80, seed=1)
            forest = planted(search, actions, two=False, some=False)
            with pytest.raises(pondertree.EvaluationError) as caught:
                forest.simulate()
            said.append(str(caught.value))
            # Nothing was lost: the same trees can be searched again.
            assert forest.visits().sum() == 0
    assert said[0] == said[1]


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
def test_a_search_that_is_stopped_keeps_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    beside(monkeypatch)
    monkeypatch.setattr(device_trees, "MOST_STEPS", 4)
    search = pondertree.MuZero(model=TorchModel(Dice(6), "cpu"), num_simulations=40, seed=1)
    forest = planted(search, 6, two=False, some=False)
    go_on, begun = DeviceTrees.go_on, []

    def go(trees: DeviceTrees) -> bool:
        begun.append(trees)
        if len(begun) == 3:
            forest.stop()
        return go_on(trees)

    monkeypatch.setattr(DeviceTrees, "go_on", go)
    forest.simulate()
    assert len(begun) == 3
    assert (forest.visits().sum(axis=1) == 12).all()
    assert [result.simulations for result in forest.results()] == [12] * TREES
    monkeypatch.setattr(DeviceTrees, "go_on", go_on)
    again = pondertree.MuZero(model=TorchModel(Dice(6), "cpu"), num_simulations=12, seed=1)
    assert (planted(again, 6, two=False, some=False).simulate().visits() == forest.visits()).all()


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
def test_a_search_that_is_stopped_before_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    beside(monkeypatch)
    search = pondertree.AlphaZero(Torch(Stones(), "cpu", batch_size=4), 40, seed=3, solve=False)
    forest, answer = search.forest(boards(12)), GameTurns.answer_roots

    def stop(turns: GameTurns, group: int) -> None:
        answer(turns, group)
        forest.stop()

    monkeypatch.setattr(GameTurns, "answer_roots", stop)
    assert forest.simulate().visits().sum() == 0
    monkeypatch.setattr(GameTurns, "answer_roots", answer)
    alone = pondertree.AlphaZero(Torch(Stones(), "cpu"), 40, seed=3, solve=False).forest(boards(12)).simulate()
    assert (forest.simulate().visits() == alone.visits()).all()
    # Their roots are known already, which is no reason to search them elsewhere.
    assert forest._world._beside.rows > 0


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
def test_trees_that_were_interrupted_on_their_way_home_come_later(monkeypatch: pytest.MonkeyPatch) -> None:
    beside(monkeypatch)
    search = pondertree.MuZero(model=TorchModel(Dice(6), "cpu"), num_simulations=40, seed=1)
    forest = planted(search, 6, two=False, some=False).simulate()
    nodes = DeviceTrees.nodes

    def interrupted(trees: DeviceTrees) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(DeviceTrees, "nodes", interrupted)
    with pytest.raises(KeyboardInterrupt):
        forest.results()
    monkeypatch.setattr(DeviceTrees, "nodes", nodes)
    assert [result.root.visit_count for result in forest.simulate(5).results()] == [46] * TREES


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
def test_an_interrupt_between_the_groups_on_their_way_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither do some trees know less than others, nor does another search write where they are."""
    beside(monkeypatch)
    search = pondertree.AlphaZero(Torch(Stones(), "cpu", batch_size=4), 40, seed=3, solve=False)
    expected = told(search.forest(boards(12), seeds=1).simulate())
    forest, tell, calls = search.forest(boards(12), seeds=1), Beside._tell, []

    def interrupted(home: Beside, trees: Any, nodes: int, groups: Any) -> None:
        calls.append(nodes)
        if len(calls) == 1:
            home._core.import_results(0, nodes, groups[0])
            raise KeyboardInterrupt
        tell(home, trees, nodes, groups)

    monkeypatch.setattr(Beside, "_tell", interrupted)
    with pytest.raises(KeyboardInterrupt):
        forest.simulate()
    search.forest(boards(24)[12:], seeds=2).simulate()
    assert calls[:2] == [1, 41]
    assert told(forest) == expected


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
@pytest.mark.parametrize("what", ["game", "model"])
def test_games_that_end_one_by_one_use_the_same_memory(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """Rows without a tree do no harm, and two lengths of search have both their own."""
    found = []
    for grows in (False, True):
        with monkeypatch.context() as patch:
            opened = beside(patch) if grows else []
            model, evaluator, seen = TorchModel(Dice(6), "cpu"), Torch(Stones(), "cpu"), []
            for trees, simulations in ((23, 40), (22, 20), (21, 40), (19, 20), (19, 40)):
                if what == "game":
                    search = pondertree.AlphaZero(evaluator, simulations, seed=3, solve=False)
                    forest = search.forest(boards(trees), seeds=1)
                else:
                    search = pondertree.MuZero(model=model, num_simulations=simulations, seed=3)
                    observations = [np.array([row], dtype=np.float32) for row in range(trees)]
                    forest = search.forest(observation=observations, seeds=1)
                seen.append(told(forest.simulate()))
                assert (forest._world._beside.rows > 0) == grows
                # Its memory is free for the next.
                del forest
            assert len(opened) == (2 if grows else 0)
            found.append(seen)
    assert found[0] == found[1]


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
def test_slots_of_what_was_not_searched_are_free_again(monkeypatch: pytest.MonkeyPatch) -> None:
    beside(monkeypatch)
    monkeypatch.setattr(device_trees, "MOST_STEPS", 4)
    search = pondertree.MuZero(model=TorchModel(Dice(6), "cpu"), num_simulations=400, seed=1)
    forest, go_on, most = planted(search, 6, two=False, some=False), DeviceTrees.go_on, []

    def stop(trees: DeviceTrees) -> bool:
        forest.stop()
        return go_on(trees)

    monkeypatch.setattr(DeviceTrees, "go_on", stop)
    for _ in range(4):
        forest.simulate()
        for tree in range(TREES):
            forest.reset(tree, observation=np.array([tree], dtype=np.float32))
        most.append(forest._world.core.num_slots())
    assert most[-1] <= most[0] + 10 * TREES


class Stones(torch.nn.Module):  # type: ignore[misc]
    """Says something of a board of Connect 4: few different numbers, so that many are level."""

    def __init__(self, spoiled: str = "", looked: list[int] | None = None) -> None:
        super().__init__()
        self.spoiled, self.looked = spoiled, looked
        self.weights = torch.nn.Parameter((torch.arange(3 * 42).reshape(3, 6, 7) * 48271 % 97).float())

    def forward(self, boards: Any) -> tuple[Any, Any]:
        if self.looked is not None:
            self.looked.append(len(boards))
        sums = (boards.float() * self.weights.float()).sum(dim=(1, 2, 3)).long()
        logits = ((sums[:, None] * 31 + torch.arange(7, device=sums.device) * 17) % 5).float() * 0.5
        values = ((sums * 7) % 9 - 4).float() / 4.0
        if self.spoiled:
            wrong = sums % 3 != 1
            values = torch.where(wrong, 7.0, values) if self.spoiled == "value" else values
            logits = torch.where(wrong[:, None], torch.nan, logits) if self.spoiled == "logits" else logits
        return logits.to(self.weights.dtype), values.to(self.weights.dtype)


def boards(count: int) -> list[Any]:
    """Positions of Connect 4, some of them a move from their end."""
    numbers, found = np.random.default_rng(5), []
    while len(found) < count:
        state = ConnectFour()
        for _ in range(int(numbers.integers(0, 36))):
            after = state.play(int(numbers.choice(state.legal_actions())))
            if after.is_terminal:
                break
            state = after
        found.append(state)
    return found


GAMES: dict[str, Any] = {
    "puct": (pondertree.AlphaZero, {}),
    "parent": (pondertree.AlphaZero, {"fpu": ("parent", 0.2), "parent_visits": "edges"}),
    "gumbel": (pondertree.Gumbel, {}),
    "few": (pondertree.Gumbel, {"max_num_considered_actions": 2, "rescale_values": False, "value_scale": 1.0}),
}


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
@pytest.mark.parametrize(("batch", "dtype"), [(None, "float32"), (16, "bfloat16"), (None, "float16")])
@pytest.mark.parametrize("name", GAMES)
def test_games_are_the_engine_s_own(monkeypatch: pytest.MonkeyPatch, name: str, batch: int | None, dtype: str) -> None:
    need_cpu_precision(dtype)
    kind, options = GAMES[name]
    found = []
    for grows in (False, True):
        with monkeypatch.context() as patch:
            opened, looked = beside(patch) if grows else [], []
            evaluator = Torch(Stones(looked=looked).to(getattr(torch, dtype)), "cpu", batch_size=batch)
            search = kind(evaluator, num_simulations=90, seed=3, solve=False, **options)
            forest = search.forest(boards(40))
            noisy = None if kind is pondertree.Gumbel else True
            first = told(forest.simulate(add_noise=noisy))
            assert bool(opened) == grows
            assert sum(trees.trees for trees in opened) == (40 if grows else 0)
            # Ends need no network, and trees that are done have no rows.
            asked = sum(trees.rows for trees in opened)
            assert not grows or (0 < asked < 40 * 90 and sum(looked) < 0.85 * 40 * 90)
            forest.simulate(10)
            for tree, action in enumerate(forest.actions()):
                if not forest.state(tree).play(int(action)).is_terminal:
                    forest.advance(tree, int(action))
            found.append([first, told(forest.simulate(25))])
    assert found[0] == found[1]


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
@pytest.mark.parametrize("name", ["puct", "gumbel"])
def test_no_tree_keeps_the_others_waiting(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """One that only meets ends has few simulations in a step, which makes no difference to it."""
    beside(monkeypatch)
    monkeypatch.setattr(device_trees, "MOST_STEPS", 1)
    monkeypatch.setattr(device_trees, "FEWEST_STEPS", 1)
    kind, go_on, grown = GAMES[name][0], DeviceTrees.go_on, []
    for patience in (1, 3, 90):
        monkeypatch.setattr(launch, "PATIENCE", patience)
        done = [0]

        def go(trees: DeviceTrees, done: list[int] = done) -> bool:
            more = go_on(trees)
            done.append(int(trees._told["done"][: trees.trees].max()))
            return more

        monkeypatch.setattr(DeviceTrees, "go_on", go)
        search = kind(Torch(Stones(), "cpu"), 90, seed=3, solve=False)
        grown.append(told(search.forest(boards(40)).simulate()))
        most = max(after - before for before, after in itertools.pairwise(done))
        # A question is answered in the same step as further ends are met.
        assert most <= patience + 1
        assert patience < 90 or most > 10
    assert grown[0] == grown[1] == grown[2]


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
@pytest.mark.parametrize("batch", [None, 1])
@pytest.mark.parametrize("spoiled", ["value", "logits"])
def test_what_no_network_may_say_is_told_in_words(
    monkeypatch: pytest.MonkeyPatch, spoiled: str, batch: int | None
) -> None:
    said = []
    for grows in (False, True):
        with monkeypatch.context() as patch:
            if grows:
                beside(patch)
            search = pondertree.AlphaZero(Torch(Stones(spoiled), "cpu", batch_size=batch), 90, seed=3, solve=False)
            forest = search.forest(boards(3))
            with pytest.raises(pondertree.EvaluationError) as caught:
                forest.simulate()
            assert forest.visits().sum() == 0 or not grows
            said.append(str(caught.value))
    assert said[0] == said[1]


@pytest.mark.parametrize("is_game", [True, False])
@pytest.mark.parametrize("simulations", [1, 2, 7, 8, 9, 50, 64, 100, 400, 1000])
def test_pieces_of_work_are_all_steps(simulations: int, is_game: bool) -> None:
    kind = kinds.TreeShape(8, simulations, 7, Puct(1.0) if is_game else LogPuct(19652.0, 1.25, "node"), is_game=is_game)
    lengths = device_trees.lengths_of(kind)
    assert sum(lengths) == simulations
    assert max(lengths) <= device_trees.MOST_STEPS
    assert is_game or len(lengths) == -(-simulations // device_trees.MOST_STEPS)


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
def test_buffers_are_not_leased_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trees that are not home yet must not be overwritten by the next search."""
    beside(monkeypatch)
    search = pondertree.AlphaZero(Torch(Stones(), "cpu"), 40, seed=3, solve=False)
    first, second = search.forest(boards(5), seeds=1), search.forest(boards(9)[4:], seeds=1)
    alone = told(search.forest(boards(5), seeds=1).simulate())
    first.simulate()
    second.simulate()
    assert told(first) == alone


def test_it_compiles_for_a_gpu() -> None:
    """No GPU is needed for that, only the compiler that comes with PyTorch for CUDA."""
    for gumbel, game in ((0, 0), (1, 0), (0, 1), (1, 1)):
        sizes = ("-DPLACES=40", "-DGROUPS=2", "-DPATIENCE=2", "-DWARPS=8")
        defined = (*sizes, f"-DGUMBEL={gumbel}", f"-DCONNECT_FOUR={game}")
        try:
            assert compile_source(SOURCE, ("--gpu-architecture=sm_80", "--fmad=false", *defined))
        except NotCompiled as error:
            if "not found" in str(error) or "without CUDA" in str(error):
                pytest.skip(str(error))
            raise


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", SEARCHES)
def test_on_a_gpu(monkeypatch: pytest.MonkeyPatch, name: str, model: str) -> None:
    kind, options = SEARCHES[name]
    monkeypatch.setattr(kinds, "FEWEST_TREES", 1)
    for actions in (1, 2, 7, 40, 200):
        found = []
        for device in ("cpu", "cuda"):
            two = actions % 2 == 0 or MODELS[model].get("discounts", False)
            search = kind(
                model=TorchModel(Dice(actions, **MODELS[model]), device),
                num_simulations=60,
                num_players=2 if two else 1,
                discount=0.9,
                seed=3,
                **options,
            )
            forest = planted(search, actions, two=two, some=actions > 2)
            found.append(told(forest.simulate(add_noise=None if kind is pondertree.Gumbel else True)))
            if device == "cuda":
                assert forest._world._beside.rows == 60 * TREES
        assert found[0] == found[1], actions


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_games_on_a_gpu(name: str, dtype: str) -> None:
    kind, options = GAMES[name]
    found = []
    for device in ("cpu", "cuda"):
        evaluator = Torch(Stones().to(getattr(torch, dtype)), device)
        search = kind(evaluator, num_simulations=90, seed=3, solve=False, **options)
        forest = search.forest(boards(500))
        found.append(told(forest.simulate(add_noise=None if kind is pondertree.Gumbel else True)))
        assert (forest._world._beside.rows > 0) == (device == "cuda")
    assert found[0] == found[1]
