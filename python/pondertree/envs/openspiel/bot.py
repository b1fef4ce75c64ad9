"""Searches as bots of OpenSpiel. Importing this module imports `pyspiel`."""

from __future__ import annotations

from typing import Any

from pondertree import validation
from pondertree.envs.openspiel.compiled import Translation, compiled_state, translation_of
from pondertree.envs.openspiel.load import openspiel
from pondertree.envs.openspiel.states import from_openspiel
from pondertree.errors import GameOverError, InvalidActionError, InvalidArgumentError
from pondertree.validation import shown

_Bot: Any = openspiel().Bot


def as_openspiel_bot(
    search: Any, player: int, *, temperature: float = 0.0, compiled: bool = True, scale: float | None = None
) -> OpenSpielBot:
    """Returns a `pyspiel.Bot` that plays the moves of a search for one player.

    The limits of the search hold for each move. The tree is kept from move to move: states that continue the last one
    advance it, any other starts a new one. `temperature` is that of `SearchResult.policy_at`, from which the move is
    drawn; 0 plays the best move. `compiled` and `scale` are those of `from_openspiel`: games that are compiled here are
    searched in the engine.
    """
    if not callable(getattr(search, "tree", None)):
        raise InvalidArgumentError(f"search must be a search such as pondertree.UCT(1000), not {shown(search)}")
    return OpenSpielBot(
        search,
        validation.whole_number(player, "player", most=254),
        validation.number(temperature, "temperature", least=0.0),
        validation.flag(compiled, "compiled"),
        None if scale is None else validation.positive_number(scale, "scale"),
    )


class OpenSpielBot(_Bot):
    """A bot of OpenSpiel that plays the moves of a search; made by `as_openspiel_bot`."""

    def __init__(self, search: Any, player: int, temperature: float, compiled: bool, scale: float | None) -> None:
        super().__init__()
        self._search = search
        self._player = player
        self._temperature = temperature
        self._compiled = compiled and scale is None
        self._scale = scale
        self._position: _Position | None = None

    @property
    def tree(self) -> Any:
        """The tree of the last search, advanced by the actions known since; None if there is none."""
        return None if self._position is None else self._position.tree

    def restart(self) -> None:
        """Drops the tree."""
        self._position = None

    def restart_at(self, state: Any) -> None:
        """Drops the tree: the next search starts at the state that it is given."""
        self._position = None

    def inform_action(self, state: Any, player: int, action: int) -> None:
        """Advances the tree by an action of another player, or an outcome of chance, in `state`."""
        if self._position is not None:
            self._follow(state)
        if self._position is not None:
            self._advance(action)

    def step(self, state: Any) -> int:
        """Returns the action to play in `state`."""
        return self._search_at(state)[1]

    def step_with_policy(self, state: Any) -> tuple[list[tuple[int, float]], int]:
        """Returns the probability of each legal action, and the action to play, drawn by them."""
        return self._search_at(state)

    def provides_policy(self) -> bool:
        """Whether `get_policy` is defined: it is."""
        return True

    def get_policy(self, state: Any) -> list[tuple[int, float]]:
        """Returns the probabilities of `step_with_policy`."""
        return self._search_at(state)[0]

    def provides_force_action(self) -> bool:
        """Whether `force_action` is defined: it is."""
        return True

    def force_action(self, state: Any, action: int) -> None:
        """Advances the tree by an action of this player that the bot has not chosen."""
        self.inform_action(state, self._player, action)

    def _search_at(self, state: Any) -> tuple[list[tuple[int, float]], int]:
        game = state.get_game()
        if state.current_player() != self._player:
            whose = "the game is over" if state.is_terminal() else f"player {state.current_player()} is to move"
            raise InvalidArgumentError(f"{game}: step() of the bot of player {self._player}, but {whose}")
        legal = state.legal_actions()
        if len(legal) == 1:
            return [(legal[0], 1.0)], legal[0]
        self._follow(state)
        actions = None if self._position is None else self._position.actions()
        if self._position is None or actions is None:
            self._position = _Position(self._search, state, self._compiled, self._scale)
            actions = self._position.actions()
        assert actions is not None, "a new position has been compared"
        shares, action = self._position.search(actions, self._temperature)
        return [(each, shares.get(each, 0.0)) for each in legal], action

    def _follow(self, state: Any) -> None:
        """Advances the tree to `state`; drops it if `state` does not continue its position."""
        position = self._position
        if position is None:
            return
        known, now = position.history, state.history()
        if now[: len(known)] != known or str(state.get_game()) != str(position.spiel.get_game()):
            self._position = None
            return
        for action in now[len(known) :]:
            self._advance(action)
            if self._position is None:
                return
        # The same actions lead to other boards from other starts.
        if str(position.spiel) != str(state):
            self._position = None

    def _advance(self, action: int) -> None:
        if self._position is not None and not self._position.advance(action):
            self._position = None


class _Position:
    """A tree, and the state of OpenSpiel at its root."""

    def __init__(self, search: Any, state: Any, compiled: bool, scale: float | None) -> None:
        ours = compiled_state(state) if compiled else None
        self.spiel = state.clone()
        self.history: list[int] = state.history()
        self.translation: Translation | None = None if ours is None else translation_of(state)
        self._is_new_root = True
        self.tree = search.tree(from_openspiel(state, compiled=False, scale=scale) if ours is None else ours)

    def advance(self, action: int) -> bool:
        """Advances by an action of OpenSpiel; returns False, unusable from then on, where the tree cannot follow."""
        try:
            ours = action
            if self.translation is not None:
                ours = self.translation.action(self.spiel, self.tree.state, action)
            self.tree.advance(ours)
        except (GameOverError, InvalidActionError):
            return False
        self.spiel.apply_action(action)
        self.history.append(action)
        self._is_new_root = True
        return self.translation is None or self.translation.applies(self.spiel)

    def actions(self) -> dict[int, int] | None:
        """Returns the actions of the tree by OpenSpiel's legal ones; None if the compiled game has others."""
        if self.translation is None:
            return {action: action for action in self.spiel.legal_actions()}
        return self.translation.actions(self.spiel, self.tree.state)

    def search(self, actions: dict[int, int], temperature: float) -> tuple[dict[int, float], int]:
        """Searches; returns the probabilities of OpenSpiel's actions, without those of 0, and the one to play."""
        theirs: dict[int, int] = {}
        for action, ours in actions.items():
            theirs.setdefault(ours, action)  # several may be the same here
        if self._is_new_root and len(theirs) < len(self.tree.state.legal_actions()):
            self.tree.restrict(list(theirs))
        self._is_new_root = False
        result = self.tree.simulate().result(temperature=temperature)
        chosen = theirs[result.action]
        if temperature == 0.0:
            return {chosen: 1.0}, chosen
        shares = result.policy_at(temperature)
        return {action: float(shares[ours]) for ours, action in theirs.items()}, chosen
