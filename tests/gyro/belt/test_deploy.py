"""The files in deploy/gyro: systemd accepts the unit, and the commands of the compose file run on three machines."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from plait.cli.main import app, main
from plait.gyro.belt.client import Client
from plait.gyro.belt.service.certificates import client_context
from plait.gyro.belt.supervisor import free_ports, unready
from tests.gyro.belt.authority import Authority
from tests.support.patience import PATIENCE, until

ROOT = Path(__file__).parents[3]
DEPLOY = ROOT / "deploy" / "gyro"
UNIT = DEPLOY / "plait-gyro@.service"
needs_systemd = pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")
needs_etcd = pytest.mark.skipif(not shutil.which("etcd"), reason="etcd is not installed (Debian: etcd-server)")


def analyzed(*arguments: str, unit: str, folder: Path) -> subprocess.CompletedProcess[str]:
    file = folder / "plait-gyro@0.service"
    file.write_text(unit, encoding="utf-8")
    command = ["systemd-analyze", *arguments, str(file)]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | {"SYSTEMD_COLORS": "0"})


@needs_systemd
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    text = UNIT.read_text(encoding="utf-8")
    done = analyzed("verify", unit=text, folder=tmp_path)
    assert (done.returncode, [line for line in done.stderr.splitlines() if "plait-gyro" in line]) == (0, [])
    wrong = analyzed("verify", unit=text.replace("KillMode=mixed", "KilMode=mixed"), folder=tmp_path)
    assert "KilMode" in wrong.stderr, "a mistake would be seen"


@needs_systemd
def test_the_unit_is_hardened(tmp_path: Path) -> None:
    """systemd's own measure of exposure, from 0 to 10 (times ten); most services of a distribution have more than 9."""
    text = UNIT.read_text(encoding="utf-8")
    check = ("security", "--offline=true", "--threshold=20")
    done = analyzed(*check, unit=text, folder=tmp_path)
    assert done.returncode == 0, done.stdout[-300:]
    plain = re.sub(r"^(Protect|Private|Restrict|System|Capab|NoNew)\w+=.*$", "", text, flags=re.MULTILINE)
    assert analyzed(*check, unit=plain, folder=tmp_path).returncode != 0


def test_the_unit_runs_a_command_that_exists() -> None:
    (start,) = re.findall(r"^ExecStart=(.*)$", UNIT.read_text(encoding="utf-8"), re.MULTILINE)
    words = start.replace("%i", "2").replace("/etc/plait/gyro.toml", str(DEPLOY / "gyro.toml")).split()
    assert words[:4] == ["/usr/bin/env", "plait", "gyro", "serve"]
    function, bound, _ = app.parse_args(words[2:], exit_on_error=False, print_error=False)
    assert function.__name__ == "serve"
    assert bound.arguments["only"] == (2,)
    assert str(bound.arguments["secret_file"]) == "${CREDENTIALS_DIRECTORY}/secret"


def filled(value: Any, variables: dict[str, str]) -> Any:
    """A value of the compose file, with its variables."""
    if isinstance(value, list):
        return [filled(each, variables) for each in value]
    return re.sub(
        r"\$\{(\w+):([-?])([^}]*)\}",
        lambda m: variables.get(m[1], m[3]) if m[2] == "-" else variables[m[1]],
        str(value),
    )


def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))["services"]
    return found


VARIABLES = {"MACHINE": "1", "ADDRESS": "192.0.2.2", "HOST_0": "a", "HOST_1": "b", "HOST_2": "c"}


def test_the_compose_file_has_commands_that_exist() -> None:
    services = compose()
    command = filled(services["gyro"]["command"], VARIABLES)
    _, bound, _ = app.parse_args(command[1:], exit_on_error=False, print_error=False)
    assert (bound.arguments["only"], bound.arguments["host"]) == ((1,), "192.0.2.2")
    assert bound.arguments["url"] == ("https://a:8400", "https://b:8400", "https://c:8400")
    check = filled(services["gyro"]["healthcheck"]["test"], VARIABLES)
    assert check[0] == "CMD"
    function, bound, _ = app.parse_args(check[2:], exit_on_error=False, print_error=False)
    assert (function.__name__, bound.arguments["only"]) == ("status", (1,))
    folder = next(each for each in command if each.startswith("--folder=")).partition("=")[2]
    assert folder == check[4], "the health check asks the servers of this folder"
    for service in services.values():
        assert (service["cap_drop"], service["read_only"]) == (["ALL"], True)
        writable = {each.split(":")[1] for each in service["volumes"] if not each.endswith(":ro")}
        assert writable <= {"/var/lib/etcd", "/var/lib/plait-gyro"}


