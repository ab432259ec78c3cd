"""What each call site of the program asks of torch: operations, synchronisations, bytes moved, memory kept."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import torch

from .counting import Counting, LiveBytes
from .graph import live_roots, walk
from .logical import LogicalDevice

if TYPE_CHECKING:
    from .settings import Settings
    from .sites import Sites
    from .steps import Instrument

_aten = torch.ops.aten
_next_node: Any = torch.autograd._get_sequence_nr  # type: ignore[attr-defined]  # the number of the next node


class Later:
    """Instruments that begin after so many steps, which they number anew; `costs` is the first of them."""

    def __init__(self, first: int, costs: Costs, others: Iterable[Instrument]) -> None:
        self.first = first
        self.costs = costs
        self.instruments = [costs, *others]
        if first == 0:
            costs.start()

    def step(self, number: int) -> dict[str, float]:
        figures: dict[str, float] = {}
        if number > self.first:
            for instrument in self.instruments:
                figures.update(instrument.step(number - self.first))
        elif number == self.first:
            self.costs.start()
        return figures

    def result(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for instrument in self.instruments:
            found.update(instrument.result())
        return found


class Costs(Counting):
    """Operations of a backward pass belong to the site of the operation that they differentiate: `nodes` has the site
    of each autograd node, by its sequence number. `began` has the first such number of each step."""

    def __init__(self, settings: Settings, sites: Sites) -> None:
        self.storages = SiteBytes(sites)
        super().__init__(settings, self.storages)
        self.sites = sites
        self.logical = LogicalDevice()
        self.began: list[int] = []
        self.nodes: dict[int, int] = {}
        self.backward_seconds: Counter[int] = Counter()
        self.site_operations: Counter[int] = Counter()
        self.site_syncs: Counter[int] = Counter()
        self.moved_bytes: Counter[int] = Counter()

    def start(self) -> None:
        self.began = [_next_node()]
        self.__enter__()  # type: ignore[no-untyped-call]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        node = torch._C._current_autograd_node()
        site = self._site(node)
        begin = time.perf_counter()
        output = super().__torch_dispatch__(func, types, args, kwargs)
        if node is not None:
            self.backward_seconds[site] += time.perf_counter() - begin  # type: ignore[assignment]
        if not func.is_view and not self.loading:
            self.site_operations[site] += 1
        if size := _copied_bytes(func, args, output):
            self.moved_bytes[site] += size
        self.logical.follow(args, output)
        return output

    def _site(self, node: Any) -> int:
        if node is not None:
            return self.nodes.get(node._sequence_nr(), self.sites.running)
        if torch.is_grad_enabled():  # the node of a forward operation is made before this is called
            self.nodes.setdefault(_next_node() - 1, self.sites.running)
        return self.sites.running

    def read(self) -> None:
        if self.began:
            before = self.reads
            super().read()
            self.synchronised(self.reads - before)

    def synchronised(self, times: int) -> None:
        self.site_syncs[self.sites.running] += times

    def to_device(self, tensor: torch.Tensor) -> None:
        if self.logical.take(tensor) and self.began:
            self.moved_bytes[self.sites.running] += tensor.nbytes

    def to_host(self, tensor: torch.Tensor) -> None:
        super().to_host(tensor)
        if self.began and self.logical.holds(tensor):
            self.moved_bytes[self.sites.running] += tensor.nbytes

    def step(self, number: int) -> dict[str, float]:
        self.began.append(_next_node())
        self.storages.step = number
        return super().step(number)

    def result(self) -> dict[str, Any]:
        """Of counted steps. What is kept was made in one of them but the last, and is still there."""
        counted = len(self.began) - 1
        named = {
            "backward_seconds": self.backward_seconds,
            "operations": self.site_operations,
            "syncs": self.site_syncs,
            "moved_bytes": self.moved_bytes,
            "kept_bytes": self.storages.kept(counted - 1),
            "kept_nodes": self._kept_nodes() if counted > 1 else Counter(),
        }
        costs = {name: {str(site): value for site, value in values.items()} for name, values in named.items()}
        return {**super().result(), "costs": costs, "counted_steps": max(0, counted)}

    def _kept_nodes(self) -> Counter[int]:
        """By the site that made the oldest tensor that holds them."""
        first, last = self.began[0], self.began[-2]
        seen: set[Any] = set()
        kept: Counter[int] = Counter()
        for root in sorted(live_roots(), key=lambda node: node._sequence_nr()):
            nodes = sum(first <= node._sequence_nr() < last for node in walk([root], seen))
            kept[self.nodes.get(root._sequence_nr(), 0)] += nodes
        return kept


class SiteBytes(LiveBytes):
    """Of any device, with the site and the step that made each storage."""

    def __init__(self, sites: Sites) -> None:
        super().__init__()
        self.sites = sites
        self.step = 0
        self.births: dict[int, tuple[int, int, int]] = {}

    def counts(self, tensor: torch.Tensor) -> bool:
        return True

    def born(self, key: int, size: int) -> None:
        self.births[key] = self.step, self.sites.running, size

    def kept(self, before: int) -> Counter[int]:
        """Bytes by site of what was made before that many steps were over."""
        kept: Counter[int] = Counter()
        for key, (step, site, size) in self.births.items():
            if key in self.alive and step < before:
                kept[site] += size
        return kept


def _copied_bytes(func: Any, args: Any, output: Any) -> int:
    if func is _aten._to_copy.default:
        source, target = args[0], output
    elif func is _aten.copy_.default:
        target, source = args[:2]
    else:
        return 0
    return int(source.nbytes) if source.device.type != target.device.type else 0
