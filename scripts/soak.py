"""Run the property tests of sessions for a long time, with new random edits each time.

``python scripts/soak.py engine 30`` compares the incremental repair with the agglomeration from
scratch for 30 minutes; ``python scripts/soak.py session 30`` compares sessions on disk with the
naive model, and ``both`` does the two in turn. The script prints the number of comparisons, stops
at the first fault, and prints the smallest course of edits that leads there.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import run_state_machine_as_test

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from oracles.histories import COMPARED, check_against_oracle, check_cells, check_hub
from oracles.repairs import POLICIES, graphs
from session.test_session_machine import Proofreading

from napari_agglo.session._hierarchy import superpixels

_RANDOM = {
    "deadline": None,
    "database": None,
    "derandomize": False,
    "suppress_health_check": list(HealthCheck),
    "phases": (Phase.generate, Phase.shrink),
}


def engine() -> None:
    """Compare random courses of edits, looks, undo and redo with the run from scratch."""

    @settings(max_examples=200, **_RANDOM)
    @given(st.data(), graphs(most=12), POLICIES, st.booleans())
    def compare(data, graph, policy, look_always):
        check_against_oracle(data, graph, *policy, most=16, look_always=look_always)

    @settings(max_examples=50, **_RANDOM)
    @given(st.data(), graphs(most=12), st.integers(0, 999))
    def compare_cells(data, graph, seed):
        check_cells(data, graph, seed, most=16)

    @settings(max_examples=3, **_RANDOM)
    @given(
        st.sampled_from([100, 300]), st.integers(0, 2**16), st.sampled_from(["callable", "mean"])
    )
    def compare_hubs(n, seed, kind):
        check_hub(n, seed, edits=4, kind=kind)

    @settings(max_examples=3, **_RANDOM)
    @given(st.integers(0, 2**16), st.sampled_from([0, 100]))
    def compare_forest_hubs(seed, few):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(superpixels.Scorer, "few", few)
            check_hub(60, seed, edits=3, kind="forest")

    compare()
    compare_cells()
    compare_hubs()
    compare_forest_hubs()


def session() -> None:
    """Drive sessions through random courses."""
    options = settings(max_examples=5, stateful_step_count=40, **_RANDOM)
    run_state_machine_as_test(Proofreading, settings=options)
    COMPARED["sessions"] += options.max_examples


def main() -> None:
    """Go on until the time is over."""
    kind, minutes = sys.argv[1], float(sys.argv[2])
    work = {"engine": (engine,), "session": (session,), "both": (engine, session)}[kind]
    start = time.monotonic()
    while time.monotonic() - start < 60 * minutes:
        for compare in work:
            compare()
        counts = ", ".join(f"{n:,} {what}" for what, n in COMPARED.items())
        print(f"{(time.monotonic() - start) / 60:.0f} min: {counts}; no fault", flush=True)


if __name__ == "__main__":
    main()
