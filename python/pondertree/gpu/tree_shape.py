"""What trees have to be alike in to grow side by side on a device, and whether they can."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pondertree.config import Halving, LogPuct, Puct, Rule, Settings

#: Games whose rules the kernel knows.
GAMES = frozenset(("connect_four",))
#: Larger action spaces have nodes that keep their likeliest moves alone, which the engine does.
MOST_ACTIONS = 256
#: With fewer trees the processor keeps up, and a kernel need not be compiled.
FEWEST_TREES = 32
#: More do not fit into the kernel's numbers.
MOST_SIMULATIONS = 32_000
#: The trees of a group, and those kept for the next searches, may take so many bytes of a device.
MOST_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class TreeShape:
    """What trees have to be alike in to use the same memory."""

    trees: int
    simulations: int
    actions: int
    rule: Rule
    players: int = 2
    discount: float = 1.0
    is_game: bool = False
    """Whether the kernel knows the rules, and a network says what positions are worth."""

    @property
    def bytes(self) -> int:
        """What they take of a device, about."""
        return self.trees * (self.simulations + 1) * (20 * self.actions + 72)

    def may_grow(self, device: Any) -> bool:
        """Whether such trees can be searched on a device, and are worth it."""
        if self.simulations > MOST_SIMULATIONS:
            return False
        fits = self.trees >= FEWEST_TREES and self.actions <= MOST_ACTIONS and self.bytes <= MOST_BYTES
        known = (Puct, Halving) if self.is_game else (LogPuct, Halving)
        forced = isinstance(self.rule, Puct) and self.rule.forced_playouts > 0.0
        return device.type == "cuda" and fits and isinstance(self.rule, known) and not forced

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of arrays, by what their rows are; what there is no use for has no rows."""
        nodes = self.simulations + 1
        model, game = (0, self.trees) if self.is_game else (self.trees, 0)
        gumbel = self.trees if isinstance(self.rule, Halving) else 0
        return {
            "tree": (self.trees,),
            "action": (self.trees, self.actions),
            "node": (self.trees, nodes),
            "edge": (self.trees, nodes, self.actions),
            "header": (self.trees, nodes, 4),
            "draw": (gumbel, self.actions),
            "simulation": (gumbel, self.simulations),
            "visits": (self.simulations + 2,),
            "pair": (self.trees, 2),
            "one": (1,),
            "model": (model,),
            "slot": (model, nodes),
            "gain": (model, nodes),
            "board": (game, 2),
            "position": (game, nodes, 2),
        }


def suits(settings: Settings) -> bool:
    """Whether a search asks for nothing but simulations, one after another."""
    extras = (settings.trace, settings.early_stop, settings.minimax_depth, settings.forced_depth, settings.domain)
    unlimited = settings.max_nodes is None and settings.max_memory is None
    return settings.in_flight == 1 and unlimited and not any(extras)
