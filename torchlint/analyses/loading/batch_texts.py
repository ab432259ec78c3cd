"""What the text of a file that is not modelled here says of batches: which names they have, and who copies them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence, Set
from typing import TypeAlias

Texts: TypeAlias = Callable[[bool], Sequence[str]]
"""The texts in which a helper may be defined: those near by, or, where they leave it to heirs, all there are."""

DEFAULT_CHANGED = re.compile(r"set_default_(device|tensor_type)\s*\(")
_OPTION_SET = re.compile(r"(?<![\w.])([\w.]+)\.(pin_memory|num_workers)\s*=(?!=|\s*0\b)")
_SUBCLASS = re.compile(r"^[ \t]*class \w+\(.*Loader", re.MULTILINE)
# What is taken out of something, one after the other, and what is copied to a device.
# Each begins where a name can, so that a line of a million characters takes no longer than many short ones.
_DRAWN = re.compile(
    r"\bfor\s+((?:[\w,()*]+\s+){1,20}?)in\s+(?:\w+\(\s*)*[\w.]*(?:[lL]oader|_dl|_iter)"
    r"|^[ \t]*(\w+(?: *, *\w+)*(?: *,)?)\s*=\s*(?:next\(|\w[\w.]*\.next\(\))",
    re.MULTILINE,
)
# `bar = tqdm(train_loader, ncols=80) if is_main else train_loader`, and a loop over it.
_SHOWN = re.compile(
    r"^[ \t]*(\w+)[ \t]*=[ \t]*(?:(?!next\b|len\b)[\w.]+\(){1,3}[\w.]*(?:[lL]oader|_dl)\b",
    re.MULTILINE,
)
_SHOWN_OF = r"^[ \t]*(\w+)[ \t]*=[ \t]*(?:(?!next\b|len\b)[\w.]+\(){{1,3}}(?:[\w.]+[ \t]*,[ \t]*){{0,9}}(?:{})\b"
_DRAWN_FROM = (
    r"\bfor\s+((?:[\w,()*]+\s+){{1,20}}?)in\s+(?:\w+\(\s*){{0,9}}(?:[\w.]+[ \t]*,[ \t]*){{0,9}}(?:{})\b\s*[):,]"
)
_HANDED = r"\b(?!(?:len|print|next|iter|list|type|str|enumerate|zip|tqdm)\b)\w+\((?:[^()\n]*[ ,=])?(?:{})\s*[,)]"
_UNPACKED = re.compile(
    r"^[ \t]*(\w+(?:[ \t]*,[ \t]*\w+)+)[ \t]*=[ \t]*(\w+)[ \t]*(?:#.*)?$"
    r"|\bfor\s+((?:[\w,]+\s+){1,20}?)in\s+(\w+)(?:\.items\(\)|\.values\(\))?\s*[])}:]",
    re.MULTILINE,
)
_NAME = re.compile(r"[a-zA-Z_]\w*")
_COPIED = re.compile(
    r"\b([a-zA-Z_]\w*)(?:\[[^\[\]\n]*\])?\.(?:cuda\(|to\(\s*[\"']?[\w.]*(?:device|gpu|cuda|rank|\bdev\b))",
    re.IGNORECASE,
)
_GIVEN = re.compile(r"(?<!def )\b([a-zA-Z_]\w*)\(\s*([a-zA-Z_]\w*)\s*[,)]")
_GIVEN_NEXT = re.compile(r"\b([a-zA-Z_]\w*)\(\s*(?:next\(|\w[\w.]*\.next\(\))")
_DEFINITION = r"^([ \t]*)(?:async[ \t]+)?def {}\(\s*(?:(?:self|cls)\s*,\s*)?([a-zA-Z_]\w*)"
# A body of nothing but a text and `pass`, behind the rest of the parameters.
_PLACEHOLDER = re.compile(
    r"\A[^\n]*:[ \t]*(?:#[^\n]*)?(?:\s*(?:[rR]?\"\"\"(?:[^\"]|\"(?!\"\"))*\"\"\"|#[^\n]*))*"
    r"\s*(?:pass|\.\.\.|raise NotImplementedError[^\n]*)?\s*\Z"
)
_MOST_HELPERS = 3  # one within the other


def sets_options(text: str, settings: frozenset[str] = frozenset()) -> bool:
    """Whether an option is set on what may be a loader: not on what one is given it from, nor on `self` elsewhere."""
    has_subclass = _SUBCLASS.search(text) is not None
    return any(
        re.search(rf"\b{name}\s*=\s*(?:int\()?{re.escape(owner)}\.{name}\b(?!\s*=)", text) is None
        for owner, name in _OPTION_SET.findall(text)
        if owner not in settings and (has_subclass or owner != "self")
    )


def copies_batches(text: str, helpers: Texts, drawn: Set[str] = frozenset()) -> bool:
    """Whether code draws batches, or has some under names that are known, and copies them to an accelerator, be it by
    functions that are defined in one of the texts of `helpers`."""
    drawn = drawn | {name for match in _DRAWN.finditer(text) for name in _NAME.findall(match[1] or match[2])}
    shown = sorted({match[1] for match in _SHOWN.finditer(text)})
    if _copies(text, drawn | _drawn_from(text, "|".join(shown)) if shown else drawn, helpers):
        return True
    given = sorted({match[1] for match in _GIVEN_NEXT.finditer(text)})
    return any(_is_copier(name, helpers, frozenset([name])) for name in given) and not _are_special(text)


def copies_batches_of(text: str, helpers: Texts, names: Sequence[str]) -> bool:
    """Whether code draws batches from something that has one of these names, or ends with one after a dot, and copies
    them to an accelerator."""
    called = "|".join(map(re.escape, names))
    shown = {match[1] for match in re.finditer(_SHOWN_OF.format(rf"(?:\w[\w.]*\.)?(?:{called})"), text, re.MULTILINE)}
    return _copies(text, _drawn_from(text, "|".join([rf"(?:\w[\w.]*\.)?(?:{called})", *sorted(shown)])), helpers)


def hands_on(text: str, names: Sequence[str]) -> bool:
    """Whether code gives what has one of these names to a function."""
    return re.search(_HANDED.format("|".join(map(re.escape, names))), text) is not None


def _drawn_from(text: str, iterated: str) -> set[str]:
    """The names of the loops over something."""
    return {name for match in re.finditer(_DRAWN_FROM.format(iterated), text) for name in _NAME.findall(match[1])}


def _copies(text: str, drawn: Set[str], helpers: Texts) -> bool:
    return bool(drawn) and not _are_special(text) and _copies_any(text, drawn, helpers, frozenset())


def _are_special(text: str) -> bool:
    """Whether loaders are set options there, or tensors have another device by default."""
    return sets_options(text) or DEFAULT_CHANGED.search(text) is not None


def _copies_any(text: str, drawn: Set[str], helpers: Texts, asked: frozenset[str]) -> bool:
    """Whether code copies to an accelerator what has one of these names, or a part of it, or a helper does."""
    for match in _UNPACKED.finditer(text):
        if (match[2] or match[4]) in drawn:
            drawn = drawn | {*_NAME.findall(match[1] or match[3])}
    if any(match[1] in drawn for match in _COPIED.finditer(text)):
        return True
    given = {match[1] for match in _GIVEN.finditer(text) if match[2] in drawn} - asked
    return len(asked) < _MOST_HELPERS and any(_is_copier(name, helpers, asked | {name}) for name in sorted(given))


def _is_copier(name: str, helpers: Texts, asked: frozenset[str]) -> bool:
    """Whether all functions of a name copy what they are given first, but for those that leave it to heirs."""
    found = [part for text in helpers(False) for part in _definitions(text, name)]
    if found and all(_PLACEHOLDER.search(body) for _, body in found):
        found = [part for text in helpers(True) for part in _definitions(text, name)]
    found = [(first, body) for first, body in found if not _PLACEHOLDER.search(body)]
    return bool(found) and all(_copies_any(body, {first}, helpers, asked) for first, body in found)


def _definitions(text: str, name: str) -> Iterator[tuple[str, str]]:
    """The first parameter and the body of each function of a name."""
    if f"def {name}(" not in text:
        return
    for match in re.finditer(_DEFINITION.format(name), text, re.MULTILINE):
        end = re.compile(rf"^[ \t]{{0,{len(match[1])}}}(?![ \t)\n#]|\r)", re.MULTILINE).search(text, match.end())
        yield match[2], text[match.end() : end.start() if end is not None else len(text)]
