"""Real engines for the log, as processes on the loopback interface: etcd, NATS; with TLS, as clusters, behind a proxy."""

from __future__ import annotations

import base64
import contextlib
import os
import shutil
import socket
import subprocess
import threading
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from plait.gyro.belt.logs.address import Address, address
from plait.gyro.belt.logs.etcd import EtcdLog
from plait.gyro.belt.logs.etcd_client import Keys
from plait.gyro.belt.logs.jetstream import JetStream
from plait.gyro.belt.logs.log import Log, LogGoneError
from plait.gyro.belt.logs.nats import NatsLog
from plait.gyro.belt.supervisor import free_ports
from plait.kernel.errors import UsageError
from tests.support.patience import PATIENCE, until


def need(program: str, package: str) -> str:
    """The path of a program; the test is skipped without it."""
    found = shutil.which(program, path="/usr/sbin:/usr/local/sbin:" + (os.environ.get("PATH") or ""))
    if found is None:
        pytest.skip(f"{program} is not installed (Debian: {package})")
    return found


class Process:
    """A server that can be killed and started again with the same data."""

    def __init__(self, command: list[str]) -> None:
        self._command = command
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def kill(self) -> None:
        """As `kill -9` does."""
        self._process.kill()
        self._process.wait()

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None


class Certificates:
    """An authority, a certificate for servers on the loopback interface, and one for clients."""

    def __init__(self, folder: Path) -> None:
        openssl = need("openssl", "openssl")

        def run(*arguments: str) -> None:
            subprocess.run([openssl, *arguments], cwd=folder, check=True, capture_output=True, timeout=PATIENCE)

        new = ["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        run(*new, "-x509", "-days", "1", "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=authority of tests")
        (folder / "uses").write_text("subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n")
        for name in ("server", "client"):
            run(*new, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/O={name}")
            signed = ["x509", "-req", "-days", "1", "-in", f"{name}.csr", "-out", f"{name}.pem"]
            run(*signed, "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", "uses")
        self.ca, self.cert, self.key = (str(folder / name) for name in ("ca.pem", "server.pem", "server.key"))
        self.options = f"ca={self.ca}&cert={folder / 'client.pem'}&key={folder / 'client.key'}"


class Etcd:
    """A cluster of etcd. With certificates, clients need one."""

    def __init__(self, folder: Path, *, members: int = 1, tls: Certificates | None = None, more: str = "") -> None:
        program = need("etcd", "etcd-server")
        ports = free_ports(2 * members)
        scheme = "http" if tls is None else "https"
        self.clients = [f"{scheme}://127.0.0.1:{port}" for port in ports[:members]]
        self.peers = [f"http://127.0.0.1:{port}" for port in ports[members:]]
        self.folders = [folder / f"etcd-{n}" for n in range(members)]
        cluster = ",".join(f"m{n}={url}" for n, url in enumerate(self.peers))
        secure: list[str] = []
        if tls is not None:
            secure = ["--cert-file", tls.cert, "--key-file", tls.key, "--trusted-ca-file", tls.ca, "--client-cert-auth"]
        self.processes = []
        for n in range(members):
            command = [
                program,
                "--name",
                f"m{n}",
                "--data-dir",
                str(self.folders[n]),
                "--log-level",
                "fatal",
                "--logger",
                "zap",
            ]
            command += ["--listen-client-urls", self.clients[n], "--advertise-client-urls", self.clients[n]]
            command += ["--listen-peer-urls", self.peers[n], "--initial-advertise-peer-urls", self.peers[n]]
            command += ["--initial-cluster", cluster, *secure, *more.split()]
            self.processes.append(Process(command))
        self.options = "" if tls is None else tls.options
        self.where = "etcd:" + ",".join(self.clients) + (f"?{self.options}" if self.options else "")
        self.wait()

    def wait(self) -> None:
        until(lambda: any(p.ended for p in self.processes) or self.answers(), "etcd answers")

    def answers(self) -> bool:
        keys = Keys(address(self.where), "probe")
        try:
            keys.get("probe")
        except LogGoneError:
            return False
        except UsageError:  # it asks for a user
            return True
        finally:
            keys.close()
        return True

    def control(self, *arguments: str, user: str = "") -> str:
        """Run `etcdctl`."""
        command = [need("etcdctl", "etcd-client"), "--endpoints", self.clients[0]]
        given = dict(each.split("=") for each in self.options.split("&") if each)
        for name, flag in (("ca", "cacert"), ("cert", "cert"), ("key", "key")):
            command += [f"--{flag}", given[name]] if name in given else []
        command += ["--user", user] if user else []
        environment = {**os.environ, "ETCDCTL_API": "3"}
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, env=environment, timeout=PATIENCE)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def close(self) -> None:
        for process in self.processes:
            process.kill()


class Nats:
    """NATS with JetStream: one server, or a cluster."""

    def __init__(
        self, folder: Path, *, servers: int = 1, tls: Certificates | None = None, more: str = "", options: str = ""
    ) -> None:
        program = need("nats-server", "nats-server")
        ports = free_ports(2 * servers)
        self.clients = [f"{'nats' if tls is None else 'tls'}://127.0.0.1:{port}" for port in ports[:servers]]
        self.folder = folder
        self.processes = []
        for n in range(servers):
            config = f"listen: 127.0.0.1:{ports[n]}\nserver_name: n{n}\njetstream {{ store_dir: {folder}/nats-{n} }}\n"
            config += f"{more}\n"
            if tls is not None:
                config += f"tls {{ cert_file: {tls.cert}, key_file: {tls.key}, ca_file: {tls.ca}, verify: true }}\n"
            if servers > 1:
                routes = ", ".join(f"nats://127.0.0.1:{port}" for port in ports[servers:])
                config += f"cluster {{ name: tests, listen: 127.0.0.1:{ports[servers + n]}, routes: [{routes}] }}\n"
            file = folder / f"nats-{n}.conf"
            file.write_text(config, encoding="utf-8")
            self.processes.append(Process([program, "-c", str(file)]))
        given = "&".join(filter(None, [options, "" if tls is None else tls.options]))
        self.where = "nats:" + ",".join(self.clients) + (f"?{given}" if given else "")
        self.replicas = 1 if servers == 1 else 3
        self.wait()

    def wait(self) -> None:
        until(lambda: any(p.ended for p in self.processes) or self.answers(), "NATS answers")

    def answers(self) -> bool:
        try:
            jetstream = JetStream(address(self.where), timeout=2.0)
        except (LogGoneError, UsageError) as error:
            return isinstance(error, UsageError)
        try:
            jetstream.create("probe", replicas=self.replicas)
            return jetstream.exists("probe")
        except LogGoneError:
            return False
        finally:
            jetstream.close()

    def close(self) -> None:
        for process in self.processes:
            process.kill()


class Proxy:
    """Stands between a client and a server. `deaf`: requests get through, answers do not, and the connection ends."""

    def __init__(self, url: str) -> None:
        scheme, _, rest = url.partition("://")
        host, _, port = rest.partition(":")
        self._target = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"{scheme}://127.0.0.1:{self._listener.getsockname()[1]}"
        self.drops: Callable[[bytes], bool] = lambda _: False
        """Whether the answer to this request is dropped, and the connection ends."""
        self.dropped = 0
        self._closed = False
        self._sockets: list[socket.socket] = [self._listener]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while not self._closed:
            try:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._target)
            except OSError:
                continue
            self._sockets += [client, server]
            pair: dict[str, Any] = {"cut": False}
            threading.Thread(target=self._pump, args=(client, server, pair, True), daemon=True).start()
            threading.Thread(target=self._pump, args=(server, client, pair, False), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, pair: dict[str, Any], requests: bool) -> None:
        try:
            while data := source.recv(65536):
                if requests and self.drops(data):
                    pair["cut"] = True
                    self.dropped += 1
                elif not requests and pair["cut"]:
                    break
                sink.sendall(data)
        except OSError:
            pass
        for each in (source, sink):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def close(self) -> None:
        self._closed = True
        for each in self._sockets:
            each.close()


