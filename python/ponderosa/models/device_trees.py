"""Trees that grow beside their model: on a GPU, whole simulations run without the processor.

`device_trees.cu` is one simulation of every tree; here is the memory it works on, and the loop. The engine gives the
roots and takes what was found, of the roots at once, of all nodes when somebody looks at them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ponderosa.evaluators.lane import NotForLanes
from ponderosa.evaluators.torch_graph import Graphs
from ponderosa.models.hidden import flatten
from ponderosa.models.nvrtc import NotCompiled, kernel
from ponderosa.models.pool import HiddenPool
from ponderosa.rules import Halving, LogPuct, Rule

SOURCE = Path(__file__).with_suffix(".cu")
#: Larger action spaces have nodes that keep their likeliest moves alone, which the engine does.
MOST_ACTIONS = 256
#: With fewer trees the processor keeps up, and a kernel need not be compiled.
FEWEST_TREES = 32
#: All trees together may take so many bytes of a device.
MOST_BYTES = 2 << 30
#: After so many simulations the processor looks whether it is to stop.
LOOK_EVERY = 64
#: Warps of one block.
WARPS = 4
#: The two kinds of work that are recorded: a simulation of every tree, and the last answer.
STEP, LAST = 1, 2

Columns = dict[str, NDArray[Any]]
#: Begins one simulation of every tree: all arrays, and whether a next question is wanted.
Launch = Callable[["Trees", bool], None]
_NODE = ("headers", "raw", "rewards", "discounts")
_EDGE = ("sums", "visits", "priors", "actions", "children")
_NORMALIZE = {"node": 0, "tree": 1, None: 2}


class Rules(ctypes.Structure):
    """`Rules` of the kernel."""

    _fields_ = (
        *((name, ctypes.c_int) for name in ("trees", "nodes", "actions", "players")),
        *((name, ctypes.c_int) for name in ("normalize", "rescale", "mixed", "has_discount")),
        *((name, ctypes.c_double) for name in ("discount", "value_scale", "maxvisit_init")),
    )


#: Arrays of the kernel in its order: name, type, and what their rows are.
ARRAYS: tuple[tuple[str, torch.dtype, str], ...] = (
    ("root_count", torch.int32, "tree"),
    ("root_to_play", torch.int32, "tree"),
    ("root_actions", torch.int16, "action"),
    ("root_priors", torch.float32, "action"),
    ("root_raw", torch.float64, "tree"),
    ("keys", torch.int64, "tree"),
    ("begun", torch.int64, "tree"),
    ("slots", torch.int64, "node"),
    ("draws", torch.float64, "action"),
    ("considered", torch.int32, "simulation"),
    ("weights", torch.float64, "visits"),
    ("reward", torch.float32, "tree"),
    ("value", torch.float32, "tree"),
    ("own_discount", torch.float32, "tree"),
    ("logits", torch.float32, "action"),
    ("headers", torch.int32, "header"),
    ("raw", torch.float64, "node"),
    ("rewards", torch.float64, "node"),
    ("discounts", torch.float64, "node"),
    ("sums", torch.float64, "edge"),
    ("visits", torch.int32, "edge"),
    ("priors", torch.float32, "edge"),
    ("actions", torch.int16, "edge"),
    ("children", torch.int16, "edge"),
    ("bounds", torch.float64, "pair"),
    ("path", torch.int32, "node"),
    ("depth", torch.int32, "tree"),
    ("done", torch.int32, "tree"),
    ("unsound", torch.int32, "one"),
    ("parents", torch.int64, "tree"),
    ("chosen", torch.int64, "tree"),
    ("targets", torch.int64, "tree"),
)
#: What the engine calls the arrays that begin a search.
_GIVEN = {
    "counts": "root_count",
    "to_play": "root_to_play",
    "actions": "root_actions",
    "priors": "root_priors",
    "raw": "root_raw",
    "keys": "keys",
    "begun": "begun",
    "slots": "slots",
    "draws": "draws",
    "considered": "considered",
    "weights": "weights",
}


class Trees(ctypes.Structure):
    """`Trees` of the kernel."""

    _fields_ = (("rules", Rules), *((name, ctypes.c_void_p) for name, _, _ in ARRAYS))
    rules: Rules


def may_grow(device: Any, trees: int, simulations: int, actions: int, rule: Rule) -> bool:
    """Whether such trees can be searched on a device, and are worth it."""
    size = trees * (simulations + 1) * (20 * actions + 56)
    suits = trees >= FEWEST_TREES and actions <= MOST_ACTIONS and size <= MOST_BYTES
    return device.type == "cuda" and suits and isinstance(rule, (LogPuct, Halving))


class DeviceTrees:
    """The trees of one forest, and memory for those of the next."""

    def __init__(
        self,
        trees: int,
        simulations: int,
        actions: int,
        rule: Rule,
        players: int,
        discount: float,
        pool: HiddenPool,
        device: Any,
        step: Callable[[Any, Any], tuple[Any, ...]],
        prepare: Callable[[], AbstractContextManager[Any]],
        launch: Launch | None = None,
    ) -> None:
        self.simulations = simulations
        self.searched = 0
        self._pool, self._pool_version, self._step = pool, pool.version, step
        nodes = simulations + 1
        shapes: dict[str, tuple[int, ...]] = {
            "tree": (trees,),
            "action": (trees, actions),
            "node": (trees, nodes),
            "edge": (trees, nodes, actions),
            "header": (trees, nodes, 4),
            "simulation": (trees, simulations),
            "visits": (simulations + 2,),
            "pair": (trees, 2),
            "one": (1,),
        }
        self._arrays = {name: torch.zeros(shapes[rows], dtype=dtype, device=device) for name, dtype, rows in ARRAYS}
        pinned = device.type == "cuda"
        # What comes down after a search: all about the roots.
        self._shown = {name: self._arrays[name][:, 0] for name in (*_NODE, *_EDGE)}
        self._shown |= {name: self._arrays[name] for name in ("bounds", "unsound")}
        self._told = {
            name: torch.zeros(array.shape, dtype=array.dtype, pin_memory=pinned) for name, array in self._shown.items()
        }
        self._slots: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._struct = Trees(**{name: array.data_ptr() for name, array in self._arrays.items()})
        self._struct.rules = rules_of(rule, trees, nodes, actions, players, discount)
        self._launch = launch or compiled(device, actions, rule, trees)
        self._graphs = Graphs(device, self._work, prepare)

    def search(self, roots: dict[str, Any], stopped: Callable[[], bool]) -> bool:
        """Searches from roots as the engine gives them, until all simulations are done or it is to stop.

        False if the model has said something that no model may say; the engine then asks it again, and tells.
        """
        self._slots = roots["slots"]
        for name, place in _GIVEN.items():
            given = roots[name]
            if len(given):
                array = self._arrays[place]
                array.copy_(
                    torch.from_numpy(given.view(np.int64) if given.dtype == np.uint64 else given).view(array.shape)
                )
        self._arrays["done"].fill_(-1)
        self._arrays["unsound"].zero_()
        if self._pool.version != self._pool_version:
            self._pool_version = self._pool.version
            self._graphs.forget()
        self._graphs.follow()
        self.searched = 0
        while self.searched < self.simulations:
            self._graphs.launch(STEP)
            self.searched += 1
            if self.searched % LOOK_EVERY == 0:
                self._graphs.wait()
                if stopped():
                    break
        self._graphs.launch(LAST)
        self._graphs.wait()
        return not bool(self._told["unsound"][0])

    def roots(self) -> Columns:
        """What the engine is told of the roots."""
        return self._columns({name: self._told[name] for name in (*_NODE, *_EDGE)})

    def nodes(self) -> Columns:
        """What it is told of all nodes."""
        return self._columns({name: self._arrays[name].cpu() for name in (*_NODE, *_EDGE)})

    def forget(self) -> None:
        """Drops what was recorded: the weights are elsewhere."""
        self._graphs.forget()

    def _columns(self, tensors: dict[str, Any]) -> Columns:
        told = {name: tensor.numpy().reshape(-1) for name, tensor in tensors.items()}
        return {**told, "bounds": self._told["bounds"].numpy().reshape(-1), "slots": self._slots}

    def _work(self, kind: int) -> None:
        self._launch(self._struct, kind == STEP)
        if kind == STEP:
            self._ask()
            return
        for name, place in self._told.items():
            place.copy_(self._shown[name], non_blocking=True)

    def _ask(self) -> None:
        """The model's step from the positions before the new leaves; what it says lies where the kernel reads it."""
        arrays = self._arrays
        trees = len(arrays["parents"])
        hidden, *said = self._step(self._pool.read(arrays["parents"]), arrays["chosen"])
        names = ("reward", "logits", "value", "own_discount")
        for name, column in zip(names, said, strict=False):
            if not isinstance(column, torch.Tensor) or column.dtype == torch.float64 or column.is_complex():
                raise NotForLanes("only tensors of at most 32 bits fit")
            if column.numel() != arrays[name].numel() or len(column) != trees:
                raise NotForLanes("shapes that may be wrong are told in words")
            arrays[name].copy_(column.reshape(arrays[name].shape))
        self._struct.rules.has_discount = int(len(said) > 3)
        self._pool.write(arrays["targets"], *flatten(hidden))


