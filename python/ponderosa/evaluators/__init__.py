"""Evaluators: what values a leaf, for the player to move there.

An evaluator is an object with `evaluate(observations) -> (policy_logits [B, num_actions], values [B])`, or a plain function
of that form; or an object with `evaluate_states(states)` of the same form, for heuristics that want the states themselves.
Beyond two players values are `[B, num_players]`.
"""

from ponderosa.evaluators.batch import Batch, Packed
from ponderosa.evaluators.compiled import Rollout, Uniform
from ponderosa.evaluators.protocol import Answer, Evaluator, PackedEvaluator, StateEvaluator, ask

__all__ = [
    "Answer",
    "Batch",
    "Evaluator",
    "Packed",
    "PackedEvaluator",
    "Rollout",
    "StateEvaluator",
    "Uniform",
    "ask",
]
