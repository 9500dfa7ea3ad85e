"""TLS between servers and for clients, and certificates that change while servers run."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import ssl
import threading
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509

from plait.cli.main import main
from plait.gyro.belt.client import Client
from plait.gyro.belt.http import ask
from plait.gyro.belt.service import certificates as module
from plait.gyro.belt.service.certificates import Certificates, Tls, client_context
from plait.kernel.errors import UsageError
from tests.gyro.belt.authority import Authority
from tests.gyro.belt.processes import Processes, processes
from tests.support.patience import until

STORE = Path(__file__).parents[3] / "examples" / "gyro" / "store.py"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def servers(authority: Authority) -> Iterator[Processes]:
    with processes(2, tls=authority.tls("server", clients="required")) as found:
        yield found


def shown(url: str, tls: Tls) -> int:
    """The serial number of the certificate that a server shows to a new connection."""
    parts = urllib.parse.urlsplit(url)
    context = client_context(tls.ca, tls.certificate, tls.key)
    plain = socket.create_connection((parts.hostname, parts.port), timeout=10)
    with plain, context.wrap_socket(plain, server_hostname=parts.hostname) as connection:
        found = connection.getpeercert(binary_form=True)
    assert found is not None
    return x509.load_der_x509_certificate(found).serial_number


def serial(file: str) -> int:
    return x509.load_pem_x509_certificate(Path(file).read_bytes()).serial_number


@pytest.mark.slow
def test_servers_and_clients_talk_over_tls(servers: Processes) -> None:
    """A global operation needs the token, which travels between servers."""
    for number in range(4):
        servers.client.call("move", source=number % 2, target=1, value=f"t{number}")
    servers.settle()
    assert all(peer.url.startswith("https://") for peer in servers.client.peers)
    facts = json.loads(servers.client.peers[1].request("GET", "/status")[1])
    assert facts["visits"] > 1


@pytest.mark.slow
def test_a_client_without_the_right_authority_or_certificate_is_refused(
    servers: Processes, authority: Authority
) -> None:
    (url, _), tls = servers.settings.urls, servers.settings.tls
    assert tls is not None
    with pytest.raises(OSError, match=r"reset|closed|disconnected|does not answer"):
        ask(url.replace("https", "http"), "/status")
    with pytest.raises(UsageError, match="CERTIFICATE_VERIFY_FAILED"):
        Client(url)
    with pytest.raises(UsageError, match="no server answers"):
        Client(url, ca=tls.ca)
    strange = Authority(Path(tls.ca).parent, "strangers")
    certificate, key = map(str, strange.sign("stranger"))
    with pytest.raises(UsageError, match="no server answers"):
        Client(url, ca=tls.ca, certificate=certificate, key=key)
    certificate, key = map(str, authority.sign("friend"))
    client = Client(url, ca=tls.ca, certificate=certificate, key=key)
    assert client.call("notes", owner=0) is not None
    client.close()


@pytest.mark.slow
def test_status_over_tls(servers: Processes, authority: Authority, capsys: pytest.CaptureFixture[str]) -> None:
    tls = servers.settings.tls
    assert tls is not None
    assert main(["gyro", "status", servers.settings.folder]) == 0
    files = ["--tls-ca", tls.ca, "--tls-certificate", tls.certificate, "--tls-key", tls.key]
    assert main(["gyro", "status", servers.settings.urls[1], *files]) == 0
    assert capsys.readouterr().out.count(servers.settings.urls[0]) == 2
    assert main(["gyro", "status", servers.settings.urls[1]]) == 2
    assert "CERTIFICATE_VERIFY_FAILED" in capsys.readouterr().err


@pytest.mark.slow
def test_certificates_change_without_a_restart(tmp_path: Path) -> None:
    """First the certificate, then the whole authority; clients of the old one are then refused."""
    authority = Authority(tmp_path, "old")
    with processes(2, tls=authority.tls("server", clients="required")) as cluster:
        (url, other), tls = cluster.settings.urls, cluster.settings.tls
        assert tls is not None
        old_client = [str(f) for f in authority.sign("client")]
        before = serial(tls.certificate)
        assert shown(url, tls) == before
        authority.sign("server")
        assert serial(tls.certificate) != before
        for number in range(2):
            cluster.supervisor.signal(number, signal.SIGHUP)
        until(
            lambda: {shown(u, tls) for u in (url, other)} == {serial(tls.certificate)}, "the new certificate is shown"
        )
        fresh = Authority(tmp_path, "new")
        fresh.sign("server")
        shutil.copy(fresh.file, tls.ca)

        def changed() -> bool:
            try:
                return {shown(u, tls) for u in (url, other)} == {serial(tls.certificate)}
            except OSError:
                return False

        until(changed, "the files are noticed without a signal")
        client = Client(url, ca=tls.ca, certificate=tls.certificate, key=tls.key)
        client.call("move", source=0, target=1, value="after")  # the servers also trust each other
        client.close()
        with pytest.raises(UsageError, match="no server answers"):
            Client(url, ca=tls.ca, certificate=old_client[0], key=old_client[1])
        assert cluster.deaths == 0


def test_files_that_do_not_fit_are_not_taken(authority: Authority, tmp_path: Path) -> None:
    tls = Tls(*(str(f) for f in authority.sign("mixed")), ca=str(authority.file))
    certificates = Certificates(tls)
    good = certificates.client()
    other = authority.sign("another")[1]
    shutil.copy(other, tls.key)
    assert not certificates.reload()
    assert certificates.client() is good
    with pytest.raises(UsageError, match="are not a certificate and its key"):
        Certificates(tls)


def test_a_signal_is_enough(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PERIOD", 10_000.0)
    certificates = Certificates(Tls(*(str(f) for f in authority.sign("signalled")), ca=str(authority.file)))
    before = certificates.client()
    certificates.watch()
    certificates.stir()
    until(lambda: certificates.client() is not before, "the files are read again")


@pytest.mark.parametrize(("content", "said"), [(None, "cannot be read"), ("x", "has no certificate of an authority")])
def test_a_bad_authority_is_an_error(content: str | None, said: str, tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_text(content, encoding="ascii")
    with pytest.raises(UsageError, match=said):
        client_context(str(file))


def test_the_host_name_is_verified(authority: Authority, tmp_path: Path) -> None:
    """A certificate of the right authority, for another machine."""
    certificate, key = authority.sign("elsewhere", hosts=("10.1.2.3",))
    context = Certificates(Tls(str(certificate), str(key), str(authority.file))).server
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def accept() -> None:
            connection, _ = listening.accept()
            with connection, pytest.raises((ssl.SSLError, OSError)):
                context.wrap_socket(connection, server_side=True).close()

        thread = threading.Thread(target=accept)
        thread.start()
        with pytest.raises(OSError, match="IP address mismatch"):
            ask(
                f"https://127.0.0.1:{listening.getsockname()[1]}",
                "/status",
                tls=lambda: client_context(str(authority.file)),
            )
        thread.join()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--url", "https://a:1"], "--url https://a:1: expected http://HOST:PORT"),
        (["--tls-ca", "ca.pem"], "TLS needs a certificate"),
        (["--tls-certificate", "missing.pem"], "missing.pem cannot be read"),
        (["--tls-certificate", __file__], "are not a certificate and its key"),
    ],
)
def test_bad_options_are_refused(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["gyro", "serve", str(STORE), *arguments, "--folder", str(tmp_path)]) == 2
    assert said in capsys.readouterr().err
