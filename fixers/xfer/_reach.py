"""Whether a tensor that is copied to a device could be made there: for the copy alone, where the device is known."""

from __future__ import annotations

import re
from itertools import takewhile
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.xfer.agreement import Agreement
from torchlint.analyses.xfer.host_tensors import PARAMETERS
from torchlint.analyses.xfer.numbers import equal_numbers, numbers_given
from torchlint.analyses.xfer.sizes import SIZED_CLASSES
from torchlint.rule import NoFixError
from torchlint.semantics.dataflow import reaches
from torchlint.semantics.tree import walk

if TYPE_CHECKING:
    from torchlint.analyses.xfer.creations import Creation
    from torchlint.semantics.entities import Call
    from torchlint.semantics.model import Model
    from torchlint.source import Source

_SEEDS = re.compile(
    r"manual_seed(?:_all)?\(|seed_(?:everything|all|torch)\(|delu\.random\.seed\(|set_determinism\("
    r"|(?:set|fix|init|setup|torch)_(?:\w+_)?seeds?\(|improve_reproducibility\("
)
_READ_BACK = frozenset({"cpu", "item", "tolist"})
_SHOWN = frozenset({"builtins.print", "builtins.str", "builtins.repr"})
_SOMETIMES = (cst.IfExp, cst.BooleanOperation, cst.BaseComp, cst.Lambda)


def check_reach(creation: Creation, model: Model) -> None:
    """The device can be named where the tensor is made, which then is made for the copy alone."""
    if not creation.is_all_in_sight:
        raise NoFixError("the tensor is made by a helper, or of what may be no number")
    if creation.made.agreement is Agreement.RANDOM and runs_once(creation.move, model):
        raise NoFixError("drawn once, it gains nothing on the device, where other numbers come of the same seed")
    if _is_written_once(creation, model):
        raise NoFixError("made once of a number that is written out, it is easier to read than what fills it there")
    if creation.is_by_distribution:
        raise NoFixError("a distribution draws where its parameters are, and takes no device")
    if _comes_back_at_once(creation.move, model):
        raise NoFixError("the host reads the copy back at once, and needs no tensor on the device")
    if any(_is_one_of_many(factory, creation, model) for factory in creation.made.factories):
        raise NoFixError("a comprehension makes many, each of which would be made by a kernel of its own")
    made = (creation.factory.node, *(read for read, _ in creation.made.writes))
    wrappers = [call for node in made for call in _calls_between(node, creation.move, model)]
    if any(call.callee in PARAMETERS for call in wrappers):
        raise NoFixError("made on the device, the parameter would be one of its module, which its copy is not")
    legacy = next((call for call in wrappers if call.callee in SIZED_CLASSES), None)
    if legacy is not None:
        raise NoFixError(f"`{model.code(legacy.node.func)}` takes no tensor that is on another device than the host")
    if not creation.made.writes:
        return
    if len(creation.made.writes) > 1 or len(creation.made.factories) > 1:
        raise NoFixError("the tensor is made at several places")
    if creation.uses.fills:
        raise NoFixError("the tensor is filled on the host before it is copied")
    read, write = creation.made.writes[0]
    statement = model.statement(creation.move.node)
    before = model.statement(creation.factory.node)
    if write.kind != "assign" or write.unpacked:
        raise NoFixError("the tensor is not simply assigned to a variable")
    around = model.parent(before) is not model.parent(statement) or isinstance(statement, cst.BaseCompoundStatement)
    if around or model.loops_around(creation.move.node) != model.loops_around(creation.factory.node):
        raise NoFixError("the tensor is copied under a condition or in a loop that it is not made in")
    if not _is_only_read(read, before, statement, model):
        raise NoFixError("the host has another use for the tensor")
    if not _is_known_before(creation, before, statement, model):
        raise NoFixError("the device is not known yet where the tensor is made")


def _is_one_of_many(factory: Call, creation: Creation, model: Model) -> bool:
    """`torch.stack([torch.arange(n) for n in sizes]).to(device)`, which is one copy."""
    around = (node for node in model.ancestors(factory.node) if isinstance(node, cst.BaseComp))
    return any(creation.move.node in model.ancestors(comprehension) for comprehension in around)


def is_seeded(model: Model) -> bool:
    """Whether a program that imports the file, through others or not, or what is imported with it, seeds the draws of
    torch: any program of the project, where none imports the file, as a name in a file of settings may."""
    together = [model.source, *model.companions(), *model.users()]
    is_named_only = not model.users() and "__main__" not in model.source.text
    return any(
        model.once_of(source, _seeds) for source in (*together, *(model.files_beside() if is_named_only else ()))
    )


def _seeds(source: Source) -> bool:
    return _SEEDS.search(source.text) is not None


