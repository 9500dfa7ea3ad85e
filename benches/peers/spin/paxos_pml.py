"""Spin's side of the Paxos benchmark: emit the model in Promela, verify it, parse what pan reports.

The protocol is single-message Paxos: proposer i owns ballot and value i + 1, every message is one step. Each possible
message (kind, sender, receiver, ballot) is one slot, reset when it is consumed, so delivery is unordered and lossless; a
message whose guard is false stays in its slot. One process takes every step, each in one d_step: its program counter
never moves, so Spin's states are exactly those of the protocol. All sizes are known here, therefore every loop is
unrolled into scalars: no index is computed while Spin searches.

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
Result = dict[str, int | float]


class SpinError(RuntimeError):
    """Spin or the C compiler is missing, or a run did not give a complete search."""


def promela(proposers: int, acceptors: int, learners: int) -> str:
    """The Promela model of Paxos with these numbers of processes."""
    if min(proposers, acceptors, learners) < 1:
        raise ValueError("proposers, acceptors and learners must each be at least 1")
    majority = acceptors // 2 + 1
    ps, accs, ls = range(proposers), range(acceptors), range(learners)
    ballots = range(1, proposers + 1)
    state: list[str] = []
    steps: list[str] = []

    def var(name: str, largest: int) -> None:
        state.append(f"unsigned {name} : {largest.bit_length()};")

    def step(comment: str, guard: str, *effects: str) -> None:
        body = ";\n      ".join(effects)
        steps.append(f"  /* {comment} */\n  :: d_step {{ {guard} ->\n      {body} }}")

    for p in ps:
        b = p + 1
        var(f"phase_{p}", DONE)
        var(f"count_{p}", majority)
        var(f"best_ballot_{p}", proposers)
        var(f"best_value_{p}", proposers)
        for a in accs:
            var(f"read_{p}_{a}", 1)
            var(f"repl_{p}_{a}", 1)
            var(f"repl_ballot_{p}_{a}", proposers)
            var(f"repl_value_{p}_{a}", proposers)
            var(f"write_{p}_{a}", proposers)  # the value; 0 is no message
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
        var(f"promised_{a}", proposers)
        var(f"accepted_ballot_{a}", proposers)
        var(f"accepted_value_{a}", proposers)
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
            var(f"learned_{n}_{b}", proposers)
            others = [f"learned_{m}_{c}" for m in ls for c in ballots if (m, c) != (n, b)]
            agree = "".join(f";\n        assert({o} == 0 || {o} == learned_{n}_{b})" for o in others)
            for a in accs:
                slot = f"accept_{a}_{n}_{b}"
                var(slot, proposers)  # the value; 0 is no message
                step(
                    f"learner {n} receives ACCEPT({b}, value) from acceptor {a}",
                    f"{slot} && votes_{n}_{b} < {majority}",
                    f"votes_{n}_{b} = votes_{n}_{b} + 1",
                    f"if :: votes_{n}_{b} == {majority} -> learned_{n}_{b} = {slot}{agree}\n      :: else fi",
                    f"{slot} = 0",
                )

    declarations, choices = "\n".join(state), "\n".join(steps)
    return f"{declarations}\n\nactive proctype system() {{\nend:\n  do\n{choices}\n  od\n}}\n"


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


def run(proposers: int, acceptors: int, learners: int, *, hash_bits: int = 24, memory_mb: int = 16_000) -> Result:
    """Verify with Spin, no reduction, no compression; `seconds` is pan's own time, without generating and compiling.

    `hash_bits` is pan's -w: 2**24 slots of 8 bytes hold well over 10 million states; give a bigger one beyond. Every
    step consumes a message or starts a proposer, so the depth of the search is bounded and known.
    """
    for tool, package in (("spin", "spin"), ("gcc", "gcc")):
        if shutil.which(tool) is None:
            raise SpinError(f"{tool} is not on the PATH: install Debian's package {package}")
    depth = proposers * (1 + acceptors * (3 + learners)) + 10
    with tempfile.TemporaryDirectory(prefix="plait-spin-") as name:
        work = Path(name)
        (work / "paxos.pml").write_text(promela(proposers, acceptors, learners), encoding="ascii")
        _call(["spin", "-a", "paxos.pml"], work)
        flags = ["-O3", "-DNOREDUCE", "-DSAFETY", f"-DMEMLIM={memory_mb}"]
        _call(["gcc", *flags, "-o", "pan", "pan.c"], work)
        report = _call(["./pan", f"-m{depth}", f"-w{hash_bits}"], work)
    errors = int(_number(r"errors: (\d+)", report))
    if errors == 0 and ("Search not completed" in report or "max search depth too small" in report):
        raise SpinError(f"the search is incomplete:\n{report}")
    return {
        "states": int(_number(r"^\s*(\S+) states, stored", report)),
        "transitions": int(_number(r"^\s*(\S+) transitions \(= stored\+matched\)", report)),
        "seconds": _number(r"elapsed time (\S+) seconds", report),
        "memory_mb": _number(r"^\s*(\S+)\s+total actual memory usage", report),
        "errors": errors,
    }


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Verify single-message Paxos with Spin.")
    for role in ("proposers", "acceptors", "learners"):
        parser.add_argument(role, type=int)
    parser.add_argument("--hash-bits", type=int, default=24, help="pan's -w (default 24)")
    parser.add_argument("--model", action="store_true", help="print the Promela model and stop")
    args = parser.parse_args()
    if args.model:
        print(promela(args.proposers, args.acceptors, args.learners), end="")
    else:
        print(json.dumps(run(args.proposers, args.acceptors, args.learners, hash_bits=args.hash_bits)))


if __name__ == "__main__":
    main()
