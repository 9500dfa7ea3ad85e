"""A browser for the tests of pages and drawings."""

from tests.support.browser import browser, page

__all__ = ["browser", "page"]
