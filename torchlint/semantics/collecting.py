"""One walk that finds functions, classes, loops, calls and bindings, and the surroundings of every node."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.entities import Binding, Call, Class, Function, Loop, Scope, Write
from torchlint.semantics.linking import link_classes, note_uses, resolve_attributes, resolve_reads
from torchlint.semantics.scopes import Context, Scopes
from torchlint.semantics.tree import children, dotted

_STATEMENTS = frozenset(
    {
        cst.SimpleStatementLine,
        cst.FunctionDef,
        cst.ClassDef,
        cst.If,
        cst.For,
        cst.While,
        cst.With,
        cst.Try,
        cst.TryStar,
        cst.Match,
    }
)


_LEAVES = frozenset({cst.Integer, cst.Float, cst.SimpleString, cst.Ellipsis, cst.Pass, cst.Break, cst.Continue})


def collect(module: cst.Module, name: str = "") -> Scopes:
    """`name` is that of the file as others import it."""
    return _Collector(module).run(name)


class _Collector:
    def __init__(self, module: cst.Module) -> None:
        self.found = Scopes(module)
        self.stack: list[tuple[cst.CSTNode, cst.CSTNode, Context]] = []
        self.reads: list[tuple[cst.Name, Context]] = []
        self.self_attributes: list[tuple[cst.Attribute, Context]] = []
        self._attribute_writes: dict[cst.Attribute, Write] = {}
        self.handlers = {
            cst.FunctionDef: self._function,
            cst.Lambda: self._lambda,
            cst.ClassDef: self._class,
            cst.For: self._for,
            cst.While: self._while,
            cst.ListComp: self._comprehension,
            cst.SetComp: self._comprehension,
            cst.GeneratorExp: self._comprehension,
            cst.DictComp: self._comprehension,
            cst.Assign: self._assign,
            cst.AnnAssign: self._annotated,
            cst.AugAssign: self._augmented,
            cst.NamedExpr: self._walrus,
            cst.WithItem: self._with_item,
            cst.Import: self._import,
            cst.ImportFrom: self._import_from,
            cst.ExceptHandler: self._handler,
            cst.ExceptStarHandler: self._handler,
            cst.Del: self._delete,
            cst.Global: self._outer_names,
            cst.Nonlocal: self._outer_names,
            cst.MatchAs: self._match_capture,
            cst.MatchStar: self._match_capture,
            cst.Name: self._name,
            cst.Attribute: self._attribute,
            cst.Arg: self._argument,
            cst.Call: self._call,
            cst.Return: self._return,
            cst.Yield: self._yield,
        }

    def run(self, name: str) -> Scopes:
        self._module = name
        root = Function(self.found.module, "", "", name)
        root.scope = Scope("module", None, root)
        self.found.functions.append(root)
        self.found.function_of[self.found.module] = root
        context = Context(root, root.scope, None, None)
        self.found.contexts[self.found.module] = context
        self._push_all(self.found.module, children(self.found.module), context)
        stack, handlers, parents, contexts = self.stack, self.handlers, self.found.parents, self.found.contexts
        while stack:
            node, parent, context = stack.pop()
            kind = type(node)
            if kind in _STATEMENTS:
                context = Context(context.function, context.scope, context.loop, node)
            parents[node] = parent
            contexts[node] = context
            handler = handlers.get(kind)
            if handler is None:
                if kind not in _LEAVES:
                    self._push_all(node, children(node), context)
            else:
                handler(node, context)  # type: ignore[operator]
        link_classes(self.found)
        resolve_reads(self.found, self.reads)
        resolve_attributes(self.found, self.self_attributes, self._attribute_writes)
        note_uses(self.found)
        return self.found

    # -- pushing

    def _push(self, node: cst.CSTNode | None, parent: cst.CSTNode, context: Context) -> None:
        if node is not None:
            self.stack.append((node, parent, context))

    def _push_all(self, parent: cst.CSTNode, nodes: list[cst.CSTNode], context: Context) -> None:
        self.stack += [(node, parent, context) for node in reversed(nodes)]

    # -- writing names

    def _bind(
        self,
        name: str,
        target: cst.CSTNode,
        kind: str,
        context: Context,
        value: cst.BaseExpression | None = None,
        *,
        unpacked: bool = False,
        imported: str | None = None,
    ) -> None:
        scope = context.scope
        if kind == "walrus":
            while scope.kind == "comprehension" and scope.parent is not None:
                scope = scope.parent
        scope = self.found.declaring(scope, name)
        binding = scope.bindings.get(name)
        if binding is None:
            binding = scope.bindings[name] = Binding(name, scope.function)
        statement = context.statement if context.statement is not None else target
        binding.writes.append(Write(target, kind, value, statement, context.function, context.loop, unpacked, imported))
        if context.function is not binding.scope_function:
            binding.shared = True
        self.found.bindings[target] = binding

    def _store(
        self,
        target: cst.CSTNode,
        parent: cst.CSTNode,
        kind: str,
        context: Context,
        value: cst.BaseExpression | None,
        unpacked: bool = False,
    ) -> None:
        """Walk an assignment target; elements of a visible tuple on the right are matched one by one."""
        found = self.found
        work: list[tuple[cst.CSTNode, cst.CSTNode, cst.BaseExpression | None, bool]] = [
            (target, parent, value, unpacked)
        ]
        while work:
            node, above, source, parted = work.pop()
            found.parents[node] = above
            found.contexts[node] = context
            if isinstance(node, cst.Name):
                self._bind(node.value, node, kind, context, source, unpacked=parted)
            elif isinstance(node, (cst.Tuple, cst.List)):
                sources = self._matched(node, source)
                for index, element in enumerate(node.elements):
                    found.parents[element] = node
                    found.contexts[element] = context
                    matched = sources[index] if sources else source
                    work.append((element.value, element, matched, parted or not sources))
            elif isinstance(node, cst.StarredElement):
                work.append((node.value, node, source, True))
            elif isinstance(node, cst.Attribute):
                self.self_attributes.append((node, context))
                self._attribute_writes[node] = Write(
                    node, kind, source, context.statement or node, context.function, context.loop, parted
                )
                self._push(node.value, node, context)
            else:
                self._push_all(node, children(node), context)

    @staticmethod
    def _matched(target: cst.Tuple | cst.List, value: cst.BaseExpression | None) -> list[cst.BaseExpression] | None:
        if not isinstance(value, (cst.Tuple, cst.List)) or len(value.elements) != len(target.elements):
            return None
        pairs = [*value.elements, *target.elements]
        if any(isinstance(element, cst.StarredElement) for element in pairs):
            return None
        return [element.value for element in value.elements]

    # -- definitions

    def _function(self, node: cst.FunctionDef, context: Context) -> None:
        self._bind(node.name.value, node, "def", context)
        outside = context
        cls = context.scope.cls if context.scope.kind == "class" else None
        prefix = f"{cls.qualname}." if cls else (f"{context.function.qualname}." if context.function.qualname else "")
        name = node.name.value
        function = Function(node, name, prefix + name, self._module, cls=cls, parent=context.function)
        if cls is not None:
            cls.methods.setdefault(function.name, function)
        inside = self._enter(function, context)
        for decorator in node.decorators:
            self._push(decorator, node, outside)
        self._parameters(node.params, node, function, outside, inside)
        self._push(node.returns, node, outside)
        self._push(node.body, node, inside)

    def _lambda(self, node: cst.Lambda, context: Context) -> None:
        prefix = f"{context.function.qualname}." if context.function.qualname else ""
        function = Function(node, "<lambda>", prefix + "<lambda>", self._module, parent=context.function)
        inside = self._enter(function, context)
        self._parameters(node.params, node, function, context, inside)
        self._push(node.body, node, inside)

    def _enter(self, function: Function, context: Context) -> Context:
        function.scope = Scope("function", context.scope, function)
        self.found.functions.append(function)
        self.found.function_of[function.node] = function
        return Context(function, function.scope, None, context.statement)

    def _parameters(
        self, params: cst.Parameters, owner: cst.CSTNode, function: Function, outside: Context, inside: Context
    ) -> None:
        found = self.found
        found.parents[params] = owner
        found.contexts[params] = inside
        listed = [*params.posonly_params, *params.params]
        starred = [p for p in (params.star_arg, params.star_kwarg) if isinstance(p, cst.Param)]
        for param in [*listed, *params.kwonly_params, *starred]:
            found.parents[param] = params
            found.contexts[param] = inside
            function.params.append(param.name.value)
            self._bind(param.name.value, param.name, "parameter", inside)
            found.parents[param.name] = param
            found.contexts[param.name] = inside
            self._push(param.annotation, param, outside)
            self._push(param.default, param, outside)

    def _class(self, node: cst.ClassDef, context: Context) -> None:
        self._bind(node.name.value, node, "class", context)
        outer = context.scope.cls.qualname + "." if context.scope.kind == "class" and context.scope.cls else ""
        prefix = outer or (f"{context.function.qualname}." if context.function.qualname else "")
        cls = Class(node, node.name.value, prefix + node.name.value, context.function, self._module)
        self.found.classes.append(cls)
        self.found.class_of[node] = cls
        for part in [*node.decorators, *node.bases, *node.keywords]:
            self._push(part, node, context)
        cls.scope = Scope("class", context.scope, context.function, cls)
        inside = Context(context.function, cls.scope, context.loop, node)
        self._push(node.body, node, inside)

    # -- loops

    def _loop(
        self,
        node: cst.For | cst.While | cst.CompFor,
        context: Context,
        target: cst.BaseExpression | None = None,
        iterable: cst.BaseExpression | None = None,
    ) -> Loop:
        loop = Loop(node, context.function, context.loop, target, iterable)
        self.found.loops.append(loop)
        self.found.loop_of[node] = loop
        context.function.loops.append(loop)
        return loop

    def _for(self, node: cst.For, context: Context) -> None:
        loop = self._loop(node, context, node.target, node.iter)
        inside = context._replace(loop=loop)
        self._push(node.orelse, node, context)
        self._push(node.body, node, inside)
        self._push(node.iter, node, context)
        self._store(node.target, node, "for", inside, node.iter, unpacked=True)

    def _while(self, node: cst.While, context: Context) -> None:
        inside = context._replace(loop=self._loop(node, context))
        self._push(node.orelse, node, context)
        self._push(node.body, node, inside)
        self._push(node.test, node, inside)

    def _comprehension(
        self, node: cst.ListComp | cst.SetComp | cst.GeneratorExp | cst.DictComp, context: Context
    ) -> None:
        scope = Scope("comprehension", context.scope, context.function, context.scope.cls)
        inside = context._replace(scope=scope)
        clause: cst.CompFor | None = node.for_in
        above: cst.CSTNode = node
        outside = context
        while clause is not None:
            loop = self._loop(clause, inside, clause.target, clause.iter)
            self.found.parents[clause] = above
            self.found.contexts[clause] = inside
            self._push(clause.iter, clause, outside)
            inside = inside._replace(loop=loop)
            self._store(clause.target, clause, "for", inside, clause.iter, unpacked=True)
            for test in clause.ifs:
                self._push(test, clause, inside)
            outside, above, clause = inside, clause, clause.inner_for_in
        if isinstance(node, cst.DictComp):
            self._push(node.value, node, inside)
            self._push(node.key, node, inside)
        else:
            self._push(node.elt, node, inside)

    # -- statements that bind

    def _assign(self, node: cst.Assign, context: Context) -> None:
        self._push(node.value, node, context)
        for target in node.targets:
            self.found.parents[target] = node
            self.found.contexts[target] = context
            self._store(target.target, target, "assign", context, node.value)

    def _annotated(self, node: cst.AnnAssign, context: Context) -> None:
        self._push(node.value, node, context)
        self._push(node.annotation, node, context)
        self._store(node.target, node, "assign", context, node.value)

    def _augmented(self, node: cst.AugAssign, context: Context) -> None:
        self._push(node.value, node, context)
        self.found.parents[node.operator] = node
        self._store(node.target, node, "augmented", context, node.value)

    def _walrus(self, node: cst.NamedExpr, context: Context) -> None:
        self._push(node.value, node, context)
        self._store(node.target, node, "walrus", context, node.value)

    def _with_item(self, node: cst.WithItem, context: Context) -> None:
        self._push(node.item, node, context)
        if node.asname is not None:
            self.found.parents[node.asname] = node
            self._store(node.asname.name, node.asname, "with", context, node.item)

    def _import(self, node: cst.Import, context: Context) -> None:
        for alias in node.names:
            self.found.parents[alias] = node
            self.found.contexts[alias] = context
            full = dotted(alias.name) or ""
            if alias.asname is not None and isinstance(alias.asname.name, cst.Name):
                self._bind(alias.asname.name.value, alias, "import", context, imported=full)
            else:
                top = full.partition(".")[0]
                self._bind(top, alias, "import", context, imported=top)

    def _import_from(self, node: cst.ImportFrom, context: Context) -> None:
        module = "." * len(node.relative) + (dotted(node.module) or "")
        if isinstance(node.names, cst.ImportStar):
            self.found.star_imports.append(module)
            return
        separator = "" if module.endswith(".") else "."
        for alias in node.names:
            self.found.parents[alias] = node
            self.found.contexts[alias] = context
            name = dotted(alias.name) or ""
            asname = alias.asname.name if alias.asname is not None else alias.name
            if isinstance(asname, cst.Name):
                self._bind(asname.value, alias, "import", context, imported=f"{module}{separator}{name}")

    def _handler(self, node: cst.ExceptHandler | cst.ExceptStarHandler, context: Context) -> None:
        self._push(node.body, node, context)
        self._push(node.type, node, context)
        if node.name is not None:
            self.found.parents[node.name] = node
            self._store(node.name.name, node.name, "except", context, None)

    def _delete(self, node: cst.Del, context: Context) -> None:
        self._store(node.target, node, "delete", context, None)

    def _outer_names(self, node: cst.Global | cst.Nonlocal, context: Context) -> None:
        how = "global" if isinstance(node, cst.Global) else "nonlocal"
        for item in node.names:
            context.scope.outer[item.name.value] = how

    def _match_capture(self, node: cst.MatchAs | cst.MatchStar, context: Context) -> None:
        if isinstance(node, cst.MatchAs):
            self._push(node.pattern, node, context)
        if node.name is not None:
            self._store(node.name, node, "match", context, None)

    # -- expressions

    def _name(self, node: cst.Name, context: Context) -> None:
        self.reads.append((node, context))

    def _attribute(self, node: cst.Attribute, context: Context) -> None:
        self._push(node.value, node, context)
        if isinstance(node.value, cst.Name):
            self.self_attributes.append((node, context))

    def _argument(self, node: cst.Arg, context: Context) -> None:
        self._push(node.value, node, context)

    def _call(self, node: cst.Call, context: Context) -> None:
        call = Call(node, context.function, context.loop)
        self.found.calls.append(call)
        self.found.call_of[node] = call
        context.function.calls.append(call)
        if context.loop is not None:
            for loop in context.loop.around():
                loop.calls.append(call)
        self._push_all(node, [node.func, *node.args], context)

    def _return(self, node: cst.Return, context: Context) -> None:
        context.function.returns.append(node)
        self._push(node.value, node, context)

    def _yield(self, node: cst.Yield, context: Context) -> None:
        context.function.yields.append(node)
        self._push(node.value, node, context)
