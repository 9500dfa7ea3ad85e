"""`plait`: the entry point, and what each way of ending means to the caller.

Exit codes: 0 holds, 1 violated, 2 usage or model error, 3 inconclusive, 4 internal error. Commands are loaded when they
are called, so that `plait --help` imports neither the engine nor the model of anyone.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence

from cyclopts import App, CycloptsError

import plait
from plait.cli.output import close, complain
from plait.kernel.errors import PlaitError

USAGE_ERROR, INCONCLUSIVE, INTERNAL_ERROR = 2, 3, 4

_EXAMPLES = {
    "": """\
  plait check paxos
  plait check paxos -p faulty=acceptor --html report.html
  plait show paxos
  plait replay .plait/paxos-agreement.itf.json""",
    "check": """\
  plait check paxos -p proposers=3 --workers 2
  plait check models/token.py:ring -p nodes=4 --search dfs --max-depth 50
  plait check my.models:queue --search random --walks 1e6 --timeout 10m
  plait check paxos --json | jq .states""",
    "show": """\
  plait show paxos
  plait show paxos -p quorum=false --decomposition
  plait show models/token.py:ring -p nodes=4 --json""",
    "graph": """\
  plait graph two_phase_commit -p resource_managers=2 -o commit.svg
  plait graph models/token.py:ring --max-states 30
  plait graph paxos -o paxos.dot
  plait graph ping_pong --json | jq '.states | length'""",
    "replay": """\
  plait replay .plait/paxos-agreement.itf.json
  plait replay .plait/paxos-agreement.itf.json --step 4""",
    "zoo": """\
  plait zoo""",
    "bench": """\
  plait bench dbss --quick
  plait bench quorum --json | jq -r .summary[]
  plait bench peers --quick""",
    "bench dbss": """\
  plait bench dbss --quick
  plait bench dbss --quorum --plot dbss.svg
  plait bench dbss --markdown > dbss.md
  plait bench dbss --json | jq '.rows[] | select(.verdict == "inconclusive")'""",
    "bench quorum": """\
  plait bench quorum
  plait bench quorum --markdown --plot quorum.svg
  plait bench quorum --json | jq -r .summary[]""",
    "bench peers": """\
  plait bench peers --quick
  plait bench peers --tla2tools ~/tla2tools.jar --plot peers.svg
  plait bench peers --json | jq '.rows[] | select(.checker == "Spin") | {setting, slower, larger}'""",
    "bench gyro": """\
  plait bench gyro --quick
  plait bench gyro --figure latency --figure share --plot gyro.svg
  plait bench gyro --json | jq -r .summary[]""",
    "gyro": """\
  plait gyro analyze examples/gyro/store.py
  plait gyro analyze examples/gyro/tpcw.py --html tpcw.html""",
    "gyro analyze": """\
  plait gyro analyze shop.py --schema shop.sql
  plait gyro analyze shop/ --dialect postgres --schema shop.sql --html shop.html
  plait gyro analyze transactions.yaml --weights weights.yaml
  plait gyro analyze shop.py --json | jq '.operations[] | select(.class == "global") | .name'""",
    "gyro serve": """\
  plait gyro serve examples/gyro/store.py --servers 3
  plait gyro serve shop.py --db postgresql --schema shop.sql --data items.sql
  plait gyro serve shop.py --db postgresql --dsn "host=a dbname=shop" --dsn "host=b dbname=shop" --servers 2
  curl -d '{"parameters": {"cart": 7}}' http://127.0.0.1:8401/call/create""",
    "gyro status": """\
  plait gyro status
  plait gyro status http://127.0.0.1:8400 --json | jq '.servers[] | .lag'
  curl http://127.0.0.1:8400/metrics""",
    "completion": """\
  eval "$(plait completion bash)"
  plait completion fish > ~/.config/fish/completions/plait.fish""",
}
_EXIT_CODES = "Exit codes: 0 holds, 1 violated, 2 usage or model error, 3 inconclusive, 4 internal error."


_BENCH_EXIT_CODES = (
    "Exit codes: 0 every verdict is the published one, 1 one is not, 2 usage error, 3 interrupted, 4 internal error."
)
_PEERS_EXIT_CODES = (
    "Exit codes: 0 all found the same states, 1 counts differ, 2 usage error, 3 interrupted or a checker failed, "
    "4 internal error."
)


def _epilogue(command: str) -> str:
    codes = _BENCH_EXIT_CODES if command.startswith("bench") else _EXIT_CODES
    codes = _PEERS_EXIT_CODES if command == "bench peers" else codes
    if command == "bench gyro":
        codes = "Exit codes: 0 measured, 2 usage error, 3 interrupted, 4 internal error."
    if command.startswith("gyro"):
        codes = "Exit codes: 0 classified, 2 usage error, 4 internal error."
    if command == "gyro serve":
        codes = "Exit codes: 0 stopped, 2 usage error, 4 internal error."
    if command == "gyro status":
        codes = "Exit codes: 0 every server is well, 1 one is not, 2 usage error, 4 internal error."
    return f"Examples:\n{_EXAMPLES[command]}\n\n{codes}"


