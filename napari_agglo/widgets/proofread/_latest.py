"""The newest of many requests, answered in a worker; answers to older ones are dropped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from napari.qt.threading import FunctionWorker

Request = tuple[Callable[[], Any], Callable[[Any], object], Callable[[Exception], object]]


class Latest:
    """Answers one request at a time; of those that wait, only the newest.

    Parameters
    ----------
    before, after : callable, optional
        Called on the main thread before a worker starts and after it has ended, whatever came of
        it.
    """

    def __init__(
        self,
        before: Callable[[], object] | None = None,
        after: Callable[[], object] | None = None,
    ) -> None:
        self._before = before
        self._after = after
        self._number = 0  # of the newest request: an answer to another one is stale
        self._waiting: Request | None = None
        self._worker: FunctionWorker | None = None
        self._closed = False

    @property
    def busy(self) -> bool:
        """Whether something is being computed."""
        return self._worker is not None

    def ask(
        self,
        work: Callable[[], Any],
        done: Callable[[Any], object],
        failed: Callable[[Exception], object],
    ) -> None:
        """Have `work` done in a worker, and be told the outcome, unless something newer comes."""
        if self._closed:
            return
        self._number += 1
        self._waiting = (work, done, failed)
        if self._worker is None:
            self._start()

    def forget(self) -> None:
        """Drop what is asked for, and what is being answered."""
        self._number += 1
        self._waiting = None

    def close(self) -> None:
        """Answer nothing any more."""
        self._closed = True
        self.forget()

    def _start(self) -> None:
        if self._waiting is None or self._closed:
            return
        (work, done, failed), self._waiting = self._waiting, None
        number = self._number
        if self._before is not None:
            self._before()

        def tell(how: Callable[[Any], object], what: Any) -> None:
            self._worker = None
            if self._after is not None:
                self._after()
            try:
                if number == self._number and not self._closed:
                    how(what)
            finally:
                if self._worker is None:
                    self._start()

        self._worker = FunctionWorker(work)
        self._worker.returned.connect(lambda result: tell(done, result))
        self._worker.errored.connect(lambda error: tell(failed, error))
        self._worker.start()
