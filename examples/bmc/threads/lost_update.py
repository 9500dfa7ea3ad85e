"""Two threads increment a counter. `main` uses a lock, `main_wrong` does not."""

import threading


class Counter:
    """A counter with a lock."""

    def __init__(self):
        self.value = 0
        self.lock = threading.Lock()

    def safe(self):
        with self.lock:
            self.value += 1

    def unsafe(self):
        self.value += 1


def main():
    counter = Counter()
    threads = [threading.Thread(target=counter.safe) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter.value == 2


def main_wrong():
    counter = Counter()
    threads = [threading.Thread(target=counter.unsafe) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter.value == 2


if __name__ == "__main__":
    main()
