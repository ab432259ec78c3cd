"""What a loop does with a value that was just copied to the host: count it, print it, decide by it, feed it back."""

from __future__ import annotations

from enum import Flag, auto
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.devices import host_calls
from torchlint.analyses.devices.host_reads import Reads, When, is_last_of
from torchlint.analyses.first_values import asks_for_marker, asks_if_set, begins_as_none
from torchlint.analyses.loops.steps import is_forward
from torchlint.analyses.loops.whole_steps import is_whole_step
from torchlint.analyses.sums import adds_to, is_named_sum
from torchlint.analyses.texts import is_string
from torchlint.analyses.unread import is_never_read
from torchlint.semantics.dataflow import parameter_of_function, reaches, text
from torchlint.semantics.entities import Binding, Call, Function, Loop, Role
from torchlint.semantics.values import Kind, Place
from torchlint.semantics.vocabulary import is_loss_function, is_loss_module, makes_tensor

if TYPE_CHECKING:
    from torchlint.semantics.model import Model


class Use(Flag):
    """How the host value is used while the loop runs, joined over all its uses. Empty: it is not."""

    NONE = 0
    ACCUMULATED = auto()  # `total += value`
    COLLECTED = auto()  # a number goes into a list, a dict or a meter
    LOGGED = auto()  # printed, formatted, shown in a progress bar, sent to a logger
    SELDOM = auto()  # logged too, but at intervals only
    LATER = auto()  # held by a name that is read after the loop
    HANDED = auto()  # a number is handed to code that is not known
    GATHERED = auto()  # an array, not a number, goes into a list or a dict
    WRITTEN = auto()  # into a file: reason enough alone, but not for what is printed in the same step
    NEEDED = auto()  # the loop cannot go on without it: a test, an index, an environment, a file, the next operation


DEFERRABLE = Use.ACCUMULATED | Use.COLLECTED | Use.LOGGED | Use.SELDOM | Use.LATER | Use.HANDED
KEPT = Use.NEEDED | Use.GATHERED
_ARRAY_METADATA = frozenset("shape dtype device ndim size dim numel nelement".split())
_DEVICE_METHODS = frozenset("cuda to backward type_as".split())
_DEPTH = 3
# Of one variable, and on the way of one value. Beyond, it counts as needed: all ways through a long sum are too many.
_MOST_READS = 200
_MOST_LOOKED_AT = 2_000


