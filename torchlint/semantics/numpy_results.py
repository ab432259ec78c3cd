"""What calls of numpy, and methods and attributes of its arrays, give."""

from __future__ import annotations

from torchlint.semantics.transfer import BOOLEAN, INTEGER, SHAPE, Arguments
from torchlint.semantics.values import NONE, NUMBER, UNKNOWN, Kind, Place, Value
from torchlint.word_set import word_set

ARRAY = Value(Kind.ARRAY, place=Place.HOST)

_ROWS = word_set("arange linspace logspace geomspace")  # arrays whose elements are numbers
_NOTHING = word_set(
    "random.seed random.shuffle random.set_state save savez savez_compressed savetxt set_printoptions fill_diagonal put"
    " copyto place putmask"
)
_BOOLEANS = word_set("isscalar allclose array_equal array_equiv issubdtype iscomplexobj isrealobj shares_memory")
_OBJECTS = word_set(
    "random.default_rng random.RandomState random.Generator random.get_state random.SeedSequence dtype errstate"
    " nditer ndindex ndenumerate vectorize poly1d iinfo finfo seterr geterr printoptions get_printoptions"
)
_ASKING = word_set("squeeze swapaxes")  # they call the method of that name, so that a tensor stays one, with its graph
_LISTS = word_set("split array_split hsplit vsplit dsplit meshgrid")
_TUPLES = word_set(
    "nonzero histogram histogram2d unravel_index linalg.eig linalg.eigh linalg.svd linalg.qr linalg.slogdet"
    " linalg.lstsq modf frexp divmod triu_indices tril_indices diag_indices"
)
_METHODS_OF_NOTHING = word_set("fill sort put resize partition setflags tofile dump itemset setfield")


def function(name: str, given: Arguments) -> Value:
    """Result of `numpy.<name>`, an array where nothing else is known."""
    if name in _ASKING and (tensor := given.get("a", 0)) is not None and tensor.is_tensor:
        return tensor.but(rank=None)
    if name in _ROWS:
        return ARRAY.but(element=NUMBER)
    if name in _NOTHING:
        return NONE
    if name in _BOOLEANS:
        return BOOLEAN
    if name in _OBJECTS or name.startswith("testing."):
        return UNKNOWN
    if name in _LISTS:
        return Value(Kind.LIST, element=ARRAY)
    if name in _TUPLES or _returns_several(name, given):
        return Value(Kind.TUPLE, element=ARRAY)
    return {"shape": SHAPE, "ndim": INTEGER, "size": INTEGER}.get(name, ARRAY)


def _returns_several(name: str, given: Arguments) -> bool:
    """`np.where(mask)`, `np.unique(x, return_counts=True)`."""
    if name == "where":
        return not given.open and len(given.all()) == 1
    return name == "unique" and any(key.startswith("return_") for key in given.keywords)


def method(name: str) -> Value:
    """Result of a method of an array."""
    if name in _METHODS_OF_NOTHING:
        return NONE
    if name == "item":
        return NUMBER
    if name == "tolist":
        return UNKNOWN  # a list, a list of lists, or a number
    return Value(Kind.TUPLE, element=ARRAY) if name == "nonzero" else ARRAY


def attribute(name: str) -> Value:
    """An attribute of an array."""
    known = {"shape": SHAPE, "strides": SHAPE, "ndim": INTEGER, "size": INTEGER, "itemsize": INTEGER, "dtype": UNKNOWN}
    return known.get(name, ARRAY)
