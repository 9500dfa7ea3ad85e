"""`plait`: the entry point, the help of all commands, and the exit codes.

Exit codes: 0 holds, 1 violated, 2 usage or model error, 3 inconclusive, 4 internal error. What happens to stdout does not
change the exit code of a verdict. With --json, stdout has exactly one object, also for an error. Commands are loaded when
they are called. So `plait --help` imports neither the engine nor a model.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType

from cyclopts import App, ArgumentCollection, CycloptsError

import _plait_main
import plait
from plait.cli.options import flag, remember, split_dashes
from plait.cli.output import complain, emit_error, safe_streams
from plait.kernel.deadline import OutOfTimeError
from plait.kernel.errors import MissingPackageError, ModelError, PlaitError, TraceError
from plait.model.loading.readers import reads

USAGE_ERROR, INCONCLUSIVE, INTERNAL_ERROR = 2, 3, 4

_EXAMPLES = {
    "": """\
  plait check paxos
  plait check paxos -p faulty=acceptor --html report.html
  plait show paxos
  plait replay .plait/paxos-agreement-faulty=acceptor.itf.json""",
    "check": """\
  plait check paxos -p proposers=3 --workers 2
  plait check models/token.py:ring -p nodes=4 --search dfs --max-depth 50
  plait check my.models:queue --search random --walks 1e6 --timeout 10m
  plait check distal_paxos -p faulty=early -p ballots=4 --rounds --phases 4
  plait check models/token.py --watch
  plait check paxos --json | jq .states""",
    "init": """\
  plait init token_ring
  cd token_ring && plait check token_ring.py --watch""",
    "show": """\
  plait show paxos
  plait show paxos -p quorum=false --decomposition
  plait show models/token.py:ring -p nodes=4 --json""",
    "graph": """\
  plait graph two_phase_commit -p resource_managers=2 -o commit.svg
  plait graph models/token.py:ring --max-states 30
  plait graph paxos -o paxos.dot
  plait graph ping_pong --json | jq '.states | length'""",
    "explore": """\
  plait explore paxos
  plait explore models/token.py:ring -p nodes=4
  plait explore raft -p servers=5 --port 8765 --no-open""",
    "replay": """\
  plait replay .plait/paxos-agreement-faulty=acceptor.itf.json
  plait replay .plait/paxos-agreement-faulty=acceptor.itf.json --step 4
  plait replay .plait/paxos-agreement-faulty=acceptor.itf.json --pdb""",
    "conform": """\
  plait conform raft server.jsonl -p servers=5 -p quorum=false
  plait conform models/kv.py:store logs/ --complete steps --html report.html
  plait conform models/kv.py run1.jsonl run2.jsonl --map read_log.py --json | jq .exit_code
  plait conform models/kv.py server1.jsonl server2.jsonl --merge --follow""",
    "diff": """\
  plait diff .plait/distal_paxos-agreement-faulty=early.itf.json distal_paxos -p faulty=none --html diff.html
  plait diff before.itf.json after.itf.json
  plait diff golden.trace faulty.trace""",
    "bmc": """\
  plait bmc peterson
  plait bmc examples/bmc/c/counter.c --races
  plait bmc examples/bmc/threads/bank.py:main_wrong
  plait bmc philosophers -p n=7 --depth 10 --html report.html
  plait bmc projections --slice y
  plait bmc examples/bmc/counter.py --depth 20 --encoding clock --projection off
  plait bmc indexer --depth 10 --smt2 indexer.smt2 --solver cvc5""",
    "zoo": """\
  plait zoo""",
    "rounds": """\
  plait rounds tags distal_paxos
  plait rounds show distal_paxos
  plait check distal_paxos -p faulty=early -p ballots=4 --rounds --phases 4
  plait rounds import paxos.distal -o paxos.py""",
    "rounds tags": """\
  plait rounds tags distal_paxos
  plait rounds tags models/paxos.py -p replicas=3 --max-states 1e6""",
    "rounds show": """\
  plait rounds show distal_paxos""",
    "rounds emit": """\
  plait rounds emit distal_paxos -p ballots=3 --phases 3 -o sequential.py
  plait rounds emit uniform_voting --assume kernel --to python -o sequential.py
  plait rounds emit distal_paxos --phases 1 --to c -o sequential.c""",
    "rounds import": """\
  plait rounds import paxos.distal -o paxos.py
  plait check paxos.distal -p phases=3""",
    "rounds format": """\
  plait rounds format paxos.distal
  plait rounds format paxos.distal --check""",
    "bench": """\
  plait bench
  plait bench dbss --quick
  plait bench peers --tla2tools ~/tla2tools.jar --plot peers.svg
  plait bench spin startup --markdown > figures.md
  plait bench quorum --json | jq -r '.tables[0].summary[]'""",
    "epa": """\
  plait epa build examples/epa/kmeans.c -o kmeans.epa
  plait epa run kmeans.epa -- 4 60
  plait epa reversible kmeans.trace
  plait epa campaign kmeans.epa --runs 200 --plot kmeans.svg -- 4 60""",
    "epa build": """\
  plait epa build prog.c -o prog.epa
  plait epa build main.cpp util.c --clang 14 -- -Iinclude -DTHREADS=4""",
    "epa run": """\
  plait epa run prog.epa -- 4 100
  plait epa run prog.epa -o faulty.trace --fault bitflip:12:T_0_1:0:32 -- 4 100
  plait epa run prog.epa -o again.trace --replay prog.trace -- 4 100""",
    "epa show": """\
  plait epa show prog.trace --limit 50
  plait epa show prog.trace --thread T_0_1
  plait epa show prog.trace --chrome prog.json --csv prog.csv""",
    "epa sanitize": """\
  plait epa sanitize prog.trace | head
  plait epa sanitize prog.trace -o prog.txt""",
    "epa reversible": """\
  plait epa reversible prog.trace
  plait epa reversible prog.trace --benign-same-value --allow rand --html check.html
  plait epa reversible prog.trace --smt2 prog.smt2 && cvc5 prog.smt2""",
    "epa compare": """\
  plait epa compare prog.trace faulty.trace --html propagation.html
  plait epa compare prog.trace faulty.trace --json | jq .threads""",
    "epa campaign": """\
  plait epa campaign prog.epa --faults bitflip,mallsize --runs 500 --html runs.html --csv runs.csv -- 4 100
  plait epa campaign prog.epa --faults skipunlock,droplock,killthread --runs 50 -- 4
  plait epa campaign prog.epa --faults branch,my_faults.py --where function=sort --width 0.1 -- 4
  plait epa campaign prog.epa --runs 1000 --jobs 2 --tolerance 1e-6 < input.txt
  plait epa campaign prog.epa --oracle checker.py --ignore stderr""",
    "gyro": """\
  plait gyro analyze examples/gyro/store.py
  plait gyro analyze examples/gyro/tpcw.py --html tpcw.html""",
    "gyro analyze": """\
  plait gyro analyze shop.py --schema shop.sql
  plait gyro analyze shop/ --dialect postgres --schema shop.sql --html shop.html
  plait gyro analyze transactions.yaml --weights weights.yaml
  plait gyro analyze shop.py --json | jq '.operations[] | select(.class == "global") | .name'""",
    "gyro record": """\
  plait gyro record shop.yaml -- pytest tests/
  plait gyro record blog.yaml -- python manage.py test
  plait gyro analyze shop.yaml
  plait gyro serve shop:app --recording shop.yaml --data items.sql""",
    "gyro serve": """\
  plait gyro serve examples/gyro/store.py --servers 3
  plait gyro serve shop.py --db postgresql --schema shop.sql --data items.sql
  plait gyro serve --config gyro.toml --only 0
  plait gyro serve shop.py --db postgresql --dsn "host=a dbname=shop" --dsn "host=b dbname=shop" --servers 2
  plait gyro serve shop.py --db mariadb --servers 2
  plait gyro serve shop.py --replicate acknowledged --rebuild 1
  curl -d '{"parameters": {"cart": 7}}' http://127.0.0.1:8401/call/create""",
    "gyro backup": """\
  plait gyro backup shop.backup
  plait gyro backup shop.backup /srv/shop
  PLAIT_GYRO_SECRET=… plait gyro backup shop.backup http://127.0.0.1:8400""",
    "gyro restore": """\
  plait gyro restore shop.backup --folder /srv/shop2
  plait gyro restore shop.backup --folder /srv/shop2 --log etcd:http://127.0.0.1:2379""",
    "gyro change": """\
  plait gyro change --add http://127.0.0.1:8403
  plait gyro change --remove 1
  plait gyro change --remove 1 --dead
  plait gyro change --application shop2.py --migration shop2.migration.sql
  plait gyro change --application shop2:app --recording shop2.yaml
  plait gyro change --abort""",
    "gyro status": """\
  plait gyro status
  plait gyro status http://127.0.0.1:8400 --json | jq '.servers[] | .lag'
  curl http://127.0.0.1:8400/metrics""",
    "completion": """\
  eval "$(plait completion bash)"
  plait completion fish > ~/.config/fish/completions/plait.fish""",
}
_EXIT_CODES = "Exit codes: 0 holds, 1 violated, 2 usage or model error, 3 inconclusive, 4 internal error."


