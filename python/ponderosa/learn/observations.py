"""Observations as they are kept: bit planes packed, so that a window of chess positions fits into memory."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ponderosa import _core
from ponderosa.evaluators import Uniform
from ponderosa.game import GameInfo
from ponderosa.presets import AlphaZero


class ObservationCodec:
    """Observations of one game to rows of bytes, and back.

    A compiled game has planes of bits, then planes that are constant; both are exact. What a game in Python shows is
    kept as it is, float32.
    """

    def __init__(self, info: GameInfo, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.bit_planes = _bit_planes(info, shape) if info.compiled else 0
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


def _bit_planes(info: GameInfo, shape: tuple[int, ...]) -> int:
    """How many of a compiled game's planes are bits; the engine knows, and tells where it packs leaves."""
    settings = AlphaZero(Uniform(), num_simulations=1, seed=0).settings(info)
    parts = settings.engine(info, 1) | {"leaf": "outside"}
    core = _core.Forest(info.name, parts)
    from ponderosa.games import by_name

    core.plant(by_name(info.name)(), 0, 0, 0)
    core.allow(0, 1)
    core.gather()
    planes, scalars = core.waiting_packed()
    assert planes.shape[1] + scalars.shape[1] == shape[0]
    core.roll_back()
    return int(planes.shape[1])
