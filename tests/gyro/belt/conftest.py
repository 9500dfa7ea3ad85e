"""Databases are closed after each test, also if it fails."""

from collections.abc import Iterator

import pytest

from tests.support.engines import closed_engines


@pytest.fixture(autouse=True)
def _closed_engines() -> Iterator[None]:
    """A connection that a failed test has left open would fail another test, with a ResourceWarning."""
    with closed_engines():
        yield
