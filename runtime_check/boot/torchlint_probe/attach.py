"""Hooks the probe into a torch that has just been imported."""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import functools
import gc
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch._compile import _disable_dynamo
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils.data import dataloader

from .clock import Clock
from .costs import Costs, Later
from .counting import Counting, LiveBytes, count_copies_to_host
from .cuda import AllocatorPeaks, Setting, Synchronisations
from .double import run_in_double
from .guard import Guard
from .imports import Modules
from .lines import Lines
from .logical import watch_moves
from .recording import Recording
from .sites import Sites
from .state import Census, Results
from .steps import Recorder
from .turns import Turns

if TYPE_CHECKING:
    from .settings import Settings
    from .steps import Instrument


def attach(settings: Settings) -> None:
    _seed(settings.seed)
    _guard_save(Guard(settings))
    make = {"time": _timing, "observe": _observing, "record": _recording, "profile": _profiling}[settings.mode]
    recorder = make(settings)
    ends_step = _disable_dynamo(lambda optimizer, args, kwargs: recorder.boundary("optimizer", optimizer))
    register_optimizer_step_post_hook(ends_step)
    atexit.register(recorder.at_exit)


def _seed(seed: int) -> None:
    """A program that seeds nothing would differ from itself; one that does overrides this."""
    random.seed(seed)
    torch.manual_seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed)


def _guard_save(guard: Guard) -> None:
    save = torch.save

    @functools.wraps(save)
    def guarded(obj: Any, f: Any, *args: Any, **kwargs: Any) -> None:
        guard.own(f, empty=True)
        save(obj, f, *args, **kwargs)

    torch.save = torch.serialization.save = guarded


def _timing(settings: Settings) -> Recorder:
    clock = Clock(Turns(settings.results, settings.turn) if settings.turn else None)
    recorder = Recorder(settings, [clock, Setting(), Modules(settings)])

    @contextlib.contextmanager
    def waiting() -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            clock.waited += time.perf_counter() - start

    _hook_loader(recorder, waiting)
    return recorder


def _observing(settings: Settings) -> Recorder:
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False
    if settings.double:
        run_in_double()
    counting = Counting(settings, LiveBytes())
    lines = Lines(settings)
    synchronisations = Synchronisations(settings, counting.places)
    results = Results(settings, synchronisations)
    observers: list[Instrument] = [
        Clock(),
        counting,
        synchronisations,
        AllocatorPeaks(),
        Census(settings, results),
        results,
        lines,
    ]
    recorder = Recorder(settings, [*observers, Setting(), Modules(settings)])
    register_optimizer_step_pre_hook(_disable_dynamo(lambda optimizer, args, kwargs: results.steps(optimizer)))
    _hook_optimizers(recorder, results)
    _hook_backward(results.backward)
    _hook_loader(recorder, counting.loader_at_work)
    count_copies_to_host(counting)
    lines.watch()
    gc.freeze()  # what torch itself holds: every census would go through it again
    counting.__enter__()  # type: ignore[no-untyped-call]
    os.register_at_fork(after_in_child=lambda: counting.__exit__(None, None, None))  # type: ignore[no-untyped-call]
    return recorder


def _recording(settings: Settings) -> Recorder:
    calls = Recording(settings)
    recorder = Recorder(settings, [Setting(), Modules(settings), calls])
    _hook_loader(recorder, contextlib.nullcontext)
    calls.start()
    return recorder


def _profiling(settings: Settings) -> Recorder:
    """Lines are timed first, with nothing else in the way, and what they ask of torch is counted then."""
    sites = Sites(settings)
    settings_counted = dataclasses.replace(settings, warmup=0)
    costs = Costs(settings_counted, sites)
    first = settings.warmup + settings.timed
    synchronisations = Synchronisations(settings_counted, costs.places)
    sites.watch()
    gc.freeze()
    later = Later(first, costs, [synchronisations, AllocatorPeaks()])
    recorder = Recorder(settings, [Clock(), sites, later, Setting(), Modules(settings)])
    _hook_backward(sites.in_backward)
    _hook_loader(recorder, costs.loader_at_work)
    count_copies_to_host(costs)
    watch_moves(costs)
    return recorder


def _hook_loader(recorder: Recorder, around: Callable[[], contextlib.AbstractContextManager[None]]) -> None:
    """Asking for a batch ends the step of the batch before."""
    fetch = dataloader._BaseDataLoaderIter.__next__

    @functools.wraps(fetch)
    def hooked(iterator: Any) -> Any:
        if iterator._num_yielded:
            recorder.boundary("loader")
        with around():
            return fetch(iterator)

    dataloader._BaseDataLoaderIter.__next__ = hooked  # type: ignore[method-assign, assignment]


def _hook_optimizers(recorder: Recorder, results: Results) -> None:
    create = torch.optim.Optimizer.__init__

    @functools.wraps(create)
    def hooked(optimizer: torch.optim.Optimizer, *args: Any, **kwargs: Any) -> None:
        create(optimizer, *args, **kwargs)
        recorder.trains = True
        results.created(optimizer)

    torch.optim.Optimizer.__init__ = hooked  # type: ignore[method-assign, assignment]


def _hook_backward(around: Callable[[Any], contextlib.AbstractContextManager[None]]) -> None:
    backward = torch.autograd.backward

    @functools.wraps(backward)
    def hooked(tensors: Any, *args: Any, **kwargs: Any) -> None:
        with around(tensors):
            backward(tensors, *args, **kwargs)

    torch.autograd.backward = _disable_dynamo(hooked)
