"""The connection of an operation, as Django expects it. Transactions of Django become savepoints of the operation."""

from __future__ import annotations

from typing import Any

from django.db.backends.sqlite3 import base

from plait.gyro.web.engine import current, scratch


class LentCursor:
    """A cursor of the operation, for statements with the placeholders of Django."""

    def __init__(self, wrapper: DatabaseWrapper, cursor: Any) -> None:
        self._wrapper = wrapper
        self._cursor = cursor
        self._convert = base.SQLiteCursorWrapper.convert_query

    def execute(self, query: str, params: Any = None) -> Any:
        """Execute a statement. Outside of `atomic` it is a transaction of its own, as in Django."""
        if params is not None:
            query = self._convert(self, query, param_names=list(params) if hasattr(params, "keys") else None)
        done = self._cursor.execute(query, () if params is None else params)
        self._autocommit()
        return done

    def executemany(self, query: str, param_list: Any) -> Any:
        """Execute a statement several times."""
        done = self._cursor.executemany(self._convert(self, query), [tuple(p) for p in param_list])
        self._autocommit()
        return done

    def _autocommit(self) -> None:
        if not self._wrapper.in_atomic_block and self._wrapper.autocommit:
            self._wrapper.connection.commit()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)

    def __iter__(self) -> Any:
        return iter(self._cursor)


class DatabaseWrapper(base.DatabaseWrapper):  # type: ignore[misc]
    """SQLite, with the connection of the operation."""

    connection: Any
    savepoint_ids: list[str]

    def get_new_connection(self, conn_params: Any) -> Any:
        """The connection of the operation, or of a scratch database."""
        found = current()
        if found is not None:
            found.native = True
            return found
        made = scratch()
        base.register_functions(made)
        return made

    def ensure_connection(self) -> None:
        """Connect, and never keep the connection of an earlier operation."""
        found = current()
        if self.connection is not None and found is not None and self.connection is not found:
            self.connection = None
            self.in_atomic_block = False
            self.savepoint_ids = []
        super().ensure_connection()

    def init_connection_state(self) -> None:
        """Do nothing: the server has prepared the connection."""

    def is_in_memory_db(self) -> bool:
        """Whether closing the connection would lose the database: never."""
        return False

    def create_cursor(self, name: Any = None) -> Any:
        """A new cursor."""
        return LentCursor(self, self.connection.cursor())

    def _set_autocommit(self, autocommit: bool) -> None:
        pass

    def _start_transaction_under_autocommit(self) -> None:
        pass

    def _savepoint(self, sid: str) -> None:
        self.connection.control(f"SAVEPOINT {self.ops.quote_name(sid)}")

    def _savepoint_rollback(self, sid: str) -> None:
        self.connection.control(f"ROLLBACK TO SAVEPOINT {self.ops.quote_name(sid)}")

    def _savepoint_commit(self, sid: str) -> None:
        self.connection.control(f"RELEASE SAVEPOINT {self.ops.quote_name(sid)}")

    def disable_constraint_checking(self) -> bool:
        """Foreign keys are always checked."""
        return False

    def is_usable(self) -> bool:
        """The connection of an operation always is."""
        return True
