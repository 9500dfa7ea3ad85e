"""The gallery of the zoo: a page for each protocol, made from the protocol itself when the site is built.

The text is the protocol's docstring, the properties are those of its System. What takes a search is checked in: the sizes
in docs/gallery/facts.json, and the pictures, each the counterexample of a faulty twin. After a change of a protocol or
of the drawing, make them anew:

    python docs/_site/gallery.py            # all protocols
    python docs/_site/gallery.py paxos raft

tests/test_gallery.py compares both with what Plait finds and draws now.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import re
import sys
from pathlib import Path
from typing import Any, NamedTuple

from plait.model.loading import loader
from plait.model.system import System

GALLERY = Path(__file__).resolve().parents[1] / "gallery"
FACTS = GALLERY / "facts.json"
MARK = "<!-- gallery -->"
_TITLES = {
    "abd": "ABD",
    "ben-or": "Ben-Or",
    "chang-roberts": "Chang and Roberts",
    "dijkstra-scholten": "Dijkstra and Scholten",
    "distal-paxos": "Paxos in Distal",
    "hirschberg-sinclair": "Hirschberg and Sinclair",
    "lamport-mutex": "Lamport's mutual exclusion",
    "mcpaxos": "Paxos of TLA+",
    "one-third-rule": "One-third rule",
    "pbft": "PBFT",
    "register-paxos": "Register on Paxos",
    "viewstamped": "Viewstamped replication",
}


class Family(NamedTuple):
    """Protocols that solve the same problem."""

    title: str
    protocols: dict[str, dict[str, Any]]
    """By name, with the parameters of the faulty twin that is shown."""


FAMILIES = [
    Family("Consensus and replication", {
        "paxos": {"faulty": "acceptor"},
        "mcpaxos": {"faulty": "leader"},
        "distal-paxos": {"faulty": "printed"},
        "raft": {"faulty": "vote"},
        "raft-membership": {"faulty": "early", "terms": 3},
        "viewstamped": {"faulty": "order"},
        "view-change": {"faulty": "quorum"},
        "zab": {"faulty": "hasty"},
        "ben-or": {"faulty": "estimate", "phases": 3},
        "uniform-voting": {"faulty": "split"},
        "one-third-rule": {"faulty": "half", "inputs": (0, 1, 1)},
    }),
    Family("Byzantine processes", {
        "pbft": {"faulty": "small"},
        "echo-multicast": {"faulty": "gullible", "honest_initiators": 0},
    }),
    Family("Transactions", {
        "two-phase-commit": {"faulty": "hasty"},
        "three-phase-commit": {"faulty": "local", "crashes": 1},
        "commit-rounds": {"faulty": "hasty"},
        "conveyor-belt": {"faulty": "early", "carts": 0},
        "shipped-updates": {"faulty": "dirty"},
        "split-log": {"faulty": "unmarked", "timeouts": 0},
        "online-change": {"faulty": "hasty", "before": 2, "after": 1, "orders": 0, "aborts": 0, "crashes": 0},
    }),
    Family("Storage", {
        "single-copy": {"servers": 2},
        "regular-register": {"specification": "wrong"},
        "atomic-register": {"faulty": "regular"},
        "abd": {"faulty": "hasty", "clients": 1, "servers": 3},
        "register-paxos": {"faulty": "stubborn"},
        "chain": {"faulty": "any"},
        "gossip": {"faulty": "tie"},
    }),
    Family("Coordination", {
        "ping-pong": {"faulty": "ponger", "network": "duplicating"},
        "lamport-mutex": {"faulty": "acks"},
        "chang-roberts": {"faulty": "greedy"},
        "hirschberg-sinclair": {"faulty": "meek", "nodes": 3},
        "dijkstra-scholten": {"faulty": "hasty"},
    }),
]  # fmt: skip
TWINS = {name: parameters for family in FAMILIES for name, parameters in family.protocols.items()}


# -- what takes a search ----------------------------------------------------------------------------------------------


def measure(name: str) -> tuple[dict[str, Any], str]:
    """The facts about a protocol, and the picture of its faulty twin's counterexample."""
    from plait.check.api import check
    from plait.report.space_time.svg import space_time

    sound = check(loader.load(name, {}), workers=1)
    twin = check(loader.load(name, TWINS[name], parse=False), workers=1)
    if sound.status != "holds" or twin.trace is None:
        raise RuntimeError(f"{name} is {sound.status}, its twin is {twin.status}")
    facts = {
        "states": sound.statistics.states,
        "transitions": sound.statistics.transitions,
        "violated": twin.property,
        "steps": len(twin.trace.events),
        "looping": twin.trace.loop is not None,
    }
    return facts, space_time(twin.trace)


def write(names: list[str]) -> None:
    """Measure protocols, and write their facts and pictures."""
    facts = json.loads(FACTS.read_text(encoding="utf-8")) if FACTS.exists() else {}
    for name in names:
        facts[name], picture = measure(name)
        (GALLERY / f"{name}.svg").write_text(picture, encoding="utf-8")
    kept = {name: facts[name] for name in TWINS if name in facts}
    FACTS.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


