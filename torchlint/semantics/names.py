"""From a name or attribute chain to its qualified name: imports, aliases, re-assigned functions, star imports."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics import torch_api
from torchlint.semantics.entities import Binding, Write
from torchlint.semantics.scopes import Scopes
from torchlint.semantics.tree import children

if TYPE_CHECKING:
    from torchlint.semantics.foreign import Imports

# Where torch_geometric exports one object under several paths: the path torchlint uses.
_GRAPH_LOADERS = """
    DataLoader DenseDataLoader DataListLoader ClusterLoader NeighborSampler RandomNodeSampler
    GraphSAINTNodeSampler GraphSAINTEdgeSampler GraphSAINTRandomWalkSampler ShaDowKHopSampler
"""
_ELSEWHERE = {
    **{f"torch_geometric.data.{name}": f"torch_geometric.loader.{name}" for name in _GRAPH_LOADERS.split()},
    "torch_geometric.loader.dataloader.DataLoader": "torch_geometric.loader.DataLoader",
}
_BUILTINS = frozenset(
    """
    range enumerate zip len int float bool str complex sum print list dict tuple set frozenset sorted
    reversed map filter iter next min max abs round isinstance issubclass getattr setattr hasattr delattr
    any all repr format open type super object id hash vars dir callable divmod pow slice input exit
    staticmethod classmethod property
    """.split()
)
_BLOCKS = (cst.Module, cst.IndentedBlock)
_LOOPS = (cst.For, cst.While)
_DEPTH = 12


@lru_cache(maxsize=4096)
def canonical(name: str) -> str:
    """One spelling for objects that torch exports under several."""
    if not name.startswith("torch"):
        return name
    return _ELSEWHERE.get(name) or torch_api.canonical(name)


class Names:
    """Resolves nodes of one file to qualified names."""

    def __init__(self, scopes: Scopes, imports: Imports | None = None) -> None:
        self._scopes = scopes
        self._imports = imports
        self._qualified: dict[cst.CSTNode | None, str | None] = {}
        self._stars: dict[str, str | None] = {}
        self._passed_on: dict[str, str] = {}
        self._ever_imported: dict[Binding, bool] = {}

    def qualified(self, node: cst.CSTNode | None) -> str | None:
        """`torch.nn.DataParallel` for whatever spelling of it; the qualname of a def or class of this file."""
        if node not in self._qualified:
            self._qualified[node] = self._find(node)
        return self._qualified[node]

    def _find(self, node: cst.CSTNode | None) -> str | None:
        parts: list[str] = []
        for _ in range(_DEPTH):
            while isinstance(node, cst.Attribute):
                parts.append(node.attr.value)
                node = node.value
            if not isinstance(node, cst.Name):
                return None
            binding = self._scopes.bindings.get(node)
            if binding is None:
                base = self._unbound(node.value)
                break
            base = self.imported(binding) or self.imported_before(node, binding)
            if base is not None:
                break
            source = self._only_source(binding)
            if source is None:
                return None
            if isinstance(source, str):
                base = source
                break
            node = source
        else:
            return None
        if base is None:
            return None
        return canonical(".".join([base, *reversed(parts)]))

    def imported(self, binding: Binding) -> str | None:
        """What the binding imports, if all its imports agree; an assigned None beside them is a fallback."""
        return self._agreed(binding.writes)

    def _agreed(self, writes: Sequence[Write]) -> str | None:
        imports = {write.imported for write in writes if write.imported is not None}
        name = imports.pop() if len(imports) == 1 else None
        if name is None or not all(
            self._is_import_or_fallback(write) or self._stands_in(write, name) for write in writes
        ):
            return None
        return self._imported_on(name)

    def imported_before(self, read: cst.Name, binding: Binding) -> str | None:
        """What a name imports where it is read, before it becomes something else: `data` of `data.DataLoader`, which a
        loop over the loader takes as the name of a batch."""
        if len(binding.writes) < 2 or not self._is_ever_imported(binding):
            return None
        if self._scopes.contexts[read].function is not binding.scope_function:
            return None
        return self._agreed([write for write in binding.writes if not self._is_later(write, read)])

    def _is_ever_imported(self, binding: Binding) -> bool:
        """Asked for each read of the name: its writes are looked at once."""
        if binding not in self._ever_imported:
            self._ever_imported[binding] = any(write.imported is not None for write in binding.writes)
        return self._ever_imported[binding]

    def _is_later(self, write: Write, read: cst.Name) -> bool:
        """Whether a write comes behind a read in the same block or one around it, and no loop leads back."""
        above, parents = {}, self._scopes.parents
        node: cst.CSTNode = read
        while node in parents:
            above[parents[node]] = node
            node = parents[node]
        part: cst.CSTNode = write.statement
        if part in above:  # a class is bound behind its bases, a variable behind its value
            shared, is_behind = part, write.kind in ("assign", "class", "def")
        else:
            while parents[part] not in above:
                part = parents[part]
            shared = parents[part]
            order = list(children(shared))
            is_behind = isinstance(shared, _BLOCKS) and order.index(part) > order.index(above[shared])
        while is_behind and shared in parents:
            is_behind = not isinstance(shared, _LOOPS)
            shared = parents[shared]
        return is_behind

    def _imported_on(self, name: str) -> str:
        """What a file of the project itself imports from outside, for the files that import it from there."""
        if self._imports is None or name.startswith("torch"):
            return name
        if name not in self._passed_on:
            module, _, last = name.rpartition(".")
            found = self._imports.starred(module, last) if module.strip(".") else None
            self._passed_on[name] = found or name
        return self._passed_on[name]

    @staticmethod
    def _is_import_or_fallback(write: Write) -> bool:
        if write.kind == "import":
            return True
        return isinstance(write.value, cst.Name) and write.value.value in ("None", "False")

    def _stands_in(self, write: Write, name: str) -> bool:
        """What there is where another package than torch, of which releases differ, cannot be imported."""
        node: cst.CSTNode | None = write.statement
        while node is not None and not isinstance(node, cst.ExceptHandler):
            node = self._scopes.parents.get(node)
        caught = node.type if node is not None else None
        is_missing = isinstance(caught, cst.Name) and caught.value in ("ImportError", "ModuleNotFoundError")
        return is_missing and write.kind == "assign" and not name.startswith("torch")

    def _only_source(self, binding: Binding) -> cst.BaseExpression | str | None:
        """The one thing an alias stands for: another name, or a def or class of this file."""
        if len(binding.writes) != 1:
            return None
        write = binding.writes[0]
        if write.kind == "def":
            function = self._scopes.function_of.get(write.target)
            return function.qualname if function is not None else None
        if write.kind == "class":
            cls = self._scopes.class_of.get(write.target)
            return cls.qualname if cls is not None else None
        if write.kind == "assign" and not write.unpacked and isinstance(write.value, (cst.Name, cst.Attribute)):
            return write.value
        return None

    def _unbound(self, name: str) -> str | None:
        for module in self._scopes.star_imports:
            if module.startswith("torch") and name in torch_api.star_exports(module):
                return f"{module}.{name}"
        if name in _BUILTINS:
            return f"builtins.{name}"
        if name not in self._stars:
            self._stars[name] = self._from_star_import(name)
        return self._stars[name]

    def _from_star_import(self, name: str) -> str | None:
        """A name that one star import of a file of the project brings in."""
        if self._imports is None:
            return None
        for module in self._scopes.star_imports:
            imported = self._imports.starred(module, name)
            if imported is not None:
                return imported
            if self._imports.star(module, name):
                return f"{module}.{name}" if module.strip(".") else module + name
        return None