def runs_once(move: Call, model: Model) -> bool:
    """Whether a copy stands in a constructor or at the top of the program, outside of all loops, or where what it makes
    is not there yet."""
    function = model.function(move.node)
    if any(guard.test is not None and _asks_whether_it_is_there(guard.test) for guard in model.guards(move.node)):
        return True
    return (function.is_module or function.name == "__init__") and not model.loops_around(move.node)


def says_where_numbers_go(model: Model) -> bool:
    """Whether the file has `torch.tensor(0.0, device=device)`: it makes single numbers in that way."""
    return any(
        not call.argument("device").absent and isinstance(call.node.args[0].value, (cst.Integer, cst.Float))
        for call in model.calls_to("torch.tensor")
        if call.node.args
    )


def _asks_whether_it_is_there(test: cst.BaseExpression) -> bool:
    """`not hasattr(self, "noise")`, `self.noise is None`"""
    match test:
        case cst.UnaryOperation(operator=cst.Not(), expression=cst.Call(func=cst.Name(value="hasattr"))):
            return True
        case cst.Comparison(
            left=cst.Attribute(),
            comparisons=[cst.ComparisonTarget(operator=cst.Is(), comparator=cst.Name(value="None"))],
        ):
            return True
    return False


def _is_written_once(creation: Creation, model: Model) -> bool:
    """`label = torch.tensor([388]).to(device)` at the top of the program, to become `torch.full((1,), 388)`."""
    numbers = numbers_given(creation.factory, model)
    alike = equal_numbers(numbers) if isinstance(numbers, (cst.List, cst.Tuple)) else None
    return alike is not None and runs_once(creation.move, model)


def _comes_back_at_once(move: Call, model: Model) -> bool:
    """Whether all that is done with the copy is to bring it back to the host."""
    match model.parent(move.node):
        case cst.Attribute(attr=cst.Name(value=name)) if name in _READ_BACK:
            return True
        case cst.Arg() as arg if isinstance(reader := model.parent(arg), cst.Call):
            return model.call(reader).callee in _SHOWN
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as target)]):
            binding = model.binding(target)
        case _:
            return False
    reads = [read for read in binding.reads if reaches(model, binding, target, read)] if binding is not None else []
    above = [node for node in map(model.parent, reads) if not isinstance(node, cst.Comparison)]
    return bool(above) and all(isinstance(node, cst.Attribute) and node.attr.value in _READ_BACK for node in above)


def _calls_between(made: cst.CSTNode, move: Call, model: Model) -> list[Call]:
    """The calls around a tensor that its copy is made of: `nn.Parameter(made).cuda()`."""
    above = list(model.ancestors(made))
    inside = above[: above.index(move.node)] if move.node in above else []
    return [model.call(node) for node in inside if isinstance(node, cst.Call)]


def _is_only_read(read: cst.CSTNode, before: cst.CSTNode, statement: cst.CSTNode, model: Model) -> bool:
    """Whether nothing looks at the variable before the copy, nor after it, unless that is in the same variable."""
    binding = model.binding(read)
    inside = takewhile(lambda node: node is not statement, model.ancestors(read))
    if binding is None or any(isinstance(node, _SOMETIMES) for node in inside):
        return False
    start, end = model.span(before)[1], model.span(statement)[0]
    stored = [write for write in binding.writes if write.statement is statement]
    others = [other for other in binding.reads if other is not read]
    if any(isinstance(model.parent(write.target), cst.Element) for write in stored):
        return False
    if stored:
        return all(not start <= model.span(other)[0] < end for other in others)
    return not others and len(binding.writes) == 1


def _is_known_before(creation: Creation, before: cst.CSTNode, statement: cst.CSTNode, model: Model) -> bool:
    """Whether the names of the device mean the same where the tensor is made."""
    start, end = model.span(before)[0], model.span(statement)[1]
    for arg in creation.move.arguments:
        for node in walk(arg.value):
            if isinstance(node, (cst.Call, cst.Subscript, cst.NamedExpr)):
                return False
            binding = model.binding(node)
            if binding is not None and any(start <= model.span(write.target)[0] < end for write in binding.writes):
                return False
    return True


def made_in_other_arms(factory: Call, model: Model) -> list[cst.Call]:
    """`x = torch.FloatTensor(n).cuda()` in one branch, `x = torch.FloatTensor(n)` in another."""
    line = model.statement(factory.node)
    branch = model.parent(model.parent(line) or line)
    chain = model.parent(branch) if isinstance(branch, cst.Else) else branch
    if not isinstance(chain, cst.If):
        return []
    arms = [chain.body, *([chain.orelse.body] if chain.orelse is not None else [])]
    others = [other for arm in arms if line not in arm.body for other in arm.body]
    name = model.code(factory.node.func)
    calls = (node for other in others for node in walk(other) if isinstance(node, cst.Call))
    return [call for call in calls if model.code(call.func) == name]