# -- pages ------------------------------------------------------------------------------------------------------------


def command(name: str, parameters: dict[str, Any]) -> str:
    """The command that checks a protocol with these parameters.

    >>> command("abd", {"faulty": "hasty", "clients": 1})
    'plait check abd -p faulty=hasty -p clients=1'
    """
    return " ".join(["plait check", name, *(f"-p {key}={value}" for key, value in parameters.items())])


def page(name: str, facts: dict[str, Any]) -> str:
    """The page of one protocol, in Markdown."""
    module = name.replace("-", "_")
    doc = inspect.getdoc(importlib.import_module(f"plait.protocols.{module}")) or ""
    head, _, rest = doc.partition("\n")
    system: System = loader.load(name, {})
    roles = ", ".join(f"{system.classes.count(cls)} {cls.__name__}" for cls in dict.fromkeys(system.classes))
    run = f"after {facts['steps']} steps" if not facts["looping"] else f"by a loop ({facts['steps']} steps)"
    lines = [
        f"# {title(name)}",
        "",
        head,
        "",
        f"![A run of {facts['steps']} steps that violates {facts['violated']}]({name}.svg)",
        "",
        f"The picture: a faulty twin of {name} violates `{facts['violated']}` {run}.",
        "",
        "```sh",
        f"{command(name, {})}",
        f"{command(name, TWINS[name])}",
        f"plait show {name}",
        "```",
        "",
        f"The first command searches all {facts['states']:,} states and {facts['transitions']:,} transitions: "
        "all properties hold. The second checks the twin in the picture. The third lists parameters, processes, "
        "handlers and properties.",
        "",
        f"By default: {roles}; network: {system.network}" + "".join(f"; {fault}" for fault in system.faults) + ".",
        "",
        "| property | kind | |",
        "|---|---|---|",
        *(f"| `{p.name}` | {p.kind} | {p.doc} |" for p in system.properties),
        "",
        "## The protocol",
        "",
        *(re.sub(r"(?<!`)\bsrc/plait/[\w./]+", r"`\g<0>`", line) for line in rest.strip().splitlines()),
        "",
        "## The model",
        "",
        f"This is [src/plait/protocols/{module}.py](../../src/plait/protocols/{module}.py), without its docstring:",
        "",
        f'??? example "{module}.py"',
        "",
        "    ````python",
        *(f"    {line}".rstrip() for line in source(module).splitlines()),
        "    ````",
    ]
    return "\n".join(lines) + "\n"


def source(module: str) -> str:
    """The source of a protocol, after the docstring that the page shows already."""
    text = inspect.getsource(importlib.import_module(f"plait.protocols.{module}"))
    tree = ast.parse(text)
    return "\n".join(text.splitlines()[tree.body[0].end_lineno :]).strip()


def title(name: str) -> str:
    """The name of a protocol as a heading."""
    return _TITLES.get(name, name.replace("-", " ").capitalize())


def overview(facts: dict[str, Any]) -> str:
    """The tables of the first page: a picture, the size and the twin of each protocol."""
    lines = []
    for family in FAMILIES:
        lines += [f"## {family.title}", "", '<div class="zoo" markdown>', ""]
        for name, parameters in family.protocols.items():
            fact = facts[name]
            twin = ", ".join(f"{key}={value}" for key, value in parameters.items())
            lines += [
                "<div markdown>",
                f"[![{title(name)}]({name}.svg)]({name}.md)",
                "",
                f"**[{title(name)}]({name}.md)**  ",
                f"{fact['states']:,} states  ",
                f"`{twin}` violates {fact['violated']} in {fact['steps']} steps",
                "",
                "</div>",
                "",
            ]
        lines += ["</div>", ""]
    return "\n".join(lines)


# -- the hook ---------------------------------------------------------------------------------------------------------


def on_config(config: Any) -> Any:
    """List the pages in the navigation, after the first page of the gallery."""
    for section in config.nav or []:
        if isinstance(section, dict) and "Gallery" in section:
            section["Gallery"] = [
                "gallery/index.md",
                *({f.title: [{title(name): f"gallery/{name}.md"} for name in f.protocols]} for f in FAMILIES),
            ]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add a page for each protocol."""
    from mkdocs.structure.files import File

    if (Path(config.docs_dir) / "gallery" / "index.md").exists():
        facts = json.loads(FACTS.read_text(encoding="utf-8"))
        for name in TWINS:
            files.append(File.generated(config, f"gallery/{name}.md", content=page(name, facts[name])))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str | None:
    """Put the overview into the first page of the gallery."""
    if page.file.src_uri != "gallery/index.md":
        return None
    return markdown.replace(MARK, overview(json.loads(FACTS.read_text(encoding="utf-8"))))


if __name__ == "__main__":
    write(sys.argv[1:] or list(TWINS))
