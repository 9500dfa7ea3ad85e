"""Databases are closed after each test, also if it fails."""

from collections.abc import Iterator

import pytest

from tests.support.engines import close_engines


@pytest.fixture(autouse=True)
def closed_engines() -> Iterator[None]:
    """A connection that a failed test has left open would fail another test, with a ResourceWarning."""
    yield
    close_engines()
