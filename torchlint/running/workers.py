"""A pool of worker processes that ends with the process that started it.

A module of its own, since a run in one process needs none of what it imports.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool as WorkerDiedError
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import TypeVar

__all__ = ["WorkerDiedError", "spread"]

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")


def spread(
    work: Callable[[_Task], _Result], tasks: Sequence[_Task], workers: int, prepare: Callable[[], None]
) -> Iterator[_Result]:
    """What `work` makes of the tasks, begun in their order, as it is ready. Each process calls `prepare` first.

    Raises WorkerDiedError where one of the processes was killed.
    """
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, context, initializer=prepare)
    calls = getattr(pool, "_call_queue", None)
    try:
        with _interrupts_held_back():
            futures: list[Future[_Result]] = [pool.submit(work, task) for task in tasks]
        for future in as_completed(futures):
            yield future.result()
    except BaseException as reason:
        pool.shutdown(wait=False, cancel_futures=True)
        for child in multiprocessing.active_children():
            child.terminate()
        # Until Python 3.11.5 the thread that writes tasks waits forever for processes that are gone, as this one holds
        # the other end, too (github.com/python/cpython/issues/94777). Only at the end: a later pool may use its number.
        if isinstance(reason, KeyboardInterrupt) and calls is not None:
            calls._reader.close()
        raise
    pool.shutdown()


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Processes started here never see Ctrl-C, not even before they run a line; this one sees it at the end."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    # Starting the tracker would let the signals through again.
    resource_tracker.ensure_running()
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)
