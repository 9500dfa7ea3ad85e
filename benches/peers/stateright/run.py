"""Build Stateright's side of the Paxos benchmark and run it.

python run.py 2 3 2      clients, servers, threads; prints one line of JSON
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
Result = dict[str, int | float]


class StaterightError(RuntimeError):
    """cargo is missing, or the build or the run failed."""


def _call(command: list[str]) -> str:
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise StaterightError(f"`{' '.join(command)}` failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def run(clients: int, servers: int, threads: int) -> Result:
    """Check the model with Stateright's BFS; `seconds` is the search alone, without the build."""
    if shutil.which("cargo") is None:
        raise StaterightError("cargo is not on the PATH: install the Rust toolchain")
    _call(["cargo", "build", "--release", "--locked", "--quiet", "--target-dir", "target"])
    report = _call(["target/release/stateright-paxos", str(clients), str(servers), str(threads)])
    result: Result = json.loads(report)
    return result


def main() -> None:
    """The command line."""
    if len(sys.argv) != 4 or not all(a.isdigit() for a in sys.argv[1:]):
        sys.exit("usage: python run.py CLIENTS SERVERS THREADS")
    clients, servers, threads = map(int, sys.argv[1:])
    print(json.dumps(run(clients, servers, threads)))


if __name__ == "__main__":
    main()
