"""The native engine (rust/): canonical content, and searches over lazily tabulated automata."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar, final

from plait.check.options import Options
from plait.check.tabulate.native_shape import NativeSystem

_Result = TypeVar("_Result")
_StepOutcome = tuple[
    list[bytes | None],
    list[tuple[int, bytes]],
    list[bytes],
    list[tuple[int, bytes]],
    list[tuple[int, bool]],
    list[bytes],
    bool,
]
"""Fields (None: unchanged), sends, events, spawns, expected slots, choices, and whether no slot was free."""

__all__ = [
    "BmcProgram",
    "BmcReport",
    "Codec",
    "ComparisonReport",
    "ConformReport",
    "Counters",
    "Engine",
    "EpaLines",
    "EpaTrace",
    "Failure",
    "Finding",
    "LivenessReport",
    "Machine",
    "ReversibilityReport",
    "RoundsReport",
    "SearchReport",
    "SetOrder",
    "Store",
    "ThreadDifference",
    "Transition",
    "UnorderedPair",
    "_test_hooks",
    "conform",
    "epa_operations",
    "epa_reversible",
    "epa_summary",
    "search_rounds",
]

_BmcRun = tuple[list[int], list[tuple[int, list[int]]]]
"""The initial values of the cells, and the process and the inputs of each step."""
_BmcInstruction = tuple[int, list[int], bool, int | None, bool, bool]
"""Where its code begins, the domains of its inputs; whether it waits, where the code of the owner of its lock begins;
whether it synchronizes, is inside an atomic section."""

@final
class BmcProgram:
    """A program of `plait bmc` in flat form."""

    def __new__(
        cls,
        *,
        ops: Sequence[tuple[str, int, int]],
        variables: Sequence[tuple[int, int, int, bool]],
        processes: Sequence[tuple[list[_BmcInstruction], list[list[int]], bool, bool]],
        domains: Sequence[list[int] | None],
        initial: Sequence[tuple[bool, int]],
        large: Sequence[int],
        conditions: Sequence[int],
        properties: Sequence[int],
        bounds: int | None,
    ) -> BmcProgram:
        """Check the program. ValueError: it does not fit together.

        `ops`: name and two operands of each operation. `variables`: cells, lowest and highest known value, and whether
        accesses can race. `processes`: instructions, dead cells by location, and whether it is spawned, required.
        `initial`: whether a cell is free, and its domain or value. `conditions` and `properties`: where their code
        begins. `bounds`: the cell of the flag of indices out of range.
        """

    def enumerate(
        self,
        *,
        deadlock: bool = False,
        races: bool = False,
        first: bool = False,
        seconds: float | None = None,
        states: int | None = None,
        memory: int | None = None,
        depth: int | None = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> BmcReport:
        """Enumerate all states, breadth first."""

@final
class BmcReport:
    """The results of an enumeration."""

    @property
    def states(self) -> int:
        """The number of states."""

    @property
    def transitions(self) -> int:
        """The number of executed steps."""

    @property
    def depth(self) -> int:
        """All states within this number of steps were seen."""

    @property
    def ended(self) -> int:
        """The number of states in which all processes have ended."""

    @property
    def stopped(self) -> str | None:
        """What stopped the search. None: all states were seen."""

    @property
    def found(self) -> list[_BmcRun | None]:
        """A run to each property."""

    @property
    def deadlock(self) -> _BmcRun | None:
        """A run to a deadlock."""

    @property
    def race(self) -> tuple[_BmcRun, int, int] | None:
        """A run to a data race, and its two processes."""

    @property
    def bytes(self) -> int:
        """The memory of the states."""

@final
class Codec:
    """Canonical content of the values of one system: the same bytes for equal values, and fresh values from the bytes."""

    def __new__(cls, pid: type) -> Codec: ...
    def encode(self, value: object) -> bytes:
        """The canonical bytes of a value, whatever the order of sets and dicts or the hash seed."""

    def known(self) -> list[str]:
        """The names of the classes of values so far: module and qualified name."""

    def learn(self, class_: type, /) -> None:
        """Make a class known, so that its values can be decoded before one of them was encoded."""

    def refer(self, role: str, index: int, object_: object, /) -> None:
        """Decode the id of a shared object to this object."""

    @staticmethod
    def joined(parts: Sequence[bytes], /) -> bytes:
        """A local state from its parts, as `fields` returns them."""

    @staticmethod
    def fields(local: bytes) -> list[bytes]:
        """The parts of a local state: its status, and the content of each field."""

    def decode(self, content: bytes) -> Any:
        """A fresh value."""

@final
class Machine:
    """The virtual machine, for tests. A question that it cannot answer raises LookupError with the reason.

    States are given by the canonical bytes of their fields, messages by the position of the sender and their bytes.
    """

    def __new__(cls, program: bytes, *, fifo: bool = True) -> Machine:
        """`fifo`: the order of sends matters."""

    def call(
        self, function: int, arguments: Sequence[bytes], order: int = 0
    ) -> tuple[bytes | None, list[bytes], str | None]:
        """Call a function: its result, the arguments afterwards, and why the machine gave up (or None)."""

    def step(
        self, process: int, handler: int, fields: Sequence[bytes], messages: Sequence[tuple[int, bytes]]
    ) -> tuple[list[_StepOutcome], int]:
        """The outcomes of a step, and the fields that it read, as bits."""

    def guard(
        self, process: int, handler: int, fields: Sequence[bytes], message: tuple[int, bytes] | None = None
    ) -> tuple[bool, int]:
        """The value of a guard, and the fields that it read, as bits."""

    def accepts(
        self, process: int, handler: int, fields: Sequence[bytes], messages: Sequence[tuple[int, bytes]]
    ) -> tuple[bool, int]:
        """The value of the guard over a set of messages, and the fields that it read, as bits."""

    def quorum(self, process: int, handler: int, fields: Sequence[bytes]) -> int:
        """The number of messages that a handler takes."""

    def observe(self, monitor: int, fields: Sequence[bytes], by: int, event: bytes) -> list[bytes | None]:
        """The fields of a monitor after an event (None: unchanged)."""

    def property(
        self,
        property: int,
        locals: Sequence[tuple[int, Sequence[bytes]]],
        inboxes: Sequence[Sequence[tuple[int, bytes]]],
        monitors: Sequence[Sequence[bytes]],
        part: int | None = None,
    ) -> tuple[bool, list[tuple[str, int, int]]]:
        """The value of a property (or of one of its parts) in a state, and what it read."""

    def value(
        self,
        property: int,
        locals: Sequence[tuple[int, Sequence[bytes]]],
        inboxes: Sequence[Sequence[tuple[int, bytes]]],
        monitors: Sequence[Sequence[bytes]],
    ) -> tuple[bytes, list[tuple[str, int, int]]]:
        """The canonical bytes of an expression over a state, and what it read.

        The expression is a property of the program, but it need not be true or false.
        """

@final
class SetOrder:
    """Changes the order of sets while a function is called. On other threads they iterate as usual."""

    def __new__(cls, made: tuple[type[set[Any]], type[frozenset[Any]]]) -> SetOrder: ...
    def watched(self, function: Callable[..., _Result], /, *arguments: Any) -> _Result:
        """Call a function in the usual order of sets."""

    @property
    def largest(self) -> int:
        """The size of the largest set that the last watched call of this thread iterated; 0 if no order can be seen."""

    def permuted(self, turn: int, function: Callable[..., _Result], /, *arguments: Any) -> _Result:
        """Call a function while sets iterate in another order: backwards, beginning with another element each turn."""

@final
class Store:
    """The interned component values of one engine, by id."""

    def local(self, id: int, /) -> bytes: ...
    def local_with_cells(self, id: int, cells: Sequence[int], /) -> bytes:
        """A local state followed by the contents of cells: what a step depends on."""

    def monitor(self, id: int, /) -> bytes: ...
    def inbox(self, id: int, /) -> list[tuple[int, int, bytes]]:
        """Pending messages as (message id, sender, content)."""
    def sample(self) -> list[tuple[int, int, int, int]]:
        """A sample of the local states with their inboxes, in the order in which they were met.

        Each is its number, the process, the local state and the inbox.
        """

@final
class Transition:
    """One transition out of a state: who did what, and the state after it."""

    @property
    def kind(self) -> str: ...
    @property
    def moves(self) -> bool:
        """Whether it is a step of a process, or a recovery that is assumed to happen."""

    @property
    def process(self) -> int: ...
    @property
    def handler(self) -> int | None: ...
    @property
    def consumed(self) -> list[tuple[int, int, bytes]]: ...
    @property
    def sends(self) -> list[tuple[int, int, bytes]]:
        """(receiver, message id, content) in the order sent."""
    @property
    def events(self) -> list[bytes]: ...
    @property
    def choices(self) -> list[bytes]: ...
    @property
    def spawned(self) -> list[int]: ...
    @property
    def failure(self) -> Failure | None: ...
    @property
    def state(self) -> list[int]: ...
    @property
    def fingerprint(self) -> int: ...

@final
class Failure:
    """User code that failed: an assertion or an exception (violations), or a mistake of the model that shows only in some \
