"""The data loaders that a file builds: where their options stand, and what they load."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.devices.host_branch import is_for_host
from torchlint.analyses.devices.moves import Move, moves, moves_to_accelerator
from torchlint.analyses.loading.batch_texts import DEFAULT_CHANGED, sets_options
from torchlint.analyses.loading.counted_epochs import counts_epochs
from torchlint.analyses.loading.datasets import (
    Memory,
    held_on_accelerator,
    is_handed_in,
    memory,
    returns_tensors,
)
from torchlint.analyses.loading.listed_samples import listed_samples
from torchlint.analyses.loading.loader_subclasses import (
    constructor,
    hands_arguments_on,
    keeps_iterator,
    takes_for_itself,
    yields_batches,
)
from torchlint.analyses.loading.taken_elsewhere import are_moved_in_sight, is_taken_elsewhere
from torchlint.analyses.loading.text_encoding import encodes_text
from torchlint.analyses.once import once, once_for_each
from torchlint.semantics.entities import Argument, ArgumentState
from torchlint.semantics.tree import walk
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.entities import Call, Class, Function, Loop
    from torchlint.semantics.model import Model

_TORCH = {"dataset": 0, "batch_size": 1, "num_workers": 5, "collate_fn": 6, "pin_memory": 7}
_GRAPHS = {"dataset": 0, "data": 0}
_GRAPH_LOADERS = """
    DataLoader DenseDataLoader DataListLoader NeighborLoader LinkNeighborLoader HGTLoader ClusterLoader RandomNodeLoader
    NeighborSampler RandomNodeSampler ShaDowKHopSampler GraphSAINTNodeSampler GraphSAINTEdgeSampler
    GraphSAINTRandomWalkSampler TemporalDataLoader
