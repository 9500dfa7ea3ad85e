"""Python applications: the transactions of a module or package, and the functions that they call. Nothing is imported.

A transaction is a function in `__all__` that executes SQL. Without `__all__`, it is a public function at the top
level, or a public method of a class, that executes SQL. Functions whose name begins with an underscore are helpers.
The analysis follows calls of functions of the same module, of modules next to it, and of the package.
"""

from __future__ import annotations

import ast
import dataclasses
import sys
from pathlib import Path

from plait.gyro.source.expressions import Environment, constant, joined
from plait.gyro.source.functions import Walk, connection_like
from plait.gyro.source.sqlalchemy_tables import table
from plait.gyro.source.values import CoreTable, Handle, Mapping, Sequence, Value
from plait.gyro.sql.schema import Dialect, Schema, parse_schema
from plait.gyro.sql.statements import Ids
from plait.gyro.sql.terms import Constant, Parameter
from plait.gyro.transactions import Transaction
from plait.kernel.errors import Argument, UsageError

Definition = ast.FunctionDef | ast.AsyncFunctionDef
_SQLALCHEMY = {"sqlalchemy", "sqlalchemy.sql", "sqlalchemy.sql.expression", "sqlalchemy.schema", "sqlalchemy.types"}
_MUTATORS = {"execute", "executemany", "scalar", "scalars", "exec_driver_sql"}


@dataclasses.dataclass(eq=False)
class Function:
    """A function of the application."""

    name: str
    node: Definition
    module: Module
    method: str = ""
    """The class, if it is a method."""
    globals: set[str] = dataclasses.field(default_factory=set)

    def only_executed(self, name: str) -> bool:
        """Whether a variable is only used as parameters of statements. Then no code changes its value."""
        harmless = {
            id(argument)
            for call in ast.walk(self.node)
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _MUTATORS
            for argument in (*call.args, *(k.value for k in call.keywords))
        }
        return all(
            id(n) in harmless or isinstance(n.ctx, ast.Store)
            for n in ast.walk(self.node)
            if isinstance(n, ast.Name) and n.id == name
        )


@dataclasses.dataclass(eq=False)
class Module:
    """A file of the application."""

    file: Path
    shown: str
    tree: ast.Module
    functions: dict[str, Function] = dataclasses.field(default_factory=dict)
    imported: dict[str, tuple[Module, str]] = dataclasses.field(default_factory=dict)
    """Imported names: the module, and the name of the function in it (empty if the module itself is imported)."""
    constants: dict[str, Value] = dataclasses.field(default_factory=dict)
    core: dict[str, str] = dataclasses.field(default_factory=dict)
    """Names that are imported from SQLAlchemy, and their original names (empty for the module itself)."""

    def sqlalchemy(self, node: ast.expr) -> str | None:
        """The name of an expression in SQLAlchemy, such as `select` or `func.count`; None for other expressions."""
        if isinstance(node, ast.Name):
            return self.core.get(node.id) or None
        if isinstance(node, ast.Attribute):
            if isinstance(node.value, ast.Name) and self.core.get(node.value.id) == "":
                return node.attr
            owner = self.sqlalchemy(node.value)
            return f"func.{node.attr}" if owner == "func" else None
        return None

    @property
    def public(self) -> list[str] | None:
        """The names in `__all__`."""
        for node in self.tree.body:
            if (
                isinstance(node, ast.Assign)
                and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets)
                and isinstance(node.value, ast.List | ast.Tuple)
            ):
                return [e.value for e in node.value.elts if isinstance(e, ast.Constant) and isinstance(e.value, str)]
        return None

    def find(self, name: str) -> Function | None:
        """A function that this module defines, or imports from another module of the application."""
        if name in self.functions:
            return self.functions[name]
        if name in self.imported:
            module, other = self.imported[name]
            return module.find(other) if other else None
        return None


