"""A call in a loop body, as an operation on tensors: `torch.sum(x, 0)` and `x.sum(dim=0)` read the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.vectorize.shapes import Lifted, RefusedError
from torchlint.analyses.vectorize.vocabulary import ALONG, MODULES, PROVING_FUNCTIONS, PROVING_METHODS, ROW_LOSSES
from torchlint.edits import spelling
from torchlint.semantics.torch_api import NUMPY_NAMES
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.analyses.vectorize.lifting import Lifter

_NAMESPACES = ("torch.nn.functional.", "torch.special.", "torch.Tensor.", "torch.")


@dataclass(frozen=True, slots=True)
class Operation:
    """`name` is that of the function or method, `linalg.` before it if it is one of torch.linalg.

    `function` is how a function is spelled, None for a method. `operands` are the positional arguments, the receiver
    of a method first.
    """

    node: cst.Call
    name: str
    function: str | None
    operands: tuple[cst.BaseExpression, ...]
    keywords: dict[str, cst.BaseExpression]
    code: str

    @classmethod
    def read(cls, lifter: Lifter, node: cst.Call) -> Operation:
        model = lifter.model
        code = lifter.code(node.func)
        if any(argument.star for argument in node.args):
            raise RefusedError(f"the arguments of `{code}` are not in sight")
        positional = tuple(argument.value for argument in node.args if argument.keyword is None)
        keywords = {argument.keyword.value: argument.value for argument in node.args if argument.keyword is not None}
        qualified = model.qualified(node.func)
        is_of_tensor = isinstance(node.func, cst.Attribute) and model.value(node.func.value).kind is Kind.TENSOR
        if is_of_tensor or (qualified or "").startswith("torch."):
            keywords = {NUMPY_NAMES.get(name, name): value for name, value in keywords.items()}
        if qualified is not None and qualified.startswith("torch."):
            first = next((keywords.pop(name) for name in ("input", "tensors") if name in keywords), None)
            positional = positional if first is None else (first, *positional)
            return cls(node, _short(qualified), code, positional, keywords, code)
        if qualified == "builtins.sum" and len(positional) == 1 and not keywords:
            return cls(node, "python sum", code, positional, keywords, code)
        module = called_module(lifter, node.func)
        if module is not None and module[0] in ALONG:
            spelled = spelling.spelled(model, f"torch.{module[0]}", lifter.place)
            if spelled is not None and not keywords:
                return cls(node, module[0], spelled, positional, module[1], code)
        if module is not None:
            return cls(node, module[0], code, positional, {**module[1], **keywords}, code)
        if isinstance(node.func, cst.Attribute) and qualified is None:
            return cls(node, node.func.attr.value, None, (node.func.value, *positional), keywords, code)
        raise RefusedError(f"`{code}` may do anything")

    @property
    def proves_tensor(self) -> bool:
        """Whether the operation takes no array of numpy as its first operand."""
        if self.function is not None:
            return f"torch.{self.name}" in PROVING_FUNCTIONS or self.name in MODULES.values()
        return self.name in PROVING_METHODS

    def argument(self, name: str, position: int) -> cst.BaseExpression | None:
        """The argument called `name`, or at `position` among the operands."""
        if name in self.keywords:
            return self.keywords[name]
        return self.operands[position] if position < len(self.operands) else None

    def only(self, *names: str) -> bool:
        """Whether no other keywords are given."""
        return set(self.keywords) <= set(names)

    def called(self, name: str, operands: list[Lifted], *rest: str) -> str:
        """The text of the same operation on other operands; `name` for a method."""
        if self.function is not None:
            return f"{self.function}({', '.join([*(operand.text for operand in operands), *rest])})"
        arguments = [*(operand.text for operand in operands[1:]), *rest]
        return f"{operands[0].atom}.{name}({', '.join(arguments)})"


def called_module(lifter: Lifter, node: cst.BaseExpression) -> tuple[str, dict[str, cst.BaseExpression]] | None:
    """The function that a module without state is, and the keywords that it was made with."""
    value = lifter.model.value(node)
    name = MODULES.get(value.ref or "") if value.kind is Kind.MODULE else None
    if name is None or len(value.origins) != 1:
        return None
    (made,) = value.origins
    if not isinstance(made, cst.Call):
        return None
    keywords = {argument.keyword.value: argument.value for argument in made.args if argument.keyword is not None}
    if name in ALONG and len(made.args) == 1 and not made.args[0].star:
        return name, {"dim": keywords.get("dim", made.args[0].value)}
    if any(argument.keyword is None for argument in made.args):
        return None
    if name in ROW_LOSSES:
        return name, {"reduction": keywords["reduction"]} if "reduction" in keywords else {}
    return (name, keywords) if set(keywords) <= {"reduction"} else None


def _short(qualified: str) -> str:
    if qualified.startswith("torch.linalg."):
        return qualified[len("torch.") :]
    return next(qualified[len(space) :] for space in _NAMESPACES if qualified.startswith(space))
