"""What stands in the bodies of classes and of their methods."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.entities import Class, Function
from torchlint.semantics.tree import walk


def is_placeholder(function: Function) -> bool:
    """Whether a method does nothing but say that a class that derives has it."""
    if "abc.abstractmethod" in function.decorators:
        return True
    if not isinstance(function.node, cst.FunctionDef):
        return False
    return all(_does_nothing(statement) for line in function.node.body.body for statement in _small(line))


def goes_on_to_base(function: Function) -> bool:
    """Whether a method calls that of the same name of a base: `super().__call__(x)`."""
    for node in walk(function.node):
        match node:
            case cst.Attribute(value=cst.Call(func=cst.Name(value="super")), attr=cst.Name(value=name)):
                if name == function.name:
                    return True
    return False


def _small(line: cst.CSTNode) -> list[cst.CSTNode]:
    return [*line.body] if isinstance(line, cst.SimpleStatementLine) else [line]


def _does_nothing(statement: cst.CSTNode) -> bool:
    match statement:
        case cst.Pass() | cst.Raise() | cst.Expr(value=cst.SimpleString() | cst.ConcatenatedString() | cst.Ellipsis()):
            return True
    return False


def record_fields(cls: Class) -> list[str]:
    """Names that are annotated in the body of a class."""
    small = (statement for line in cls.node.body.body for statement in _small(line))
    targets = (statement.target for statement in small if isinstance(statement, cst.AnnAssign))
    return [target.value for target in targets if isinstance(target, cst.Name)]
