"""Writing an option of a data loader where its options are written: in the call, or in a dict of the file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.loading.loaders import CLASSES, loaders_of
from torchlint.analyses.once import once_for_each
from torchlint.rule import NoFixError

if TYPE_CHECKING:
    from torchlint.analyses.loading.loaders import Loader
    from torchlint.edits.rewriter import Rewriter
    from torchlint.finding import Edit
    from torchlint.semantics.entities import Argument, Function
    from torchlint.semantics.model import Model

_MANY = 6


def set_option(loader: Loader, name: str, value: str, rewriter: Rewriter, beside: str | None = None) -> list[Edit]:
    """The edits that give a loader the option. Raises NoFixError where they would change more than loaders.

    beside: the option without which the new one is an error: both are given in the same place.
    """
    option = loader.option(name)
    if option.hidden:
        raise NoFixError(f"a `*` or `**` of the loader may hold `{name}` already")
    if option.arg is not None:
        return [rewriter.replace_argument(option.arg, value)]
    if option.given:
        raise NoFixError(f"`{name}` is set where the options of the loader are made, not in a call or literal")
    match _place(loader, loader.option(beside) if beside is not None else None):
        case cst.Call() as call:
            return [rewriter.add_argument(call, f"{name}={value}")]
        case cst.Dict(elements=[*_, last]) as literal:
            key = last.key if isinstance(last, cst.DictElement) else None
            return [rewriter.add_entry(literal, f"{rewriter.string(name, key)}: {value}")]
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Subscript(value=options, slice=[place]))]) as store:
            key = place.slice.value if isinstance(place.slice, cst.Index) else None
            stored = f"{loader.model.code(options)}[{rewriter.string(name, key)}] = {value}"
            return [rewriter.insert_after(store, stored)]
    raise NoFixError("the options come from a dict that is not made for loaders alone")


def check_is_not_one_of_many(loader: Loader, name: str) -> None:
    """Raises NoFixError where so many loaders of a function would each be given the option."""
    count = _without(loader.model, (loader.site.function, name))
    if count > _MANY:
        raise NoFixError(f"the {count} loaders of the function would each say it: options for all are for you to make")


@once_for_each
def _without(model: Model, asked: tuple[Function, str]) -> int:
    """How many loaders of a function are not given an option."""
    function, name = asked
    return sum(not loader.option(name).given for loader in loaders_of(model, function))


def _place(loader: Loader, other: Argument | None) -> cst.CSTNode | None:
    """The call, the dict or the store of an item that gives the option `other`, or all options."""
    model, call = loader.model, loader.site.node
    if other is not None and other.arg is not None:
        return model.parent(other.arg)
    starred = [arg for arg in call.args if arg.star == "**"]
    if not starred:
        return call
    options: cst.CSTNode | None = _only_for_loaders(starred[0].value, model) if len(starred) == 1 else None
    if options is not None and other is not None and other.dict_entry is not None:
        entry = other.dict_entry
        options = entry if isinstance(entry, cst.Assign) else model.parent(entry)
    return None if isinstance(options, cst.Call) and not _makes_options(options) else options


def _makes_options(call: cst.Call) -> bool:
    """`dict(...)` or `options.update(...)`."""
    match call.func:
        case cst.Name(value="dict") | cst.Attribute(attr=cst.Name(value="update")):
            return True
    return False


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