_EPA_EXIT_CODES = (
    "Exit codes: 0 done, equal or pseudo-deterministic, 1 deviating or not pseudo-deterministic, 2 usage error, "
    "3 inconclusive, not comparable or interrupted, 4 internal error."
)
_BENCH_EXIT_CODES = (
    "Exit codes: 0 all counts and verdicts are as expected, 1 a count or verdict differs, 2 usage error, 3 interrupted, a "
    "run failed, or nothing was measured, 4 internal error."
)


def _epilogue(command: str) -> str:
    codes = {"bench": _BENCH_EXIT_CODES, "epa": _EPA_EXIT_CODES}.get(command.partition(" ")[0], _EXIT_CODES)
    if command == "diff":
        codes = "Exit codes: 0 the same, 1 different, 2 usage error, 4 internal error."
    if command == "replay":
        codes = "Exit codes: 0 reproduced, 2 not reproduced or usage error, 3 interrupted, 4 internal error."
    if command == "graph":
        codes = "Exit codes: 0 done, 2 usage or model error, 3 the timeout was reached, 4 internal error."
    if command == "explore":
        codes = "Exit codes: 0 ended by Ctrl-C, 2 usage or model error, 4 internal error."
    if command == "init":
        codes = "Exit codes: 0 done, 2 usage error, 4 internal error."
    if command in ("show", "zoo", "completion", "rounds show", "rounds emit", "rounds import"):
        codes = "Exit codes: 0 done, 2 usage or model error, 4 internal error."
    if command == "rounds format":
        codes = "Exit codes: 0 done, 1 the layout is another one (--check), 2 usage or model error, 4 internal error."
    if command.startswith("gyro"):
        codes = "Exit codes: 0 classified, 2 usage error, 4 internal error."
    if command == "gyro record":
        codes = "Exit codes: 0 recorded, 2 usage error, or the tests failed, 4 internal error."
    if command == "gyro serve":
        codes = "Exit codes: 0 stopped, 2 usage error, 4 internal error."
    if command in ("gyro backup", "gyro change", "gyro restore"):
        codes = "Exit codes: 0 done, 2 usage error, 4 internal error."
    if command == "gyro status":
        codes = "Exit codes: 0 all servers work, 1 a server does not work, 2 usage error, 4 internal error."
    return f"Examples:\n{_EXAMPLES[command]}\n\n{codes}"


