"""`plait gyro status`: show the state of servers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from plait.cli.options import Flag
from plait.cli.output import FOLDER, emit, emit_json
from plait.kernel.errors import UsageError
from plait.report.wording import plural

_UNREACHABLE = 1


def status(
    target: str = "",
    /,
    *,
    json: Flag = False,
    only: Annotated[tuple[int, ...], Parameter(name="--only", negative=(), show_default=False)] = (),
    tls_ca: Annotated[Path | None, Parameter(name="--tls-ca")] = None,
    tls_certificate: Annotated[Path | None, Parameter(name="--tls-certificate")] = None,
    tls_key: Annotated[Path | None, Parameter(name="--tls-key")] = None,
) -> int:
    """Show the state of servers (the help text is in `plait.cli.main`).

    Parameters
    ----------
    target
        The URL of a server, or the folder of the servers (default: .plait/gyro).
    json
        Print exactly one JSON object on stdout.
    only
        Show only the server with this number (from 0), for example as the health check of a container.
    tls_ca
        A PEM file with the authorities that verify the servers. Default: those of the folder, or of the system.
    tls_certificate
        A PEM file with a client certificate, if the servers require one.
    tls_key
        A PEM file with the key of the client certificate.
    """
    import msgspec

    from plait.gyro.belt.http import ask
    from plait.gyro.belt.service.certificates import client_context
    from plait.gyro.belt.supervisor import known_cluster

    ca, certificate, key = (str(file or "") for file in (tls_ca, tls_certificate, tls_key))
    known = None
    if not target.startswith("http"):
        known = known_cluster(Path(target) if target else FOLDER / "gyro")
        if known is not None and known.tls is not None:
            ca, certificate, key = ca or known.tls.ca, certificate or known.tls.certificate, key or known.tls.key
    context = client_context(ca, certificate, key) if ca or certificate else None
    tls = (lambda: context) if context is not None else None
    if target.startswith("http"):
        try:
            answer = ask(target, "/cluster", tls=tls)[1]
            cluster = msgspec.json.decode(answer)
            urls: list[str] = cluster["urls"]
            members: list[int] = cluster.get("members") or list(range(len(urls)))
        except OSError as error:
            raise UsageError(
                f"{target} does not answer: {error}", hint="give the URL of one server; with https, see --tls-ca"
            ) from None
        except (msgspec.DecodeError, KeyError, TypeError):
            raise UsageError(
                f"{target} does not answer like a server of plait gyro", hint="give the URL of one server"
            ) from None
    else:
        urls = known.urls if known is not None else []
        members = known.numbers if known is not None else []
        if not urls:
            raise UsageError(
                f"the folder {target or FOLDER / 'gyro'} has no servers",
                hint="start servers with plait gyro serve, or give the URL of a server",
            )
    if any(number not in members for number in only):
        raise UsageError(f"--only {only[0]}: expected one of {', '.join(map(str, members))}", hint="choose a server")
    numbers = list(only) or members
    urls = [urls[members.index(number)] for number in numbers]
    found: list[dict[str, Any] | None] = []
    for url in urls:
        facts: dict[str, Any] = {}
        try:
            for path in ("/status", "/health", "/ready"):
                facts |= msgspec.json.decode(ask(url, path, tls=tls, timeout=5.0)[1], type=dict[str, Any])
        except (OSError, msgspec.DecodeError):
            found.append(None)
        else:
            found.append(facts)
    last = max((f["known"] for f in found if f is not None), default=0)
    for facts in filter(None, found):
        facts["lag"] = last - facts["applied"]  # compared with the newest update that any server knows
    if json:
        shown = [{"url": u, "up": f is not None, **(f or {})} for u, f in zip(urls, found, strict=True)]
        configuration = _configuration(found)
        emit_json({"token": _token(found), "updates": last, **configuration, "servers": shown})
    else:
        emit(_table(numbers, urls, found, last))
    return 0 if all(f is not None and f["ready"] for f in found) else _UNREACHABLE


def _configuration(found: list[dict[str, Any] | None]) -> dict[str, Any]:
    """The newest configuration that a server knows, and the change that is under way."""
    seen = [f for f in found if f is not None and "configuration" in f]
    if not seen:
        return {}
    newest = max(seen, key=lambda f: (f["configuration"], f["applied"]))
    return {"configuration": newest["configuration"], "change": newest["change"], "aborted": newest["aborted"]}


def _token(found: list[dict[str, Any] | None]) -> dict[str, Any] | None:
    """The server that had the token last, and whether it still holds it; only servers that answer count."""
    seen = [f for f in found if f is not None and f["turn"] >= 0]
    if not seen:
        return None
    latest = max(seen, key=lambda f: (f["epoch"], f["turn"]))
    return {k: latest[k] for k in ("server", "epoch", "turn")} | {"held": latest["holds_token"]}


def _table(numbers: list[int], urls: list[str], found: list[dict[str, Any] | None], last: int) -> str:
    """One line per server, then the token."""
    rows = [("server", "url", "ready", "token", "queue", "applied", "lag", "ops/s", "read", "local", "global")]
    for number, url, facts in zip(numbers, urls, found, strict=True):
        if facts is None:
            rows.append((str(number), url, "no", "does not answer", "", "", "", "", "", "", ""))
            continue
        token = "here" if facts["holds_token"] else f"turn {facts['turn']}" if facts["turn"] >= 0 else "not yet"
        counts = facts["operations"]
        rows.append(
            (
                str(number),
                url,
                "yes" if facts["ready"] else "no",
                token,
                str(facts["queue"]),
                str(facts["applied"]),
                str(facts["lag"]),
                f"{facts['throughput']:.1f}",
                str(counts["read"]),
                str(counts["local"]),
                str(counts["global"]),
            )
        )
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [
        "  ".join(
            cell.rjust(w) if i > 3 else cell.ljust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    if (seen := _token(found)) is None:
        lines.append("the position of the token is not known")
    else:
        where = "at" if seen["held"] else "has left"
        lines.append(
            f"token {seen['epoch']} {where} server {seen['server']}, turn {seen['turn']}; {plural(last, 'update')}"
        )
    if configuration := _configuration(found):
        lines.append(f"configuration {configuration['configuration']}")
        if (change := configuration["change"]) is not None:
            waits = ", ".join(map(str, change["missing"])) or "none"
            lines.append(
                f"a change to configuration {change['number']} is under way; servers that are not ready: {waits}"
            )
        elif configuration["aborted"]:
            lines.append(f"the last change was aborted: {configuration['aborted']}")
    for facts in filter(None, found):
        lines += [f"server {facts['server']} is not ready: {reason}" for reason in facts["reasons"]]
    return "\n".join(lines)