class Program:
    """The modules of an application. A module is read when it is first imported."""

    def __init__(self) -> None:
        self.modules: dict[Path, Module] = {}
        self._unchanged: dict[str, bool] = {}
        self._assigned: set[str] | None = None

    def unchanged(self, name: str) -> bool:
        """Whether no module changes or passes on what has this name: a list or dict with constants, at the top level.

        Every use of the name, as a variable or an attribute, must be an element of it (`NAME[…]`) or a loop over it.
        """
        if name not in self._unchanged:
            self._unchanged[name] = all(_only_read(name, m.tree) for m in self.modules.values())
        return self._unchanged[name]

    def assigned(self, name: str) -> bool:
        """Whether some module assigns an attribute with this name: perhaps a constant of another module."""
        if self._assigned is None:
            nodes = [n for m in self.modules.values() for n in ast.walk(m.tree) if isinstance(n, ast.Attribute)]
            self._assigned = {n.attr for n in nodes if not isinstance(n.ctx, ast.Load)}
        return name in self._assigned

    def load(self, file: Path) -> Module:
        """Read a file, and the files next to it that it imports."""
        path = file.resolve()
        if path in self.modules:
            return self.modules[path]
        try:
            tree = ast.parse(file.read_text(encoding="utf-8"), filename=str(file))
        except SyntaxError as error:
            raise UsageError(f"{file}:{error.lineno}: {error.msg}", hint="correct the Python code") from None
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{file} cannot be read: {error}", hint="give a Python file or a package") from None
        module = self.modules[path] = Module(file, str(file), tree)
        for node in tree.body:
            if isinstance(node, Definition):
                module.functions[node.name] = Function(node.name, node, module)
            elif isinstance(node, ast.ClassDef):
                for inner in node.body:
                    if isinstance(inner, Definition):
                        name = f"{node.name}.{inner.name}"
                        module.functions[name] = Function(name, inner, module, node.name)
            elif isinstance(node, ast.ImportFrom):
                self._import(module, node)
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    if (other := self._beside(module, alias.name, 0)) is not None:
                        module.imported[alias.asname or alias.name] = (self.load(other), "")
        module.core = _core(tree)
        module.constants = _constants(module)
        for name, (other_module, remote) in list(module.imported.items()):
            if remote in other_module.constants and name not in module.constants:
                module.constants[name] = other_module.constants[remote]
        return module

    def _import(self, module: Module, node: ast.ImportFrom) -> None:
        other = self._beside(module, node.module or "", node.level)
        for alias in node.names:
            if other is not None and alias.name == "*":
                found = self.load(other)
                names = found.public or [n for n in found.functions if not n.startswith("_")]
                module.imported |= {n: (found, n) for n in names}
                module.imported |= {n: (found, n) for n in found.constants if not n.startswith("_")}
            elif other is not None and other.name != "__init__.py":
                module.imported[alias.asname or alias.name] = (self.load(other), alias.name)
            else:
                inner = self._beside(module, f"{node.module}.{alias.name}" if node.module else alias.name, node.level)
                if inner is not None:
                    module.imported[alias.asname or alias.name] = (self.load(inner), "")
                elif other is not None:
                    module.imported[alias.asname or alias.name] = (self.load(other), alias.name)

    def _beside(self, module: Module, name: str, level: int) -> Path | None:
        """The file of a module next to this one or in the same package."""
        folder = module.file.resolve().parent
        for _ in range(max(0, level - 1)):
            folder = folder.parent
        parts = [p for p in name.split(".") if p]
        bases = [folder] if level or not (folder / "__init__.py").exists() else [folder.parent, folder]
        for base in bases:
            path = base.joinpath(*parts)
            for file in (path.with_name(f"{path.name}.py"), path / "__init__.py"):
                if parts and file.is_file():
                    return file
            if not parts and (base / "__init__.py").is_file():
                return base / "__init__.py"
        return None

    def resolve(self, function: ast.expr, caller: Function, environment: Environment) -> Function | None:
        """The function of the application that a call refers to."""
        if isinstance(function, ast.Name) and function.id not in environment:
            return caller.module.find(function.id)
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
            owner = function.value.id
            if caller.method and owner == caller.node.args.args[0].arg:
                return caller.module.functions.get(f"{caller.method}.{function.attr}")
            if owner not in environment and owner in caller.module.imported:
                module, name = caller.module.imported[owner]
                return module.find(function.attr) if not name else None
        return None


