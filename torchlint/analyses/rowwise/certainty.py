"""Whether an expression is a tensor for certain. An array of numpy, or a list of tensors, has rows too."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.conditions import conditions, exclude
from torchlint.analyses.rowwise.chosen_networks import passes_of_chosen
from torchlint.analyses.rowwise.evidence import Evidence, evidence
from torchlint.analyses.rowwise.names import spelled
from torchlint.analyses.vectorize.reaching import Reaching
from torchlint.analyses.vectorize.tensors import Tensors
from torchlint.semantics.dataflow import reaches
from torchlint.semantics.frameworks import is_formula
from torchlint.semantics.taken_apart import place_of
from torchlint.semantics.values import Kind
from torchlint.semantics.vocabulary import (
    is_tensor_method,
    layer_returns_tensor,
    method_returns_tensor,
    returns_several,
    returns_tensor,
)

if TYPE_CHECKING:
    from collections.abc import Collection

    from torchlint.semantics.entities import Binding, Call, Function, Write
    from torchlint.semantics.model import Model

_PARTS = frozenset("data T mT H mH values indices".split())
_ANNOTATION = re.compile(r"[\"']?((\w+\.)*\w*Tensor|\w+\[(\w+\.)*Tensor, ?[\"'].*\])[\"']?")
_TENSOR_QUESTIONS = (("builtins.isinstance", "torch.Tensor"), ("torch.is_tensor",))
_DEPTH = 6


class Certainty:
    """One for a file: what is found out about a name is kept."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._tensors = Tensors(model, model.once(Reaching))
        self._known: dict[tuple[cst.CSTNode, cst.CSTNode], bool] = {}
        self._used: dict[tuple[cst.CSTNode, ...], Evidence] = {}
        self._by_target: dict[Binding, dict[cst.CSTNode, Write]] = {}

    def is_tensor(self, node: cst.BaseExpression, place: cst.CSTNode) -> bool:
        """Of an expression as it is evaluated at the statement `place`."""
        if (node, place) not in self._known:
            self._known[node, place] = False  # of what is assigned from itself
            self._known[node, place] = self._is_tensor(node, place)
        return self._known[node, place]

    def is_assigned_tensors(self, node: cst.BaseExpression) -> bool:
        """Whether a name, where it is read, holds a tensor or what a loop has set it to, moved perhaps."""
        binding = self._model.binding(node)
        places = self._writes_read_at(binding, node) if binding is not None else ()
        writes = self._writes_to(binding, places) if binding is not None else []
        return all(
            write.kind == "for" or self._is_move(binding, write.value) or self._writes_tensor(write, _DEPTH)
            for write in writes
        )

    def _is_move(self, binding: Binding | None, value: cst.BaseExpression | None) -> bool:
        match value:
            case cst.Call(func=cst.Attribute(value=cst.Name() as moved, attr=cst.Name("to"))):
                return self._model.binding(moved) is binding
        return False

    def _is_tensor(self, node: cst.BaseExpression, place: cst.CSTNode) -> bool:
        value = self._model.value(node)
        if value.kind not in (Kind.TENSOR, Kind.UNKNOWN, Kind.BATCH):
            return False
        if isinstance(node, cst.Call) and self._model.call(node).method == "values":  # of a dict, for all that is known
            return False
        if value.kind is Kind.TENSOR and not value.optional and (value.rank is not None or value.dtype is not None):
            return True  # what a module returns, and may be a list, has neither
        if self._tensors.of(node, place).tensor or self._makes(node, _DEPTH):
            return True
        if isinstance(node, cst.Attribute) and node.attr.value in _PARTS and self.is_tensor(node.value, place):
            return True
        if isinstance(node, cst.Call) and self._is_of_tensor(node, place):
            return True
        binding = self._model.binding(node)
        return binding is not None and self._is_used_as_tensor(binding, node, value.kind is Kind.TENSOR)

    def _is_of_tensor(self, node: cst.Call, place: cst.CSTNode) -> bool:
        """`labels.sum(1)`, of a name whose uses say what it is."""
        call = self._model.call(node)
        if call.target is not None or call.callee is not None or call.receiver is None:
            return False
        return method_returns_tensor(call.method or "") and self.is_tensor(call.receiver, place)

    # what it was assigned

    def _makes(self, node: cst.BaseExpression | None, depth: int) -> bool:
        """Whether an expression can be nothing but one tensor."""
        if node is None or depth == 0:
            return False
        match node:
            case cst.Call():
                return self._is_made_by(node, depth)
            case cst.Name():
                return self._holds(node, depth)
            case cst.Attribute(value=inner, attr=name):
                if name.value in _PARTS and self._model.value(node).kind is Kind.TENSOR:
                    return True
                return self._holds(node, depth) or (name.value in _PARTS and self._makes(inner, depth - 1))
            case cst.Subscript(value=cst.Call() as call):
                return self._model.value(node).kind is Kind.TENSOR and self._is_made_by(call, depth, one=False)
            case cst.Subscript(value=inner) | cst.UnaryOperation(expression=inner):
                return self._makes(inner, depth - 1)
            case cst.BinaryOperation(left=left, right=right):
                return self._makes(left, depth - 1) or self._makes(right, depth - 1)
            case cst.IfExp(body=body, orelse=orelse):
                return self._makes(body, depth - 1) and self._makes(orelse, depth - 1)
        return False

    def _is_made_by(self, node: cst.Call, depth: int, *, one: bool = True) -> bool:
        """`one`: by itself, and not as one of several results."""
        call = self._model.call(node)
        if call.callee == "builtins.sum" and len(node.args) == 1:
            return self._makes(node.args[0].value, depth - 1)
        if call.value.kind is Kind.BATCH and self._is_moved_part(call):
            return True
        if call.value.kind is not Kind.TENSOR and one:
            return self._is_of_tensor(node, self._model.statement(node))
        if call.target is not None or call.foreign is not None:
            return self._is_returned(call, depth)
        if one and self._is_returned_by_each(call, depth):
            return True
        if (call.receiver_value.ref or "").startswith("torch.distributions."):
            return call.value.kind is Kind.TENSOR  # what is drawn, a logarithm of densities
        name = call.callee or ""
        if name.startswith("torch.Tensor.") or call.callee is None:  # what is taken for a tensor may be a dict
            return is_tensor_method(call.method or "")
        if name == "torch.nn.Sequential":
            return one and self._ends_in_layer(call)
        return layer_returns_tensor(name) or (returns_tensor(name) and not returns_several(name))

    def _ends_in_layer(self, call: Call) -> bool:
        """Of layers one after another only the last may return several things, where it is a class of the program."""
        network = self._model.value(call.node.func)
        made = [self._model.call(origin) for origin in network.origins if isinstance(origin, cst.Call)]
        last = [maker.node.args[-1] for maker in made if maker.callee == "torch.nn.Sequential" and maker.node.args]
        refs = [self._model.value(arg.value).ref for arg in last if not arg.star]
        return all(ref is None or ref.startswith("torch.") for ref in refs)

    def _is_moved_part(self, call: Call) -> bool:
        """`y.to(device)` of `for x, y in loader`. A batch as a whole may be an object that knows how to move."""
        moved = call.receiver if call.method in ("cuda", "to") else None
        binding = self._model.binding(moved) if moved is not None else None
        places = self._writes_read_at(binding, call.node.func) if binding is not None else frozenset()
        writes = self._writes_to(binding, places) if binding is not None else []
        return bool(writes) and all(
            write.kind == "for" and write.loop is not None and write.loop.target is not write.target for write in writes
        )

    def _holds(self, node: cst.BaseExpression, depth: int) -> bool:
        binding = self._model.binding(node)
        if binding is None or not binding.writes:
            return False
        places = self._writes_read_at(binding, node)
        writes = [write for write in self._writes_to(binding, places) if write.kind != "augmented"]
        return bool(writes) and all(self._writes_tensor(write, depth) for write in writes)

    def _writes_tensor(self, write: Write, depth: int) -> bool:
        if write.kind == "parameter":
            parameter = self._model.parent(write.target)
            annotation = parameter.annotation if isinstance(parameter, cst.Param) else None
            if annotation is not None:
                return _ANNOTATION.fullmatch(spelled(annotation.annotation)) is not None
            if not isinstance(parameter, cst.Param):
                return False
            if is_formula(write.function) and self._model.value(write.target).kind is Kind.TENSOR:
                return True
            return self._is_converted(parameter.name) or self._is_handed_in(write.function, parameter.name.value, depth)
        if write.kind == "for" and write.loop is not None and write.loop.target is write.target:  # a row
            return self._makes(write.loop.iterable, depth - 1)
        if write.kind != "assign":
            return False
        return self._is_part(write, depth) if write.unpacked else self._makes(write.value, depth - 1)

    def _is_converted(self, parameter: cst.Name) -> bool:
        """`if not isinstance(x, torch.Tensor): x = torch.tensor(x)`: whatever was handed in, it is a tensor then."""
        binding = self._model.binding(parameter)
        writes = binding.writes if binding is not None else ()
        return any(write.kind == "assign" and self._is_where_no_tensor(write) for write in writes)

    def _is_where_no_tensor(self, write: Write) -> bool:
        """Whether a variable is written where a test has found that it is no tensor."""
        guard = next(iter(self._model.guards(write.target)), None)
        match guard.test if guard is not None and guard.branch == "body" else None:
            case cst.UnaryOperation(
                operator=cst.Not(), expression=cst.Call(func=asked, args=[cst.Arg(value=subject), *classes])
            ):
                question = self._model.qualified(asked), *(self._model.qualified(cls.value) for cls in classes)
                return question in _TENSOR_QUESTIONS and self._model.binding(subject) is self._model.binding(
                    write.target
                )
        return False

    def _is_handed_in(self, function: Function, name: str, depth: int) -> bool:
        """Whether all calls of a function in sight give a parameter a tensor. What is handed on may be called by
        others, too."""
        if function.passed_around or name not in function.params:
            return False
        position = function.params.index(name) - (function.cls is not None and not function.is_static)
        if not all(self.is_given(call, name, position, depth) for call in function.callers):
            return False
        elsewhere = [*self._model.calls_elsewhere(function)]
        given = (home.once(Certainty).is_given(call, name, position, depth) for home, call in elsewhere)
        return bool(function.callers or elsewhere) and all(given)

    def is_given(self, call: Call, name: str, position: int, depth: int) -> bool:
        """Whether a call of this file gives a parameter a tensor."""
        given = call.argument(name, position).node
        return self._makes(given, depth - 1) or self._is_used_by_caller(call, given)

    def _is_used_by_caller(self, call: Call, given: cst.BaseExpression | None) -> bool:
        """Whether what else the caller does with a parameter of its own, that it hands on, only a tensor takes."""
        binding = self._model.binding(given) if isinstance(given, cst.Name) else None
        if given is None or binding is None or not binding.is_parameter or len(binding.writes) != 1:
            return False
        return self.is_tensor(given, call.node)

    def _is_part(self, write: Write, depth: int) -> bool:
        """`values, places = x.max(0)`, `x, weight = ctx.saved_tensors`, `embeddings, labels = collect(loader)`"""
        if isinstance(write.value, cst.Attribute) and write.value.attr.value == "saved_tensors":
            return True
        if not isinstance(write.value, cst.Call):
            return False
        call = self._model.call(write.value)
        if call.target is None and call.foreign is None:
            return self._model.value(write.target).kind is Kind.TENSOR and self._is_made_by(write.value, 1, one=False)
        place = place_of(self._model, write)
        return place is not None and self._is_returned(call, depth, place)

    def _is_returned(self, call: Call, depth: int, place: int | None = None) -> bool:
        """Whether a function of the project returns a tensor, or one at a place of a tuple or list that it returns."""
        entered = (self._model, call.target) if call.target is not None else self._model.elsewhere(call)
        return entered is not None and entered[0].once(Certainty).returns(entered[1], depth, place)

    def _is_returned_by_each(self, call: Call, depth: int) -> bool:
        """Of a pass of a network that is one of several classes."""
        passes = passes_of_chosen(self._model, call) if call.is_forward else []
        return bool(passes) and all(home.once(Certainty).returns(forward, depth - 1, None) for home, forward in passes)

    def returns(self, function: Function, depth: int, place: int | None) -> bool:
        """The same, of a function of this file."""
        given = [returned.value for returned in function.returns]
        if place is not None:
            given = [_part(value, place) for value in given]
        return bool(given) and all(self._makes(value, depth - 1) for value in given)

    # how it is used

    def _is_used_as_tensor(self, binding: Binding, node: cst.CSTNode, believed: bool) -> bool:
        """`believed`: the model takes it for a tensor, which it also does with what a module returns."""
        written = self._writes_read_at(binding, node)
        if any(map(self._is_on_host, self._writes_to(binding, written))):
            return False  # `if isinstance(x, torch.Tensor): x = x.cpu().numpy()`
        reads = self._reads_of(binding, written)
        here = conditions(self._model, node)  # on another way, the name may be something else
        same_way = (
            tuple(read for read in reads if not exclude(conditions(self._model, read), here)) if here else tuple(reads)
        )
        if same_way not in self._used:
            self._used[same_way] = evidence(self._model, same_way)
        needed = Evidence.ARRAY if believed else Evidence.TENSOR
        if Evidence.TORCH in self._used[same_way] and self._has_stand_in(binding):
            return True
        return needed in self._used[same_way]

    def _is_on_host(self, write: Write) -> bool:
        """Whether it assigns an array, or the numbers of a tensor in a list."""
        match write.value:
            case cst.Call(func=cst.Attribute(attr=cst.Name("tolist")), args=[]):
                return not write.unpacked
        return self._model.value(write.target).kind is Kind.ARRAY

    def _has_stand_in(self, binding: Binding) -> bool:
        """`if label is None: label = scores.argmax(1)`: what else is handed in is a tensor, too."""
        writes = [write for write in binding.writes if write.kind == "assign" and not write.unpacked]
        return binding.is_parameter and any(
            self._is_where_none(binding, write) and self._makes(write.value, _DEPTH) for write in writes
        )

    def _is_where_none(self, binding: Binding, write: Write) -> bool:
        guard = next(iter(self._model.guards(write.target)), None)
        match guard.test if guard is not None and guard.branch == "body" else None:
            case cst.Comparison(
                left=subject, comparisons=[cst.ComparisonTarget(operator=cst.Is(), comparator=cst.Name("None"))]
            ):
                return self._model.binding(subject) is binding
        return False

    def _writes_to(self, binding: Binding, targets: Collection[cst.CSTNode]) -> list[Write]:
        if binding not in self._by_target:
            self._by_target[binding] = {write.target: write for write in binding.writes}
        by_target = self._by_target[binding]
        return [by_target[target] for target in targets if target in by_target]

    def _writes_read_at(self, binding: Binding, node: cst.CSTNode) -> frozenset[cst.CSTNode]:
        """Where what a variable holds at a node was assigned; a list may become a tensor of the same name."""
        places = [write.target for write in binding.writes]
        if len(places) > 1:
            places = [place for place in places if reaches(self._model, binding, place, node)]
        return frozenset(places)

    def _reads_of(self, binding: Binding, writes: frozenset[cst.CSTNode]) -> list[cst.CSTNode]:
        if len(writes) == len(binding.writes):
            return list(binding.reads)
        return [read for read in binding.reads if any(reaches(self._model, binding, place, read) for place in writes)]


def _part(given: cst.BaseExpression | None, place: int) -> cst.BaseExpression | None:
    """One of several that are returned together: `a, b`, or `[f(x) for x in parts]`, which are all alike."""
    match given:
        case cst.Tuple(elements=elements) | cst.List(elements=elements) if place < len(elements):
            starred = any(isinstance(element, cst.StarredElement) for element in elements)
            return elements[place].value if not starred else None
        case cst.ListComp(elt=element):
            return element
    return None
