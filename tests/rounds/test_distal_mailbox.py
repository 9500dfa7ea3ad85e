"""Upons that read the whole mailbox, compared with the loop of the paper (`mailbox.py`) on random texts."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plait import ModelError, System, check
from plait.rounds.distal.module import module_of
from plait.rounds.distal.translation import translate
from tests.rounds.distal_texts import FIELD, NESTED, locals_of, system
from tests.rounds.mailbox import Mail, Protocol, Upon, reachable
from tests.support.further import further

Send = Callable[[int, str, tuple[Any, ...]], None]


def random_upon(draw: random.Random, number: int) -> tuple[str, Upon]:
    """An upon as a text, and for the loop of the paper. `done` bounds how often upons run."""
    kind = draw.choice("AAB")
    low, wanted, times = draw.randrange(3), draw.randrange(1, 3), draw.choice([None, None, 0, 1, 1])
    shape = draw.choice(["plain", "plain", "until", "together", "count", "sum"])
    guard = f"m.x ≥ {low} ∧ done < 3"
    text = f"  upon {kind} with {guard}"
    together = None
    if shape == "together":
        text += f" ∧ count(a in mbox with a.x > 0) ≥ {wanted}"
        together = lambda me, mails: sum(mail.fields[0] > 0 for mail in mails) >= wanted  # noqa: E731
    if shape in ("count", "sum") and times is None:
        times = 0
    text += f" times {times}" if times is not None else ""
    text += " until timeout()" if shape == "until" else ""
    results = {
        "plain": (str(10 + number), lambda mails: 10 + number),
        "until": ("100 + 10 * sum(a.x for a in mbox) + length(mbox)",
                  lambda mails: 100 + 10 * sum(m.fields[0] for m in mails) + len(mails)),
        "together": (f"200 + sum(a.x for a in mbox({kind}, a.x > 0))",
                     lambda mails: 200 + sum(m.fields[0] for m in mails)),
        "count": ("300 + length(senders(mbox))", lambda mails: 300 + len({m.sender for m in mails})),
        "sum": ("400 + max(a.x for a in mbox) * 10 + min(a.x for a in mbox)",
                lambda mails: 400 + max(m.fields[0] for m in mails) * 10 + min(m.fields[0] for m in mails)),
    }  # fmt: skip
    written, result = results[shape]

    def action(me: dict[str, Any], used: list[Mail], send: Send) -> None:
        me["done"] += 1
        me["outputs"] = (*me["outputs"], result(used))

    text += f" do\n    done = done + 1;\n    output({written});\n"
    upon = Upon(
        kind,
        lambda me, m: me["done"] < 3 and (m is None or m.fields[0] >= low),
        action,
        times,
        together,
        shape == "until",
    )
    return text, upon


def random_text(seed: int) -> tuple[str, Protocol]:
    """A text, and the same for the loop of the paper: three processes that send to process 0."""
    draw = random.Random(seed)
    sent = [(p, draw.choice("AAB"), draw.randrange(3)) for p in range(3) for _ in range(draw.choice([1, 1, 2]))][:4]
    text = "type A = struct { int x; }\ntype B = struct { int x; }\n\ninit\n"
    for p, kind, x in sent:
        text += f"  if self.index = {p} then\n    send {kind}({x}) to process(0);\n"
    text += "while true do\n"
    upons = []
    for number in range(draw.randrange(2, 4)):
        made, upon = random_upon(draw, number)
        text, upons = text + made, [*upons, upon]

    def init(me: dict[str, Any], send: Send) -> None:
        for p, kind, x in sent:
            if me["me"] == p:
                send(0, kind, (x,))

    return text + "always nothing: true;\n", Protocol(
        [{"me": p, "done": 0, "outputs": ()} for p in range(3)], init, upons
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", [*range(4), *further(*range(4, 120))])
def test_random_texts(seed: int, tmp_path: Path) -> None:
    text, truth = random_text(seed)
    expected = {tuple(field for field in state if field[0] != "me") for state in reachable(truth)}
    assert locals_of(system(text, tmp_path, n=3), "done", "outputs") == expected, text


def test_random_texts_use_the_mailbox() -> None:
    texts = [translate(random_text(seed)[0], "a.distal", "a")[0] for seed in range(12)]
    assert sum("mbox_" in text for text in texts) > 6
    assert any("mbox_" not in text for text in texts)


# -- nested upons, timeouts ------------------------------------------------------------------------------------------


def nested_by_hand() -> Protocol:
    """The text above, in which a nested upon is an upon of the loop with a condition."""
    start = {"asked": 0, "outputs": (), "waits": 0, "late": False}

    def init(me: dict[str, Any], send: Send) -> None:
        if me["me"] == 0:
            for q in range(2):
                send(q, "Ask", (1,))
            send(0, "Answer", (7,))
            send(0, "Answer", (8,))

    def ask(me: dict[str, Any], used: list[Mail], send: Send) -> None:
        me["asked"], me["waits"] = me["asked"] + 1, 1

    def outer(me: dict[str, Any], used: list[Mail], send: Send) -> None:
        me["outputs"], me["waits"] = (*me["outputs"], used[0].fields[0] + me["asked"]), 2

    def inner(me: dict[str, Any], used: list[Mail], send: Send) -> None:
        me["outputs"], me["waits"] = (*me["outputs"], 0), 0

    def late(me: dict[str, Any], used: list[Mail], send: Send) -> None:
        me["outputs"], me["late"] = (*me["outputs"], 100), False

    def plain(me: dict[str, Any], used: list[Mail], send: Send) -> None:
        me["outputs"], me["late"] = (*me["outputs"], used[0].fields[0]), True

    return Protocol(
        [{"me": p, **start} for p in range(2)],
        init,
        [
            Upon("Ask", lambda me, m: True, ask),
            Upon("Answer", lambda me, m: m is not None and m.fields[0] > 6 and me["waits"] == 1, outer),
            Upon("Answer", lambda me, m: me["waits"] == 2, inner),
            Upon(None, lambda me, m: bool(me["late"]), late, timer="late"),
            Upon("Answer", lambda me, m: True, plain),
        ],
    )


@pytest.mark.slow
def test_nested_upons_and_timeouts(tmp_path: Path) -> None:
    names = ("asked", "outputs")
    expected = {tuple(f for f in state if f[0] in ("process", *names)) for state in reachable(nested_by_hand())}
    assert locals_of(system(NESTED, tmp_path, n=2), *names) == expected
    assert len(expected) > 10


# -- the round as a field --------------------------------------------------------------------------------------------

BY_TYPE = """\
type Ask = struct { phase int view; int x; }
type Answer = struct { phase int view; int x; }

