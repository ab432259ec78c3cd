"""What signatures and annotations say of values: of parameters, and of variables that are declared."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics import frameworks, transfer
from torchlint.semantics import vocabulary as words
from torchlint.semantics.arguments import string_value
from torchlint.semantics.calls import Calls
from torchlint.semantics.entities import Function
from torchlint.semantics.names import Names
from torchlint.semantics.scopes import Scopes
from torchlint.semantics.tree import is_name
from torchlint.semantics.values import STRING, UNKNOWN, Kind, Place, Value

if TYPE_CHECKING:
    from torchlint.semantics.foreign import Imports

_ANNOTATIONS = {
    "torch.Tensor": Value(Kind.TENSOR),
    "torch.nn.Module": Value(Kind.MODULE),
    "torch.optim.Optimizer": Value(Kind.OPTIMIZER),
    "torch.utils.data.DataLoader": Value(Kind.LOADER),
    "torch.utils.data.Dataset": Value(Kind.DATASET),
    "torch.device": Value(Kind.DEVICE),
    "torch.amp.GradScaler": Value(Kind.SCALER),
    "torch.cuda.amp.GradScaler": Value(Kind.SCALER),
    "numpy.ndarray": Value(Kind.ARRAY),
    "builtins.int": transfer.INTEGER,
    "builtins.float": Value(Kind.NUMBER, dtype="float"),
    "builtins.bool": transfer.BOOLEAN,
    "builtins.str": STRING,
    "builtins.list": Value(Kind.LIST),
    "builtins.dict": Value(Kind.DICT),
}
_ACCELERATORS = ("cuda", "gpu", "mps", "xpu")
_CLASS_NAME = re.compile(r"cls|\w+_(class|cls|type)")


def _says_more(declared: Value | None, known: Value) -> bool:
    """Of which class a network is, where callers show no more than that it is one."""
    are_modules = declared is not None and declared.kind is known.kind is Kind.MODULE
    return are_modules and known.ref is None and declared.ref not in (None, "torch.nn.Module")  # type: ignore[union-attr]


class Declared(Calls):
    """Adds what is declared to the evaluation of expressions."""

    def __init__(self, scopes: Scopes, names: Names, imports: Imports | None = None) -> None:
        super().__init__(scopes, names, imports)
        self._classes_by_name = {cls.qualname: cls for cls in reversed(scopes.classes)}

    def _parameter(self, function: Function, name: str) -> Value:
        if isinstance(function.node, cst.Module):
            return UNKNOWN
        params = function.node.params
        listed = [*params.posonly_params, *params.params, *params.kwonly_params]
        param = next((p for p in listed if p.name.value == name), None)
        if param is None:
            handed: Value = self.known.parameters.get(function, {}).get(name, UNKNOWN)
            return handed
        if function.cls is not None and function.own_name == name:
            return self._self_value(function)
        value = self.known.parameters.get(function, {}).get(name)
        annotated = frameworks.parameter(function, name) or self._annotation(param.annotation)
        if annotated is not None and annotated.kind is Kind.MODULE and self._stands_for_class(param):
            annotated = None
        if value is None or value.kind is Kind.UNKNOWN:
            value = annotated or self._accelerator_by_default(param) or value or UNKNOWN
        elif _says_more(annotated, value):
            value = value.but(ref=annotated.ref)  # type: ignore[union-attr]
        if is_name(param.default, "None"):
            value = value.but(optional=True)
        return self.refined(self.scopes.bindings[param.name], value)

    def _stands_for_class(self, param: cst.Param) -> bool:
        """`loss_class: nn.Module`, `layer: nn.Module = nn.GELU`: what is meant is `type[nn.Module]`."""
        default = self.known.defaults.get(param.default, UNKNOWN) if param.default is not None else UNKNOWN
        return default.kind is Kind.CLASS or _CLASS_NAME.fullmatch(param.name.value) is not None

    def _accelerator_by_default(self, param: cst.Param) -> Value | None:
        """`device="cuda"`, of a function whose callers are out of sight: what lives there may be on a GPU."""
        default = self.known.defaults.get(param.default, UNKNOWN) if param.default is not None else UNKNOWN
        if default.kind is Kind.DEVICE:
            return Value(Kind.DEVICE, place=default.place) if default.place is Place.ACCELERATOR else None
        is_name = isinstance(default.constant, str) and default.constant.startswith(_ACCELERATORS)
        return Value(Kind.DEVICE, place=Place.ACCELERATOR) if is_name else None

    def _self_value(self, function: Function) -> Value:
        assert function.cls is not None
        if function.takes_class:
            return Value(Kind.CLASS, ref=function.cls.ref, origins=frozenset([function.cls.node]))
        return Value(function.cls.kind, ref=function.cls.ref)

    def _annotation(self, annotation: cst.Annotation | None) -> Value | None:
        if annotation is None:
            return None
        node = annotation.annotation
        if isinstance(node, cst.Subscript):
            name = self.names.qualified(node.value)
            if name is not None and name.startswith("jaxtyping.") and len(node.slice) == 2:
                return self._jaxtyping(node)
            if name == "typing.Optional" and isinstance(node.slice[0].slice, cst.Index):
                return self._optional(self._annotated_as(node.slice[0].slice.value))
            return _ANNOTATIONS.get(name or "")
        if isinstance(node, cst.BinaryOperation):
            return self._optional(self._annotated_as(node.left))
        return self._annotated_as(node)

    @staticmethod
    def _optional(value: Value | None) -> Value | None:
        return value.but(optional=True) if value is not None else None

    def _annotated_as(self, node: cst.BaseExpression) -> Value | None:
        """What a name, or a string, says that a value is: one of torch's nouns, a class of the file, or a module."""
        name = string_value(node) or self.names.qualified(node) or ""
        if name in _ANNOTATIONS:
            return _ANNOTATIONS[name]
        if frameworks.is_owner(name):
            return Value(Kind.INSTANCE, ref=name)
        cls = self._classes_by_name.get(name)
        if cls is not None:
            return Value(cls.kind, ref=cls.ref)
        is_module = (words.class_kind(name) or self._kind_in_project(name)) is Kind.MODULE
        return Value(Kind.MODULE, ref=self.named(name).ref) if is_module else None

    @staticmethod
    def _jaxtyping(node: cst.Subscript) -> Value:
        index = node.slice[1].slice
        rank = None
        if isinstance(index, cst.Index) and isinstance(index.value, cst.SimpleString):
            text = index.value.evaluated_value
            if isinstance(text, str) and "*" not in text and "..." not in text:
                rank = len(text.split())
        return Value(Kind.TENSOR, rank=rank)