app = App(
    name="plait",
    help=(plait.__doc__ or "").split("\n")[0],
    help_epilogue=_epilogue(""),
    help_format="plaintext",
    version=plait.__version__,
    suppress_keyboard_interrupt=False,
    result_action="return_value",
)
_COMMANDS = {
    "check": """Check a model's properties; print the verdict, and the counterexample if there is one.

A counterexample is always saved, and the command that replays it is printed. Ctrl-C ends the search with what was \
found so far. A limit that is hit makes the verdict inconclusive.""",
    "show": "List a model's parameters, processes, handlers and properties.",
    "graph": """Draw or list a model's states and the transitions between them.

States are numbered breadth first; each shows what is new in it. Without a file, the graph is listed on stdout. A model \
with more states than --max-states is drawn in part, and it says which states lead to others that are not shown.""",
    "replay": """Re-execute a saved trace on its model, step by step.

Every step shows the messages it took and sent and the fields it changed. The exit code is 0 if the model reproduces \
the violation, and 2 if it no longer does; then the message names the step.""",
    "zoo": "List the protocols that ship with Plait.",
    "bench": "Measure the tables of the papers again, and other checkers, on this machine.",
    "gyro": "Scale out a SQL application: which operations need no coordination, and servers that run it.",
    "completion": """Print the completion script for a shell.

For bash, put eval "$(plait completion bash)" into ~/.bashrc. For zsh, save the script as _plait in a folder of \
$fpath. For fish, save it as ~/.config/fish/completions/plait.fish.""",
}
_BENCHES = {
    "dbss": """Decomposition-based stateful search: every setting of Table I of paper 000, with every reduction.

Paxos and its faulty twins, the regular register, and Zab: stateless, stateful, with decomposition (DBSS), with \
partial-order reduction (POR), with both, and with symmetry as well. The paper's states stand beside. Searches that \
take long are stopped, and say so. It takes a minute or two; --quick, seconds.""",
    "quorum": """Quorum transitions: the settings of paper 003, message by message and with quorums.

Paxos and its faulty twin, echo multicast, and the regular register: single messages against quorum transitions, both \
without and with partial-order reduction (POR), and the splits of quorum transitions. The last line says what quorum \
transitions remove.""",
    "peers": """Plait beside Spin, Stateright and TLC: protocols that are stated the same way for each.

Two-phase commit, Paxos, Lamport's mutual exclusion (and Stateright's register Paxos, for Stateright alone): every state, \
no reduction. All must find the same states; how fast, and with how much memory, stands beside. A checker that is not \
installed is left out, and it says what to install. Stateright is built by cargo the first time, and TLC fetched by Maven. \
It takes some minutes; --quick, seconds.""",
}
_BENCHES["gyro"] = """Conveyor Belt at five sites: the latency and throughput of section 2.8 of thesis 004.

TPC-W's shopping mix and RUBiS' bidding mix on 2 to 5 servers, against one central server and against replication that is \
local for reads only. Servers are processes on this machine; distances between sites are simulated. It takes some minutes; \
--quick, one or two."""
_GYRO = {
    "analyze": """Classify the transactions of a SQL application: local, global, or local at times (local/global).

From the source, without running it: what each transaction reads and writes, which transactions conflict, by which \
parameter to route each so that as few as possible need coordination; and for those that do, who is in the way and what \
change would make them local. A transaction whose SQL is not known is global, and so is whoever writes what it might \
read.""",
}
_GYRO[
    "serve"
] = """Run a SQL application on several servers, each with its own DBMS: serializable, as if there were one.

Operations arrive over HTTP as JSON. Local ones are executed at once; global ones when the token comes, and what they \
changed travels with it. A server that dies is started again and recovers from the log. Ctrl-C stops all."""
_GYRO["status"] = """Show where the token is, and each server's queue, throughput and lag.

Lag is the number of updates that a server has not applied yet."""
_GROUPS = {"bench": _BENCHES, "gyro": _GYRO}
for _order, (_name, _help) in enumerate(_COMMANDS.items()):
    if _name in _GROUPS:
        _group = App(name=_name, help=_help, help_epilogue=_epilogue(_name), sort_key=_order)
        for _inner, _about in _GROUPS[_name].items():
            _group.command(
                f"plait.cli.{_name}:{_inner}", name=_inner, help=_about, help_epilogue=_epilogue(f"{_name} {_inner}")
            )
        app.command(_group)
        continue
    app.command(f"plait.cli.{_name}:{_name}", name=_name, help=_help, help_epilogue=_epilogue(_name), sort_key=_order)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    tokens = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = app(tokens, exit_on_error=False, print_error=False)
    except PlaitError as error:
        complain(error.message, error.hint)
        code = USAGE_ERROR
    except CycloptsError as error:
        error.verbose = False
        command = next((t for t in tokens if t in _COMMANDS), None)
        if command in _GROUPS:
            command = " ".join([command, *(t for t in tokens[1:2] if t in _GROUPS[command])])
        complain(str(error).strip(), f"see plait {command} --help" if command else "see plait --help")
        code = USAGE_ERROR
    except KeyboardInterrupt:
        complain("interrupted")
        code = INCONCLUSIVE
    except BrokenPipeError:
        code = 0
    except Exception as error:
        traceback.print_exc()
        complain(
            f"internal error: {type(error).__name__}: {error}",
            "this is a bug in Plait, not in your model: please report it with the lines above",
        )
        code = INTERNAL_ERROR
    close()
    return code if isinstance(code, int) else 0


if __name__ == "__main__":
    sys.exit(main())
