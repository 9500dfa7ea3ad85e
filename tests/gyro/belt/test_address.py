"""Addresses of logs: servers, certificates and users; and no secret that other users of the machine can see."""

from __future__ import annotations

from pathlib import Path

import pytest

from plait.gyro.belt.logs.address import Address, address, addresses
from plait.kernel.errors import UsageError


def test_servers_and_options(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("a password\n")
    found = address(f"etcd:https://a:2379,https://[::1]:2380/?user=plait&password-file={tmp_path / 'secret'}")
    assert found == Address(
        "etcd",
        ("https://a:2379", "https://[::1]:2380"),
        {"user": "plait", "password-file": str(tmp_path / "secret")},
    )
    assert found.password() == "a password"
    assert address("nats:nats://a:4222?replicas=3").options == {"replicas": "3"}
    assert address("etcd:http://a:2379").tls() is None
    assert address("etcd:https://a:2379").tls() is not None


def test_the_environment_has_the_password(monkeypatch: pytest.MonkeyPatch) -> None:
    found = address("nats:nats://a:4222?user=plait")
    with pytest.raises(UsageError, match="the password of user plait is missing") as error:
        found.password()
    assert "PLAIT_GYRO_NATS_PASSWORD" in (error.value.hint or "")
    monkeypatch.setenv("PLAIT_GYRO_NATS_PASSWORD", "a password")
    assert found.password() == "a password"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("paper", "expected embedded, etcd:http://HOST:PORT or nats"),
        ("etcd:", "expected embedded, etcd"),
        ("etcd:a:2379", "expected http://HOST:PORT or https://HOST:PORT"),
        ("etcd:http://a", "expected http://HOST:PORT"),
        ("etcd:http://a:x", "expected http://HOST:PORT"),
        ("etcd:http://a:99999", "expected http://HOST:PORT"),
        ("etcd:http://a:1,", "expected http://HOST:PORT"),
        ("etcd:nats://a:1", "expected http://HOST:PORT"),
        ("nats:http://a:1", "expected nats://HOST:PORT or tls://HOST:PORT"),
        ("etcd:http://a:1/v3", "expected http://HOST:PORT"),
        ("etcd:http://a:1,https://b:1", "all servers need the same scheme"),
        ("etcd:http://me:secret@a:1", "contains a user or a password"),
        ("etcd:http://a:1?colour=red", "colour=red is no option of etcd"),
        ("etcd:http://a:1?replicas=3", "replicas=3 is no option of etcd"),
        ("etcd:http://a:1?user=", "user= is no option of etcd"),
        ("etcd:http://a:1?user=a&user=b", "user=b is no option"),
        ("nats:nats://a:1?replicas=many", "replicas=many: expected a number from 1 to 5"),
        ("etcd:https://a:1?ca=missing.pem", "missing.pem cannot be read"),
        ("etcd:https://a:1?key=pyproject.toml", "key without cert"),
        ("etcd:https://a:1?password-file=pyproject.toml", "password-file without user"),
    ],
)
def test_wrong_addresses_are_refused(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said.replace("?", r"\?")) as error:
        address(text)
    assert error.value.hint
    assert "secret" not in str(error.value)


def test_certificates_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    with pytest.raises(UsageError, match="the certificates cannot be used"):
        address(f"etcd:https://a:1?ca={tmp_path / 'ca.pem'}").tls()


@pytest.mark.parametrize(
    ("log", "fence", "said"),
    [
        ("etcd:http://a:1", "etcd:http://a:1", "--fence is for --log nats"),
        ("nats:nats://a:1", "", "needs --fence"),
        ("nats:nats://a:1", "nats:nats://a:1", "--fence nats:nats://a:1: expected etcd"),
        ("nats:nats://a:1", "etcd:a", "--fence a: expected http"),
        ("embedded", "etcd:http://a:1", "--fence is for --log nats"),
    ],
)
def test_log_and_fence(log: str, fence: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        addresses(log, fence)
