"""A program to be killed: opens a session, edits it for ever, and says how far it is.

``python -m oracles.editor SESSION`` waits for lines on its standard input; for each it starts one
such program by fork, so that a new one costs no imports, and tells its number and its end.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile

from napari_agglo import Session


def edit_for_ever(path: str) -> None:
    with Session.open(path) as session:
        session.threshold = 0.0
        while True:
            segments = session.segments.ids().tolist()
            if len(segments) > 2:
                session.merge(segments[0], int(session.segments.neighbours(segments[0])[0]))
            else:
                session.undo()
                session.undo()
            os.write(1, f"done {len(session._store.journal.records)}\n".encode())


def warm_up(path: str) -> None:
    """Load all kernels, by editing a copy, so that no child has to."""
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copytree(path, f"{folder}/copy.agglo")
        with Session.open(copy) as session:
            session.threshold = 0.0
            first = int(session.segments.ids()[0])
            session.merge(first, int(session.segments.neighbours(first)[0]))
            session.undo()


if __name__ == "__main__":
    warm_up(sys.argv[1])
    for _ in sys.stdin:
        child = os.fork()
        if child == 0:
            edit_for_ever(sys.argv[1])
        os.write(1, f"pid {child}\n".encode())
        _, status = os.waitpid(child, 0)
        os.write(1, f"ended {status}\n".encode())
