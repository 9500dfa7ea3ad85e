"""Traces, checks, comparisons and campaigns as text."""

from __future__ import annotations

from collections.abc import Iterator

from plait.epa.campaign import OUTCOMES, Summary
from plait.epa.comparison import Comparison, path_to_output
from plait.epa.recording import ALLOCA, ENTER, LANDING, LOAD, RETURN, VALUE, EventRow, Recording
from plait.epa.reversibility import Reversibility

_SPOTS = 25


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


class _Operands:
    """The operands of results: the last value of each site in the current frame of its thread."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.frames: list[list[tuple[str, dict[int, str]]]] = [[] for _ in recording.threads]

    def see(self, thread: int, row: EventRow) -> str:
        """Process an event, and return its operands as text, if it is a result."""
        number, kind, _, a, b = row
        if not number:
            return ""
        site = self.recording.table.site(number)
        frames = self.frames[thread]
        if kind == ENTER:
            frames.append((site.function, {}))
        while kind == LANDING and len(frames) > 1 and frames[-1][0] != site.function:
            frames.pop()
        values = frames[-1][1] if frames else {}
        operands = ""
        if kind == VALUE and site.shape:
            operands = ", ".join(values.get(int(o[1:]), "?") if o.startswith("#") else o for o in site.shape)
        if kind in (VALUE, LOAD, ALLOCA):
            values[number] = self.recording.word(b if kind == LOAD else a, site.kind)
        if kind == RETURN and frames:
            frames.pop()
        return f" <- {operands}" if operands else ""


def event_lines(recording: Recording, thread: str | None, limit: int | None) -> Iterator[str]:
    """Events, one per line: number, thread, event, operands, place (Listing 6b)."""
    shown = 0
    operands = _Operands(recording)
    for i, (t, _, row) in enumerate(recording.merged(None if thread else limit)):
        name = recording.threads[t].name
        if thread is not None and name != thread:
            continue
        place = recording.table.place(row[0]) if row[0] else ""
        yield f"{i} {name} {recording.text(row)}{operands.see(t, row)}" + (f"  ({place})" if place else "")
        shown += 1
        if limit is not None and shown >= limit:
            return


def object_lines(recording: Recording) -> Iterator[str]:
    """The memory object set and the thread map (Listing 7)."""
    for number, o in enumerate(recording.objects()):
        thread = o.thread or "_"
        yield (
            f"o{number} := {{name={o.name}, ba={o.base:x}, t={thread}, l_idx={o.local}, "
            f"s={o.size}, v=[{o.valid[0]},{o.valid[1]}]}}"
        )
    for i, info in enumerate(recording.threads):
        yield f"M({i}) := {info.name}"


def overview(recording: Recording) -> list[str]:
    """An overview of a trace."""
    run = recording.run
    lines = []
    if run is not None:
        lines.append(f"{' '.join([run.program, *run.arguments])}: {run.ending} after {run.seconds:.3f} s")
        if run.fault:
            lines.append(f"fault: {run.fault.text} ({recording.table.words(run.fault.site)})")
    lines.append(
        f"{recording.native.records:,} records, {_plural(len(recording.threads), 'thread')}, "
        f"{recording.native.object_count:,} memory objects ({recording.native.shared_objects:,} shared)"
    )
    width = max(len(t.name) for t in recording.threads)
    lines += [f"  {t.name:<{width}}  {t.events:>12,} events" for t in recording.threads]
    return lines + [f"cut off: {cut}" for cut in recording.cuts]


def reversibility_lines(found: Reversibility) -> list[str]:
    """The verdict of the check, with its witnesses."""
    verdict = found.verdict
    word = {"holds": "pseudo-deterministic", "violated": "NOT pseudo-deterministic", "inconclusive": "inconclusive"}
    lines = [f"{word[verdict.status]}: {verdict.model}"]
    lines.append(
        f"  {verdict.statistics.states:,} records, {found.objects:,} objects, {found.shared_objects:,} of them shared, "
        f"{found.dependencies:,} dependencies between threads, {verdict.statistics.seconds:.3f} s"
    )
    if found.settled_by_solver:
        lines.append(f"  pairs checked with Z3: {found.settled_by_solver}")
    if verdict.bound:
        lines.append(f"  not decided: {verdict.bound}")
    for i, w in enumerate(found.witnesses):
        lines += ["", f"reversible: {w.object}", f"  observed first   {w.first}", f"  observed second  {w.second}"]
        if w.locks:
            lines.append(f"  both hold        {', '.join(w.locks)}")
        if i == 0:
            lines.append("  a schedule with the second event first:")
            steps = w.schedule
            cut = next((k for k, s in enumerate(steps) if s == w.second), 0)
            end = next((k for k, s in enumerate(steps) if k > cut and s == w.first), len(steps) - 1)
            shown = [*range(max(0, cut - 5), cut + 1), *range(max(cut + 1, end - 5), end + 1)]
            for before, k in zip([-1, *shown], shown, strict=False):
                lines += [f"    … {k - before - 1} more"] * (k > before + 1) + [f"    {steps[k]}"]
        lines.append(f"  to fix it: {w.advice}")
    if found.loose:
        lines += ["", f"not joined before the program ends: {', '.join(found.loose)}"]
    if found.nondeterministic:
        lines += ["", "the input does not determine the results of these calls (local determinism):"]
        lines += [f"  {call}" for call in found.nondeterministic]
    if found.unseen:
        lines += ["", f"assumption: these functions share no memory between threads: {', '.join(found.unseen)}"]
    return lines + [f"warning: {w}" for w in verdict.warnings]


def comparison_lines(found: Comparison) -> list[str]:
    """The first deviation of each thread, then the propagation."""
    output = "different output" if found.output_differs else "same output"
    lines = [f"{'equal' if found.equal else 'deviating'}: {found.faulty} against {found.golden}"]
    lines.append(f"  the faulty run: {found.ending}, {output}" + (f", fault {found.fault}" if found.fault else ""))
    for t in found.threads:
        if t.first is None:
            continue
        path = ", different path" if t.parted else ""
        counts = f"{t.changed:,} changed, {t.missing:,} missing, {t.extra:,} extra"
        lines += ["", f"{t.thread}: first deviation at event {t.index:,} ({t.first.place}); {counts}{path}"]
        lines += [f"  golden  {t.first.golden or '(nothing)'}", f"  faulty  {t.first.faulty or '(nothing)'}"]
    if not found.spots:
        return lines
    lines += [
        "",
        f"propagation: {len(found.spots)} instructions and {len(found.links)} links, in the order of propagation",
    ]
    incoming: dict[int, list[str]] = {}
    for link in found.links:
        through = f" through {link.object}" if link.object else ""
        source = f"[{link.source}]" + (f" of {found.spots[link.source].thread}" if link.across else "")
        incoming.setdefault(link.target, []).append(f"{source} by {link.via}{through}")
    for i, spot in enumerate(found.spots[:_SPOTS]):
        why = "the fault" if spot.root else "; ".join(incoming.get(i, [])[:3]) or "no known source"
        lines.append(f"  [{i}] {spot.thread} {spot.what} ({spot.place}), {spot.events:,}x  <- {why}")
    if len(found.spots) > _SPOTS:
        lines.append(f"  … and {len(found.spots) - _SPOTS} more (the JSON and the HTML output have all)")
    path_ = path_to_output(found)
    if len(path_) > 1:
        lines += ["", "a path of the error: " + " -> ".join(f"[{i}]" for i in path_)]
        lines += [f"  [{i}] {found.spots[i].thread} {found.spots[i].what} ({found.spots[i].place})" for i in path_]
    return lines


def summary_lines(summary: Summary) -> list[str]:
    """A campaign: one line per type of fault, with the numbers of Figure 17."""
    names = list(OUTCOMES)
    head = f"  {'fault':<11} {'runs':>6} " + " ".join(f"{n:>7}" for n in names) + "   coverage (95 % interval)"
    lines = [f"{summary.header.program} {' '.join(summary.header.arguments)}, seed {summary.header.seed}", head]
    for share in summary.shares:
        counts = " ".join(f"{share.outcomes[n]:>7,}" for n in names)
        interval = f"{share.coverage:7.1%} ({share.low:.1%} to {share.high:.1%})"
        lines.append(f"  {share.type:<11} {share.runs:>6,} {counts}  {interval}")
    lines.append(
        f"  MPFNR of crashes and SDC: {summary.missed_rate:.1%} ({summary.missed} of {summary.failures:,} traces do "
        f"not differ; {summary.direct} differ only in the corrupted value)"
    )
    return lines + ([] if summary.complete else ["  the campaign is not complete: run the command again to continue"])
