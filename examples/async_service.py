"""Evaluates the leaves of a search by a slow asynchronous service, with many requests awaited together.

Run it: python examples/async_service.py
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import numpy as np

import pondertree
from pondertree.games import ConnectFour

LATENCY = 0.01
#: The most requests that the service answers at once.
LIMIT = 32


class Service:
    """A stand-in for a service behind a network: one position per request, valued by a playout."""

    def __init__(self) -> None:
        self.free = asyncio.Semaphore(LIMIT)
        self.requests = self.busy = self.most_busy = 0

    async def value(self, state: ConnectFour) -> float:
        """Returns the value of a position for the player to move."""
        async with self.free:
            self.requests += 1
            self.busy += 1
            self.most_busy = max(self.most_busy, self.busy)
            await asyncio.sleep(LATENCY)
            self.busy -= 1
        return pondertree.playout(state, state.to_play, seed=hash(state) % 1000)


class ServiceEvaluator:
    """Requests the values of all leaves of a batch at once; policies are uniform."""

    def __init__(self, service: Service) -> None:
        self.service = service

    async def evaluate_states(self, states: Sequence[ConnectFour]) -> tuple[None, np.ndarray]:
        """Returns (no policy, values)."""
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self.service.value(state)) for state in states]
        return None, np.array([task.result() for task in tasks])


async def measure(in_flight: int, searches: int) -> float:
    """Runs searches at once, with `in_flight` leaves each; returns positions per second."""
    service = Service()
    search = pondertree.AlphaZero(ServiceEvaluator(service), num_simulations=160, in_flight=in_flight, seed=1)
    begun = time.perf_counter()
    results = await asyncio.gather(*(search.arun(ConnectFour()) for _ in range(searches)))
    seconds = time.perf_counter() - begun
    print(
        f"{searches} searches with {in_flight} leaves in flight: {seconds:.2f} s, at most {service.most_busy} requests "
        f"at once, {service.requests / seconds:.0f} positions/s, moves {' '.join(result.move for result in results)}"
    )
    return service.requests / seconds


async def main() -> None:
    """Compares one request at a time with many leaves of a tree, and of several trees."""
    alone = await measure(in_flight=1, searches=1)
    tree = await measure(in_flight=16, searches=1)
    trees = await measure(in_flight=16, searches=4)
    print(f"{tree / alone:.1f} and {trees / alone:.1f} times as many positions as one at a time")


if __name__ == "__main__":
    asyncio.run(main())
