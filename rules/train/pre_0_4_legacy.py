from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.finding import Confidence, Severity
from torchlint.rule import Report, Rule

if TYPE_CHECKING:
    from torchlint.analyses.data_attribute.reads import DataRead
    from torchlint.analyses.variable_wrapper import Wrapper
    from torchlint.semantics.model import Model


class PreTorch04Legacy(Rule):
    """Idioms from before torch 0.4 do nothing today, or something else than they say.

    ## What it does

    Finds `Variable(x)`, `volatile=True` and reads of `.data`. Writes through `.data`, such as `p.data.copy_(q)` or the
    arguments of an initialiser, are left alone, and so is code that only runs with an old release. In a project's own
    tests, which compare values and are done with them, of the reads only those that raise are reported. What does
    nothing today is an info, what raises or builds a graph in spite of what it says an error.

    ## Why is this bad

    Tensors and variables are one class since torch 0.4. `Variable(x)` returns `x.detach()`, and so ends a graph in
    silence. `volatile=True` has no effect, so that an evaluation which relies on it builds the whole graph of every
    batch. `loss.data[0]` raises an IndexError, for a loss has no dimensions. What `.data` returns shares its memory
    with the tensor, but a change of it goes unnoticed by autograd, and gradients come out wrong without an error;
    `.detach()` returns the same values and lets `backward()` raise.

    ## Example

    ```python
    import torch
    from torch.autograd import Variable

    model = torch.nn.Linear(4, 1)
    x = Variable(torch.randn(2, 4))
    print(model(x))
    ```

    ## Use instead

    ```python
    import torch

    model = torch.nn.Linear(4, 1)
    x = torch.randn(2, 4)
    print(model(x))
    ```

    ## Fix safety

    `Variable(x)` becomes `x`: safe where that is known to have no graph, where it is made anew, and where it is drawn
    from a loader and not read again; unsafe where it is handed in from outside and nothing in the file gives it a
    graph. Where it has one, and where its gradient is asked for, it becomes `x.detach()`, which is what it does today:
    safe. Of what code out of sight returns, the fix is only shown. In a program, not in a module that others may import
    from, the import goes with its last use. `volatile=True` is only taken away where gradients are off; MEM05 turns
    them off, and so does a decorator, unsafe, for a function that computes with nothing but volatile variables; beside
    what stays volatile nothing is detached. `.data` becomes `.detach()`: safe where the values are used up at once,
    unsafe where the result lives on, because a later change in place may then make `backward()` raise. What a data
    loader yields, indices, truth values and what is computed where autograd is off have no graph, and `labels.data`
    becomes `labels`; so does what is only compared. Where a second name for a tensor would be left, there is no fix.
    `loss.data[0]`, and an element given to `env.step(...)`, become `.item()`: unsafe, for it waits for the device. So
    does what a string shows as a number, `f"{loss.data:.3f}"`, which waits all the same. A statement that writes to a
    `.data` stays as it is, and so does `p.data` in a function that writes to it elsewhere. Like lines change together:
    where one `Variable` of a file, or one read of `.data` of a function, has to stay, the others stay, too. A name that
    only says so goes with the `Variable`: `x_var = Variable(x)`. A file that asks `isinstance(x, Variable)` keeps its
    `Variable`, and the `.data` under that question.

    ## Measured effect

    No evidence recorded yet.

    ## References

    * <https://pytorch.org/blog/pytorch-0_4_0-migration-guide/>
    * <https://docs.pytorch.org/docs/stable/autograd.html#variable-deprecated>
    """

    code = "TRAIN10"
    name = "pre-0-4-legacy"
    severity = Severity.WARNING
    needs_torch = "0.4"
    triggers = ("Variable", "volatile", ".data")

    def check(self, model: Model) -> Iterator[Report]:
        from torchlint.analyses.data_attribute.reads import data_reads
        from torchlint.analyses.variable_wrapper import (
            derived_calls,
            volatile_calls,
            volatile_writes,
            wrapper_of,
            wrappers,
        )

        for wrapper in wrappers(model):
            message = _wrapper_message(wrapper, model)
            yield Report(wrapper.call.node, message, facts=wrapper, severity=_wrapper_severity(wrapper))
        for call in derived_calls(model):
            wrapper = wrapper_of(call)
            says = _no_graph_message if wrapper.asks_for_no_graph else _purposeless_message
            yield Report(call.node, says(model.code(call.node.func)), severity=_wrapper_severity(wrapper))
        for call in volatile_calls(model):
            yield Report(call.node, _no_graph_message(model.code(call.node.func)), severity=Severity.ERROR)
        for node in volatile_writes(model):
            message = f"`{model.code(node)}` has no effect since torch 0.4. {_NO_GRAD}"
            yield Report(node, message, severity=Severity.ERROR)
        for read in data_reads(model):
            confidence = Confidence.CERTAIN if read.certain else Confidence.LIKELY
            severity = _READ_SEVERITY.get(read.use.value)
            raises = read.use.value == "element"  # whereas a test compares other values, and is done with them
            yield Report(read.node, _read_message(read, model), confidence, read, severity=severity, in_tests=raises)


