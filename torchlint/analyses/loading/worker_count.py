"""Expressions for `num_workers` that are above zero on any machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

if TYPE_CHECKING:
    from torchlint.semantics.model import Model


def is_some(node: cst.CSTNode | None, model: Model) -> bool:
    """`4`, `os.cpu_count() or 1`, `min(8, multiprocessing.cpu_count())`"""
    match node:
        case cst.Integer(value=number):
            return int(number.replace("_", ""), 0) > 0
        case cst.BooleanOperation(operator=cst.Or(), right=right):
            return is_some(right, model)
        case cst.Call(args=args):
            callee = model.call(node).callee
            each = (is_some(arg.value, model) and not arg.star and arg.keyword is None for arg in args)
            if callee == "builtins.min":
                return len(args) > 1 and all(each)
            return callee == "multiprocessing.cpu_count" or (callee == "builtins.max" and len(args) > 1 and any(each))
    return False
