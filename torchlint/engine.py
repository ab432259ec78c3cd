"""The core: `lint(source, settings)` turns one file's text into findings. What it reads of other files it reads through
the project that it is given.

gate -> parse -> model -> rules -> spans and fixes of what was reported -> filters. Whatever goes wrong becomes a
finding of family LINT.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from torchlint.config import Settings, version
from torchlint.diagnostics import INTERNAL_ERROR, TOO_COMPLEX, UNUSED_SUPPRESSION, Diagnostic, diagnose, is_failure
from torchlint.files.requirement import torch_of_code
from torchlint.files.test_code import is_test_code
from torchlint.filters.scope import digest
from torchlint.filters.suppression import Suppression, codes_named, removal, suppressions
from torchlint.finding import (
    Applicability,
    Edit,
    FileEdits,
    Finding,
    Fix,
    Step,
    Suppressed,
    SuppressedBy,
)
from torchlint.fixing.kept_comments import lost_comment
from torchlint.fixing.word_breaks import set_apart
from torchlint.parsing import UnparsableError, check_syntax, parse
from torchlint.rule import Fact, NoFixError, Report, Rule, all_rules, fixer_for
from torchlint.source import Source

if TYPE_CHECKING:
    import libcst as cst

    from torchlint.semantics.model import Model
    from torchlint.semantics.project import Project

Filter = Callable[[list[Finding]], list[Finding]]

DEFAULT = Settings()


def lint(
    source: Source, settings: Settings = DEFAULT, strict: bool = False, project: Project | None = None
) -> list[Finding]:
    """Findings of one file in the order of the text.

    strict: exceptions of rules and fixers come out instead of becoming findings, for tests of rules.
    project: where the files are read that this one imports, or that import it; None looks at this one alone.
    """
    return examine(source, settings, strict, project).findings


@dataclass(frozen=True, slots=True)
class Examined:
    """Findings that count, and those that a comment or a baseline suppresses; each in the order of the text. `seconds`
    were spent on parsing, on the model and on each rule; the first rule that asks for a fact pays for it."""

    findings: list[Finding]
    suppressed: list[Finding]
    seconds: Mapping[str, float]


def examine(
    source: Source, settings: Settings = DEFAULT, strict: bool = False, project: Project | None = None
) -> Examined:
    """As `lint`, with what was suppressed."""
    run = _Run(source, settings, strict, project)
    findings = run.findings()
    return Examined(findings, sorted(run.suppressed, key=_in_text_order), run.seconds)


@dataclass
class _Run:
    source: Source
    settings: Settings
    strict: bool
    project: Project | None = None
    crashed: set[str] = field(default_factory=set)
    suppressed: list[Finding] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def _timed(self, what: str) -> Iterator[None]:
        begin = perf_counter()
        yield
        self.seconds[what] = self.seconds.get(what, 0.0) + perf_counter() - begin

    def findings(self) -> list[Finding]:
        if "torch" not in self.source.text:
            return []
        codes, rules = self.settings.codes(self.source.path), all_rules()
        selected = [rules[code] for code in sorted(codes) if code in rules]
        mentions = cache(self.source.text.__contains__)  # many rules have the same triggers
        triggered = [rule for rule in selected if any(map(mentions, rule.triggers))]
        triggered = [rule for rule in triggered if not self._is_needless(rule)]
        if self._is_test_code:
            triggered = [rule for rule in triggered if rule.runs_on_tests()]
        try:
            found = list(self._run(triggered)) if triggered else self._only_syntax()
        except _StopError as stop:
            is_wanted = stop.finding.code in codes or is_failure(stop.finding.code)
            return self._in_scope([stop.finding] if is_wanted else [])
        for keep in self._filters(codes, {rule.code for rule in selected}):
            found = keep(found)
        return found

    @cached_property
    def _is_test_code(self) -> bool:
        path = self.source.path
        below = self.project.path_below_root(os.path.abspath(path)) if self.project is not None else path
        return is_test_code(Path(below), self.source.text)

    def _is_needless(self, rule: type[Rule]) -> bool:
        """Whether the project runs with no torch but those that do by themselves what the rule asks for."""
        if self.project is None or self.settings.target_torch is not None or not rule.needless_since:
            return False
        required = self.project.torch_requirement(self.source.path)
        return required is not None and required.is_declared and required.oldest >= version(rule.needless_since)

    def _filters(self, codes: frozenset[str], selected: set[str]) -> tuple[Filter, ...]:
        """What findings pass through, in this order. Unused suppressions are known once all others have been used."""
        comments = suppressions(self.source)
        return (
            _distinct,
            lambda found: [finding for finding in found if not self._is_suppressed(finding, comments)],
            lambda found: [*found, *self._unused(comments, selected - self.crashed, codes)],
            lambda found: sorted(found, key=_in_text_order),
            self._in_scope,
        )

    def _in_scope(self, found: list[Finding]) -> list[Finding]:
        if self.settings.scope is None:
            return found
        kept, suppressed = self.settings.scope.split(found, self.source)
        self.suppressed += suppressed
        return kept

    def _run(self, rules: list[type[Rule]]) -> Iterator[Finding]:
        from torchlint.semantics.spans import SourceMismatchError
        from torchlint.semantics.tree import deep_recursion

        with self._timed("parsing"):
            tree = self._parse()
        with self._timed("model"):
            model = self._model(tree)
        try:
            with deep_recursion():
                yield from self._report(rules, model)
        except SourceMismatchError as error:
            message = "the syntax tree does not print as the text of the file, so no position in it can be trusted"
            raise _StopError(self._diagnostic(TOO_COMPLEX, message)) from error

    def _report(self, rules: list[type[Rule]], model: Model) -> Iterator[Finding]:
        """Findings of each rule, with spans and fixes of what it reported. A crash costs the rule's own findings."""
        from torchlint.fixing.all_or_none import shown_where_others_stay
        from torchlint.fixing.copied import shown_where_copied
        from torchlint.semantics.spans import SourceMismatchError

        all_of_them: list[tuple[cst.CSTNode, Finding]] = []
        for rule in rules:
            try:
                with self._timed(rule.code):
                    reports = [report for report in rule().check(model) if self._is_finding(report, model)]
                    found = [(report, self._finding(rule, report, model)) for report in reports]
            except SourceMismatchError:
                raise
            except Exception as error:
                yield self._rule_crash(rule, "rule", error)
                continue
            fixed: list[tuple[cst.CSTNode, Finding]] = []
            for report, finding in found:
                try:
                    fixed.append((report.node, replace(finding, fix=self._fix(rule, report, model))))
                except NoFixError as error:
                    fixed.append((report.node, replace(finding, no_fix=" ".join(error.reason.split()))))
                except Exception as error:
                    fixed.append((report.node, finding))
                    yield self._rule_crash(rule, "fixer of", error)
            all_of_them += shown_where_copied(fixed, model)
        yield from shown_where_others_stay(all_of_them, model)

    def _only_syntax(self) -> list[Finding]:
        try:
            check_syntax(self.source)
        except UnparsableError as error:
            raise _StopError(self._diagnostic(error.kind, error.message, error.offset)) from error
        return []

    def _parse(self) -> cst.Module:
        try:
            return parse(self.source) if self.project is None else self.project.tree(self.source)
        except UnparsableError as error:
            raise _StopError(self._diagnostic(error.kind, error.message, error.offset)) from error
        except Exception as error:
            raise _StopError(self._crash("the parser", error)) from error

    def _model(self, module: cst.Module) -> Model:
        from torchlint.semantics.model import Model

        try:
            return Model.build(self.source, module) if self.project is None else self.project.model_to_lint(self.source)
        except RecursionError as error:
            if self.strict:
                raise
            raise _StopError(self._diagnostic(TOO_COMPLEX, "the file is nested too deeply to be analysed")) from error
        except Exception as error:
            raise _StopError(self._crash("the semantic model", error)) from error

    def _finding(self, rule: type[Rule], report: Report, model: Model) -> Finding:
        from torchlint.semantics.account import chain

        start, end = self._marked(report.node, model)
        function = model.function(report.node)
        severity = self.settings.severity_of(rule.code, self.source.path, report.severity)
        kind = Diagnostic(rule.code, rule.name, severity, False, "")
        return replace(
            self._diagnostic(kind, " ".join(report.message.split()), start, end),
            confidence=report.confidence,
            function=None if function.is_module else function.qualname,
            statement=digest(self.source.text[slice(*self._marked(_statement(report.node, model), model))]),
            extent=_extent(report.node, model) if rule.whole_function else None,
            chain=tuple(self._step(fact, model) for fact in report.chain or chain(model, report.node)),
        )

    def _step(self, fact: Fact, model: Model) -> Step:
        start, end = self._marked(fact.node, model)
        cell, line, column = self.source.locate(start)
        _, end_line, end_column = self.source.locate(end)
        return Step(" ".join(fact.text.split()), start, end, line, column, end_line, end_column, cell)

    def _marked(self, node: cst.CSTNode, model: Model) -> tuple[int, int]:
        """The span of a node, of a compound statement that of its header."""
        import libcst as cst

        start, end = model.span(node)
        body = getattr(node, "body", None)
        if isinstance(body, cst.BaseSuite) and model.span(body)[0] > start:
            end = start + len(self.source.text[start : model.span(body)[0]].rstrip())
        return start, end

    def _fix(self, rule: type[Rule], report: Report, model: Model) -> Fix | None:
        fixer = fixer_for(rule.code)
        fix = fixer(report, model) if fixer is not None else None
        if fix is None:
            return None
        if not fix.edits and not fix.elsewhere:
            raise ValueError("a fix without edits")
        elsewhere = tuple(FileEdits(other.source, _in_order(other.edits, other.source)) for other in fix.elsewhere)
        return self._dated(rule, replace(fix, edits=_in_order(fix.edits, self.source), elsewhere=elsewhere))

    def _dated(self, rule: type[Rule], fix: Fix) -> Fix:
        """A fix that a torch which the project allows cannot run is only shown, unless the settings name another."""
        needed = fix.needs_torch or rule.needs_torch
        if self.project is None or self.settings.target_torch is not None or not needed:
            return fix
        older = self._older_torch(version(needed))
        if older is None:
            return fix
        why = f"it needs torch {needed}, and {older}"
        why = f"{fix.why.rstrip('.')}; {why}" if fix.why else why
        return replace(fix, applicability=Applicability.DISPLAY, why=why)

    def _is_finding(self, report: Report, model: Model) -> bool:
        if self._runs_without(report.needs_torch) or model.never_runs(report.node):
            return False
        return report.in_tests or not self._is_test_code

    def _runs_without(self, needed: str) -> bool:
        """Whether the file is to run with an older torch than that, too."""
        if not needed or self.project is None:
            return False
        target = self.settings.target_torch
        return (
            version(target) < version(needed) if target is not None else self._older_torch(version(needed)) is not None
        )

    def _older_torch(self, needed: tuple[int, ...]) -> str | None:
        """What says that an older torch than that runs the file."""
        newest = torch_of_code(self.source.text)
        if newest is not None and newest[0] < needed:
            return f"`{newest[1]}` runs with none newer than {'.'.join(map(str, newest[0]))}"
        required = self.project.torch_requirement(self.source.path) if self.project is not None else None
        if required is None or required.oldest >= needed:
            return None
        return f"{required.file} asks for `{required.text}`"

    def _diagnostic(self, kind: Diagnostic, message: str, start: int = 0, end: int | None = None) -> Finding:
        end = start if end is None else end
        cell, line, column = self.source.locate(start)
        _, end_line, end_column = self.source.locate(end)
        return replace(
            diagnose(kind, message, self.source.path),
            start=start,
            end=end,
            cell=cell,
            line=line,
            column=column,
            end_line=end_line,
            end_column=end_column,
            statement=digest(self.source.line(self.source.line_number(start))),
        )

    def _rule_crash(self, rule: type[Rule], what: str, error: Exception) -> Finding:
        self.crashed.add(rule.code)
        return self._crash(f"{what} {rule.code} ({rule.name})", error)

    def _crash(self, what: str, error: Exception) -> Finding:
        if self.strict:
            raise error
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(frame.filename).name}:{frame.lineno}"
        return self._diagnostic(INTERNAL_ERROR, f"{what} crashed: {type(error).__name__}: {_summary(error)} ({where})")

    def _is_suppressed(self, finding: Finding, comments: list[Suppression]) -> bool:
        line = self.source.line_number(finding.start)
        reason = None
        for comment in comments:
            spelling = comment.matches(finding.code) if comment.covers(line) else None
            if spelling is not None and not is_failure(finding.code):
                comment.used.add(spelling)
                reason = reason or comment.reason
        if reason is not None:
            self.suppressed.append(replace(finding, suppressed=Suppressed(SuppressedBy.COMMENT, reason)))
        return reason is not None

    def _unused(self, comments: list[Suppression], ran: set[str], codes: frozenset[str]) -> Iterator[Finding]:
        if UNUSED_SUPPRESSION.code not in codes:
            return
        keepers = [comment for comment in comments if comment.names(UNUSED_SUPPRESSION.code)]
        for comment in comments:
            line = self.source.line_number(comment.start)
            unused = comment.unused(ran)
            if unused is None or any(keeper.covers(line) for keeper in keepers):
                continue
            what = ", ".join(f"`{name}`" for name in unused) or "every rule"
            why = "nothing is found here" if all(map(codes_named, unused)) else "there is no such rule"
            message = f"The comment suppresses {what}, but {why}."
            edits = (removal(self.source, comment, unused),)
            fix = Fix(edits, Applicability.SAFE) if self.source.objection(edits) is None else None
            yield replace(self._diagnostic(UNUSED_SUPPRESSION, message, comment.start, comment.end), fix=fix)


