"""Applications of Flask."""

from __future__ import annotations

import sys
from typing import Any

from plait.gyro.web.requests import Match, WebRequest, WebResponse
from plait.gyro.web.wsgi import environ_of, run


class FlaskFramework:
    """An application of Flask. Its session is known if it is in a signed cookie, as by default."""

    def __init__(self, application: Any) -> None:
        self.application = application

    def match(self, request: WebRequest) -> Match | None:
        """The endpoint of a request."""
        from flask.sessions import SecureCookieSessionInterface
        from werkzeug.exceptions import HTTPException

        asked = self.application.request_class(environ_of(request))
        with self.application.app_context():
            adapter = self.application.create_url_adapter(asked)
            try:
                rule, variables = adapter.match(return_rule=True)
            except HTTPException:
                return None
            session: Any = {}
            if isinstance(self.application.session_interface, SecureCookieSessionInterface):
                session = self.application.session_interface.open_session(self.application, asked) or {}
        return Match(rule.rule, dict(variables), dict(session))

    def respond(self, request: WebRequest) -> WebResponse:
        """Run the application."""
        return run(self.application, request)

    def rules(self) -> list[str]:
        """The rules of all URLs."""
        return [r.rule for r in self.application.url_map.iter_rules()]

    def start(self) -> None:
        """Do nothing: its start-up code runs when it is imported."""


def install(around: Any) -> None:
    """Let `around` record the requests of all applications of Flask in this process."""
    from plait.gyro.web.wsgi import body_of, request_of

    flask = sys.modules["flask"]
    call = flask.Flask.__call__

    def recorded(self: Any, environ: Any, start_response: Any) -> Any:
        request = request_of(environ, body_of(environ))
        with around(FlaskFramework(self), request):
            chunks = call(self, environ, start_response)
            try:
                return list(chunks)  # a streamed response executes its statements now
            finally:
                chunks.close()

    flask.Flask.__call__ = recorded
