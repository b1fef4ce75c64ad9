"""Networks of trained players: architectures, weight files, loading and export, an evaluator in NumPy.

Names are imported on first access, since only the PyTorch networks need PyTorch.
"""

from typing import TYPE_CHECKING

from pondertree.optional import lazy_names

if TYPE_CHECKING:
    from pondertree.networks.architecture import Architecture, NetworkConfig
    from pondertree.networks.loading import check_player_game, export_onnx, is_onnx, load, load_for_one_tree, load_onnx
    from pondertree.networks.model_architecture import ModelArchitecture
    from pondertree.networks.model_network import ModelNetwork, fresh_model, support_for
    from pondertree.networks.policy_value import PolicyValueNetwork, fresh, outcome_shares, player_of, update_player
    from pondertree.networks.run_files import OLD, PLAYER, STATE, list_checkpoints, read_about, run_header
    from pondertree.networks.weights_file import player_bytes, read_player

__all__ = [
    "Architecture",
    "ModelArchitecture",
    "ModelNetwork",
    "NetworkConfig",
    "OLD",
    "PLAYER",
    "PolicyValueNetwork",
    "STATE",
    "check_player_game",
    "export_onnx",
    "fresh",
    "fresh_model",
    "is_onnx",
    "list_checkpoints",
    "load",
    "load_for_one_tree",
    "load_onnx",
    "outcome_shares",
    "player_bytes",
    "player_of",
    "read_about",
    "read_player",
    "run_header",
    "support_for",
    "update_player",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "Architecture": "architecture",
        "ModelArchitecture": "model_architecture",
        "ModelNetwork": "model_network",
        "NetworkConfig": "architecture",
        "OLD": "run_files",
        "PLAYER": "run_files",
        "PolicyValueNetwork": "policy_value",
        "STATE": "run_files",
        "check_player_game": "loading",
        "export_onnx": "loading",
        "fresh": "policy_value",
        "fresh_model": "model_network",
        "is_onnx": "loading",
        "list_checkpoints": "run_files",
        "load": "loading",
        "load_for_one_tree": "loading",
        "load_onnx": "loading",
        "outcome_shares": "policy_value",
        "player_bytes": "weights_file",
        "player_of": "policy_value",
        "read_about": "run_files",
        "read_player": "weights_file",
        "run_header": "run_files",
        "support_for": "model_network",
        "update_player": "policy_value",
    },
)
