"""TLS: the certificate of a server, the authority that it trusts, and certificates that change while it runs.

A server shows one certificate to clients and to other servers. It verifies other servers against the authority (`ca`), or
against the authorities of the system. With client certificates, a server also verifies who connects. New connections
use the newest files: a watcher reads them again when they change, or when the process gets SIGHUP.
"""

from __future__ import annotations

import contextlib
import logging
import ssl
import threading
from pathlib import Path
from typing import Literal

import msgspec

from plait.gyro.belt.service.events import event
from plait.kernel.errors import UsageError

logger = logging.getLogger("plait.gyro")
_PERIOD = 2.0
"""How often the files are checked for a change, in seconds."""
_VERIFY = {"none": ssl.CERT_NONE, "optional": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}


class Tls(msgspec.Struct, frozen=True):
    """The files of TLS."""

    certificate: str
    """PEM: the certificate of this machine, then the certificates between it and the authority."""
    key: str
    """PEM: the private key, not encrypted."""
    ca: str = ""
    """PEM: the authorities to trust. Empty: those of the system."""
    clients: Literal["none", "optional", "required"] = "none"
    """Whether those who connect must have a certificate of the authority."""


class Certificates:
    """The contexts of a server, for connections in both directions."""

    def __init__(self, tls: Tls) -> None:
        self._tls = tls
        self._stir = threading.Event()
        self._stamps = self._stamp()
        self._server, self._client = self._load()
        self.server = server_context(tls)
        """The context to listen with. Each connection takes the newest certificate and authority."""
        self.server.sni_callback = self._newest

    def _newest(self, connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        connection.context = self._server

    def client(self) -> ssl.SSLContext:
        """The context for connections to other servers."""
        return self._client

    def _load(self) -> tuple[ssl.SSLContext, ssl.SSLContext]:
        tls = self._tls
        return server_context(tls), client_context(tls.ca, tls.certificate, tls.key)

    def _stamp(self) -> list[tuple[int, int, int]]:
        found = []
        for name in filter(None, (self._tls.certificate, self._tls.key, self._tls.ca)):
            with contextlib.suppress(OSError):
                facts = Path(name).stat()
                found.append((facts.st_mtime_ns, facts.st_size, facts.st_ino))
        return found

    def reload(self) -> bool:
        """Read the files again. If they do not fit together, keep what was read before; return False."""
        self._stamps = self._stamp()
        try:
            self._server, self._client = self._load()
        except UsageError as error:
            logger.error(
                "the certificates are not changed: %s",
                error.message,
                extra=event("certificates_kept", error=error.message),
            )
            return False
        logger.info("the certificates were read again", extra=event("certificates_changed"))
        return True

    def watch(self) -> None:
        """Begin to watch the files, in the background."""
        threading.Thread(target=self._watch, name="certificates", daemon=True).start()

    def stir(self) -> None:
        """Read the files again soon, changed or not. A signal handler may call this."""
        self._stir.set()

    def _watch(self) -> None:
        while True:
            asked = self._stir.wait(_PERIOD)
            self._stir.clear()
            if asked or self._stamp() != self._stamps:
                self.reload()


def server_context(tls: Tls) -> ssl.SSLContext:
    """A context to listen with."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    _chain(context, tls.certificate, tls.key)
    if tls.clients != "none":
        if tls.ca:
            _authority(context, tls.ca)
        else:
            context.load_default_certs(ssl.Purpose.CLIENT_AUTH)
        context.verify_mode = _VERIFY[tls.clients]
    return context


def client_context(ca: str = "", certificate: str = "", key: str = "") -> ssl.SSLContext:
    """A context to connect with. It verifies the certificate and the host name of the server."""
    context = ssl.create_default_context() if not ca else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if ca:
        _authority(context, ca)
    if certificate:
        _chain(context, certificate, key or certificate)
    return context


def _chain(context: ssl.SSLContext, certificate: str, key: str) -> None:
    for name in (certificate, key):
        _readable(name)
    try:
        context.load_cert_chain(certificate, key, password=lambda: "")
    except (ssl.SSLError, ValueError, OSError) as error:
        raise UsageError(
            f"{certificate} and {key} are not a certificate and its key: {_reason(error)}",
            hint="give PEM files that belong together, and a key without a password",
        ) from None


def _authority(context: ssl.SSLContext, ca: str) -> None:
    _readable(ca)
    try:
        context.load_verify_locations(ca)
    except (ssl.SSLError, OSError) as error:
        raise UsageError(
            f"{ca} has no certificate of an authority: {_reason(error)}", hint="give a PEM file with certificates"
        ) from None


def _readable(name: str) -> None:
    try:
        Path(name).open("rb").close()
    except OSError as error:
        raise UsageError(f"{name} cannot be read: {error.strerror}", hint="give a PEM file") from None


def _reason(error: Exception) -> str:
    return getattr(error, "reason", None) or " ".join(str(error).split())
