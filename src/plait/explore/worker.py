"""The process that has the model: `python -m plait.explore.worker`.

It reads questions from stdin and writes answers to what was stdout: each a head (`HEAD`) and JSON. The first question
names the model. What the model prints goes to stderr. The process ends when stdin is closed: when the server ends, too.
"""

from __future__ import annotations

import importlib
import os
import struct
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from plait.kernel.deadline import Deadline, OutOfTimeError
from plait.kernel.errors import PlaitError, UsageError

if TYPE_CHECKING:
    from plait.model.system import System

HEAD = struct.Struct(">HI")
"""The status of an answer, as in HTTP (`PROGRESS`: more follows), and the number of bytes that follow."""
PROGRESS = 100
DONE = 200
BAD_REQUEST, NO_MODEL, REFUSED = 400, 409, 422
SLACK = 1.25
"""A search stops itself at its limit of memory. A process that uses this much more is ended."""


class Start(msgspec.Struct):
    """The first question: which model."""

    target: str
    parameters: dict[str, Any]
    reader: str | None
    """A module that reads files of other languages."""
    report: str
    """The file in which to report the files of the model."""
    folder: str
    memory: int = 2**31
    """Bytes that the process may use. More are refused by the system."""
    once: bool = False
    """For one question that may take long: the process also ends in the middle of it when stdin is closed."""
    parse: bool = True
    """Whether parameters are text, as on the command line, not values."""


class Question(msgspec.Struct):
    """A question: its name, its body, and how long the answer may take."""

    name: str
    body: Any = None
    seconds: float | None = None
    memory: int = 2**31


class Answers:
    """Answers questions about one model. `tell` gets the progress of searches."""

    def __init__(
        self, target: str, load: Callable[[], System], tell: Callable[[dict[str, Any]], None], *, once: bool = False
    ) -> None:
        self.target, self.tell = target, tell
        self.error: PlaitError | None = None
        self.walker: Any = None
        try:
            from plait.explore.walk import Walker

            self.system = load()
            if not once:
                self.walker = Walker(self.system)
                self.walker.model()
        except PlaitError as error:
            self.error = error

    def answer(self, question: Question) -> tuple[int, Any]:
        """The status and the content of an answer."""
        if self.error is not None:
            if question.name == "model":
                from plait.explore.walk import ErrorText, ModelText

                text = ErrorText(self.error.message, self.error.hint)
                return DONE, ModelText(self.target, error=text)
            return NO_MODEL, error_body(self.error.message, self.error.hint)
        asked: Callable[[Question], Any] = getattr(self, f"_{question.name}")
        try:
            with Deadline(question.seconds).enforced():
                return DONE, asked(question)
        except OutOfTimeError:
            return REFUSED, error_body(f"this took longer than {question.seconds:g} s", "ask for less")
        except UsageError as error:
            return BAD_REQUEST, error_body(error.message, error.hint)
        except PlaitError as error:
            return REFUSED, error_body(error.message, error.hint)
        except (RecursionError, MemoryError) as error:
            return REFUSED, error_body(f"this needs too much memory ({type(error).__name__})", "ask for less")

    def progress(self, found: Any) -> None:
        """Tell how far a search is."""
        seconds, states = found.seconds, found.states
        said = f"{states:,} states, depth {found.depth:,}, {seconds:.1f} s"
        self.tell({"text": said, "states": states, "seconds": seconds})

    # -- questions: the part after _ is the name

    def _model(self, question: Question) -> Any:
        return self.walker.model()

    def _walk(self, question: Question) -> Any:
        from plait.explore.requests import WalkBody, read

        return self.walker.walk(read(WalkBody, question.body))

    def _export(self, question: Question) -> Any:
        from plait.explore.export import exported
        from plait.explore.requests import ExportBody, read

        asked = read(ExportBody, question.body)
        if asked.format == "pytest" and self.system.target is None:
            raise UsageError(
                "a test loads its model from a file, and this model has none", hint="move the model to a file"
            )
        return exported(self.walker.trace(asked.run, drawn=asked.format != "pytest"), asked.format)

    def _coverage(self, question: Question) -> Any:
        from plait.check.options import Options
        from plait.explore.coverage import covered

        # A little less than the time of the answer, so that a search that ends early still has a report.
        seconds = None if question.seconds is None else 0.7 * question.seconds
        return covered(self.system, Options(timeout=seconds, memory=question.memory))

    def _graph(self, question: Question) -> Any:
        from plait.check.walk.projection import Chosen
        from plait.check.walk.search import graph
        from plait.explore.requests import GraphBody, OptionsBody, read

        asked = read(GraphBody, question.body)
        options = (asked.options or OptionsBody()).options(
            memory=question.memory, timeout=0.7 * (question.seconds or 60)
        )
        start = asked.start.run() if asked.start is not None and asked.start.steps else None
        return graph(self.system, start, asked.projection or Chosen(), asked.most, options, self.progress)

    def _search(self, question: Question) -> Any:
        from plait.check.walk import search
        from plait.explore.requests import LONGEST_SEARCH, OptionsBody, SearchBody, read

        asked = read(SearchBody, question.body)
        options = (asked.options or OptionsBody()).options(memory=question.memory, timeout=LONGEST_SEARCH)
        start = asked.start.run() if asked.start is not None and (asked.start.steps or asked.start.initial) else None
        match asked.kind:
            case "check":
                return search.checked(self.system, start, options, self.progress)
            case "find":
                if asked.expression is None:
                    raise UsageError("find needs an expression", hint="write what must be true in the state")
                return search.find(self.system, start, asked.expression, options, self.progress)
            case "can":
                if asked.lane is None:
                    raise UsageError("can needs a process", hint="name it, and its handler")
                return search.can(self.system, start, asked.lane, asked.handler, options, self.progress)
            case "ways":
                to = asked.start.run() if asked.start is not None else None
                if to is None:
                    raise UsageError("ways needs a run", hint="give the run to the state")
                return search.ways(self.system, to, options, self.progress)


