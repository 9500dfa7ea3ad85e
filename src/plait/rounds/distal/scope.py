"""Expressions over collections: lists, sets, ranges, quantifiers, and the messages in the mailbox."""

from __future__ import annotations

from plait.kernel.extras import needs
from plait.rounds.distal.expressions import Code, Expressions
from plait.rounds.distal.parser import Node
from plait.rounds.distal.value_types import BOOL, INT, PID, PROCESS, ValueType, list_of, set_of

with needs("rounds"):
    from lark import Token


class Scope(Expressions):
    """All expressions of a place of the text."""

    def inner(self, **bound: ValueType | None) -> Scope:
        """The same place with more names."""
        made = type(self)(
            self.names, self.text, received=self.received, myself=self.myself, local={**self.local, **bound}
        )
        made.in_function = self.in_function or self.acts
        made.fresh, made.fields, made.own_m = self.fresh, self.fields, self.own_m and "m" not in bound
        return made

    # -- lists and sets ----------------------------------------------------------------------------------------------

    def _elements(self, elements: tuple[Node | Token | None, ...], what: str) -> tuple[str, ValueType | None]:
        kind: ValueType | None = None
        texts = []
        for element in elements:
            assert isinstance(element, Node)
            code = self.expression(element)
            kind = self.same(element, kind, code.kind, what)
            texts.append(code.text)
        return ", ".join(texts), kind

    def _list(self, node: Node, *elements: Node) -> Code:
        texts, kind = self._elements(elements, "an element of this list")
        return Code(f"({texts},)", list_of(kind))

    def _set(self, node: Node, given: Node | None) -> Code:
        if given is None:
            return Code("frozenset()", set_of())
        texts, kind = self._elements(given.children, "an element of this set")
        return Code(f"frozenset({{{texts}}})", set_of(kind))

    def _range(self, node: Node, first: Node, last: Node) -> Code:
        begin, end = self.of(first, INT, "the first number"), self.of(last, INT, "the last number")
        return Code(f"tuple(range({begin}, ({end}) + 1))", list_of(INT))

    def _index(self, node: Node, owner: Node, place: Node) -> Code:
        code = self.expression(owner)
        self.wanted(owner, list_of(), code.kind, "what has numbered elements")
        number = self.of(place, INT, "the number of an element")
        element = code.kind.element if code.kind else None
        if place.data == "number" or (place.data == "access" and place.token(1) == "index"):
            return Code(f"({code.text})[{number}]", element)
        self.names.helpers.add("_item")
        return Code(f"_item({code.text}, {number})", element)

    def _within(self, node: Node, element: Node, owner: Node) -> Code:
        one, other = self.expression(element), self.expression(owner)
        if other.kind is not None and other.kind.name not in ("list", "set"):
            raise self.error(owner, f"in asks about a list or a set, not a value of type {other.kind}")
        self.same(element, other.kind and other.kind.element, one.kind, "the left side of in")
        return Code(f"({one.text}) in ({other.text})", BOOL)

    # -- what ranges over a collection -------------------------------------------------------------------------------

    def _domain(self, name: Token, node: Node, condition: Node | None, *, select: bool = False) -> tuple[str, Scope]:
        """`for name in …`, and the scope in which the name is bound."""
        label = self.binder(name)
        tests = []
        if node.data == "mailbox":
            inner = self.inner(**{label: ValueType(self._messages(node, select=select))})
            over, filtered = "messages", node.children[1]
            tests += [inner.condition(filtered)] if isinstance(filtered, Node) else []
        else:
            code = self.expression(node)
            if code.kind is not None and code.kind.name not in ("list", "set"):
                raise self.error(node, f"expected a list or a set, not a value of type {code.kind}")
            over = f"sorted({code.text}, key=repr)" if code.kind and code.kind.name == "set" else code.text
            inner = self.inner(**{label: code.kind.element if code.kind else None})
        tests += [inner.condition(condition)] if condition is not None else []
        where = f" if {' and '.join(f'({test})' for test in tests)}" if tests else ""
        return f"for {label} in {over}{where}", inner

    def over(self, name: Token, node: Node) -> tuple[str, Scope]:
        """`for name in …` of a statement, which has no condition."""
        if node.data == "mailbox" and node.children[1] is not None:
            raise self.error(node, "a loop goes through all messages", hint="test the condition in the loop")
        return self._domain(name, node, None)

    def _messages(self, node: Node, *, select: bool = False) -> str:
        """The type of the messages that a mailbox has."""
        name = node.children[0]
        if isinstance(name, Token) and name not in self.names.messages:
            raise self.error(name, f"there is no message type '{name}'", self.names.messages)
        place = name if isinstance(name, Token) else node
        return self.reads_mailbox(place, str(name) if isinstance(name, Token) else None, select=select)

    def _mailbox(self, node: Node, name: Token | None, condition: Node | None = None) -> Code:
        """The received messages as a list."""
        kind = ValueType(self._messages(node))
        if condition is None:
            return Code("messages", list_of(kind))
        test = self.inner(m=kind).condition(condition)
        return Code(f"tuple(m for m in messages if {test})", list_of(kind))

    def _count(self, node: Node, _: Token, name: Token, domain: Node, condition: Node | None = None) -> Code:
        loop, _inner = self._domain(name, domain, condition)
        return Code(f"sum(1 {loop})", INT)

    def _list_of(self, node: Node, element: Node, name: Token, domain: Node, condition: Node | None = None) -> Code:
        loop, inner = self._domain(name, domain, condition)
        code = inner.expression(element)
        return Code(f"tuple(({code.text}) {loop})", list_of(code.kind))

    def _set_of(self, node: Node, element: Node, name: Token, domain: Node, condition: Node | None = None) -> Code:
        loop, inner = self._domain(name, domain, condition)
        code = inner.expression(element)
        return Code(f"frozenset(({code.text}) {loop})", set_of(code.kind))

    def _aggregate(
        self, node: Node, function: Token, element: Node, name: Token, domain: Node, condition: Node | None = None
    ) -> Code:
        """`max(e for x in D)`, `min`, and `sum`."""
        if function not in ("max", "min", "sum"):
            raise self.error(function, f"{function} does not range over a collection", ("max", "min", "sum"))
        loop, inner = self._domain(name, domain, condition)
        code = inner.expression(element)
        if function == "sum" or (code.kind is not None and code.kind.name == "optional"):
            self.wanted(element, INT, code.kind, f"what {function} is of")
        if code.kind is not None and code.kind.name not in ("int", "text"):
            raise self.error(element, f"{function} is of numbers, not of values of type {code.kind}")
        return Code(f"{function}(({code.text}) {loop})", code.kind)

    def _call_max(self, node: Node, name: Token, given: list[Node]) -> Code:
        if len(given) < 2:
            raise self.error(name, f"{name} takes at least two numbers", hint=f"or: {name}(m.x for m in mbox)")
        texts = self._arguments(name, given, [INT] * len(given))
        return Code(f"{name}({', '.join(texts)})", INT)

    _call_min = _call_max

    def _call_length(self, node: Node, name: Token, given: list[Node]) -> Code:
        if len(given) != 1:
            raise self.error(name, f"length takes one value, not {len(given)}")
        code = self.expression(given[0])
        if code.kind is not None and code.kind.name not in ("list", "set", "text"):
            raise self.error(given[0], f"value 1 of length: expected [?], not {code.kind}")
        return Code(f"len({code.text})", INT)

    def _call_last(self, node: Node, name: Token, given: list[Node]) -> Code:
        """The last element of a list."""
        (text,) = self._arguments(name, given, [list_of()])
        code = self.expression(given[0])
        return Code(f"({text})[-1]", code.kind and code.kind.element)

    def _call_subsets(self, node: Node, name: Token, given: list[Node]) -> Code:
        """All parts of a list."""
        (text,) = self._arguments(name, given, [list_of()])
        self.names.helpers.add("_subsets")
        return Code(f"_subsets({text})", list_of(self.expression(given[0]).kind))

    def _call_subsets_of(self, node: Node, name: Token, given: list[Node]) -> Code:
        """The parts of a list that have a number of elements."""
        text, number = self._arguments(name, given, [list_of(), INT])
        self.names.helpers.add("_subsets")
        return Code(f"_subsets({text}, {number})", list_of(self.expression(given[0]).kind))

    def _sets(self, sign: str, name: Token, given: list[Node]) -> Code:
        _, kind = self._elements(tuple(given), f"a value of {name}")
        if len(given) != 2 or (kind is not None and kind.name != "set"):
            raise self.error(name, f"{name} takes two sets")
        one, other = self.expression(given[0]).text, self.expression(given[1]).text
        return Code(f"({one}) {sign} ({other})", kind)

    def _call_union(self, node: Node, name: Token, given: list[Node]) -> Code:
        return self._sets("|", name, given)

    def _call_common(self, node: Node, name: Token, given: list[Node]) -> Code:
        return self._sets("&", name, given)

    def _call_without(self, node: Node, name: Token, given: list[Node]) -> Code:
        return self._sets("-", name, given)

    def _call_senders(self, node: Node, name: Token, given: list[Node]) -> Code:
        """The senders of messages."""
        if len(given) != 1 or given[0].data != "mailbox":
            raise self.error(name, "senders takes messages", hint="write senders(mbox) or senders(mbox(Ack, m.x > 3))")
        code = self.expression(given[0])
        return Code(f"frozenset(x.sender for x in {code.text})", set_of(PID))

    def _select(self, node: Node, order: Token, name: Token, domain: Node, *rest: Node | None) -> Code:
        condition, keys, result = rest
        assert keys is not None
        assert result is not None
        loop, inner = self._domain(name, domain, condition, select=True)
        key = ", ".join(self._key(inner, k) for k in keys.nodes())
        code = inner.expression(result)
        best = f"{'max' if order == 'greatest' else 'min'}(({name} {loop}), key=lambda {name}: ({key},))"
        if result.data == "access" and result.node(0).data == "name" and result.node(0).children[0] == name:
            return Code(f"({best}).{result.token(1)}", code.kind)
        return Code(f"(lambda {name}: {code.text})({best})", code.kind)

    def _key(self, inner: Scope, node: Node) -> str:
        """A value by which messages are compared."""
        code = inner.expression(node)
        if code.kind is not None and code.kind.name not in ("int", "bool", "text", "list"):
            raise self.error(node, f"cannot compare values of type {code.kind}", hint="compare numbers, texts or lists")
        return code.text

    def _quantified(self, node: Node, quantifier: Token, names: Node, domain: Node | None, formula: Node) -> Code:
        if domain is None and self.myself:
            raise self.error(
                quantifier, "only properties can range over processes", hint="an action knows only its own process"
            )
        inner, loops = self, []
        for name in names.children:
            assert isinstance(name, Token)
            if domain is None:
                inner = inner.inner(**{self.binder(name): PROCESS})
                loops.append(f"for {name} in s[Node]")
                continue
            if domain.data != "mailbox":
                code = self.expression(domain)
                if code.kind is not None and code.kind.name != "set":
                    self.same(domain, list_of(), code.kind, f"what {quantifier} ranges over")
            loop, inner = inner._domain(name, domain, None)
            loops.append(loop)
        test = inner.condition(formula)
        return Code(f"{'all' if quantifier in ('forall', '∀') else 'any'}(({test}) {' '.join(loops)})", BOOL)
