"""`plait graph`: draws or lists the states of a model and the transitions between them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from plait.cli.options import AtLeastOne, Flag, Parameters, Seconds, Target, split
from plait.cli.output import emit, emit_json, note, writable
from plait.kernel.deadline import Deadline
from plait.kernel.errors import UsageError

if TYPE_CHECKING:
    from plait.kernel.graph import StateGraph

_MAX_STATES = 200
_SUFFIXES = (".svg", ".dot", ".json")


def graph(
    target: Target,
    /,
    *,
    parameters: Parameters = (),
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    max_states: AtLeastOne = _MAX_STATES,
    timeout: Seconds = None,
    reduce: str = "none",
    history: Literal["none", "last"] = "none",
    json: Flag = False,
) -> int:
    """Draw or list the states of a model (the help text is in `plait.cli.main`).

    Parameters
    ----------
    target
        A name of the zoo, a Python file (models/token.py or models/token.py:ring), or package.module:function.
    parameters
        Set a parameter of the model, as in -p acceptors=3. plait show TARGET lists the parameters.
    output
        Write to this file: a drawing (.svg), Graphviz (.dot) or data (.json).
    max_states
        Show at most this number of states, nearest to the initial state first.
    timeout
        Stop after this many seconds; 2m and 1h are understood. Then there is no graph, and the exit code is 3.
    reduce
        Show the states of a reduced search: decomposition, por, symmetry, separated by commas; auto, or none.
    history
        With last, the messages of the last step of each process are part of the state.
    json
        Print exactly one JSON object on stdout.
    """
    writable(output, "--output")
    if output is not None and output.suffix.lower() not in _SUFFIXES:
        raise UsageError(
            f"--output: {output} does not end in {', '.join(_SUFFIXES)}", hint="choose one of these endings"
        )
    from plait.check.explain.graph import state_graph
    from plait.model.loading.loader import load
    from plait.report.state_graph.wording import missing, size

    clock = Deadline(timeout)
    with clock.enforced():
        system = load(target, split(parameters))
    found = state_graph(
        system, reduce=reduce, history=history, max_states=max_states or _MAX_STATES, timeout=clock.left
    )
    cut = missing(found)
    if output is not None:
        try:
            output.write_text(_written(found, output.suffix.lower()), encoding="utf-8")
        except OSError as error:
            raise UsageError(
                f"--output: {output} cannot be written: {error.strerror}", hint="choose another file"
            ) from None
        (note if json else emit)(f"graph: {output}  ({size(found)})")
    if json:
        emit_json(found)
    elif output is None:
        emit(_written(found, ""))
    if cut is not None:
        note(f"note: {cut}\nhint: give a larger --max-states")
    return 0


def _written(found: StateGraph, suffix: str) -> str:
    if suffix == ".json":
        import msgspec

        return msgspec.json.encode(found).decode()
    if suffix == ".svg":
        from plait.report.state_graph.svg import graph_svg

        return graph_svg(found)
    if suffix == ".dot":
        from plait.report.state_graph.dot import dot

        return dot(found)
    from plait.report.state_graph.text import listing

    return listing(found)
