"""A dispatcher spawns a worker for every job. Each worker answers the client that sent the job.

The System declares spare slots, one for every process that may be spawned in a run. The workers of the faulty
dispatcher send their results to the dispatcher, which forwards each to the client that sent the last job.
"""

from plait import Message, Pid, Process, System, final, init, on


class Job(Message):
    """A request to square a number."""

    number: int


class Result(Message):
    """The square."""

    number: int


class Client(Process):
    """Sends its number, and waits for the square."""

    number: int
    result: int | None = None

    @init
    def submit(self):
        self.broadcast(Dispatcher, Job(self.number))

    @on(Result)
    def done(self, m: Result):
        self.result = m.number


class Worker(Process):
    """Gets its parameters when it is spawned, and starts when its first message arrives."""

    reply_to: Pid

    @on(Job)
    def work(self, m: Job):
        self.send(self.reply_to, Result(m.number**2))


class Dispatcher(Process):
    """Gives every job to a new worker."""

    @on(Job)
    def dispatch(self, m: Job):
        worker = self.spawn(Worker, reply_to=m.sender)
        self.send(worker, m)


class FaultyDispatcher(Dispatcher):
    """Collects the results itself, but remembers one client only."""

    last: Pid | None = None

    @on(Job)
    def dispatch(self, m: Job):
        self.last = m.sender
        worker = self.spawn(Worker, reply_to=self.id)
        self.send(worker, m)

    @on(Result)
    def pass_on(self, m: Result):
        self.send(self.last, m)


@final
def everybody_has_its_square(s):
    """In the end, every client has the square of its own number."""
    return all(client.result == client.number**2 for client in s[Client])


def workers(clients: int = 2, faulty: bool = False) -> System:
    """Clients, a dispatcher, and a spare slot for one worker per client."""
    return System(
        [*(Client(number=i + 2) for i in range(clients)), FaultyDispatcher() if faulty else Dispatcher()],
        spare={Worker: clients},
        properties=[everybody_has_its_square],
    )
