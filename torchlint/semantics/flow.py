"""Where a value flows after it is bound: into a backward pass, out of sight, or nowhere that matters."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from torchlint.semantics import vocabulary as words
from torchlint.semantics.entities import Binding, Call, Function
from torchlint.semantics.scopes import Scopes
from torchlint.semantics.values import Kind

_STOPPING_FUNCTIONS = frozenset(
    "builtins." + name for name in ("float", "int", "len", "print", "str", "bool", "isinstance", "round")
)
_PASSING_FUNCTIONS = frozenset(
    "builtins." + name for name in "sum list tuple zip enumerate max min sorted reversed iter next".split()
)
_CONTAINER_METHODS = frozenset({"append", "extend", "add", "insert", "appendleft", "update", "setdefault"})
_KEEPING_METHODS = frozenset({"pop", "get", "values", "items", "copy", "popleft"})
_HARMLESS_METHODS = frozenset(
    """
    clear remove reverse sort index count add_scalar add_scalars info debug set_postfix set_postfix_str
    set_description write format log
    """.split()
)


class Flow:
    """Follows uses of bindings through one file. True: reaches backward; None: escapes; False: neither."""

    def __init__(self, scopes: Scopes, qualified: Callable[[cst.CSTNode | None], str | None]) -> None:
        self._scopes = scopes
        self._qualified = qualified
        self._known: dict[Binding, bool | None] = {}

    def reaches_backward(self, binding: Binding) -> bool | None:
        if binding not in self._known:
            self._seen: set[object] = set()
            self._known[binding] = self._binding(binding)
        return self._known[binding]

    @staticmethod
    def _worst(results: list[bool | None]) -> bool | None:
        if True in results:
            return True
        return None if None in results else False

    def _binding(self, binding: Binding) -> bool | None:
        if binding in self._seen:
            return False
        self._seen.add(binding)
        uses: list[cst.CSTNode] = [*binding.reads]
        uses.extend(write.target for write in binding.writes if write.kind == "augmented")
        return self._worst([self._use(node) for node in uses])

    def _use(self, node: cst.CSTNode) -> bool | None:
        """Where the value of `node` goes from there."""
        parents = self._scopes.parents
        while True:
            if node in self._seen:
                return False
            self._seen.add(node)
            parent = parents.get(node)
            match parent:
                case None:
                    return False
                case cst.Attribute():
                    call = parents.get(parent)
                    if isinstance(call, cst.Call) and call.func is parent:
                        result = self._method(parent.attr.value, call)
                        if result != "follow":
                            return result  # type: ignore[return-value]
                        node = call
                        continue
                    if parent.attr.value in ("data", "shape", "device", "dtype", "ndim", "grad", "requires_grad"):
                        return False
                case cst.Arg():
                    call = parents[parent]
                    if isinstance(call, cst.Call):
                        result = self._argument(parent, call)
                        if result != "follow":
                            return result  # type: ignore[return-value]
                        node = call
                        continue
                case cst.AssignTarget() | cst.Assign() | cst.AnnAssign() | cst.AugAssign() | cst.NamedExpr():
                    return self._stored(node, parent)
                case cst.Return():
                    return self._returned(self._scopes.contexts[parent].function)
                case cst.Yield() | cst.From() | cst.Await():
                    return None
                case cst.Lambda():
                    return None
                case cst.For() | cst.CompFor():
                    if node is parent.iter:
                        return self._targets(parent.target)
                case cst.Comparison() | cst.ComparisonTarget() | cst.FormattedStringExpression() | cst.Assert():
                    return False
                case cst.If() | cst.While() | cst.Expr() | cst.Del() | cst.Index() | cst.Slice() | cst.Raise():
                    return False
                case cst.IfExp() if node is parent.test:
                    return False
                case cst.WithItem():
                    return None if parent.asname is not None else False
            node = parent

    def _method(self, method: str, call: cst.Call) -> bool | str | None:
        if method in ("backward", "manual_backward"):
            return True
        if words.ends_graph(method) or method in _HARMLESS_METHODS:
            return False
        if method in _CONTAINER_METHODS:
            return False  # the container is the receiver: what goes in does not leave through this call
        known = self._scopes.call_of[call].receiver_value
        if known.is_tensor or words.is_tensor_method(method) or method in _KEEPING_METHODS:
            return "follow"
        if known.is_container or known.kind in (Kind.STRING, Kind.ARRAY, Kind.NUMBER):
            return False
        return None

    def _argument(self, arg: cst.Arg, node: cst.Call) -> bool | str | None:
        call = self._scopes.call_of[node]
        name = call.callee or self._qualified(node.func) or ""
        method = call.method or ""
        if call.is_backward or name.startswith(("torch.autograd.grad", "torch.autograd.backward")):
            return True
        if name in _STOPPING_FUNCTIONS or name.startswith(("numpy.", "logging.", "json.", "math.", "wandb.")):
            return False
        if method in _CONTAINER_METHODS and call.receiver is not None and call.receiver_value.kind is not Kind.INSTANCE:
            return self._into(call.receiver)
        if method == "scale" or name in _PASSING_FUNCTIONS or name.startswith("torch.") or call.is_forward:
            return "follow"
        if call.target is not None:
            return self._into_function(call, arg, call.target)
        if method in _HARMLESS_METHODS or name.startswith("tqdm"):
            return False
        if call.receiver_value.is_tensor or call.value.kind is Kind.TENSOR:
            return "follow"
        return None

    def _into_function(self, call: Call, arg: cst.Arg, target: Function) -> bool | str | None:
        """Into a parameter of a function of this file: follow the parameter, and what the call returns."""
        name = arg.keyword.value if arg.keyword is not None else None
        if name is None and not arg.star:
            offset = 1 if target.cls is not None and target.params[:1] in (["self"], ["cls"]) else 0
            index = list(call.node.args).index(arg) + offset
            name = target.params[index] if index < len(target.params) else None
        binding = target.scope.bindings.get(name) if name is not None else None
        if binding is None:
            return None
        return self._binding(binding)

    def _into(self, container: cst.BaseExpression) -> bool | None:
        while isinstance(container, cst.Subscript):
            container = container.value
        binding = self._scopes.bindings.get(container)
        return self._binding(binding) if binding is not None else None

    def _stored(self, node: cst.CSTNode, parent: cst.CSTNode) -> bool | None:
        match parent:
            case cst.Assign():
                return self._worst([self._targets(target.target) for target in parent.targets])
            case cst.AnnAssign() | cst.AugAssign() | cst.NamedExpr() if node is not parent.target:
                return self._targets(parent.target)
        return False

    def _targets(self, target: cst.CSTNode) -> bool | None:
        match target:
            case cst.Tuple() | cst.List():
                return self._worst([self._targets(element.value) for element in target.elements])
            case cst.Subscript():
                return self._into(target.value)
            case cst.Name() | cst.Attribute():
                binding = self._scopes.bindings.get(target)
                return self._binding(binding) if binding is not None else None
        return None

    def _returned(self, function: Function) -> bool | None:
        if not function.callers:
            return None
        results = [self._use(call.node) for call in function.callers]
        return self._worst([*results, None] if function.passed_around else results)
