"""Calls in C: functions of the user, built-in functions, and what a handler asks for (messages, choices)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plait.ir import nodes
from plait.rounds.emit.c.expressions import Value
from plait.rounds.emit.c.iteration import Iteration
from plait.rounds.emit.c.types import (
    BOOL,
    EMPTY,
    INT,
    NONE,
    NOTHING,
    PID,
    TEXT,
    Type,
    UnknownTypeError,
    as_sequence,
    fields_of,
    joined,
    said,
    sequence,
)


class Calls(Iteration):
    """Translates calls."""

    def _e_call_function(self, node: nodes.CallFunction) -> Value:
        return self.unit.call(self, node.function, self.values(node.arguments))

    def _e_call_method(self, node: nodes.CallMethod) -> Value:
        value = self.value(node.value)
        if node.name == "count" and len(node.arguments) == 1 and not node.keywords:
            wanted = self.saved(self.value(node.arguments[0]))
            whole = self.saved(Value(self.converted(value, as_sequence(value.type)), as_sequence(value.type)))
            return self._folded(
                lambda use: self.walk(whole, use),
                INT,
                "0",
                lambda made, item: f"{made} += {self.comparison('==', item, wanted)};",
            )
        raise UnknownTypeError(f".{node.name}(…) of {said(value.type)}")

    def _folded(
        self,
        fill: Callable[[Callable[[Value], None]], None],
        type_: Type,
        start: str,
        step: Callable[[str, Value], str],
    ) -> Value:
        made = self.temporary(type_, "result")
        self.out(f"{made} = {start};")
        fill(lambda item: self.out(step(made, item)))
        return Value(made, type_)

    def _e_call_builtin(self, node: nodes.CallBuiltin) -> Value:
        known: Callable[[Any], Value] | None = getattr(self, f"_call_{node.name}", None)
        if known is None or (node.keywords and node.name not in ("min", "max", "sorted", "next")):
            raise UnknownTypeError(f"{node.name}(…)")
        return known(node)

    def _call_len(self, node: nodes.CallBuiltin) -> Value:
        return self.length(self.value(node.arguments[0]))

    def _call_all(self, node: nodes.CallBuiltin) -> Value:
        return self._quantified(node.arguments[0], "true", lambda test: f"if (!({test}))", "false")

    def _call_any(self, node: nodes.CallBuiltin) -> Value:
        return self._quantified(node.arguments[0], "false", lambda test: f"if ({test})", "true")

    def _quantified(self, iterable: Any, start: str, when: Callable[[str], str], then: str) -> Value:
        """`all` and `any` evaluate no item after the one that decides."""
        made = self.temporary(BOOL, "result")
        self.out(f"{made} = {start};")

        def use(item: Value) -> None:
            self.out(f"{when(self.truth_of(item))} {made} = {then};")

        if isinstance(iterable, nodes.Generator):
            guard = f"{made} == {start}"
            self.clauses(iterable.clauses, lambda: self.only_if(guard, lambda: use(self.value(iterable.element))))
        else:
            self.iterate(iterable, use)
        return Value(made, BOOL)

    def only_if(self, guard: str, inner: Callable[[], None]) -> None:
        with self.block(f"if ({guard})"):
            inner()

    def _call_sum(self, node: nodes.CallBuiltin) -> Value:
        if len(node.arguments) > 1:
            raise UnknownTypeError("sum with a start")
        return self._folded(
            lambda use: self.iterate(node.arguments[0], use),
            INT,
            "0",
            lambda made, item: f"{made} += {self.number_of(item)};",
        )

    def _call_min(self, node: nodes.CallBuiltin) -> Value:
        return self._extreme(node, lambda type_, new, best: self.unit.structs.less(type_, new, best))

    def _call_max(self, node: nodes.CallBuiltin) -> Value:
        return self._extreme(node, lambda type_, new, best: self.unit.structs.less(type_, best, new))

    def _extreme(self, node: nodes.CallBuiltin, better: Callable[[Type, str, str], str]) -> Value:
        """The first of the greatest or smallest items. Python fails if there is none."""
        if set(node.keywords) - {"key"}:
            raise UnknownTypeError(f"{node.name} with {', '.join(node.keywords)}")
        if len(node.arguments) > 1:
            whole = self.collection(nodes.ListDisplay(node.arguments))
        else:
            whole = self.collection(node.arguments[0])
        if whole.type == EMPTY:
            raise UnknownTypeError(f"{node.name} of nothing")
        item = whole.type.parts[0]
        self.out(f"assert({whole.text}.length > 0);")
        best, best_key = self.temporary(item, "best"), ""
        self.out(f"{best} = {whole.text}.at[0];")
        key = node.keywords.get("key")
        counter = self.temporary(INT, "i")
        del self.declared[counter]
        if key is None:
            with self.block(f"for (int {counter} = 1; {counter} < {whole.text}.length; {counter}++)"):
                test = better(item, f"{whole.text}.at[{counter}]", best)
                self.out(f"if ({test}) {best} = {whole.text}.at[{counter}];")
            return Value(best, item)
        first = self.called(key, [Value(f"{whole.text}.at[0]", item)])
        best_key = self.temporary(first.type, "key")
        self.out(f"{best_key} = {first.text};")
        with self.block(f"for (int {counter} = 1; {counter} < {whole.text}.length; {counter}++)"):
            found = self.saved(self.called(key, [Value(f"{whole.text}.at[{counter}]", item)]))
            with self.block(f"if ({better(first.type, found.text, best_key)})"):
                self.out(f"{best} = {whole.text}.at[{counter}];")
                self.out(f"{best_key} = {found.text};")
        return Value(best, item)

    def _call_sorted(self, node: nodes.CallBuiltin) -> Value:
        if set(node.keywords) - {"key"}:
            raise UnknownTypeError("sorted with reverse")
        whole = self.collection(node.arguments[0])
        if whole.type == EMPTY:
            return whole
        item, made = whole.type.parts[0], self.temporary(whole.type, "sorted")
        self.out(f"{made} = {whole.text};")
        i, j = self.temporary(INT, "i"), self.temporary(INT, "j")
        del self.declared[i], self.declared[j]
        held = self.temporary(item, "held")
        key = node.keywords.get("key")
        outer, inner = f"for (int {i} = 1; {i} < {made}.length; {i}++)", f"for (int {j} = {i}; {j} > 0; {j}--)"
        with self.block(outer), self.block(inner):
            one, other = (Value(f"{made}.at[{text}]", item) for text in (j, f"{j} - 1"))
            if key is not None:
                one = self.saved(self.called(key, [one]))
                other = self.saved(self.called(key, [other]))
            test = self.unit.structs.less(one.type, one.text, other.text)
            with self.block(f"if ({test})"):
                self.out(f"{held} = {made}.at[{j}];")
                self.out(f"{made}.at[{j}] = {made}.at[{j} - 1];")
                self.out(f"{made}.at[{j} - 1] = {held};")
        return Value(made, sequence(item))

    def _call_set(self, node: nodes.CallBuiltin) -> Value:
        if not node.arguments:
            return Value("", EMPTY)
        return self.collected(lambda use: self.iterate(node.arguments[0], use), distinct=True)

    _call_frozenset = _call_set

    def _call_tuple(self, node: nodes.CallBuiltin) -> Value:
        whole = self.collection(node.arguments[0]) if node.arguments else Value("", EMPTY)
        return Value(whole.text, sequence(whole.type.parts[0])) if whole.type != EMPTY else whole

    _call_list = _call_tuple

    def _call_next(self, node: nodes.CallBuiltin) -> Value:
        if len(node.arguments) != 2 or not isinstance(node.arguments[0], nodes.Generator):
            raise UnknownTypeError("next without a default, or of something else than a generator")
        default, generator = self.value(node.arguments[1]), node.arguments[0]
        made, done = self.temporary(NOTHING, "first"), self.temporary(BOOL, "done")
        self.out(f"{done} = false;")
        at = len(self.lines)
        types: list[Type] = []

        def inner() -> None:
            item = self.value(generator.element)
            types.append(item.type)
            self.out(f"{made} = {item.text};")
            self.out(f"{done} = true;")

        self.clauses(generator.clauses, lambda: self.only_if(f"!{done}", inner))
        if not types:
            return default
        both = joined(types[0], default.type)
        if types[0] != both and not both.scalar:
            raise UnknownTypeError("next with a default of another type")
        self.declared[made] = both
        self.lines.insert(at, "    " * self.depth + f"{made} = {self.converted(default, both)};")
        return Value(made, both)

    def _call_abs(self, node: nodes.CallBuiltin) -> Value:
        value = self.saved(self.value(node.arguments[0]))
        return Value(f"({self.number_of(value)} < 0 ? -{value.text} : {value.text})", INT)

    def _call_bool(self, node: nodes.CallBuiltin) -> Value:
        return Value(self.truth(node.arguments[0]), BOOL)

    def _call_int(self, node: nodes.CallBuiltin) -> Value:
        return Value(self.number_of(self.value(node.arguments[0])), INT)

    def _call_ord(self, node: nodes.CallBuiltin) -> Value:
        value = self.value(node.arguments[0])
        if value.type != TEXT:
            raise UnknownTypeError(f"ord of {said(value.type)}")
        self.unit.uses_codes = True
        return Value(value.text, INT)

    def _call_chr(self, node: nodes.CallBuiltin) -> Value:
        self.unit.uses_codes = True
        return Value(self.number_of(self.value(node.arguments[0])), TEXT)

    def _e_construct(self, node: nodes.Construct) -> Value:
        cls = self.unit.class_of(node.class_)
        type_ = Type("record", cls=cls)
        several = self.values(node.fields)
        fields = fields_of(cls)
        texts = [f".{name} = {self.converted(v, t)}" for (name, t), v in zip(fields.items(), several, strict=True)]
        return Value(f"({self.unit.structs.name(type_)}){{{', '.join(texts)}}}", type_)

    # -- effects -------------------------------------------------------------------------------------------------------

    def _e_send(self, node: nodes.Send) -> Value:
        to, message = self.values([node.to, node.message])
        name = self.unit.sender(message.type)
        message = self.saved(message)
        if to.type == PID:
            self.out(f"{name}(self, {to.text}, {message.text});")
            return Value("NONE", NONE)
        whole = self.saved(Value(self.converted(to, as_sequence(to.type)), as_sequence(to.type)))
        if whole.type != sequence(PID):
            raise UnknownTypeError(f"a message to {said(to.type)}")
        self.walk(whole, lambda pid: self.out(f"{name}(self, {pid.text}, {message.text});"))
        return Value("NONE", NONE)

    def _e_broadcast(self, node: nodes.Broadcast) -> Value:
        message = self.saved(self.value(node.message))
        myself = True
        if node.myself is not None:
            if not isinstance(node.myself, nodes.Constant):
                raise UnknownTypeError("myself= that is no constant")
            myself = bool(self.unit.constant(node.myself.content))
        name = self.unit.sender(message.type)
        counter = self.temporary(INT, "to")
        del self.declared[counter]
        test = "" if myself else "if ({0} != self) "
        self.over(
            [str(p) for p in node.positions],
            counter,
            PID,
            lambda pid: self.out(f"{test.format(pid.text)}{name}(self, {pid.text}, {message.text});"),
        )
        return Value("NONE", NONE)

    def _e_choose(self, node: nodes.Choose) -> Value:
        whole = self.collection(node.options)
        if whole.type == EMPTY:
            raise UnknownTypeError("a choice of nothing")
        made = self.temporary(whole.type.parts[0], "chosen")
        self.out(f"assert({whole.text}.length > 0);")
        self.out(f"{made} = {whole.text}.at[pick({whole.text}.length)];")
        return Value(made, whole.type.parts[0])

    def _e_announce(self, node: nodes.Announce) -> Value:
        return Value("NONE", NONE)
