"""Where a log is: the engine, its servers, and how to authenticate, in one string.

    etcd:https://a:2379,https://b:2379?ca=ca.pem&cert=client.pem&key=client.key&user=plait&password-file=secret
    nats:nats://a:4222,nats://b:4222?replicas=3&credentials=plait.creds

The string is visible in the list of processes and in the settings, so it names files instead of secrets. A password is in a
file, or in the environment: `PLAIT_GYRO_ETCD_PASSWORD`, `PLAIT_GYRO_NATS_PASSWORD`.
"""

from __future__ import annotations

import os
import ssl
import urllib.parse
from pathlib import Path

import msgspec

from plait.kernel.errors import UsageError

_SCHEMES = {"etcd": ("http", "https"), "nats": ("nats", "tls")}
_FILES = ("ca", "cert", "key", "password-file", "credentials")
_OPTIONS = {
    "etcd": ("ca", "cert", "key", "user", "password-file"),
    "nats": ("ca", "cert", "key", "user", "password-file", "credentials", "replicas"),
}


class Address(msgspec.Struct, frozen=True):
    """The servers of an engine, and the options to connect to them."""

    engine: str
    urls: tuple[str, ...]
    options: dict[str, str] = {}

    @property
    def user(self) -> str:
        """The name of the user; empty without authentication by password."""
        return self.options.get("user", "")

    def password(self) -> str:
        """The password, from its file or the environment."""
        variable = f"PLAIT_GYRO_{self.engine.upper()}_PASSWORD"
        if (file := self.options.get("password-file")) is not None:
            return _content(file).strip()
        if variable not in os.environ:
            raise UsageError(
                f"{self.engine}: the password of user {self.user} is missing",
                hint=f"set {variable}, or give the file that contains it: ?password-file=FILE",
            )
        return os.environ[variable]

    def tls(self) -> ssl.SSLContext | None:
        """The context for encrypted connections; None for connections without encryption."""
        encrypted = any(url.startswith(("https:", "tls:")) for url in self.urls)
        if not encrypted and not {"ca", "cert"} & set(self.options):
            return None
        try:
            context = ssl.create_default_context(cafile=self.options.get("ca"))
            if "cert" in self.options:
                context.load_cert_chain(self.options["cert"], self.options.get("key"))
        except (OSError, ssl.SSLError) as error:
            raise UsageError(
                f"{self.engine}: the certificates cannot be used: {error}",
                hint="ca, cert and key are files in PEM format; the key belongs to the certificate",
            ) from None
        return context


def address(text: str, *, option: str = "--log") -> Address:
    """Read an address.

    >>> address("etcd:https://a:2379,https://b:2379?user=plait").urls
    ('https://a:2379', 'https://b:2379')
    """
    engine, _, rest = text.partition(":")
    listed, _, query = rest.partition("?")
    if engine not in _SCHEMES or not listed:
        raise UsageError(
            f"{option} {text}: expected {'embedded, ' * (option == '--log')}etcd:http://HOST:PORT or nats:nats://HOST:PORT",
            hint="separate several servers by commas",
        )
    urls = tuple(url.rstrip("/") for url in listed.split(","))
    for url in urls:
        _check_url(url, engine, option)
    if len({url.partition(":")[0] for url in urls}) > 1:
        raise UsageError(
            f"{option} {text}: all servers need the same scheme", hint="use encryption for all, or for none"
        )
    options: dict[str, str] = {}
    for name, value in urllib.parse.parse_qsl(query, keep_blank_values=True):
        if name not in _OPTIONS[engine] or not value or name in options:
            raise UsageError(
                f"{option}: {name}={value} is no option of {engine}",
                hint=f"the options are {', '.join(_OPTIONS[engine])}; each has a value",
            )
        options[name] = value
    _check_options(options, option)
    return Address(engine, urls, options)


def addresses(log: str, fence: str) -> tuple[Address, Address | None]:
    """The address of the log and, for NATS, that of the fence, from the values of --log and --fence."""
    if fence and not log.startswith("nats:"):
        raise UsageError("--fence is for --log nats:…", hint="leave it out: other logs have their own fence")
    where = address(log)
    if where.engine != "nats":
        return where, None
    if not fence:
        raise UsageError(
            "--log nats:… needs --fence", hint="give the etcd that has the epochs: --fence etcd:http://HOST:PORT"
        )
    found = address(fence, option="--fence")
    if found.engine != "etcd":
        raise UsageError(f"--fence {fence}: expected etcd:http://HOST:PORT", hint="only etcd can have the epochs")
    return where, found


def _check_url(url: str, engine: str, option: str) -> None:
    parts = urllib.parse.urlsplit(url)
    if parts.username is not None or parts.password is not None:
        raise UsageError(
            f"{option}: the URL of {parts.hostname} contains a user or a password, which all users of this machine can see",
            hint="give ?user=NAME, and the password in a file or in the environment",
        )
    try:
        complete = bool(parts.hostname and parts.port)
    except ValueError:
        complete = False
    if parts.scheme not in _SCHEMES[engine] or not complete or parts.path or parts.fragment:
        expected = " or ".join(f"{scheme}://HOST:PORT" for scheme in _SCHEMES[engine])
        raise UsageError(f"{option} {url}: expected {expected}", hint="give the scheme, the host and the port")


def _check_options(options: dict[str, str], option: str) -> None:
    for name in _FILES:
        if name in options:
            _content(options[name])
    if "key" in options and "cert" not in options:
        raise UsageError(f"{option}: key without cert", hint="give the certificate that the key belongs to")
    if "password-file" in options and "user" not in options:
        raise UsageError(f"{option}: password-file without user", hint="give ?user=NAME")
    if options.get("replicas", "1") not in ("1", "2", "3", "4", "5"):
        raise UsageError(f"{option}: replicas={options['replicas']}: expected a number from 1 to 5", hint="3 is usual")


def _content(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read: {error}", hint="give a file that the servers can read") from None
