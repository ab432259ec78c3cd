"""The conditions under which a statement runs: log intervals, phases, ranks, handlers."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from torchlint.semantics.entities import Guard, Loop, Write
from torchlint.semantics.scopes import Scopes
from torchlint.semantics.tree import dotted, last_name, walk

_LOG_NAMES = re.compile(
    r"(?i)(log(?!it|_?(alpha|prob|p\b|pi\b|std|sigma|var|ent|det|snr|softmax|scale|temp))|print|verbos|interval|freq"
    r"|every|displ|disp_|summar|report|debug|visual|plot|vis_|wandb|tensorboard"
    r"|writer|show|save|eval_step|last_)"
)
_SINKS = re.compile(
    r"(?i)((use|with|enable|has|summary|tb|log|train)_?)?"
    r"(wandb|tensorboardx?|writer|tb|visdom|mlflow|neptune|comet|logger)(_?(writer|logger|run|enabled|logging|logs?))?"
)
_RANK_NAMES = re.compile(
    r"(?i)(^|_)(rank|local_rank|global_rank|is_main|is_master|master|main_process|is_primary|global_zero|process_zero)"
)
_BROKEN = frozenset({"isnan", "isinf"})
_PACKAGES = frozenset({"torch", "np", "numpy", "math", "isnan", "isinf"})
_REMAINDERS = frozenset({"divmod", "fmod", "remainder"})
_ROUNDS = re.compile(r"(?i)(^|_)(step|iter|iteration|epoch)s?(_?(no|num|idx|index|i))?$")
_FEW = 10  # rounds
_CONSTANTS = ("None", "True", "False")
_CLOCKS = frozenset({"time", "perf_counter", "monotonic", "now"})
_PHASE_NAMES = re.compile(r"(?i)^(is_)?(train|training|phase|mode|split|eval|evaluate|is_eval|backward|test|valid)\w*$")


_TELLING = frozenset(
    [
        *(cst.If, cst.IfExp, cst.BooleanOperation, cst.MatchCase, cst.ExceptHandler, cst.ExceptStarHandler),
        *(cst.IndentedBlock, cst.Module, cst.For, cst.While, cst.CompFor, cst.FunctionDef, cst.Lambda),
    ]
)
"""What can hold a condition, or end the way to one."""


def conjuncts(test: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """`a`, `b` and `c` of `a and b and c`."""
    yield from _sides(test, cst.And)


def disjuncts(test: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """`a`, `b` and `c` of `a or b or c`."""
    yield from _sides(test, cst.Or)


def _sides(test: cst.BaseExpression, operator: type[cst.BaseBooleanOp]) -> Iterator[cst.BaseExpression]:
    if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, operator):
        yield from _sides(test.left, operator)
        yield from _sides(test.right, operator)
    else:
        yield test


def never_holds(guard: Guard) -> bool:
    """`if False and step > 1:` around what somebody has switched off."""
    holds = _truth(guard.test) if guard.test is not None else None
    return holds is not None and holds is (guard.branch != "body")


def _truth(test: cst.BaseExpression) -> bool | None:
    """Of a test that is written out: `0`, `not True`, `False and ...`."""
    match test:
        case cst.Name(value="True" | "False" as value):
            return value == "True"
        case cst.Integer():
            return test.evaluated_value != 0
        case cst.UnaryOperation(operator=cst.Not(), expression=inner):
            holds = _truth(inner)
            return None if holds is None else not holds
        case cst.BooleanOperation(operator=operator):
            decides = isinstance(operator, cst.Or)
            parts = {_truth(part) for part in (test.left, test.right)}
            return decides if decides in parts else (None if None in parts else not decides)
    return None


class Guards:
    """The guards of the nodes of one file. What is asked again and again is worked out once."""

    def __init__(self, scopes: Scopes) -> None:
        self._scopes = scopes
        self._above: dict[cst.CSTNode, tuple[cst.CSTNode, cst.CSTNode] | None] = {}
        self._exits: dict[cst.CSTNode, list[tuple[int, Guard]]] = {}
        self._places: dict[cst.CSTNode, dict[cst.CSTNode, int]] = {}
        self._kinds: dict[cst.CSTNode, str] = {}
        self._paced: dict[cst.If, bool] = {}

    def around(self, node: cst.CSTNode, inside: Loop | None) -> Iterator[Guard]:
        """Conditions around `node`, innermost first, up to the loop, or up to the function when `inside` is None."""
        stop = inside.node if inside is not None else self._scopes.contexts[node].function.node
        while node is not stop and (above := self._next_above(node)) is not None:
            child, node = above
            yield from self._of(node, child)

    def _next_above(self, node: cst.CSTNode) -> tuple[cst.CSTNode, cst.CSTNode] | None:
        """The nearest telling node above, below it the one that leads to `node`."""
        way: list[cst.CSTNode] = []
        while node not in self._above:
            way.append(node)
            parent = self._scopes.parents.get(node)
            if parent is None or type(parent) in _TELLING:
                found = (node, parent) if parent is not None else None
                break
            node = parent
        else:
            found = self._above[node]
        self._above.update(dict.fromkeys(way, found))
        return found

    def _of(self, parent: cst.CSTNode, child: cst.CSTNode) -> Iterator[Guard]:
        if isinstance(parent, (cst.If, cst.IfExp)) and child is not parent.test:
            branch = "body" if child is parent.body else "else"
            kind = self._kind_of(parent.test)
            may_be_rare = kind == "other" or (kind == "optional" and _compares_variables(parent.test))
            if may_be_rare and branch == "body" and isinstance(parent, cst.If) and self._sets_its_pace(parent):
                kind = "log"
            elif kind == "other" and branch == "body" and _asks_for_breakage(parent.test):
                kind = "handler"
            yield Guard(parent, parent.test, kind, branch)
        elif isinstance(parent, cst.BooleanOperation) and child is parent.right:
            branch = "body" if isinstance(parent.operator, cst.And) else "else"
            yield Guard(parent, parent.left, self._kind_of(parent.left), branch)
        elif isinstance(parent, cst.MatchCase) and child is parent.body:
            subject = cst.ensure_type(self._scopes.parents[parent], cst.Match).subject
            yield Guard(parent, subject, self._kind_of(subject), "body")
        elif isinstance(parent, (cst.ExceptHandler, cst.ExceptStarHandler)):
            yield Guard(parent, None, "handler", "body")
        elif isinstance(parent, (cst.IndentedBlock, cst.Module)) and not isinstance(child, cst.BaseSuite):
            yield from self._skips(parent, child)

    def _skips(self, block: cst.IndentedBlock | cst.Module, child: cst.CSTNode) -> Iterator[Guard]:
        """`if step % 10: continue` above a statement guards it."""
        if block not in self._exits:
            self._places[block] = {statement: place for place, statement in enumerate(block.body)}
            self._exits[block] = [
                (place, Guard(statement, statement.test, self._kind_of_exit(statement), "else"))
                for place, statement in enumerate(block.body)
                if isinstance(statement, cst.If) and statement.orelse is None and _leaves(statement.body)
            ]
        place = self._places[block].get(child, len(block.body))
        yield from (guard for exit_place, guard in self._exits[block] if exit_place < place)

    def _kind_of_exit(self, gate: cst.If) -> str:
        """Of the lines behind it: up to a break, all iterations run them, be it the end of an interval or not."""
        kind = self._kind_of(gate.test)
        return "other" if kind == "log" and isinstance(_last(gate.body), cst.Break) else kind

    def _kind_of(self, test: cst.BaseExpression) -> str:
        if test not in self._kinds:
            self._kinds[test] = kind_of(self._scopes, test)
        return self._kinds[test]

    def _sets_its_pace(self, gate: cst.If) -> bool:
        if gate not in self._paced:
            self._paced[gate] = _sets_its_pace(self._scopes, gate)
        return self._paced[gate]


def _leaves(suite: cst.BaseSuite) -> bool:
    last = _last(suite)
    if isinstance(last, cst.With):
        return _leaves(last.body)
    if isinstance(last, cst.If):
        return _leaves_in_all(last)
    return isinstance(last, (cst.Continue, cst.Return, cst.Break))


def _leaves_in_all(branch: cst.If) -> bool:
    rest = branch.orelse
    if isinstance(rest, cst.If):
        return _leaves(branch.body) and _leaves_in_all(rest)
    return rest is not None and _leaves(branch.body) and _leaves(rest.body)


def _last(suite: cst.BaseSuite) -> cst.CSTNode | None:
    last = suite.body[-1] if suite.body else None
    return last.body[-1] if isinstance(last, cst.SimpleStatementLine) else last


def kind_of(scopes: Scopes, test: cst.BaseExpression, depth: int = 0) -> str:
    """log, rank, phase, optional or other."""
    if _holds_each_round(test):
        return "other"
    nodes = list(walk(test))
    names = _identifiers(test)
    if any(_counts_round(node) or _lists_rounds(node) for node in nodes) or _REMAINDERS.intersection(names):
        return "log"
    telling = [part for part in conjuncts(test) if any(map(_LOG_NAMES.search, _identifiers(part, lengths=False)))]
    if not all(map(_asks_for_sink, telling)):
        return "log"
    if depth < 2 and any(_assigned_gate(scopes, operand, depth) for operand in _operands(test)):
        return "log"
    if depth < 2 and any(_asks_for_interval(scopes, node, depth) for node in nodes):
        return "log"
    if any(_RANK_NAMES.search(name) for name in names):
        return "log" if any(map(_is_first_step, conjuncts(test))) else "rank"
    if telling or _is_optional(test):
        return "optional"
    if any(_PHASE_NAMES.match(name) for name in _identifiers(test, lengths=False)):
        return "phase"
    return "log" if any(_is_soon_over(scopes, part) for part in conjuncts(test)) else "other"


def _holds_each_round(test: cst.BaseExpression) -> bool:
    """`step % 1 == 0`."""
    match test:
        case cst.Comparison(
            left=cst.BinaryOperation(operator=cst.Modulo(), right=cst.Integer(value="1")),
            comparisons=[cst.ComparisonTarget(operator=cst.Equal(), comparator=cst.Integer(value="0"))],
        ):
            return True
    return False


def _counts_round(node: cst.CSTNode) -> bool:
    """`step % 10`, `step & 15`."""
    match node:
        case (
            cst.BinaryOperation(operator=cst.Modulo()) | cst.BinaryOperation(operator=cst.BitAnd(), right=cst.Integer())
        ):
            return True
    return False


def _lists_rounds(node: cst.CSTNode) -> bool:
    """`iteration in testing_iterations`: some rounds, of many."""
    match node:
        case cst.Comparison(
            left=cst.Name() | cst.Attribute() as counter, comparisons=[cst.ComparisonTarget(operator=cst.In())]
        ):
            return _ROUNDS.search(_identifier(counter)) is not None
    return False


def _asks_for_interval(scopes: Scopes, node: cst.CSTNode, depth: int) -> bool:
    """A call of a function of the file that says whether it is time: `every(step)`, `self.is_due()`."""
    call = scopes.call_of.get(node)
    target = call.target if call is not None else None
    values = [statement.value for statement in target.returns] if target is not None else []
    return any(value is not None and kind_of(scopes, value, depth + 1) == "log" for value in values)


def _sets_its_pace(scopes: Scopes, gate: cst.If) -> bool:
    """`if count == n: count = 0`, `if time() - last > 9: last = time()`, `if loss < best: best = loss`, and
    `if len(losses) == n: losses.clear()`."""
    if not isinstance(gate.test, (cst.Comparison, cst.UnaryOperation, cst.Name)):
        return False
    if any(_is_length(node) and _is_emptied(node.args[0].value, gate.body) for node in walk(gate.test)):  # type: ignore[attr-defined]
        return True
    for node in walk(gate.test):
        binding = scopes.bindings.get(node)
        for write in binding.writes if binding is not None else ():
            if write.kind in ("assign", "augmented") and _is_inside(scopes, write.target, gate.body):
                value = write.value
                if isinstance(value, (cst.Integer, cst.Float)) or _is_clock(value):
                    return True
                if write.kind == "augmented" and not (_scales(scopes, write) and _asks_for_sign(gate.test)):
                    return True
                if isinstance(value, cst.Name) and value.value in ("True", "False"):
                    return True
                if value is not None and any(value.deep_equals(part) for part in walk(gate.test)):
                    return True
    return False


def _is_emptied(measured: cst.BaseExpression, suite: cst.BaseSuite) -> bool:
    """`losses.clear()`, `losses = []`"""
    for node in walk(suite):
        match node:
            case (
                cst.Call(func=cst.Attribute(value=holder, attr=cst.Name(value="clear")))
                | cst.Assign(targets=[cst.AssignTarget(target=holder)], value=cst.List(elements=[]))
            ):
                if holder.deep_equals(measured):
                    return True
    return False


def _scales(scopes: Scopes, write: Write) -> bool:
    """`weight *= decay`"""
    statement = scopes.parents.get(write.target)
    return isinstance(statement, cst.AugAssign) and isinstance(
        statement.operator, (cst.MultiplyAssign, cst.DivideAssign)
    )


def _asks_for_sign(test: cst.BaseExpression) -> bool:
    """`weight > 0`, which holds as before once `weight` is multiplied."""
    match test:
        case cst.Comparison(comparisons=[cst.ComparisonTarget(comparator=cst.Integer() | cst.Float() as bound)]):
            return float(bound.evaluated_value) == 0
    return isinstance(test, cst.Name)


def _asks_for_breakage(test: cst.BaseExpression) -> bool:
    """`torch.isnan(loss).any() or ...`, `not math.isfinite(total)`: what follows is for what should not happen."""
    match test:
        case cst.BooleanOperation(operator=cst.And(), left=left, right=right):
            return _asks_for_breakage(left) or _asks_for_breakage(right)
        case cst.BooleanOperation(left=left, right=right):
            asked = [_asks_for_breakage(left), _asks_for_breakage(right)]
            return all(asked) or (any(asked) and _name_the_same(left, right))
        case cst.UnaryOperation(operator=cst.Not(), expression=inner):
            return "isfinite" in _called(inner)
        case cst.Comparison():
            return False
    return not _BROKEN.isdisjoint(_called(test))


def _name_the_same(left: cst.BaseExpression, right: cst.BaseExpression) -> bool:
    """`torch.isnan(loss) or loss > 1e6`"""
    names = ({node.value for node in walk(side) if isinstance(node, cst.Name)} for side in (left, right))
    return bool(set.intersection(*names) - _PACKAGES)


def _called(test: cst.BaseExpression) -> set[str]:
    return {last_name(node.func) for node in walk(test) if isinstance(node, cst.Call)}


def _is_inside(scopes: Scopes, node: cst.CSTNode, suite: cst.BaseSuite) -> bool:
    current: cst.CSTNode | None = node
    while current is not None and current is not suite:
        current = scopes.parents.get(current)
    return current is suite


def _is_clock(node: cst.BaseExpression | None) -> bool:
    return isinstance(node, cst.Call) and (dotted(node.func) or "").rpartition(".")[2] in _CLOCKS


def _identifier(node: cst.Name | cst.Attribute) -> str:
    return node.attr.value if isinstance(node, cst.Attribute) else node.value


def _identifiers(test: cst.BaseExpression, *, lengths: bool = True) -> list[str]:
    """The names in a condition; without those in `len(last_text)`, which tell what there is, and not when."""
    found = [_identifier(node) for node in walk(test) if isinstance(node, (cst.Name, cst.Attribute))]
    if lengths or "len" not in found:
        return found
    measured = [arg for node in walk(test) if _is_length(node) for arg in node.args]  # type: ignore[attr-defined]
    for arg in measured:
        for name in _identifiers(arg.value):
            if name in found:
                found.remove(name)
    return found


def _is_length(node: cst.CSTNode) -> bool:
    match node:
        case cst.Call(func=cst.Name(value="len"), args=[_]):
            return True
    return False


def _operands(test: cst.BaseExpression) -> Iterator[cst.Name | cst.Attribute]:
    """The variables whose truth, or whose being equal to something, decides."""
    match test:
        case cst.BooleanOperation(left=left, right=right):
            yield from _operands(left)
            yield from _operands(right)
        case cst.UnaryOperation(operator=cst.Not(), expression=inner):
            yield from _operands(inner)
        case cst.Comparison() if _is_optional(test):
            return
        case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(operator=cst.Equal() | cst.NotEqual())]):
            yield from _operands(left)
        case cst.Name() | cst.Attribute():
            yield test


def _assigned_gate(scopes: Scopes, test: cst.Name | cst.Attribute, depth: int) -> bool:
    binding = scopes.bindings.get(test)
    if binding is None or not binding.writes:
        return False
    whole = [write.value for write in binding.writes if write.kind == "assign" and not _is_part_of_result(write)]
    return any(value is not None and _is_gate(scopes, value, depth) for value in whole)


def _is_gate(scopes: Scopes, value: cst.BaseExpression, depth: int) -> bool:
    if isinstance(value, cst.IfExp):
        return any(_is_gate(scopes, part, depth) for part in (value.test, value.body, value.orelse))
    return not _makes_object(value) and kind_of(scopes, value, depth + 1) == "log"


def _makes_object(value: cst.BaseExpression) -> bool:
    """`Attack(model, save_steps=False)`, which is there or not, whatever it is told."""
    match value:
        case cst.Call(func=cst.Name(value=name) | cst.Attribute(attr=cst.Name(value=name))):
            return name[:1].isupper()
    return False


def _is_part_of_result(write: Write) -> bool:
    """`norm, overflow = backward(loss, logger)`: what a call is given says nothing of each part that it returns."""
    return write.unpacked and isinstance(write.value, cst.Call)


def _is_optional(test: cst.BaseExpression) -> bool:
    match test:
        case cst.Comparison(comparisons=[cst.ComparisonTarget(operator=cst.Is() | cst.IsNot())]):
            return True
        case cst.Comparison(comparisons=[cst.ComparisonTarget(comparator=cst.Name(value="None"))]):
            return True
        case cst.Call(func=cst.Name(value="hasattr" | "isinstance" | "callable")):
            return True
        case cst.UnaryOperation(operator=cst.Not(), expression=inner):
            return _is_optional(inner)
    return False


def _compares_variables(test: cst.BaseExpression) -> bool:
    """`current is not previous`, which asks for a change, and not whether there is something."""
    match test:
        case cst.Comparison(left=cst.Name() | cst.Attribute(), comparisons=[cst.ComparisonTarget(comparator=other)]):
            return isinstance(other, cst.Attribute) or (isinstance(other, cst.Name) and other.value not in _CONSTANTS)
    return False


def _asks_for_sink(test: cst.BaseExpression) -> bool:
    """`writer is not None`, `args.wandb`: whether there is a place to log to, which says nothing of how often."""
    if not _is_optional(test) and not isinstance(test, (cst.Name, cst.Attribute)):
        return False
    return all(_SINKS.fullmatch(name) for name in _identifiers(test) if _LOG_NAMES.search(name))


def _is_first_step(test: cst.BaseExpression) -> bool:
    """`i == 0`, but not `rank == 0`."""
    names = _identifiers(test)
    return _single_iteration(test) and not any(map(_RANK_NAMES.search, names))


def _is_soon_over(scopes: Scopes, test: cst.BaseExpression) -> bool:
    """Whether one round meets a condition, or the first few do."""
    return _single_iteration(test) or _first_few(scopes, test) or _is_last(scopes, test)


def _is_last(scopes: Scopes, test: cst.BaseExpression) -> bool:
    """`step == steps` in `for step in range(1, steps + 1)`: one of the rounds that the loop counts."""
    match test:
        case cst.Comparison(
            left=cst.Name() as counter,
            comparisons=[cst.ComparisonTarget(operator=cst.Equal(), comparator=cst.Name() | cst.Attribute())],
        ):
            own = scopes.contexts[counter].loop
            binding = scopes.bindings.get(counter)
            counted = own is not None and isinstance(own.iterable, cst.Call) and last_name(own.iterable.func) == "range"
            return counted and binding is not None and any(write.loop is own for write in binding.writes)
    return False


def _first_few(scopes: Scopes, test: cst.BaseExpression) -> bool:
    """`shown < 10` where every round adds to `shown`, `step < 3` where the loop counts: an example or two."""
    match test:
        case cst.Comparison(
            left=cst.Name() as counter,
            comparisons=[
                cst.ComparisonTarget(operator=cst.LessThan() | cst.LessThanEqual(), comparator=cst.Integer() as bound)
            ],
        ):
            binding = scopes.bindings.get(counter)
            writes = binding.writes if binding is not None else []
            if any(write.kind == "augmented" and write.loop for write in writes):
                return True
            own = scopes.contexts[counter].loop
            counted = own is not None and any(write.kind == "for" and write.loop is own for write in writes)
            return counted and bound.evaluated_value <= _FEW
    return False


def _single_iteration(test: cst.BaseExpression) -> bool:
    """`i == 0`, `step == len(loader) - 1`: true once."""
    match test:
        case cst.Comparison(left=cst.Name() | cst.BinaryOperation(), comparisons=[target]):
            if not isinstance(target.operator, cst.Equal):
                return False
            return isinstance(target.comparator, (cst.Integer, cst.BinaryOperation, cst.Call))
    return False
