"""The number of examples of a property test: fewer in `make test`, all of them in `make test-full`.

Plain-Python kernels (``NUMBA_DISABLE_JIT=1``) are slow, and a few examples exercise every line.
"""

from __future__ import annotations

import os
from typing import Any

from hypothesis import settings

if os.environ.get("NUMBA_DISABLE_JIT") == "1":
    SHARE = 1 / 10
elif os.environ.get("AGGLO_EXAMPLES") == "all":
    SHARE = 1.0
else:
    SHARE = 1 / 5


def examples(number: int, *, few: int | None = None, **options: Any) -> settings:
    """Return the settings of a test that has so many examples in `make test-full`.

    A test that is slow also when compiled gives how `few` it has in `make test`.
    """
    share = max(1, round(SHARE * number))
    return settings(max_examples=share if few is None or SHARE == 1 else few, **options)
