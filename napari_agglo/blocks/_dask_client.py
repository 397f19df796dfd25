"""Tasks by the workers of a dask.distributed client, as many at a time as the budget allows.

The budget is that of all processes on this machine together, and of each worker process on another
machine. It is in its own file because it knows neither stages nor markers.
"""

from __future__ import annotations

import os
import socket
import time
import uuid
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from napari_agglo._data_warnings import warn_caller
from napari_agglo.blocks._budget import best_processes, no_room, tasks_that_fit
from napari_agglo.blocks._plan import Plan
from napari_agglo.errors import DataWarning

_PATIENCE = 600.0  # seconds to wait for tasks that run when a run is stopped
_PAUSE = 0.2  # between two questions to the workers

Process = tuple[str, int, int]  # name and address of a machine, number of a process


@dataclass(frozen=True)
class _Place:
    """Workers that share a budget, and the tasks that fit in it at a time."""

    name: str
    workers: tuple[str, ...]
    tasks: int


def _this_process() -> Process:
    return socket.gethostname(), uuid.getnode(), os.getpid()


def _running(keys: Sequence[str], dask_worker: Any) -> int:
    """Return the number of tasks that a worker does or is about to do, also of cancelled ones."""
    state = dask_worker.state
    return len({task.key for task in (*state.executing, *state.ready)}.intersection(keys))


class Workers:
    """The workers of a client: which of them are used, and how many tasks each has.

    Attributes
    ----------
    others : int
        Processes on this machine beside this one that have had tasks.
    """

    def __init__(self, client: Any, plan: Plan, most: int | None) -> None:
        self.others = 0
        self._client, self._plan, self._most = client, plan, most
        self._processes: dict[str, Process] = {}

    def results(
        self,
        work: Callable[..., Any],
        tasks: Iterable[int],
        arguments: Callable[[int], tuple[Any, ...]],
        name: str,
        task_bytes: int,
        is_stopped: Callable[[], bool],
        tell_waiting: Callable[[int], None],
    ) -> Generator[tuple[int, Any], None, None]:
        """Do tasks of so many bytes, and give the number and the result of each as it completes.

        A result is that of `work`, or the exception of a worker that died too often. Futures are
        released: those that are kept make dask run finished tasks again when a worker dies.

        After an error or a cancel no task begins, and those that run are waited for: `tell_waiting`
        is called with their number.
        """
        from distributed import as_completed

        rest = iter(tasks)
        running: Any = as_completed()
        begun: dict[Any, tuple[int, str]] = {}

        def submit() -> bool:
            if is_stopped() or (self._most is not None and len(begun) >= self._most):
                return False
            busy = [place for _, place in begun.values()]
            free = [
                place for place in self._places(task_bytes)
                if busy.count(place.name) < place.tasks
            ]  # fmt: skip
            if begun and not free:
                return False
            index = next(rest, None)
            if index is None:
                return False
            # Without a worker yet, one task waits for the first.
            place = max(
                free, key=lambda one: one.tasks - busy.count(one.name),
                default=_Place("", (), 1),
            )  # fmt: skip
            future = self._client.submit(
                work, *arguments(index), key=f"{name}-{index}-{time.monotonic_ns()}",
                workers=list(place.workers) or None, allow_other_workers=bool(place.workers),
            )  # fmt: skip
            begun[future.key] = index, place.name
            running.add(future)
            return True

        try:
            while submit():
                pass
            for future in running:
                index, _ = begun.pop(future.key)
                try:
                    result = future.result()
                except Exception as error:  # the worker died too often, or lacks the package
                    result = error
                future.release()
                del future
                yield index, result
                while submit():
                    pass
        finally:
            if begun:  # an error, or a cancel: what waits is not begun
                self._client.cancel(list(running.futures), force=True)
                self._wait(list(begun), tell_waiting)

    def _wait(self, keys: Sequence[str], tell_waiting: Callable[[int], None]) -> None:
        """Wait until no worker does any of these tasks, which go on when they are cancelled."""
        until = time.monotonic() + _PATIENCE
        idle = 0
        while (
            idle < 2
        ):  # a task that was sent at the moment of the cancel may begin after the first
            try:
                counts = self._client.run(_running, keys, on_error="ignore")
            except Exception:  # the scheduler has gone, and with it the way to ask
                return
            left = sum(counts.values())
            if left and time.monotonic() > until:
                problem = (
                    f"{left} tasks still run on workers, {_PATIENCE:.0f} s after the run ended"
                )
                remedy = "wait for them before the next run, or restart the workers"
                warn_caller(DataWarning(problem, argument="client", remedy=remedy))
                return
            idle = 0 if left else idle + 1
            if left:
                tell_waiting(left)
            time.sleep(_PAUSE)

    def _places(self, task_bytes: int) -> list[_Place]:
        """Return the processes to use, as they are now: workers come and go."""
        threads: dict[str, int] = self._client.nthreads()
        new = [address for address in threads if address not in self._processes]
        if new:
            processes = self._client.run(_this_process, workers=new, on_error="ignore")
            self._processes |= processes
        own = _this_process()
        here: dict[Process, list[str]] = {}
        elsewhere: dict[Process, list[str]] = {}
        for address in threads:
            process = self._processes.get(address)
            if process is not None:
                side = here if process[:2] == own[:2] else elsewhere
                side.setdefault(process, []).append(address)
        places = []
        for process, workers in elsewhere.items():
            most = tasks_that_fit(self._plan, task_bytes)
            n = min(sum(threads[one] for one in workers), most)
            places.append(_Place(repr(process), tuple(workers), n))
        inside = here.pop(own, [])
        each = [sum(threads[one] for one in workers) for workers in here.values()]
        n, tasks = best_processes(self._plan, task_bytes, each, sum(threads[one] for one in inside))
        if tasks:
            used = [one for workers in list(here.values())[:n] for one in workers]
            places.append(_Place("here", (*inside, *used), tasks))
            self.others = max(self.others, n)
        elif here and not elsewhere:
            raise no_room(self._plan, task_bytes)
        return places
