"""Spin's side of the Paxos benchmark: emit the model in Promela, verify it, parse what pan reports.

The protocol is single-message Paxos: proposer i owns ballot and value i + 1, every message is one step. Each possible
message (kind, sender, receiver, ballot) is one slot, reset when it is consumed, so delivery is unordered and lossless;
a message whose guard is false stays in its slot. One process takes every step, each in one d_step: its program counter
never moves, so Spin's states are exactly those of the protocol. Every loop is unrolled here: Spin computes no index.

    python paxos_pml.py 2 3 2            verify with Spin; print one line of JSON
    python paxos_pml.py 2 3 2 --model    print the Promela model
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

IDLE, READING, DONE = 0, 1, 2
FLAGS = ("-O3", "-DNOREDUCE", "-DSAFETY")
# Distinct states with one proposer, by (acceptors, learners); counted by Spin and by a brute-force search alike.
ONE_PROPOSER = {(3, 1): 177, (3, 2): 681, (3, 3): 3_381, (4, 1): 713, (4, 2): 4_825, (5, 1): 9_473, (5, 2): 105_073}
Result = dict[str, int | float]


class SpinError(RuntimeError):
    """Spin or the C compiler is missing, or a run did not give a complete search."""


def promela(proposers: int, acceptors: int, learners: int) -> str:
    """The Promela model of Paxos with these numbers of processes."""
    if min(proposers, acceptors, learners) < 1:
        raise ValueError("proposers, acceptors and learners must each be at least 1")
    majority, b_max = acceptors // 2 + 1, proposers  # ballots and values are 1 to b_max
    ps, accs, ls = range(proposers), range(acceptors), range(learners)
    ballots = range(1, b_max + 1)
    state, steps = list[str](), list[str]()

    def var(name: str, largest: int) -> None:
        state.append(f"unsigned {name} : {largest.bit_length()};")

    def step(comment: str, guard: str, *effects: str) -> None:
        body = ";\n      ".join(effects)
        steps.append(f"  /* {comment} */\n  :: d_step {{ {guard} ->\n      {body} }}")

    for p in ps:
        b = p + 1
        for field, largest in {"phase": DONE, "count": majority, "best_ballot": b_max, "best_value": b_max}.items():
            var(f"{field}_{p}", largest)
        for a in accs:  # a WRITE's slot holds its value; 0 is no message
            for kind in ("read", "repl", "repl_ballot", "repl_value", "write"):
                var(f"{kind}_{p}_{a}", 1 if kind in ("read", "repl") else b_max)
        step(
            f"proposer {p} starts",
            f"phase_{p} == {IDLE}",
            f"phase_{p} = {READING}",
            *(f"read_{p}_{a} = 1" for a in accs),
        )
        for a in accs:
            decide = [
                f"if :: best_ballot_{p} == 0 -> best_value_{p} = {b} :: else fi",
                *(f"write_{p}_{x} = best_value_{p}" for x in accs),
                f"phase_{p} = {DONE}; count_{p} = 0; best_ballot_{p} = 0; best_value_{p} = 0",
            ]
            step(
                f"proposer {p} receives READ_REPL from acceptor {a}",
                f"repl_{p}_{a} && phase_{p} == {READING}",
                f"count_{p} = count_{p} + 1",
                f"if :: repl_ballot_{p}_{a} > best_ballot_{p} -> best_ballot_{p} = repl_ballot_{p}_{a};"
                f" best_value_{p} = repl_value_{p}_{a} :: else fi",
                f"repl_{p}_{a} = 0; repl_ballot_{p}_{a} = 0; repl_value_{p}_{a} = 0",
                f"if :: count_{p} == {majority} ->\n        " + ";\n        ".join(decide) + "\n      :: else fi",
            )

    for a in accs:
        for field in ("promised", "accepted_ballot", "accepted_value"):
            var(f"{field}_{a}", b_max)
        for p in ps:
            b = p + 1
            step(
                f"acceptor {a} receives READ({b})",
                f"read_{p}_{a} && promised_{a} < {b}",
                f"read_{p}_{a} = 0; promised_{a} = {b}; repl_{p}_{a} = 1",
                f"repl_ballot_{p}_{a} = accepted_ballot_{a}; repl_value_{p}_{a} = accepted_value_{a}",
            )
            step(
                f"acceptor {a} receives WRITE({b}, value)",
                f"write_{p}_{a} && promised_{a} <= {b}",
                f"promised_{a} = {b}; accepted_ballot_{a} = {b}; accepted_value_{a} = write_{p}_{a}",
                *(f"accept_{a}_{n}_{b} = write_{p}_{a}" for n in ls),
                f"write_{p}_{a} = 0",
            )

    for n in ls:
        for b in ballots:
            var(f"votes_{n}_{b}", majority)
            var(f"learned_{n}_{b}", b_max)
            others = [f"learned_{m}_{c}" for m in ls for c in ballots if (m, c) != (n, b)]
            agree = "".join(f";\n        assert({o} == 0 || {o} == learned_{n}_{b})" for o in others)
            for a in accs:
                slot = f"accept_{a}_{n}_{b}"
                var(slot, b_max)  # the value; 0 is no message
                step(
                    f"learner {n} receives ACCEPT({b}, value) from acceptor {a}",
                    f"{slot} && votes_{n}_{b} < {majority}",
                    f"votes_{n}_{b} = votes_{n}_{b} + 1",
                    f"if :: votes_{n}_{b} == {majority} -> learned_{n}_{b} = {slot}{agree}\n      :: else fi",
                    f"{slot} = 0",
                )

    return "\n".join([*state, "", "active proctype system() {", "end:", "  do", *steps, "  od", "}", ""])


def expected_states(proposers: int, acceptors: int, learners: int) -> int | None:
    """The exact number of distinct states, where it is known.

    It is the number for one proposer to the power of the proposers. An acceptor handles what it handles in the order of
    the ballots, so what one ballot has done fixes what the next one sees: a state is one state per ballot. And every
    combination is reached, by running the ballots in ascending order, as a lower one never blocks a higher one.
    """
    one = ONE_PROPOSER.get((acceptors, learners))
    return None if one is None else one**proposers


def _call(command: list[str], cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SpinError(f"`{' '.join(command)}` failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def _number(pattern: str, report: str) -> float:
    found = re.search(pattern, report, re.MULTILINE)
    if found is None:
        raise SpinError(f"pan's report has no line {pattern!r}:\n{report}")
    return float(found.group(1))


def run(
    proposers: int,
    acceptors: int,
    learners: int,
    *,
    hash_bits: int | None = None,
    memory_mb: int = 16_000,
    extra_flags: tuple[str, ...] = (),
) -> Result:
    """Verify with Spin, without reduction; `seconds` is pan's own time, without generating and compiling.

    `hash_bits` is pan's -w. By default the table has 2 to 4 slots a state, the fastest of those tried (2**24 slots
    where the count is not known beforehand). The depth is bounded: each step starts a proposer or consumes a message.
    `transitions` is pan's stored + matched, which counts the initial state too: one more than there are steps.
    """
    for tool in ("spin", "gcc"):
        if shutil.which(tool) is None:
            raise SpinError(f"{tool} is not on the PATH: install Debian's package {tool}")
    expected = expected_states(proposers, acceptors, learners)
    bits = hash_bits or (24 if expected is None else max(16, (2 * expected).bit_length()))
    depth = proposers * (1 + acceptors * (3 + learners)) + 10
    with tempfile.TemporaryDirectory(prefix="plait-spin-") as name:
        work = Path(name)
        (work / "paxos.pml").write_text(promela(proposers, acceptors, learners), encoding="ascii")
        _call(["spin", "-a", "paxos.pml"], work)
        pan = work / "pan.c"  # its report rounds to 8 digits: let it print whole numbers
        pan.write_text(pan.read_text(encoding="utf-8").replace("%9.8g", "%9.0f"), encoding="utf-8")
        _call(["gcc", *FLAGS, f"-DMEMLIM={memory_mb}", *extra_flags, "-o", "pan", "pan.c"], work)
        report = _call(["./pan", f"-m{depth}", f"-w{bits}"], work)
    errors = int(_number(r"errors: (\d+)", report))
    if errors == 0 and ("Search not completed" in report or "max search depth too small" in report):
        raise SpinError(f"the search is incomplete:\n{report}")
    return {
        "states": int(_number(r"^\s*(\d+) states, stored", report)),
        "transitions": int(_number(r"^\s*(\d+) transitions \(= stored\+matched\)", report)),
        "seconds": _number(r"elapsed time (\S+) seconds", report),
        "memory_mb": _number(r"^\s*(\S+)\s+(?:total actual memory usage|memory usage \(Mbyte\))", report),
        "errors": errors,
    }


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Verify single-message Paxos with Spin.")
    for role in ("proposers", "acceptors", "learners"):
        parser.add_argument(role, type=int)
    parser.add_argument("--hash-bits", type=int, help="pan's -w (default: by the number of states)")
    parser.add_argument("--model", action="store_true", help="print the Promela model and stop")
    args = parser.parse_args()
    if args.model:
        print(promela(args.proposers, args.acceptors, args.learners), end="")
    else:
        print(json.dumps(run(args.proposers, args.acceptors, args.learners, hash_bits=args.hash_bits)))


if __name__ == "__main__":
    main()
