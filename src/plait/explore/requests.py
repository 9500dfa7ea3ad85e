"""What requests contain. A request that does not fit is refused with the place that is wrong."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

import msgspec

from plait.check.options import Options
from plait.check.walk.projection import Chosen
from plait.check.walk.run import Run
from plait.kernel.errors import UsageError

MOST_STEPS = 10_000
"""Steps of a run."""
MOST_WATCHES = 50
MOST_NODES = 2_000
"""Nodes of a graph."""
LONGEST_SEARCH = 3_600.0
"""Seconds."""

Key = Annotated[str, msgspec.Meta(max_length=400)]
Steps = Annotated[list[Key], msgspec.Meta(max_length=MOST_STEPS)]
Text = Annotated[str, msgspec.Meta(max_length=2_000)]
Name = Annotated[str, msgspec.Meta(max_length=400)]
Number = Annotated[int, msgspec.Meta(ge=0, le=2**31)]
T = TypeVar("T")


class RunBody(msgspec.Struct, forbid_unknown_fields=True):
    """A run: the number of its initial state, and the keys of its steps."""

    initial: Number = 0
    steps: Steps = []
    loop: Number | None = None
    """For a run that repeats for ever, the number of steps before its loop."""

    def run(self) -> Run:
        """The run itself."""
        return Run(self.initial, tuple(self.steps))


class WalkBody(msgspec.Struct, forbid_unknown_fields=True):
    """A question about the last state of a run."""

    run: RunBody
    watches: Annotated[list[Text], msgspec.Meta(max_length=MOST_WATCHES)] = []
    compare: RunBody | None = None
    have: Number = 0
    """How many events of the run the page has already."""


class OptionsBody(msgspec.Struct, forbid_unknown_fields=True):
    """The options of a search that a page may choose."""

    search: Literal["bfs", "dfs"] = "bfs"
    max_states: Annotated[int, msgspec.Meta(ge=1, le=2**40)] | None = None
    max_depth: Number | None = None
    timeout: Annotated[float, msgspec.Meta(gt=0, le=LONGEST_SEARCH)] | None = None
    reduce: Annotated[str, msgspec.Meta(max_length=100)] = "none"
    properties: Annotated[list[Name], msgspec.Meta(max_length=200)] | None = None

    def options(self, *, memory: int, timeout: float, workers: int | None = None) -> Options:
        """The options, within the limits of the server."""
        return Options(
            search=self.search,
            max_states=self.max_states,
            max_depth=self.max_depth,
            timeout=min(self.timeout or timeout, timeout),
            reduce=self.reduce,
            properties=self.properties,
            memory=memory,
            workers=workers,
        )


class SearchBody(msgspec.Struct, forbid_unknown_fields=True, rename={"start": "from"}):
    """A search in the background."""

    kind: Literal["check", "find", "can", "ways"]
    start: RunBody | None = None
    expression: Text | None = None
    lane: Name | None = None
    handler: Name | None = None
    options: OptionsBody | None = None


class GraphBody(msgspec.Struct, forbid_unknown_fields=True, rename={"start": "from"}):
    """The state graph, collapsed."""

    start: RunBody | None = None
    projection: Chosen | None = None
    most: Annotated[int, msgspec.Meta(ge=1, le=MOST_NODES)] = 300
    options: OptionsBody | None = None


class ExportBody(msgspec.Struct, forbid_unknown_fields=True):
    """A run in another format."""

    run: RunBody
    format: Literal["itf", "pytest", "json"] = "itf"


def read(kind: type[T], body: Any) -> T:
    """A request from JSON, or a UsageError that says what is wrong with it."""
    try:
        return msgspec.convert(body, kind) if not isinstance(body, bytes) else msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(
            f"the request does not fit: {error}",
            hint=f"an expression has at most 2,000 characters, a run {MOST_STEPS:,} steps",
        ) from None