parameter int phases = 1;
init
  if self.index = 0 then
    send Ask(1, 3) to ALL;
while true do
  upon Ask with m.view > view do
    view = m.view;
    send Answer(m.view, self.index) to m.sender;
  upon Answer with m.view = view times 0 do
    best = max(a.x for a in mbox);
    total = sum(a.x for a in mbox);
always small: forall p: p.total < 3;
reachable both: exists p: p.total = 1 and p.best = 1;
"""


@pytest.mark.slow
@pytest.mark.parametrize("n", [2, *further(3)])
def test_the_round_may_be_a_field(n: int, tmp_path: Path) -> None:
    """Definition 1 maps the round to the message type or to a field: both are the same protocol."""
    (tmp_path / "a").mkdir()
    one, other = system(FIELD, tmp_path, n=n), system(BY_TYPE, tmp_path / "a", n=n)
    assert one.rounds == other.rounds == ["Ask", "Answer"]
    names = ("view", "best", "total")
    assert locals_of(one, *names) == locals_of(other, *names)
    assert check(one).statistics.states == check(other).statistics.states
    assert check(one).status == check(other).status


WRONG = [
    ('["Ask", "Answer"]; int x', "[]; int x", "expected a text in quotes"),
    ('in ["Ask", "Answer"]', "", "expected the rounds in their order"),
    ('"Answer"];', '"Ask"];', "is listed twice"),
    ("round text step", "text step", "only the field with the round lists its values"),
    ('Step(1, "Ask", 3)', 'Step(1, "Asked", 3)', "'Asked' is no round of Step"),
    ("total = sum", "total = choose", "choose does not range over a collection"),
    ("m.x > 2", "length(mbox) > 2", "this upon takes one message"),
    ("m.view = view times 0", "m.view = view ∧ length(mbox) > m.x times 0", "either about each message m or about"),
    ("best = max", "best = m.x + max", "m.x may differ in the messages of this upon"),
    ("times 0 do", "times exactly 1 until timeout() do", "contradict each other"),
    ("m.step = \"Ask\" ∧", "value(view) > 0 ∧", "this is never none"),
    ("view = m.view;", "view = if m.x > 9 then none else m.view;", "which may be none"),
    ("view = m.view;\n    send", "view = m.view; start timeout(x);\n    send", "no upon waits for the timeout x"),
    ("view = m.view;\n    send", "view = m.view; x = spawn();\n    send", "does not say how many processes may be created"),
    ("view = m.view;", "view = [1]; view = {1};", "expected"),
    ("m.x > 2 then", "choose([true]) then", None),
    ("m.view > view do", "choose([true]) do", "choose is allowed only in actions"),
    ("view = m.view;\n    send", "view = m.view;\n    for m in [1] do skip;\n    send", "'m' is a variable already"),
    ("view = m.view;", "view = best[0];", "what has numbered elements"),
]  # fmt: skip


@pytest.mark.parametrize(("right", "wrong", "words"), WRONG, ids=[w for _, w, _ in WRONG])
def test_a_wrong_text(right: str, wrong: str, words: str | None) -> None:
    assert right in FIELD
    changed = FIELD.replace(right, wrong, 1)
    if words is None:
        translate(changed, "a.distal", "a")
        return
    with pytest.raises(ModelError, match=words) as caught:
        translate(changed, "a.distal", "a")
    assert "a.distal, line " in caught.value.message


def test_processes_in_a_guard(tmp_path: Path) -> None:
    """All processes are known there, unless processes are created."""
    text = FIELD.replace("m.view > view do", "m.view > view ∧ m.sender in processes do", 1)
    assert check(system(text, tmp_path, n=2)).status == check(system(FIELD, tmp_path, n=2)).status
    with pytest.raises(ModelError, match="a guard does not know which processes were created"):
        translate(text.replace("init\n", "spawns 1;\ninit\n"), "a.distal", "a")


def test_requirements_and_constants(tmp_path: Path) -> None:
    built = module_of(Path(module_of.__code__.co_filename).parents[2] / "protocols" / "ben_or.distal").__dict__[
        "ben_or"
    ]
    made: System = built(inputs=(0, 1), f=0)
    assert len(made.processes) == 2
    with pytest.raises(ModelError, match=r"ben_or.distal, line 12: it requires 2 \* f < n"):
        built(inputs=(0, 1), f=1)
