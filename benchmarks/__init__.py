"""Benchmarks and experiments: the figures of the documentation, each with its command."""

import os
import sys

# One thread each. The libraries read these when they are imported; after that, as in the tests, a
# change would only make numba read its whole configuration again.
if "numpy" not in sys.modules:
    for _name in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
        os.environ.setdefault(f"{_name}_NUM_THREADS", "1")
