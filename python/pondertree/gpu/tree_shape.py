"""The shape of trees that share arrays on a device, and which searches may run there."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from pondertree.config import ScoringRule, SearchConfig

#: Games whose rules the kernel implements.
DEVICE_GAMES = frozenset(("connect_four",))
#: The header in `kernels` for a rule, by its name and whether the kernel plays a game. All other rules are CPU only.
RULE_KERNELS = {
    ("puct", True): "puct.h",
    ("log_puct", False): "puct.h",
    ("gumbel", True): "gumbel.h",
    ("gumbel", False): "gumbel.h",
}
#: Nodes of larger action spaces hold the top-k actions alone, which the engine does.
MAX_ACTIONS = 256
#: The engine keeps up with fewer trees, and no kernel has to be compiled.
MIN_TREES = 32
#: The kernel numbers nodes with 16 bits.
MAX_SIMULATIONS = 32_000
#: Device bytes of one group of trees, and of all that are cached.
MAX_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class TreeShape:
    """Dimensions and rule of a group of trees; groups of equal shape can use the same arrays and kernel."""

    trees: int
    simulations: int
    actions: int
    rule: ScoringRule
    players: int = 2
    discount: float = 1.0
    is_game: bool = False
    """Whether the kernel plays a game and a network evaluates positions; else a learned model makes the steps."""

    @property
    def kernel(self) -> str | None:
        """The header in `kernels` that scores by the rule, None where only the engine does."""
        # Of the rules that normalise by the tree, it implements MuZero's alone; games it searches without discount.
        any_value = RULE_FIELDS - {"normalize"} if self.rule.name == "puct" else RULE_FIELDS
        implemented = _has_defaults_beside(self.rule, any_value) and not (self.is_game and self.discount != 1.0)
        return RULE_KERNELS.get((self.rule.name, self.is_game)) if implemented else None

    @property
    def bytes(self) -> int:
        """Approximate device memory."""
        return self.trees * (self.simulations + 1) * (20 * self.actions + 72)

    def runs_on(self, device: Any) -> bool:
        """Whether the kernel can search such trees on a device, and is likely to be faster there."""
        if self.simulations > MAX_SIMULATIONS:
            return False
        fits = self.trees >= MIN_TREES and self.actions <= MAX_ACTIONS and self.bytes <= MAX_BYTES
        return device.type == "cuda" and fits and self.kernel is not None

    def dimensions(self) -> dict[str, tuple[int, ...]]:
        """Array shapes by row kind (`tree_layout.ARRAYS`); arrays that the search does not use are empty."""
        nodes = self.simulations + 1
        model, game = (0, self.trees) if self.is_game else (self.trees, 0)
        gumbel = self.trees if self.kernel == "gumbel.h" else 0
        return {
            "tree": (self.trees,),
            "action": (self.trees, self.actions),
            "node": (self.trees, nodes),
            "edge": (self.trees, nodes, self.actions),
            "header": (self.trees, nodes, 4),
            "draw": (gumbel, self.actions),
            "simulation": (gumbel, self.simulations),
            "visits": (self.simulations + 2,),
            "bounds": (self.trees, 2),
            "scalar": (1,),
            "request": (model,),
            "slot": (model, nodes),
            "reward": (model, nodes),
            "root_board": (game, 2),
            "board": (game, nodes, 2),
        }


#: Fields that may have any value on a device: the kernel implements them, or the engine does before or after it.
PUCT_FIELDS = ("c_puct", "fpu", "parent_visits", "pb_c_base", "pb_c_init", "normalize")
GUMBEL_FIELDS = ("max_num_considered_actions", "gumbel_scale", "value_scale", "maxvisit_init")
RULE_FIELDS = frozenset((*PUCT_FIELDS, *GUMBEL_FIELDS, "rescale_values", "use_mixed_value"))
DEVICE_FIELDS = frozenset(("rule", "options", "leaf", "evaluator", "discount", "noise", "gumbel"))
DEVICE_OPTIONS = frozenset(("time_limit", "seed", "threads", "solve"))


def runs_on_device(config: SearchConfig) -> bool:
    """Whether a search consists of plain simulations one after another, which is all that the kernel implements.

    Other fields, and new ones, must have their defaults.
    """
    return _has_defaults_beside(config, DEVICE_FIELDS) and _has_defaults_beside(config.options, DEVICE_OPTIONS)


def _has_defaults_beside(config: Any, any_value: frozenset[str]) -> bool:
    compared = [each for each in fields(config) if each.init and each.name not in any_value]
    return all(getattr(config, each.name) == each.default for each in compared)
