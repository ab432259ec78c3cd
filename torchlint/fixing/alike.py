"""Places that look the same as one that a fix changes, and would stay as they are."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import libcst as cst

from torchlint.finding import Edit, Finding, Fix
from torchlint.fixing.edited import Edited
from torchlint.semantics import torch_api
from torchlint.semantics.tree import walk
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.model import Model

_Likeness: TypeAlias = tuple[cst.CSTNode, tuple[str, ...]]  # where an expression stands and how it looks

_OPTION = re.compile(r"\b(\w+)\s*=(?!=)")
_IMPORT = re.compile(r"\s*(import|from)\b")
_COPIES = ("to", "cuda", "type", "type_as")
_NEEDED = {"persistent_workers": "num_workers"}  # a call without the second has no use for the first


def left_alike(
    found: Mapping[int, tuple[cst.CSTNode, Finding]], applied: Mapping[int, Fix], model: Model
) -> dict[int, tuple[int, int]]:
    """Of the findings of a rule, by any numbers, and the fixes of those that are made: the fixes that leave a place
    which looks like their own, and that place."""
    others = [each for at, each in found.items() if at not in applied]
    untouched = [
        node
        for node, finding in others
        if isinstance(node, cst.Attribute) or (_may_be_like(node, finding, model) and not _draws(node, model))
    ]
    edits = [edit for fix in applied.values() for edit in fix.edits]
    places = _Places(model, edits, untouched, [node for node, _ in others if _draws(node, model)])
    left = {at: places.left(found[at][0], fix) for at, fix in applied.items()}
    return {at: model.span(node) for at, node in left.items() if node is not None}


def _may_be_like(node: cst.CSTNode, finding: Finding, model: Model) -> bool:
    """Whether a finding whose fix is not applied looks like those whose fixes are: it has one, or a copy follows what
    makes its tensor at once, `torch.ones(3).to(device)`."""
    if finding.fix is not None or not isinstance(node, cst.Call):
        return finding.fix is not None
    whole, is_copied = _outermost(node, model), False
    while isinstance(whole, (cst.Call, cst.Attribute)):
        if isinstance(whole, cst.Call):
            if model.qualified(whole.func) is not None:
                entry = torch_api.lookup(model.call(whole).callee or "")
                return is_copied and entry is not None and entry.returns_tensors
            is_copied |= model.call(whole).method in _COPIES
        whole = whole.func if isinstance(whole, cst.Call) else whole.value
    return False


def _draws(node: cst.CSTNode, model: Model) -> bool:
    """Whether random numbers are drawn, which nobody takes for the like of others: `torch.rand(3).to(device)`."""
    calls = (model.call(part).callee or "" for part in walk(node) if isinstance(part, cst.Call))
    return any((entry := torch_api.lookup(name)) is not None and "random" in entry.flags for name in calls)


@dataclass(frozen=True, slots=True)
class _Change:
    """The options that a fix gives to a call, and those that it takes."""

    given: frozenset[str]
    taken: frozenset[str]

    def concerns(self, node: cst.CSTNode) -> bool:
        """Whether an expression has not what the fix gives, or still has what it takes, as far as can be seen."""
        own = set(_options(node))
        if "*" in own or any(option in self.given and needed not in own for option, needed in _NEEDED.items()):
            return False
        return self.given.isdisjoint(own) if self.given or not self.taken else not self.taken.isdisjoint(own)


class _Places:
    """What the fixes of one rule leave as it is, by how it looks and by where it stands."""

    def __init__(
        self, model: Model, edits: Sequence[Edit], untouched: Sequence[cst.CSTNode], drawn: Sequence[cst.CSTNode]
    ) -> None:
        self._model = model
        self._drawn = {statement: node for node in drawn if (statement := model.small_statement(node)) is not None}
        self._reported = {
            (_attribute(node), model.function(node)): node
            for node in untouched
            if not (isinstance(node, cst.Attribute) and _is_in_assignment_to(node.attr.value, node, model))
        }
        self._statements = {
            model.code(statement): node
            for node in untouched
            if isinstance(node, cst.Attribute) and (statement := model.small_statement(node)) is not None
        }
        self._edited = Edited(edits)
        self._all: dict[str | None, dict[_Likeness, list[cst.CSTNode]]] = {}
        self._words: dict[cst.ClassDef, defaultdict[str, list[cst.CSTNode]]] = {}
        self._left: dict[tuple[str | None, _Likeness, _Change], cst.CSTNode | None] = {}

    def left(self, node: cst.CSTNode, fix: Fix) -> cst.CSTNode | None:
        """The first expression of the function or class that looks like the one at `node`, has not what the fix gives
        to that one, and is not changed by any of the edits; before that, any of its kind whose fix is only shown in
        the function, and random numbers in the same statement; of an attribute, any that the rule finds there or in the
        same statement elsewhere."""
        model = self._model
        if not isinstance(node, (cst.Call, cst.Attribute)) or not _is_made_in_place(node, fix, model):
            return None
        statement = model.small_statement(node)
        if isinstance(node, cst.Call) and statement is not None and (drawn := self._drawn.get(statement)) is not None:
            return drawn
        kept = _attribute(node)
        if (reported := self._reported.get((kept, model.function(node)))) is not None:
            return reported
        whole = model.code(statement) if kept is not None and statement is not None else None
        if whole is not None and (same := self._statements.get(whole)) is not None:
            return same
        own, change = _rewritten(node, fix, model), _change(fix, model)
        like = (_place(node, kept, model), _look(own, kept, model))
        key = (kept, like, change)
        if key not in self._left:
            others = (*self._with(kept).get(like, ()), *self._twins(own))
            left = (other for other in others if change.concerns(other) and not self._is_edited(other))
            self._left[key] = next((other for other in left if not model.never_runs(other)), None)
        return self._left[key]

    def _with(self, kept: str | None) -> dict[_Likeness, list[cst.CSTNode]]:
        if kept not in self._all:
            model = self._model
            places = self._all[kept] = {}
            for other in model.nodes_of(cst.Call, cst.Attribute):
                if _outermost(other, model) is other and not _writes_what_it_reads(other, kept, model):
                    like = (_place(other, kept, model), _look(other, kept, model))
                    places.setdefault(like, []).append(other)
        return self._all[kept]

    def _twins(self, node: cst.CSTNode) -> list[cst.CSTNode]:
        """What other methods of the class have word for word; what a constructor does once is another matter."""
        model = self._model
        around = next((above for above in model.ancestors(node) if isinstance(above, cst.ClassDef)), None)
        if around is None:
            return []
        if around not in self._words:
            words = self._words[around] = defaultdict(list)
            for other in model.nodes_of(cst.Call):
                is_once = model.function(other).name == "__init__"
                if not is_once and around in model.ancestors(other) and _outermost(other, model) is other:
                    words[model.code(other)].append(other)
        return [other for other in self._words[around][model.code(node)] if other is not node]

    def _is_edited(self, node: cst.CSTNode) -> bool:
        return self._model.span(node) in self._edited


def _attribute(node: cst.CSTNode) -> str | None:
    return node.attr.value if isinstance(node, cst.Attribute) else None


def _change(fix: Fix, model: Model) -> _Change:
    old = {name for edit in fix.edits for name in _OPTION.findall(model.source.text[edit.start : edit.end])}
    new = {name for edit in fix.edits for name in _OPTION.findall(edit.text)}
    return _Change(frozenset(new - old), frozenset(old - new))


def _is_made_in_place(node: cst.CSTNode, fix: Fix, model: Model) -> bool:
    """Whether the fix changes how the expression is written and nothing else, but for others in the same way. What
    rewrites a loop for the sake of a call in it, puts a name in its place or changes what it is given says nothing
    about other calls."""
    whole = _rewritten(node, fix, model)
    start, end = model.span(whole)
    statement = model.span(model.small_statement(node) or whole)
    changed = [
        edit
        for edit in fix.edits
        if not _IMPORT.match(edit.text)
        and (statement[0] <= edit.start <= statement[1] or not (edit.text == "" or _OPTION.search(edit.text)))
    ]
    if not changed or any(
        edit.start < start or end < edit.end or (edit.start, edit.end) == (start, end) for edit in changed
    ):
        return False
    spans = [model.span(arg.value) for arg in _arguments(whole)]
    return not any(
        begin <= edit.start and edit.end <= behind and not _OPTION.search(edit.text)
        for edit in changed
        for begin, behind in spans
    )


def _place(node: cst.CSTNode, kept: str | None, model: Model) -> cst.CSTNode:
    """The function around a node. What `.data` is written for is the custom of a whole class; what is made or copied
    once in a constructor is another matter than what each step makes."""
    function = model.function(node)
    around = [node for node in model.ancestors(function.node) if kept is not None and isinstance(node, cst.ClassDef)]
    return around[-1] if around else function.node


def _outermost(node: cst.CSTNode, model: Model) -> cst.CSTNode:
    """The whole chain of methods that an expression is part of."""
    above = model.parent(node)
    while node in (getattr(above, "func", None), getattr(above, "value", None)) and isinstance(
        above, (cst.Call, cst.Attribute)
    ):
        node, above = above, model.parent(above)
    return node


def _rewritten(node: cst.CSTNode, fix: Fix, model: Model) -> cst.CSTNode:
    """The whole chain, and of `(torch.ones(n) * 2).to(device)` that of the product, if the fix changes that, too."""
    node = _outermost(node, model)
    last = max((edit.end for edit in fix.edits), default=0)
    while model.span(node)[1] < last and isinstance(above := model.parent(node), cst.BinaryOperation):
        node = _outermost(above, model)
    return node


def _is_in_assignment_to(attribute: str, node: cst.CSTNode, model: Model) -> bool:
    """Whether a statement writes to an attribute of that name: `a.data = b.data`."""
    statement = model.small_statement(node)
    targets = [target.target for target in statement.targets] if isinstance(statement, cst.Assign) else []
    return any(isinstance(target, cst.Attribute) and target.attr.value == attribute for target in targets)


def _writes_what_it_reads(node: cst.CSTNode, kept: str | None, model: Model) -> bool:
    """`p.data = p.data.clamp(0)`, on either side: how values are set is another matter than how they are read."""
    return kept is not None and _is_in_assignment_to(kept, node, model)


def _look(node: cst.CSTNode, kept: str | None, model: Model) -> tuple[str, ...]:
    """What is called in a chain, without the arguments, and on what kind of value; of an attribute called `kept`, what
    is done with it. What has `.data` is a tensor unless it is known to be something else."""
    above = model.parent(node)
    names = [type(above).__name__] if isinstance(above, (cst.Expr, cst.Subscript, cst.AssignTarget)) else []
    while isinstance(node, (cst.Call, cst.Attribute, cst.BinaryOperation)):
        if isinstance(node, cst.BinaryOperation):
            names.append(type(node.operator).__name__)
            node = node.left
            continue
        of = node.func if isinstance(node, cst.Call) else node
        named = model.qualified(of) if isinstance(node, cst.Call) else None
        if named is not None:
            return (*names, f"{named}()")
        if isinstance(of, cst.Name):
            return (*names, f"{of.value}()")
        if not isinstance(of, cst.Attribute):
            break
        if of is not node or kept is not None:
            is_cast = isinstance(node, cst.Call) and of.attr.value == "to" and _is_to_type(node, model)
            names.append("type()" if is_cast else of.attr.value + "()" * (of is not node))
        if of is node and kept is None and (kind := model.value(node).kind) is not Kind.UNKNOWN:
            return (*names, kind.value)
        node = of.value
        if of.attr.value == kept:
            kind = model.value(node).kind
            return (*names, (Kind.TENSOR if kind is Kind.UNKNOWN else kind).value)
    return (*names, model.value(node).kind.value)


def _is_to_type(call: cst.Call, model: Model) -> bool:
    """`x.to(torch.float16)`, which goes nowhere."""
    return bool(call.args) and all(model.value(arg.value).kind is Kind.DTYPE for arg in call.args)


def _options(node: cst.CSTNode) -> Iterator[str]:
    yield from (arg.keyword.value if arg.keyword is not None else arg.star[:1] for arg in _arguments(node))


def _arguments(node: cst.CSTNode) -> Iterator[cst.Arg]:
    """What the calls of a chain are given."""
    while isinstance(node, (cst.Call, cst.Attribute, cst.BinaryOperation)):
        if isinstance(node, cst.BinaryOperation):
            node = node.left
            continue
        if isinstance(node, cst.Call):
            yield from node.args
        node = node.func if isinstance(node, cst.Call) else node.value