def error_body(message: str, hint: str | None) -> dict[str, Any]:
    """An error, as all answers have it."""
    return {"error": {"message": message, "hint": hint}}


def write(out: BinaryIO, status: int, content: Any) -> None:
    """Write an answer."""
    body = msgspec.json.encode(content)
    out.write(HEAD.pack(status, len(body)) + body)
    out.flush()


def read_frame(source: BinaryIO) -> bytes | None:
    """Read a question; None at the end."""
    head = source.read(HEAD.size)
    if len(head) < HEAD.size:
        return None
    _, length = HEAD.unpack(head)
    body = source.read(length)
    return body if len(body) == length else None


def main() -> None:
    """Answer questions until stdin is closed."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what the model prints
    source = os.fdopen(os.dup(0), "rb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    first = read_frame(source)
    if first is None:
        return
    start = msgspec.json.decode(first, type=Start)
    os.chdir(start.folder)
    _limit(start.memory)
    sys.dont_write_bytecode = True  # Python takes a compiled file of the same second and size for current
    from plait.model.loading.files import report_files

    report_files(start.report)
    if start.reader is not None:
        importlib.import_module(start.reader)
    asked = read_frame(source) if start.once else None
    if start.once:
        threading.Thread(target=_end_with, args=(source,), daemon=True).start()
    from plait.model.loading.loader import load

    answers = Answers(
        start.target,
        lambda: load(start.target, start.parameters, parse=start.parse),
        lambda progress: write(out, PROGRESS, progress),
        once=start.once,
    )
    while asked is not None or not start.once:
        asked = asked or read_frame(source)
        if asked is None:
            break
        write(out, *answers.answer(msgspec.json.decode(asked, type=Question)))
        asked = None


def _limit(memory: int) -> None:
    """Make the system refuse more memory, so that a request cannot take the machine's before it is noticed."""
    with suppress(ImportError, ValueError, OSError):  # not on all systems
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (int(SLACK * memory),) * 2)


def _end_with(source: BinaryIO) -> None:
    """End this process when stdin is closed."""
    while source.read(1):
        pass
    os._exit(0)


if __name__ == "__main__":
    main()
