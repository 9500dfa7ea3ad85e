"""What Python offers to threads and tasks: programs whose assertions hold, each with a mutant."""

from __future__ import annotations

from tests.bmc.python.programs import Case

CASES: dict[str, Case] = {
    "executor": Case(
        """
        from concurrent.futures import ThreadPoolExecutor
        running = 0
        lock = threading.Lock()
        def square(n):
            global running
            with lock:
                running += 1
            assert running <= 2
            with lock:
                running -= 1
            return n * n
        def main():
            with ThreadPoolExecutor(max_workers=2) as pool:
                futures = [pool.submit(square, i) for i in range(3)]
                assert [f.result() for f in futures] == [0, 1, 4]
        """,
        "max_workers=2",
        "max_workers=3",
    ),
    "tasks": Case(
        """
        async def child(gate, out, n):
            async with gate:
                out.append(n)
                await asyncio.sleep(0)
                out.append(n)
            return n
        async def main():
            gate = asyncio.Semaphore(1)
            out = []
            first = asyncio.create_task(child(gate, out, 1))
            second = asyncio.create_task(child(gate, out, 2))
            assert await first + await second == 3
            assert out == [1, 1, 2, 2] or out == [2, 2, 1, 1]
        """,
        "Semaphore(1)",
        "Semaphore(2)",
    ),
    "condition of asyncio": Case(
        """
        async def main():
            items = []
            ready = asyncio.Condition()
            async def consumer():
                async with ready:
                    await ready.wait_for(lambda: items)
                    return items.pop()
            task = asyncio.create_task(consumer())
            await asyncio.sleep(0)
            async with ready:
                items.append(4)
                ready.notify()
            assert await task == 4
        """,
        "ready.notify()",
        "pass",
        "deadlock",
    ),
    "event and queue of asyncio": Case(
        """
        async def main():
            queue = asyncio.Queue(maxsize=1)
            done = asyncio.Event()
            async def consumer():
                total = 0
                for _ in range(3):
                    total += await queue.get()
                    queue.task_done()
                done.set()
                return total
            async with asyncio.TaskGroup() as group:
                task = group.create_task(consumer())
                for i in range(3):
                    await queue.put(i)
                await done.wait()
            assert task.result() == 3
        """,
        "for _ in range(3)",
        "for _ in range(4)",
        "deadlock",
    ),
    "two threads wait for each other while another one runs": Case(
        """
        one, two = threading.Lock(), threading.Lock()
        beat = 0
        def heart():
            global beat
            while True:
                beat = 1 - beat
        def left():
            with one, two:
                pass
        def right():
            with one, two:
                pass
        def main():
            Thread(target=heart, daemon=True).start()
            run(left, right)
        """,
        "def right():\n            with one, two:",
        "def right():\n            with two, one:",
        "deadlock",
    ),
    "any thread may release a lock": Case(
        """
        one, two = threading.Lock(), threading.Lock()
        def helper():
            while True:
                if two.locked():
                    two.release()
        def left():
            with one:
                two.acquire()
        def right():
            two.acquire()
            with one:
                pass
        def main():
            Thread(target=helper, daemon=True).start()
            run(left, right)
        """,
        "two.release()",
        "pass",
        "deadlock",
    ),
    "no switch without suspension": Case(
        """
        count = 0
        async def add(n):
            return n + 1
        async def work():
            global count
            before = count
            count = await add(before)
        async def main():
            await asyncio.gather(*[work() for _ in range(3)])
            assert count == 3
        """,
        "return n + 1",
        "await asyncio.sleep(0); return n + 1",
    ),
    "asyncio.run": Case(
        """
        def main():
            async def work():
                await asyncio.sleep(1)
                return 5
            assert asyncio.run(work()) == 5
        """,
        "== 5",
        "== 6",
    ),
    "kwargs of a thread": Case(
        """
        seen = []
        def work(a, b):
            seen.append(a - b)
        def main():
            t = Thread(target=work, args=(5,), kwargs={"b": 2})
            t.start()
            t.join()
            assert seen == [3]
        """,
        "args=(5,)",
        "args=(6,)",
    ),
    "old style of thread class": Case(
        """
        class Worker(Thread):
            def __init__(self, results):
                Thread.__init__(self, name="worker")
                self.results = results
            def run(self):
                self.results.append(1)
        def main():
            results = []
            w = Worker(results)
            w.start()
            w.join()
            assert results == [1]
        """,
        "w.join()",
        "pass",
    ),
    "thread subclass": Case(
        """
        class Worker(Thread):
            def __init__(self, n):
                super().__init__()
                self.n = n
                self.result = None
            def run(self):
                self.result = self.n * self.n
        def main():
            workers = [Worker(i) for i in range(3)]
            for w in workers:
                w.start()
            for w in workers:
                w.join()
            assert [w.result for w in workers] == [0, 1, 4]
        """,
        "    w.join()",
        "    pass",
    ),
    "condition": Case(
        """
        class Box:
            def __init__(self):
                self.item = None
                self.ready = threading.Condition()
            def put(self):
                with self.ready:
                    self.item = 7
                    self.ready.notify()
            def get(self):
                with self.ready:
                    while self.item is None:
                        self.ready.wait()
                    assert self.item == 7
        def main():
            box = Box()
            run(box.put, box.get)
        """,
        "self.ready.notify()",
        "pass",
        "deadlock",
    ),
    "wait_for": Case(
        """
        items = []
        ready = threading.Condition()
        def put():
            with ready:
                items.append(3)
                ready.notify_all()
        def get():
            with ready:
                ready.wait_for(lambda: len(items) > 0)
                assert items[0] == 3
        def main():
            run(get, put, get)
        """,
        "notify_all",
        "notify",
        "deadlock",
    ),
    "event": Case(
        """
        value = 0
        done = threading.Event()
        def first():
            global value
            value = 1
            done.set()
        def second():
            done.wait()
            assert value == 1
        def main():
            run(first, second)
        """,
        "done.wait()",
        "done.is_set()",
    ),
    "semaphore": Case(
        """
        inside = 0
        gate = threading.Semaphore(1)
        def work():
            global inside
            with gate:
                inside += 1
                assert inside == 1
                inside -= 1
        def main():
            run(work, work)
        """,
        "Semaphore(1)",
        "Semaphore(2)",
    ),
    "bounded semaphore": Case(
        """
        gate = threading.BoundedSemaphore(2)
        def main():
            gate.acquire()
            gate.release()
        """,
        "gate.acquire()",
        "gate.acquire(); gate.release()",
        "locks",
    ),
    "barrier": Case(
        """
        arrived = [0, 0]
        barrier = threading.Barrier(2)
        def work(me):
            arrived[me] = 1
            barrier.wait()
            assert arrived[1 - me] == 1
        def main():
            a = Thread(target=work, args=(0,))
            b = Thread(target=work, args=(1,))
            a.start(); b.start(); a.join(); b.join()
        """,
        "barrier.wait()",
        "pass",
    ),
    "queue": Case(
        """
        work = queue.Queue(maxsize=1)
        def producer():
            for i in range(3):
                work.put(i)
            work.put(None)
        def main():
            t = Thread(target=producer)
            t.start()
            seen = []
            while True:
                item = work.get()
                if item is None:
                    break
                seen.append(item)
            assert seen == [0, 1, 2]
            t.join()
        """,
        "work.put(None)",
        "pass",
        "deadlock",
    ),
    "queue nowait": Case(
        """
        jobs = queue.Queue()
        done = []
        def work():
            while True:
                try:
                    job = jobs.get_nowait()
                except queue.Empty:
                    return
                done.append(job)
                jobs.task_done()
        def main():
            for i in range(3):
                jobs.put(i)
            run(work, work)
            jobs.join()
            assert len(done) == 3 and sum(done) == 3
        """,
        "except queue.Empty",
        "except queue.Full",
    ),
    "lifo queue": Case(
        """
        stack = queue.LifoQueue()
        def main():
            stack.put(1)
            stack.put(2)
            assert stack.get() == 2
            assert stack.get() == 1
            assert stack.empty()
        """,
        "LifoQueue",
        "Queue",
    ),
    "rlock": Case(
        """
        lock = threading.RLock()
        def inner():
            with lock:
                return 3
        def main():
            with lock:
                assert inner() == 3
        """,
        "RLock",
        "Lock",
        "deadlock",
    ),
    "try lock": Case(
        """
        lock = threading.Lock()
        taken = 0
        def work():
            global taken
            if lock.acquire(blocking=False):
                taken += 1
                assert taken == 1
        def main():
            run(work, work)
            assert taken == 1
        """,
        "assert taken == 1",
        "assert taken == 0",
    ),
    "uncaught in thread": Case(
        """
        def work():
            numbers = {1: 2}
            numbers[3] = 4
            assert numbers[1] == 2
        def main():
            run(work)
        """,
        "numbers[1] == 2",
        "numbers[5] == 2",
        "bounds",
    ),
    "daemon": Case(
        """
        def work():
            threading.Event().wait()
        def main():
            Thread(target=work, daemon=True).start()
        """,
        "daemon=True",
        "daemon=False",
        "deadlock",
    ),
    "join timeout": Case(
        """
        gate = threading.Event()
        def main():
            t = Thread(target=gate.wait)
            t.start()
            t.join(timeout=0.1)
            assert t.is_alive()
            gate.set()
            t.join()
            assert not t.is_alive()
        """,
        "t.join()",
        "t.join(timeout=1)",
    ),
    "wrong release": Case(
        """
        lock = threading.Lock()
        def main():
            lock.acquire()
            lock.release()
        """,
        "lock.acquire()",
        "pass",
        "locks",
    ),
    "results of gather and sleep": Case(
        """
        async def same(x):
            return x
        async def main():
            both = await asyncio.gather(same(1), same(2))
            assert both[0] == 1
            a, b = await asyncio.gather(same(3), same(4))
            assert a == 3 and b == 4
            assert await asyncio.sleep(0, 5) == 5
        """,
        "a, b =",
        "b, a =",
    ),
    "list is unpacked": Case(
        """
        pair = [1, 2]
        def swap():
            pair.append(pair.pop(0))
        def main():
            run(swap)
            a, b = pair
            assert (a, b) == (2, 1)
        """,
        "pair.pop(0)",
        "pair[0]",
    ),
    "map of an executor": Case(
        """
        from concurrent.futures import ThreadPoolExecutor
        seen = []
        def square(n):
            seen.append(n)
            return n * n
        def main():
            with ThreadPoolExecutor(max_workers=2) as pool:
                assert list(pool.map(square, range(3))) == [0, 1, 4]
                pool.map(square, [5])
            assert len(seen) == 4
        """,
        "            assert len",
        "                assert len",
    ),
    "results of different types": Case(
        """
        async def produce(items):
            for n in range(2):
                await items.put(n + 1)
        async def consume(items):
            return await items.get() + await items.get()
        async def main():
            items = asyncio.Queue(1)
            nothing, total = await asyncio.gather(produce(items), consume(items))
            assert nothing is None and total == 3
        """,
        "total == 3",
        "total == 2",
    ),
    "messages about threads": Case(
        """
        import logging
        log = logging.getLogger("work")
        lock = threading.Lock()
        total = 0
        def work():
            global total
            log.info("%s starts", threading.current_thread().name)
            with lock:
                total += 1
            logging.warning(f"{threading.get_ident()} ends")
        def main():
            threads = [threading.Thread(target=work) for _ in range(2)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            assert total == 2
        """,
        "with lock",
        "if True",
    ),
}
