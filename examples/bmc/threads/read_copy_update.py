"""Read-copy-update: a reader needs no lock, because a writer replaces the whole configuration at once.

In `main_wrong`, a writer changes the configuration in place, and a reader sees half of a change.
"""

import threading


class Config:
    def __init__(self, low, high):
        self.low = low
        self.high = high


class Store:
    def __init__(self):
        self.lock = threading.Lock()
        self.config = Config(0, 1)

    def move(self):
        with self.lock:
            old = self.config
            self.config = Config(old.low + 1, old.high + 1)

    def move_wrong(self):
        with self.lock:
            self.config.low += 1
            self.config.high += 1

    def read(self):
        config = self.config
        assert config.high - config.low == 1


def run(store, write):
    threads = [threading.Thread(target=write) for _ in range(2)]
    threads.append(threading.Thread(target=store.read))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.config.low == 2


def main():
    store = Store()
    run(store, store.move)


def main_wrong():
    store = Store()
    run(store, store.move_wrong)


if __name__ == "__main__":
    main()
