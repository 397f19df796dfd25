"""A program to be killed: opens a session, appends to its journal for ever, and says how far it is.

``python -m oracles.appender SESSION`` waits for lines on its standard input; for each it starts one
such program by fork, so that a new one costs no imports, and tells its number and its end.
"""

from __future__ import annotations

import os
import sys

from napari_agglo.session._store import Store


def entry(number: int) -> dict:
    """Return what the entry of this number says; some are long."""
    return {"op": "merge", "segments": list(range(number % 37 * 10)), "number": number}


def append_for_ever(path: str) -> None:
    with Store.open(path) as store:
        while True:
            record = store.journal.append(entry(len(store.journal.records) + 1))
            os.write(1, f"done {record.seq}\n".encode())


if __name__ == "__main__":
    for _ in sys.stdin:
        child = os.fork()
        if child == 0:
            append_for_ever(sys.argv[1])
        os.write(1, f"pid {child}\n".encode())
        _, status = os.waitpid(child, 0)
        os.write(1, f"ended {status}\n".encode())
