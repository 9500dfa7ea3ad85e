"""A ticket lock: threads enter in the order of their tickets.

A ticket is drawn with `list.pop`, which is one operation. In `main_wrong`, it is drawn by a read and a write, so two
threads can have the same ticket.
"""

import threading
import time


class TicketLock:
    def __init__(self, most):
        self.tickets = [most - 1 - i for i in range(most)]
        self.serving = 0

    def draw(self):
        return self.tickets.pop()

    def acquire(self):
        ticket = self.draw()
        while self.serving != ticket:
            time.sleep(0)

    def release(self):
        self.serving += 1

    def __enter__(self):
        self.acquire()

    def __exit__(self, *error):
        self.release()


class WrongTicketLock(TicketLock):
    def __init__(self):
        self.following = 0
        self.serving = 0

    def draw(self):
        ticket = self.following
        self.following = ticket + 1
        return ticket


def run(lock):
    inside = 0

    def work():
        nonlocal inside
        with lock:
            inside += 1
            assert inside == 1
            inside -= 1

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main():
    run(TicketLock(3))


def main_wrong():
    run(WrongTicketLock())


if __name__ == "__main__":
    main()
