"""Tags of messages and the order of rounds: what is stored, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from plait import Message, ModelError, Process, System, on, tagged
from plait.model.tag import tag_of


@tagged(phase="ballot", round="Ask")
class Ask(Message):
    ballot: int


@tagged(round="Tell")
class Tell(Message):
    value: int


class Plain(Message):
    value: int


class Node(Process):
    @on(Ask)
    def asked(self, m: Ask) -> None: ...

    @on(Tell)
    def told(self, m: Tell) -> None: ...


class Other(Process):
    @on(Plain)
    def plain(self, m: Plain) -> None: ...


def test_the_tag_of_a_message() -> None:
    tag, constant = tag_of(Ask), tag_of(Tell)
    assert tag is not None
    assert constant is not None
    assert (tag.phase_of(Ask(7)), tag.round) == (7, "Ask")
    assert (constant.phase_of(Tell(7)), constant.round) == (1, "Tell")
    assert tag_of(Plain) is None
    assert System([Node()], rounds=["Ask", "Tell"]).rounds == ["Ask", "Tell"]
    assert System([Node(), Other()]).rounds == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"phase": "term", "round": "Ask"}, "has no field 'term'"),
        ({"phase": 1.5, "round": "Ask"}, "expected the name of a field"),
        ({"phase": True, "round": "Ask"}, "expected the name of a field"),
        ({"phase": "ballot", "round": 3}, "expected the name of a round"),
        ({"phase": "ballot", "round": ""}, "expected the name of a round"),
    ],
)
def test_a_wrong_tag(arguments: dict[str, Any], words: str) -> None:
    class Fresh(Message):
        ballot: int

    with pytest.raises(ModelError, match=words) as caught:
        tagged(**arguments)(Fresh)
    assert caught.value.hint


def test_only_messages_have_tags() -> None:
    with pytest.raises(ModelError, match="not a Message class"):
        tagged(round="Ask")(Node)  # type: ignore[type-var]


@pytest.mark.parametrize(
    ("rounds", "words"),
    [
        ("Ask", "not a list"),
        (5, "not a list"),
        (["Ask", 3], "3 in rounds is not a name"),
        (["Ask", "Tell", "Ask"], "'Ask' is listed twice"),
        (["Ask"], "Tell has round 'Tell', which"),
        (["Ask", "Tell", "Vote"], "no handler consumes a message of round 'Vote'"),
    ],
)
def test_wrong_rounds(rounds: Any, words: str) -> None:
    with pytest.raises(ModelError, match=words) as caught:
        System([Node()], rounds=rounds)
    assert caught.value.hint


def test_a_message_without_a_round() -> None:
    with pytest.raises(ModelError, match=r"Other.plain consumes Plain, which has no round"):
        System([Other()], rounds=["Ask", "Tell"])
