"""Checksums of arrays, and the fingerprint by which a session knows its data again."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.volumes import DenseLabels

# Bytes hashed as one piece: the pieces of a large array are shared out among the cores.
_PIECE = 1 << 24


def digest_bytes(data: bytes) -> str:
    """Return a checksum of `data`, 32 hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()[:32]


def digest_array(array: NDArray[Any]) -> str:
    """Return a checksum of type, shape and values; byte order and memory layout do not matter.

    Examples
    --------
    >>> import numpy as np
    >>> digest_array(np.arange(6)) == digest_array(np.arange(12)[::2] // 2)
    True
    >>> digest_array(np.arange(6)) == digest_array(np.arange(6).reshape(2, 3))
    False
    """
    little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    flat = little.reshape(-1).view(np.uint8)
    pieces = [flat[at : at + _PIECE] for at in range(0, flat.size, _PIECE)]
    if len(pieces) > 1:
        with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:  # hashing frees the GIL
            sums = list(pool.map(_sum, pieces))
    else:
        sums = [_sum(piece) for piece in pieces]
    return digest_bytes(f"{little.dtype.str} {little.shape}".encode() + b"".join(sums))


def _sum(piece: NDArray[np.uint8]) -> bytes:
    return hashlib.sha256(piece.data).digest()


def digest_all(sums: Iterable[str]) -> str:
    """Return a checksum of checksums."""
    return digest_bytes(" ".join(sums).encode())


@dataclass(frozen=True)
class Fingerprint:
    """What a label image is known by: its shape, how many superpixels, a checksum of it all."""

    shape: tuple[int, ...]
    superpixels: int
    checksum: str

    @classmethod
    def of(cls, labels: DenseLabels) -> Fingerprint:
        """Return the fingerprint of a label image; its integer type does not matter."""
        checksum = digest_all([digest_array(labels.image), digest_array(labels.ids)])
        return cls(tuple(map(int, labels.image.shape)), labels.n_labels, checksum)

    def __str__(self) -> str:
        return f"shape {self.shape}, {self.superpixels} superpixels, checksum {self.checksum[:12]}"
