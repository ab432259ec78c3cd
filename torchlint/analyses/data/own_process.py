"""What ties a dataset to the process that made it: functions that cannot be pickled, open files, cached samples."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.loading.datasets import leaves
from torchlint.analyses.tensor_writes import Written, written
from torchlint.semantics.dataflow import text, upstream
from torchlint.semantics.tree import is_name, last_name, walk, without_subscripts
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.analyses.loading.loaders import Loader
    from torchlint.semantics.entities import Class, Function
    from torchlint.semantics.model import Model

_TRANSFORM = re.compile(r"(?i)transform|Compose\(")
_OPENING = re.compile(
    r"(builtins|gzip|bz2|lzma|tarfile|lmdb|rasterio|io)\.open|h5py\.File|zipfile\.ZipFile|sqlite3\.connect"
    r"|tables\.open_file|netCDF4\.Dataset|cv2\.VideoCapture|decord\.VideoReader"
)
_STREAMING = re.compile(r"(builtins|gzip|bz2|lzma|io)\.open")
_ADDING = frozenset("append appendleft add extend insert update setdefault".split())


def keeps_what_it_reads(loader: Loader) -> bool:
    """Whether the dataset puts what it has read, or how much, into attributes of its own, for the next time: a worker's
    copy of it ends with the epoch."""
    return any(_fills_attribute(method) for _, cls in classes_of(loader) for method in _sampling(cls))


def returns_what_it_kept(loader: Loader) -> bool:
    """Whether a sample that was read once is found in an attribute the next time: `self.cache[i] = image`, and `if i in
    self.cache`. From the second epoch on there is nothing to wait for."""
    for home, cls in classes_of(loader):
        methods = _sampling(cls)
        kept = {name for method in methods for name in _kept_in(method, home)}
        if any(_is_looked_up(node, method, kept) for method in methods for node in walk(method.node)):
            return True
    return False


def _kept_in(method: Function, home: Model) -> Iterator[str]:
    """Attributes that hold more than a count or a number for each label."""
    assigned = (node for node in walk(method.node) if isinstance(node, cst.Assign))
    for target, value in ((target.target, node.value) for node in assigned for target in node.targets):
        match target:
            case cst.Subscript(value=cst.Attribute(value=cst.Name(value=owner), attr=cst.Name(value=name))):
                if owner == method.own_name and not _is_number(value, name, home):
                    yield name


def _is_number(value: cst.BaseExpression, name: str, home: Model) -> bool:
    """`0`, and what is counted by the attribute itself: `self.seen.get(i, 0) + 1`, `len(self.seen)`"""
    asked = any(isinstance(part, cst.Attribute) and part.attr.value == name for part in walk(value))
    counted = isinstance(value, cst.BinaryOperation) or (isinstance(value, cst.Call) and is_name(value.func, "len"))
    return (asked and counted) or home.value(value).kind is Kind.NUMBER


def _is_looked_up(node: cst.CSTNode, method: Function, kept: set[str]) -> bool:
    """`i in self.cache`, `self.cache.get(i)`, `self.cache[i] is None`"""
    match node:
        case (
            cst.Comparison(comparisons=[cst.ComparisonTarget(operator=cst.In() | cst.NotIn(), comparator=held)])
            | cst.Comparison(
                left=cst.Subscript(value=held), comparisons=[cst.ComparisonTarget(operator=cst.Is() | cst.IsNot())]
            )
            | cst.Call(func=cst.Attribute(value=held, attr=cst.Name(value="get")))
        ):
            return isinstance(held, cst.Attribute) and held.attr.value in kept and is_name(held.value, method.own_name)
    return False


def changes_what_it_holds(loader: Loader) -> bool:
    """Whether the dataset writes to the memory of the samples that it holds: `image = self.images[i]; image += noise`.
    Workers do so in copies of them, for as long as they live."""
    return any(_writes_to_held(home, method) for home, cls in classes_of(loader) for method in _sampling(cls))


def _sampling(cls: Class) -> list[Function]:
    """`__getitem__`, and the methods that it calls."""
    getitem = cls.method("__getitem__")
    methods = [getitem] if getitem is not None else []
    for method in methods:  # it grows while the loop runs
        called = (call.target for call in method.calls)
        methods += [target for target in called if target is not None and target not in methods]
    return [method for method in methods if method.cls is not None and method.params]


def _writes_to_held(home: Model, method: Function) -> bool:
    for binding in method.scope.bindings.values():
        held = [write.value for write in binding.writes if write.kind == "assign" and not write.unpacked]
        if any(_is_part_of_self(method, value) for value in held) and written(home, binding) is Written.SURELY:
            return True
    return False


def _is_part_of_self(method: Function, value: cst.BaseExpression | None) -> bool:
    """`self.images[i]`"""
    whole = without_subscripts(value) if isinstance(value, cst.Subscript) else None
    return isinstance(whole, cst.Attribute) and is_name(whole.value, method.own_name)


def _fills_attribute(method: Function) -> bool:
    """`self.cache[path] = wave`, `self.reads += 1`, `self.seen.add(path)`"""
    for node in walk(method.node):
        match node:
            case (
                cst.AssignTarget(target=cst.Subscript(value=cst.Attribute(value=cst.Name(value=owner))))
                | cst.AugAssign(target=cst.Attribute(value=cst.Name(value=owner)))
                | cst.AugAssign(target=cst.Subscript(value=cst.Attribute(value=cst.Name(value=owner))))
            ):
                if owner == method.own_name:
                    return True
            case cst.Call(func=cst.Attribute(value=cst.Attribute(value=cst.Name(value=owner)), attr=added)):
                if owner == method.own_name and added.value in _ADDING:
                    return True
    return False


def holds_function(loader: Loader) -> bool:
    """Whether a dataset, or the loader for its batches, holds a lambda or a function of the function that makes it:
    neither can be pickled for a worker that is spawned. What only helped to make the dataset, as in
    `sorted(files, key=lambda file: file.name)`, is not held."""
    dataset, collate, model = loader.dataset().node, loader.option("collate_fn").node, loader.model
    if collate is not None and _is_local_function(collate, model):
        return True
    made_of = upstream(model, dataset) if dataset is not None else ()
    values = [dataset, *(write.value for binding in made_of for write in binding.writes)]
    calls = (node for value in values if value is not None for node in walk(value) if isinstance(node, cst.Call))
    if any(_is_local_function(part, model) for call in calls for part in _held_by(call)):
        return True
    classes = list(classes_of(loader))
    if any(binding.is_parameter for binding in made_of):
        if _transforms_by_lambda(model):
            return True
        classes = classes or [(model, cls) for cls in model.classes if cls.kind is Kind.DATASET]
    kept = ((home, part) for home, cls in classes for _, value in _attributes(cls) for part in _held(value))
    return any(_is_local_function(part, home) for home, part in kept)


def holds_open_file(loader: Loader) -> bool:
    """Whether a dataset opens a file when it is made: forked workers share the place in it, spawned ones cannot be sent
    it. One that is opened for the first sample is a worker's own."""
    return any(True for _ in _opened_when_made(loader))


