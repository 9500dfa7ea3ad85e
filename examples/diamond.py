"""Two processes that have nothing to do with each other, and all the orders in which they can do it.

Each baker bakes two loaves, one after the other, and says nothing to the other baker. There are nine states and six runs,
all of which end in the same state: in whichever order two steps of different bakers happen, the state after both is the
same. A search with `--reduce por` takes one run, and meets five states. `plait graph` draws both.

That is possible because the property asks for the end only. One that compares the bakers on the way would see the order
of their steps, and nothing could be left out.
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
    """In the end there are as many loaves as were ordered."""
    return sum(baker.loaves for baker in s[Baker]) == 4


def diamond(missing: int = 0) -> System:
    """Two bakers; `missing` orders got lost on their way to the second."""
    return System([Baker(orders=2), Baker(orders=2 - missing)], properties=[everybody_has_bread])
