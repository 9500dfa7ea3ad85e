"""What the role of a server may do in PostgreSQL: everything that it needs, and nothing else.

The role is no superuser. It owns its database, so it can create tables and triggers. Updates of other servers contain the
effects of triggers and foreign keys, so these must not act again while an update is applied. PostgreSQL has a setting
for this, `session_replication_role = replica`. A superuser grants the right to change this one setting (PostgreSQL 15 or
later). `deploy/gyro/role.sql` creates such a role.

Two kinds of objects would act in spite of the setting, or hide rows from a role that is no superuser. A database that
has them is refused: triggers and rules that are enabled ALWAYS or REPLICA, and policies that apply to the role.
"""

from __future__ import annotations

from typing import Any

from plait.kernel.errors import UsageError
from plait.kernel.extras import needs

with needs("serve"):
    import psycopg
    from psycopg import errors, sql

ROLE = "gyro"
"""The role, and the database, that a server uses in a PostgreSQL that Plait has started."""
OLDEST = 15
"""The first version in which a superuser can grant the right to change a setting."""
_ACTING = """
SELECT 'trigger ' || t.tgname, c.relname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
WHERE t.tgenabled IN ('A', 'R') AND c.relnamespace = 'public'::regnamespace
UNION ALL
SELECT 'rule ' || r.rulename, c.relname FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class
WHERE r.ev_enabled IN ('A', 'R') AND c.relnamespace = 'public'::regnamespace
"""
_HIDING = """
SELECT relname FROM pg_class
WHERE relkind IN ('r', 'p') AND relnamespace = 'public'::regnamespace AND row_security_active(oid)
"""


def confirm_role(db: psycopg.Connection[Any], server: int) -> None:
    """Check that the role of this connection can apply updates as they are."""
    where = f"PostgreSQL of server {server}"
    try:
        with db.transaction():
            db.execute("SET LOCAL session_replication_role = replica")
    except errors.InsufficientPrivilege:
        raise UsageError(
            f"{where}: the role {db.info.user} may not set session_replication_role",
            hint=f"as a superuser: GRANT SET ON PARAMETER session_replication_role TO {db.info.user} "
            f"(PostgreSQL {OLDEST} or later; deploy/gyro/role.sql)",
        ) from None
    for what, table in db.execute(_ACTING).fetchall():
        raise UsageError(
            f"{where}: the {what} of table {table} is enabled ALWAYS or REPLICA, so it would act again on other servers",
            hint=f"ALTER TABLE {table} ENABLE {what}",
        )
    for (table,) in db.execute(_HIDING).fetchall():
        raise UsageError(
            f"{where}: policies of table {table} apply to the role {db.info.user}, so updates could miss rows",
            hint="let this role own the table, without FORCE ROW LEVEL SECURITY",
        )


def create_role(admin: str) -> None:
    """Create the role and its database in a PostgreSQL that Plait has started, as `deploy/gyro/role.sql` does."""
    with psycopg.connect(admin, autocommit=True) as db:
        if db.info.server_version < OLDEST * 10_000:
            raise UsageError(
                f"the installed PostgreSQL has version {db.info.server_version // 10_000}, expected {OLDEST} or later",
                hint="install a newer version, or give a DSN for each server",
            )
        name = sql.Identifier(ROLE)
        if not db.execute("SELECT FROM pg_roles WHERE rolname = %s", (ROLE,)).fetchall():
            options = "LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS"
            db.execute(sql.SQL("CREATE ROLE {} " + options).format(name))
        db.execute(sql.SQL("GRANT SET ON PARAMETER session_replication_role TO {}").format(name))
        if not db.execute("SELECT FROM pg_database WHERE datname = %s", (ROLE,)).fetchall():
            db.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(name, name))
        db.execute(sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(name))
