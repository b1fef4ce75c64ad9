"""The worker process of mctx, on the CPU with one thread; runs in its own environment."""

from __future__ import annotations

import itertools
import os
from importlib.metadata import version
from typing import Any

# Read when JAX is imported. JAX still starts threads, so the process is pinned to one core.
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

import jax
import jax.numpy as jnp
import mctx
from uneven import HIDDEN
from worker import Work, serve


def sines(actions: int) -> Any:
    """The model `Sines` (see uneven.py) with two alternating players."""
    factors = 1.3 * jnp.arange(1, actions + 1, dtype=jnp.float32)

    def recurrent(params: Any, key: Any, chosen: Any, hidden: Any) -> Any:
        angle = (hidden[:, 0] * 1.7 + chosen * 0.37 + 0.11) % (2 * jnp.pi)
        said = mctx.RecurrentFnOutput(
            reward=jnp.zeros_like(angle),
            discount=-jnp.ones_like(angle),
            prior_logits=2 * jnp.sin(jnp.outer(angle, factors)),
            value=jnp.sin(7 * angle),
        )
        return said, hidden.at[:, 0].set(angle)

    return recurrent


def compiled(algorithm: str, actions: int, sims: int, batch: int) -> tuple[Any, Any]:
    """Returns a search, as a function of a random key and a root, and the root; the tree is not copied out."""
    recurrent = sines(actions)
    root = mctx.RootFnOutput(
        prior_logits=jnp.zeros((batch, actions)), value=jnp.zeros(batch), embedding=jnp.zeros((batch, HIDDEN))
    )

    def search(key: Any, root: Any) -> Any:
        if algorithm == "muzero":
            found = mctx.muzero_policy((), key, root, recurrent, sims)
        else:
            found = mctx.gumbel_muzero_policy(
                (), key, root, recurrent, sims, max_num_considered_actions=min(16, actions)
            )
        return found.action, found.action_weights

    return jax.jit(search).lower(jax.random.PRNGKey(0), root).compile(), root


def latent_search(algorithm: str, actions: int, sims: int, batch: int) -> Work:
    """Measures a complete search, including actions and weights."""
    search, root = compiled(algorithm, actions, sims, batch)
    keys = itertools.cycle([jax.random.PRNGKey(number) for number in range(16)])

    def work() -> int:
        jax.block_until_ready(search(next(keys), root))
        return sims * batch

    return work


def latent_memory(actions: int, sims: int, batch: int) -> dict[str, Any]:
    """Returns the memory of a search by the compiler's analysis; running it would take minutes."""
    search, _ = compiled("muzero", actions, sims, batch)
    counted = search.memory_analysis()
    return {"peak": counted.temp_size_in_bytes + counted.output_size_in_bytes}


def environment() -> dict[str, Any]:
    """Returns the versions."""
    return {"packages": {name: version(name) for name in ("mctx", "jax")}}


if __name__ == "__main__":
    serve(
        rates={"latent_search": latent_search},
        handlers={"latent_memory": latent_memory, "environment": environment},
    )
