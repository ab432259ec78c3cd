"""What methods of strings give."""

from __future__ import annotations

from torchlint.semantics.values import NUMBER, STRING, UNKNOWN, Kind, Value
from torchlint.word_set import word_set

_LISTS_OF_STRINGS = word_set("split rsplit splitlines")
_TUPLES_OF_STRINGS = word_set("partition rpartition")
_NUMBERS_OF_STRINGS = word_set(
    "find rfind index rindex count startswith endswith isdigit isalpha isalnum isnumeric isdecimal isspace isupper"
    " islower istitle isidentifier"
)


def string_method(method: str) -> Value:
    """Result of a method of a string."""
    if method in _LISTS_OF_STRINGS:
        return Value(Kind.LIST, element=STRING)
    if method in _TUPLES_OF_STRINGS:
        return Value(Kind.TUPLE, items=(STRING,) * 3)
    if method in _NUMBERS_OF_STRINGS:
        return NUMBER
    return UNKNOWN if method == "encode" else STRING
