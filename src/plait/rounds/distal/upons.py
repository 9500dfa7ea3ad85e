"""The handlers of upons.

An upon is a handler that takes its messages directly from the inbox if a smallest set of messages stands for all that
the mailbox may have. Otherwise the messages of its type have a mailbox: a handler that hears them one by one, and an
action for the upon (docs/reference/distal.md has the proof for both).
"""

from __future__ import annotations

from collections.abc import Iterator

from plait.rounds.distal.declarations import Declarations, Upon, snake
from plait.rounds.distal.expressions import tidy
from plait.rounds.distal.names import Received
from plait.rounds.distal.parser import Node
from plait.rounds.distal.scope import Scope
from plait.rounds.distal.statements import Statements, indent, marked
from plait.rounds.distal.value_types import INT, ValueType


class Upons(Statements):
    """The handlers of a text."""

    def __init__(self, declared: Declarations) -> None:
        super().__init__(declared)
        self.mailboxes: dict[str, list[Upon]] = {}
        """The classes of messages that have a mailbox, and their upons."""
        received = [upon for upon in declared.upons if upon.message is not None]
        boxed = {self.kind(upon) for upon in received if self._needs_mailbox(upon)}
        for upon in received:
            if self.kind(upon) in boxed:
                if upon.exactly:
                    raise self.text.error(
                        upon.node,
                        f"times exactly, but another upon {upon.message} reads the whole mailbox",
                        "write times … without exactly",
                    )
                self.mailboxes.setdefault(self.kind(upon), []).append(upon)

    def kind(self, upon: Upon) -> str:
        """The class of the messages of an upon."""
        return self.names.kind_of(str(upon.message), upon.round)

    def _boxed(self, upon: Upon) -> bool:
        return upon.message is not None and self.kind(upon) in self.mailboxes

    def _needs_mailbox(self, upon: Upon) -> bool:
        """Whether a smallest set of messages is not enough for this upon."""
        if upon.until or any(self._reads(part) for part in upon.conjuncts):
            return True
        if upon.times is None:
            return False
        same = [one for one in self.declared.upons if one.message is not None and self.kind(one) == self.kind(upon)]
        if sum(one.times is not None for one in same) > 1:
            return True
        return not upon.exactly and not self._selects_once(upon.body)

    def _reads(self, node: Node) -> list[bool]:
        """The places that read the mailbox, but not those of nested upons: for each, whether it only selects."""
        found: list[bool] = []
        for part in node.nodes():
            if part.data != "upon":
                found += self._reads(part)
        if node.data == "mailbox":
            found.append(False)
        if node.data == "select" and isinstance(node.children[2], Node) and node.children[2].data == "mailbox":
            found.remove(False)
            found.append(True)
        if node.data == "call":
            function = self.names.functions.get(str(node.token(0)))
            found += [function.selects] if function is not None and function.mailbox is not None else []
        return found

    def _selects_once(self, body: Node) -> bool:
        reads = self._reads(body)
        return len(reads) <= 1 and all(reads)

    # -- guards ------------------------------------------------------------------------------------------------------

    def _received(self, upon: Upon) -> Received | None:
        if upon.message is None:
            return None
        return Received(str(upon.message), upon.round, one=self._takes_one(upon), just_enough=not upon.exactly)

    def _takes_one(self, upon: Upon) -> bool:
        """Whether it takes a single message, m."""
        return upon.times is None and not upon.until and not any(self._reads(part) for part in upon.conjuncts)

    def _m(self, upon: Upon) -> dict[str, ValueType | None]:
        return {} if upon.message is None else {"m": ValueType(str(upon.message))}

    def _conditions(self, upon: Upon) -> list[tuple[str, str]]:
        """The guard, in its order: what is asked of the process (self), of each message (m), and of the mailbox (mbox)."""
        found = [("self", f"self.{upon.waits}")] if upon.outer is not None else []
        found += [("self", f"self.timeout_{upon.timer}")] if upon.timer is not None else []
        for part in upon.conjuncts:
            of_m, of_mbox = _mentions_m(part), bool(self._reads(part))
            if of_m and of_mbox:
                raise self.text.error(
                    part, "a condition is either about each message m or about the mailbox", "separate the two by ∧"
                )
            local = {} if of_mbox else self._m(upon)
            scope = Scope(self.names, self.text, received=self._received(upon), local=local)
            found.append(("mbox" if of_mbox else "m" if of_m else "self", scope.condition(part)))
        return found

    def _parts(self, upon: Upon) -> tuple[list[str], list[str], list[str]]:
        """The same, sorted. What a condition before it must permit to evaluate is evaluated with that condition."""
        mine: list[str] = []
        each: list[str] = []
        all_: list[str] = []
        for about, condition in self._conditions(upon):
            if about == "mbox" or (all_ and not upon.until):
                all_.append(condition)
            elif about == "m" or (each and not upon.until):
                each.append(condition)
            else:
                mine.append(condition)
        return mine, each, all_

    def _test(self, upon: Upon) -> str:
        """The guard for one message, or for none."""
        return _all([condition for about, condition in self._conditions(upon) if about != "mbox"])

    def _not_before(self, upon: Upon) -> list[str]:
        """That no earlier upon has its messages in the mailbox: the order in the text breaks ties."""
        earlier = self.declared.upons[: self.declared.upons.index(upon)]
        return [f"not self.{one.name}_enabled()" for one in earlier if self._boxed(one)]

    def _guard(self, upon: Upon) -> str:
        """The guard, and that no earlier upon takes the same message: the order in the text breaks ties."""
        parts = [self._test(upon)]
        for earlier in self.declared.upons[: self.declared.upons.index(upon)]:
            if upon.message is None and (earlier.message is not None or earlier.timer or upon.timer):
                continue  # a timeout that has a name happens by itself
            if upon.message is not None and (earlier.message is None or self.kind(earlier) != self.kind(upon)):
                continue
            test = self._test(earlier)
            if earlier.times is not None:  # a single message is not enough, unless its quorum is 1
                test = f"({self._quorum(earlier)}) <= 1 and ({test})"
            parts.append(f"not ({test})")
        return _all([*parts, *self._not_before(upon)])

    def _quorum(self, upon: Upon) -> str:
        """How many messages it needs: more than `times`, or exactly so many."""
        scope, times = Scope(self.names, self.text), upon.times
        if times is None:
            return "1"
        if upon.exactly:
            return tidy(scope.of(times, INT, "times"))
        if times.data == "binary" and times.children[1] == "/":
            one, other = scope.of(times.node(0), INT, "times"), scope.of(times.node(2), INT, "times")
            return tidy(f"({one}) // ({other}) + 1")
        return tidy(f"({scope.of(times, INT, 'times')}) + 1")

    def _more(self, upon: Upon) -> str:
        """The comparison of a number of messages with `times`."""
        if upon.times is None or (upon.times.data == "binary" and upon.times.children[1] == "/"):
            return f">= {self._quorum(upon)}"
        return f"> ({Scope(self.names, self.text).of(upon.times, INT, 'times')})"

    # -- handlers ----------------------------------------------------------------------------------------------------

    def handler(self, upon: Upon) -> Iterator[str]:
        """The handler of an upon."""
        yield ""
        words = self.text.of(upon.node).partition(" do ")[0]
        doc = f'    """Line {upon.node.line}: {words}."""'.replace("\\", "\\\\")
        if upon.message is None:
            yield from self._timeout(upon, doc)
        elif self._boxed(upon):
            yield from self._action(upon, doc)
        else:
            yield from self._direct(upon, doc)

    def _first(self, upon: Upon) -> list[str]:
        """What happens before the action: a nested upon happens once; its own nested upons wait anew."""
        flags = [upon.waits] if upon.outer is not None else []
        flags += [f"timeout_{upon.timer}"] if upon.timer is not None else []
        return [f"self.{flag} = False" for flag in (*flags, *(inner.waits for inner in upon.nested))]

    def _timeout(self, upon: Upon, doc: str) -> Iterator[str]:
        guard, inner, first = self._guard(upon), upon.body, self._first(upon)
        only = inner.node(0)
        scope = Scope(self.names, self.text, acts=True)
        if not first and len(inner.children) == 1 and only.data == "conditional" and len(only.children) == 2:
            # If the action would do nothing, there is no step.
            guard, inner = _all([guard, Scope(self.names, self.text).condition(only.node(0))]), only.node(1)
        yield from self._decorated("action", [f"when=lambda self: {tidy(guard)}"] if guard != "True" else [], upon)
        yield f"def {upon.name}(self) -> None:"
        yield doc
        yield from indent(first)
        yield from indent(self.block(inner, scope))

    def _direct(self, upon: Upon, doc: str) -> Iterator[str]:
        guard, received = self._guard(upon), self._received(upon)
        scope = Scope(self.names, self.text, received=received, acts=True, local=self._m(upon))
        body = list(self.block(upon.body, scope))
        options = [self.kind(upon)]
        many = upon.times is not None
        if many:
            options.append(f"quorum=lambda self: {self._quorum(upon)}")
            read = [field for field in scope.fields if field != self.names.round_field(str(upon.message))]
            if "sender" in read:
                raise self.text.error(
                    scope.fields["sender"], "with times, m.sender is ambiguous", "select a message from mbox"
                )
            options += [f"same={read}"] if read else []
        if guard != "True":
            options.append(f"where=lambda self, m: {tidy(guard)}")
        yield from self._decorated("on", options, upon)
        argument = f"messages: tuple[{self.kind(upon)}, ...]" if many else f"m: {self.kind(upon)}"
        yield f"def {upon.name}(self, {argument}) -> None:"
        yield doc
        assert received is not None
        if received.reads and not many:
            yield "    messages = (m,)"
        if many and scope.fields:
            yield "    m = messages[0]"
        yield from indent(self._first(upon))
        yield from indent(body)

    def _decorated(self, decorator: str, options: list[str], upon: Upon) -> Iterator[str]:
        line = f"@{decorator}({', '.join(options)})" if options else f"@{decorator}"
        wrapped = [f"@{decorator}(", *(f"    {option}," for option in options), ")"]
        yield from marked([line] if len(line) <= 112 or self.names.marked else wrapped, upon.node.line)

    # -- upons with a mailbox ----------------------------------------------------------------------------------------

    def _action(self, upon: Upon, doc: str) -> Iterator[str]:
        """An upon whose messages wait in the mailbox."""
        mine, each, all_ = self._parts(upon)
        box, heard = f"mbox_{snake(self.kind(upon))}", f"Heard{upon.message}"
        received = self._received(upon)
        local = {} if upon.until else self._m(upon)
        scope = Scope(self.names, self.text, received=received, acts=True, local=local)
        body = list(self.block(upon.body, scope))
        one, fixed = self._takes_one(upon), _fixed(upon)
        for field, place in scope.fields.items():
            if not one and field not in fixed and field != self.names.round_field(str(upon.message)):
                raise self.text.error(
                    place,
                    f"m.{field} may differ in the messages of this upon",
                    f"compare it in the guard (m.{field} = …), or take it from mbox",
                )
        enough = f"len({{m.sender for m in messages}}) {self._more(upon)}"
        line = upon.node.line
        yield from marked([f"def {upon.name}_messages(self) -> tuple[{heard}, ...]:"], line)
        yield '    """Its messages in the mailbox."""'
        yield f"    return tuple(m for m in self.{box} if {tidy(_all(each))})" if each else f"    return self.{box}"
        yield ""
        yield from marked([f"def {upon.name}_enabled(self) -> bool:"], line)
        yield '    """Whether enough messages are in the mailbox."""'
        yield f"    messages = self.{upon.name}_messages()"
        yield f"    return {tidy(_all([*mine, enough, *all_]))}"
        yield ""
        ready = mine if upon.until else [f"self.{upon.name}_enabled()"]
        guard = _all([*ready, *self._not_before(upon)])
        yield from self._decorated("action", [f"when=lambda self: {tidy(guard)}"] if guard != "True" else [], upon)
        yield f"def {upon.name}(self) -> None:"
        yield doc
        yield f"    messages = self.{upon.name}_messages()"
        if one:
            yield "    m = self.choose(messages)"
            yield f"    self.{box} = tuple(x for i, x in enumerate(self.{box}) if i != self.{box}.index(m))"
            assert received is not None
            yield from ["    messages = (m,)"] if received.reads else []
        else:
            yield f"    self.{box} = tuple(m for m in self.{box} if m not in messages)"
            yield from ["    m = messages[0]"] if scope.fields else []
        yield from indent(self._first(upon))
        yield from indent(body)

    def hearing(self, kind: str, upons: list[Upon]) -> Iterator[str]:
        """The handler that puts a message into the mailbox."""
        tests = [self._test(upon) for upon in upons]
        box, message = f"mbox_{snake(kind)}", str(upons[0].message)
        options = [kind]
        if "True" not in tests:
            guard = tests[0] if len(tests) == 1 else " or ".join(f"({test})" for test in tests)
            options.append(f"where=lambda self, m: {tidy(guard)}")
        yield ""
        yield from self._decorated("on", options, upons[0])
        yield f"def hear_{snake(kind)}(self, m: {kind}) -> None:"
        yield f'    """Put {kind} into the mailbox."""'
        fields = "".join(f", m.{field}" for field in self.names.messages[message])
        yield f"    self.{box} = tuple(sorted((*self.{box}, Heard{message}(m.sender{fields})), key=repr))"

    def heard(self) -> Iterator[str]:
        """The classes of messages in mailboxes."""
        for message in dict.fromkeys(str(upon.message) for upons in self.mailboxes.values() for upon in upons):
            yield from ("", "", f"class Heard{message}(NamedTuple):", f'    """{message} in the mailbox."""', "")
            yield "    sender: Pid"
            yield from (f"    {field}: {kind.python}" for field, kind in self.names.messages[message].items())


def _all(parts: list[str]) -> str:
    """The conjunction of conditions."""
    real = [part for part in parts if part != "True"]
    return real[0] if len(real) == 1 else " and ".join(f"({part})" for part in real) or "True"


def _mentions_m(node: Node) -> bool:
    """Whether a condition is about the message m; in mbox(M, …), m is another one."""
    if node.data == "mailbox":
        return False
    if node.data == "name":
        return node.children[0] == "m"
    return any(_mentions_m(part) for part in node.nodes())


def _is_field_of_m(node: Node) -> bool:
    return node.data == "access" and node.node(0).data == "name" and node.node(0).children[0] == "m"


def _fixed(upon: Upon) -> set[str]:
    """The fields that are the same in all messages of an upon: m.f = e."""
    found = set()
    for part in upon.conjuncts:
        if part.data == "equal":
            for one, other in ((part.node(0), part.node(1)), (part.node(1), part.node(0))):
                if _is_field_of_m(one) and not _mentions_m(other):
                    found.add(str(one.token(1)))
    return found
