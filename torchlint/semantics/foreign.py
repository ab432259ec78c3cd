"""What a file learns from other files: the values of what it imports, and who calls its functions.

A file is evaluated together with the models of the files around it, which are made without such a look themselves; so
what is known of a file does not depend on which file was asked for first, and cycles of imports end.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import libcst as cst

from torchlint.files.test_code import is_test_code
from torchlint.semantics.calls_between import NamesThere, calls_into
from torchlint.semantics.effects import TRAINING
from torchlint.semantics.entities import Call, Class, Function, Role
from torchlint.semantics.handed import handed_back, made_elsewhere
from torchlint.semantics.handed_objects import calls_on_handed
from torchlint.semantics.handing_on import importers_naming, importers_through_others
from torchlint.semantics.heirs import calls_of_heirs, heirs_in
from torchlint.semantics.nearby import MOST_IMPORTERS, Nearby
from torchlint.semantics.transfer import Arguments
from torchlint.semantics.values import UNKNOWN, Kind, Value
from torchlint.semantics.worth_asking import is_worth_asking

if TYPE_CHECKING:
    from torchlint.semantics.model import Model
    from torchlint.semantics.project import Place, Project
    from torchlint.semantics.regions import Switch
    from torchlint.source import Source

_DEPTH = 5
# Words of files in which something trains, evaluates, loads or is timed: in others, the values of imports change no
# finding.
_TELLING = re.compile(
    r"\b(backward|zero_grad|set_epoch|no_grad|inference_mode|time\.time|perf_counter)\b|DataLoader\b"
    r"|\.(eval|step|item)\(\)"
)
# Words of files whose functions copy what they are given to the host, or work there unless they are told otherwise.
_COPYING = re.compile(r"\.cpu\(\)|(\.to\(|=\s*)(torch\.device\()?[\"']cpu\b")

Origins: TypeAlias = frozenset[cst.CSTNode]


@dataclass(frozen=True, slots=True)
class ForeignCall:
    """A call, in another file, of a function of this one. `around` names the effects of what runs around it.

    `role`: of the loop that makes the call in each iteration, and not every so often to log something.
    `handed_back`: the arguments that functions of this file have returned there: which function, and which part of it.
    """

    file: str
    node: cst.CSTNode
    given: Arguments
    bound: bool
    grad_enabled: bool | None
    in_loop: bool
    around: frozenset[str]
    role: Role | None
    handed_back: tuple[tuple[int | str, str, int | None], ...] = ()

    @property
    def file_name(self) -> str:
        return os.path.basename(self.file)


class Imports:
    """One file's view of its project. Not `deep`: only the classes that it names are looked up."""

    def __init__(self, project: Project, source: Source, *, deep: bool = True) -> None:
        self.project = project
        self.file = os.path.abspath(source.path)
        self.path = Path(project.path_below_root(self.file))
        self.own_name = project.module_name(self.file)
        self.nearby = Nearby(project, self.file)
        self._deep = deep and _TELLING.search(source.text) is not None
        self._asks_callers = self._deep or (deep and _COPYING.search(source.text) is not None)
        self._values: dict[str, Value | None] = {}
        self._kinds: dict[str, Kind | None] = {}
        self._files: dict[str, str] = {}  # of functions and classes by their name in the project
        self._functions: dict[str, Function] = {}
        self._classes: dict[str, Class] = {}
        self._models: dict[str, Model] = {}
        self._beside: dict[str, Model | None] = {}
        self._exported_names: dict[tuple[str, str], str] = {}  # by the file and the name that it has there
        self._effects: dict[Function, frozenset[str]] = {}
        self._calls: dict[Function, list[tuple[Model, Call]]] = {}
        self._entering: dict[str, list[tuple[str, Model, Call]]] = {}  # by the file that calls
        self._handed_out: dict[str, list[tuple[str, Model, Call]]] = {}  # by the file that hands objects to others
        self._heirs: dict[Class, list[tuple[Model, Class]]] = {}
        self._callers: dict[str, Model] = {}  # kept, since their nodes are: the project forgets models
        self._asked: list[Function] = []

    @property
    def line_length(self) -> int | None:
        """Of this file, where the settings of the project's formatter say it."""
        return self.project.line_length(self.file)

    # -- what is imported --------------------------------------------------------------------------------------------

    def kind_of_class(self, dotted: str) -> Kind | None:
        """What an object of an imported class is; None where the class is not of the project, or nothing special."""
        if dotted not in self._kinds:
            self._kinds[dotted] = self.project.class_kind(self.file, dotted)
        return self._kinds[dotted]

    def bases(self, dotted: str) -> Iterator[str]:
        """What an imported class of the project derives from."""
        return self.project.bases(self.file, dotted)

    def star(self, module: str, name: str) -> bool:
        """Whether `from module import *` brings in the name."""
        return self.project.resolve(self.file, f"{module}.{name}" if module.strip(".") else module + name) is not None

    def file_of(self, dotted: str) -> str | None:
        """The file of the project that defines an imported name."""
        place = self.project.resolve(self.file, dotted)
        return place.file if place is not None and place.file != self.file else None

    def starred(self, module: str, name: str) -> str | None:
        """The import from outside of the project that `from module import *` brings in under the name."""
        return self.project.starred(self.file, module, name)

    def is_taken_elsewhere(self, name: str) -> bool:
        """Whether another file of the project takes a name of the top level from this one."""
        return self.project.is_taken(self.file, name)

    def value(self, dotted: str) -> Value | None:
        """What an imported name is; None where no file of the project defines it."""
        if not self._deep:
            return None
        if dotted not in self._values:
            self._values[dotted] = self._find(dotted)
        return self._values[dotted]

    def _find(self, dotted: str) -> Value | None:
        place = self.project.resolve(self.file, dotted)
        if place is None or place.file == self.file:
            return None
        if not place.name:
            return Value(Kind.NAMESPACE, ref=dotted)
        name = self._project_name(place)
        if name is not None and place.definition is not None:
            return Value(Kind.FUNCTION if place.definition.kind == "function" else Kind.CLASS, ref=name)
        model = self._load(place.file)
        return self._exported(model.member(place.name), model) if model is not None else None

    def _project_name(self, place: Place) -> str | None:
        """What a function or class is called in the whole project; None of anything else."""
        if place.definition is None or place.definition.kind not in ("function", "class"):
            return None
        name = f"{self.project.module_name(place.file)}.{place.name}"
        if place.file != self.file:
            self._files[name] = place.file
        return name

    def _load(self, file: str) -> Model | None:
        model = self._models.get(self.project.module_name(file)) or self.project.model(file)
        if model is not None and model.name not in self._models:
            self._models[model.name] = model
            self._functions.update((function.ref, function) for function in reversed(model.functions))
            self._classes.update((cls.ref, cls) for cls in reversed(model.classes))
        return model

    def _exported(self, value: Value, home: Model, given: Origins = frozenset(), depth: int = 0) -> Value:
        """A value of another file as this one sees it: what it is, by the name that its class has in the project, and
        of the expressions that made it those that it was given."""
        if depth > _DEPTH or (value.ref is not None and "<lambda>" in value.ref):
            return UNKNOWN
        ref = self._exported_name(value.ref, home) if value.ref is not None else None
        if not value.origins and value.element is None and not value.items and not value.known_fields:
            return value if ref == value.ref else value.but(ref=ref)

        def part(inner: Value) -> Value:
            return self._exported(inner, home, given, depth + 1)

        return value.but(
            ref=ref,
            origins=value.origins & given,
            element=part(value.element) if value.element is not None else None,
            items=tuple(part(v) for v in value.items) if value.items is not None else None,
            fields=tuple((k, part(v)) for k, v in value.fields) if value.fields is not None else None,
            entries=tuple((k, part(v)) for k, v in value.entries) if value.entries is not None else None,
        )

    def _exported_name(self, dotted: str, home: Model) -> str:
        """The name in the project of a function or class that another file imports as `dotted`."""
        key = home.name, dotted
        if key not in self._exported_names:
            place = self.project.resolve(os.path.abspath(home.source.path), dotted)
            self._exported_names[key] = (self._project_name(place) if place is not None else None) or dotted
        return self._exported_names[key]

    # -- functions and classes of other files ------------------------------------------------------------------------

    def function(self, value: Value) -> Function | None:
        """The function of another file that a value is."""
        if value.ref is None:
            return None
        if value.ref in self._files:
            self._load(self._files[value.ref])
        return self._functions.get(value.ref)

    def cls(self, value: Value) -> Class | None:
        """The class of another file that a value is, or is an object of."""
        if value.ref is None:
            return None
        if value.ref in self._files:
            self._load(self._files[value.ref])
        return self._classes.get(value.ref)

    def attribute(self, cls: Class, name: str) -> Value | None:
        """Of an object of a class of another file; None where the class has no such attribute."""
        model = self._models[cls.module]
        value = model.class_attribute(cls, name)
        return self._exported(value, model) if value is not None else None

    def returned(self, function: Function, given: Arguments, grad: bool | None, *, bound: bool) -> Value:
        """What a function of another file returns when it is given these arguments."""
        model = self.model_of(function)
        handed = frozenset(origin for value in given.all() for origin in _origins(value))
        return self._exported(model.returned(function, given, grad, bound=bound), model, handed)

    def model_of(self, function: Function) -> Model:
        """The model of the file in which a function of another file stands."""
        return self._models[function.module]

    def grad_switch(self, function: Function) -> Switch:
        """What a function of another file does to autograd as a context manager."""
        return self.model_of(function).grad_switch(function)

    def effects(self, function: Function, may_train: bool = True) -> frozenset[str]:
        """Which effects a function of another file has; `may_train`: autograd may be on where it is called."""
        if function not in self._effects:
            effects = self.model_of(function).effects(function)
            self._effects[function] = frozenset(name for name in effects.categories() if effects.has(name))
        found = self._effects[function]
        return found if may_train or "enable_grad" in self.model_of(function).source.text else found - TRAINING

    def class_behind(self, dotted: str) -> tuple[Model, Class] | None:
        """The class that a dotted name stands for, and the model of the other file in which it is defined."""
        known = self.cls(Value(Kind.CLASS, ref=dotted))
        if known is not None:
            return self._models[known.module], known
        model, name = self._defining(dotted, "class")
        found = next((cls for cls in model.classes if cls.qualname == name), None) if model is not None else None
        return (model, found) if model is not None and found is not None else None

    def function_behind(self, dotted: str) -> tuple[Model, Function] | None:
        """The function that a dotted name stands for, and the model of the other file in which it is defined."""
        known = self.function(Value(Kind.FUNCTION, ref=dotted))
        if known is not None:
            return self.model_of(known), known
        model, name = self._defining(dotted, "function")
        found = next((each for each in model.functions if each.qualname == name), None) if model is not None else None
        return (model, found) if model is not None and found is not None else None

    def _defining(self, dotted: str, kind: str) -> tuple[Model | None, str]:
        """The model of the file that defines what a dotted name stands for, and the name that it has there."""
        place = self.project.resolve(self.file, dotted)
        if place is None or place.definition is None or place.definition.kind != kind:
            return None, ""
        return self._load(place.file) if self._deep else self._looked_up(place.file), place.name

    def _looked_up(self, file: str) -> Model | None:
        """The model of a file for one that is made without a look into it: what somebody asks of it must not show in
        what it says to the next."""
        if file not in self._beside:
            self._beside[file] = self.project.model(file)
        return self._beside[file]

    # -- who calls functions of this file ----------------------------------------------------------------------------

    def callers(self, function: Function) -> list[ForeignCall]:
        """Calls from other files. Empty also where so many files import it that nothing can be said of all of them."""
        if not self._asks_callers or not is_worth_asking(function):
            return []
        return self._calls_by_name.get(function.qualname, [])

    def caller(self, call: ForeignCall) -> Model:
        """The model of the file that makes a call."""
        return self._callers[call.file]

    def calls_of(self, function: Function) -> list[tuple[Model, Call]]:
        """Calls of a function in the files that import this one, whatever the function does: in a few, if in many."""
        if function not in self._calls:
            self._calls[function] = list(self._find_calls(function))
        return self._calls[function]

    def _find_calls(self, function: Function) -> Iterator[tuple[Model, Call]]:
        cls = function.cls
        makes = cls if function.name in ("__init__", "__call__", "forward") else None
        for file, model in self._importers_naming(makes.name if makes is not None else function.name):
            if file not in self._entering:
                inherited = calls_of_heirs(model, self.project, file, self.file)
                entered = calls_into(model, self.project, file, self.file)
                self._entering[file] = [(name, model, call) for name, call in (*entered, *inherited)]
            yield from ((home, call) for name, home, call in self._entering[file] if name == function.qualname)
        if cls is not None and not cls.is_module and function.name != "__init__":
            yield from self._calls_where_handed(function, cls)

    def _calls_where_handed(self, function: Function, cls: Class) -> Iterator[tuple[Model, Call]]:
        """Calls of a method in files that others give objects of the class, or of one that derives from it; and where a
        function of this file has made them."""
        makers = (name for name, each in self.project.outline(self.file).names.items() if each.kind == "function")
        for file, model in self._importers_naming(cls.name, *(heir.name for heir in cls.descendants()), *makers):
            if file not in self._handed_out:
                there = NamesThere(self.project, file, self.file)
                self._handed_out[file] = list(calls_on_handed(model, there))
            yield from ((home, call) for name, home, call in self._handed_out[file] if name == function.qualname)

    def heirs_of(self, cls: Class) -> list[tuple[Model, Class]]:
        """The classes that derive from one of this file in the files that import it: in a few of these, if in many."""
        if cls not in self._heirs:
            found = (
                (model, heirs_in(model, self.project, file, self.file, cls.qualname))
                for file, model in self._importers_naming(cls.name)
            )
            self._heirs[cls] = [(model, heir) for model, heirs in found for heir in heirs]
        return self._heirs[cls]

    def _importers_naming(self, *words: str) -> Iterator[tuple[str, Model]]:
        """A few files that import this one and name one of the words: those in which something trains before others,
        and last those that get it through others."""
        sources = {file: self.project.source(file) for file in self.nearby.importing(self.file)}
        texts = {file: source.text for file, source in sources.items() if source is not None}
        named = {file for file, text in texts.items() if any(word in text for word in words)}
        direct = sorted(self.nearby.if_few(named))
        if len(direct) > MOST_IMPORTERS:
            direct.sort(key=lambda file: "backward(" not in texts[file])
        further = importers_through_others(self.project, self.file, set(words))
        naming = chain(direct, (file for file in further if file not in named))
        found = ((file, self._importer(file)) for file in islice(naming, MOST_IMPORTERS))
        yield from ((file, model) for file, model in found if model is not None)

    def _importer(self, file: str) -> Model | None:
        """The model of a file that names something of this one; None where it cannot mean this file's."""
        return self.project.model(file) if self.project.may_take(file, self.file) else None

    def prepare(self, functions: list[Function]) -> None:
        """The functions of this file, of which callers may be asked for."""
        self._asked = [function for function in functions if is_worth_asking(function)]

    def has_callers(self) -> bool:
        """Whether some file names a function of this one whose callers matter."""
        return bool(self._asked and self._importers)

    @cached_property
    def _importers(self) -> tuple[str, ...]:
        """Those that get it through others are of no account where there are too many with them."""
        names = {function.cls.name if function.cls is not None else function.name for function in self._asked}
        direct = tuple(sorted(self.nearby.if_few(set(importers_naming(self.project, self.file, names)))))
        if len(direct) >= MOST_IMPORTERS:
            return direct
        through = tuple(importers_through_others(self.project, self.file, names))
        return (*direct, *through) if len(direct) + len(through) <= MOST_IMPORTERS else direct

    @cached_property
    def _calls_by_name(self) -> dict[str, list[ForeignCall]]:
        if len(self._importers) > MOST_IMPORTERS:
            return {}
        found: dict[str, list[ForeignCall]] = {}
        for file in self._importers:
            model = self._importer(file)
            if model is not None:
                self._callers[file] = model
                calls = calls_into(model, self.project, file, self.file)
                makers: dict[cst.CSTNode, str] = {call.node: name for name, call in reversed(calls)}
                is_test = is_test_code(model.path, model.source.text)
                for name, call in calls:
                    for_others = is_test or self.project.is_published(self.file, name.partition(".")[0])
                    found.setdefault(name, []).append(self._foreign_call(call, model, file, makers, for_others))
        return found

    def _foreign_call(
        self, call: Call, model: Model, file: str, makers: Mapping[cst.CSTNode, str], for_others: bool
    ) -> ForeignCall:
        """`for_others`: users of a library call the function, too, and may hand in what is left out here."""
        given = model.given(call, lambda node: self._handed(node, model))
        given = replace(given, open=given.open or for_others)
        outer = call.loops()
        effects = model.effects(outer[-1] if outer else call.function)
        return ForeignCall(
            file,
            call.node,
            given,
            call.method is not None,
            model.grad_enabled(call.node),
            bool(outer),
            frozenset(name for name in effects.categories() if effects.has(name)),
            outer[0].role if outer and not model.is_log_gated(call.node) else None,
            tuple(handed_back(call, model, makers)),
        )

    def _handed(self, node: cst.BaseExpression, model: Model) -> Value:
        """What another file hands to a function of this one, be it what a third file has made."""
        value = model.value(node)
        made = made_elsewhere(model, node, self.file) if value.kind is Kind.UNKNOWN else None
        return self._exported(made[1], made[0]) if made is not None else self._exported(value, model)


def _origins(value: Value, depth: int = 0) -> Iterator[cst.CSTNode]:
    """The expressions that made a value, or a part of it."""
    yield from value.origins
    parts = [*(value.items or ()), *(part for _, part in value.known_fields)]
    if value.element is not None:
        parts.append(value.element)
    for part in parts if depth < _DEPTH else ():
        yield from _origins(part, depth + 1)