app = App(
    name="plait",
    help=(plait.__doc__ or "").split("\n")[0],
    help_epilogue=_epilogue(""),
    help_format="plaintext",
    version=lambda: plait.__version__,
    suppress_keyboard_interrupt=False,
    result_action="return_value",
)
_COMMANDS = {
    "check": """Check the properties of a model. Print the verdict, and the counterexample if there is one.

A counterexample is always saved, and the command that replays it is printed. Ctrl-C, SIGTERM and SIGHUP end the search \
with what was found so far. If the search reaches a limit, the verdict is inconclusive.""",
    "init": """Write a model, its tests and a README to start from, in a new folder.

The model holds. With -p remembers=false it has a fault, which plait check finds.""",
    "show": "List the parameters, processes, handlers and properties of a model.",
    "graph": """Draw or list the states of a model and the transitions between them.

States are numbered in breadth-first order. Each state shows what differs from the state that first led \
to it. Without a file, the graph is listed on stdout. \
If a model has more states than --max-states, only a part is shown; a note names the states with hidden successors.""",
    "explore": """Walk through the states of a model in a browser.

The command serves a page on this machine only, prints its address and opens it. The page shows which steps are possible \
and why others are not, searches in the background, draws the state graph, and loads the model again when a file of it \
is saved. Ctrl-C ends the command.""",
    "replay": """Re-execute a saved trace on its model, step by step.

Each step shows the messages that it takes and sends, and the fields that it changes. The exit code is 0 if the model \
reproduces the violation, and 2 if it does not; then the message names the step. With --pdb, the debugger stops inside \
the handler of a step.""",
    "conform": """Decide whether the log of an implementation is a run of a model.

Events name what the implementation recorded of its steps: handlers, messages, fields. What is not recorded is free. If no \
run of the model explains the log, the event that no step explains is shown, and for each step that might the guard or the \
value that forbids it. Properties are checked along the run. docs/reference/conform.md has the format of logs.""",
    "diff": """Compare two traces: which steps are the same, where they differ first, how the last states differ.

A trace is a file that plait check saved, the output of plait check --json, or a folder that plait epa run recorded. If \
the second argument is a model, plait diff replays the first trace on it as far as possible, for example on a fixed \
model. The exit code is 0 if the runs are the same, and 1 if they differ.""",
    "bmc": """Check a program whose threads share variables: C, Python, or the small language of Plait.

Deadlocks, failed assertions, misused locks, invalid memory and indices out of range are found without a property. \
Several searches run at the same time: all states are enumerated, and solvers look for runs of growing length. Without \
--depth, they end when a property is violated or all runs are covered. Plait executes a counterexample before it shows \
it, saves it, and prints the command that replays it.""",
    "zoo": "List the protocols that come with Plait.",
    "rounds": """Work with protocols that go through rounds: tags, round structure, sequential program.

Messages are @tagged with a phase and a round, and System(rounds=[…]) gives the order: see docs/reference/rounds.md.""",
    "bench": """Run benchmarks: tables of the papers, other checkers on the same protocols, speed and memory of the engine.

Without a name, the command lists all benchmarks. Tables show published values next to the measured ones. A missed target \
is reported but is not an error, because machines differ. A count or a verdict that differs from the expected one is an \
error. If the help of an option names benchmarks, only these benchmarks take it.""",
    "gyro": "Scale out a SQL application: find operations that need no coordination, run it on several servers.",
    "epa": """Error propagation analysis: record threaded C and C++ programs, inject faults, follow the errors.

Traces of two runs differ in addresses and in the schedule. Plait removes both differences. It proves from one golden \
run that all other differences come from a fault.""",
    "completion": """Print the completion script for a shell.

For bash, put eval "$(plait completion bash)" into ~/.bashrc. For zsh, save the script as _plait in a folder of \
$fpath. For fish, save it as ~/.config/fish/completions/plait.fish.""",
}
_ROUNDS = {
    "tags": """Decide whether a protocol is round-based: the conditions of Sequentialization, sections 4.2 and 5.1.

Conditions that do not follow from the declarations are checked on the asynchronous states, up to a limit. If there are \
more states, three phases of the sequential program are audited. For a broken condition, the handler, its line and a run \
are shown.""",
    "show": """Print the phase structure of a protocol, and its rounds with their SEND and UPDATE parts.

The main loop is unfolded once per round (Sequentialization, Fig. 9). Handlers that cannot run there are left out.""",
    "emit": """Write the sequential program of a protocol (Sequentialization, Algorithm 1) for plait check or other tools.

--to plait (default) writes a model, --to python a program that needs nothing but Python, --to distal and --to p a Distal \
text and a P program (of protocols in Distal), --to c a program for plait bmc, CBMC and other checkers of C. What a \
language cannot express is refused by name. plait check \
TARGET --rounds checks the same program directly, and shows a violation as a run of the protocol itself.""",
    "import": """Translate a Distal or P text to a Plait model in Python.

Each command also takes FILE.distal and FILE.p as a target, so such a text can be checked directly \
(docs/reference/distal.md, docs/reference/p.md).""",
    "format": """Lay out a Distal text: indentation, spaces, semicolons, columns of comments.

The file is rewritten, unless --check is given or --output names another file. Names, operators, comments and the order of \
lines stay. The new text has the same syntax tree.""",
}
_GYRO = {
    "analyze": """Classify the transactions of a SQL application: local, global, or local/global.

The analysis reads the source and runs nothing. It finds what each transaction reads and writes, and which \
transactions conflict. Then it chooses the parameter that routes each transaction, so that as few operations as \
possible need coordination. For each global transaction, it names the conflicts and proposes a change. A transaction \
whose SQL is not known is global, and then all transactions that write are global.""",
    "record": """Record a web application (Flask, FastAPI, Django): run its tests, and write the SQL of each endpoint.

The command after -- runs the tests in Python processes. The recording lists the statements of each endpoint, and which \
of their values come from the request. It is a list of transactions for plait gyro analyze. With plait gyro serve \
--recording, servers run the application, and refuse statements that are not in the recording.""",
    "serve": """Run a SQL application on several servers, each with its own DBMS. Executions are serializable.

Clients call operations over HTTP with JSON. A local operation executes at once. A global operation waits for the \
token, and its updates travel with the token. A server that dies is restarted and recovers from the log. Ctrl-C stops \
all servers.""",
    "backup": """Write one consistent cut of a cluster to a file, while its servers work.

The file has all updates of global and local operations in the log. Local updates must be replicated (plait gyro serve \
--replicate). The file is checked after it was written.""",
    "restore": """Make a new cluster from a backup, in a new folder.

The new cluster has an identity of its own: servers and logs of the old one are refused. Requests from before the \
backup are known for one more hour, and are not executed again.""",
    "change": """Add and remove servers, and change operations and tables, while the servers work.

All servers switch to the new configuration at the same entry of the log. Local operations wait meanwhile. Local updates \
must be replicated (plait gyro serve --replicate). If a server does not get ready in time, or a migration fails, the change \
is aborted, and nothing has changed.""",
    "status": """Show the position of the token, and the queue, throughput and lag of each server.

The lag is the number of updates that a server has not applied yet.""",
}
_EPA = {
    "build": """Compile C and C++ sources to a program that records itself.

It needs clang and the libLLVM of the same version (14 or later). Arguments after -- go to clang. For build systems, use \
plait-cc and plait-c++ as compilers: make CC=plait-cc.""",
    "run": """Run a program from plait epa build, and record the trace of all its threads.

A trace is a folder. The recorded part survives a crash, and the trace names the threads that were cut off. With --replay, \
the run takes the order of locks and results such as the time from a golden run, until it diverges.""",
    "show": "Print the events of a trace, or write them for Perfetto, pandas or the viewer.",
    "sanitize": """Print a trace without the differences that come from allocation and scheduling.

Addresses become memory objects with offsets (Saissi 2019, Algorithm 4). Threads get canonical names (Algorithm 5). The \
objects and the thread map follow the events. The digest on stderr is equal for equal traces.""",
    "reversible": """Check that comparisons with a trace are sound: no two dependent events can occur in reversed order.

If the check fails, a witness is shown: the two events, and a schedule that reverses them. --replay checks comparisons with \
runs that replay this one.""",
    "compare": """Compare a faulty run with the golden run: first deviations, and propagation of the error.

The golden run is checked first, as by plait epa reversible. If it is not proven that all differences come from the \
fault, no difference is shown and the exit code is 3.""",
    "campaign": """Inject faults, one per run, and count the outcomes.

The golden run is checked first. The outcomes are crash, hang, SDC (silent data corruption), masked and none, counted by \
type of fault, with the share of runs in which the error spread. If the runs are comparable only with replay, all of \
them replay the golden run.""",
}
_GROUPS = {"epa": _EPA, "gyro": _GYRO, "rounds": _ROUNDS}
_ELSEWHERE = {
    "rounds import": "plait.cli.rounds_import:import_distal",
    "rounds emit": "plait.cli.rounds:emit_program",
    "rounds format": "plait.cli.rounds_import:format_distal",
}
"""The places of commands that are not the function with their name in the module of the group."""
PLACES: dict[str, str] = {}
"""For each command, the module and the function that it calls."""
_LISTINGS = {"show", "graph", "zoo", "completion", "rounds show", "rounds emit", "rounds import", "gyro analyze"}
_LISTINGS |= {"epa show", "epa sanitize"}
"""Commands whose result is their output. If it is lost, they have not done what was asked."""


