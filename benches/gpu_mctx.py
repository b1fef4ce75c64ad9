"""mctx with pgx on a GPU: one line of JSON for each case selected on the command line. `gpu.py` starts it."""

from __future__ import annotations

import argparse
import functools
import json
import time
from typing import Any

import jax
import jax.numpy as jnp
import mctx
import pgx
from gpu_cases import GAMES, GameCase, LatentCase, cases

#: A search that takes longer, in seconds, is timed once, without warm-up and at one batch size only.
LONG = 5.0
ROUNDS = 3
#: Random moves before a root, as in `gpu_ours.py`.
MIN_MOVES, MAX_MOVES = 2, 12
#: Roots are created in chunks of this size, of which every measured number of trees is a multiple.
PIECE = 256


def seconds_of(function: Any, *arguments: Any) -> tuple[float, int]:
    """Returns (median seconds, number of calls) after a warm-up; long calls are timed once."""
    compiled = function.lower(*arguments).compile()
    walls: list[float] = []
    while len(walls) < 1 + ROUNDS:
        begun = time.perf_counter()
        jax.block_until_ready(compiled(*arguments))
        walls.append(time.perf_counter() - begun)
        if walls[0] > LONG:
            return walls[0], 1
    return sorted(walls[1:])[ROUNDS // 2], ROUNDS


def bare_seconds(function: Any, *arguments: Any) -> float:
    """Seconds of one call on the device, averaged over many in one program, like our captured graphs.

    The last argument of each call depends on the previous output, so that none is eliminated.
    """
    calls = 3 if jax.default_backend() == "cpu" else 100

    @jax.jit
    def many(*arguments: Any) -> Any:
        *others, last = arguments

        def once(_: Any, output: Any) -> Any:
            one = jax.tree_util.tree_leaves(output)[0].ravel()[0]
            return function(*others, jnp.where(one == jnp.inf, jnp.zeros_like(last), last))

        first = jax.tree_util.tree_map(
            lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(function, *arguments)
        )
        return jax.lax.fori_loop(0, calls, once, first)

    jax.block_until_ready(many(*arguments))
    begun = time.perf_counter()
    jax.block_until_ready(many(*arguments))
    return (time.perf_counter() - begun) / calls


@functools.cache
def opener(game: str) -> tuple[Any, Any]:
    """Returns the game and a function from keys to positions after 2 to 12 random moves, none of them terminal."""
    env = pgx.make(game)

    def opening(key: Any) -> Any:
        start, count, *moves = jax.random.split(key, 2 + MAX_MOVES)
        wanted = jax.random.randint(count, (), MIN_MOVES, MAX_MOVES + 1)

        def move(state: Any, drawn: tuple[Any, Any]) -> tuple[Any, None]:
            ply, key = drawn
            action = jax.random.categorical(key, jnp.where(state.legal_action_mask, 0.0, -jnp.inf))
            after = env.step(state, action)
            made = (ply < wanted) & ~after.terminated
            return jax.tree.map(lambda new, old: jnp.where(made, new, old), after, state), None

        return jax.lax.scan(move, env.init(start), (jnp.arange(MAX_MOVES), jnp.stack(moves)))[0]

    return env, jax.jit(jax.vmap(opening))


def openings(game: str, trees: int) -> tuple[Any, Any]:
    """Returns the game and its states, created in chunks of one size, so that one compilation suffices."""
    env, opened = opener(game)
    keys = jax.random.split(jax.random.PRNGKey(0), trees).reshape(-1, min(trees, PIECE), 2)
    return env, jax.tree.map(lambda *parts: jnp.concatenate(parts), *map(opened, keys))


def residual_weights(key: Any, game: Any, planes: int) -> dict[str, Any]:
    """Weights with the shapes of `gpu_networks.Residual`, except for pgx's number of planes."""
    keys = iter(jax.random.split(key, 4 + 2 * game.blocks))

    def draw(*shape: int) -> Any:
        fan_in = 1
        for size in shape[:-1]:
            fan_in *= size
        return (jax.random.normal(next(keys), shape) / fan_in**0.5).astype(jnp.bfloat16)

    channels = game.channels
    return {
        "stem": draw(3, 3, planes, channels),
        "blocks": [(draw(3, 3, channels, channels), draw(3, 3, channels, channels)) for _ in range(game.blocks)],
        "policy": draw(1, 1, channels, 32),
        "moves": draw(32 * game.board[0] * game.board[1], game.actions),
        "value": draw(channels, 1),
    }


def convolve(numbers: Any, weights: Any) -> Any:
    """A convolution with SAME padding."""
    layout = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(numbers, weights, (1, 1), "SAME", dimension_numbers=layout)


def residual(weights: dict[str, Any], observations: Any) -> tuple[Any, Any]:
    """(logits, values)."""
    trunk = jax.nn.relu(convolve(observations.astype(jnp.bfloat16), weights["stem"]))
    for first, second in weights["blocks"]:
        trunk = jax.nn.relu(trunk + convolve(jax.nn.relu(convolve(trunk, first)), second))
    planes = jax.nn.relu(convolve(trunk, weights["policy"])).reshape(trunk.shape[0], -1)
    value = jnp.tanh((trunk.mean((1, 2)) @ weights["value"])[:, 0].astype(jnp.float32))
    return (planes @ weights["moves"]).astype(jnp.float32), value


def game_case(case: GameCase, trees: int) -> dict[str, Any]:
    """Simulations per second, and positions per second of the bare network, for a number of trees."""
    game = GAMES[case.game]
    env, state = openings(game.pgx, trees)
    weights = residual_weights(jax.random.PRNGKey(1), game, state.observation.shape[-1])
    step = jax.vmap(env.step)

    def recurrent(weights: Any, _: Any, action: Any, state: Any) -> Any:
        mover = state.current_player
        state = step(state, action)
        logits, value = residual(weights, state.observation)
        logits = jnp.where(state.legal_action_mask, logits, jnp.finfo(logits.dtype).min)
        over = state.terminated
        answer = mctx.RecurrentFnOutput(
            reward=state.rewards[jnp.arange(trees), mover],
            discount=jnp.where(over, 0.0, -1.0),
            prior_logits=logits,
            value=jnp.where(over, 0.0, value),
        )
        return answer, state

    @jax.jit
    def search(weights: Any, key: Any, state: Any) -> Any:
        logits, value = residual(weights, state.observation)
        settings = {
            "params": weights,
            "rng_key": key,
            "root": mctx.RootFnOutput(prior_logits=logits, value=value, embedding=state),
            "recurrent_fn": recurrent,
            "num_simulations": case.simulations,
            "invalid_actions": ~state.legal_action_mask,
        }
        if case.search == "gumbel":
            return mctx.gumbel_muzero_policy(**settings).action
        return mctx.muzero_policy(dirichlet_fraction=0.25, dirichlet_alpha=0.3, **settings).action

    bare = bare_seconds(residual, weights, state.observation)
    wall, rounds = seconds_of(search, weights, jax.random.PRNGKey(2), state)
    return {"rate": trees * case.simulations / wall, "bare": trees / bare, "rounds": rounds}


def latent_case(case: LatentCase, trees: int) -> dict[str, Any]:
    """Milliseconds of a search in a learned model, and of as many steps of the bare model."""
    keys = jax.random.split(jax.random.PRNGKey(0), 4)
    width, actions = case.width, case.actions

    def draw(key: Any, rows: int, columns: int) -> Any:
        return (jax.random.normal(key, (rows, columns)) / rows**0.5).astype(jnp.bfloat16)

    weights = (draw(keys[0], width + actions, width), draw(keys[1], width, width), draw(keys[2], width, actions + 2))

    def say(weights: Any, hidden: Any) -> tuple[Any, Any, Any]:
        output = (hidden @ weights[2]).astype(jnp.float32)
        return output[:, :actions], jnp.tanh(output[:, -2]), output[:, -1] * 0.1

    def recurrent(weights: Any, _: Any, action: Any, hidden: Any) -> Any:
        seen = jnp.concatenate([hidden, jax.nn.one_hot(action, actions, dtype=hidden.dtype)], -1)
        hidden = jnp.tanh(jax.nn.relu(seen @ weights[0]) @ weights[1])
        logits, value, reward = say(weights, hidden)
        discount = jnp.full_like(reward, 0.997)
        return mctx.RecurrentFnOutput(reward=reward, discount=discount, prior_logits=logits, value=value), hidden

    policy = mctx.gumbel_muzero_policy if case.search == "gumbel" else mctx.muzero_policy

    @jax.jit
    def search(weights: Any, key: Any, hidden: Any) -> Any:
        logits, value, _ = say(weights, hidden)
        root = mctx.RootFnOutput(prior_logits=logits, value=value, embedding=hidden)
        return policy(weights, key, root, recurrent, num_simulations=case.simulations).action

    hidden = jax.random.normal(keys[3], (trees, width)).astype(jnp.bfloat16)
    wall, rounds = seconds_of(search, weights, jax.random.PRNGKey(1), hidden)
    chosen = jnp.arange(trees) % actions
    step = bare_seconds(lambda *given: recurrent(given[0], None, *given[1:]), weights, chosen, hidden)
    return {
        "milliseconds": 1e3 * wall,
        "rate": trees * case.simulations / wall,
        "bare_milliseconds": 1e3 * step * case.simulations,
        "rounds": rounds,
    }


def main() -> None:
    """Runs the selected cases, models first: games at one and at two batches of trees, models at one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--small", action="store_true")
    given = parser.parse_args()
    versions = {"jax": jax.__version__, "mctx": mctx.__version__, "pgx": pgx.__version__}
    size = {"small": True} if given.small else {}
    print(json.dumps({**versions, "device": str(jax.devices()[0]), **size}), flush=True)
    chosen = {name: case for name, case in cases(given.words, small=given.small).items() if case.times_mctx is not None}
    for name, case in sorted(chosen.items(), key=lambda pair: isinstance(pair[1], GameCase)):
        sizes = (case.batch, 2 * case.batch) if isinstance(case, GameCase) else (case.batch,)
        for trees in sizes:
            found = game_case(case, trees) if isinstance(case, GameCase) else latent_case(case, trees)
            print(json.dumps({"case": name, "trees": trees, **found}), flush=True)
            if trees * case.simulations / found["rate"] > LONG:
                break


if __name__ == "__main__":
    main()
