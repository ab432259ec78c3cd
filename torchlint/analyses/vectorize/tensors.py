"""What is known of a tensor outside a loop: its rank, its dimensions, its dtype, and whether its memory is its own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.analyses.conditions import are_alternatives
from torchlint.analyses.vectorize import declared
from torchlint.analyses.vectorize.dtypes import DEFAULT, LEGACY, cast, cast_by_to, dtype_argument
from torchlint.analyses.vectorize.facts import Facts
from torchlint.analyses.vectorize.reaching import Reaching
from torchlint.analyses.vectorize.shapes import INT64, SCALAR, Dimension, DType, Rank
from torchlint.analyses.vectorize.sizes import Sizes, shape_owner
from torchlint.analyses.vectorize.stored import is_kept, is_stored, made_before
from torchlint.analyses.vectorize.uses import Uses
from torchlint.analyses.vectorize.vocabulary import LIKE, SHAPED
from torchlint.semantics import dataflow
from torchlint.semantics.taken_apart import place_of
from torchlint.semantics.values import Kind
from torchlint.semantics.vocabulary import is_tensor_method, returns_tensor
from torchlint.word_set import word_set

if TYPE_CHECKING:
    from torchlint.semantics.entities import Binding, Write
    from torchlint.semantics.model import Model


_NEW = word_set("new_zeros new_ones new_empty new_full")
_SAME_SHAPE = word_set(
    """
    to cuda cpu float double half bfloat16 long int bool clone detach contiguous requires_grad_ abs exp log sqrt
    sigmoid tanh relu fill_ zero_ normal_ uniform_ clamp pin_memory
    """
)
_COPIES = word_set("clone exp log sqrt sigmoid tanh relu abs")
_RESHAPING = word_set("resize_ squeeze_ unsqueeze_ t_ transpose_ set_ swapaxes_ as_strided_ unflatten_")
_MAKE_INDICES = word_set("randperm randint argsort argmax argmin multinomial")
_DEPTH = 8
_OF_CLASS = 5
PASSING = "?"  # begins the name of a rank that one pass over a loop has for something that has no name
# Modules of torch.nn that return more than one tensor, or whatever is in them.
_RETURNS_MORE = word_set(
    """
    torch.nn.LSTM torch.nn.GRU torch.nn.RNN torch.nn.LSTMCell torch.nn.MultiheadAttention torch.nn.Sequential
    torch.nn.DataParallel torch.nn.Module torch.nn.ModuleList torch.nn.AdaptiveLogSoftmaxWithLoss
    torch.nn.parallel.DistributedDataParallel torch.nn.Identity
    """
)


class Tensors:
    """Facts about the tensors that a loop uses. What the loop's own operations prove about ranks is learned here."""

    def __init__(self, model: Model, reaching: Reaching, loop: cst.CSTNode | None = None) -> None:
        self._model = model
        self._reaching = reaching
        self._loop = loop
        self._ranks: dict[str, int] = {}
        self._floors: dict[str, int] = {}
        self._proven: set[str] = set()
        self._arrays: set[str] = set()
        self._uses = Uses(model, reaching)
        self.sizes = Sizes(model, reaching, self)

    def begin(self) -> None:
        """What a pass calls by a name of its own is something else in the next."""
        for known in (self._ranks, self._floors):
            for key in [key for key in known if key.startswith(PASSING)]:
                del known[key]

    def _code(self, node: cst.CSTNode) -> str:
        return dataflow.text(node).strip()

    # ranks

    def settled(self, rank: Rank) -> Rank:
        if rank.base is None:
            return rank
        if rank.base in self._ranks:
            return Rank(rank.offset + self._ranks[rank.base])
        return replace(rank, floor=max(rank.floor, self._floors.get(rank.base, 0)))

    def learn(self, rank: Rank, known: int) -> None:
        """An operation that runs only on tensors of that rank has been seen."""
        if rank.base is not None:
            self._ranks.setdefault(rank.base, known - rank.offset)

    def learn_least(self, rank: Rank, least: int) -> None:
        if rank.base is not None:
            self._floors[rank.base] = max(self._floors.get(rank.base, 0), least - rank.offset)

    def learn_tensor(self, key: str) -> None:
        """An operation that takes no arrays of numpy has been seen."""
        self._proven.add(key)

    def measured(self, node: cst.BaseExpression, place: cst.CSTNode) -> None:
        """A loop runs to a size of something: lists have none, and arrays of numpy none that is called."""
        found = self.sizes.measured(node)
        if found is None or not is_stored(found[0]) or self._model.value(found[0]).kind is Kind.INSTANCE:
            return
        if isinstance(node, cst.Subscript):
            self._arrays.add(self.of(found[0], place).key)
        elif isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
            self.learn_tensor(self.of(found[0], place).key)

    def is_proven(self, key: str) -> bool:
        return key in self._proven

    @property
    def learned(self) -> int:
        ranks = sum(not key.startswith(PASSING) for key in self._ranks)
        floors = sum(least for key, least in self._floors.items() if not key.startswith(PASSING))
        return ranks + len(self._proven) + floors

    # facts

    def of(self, node: cst.BaseExpression, place: cst.CSTNode, depth: int = 0) -> Facts:
        """Facts about an expression as it is evaluated at `place`."""
        facts = self._derived(node, place, depth)
        tensor = facts.tensor or facts.key in self._proven
        array = facts.array or tensor or facts.key in self._arrays
        return replace(facts, rank=self.settled(facts.rank), tensor=tensor, array=array)

    def _derived(self, node: cst.BaseExpression, place: cst.CSTNode, depth: int) -> Facts:
        key = f"{self._code(node)}@{id(place)}"
        if depth > _DEPTH:
            return Facts(key, Rank(0, key))
        if isinstance(node, cst.Name):
            return self._of_name(node, place, depth)
        if isinstance(node, (cst.Attribute, cst.Subscript)) and is_stored(node):
            return self._of_stored(node, key, place, depth)
        if isinstance(node, cst.Call):
            return self._of_call(node, place, depth) or self._plain(node, f"call@{id(node)}", place, depth)
        facts = self._plain(node, key, place, depth)
        if isinstance(node, cst.Subscript) and not (facts.tensor or facts.number):
            whole = self.of(node.value, place, depth + 1)
            return replace(facts, tensor=whole.tensor, array=whole.array, dtype=whole.dtype) if whole.tensor else facts
        return facts

    def _plain(self, node: cst.BaseExpression, key: str, place: cst.CSTNode, depth: int) -> Facts:
        """What the model alone knows, where it is certain."""
        value = self._model.value(node)
        number = isinstance(node, cst.BaseNumber) or (value.kind is Kind.NUMBER and not value.optional)
        called = node.func if isinstance(node, cst.Call) else node
        if number or (self._model.qualified(called) or "").startswith("math."):
            return Facts(key, SCALAR, number=True, dtype=DType(None, value.dtype))
        tensor = value.kind is Kind.TENSOR and not value.optional and self._is_certain(node, place, depth)
        rank = Rank(value.rank) if tensor and value.rank is not None else Rank(0, key)
        category = value.dtype if tensor else None
        are_places = category == "int" and self._takes_places(node, place, depth)
        dtype = INT64 if are_places else DType(f"dtype({key})", category)
        fresh = tensor and isinstance(node, (cst.BinaryOperation, cst.Comparison))
        return Facts(key, rank, tensor=tensor, dtype=dtype, fresh=fresh)

    def _is_certain(self, node: cst.BaseExpression, place: cst.CSTNode, depth: int) -> bool:
        """Whether what the model takes for a tensor can be nothing else, as the result of a module can."""
        match node:
            case cst.Name():
                return self._is_annotated(node, place) or self._is_made_of_torch(node)
            case cst.Call(func=function):
                name = self._model.qualified(function)
                if name is not None and name.startswith("torch."):
                    return returns_tensor(name)
                module = self._model.value(function)
                if module.kind is Kind.MODULE:
                    return (module.ref or "").startswith("torch.nn.") and module.ref not in _RETURNS_MORE
                # What has methods of tensors is no list of them; `net.forward(x)` and methods of other classes may be.
                return isinstance(function, cst.Attribute) and is_tensor_method(function.attr.value)
            case cst.BinaryOperation(left=left, right=right):
                return self._is_tensor(left, place, depth) or self._is_tensor(right, place, depth)
            case cst.UnaryOperation(expression=inner) | cst.Comparison(left=inner):
                return self._is_tensor(inner, place, depth)
            case cst.Subscript(value=inner):
                return self._is_tensor(inner, place, depth) or self._returns_tensors(inner, place, depth)
            case cst.Attribute(value=inner):
                known = self._is_tensor(inner, place, depth) or self._is_made_of_torch(node)
                return known or self._returns_tensors(inner, place, depth)
        return False

    def _returns_tensors(self, node: cst.BaseExpression, place: cst.CSTNode, depth: int) -> bool:
        """Whether a function or method of torch returns several tensors: `torch.topk(x, 3)`, `x.max(0)`."""
        items = self._model.value(node).items
        if not isinstance(node, cst.Call) or not items or any(item.kind is not Kind.TENSOR for item in items):
            return False
        name = self._model.qualified(node.func)
        if name is not None and name.startswith("torch."):
            return returns_tensor(name)
        if not isinstance(node.func, cst.Attribute) or not is_tensor_method(node.func.attr.value):
            return False
        return self._is_tensor(node.func.value, place, depth)

    def _takes_places(self, node: cst.BaseExpression, place: cst.CSTNode, depth: int) -> bool:
        """`torch.topk(x, 3)[1]`, `x.sort().indices`: where the values were found."""
        match node:
            case cst.Subscript(
                value=inner, slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Integer(value="1")))]
            ):
                return self._returns_tensors(inner, place, depth)
            case cst.Attribute(value=inner, attr=cst.Name(value="indices")):
                return self._returns_tensors(inner, place, depth)
        return False

    def _is_tensor(self, node: cst.BaseExpression, place: cst.CSTNode, depth: int) -> bool:
        return self.of(node, place, depth + 1).tensor

    def _is_made_of_torch(self, node: cst.BaseExpression) -> bool:
        """Whether an attribute holds parameters or results of torch's functions alone."""
        origins = self._model.value(node).origins
        calls = [origin for origin in origins if isinstance(origin, cst.Call)]
        names = [self._model.qualified(call.func) or "" for call in calls]
        return bool(origins) and len(calls) == len(origins) and all(name.startswith("torch.") for name in names)

    def _is_annotated(self, node: cst.Name, place: cst.CSTNode) -> bool:
        binding = self._model.binding(node)
        write = self._reaching.reaching(binding, place) if binding is not None else None
        return write is not None and declared.is_annotated(self._model, write)

    def _of_name(self, node: cst.Name, place: cst.CSTNode, depth: int) -> Facts:
        binding = self._model.binding(node)
        write = self._reaching.reaching(binding, place) if binding is not None else None
        if binding is None or write is None:
            key = f"{node.value}@{id(place)}"
            facts = self._of_one_of(binding, key, place, depth) or self._plain(node, key, place, depth)
            is_tensor = facts.tensor or (binding is not None and self._is_asserted(binding, place))
            return replace(facts, tensor=is_tensor, array=facts.array or is_tensor)
        key = f"{node.value}@{id(write.target)}"
        if write.kind == "augmented" and depth < _DEPTH:
            before = self._of_name(node, write.statement, depth + 1)
            if before.tensor and not before.number:
                return before  # what is added in place changes neither dtype nor shape
        if binding.methods & _RESHAPING:
            key = f"{key}@{id(place)}"
        if write.kind != "assign" or write.unpacked or write.value is None or binding.methods & _RESHAPING:
            facts = self._unpacked(write, key, depth) or self._plain(node, key, place, depth)
            return self._with_evidence(facts, node, binding, write, place)
        facts = self._derived(write.value, write.statement, depth + 1)
        if isinstance(write.value, cst.Name):
            facts = replace(facts, fresh=False)
        return self._with_evidence(facts, node, binding, write, place)

    def _is_asserted(self, binding: Binding, place: cst.CSTNode) -> bool:
        return self._loop is not None and declared.is_asserted(self._model, self._reaching, binding, place)

    def _of_one_of(self, binding: Binding | None, key: str, place: cst.CSTNode, depth: int) -> Facts | None:
        """What all the assignments say of a name that may hold the value of any of them."""
        if binding is None or binding.shared or binding.methods & _RESHAPING or depth >= _OF_CLASS:
            return None
        order = self._reaching.order
        sure = [order(write.target) for write in binding.writes if self._reaching.runs_before(write, place)]
        later = (write for write in binding.writes if not sure or order(write.target) >= max(sure))
        writes = [write for write in later if write.kind != "augmented"]
        if any(write.kind != "assign" or write.unpacked or write.value is None for write in writes):
            return None
        return self._joined([(write.value, write.statement) for write in writes if write.value is not None], key)

    def _joined(self, made: list[tuple[cst.BaseExpression, cst.CSTNode]], key: str) -> Facts | None:
        """What is known of a tensor that was made in one of several ways."""
        known = [self.of(value, statement, _OF_CLASS) for value, statement in made]
        if not known or not all(facts.tensor for facts in known):
            return None
        first = known[0]
        is_known = all(facts.rank == first.rank for facts in known) and first.rank.base is None
        alike = first.dtype.token is not None and all(facts.dtype == first.dtype for facts in known)
        categories = {facts.dtype.category for facts in known}
        return Facts(
            key,
            first.rank if is_known else Rank(0, key),
            tensor=True,
            dims=first.dims if all(facts.dims == first.dims for facts in known) else None,
            dtype=first.dtype if alike else DType(f"dtype({key})", categories.pop() if len(categories) == 1 else None),
            fresh=all(facts.fresh for facts in known),
        )

    def _with_evidence(self, facts: Facts, node: cst.Name, binding: Binding, write: Write, place: cst.CSTNode) -> Facts:
        """What the uses of the name that surely ran say about it."""
        if facts.number:
            return facts
        tensor = facts.tensor or (len(binding.writes) == 1 and self._has_methods_of_tensors(binding, place))
        of_autograd = self._loop is not None and declared.is_of_autograd(self._model, write)
        tensor = tensor or of_autograd or self._is_asserted(binding, place)
        array = tensor
        told: set[object] = set()
        for proof in self._uses.proofs(binding, place):
            if proof[1:] in told or not self._uses.surely_read(proof.read, write, place):
                continue
            told.add(proof[1:])
            tensor = tensor or proof.of_tensor
            array = array or proof.of_array
            if proof.rank is not None:
                self.learn(facts.rank, proof.rank)
            elif proof.least:
                self.learn_least(facts.rank, proof.least)
        tensor = tensor or (array and self._model.value(node).kind is Kind.TENSOR)
        return replace(facts, tensor=tensor, array=array or tensor)

    def _has_methods_of_tensors(self, binding: Binding, place: cst.CSTNode) -> bool:
        """What another branch calls says nothing of this one: `if isinstance(x, list): ... else: x.cpu()`"""
        return any(
            (self._loop is not None or not use.of_part)
            and not are_alternatives(self._model, use.where, place)
            and not declared.hangs_on_kind(self._model, use.read, place)
            for use in declared.uses_as_tensor(self._model, binding)
        )

    def _of_stored(self, node: cst.Attribute | cst.Subscript, key: str, place: cst.CSTNode, depth: int) -> Facts:
        """Of an attribute or an entry: what a statement before puts there, or every method of the class."""
        made, binding = made_before(self._model, node, place), self._model.binding(node)
        if made is not None:
            return replace(self.of(made.value, made.statement, depth + 1), array=False)
        if isinstance(node, cst.Attribute) and node.attr.value == "data":
            return replace(self.of(node.value, place, depth + 1), fresh=False)
        if binding is not None and is_kept(binding):
            key = f"{self._code(node)}@{id(binding)}"
        plain, value = self._plain(node, key, place, depth), self._model.value(node)
        writes = binding.writes if binding is not None and depth < _OF_CLASS and self._loop is not None else []
        if plain.tensor or plain.number or value.kind is not Kind.TENSOR or value.optional or not writes:
            return plain
        values = [
            (write.value, write.statement)
            for write in writes
            if write.kind in ("assign", "buffer") and not write.unpacked and write.value is not None
        ]
        joined = self._joined(values, key) if len(values) == len(writes) else None
        return replace(joined, fresh=False) if joined is not None else plain

    # calls

    def _of_call(self, node: cst.Call, place: cst.CSTNode, depth: int) -> Facts | None:
        name = self._model.qualified(node.func)
        key = f"call@{id(node)}"
        if name in LEGACY:
            sizes = [argument for argument in node.args if not argument.keyword]
            if len(sizes) > 1 or (sizes and self._is_size(sizes[0].value, place)):
                return self._factory(node, key, sizes, place, depth, LEGACY[name])
            return replace(self._plain(node, key, place, depth), dtype=LEGACY[name], fresh=False)
        if name in SHAPED or name == "torch.full":
            return self._factory(node, key, node.args[:1] if name == "torch.full" else node.args, place, depth)
        if name in LIKE and node.args:
            like = self.of(node.args[0].value, place, depth + 1)
            return replace(like, tensor=True, dtype=dtype_argument(self._model, node, like.dtype), fresh=True)
        if name in ("torch.nn.Parameter", "torch.autograd.Variable") and node.args and not node.args[0].keyword:
            return replace(self.of(node.args[0].value, place, depth + 1), tensor=True, fresh=False)
        returned = self._returned(node, key, depth)
        if returned is not None:
            return returned
        if name is not None and name.removeprefix("torch.") in _MAKE_INDICES:
            return replace(self._plain(node, key, place, depth), dtype=dtype_argument(self._model, node, INT64))
        if isinstance(node.func, cst.Attribute) and (name is None or not name.startswith("torch.")):
            return self._of_method(node, node.func, key, place, depth)
        return None

    def _unpacked(self, write: Write, key: str, depth: int) -> Facts | None:
        """Of a name that takes one of the results of a function of this file, or of torch."""
        place = place_of(self._model, write)
        if write.kind != "assign" or not isinstance(write.value, cst.Call) or place is None:
            return None
        if self._cuts(write.value, self._model.value(write.target).kind is Kind.TENSOR):
            return Facts(key, Rank(0, key), tensor=True, dtype=DType(f"dtype({key})"))
        if self._returns_tensors(write.value, write.statement, depth):
            category = self._model.value(write.target).dtype
            dtype = INT64 if place > 0 and category == "int" else DType(f"dtype({key})", category)
            return Facts(key, Rank(0, key), tensor=True, dtype=dtype)
        return self._returned(write.value, key, depth, place)

    def _cuts(self, call: cst.Call, is_likely: bool) -> bool:
        """`x.chunk(2, dim=1)`, `x.split((1, 2), dim=2)`, which texts and arrays of numpy have no such methods for."""
        if not isinstance(call.func, cst.Attribute) or (self._model.qualified(call.func) or "").startswith("numpy."):
            return False
        named = {argument.keyword.value for argument in call.args if argument.keyword is not None}
        name = call.func.attr.value
        return (name in ("chunk", "unbind") and is_likely) or (
            name in ("chunk", "unbind", "split") and bool(named & {"dim", "split_size"})
        )

    def _returned(self, call: cst.Call, key: str, depth: int, place: int | None = None) -> Facts | None:
        """What the only return of a function of this file says of its result, or of one of its results."""
        function = self._model.call(call).target
        if function is None or function.is_generator or len(function.returns) != 1 or depth > _DEPTH:
            return None
        result = function.returns[0].value
        if place is not None:
            if not isinstance(result, cst.Tuple) or place >= len(result.elements):
                return None
            if any(isinstance(element, cst.StarredElement) for element in result.elements):
                return None
            result = result.elements[place].value
        if result is None:
            return None
        facts = self.of(result, function.returns[0], depth + 1)
        rank = facts.rank if facts.rank.base is None else Rank(0, key)
        dtype = facts.dtype if facts.dtype.category is not None else DType(f"dtype({key})")
        return Facts(key, rank, tensor=facts.tensor, dtype=dtype) if facts.tensor else None

    def _factory(
        self, node: cst.Call, key: str, sizes: object, place: cst.CSTNode, depth: int, default: DType = DEFAULT
    ) -> Facts | None:
        arguments = [argument for argument in sizes if isinstance(argument, cst.Arg)]  # type: ignore[attr-defined]
        if any(argument.star for argument in arguments):
            return None
        positional = [argument.value for argument in arguments if argument.keyword is None]
        if any(argument.keyword is not None and argument.keyword.value == "size" for argument in node.args):
            return None
        dtype = dtype_argument(self._model, node, default)
        if len(positional) == 1:
            only = positional[0]
            front = self._first_sizes(only, place, depth)
            if front:
                return Facts(key, Rank(len(front), key), True, dtype=dtype, fresh=True, front=front)
            if isinstance(only, (cst.Tuple, cst.List)):
                positional = [element.value for element in only.elements]
                if any(isinstance(element, cst.StarredElement) for element in only.elements):
                    return None
            elif (source := shape_owner(only)) is not None:
                like = self.of(source, place, depth + 1)
                return Facts(like.key, like.rank, True, dims=like.dims, dtype=dtype, fresh=True)
            elif not self._is_size(only, place):
                return Facts(key, Rank(0, key), True, dtype=dtype, fresh=True)
        sizes_found = [self.sizes.of(expression, place, depth + 1) for expression in positional]
        dims = tuple(
            size.dimension if size is not None else (f"{key}#{index}", 0) for index, size in enumerate(sizes_found)
        )
        return Facts(key, Rank(len(dims)), True, dims=dims, dtype=dtype, fresh=True)

    def _first_sizes(self, node: cst.BaseExpression, place: cst.CSTNode, depth: int) -> tuple[Dimension, ...]:
        """Those of `(n, *x.shape)`, of `(n,) + x.shape` and of `torch.Size([n]) + x.size()`, which are in sight."""
        match node:
            case cst.BinaryOperation(left=first, operator=cst.Add()):
                if isinstance(first, cst.Call) and self._model.qualified(first.func) == "torch.Size" and first.args:
                    first = first.args[0].value
                elements = list(first.elements) if isinstance(first, (cst.Tuple, cst.List)) else []
            case (
                cst.Tuple(elements=[*elements, cst.StarredElement()])
                | cst.List(elements=[*elements, cst.StarredElement()])
            ):
                pass
            case _:
                return ()
        if any(isinstance(element, cst.StarredElement) for element in elements):
            return ()
        found = [self.sizes.of(element.value, place, depth + 1) for element in elements]
        return tuple(size.dimension for size in found if size is not None) if None not in found else ()

    def _is_size(self, node: cst.BaseExpression, place: cst.CSTNode) -> bool:
        """Whether the only size given to a factory is an integer, where it could be several in one tuple."""
        if isinstance(node, cst.Integer) or self._model.value(node).kind is Kind.NUMBER:
            return True
        binding = self._model.binding(node) if isinstance(node, cst.Name) else None
        write = self._reaching.reaching(binding, place) if binding is not None else None
        if binding is None or write is None:
            return False
        last = self._loop if self._loop is not None else place
        return any(
            self._uses.proves_integer(read)
            and self._uses.surely_read(read, write, last)
            and self._reaching.reaching(binding, read) is write
            for read in binding.reads
        )

    def _of_method(
        self, node: cst.Call, function: cst.Attribute, key: str, place: cst.CSTNode, depth: int
    ) -> Facts | None:
        method = function.attr.value
        if method in _NEW:
            receiver = self.of(function.value, place, depth + 1)
            sizes = node.args[:1] if method == "new_full" else node.args
            return self._factory(node, key, sizes, place, depth, receiver.dtype)
        if method not in _SAME_SHAPE:
            return None
        receiver = self.of(function.value, place, depth + 1)
        if not receiver.tensor:
            return None
        dtype = cast(method) or (cast_by_to(self._model, node, receiver.dtype) if method == "to" else receiver.dtype)
        if method in ("exp", "log", "sqrt", "sigmoid", "tanh"):
            dtype = dtype.inexact_result()
        if method == "abs":
            dtype = dtype.real()
        return replace(receiver, dtype=dtype, fresh=receiver.fresh or method in _COPIES)
