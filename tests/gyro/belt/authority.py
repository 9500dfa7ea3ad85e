"""A certificate authority for tests: it signs certificates of servers and clients."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from plait.gyro.belt.service.certificates import Tls

DAY = datetime.timedelta(days=1)


class Authority:
    """An authority, with its files in a folder."""

    def __init__(self, folder: Path, name: str = "tests") -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"authority of {name}")])
        self.file = folder / f"{name}-ca.pem"
        made = self._builder(self._name, self._key).add_extension(x509.BasicConstraints(True, None), True)
        usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
        self.certificate = made.add_extension(usage, True).sign(self._key, hashes.SHA256())
        self.file.write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM))

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(self._name).public_key(key.public_key())
        return (
            builder.serial_number(x509.random_serial_number())
            .not_valid_before(now - DAY)
            .not_valid_after(now + DAY)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), False)
        )

    def sign(self, name: str, *, hosts: tuple[str, ...] = ("127.0.0.1",)) -> tuple[Path, Path]:
        """Write a certificate for addresses, and its key. Files with this name are replaced."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(each)) for each in hosts])
        uses = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
        made = self._builder(subject, key).add_extension(names, False).add_extension(uses, False)
        files = self._folder / f"{name}.pem", self._folder / f"{name}.key"
        certificate = made.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        secret = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        for file, content in zip(files, (certificate, secret), strict=True):
            new = file.with_suffix(file.suffix + ".new")
            new.write_bytes(content)
            new.replace(file)
        return files

    def tls(self, name: str, **options: str) -> Tls:
        """Settings of TLS, with a new certificate."""
        certificate, key = self.sign(name)
        return Tls(str(certificate), str(key), str(self.file), **options)  # type: ignore[arg-type]
