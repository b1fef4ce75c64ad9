"""The nodes of a search in a learned model, in the names of MuZero's specification."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pondertree.games.game_state import actions_among, refuse_end
from pondertree.reference.model import (
    LEAST_KEPT,
    Answer,
    ask_initial,
    ask_recurrent,
    checked_actions,
    kept_priors,
    number_of,
    row_of,
)
from pondertree.reference.node import PriorNode
from pondertree.reference.policy import priors_of
from pondertree.reference.search_loop import NOTHING, NoisySearch, Pending, Told, Tree, between


@dataclass(slots=True, eq=False)
class Node(PriorNode):
    """A hidden state, made with its prior when its parent is expanded; the model is asked when it is first visited.

    Nothing is ever proven here, and nothing ends.
    """

    prior: float
    value_sum: float = 0.0
    """Sum of the values for the player to move **at this node**, without the reward of the action that leads here."""
    visit_count: int = 0
    """N. An expanded node has one visit of its own and those of its children."""
    children: dict[int, Node] = field(default_factory=dict, repr=False)
    hidden_state: Any = field(default=None, repr=False)
    reward: float = 0.0
    """Of the action that leads here, for the player who chose it."""

    parent: Node | None = field(default=None, repr=False)
    action: int | None = None
    to_play: int = 0
    players: int = field(default=1, init=False)
    discount: float = field(default=1.0, init=False)
    """What the value of this node is multiplied by on its way up; not negative: the sign follows whose turn it is."""
    clean_prior: float = field(init=False)
    raw_value: float = field(default=0.0, init=False)
    returns: float = field(default=0.0, init=False)
    """W of the action that leads here: the sum of reward + discount * value, for the player who chose it."""
    listed: list[int] = field(default_factory=list, init=False, repr=False)
    action_space: int = field(default=0, init=False, repr=False)
    untold: float = field(default=0.0, init=False, repr=False)
    tried: bool = field(default=False, init=False, repr=False)
    position: Any = field(default=None, init=False, repr=False)
    """The state of a root that began with one."""
    in_flight: int = field(default=0, init=False)
    rewards: list[float] | None = field(default=None, init=False, repr=False)
    end: list[float] | None = field(default=None, init=False, repr=False)
    proven: int | None = field(default=None, init=False, repr=False)
    distance: int = field(default=0, init=False, repr=False)

    def __post_init__(self) -> None:
        self.clean_prior = self.prior

    def expanded(self) -> bool:
        """Whether the node has been expanded."""
        return len(self.children) > 0

    def value(self) -> float:
        """The mean value of the node, or 0 if unvisited."""
        return self.value_sum / self.visit_count if self.visit_count else 0.0

    @property
    def total_for_chooser(self) -> float:
        """The sum of values for the player who chose the action that leads here.

        Trap: the specification chooses by `child.value()`, so that the reward of an action never speaks for choosing
        it, and a good position of the opponent looks good. It must be reward + discount * value, with the sign of
        whose turn it is (Schrittwieser et al. 2020, appendix B, equations 3 and 4); here that is what is added up.
        """
        return self.returns

    @property
    def is_tried(self) -> bool:
        """Whether a descent ever came here."""
        return self.tried

    @property
    def num_actions(self) -> int:
        """The size of the action space."""
        return self.action_space

    @property
    def tail(self) -> float:
        """The priors, added up, of moves that got no child."""
        return self.untold

    def legal_actions(self) -> list[int]:
        """The actions of an expanded node in the order they were given, or in that of their numbers."""
        return list(self.listed)

    def expand(self, priors: dict[int, float], num_actions: int, tail: float = 0.0) -> None:
        """Creates a child for each action that has a prior here."""
        self.adopt({action: Node(prior) for action, prior in priors.items()}, list(priors))
        self.action_space, self.untold = num_actions, tail

    def _reach(self, child: Node) -> None:
        """The first visit of a child: from now on it stands among those tried."""
        child.tried = True

    def adopt(self, children: dict[int, Node], actions: Sequence[int]) -> None:
        """Takes over children made by others, as the specification's caller makes those of the root."""
        self.children, self.listed = children, list(actions)
        for action, child in children.items():
            child.parent, child.action, child.players = self, action, self.players

    def inherit(self, known: Node) -> None:
        """Takes over what is known below the same position in another tree, of the moves that are legal here."""
        kept = {action: child for action, child in known.children.items() if child.tried and action in self.children}
        for action, child in kept.items():
            child.prior = child.clean_prior = self.children[action].prior
        # Those that were tried first, in the order they were; then the others in the order given.
        self.adopt(kept | {action: child for action, child in self.children.items() if action not in kept}, self.listed)
        total, visits = self.sum_of_moves()
        self.visit_count, self.value_sum = 1 + visits, self.raw_value + total


