"""Applications of Django. Their database backend is replaced by one that uses the connection of the operation."""

from __future__ import annotations

import sys
from typing import Any

from plait.gyro.web.requests import Match, WebRequest, WebResponse
from plait.gyro.web.wsgi import request_of, run


class DjangoFramework:
    """An application of Django: the object that `get_wsgi_application` returns."""

    def __init__(self, application: Any) -> None:
        self.application = application

    def match(self, request: WebRequest) -> Match | None:
        """The endpoint of a request."""
        from django.urls import Resolver404, resolve

        try:
            found = resolve(request.path)
        except Resolver404:
            return None
        return Match(f"/{found.route}", dict(found.kwargs), _session(request))

    def respond(self, request: WebRequest) -> WebResponse:
        """Run the application."""
        return run(self.application, request)

    def rules(self) -> list[str]:
        """The rules of all URLs."""
        from django.urls import get_resolver

        return [f"/{rule}" for rule in _rules(get_resolver().url_patterns)]

    def start(self) -> None:
        """Do nothing: its start-up code runs when it is imported."""


def _rules(patterns: Any, prefix: str = "") -> list[str]:
    found = []
    for pattern in patterns:
        rule = prefix + str(pattern.pattern)
        inner = getattr(pattern, "url_patterns", None)
        found += [rule] if inner is None else _rules(inner, rule)
    return found


def _session(request: WebRequest) -> dict[str, Any]:
    """The session, if it is in a signed cookie."""
    from django.conf import settings

    if settings.SESSION_ENGINE != "django.contrib.sessions.backends.signed_cookies":
        return {}
    from django.contrib.sessions.backends.signed_cookies import SessionStore

    return dict(SessionStore(request.cookies.get(settings.SESSION_COOKIE_NAME)).load())


def install(around: Any) -> None:
    """Let `around` record the requests of Django in this process."""
    base = sys.modules["django.core.handlers.base"]
    respond = base.BaseHandler.get_response

    def recorded(self: Any, request: Any) -> Any:
        asked = request_of(request.META, request.body)
        with around(DjangoFramework(self), asked):
            return respond(self, request)

    base.BaseHandler.get_response = recorded
