"""Spin's side of the Paxos benchmark: state the model in Promela, verify it, parse what pan reports.

The protocol is single-message Paxos (`plait.protocols.paxos` with quorum=False), in two statements that have exactly its
states and transitions:

- `plain` (paxos.pml): as one writes it, a process per role instance, byte arrays for the message slots;
- `unrolled` (unrolled.py): one process, bit fields, no index to compute; as fast as a statement of it gets in Spin.

From benches/:

    python -m peers.spin.paxos_pml 2 3 2                     verify with Spin; print one line of JSON
    python -m peers.spin.paxos_pml 2 3 2 --style unrolled    the other statement
    python -m peers.spin.paxos_pml 2 3 2 --model             print the Promela model
"""

from __future__ import annotations

import argparse
import functools
import json
import re
import resource
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Literal, get_args

from . import unrolled

Style = Literal["plain", "unrolled"]
FLAGS = ("-O3", "-DNOREDUCE", "-DSAFETY")
# Distinct states with one proposer, by (acceptors, learners); counted by Spin and by a brute-force search alike.
ONE_PROPOSER = {(3, 1): 177, (3, 2): 681, (3, 3): 3_381, (4, 1): 713, (4, 2): 4_825, (5, 1): 9_473, (5, 2): 105_073}
Result = dict[str, int | float]


class SpinError(RuntimeError):
    """Spin or the C compiler is missing, or a run did not give a complete search."""


def promela(proposers: int, acceptors: int, learners: int, style: Style = "plain") -> str:
    """The Promela model of Paxos with these numbers of processes."""
    if min(proposers, acceptors, learners) < 1:
        raise ValueError("proposers, acceptors and learners must each be at least 1")
    if style == "unrolled":
        return unrolled.promela(proposers, acceptors, learners)
    ps, accs = range(proposers), range(acceptors)
    sizes = {
        "P": proposers,
        "A": acceptors,
        "L": learners,
        "MAJORITY": acceptors // 2 + 1,
        "EACH_PROPOSER(step)": " ".join(f":: step({p})" for p in ps),
        "EACH_ACCEPTOR(step)": " ".join(f":: step({a})" for a in accs),
        "EACH_VOTE(step)": " ".join(f":: step({p}, {a})" for p in ps for a in accs),
    }
    body = Path(__file__).with_name("paxos.pml").read_text(encoding="ascii")
    return "".join(f"#define {name} {value}\n" for name, value in sizes.items()) + "\n" + body


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


def _cpu() -> float:
    """Processor time of the child processes so far."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


@functools.cache
def _workspace() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="plait-spin-")


@functools.cache
def _verifier(
    proposers: int, acceptors: int, learners: int, style: Style, memory_mb: int, extra_flags: tuple[str, ...]
) -> Path:
    """Generate and compile pan, once for each model; the directory it is in."""
    for tool in ("spin", "gcc"):
        if shutil.which(tool) is None:
            raise SpinError(f"{tool} is not on the PATH: install Debian's package {tool}")
    work = Path(tempfile.mkdtemp(dir=_workspace().name))
    (work / "paxos.pml").write_text(promela(proposers, acceptors, learners, style), encoding="ascii")
    _call(["spin", "-a", "paxos.pml"], work)
    pan = work / "pan.c"  # its report rounds to 8 digits: let it print whole numbers
    pan.write_text(pan.read_text(encoding="utf-8").replace("%9.8g", "%9.0f"), encoding="utf-8")
    _call(["gcc", *FLAGS, f"-DMEMLIM={memory_mb}", *extra_flags, "-o", "pan", "pan.c"], work)
    return work


def run(
    proposers: int,
    acceptors: int,
    learners: int,
    *,
    style: Style = "plain",
    hash_bits: int | None = None,
    memory_mb: int = 16_000,
    extra_flags: tuple[str, ...] = (),
) -> Result:
    """Verify with Spin, without reduction; `seconds` is pan's own time, without generating and compiling.

    `hash_bits` is pan's -w. By default the table has 2 to 4 slots a state, the fastest of those tried (2**24 slots
    where the count is not known beforehand). The depth is bounded: each step starts a proposer or consumes a message.
    `transitions` is pan's stored + matched, which counts the initial state too: one more than there are steps. `cpu` is
    the processor time of pan's whole process.
    """
    expected = expected_states(proposers, acceptors, learners)
    bits = hash_bits or (24 if expected is None else max(16, (2 * expected).bit_length()))
    depth = proposers * (1 + acceptors * (3 + learners)) + 10
    work = _verifier(proposers, acceptors, learners, style, memory_mb, extra_flags)
    before = _cpu()
    report = _call(["./pan", f"-m{depth}", f"-w{bits}"], work)
    cpu = _cpu() - before
    errors = int(_number(r"errors: (\d+)", report))
    if errors == 0 and ("Search not completed" in report or "max search depth too small" in report):
        raise SpinError(f"the search is incomplete:\n{report}")
    return {
        "states": int(_number(r"^\s*(\d+) states, stored", report)),
        "transitions": int(_number(r"^\s*(\d+) transitions \(= stored\+matched\)", report)),
        "seconds": _number(r"elapsed time (\S+) seconds", report),
        "cpu": cpu,
        "vector_bytes": int(_number(r"^State-vector (\d+) byte", report)),
        "memory_mb": _number(r"^\s*(\S+)\s+(?:total actual memory usage|memory usage \(Mbyte\))", report),
        "errors": errors,
    }


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Verify single-message Paxos with Spin.")
    for role in ("proposers", "acceptors", "learners"):
        parser.add_argument(role, type=int)
    parser.add_argument("--style", choices=get_args(Style), default="plain", help="which statement of the protocol")
    parser.add_argument("--hash-bits", type=int, help="pan's -w (default: by the number of states)")
    parser.add_argument("--model", action="store_true", help="print the Promela model and stop")
    args = parser.parse_args()
    sizes = (args.proposers, args.acceptors, args.learners)
    if args.model:
        print(promela(*sizes, args.style), end="")
    else:
        print(json.dumps(run(*sizes, style=args.style, hash_bits=args.hash_bits)))


if __name__ == "__main__":
    main()
