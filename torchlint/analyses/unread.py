"""Lists that a function fills and that nothing reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.devices.host_calls import collects

if TYPE_CHECKING:
    from torchlint.semantics.model import Model


def is_never_read(model: Model, held: cst.BaseExpression) -> bool:
    """Whether a local list only grows: other files, and other cells of a notebook, may read those of a module."""
    binding = model.binding(held) if isinstance(held, cst.Name) else None
    if binding is None or binding.is_parameter or binding.is_global or binding.shared:
        return False
    if binding.scope_function.is_module or binding.cls is not None:
        return False
    is_list = all(isinstance(write.value, cst.List) for write in binding.writes if write.kind == "assign")
    is_grown = all(write.kind in ("assign", "augmented") and not write.unpacked for write in binding.writes)
    return is_list and is_grown and all(_is_added_to(model, read) for read in binding.reads)


def _is_added_to(model: Model, read: cst.CSTNode) -> bool:
    """`parts.append(x)` or `parts += [x]`, as a statement."""
    above = model.parent(read)
    if isinstance(above, cst.AugAssign):
        return above.target is read
    site = model.parent(above) if isinstance(above, cst.Attribute) else None
    is_call = isinstance(site, cst.Call) and site.func is above and collects(model.call(site))
    return is_call and isinstance(model.parent(site), cst.Expr)  # type: ignore[arg-type]
