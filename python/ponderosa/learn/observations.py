"""Observations as they are kept: bit planes packed, so that a window of chess positions fits into memory."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ponderosa.evaluators.batch import Packed
from ponderosa.game import GameInfo
from ponderosa.games import by_name
from ponderosa.presets import AlphaZero


class ObservationCodec:
    """Observations of one game to rows of bytes, and back.

    A compiled game has planes of bits, then planes that are constant; both are exact. What a game in Python shows is
    kept as it is, float32.
    """

    def __init__(self, info: GameInfo, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.bit_planes = _bit_planes(info) if info.compiled else 0
        self._cells = info.plane_shape[0] * info.plane_shape[1]
        self._octets = -(-self.bit_planes * self._cells // 8)
        scalars = shape[0] - self.bit_planes if info.compiled else int(np.prod(shape))
        self.row_bytes = self._octets + 4 * scalars
        """Bytes of a row."""

    def pack(self, observations: NDArray[np.float32]) -> NDArray[np.uint8]:
        """Observations [B, ...] as rows of bytes [B, row_bytes]."""
        rows = len(observations)
        if not self.bit_planes:
            flat = np.ascontiguousarray(observations, dtype="<f4").reshape(rows, -1)
            return flat.view(np.uint8).reshape(rows, self.row_bytes)
        bits = observations[:, : self.bit_planes].reshape(rows, -1) > 0.5
        scalars = np.ascontiguousarray(observations[:, self.bit_planes :, 0, 0], dtype="<f4")
        return np.concatenate([np.packbits(bits, axis=1), scalars.view(np.uint8).reshape(rows, -1)], axis=1)

    def unpack(self, packed: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Observations [B, ...] again."""
        rows = len(packed)
        if not self.bit_planes:
            return np.ascontiguousarray(packed).view("<f4").astype(np.float32).reshape(rows, *self.shape)
        found = np.empty((rows, *self.shape), dtype=np.float32)
        bits = np.unpackbits(packed[:, : self._octets], axis=1, count=self.bit_planes * self._cells)
        found[:, : self.bit_planes] = bits.reshape(rows, self.bit_planes, *self.shape[1:])
        scalars = np.ascontiguousarray(packed[:, self._octets :]).view("<f4").reshape(rows, -1)
        found[:, self.bit_planes :] = scalars[:, :, None, None]
        return found


class _Probe:
    """An evaluator that only looks at the form it is asked in."""

    bit_planes = 0

    def evaluate_packed(self, packed: Packed) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """All moves and positions are alike."""
        self.bit_planes = packed.planes.shape[1]
        return np.zeros(len(packed.legal_actions), np.float32), np.zeros(len(packed), np.float32)

    def evaluate(self, observations: NDArray[np.float32]) -> tuple[None, NDArray[np.float32]]:
        """Not asked where positions come packed."""
        return None, np.zeros(len(observations), np.float32)


def _bit_planes(info: GameInfo) -> int:
    """How many of a compiled game's planes are bits: the engine packs those, so a search is asked what it sees."""
    probe = _Probe()
    AlphaZero(probe, num_simulations=1, seed=0).run(by_name(info.name)())
    return probe.bit_planes