def _serve_config(_app: App, _commands: object, arguments: ArgumentCollection) -> None:
    from plait.cli.gyro_config import read_config

    read_config(arguments)


_CONFIGS = {"gyro serve": _serve_config}
"""Commands that also take options from a file: Cyclopts calls these functions with the arguments of the command line."""
for _order, (_name, _help) in enumerate(_COMMANDS.items()):
    if _name in _GROUPS:
        _group = App(name=_name, help=_help, help_epilogue=_epilogue(_name), sort_key=_order)
        for _part, _about in _GROUPS[_name].items():
            _both = f"{_name} {_part}"
            PLACES[_both] = _ELSEWHERE.get(_both, f"plait.cli.{_name}:{_part}")
            _group.command(
                PLACES[_both], name=_part, help=_about, help_epilogue=_epilogue(_both), config=_CONFIGS.get(_both, ())
            )
        app.command(_group)
        continue
    PLACES[_name] = f"plait.cli.{_name}:{_name}"
    app.command(PLACES[_name], name=_name, help=_help, help_epilogue=_epilogue(_name), sort_key=_order)


def _distal(path: Path) -> ModuleType:
    from plait.rounds.distal.module import module_of

    return module_of(path)


def _p(path: Path) -> ModuleType:
    from plait.rounds.p.module import module_of

    return module_of(path)


