"""The record of a simulation: each choice on its path, and what the scores there were made of.

Engine and reference implementation record the same rows, equal to the bit. Combined in the order of their keys, the
terms give the score exactly:

- `ucb1`, `puct`: `score = q + exploration`
- `log_puct`: `score = normalized_q + exploration`, `normalized_q = (q - low) * scale`, or 0 without visits
- `gumbel`, by score: `score = improved_policy - visit_share`
- `gumbel`, by halving: `score = max(-1e9, gumbel + logit + sigma)`
- `chance`, balanced: `score = probability / (visits + in_flight + 1)`

In both of Gumbel's, `sigma = sigma_weight * ((completed_q - low) / span)`; a `completed_q` without visits is
`mixed_value`.
"""

from __future__ import annotations

from typing import Literal, TypedDict

Scores = list[tuple[int, float]]


class EdgeTerms(TypedDict, total=False):
    """One edge of a choice, with the keys of its scoring rule. Values are for the player who chooses."""

    # Every edge.
    action: int
    visits: int
    """N, without leaves in flight."""
    in_flight: int
    """The leaves in flight below the edge, which count as visits."""
    total: float
    """W, the sum of values."""
    proven: int | None
    """The proven result: 1, 0 or -1."""

    # Rules with priors.
    prior: float
    """P as the rule uses it: at the root, mixed with noise."""
    clean_prior: float
    """P without noise."""
    category: int
    """The move category (Hybrid)."""

    # Learned models: Q is the mean of reward + discount * value over the visits.
    reward: float | None
    """The reward of the action; None before its first visit."""
    discount: float | None
    """The discount of `value`, negative if the player changes."""
    value: float | None
    """The mean value of the child for its player to move."""

    # Outcomes of chance.
    probability: float
    """The probability of the outcome."""

    # Choices by score.
    virtual_loss: int
    """The leaves in flight that `q` counts as losses (`ucb1`, `puct`)."""
    q: float | None
    """The proven result, else (total - virtual_loss) / (visits + in_flight); with learned models and `gumbel`
    total / visits, None without visits."""
    first_play_urgency: bool
    """Whether `q` is the first-play urgency of an untried move (`puct`)."""
    normalized_q: float
    """Q in the range of the priors (`log_puct`)."""
    exploration: float
    """The exploration term (`ucb1`, `puct`, `log_puct`)."""
    forced_visits: float | None
    """The visits that forced playouts require of an opened root move (`puct`); None elsewhere."""
    completed_q: float
    """Q, or the mixed value without visits (`gumbel`)."""
    sigma: float
    """sigma of the completed Q (`gumbel`)."""
    improved_policy: float
    """The share of the improved policy (`gumbel` below the root)."""
    visit_share: float
    """The share of visits (`gumbel` below the root)."""
    gumbel: float
    """The Gumbel number times its scale (`gumbel` at the root)."""
    logit: float
    """The logit of the prior; the highest is 0 (`gumbel` at the root)."""
    scheduled_visits: int
    """The visits since the schedule began, with leaves in flight (`gumbel` at the root)."""
    considered: bool
    """Whether the choice is among moves with these visits (`gumbel` at the root)."""
    excluded: bool
    """Whether it is a proven loss and not chosen."""
    score: float | None
    """The score; None if excluded."""


class ChoiceTerms(TypedDict, total=False):
    """One choice of a descent, with the keys of its scoring rule."""

    player: int
    """The player who chooses; `pondertree.CHANCE` at a chance node."""
    visits: int
    """N of the node, with leaves in flight."""
    rule: str
    """The scoring rule: "ucb1", "puct", "log_puct" or "gumbel"; "chance" at a chance node."""
    how: Literal["score", "forced", "halving", "untried", "balanced", "sample"]
    """By the highest score; by forced playouts; by sequential halving (the highest score of the considered moves); or
    untried: an untried edge is opened without scores, a random one (UCT) or the first in the order of categories
    (Hybrid). At a chance node "balanced", by the highest score, or "sample", by the probabilities, without scores."""
    edges: list[EdgeTerms]
    """The edges in the order of comparison; "untried": those to be opened."""
    exploration_weight: float
    """The factor of P / (1 + n) in the exploration term (`puct`, `log_puct`)."""
    low: float
    """The value that is normalised to 0 (`log_puct`, `gumbel`)."""
    scale: float
    """The factor of normalisation (`log_puct`)."""
    mixed_value: float
    """Q of untried moves (`gumbel`)."""
    sigma_weight: float
    """The factor of sigma (`gumbel`)."""
    span: float
    """The range of values (`gumbel`)."""
    considered_visits: int
    """The visits that the schedule asks of the chosen move (`gumbel` at the root)."""
    considered_actions: int
    """The simulations that the schedule has at these visits: the moves of a round (`gumbel` at the root)."""


class TraceRow(TypedDict):
    """One simulation. Rows are ordered by simulation number, which is the order of the descents."""

    simulation: int
    """The index of the simulation, from 0, over the lifetime of the tree."""
    path: list[int]
    """The actions from the root to the leaf."""
    scores: list[Scores | None]
    """For each action of the path: the (action, score) pairs it was selected from, in order of comparison; None where
    an unexpanded action was expanded."""
    terms: list[ChoiceTerms]
    """For each action of the path: what the scores were made of."""
    values: list[float]
    """The values of the leaf, one per player, before the rewards on the path are added."""