states."""

    def __new__(
        cls, violation: bool, message: str, hint: str | None = None, exception: bytes | None = None
    ) -> Failure: ...
    @property
    def violation(self) -> bool: ...
    @property
    def message(self) -> str: ...
    @property
    def hint(self) -> str | None: ...
    @property
    def exception(self) -> bytes | None: ...

@final
class Counters:
    """The counters of a search at one moment: while it runs, or when it has ended."""

    @property
    def states(self) -> int: ...
    @property
    def cut_states(self) -> int:
        """States outside of the bound of the search, which are not among the states."""
    @property
    def transitions(self) -> int: ...
    @property
    def terminal_states(self) -> int: ...
    @property
    def depth(self) -> int: ...
    @property
    def frontier(self) -> int:
        """States that wait to be expanded."""
    @property
    def walks(self) -> int: ...
    @property
    def stack_operations(self) -> int: ...
    @property
    def stack_operations_saved(self) -> int: ...
    @property
    def seconds(self) -> float: ...
    @property
    def python_calls(self) -> int: ...
    @property
    def native_answers(self) -> int:
        """Questions that the virtual machine has answered."""
    @property
    def native_compared(self) -> int:
        """Those that were compared with answers of Python, which `python_calls` counts, too."""
    @property
    def property_keys(self) -> int:
        """How many values of properties were entered by a key of 96 bits, which two of them may share."""
    @property
    def fingerprint_bits(self) -> int:
        """How many bits the fingerprints have."""
    @property
    def local_states(self) -> int:
        """Distinct local states, with those of monitors."""
    @property
    def local_bytes(self) -> int:
        """The memory that local states take, with the contents of their fields."""
    @property
    def table_bytes(self) -> int: ...
    @property
    def memory_bytes(self) -> int: ...

@final
class Finding:
    """A state in which a property is violated, or an example that was asked for."""

    @property
    def number(self) -> int:
        """Of the property; one past the last is a failed assertion."""
    @property
    def fingerprint(self) -> int: ...
    @property
    def depth(self) -> int: ...
    @property
    def run(self) -> list[int] | None:
        """Fingerprints along the run to it, if the search knows them; else the visited set does."""

@final
class RoundsReport:
    """What a search between rounds has found."""

    @property
    def unsupported(self) -> str | None:
        """Why nothing was decided: the step-by-step program must be searched instead."""
    @property
    def search(self) -> SearchReport: ...
    @property
    def runs(
        self,
    ) -> dict[int, list[tuple[int, int, list[tuple[int, bytes]], list[bytes], tuple[int, int], bool]]]:
        """By property, the steps of a run that decides it.

        A step is its process, its handler, the consumed messages (sender and content), its choices, its place in the order
        of rounds, and whether it creates processes.
        """
    @property
    def beyond(self) -> bool:
        """Whether the protocol goes beyond the last phase."""
    @property
    def suspects(self) -> bool | None:
        """Whether a condition of section 4.2 may be broken; None if the search did not come to its end."""
    @property
    def ran(self) -> list[tuple[int, int]]:
        """Processes and handlers that ran."""
    @property
    def births(self) -> list[tuple[int, int]]:
        """Processes, and the slots of processes that they create."""
    @property
    def numbers_matter(self) -> bool | None:
        """Whether the numbers of created processes may matter; None if the search did not come to its end."""
    @property
    def combinations(self) -> list[list[int]]:
        """The local states of all states that were met, if they were asked for."""

def search_rounds(
    engine: Engine,
    options: Options,
    place_of: Callable[[int, bytes], int],
    end: int,
    *,
    exchanges: Sequence[tuple[Sequence[int], Sequence[tuple[bytes, Sequence[int]]]]] = ...,
    collect: bool = False,
    progress: Callable[[Counters], object] | None = None,
) -> RoundsReport: ...

@final
class SearchReport:
    """What a search met, and what ended it."""

    @property
    def counters(self) -> Counters: ...
    @property
    def bound(self) -> str | None:
        """The limit that ended the search, by name."""
    @property
    def findings(self) -> list[Finding]: ...
    @property
    def passes(self) -> int: ...
    @property
    def exits(self) -> list[tuple[int | None, int | None, int]]:
        """Where steps led out of the bound of the search: process, handler, and the number of states.

        A fault has no handler. Initial states outside of the bound have neither.
        """
    @property
    def given_up(self) -> str | None:
        """Why partial-order reduction was given up."""
    @property
    def late(self) -> BaseException | None:
        """What user code raised when it was interrupted, because it was still running after the search had ended."""

_Fairness = tuple[str, Sequence[tuple[int, int]], tuple[bytes, ...] | None]

@final
class LivenessReport:
    """What a search for fair runs met."""

    @property
    def states(self) -> SearchReport: ...
    @property
    def lassos(self) -> list[tuple[list[int], list[Transition], list[Transition]] | None]:
        """Per automaton a fair run that it accepts: the initial state, the steps to a loop, and those of the loop."""
    @property
    def refined(self) -> list[tuple[str, tuple[list[int], list[Transition], list[Transition]]] | None]:
        """Per refinement how a run violates it (initial, step or stuttering), and its steps, as for automata."""
    @property
    def stays(self) -> bool:
        """With partial-order reduction: a step leaves its process and its pending messages as they are."""

    @property
    def silent(self) -> bool:
        """A step changed nothing that the engine sees: whether it can repeat for ever is not known."""

@final
class Engine:
    """A System's transition relation and the searches over it.

    It asks a `plait.check.tabulate.tabulation.Tabulation` whatever it does not know yet.
    """

    def __new__(
        cls,
        tabulation: object,
        *,
        processes: int,
        cells: int,
        handlers: Sequence[int],
        monitors: int,
        network: str,
        capacity: int | None,
        drops: bool,
        lossy: bool,
        losses: int | None,
        duplications: int | None,
        faults: Sequence[tuple[Sequence[int], int, bool]],
        returning: Sequence[bool],
        properties: Sequence[str],
        history: bool,
        symmetry: Sequence[Sequence[int]],
        rotations: Sequence[Sequence[int]],
        pids: Sequence[tuple[str, int]],
        clocks: tuple[Sequence[Sequence[tuple[int, bool]]], Sequence[Sequence[int]], int] | None = None,
        native: NativeSystem | None = None,
    ) -> Engine: ...
    @property
    def store(self) -> Store: ...
    @property
    def python_calls(self) -> int: ...
    @property
    def native_answers(self) -> int:
        """How many questions ran natively."""
    @property
    def native_compared(self) -> int:
        """How many answers of native functions were compared with those of Python."""
    @property
    def native_left(self) -> int:
        """How many questions native functions left to Python."""
    @property
    def native_reasons(self) -> list[str]:
        """Why functions that can run natively left single questions to Python."""
    @property
    def local_states(self) -> tuple[int, int]:
        """How many distinct local states (with those of monitors) there are, and the memory that they take."""
    @property
    def images(self) -> int:
        """How many images of a state its fingerprint is the least of, at most; 1 without symmetry."""
    @property
    def symmetry_sampled(self) -> bool:
        """The audit of a declared symmetry left images out, because there are too many."""
    def initial(self) -> list[tuple[list[int], int]]:
        """The distinct initial states, each with the number of the first combination of choices that leads to it."""
    def begin_with(self, state: Sequence[int], /) -> None:
        """Have searches begin with this state from now on, as if it were the only initial one."""
    def successors(self, state: Sequence[int], /) -> list[Transition]: ...
    def components(self, state: Sequence[int], /) -> tuple[list[int], list[int], list[int], list[int]]:
        """Of a state: local ids, inbox ids, monitor ids, budgets."""
    def leads(self, state: Sequence[int], /) -> list[int]:
        """Of a state: by how many ticks each process is ahead of the slowest one."""
    def fingerprint(self, state: Sequence[int], /) -> int: ...
    def search(
        self,
        options: Options,
        *,
        por: bool = False,
        dpor: bool = False,
        progress: Callable[[Counters], object] | None = None,
    ) -> SearchReport:
        """Search for states that decide properties. `por` and `dpor` are the partial-order reductions that apply."""
    def liveness(
        self,
        options: Options,
        *,
        predicates: Sequence[int],
        automata: Sequence[tuple[Any, Sequence[_Fairness]]],
        refinements: Sequence[
            tuple[object, Sequence[tuple[str, Sequence[tuple[int, int]], tuple[bytes, ...] | None]]]
        ] = ...,
        safety: bool = False,
        por: bool = False,
        progress: Callable[[Counters], object] | None = None,
    ) -> LivenessReport:
        """Search for fair runs, one per automaton over the predicates.

        With `safety`, properties of states are decided on the way, and a violation ends the search. Then check refinements:
        each is a `plait.check.live.refinement.Refining`, with the fairness of the System.
        """
    def projected(
        self,
        options: Options,
        *,
        places: Sequence[tuple[str, int, int]],
        always: Sequence[int],
        most: int,
        numbered: Callable[[list[list[int]], bool], tuple[list[tuple[str, int, int]], list[int | None]]] | None = None,
        progress: Callable[[Counters], object] | None = None,
    ) -> tuple[
        list[tuple[list[int], list[Transition], int, bool, int, int]],
        list[tuple[int, int, int, str, int | None, int]],
        bool,
        SearchReport,
    ]:
        """The graph of all states, collapsed: states that agree on the places are one node.

        A place is "field" (a process or cell, and its status, 0, or a field, counted from 1), "inbox" (a process) or
        "monitor" (and a field, counted from 0). A node has the initial state and the steps of a shortest run to it, the
        number of its states, whether an initial one is among them, and how many are terminal and how many violating. An edge
        has two nodes, the process, the kind and the handler of a step, and the number of transitions. The third result:
        there are more nodes than `most`.

        `numbered` gets a state of each node, and whether there are more nodes. It answers with more places to tell nodes
        apart, or with a number for each node: those with the same number become one, those without a number are left out.
        """
    def can(
        self,
        options: Options,
        process: int,
        handler: int | None,
        *,
        progress: Callable[[Counters], object] | None = None,
    ) -> tuple[tuple[list[int], list[Transition]] | None, SearchReport]:
        """A shortest run that ends with a step of a process (by this handler, if one is given), or None."""
    def ways(
        self, options: Options, state: Sequence[int], *, progress: Callable[[Counters], object] | None = None
    ) -> tuple[tuple[int, int, int | None] | None, SearchReport]:
        """How many runs lead to a state: the length of the shortest ones, their number, and that of all runs.

        The last is None if there are infinitely many, because a loop is on the way. The first result is None if no run of
        the search leads there.
        """
    def path(self, fingerprint: int, run: Sequence[int] | None = None) -> tuple[list[int], list[Transition]] | None:
        """The run to a state that the last search visited; along these fingerprints, if they are given.

        It is the initial state and the transitions.
        """

    def stubborn(self, state: Sequence[int], /) -> list[int]:
        """The processes whose transitions partial-order reduction takes here, as in the last search; all without it."""

    def fingerprints(self) -> list[int]:
        """Fingerprints of all states visited by the last search."""

    def _terminals(self) -> list[int]:
        """For tests: fingerprints of the terminal states that the last search met, if `_test_hooks` has them collected."""

@final
class ConformReport:
    """What a search for a run that explains a log has found."""

    @property
    def conforms(self) -> bool | None:
        """A run that explains all was found; false: there is none. None: a limit ended the search."""
    @property
    def bound(self) -> str | None:
        """What ended the search: 'states', 'timeout' or 'interrupted'."""
    @property
    def explained(self) -> int:
        """How many events the run explains."""
    @property
    def states(self) -> int: ...
    @property
    def transitions(self) -> int: ...
    @property
    def initial(self) -> int:
        """The number of the initial state of the run."""
    @property
    def steps(self) -> list[tuple[int, str, int | None, int]]:
        """The process, the kind, the handler, and how many events the step explains."""
    @property
    def places(self) -> list[int | None]:
        """By event, after how many steps it is explained."""
    @property
    def tail(self) -> list[tuple[int, list[int]]]:
        """The last states of the run: after how many steps, and the components."""
    @property
    def decided(self) -> list[tuple[int | None, bool, str | None, int]]:
        """Properties (None: a monitor), whether they raised an exception, what they said, and after how many steps."""
    @property
    def stuck(self) -> list[tuple[list[int], list[int]]]:
        """The ends of the longest explained beginnings: by process how many events are explained, and the components."""

_Item = tuple[int | None, Sequence[tuple[int, bytes]] | None, int | None]
_LogEvent = tuple[
    int,
    int | None,
    Sequence[_Item],
    Sequence[_Item],
    Sequence[tuple[int, Sequence[bytes]]],
    Sequence[tuple[int, int]],
    int,
]

def conform(
    engine: Engine,
    events: Sequence[Sequence[_LogEvent]],
    complete: Sequence[tuple[Sequence[bool], bool, bool, bool]],
    matches: Callable[[int, bytes], bool],
    *,
    max_states: int,
    open: bool = False,
    timeout: float | None = None,
    keep: int = 0,
    reduced: bool = True,
) -> ConformReport:
    """Search for a run that explains a log: events by process, and what they leave out nowhere.

    `matches` says whether a pattern allows a message. With `open`, the log of each process may end early. The last `keep`
    states of the run are in the report. `reduced` is for tests: without it, the steps of all processes are tried in every
    state.
    """

def _test_hooks(
    *,
    leave_out: Sequence[str] = ...,
    collect_terminals: bool = False,
    hash_bits: int | None = None,
    narrow: int | None = None,
) -> None:
    """For tests: rules that later searches of this process leave out, whether they collect terminal states, how many bits
    narrow hashes keep, and up to how many states fingerprints stay narrow.
    """

_Word = tuple[str, int, int]
_Step = tuple[int, int, int, int, int, bool, int | None]
_Access = tuple[int, int, int, bool, int | None]

@final
class UnorderedPair:
    """Two dependent accesses, the first observed first, that no edge orders."""

    @property
    def object(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def first(self) -> _Access:
        """Thread, site, event, whether it writes, and the value."""
    @property
    def second(self) -> _Access: ...
    @property
    def early(self) -> int | None:
        """The second access can come first iff event `late` can precede event `early`. None: nothing follows the first."""
    @property
    def late(self) -> int: ...
    @property
    def schedule(self) -> list[int] | None:
        """An order of the synchronisation events that reverses the pair; None if this was not decided."""

@final
class ReversibilityReport:
    """Whether dependent events of a trace can be reversed, and what is needed to decide open pairs."""

    @property
    def rounds(self) -> int: ...
    @property
    def dependencies(self) -> int:
        """Pairs of dependent accesses of different threads that were compared."""
    @property
    def overflow(self) -> bool:
        """More unordered pairs were found than are kept."""
    @property
    def loose(self) -> list[int]:
        """Threads that need not have ended when the program exits, or have not."""
    @property
    def warnings(self) -> list[str]: ...
    @property
    def nodes(self) -> list[tuple[int, int, int, int]]:
        """Thread, operation, object and site of each synchronisation event, as observed."""
    @property
    def before(self) -> list[list[int]]:
        """Per synchronisation event the events that precede it, besides program order."""
    @property
    def sections(self) -> list[tuple[int, int, bool, int, int | None]]:
        """Lock, thread, whether it is exclusive, and the events that acquire and release it."""
    @property
    def pairs(self) -> list[UnorderedPair]: ...

@final
class ThreadDifference:
    """How a thread of the faulty run differs from the thread of the same name."""

    @property
    def name(self) -> str: ...
    @property
    def golden(self) -> int | None: ...
    @property
    def faulty(self) -> int | None: ...
    @property
    def first(self) -> tuple[int | None, int | None] | None:
        """The first events that differ; one of the two is missing where a trace ended."""
    @property
    def parted(self) -> tuple[int, int] | None:
        """The first place where the thread took another path."""
    @property
    def changed(self) -> int: ...
    @property
    def missing(self) -> int: ...
    @property
    def extra(self) -> int: ...
    @property
    def samples(self) -> list[tuple[int, int]]:
        """The golden event next to a changed one, for the first few."""

@final
class ComparisonReport:
    """The differences of two traces, and how the error spread."""

    @property
    def equal(self) -> bool: ...
    @property
    def threads(self) -> list[ThreadDifference]: ...
    @property
    def nodes(self) -> list[tuple[int, int, int, bool, int]]:
        """Thread, site, number of events and whether the fault struck there, in the order of the first deviation."""
    @property
    def edges(self) -> list[tuple[tuple[int, int], tuple[int, int], str, int | None, int]]:
        """From, to, how, through which object, and how often."""

@final
class EpaTrace:
    """A recorded execution of a threaded program (see docs/reference/epa.md), read and sanitized."""

    def __new__(
        cls,
        folder: Path,
        sites: Sequence[tuple[int, int, Sequence[int], int, int]],
        program: tuple[Sequence[Any], Sequence[Any], Sequence[Any]],
    ) -> EpaTrace: ...
    @property
    def records(self) -> int: ...
    @property
    def object_count(self) -> int: ...
    @property
    def shared_objects(self) -> int: ...
    def threads(self) -> list[tuple[str, int | None, int, bool, int]]:
        """Name, parent, number of events, whether it ended, and the number of its file, of each thread."""
    def object(self, number: int) -> tuple[str, int | None, int, int, int, int, int, int, int]:
        """Kind, owner, site, nth, base, size, local index, begin and end of validity."""
    def modules(self) -> list[str]: ...
    def events(self, thread: int, from_: int, to: int) -> list[tuple[int, int, bool, _Word, _Word]]:
        """Site, kind, whether it writes, and the two words of each event."""
    def runs(self) -> list[tuple[int, int, int, int]]:
        """Thread, number of events, synchronisation (0: none) and its object, in the order of the whole run."""
    def faults(self) -> list[tuple[int, int, int, int, int]]:
        """Thread, place, site, value before and after."""
    def object_at(self, address: int) -> int | None:
        """The last global or heap object that an address lay in."""
    def executions(self) -> list[tuple[int, int, int, int]]:
        """Thread, site, values made there, calls and stores made there."""
    def address_arithmetic(self) -> list[int]:
        """Sites that compute with the place of an object, which is another one in every run."""

    def digest(self) -> int: ...
    def suspects(self) -> list[tuple[str, int, int | None]]:
        """Sites with reasons for doubt about local determinism, and the object that a call by pointer calls."""

    def reversible(
        self, *, benign_same_value: bool = False, limit: int = 5, ignored: Sequence[int] = ..., replay: bool = False
    ) -> ReversibilityReport: ...
    def turns(self) -> list[tuple[int, int, int, int]]:
        """Thread, operation, site and detail of the operations that a replayed run performs in the same order."""
    def events_before(self, number: int) -> list[int]:
        """Per thread, a number of events that certainly happened before the global counter had this value."""
    def steps(self, *, replay: bool = False) -> list[_Step]: ...
    def label(
        self, sites: Sequence[tuple[str, str, str, str, int, Sequence[str], str]], globals: Sequence[str]
    ) -> None:
        """Give the texts of sites and globals, once, before anything is shown."""
    def object_name(self, number: int) -> str: ...
    def word_text(self, word: _Word, class_: str) -> str:
        """A word of an event as text, for a class of values."""
    def event_text(self, row: tuple[int, int, bool, _Word, _Word]) -> str: ...
    def object_lines(self, from_: int, to: int) -> str:
        """The definitions of memory objects, one per line."""
    def compare(self, faulty: EpaTrace) -> ComparisonReport: ...
    def outcome(self, faulty: EpaTrace) -> tuple[bool, bool]:
        """Whether the traces are equal, and whether more deviates than the values that faults changed."""

@final
class EpaLines:
    """The events of a trace in the order of the whole run, as text. It keeps its position."""

    def __new__(cls, trace: EpaTrace, thread: int | None = None) -> EpaLines: ...
    def take(self, count: int) -> str:
        """At most so many of the next lines; an empty text at the end."""

def epa_summary(
    folder: Path,
    sites: Sequence[tuple[int, int, Sequence[int], int, int]],
    program: tuple[Sequence[Any], Sequence[Any], Sequence[Any]],
) -> tuple[int, list[tuple[str, bool, int]], bool]:
    """The number of records, the threads (name, whether it ended, number of its file), and whether a fault struck."""

def epa_reversible(
    steps: Sequence[_Step], *, benign_same_value: bool = False, limit: int = 5, replay: bool = False
) -> ReversibilityReport:
    """Decide reversibility of steps."""

def epa_operations() -> list[tuple[int, str]]:
    """Names of what synchronises, by number."""