def read_python(
    path: Path, schema: Schema | None, *, dialect: Dialect = "sqlite", ids: Ids = "server"
) -> tuple[Schema, list[Transaction]]:
    """Read the transactions of a module or package."""
    program = Program()
    if path.is_dir():
        files = sorted(f for f in path.rglob("*.py") if "__pycache__" not in f.parts)
        if not files:
            raise UsageError(f"{path} has no Python files", hint="give a Python file or a package")
        entry = path / "__init__.py"
        modules = [program.load(f) for f in files]
        if entry.is_file() and program.load(entry).public is not None:
            modules = [program.load(entry)]
    else:
        modules = [program.load(path)]
    if schema is None:
        schema = _schema(path, modules, dialect)
    found: list[Transaction] = []
    for module in modules:
        names = module.public
        for name in names if names is not None else module.functions:
            function = module.find(name)
            if function is None or (names is None and name.rpartition(".")[2].startswith("_")):
                continue
            transaction = _transaction(program, function, schema, ids)
            if transaction.statements or transaction.refusals:
                found.append(transaction)
    return schema, found


def _transaction(program: Program, function: Function, schema: Schema, ids: Ids) -> Transaction:
    spec = function.node.args
    arguments = [*spec.posonlyargs, *spec.args, *spec.kwonlyargs][1 if function.method else 0 :]
    place = f"{function.module.shown}:{function.node.lineno}"
    transaction = Transaction(function.name, (), place)
    walk = Walk(program, transaction, schema, ids)
    given: dict[str, Value] = {a.arg: Handle() if connection_like(a) else Parameter(a.arg) for a in arguments}
    if function.module.core:
        computed = [d for d in (*spec.defaults, *spec.kw_defaults) if d is not None and _folded(d, {}) is None]
        if computed:
            transaction.refuse(
                place, "the default of a parameter may be an expression of SQLAlchemy", "compute it in the function"
            )
    walk.call(function, given)
    transaction.parameters = tuple(
        n for n, v in given.items() if isinstance(v, Parameter) and n not in walk.connections
    )
    transaction.finish(schema)
    return transaction


def _schema(path: Path, modules: list[Module], dialect: Dialect) -> Schema:
    """The schema: the constant SCHEMA, a file next to the application, or the Tables of SQLAlchemy."""
    for module in modules:
        found = module.constants.get("SCHEMA")
        if isinstance(found, Constant) and isinstance(found.value, str):
            return parse_schema(found.value, dialect=dialect, source=f"SCHEMA in {module.shown}")
    folder = path if path.is_dir() else path.parent
    known = [t for m in modules for t in m.constants.values() if isinstance(t, CoreTable)]
    for file in (folder / f"{path.stem}.sql", folder / "schema.sql"):
        if file.is_file():
            return parse_schema(file.read_text(encoding="utf-8"), dialect=dialect, source=str(file))
    if known and all(t.ddl for t in known) and not any(_more_ddl(m) for m in modules):
        ddl = "\n".join(dict.fromkeys(t.ddl for t in known))
        return parse_schema(ddl, dialect=dialect, source=f"the Tables in {path}")
    if known:
        unclear = next((f"the Table {t.name} is" for t in known if not t.ddl), "indexes or constraints are")
        raise UsageError(
            f"{path}: {unclear} not understood, so the schema is not known",
            hint=("give ", Argument("schema", "FILE"), ", a constant SCHEMA in the module, or schema.sql next to it"),
        )
    raise UsageError(
        f"{path}: no schema",
        hint=("give ", Argument("schema", "FILE"), ", a constant SCHEMA in the module, or schema.sql next to it"),
    )


def _more_ddl(module: Module) -> bool:
    """Whether there are indexes, constraints or DDL outside of the Tables that were understood."""
    inside = {
        id(n)
        for s in module.tree.body
        if isinstance(s, ast.Assign)
        and any(isinstance(module.constants.get(getattr(t, "id", "")), CoreTable) for t in s.targets)
        for n in ast.walk(s)
    }
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and id(node) not in inside:
            called = module.sqlalchemy(node.func) or ""
            method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            if called in ("Table", "Index", "DDL") or called.endswith("Constraint") or method.startswith("append_"):
                return True
    return False


def _core(tree: ast.Module) -> dict[str, str]:
    """Names that are imported from SQLAlchemy at the top level and never bound again."""
    found: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module in _SQLALCHEMY and not node.level:
            found |= {a.asname or a.name: a.name for a in node.names}
        elif isinstance(node, ast.Import):
            found |= {a.asname or a.name: "" for a in node.names if a.name == "sqlalchemy"}
    other = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    other |= {n.name for n in ast.walk(tree) if isinstance(n, Definition | ast.ClassDef)}
    other |= {a.arg for a in ast.walk(tree) if isinstance(a, ast.arg)}
    bound = _imports(tree)
    other |= {name for name in found if bound.count(name) > 1}
    return {name: what for name, what in found.items() if name not in other}


