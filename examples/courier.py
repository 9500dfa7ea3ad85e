"""A request over a network that loses messages, to a server that crashes and recovers: is it ever answered?

The client sends its request again and again. That is not enough: the network could lose every copy, the server could
stay down, and the reply could wait for ever. Three assumptions exclude this, and each of them is needed.

    plait check examples/courier.py                                      the request is answered, whatever crashes
    plait check examples/courier.py -p assume=everybody,messages         the network loses every copy
    plait check examples/courier.py -p assume=processes,messages,loss    the server stays down
    plait check examples/courier.py -p assume=everybody,loss             the reply is pending, and is never delivered
"""

from plait import (
    Message,
    Process,
    System,
    action,
    crash_recovery,
    duplicating,
    durable,
    eventually,
    everybody,
    fair_loss,
    on,
    weak,
)


class Request(Message):
    """From the client."""


class Reply(Message):
    """From the server."""


class Client(Process):
    """Sends its request until it has the reply."""

    answered: bool = False

    @action(when=lambda self: not self.answered)
    def ask(self) -> None:
        self.send(Server.pid(0), Request())

    @on(Reply)
    def finish(self, m: Reply) -> None:
        self.answered = True


class Server(Process):
    """Does the work once, although it may be asked several times. The work is on disk before the reply is sent."""

    worked: bool = durable(False)

    @on(Request, where=lambda self, m: not self.worked)
    def work(self, m: Request) -> None:
        self.worked = True

    @on(Request, where=lambda self, m: self.worked)
    def reply(self, m: Request) -> None:
        self.send(m.sender, Reply())


@eventually
def the_request_is_answered(s):  # type: ignore[no-untyped-def]
    """The client gets its reply."""
    return s[Client][0].answered


ASSUMPTIONS = {
    "everybody": weak(everybody),
    "processes": weak(Process),
    "messages": weak(Message),
    "loss": fair_loss(Message),
}


def courier(assume: str = "everybody,messages,loss", crashes: int = 2) -> System:
    """A client and a server, which may crash so many times. `assume` lists the assumptions."""
    return System(
        [Client(), Server()],
        network=duplicating(lossy=True),
        faults=[crash_recovery(Server, budget=crashes)],
        properties=[the_request_is_answered],
        fairness=[ASSUMPTIONS[name] for name in assume.split(",")],
    )
