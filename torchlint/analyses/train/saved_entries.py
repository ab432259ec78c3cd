"""What the `torch.save` calls of a project put into a checkpoint that a place loads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.train.plain_values import has_plain_state, is_plain
from torchlint.semantics.arguments import string_value
from torchlint.semantics.dataflow import parameter_of_function, reaches
from torchlint.semantics.tree import is_name
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Call, Function, Write
    from torchlint.semantics.model import Model
    from torchlint.source import Source

_SAVES = re.compile(r"\btorch\.save\(|from torch import .*\bsave\b")
# Nothing that a string can be looked up in.
_NO_DICTS = frozenset(
    {Kind.MODULE, Kind.TENSOR, Kind.BATCH, Kind.ARRAY, Kind.LIST, Kind.TUPLE, Kind.STRING, Kind.NUMBER}
)
_MOST_FILES = 12
_MOST_CALLS = 40
_DEPTH = 4


@dataclass(slots=True)
class Saved:
    """A dict that is saved, with the values under its keys in the file of `model`. Of one that is not `known` there may
    be more to it."""

    model: Model
    entries: list[tuple[str | None, Model, cst.BaseExpression]] = field(default_factory=list)
    known: bool = True

    @property
    def keys(self) -> set[str]:
        return {key for key, _, _ in self.entries if key is not None}

    def doubt(self) -> str | None:
        """What stands in the way of loading it with `weights_only=True`."""
        name = self.model.path.name
        if not self.known:
            return f"not all that {name} saves is in sight"
        for key, model, value in self.entries:
            if not is_plain(model, value, key):
                what = f"`{key}`, which" if key is not None else "an entry that"
                return f"{name} saves {what} may be more than tensors and plain values"
        return None


def doubt_of(model: Model, keys: set[str]) -> str | None:
    """Why a checkpoint of which these entries are read may hold more than tensors and plain values; None where every
    place that may have written it is in sight and saves nothing else."""
    own = _written(model, [model], keys)
    if not any(keys <= saved.keys for saved in own):
        writers = [source for source in model.files_beside() if model.once_of(source, _saves)]
        if len(writers) > _MOST_FILES:
            return "too many files of the project save something"
        own += _written(model, [home for source in writers if (home := model.model_of(source)) is not None], keys)
    if not any(saved.keys & keys for saved in own):
        return "no `torch.save` of the project shows what the checkpoint holds"
    doubts = (saved.doubt() for saved in own)
    return next((doubt for doubt in doubts if doubt is not None), None)


def _saves(source: Source) -> bool:
    return _SAVES.search(source.text) is not None


def _written(model: Model, homes: list[Model], keys: set[str]) -> list[Saved]:
    """What the files save that may have these entries."""
    found = []
    for home in homes:
        for call in home.calls_to("torch.save"):
            arg = next((arg for arg in call.arguments if arg.keyword is None or arg.keyword.value == "obj"), None)
            dicts = _Dicts(model).of(home, arg.value) if arg is not None else []
            found += [saved for saved in dicts if not saved.known or saved.keys & keys]
    return found


class _Dicts:
    """The dicts that an expression may be. `asked` is the file from which the project is looked at."""

    def __init__(self, asked: Model) -> None:
        self.asked = asked
        self._known: dict[Binding, list[tuple[Model, cst.BaseExpression]]] = {}

    def of(self, model: Model, node: cst.BaseExpression, depth: int = _DEPTH) -> list[Saved]:
        """None of what has no entries by name, such as a tensor or the state dict of a network."""
        if depth == 0:
            return [Saved(model, known=False)]
        match node:
            case cst.Dict():
                return [self._literal(model, node, depth)]
            case cst.Call():
                return self._of_call(model, model.call(node), depth)
            case cst.IfExp():
                return self.of(model, node.body, depth) + self.of(model, node.orelse, depth)
        if model.value(node).kind in _NO_DICTS:
            return []
        binding = model.binding(node)
        if binding is None:
            return [Saved(model, known=False)]
        return self._of_variable(model, binding, node, depth)

    def _of_call(self, model: Model, call: Call, depth: int) -> list[Saved]:
        if call.callee == "torch.load":  # what was loaded is saved once more
            return []
        if call.method == "state_dict":
            return [] if has_plain_state(model, call) else [Saved(model, known=False)]
        if call.callee in ("builtins.dict", "collections.OrderedDict", "copy.deepcopy"):
            made = Saved(model)
            for arg in call.arguments:
                if arg.keyword is not None:
                    made.entries.append((arg.keyword.value, model, arg.value))
                else:
                    self._merge(made, model, arg.value, depth)
            return [made]
        if call.target is not None and call.target.returns and not call.target.is_generator:
            returned = [each.value for each in call.target.returns if each.value is not None]
            return [saved for value in returned for saved in self.of(model, value, depth - 1)]
        return [] if call.value.kind in _NO_DICTS else [Saved(model, known=False)]

    def _literal(self, model: Model, node: cst.Dict, depth: int) -> Saved:
        made = Saved(model)
        for element in node.elements:
            if isinstance(element, cst.DictElement):
                made.entries.append((string_value(element.key), model, element.value))
            else:
                self._merge(made, model, element.value, depth)
        return made

    def _merge(self, made: Saved, model: Model, node: cst.BaseExpression, depth: int) -> None:
        """The entries of another dict join those of one."""
        parts = self.of(model, node, depth - 1)
        made.known = made.known and bool(parts) and all(part.known for part in parts)
        for part in parts:
            made.entries += part.entries

    def _of_variable(self, model: Model, binding: Binding, node: cst.BaseExpression, depth: int) -> list[Saved]:
        found = []
        for write in binding.writes:
            if write.kind == "parameter":
                found += self._of_parameter(model, binding, depth)
            elif write.kind != "assign" or write.unpacked or write.value is None:
                found.append(Saved(model, known=False))
            elif not is_name(write.value, "None") and _may_be(model, binding, write, node):
                found += self.of(model, write.value, depth - 1)
        for saved in found:
            self._add_later(saved, model, binding, depth)
        return found if binding.writes else [Saved(model, known=False)]

    def _add_later(self, saved: Saved, model: Model, binding: Binding, depth: int) -> None:
        """`state["epoch"] = epoch` and `state.update(...)` behind the place where the dict is made."""
        for read in binding.reads:
            parent = model.parent(read)
            above = model.parent(parent) if parent is not None else None
            match parent, above:
                case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=key))]), cst.AssignTarget():
                    statement = model.parent(above)
                    if parent.value is read and isinstance(statement, cst.Assign):
                        saved.entries.append((string_value(key), model, statement.value))
                case cst.Attribute(attr=cst.Name(value="update")), cst.Call(args=[cst.Arg(value=more)]):
                    self._merge(saved, model, more, depth)

    def _of_parameter(self, model: Model, binding: Binding, depth: int) -> list[Saved]:
        """What the calls of the function in the project give for its parameter."""
        if binding not in self._known:
            self._known[binding] = list(self._given(model, binding))
        given = self._known[binding]
        if not given or len(given) > _MOST_CALLS:
            return [Saved(model, known=False)]
        return [saved for home, node in given for saved in self.of(home, node, depth - 1)]

    def _given(self, model: Model, binding: Binding) -> Iterator[tuple[Model, cst.BaseExpression]]:
        function = binding.scope_function
        for home in self._homes(model, f"{function.name}("):
            for call in home.calls:
                if _name_of(call) != function.name or (call.callee or "").startswith("torch."):
                    continue
                if call.target is not None and call.target is not function:
                    continue
                for arg in call.arguments:
                    if parameter_of_function(call, function, arg) is binding or _is_packed(
                        function, binding, call, arg
                    ):
                        yield home, arg.value

    def _homes(self, model: Model, word: str) -> Iterator[Model]:
        """The models of the files of the project with a word; none where too many have it."""
        around = [self.asked.source, *self.asked.files_beside()]
        others = [other for other in around if other.path != model.source.path and word in other.text]
        if len(others) > _MOST_FILES:
            return
        yield model
        for other in others:
            home = self.asked if other is self.asked.source else self.asked.model_of(other)
            if home is not None:
                yield home


def _name_of(call: Call) -> str | None:
    func = call.node.func
    return func.value if isinstance(func, cst.Name) else call.method


def _may_be(model: Model, binding: Binding, write: Write, node: cst.BaseExpression) -> bool:
    """Whether what is written may still be there where the variable is read."""
    return (
        write.value is None or model.function(node) is not write.function or reaches(model, binding, write.value, node)
    )


def _is_packed(function: Function, binding: Binding, call: Call, arg: cst.Arg) -> bool:
    """Whether the argument is the first of those that `*args` takes."""
    params = function.node.params if isinstance(function.node, (cst.FunctionDef, cst.Lambda)) else None
    star = params.star_arg if params is not None else None
    return isinstance(star, cst.Param) and star.name.value == binding.name and arg is call.arguments[0]
