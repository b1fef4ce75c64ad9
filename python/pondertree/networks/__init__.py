"""Networks of trained players: architectures, weight files, loading and export, an evaluator in NumPy.

Names are imported on first access, since only the PyTorch networks need PyTorch.
"""

from typing import TYPE_CHECKING

from pondertree.optional import lazy_names

if TYPE_CHECKING:
    from pondertree.networks.architecture import MAX_SUPPORT, Architecture, NetworkConfig
    from pondertree.networks.categories import outcome_shares, support_for
    from pondertree.networks.loading import export_onnx, is_onnx, load, load_for_one_tree, load_onnx
    from pondertree.networks.model_architecture import ModelArchitecture
    from pondertree.networks.model_network import ModelNetwork, fresh_model
    from pondertree.networks.policy_value import PolicyValueNetwork, fresh, player_of, update_player
    from pondertree.networks.run_files import OLD, PLAYER, STATE, list_checkpoints, read_about, run_header
    from pondertree.networks.weights_file import player_bytes, player_of_bytes, read_player

__all__ = [
    "Architecture",
    "MAX_SUPPORT",
    "ModelArchitecture",
    "ModelNetwork",
    "NetworkConfig",
    "OLD",
    "PLAYER",
    "PolicyValueNetwork",
    "STATE",
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
    "player_of_bytes",
    "read_about",
    "read_player",
    "run_header",
    "support_for",
    "update_player",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "architecture": ["MAX_SUPPORT", "Architecture", "NetworkConfig"],
        "categories": ["outcome_shares", "support_for"],
        "loading": ["export_onnx", "is_onnx", "load", "load_for_one_tree", "load_onnx"],
        "model_architecture": ["ModelArchitecture"],
        "model_network": ["ModelNetwork", "fresh_model"],
        "policy_value": ["PolicyValueNetwork", "fresh", "player_of", "update_player"],
        "run_files": ["OLD", "PLAYER", "STATE", "list_checkpoints", "read_about", "run_header"],
        "weights_file": ["player_bytes", "player_of_bytes", "read_player"],
    },
)
