"""Transfers between two accounts. `main` takes the locks in the order of the accounts' numbers; `main_wrong` takes the
lock of the source first, so two opposite transfers can wait for each other forever."""

import threading


class Account:
    def __init__(self, number, balance):
        self.number = number
        self.balance = balance
        self.lock = threading.Lock()


def move(source, target, amount):
    if source.balance >= amount:
        source.balance -= amount
        target.balance += amount


def transfer(source, target, amount):
    first, second = (source, target) if source.number < target.number else (target, source)
    with first.lock, second.lock:
        move(source, target, amount)


def transfer_wrong(source, target, amount):
    with source.lock, target.lock:
        move(source, target, amount)


def run(action):
    alice, bob = Account(1, 10), Account(2, 10)
    threads = [
        threading.Thread(target=action, args=(alice, bob, 5)),
        threading.Thread(target=action, args=(bob, alice, 3)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert alice.balance == 8
    assert bob.balance == 12


def main():
    run(transfer)


def main_wrong():
    run(transfer_wrong)


if __name__ == "__main__":
    main()
