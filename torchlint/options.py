"""Writing an option of a data loader where its options are written: in the call, or in a dict of the file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.rule import NoFixError
from torchlint.semantics.loaders import CLASSES

if TYPE_CHECKING:
    from torchlint.finding import Edit
    from torchlint.rewrite import Rewriter
    from torchlint.semantics.loaders import Loader
    from torchlint.semantics.model import Model


def set_option(loader: Loader, name: str, value: str, rewriter: Rewriter) -> list[Edit]:
    """The edits that give a loader the option. Raises NoFixError where they would change more than loaders."""
    option = loader.option(name)
    if option.hidden:
        raise NoFixError(f"a `*` or `**` of the loader may hold `{name}` already")
    if option.arg is not None:
        return [rewriter.replace_argument(option.arg, value)]
    if option.given:
        raise NoFixError(f"`{name}` is set where the options of the loader are made, not in a call or literal")
    call = loader.site.node
    starred = [arg for arg in call.args if arg.star == "**"]
    if not starred:
        return [rewriter.add_argument(call, f"{name}={value}")]
    options = _only_for_loaders(starred[0].value, loader.model) if len(starred) == 1 else None
    match options:
        case cst.Dict(elements=[_, *_]):
            return [rewriter.add_entry(options, f'"{name}": {value}')]
        case cst.Call(func=cst.Name(value="dict")):
            return [rewriter.add_argument(options, f"{name}={value}")]
    raise NoFixError("the options come from a dict that is not made for loaders alone")


def _only_for_loaders(node: cst.BaseExpression, model: Model) -> cst.BaseExpression | None:
    """The expression that makes the dict `node`, if nothing but loaders gets it."""
    binding = model.binding(node)
    if binding is None:
        return node
    if len(binding.writes) != 1 or not all(_is_for_loader(read, model) for read in binding.reads):
        return None
    return binding.writes[0].value


def _is_for_loader(read: cst.CSTNode, model: Model) -> bool:
    """A use of a dict of options by a loader, or one that adds to it."""
    parent = model.parent(read)
    match parent:
        case cst.Arg(star="**"):
            call = model.parent(parent)
            return isinstance(call, cst.Call) and model.call(call).callee in CLASSES
        case cst.Attribute(attr=cst.Name(value="update" | "setdefault")) | cst.Subscript():
            return True
    return False
