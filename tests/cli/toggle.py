"""A model whose property is violated by a lasso, unless its worker is treated fairly."""

TOGGLE = """
from plait import Process, System, action, eventually, weak

class Toggle(Process):
    up: bool = False

    @action
    def flip(self):
        self.up = not self.up

class Worker(Process):
    begun: bool = False
    done: bool = False

    @action(when=lambda self: not self.begun)
    def begin(self):
        self.begun = True

    @action(when=lambda self: self.begun and not self.done)
    def work(self):
        self.done = True

@eventually
def finished(s):
    return s[Worker][0].done

def model(toggles: int = 1, fair: bool = False) -> System:
    fairness = [weak(Worker.begin), *([weak(Worker)] if fair else [])]
    return System([*(Toggle() for _ in range(toggles)), Worker()], properties=[finished], fairness=fairness)
"""
