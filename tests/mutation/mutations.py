"""Defects that are put into clean programs. Every place where a kind of defect can be put gives one mutant.

A place is left out where the mutant is no defect: by a condition here, which says why, or by a comment in the program,

    with torch.no_grad():  # no mutant no_grad: the encoder is frozen, and there is no graph anyway
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from tests.mutation.code import Code, Function, code_of, last_name, root_name
from tests.mutation.programs import Program
from torchlint.finding import Edit, Finding
from torchlint.source import splice


class Where(Enum):
    """Where a finding counts: in the statement that was changed, in the function or class at the top level that it is
    in, or anywhere in the program, for defects that show in another place than the one at which something is missing.
    """

    STATEMENT = "statement"
    DEFINITION = "definition"
    PROGRAM = "program"


@dataclass(frozen=True)
class Site:
    """A place to put a defect: what is changed, how, and where a finding has to be."""

    node: ast.expr | ast.stmt
    edits: tuple[Edit, ...]
    where: Where = Where.DEFINITION


@dataclass(frozen=True)
class Kind:
    """A kind of defect. `codes` are those of the rules that speak of it."""

    name: str
    codes: frozenset[str]
    sites: Callable[[Code], Iterator[Site]]


@dataclass(frozen=True)
class Mutant:
    kind: Kind
    program: Program
    file: str
    line: int
    text: str
    code: Code
    site: Site

    def __str__(self) -> str:
        first = self.code.of(self.site.node).splitlines()[0]
        return f"{self.program.name}/{self.file}:{self.line} {first}"

    def mutated(self) -> Program:
        return self.program.with_file(self.file, self.text)

    def is_hit(self, file: str, finding: Finding) -> bool:
        """Whether a finding of the mutant, of which the original has none, speaks of the defect."""
        if finding.code not in self.kind.codes:
            return False
        if self.site.where is Where.PROGRAM:
            return True
        return file == self.file and self._is_near(finding)

    def _is_near(self, finding: Finding) -> bool:
        if self.site.where is Where.STATEMENT:
            start, end = self.code.span(self.code.statement(self.site.node))
            longer = len(self.text) - len(self.code.text)
            return start <= finding.start < max(end, end + longer)
        index = self.code.definitions().index(self.code.outermost(self.site.node))
        mutated = self._mutated_code
        return index == mutated.definitions().index(mutated.outermost(mutated.at(finding.start)))

    @cached_property
    def _mutated_code(self) -> Code:
        return Code(self.text)


def mutants(program: Program, kinds: Iterable[Kind] | None = None) -> Iterator[Mutant]:
    for file, text in program.files.items():
        code = code_of(text)
        for kind in KINDS if kinds is None else kinds:
            for site in kind.sites(code):
                if not _is_excluded(code, site, kind):
                    mutated = splice(text, site.edits)
                    compile(mutated, file, "exec")
                    yield Mutant(kind, program, file, site.node.lineno, mutated, code, site)


def _is_excluded(code: Code, site: Site, kind: Kind) -> bool:
    """By a comment at the end of its first line, or on the line above."""
    above, line = code.lines[max(site.node.lineno - 2, 0)], code.lines[site.node.lineno - 1]
    comments = above.strip() + line if above.lstrip().startswith("#") else line
    return f"# no mutant {kind.name}: " in comments


# -- what is deleted ---------------------------------------------------------------------------------------------------


def _zero_grad(code: Code) -> Iterator[Site]:
    """All resets of one optimizer, or of one model, in one function or class."""
    groups: dict[tuple[ast.AST, str], list[ast.Call]] = {}
    for call in code.calls("zero_grad"):
        assert isinstance(call.func, ast.Attribute)
        groups.setdefault((code.outermost(call), code.of(call.func.value)), []).append(call)
    for calls in groups.values():
        yield Site(calls[0], tuple(code.delete(code.statement(call)) for call in calls))


def _statement(*methods: str, where: Where = Where.DEFINITION) -> Callable[[Code], Iterator[Site]]:
    """Each call of one of these methods that is a statement of its own."""

    def sites(code: Code) -> Iterator[Site]:
        for call in code.calls(*methods):
            statement = code.statement(call)
            if isinstance(statement, ast.Expr) and statement.value is call:
                yield Site(statement, (code.delete(statement),), where)

    return sites


def _eval(code: Code) -> Iterator[Site]:
    """`model.eval()`, as a statement or in a chain of calls."""
    for call in code.calls("eval"):
        if isinstance(code.statement(call), ast.Expr):
            yield Site(call, (code.delete(code.statement(call)),))
        else:
            yield Site(call, (code.unwrap(call),), Where.PROGRAM)


def _item(code: Code) -> Iterator[Site]:
    """Numbers that are kept: without `.item()` it is the tensor, with its graph."""
    for call in code.calls("item"):
        where = _kept(code, call)
        # What reads a running sum or a list of tensors reads what has been detached, or the sum would be a finding.
        if where is not None and not _is_collected(code, call) and not _is_without_graph(code, call):
            yield Site(call, (code.unwrap(call),), where)


def _detach(code: Code) -> Iterator[Site]:
    """Tensors that are kept, as a number of the log or for later.

    Where a graph is cut within a step, as in `netD(fake.detach())`, nothing is kept: without the cut, too much is
    computed, or `backward` raises an error.
    """
    for call in code.calls("detach"):
        where = _kept(code, call)
        if where is not None:
            yield Site(call, (code.unwrap(call),), where)


_KEEPERS = ("append", "extend", "insert", "update", "add")


def _kept(code: Code, call: ast.Call) -> Where | None:
    """Whether a value outlives the statement: in a sum, in a container or meter, or in the hands of the caller."""
    statement = code.statement(call)
    if isinstance(statement, ast.AugAssign):
        return Where.STATEMENT
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        if last_name(statement.value.func) not in _KEEPERS:
            return None
        return Where.PROGRAM if _is_given(code, call) else Where.STATEMENT
    return Where.PROGRAM if isinstance(statement, ast.Return) else None


def _is_given(code: Code, call: ast.Call) -> bool:
    """Whether the function was given the tensor: the finding is at the call that hands it over."""
    scope = code.scope(call)
    return isinstance(scope, Function) and root_name(call) in {argument.arg for argument in scope.args.args}


def _is_collected(code: Code, call: ast.Call) -> bool:
    name, scope = root_name(call), code.scope(call)
    sums = (node.target for node in ast.walk(scope) if isinstance(node, ast.AugAssign))
    lists = (call.func.value for call in code.calls("append", "update") if isinstance(call.func, ast.Attribute))
    return name in {root_name(target) for target in [*sums, *lists]}


def _is_without_graph(code: Code, node: ast.AST) -> bool:
    """Under no_grad, and in what is decorated so."""
    return any(
        (isinstance(outer, ast.With) and any(_ends_graphs(item.context_expr) for item in outer.items))
        or (isinstance(outer, Function) and any(map(_ends_graphs, outer.decorator_list)))
        for outer in code.above(node)
    )


def _ends_graphs(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and last_name(node.func) in ("no_grad", "inference_mode")


def _no_grad(code: Code) -> Iterator[Site]:
    for node in code.nodes:
        if isinstance(node, ast.With):
            for item in node.items:
                if _ends_graphs(item.context_expr):
                    yield Site(node, tuple(code.unwrap_with(node, item)))
        elif isinstance(node, Function):
            for decorator in node.decorator_list:
                if _ends_graphs(decorator):
                    line = decorator.lineno
                    yield Site(decorator, (Edit(code.offset(line), code.offset(line + 1), ""),))


def _keyword(name: str, *callees: str, also: str = "") -> Callable[[Code], Iterator[Site]]:
    """`also` names the keyword that cannot stand without the other."""

    def sites(code: Code) -> Iterator[Site]:
        for call in code.calls(*callees):
            edits = [edit for keyword in (name, also) if (edit := code.drop_keyword(call, keyword)) is not None]
            if code.drop_keyword(call, name) is not None:
                yield Site(call, tuple(edits), Where.STATEMENT)

    return sites


# -- what is added -----------------------------------------------------------------------------------------------------


def _retain_graph(code: Code) -> Iterator[Site]:
    for call in code.calls("backward", "manual_backward"):
        yield Site(call, (code.add_argument(call, "retain_graph=True"),), Where.STATEMENT)


def _empty_cache(code: Code) -> Iterator[Site]:
    """At the end of the body of each loop that trains or evaluates."""
    if not _uses_device(code):
        return  # without a GPU the call does nothing
    for loop in code.nodes:
        if isinstance(loop, ast.For | ast.While) and _is_step_loop(code, loop):
            yield Site(loop, (code.append_to_body(loop, "torch.cuda.empty_cache()"),))


def _is_step_loop(code: Code, loop: ast.For | ast.While) -> bool:
    """Whether each iteration has a backward pass, or runs a model without gradients."""
    if any(
        isinstance(node, ast.For | ast.While) and _is_step_loop(code, node)
        for node in ast.walk(loop)
        if node is not loop
    ):
        return False  # a loop over epochs
    own = [node for node in code.nodes if isinstance(node, ast.Call) and _loop_of(code, node) is loop]
    names = {last_name(call.func) for call in own}
    is_evaluation = bool(names & MODELS) and any(_is_without_graph(code, call) for call in own)
    return bool(names & {"backward", "train_step", "train_pair"}) or is_evaluation


def _loop_of(code: Code, node: ast.AST) -> ast.AST | None:
    for outer in code.above(node):
        if isinstance(outer, ast.For | ast.While | Function):
            return outer
    return None


MODELS = {"model", "net", "netG", "netD", "student", "teacher", "encoder", "decoder", "policy", "q_network"}


def _uses_device(code: Code) -> bool:
    return "cuda" in code.text or "device" in code.text


# -- device hops -------------------------------------------------------------------------------------------------------

_FACTORIES = ("zeros", "ones", "full", "empty", "rand", "randn", "randint", "randperm", "arange", "linspace")


def _create_then_move(code: Code) -> Iterator[Site]:
    """Tensors made on the host and copied to the device."""
    for call in code.calls(*_FACTORIES):
        edit = code.drop_keyword(call, "device")
        if edit is not None:
            device = next(code.of(keyword.value) for keyword in call.keywords if keyword.arg == "device")
            end = code.span(call)[1]
            yield Site(call, (edit, Edit(end, end, f".to({device})")), Where.STATEMENT)


def _item_in_step(code: Code) -> Iterator[Site]:
    """`running += loss.detach()` becomes `running += loss.item()`, and later reads of the sum go."""
    for call in code.calls("detach"):
        statement = code.statement(call)
        if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name) and _uses_device(code):
            assert isinstance(call.func, ast.Attribute)
            read = Edit(code.span(call.func.value)[1], code.span(call)[1], ".item()")
            casts = [Edit(code.span(call)[1], code.span(outer)[1], "") for outer in _casts(code, call)]
            yield Site(call, (read, *casts, *_reads(code, statement.target)), Where.STATEMENT)


def _casts(code: Code, call: ast.Call) -> list[ast.Call]:
    """`x.detach().float()`: the outermost of the methods that follow."""
    chain = []
    for outer in code.above(call):
        if isinstance(outer, ast.Call) and last_name(outer.func) in ("float", "double"):
            chain.append(outer)
        elif not isinstance(outer, ast.Attribute):
            break
    return chain[-1:]


def _reads(code: Code, name: ast.Name) -> list[Edit]:
    """Without the `.item()` of later reads of a sum that is a number now."""
    return [
        code.unwrap(call)
        for call in code.calls("item")
        if code.scope(call) is code.scope(name)
        and isinstance(call.func, ast.Attribute)
        and isinstance(call.func.value, ast.Name)
        and call.func.value.id == name.id
    ]


def _count_in_step(code: Code) -> Iterator[Site]:
    """`correct += (a == b).sum()` becomes `correct += (a == b).sum().item()`."""
    for statement in _counts(code):
        end = code.span(statement.value)[1]
        read = Edit(end, end, ".item()")
        assert isinstance(statement.target, ast.Name)
        yield Site(statement, (read, *_reads(code, statement.target)), Where.STATEMENT)


def _metric_on_host(code: Code) -> Iterator[Site]:
    """The sides of the comparison go to the host as arrays."""
    for statement in _counts(code):
        for comparison in ast.walk(statement.value):
            if isinstance(comparison, ast.Compare):
                sides = [
                    side for side in (comparison.left, comparison.comparators[0]) if not isinstance(side, ast.Constant)
                ]
                edits = (Edit(code.span(side)[1], code.span(side)[1], ".cpu().numpy()") for side in sides)
                assert isinstance(statement.target, ast.Name)
                yield Site(statement, (*edits, *_reads(code, statement.target)), Where.STATEMENT)


def _counts(code: Code) -> Iterator[ast.AugAssign]:
    """Sums of how often a comparison holds."""
    for node in code.nodes:
        match node:
            case ast.AugAssign(target=ast.Name(), value=ast.Call(func=ast.Attribute(attr="sum"))):
                yield node


# -- old spellings -----------------------------------------------------------------------------------------------------


def _old_amp(code: Code) -> Iterator[Site]:
    """`torch.cuda.amp.autocast()` for `torch.amp.autocast("cuda")`."""
    for call in code.calls("autocast", "GradScaler"):
        if call.args and isinstance(call.args[0], ast.Constant) and call.args[0].value == "cuda":
            rest = [code.of(argument) for argument in call.args[1:]]
            rest += [f"{keyword.arg}={code.of(keyword.value)}" for keyword in call.keywords]
            text = f"torch.cuda.amp.{last_name(call.func)}({', '.join(rest)})"
            yield Site(call, (code.replace(call, text),), Where.STATEMENT)


def _forward(code: Code) -> Iterator[Site]:
    """`model.forward(x)` for `model(x)`."""
    for call in code.calls(*MODELS):
        end = code.span(call.func)[1]
        yield Site(call, (Edit(end, end, ".forward"),), Where.STATEMENT)


def _data(code: Code) -> Iterator[Site]:
    """`loss.data` for `loss.detach()`."""
    for call in code.calls("detach"):
        assert isinstance(call.func, ast.Attribute)
        yield Site(call, (Edit(code.span(call.func.value)[1], code.span(call)[1], ".data"),), Where.STATEMENT)


def _kind(name: str, codes: str, sites: Callable[[Code], Iterator[Site]]) -> Kind:
    return Kind(name, frozenset(codes.split()), sites)


KINDS = (
    _kind("zero_grad", "TRAIN01", _zero_grad),
    # The sampler is what the finding points at, wherever it is made.
    _kind("set_epoch", "DIST02", _statement("set_epoch", where=Where.PROGRAM)),
    _kind("unscale_", "AMP04", _statement("unscale_")),
    _kind("item", "MEM01 MEM02 MEM03", _item),
    _kind("detach", "MEM01 MEM02 MEM03", _detach),
    _kind("no_grad", "MEM05", _no_grad),
    _kind("eval", "TRAIN04", _eval),
    _kind("synchronize", "TIME01", _statement("synchronize")),
    _kind("retain_graph", "MEM04", _retain_graph),
    _kind("empty_cache", "MEM06", _empty_cache),
    _kind("create_then_move", "XFER01", _create_then_move),
    _kind("item_in_step", "SYNC01 SYNC02", _item_in_step),
    _kind("count_in_step", "SYNC06 SYNC02", _count_in_step),
    _kind("metric_on_host", "SYNC03 SYNC02", _metric_on_host),
    _kind("blocking_copy", "XFER02", _keyword("non_blocking", "to", "cuda")),
    _kind("no_workers", "DATA01", _keyword("num_workers", "DataLoader", also="persistent_workers")),
    _kind("unpinned", "DATA02", _keyword("pin_memory", "DataLoader")),
    _kind("old_amp", "AMP01", _old_amp),
    _kind("forward", "TRAIN07", _forward),
    _kind("data", "TRAIN10", _data),
)
