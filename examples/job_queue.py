"""A queue behind a network that may duplicate messages. Do clients still see a queue?

Clients announce when an operation starts and when it returns. In every state, the `Linearizability` monitor decides
whether a sequential run of a queue explains the results. If the server handles each message as a new request, it
enqueues a value twice when the network copies a message. With `deduplicate=True` it identifies requests by client and
number.
"""

from plait import Message, Pid, Process, System, action, duplicating, field, on, reachable
from plait.model.linearizability import Dequeue, Enqueue, Invoke, Linearizability, Queue, Return, linearizability


class Put(Message):
    """Append a value."""

    request: int
    value: str


class Take(Message):
    """Remove the oldest value."""

    request: int


class Reply(Message):
    """The result of a request."""

    request: int
    value: str | None = None


class Server(Process):
    """Stores the queue."""

    deduplicate: bool
    queue: list[str] = field(default_factory=list)
    replies: dict[tuple[Pid, int], Reply] = field(default_factory=dict)

    @on(Put)
    def put(self, m: Put):
        if self.is_new(m):
            self.queue.append(m.value)
            self.answer(m, None)

    @on(Take)
    def take(self, m: Take):
        if self.is_new(m):
            self.answer(m, self.queue.pop(0) if self.queue else None)

    def is_new(self, m: Put | Take) -> bool:
        """Whether a request is new. Without deduplication, every request is new."""
        return not self.deduplicate or (m.sender, m.request) not in self.replies

    def answer(self, m: Put | Take, value: str | None):
        """Reply, and remember the request."""
        if self.deduplicate:
            self.replies[m.sender, m.request] = Reply(m.request, value)
        self.send(m.sender, Reply(m.request, value))


class Client(Process):
    """Runs its operations one after the other."""

    todo: tuple[Enqueue | Dequeue, ...]
    request: int = 0
    busy: bool = False

    @action(when=lambda self: not self.busy and self.request < len(self.todo))
    def start(self):
        operation = self.todo[self.request]
        self.busy = True
        self.announce(Invoke(operation))
        if isinstance(operation, Enqueue):
            self.send(Server.pid(0), Put(self.request, operation.value))
        else:
            self.send(Server.pid(0), Take(self.request))

    @on(Reply, where=lambda self, m: self.busy and m.request == self.request)
    def finish(self, m: Reply):
        self.busy = False
        self.request += 1
        self.announce(Return(m.value))


@reachable
def everybody_finishes(s):
    """All operations can return."""
    return all(client.request == len(client.todo) for client in s[Client])


def job_queue(copies: int = 1, deduplicate: bool = False) -> System:
    """One client enqueues, another one dequeues twice. The network makes at most `copies` copies in a run."""
    return System(
        [Server(deduplicate=deduplicate), Client(todo=(Enqueue("a"),)), Client(todo=(Dequeue(), Dequeue()))],
        network=duplicating(duplications=copies),
        monitors=[Linearizability(spec=Queue())],
        properties=[linearizability(), everybody_finishes],
    )