class Machine:
    """The processes of one machine: its services of the compose file, with paths of this test."""

    def __init__(self, number: int, folder: Path, authority: Authority, variables: dict[str, str]) -> None:
        self.number, self.folder = number, folder
        self.variables = variables | {"MACHINE": str(number), "ADDRESS": variables[f"HOST_{number}"]}
        self._processes: list[subprocess.Popen[bytes]] = []
        for name in ("tls", "etcd", "gyro"):
            (folder / name).mkdir(parents=True, mode=0o700)
        # etcd also verifies where a connection comes from, which is 127.0.0.1 for all machines here.
        files = authority.sign(f"machine-{number}", hosts=(self.variables["ADDRESS"], "127.0.0.1"))
        for file, name in zip((*files, authority.file), ("server.pem", "server.key", "ca.pem"), strict=True):
            shutil.copy(file, folder / "tls" / name)
        (folder / "tls" / "secret").write_text("one secret for all machines", encoding="ascii")

    def command(self, words: list[str]) -> list[str]:
        places = {
            "/srv/application/shop.py": str(ROOT / "examples" / "gyro" / "store.py"),
            "/etc/plait": str(self.folder / "tls"), "/var/lib/etcd": str(self.folder / "etcd"),
            "/var/lib/plait-gyro": str(self.folder / "gyro"),
        }  # fmt: skip
        found = [str(each) for each in filled(words, self.variables)]
        for place, here in places.items():
            found = [each.replace(place, here) for each in found]
        return found

    def start(self, service: str, **environment: str) -> None:
        words = self.command(compose()[service]["command"])
        if words[0] == "plait":
            words = [sys.executable, "-m", "plait.cli.main", *words[1:]]
        with (self.folder / f"{service}.log").open("wb") as log:
            self._processes.append(subprocess.Popen(words, stderr=log, stdout=log, env=os.environ | environment))

    def healthy(self) -> bool:
        """What the health check of the container says."""
        return main(self.command(compose()["gyro"]["healthcheck"]["test"])[2:]) == 0

    def stop(self) -> None:
        for process in reversed(self._processes):
            process.send_signal(signal.SIGTERM)
        for process in reversed(self._processes):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=20)
            process.kill()
            process.wait()


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[list[Machine]]:
    """Three addresses of the loopback interface; each is a machine of its own for the commands."""
    port, peer, *clients = free_ports(5)
    names = {f"HOST_{n}": f"127.0.0.{n + 1}" for n in range(3)} | {"PORT": str(port), "PEER_PORT": str(peer)}
    authority = Authority(tmp_path)
    made = [Machine(n, tmp_path / f"m{n}", authority, names | {"ETCD_PORT": str(clients[n])}) for n in range(3)]
    try:
        yield made
    finally:
        for machine in made:
            machine.stop()


@pytest.mark.slow
@needs_etcd
@pytest.mark.skipif(sys.platform != "linux", reason="127.0.0.2 is an address of the loopback interface on Linux")
def test_three_machines(machines: list[Machine], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The commands of the compose file, with real etcd and TLS: calls at all servers, then one machine fails."""
    told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    told.bind(str(tmp_path / "notify"))
    told.settimeout(PATIENCE)
    for machine in machines:
        machine.start("etcd")
    for machine in machines:
        machine.start("gyro", **({"NOTIFY_SOCKET": str(tmp_path / "notify")} if machine.number == 0 else {}))
    assert told.recv(100) == b"READY=1"
    told.close()
    urls = [f"https://127.0.0.{n + 1}:{machines[0].variables['PORT']}" for n in range(3)]
    ca = str(machines[0].folder / "tls" / "ca.pem")
    until(lambda: all(unready(u, tls=lambda: client_context(ca)) is None for u in urls), "all servers are ready")
    assert all(machine.healthy() for machine in machines)
    client = Client(urls, ca=ca)
    for cart in range(3):
        assert client.send("create", {"cart": cart}).server == cart
        client.call("order", cart=cart)  # global: it needs the token, which goes round all machines
    machines[2].stop()
    client.call("order", cart=0)
    client.close()
    assert machines[0].healthy()
    assert not machines[2].healthy()
    capsys.readouterr()
    assert main(["gyro", "status", urls[0], "--tls-ca", ca]) == 1
    assert re.search(r"^2 .* no +does not answer$", capsys.readouterr().out, re.MULTILINE)
