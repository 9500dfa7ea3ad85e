"""Functions of P: statements and expressions as a syntax tree."""

from __future__ import annotations

from plait.rounds.p import syntax as s
from plait.rounds.p.lexer import Place
from plait.rounds.p.syntax import Expression, Name, Statement
from plait.rounds.p.words import Words

_LEVELS = (("||",), ("&&",), ("==", "!="), ("<", ">", "<=", ">=", "in"))
"""Binary operators, from those that bind loosest. After them come `as` and `to`, then sums, then products."""


class BodyParser(Words):
    """Reads functions."""

    def event_name(self) -> Name:
        """The name of an event, or `halt`."""
        if self.sees("halt"):
            return Name(self.take().place, "halt")
        if self.sees("null"):
            self.refuse("a handler for null", "send an event to the machine itself instead")
        return self.name("an event")

    def variables(self) -> list[s.Variable]:
        """`var a, b: int;`"""
        self.expect("var")
        names = self.names("the name of a variable")
        self.expect(":")
        type_ = self.type()
        self.expect(";")
        return [s.Variable(name.place, name.name, type_) for name in names]

    def parameters(self) -> tuple[s.Variable, ...]:
        self.expect("(")
        found = []
        while not self.sees(")"):
            name = self.name("the name of a parameter")
            self.expect(":")
            found.append(s.Variable(name.place, name.name, self.type()))
            if not self.skip(","):
                break
        self.expect(")")
        return tuple(found)

    def function(self) -> s.Function:
        """`fun name(…): type { … }`"""
        place = self.take().place
        name = self.name("the name of a function").name
        parameters = self.parameters()
        result = self.type() if self.skip(":") else None
        if not self.sees("{"):
            self.refuse(f"the foreign function {name}", "define it in P", place)
        return self._body(place, name, parameters, result)

    def anonymous(self) -> s.Function:
        """A function of a state or of a case: `(payload: type) { … }` or `{ … }`."""
        place = self.place
        parameters = self.parameters() if self.sees("(") else ()
        return self._body(place, "", parameters, None)

    def _body(self, place: Place, name: str, given: tuple[s.Variable, ...], result: s.TypeName | None) -> s.Function:
        start = self.expect("{").place
        variables: list[s.Variable] = []
        while self.sees("var"):
            variables += self.variables()
        return s.Function(place, name, given, result, tuple(variables), self._rest(start))

    def _rest(self, place: Place) -> s.Block:
        statements = []
        while not self.skip("}"):
            if self.sees("var"):
                raise self.text.error(self.place, "a variable is declared after a statement", "declare it first")
            statements.append(self.statement())
        return s.Block(place, tuple(statements))

    # -- statements --------------------------------------------------------------------------------------------------------

    def statement(self) -> Statement:
        place = self.place
        word = self.next.text if self.next.kind in ("keyword", "sign") else ""
        match word:
            case "{":
                self.take()
                return self._rest(place)
            case ";":
                self.take()
                return s.Block(place, ())
            case "if":
                self.take()
                condition = self._in_parentheses()
                then = self.statement()
                return s.If(place, condition, then, self.statement() if self.skip("else") else None)
            case "while":
                self.take()
                return s.While(place, self._in_parentheses(), self.statement())
            case "foreach":
                self.take()
                self.expect("(")
                name = self.name("the name of a variable").name
                self.expect("in")
                collection = self.expression()
                self.expect(")")
                return s.Foreach(place, name, collection, self.statement())
            case "receive":
                self.take()
                return self._receive(place)
            case "assume":
                self.refuse("assume", "use if and choose")
        if word in ("assert", "print", "return", "break", "continue", "raise", "send", "announce", "goto", "new"):
            self.take()
            made = self._simple(place, word)
        elif self.next.kind == "name":
            made = self._assignment(place)
        else:
            self.wrong("a statement")
        self.expect(";")
        return made

    def _simple(self, place: Place, word: str) -> Statement:
        match word:
            case "assert":
                condition = self.expression()
                return s.Assert(place, condition, self.expression() if self.skip(",") else None)
            case "print":
                return s.Print(place, self.expression())
            case "return":
                return s.Return(place, None if self.sees(";") else self.expression())
            case "break":
                return s.Break(place)
            case "continue":
                return s.Continue(place)
            case "new":
                return s.Do(place, self._new(place))
            case "goto":
                return s.Goto(place, self.name("the name of a state").name, self._payload())
            case "send":
                machine = self.expression()
                self.expect(",")
                return s.Send(place, machine, self.expression(), self._payload())
            case "raise":
                return s.Raise(place, self.expression(), self._payload())
        return s.Announce(place, self.expression(), self._payload())

    def _payload(self) -> tuple[Expression, ...]:
        found = []
        while self.skip(","):
            found.append(self.expression())
        return tuple(found)

    def _assignment(self, place: Place) -> Statement:
        if self.ahead().text == "(":
            name = self.take().text
            return s.Do(place, s.Call(place, name, self._arguments()))
        target = self._postfix()
        if self.skip("="):
            return s.Assign(place, target, self.expression())
        if self.skip("+="):
            self.expect("(")
            value = self.expression()
            index = None
            if self.skip(","):
                index, value = value, self.expression()
            self.expect(")")
            return s.Insert(place, target, index, value)
        self.expect("-=")
        return s.Remove(place, target, self.expression())

    def _receive(self, place: Place) -> Statement:
        self.expect("{")
        cases = []
        while not self.skip("}"):
            start = self.expect("case").place
            events = [self.event_name()]
            while self.skip(","):
                events.append(self.event_name())
            self.expect(":")
            cases.append(s.Case(start, tuple(events), self.anonymous()))
        if not cases:
            raise self.text.error(place, "this receive has no case", "add: case eName: { … }")
        return s.Receive(place, tuple(cases))

    # -- expressions -------------------------------------------------------------------------------------------------------

    def _in_parentheses(self) -> Expression:
        self.expect("(")
        made = self.expression()
        self.expect(")")
        return made

    def expression(self, level: int = 0) -> Expression:
        if level == len(_LEVELS):
            return self._cast()
        left = self.expression(level + 1)
        while self.sees(*_LEVELS[level]):
            word = self.take()
            left = s.Binary(word.place, word.text, left, self.expression(level + 1))
        if self.sees("==>", "<==>"):
            self.refuse(f"the operator {self.next.text} (of the P verifier)", "use !, && and ||")
        return left

    def _cast(self) -> Expression:
        made = self._sum()
        while self.sees("as", "to"):
            word = self.take()
            made = s.Cast(word.place, made, word.text, self.type())
        return made

    def _sum(self) -> Expression:
        left = self._product()
        while self.sees("+", "-"):
            word = self.take()
            left = s.Binary(word.place, word.text, left, self._product())
        return left

    def _product(self) -> Expression:
        left = self._unary()
        while self.sees("*", "/", "%"):
            word = self.take()
            left = s.Binary(word.place, word.text, left, self._unary())
        return left

    def _unary(self) -> Expression:
        if self.sees("-", "!"):
            word = self.take()
            return s.Unary(word.place, word.text, self._unary())
        return self._postfix()

    def _postfix(self) -> Expression:
        made = self._primary()
        while True:
            place = self.place
            if self.skip("."):
                if self.next.kind == "number":
                    made = s.Item(place, made, self.number("a number"))
                else:
                    made = s.Field(place, made, self.name("the name of a field").name)
            elif self.skip("["):
                made = s.Index(place, made, self.expression())
                self.expect("]")
            else:
                return made

    def _arguments(self) -> tuple[Expression, ...]:
        self.expect("(")
        found = []
        while not self.sees(")"):
            found.append(self.expression())
            if not self.skip(","):
                break
        self.expect(")")
        return tuple(found)

    def _new(self, place: Place) -> s.New:
        return s.New(place, self.name("the name of a machine").name, self._arguments())

    def _primary(self) -> Expression:
        place, word = self.place, self.next
        if word.kind == "name":
            name = self.take().text
            return s.Call(place, name, self._arguments()) if self.sees("(") else s.Name(place, name)
        if word.kind == "number":
            self.take()
            if self.sees(".") and self.ahead().kind == "number":
                self.refuse("a number with a fraction", "use int", place)
            return s.Literal(place, int(word.text))
        if word.kind == "text":
            return s.Literal(place, self.string())
        match word.text:
            case "(":
                return self._tuple()
            case "true" | "false":
                return s.Literal(place, self.take().text == "true")
            case "null":
                self.take()
                return s.Literal(place, None)
            case "$$":
                self.refuse("the fair choice $$", "use $, and say in a spec what must happen in the end")
            case "$":
                self.take()
                return s.Choose(place, None)
            case "halt":
                return s.Name(self.take().place, "halt")
            case "this":
                return s.This(self.take().place)
            case "new":
                self.take()
                return self._new(place)
            case "keys" | "values" | "sizeof":
                self.take()
                return s.Builtin(place, word.text, self._in_parentheses())
            case "default":
                self.take()
                self.expect("(")
                type_ = self.type()
                self.expect(")")
                return s.Default(place, type_)
            case "choose":
                self.take()
                self.expect("(")
                of = None if self.sees(")") else self.expression()
                self.expect(")")
                return s.Choose(place, of)
            case "format":
                self.take()
                self.expect("(")
                text = self.string()
                arguments = self._payload()
                self.expect(")")
                return s.Format(place, text, arguments)
            case "float":
                self.refuse("the type float", "use int")
        raise self.wrong("an expression")

    def _tuple(self) -> Expression:
        """A tuple, a named tuple, or an expression in parentheses."""
        place = self.take().place
        if self.next.kind == "name" and self.ahead().text == "=":
            names, items = [], []
            while True:
                names.append(self.name("the name of a field").name)
                self.expect("=")
                items.append(self.expression())
                if not self.skip(",") or self.sees(")"):
                    break
            self.expect(")")
            return s.RecordOf(place, tuple(names), tuple(items))
        first = self.expression()
        if not self.sees(","):
            self.expect(")")
            return first
        items = [first]
        while self.skip(",") and not self.sees(")"):
            items.append(self.expression())
        self.expect(")")
        return s.TupleOf(place, tuple(items))
