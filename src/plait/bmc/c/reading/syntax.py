"""Statements and expressions: from the cursors of libclang to the tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plait.bmc.c.reading import binding
from plait.bmc.c.reading.tree import (
    Assign,
    Binary,
    Block,
    Call,
    Case,
    Cast,
    Conditional,
    Declaration,
    Declare,
    Do,
    Evaluated,
    Expression,
    FunctionName,
    If,
    Increment,
    Index,
    Items,
    Jump,
    Literal,
    Loop,
    Member,
    Name,
    Number,
    Return,
    Statement,
    Switch,
    Target,
    Text,
    Unary,
)
from plait.bmc.c.reading.types import (
    Array,
    CType,
    Function,
    Integer,
    Pointer,
    Struct,
    Synchronization,
    common,
    promoted,
)

if TYPE_CHECKING:
    from plait.bmc.c.reading.unit import Unit

_NAMES = {
    "ASM_STMT": "inline assembly",
    "MS_ASM_STMT": "inline assembly",
    "GCCAsmStmt": "inline assembly",
    "INDIRECT_GOTO_STMT": "a goto to a computed address",
    "FLOATING_LITERAL": "floating-point numbers",
    "IMAGINARY_LITERAL": "complex numbers",
    "ADDR_LABEL_EXPR": "the address of a label",
    "BLOCK_EXPR": "blocks",
}


def statement(unit: Unit, cursor: Any) -> Statement:
    """Read a statement."""
    with unit.nested(cursor):
        return _statement(unit, cursor)


def _statement(unit: Unit, cursor: Any) -> Statement:
    kind = cursor.kind.name
    parts = list(cursor.get_children())
    place = unit.place(cursor)
    match kind:
        case "COMPOUND_STMT":
            return Block([statement(unit, c) for c in parts], place._replace(text=""))
        case "DECL_STMT":
            variables = [c for c in parts if c.kind.name == "VAR_DECL"]
            return Declare([unit.declaration(c) for c in variables], place)
        case "NULL_STMT":
            return Block([], place._replace(text=""))
        case "IF_STMT":
            head = _head(unit, cursor, "if", parts[0])
            otherwise = statement(unit, parts[2]) if len(parts) > 2 else None
            return If(expression(unit, parts[0]), statement(unit, parts[1]), otherwise, head)
        case "WHILE_STMT":
            head = _head(unit, cursor, "while", parts[0])
            return Loop(None, expression(unit, parts[0]), None, statement(unit, parts[1]), head)
        case "DO_STMT":
            head = _head(unit, cursor, "while", parts[1])
            head = head._replace(line=parts[1].extent.start.line, column=parts[1].extent.start.column)
            return Loop(None, expression(unit, parts[1]), None, statement(unit, parts[0]), head, first=True)
        case "FOR_STMT":
            return _for(unit, cursor, parts)
        case "SWITCH_STMT":
            head = _head(unit, cursor, "switch", parts[0])
            return Switch(expression(unit, parts[0]), statement(unit, parts[1]), head)
        case "CASE_STMT":
            values = [_constant(unit, c) for c in parts[:-1]]
            return Case(values[0], values[-1], statement(unit, parts[-1]), place)
        case "DEFAULT_STMT":
            return Case(None, None, statement(unit, parts[0]), place)
        case "LABEL_STMT":
            if cursor.spelling.startswith("__CPROVER_ASYNC_"):
                unit.refuse(cursor, f"a thread of CBMC (the label {cursor.spelling})", "use pthread_create")
            return Target(cursor.spelling, statement(unit, parts[0]), place)
        case "GOTO_STMT":
            return Jump("goto", parts[0].spelling, place)
        case "BREAK_STMT":
            return Jump("break", "", place)
        case "CONTINUE_STMT":
            return Jump("continue", "", place)
        case "RETURN_STMT":
            return Return(expression(unit, parts[0]) if parts else None, place)
    if cursor.kind.is_expression() or kind == "StmtExpr":
        return Do(expression(unit, cursor), place)
    if cursor.kind.is_attribute() or kind == "UNEXPOSED_STMT":
        inner = [c for c in parts if c.kind.is_statement() or c.kind.is_expression()]
        if len(inner) == 1:
            return statement(unit, inner[0])
        if not inner:
            return Block([], place)
    return unit.refuse(cursor, _NAMES.get(kind, f"the statement {kind.lower().replace('_', ' ')}"))


def _head(unit: Unit, cursor: Any, word: str, condition: Any) -> Any:
    return unit.place(cursor, f"{word} ({unit.text(condition)})")


def _for(unit: Unit, cursor: Any, parts: list[Any]) -> Statement:
    *header, body = parts
    slots: list[Any] = [None, None, None]
    if len(header) == 3:
        slots = header
    elif header:
        ends = _semicolons(cursor)
        if ends is None:
            unit.refuse(cursor, "a for statement from a macro with empty parts", "write it as a while statement")
        for part in header:
            at = part.extent.start.offset
            slots[0 if at < ends[0] else 1 if at < ends[1] else 2] = part
    initial, condition, step = slots
    texts = [unit.text(c).rstrip(";") if c is not None else "" for c in slots]
    place = unit.place(cursor, f"for ({'; '.join(texts)})")
    return Loop(
        None if initial is None else statement(unit, initial),
        None if condition is None else expression(unit, condition),
        None if step is None else expression(unit, step),
        statement(unit, body),
        place,
    )


def _semicolons(cursor: Any) -> tuple[int, int] | None:
    """Where the two semicolons of `for (…; …; …)` are in the file."""
    depth, found = 0, []
    for token in cursor.get_tokens():
        match token.spelling:
            case "(" | "{":
                depth += 1
            case ")" | "}":
                depth -= 1
                if depth == 0:
                    break
            case ";" if depth == 1:
                found.append(token.extent.start.offset)
    return (found[0], found[1]) if len(found) == 2 else None


def _constant(unit: Unit, cursor: Any) -> int:
    found = binding.value(cursor)
    if found is None:
        unit.refuse(cursor, "a case that is not a constant")
    return found


def expression(unit: Unit, cursor: Any) -> Expression:
    """Read an expression."""
    with unit.nested(cursor):
        return _expression(unit, cursor)


def _expression(unit: Unit, cursor: Any) -> Expression:
    kind = cursor.kind.name
    place = unit.place(cursor)
    parts = [c for c in cursor.get_children() if c.kind.name not in ("TYPE_REF", "NAMESPACE_REF")]

    match kind:
        case "PAREN_EXPR":
            return expression(unit, parts[-1])
        case "INTEGER_LITERAL" | "CHARACTER_LITERAL":
            return Number(_literal(unit, cursor), unit.type(cursor.type, cursor), place)
        case "CXX_UNARY_EXPR":
            return Number(_literal(unit, cursor), unit.type(cursor.type, cursor), place)
        case "STRING_LITERAL":
            return Text(cursor.spelling.strip('"'), Array(Integer(8, True, "char"), 1), place)
        case "DECL_REF_EXPR":
            return _reference(unit, cursor)
        case "UNEXPOSED_EXPR":
            return _unexposed(unit, cursor, parts)
        case "CSTYLE_CAST_EXPR":
            operand = expression(unit, parts[-1])
            return Cast(operand, _type(unit, cursor), place)
        case "UNARY_OPERATOR":
            return _unary(unit, cursor, parts[0])
        case "BINARY_OPERATOR":
            operator = binding.binary(cursor)
            left, right = expression(unit, parts[0]), expression(unit, parts[1])
            t = _type(unit, cursor)
            return Assign("", left, right, t, place) if operator == "=" else Binary(operator, left, right, t, place)
        case "COMPOUND_ASSIGNMENT_OPERATOR":
            operator = binding.binary(cursor).rstrip("=")
            left, right = expression(unit, parts[0]), expression(unit, parts[1])
            calculation = None
            if isinstance(left.type, Integer) and isinstance(right.type, Integer):
                calculation = promoted(left.type) if operator in ("<<", ">>") else common(left.type, right.type)
            return Assign(operator, left, right, _type(unit, cursor), place, calculation)
        case "CONDITIONAL_OPERATOR":
            condition, then, otherwise = (expression(unit, c) for c in parts)
            return Conditional(condition, then, otherwise, _type(unit, cursor), place)
        case "CALL_EXPR":
            function, *arguments = parts
            return Call(
                expression(unit, function),
                [expression(unit, c) for c in arguments],
                unit.type(cursor.type, cursor),
                place,
            )
        case "MEMBER_REF_EXPR":
            return _member(unit, cursor, parts)
        case "ARRAY_SUBSCRIPT_EXPR":
            base, index = expression(unit, parts[0]), expression(unit, parts[1])
            if isinstance(index.type, Pointer):
                base, index = index, base
            return Index(base, index, unit.type(cursor.type, cursor), place)
        case "INIT_LIST_EXPR":
            return _items(unit, cursor, parts)
        case "COMPOUND_LITERAL_EXPR":
            t = unit.type(cursor.type, cursor)
            declared = Declaration("literal", t, place, expression(unit, parts[-1]))
            unit.locals.append(declared)
            return Literal(declared, t, place)
        case "StmtExpr":
            body = statement(unit, parts[0])
            assert isinstance(body, Block)
            return Evaluated(body, unit.type(cursor.type, cursor), place)
        case "GENERIC_SELECTION_EXPR":
            unit.refuse(cursor, "_Generic")
    return unit.refuse(cursor, _NAMES.get(kind, f"the expression {kind.lower().replace('_', ' ')}"))


def _type(unit: Unit, cursor: Any) -> CType:
    """The type of a value. libclang gives a parameter that is declared as an array that type: it is a pointer."""
    canonical = cursor.type.get_canonical()
    if canonical.kind.name.endswith("ARRAY") and canonical.kind.name != "VARIABLEARRAY":
        return Pointer(unit.type(canonical.element_type, cursor))
    return unit.type(cursor.type, cursor)


def _literal(unit: Unit, cursor: Any) -> int:
    found = binding.value(cursor)
    if found is None:
        unit.refuse(cursor, f"the expression {unit.text(cursor)}")
    return found


def _reference(unit: Unit, cursor: Any) -> Expression:
    declared = cursor.referenced
    place = unit.place(cursor)
    match declared.kind.name:
        case "ENUM_CONSTANT_DECL":
            return Number(declared.enum_value, Integer(32, True, "int"), place)
        case "FUNCTION_DECL":
            return FunctionName(declared.spelling, Function(-1), place)
        case "VAR_DECL" | "PARM_DECL":
            if declared.location.file is None:
                return Text(cursor.spelling, Array(Integer(8, True, "char"), 1), place)  # __func__
            variable = unit.declaration(declared)
            return Name(variable, variable.type, place)
    return unit.refuse(cursor, f"the name {cursor.spelling}")


def _unexposed(unit: Unit, cursor: Any, parts: list[Any]) -> Expression:
    if cursor.spelling.startswith("__builtin") and not parts:
        unit.refuse(cursor, cursor.spelling)
    inner = [c for c in parts if c.kind.is_expression() or c.kind.name == "StmtExpr"]
    if len(inner) != 1:
        text = " ".join(unit.text(cursor).split())
        if text.startswith(("__func__", "__PRETTY", "__FUNC")):
            return Text(text, Array(Integer(8, True, "char"), 1), unit.place(cursor))
        constant = binding.value(cursor) if not inner else None
        if constant is not None:
            return Number(constant, unit.type(cursor.type, cursor), unit.place(cursor))
        unit.refuse(cursor, f"the expression {text}" if text else "an expression")
    if inner[0].kind.name == "INIT_LIST_EXPR" and cursor.type.kind.name == "VOID":
        unit.refuse(cursor, "a designator outside of an initialiser")
    operand = expression(unit, inner[0])
    if isinstance(operand, FunctionName):
        return operand
    t = _type(unit, cursor) if isinstance(operand.type, Pointer) else unit.type(cursor.type, cursor)
    return Cast(operand, t, unit.place(cursor))


def _unary(unit: Unit, cursor: Any, operand: Any) -> Expression:
    operator, prefix = binding.unary(cursor)
    inner = expression(unit, operand)
    place = unit.place(cursor)
    if operator == "extension":
        return inner
    if operator in ("++", "--"):
        return Increment(1 if operator == "++" else -1, prefix, inner, _type(unit, cursor), place)
    if operator in ("&", "*") and isinstance(inner, FunctionName):
        return inner
    if operator == "unknown":
        unit.refuse(cursor, f"the operator in {unit.text(cursor)}")
    t = unit.type(cursor.type, cursor)
    if isinstance(t, Function) or (operator == "&" and isinstance(t, Pointer) and isinstance(t.target, Function)):
        return inner  # A function and a pointer to it are the same value.
    return Unary(operator, inner, t, place)


def _member(unit: Unit, cursor: Any, parts: list[Any]) -> Expression:
    if not parts:
        unit.refuse(cursor, f"the member {cursor.spelling}")
    base = expression(unit, parts[0])
    place = unit.place(cursor)
    t = unit.type(cursor.type, cursor)
    if isinstance(base.type, Pointer):
        base = Unary("*", base, base.type.target, place)
    if not isinstance(base.type, Struct):
        unit.refuse(cursor, f"access to {cursor.spelling}, a part of a type that is a whole,")
    return Member(base, cursor.spelling, t, place)


def _items(unit: Unit, cursor: Any, parts: list[Any]) -> Expression:
    items: list[tuple[list[str | int], Expression]] = []
    place, t = unit.place(cursor), unit.type(cursor.type, cursor)
    if isinstance(t, Synchronization):
        # Its layout does not matter. The kind of a mutex is the only number that is not 0.
        return Items([([], number) for number in _numbers(unit, cursor)], t, place)
    for part in parts:
        path: list[str | int] = []
        inner = part
        if part.kind.name == "UNEXPOSED_EXPR" and part.type.kind.name == "VOID":
            *designators, inner = [c for c in part.get_children() if c.kind.name != "TYPE_REF"]
            for designator in designators:
                if designator.kind.name == "MEMBER_REF":
                    path.append(designator.spelling)
                else:
                    path.append(_constant(unit, designator))
        items.append((path, expression(unit, inner)))
    return Items(items, t, place)


def _numbers(unit: Unit, cursor: Any) -> list[Expression]:
    """All constants inside of an initialiser."""
    found: list[Expression] = []
    for part in cursor.walk_preorder():
        if part.kind.name == "INTEGER_LITERAL" or (
            part.kind.name == "DECL_REF_EXPR" and part.referenced.kind.name == "ENUM_CONSTANT_DECL"
        ):
            found.append(expression(unit, part))
    return found
