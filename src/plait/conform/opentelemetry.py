"""Spans of OpenTelemetry (OTLP as JSON, as the file exporter of the collector writes it) as a log.

A span says something of the model if it has an attribute that begins with `plait.`. A span of kind PRODUCER or CLIENT
sends a message whose id is that of the span; a span of kind CONSUMER or SERVER receives the message of its parent span.
Other spans are steps. Spans of one process are ordered by their start times, which come from one clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from plait.conform.log import Log, bad, of_records
from plait.kernel.errors import UsageError

_SENDS = {3, 4, "SPAN_KIND_CLIENT", "SPAN_KIND_PRODUCER"}
_RECEIVES = {2, 5, "SPAN_KIND_SERVER", "SPAN_KIND_CONSUMER"}


def read_spans(name: str, lines: Iterable[str]) -> Log:
    """The log of a file of spans: one JSON object, or one per line."""
    text = "".join(lines)
    found: list[tuple[str, int, str, dict[str, Any]]] = []
    for number, part in _objects(name, text):
        place = f"{name}:{number}"
        try:
            found += [(at, start, place, record) for at, start, record in _records(part)]
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            raise bad(
                place, f"not spans in the JSON of OTLP: {error!r}", "export spans as JSON, not as protobuf"
            ) from None
    found.sort(key=lambda one: (one[0], one[1]))
    return of_records(name, [(place, record) for _, _, place, record in found])


def _objects(name: str, text: str) -> Iterator[tuple[int, Any]]:
    try:
        yield 1, msgspec.json.decode(text)
        return
    except msgspec.MsgspecError:
        pass
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                yield number, msgspec.json.decode(line)
            except msgspec.MsgspecError as error:
                raise UsageError(f"{name}:{number}: not JSON: {error}", hint="give spans in the JSON of OTLP") from None


def _records(data: Any) -> Iterator[tuple[str, int, dict[str, Any]]]:
    for resource in data.get("resourceSpans", []):
        of_resource = _attributes(resource.get("resource", {}))
        instance = of_resource.get("service.instance.id") or of_resource.get("service.name")
        for scope in resource.get("scopeSpans", []):
            for span in scope.get("spans", []):
                attributes = _attributes(span)
                record = _record(span, attributes)
                if record is not None:
                    at = str(attributes.get("plait.at") or instance or "")
                    yield at, int(span.get("startTimeUnixNano", 0)), {"at": at, **record}


def _record(span: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any] | None:
    """What a span says of the model; None if it says nothing."""
    said = {key.removeprefix("plait."): value for key, value in attributes.items() if key.startswith("plait.")}
    if not said:
        return None
    record: dict[str, Any] = {}
    if "step" in said:
        record["step"] = said["step"]
    state = {key.removeprefix("state."): value for key, value in said.items() if key.startswith("state.")}
    if state:
        record["state"] = state
    message: dict[str, Any] = {
        "fields": {k.removeprefix("field."): v for k, v in said.items() if k.startswith("field.")}
    }
    if "message" in said:
        message["type"] = said["message"]
    if span.get("kind") in _SENDS:
        record["send"] = message | {"id": span["spanId"]} | ({"to": said["to"]} if "to" in said else {})
    if span.get("kind") in _RECEIVES:
        links = [link["spanId"] for link in span.get("links", [])]
        source = span.get("parentSpanId") or next(iter(links), None)
        record["receive"] = (
            message | ({"id": source} if source else {}) | ({"from": said["from"]} if "from" in said else {})
        )
    return record


def _attributes(of: dict[str, Any]) -> dict[str, Any]:
    return {one["key"]: _value(one["value"]) for one in of.get("attributes", [])}


def _value(value: dict[str, Any]) -> Any:
    """A value of OTLP: its JSON has a key for the type, and integers as text."""
    ((kind, content),) = value.items()
    match kind:
        case "intValue":
            return int(content)
        case "arrayValue":
            return [_value(one) for one in content.get("values", [])]
        case "kvlistValue":
            return {one["key"]: _value(one["value"]) for one in content.get("values", [])}
    return content
