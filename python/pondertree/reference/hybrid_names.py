"""The fields that the hybrid specification names otherwise than the rest: both names mean one number."""

from __future__ import annotations

from pondertree.chess.position import NUM_ACTIONS
from pondertree.reference.node import PriorNode


class SpecifiedNames(PriorNode):
    """A node with `visits`, `policy_prior` and `nn_value`, which the parts of all searches find by their own names."""

    __slots__ = ("nn_value", "policy_prior", "visits")

    visits: int
    policy_prior: float
    nn_value: float | None

    @property
    def visit_count(self) -> int:
        """`visits`."""
        return self.visits

    @visit_count.setter
    def visit_count(self, visits: int) -> None:
        self.visits = visits

    @property
    def prior(self) -> float:
        """`policy_prior`."""
        return self.policy_prior

    @prior.setter
    def prior(self, prior: float) -> None:
        self.policy_prior = prior

    @property
    def clean_prior(self) -> float:
        """`policy_prior`: this search has no noise."""
        return self.policy_prior

    @clean_prior.setter
    def clean_prior(self, prior: float) -> None:
        self.policy_prior = prior

    @property
    def raw_value(self) -> float:
        """`nn_value`, or 0 without one."""
        return 0.0 if self.nn_value is None else self.nn_value

    @raw_value.setter
    def raw_value(self, value: float) -> None:
        self.nn_value = value

    @property
    def is_tried(self) -> bool:
        """A move gets its node when it is tried."""
        return True

    @property
    def num_actions(self) -> int:
        """The size of the action space."""
        return NUM_ACTIONS