def _imports(tree: ast.Module) -> list[str]:
    """Names that imports bind, anywhere in the module."""
    nodes = [n for n in ast.walk(tree) if isinstance(n, ast.Import | ast.ImportFrom)]
    return [(a.asname or a.name).partition(".")[0] for n in nodes for a in n.names]


def _constants(module: Module) -> dict[str, Value]:
    """Names that are assigned once, at the top level: literals, and Tables of SQLAlchemy."""
    tree = module.tree
    stores: dict[str, int] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            stores |= dict.fromkeys(node.names, 2)
    for node in ast.walk(ast.Module([n for n in tree.body if not isinstance(n, Definition | ast.ClassDef)], [])):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            stores[node.id] = stores.get(node.id, 0) + 1
    for name in _imports(ast.Module([n for n in tree.body if not isinstance(n, Definition | ast.ClassDef)], [])):
        stores[name] = stores.get(name, 0) + 1
    found: dict[str, Value] = {}
    for statement in tree.body:
        target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
        if isinstance(statement, ast.Assign) and isinstance(target, ast.Name) and stores.get(target.id) == 1:
            value = _folded(statement.value, found)
            if isinstance(statement.value, ast.Call) and module.sqlalchemy(statement.value.func) == "Table":
                value = table(statement.value, module.sqlalchemy)
            if value is not None:
                found[target.id] = value
    return found


def _only_read(name: str, tree: ast.Module) -> bool:
    """Whether a module uses a name for nothing but elements and loops, and assigns it at most once, at the top level."""
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node, parent in parents.items():
        if isinstance(node, ast.alias) and node.name == name and node.asname not in (None, name):
            return False
        if name not in (getattr(node, "id", None), getattr(node, "attr", None)) or not isinstance(node, ast.expr):
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and parents.get(parent) is tree:
            continue
        element = isinstance(parent, ast.Subscript) and parent.value is node and isinstance(parent.ctx, ast.Load)
        loop = isinstance(parent, ast.For | ast.AsyncFor | ast.comprehension) and parent.iter is node
        if not (element or loop):
            return False
    return True


def _folded(node: ast.expr, known: dict[str, Value]) -> Value | None:
    if isinstance(node, ast.Constant):
        return constant(node.value)
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _folded(node.left, known), _folded(node.right, known)
        texts = [v.value for v in (left, right) if isinstance(v, Constant) and isinstance(v.value, str)]
        return Constant("".join(texts)) if len(texts) == 2 else None
    if isinstance(node, ast.JoinedStr):
        return joined([(p, _folded(p.value if isinstance(p, ast.FormattedValue) else p, known)) for p in node.values])
    if isinstance(node, ast.Tuple | ast.List):
        items = [_folded(e, known) for e in node.elts]
        flat = [i for i in items if isinstance(i, Constant)]
        return Sequence(tuple(flat), isinstance(node, ast.List)) if len(flat) == len(items) else None
    if isinstance(node, ast.Dict):
        keys = [k.value for k in node.keys if isinstance(k, ast.Constant) and isinstance(k.value, str)]
        values = [v for v in (_folded(v, known) for v in node.values) if isinstance(v, Constant)]
        whole = len(keys) == len(values) == len(node.keys) and len(set(keys)) == len(keys)
        return Mapping(tuple(zip(keys, values, strict=True))) if whole else None
    return None


def locate(target: str) -> Path:
    """The file or folder of an application: a path or a dotted name."""
    path = Path(target)
    if path.exists():
        return path
    if all(part.isidentifier() for part in target.split(".")):
        for base in (Path.cwd(), *map(Path, sys.path)):
            found = base.joinpath(*target.split("."))
            if (found / "__init__.py").is_file():
                return found
            if found.with_name(f"{found.name}.py").is_file():
                return found.with_name(f"{found.name}.py")
    raise UsageError(
        f"there is no application {target}",
        hint="give a Python file, a package, or a .yaml or .sql file that lists transactions",
    )
