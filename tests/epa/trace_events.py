"""The rules of the public Trace Event Format, which Perfetto and chrome://tracing read: what is wrong with a file."""

from __future__ import annotations

from typing import Any

METADATA = {
    "process_name": ("name", str),
    "process_labels": ("labels", str),
    "process_sort_index": ("sort_index", int),
    "thread_name": ("name", str),
    "thread_sort_index": ("sort_index", int),
}


def wrong(file: Any) -> list[str]:
    """All violations: phases, mandatory fields, nesting of slices by thread, scopes of instants, metadata."""
    if not isinstance(file, dict) or not isinstance(file.get("traceEvents"), list):
        return ["not the JSON Object Format"]
    found: list[str] = []
    open_slices: dict[tuple[int, int], list[dict[str, Any]]] = {}
    last: dict[tuple[int, int], float] = {}
    for number, event in enumerate(file["traceEvents"]):
        problems = _fields(event)
        if not problems and event["ph"] != "M":
            lane = event["pid"], event["tid"]
            if event["ph"] in "BE" and event["ts"] < last.get(lane, 0):
                problems.append("slices of a thread must be in order of time")
            last[lane] = event["ts"]
            stack = open_slices.setdefault(lane, [])
            if event["ph"] == "B":
                stack.append(event)
            elif event["ph"] == "E" and not stack:
                problems.append("an end without a begin")
            elif event["ph"] == "E":
                stack.pop()
        found += [f"event {number}: {problem}" for problem in problems]
    return found + [f"a begin without an end: {s['name']}" for stack in open_slices.values() for s in stack]


def _fields(event: Any) -> list[str]:
    phase = event.get("ph")
    if phase not in ("B", "E", "i", "M"):
        return [f"phase {phase!r}"]
    found = [f"{name} is not an integer" for name in ("pid", "tid") if type(event.get(name)) is not int]
    if not isinstance(event.get("args", {}), dict):
        found.append("args is not an object")
    if phase != "E" and not isinstance(event.get("name"), str):
        found.append("no name")
    if phase == "M":
        key, kind = METADATA.get(event.get("name", ""), ("", str))
        return found if key and type(event.get("args", {}).get(key)) is kind else [*found, "unknown metadata"]
    if type(event.get("ts")) not in (int, float) or event["ts"] < 0:
        found.append("no time")
    if phase == "i" and event.get("s", "t") not in ("g", "p", "t"):
        found.append("unknown scope")
    return found
