"""Search in the latent space of a learned model: nodes, root, evaluation and backup (MuZero specification)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pondertree import validation
from pondertree.games.game_state import actions_among, refuse_end
from pondertree.reference.model import (
    MIN_TOP_K,
    ModelOutput,
    checked_actions,
    initial_inference,
    number_of,
    recurrent_inference,
    row_of,
    top_k_priors,
)
from pondertree.reference.node import PriorNode
from pondertree.reference.priors import priors_of
from pondertree.reference.search_loop import NO_INPUT, NoisySearch, PendingLeaf, RootInput, Tree
from pondertree.trace import EdgeTerms


@dataclass(slots=True, eq=False)
class Node(PriorNode):
    """A hidden state. It is created with its prior when the parent is expanded; inference runs on the first visit.

    Latent nodes are never terminal and never proven.
    """

    prior: float
    value_sum: float = 0.0
    """The sum of values for the player to move **at this node**, without the reward of the action leading here."""
    visit_count: int = 0
    """N: one for the node's own evaluation, plus the visits of its children."""
    children: dict[int, Node] = field(default_factory=dict, repr=False)
    hidden_state: Any = field(default=None, repr=False)
    reward: float = 0.0
    """Of the action leading here, for the player who chose it."""

    parent: Node | None = field(default=None, repr=False)
    action: int | None = None
    to_play: int = 0
    players: int = field(default=1, init=False)
    discount: float = field(default=1.0, init=False)
    """The discount of this node's value in backup; not negative: the sign depends on the players to move."""
    clean_prior: float = field(init=False)
    raw_value: float = field(default=0.0, init=False)
    returns: float = field(default=0.0, init=False)
    """W of the action leading here: the sum of reward + discount * value, for the player who chose it."""
    actions: list[int] = field(default_factory=list, init=False, repr=False)
    """The legal actions in the given order."""
    num_actions: int = field(default=0, init=False, repr=False)
    tail_prior: float = field(default=0.0, init=False, repr=False)
    is_visited: bool = field(default=False, init=False, repr=False)
    position: Any = field(default=None, init=False, repr=False)
    """The game state of a root that was created from one."""
    in_flight: int = field(default=0, init=False)
    rewards: list[float] | None = field(default=None, init=False, repr=False)
    end: list[float] | None = field(default=None, init=False, repr=False)
    proven: int | None = field(default=None, init=False, repr=False)
    distance: int = field(default=0, init=False, repr=False)

    def __post_init__(self) -> None:
        self.clean_prior = self.prior

    def expanded(self) -> bool:
        """Returns whether the node has been expanded."""
        return len(self.children) > 0

    def value(self) -> float:
        """Returns the mean value of the node; 0 if unvisited."""
        return self.value_sum / self.visit_count if self.visit_count else 0.0

    @property
    def total_for_chooser(self) -> float:
        """The sum of values from the perspective of the chooser.

        Trap: the MuZero specification selects by `child.value()`, which ignores the reward of the action and the change
        of player. Selection needs reward + discount * value, negated if the player changes (Schrittwieser et al. 2020,
        appendix B, equations 3 and 4), which is summed in `returns`.
        """
        return self.returns

    def edge_terms(self, action: int) -> EdgeTerms:
        """Returns what a trace records of the edge to this node; reward, discount and value after the first visit."""
        known = self.parent is not None and self.visit_count > 0
        sign = 1.0 if self.parent is not None and self.to_play == self.parent.to_play else -1.0
        return {
            **PriorNode.edge_terms(self, action),
            "reward": self.reward if known else None,
            "discount": sign * self.discount if known else None,
            "value": self.mean_value if known else None,
        }

    def legal_actions(self) -> list[int]:
        """Returns the actions of an expanded node in the given order; below the root in ascending order."""
        return list(self.actions)

    def expand(self, priors: dict[int, float], num_actions: int, tail_prior: float = 0.0) -> None:
        """Creates a child for each action with a prior."""
        self.adopt({action: Node(prior) for action, prior in priors.items()}, list(priors))
        self.num_actions, self.tail_prior = num_actions, tail_prior

    def _visit_first(self, child: Node) -> None:
        """Marks a child as visited."""
        child.is_visited = True

    def adopt(self, children: dict[int, Node], actions: Sequence[int]) -> None:
        """Sets the children; the caller of the specification creates those of the root."""
        self.children, self.actions = children, list(actions)
        for action, child in children.items():
            child.parent, child.action, child.players = self, action, self.players

    def inherit(self, previous: Node) -> None:
        """Adopts the visited subtrees of `previous`, the same position in the previous tree, for legal moves."""
        retained = {
            action: child for action, child in previous.children.items() if child.is_visited and action in self.children
        }
        for action, child in retained.items():
            child.prior = child.clean_prior = self.children[action].prior
        # Visited children first, in the order of their first visits; then the others in the given order.
        self.adopt(
            retained | {action: child for action, child in self.children.items() if action not in retained},
            self.actions,
        )
        total, visits = self.sum_of_moves()
        self.visit_count, self.value_sum = 1 + visits, self.raw_value + total