class RootNode(Node):
    """The root. It may be made without anything; whoever searches from it evaluates and expands it first."""

    __slots__ = ()

    def __init__(self, prior: float = 1.0, hidden_state: Any = None, to_play: int = 0, *, position: Any = None) -> None:
        super().__init__(prior, hidden_state=hidden_state, to_play=to_play)
        self.position = position


class ModelSearch(NoisySearch[Node]):
    """A search that plans in a learned model, in which one player earns rewards, or two play against each other.

    Nothing is ever proven: what a model imagines is no fact.
    """

    solve = False

    def __init__(self, network: Any, discount: float, num_players: int) -> None:
        between(0.0, 1.0, discount=discount)
        if num_players not in (1, 2):
            raise ValueError(f"num_players must be 1 or 2, not {num_players}")
        self.network = network
        self.discount = discount
        self.num_players = num_players

    # --- The root -------------------------------------------------------------------------------------------

    def _plant(self, state: Any, told: Told = NOTHING) -> RootNode:
        """The node of a new root, evaluated and expanded."""
        root = RootNode(to_play=told.to_play or 0)
        root.players = self.num_players
        observation, legal_actions = told.observation, told.legal_actions
        if state is not None:
            refuse_end(state)
            if state.num_players > 2 or self.num_players not in (1, state.num_players):
                raise ValueError(f"num_players is {self.num_players}, but the game has {state.num_players}")
            root.position, root.players, root.to_play = state, state.num_players, state.to_play
            observation, legal_actions = state.observation(), state.legal_actions()
        if not 0 <= root.to_play < root.players:
            raise ValueError(f"to_play is {root.to_play}: it must be from 0 to {root.players - 1}")
        said = ask_initial(self.network, observation)
        if told.root_actions is not None:
            legal_actions = actions_among(checked_actions(legal_actions, len(said.logits)), told.root_actions)
        self._expand_root(root, said, legal_actions)
        return root

    def _follow(self, root: Node, action: int, told: Told = NOTHING) -> RootNode:
        """The root after `action`, with what was known below it."""
        known = root.children.get(action)
        if known is None:
            raise ValueError(f"action {action} is not legal; legal are {root.legal_actions()}")
        if root.position is not None:
            after = self._plant(root.position.play(action))
        elif told.observation is not None:
            # Whose turn it is nobody may have said: then the model's word counts, or players alternate.
            turn = known.to_play if known.visit_count else root.players - 1 - root.to_play
            turn = turn if told.to_play is None else told.to_play
            after = self._plant(None, Told(told.observation, told.legal_actions, turn))
        else:
            said = ask_recurrent(self.network, root.hidden_state, action)
            turn = known.to_play if known.visit_count else self._turn_after(root, said)
            after = RootNode(to_play=turn if told.to_play is None else told.to_play)
            after.players = root.players
            self._expand_root(after, said, told.legal_actions)
        if known.to_play == after.to_play:
            # Otherwise the model was wrong about whose turn it is, and all it imagined is seen from the wrong side.
            after.inherit(known)
        return after

    def _expand_root(self, root: Node, said: Answer, legal_actions: Sequence[int] | None) -> None:
        """Expands the root with its legal actions, and takes what the model said of it for its first visit.

        Trap: in the specification nobody expands the root inside of `run`, and a search from a fresh one ends in an
        IndexError; one that the caller has expanded has no visit, and while sqrt(N) is 0 the priors do not matter.
        """
        if root.expanded():
            checked_actions(legal_actions, len(said.logits))
            root.adopt(root.children, list(root.children))
            root.action_space = len(said.logits)
        else:
            self._expand_node(root, said.logits, legal_actions)
        root.hidden_state = said.hidden_state if root.hidden_state is None else root.hidden_state
        root.raw_value = root.value_sum = said.value
        root.visit_count = 1

    def _evaluate(self, tree: Tree[Node], pending: Sequence[Pending[Node]], target: int) -> list[list[float]]:
        """Expansion and evaluation: the model is asked where the last action of each path leads.

        Trap: the specification expands latent nodes with the legal actions of the root, which one move later are those
        of the wrong player. A model knows no rules, so nothing is masked below the root; it learns what is not worth
        imagining.
        """
        said = [self._imagine(waiting.leaf) for waiting in pending]
        for place, (waiting, about) in enumerate(zip(pending, said, strict=True)):
            most = max(LEAST_KEPT, target - (tree.simulations + place + 1))
            self._expand_leaf(waiting.leaf, about, most)
        return [[about.value] for about in said]

    def _imagine(self, leaf: Node) -> Answer:
        """What the model says of a new leaf."""
        parent, action = leaf.parent, leaf.action
        assert parent is not None, "a leaf is not the root"
        assert action is not None, "a leaf is not the root"
        said = ask_recurrent(self.network, parent.hidden_state, action)
        if len(said.logits) != parent.num_actions:
            raise ValueError(f"policy_logits has {len(said.logits)} numbers: there are {parent.num_actions} actions")
        return said

    def _expand_node(self, node: Node, policy: Any, legal_actions: Sequence[int] | None) -> None:
        """Expands a node with a child for each legal action; the priors are the softmax of their logits.

        This is how a root is expanded. A node below one is expanded with what the model alone says of it; where a
        caller does it by hand, as the specification's loop does, two players alternate and the discount is the
        search's.
        """
        logits = row_of(policy)
        node.expand(priors_of(checked_actions(legal_actions, len(logits)), logits), len(logits))
        if node.parent is not None:
            node.discount, node.players = self.discount, node.parent.players
            node.to_play = node.players - 1 - node.parent.to_play

    def _expand_leaf(self, leaf: Node, said: Answer, most: int) -> None:
        """Everything about a new leaf, and a child for each action of which `most` can come to be tried."""
        assert leaf.parent is not None, "a leaf is not the root"
        leaf.hidden_state, leaf.reward, leaf.raw_value = said.hidden_state, said.reward, said.value
        leaf.discount = self.discount if said.discount is None else abs(said.discount)
        leaf.to_play = self._turn_after(leaf.parent, said)
        priors, tail = kept_priors(said.logits, most)
        leaf.expand(priors, len(said.logits), tail)

    def _turn_after(self, node: Node, said: Answer) -> int:
        """Who moves after an action: two players take turns, unless the model says by the sign of its discount."""
        if said.discount is not None and said.discount >= 0.0:
            return node.to_play
        if said.discount is not None and node.players == 1:
            raise ValueError(f"discount is {said.discount}: a negative one changes the player, and num_players is 1")
        return node.players - 1 - node.to_play

    def _backpropagate(self, leaf: Node, values: Sequence[float]) -> None:
        """Backs a value up from a leaf to the root."""
        (value,) = values
        search_path: list[Node] = [leaf]
        while search_path[-1].parent is not None:
            search_path.append(search_path[-1].parent)
        self._backup(search_path[::-1], value)

    def _backup(self, search_path: Sequence[Node], value: Any) -> None:
        """Backup: at each node of a path, from its end to the root, N += 1 and the sum += the value for the player to
        move there. `value` is that of the last node.

        Trap: the order is the specification's, first the sum and then the reward; the player is not: what is good for
        one is bad for the other.
        """
        value = number_of(value, "value")
        for place in reversed(range(len(search_path))):
            node = search_path[place]
            node.value_sum += value
            node.visit_count += 1
            if place > 0:
                chooser = search_path[place - 1].to_play
                value = number_of(node.reward, "reward") + node.discount * (
                    value if node.to_play == chooser else -value
                )
                node.returns += value
