"""A producer and two consumers with a queue. None tells a consumer to stop.

`main_wrong` sends None once, so one of the consumers waits forever.
"""

import queue
import threading


def produce(jobs, stops):
    for job in range(1, 4):
        jobs.put(job)
    for _ in range(stops):
        jobs.put(None)


def consume(jobs, results):
    while True:
        job = jobs.get()
        if job is None:
            return
        results.put(job * job)


def run(stops):
    jobs = queue.Queue(maxsize=2)
    results = queue.Queue()
    threads = [threading.Thread(target=produce, args=(jobs, stops))]
    for _ in range(2):
        threads.append(threading.Thread(target=consume, args=(jobs, results)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    total = 0
    while not results.empty():
        total += results.get()
    assert total == 14


def main():
    run(2)


def main_wrong():
    run(1)


if __name__ == "__main__":
    main()
