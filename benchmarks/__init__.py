"""Benchmarks and experiments: the figures of the documentation, each with its command."""

import os

# One thread each; the libraries read these when they are imported, which is after this.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
