"""The counter of counter.plait, as threads in Python. Run `plait bmc examples/bmc/counter.py`."""

from plait.bmc import Program, build, lock, thread


@thread
def adder(s):
    t = s.x
    s.x = t + 1


@thread
def careful_adder(s):
    with s.m:
        t = s.x
        s.x = t + 1


def counter(n: int = 2, careful: bool = False) -> Program:
    """A program with n threads. With `careful`, they use a lock."""
    one = careful_adder if careful else adder
    return build({"x": 0, "m": lock}, [one() for _ in range(n)], final={"nothing_is_lost": f"s.x == {n}"})
