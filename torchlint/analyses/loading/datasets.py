"""What a data loader is fed with: samples that lie in memory or have to be read, on the host or on an accelerator."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.devices.moves import is_accelerator, moves_to_accelerator, names_cuda_type
from torchlint.semantics.dataflow import given_to, writes_reaching
from torchlint.semantics.entities import Binding
from torchlint.semantics.values import Kind, Place, Value

if TYPE_CHECKING:
    from torchlint.semantics.entities import Call, Class, Function
    from torchlint.semantics.model import Model


class Memory(Enum):
    """Where the samples of a dataset are before a loader asks for them."""

    HELD = "held"  # a sample is an index into something that is in memory
    ENCODED = "encoded"  # it is text that is in memory, and looked up when a batch is put together
    READ = "read"  # a sample is read or decoded when it is asked for
    COMPUTED = "computed"  # more is done for it than to look it up, in a class that is in sight
    STREAM = "stream"  # an iterable dataset: each worker would yield all of it
    UNKNOWN = "unknown"


_WORK = {Memory.READ, Memory.COMPUTED}
_WRAPPERS = re.compile(
    r"torch\.utils\.data\.(Subset|ConcatDataset|random_split)|sklearn\.model_selection\.train_test_split"
)
# What holds its arguments, and is where they are.
_PASSES_ON = re.compile(
    r"torch\.utils\.data\.(\w*Dataset|Subset|random_split)|sklearn\.model_selection\.train_test_split|builtins\.\w+|\w+(\.\w+)*\.transforms\.\w+"
)
_HELD = re.compile(r"torch\.utils\.data\.TensorDataset|torch_geometric\..*|builtins\.(list|zip)")
_STREAMS = re.compile(r"torch\.utils\.data\.(IterableDataset|ChainDataset)|(webdataset|torchdata)\..*")
_CHANGES = re.compile(r"(?i)transform|augment")
_READ = re.compile(r"(torchvision|torchaudio)\.datasets\.[A-Z]\w*")
# Calls in `__getitem__` that look at what is there, or make a tensor of it; and calls that read a file or decode one.
_INDEXING = re.compile(
    r"torch\.(\w*[tT]ensor|from_numpy|stack|cat|zeros|ones|full|randint|Tensor\.\w+)|builtins\.(?!open)\w+"
    r"|numpy(\.random)?\.\w+|random\.\w+"
)
_CONVERTING = frozenset(
    """
    float double half long int bool astype copy clone item tolist to view reshape squeeze unsqueeze permute transpose
    size numel items values keys
    """.split()
)
_READING = re.compile(
    r"builtins\.open|numpy\.(load|memmap|fromfile|loadtxt|genfromtxt)|torch\.load|torchaudio\.load|torchvision\.io\..*"
    r"|(PIL|cv2|imageio|skimage|librosa|soundfile|h5py|nibabel|pydicom|rasterio|scipy\.io|tifffile|decord)\..*"
    r"|pandas\.read_\w+|pickle\.load|json\.load"
)


def held_on_accelerator(node: cst.BaseExpression, model: Model) -> bool:
    """Whether an argument of a loader is, or is made of, tensors on an accelerator or code that puts them there."""
    asked: set[cst.CSTNode] = set()  # `rows = rows.map(f)`, often enough in one function, has very many ways back
    waiting = [node]
    while waiting:
        part = waiting.pop()
        value = model.value(part)
        if _on_accelerator(value) or (value.kind is Kind.STRING and str(value.constant).startswith("cuda")):
            return True
        sources = [source for source in _sources(part, model) if source not in asked]
        if any(_makes_on_accelerator(source, model) for source in sources):
            return True
        asked.update(sources)
        waiting.extend(inner for source in sources for inner in _parts(source, model))
    return False


def _makes_on_accelerator(source: cst.CSTNode, model: Model) -> bool:
    match source:
        case cst.FunctionDef() | cst.Lambda():
            return _moves(model.function_of(source), model)
        case cst.Call():
            return _built_on_accelerator(model.call(source), model)
    return False


def _parts(source: cst.CSTNode, model: Model) -> Iterator[cst.BaseExpression]:
    """What a list holds, and what goes into what a call makes."""
    if isinstance(source, (cst.List, cst.Tuple)):
        yield from (element.value for element in source.elements)
    elif isinstance(source, cst.Call):
        call = model.call(source)
        passes_on = call.targets_class is not None or _PASSES_ON.fullmatch(call.callee or "")
        for arg in call.arguments:
            if passes_on or (arg.keyword is not None and arg.keyword.value.endswith("transform")):
                yield arg.value


def _built_on_accelerator(call: Call, model: Model) -> bool:
    cls = call.targets_class
    if cls is not None and any(_moves(method, model) for method in _methods(cls)):
        return True
    if _computed_elsewhere(call, model) or _is_part_of_moved(call):
        return True
    if any(_moves(function, model) for function in _handed_out(call, model)):
        return True
    return any(_on_accelerator(model.value(arg.value)) for arg in call.arguments)


def _handed_out(call: Call, model: Model) -> Iterator[Function]:
    """`def collate_to(device): def collate(samples): ... ; return collate`: the functions that another returns."""
    returned = call.target.results if call.target is not None else ()
    origins = (origin for node in returned for origin in model.value(node).origins)
    return (function for origin in origins if (function := model.function_of(origin)) is not None)


def _is_part_of_moved(call: Call) -> bool:
    """`data.train_val_test_split()` of a graph that was moved as a whole."""
    owner = call.receiver_value
    return owner.is_(Kind.UNKNOWN, Kind.TENSOR) and owner.place is Place.ACCELERATOR


def _computed_elsewhere(call: Call, model: Model) -> bool:
    """Whether a class or function of another file makes the samples, and copies something to an accelerator."""
    found = model.elsewhere(call)
    if found is not None:
        home, function = found
        if any(_puts_on_accelerator(step, home) for step in calls_made(function)):
            return True
    behind = model.class_behind(call.callee) if call.callee is not None and call.targets_class is None else None
    return behind is not None and any(_moves(method, behind[0]) for method in _methods(behind[1]))


def is_handed_in(node: cst.BaseExpression | None, model: Model) -> bool:
    """Whether a dataset is a list that a function got from another file: nothing says where its samples are."""
    return node is not None and any(_is_given_list(source, model) for source in leaves(node, model))


def _is_given_list(source: cst.CSTNode, model: Model) -> bool:
    binding = model.binding(source) if model.value(source).kind is Kind.LIST else None
    return binding is not None and binding.is_parameter and not binding.scope_function.callers


def memory(node: cst.BaseExpression | None, model: Model, wrappers: frozenset[cst.CSTNode] = frozenset()) -> Memory:
    """Where the samples of a dataset are. Of a dataset that is one of several, or made of them, all must agree, but for
    few that lie in memory. In `data = Part(data)` of a loop, what is wrapped may be a wrapper once more, of which
    nothing new is learnt."""
    if node is None or _is_stretch(node, model):
        return Memory.UNKNOWN if node is None else Memory.HELD
    sources = [source for source in leaves(node, model) if source not in wrappers]
    places = [_memory(source, model, wrappers) for source in sources] or [Memory.UNKNOWN]
    found = set(places)
    if found == {Memory.UNKNOWN} and not any(_is_made_here(source, model) for source in sources):
        value = model.value(node)
        return _memory_by_name(value.ref, model) if value.kind is Kind.DATASET else Memory.UNKNOWN
    if Memory.STREAM in found:
        return Memory.STREAM
    if len(found) > 1:
        is_held = 2 * places.count(Memory.HELD) >= len(places) and _is_one_of(sources, node, model)
        return Memory.COMPUTED if found & _WORK and not is_held else Memory.UNKNOWN
    return found.pop()


def _is_one_of(sources: list[cst.CSTNode], node: cst.BaseExpression, model: Model) -> bool:
    """Whether a dataset is one of several, as different branches make them, and is not made of several, nor taken out
    of them."""
    return not isinstance(node, cst.Subscript) and set(sources) <= set(_sources(node, model))


def _is_stretch(node: cst.BaseExpression, model: Model) -> bool:
    """`samples[a:b]`, which lists and arrays have, but no dataset of torch; also under a name of its own."""
    binding = model.binding(node) if isinstance(node, cst.Name) else None
    cut = [write.value for write in binding.writes] if binding is not None else [node]
    return bool(cut) and all(
        isinstance(part, cst.Subscript) and any(isinstance(element.slice, cst.Slice) for element in part.slice)
        for part in cut
    )


def returns_tensors(function: Function, model: Model) -> bool:
    """Whether a collate function returns tensors, or containers of them."""
    returned = [node.value for node in function.returns]
    if isinstance(function.node, cst.Lambda):
        returned = [function.node.body]
    return bool(returned) and all(node is not None and _is_made_of_tensors(model.value(node)) for node in returned)


def _is_made_of_tensors(value: Value) -> bool:
    if not value.is_container:
        return value.kind is Kind.TENSOR
    parts = [*(value.items or ()), *(part for _, part in value.known_fields)]
    if not parts and value.element is not None:
        parts = [value.element]
    return bool(parts) and all(_is_made_of_tensors(part) for part in parts)


def _on_accelerator(value: Value, depth: int = 0) -> bool:
    if value.place is Place.ACCELERATOR or (value.kind is Kind.DEVICE and value.place is not Place.HOST):
        return True
    parts = [*(value.items or ()), *(part for _, part in value.known_fields)]
    if value.element is not None:
        parts.append(value.element)
    return depth < 4 and any(_on_accelerator(part, depth + 1) for part in parts)


def _moves(function: Function | None, model: Model) -> bool:
    return function is not None and any(_puts_on_accelerator(call, model) for call in function.calls)


def _puts_on_accelerator(call: Call, model: Model) -> bool:
    device = call.argument("device")
    if names_cuda_type(call.node.func, model):
        return True
    return moves_to_accelerator(call, model) or (device.given and is_accelerator(device.node, model))


def _methods(cls: Class) -> Iterator[Function]:
    for part in cls.lineage():
        yield from part.methods.values()


def _sources(node: cst.BaseExpression, model: Model) -> list[cst.CSTNode]:
    """The expressions or definitions that an expression stands for, as far as the file shows them."""
    match node:
        case cst.Subscript():
            return [part for source in _sources(node.value, model) for part in _members(source, model)]
        case cst.IfExp():
            return [*_sources(node.body, model), *_sources(node.orelse, model)]
        case cst.Name() | cst.Attribute():
            return _origins(node, model)
        case _:
            return [node]


def _members(source: cst.CSTNode, model: Model) -> list[cst.CSTNode]:
    """The datasets of a list or dict of datasets, one of which is taken; what is one dataset, or holds samples, as it
    is."""
    match source:
        case cst.List() | cst.Tuple() | cst.Dict():
            held = [element.value for element in source.elements]
        case cst.ListComp():
            held = [source.elt]
        case cst.DictComp():
            held = [source.value]
        case _:
            return [source]
    if not held or any(model.value(part).kind is not Kind.DATASET for part in held):
        return [source]
    named = (_origins(part, model) if isinstance(part, (cst.Name, cst.Attribute)) else [part] for part in held)
    return [origin for origins in named for origin in origins]


def _origins(node: cst.Name | cst.Attribute, model: Model) -> list[cst.CSTNode]:
    """What a name stands for; of a parameter, what the calls in this file give it, be it through other functions."""
    found: list[cst.CSTNode] = []
    asked: set[Binding] = set()
    waiting: list[cst.BaseExpression] = [node]
    while waiting:
        part = waiting.pop()
        named = _named(part, model) if isinstance(part, (cst.Name, cst.Attribute)) else []
        if not isinstance(named, Binding):
            found += named or ([part] if part is not node else [])
        elif named not in asked:
            asked.add(named)
            given = [arg for call in named.scope_function.callers for arg in given_to(call, named)]
            waiting += reversed(given)
            if not given and part is not node:
                found.append(part)
    return found


def _named(node: cst.Name | cst.Attribute, model: Model) -> list[cst.CSTNode] | Binding:
    """What a name stands for, or the parameter that it is."""
    origins = model.value(node).origins
    if origins:
        return list(origins)
    binding = model.binding(node)
    values = [write.value for write in writes_reaching(model, binding, node)] if binding is not None else []
    if binding is not None and binding.is_parameter and values == [None]:
        return binding
    found: list[cst.CSTNode] = []
    for value in values:
        # One step back: `train, test = random_split(images, ...)`, `points = all_points[:100]`.
        inner = value.value if isinstance(value, cst.Subscript) else value
        if inner is None:
            return []
        found.extend(model.value(inner).origins or [inner])
    return found


def leaves(node: cst.BaseExpression, model: Model) -> Iterator[cst.CSTNode]:
    """The datasets that a dataset is a part of, or consists of."""
    asked: set[cst.CSTNode] = set()
    waiting = [node]
    while waiting:
        part = waiting.pop(0)
        for source in _sources(part, model) or [part]:
            if source in asked:
                continue
            asked.add(source)
            arguments = source.args if isinstance(source, cst.Call) else ()
            wraps = isinstance(source, cst.Call) and _WRAPPERS.fullmatch(model.call(source).callee or "")
            if not wraps or not arguments:
                yield source
                continue
            inner = arguments[0].value
            if isinstance(inner, (cst.List, cst.Tuple)):
                waiting.extend(element.value for element in inner.elements)
            else:
                waiting.append(inner)


def _memory(source: cst.CSTNode, model: Model, wrappers: frozenset[cst.CSTNode]) -> Memory:
    if isinstance(source, cst.Call):
        return _memory_of_call(model.call(source), model, wrappers)
    if isinstance(source, (cst.List, cst.ListComp, cst.Tuple, cst.Dict, cst.DictComp)):
        return Memory.HELD
    held = isinstance(source, cst.BaseExpression) and model.value(source).is_(Kind.TENSOR, Kind.ARRAY, Kind.LIST)
    return Memory.HELD if held else _memory_by_name(_annotated(source, model), model)


def _annotated(source: cst.CSTNode, model: Model) -> str | None:
    """The class that a parameter is said to be of."""
    binding = model.binding(source)
    owners = [model.parent(write.target) for write in binding.writes] if binding is not None else []
    match owners:
        case [cst.Param(annotation=cst.Annotation(annotation=kind))]:
            return model.qualified(kind)
    return None


def _memory_of_call(call: Call, model: Model, wrappers: frozenset[cst.CSTNode]) -> Memory:
    cls = class_of(call, model)
    if cls is not None:
        found = _memory_of_class(cls)
        wrapped = [arg.value for arg in call.arguments if model.value(arg.value).kind is Kind.DATASET]
        if found is Memory.HELD and wrapped:
            inner = (memory(part, model, wrappers | {call.node}) for part in wrapped)
            return Memory.COMPUTED if any(where in _WORK for where in inner) else Memory.UNKNOWN
        return Memory.COMPUTED if found is Memory.UNKNOWN and _is_told_to_transform(call, model) else found
    name = call.callee or ""
    streaming = call.argument("streaming")
    if _STREAMS.fullmatch(name) or (streaming.given and streaming.value.constant is not False):
        return Memory.STREAM
    above = model.parent(call.node)
    declared = model.qualified(above.annotation.annotation) if isinstance(above, cst.AnnAssign) else None
    if _READ.fullmatch(declared or name):
        return Memory.READ
    if _HELD.fullmatch(declared or name) or call.value.is_(Kind.TENSOR, Kind.ARRAY, Kind.LIST):
        return Memory.HELD
    return Memory.COMPUTED if _is_told_to_transform(call, model) else _memory_elsewhere(call, model)


def _memory_elsewhere(call: Call, model: Model) -> Memory:
    """Of the datasets that a function of another file makes and returns, be it each in a branch of its own: all must
    agree, for of several it is not asked which is meant."""
    entered = model.elsewhere(call)
    if entered is None:
        return Memory.UNKNOWN
    home, function = entered
    parts = (part for node in function.returns if node.value is not None for part in _parts_returned(node.value))
    found = {memory(part, home) for part in parts if home.value(part).kind is Kind.DATASET}
    if len(found) > 1:
        return Memory.COMPUTED if found <= _WORK else Memory.UNKNOWN
    return found.pop() if found else Memory.UNKNOWN


def _parts_returned(node: cst.BaseExpression) -> list[cst.BaseExpression]:
    return [element.value for element in node.elements] if isinstance(node, cst.Tuple) else [node]


def _is_told_to_transform(call: Call, model: Model) -> bool:
    """`Photos(root, transform=crop)`: whatever the class does, each sample goes through that."""
    given = [arg for arg in call.arguments if arg.keyword is not None and _CHANGES.search(arg.keyword.value)]
    return any(not model.value(arg.value).is_(Kind.NONE, Kind.NUMBER) for arg in given)


def _is_made_here(source: cst.CSTNode, model: Model) -> bool:
    """Whether it is seen how a dataset is made, and not only what class it is of."""
    return isinstance(source, cst.Call) and class_of(model.call(source), model) is not None


def _memory_by_name(name: str | None, model: Model) -> Memory:
    """Where an object of the class has its samples."""
    if name is None or _READ.fullmatch(name):
        return Memory.UNKNOWN if name is None else Memory.READ
    behind = model.class_behind(name)
    return _memory_of_class(behind[1]) if behind is not None else Memory.UNKNOWN


def class_of(call: Call, model: Model) -> Class | None:
    """The class, of this file or another, that a call makes an object of."""
    if call.targets_class is not None or call.callee is None:
        return call.targets_class
    behind = model.class_behind(call.callee)
    return behind[1] if behind is not None else None


def _memory_of_class(cls: Class) -> Memory:
    bases = [base for part in cls.lineage() for base in part.bases if base is not None]
    if any(_STREAMS.fullmatch(base) for base in bases) or (cls.method("__iter__") and not cls.method("__getitem__")):
        return Memory.STREAM
    getitem = cls.method("__getitem__")
    if getitem is None:
        return Memory.READ if any(_READ.fullmatch(base) for base in bases) else Memory.UNKNOWN
    calls = list(calls_made(getitem))
    if any(_READING.fullmatch(call.callee or "") for call in calls):
        return Memory.READ
    if all(_INDEXING.fullmatch(call.callee or "") or call.method in _CONVERTING for call in calls):
        return Memory.HELD
    return Memory.COMPUTED


def calls_made(function: Function, depth: int = 0) -> Iterator[Call]:
    """The calls that a function makes, those of the functions of this file that it calls included."""
    for call in function.calls:
        if call.target is not None and depth < 3:
            yield from calls_made(call.target, depth + 1)
        else:
            yield call