def reads_on_in_file(loader: Loader) -> bool:
    """Whether such a file is one that is read from where the last read has ended: of several workers, each would get
    what the others leave."""
    return any(map(_STREAMING.fullmatch, _opened_when_made(loader)))


def _opened_when_made(loader: Loader) -> Iterator[str]:
    """The functions that a dataset opens files with that it holds from the start."""
    for home, cls in classes_of(loader):
        for method, value in _attributes(cls):
            is_early = method.name == "__init__" or any(call.function.name == "__init__" for call in method.callers)
            opened = (home.call(part).callee or "" for part in _held(value) if isinstance(part, cst.Call))
            yield from (name for name in opened if is_early and _OPENING.fullmatch(name))


def classes_of(loader: Loader) -> Iterator[tuple[Model, Class]]:
    """The classes of the datasets that a loader draws from, and the models of their files; of `Speech.splits(...)`,
    `Speech`."""
    dataset, model = loader.dataset().node, loader.model
    for source in leaves(dataset, model) if dataset is not None else ():
        call = model.call(source) if isinstance(source, cst.Call) else None
        if call is not None and call.targets_class is not None:
            yield model, call.targets_class
        elif call is not None and call.callee is not None:
            behind = model.class_behind(call.callee) or model.class_behind(call.callee.rpartition(".")[0])
            if behind is not None:
                yield behind


def _attributes(cls: Class) -> Iterator[tuple[Function, cst.BaseExpression]]:
    """What the methods of a class write to attributes of its objects."""
    for part in cls.lineage():
        for attribute in part.attributes.values():
            for write in attribute.writes:
                if write.value is not None and not write.unpacked:
                    yield write.function, write.value


def _held(value: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """A value, and what it holds: the entries of a display, what an object is made with."""
    yield value
    match value:
        case cst.IfExp():
            parts = [value.body, value.orelse]
        case cst.List() | cst.Tuple() | cst.Set():
            parts = [element.value for element in value.elements]
        case cst.Dict():
            parts = [element.value for element in value.elements]
        case cst.ListComp() | cst.SetComp():
            parts = [value.elt]
        case cst.Call():
            parts = list(_held_by(value))
        case _:
            parts = []
    for part in parts:
        yield from _held(part)


def _held_by(call: cst.Call) -> Iterator[cst.BaseExpression]:
    """What the object that a class makes is given."""
    if last_name(call.func)[:1].isupper():
        for arg in call.args:
            yield from _held(arg.value)


def _transforms_by_lambda(model: Model) -> bool:
    """Whether the file has a lambda among its transforms, which a dataset that is handed in may hold."""
    for node in model.nodes_of(cst.Lambda):
        statement = model.small_statement(node)
        if _TRANSFORM.search(model.function(node).name) or (statement and _TRANSFORM.search(text(statement))):
            return True
    return False


def _is_local_function(node: cst.BaseExpression, model: Model) -> bool:
    binding = model.binding(node) if isinstance(node, cst.Name) else None
    is_local = binding is not None and not binding.is_global and any(w.kind == "def" for w in binding.writes)
    return isinstance(node, cst.Lambda) or is_local
