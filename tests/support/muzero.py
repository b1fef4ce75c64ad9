"""Models and tree helpers of the MuZero reference tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pondertree.reference.muzero import (
    Node,
)


@dataclass
class Fixed:
    """A model with the same `rewards` and `values` of actions in every state."""

    logits: Any
    rewards: Any = (0.0, 0.0)
    values: Any = (0.0, 0.0)
    root_value: float = 0.0

    def initial_inference(self, observations: Any) -> tuple[Any, Any, Any]:
        return np.zeros(1), [self.logits], [self.root_value]

    def recurrent_inference(self, hidden_states: Any, actions: Any) -> tuple[Any, ...]:
        action = int(actions[0])
        return np.zeros(1), [self.rewards[action]], [self.logits], [self.values[action]]


def nodes_of(root: Node) -> list[Node]:
    found = [root]
    for node in found:
        found.extend(child for child in node.children.values() if child.visit_count)
    return found
