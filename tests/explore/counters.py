"""Three counters that count to 2, each on its own."""

from plait import Process, System, action


class Counter(Process):
    n: int = 0

    @action(when=lambda self: self.n < 2)
    def up(self):
        self.n += 1


model = System([Counter(), Counter(), Counter()])
