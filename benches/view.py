"""The cost of watching a search: simulations per second with a page connected, relative to the same search alone.

Usage: python benches/view.py [--pairs N] [--simulations N] [--game NAME] [--algorithm NAME]

Both searches of a pair have the same seed and must grow equal trees; which one comes first alternates. The page is
another process, which reads every frame. Prints the median of the ratios and its confidence interval: the bar is 0.97.
The page and the server's other threads need CPUs of their own: on a busy machine, only the ratio by CPU time tells.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import json
import multiprocessing
import threading
import time
from concurrent.futures import Future
from typing import Any

import websockets
from paired import Ratio

from pondertree.cli import view as command
from pondertree.cli.position import read_position
from pondertree.view.app import create_app
from pondertree.view.live import build
from pondertree.view.server import listen, server_of
from pondertree.view.session import Session
from pondertree.view.setup import Setup, ViewSettings

TOKEN = "the-token-of-the-bench"
#: Of the clock, and of the CPU in the thread that searches.
Seconds = tuple[float, float]


def main() -> int:
    """Measures; 1 if watching costs more than the bar."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--simulations", type=int, default=1_000_000)
    parser.add_argument("--game", default="connect4")
    parser.add_argument("--algorithm", default="uct")
    arguments = parser.parse_args()
    ratios = []
    for pair in range(arguments.pairs):
        setup = setup_of(arguments.game, arguments.algorithm, arguments.simulations, seed=pair)
        if pair % 2:
            alone, positions = search_alone(setup)
            watched, seen, frames, largest = search_watched(setup)
        else:
            watched, seen, frames, largest = search_watched(setup)
            alone, positions = search_alone(setup)
        if seen != positions:
            raise SystemExit(f"the trees differ: {seen} positions watched, {positions} alone")
        ratios.append((alone[0] / watched[0], alone[1] / watched[1]))
        print(
            f"alone {alone[0]:.3f} s, watched {watched[0]:.3f} s, {frames} frames of up to {largest} bytes", flush=True
        )
    clock, thread = (Ratio.of(column) for column in zip(*ratios, strict=True))
    print(f"{positions:,} positions; speed watched / alone: {clock}; by CPU time of the searching thread: {thread}")
    return 0 if clock.passed else 1


def setup_of(game: str, algorithm: str, simulations: int, seed: int) -> Setup:
    """Returns a session's setup, as the command line makes it."""
    position = read_position(game, None, None)
    settings = ViewSettings(algorithm, {}, seed, simulations, None)
    return command.setup_of(position, None, command.algorithms(position, None), settings)


def search_alone(setup: Setup) -> tuple[Seconds, int]:
    """Returns the seconds of a search without a page, and the positions of its tree.

    Garbage is collected before each search: the tree of the last one would be freed during the next one.
    """
    gc.collect()
    tree = build(setup.algorithms, setup.settings).tree(setup.history[-1][1].state)
    before = clocks()
    tree.simulate(setup.settings.simulations)
    return since(before, clocks()), tree.result().num_positions


def search_watched(setup: Setup) -> tuple[Seconds, int, int, int]:
    """Returns the seconds of a search with a page, the positions of its tree, and the frames and the largest one."""
    context: Any = multiprocessing.get_context("spawn")
    frames = context.Array("q", 2)
    app = create_app(setup, TOKEN)
    session = app.state.hub.session
    with listen(None) as listening:
        server = server_of(app)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        page = context.Process(target=read_frames, args=(listening.getsockname()[1], frames), daemon=True)
        page.start()
        while frames[0] == 0:
            time.sleep(0.01)
        gc.collect()
        seconds = watch(session)
        time.sleep(0.5)
        positions = session.snapshot.head["status"]["nodes"]
        server.should_exit = True
        thread.join()
        page.terminate()
    return seconds, positions, *frames


def watch(session: Session) -> Seconds:
    """Returns the seconds of a session's search, until the page's last frame of it can be made.

    Both clocks are read in the searching thread, and nothing polls it meanwhile.
    """
    ended: Future[Seconds] = Future()
    published = session._changed

    def changed() -> None:
        if not session.is_running and not ended.done():
            ended.set_result(clocks())
        published()

    def start() -> Seconds:
        begun = clocks()
        session._changed = changed
        session.start()
        return begun

    begun = session.submit(start).result()
    return since(begun, ended.result())


def clocks() -> Seconds:
    """Returns the time, and the CPU time of this thread."""
    return time.perf_counter(), time.thread_time()


def since(before: Seconds, after: Seconds) -> Seconds:
    """Returns the seconds between two readings of the clocks."""
    return after[0] - before[0], after[1] - before[1]


def read_frames(port: int, frames: Any) -> None:
    """Counts the frames and the bytes of the largest one, until the connection ends."""

    async def read() -> None:
        address = f"ws://127.0.0.1:{port}/socket?token={TOKEN}"
        async with websockets.connect(address, max_size=None) as connection:
            async for text in connection:
                if json.loads(text)["type"] == "frame":
                    frames[0], frames[1] = frames[0] + 1, max(frames[1], len(text))

    with contextlib.suppress(websockets.ConnectionClosedError):
        asyncio.run(read())


if __name__ == "__main__":
    raise SystemExit(main())
