"""What files around a file do with the loaders that it makes: whether they draw batches and copy them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Set
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.loading import batch_texts

if TYPE_CHECKING:
    from torchlint.analyses.loading.loaders import Loader
    from torchlint.semantics.model import Model
    from torchlint.source import Source

_CLASS = re.compile(r"^class\s+(\w+)", re.MULTILINE)


def copies_batches(source: Source, model: Model, drawn: Set[str] = frozenset()) -> bool:
    """Whether a file draws batches, or has some under names that are known, and copies them to an accelerator, be it
    by functions of files that it imports."""
    return batch_texts.copies_batches(source.text, lambda wide: _helpers(source, model, wide=wide), drawn)


def copies_batches_of(source: Source, model: Model, *names: str) -> bool:
    """Whether a file draws batches from what has one of these names, and copies them to an accelerator."""
    return batch_texts.copies_batches_of(source.text, lambda wide: _helpers(source, model, wide=wide), names)


def _helpers(source: Source, model: Model, *, wide: bool) -> list[str]:
    sources = model.files_beside() if wide else (source, *model.imported_by(source))
    return [each.text for each in sources]


def are_moved_elsewhere(model: Model) -> bool:
    """Whether files that may get a loader from this one draw batches and copy them to an accelerator, or those of
    classes that derive from theirs."""
    near = list(model.companions())
    return any(copies_batches(source, model) for source in (*near, *_deriving(model, near)))


def _deriving(model: Model, near: list[Source]) -> Iterator[Source]:
    """The files with classes that derive from those of files near by which use a function of this one: their methods
    have what these keep."""
    names = [function.name for function in model.functions if function.cls is None and function.name.isidentifier()]
    made = re.compile(rf"\b({'|'.join(names)})\(")
    bases = {name for source in near if names and made.search(source.text) for name in _CLASS.findall(source.text)}
    if not bases:
        return
    derived = re.compile(
        r"^class\s+\w+\((?:[\w.]+\s*,\s*)*(?:\w+\.)*(?:" + "|".join(sorted(bases)) + r")\b", re.MULTILINE
    )
    yield from (source for source in model.users() if source not in near and derived.search(source.text))


def are_moved_in_sight(model: Model) -> bool:
    """The same, or files that this one imports do, such as that of a trainer."""
    return model.once(are_moved_elsewhere) or any(copies_batches(source, model) for source in model.neighbours())


def is_taken_elsewhere(loader: Loader) -> bool:
    """Whether other files draw from a loader, by its name, through an object that keeps it, or as one of its class, and
    copy the batches."""
    return _is_taken_by_name(loader) or _is_yielded_to_others(loader) or _is_made_by_others(loader)


def _is_taken_by_name(loader: Loader) -> bool:
    """Whether another file takes a loader from the top level of this one, and copies the batches that it draws from it,
    or hands it to functions where batches are copied."""
    model, name = loader.model, _name_at_top(loader)
    for source in model.companions() if name is not None else ():
        taken = model.names_taken(os.path.abspath(source.path)).items()
        names = [there for there, here in taken if here == name and re.search(rf"\b{re.escape(there)}\b", source.text)]
        if not names:
            continue
        if copies_batches_of(source, model, *names):
            return True
        together = (source, *model.imported_by(source))
        if batch_texts.hands_on(source.text, names) and any(copies_batches(each, model) for each in together):
            return True
    return False


def _is_yielded_to_others(loader: Loader) -> bool:
    """Whether an object draws from the loader that it keeps where others iterate over it, and they copy what they get,
    be the object one that a function of this file makes."""
    model, cls = loader.model, loader.site.function.cls
    method = cls.methods.get("__iter__") if cls is not None else None
    if cls is None or method is None or not method.yields:
        return False
    if not any(loop.iterates.origins & loader.built for loop in method.loops):
        return False
    made = {function.name for function in model.functions if any(call.targets_class is cls for call in function.calls)}
    for source in model.companions():
        taken = model.names_taken(os.path.abspath(source.path)).items()
        makers = "|".join(re.escape(there) for there, here in taken if here == cls.name or here in made)
        assigned = rf"^[ \t]*(\w[\w.]*)[ \t]*=[ \t]*(?:{makers})\("
        names = sorted(set(re.findall(assigned, source.text, re.MULTILINE))) if makers else []
        if names and copies_batches_of(source, model, *names):
            return True
    return False


def _is_made_by_others(loader: Loader) -> bool:
    """Whether the loader is `super().__init__()` of a class of which only other files make objects, and batches are
    copied where these are at hand."""
    model, cls = loader.model, loader.site.function.cls
    if loader.built or cls is None:
        return False
    users = model.users()
    near = {source.path: source for user in users for source in (user, *model.imported_by(user))}
    return any(copies_batches(near[path], model) for path in sorted(near))


def _name_at_top(loader: Loader) -> str | None:
    """The only thing that has the name at the top level of the file."""
    statement = loader.model.small_statement(loader.site.node)
    match statement:
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name) as target)], value=value) if (
            value is loader.site.node and loader.site.function.is_module
        ):
            binding = loader.model.binding(target)
            return name if binding is not None and len(binding.writes) == 1 else None
    return None
