"""Double-checked initialisation: the settings are made once, when a thread first needs them.

`main_wrong` forgets the second check, so two threads can make the settings twice.
"""

import threading


class Settings:
    made = 0

    def __init__(self):
        Settings.made += 1
        self.limit = 10


lock = threading.Lock()
settings = None


def get():
    global settings
    if settings is None:
        with lock:
            if settings is None:
                settings = Settings()
    return settings


def get_wrong():
    global settings
    if settings is None:
        with lock:
            settings = Settings()
    return settings


def use():
    assert get().limit == 10


def use_wrong():
    assert get_wrong().limit == 10


def run(target):
    threads = [threading.Thread(target=target) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Settings.made == 1


def main():
    run(use)


def main_wrong():
    run(use_wrong)


if __name__ == "__main__":
    main()