def opener(where: Address, fence: Address | None = None) -> Callable[[], Log]:
    """Opens one new log in etcd, or in NATS and etcd."""
    name = uuid.uuid4().hex
    return lambda: EtcdLog(where, name) if fence is None else NatsLog(where, fence, name)


def through(where: Address, proxies: dict[str, Proxy]) -> Address:
    """An address whose servers are behind proxies."""
    return Address(where.engine, tuple(proxies[url].url for url in where.urls), where.options)


class Credentials:
    """An operator, an account and a user of NATS, and the credentials file of the user."""

    def __init__(self, folder: Path) -> None:
        import nkeys  # type: ignore[import-untyped]

        def key(kind: int) -> Any:
            return nkeys.from_seed(nkeys.encode_seed(os.urandom(32), kind))

        operator, account, system, user = map(
            key,
            (nkeys.PREFIX_BYTE_OPERATOR, nkeys.PREFIX_BYTE_ACCOUNT, nkeys.PREFIX_BYTE_ACCOUNT, nkeys.PREFIX_BYTE_USER),
        )
        every = ["subs", "data", "payload"]
        limits = dict.fromkeys([*every, "imports", "exports", "conn", "leaf"], -1) | {"wildcards": True}
        storage = dict.fromkeys(["mem_storage", "disk_storage", "streams", "consumer"], -1)
        accounts = {
            _name(account): _token(operator, account, {"type": "account", "limits": limits | storage}),
            _name(system): _token(operator, system, {"type": "account", "limits": limits}),
        }
        preload = ", ".join(f"{name}: {token}" for name, token in accounts.items())
        self.config = f"operator: {_token(operator, operator, {'type': 'operator'})}\nsystem_account: {_name(system)}\n"
        self.config += f"resolver: MEMORY\nresolver_preload: {{ {preload} }}\n"
        token = _token(account, user, {"type": "user", "pub": {}, "sub": {}, **dict.fromkeys(every, -1)})
        self.file = folder / "user.creds"
        self.file.write_text(
            f"-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n"
            f"-----BEGIN USER NKEY SEED-----\n{user.seed.decode()}\n------END USER NKEY SEED------\n"
        )


def _name(key: Any) -> str:
    return str(key.public_key.decode())


def _token(issuer: Any, subject: Any, claims: dict[str, Any]) -> str:
    """A JSON web token of NATS (version 2 of its claims)."""

    def part(value: Any) -> bytes:
        return base64.urlsafe_b64encode(value if isinstance(value, bytes) else msgspec.json.encode(value)).rstrip(b"=")

    head = part({"typ": "JWT", "alg": "ed25519-nkey"})
    facts = {"jti": "x", "iat": 1, "iss": _name(issuer), "sub": _name(subject), "name": "tests"}
    body = part(facts | {"nats": claims | {"version": 2}})
    return b".".join([head, body, part(issuer.sign(head + b"." + body))]).decode()
