"""Two independent processes, and all orders of their steps.

Each baker bakes two loaves, one after the other. The bakers exchange no messages. There are nine states and six runs.
All runs end in the same state, because the order of two steps of different bakers does not matter. A search with
`--reduce por` takes one run, and visits five states. `plait graph` draws both graphs.

The reduction is possible because the property is about the last state only. If a property compared the bakers during
the run, the order of steps would matter, and no state could be left out.
"""

from plait import Process, System, action, final


class Baker(Process):
    orders: int
    loaves: int = 0

    @action(when=lambda self: self.loaves < self.orders)
    def bake(self):
        self.loaves += 1


@final
def everybody_has_bread(s):
    """In the end, the bakers have baked all the loaves that were ordered."""
    return sum(baker.loaves for baker in s[Baker]) == 4


def diamond(missing: int = 0) -> System:
    """Two bakers. The second baker did not get `missing` of its orders."""
    return System([Baker(orders=2), Baker(orders=2 - missing)], properties=[everybody_has_bread])