reads(".distal", _distal)
reads(".p", _p)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. Without arguments, it is the command of this process."""
    if arguments is None:
        _plait_main.prepare()
    tokens = list(sys.argv[1:] if arguments is None else arguments)
    remember(tokens)
    if tokens[:1] == ["epa"] or tokens[:2] == ["gyro", "record"]:
        tokens = split_dashes(tokens)
    json = any(token == "--json" or token.startswith("--json=") for token in tokens)
    with safe_streams(only_data=json) as out:
        try:
            code = _run(tokens, json=json)
        except KeyboardInterrupt:  # a second one, while the first one was reported
            code = INCONCLUSIVE
        if json and not out.objects and code != 0:
            emit_error("interrupted", "interrupted", None, code)
        out.flush()
        if code == 0 and out.failed and _command(tokens) in _LISTINGS:
            code = USAGE_ERROR
    return code


def _run(tokens: list[str], *, json: bool) -> int:
    def failed(kind: str, message: str, hint: str | None, code: int) -> int:
        complain(message, hint)
        if json:
            emit_error(kind, message, hint, code)
        return code

    try:
        code = app(tokens, exit_on_error=False, print_error=False)
    except PlaitError as error:
        kinds = {MissingPackageError: "package", ModelError: "model", TraceError: "trace"}
        kind = next((kind for cls, kind in kinds.items() if isinstance(error, cls)), "usage")
        return failed(kind, *error.spelled(flag), USAGE_ERROR)
    except CycloptsError as error:
        error.verbose = False
        command = _command(tokens)
        return failed("usage", str(error).strip(), f"see plait {command}".rstrip() + " --help", USAGE_ERROR)
    except KeyboardInterrupt:
        return failed("interrupted", "interrupted", None, INCONCLUSIVE)
    except OutOfTimeError:
        return failed("timeout", "stopped: the timeout was reached", "give a larger --timeout", INCONCLUSIVE)
    except Exception as error:
        with suppress(OSError, ValueError):
            traceback.print_exc()
        message = f"internal error: {type(error).__name__}: {error}"
        hint = "this is a bug in Plait, not in your model: report it with the lines above"
        return failed("internal", message, hint, INTERNAL_ERROR)
    return code if isinstance(code, int) else 0


def _command(tokens: Sequence[str]) -> str:
    """The command that the tokens name, with the part of a group."""
    command = next((t for t in tokens if t in _COMMANDS), "")
    if command in _GROUPS:
        command = " ".join([command, *(t for t in tokens[1:2] if t in _GROUPS[command])])
    return command


if __name__ == "__main__":
    sys.exit(_plait_main.main())