class HostFlow:
    """Follows one host value through the loop in which it was made.

    `number`: whether it is a single number. An array counts as one from the reduction on that makes it one.
    """

    def __init__(self, model: Model, loop: Loop | None, depth: int = _DEPTH, entered: Function | None = None) -> None:
        self._model = model
        self._loop = loop
        self._reads = Reads.of(model, loop)
        self._looked_at = 0
        self._depth = depth
        self._entered = entered  # the function into which an array is followed
        # Where it is in what that function returns: a part of a tuple, or all.
        self.returned_at: set[int | None] = set()
        self._is_in_header = False  # of the test of an `if`, which is the matter of another rule then
        self._work: list[tuple[cst.CSTNode, bool]] = []
        self._seen: set[tuple[cst.CSTNode, bool]] = set()
        self._use = Use.NONE

    def of(self, node: cst.CSTNode, number: bool, position: int | None = None) -> Use:
        """The use of a value, or of one part of the tuple that a call returns."""
        self._is_in_header = self._model.small_statement(node) is None
        statement = self._model.parent(node)
        if position is not None and isinstance(statement, cst.Assign):
            for target in statement.targets:
                self._store(target.target, statement, number, position)
        else:
            self._on(node, number)
        return self._followed()

    def of_sum(self, statement: cst.AugAssign) -> Use:
        """The use of what `total += value` makes of numbers."""
        self._augmented(statement, True)
        return self._followed()

    def _followed(self) -> Use:
        while self._work and Use.NEEDED not in self._use:
            self._step(*self._work.pop())
        return self._use

    def _on(self, node: cst.CSTNode | None, number: bool) -> None:
        if node is not None and (node, number) not in self._seen:
            self._seen.add((node, number))
            self._work.append((node, number))

    def _step(self, node: cst.CSTNode, number: bool) -> None:
        parent = self._model.parent(node)
        match parent:
            case cst.Attribute():
                self._attribute(parent, number)
            case cst.Arg():
                self._argument(parent, number)
            case cst.Assign():
                for target in parent.targets:
                    self._store(target.target, parent, number)
            case cst.AnnAssign() | cst.NamedExpr():
                self._store(parent.target, parent, number)
                if isinstance(parent, cst.NamedExpr):
                    self._on(parent, number)
            case cst.AugAssign():
                self._augmented(parent, number)
            case cst.Return():
                self._returned(parent, number)
            case cst.Element() if isinstance(whole := self._model.parent(parent), cst.Tuple):
                self._part(whole, list(whole.elements).index(parent), number)
            case cst.For() | cst.CompFor() if number and parent.iter is node:
                self._iterated(parent, node)
            case cst.Expr() | cst.Del():
                pass
            case cst.AssignTarget() if isinstance(node, cst.Subscript):
                pass  # something else goes into the container that holds the number, or into the array
            case cst.Comparison() if asks_if_set(parent) or (number and asks_for_marker(self._model, parent, node)):
                pass
            case cst.If() if number and begins_as_none(self._model, node):
                pass
            case cst.IfExp(test=test) if test is node:
                self._use |= Use.NEEDED
            case cst.UnaryOperation(operator=cst.Not()) if not number:
                self._use |= Use.NEEDED
            case cst.If() if number and not self._is_in_header and self._only_reports(parent):
                self._use |= Use.LOGGED
            case cst.Subscript() if parent.value is not node:
                self._use |= Use.NEEDED
            case cst.Index() if not number:
                self._index(parent)
            case cst.For() if self._entered is not None and parent.iter is node:
                self._store(parent.target, parent, number)
            case cst.DictElement() | cst.DictComp() if parent.key is node:
                self._use |= Use.NEEDED
            case (
                cst.BinaryOperation()
                | cst.UnaryOperation()
                | cst.BooleanOperation()
                | cst.Comparison()
                | cst.ComparisonTarget()
                | cst.IfExp()
                | cst.Subscript()
                | cst.Tuple()
                | cst.List()
                | cst.Dict()
                | cst.Element()
                | cst.DictElement()
                | cst.StarredElement()
                | cst.StarredDictElement()
                | cst.ListComp()
                | cst.GeneratorExp()
                | cst.DictComp()
                | cst.FormattedString()
                | cst.FormattedStringExpression()
                | cst.ConcatenatedString()
            ):
                self._on(parent, number)
            case _:  # a test, an assertion, an index, a loop over it
                self._use |= Use.NEEDED

    def _only_reports(self, branch: cst.If) -> bool:
        """Whether nothing hangs on a test but what is printed or logged, and names that nothing else reads."""
        lines = branch.body.body
        statements = [s for line in lines if isinstance(line, cst.SimpleStatementLine) for s in line.body]
        return (
            branch.orelse is None
            and all(isinstance(line, cst.SimpleStatementLine) for line in lines)
            and any(self._logs(statement) for statement in statements)
            and all(self._logs(statement) or self._serves(statement, branch) for statement in statements)
        )

    def _logs(self, statement: cst.BaseSmallStatement) -> bool:
        """A call to log something, the result of which nobody wants."""
        if not isinstance(statement, cst.Expr) or not isinstance(statement.value, cst.Call):
            return False
        call = self._model.call(statement.value)
        return host_calls.is_log(call) or (call.method or "").startswith("log")

    def _serves(self, statement: cst.BaseSmallStatement, branch: cst.If) -> bool:
        """Whether a statement gives names to what is logged, and does nothing else."""
        if not isinstance(statement, cst.Assign) or self._model.effects(statement).forwards:
            return False
        bindings = [self._model.binding(target.target) for target in statement.targets]
        return all(
            binding is not None and all(branch.body in self._model.ancestors(read) for read in binding.reads)
            for binding in bindings
        )

    def _iterated(self, loop: cst.For | cst.CompFor, numbers: cst.CSTNode) -> None:
        """Over a list of numbers, or over a dict of them, of which the loop gets the keys and not the numbers."""
        key, held = self._model.binding(loop.target), self._model.binding(numbers)
        indexed = {self._model.parent(read) for read in held.reads} if held is not None else set()
        looked_up = [above for read in key.reads for above in self._model.ancestors(read)] if key is not None else []
        if not any(isinstance(above, cst.Subscript) and above in indexed for above in looked_up):
            self._store(loop.target, loop, True)

    def _index(self, index: cst.Index) -> None:
        """`x[mask]`: an array picks parts of another."""
        element = self._model.parent(index)
        whole = self._model.parent(element) if element is not None else None
        if isinstance(whole, cst.Subscript) and isinstance(self._model.parent(whole), cst.AssignTarget):
            self._filled(whole.value)
        elif self._entered is not None and isinstance(whole, cst.Subscript):
            self._on(whole, False)
        else:
            self._use |= Use.NEEDED

    def _filled(self, array: cst.BaseExpression) -> None:
        """`x[mask] = 0`, of which nothing new hangs on the mask where x is what it was made from."""
        binding = self._model.binding(array)
        if binding is None or not any((read, False) in self._seen for read in binding.reads):
            self._use |= Use.NEEDED

    def _part(self, whole: cst.Tuple, position: int, number: bool) -> None:
        """Where a tuple is returned or taken apart, each part goes its own way."""
        statement = self._model.parent(whole)
        if any(isinstance(element, cst.StarredElement) for element in whole.elements):
            self._on(whole, number)
        elif isinstance(statement, cst.Return):
            self._returned(statement, number, position)
        elif isinstance(statement, cst.Assign):
            for target in statement.targets:
                self._store(target.target, statement, number, position)
        else:
            self._on(whole, number)

    def _returned(self, statement: cst.Return, number: bool, position: int | None = None) -> None:
        """From a function that is one step: on, in the loops that call it; an array in those of this file only."""
        function = self._model.function(statement)
        if function is self._entered:
            self.returned_at.add(position)
            return
        hook, given = function.hook, statement.value
        is_dict = given is not None and self._model.value(given).kind is Kind.DICT
        is_metric = hook is not None and hook.returns_metrics and (is_dict or hook.role is Role.EVALUATION)
        if hook is not None and number and (hook.is_engine or is_metric):
            self._use |= Use.HANDED
            return
        if number and self._loop is None and self._is_step_for_others(function, position):
            self._use |= Use.HANDED
            return
        abroad = [self._model.caller(call) for call in function.foreign_callers] if number else []
        callers = [*((self._model, call) for call in function.callers), *abroad]
        if number and not callers and self._loop is None:
            callers = [*self._model.calls_elsewhere(function)]
        is_seen = callers and not self._escapes(function) and (number or not function.foreign_callers)
        if self._loop is not None or not self._depth or not is_seen or None in callers:
            self._use |= Use.NEEDED
            return
        for model, call in filter(None, callers):
            loop = next((loop for loop in call.loops() if not loop.is_comprehension), None)
            self._use |= HostFlow(model, loop, self._depth - 1).of(call.node, number, position)

    def _is_step_for_others(self, function: Function, position: int | None) -> bool:
        """Whether a function does a whole training step for a notebook, or the like, that is not in sight; or is the
        forward pass of a loss, which returns the number beside something else."""
        if function.callers or function.foreign_callers or function.passed_around:
            return False
        is_step = is_whole_step(self._model, function) or (is_forward(function) and position is not None)
        return is_step and not any(True for _ in self._model.calls_elsewhere(function))

    def _escapes(self, function: Function) -> bool:
        """Whether code out of sight may call a function; one that makes it and returns it hands it to its callers."""
        maker = function.parent
        binding = maker.scope.bindings.get(function.name) if maker is not None and function.passed_around else None
        if maker is None or binding is None or maker.is_module or not maker.callers or maker.passed_around:
            return function.passed_around
        above = [(read, self._model.parent(read)) for read in binding.reads]
        return not all(
            isinstance(user, cst.Return) or (isinstance(user, cst.Call) and user.func is read) for read, user in above
        )

    # -- what holds it

    def _store(self, target: cst.CSTNode, statement: cst.CSTNode, number: bool, position: int | None = None) -> None:
        match target:
            case cst.Name() | cst.Attribute():
                if isinstance(statement, cst.Assign) and adds_to(statement.value, target):
                    self._use |= Use.ACCUMULATED if number else Use.GATHERED
                self._read_later(self._model.binding(target), statement, number)
            case cst.Tuple(elements=elements) | cst.List(elements=elements):
                is_plain = not any(isinstance(element, cst.StarredElement) for element in elements)
                parts = elements if position is None or not is_plain else elements[position : position + 1]
                for element in parts:
                    self._store(element.value, statement, number)
            case cst.Subscript() if number and isinstance(statement, cst.Assign) and adds_to(statement.value, target):
                self._use |= Use.ACCUMULATED
            case cst.Subscript():
                self._use |= Use.COLLECTED if number else Use.GATHERED
            case _:
                self._use |= Use.NEEDED

    def _augmented(self, statement: cst.AugAssign, number: bool) -> None:
        target = statement.target
        is_sum = number or (
            self._holds_numbers(target)
            and not self._begins_anew(target)
            and not self._begins_with(target, statement.value)
        )
        if isinstance(target, (cst.Name, cst.Attribute)):
            if self._model.value(target).is_container:
                if number or not is_never_read(self._model, target):
                    self._use |= Use.COLLECTED if number else Use.GATHERED
                return
            self._read_later(self._model.binding(target), statement, is_sum)
        if not is_string(self._model, target):
            self._use |= Use.ACCUMULATED if is_sum else Use.GATHERED

    def _holds_numbers(self, target: cst.BaseExpression) -> bool:
        """Whether `+=` adds to what the target holds, and does not make a list of it longer, or fill in a row."""
        binding = self._model.binding(target)
        if isinstance(target, cst.Subscript):
            return is_named_sum(self._model, target)
        starts = [write.value for write in binding.writes if write.kind == "assign"] if binding is not None else []
        values = [self._model.value(node) for node in (target, *starts) if node is not None]
        return any(value.is_(Kind.ARRAY, Kind.NUMBER, Kind.TENSOR) for value in values)

    def _begins_anew(self, target: cst.BaseExpression) -> bool:
        """Whether each iteration makes a sum of its own, of the same shape as what it adds up."""
        binding = self._model.binding(target)
        starts = [write for write in binding.writes if write.kind == "assign"] if binding is not None else []
        return any(
            write.loop is self._loop is not None and not list(self._model.guards(write.target, inside=self._loop))
            for write in starts
        )

    def _begins_with(self, target: cst.BaseExpression, summand: cst.BaseExpression) -> bool:
        """`if total is None: total = predict(x).cpu()`, which is more than the device may have room for."""
        binding = self._model.binding(target)
        starts = [write.value for write in binding.writes if write.kind == "assign"] if binding is not None else []
        return any(start is not None and text(start) == text(summand) for start in starts)

    def _read_later(self, binding: Binding | None, statement: cst.CSTNode, number: bool) -> None:
        """Every read that can see what `statement` wrote."""
        if binding is None:
            self._use |= Use.LATER if number else Use.GATHERED
            return
        self._looked_at += len(binding.reads)
        if len(binding.reads) > _MOST_READS or self._looked_at > _MOST_LOOKED_AT:
            self._use |= Use.NEEDED
            return
        for read, when in self._reads.seeing(statement, binding):
            match when:
                case When.NOW:
                    self._on(read, number)
                case When.SELDOM:
                    self._use |= Use.SELDOM
                case When.LATER:
                    self._use |= Use.LATER if number else Use.GATHERED
                case When.CALLED if number:
                    self._use |= Use.LATER
                case _:
                    self._use |= Use.NEEDED

    # -- what is done with it

    def _attribute(self, node: cst.Attribute, number: bool) -> None:
        name = node.attr.value
        call = self._model.parent(node)
        if not (isinstance(call, cst.Call) and call.func is node):
            if name not in _ARRAY_METADATA:
                self._on(node, number)
        elif name in _ARRAY_METADATA:
            pass
        elif host_calls.collects(self._model.call(call)) and not number:
            self._use |= Use.GATHERED
        elif name in _DEVICE_METHODS:
            self._use |= Use.NEEDED
        elif host_calls.is_reduction(name) and (not call.args or self._model.value(node.value).rank == 1):
            self._on(call, name != "item" or not self._reads.is_one_of_many(node.value))
        else:
            self._on(call, number)

    def _argument(self, arg: cst.Arg, number: bool) -> None:
        site = self._model.parent(arg)
        if not isinstance(site, cst.Call):
            self._use |= Use.NEEDED
            return
        call = self._model.call(site)
        if number:
            self._number_argument(call, arg, site)
        elif not self._enters(call, arg, False):
            self._array_argument(call, site)

    def _enters(self, call: Call, arg: cst.Arg, number: bool) -> bool:
        """Into a function of the project: what that does with the value, and what the call returns of it."""
        function = call.target or call.foreign
        home = self._model if call.target is not None else self._model.home(call)
        parameter = parameter_of_function(call, function, arg) if function is not None else None
        if function is None or home is None or parameter is None or not self._depth:
            return False
        inside = HostFlow(home, None, self._depth - 1, entered=function)
        for read in parameter.reads:
            if reaches(home, parameter, parameter.writes[0].target, read):
                inside._on(read, number)
        self._use |= inside._followed()
        if inside.returned_at:
            self._on(call.node, number or self._model.value(call.node).is_(Kind.NUMBER))
        return True

    def _is_loss(self, call: Call) -> bool:
        ref = self._model.value(call.node.func).ref or ""
        return is_loss_function(call.callee or "") or is_loss_module(ref)

    def _is_given_results(self, call: Call) -> bool:
        """Whether the first argument is on the host, too; if it is not, `ctc_loss` wants the lengths there."""
        first = call.node.args[0]
        return self._model.value(first.value).place is Place.HOST

    def _number_argument(self, call: Call, arg: cst.Arg, site: cst.Call) -> None:
        if host_calls.asks(call):
            self._on(site, True)
        elif host_calls.checks(call) or host_calls.steers(call) or host_calls.saves(call):
            self._use |= Use.NEEDED
        elif host_calls.is_log(call):
            self._use |= Use.LOGGED
        elif host_calls.passes_on(call):
            self._on(site, True)
        elif host_calls.writes(call):
            if not self._enters(call, arg, True):
                self._use |= Use.WRITTEN
        elif call.method == "step" and self._model.value(arg.value).kind is Kind.STRING:  # of a progress bar
            self._use |= Use.LOGGED
        elif host_calls.needs(call):
            self._use |= Use.NEEDED
        elif host_calls.collects(call):
            self._use |= Use.COLLECTED
            self._read_back(call)
            self._read_whole(call)
        else:
            self._use |= Use.HANDED
            self._on(site, True)

    def _read_whole(self, call: Call) -> None:
        """`torch.tensor(sizes)` and `x.split(sizes)`, in the step, of a list that it begins anew: it works on with the
        numbers."""
        held = self._model.binding(call.receiver) if call.receiver is not None else None
        if held is None or held.is_parameter or held.cls is not None or held.scope_function is not call.function:
            return
        if not all(write.loop is self._loop for write in held.writes if write.kind == "assign"):
            return
        for read in held.reads:
            above = self._model.parent(read)
            site = self._model.parent(above) if isinstance(above, cst.Arg) else None
            callee = self._model.call(site).callee if isinstance(site, cst.Call) else None
            if callee is not None and makes_tensor(callee):
                self._use |= Use.NEEDED
            elif callee != "builtins.len" and not isinstance(above, (cst.Attribute, cst.AugAssign, cst.Subscript)):
                self._on(read, True)

    def _read_back(self, call: Call) -> None:
        """`losses[-1]` in the loop, right after `losses.append(loss)`."""
        held = self._model.binding(call.receiver) if call.method == "append" and call.receiver is not None else None
        for read in held.reads if held is not None else ():
            is_near = self._model.function(read) is call.function and self._reads.is_in_loop(read)
            part = self._model.parent(read)
            if is_near and isinstance(part, cst.Subscript) and is_last_of(part, read) and not self._reads.is_rare(read):
                self._on(part, True)

    def _array_argument(self, call: Call, site: cst.Call) -> None:
        if host_calls.checks(call) or host_calls.saves(call):
            self._use |= Use.NEEDED
        elif host_calls.reduces(call):
            self._on(site, host_calls.gives_number(call))
        elif host_calls.shows_element(call):
            self._on(site, True)
        elif self._is_loss(call):
            if self._is_given_results(call):
                self._on(site, self._model.value(site).rank == 0)
            else:
                self._use |= Use.NEEDED
        elif host_calls.computes(call) or (self._entered is not None and host_calls.pairs(call)):
            self._on(site, False)
        elif host_calls.updates_meter(call):
            self._use |= Use.COLLECTED
        elif host_calls.collects(call):
            if call.receiver is None or not is_never_read(self._model, call.receiver):
                self._use |= Use.GATHERED
        elif call.receiver_value.is_(Kind.TENSOR, Kind.ARRAY):
            self._on(site, False)
        else:
            self._use |= Use.NEEDED
