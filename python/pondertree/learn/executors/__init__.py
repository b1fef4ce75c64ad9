"""Executors: where actors run. In this process, in other processes, or on a Ray cluster (imported when used)."""

from typing import Any

from pondertree import validation
from pondertree.learn.executors.base import EVALUATION, Actor, Blob, Executor, Pool, Reply
from pondertree.learn.executors.in_process import InProcessExecutor, LocalActor
from pondertree.learn.executors.processes import ProcessExecutor
from pondertree.learn.executors.ray_cluster import RayExecutor

__all__ = [
    "Actor",
    "Blob",
    "EVALUATION",
    "Executor",
    "InProcessExecutor",
    "LocalActor",
    "Pool",
    "ProcessExecutor",
    "RayExecutor",
    "Reply",
    "executor_named",
]

EXECUTORS: dict[str, type[Executor]] = {
    "in-process": InProcessExecutor,
    "processes": ProcessExecutor,
    "ray": RayExecutor,
}


def executor_named(executor: Any) -> Executor | None:
    """Returns the executor, or the one of that name with its defaults; None for None."""
    if executor is None or isinstance(executor, Executor):
        return executor
    validation.one_of(executor, "executor", EXECUTORS, "an executor, in-process, processes or ray")
    return EXECUTORS[executor]()
