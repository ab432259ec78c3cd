"""Networks that are only tried out: unit tests, and checks of shapes in the file of a model."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.callers_by_name import calls_in_other_files
from torchlint.analyses.evaluation_names import evaluates_by_name
from torchlint.analyses.lifetime import root
from torchlint.analyses.mem.evaluation_before import Modes
from torchlint.analyses.mem.gradients_on_the_way import reached
from torchlint.semantics.dataflow import sources, text
from torchlint.semantics.entities import Role
from torchlint.semantics.tree import walk
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Call, Class, Function
    from torchlint.semantics.model import Model


def is_unit_test(model: Model, function: Function) -> bool:
    """Whether a test runner looks for a function by its name or its place."""
    path = model.path
    folders = set(path.parts[:-1])
    if folders & {"tests", "testing"} or (function.cls is not None and "unittest.TestCase" in function.cls.bases):
        return True
    in_tests = path.name.startswith("test_") or "test" in folders
    if not in_tests or (function.cls is None and any(call.arguments for call in function.callers)):
        return False  # what the file itself hands something to is no test that is looked for by its name
    if "test" not in folders and _is_program(model, function):
        return False
    return function.name.startswith("test") or _is_test_case(function.cls, folders)


def _is_program(model: Model, function: Function) -> bool:
    """Whether a script runs a function that fills a network from a file, as no test does which a runner looks for."""
    is_run = function.cls is None and any(call.function.is_module for call in function.callers)
    return is_run and any(_loads(model, call) for call in reached(function))


def is_test_case(model: Model, function: Function) -> bool:
    """Whether a test runner runs the function by itself, and not a program that lies among the tests."""
    cases = {base.rpartition(".")[2] for base in function.cls.bases if base} if function.cls is not None else set()
    return is_unit_test(model, function) and (function.name.startswith("test") or "TestCase" in cases)


def is_trial(model: Model, function: Function, records: Callable[[Call], bool]) -> bool:
    """Whether a function only tries a network out; `records` tells the forward passes with autograd on."""
    return is_unit_test(model, function) or _is_smoke_test(model, function, filter(records, function.calls))


def is_only_tried(model: Model, method: Function, records: Callable[[Call], bool]) -> bool:
    """Whether nobody in sight calls a method of a network but to try it out, and it is no evaluation by its name."""
    if method.cls is None or not method.cls.is_module or not method.callers or evaluates_by_name(method):
        return False
    is_tried = all(
        _is_made_here(root(model, call.node.func), call.function) and is_trial(model, call.function, records)
        for call in method.callers
    )
    return is_tried and not calls_in_other_files(model, method)


def _is_smoke_test(model: Model, function: Function, passes: Iterable[Call]) -> bool:
    """`def test(): net = Net(); print(net(torch.randn(...)).shape)` is a check of shapes, run once.

    So is what a file does below `if __name__ == "__main__":` with networks that it defines itself. `passes` are the
    forward passes.
    """
    if model.effects(function).optimizer_steps:
        return False
    if function.is_module:
        passes = [*passes]
        is_shown = bool(passes) and all(_is_shown_by_its_file(model, call) for call in passes)
        return is_shown and not any(_loads(model, call) for call in reached(function))
    for call in passes:
        module = root(model, call.node.func)
        if any(loop.role is Role.EVALUATION for loop in call.loops()) and model.once(Modes).evaluates(call):
            return False
        if module is None or not _is_made_here(module, function) or _is_copied(model, module):
            return False
    return not any(_loads(model, call) for call in reached(function))


def _is_made_here(network: Binding | None, function: Function) -> bool:
    return network is not None and network.scope_function is function and not network.is_parameter


def _is_shown_by_its_file(model: Model, call: Call) -> bool:
    behind = model.class_behind(model.value(call.node.func).ref or "")
    if behind is None or behind[0] is not model or (call.loops() and call.loops()[0].iterates.kind is Kind.LOADER):
        return False
    return any(
        isinstance(guard.test, cst.Comparison) and text(guard.test.left) == "__name__"
        for guard in model.guards(call.node)
    )


def _loads(model: Model, call: Call) -> bool:
    """Whether a call, or a function of another file that it enters, fills a network from a file."""
    abroad = model.elsewhere(call)
    calls = [call, *(abroad[1].calls if abroad is not None else ())]
    home = abroad[0] if abroad is not None else model
    loads = [inner for inner in calls if inner.callee == "torch.load" or inner.method == "load_state_dict"]
    return any(not _is_asked_for(model if inner is call else home, inner) for inner in loads)


def _is_asked_for(model: Model, load: Call) -> bool:
    """`if pretrained:`, which is for those who want to use the network."""
    return any(guard.test is not None and "pretrained" in text(guard.test) for guard in model.guards(load.node))


def _is_copied(model: Model, module: Binding) -> bool:
    """Whether a variable gets another network, or a copy of one: `deepcopy(self.net)`, `self.nets["g"]`; or one after
    the other."""
    given = [write.value for write in module.writes if write.value is not None]
    if any(write.kind == "for" for write in module.writes):
        return any(_names_network(model, node) for value in given for node in sources(model, value))
    if any(isinstance(value, (cst.Attribute, cst.Subscript)) for value in given):
        return True
    parts = (node for value in given for node in walk(value))
    return any(isinstance(node, (cst.Name, cst.Attribute)) and _names_network(model, node) for node in parts)


def _names_network(model: Model, node: cst.Name | cst.Attribute) -> bool:
    return model.binding(node) is not None and model.value(node).is_(Kind.MODULE)


def _is_test_case(cls: Class | None, folders: set[str]) -> bool:
    """Whether a class of a file for tests is one of tests: `test_agent.py` may try an agent out."""
    return cls is not None and ("test" in folders or cls.name.startswith("Test") or "unittest.TestCase" in cls.bases)