_NO_GRAD = "Run what needs no gradients under `torch.no_grad()`."
_READ_SEVERITY = {"element": Severity.ERROR, "indifferent": Severity.INFO, "fresh": Severity.INFO}  # by the use


def _wrapper_severity(wrapper: Wrapper) -> Severity | None:
    if wrapper.asks_for_no_graph:
        return Severity.ERROR
    return None if wrapper.cuts_graph else Severity.INFO


def _wrapper_message(wrapper: Wrapper, model: Model) -> str:
    name = model.code(wrapper.call.node.func)
    if wrapper.asks_for_no_graph:
        return _no_graph_message(name)
    inner = model.code(wrapper.data.node) if wrapper.data.node is not None else "..."
    if len(inner) > 40 or "\n" in inner:
        inner = "x"
    if wrapper.cuts_graph:
        return (
            f"`{name}({inner})` returns `{inner}.detach()` since torch 0.4, so the graph behind `{inner}` ends here. "
            "Use the tensor itself, or detach it in plain sight."
        )
    return _purposeless_message(name)


def _purposeless_message(name: str) -> str:
    return f"`{name}` has had no purpose since torch 0.4: tensors have gradients themselves. Use the tensor as it is."


def _no_graph_message(name: str) -> str:
    return f"`volatile` has no effect since torch 0.4: graphs are built from what `{name}` returns. {_NO_GRAD}"


def _behind(read: DataRead, model: Model) -> str:
    """`.data.cpu().numpy()[0]` of what reads a first value."""
    assert read.element is not None
    return model.code(read.element).removeprefix(model.code(read.owner))


def _read_message(read: DataRead, model: Model) -> str:
    owner = model.code(read.owner)
    if len(owner) > 40 or "\n" in owner:
        owner = "x"
    match read.use.value:
        case "element":
            return (
                f"`{owner}{_behind(read, model)}` raises an IndexError where `{owner}` has no dimensions, as losses do "
                f"since torch 0.5. Write `{owner}.item()`."
            )
        case "choice":
            return (
                f"`{model.code(read.element) if read.element is not None else owner}` is a tensor of one element since "
                f"torch 0.4, where an environment takes a number. Write `.item()`."
            )
        case "number":
            return f"`{owner}.data` reaches `math` as a tensor, which it asks for its number. Write `{owner}.item()`."
        case "indifferent":
            return f"`.data` adds nothing here, and hides tensors from autograd elsewhere. Ask `{owner}` itself."
        case "fresh":
            return f"`.data` is how values were read past autograd before torch 0.4. Read them with `{owner}.detach()`."
    return (
        f"`{owner}.data` shares memory with `{owner}` behind the back of autograd: after a change in place, gradients "
        f"come out wrong without an error. Read it with `{owner}.detach()`."
    )
