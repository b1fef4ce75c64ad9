"""Sample games as HTML: boards, moves and results, readable without scripts; a script steps through positions."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from pondertree.game import CHANCE, move_text, state_text
from pondertree.games import Chess, player_names
from pondertree.games.board_svg import board_svg, piece_colours
from pondertree.learn.report.samples import Sample

#: Limits per game: positions drawn, actions listed, characters of a text board.
MAX_POSITIONS, MAX_ACTIONS, MAX_TEXT = 400, 2000, 4000

STYLE = """\
.game { margin: 1.5rem 0 2.5rem; } .game h3 { margin-bottom: 0.2rem; } .game p { margin: 0.3rem 0; }
.positions { display: grid; grid-template-columns: repeat(auto-fill, minmax(9.5rem, 1fr)); gap: 0.8rem; }
.position { margin: 0; } .position svg { width: 100%; height: auto; } .position pre { margin: 0; line-height: 1.25; }
.position figcaption { font-size: 0.85rem; color: #555; min-height: 1.5em; }
.stepped .positions { display: block; max-width: 24rem; } .stepped .position { display: none; }
.stepped .position.shown { display: block; } .stepped .position figcaption { font-size: 1rem; }
.steps { display: flex; gap: 0.3rem; align-items: center; max-width: 24rem; margin: 0.4rem 0; }
.steps button { font: inherit; min-width: 2.4rem; } .steps input { flex: 1; }
.moves { line-height: 1.7; } .moves b { font-weight: inherit; color: #888; }
.stepped .moves span { cursor: pointer; padding: 0 0.15rem; border-radius: 3px; }
.moves .opening { color: #888; font-style: italic; } .stepped .moves .now { background: #f3dd9f; color: #222; }
@media (min-width: 52rem) {
  .stepped { display: grid; grid-template-columns: 24rem 1fr; column-gap: 2rem; grid-auto-rows: min-content; }
  .stepped > * { grid-column: 1; } .stepped > h3, .stepped > .players { grid-column: 1 / -1; }
  .stepped > .moves { grid-column: 2; grid-row: 3 / span 3; }
}
"""

SCRIPT = """\
for (const game of document.querySelectorAll(".game")) {
  const positions = [...game.querySelectorAll(".position")];
  if (positions.length < 2) continue;
  const moves = [...game.querySelectorAll(".moves span")];
  const bar = document.createElement("div");
  const slider = Object.assign(document.createElement("input"), { type: "range", min: 0, max: positions.length - 1 });
  slider.setAttribute("aria-label", "position");
  const show = (place) => {
    slider.value = Math.min(Math.max(place, 0), positions.length - 1);
    positions.forEach((one, number) => one.classList.toggle("shown", number == slider.value));
    moves.forEach((one, number) => one.classList.toggle("now", number == slider.value - 1));
  };
  const button = (text, label, place) => {
    const made = Object.assign(document.createElement("button"), { type: "button", textContent: text });
    made.setAttribute("aria-label", label);
    made.addEventListener("click", () => show(place()));
    return made;
  };
  bar.className = "steps";
  bar.append(
    button("\\u00ab", "first position", () => 0),
    button("\\u2039", "previous position", () => slider.value - 1),
    slider,
    button("\\u203a", "next position", () => Number(slider.value) + 1),
    button("\\u00bb", "last position", () => positions.length - 1),
  );
  slider.addEventListener("input", () => show(Number(slider.value)));
  moves.forEach((one, number) => one.addEventListener("click", () => show(number + 1)));
  game.querySelector(".positions").after(bar);
  game.classList.add("stepped");
  show(positions.length - 1);
}
"""


class Position(NamedTuple):
    """A position and the move that led to it."""

    state: Any
    player: int | None
    """The player who moved, `CHANCE` after an outcome; None at the start."""
    move: str
    """The move as displayed; empty at the start."""
    mark: str
    """The move in the notation of `board_svg`."""


def samples_html(samples: Sequence[Sample], factory: Callable[[], Any] | None) -> str:
    """Returns the sample games as an HTML fragment; `factory` gives the starting states for replaying them."""
    if not samples:
        return ""
    shown = "".join(_game(sample, factory) for sample in samples)
    title = "Sample episodes" if samples[0].rewards else "Sample games"
    return f"<h2>{title}</h2>{shown}<script>\n{SCRIPT}</script>"


def replay(sample: Sample, factory: Callable[[], Any] | None) -> list[Position]:
    """Replays a game; empty if the game is unknown or a move is illegal."""
    if factory is None:
        return []
    try:
        state = factory()
        positions = [Position(state, None, "", "")]
        for action in (*sample.opening, *sample.moves)[: MAX_POSITIONS - 1]:
            mark = move_text(state, action)
            text = state.san(action) if isinstance(state, Chess) else mark
            player = int(state.to_play)
            state = state.play(action)
            positions.append(Position(state, player, text, mark))
    except Exception:  # from a user's game, or a corrupt file: the report is written without boards
        return []
    return positions


def _game(sample: Sample, factory: Callable[[], Any] | None) -> str:
    names = player_names(factory, len(sample.players))
    colours = piece_colours(factory)
    labels = names if colours is None else [", ".join(pair) for pair in zip(names, colours, strict=True)]
    sides = " against ".join(
        f"{html.escape(player)} ({html.escape(name)})" if len(names) > 1 else html.escape(player)
        for player, name in zip(sample.players, labels, strict=True)
    )
    positions = replay(sample, factory)
    count = len(sample.opening) + len(sample.moves)
    by_chance = sum(position.player == CHANCE for position in positions)
    facts = [_result(sample, names), f"{count:,} moves and outcomes" if by_chance else f"{count:,} moves"]
    if sample.opening:
        few = "first" if len(sample.opening) == 1 else f"first {len(sample.opening)}"
        facts.append(f"the {few} random")
    if 0 < len(positions) <= count:
        facts.append(f"the first {len(positions) - 1} are shown")
    figures = "".join(_figure(sample, positions, place, names) for place in range(len(positions)))
    return (
        f'<section class="game"><h3>{html.escape(sample.title)}</h3>'
        f'<p class="players">{sides}: {html.escape(", ".join(facts))}.</p>'
        + (f'<div class="positions">{figures}</div>' if figures else "")
        + f'<p class="moves">{_moves(sample, positions)}</p>{_value_chart_svg(sample)}</section>'
    )


def _result(sample: Sample, names: tuple[str, ...]) -> str:
    if sample.rewards or len(sample.returns) == 1:
        result = f"return {sample.returns[0]:g}"
    elif sample.returns[0] == sample.returns[1]:
        result = "a draw"
    else:
        result = f"{names[0 if sample.returns[0] > sample.returns[1] else 1]} wins"
    return f"{result} ({sample.ending})" if sample.ending else result


def _figure(sample: Sample, positions: list[Position], place: int, names: tuple[str, ...]) -> str:
    position = positions[place]
    picture = board_svg(position.state, position.mark)
    if picture is None:
        kind: Any = type(position.state)
        if kind.__str__ is object.__str__ and kind.__repr__ is object.__repr__:
            return ""
        try:
            text = state_text(position.state)
        except Exception:  # from a user's game
            return ""
        picture = f"<pre>{html.escape(text[:MAX_TEXT])}</pre>"
    caption = "the start" if place == 0 else f"{place}. {position.move}"
    if position.player == CHANCE:
        return f'<figure class="position">{picture}<figcaption>{html.escape(caption)} by chance</figcaption></figure>'
    if position.player is not None and len(names) > 1:
        caption += f" by {names[position.player]}"
    searched = sum(one.player != CHANCE for one in positions[len(sample.opening) + 1 : place + 1]) - 1
    if 0 <= searched < len(sample.values):
        caption += f", value {sample.values[searched] + 0.0:+.2f}"
    if 0 <= searched < len(sample.rewards):
        caption += f", reward {sample.rewards[searched]:g}"
    return f'<figure class="position">{picture}<figcaption>{html.escape(caption)}</figcaption></figure>'


def _moves(sample: Sample, positions: list[Position]) -> str:
    """Returns the list of moves; action numbers where the game cannot be replayed."""
    texts = [position.move for position in positions[1:]]
    actions = [*sample.opening, *sample.moves]
    texts += [str(action) for action in actions[len(texts) : MAX_ACTIONS]]
    chess = bool(positions) and isinstance(positions[0].state, Chess)
    parts = []
    for place, text in enumerate(texts):
        numbered = "" if not chess or place % 2 else f"<b>{place // 2 + 1}.</b> "
        opening = ' class="opening"' if place < len(sample.opening) else ""
        parts.append(f"{numbered}<span{opening}>{html.escape(text)}</span>")
    more = f" and {len(actions) - len(texts):,} more" if len(actions) > len(texts) else ""
    label = "" if positions else "Actions: "
    return label + " ".join(parts) + more


def _value_chart_svg(sample: Sample) -> str:
    """Returns a chart of accumulated rewards and root values of an episode."""
    if len(sample.rewards) < 2:
        return ""
    totals = [0.0]
    for reward in sample.rewards:
        totals.append(totals[-1] + reward)
    lines = []
    for numbers, colour, label in ((totals[1:], "#2b5c9e", "rewards so far"), (sample.values, "#b3372b", "value")):
        low, high = min(numbers), max(numbers)
        points = " ".join(
            f"{600.0 * place / (len(numbers) - 1):.1f},{95.0 - 90.0 * (number - low) / ((high - low) or 1.0):.1f}"
            for place, number in enumerate(numbers)
        )
        lines.append((f'<polyline points="{points}" fill="none" stroke="{colour}"/>', colour, label, low, high))
    legend = ", ".join(
        f'<span style="color:{colour}">{label} from {low:.4g} to {high:.4g}</span>'
        for _, colour, label, low, high in lines
    )
    drawn = "".join(line[0] for line in lines)
    return (
        '<figure><svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 600 100" width="600" height="100" role="img" '
        f'aria-label="rewards and values by step">{drawn}</svg><figcaption>{legend}</figcaption></figure>'
    )
