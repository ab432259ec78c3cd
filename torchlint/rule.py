"""A rule: declared facts, a page (the class docstring) and one method that yields reports from the model."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

from torchlint.finding import Confidence, Fix, Severity

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

    import libcst as cst

    from torchlint.semantics.model import Model

FAMILY_SEVERITY = {
    "MEM": Severity.WARNING,
    "SYNC": Severity.WARNING,
    "VEC": Severity.WARNING,
    "LIN": Severity.WARNING,
    "DATA": Severity.INFO,
    "XFER": Severity.INFO,
    "AMP": Severity.WARNING,
    "DIST": Severity.WARNING,
    "TRAIN": Severity.ERROR,
    "KERN": Severity.INFO,
    "TIME": Severity.WARNING,
    "API": Severity.WARNING,
    "LINT": Severity.ERROR,
}
_ACCELERATOR_FAMILIES = frozenset({"SYNC", "XFER"})
_SPEED_FAMILIES = frozenset({"MEM", "SYNC", "VEC", "LIN", "DATA", "XFER", "KERN", "TIME"})


@dataclass(frozen=True, slots=True)
class Fact:
    """One step of why a finding is true: a place in the file and what the model knows there, as a short sentence."""

    node: cst.CSTNode
    text: str


@dataclass(frozen=True, slots=True)
class Report:
    """What a rule yields: the node to point at and the message.

    `facts` is what its fixer needs. `chain` tells the reader why, in the order in which the code runs; where a rule
    gives none, the engine asks the model how the value at `node` came about. `needs_torch`: the oldest torch release
    with which it is a finding; where the project runs with an older one, it is none. `severity`: where this finding
    weighs more or less than others of the rule; the settings go before it. `in_tests`: whether it is a finding in test
    code, too.
    """

    node: cst.CSTNode
    message: str
    confidence: Confidence = Confidence.CERTAIN
    facts: Any = None
    chain: tuple[Fact, ...] = ()
    needs_torch: str = ""
    severity: Severity | None = None
    in_tests: bool = True


class Rule(ABC):
    """Base of all rules. The docstring of a subclass is its page.

    `triggers`: a file whose text contains none of these words cannot have a finding of the rule.
    `severity`: of its findings, unless they say otherwise; of the family unless a rule says otherwise.
    `whole_function`: a finding speaks of a loop or a function, so any change in the function may have brought it about.
    `accelerator`: it matters on a GPU only; of the family unless a rule says otherwise.
    `in_tests`: it is run on test code, too; unless a rule says otherwise, not if its family is about time and memory.
    `needs_torch`: the oldest torch release in which the remedy exists. With an older `target-torch` the rule is off;
    where the project asks for an older one, its fixes are only shown.
    `needless_since`: the first torch release that does by itself what the rule asks for. With that or a newer
    `target-torch` the rule is off, and where the project asks for it.
    `plugin`: the file or folder that the rule was loaded from; None for built-in and installed ones.

    A rule of a plugin may have its fixer as a method `fix(self, report, model) -> Fix`.
    """

    code: ClassVar[str]
    name: ClassVar[str]
    triggers: ClassVar[tuple[str, ...]]
    since: ClassVar[str] = "0.1.0"
    severity: ClassVar[Severity | None] = None
    whole_function: ClassVar[bool] = False
    accelerator: ClassVar[bool | None] = None
    in_tests: ClassVar[bool | None] = None
    needs_torch: ClassVar[str] = ""
    needless_since: ClassVar[str] = ""
    plugin: ClassVar[Path | None] = None

    @abstractmethod
    def check(self, model: Model) -> Iterator[Report]:
        """Every place of the file that has the problem."""

    @classmethod
    def family(cls) -> str:
        return cls.code.rstrip("0123456789")

    @classmethod
    def default_severity(cls) -> Severity:
        return cls.severity or FAMILY_SEVERITY.get(cls.family(), Severity.WARNING)

    @classmethod
    def needs_accelerator(cls) -> bool:
        return cls.family() in _ACCELERATOR_FAMILIES if cls.accelerator is None else cls.accelerator

    @classmethod
    def runs_on_tests(cls) -> bool:
        return cls.family() not in _SPEED_FAMILIES if cls.in_tests is None else cls.in_tests

    @classmethod
    def page(cls) -> str:
        return inspect.cleandoc(cls.__doc__ or "")

    @classmethod
    def summary(cls) -> str:
        return cls.page().partition("\n")[0]


Fixer = Callable[[Report, "Model"], "Fix | None"]


class NoFixError(Exception):
    """Raised by a fixer that leaves this place as it is: `reason` says in one line what stood in the way.

    It begins in lower case and has no full stop: `the loader is made in another file`.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def _modules(package: str) -> Iterator[str]:
    root = importlib.import_module(package)
    for family in pkgutil.iter_modules(root.__path__, package + "."):
        if family.ispkg:
            paths = importlib.import_module(family.name).__path__
            yield from (module.name for module in pkgutil.iter_modules(paths, family.name + "."))


@lru_cache(maxsize=1)
def all_rules() -> dict[str, type[Rule]]:
    """Every rule by its code: the built-in ones, found by walking `torchlint.rules`, those of installed packages, and
    what has been loaded since by `torchlint.plugins`; there is no list to edit. Raises PluginError."""
    from torchlint import plugins

    built_in = [rule for name in _modules("torchlint.rules") for rule in rules_in(importlib.import_module(name))]
    found = {rule.code: rule for rule in sorted(built_in, key=lambda rule: rule.code)}
    plugins.add(found, plugins.installed())
    return found


def rules_in(module: ModuleType) -> list[type[Rule]]:
    """The rules that a module defines."""
    items = [item for item in vars(module).values() if isinstance(item, type) and issubclass(item, Rule)]
    return [item for item in items if item.__module__ == module.__name__ and "code" in vars(item)]


def _fixer_module(code: str) -> str:
    return all_rules()[code].__module__.replace("torchlint.rules.", "torchlint.fixers.", 1)


def has_fixer(code: str) -> bool:
    """Whether `fixer_for` has one, without loading it: fixers import LibCST."""
    if hasattr(all_rules()[code], "fix"):
        return True
    try:
        return importlib.util.find_spec(_fixer_module(code)) is not None
    except ModuleNotFoundError:
        return False


@cache
def fixer_for(code: str) -> Fixer | None:
    """The rule's own method `fix`, or the function of `torchlint.fixers.<family>.<module of the rule>`, if any."""
    own: Fixer | None = getattr(all_rules()[code](), "fix", None)
    if own is not None:
        return own
    module = _fixer_module(code)
    try:
        fix: Fixer = importlib.import_module(module).fix
    except ModuleNotFoundError as error:
        if error.name is not None and module.startswith(error.name):
            return None
        raise
    return fix