"""
# Loader classes and the positions of their options; an option without a position is given by keyword.
CLASSES: dict[str, dict[str, int]] = {
    "torch.utils.data.DataLoader": _TORCH,
    "torchdata.stateful_dataloader.StatefulDataLoader": _TORCH,
    **{f"torch_geometric.loader.{name}": _GRAPHS for name in _GRAPH_LOADERS.split()},
}
_TENSORS = "torch.utils.data.TensorDataset"
# An option may also be set, or the place of every new tensor changed, where no argument shows it.
_WORKERS_IN_COMMENT = re.compile(r"#.*\bnum_workers\b")
# Nothing is copied to them from pinned memory, and what else they want of a loader is not known here.
_OTHER_DEVICES = re.compile(r"\btorch_xla\b|\bmps\b")
_INDICES = re.compile(r"(^|(?<!edge)_)(idx|index|indices|ids|nodes|seeds)$", re.IGNORECASE)


@dataclass(eq=False, slots=True)
class Loader:
    """A place where a data loader is built. `site` is the call that the options are written in."""

    site: Call
    class_name: str
    built: frozenset[cst.CSTNode]  # the calls that create the object: `site`, or those of a subclass or partial
    calls: tuple[Call, ...]  # where an option may stand, the innermost first
    model: Model = field(repr=False)
    moves: list[Move] = field(default_factory=list)
    constructor: Call | None = None  # of a subclass, which hands the arguments of `site` on: it may add keywords
    keeps_iterator: bool = False  # each pass goes on with the iterator of the one before
    taken: frozenset[str] | None = None  # names of what a subclass takes for itself, if all else it hands on by keyword

    def option(self, name: str) -> Argument:
        position = CLASSES[self.class_name].get(name)
        if self.taken is not None:
            return self._handed_on(name, position)
        if self.constructor is not None and (added := self.constructor.argument(name)).given:
            return added
        found = [call.argument(name, _shifted(call, position)) for call in self.calls]
        given = [argument for argument in found if not argument.absent]
        return given[0] if given else Argument(ArgumentState.ABSENT)

    def _handed_on(self, name: str, position: int | None) -> Argument:
        """What a subclass with a constructor of its own gives to the loader, or hands on to it."""
        made, hidden = self.constructor, Argument(ArgumentState.HIDDEN)
        added = made.argument(name, position) if made is not None else hidden
        if added.given:
            return added if made is not None and made.function.cls in self.model.classes else hidden
        return hidden if self.taken is None or name in self.taken else self.site.argument(name)

    @property
    def is_graphs(self) -> bool:
        return self.class_name.startswith("torch_geometric.")

    @property
    def needs_torch(self) -> str:
        """The oldest release with whose time batches can be pinned and copied in the background: until
        torch_geometric 1.5, `to` of a batch of graphs knows no `non_blocking`, until 1.7 the batch no `pin_memory`."""
        return "1.8" if self.is_graphs else ""

    @property
    def is_pinned(self) -> bool | None:
        """None where the option depends on something that is not in sight, or on the machine."""
        option = self.option("pin_memory")
        if option.absent:
            return False
        return option.value.constant if option.given and isinstance(option.value.constant, bool) else None

    @property
    def workers(self) -> int | None:
        option = self.option("num_workers")
        if option.absent:
            return 0
        count = option.value.constant
        return count if option.given and isinstance(count, int) and option.value.dtype == "int" else None

    @property
    def name(self) -> str | None:
        """The variable that holds the loader, for messages."""
        statement = self.model.small_statement(self.site.node)
        if isinstance(statement, cst.Assign) and statement.value is self.site.node and len(statement.targets) == 1:
            return self.model.code(statement.targets[0].target)
        return None

    @property
    def makes_tensors(self) -> bool:
        """Whether batches are made of plain tensors: a collate function may return objects of another class."""
        collate = self.option("collate_fn")
        if collate.absent or collate.value.kind is Kind.NONE:
            return True
        functions = [self.model.function_of(node) for node in collate.value.origins]
        return bool(functions) and all(
            function is not None and returns_tensors(function, self.model) for function in functions
        )

    @property
    def is_one_batch(self) -> bool:
        """`batch_size=len(points)`, or a list of no more samples than that: there is no next batch that a worker could
        prepare."""
        size = self.option("batch_size")
        if isinstance(size.node, cst.Call) and self.model.call(size.node).callee == "builtins.len":
            return True
        count, taken = listed_samples(self.dataset().node, self.model), 1 if size.absent else size.value.constant
        return count is not None and isinstance(taken, int) and count <= taken

    @property
    def is_explained(self) -> bool:
        """An explicit `num_workers=0` with a comment on its line, or workers that are asked for in a comment among the
        arguments: somebody had a reason."""
        option = self.option("num_workers")
        if option.node is None:
            return _WORKERS_IN_COMMENT.search(self.model.code(self.site.node)) is not None
        text = self.model.source.text
        end = self.model.span(option.node)[1]
        return "#" in text[end:].partition("\n")[0]

    @property
    def is_made_per_input(self) -> bool:
        """An explicit number of workers, where each iteration, or each call of a function that is made for others to
        call, makes a loader: for the crops of one image there are fewer samples than it takes to start workers. An
        epoch goes through a whole dataset."""
        if not isinstance(self.option("num_workers").node, cst.Integer):
            return False
        loop, around = self.site.loop, self.site.function.parent
        if loop is not None and not _goes_through_splits(loop):
            return isinstance(loop.node, cst.While) or not counts_epochs(loop, self.model)
        return around is not None and not around.is_module

    @property
    def is_set_elsewhere(self) -> bool:
        """Whether the number of workers is a setting of another file, which the machine decides."""
        node = self.option("num_workers").node
        while isinstance(node, (cst.Attribute, cst.Subscript)):
            node = node.value
        binding = self.model.binding(node) if node is not None else None
        return binding is not None and any(write.imported is not None for write in binding.writes)

    def dataset(self) -> Argument:
        found = self.option("dataset")
        return found if found.given or not self.is_graphs else self.option("data")

    def memory(self) -> Memory:
        """Whether what is loaded lies in memory already."""
        if self.is_graphs:
            return Memory.HELD
        found = memory(self.dataset().node, self.model)
        is_encoded = found is Memory.HELD and encodes_text(self.option("collate_fn"), self.model)
        return Memory.ENCODED if is_encoded else found


def _goes_through_splits(loop: Loop) -> bool:
    """`{split: DataLoader(images[split]) for split in ("train", "val")}`"""
    return loop.is_comprehension and loop.iterates.items is not None


@once_for_each
def loaders_of(model: Model, function: Function) -> list[Loader]:
    """Those that a function builds."""
    return [loader for loader in loaders(model) if loader.site.function is function]


@once
def loaders(model: Model) -> list[Loader]:
    """The loaders of a file whose options can be relied upon and whose data is on the host."""
    text = model.source.text
    built = list(_built(model))
    if not built or sets_options(text, _settings(model)) or (_OTHER_DEVICES.search(text) and "cuda" not in text):
        return []
    is_here = model.uses_accelerator or "lightning" in model.frameworks
    if not (is_here or model.once(are_moved_in_sight) or any(map(is_taken_elsewhere, built))):
        return []
    found = [loader for loader in built if not _is_out_of_scope(loader)]
    if DEFAULT_CHANGED.search(text):
        found = [loader for loader in found if loader.is_pinned and loader.workers != 0]  # only the host is pinned
    by_origin: dict[cst.CSTNode, list[Loader]] = {}
    for loader in found:
        for origin in loader.built:
            by_origin.setdefault(origin, []).append(loader)
    for move in moves(model):
        for loader in {id(each): each for origin in move.origins for each in by_origin.get(origin, ())}.values():
            loader.moves.append(move)
    return found


def _settings(model: Model) -> frozenset[str]:
    """Names of objects that get attributes and are of a class that is no loader: `config = Config()`."""
    owners = (
        target.target.value
        for target in model.nodes_of(cst.AssignTarget)
        if isinstance(target, cst.AssignTarget) and isinstance(target.target, cst.Attribute)
    )
    objects = [(owner, model.value(owner)) for owner in owners]
    return frozenset(
        model.code(owner)
        for owner, value in objects
        if value.kind is Kind.INSTANCE and value.origins and not (value.ref or "Loader").endswith("Loader")
    )


# -- finding loaders -------------------------------------------------------------------------------------------------


def _built(model: Model) -> Iterator[Loader]:
    for call in model.calls:
        if call.callee in CLASSES and model.qualified(call.node.func) == call.callee:
            yield Loader(call, call.callee, frozenset([call.node]), (call,), model)
        elif call.callee == "functools.partial" and call.arguments:
            name = model.qualified(call.arguments[0].value)
            if name in CLASSES:
                yield from _partial(call, name, model)
    for cls in model.classes:
        name = next((base for base in cls.bases if base in CLASSES), None)
        if name is not None and yields_batches(cls):
            yield from _subclass(cls, name, model)
    yield from _of_foreign_subclasses(model)


def _partial(call: Call, name: str, model: Model) -> Iterator[Loader]:
    """Each use of a partial is a loader; its options are those of the partial and those of the use."""
    statement = model.small_statement(call.node)
    if not isinstance(statement, cst.Assign) or statement.value is not call.node:
        return
    binding = model.binding(statement.targets[0].target)
    if binding is None or len(binding.writes) != 1:
        return
    reads = set(binding.reads)
    uses = [use for use in model.calls if use.node.func in reads]
    if len(uses) == len(reads):
        yield Loader(call, name, frozenset(use.node for use in uses), (call, *uses), model)


def _subclass(cls: Class, name: str, model: Model) -> Iterator[Loader]:
    """A class of this file: its options stand in `super().__init__(...)`, or where it is built."""
    uses = [call for call in model.calls if call.targets_class is cls]
    made = constructor(cls)
    if "__init__" not in cls.methods or (made is not None and hands_arguments_on(made)):
        for call in uses:
            yield Loader(call, name, frozenset([call.node]), (call,), model, [], made, keeps_iterator(cls))
    elif made is not None and (taken := takes_for_itself(made)) is not None:
        for call in uses:
            nodes = frozenset([call.node])
            yield Loader(call, name, nodes, (call,), model, [], made, keeps_iterator(cls), taken)
    elif made is not None:
        built = frozenset(call.node for call in uses)
        yield Loader(made, name, built, (made,), model, keeps_iterator=keeps_iterator(cls))


def _of_foreign_subclasses(model: Model) -> Iterator[Loader]:
    """Objects of classes of other files that hand on the options in the call, and give none themselves."""
    for call in model.calls:
        if call.value.kind is not Kind.LOADER or call.callee is None or call.callee in CLASSES or call.targets_class:
            continue
        behind = model.class_behind(call.callee)
        cls = behind[1] if behind is not None else None
        name = next((base for base in cls.bases if base in CLASSES), None) if cls is not None else None
        if cls is None or name is None or not yields_batches(cls):
            continue
        made, nodes = constructor(cls), frozenset([call.node])
        if made is None or (hands_arguments_on(made) and not any(arg.keyword for arg in made.arguments)):
            if made is not None or "__init__" not in cls.methods:
                yield Loader(call, name, nodes, (call,), model, keeps_iterator=keeps_iterator(cls))
        elif (taken := takes_for_itself(made)) is not None:
            yield Loader(call, name, nodes, (call,), model, [], made, keeps_iterator(cls), taken)


def _shifted(call: Call, position: int | None) -> int | None:
    """The first positional argument of a partial is the class."""
    return position + 1 if position is not None and call.callee == "functools.partial" else position


# -- loaders that nothing is said about --------------------------------------------------------------------------------


def _is_out_of_scope(loader: Loader) -> bool:
    return (
        _is_test_function(loader.site.function)
        or is_for_host(loader.site.node, loader.model)
        or _yields_indices(loader)
        or _yields_nothing(loader)
        or (loader.is_pinned is not True and _supplies_accelerator(loader))  # pinning raises for tensors of a GPU
    )


def _yields_nothing(loader: Loader) -> bool:
    """`DataLoader([])`, which stands for no loader."""
    return isinstance(node := loader.dataset().node, cst.List) and not node.elements


def _is_test_function(function: Function) -> bool:
    """`test_loader` with an assertion; the `test_step` of a network is one of its steps."""
    name = function.qualname.rpartition(".")[2]
    if function.cls is not None and function.cls.is_module:
        return False
    return name.startswith("test_") and any(isinstance(node, cst.Assert) for node in walk(function.node))


def _yields_indices(loader: Loader) -> bool:
    """`DataLoader(train_idx)`: the batches are rows to look up elsewhere."""
    match loader.dataset().node:
        case (
            cst.Name(value=name) | cst.Attribute(attr=cst.Name(value=name)) | cst.Subscript(value=cst.Name(value=name))
        ):
            return _INDICES.search(name) is not None
    return False


def _supplies_accelerator(loader: Loader) -> bool:
    """Whether the loader yields, or is made of, what lies on an accelerator already: pinning that raises."""
    arguments = [arg.value for call in loader.calls for arg in call.arguments]
    if loader.workers == 0 and is_handed_in(loader.dataset().node, loader.model):
        return True
    if any(held_on_accelerator(argument, loader.model) for argument in arguments):
        return True
    if loader.dataset().value.ref == _TENSORS and loader.model.once(_moves_attributes):
        return True
    return loader.is_graphs and any(_is_moved_in_place(argument, loader.model) for argument in arguments)


def _moves_attributes(model: Model) -> bool:
    """`setattr(data, name, x.to(device))`: any attribute of an object may lie on an accelerator then."""
    moved = (call.argument("value", 2).node for call in model.calls_to("builtins.setattr"))
    return any(isinstance(node, cst.Call) and moves_to_accelerator(model.call(node), model) for node in moved)


def _is_moved_in_place(node: cst.BaseExpression, model: Model) -> bool:
    """A graph on which `.to(device)` was called: unlike a tensor, it is changed by that."""
    binding = model.binding(node)
    calls = (call for call in model.calls_to(".cuda", ".to") if call.receiver is not None)
    return binding is not None and any(
        model.binding(call.receiver) is binding and moves_to_accelerator(call, model) for call in calls if call.receiver
    )
