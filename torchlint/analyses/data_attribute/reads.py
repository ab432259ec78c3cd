"""Reads of `tensor.data`: the values of a tensor behind the back of autograd, an idiom from before torch 0.4.

Writes through `.data` (`p.data.copy_(q)`, `p.data -= g`, initialisers) are another idiom and not looked at.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.conditions import conditions
from torchlint.analyses.data_attribute.chain import VIEWS, Chain, last_word
from torchlint.analyses.data_attribute.evidence import (
    is_full_reduction,
    is_leaf_attribute,
    looks_like_tensor,
    may_look_like_tensor,
)
from torchlint.analyses.data_attribute.formatted_numbers import is_formatted_as_number
from torchlint.analyses.data_attribute.writes import is_exchanged, is_self, serves_a_write
from torchlint.analyses.once import once
from torchlint.semantics.arguments import string_value
from torchlint.semantics.branches import no_tensors
from torchlint.semantics.dataflow import bare_text, reaches, writes_reaching
from torchlint.semantics.hints import LOSS_NAMES
from torchlint.semantics.values import Kind, Value

if TYPE_CHECKING:
    from torchlint.semantics.entities import Call, Function
    from torchlint.semantics.model import Model
    from torchlint.source import Source

_SHAPING = VIEWS - {"detach"}
# What comes back the same from the tensor itself, whether or not it has a graph.
_INDIFFERENT = frozenset(
    """
    item tolist size numel nelement dim detach element_size stride is_contiguous get_device
    new new_zeros new_ones new_empty new_full new_tensor storage untyped_storage data_ptr
    eq ne gt ge lt le isnan isinf isfinite argmax argmin nonzero long int short byte bool
    """.split()
)
_INDIFFERENT_ATTRIBUTES = frozenset(
    {"shape", "dtype", "device", "ndim", "is_cuda", "is_sparse", "is_quantized", "layout", "itemsize", "nbytes"}
)
_ASKING = frozenset({"torch.numel", "torch.is_floating_point", "torch.is_complex", "torch.is_tensor"})
# Their results are new tensors, numbers or arrays: nothing done to them reaches the tensor or its version counter.
NEW_TENSORS = frozenset(
    """
    max min argmax argmin topk sum mean norm std var median sort eq ne gt ge lt le clone exp log sqrt abs div mul
    add sub pow sigmoid softmax tanh round neg mm matmul nonzero prod cumsum clamp repeat
    """.split()
)
_FRESH = NEW_TENSORS | {"numpy"}
# Names of what is added up to a loss.
_TERM_NAMES = re.compile(r"(?i)(^|_)(kld?|kl_?div\w*|cross_entropy|nll|elbo|bce|mse)(_|$|\d)")
_DEPTH = 4
_TORCH = re.compile(r"^\s*(import|from)\s+torch|\btorch\.", re.MULTILINE)
_PROPERTY = re.compile(r"^[ \t]+@(functools\.)?(cached_)?property\s+def data\(self\b", re.MULTILINE)
# Their objects hold a tensor, or many, as `data`, and have many of its methods.
_WRAPPING = re.compile(r"^[ \t]*(from|import)[ \t]+(tensordict|lietorch|pypose|torchio|fastai)\b", re.MULTILINE)
_LANGUAGE = frozenset({"torch", "numpy", "builtins", "collections", "typing", "numbers"})
_PACKING = re.compile(r"torch\.nn\.utils\.rnn\.(pack_\w+|PackedSequence)")


class Use(Enum):
    """What a read of `.data` is for."""

    ELEMENT = "element"  # `loss.data[0]` or `loss.data.cpu().numpy()[0]`, of a tensor with a single value
    CHOICE = "choice"  # `policy.max(1)[1].data[0]`, the number of an action that an environment is given
    NUMBER = "number"  # `math.log(loss.data)`, which takes a number, and `f"{loss.data:.3f}"`, which shows one
    INDIFFERENT = "indifferent"  # `.data` changes nothing
    FRESH = "fresh"  # the values are at once used up
    SHARED = "shared"  # the result lives on, in the memory of the tensor


@dataclass(frozen=True, slots=True)
class DataRead:
    """A read of `.data`, and what it is for."""

    node: cst.Attribute
    use: Use
    certain: bool  # the owner is known to be a tensor; otherwise its use shows one
    element: cst.CSTNode | None  # the whole read of a single value, where there is one

    @property
    def owner(self) -> cst.BaseExpression:
        return self.node.value


@once
def data_reads(model: Model) -> Iterator[DataRead]:
    """Reads of `.data` of a tensor, in source order."""
    for node, value, chain in model.once(_plain_reads):
        certain = value.kind is Kind.TENSOR
        if certain or (_names_torch(model) and looks_like_tensor(model, node, value, chain)):
            use = _use(model, node, value, chain)
            if use is Use.FRESH or not is_exchanged(model, node.value):
                whole = chain.end if use in (Use.NUMBER, Use.CHOICE) else chain.element
                yield DataRead(node, use, certain, whole)


def unclear_reads(model: Model) -> Iterator[cst.Attribute]:
    """Reads of `.data` with something called on it that tensors have, where nothing else shows a tensor."""
    for node, value, chain in model.once(_plain_reads):
        may_be_one = value.kind is not Kind.TENSOR and may_look_like_tensor(model, node, chain)
        if may_be_one and _names_torch(model) and not looks_like_tensor(model, node, value, chain):
            yield node


def _asked_whether_other(model: Model) -> dict[tuple[Function, str], set[str]]:
    """What a function asks for an attribute `data` first, which tensors always have: `hasattr(obj, "data")`; or
    whether it is of a class that is neither of torch nor of the language: `isinstance(x, MaskedBatch)`. Each with the
    tests."""
    asked: defaultdict[tuple[Function, str], set[str]] = defaultdict(set)
    for call in model.calls_to("builtins.hasattr", "builtins.isinstance"):
        if len(call.arguments) == 2 and (
            string_value(call.arguments[1].value) == "data"
            or (call.callee == "builtins.isinstance" and _is_of_neither(call, model))
        ):
            asked[call.function, model.code(call.arguments[0].value)].add(model.code(call.node))
    return asked


def _is_of_neither(call: Call, model: Model) -> bool:
    """What is of the class may be made a tensor: `if isinstance(x, Boxes): x = x.boxes`."""
    asked, classes = (each.value for each in call.arguments)
    binding = model.binding(asked)
    each = [element.value for element in classes.elements] if isinstance(classes, cst.Tuple) else [classes]
    homes = {(model.qualified(one) or "torch").partition(".")[0] for one in each}
    return homes.isdisjoint(_LANGUAGE) and (binding is None or not binding.is_parameter or len(binding.writes) == 1)


def _plain_reads(model: Model) -> list[tuple[cst.Attribute, Value, Chain]]:
    """Reads of `.data` that serve no write, of what may be a tensor."""
    found = []
    for node in model.nodes_of(cst.Attribute):
        assert isinstance(node, cst.Attribute)
        if node.attr.value != "data" or model.qualified(node) is not None:
            continue
        value = model.value(node.value)
        if not value.is_(Kind.TENSOR, Kind.BATCH, Kind.UNKNOWN) or _is_packed(model, node.value):
            continue
        is_made_in_sight = value.origins and value.kind is not Kind.UNKNOWN
        if not is_made_in_sight and _is_told_from_tensors(node, model):
            continue
        if not (is_made_in_sight or is_leaf_attribute(node.value)) and model.once(_knows_wrappers):
            continue  # what it is, its name and its use say: a wrapper of a tensor has much in common with one
        chain = Chain(model, node)
        asked = model.once(_asked_whether_other).get((model.function(node), model.code(node.value)), ())
        is_asked = any(conditions(model, node).get(test) is not False for test in asked)
        if _is_dict(chain) or (is_asked and not is_made_in_sight):
            continue
        if isinstance(model.parent(chain.end), cst.Expr) and chain.end is node and not model.source.is_notebook:
            continue  # a statement that does nothing
        if not (is_self(model, node.value) or chain.writes or serves_a_write(model, node, chain)):
            found.append((node, value, chain))
    return found


def _is_told_from_tensors(node: cst.Attribute, model: Model) -> bool:
    """`x if isinstance(x, torch.Tensor) else x.data`"""
    tests = ((guard.test, guard.branch == "body") for guard in model.guards(node) if guard.test is not None)
    others = (bare_text(other) for test, holds in tests for other in no_tensors(test, holds, model))
    return bare_text(node.value) in others


def _knows_wrappers(model: Model) -> bool:
    """Whether a class of the project has a property `data`: the tensor that its objects wrap; or whether the file, or
    one around it, comes from a package of such classes."""
    if any(model.once_of(source, _has_wrappers) for source in (model.source, *model.neighbours())):
        return True
    return any(model.once_of(source, _has_property) for source, _ in model.classes_beside({"data"}))


def _has_wrappers(source: Source) -> bool:
    return _has_property(source) or _WRAPPING.search(source.text) is not None


def _has_property(source: Source) -> bool:
    return "def data(self" in source.text and _PROPERTY.search(source.text) is not None


def _is_dict(chain: Chain) -> bool:
    """`node.data["h"]`, the features of a node of a graph."""
    match chain.nodes[:1]:
        case [cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=key))])]:
            return string_value(key) is not None
    return False


def _is_detached_later(chain: Chain) -> bool:
    """`w.data.clone().detach()`"""
    at = chain.steps.index("detach()") if "detach()" in chain.steps else 0
    return at > 0 and all(step in ("clone()", "cpu()", "cuda()", "[]") for step in chain.steps[:at])


def _names_torch(model: Model) -> bool:
    """In a file that names nothing of torch, what has `data.numpy()` may be the constant of a compiler, or of any other
    library of arrays."""
    return _TORCH.search(model.source.text) is not None


def _use(model: Model, node: cst.Attribute, value: Value, chain: Chain) -> Use:
    if chain.element is not None and _holds_one_value(model, node.value, value):
        return Use.ELEMENT
    if _is_given_to_math(model, chain) or (not chain.steps and is_formatted_as_number(node, model)):
        return Use.NUMBER
    if _is_choice(model, node, chain):
        return Use.CHOICE
    first = chain.steps[0] if chain.steps else ""
    asked = next((name for name in chain.steps if name != "[]" and name.removesuffix("()") not in _SHAPING), "")
    if (
        asked.removesuffix("()") in _INDIFFERENT
        or asked[1:] in _INDIFFERENT_ATTRIBUTES
        or _ends_in_number(chain)
        or _takes_indices(model, chain)
        or _is_detached_later(chain)
        or _is_only_looked_at(model, chain)
        or (first == "type()" and isinstance(chain.nodes[0], cst.Call) and not chain.nodes[0].args)
        or _is_detached_call(node.value)
    ):
        return Use.INDIFFERENT
    parent = model.parent(chain.end)
    if _is_compared(model, parent) and "numpy" not in chain.methods:
        return Use.INDIFFERENT
    for name in chain.methods:
        if name in _FRESH:
            return Use.FRESH
        if name not in VIEWS and name != "cpu":
            break
    if isinstance(parent, (cst.Comparison, cst.ComparisonTarget, cst.BinaryOperation, cst.FormattedStringExpression)):
        return Use.FRESH
    return Use.SHARED


def _is_given_to_math(model: Model, chain: Chain) -> bool:
    arg = model.parent(chain.end)
    call = model.parent(arg) if isinstance(arg, cst.Arg) else None
    moves_only = all(step == "cpu()" for step in chain.steps)
    return moves_only and isinstance(call, cst.Call) and (model.call(call).callee or "").startswith("math.")


def _ends_in_number(chain: Chain) -> bool:
    """`x.data.cpu().item()`: the steps on the way make no difference, but for `numpy()`, which takes no graph."""
    methods = [step.removesuffix("()") for step in chain.steps if step != "[]"]
    return methods == chain.methods and methods[-1:] in (["item"], ["tolist"]) and "numpy" not in methods


def _is_compared(model: Model, parent: cst.CSTNode | None) -> bool:
    """Whether a tensor is a side of a comparison with what is no array, whose truth values have no graph."""
    comparison = model.parent(parent) if isinstance(parent, cst.ComparisonTarget) else parent
    if not isinstance(comparison, cst.Comparison):
        return False
    sides = (comparison.left, *(target.comparator for target in comparison.comparisons))
    return all(model.value(side).kind is not Kind.ARRAY for side in sides)


def _takes_indices(model: Model, chain: Chain) -> bool:
    """`x.data.max(1)[1]`"""
    is_part = chain.steps[1:2] == ["[]"] and chain.steps[0] in ("max()", "min()", "sort()", "topk()")
    return is_part and model.code(chain.nodes[1]).endswith("[1]")


def _is_only_looked_at(model: Model, chain: Chain) -> bool:
    """`torch.zeros_like(x.data)`, `torch.numel(x.data)`, `isinstance(x.data, torch.FloatTensor)`"""
    arg = model.parent(chain.end)
    call = model.parent(arg) if isinstance(arg, cst.Arg) else None
    if chain.steps or not isinstance(call, cst.Call) or call.args[0] is not arg:
        return False
    name = model.call(call).callee or ""
    if name == "builtins.isinstance":
        return re.fullmatch(r"torch\.(cuda\.)?\w*Tensor", model.qualified(call.args[1].value) or "") is not None
    if name in _ASKING:
        return True
    return name.startswith("torch.") and name.endswith("_like") and not any(map(_asks_for_gradients, call.args))


def _asks_for_gradients(arg: cst.Arg) -> bool:
    return arg.keyword is not None and arg.keyword.value == "requires_grad"


def _is_choice(model: Model, node: cst.Attribute, chain: Chain) -> bool:
    """Whether an element of a tensor of indices goes to `env.step(...)`, which takes a number."""
    numbered = chain.steps and all(step == "[]" for step in chain.steps) and all(map(_is_element, chain.nodes))
    if not numbered or not _holds_indices(model, node.value):
        return False
    statement = model.parent(chain.end)
    users = [chain.end]
    if isinstance(statement, cst.Assign) and len(statement.targets) == 1:
        target = statement.targets[0].target
        binding = model.binding(target)
        users = [read for read in binding.reads if reaches(model, binding, target, read)] if binding else []
    return any(_steps_environment(model, user) for user in users)


def _is_element(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Subscript) and all(
        isinstance(element.slice, cst.Index) and isinstance(element.slice.value, cst.Integer) for element in node.slice
    )


def _holds_indices(model: Model, node: cst.BaseExpression) -> bool:
    """Whether a tensor holds classes or positions: `x.max(1)[1]`, `x.multinomial(1)`, or a variable of these."""
    if model.value(node).dtype == "int":
        return True
    match node:
        case cst.Subscript(value=cst.Call(func=cst.Attribute(attr=cst.Name(value=name)))) if _is_element(node):
            return name in ("max", "min", "sort", "topk") and model.code(node).endswith("[1]")
        case cst.Call(func=cst.Attribute(attr=cst.Name(value=name))):
            return name in ("argmax", "argmin", "multinomial")
    binding = model.binding(node)
    if binding is None or not isinstance(node, cst.Name):
        return False
    values = [write.value for write in writes_reaching(model, binding, node)]
    return bool(values) and all(value is not None and _holds_indices(model, value) for value in values)


def _steps_environment(model: Model, node: cst.CSTNode) -> bool:
    """`env.step(node)`, of what is no optimizer and no schedule."""
    arg = model.parent(node)
    call = model.parent(arg) if isinstance(arg, cst.Arg) else None
    if not isinstance(call, cst.Call) or len(call.args) != 1 or model.call(call).method != "step":
        return False
    return not model.call(call).receiver_value.is_(Kind.OPTIMIZER, Kind.SCHEDULER, Kind.SCALER)


def _is_packed(model: Model, node: cst.CSTNode, depth: int = 0) -> bool:
    """Whether an expression is a PackedSequence, whose `data` is a field like any other."""
    if isinstance(node, cst.Call):
        call = model.call(node)
        if _PACKING.fullmatch(call.callee or ""):
            return True
        return depth < _DEPTH and call.is_forward and any(_is_packed(model, arg.value, depth + 1) for arg in node.args)
    binding = model.binding(node)
    if binding is None or depth == _DEPTH:
        return False
    return any(write.value is not None and _is_packed(model, write.value, depth + 1) for write in binding.writes)


def _is_detached_call(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value == "detach"


def flattened(owner: cst.BaseExpression) -> cst.BaseExpression:
    """`loss` of `loss.view(-1)`, which has the same values in a row."""
    match owner:
        case cst.Call(
            func=cst.Attribute(value=inner, attr=cst.Name(value="view" | "reshape")),
            args=[cst.Arg(value=cst.UnaryOperation(operator=cst.Minus(), expression=cst.Integer(value="1")))],
        ):
            return inner
        case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value="flatten" | "ravel")), args=[]):
            return inner
    return owner


def _holds_one_value(model: Model, owner: cst.BaseExpression, value: Value) -> bool:
    """Whether the tensor is known to hold a single value, as one does on which `backward()` runs."""
    inner = flattened(owner)
    if inner is not owner:
        return _holds_one_value(model, inner, model.value(inner))
    if value.kind is Kind.TENSOR and value.rank is not None:
        return value.rank == 0
    binding = model.binding(owner)
    if (binding is not None and "backward" in binding.methods) or is_full_reduction(model, owner):
        return True
    name = last_word(owner)
    if not any(names.search(name) for names in (LOSS_NAMES, _TERM_NAMES)):
        return False
    return "losses" not in name.lower() or isinstance(owner, cst.Subscript)