class RootNode(Node):
    """The root. It may be created empty; a search evaluates and expands it first."""

    __slots__ = ()

    def __init__(self, prior: float = 1.0, hidden_state: Any = None, to_play: int = 0, *, position: Any = None) -> None:
        super().__init__(prior, hidden_state=hidden_state, to_play=to_play)
        self.position = position


class ModelSearch(NoisySearch[Node]):
    """A search in a learned model, for one player with rewards or for two opponents.

    Without proofs, since the model is an approximation.
    """

    solve = False

    def __init__(self, network: Any, discount: float, num_players: int) -> None:
        validation.number(discount, "discount", least=0.0, most=1.0)
        if num_players not in (1, 2):
            raise ValueError(f"num_players must be 1 or 2, not {num_players}")
        self.network = network
        self.discount = discount
        self.num_players = num_players

    # --- The root -------------------------------------------------------------------------------------------

    def _make_root(self, state: Any, root_input: RootInput = NO_INPUT) -> RootNode:
        """Creates a root, evaluated and expanded."""
        root = RootNode(to_play=root_input.to_play or 0)
        root.players = self.num_players
        observation, legal_actions = root_input.observation, root_input.legal_actions
        if state is not None:
            refuse_end(state)
            if state.num_players > 2 or self.num_players not in (1, state.num_players):
                raise ValueError(f"num_players is {self.num_players}, but the game has {state.num_players}")
            root.position, root.players, root.to_play = state, state.num_players, state.to_play
            observation, legal_actions = state.observation(), state.legal_actions()
        if not 0 <= root.to_play < root.players:
            raise ValueError(f"to_play is {root.to_play}: it must be from 0 to {root.players - 1}")
        output = initial_inference(self.network, observation)
        if root_input.root_actions is not None:
            legal_actions = actions_among(checked_actions(legal_actions, len(output.logits)), root_input.root_actions)
        self._expand_root(root, output, legal_actions)
        return root

    def _advance_root(self, root: Node, action: int, root_input: RootInput = NO_INPUT) -> RootNode:
        """Returns the root after `action`, with its subtree."""
        child = root.children.get(action)
        if child is None:
            raise ValueError(f"action {action} is not legal; legal are {root.legal_actions()}")
        if root.position is not None:
            after = self._make_root(root.position.play(action))
        elif root_input.observation is not None:
            # The player to move: given, else by the model, else alternating.
            turn = child.to_play if child.visit_count else root.players - 1 - root.to_play
            turn = turn if root_input.to_play is None else root_input.to_play
            after = self._make_root(None, RootInput(root_input.observation, root_input.legal_actions, turn))
        else:
            output = recurrent_inference(self.network, root.hidden_state, action)
            turn = child.to_play if child.visit_count else self._next_player(root, output)
            after = RootNode(to_play=turn if root_input.to_play is None else root_input.to_play)
            after.players = root.players
            self._expand_root(after, output, root_input.legal_actions)
        if child.to_play == after.to_play:
            # Otherwise the model predicted the wrong player to move, and the values of the subtree have the wrong sign.
            after.inherit(child)
        return after

    def _expand_root(self, root: Node, output: ModelOutput, legal_actions: Sequence[int] | None) -> None:
        """Expands the root with its legal actions; the model's value counts as its first visit.

        Trap: in the MuZero specification `run` does not expand the root, so a search from a new root raises IndexError.
        A root that the caller has expanded has no visit, and with sqrt(N) = 0 its priors are ignored.
        """
        if root.expanded():
            checked_actions(legal_actions, len(output.logits))
            root.adopt(root.children, list(root.children))
            root.num_actions = len(output.logits)
        else:
            self._expand_node(root, output.logits, legal_actions)
        root.hidden_state = output.hidden_state if root.hidden_state is None else root.hidden_state
        root.raw_value = root.value_sum = output.value
        root.visit_count = 1

    def _evaluate(self, tree: Tree[Node], pending: Sequence[PendingLeaf[Node]], target: int) -> list[list[float]]:
        """Expansion and evaluation by recurrent inference.

        Trap: the MuZero specification expands latent nodes with the legal actions of the root, which after one move
        belong to the wrong player. Legal actions are unknown below the root, so none are masked there; the model learns
        to give illegal ones low priors.
        """
        outputs = [self._infer(pending_leaf.leaf) for pending_leaf in pending]
        for index, (pending_leaf, output) in enumerate(zip(pending, outputs, strict=True)):
            k = max(MIN_TOP_K, target - (tree.simulations + index + 1))
            self._expand_leaf(pending_leaf.leaf, output, k)
        return [[output.value] for output in outputs]

    def _infer(self, leaf: Node) -> ModelOutput:
        """Runs recurrent inference for a new leaf."""
        parent, action = leaf.parent, leaf.action
        assert parent is not None, "a leaf is not the root"
        assert action is not None, "a leaf is not the root"
        output = recurrent_inference(self.network, parent.hidden_state, action)
        if len(output.logits) != parent.num_actions:
            raise ValueError(f"policy_logits has {len(output.logits)} numbers: there are {parent.num_actions} actions")
        return output

    def _expand_node(self, node: Node, policy: Any, legal_actions: Sequence[int] | None) -> None:
        """Expands a node with a child for each legal action; the priors are the softmax of their logits.

        Used for roots, and for callers that run the specification's loop themselves: two players then alternate, with
        the discount of the search. The search itself expands other nodes by `_expand_leaf`.
        """
        logits = row_of(policy)
        node.expand(priors_of(checked_actions(legal_actions, len(logits)), logits), len(logits))
        if node.parent is not None:
            node.discount, node.players = self.discount, node.parent.players
            node.to_play = node.players - 1 - node.parent.to_play

    def _expand_leaf(self, leaf: Node, output: ModelOutput, k: int) -> None:
        """Stores the model's output in a new leaf and creates the children of its top-`k` actions."""
        assert leaf.parent is not None, "a leaf is not the root"
        leaf.hidden_state, leaf.reward, leaf.raw_value = output.hidden_state, output.reward, output.value
        leaf.discount = self.discount if output.discount is None else abs(output.discount)
        leaf.to_play = self._next_player(leaf.parent, output)
        priors, tail_prior = top_k_priors(output.logits, k)
        leaf.expand(priors, len(output.logits), tail_prior)

    def _next_player(self, node: Node, output: ModelOutput) -> int:
        """Returns the player to move after an action: by the sign of the model's discount, else alternating."""
        if output.discount is not None and output.discount >= 0.0:
            return node.to_play
        if output.discount is not None and node.players == 1:
            raise ValueError(f"discount is {output.discount}: a negative one changes the player, and num_players is 1")
        return node.players - 1 - node.to_play

    def _backpropagate(self, leaf: Node, values: Sequence[float]) -> None:
        """Backs up a value from a leaf to the root."""
        (value,) = values
        search_path: list[Node] = [leaf]
        while search_path[-1].parent is not None:
            search_path.append(search_path[-1].parent)
        self._backup(search_path[::-1], value)

    def _backup(self, search_path: Sequence[Node], value: Any) -> None:
        """Backup: at each node of a path, from its end to the root, N += 1 and the value is added to the sum.

        `value` is that of the last node, for its player to move; each sum is for the player to move at its node.

        Trap: as in the MuZero specification the value is added before the reward. The specification has no players;
        here the value is negated if the player changes.
        """
        value = number_of(value, "value")
        for index in reversed(range(len(search_path))):
            node = search_path[index]
            node.value_sum += value
            node.visit_count += 1
            if index > 0:
                chooser = search_path[index - 1].to_play
                value = number_of(node.reward, "reward") + node.discount * (
                    value if node.to_play == chooser else -value
                )
                node.returns += value
