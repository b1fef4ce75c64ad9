"""The examples of the documents as they are written there, except for import lines.

With the documents at hand, `test_against_documents.py` compares each with the lines that it is taken from.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Example:
    """Consecutive lines of a document."""

    document: str
    lines: range
    text: str


ALPHAZERO = "0-alphazero-chess.md"
MUZERO = "1-muzero-chess.md"
PUCT = "2-puct-mathematics-connect4.md"
UCT = "3-uct-classic.md"

USAGE_SETUP = Example(
    ALPHAZERO,
    range(198, 202),
    """\
# Setup
nn = ChessNN()
nn.load_model("trained_model.keras")
mcts = MCTS(neural_network=nn, num_simulations=100)
""",
)
USAGE_PLAY = Example(
    ALPHAZERO,
    range(203, 207),
    """\
# Play a move (greedy)
game = ChessGame()
move = mcts.search(game, temperature=0)
game.make_move(move)
""",
)
USAGE_TRAINING = Example(
    ALPHAZERO,
    range(208, 212),
    """\
# For training data (with exploration)
game = ChessGame()
move, policy = mcts.get_policy(game, temperature=1.0, add_noise=True)
# policy is the MCTS-improved target for training
""",
)
SELF_PLAY = Example(
    ALPHAZERO,
    range(219, 224),
    """\
for move_number in range(max_moves):
    temp = 1.0 if move_number < 30 else 0.0
    move, policy = mcts.get_policy(game, temperature=temp, add_noise=True)
    # Store (position, policy, result) for training
    game.make_move(move)
""",
)
POLICY_CONSTRUCTION = Example(
    ALPHAZERO,
    range(167, 171),
    """\
policy = np.zeros(4672)
for move, child in root.children.items():
    policy[game.get_move_index(move)] = child.visit_count
policy = policy / policy.sum()  # Normalize
""",
)
SELECT_ACTION = Example(
    MUZERO,
    range(174, 205),
    '''\
def select_action(network, config, observation, legal_actions, temperature=1.0):
    """Select action using MCTS"""
    # Initial inference to get root node
    hidden_state, policy, value = network.initial_inference(observation)

    # Create root node
    root = RootNode(0, hidden_state)

    # Mask policy for legal actions
    policy = mask_policy(policy, legal_actions)
    policy = torch.softmax(policy, dim=0)

    # Expand root node
    for action in legal_actions:
        root.children[action] = Node(prior=policy[action].item())

    # Run MCTS
    mcts = MCTS(network, config)
    actions, probabilities = mcts.run(root, observation, legal_actions)

    # Select action based on temperature
    if temperature == 0:
        # Greedy selection
        action_idx = np.argmax(probabilities)
        return actions[action_idx]
    else:
        # Stochastic selection
        probabilities = [p ** (1/temperature) for p in probabilities]
        total = sum(probabilities)
        probabilities = [p / total for p in probabilities]
        return np.random.choice(actions, p=probabilities)
''',
)
RUN = Example(
    MUZERO,
    range(61, 101),
    '''\
    def run(self, root, observation, legal_actions):
        """Run MCTS from root node"""
        # Add Dirichlet noise to root for exploration
        self._add_exploration_noise(root)

        # Run simulations
        for _ in range(self.config.num_simulations):
            node = root
            search_path = [node]
            actions = []

            # Selection phase
            while node.expanded():
                action, node = self._select_child(node)
                search_path.append(node)
                actions.append(action)

            # Expansion and evaluation
            parent = search_path[-2]
            action = actions[-1]

            # Use dynamics network to get next state and reward
            next_hidden_state, reward = self.network.recurrent_inference(
                parent.hidden_state, action
            )

            # Use prediction network to get policy and value
            policy, value = self.network.prediction(next_hidden_state)

            # Create new node
            node.hidden_state = next_hidden_state
            node.reward = reward

            # Expand node with legal actions
            self._expand_node(node, policy, legal_actions)

            # Backup values
            self._backup(search_path, value)

        return self._get_distributions(root)
''',
)
TEMPERATURE_SCHEDULE = Example(
    PUCT,
    range(102, 106),
    """\
if move_number < 10:
    tau = 1.0  # Exploration
else:
    tau = 0.0  # Exploitation
""",
)
BEST_CHILD = Example(
    UCT,
    range(30, 33),
    """\
exploit = child.total_value / child.visit_count
explore = sqrt(2 * ln(parent_visits) / child.visit_count)
score   = exploit + c_param * explore
""",
)
BACKPROPAGATION = Example(
    UCT,
    range(64, 68),
    """\
while node is not None:
    node.update(value)
    node = node.parent
    value = -value  # switch perspective
""",
)
