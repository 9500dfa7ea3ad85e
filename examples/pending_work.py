"""Termination detection in general: when may it be announced that all nodes are passive and no message is under way?

Nodes are active or passive. An active node sends messages, and a message makes its receiver active. Initially each
node may be active or passive. The number of messages has no bound, so the search has one: states with more than
`most` pending messages at a node are checked, but not expanded.

    plait check examples/pending_work.py                    termination is detected, and never too early, within the bound
    plait check examples/pending_work.py -p most=1          a smaller bound
    plait check examples/pending_work.py -p patient=false   a detector that does not look at messages under way

With `-p nodes=4` there are 4,097 states, as in the model AsyncTerminationDetection of the TLA+ examples. As there,
messages have no content and no sender, and the detector sees the whole system. So all nodes are one process.
"""

from plait import Process, System, View, action, always, field, init, leads_to, predicate, weak


class Network(Process):
    """For each node, whether it is active, and how many messages are under way to it."""

    nodes: int
    patient: bool
    active: list[bool] = field(default_factory=list)
    pending: list[int] = field(default_factory=list)
    detected: bool = False

    def quiet(self) -> bool:
        return not any(self.active) and not (self.patient and any(self.pending))

    @init
    def begin(self) -> None:
        self.active = [self.choose([False, True]) for _ in range(self.nodes)]
        self.pending = [0] * self.nodes
        self.detected = self.quiet() and self.choose([False, True])

    @action(when=lambda self: any(self.active))
    def rest(self) -> None:
        self.active[self.choose([i for i in range(self.nodes) if self.active[i]])] = False
        if self.quiet():
            self.detected |= self.choose([False, True])

    @action(when=lambda self: any(self.active))
    def send_work(self) -> None:
        self.pending[self.choose(range(self.nodes))] += 1

    @action(when=lambda self: any(self.pending))
    def receive_work(self) -> None:
        node = self.choose([i for i in range(self.nodes) if self.pending[i]])
        self.pending[node] -= 1
        self.active[node] = True

    @action(when=lambda self: self.quiet())
    def detect(self) -> None:
        self.detected = True


def terminated(s: View) -> bool:
    """No node is active, and no message is under way."""
    return not any(any(network.active) or any(network.pending) for network in s[Network])


@always
def never_too_early(s: View) -> bool:
    """If termination is detected, the system has terminated."""
    return terminated(s) or not any(network.detected for network in s[Network])


def pending_work(nodes: int = 3, most: int = 3, patient: bool = True) -> System:
    """At most `most` messages under way to a node. A detector that is not patient does not count messages."""
    detected = predicate(lambda s: all(network.detected for network in s[Network]))
    return System(
        [Network(nodes=nodes, patient=patient)],
        within=lambda s: all(count <= most for network in s[Network] for count in network.pending),
        fairness=[weak(Network.detect)],
        properties=[never_too_early, leads_to(predicate(terminated), detected, name="detected_in_the_end")],
        name="pending_work",
    )
