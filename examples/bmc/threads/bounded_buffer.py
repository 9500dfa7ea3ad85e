"""A bounded buffer with a condition variable.

`main_if` tests the condition once instead of in a loop: a consumer that wakes up finds that another one has taken the
item. `main_lost` wakes one thread with `notify`: it can be one of the wrong kind, and all threads wait forever.
"""

import threading
from collections import deque


class Buffer:
    def __init__(self, capacity):
        self.capacity = capacity
        self.items = deque()
        self.changed = threading.Condition()

    def put(self, item):
        with self.changed:
            while len(self.items) == self.capacity:
                self.changed.wait()
            self.items.append(item)
            self.changed.notify_all()

    def get(self):
        with self.changed:
            while not self.items:
                self.changed.wait()
            item = self.items.popleft()
            self.changed.notify_all()
            return item


class BufferWithIf(Buffer):
    def get(self):
        with self.changed:
            if not self.items:
                self.changed.wait()
            item = self.items.popleft()
            self.changed.notify_all()
            return item


class BufferWithNotify(Buffer):
    def put(self, item):
        with self.changed:
            while len(self.items) == self.capacity:
                self.changed.wait()
            self.items.append(item)
            self.changed.notify()

    def get(self):
        with self.changed:
            while not self.items:
                self.changed.wait()
            item = self.items.popleft()
            self.changed.notify()
            return item


def run(buffer, producers, consumers):
    taken = []

    def produce(item):
        buffer.put(item)

    def consume():
        taken.append(buffer.get())

    threads = [threading.Thread(target=produce, args=(i,)) for i in range(producers)]
    threads += [threading.Thread(target=consume) for _ in range(consumers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == consumers
    assert sum(taken) == sum(range(producers))


def main():
    run(Buffer(1), 2, 2)


def main_if():
    run(BufferWithIf(1), 2, 2)


def main_lost():
    run(BufferWithNotify(1), 2, 2)


if __name__ == "__main__":
    main()
