"""Traces, checks, comparisons and campaigns as text."""

from __future__ import annotations

from collections.abc import Iterator

from plait.epa.campaign import OUTCOMES, Summary
from plait.epa.comparison import Comparison, path_to_output
from plait.epa.recording import Recording
from plait.epa.reversibility import Reversibility

_SPOTS = 25
_BLOCK = 10_000
"""The number of objects that are shown at once."""


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def event_lines(recording: Recording, thread: str | None, limit: int | None) -> Iterator[str]:
    """Events, one per line: number, thread, event, operands, place (Listing 6b)."""
    for block in recording.lines(thread, limit):
        yield from block.splitlines()


def object_blocks(recording: Recording) -> Iterator[str]:
    """The memory object set and the thread map (Listing 7), in blocks of lines."""
    for number in range(0, recording.native.object_count, _BLOCK):
        yield recording.text_source.object_lines(number, number + _BLOCK)
    yield "".join(f"M({i}) := {info.name}\n" for i, info in enumerate(recording.threads))


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
    among = {"holds": " with replay", "violated": ", even with replay", "inconclusive": ", even with replay"}
    lines = [f"{word[verdict.status]}{among[verdict.status] if found.replay else ''}: {verdict.model}"]
    lines.append(
        f"  {verdict.statistics.states:,} records, {found.objects:,} objects, {found.shared_objects:,} of them shared, "
        f"{found.dependencies:,} dependencies between threads, {verdict.statistics.seconds:.3f} s"
    )
    if found.settled_by_solver:
        lines.append(f"  pairs checked with Z3: {found.settled_by_solver}")
    if verdict.bound:
        lines.append(f"  not decided: {verdict.bound}")
    lines += [f"  needs replay: {need}" for need in found.needs]
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
        lines += ["", "the input does not determine these (local determinism):"]
        lines += [f"  {call}" for call in found.nondeterministic]
    if found.unseen:
        lines += ["", f"nothing is known of: {', '.join(found.unseen)}"]
        lines += ["  (--allow NAME: it is deterministic, and accesses no memory that threads share)"]
    if found.assumptions:
        lines += ["", "assumptions:", *(f"  {assumption}" for assumption in found.assumptions)]
    return lines + [f"warning: {w}" for w in verdict.warnings]


def comparison_lines(found: Comparison) -> list[str]:
    """The first deviation of each thread, then the propagation."""
    output = f"different output ({', '.join(found.differences)})" if found.output_differs else "same output"
    refused = found.verdict.status == "inconclusive"
    word = "not comparable" if refused else "equal" if found.equal else "deviating"
    lines = [f"{word}: {found.faulty} against {found.golden}"]
    lines.append(f"  the faulty run: {found.ending}, {output}" + (f", fault {found.fault}" if found.fault else ""))
    lines += [f"  NOT COMPARABLE: {doubt}" for doubt in found.doubts]
    if refused:
        lines.append(f"  the traces are {'equal' if found.equal else 'different'}; no difference is shown, because")
        lines.append("  it need not come from the fault (--unsound shows differences anyway)")
        return lines + (["", *reversibility_lines(found.proof)] if not found.proof.verdict else [])
    if found.proof.replay:
        lines.append("  the faulty run replayed the golden run" + (" to the end" if not found.replay_ended else ""))
    if found.replay_ended:
        lines.append(f"  replay ended: {found.replay_ended.words}")
        lines.append("  deviations after this point are effects of the fault or of another order of the threads")
    if found.doubts:
        lines.append("  the deviations below need not come from the fault")
    for t in found.threads:
        if t.first is None:
            continue
        path = ", different path" if t.parted else ""
        path += "" if t.certain else ", after the end of replay"
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
        lines.append(f"  [{i}] {spot.thread} {spot.what} ({spot.place}), {spot.times}  <- {why}")
    if len(found.spots) > _SPOTS:
        lines.append(f"  … and {len(found.spots) - _SPOTS} more (the JSON and the HTML output have all)")
    if found.gaps:
        lines += ["", f"not followed inside of these functions, nor through files: {', '.join(found.gaps)}"]
    path_ = path_to_output(found)
    if len(path_) > 1:
        of = "the error" if found.comparable else "the difference"
        lines += ["", f"a path of {of}: " + " -> ".join(f"[{i}]" for i in path_)]
        lines += [f"  [{i}] {found.spots[i].thread} {found.spots[i].what} ({found.spots[i].place})" for i in path_]
    return lines


def summary_lines(summary: Summary) -> list[str]:
    """A campaign: one line per type of fault, with the numbers of Figure 17."""
    names = list(OUTCOMES)
    head = (
        f"  {'fault':<11} {'runs':>6} " + " ".join(f"{n:>7}" for n in names) + "   coverage (95 % interval)      MPFNR"
    )
    lines = [f"{' '.join([summary.header.program, *summary.header.arguments])}, seed {summary.header.seed}", head]
    for share in summary.shares:
        counts = " ".join(f"{share.outcomes[n]:>7,}" for n in names)
        interval = f"{share.coverage:7.1%} ({share.low:.1%} to {share.high:.1%})"
        lines.append(f"  {share.type:<11} {share.runs:>6,} {counts}  {interval:<26} {share.mpfnr:7.1%}")
    lines.append(
        f"  MPFNR (1 - coverage) of all runs: {summary.mpfnr:.1%} ({summary.mpfnr_low:.1%} to {summary.mpfnr_high:.1%})"
    )
    lines.append(
        f"  MPFNR of crashes and SDC: {summary.missed_rate:.1%} ({summary.missed} of {summary.failures:,} traces do "
        f"not differ; {summary.direct} differ only in the corrupted value)"
    )
    if summary.header.replay is not None:
        lines.append("  all runs replayed the golden run; it is comparable only with runs that do so")
        lines += [f"    needs replay: {need}" for need in summary.needs]
        lines.append(
            f"    replay ended in {summary.diverged:,} runs that diverged by the fault, and in {summary.stalled:,} runs "
            "after a time limit"
        )
        if summary.uncertain:
            lines.append(
                f"    in {summary.uncertain:,} runs with propagation, it may come from another order of the threads "
                "after the end of replay"
            )
    return lines + ([] if summary.complete else ["  the campaign is not complete: run the command again to continue"])