def rules_of(rule: Rule, trees: int, nodes: int, actions: int, players: int, discount: float) -> Rules:
    """A rule as the kernel reads it."""
    rules = Rules(trees=trees, nodes=nodes, actions=actions, players=players, discount=discount)
    if isinstance(rule, LogPuct):
        rules.normalize = _NORMALIZE[rule.normalize]
    elif isinstance(rule, Halving):
        rules.normalize = _NORMALIZE[None]
        rules.rescale, rules.mixed = int(rule.rescale_values), int(rule.use_mixed_value)
        rules.value_scale, rules.maxvisit_init = rule.value_scale, rule.maxvisit_init
    return rules


def options_of(rule: Rule, lanes: int, actions: int) -> tuple[str, ...]:
    """What the kernel is compiled with."""
    groups = 1
    while groups * lanes < actions:
        groups *= 2
    return (f"-DGROUPS={groups}", f"-DGUMBEL={int(isinstance(rule, Halving))}")


def compiled(device: Any, actions: int, rule: Rule, trees: int) -> Launch:
    """The kernel for a device. `NotForLanes` where there is no compiler."""
    if device.type != "cuda":
        raise NotForLanes("only GPUs of CUDA are programmed")
    index = torch.cuda.current_device() if device.index is None else device.index
    try:
        # Products are not added without rounding, as the engine does not, either.
        step = kernel(SOURCE, "step", (*options_of(rule, 32, actions), "--fmad=false"), index)
    except NotCompiled as error:
        raise NotForLanes(f"no kernel: {error}") from error

    def launch(struct: Trees, asks: bool) -> None:
        arguments: Sequence[Any] = (struct, ctypes.c_int(int(asks)))
        step.launch(-(-trees // WARPS), 32 * WARPS, arguments)

    return launch
