"""`DataLoader(images)` becomes `DataLoader(images, num_workers=min(8, os.cpu_count() or 1))`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst
from torchlint.fixers._loader_options import check_is_not_one_of_many, set_option

from torchlint.analyses.callers_by_name import calls_in_other_files
from torchlint.analyses.data.own_process import (
    changes_what_it_holds,
    holds_function,
    holds_open_file,
    keeps_what_it_reads,
)
from torchlint.analyses.loading.loaders import loaders
from torchlint.analyses.loading.many_loaders import lives_beside_many
from torchlint.edits.rewriter import Rewriter
from torchlint.finding import Applicability, Edit, Fix
from torchlint.rule import NoFixError
from torchlint.semantics.arguments import string_value

if TYPE_CHECKING:
    from torchlint.analyses.loading.loaders import Loader
    from torchlint.rule import Report
    from torchlint.semantics.entities import Function, Scope
    from torchlint.semantics.model import Model

_OPTION = re.compile(r"--(n|num)?[-_]?(data)?[-_]?(loader)?[-_]?(workers?|threads|cpus?)")
_NUMBER = re.compile(r"(?i)(n|nb|num|number_of)?_?(data|loader|dataloader)?_?(workers|n_?cpus?)")
_DISTRIBUTED = re.compile(r"\b(init_process_group|get_world_size|torchrun|mp\.spawn|multiprocessing\.spawn)\b")
_SEEDS_TORCH = re.compile(r"manual_seed|seed_everything|set_seed|seed_all")
_MOST_CALLS = 4
_WHY = (
    "Random augmentations are drawn from the generators of the workers, each worker holds a copy of the dataset, and "
    "where processes are spawned (Windows, macOS, Python 3.14) the dataset must be importable."
)


def fix(report: Report, model: Model) -> Fix:
    rewriter, loader = Rewriter(model), report.facts
    if loader.option("num_workers").given:
        raise NoFixError("no workers are asked for there, and how many there may be is for you to say")
    if any(other.option("num_workers").given and other.workers == 0 for other in loaders(model)):
        raise NoFixError("another loader of the file asks for none, and they would part ways")
    if keeps_what_it_reads(loader):
        raise NoFixError("the dataset keeps what it has read, and workers would do so for one epoch only")
    if changes_what_it_holds(loader):
        raise NoFixError("the dataset changes the samples that it holds, and workers would change copies of them")
    if _seeds_all_but_torch(model):
        raise NoFixError("the program seeds its generators, but not the one of torch, which workers are seeded from")
    if holds_function(loader):
        raise NoFixError("the dataset holds a function without a name of its own, which no other process can be sent")
    if holds_open_file(loader):
        raise NoFixError("the dataset holds an open file, in which all workers would read from the same place")
    if lives_beside_many(loader):
        raise NoFixError("many such loaders are made, and how many workers each may have is for you to say")
    check_is_not_one_of_many(loader, "num_workers")
    imports: list[Edit] = []
    workers = _asked_of_user(model, report.node) or _given_beside(loader)
    if workers is None and (said := _number_elsewhere(model)) is not None:
        raise NoFixError(f"`{model.code(said)}` on {model.place(said)} says how many workers there are elsewhere")
    if workers is None and _DISTRIBUTED.search(model.source.text) is not None:
        raise NoFixError("the program runs in several processes, and how many workers each may have is for you to say")
    if workers is None:
        name, imports = rewriter.name_for("os.cpu_count", report.node)
        workers = f"min(8, {name}() or 1)"
    edits = set_option(loader, "num_workers", workers, rewriter)
    shown_only = _runs_on_import(model, report.facts.site.function)
    return Fix((*edits, *imports), Applicability.DISPLAY if shown_only else Applicability.UNSAFE, _WHY)


def _seeds_all_but_torch(model: Model) -> bool:
    return bool(model.calls_to("numpy.random.seed", "random.seed")) and _SEEDS_TORCH.search(model.source.text) is None


def _asked_of_user(model: Model, at: cst.CSTNode) -> str | None:
    """`opt.n_cpu`, where the command line has such an option and it is some workers unless the user says otherwise."""
    asked = (
        call for call in model.calls_to(".add_argument") if call.argument("default").value.constant not in (0, None)
    )
    names = (string_value(arg.value) or "" for call in asked for arg in call.arguments[:2] if arg.keyword is None)
    option = next((name.strip("-").replace("-", "_") for name in names if _OPTION.fullmatch(name)), None)
    if option is None:
        return None
    for call in model.calls_to(".parse_args"):
        match model.parent(call.node):
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name) as target)]):
                if _is_seen(model, target, at):
                    return f"{name}.{option}"
    return None


def _given_beside(loader: Loader) -> str | None:
    """`prefetch`, which the function gets, and gives to the loaders beside."""
    counts = [other.option("num_workers").node for other in loaders(loader.model) if _is_beside(other, loader)]
    named = {loader.model.code(count) for count in counts if isinstance(count, cst.Name)}
    parameters = loader.site.function.params
    return named.pop() if len(named) == 1 and named <= {*parameters} else None


def _is_beside(other: Loader, loader: Loader) -> bool:
    return other.site.function is loader.site.function and other.option("num_workers").given


def _number_elsewhere(model: Model) -> cst.CSTNode | None:
    """`options.workers`, of options that are set in another file."""
    named = (node for node in model.nodes_of(cst.Attribute) if isinstance(node, cst.Attribute))
    return next((node for node in named if _NUMBER.fullmatch(node.attr.value) is not None), None)


def _is_seen(model: Model, target: cst.Name, at: cst.CSTNode) -> bool:
    """Whether a variable that is written once has its value at a place."""
    binding = model.binding(target)
    scope: Scope | None = model.scope(at)
    while scope is not None:
        found = scope.bindings.get(target.value)
        if found is not None:
            is_before = model.function(target) is not model.function(at) or model.span(target)[0] < model.span(at)[0]
            return found is binding and len(found.writes) == 1 and is_before
        scope = scope.parent
    return False


def _runs_on_import(model: Model, function: Function, depth: int = 0) -> bool:
    """Whether importing a file of the project builds the loader: a spawned worker, which imports the program again,
    would do so too."""
    if function.is_module or depth > _MOST_CALLS:
        return function.is_module and "__name__" not in model.source.text
    if any(_runs_on_import(model, call.function, depth + 1) for call in function.callers):
        return True
    elsewhere = calls_in_other_files(model, function)
    return any(_runs_on_import(other, call.function, depth + 1) for other, call in elsewhere)