def _in_order(edits: Sequence[Edit], source: Source) -> tuple[Edit, ...]:
    """The edits from the first to the last, none of which makes one word of two. Raises ValueError for edits that no
    text can have, NoFixError for those that this one cannot have or that take a comment away."""
    ordered = tuple(sorted(edits, key=lambda edit: (edit.start, edit.end)))
    if any(not 0 <= edit.start <= edit.end <= len(source.text) for edit in ordered):
        raise ValueError(f"edits outside of the text: {ordered}")
    if any(first.end > second.start for first, second in pairwise(ordered)):
        raise ValueError(f"edits that overlap: {ordered}")
    objection = source.objection(ordered)
    if objection is not None:
        raise NoFixError(objection)
    apart = set_apart(source.text, ordered)
    lost = lost_comment(source.text, apart)
    if lost is not None:
        raise NoFixError(f"the comment `{lost}` would be lost")
    return apart


def _in_text_order(finding: Finding) -> tuple[int, int, str, str]:
    return finding.start, finding.end, finding.code, finding.message


def _statement(node: cst.CSTNode, model: Model) -> cst.CSTNode:
    return model.small_statement(node) or model.statement(node)


def _extent(node: cst.CSTNode, model: Model) -> tuple[int, int]:
    """The span of the function around a node; outside of functions, of the statement of the module around it."""
    import libcst as cst

    around = [node, *model.ancestors(node)]
    functions = (outer for outer in around[1:] if isinstance(outer, cst.FunctionDef))
    return model.span(next(functions, around[-2] if len(around) > 1 else node))


def _distinct(found: list[Finding]) -> list[Finding]:
    """One finding of each rule at each place."""
    return list(
        {(f.code, f.start, f.end, f.message if is_failure(f.code) else ""): f for f in reversed(found)}.values()
    )


class _StopError(Exception):
    """The file cannot be analysed; the finding says why."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


def _summary(error: BaseException) -> str:
    return " ".join(str(error).split())[:300]
