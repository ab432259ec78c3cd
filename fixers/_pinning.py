"""Asking a data loader for batches in page-locked memory, where its options are written."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst
from torchlint.fixers._loader_options import check_is_not_one_of_many, set_option

from torchlint.analyses.conditions import conditions
from torchlint.analyses.devices.cuda_flags import AVAILABLE, cuda_flag, flag_around, needs_cuda
from torchlint.analyses.devices.device_option import device_at, follows_option, is_device, runs_on_host_by_default
from torchlint.analyses.devices.visible_devices import chosen_later
from torchlint.analyses.loading.feeding import reach
from torchlint.analyses.loading.loaders import loaders, loaders_of
from torchlint.analyses.loading.pinnable import is_collated_out_of_sight
from torchlint.analyses.once import once_for_each
from torchlint.edits.rewriter import Rewriter
from torchlint.finding import Applicability, Confidence
from torchlint.rule import NoFixError
from torchlint.semantics.tree import is_name

if TYPE_CHECKING:
    from torchlint.analyses.loading.loaders import Loader
    from torchlint.finding import Edit
    from torchlint.semantics.entities import Call, Function
    from torchlint.semantics.model import Model


_COMMENT = re.compile(r"#[^\r\n]*")
_NO_WORKERS = "Without workers, the process that drives the GPU pins the batches itself, which gains little."


@dataclass(frozen=True, slots=True)
class Pinning:
    """The edits in the file of the loader, how sure they are, and what speaks against them, if anything."""

    edits: tuple[Edit, ...]
    applicability: Applicability
    doubt: str | None


def pinning(loader: Loader) -> Pinning:
    """Raises NoFixError where the option cannot be given to the loader alone. Every copy of a batch asks for it."""
    known = loader.model.once(_known_pinnings)
    if loader not in known:
        try:
            known[loader] = _pinning(loader)
        except NoFixError as error:
            known[loader] = error
    found = known[loader]
    if isinstance(found, NoFixError):
        raise found
    return found


def _known_pinnings(_: Model) -> dict[Loader, Pinning | NoFixError]:
    return {}


def _pinning(loader: Loader) -> Pinning:
    if loader.option("pin_memory").given:
        raise NoFixError("pinning is turned off there, and why is for you to say")
    if loader.model.once(_turns_pinning_off):
        raise NoFixError("pinning is turned off for another loader of the file, and they would part ways")
    if "pin_memory" in "".join(_COMMENT.findall(loader.model.code(loader.site.node))):
        raise NoFixError("a comment in the call speaks of pinning, as of something that was taken out")
    if (other := _handed_on_unpinned(loader)) is not None:
        raise NoFixError(f"`{other.name}` beside it goes where nobody sees whether its batches are copied")
    check_is_not_one_of_many(loader, "pin_memory")
    rewriter = Rewriter(loader.model)
    condition, imports = _condition(loader, rewriter)
    edits = set_option(loader, "pin_memory", condition, rewriter)
    return Pinning((*edits, *imports), *_doubt(loader))


def _turns_pinning_off(model: Model) -> bool:
    return any(other.option("pin_memory").given and other.is_pinned is False for other in loaders(model))


def _handed_on_unpinned(loader: Loader) -> Loader | None:
    """Another loader of the same function that no loop in sight draws from, though something is done with it."""
    found = _all_handed_on_unpinned(loader.model, loader.site.function)
    return next((other for other in found if other.site.node is not loader.site.node), None)


@once_for_each
def _all_handed_on_unpinned(model: Model, function: Function) -> list[Loader]:
    drawn_from = {origin for loop in model.loops for origin in loop.iterates.origins}
    return [
        loader
        for loader in loaders_of(model, function)
        if loader.is_pinned is False
        and drawn_from.isdisjoint(loader.built)
        and reach(loader) is None
        and _is_read(loader)
    ]


@once_for_each
def _pins_with_workers(model: Model, function: Function) -> bool:
    """Whether a loader of a function has workers, and is pinned or will be: all are made alike."""
    beside = loaders_of(model, function)
    return any(other.workers != 0 and (other.is_pinned or reach(other) is not None) for other in beside)


def _is_beside_always_pinned(loader: Loader) -> bool:
    """Whether another loader of the same function says `pin_memory=True`, on no condition that this one has not."""
    model = loader.model
    asked = conditions(model, loader.site.node)
    return any(
        conditions(model, other.site.node).items() <= asked.items()
        for other in _all_always_pinned(model, loader.site.function)
    )


@once_for_each
def _all_always_pinned(model: Model, function: Function) -> list[Loader]:
    return [loader for loader in loaders_of(model, function) if is_name(loader.option("pin_memory").node, "True")]


def _is_read(loader: Loader) -> bool:
    match loader.model.small_statement(loader.site.node):
        case cst.Assign(targets=[cst.AssignTarget(target=target)], value=value) if value is loader.site.node:
            binding = loader.model.binding(target)
            return binding is not None and bool(binding.reads)
    return False


def _doubt(loader: Loader) -> tuple[Applicability, str | None]:
    if loader.workers == 0 and not _pins_with_workers(loader.model, loader.site.function):
        return Applicability.DISPLAY, _NO_WORKERS
    if is_collated_out_of_sight(loader):
        return Applicability.DISPLAY, "What its collate function makes may be objects that pinning passes by."
    if loader.is_one_batch:
        return Applicability.DISPLAY, "All samples are one batch, and all of them would be page-locked for one copy."
    if reach(loader) is not Confidence.CERTAIN:
        return Applicability.UNSAFE, "That its batches go to a GPU is no more than likely."
    if "sparse" in loader.model.source.text.lower():
        return Applicability.UNSAFE, "Not every sparse tensor can be pinned."
    return Applicability.SAFE, None


def _by_device(loader: Loader, moves: list[Call], rewriter: Rewriter) -> str:
    """`device.type == "cuda"`, and of what may be a string `str(args.device).startswith("cuda")`."""
    model = loader.model
    device = device_at(model, loader.site.node, moves)
    if device is None:
        raise NoFixError("the device is an option, the CPU by default, and the loader does not know it")
    if is_device(device, model):
        return f"{model.code(device)}.type == {rewriter.string('cuda')}"
    return f"str({model.code(device)}).startswith({rewriter.string('cuda')})"


def _flag(loader: Loader) -> str | None:
    """The flag for the loader, or that of another in its function: all ask the same."""
    model, site = loader.model, loader.site
    own = cuda_flag(model, site.node, [move.call.node for move in loader.moves])
    if own is not None:
        return own
    moves = ([move.call.node for move in each.moves] for each in loaders_of(model, site.function))
    flags = (flag_around(model, site.node, nodes) for nodes in moves)
    return next((flag for flag in flags if flag is not None), None)


def _needs_cuda(loader: Loader) -> bool:
    """Whether the batches of all loaders of a function go where nothing but CUDA will do: all say the same."""
    beside = [each for each in loaders_of(loader.model, loader.site.function) if each.moves]
    return all(
        needs_cuda(each.model, each.site.function, [move.call for move in each.moves]) for each in (loader, *beside)
    )


def _condition(loader: Loader, rewriter: Rewriter) -> tuple[str, list[Edit]]:
    """What says at the loader that there is a GPU: a variable of the file, or a question to torch."""
    node = loader.site.node
    calls = [move.call for move in loader.moves]
    if runs_on_host_by_default(loader.model) and all(follows_option(call, loader.model) for call in calls):
        return _by_device(loader, calls, rewriter), []
    flag = _flag(loader)
    if flag is not None:
        return flag, []
    if _needs_cuda(loader) or _is_beside_always_pinned(loader):
        return "True", []
    if chosen_later(loader.model, node):
        raise NoFixError("asking for a GPU there, before `CUDA_VISIBLE_DEVICES` is set, may make the setting void")
    function, imports = rewriter.name_for(AVAILABLE, node)
    return f"{function}()", imports
