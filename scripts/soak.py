"""Try for long, with other random courses each time, to break what `make test` tries briefly.

``python scripts/soak.py engine 30`` compares the incremental repair with T(E) from scratch for 30
minutes; ``python scripts/soak.py session 30`` drives sessions on disk against the naive model. It
stops at the first fault and prints the smallest course that leads there.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import run_state_machine_as_test

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from oracles.repairs import POLICIES, graphs
from session.test_hierarchy import check_against_oracle
from session.test_session_machine import Proofreading

_RANDOM = {
    "deadline": None,
    "database": None,
    "derandomize": False,
    "suppress_health_check": list(HealthCheck),
    "phases": (Phase.generate, Phase.shrink),
}


def engine(n: int) -> None:
    """Compare `n` random courses of edits, looks, undo and redo with the run from scratch."""

    @settings(max_examples=n, **_RANDOM)
    @given(st.data(), graphs(most=12), POLICIES, st.booleans())
    def compare(data, graph, policy, look_always):
        check_against_oracle(data, graph, *policy, most=16, look_always=look_always)

    compare()


def session(n: int) -> None:
    """Drive `n` sessions through random courses."""
    how = settings(max_examples=n, stateful_step_count=40, **_RANDOM)
    run_state_machine_as_test(Proofreading, settings=how)


def main() -> None:
    """Go on until the time is over."""
    kind, minutes = sys.argv[1], float(sys.argv[2])
    work, at_once = {"engine": (engine, 500), "session": (session, 5)}[kind]
    end, done = time.monotonic() + 60 * minutes, 0
    while time.monotonic() < end:
        work(at_once)
        done += at_once
        print(f"{kind}: {done:,} courses, no fault", flush=True)


if __name__ == "__main__":
    main()
