"""The training loop: the session, its scheduling (alternating or concurrent), limits and devices. Needs PyTorch."""

from pondertree.optional import require

for _package in ("torch", "safetensors"):
    require(_package, "train", "learning")

from pondertree.learn.loop.replay_order import relearn  # noqa: E402 (after the error for a missing package)
from pondertree.learn.loop.run import TrainingResult, train  # noqa: E402

__all__ = ["TrainingResult", "relearn", "train"]
