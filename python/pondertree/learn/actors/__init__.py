"""Actors of a training: self-play and evaluation, and the supervisor that runs them on an executor. Needs PyTorch."""

from pondertree.learn.actors.evaluation_actor import RemoteEvaluation
from pondertree.learn.actors.messages import ActorSetup, ActorState, Shard, ShardId, setup_for
from pondertree.learn.actors.self_play_actor import LiveWeights, SelfPlayActor, make_self_play_actor
from pondertree.learn.actors.supervisor import Supervisor

__all__ = [
    "ActorSetup",
    "ActorState",
    "LiveWeights",
    "RemoteEvaluation",
    "SelfPlayActor",
    "Shard",
    "ShardId",
    "Supervisor",
    "make_self_play_actor",
    "setup_for",
]
