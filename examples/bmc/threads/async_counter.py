"""Two tasks increment a counter. Code between two awaits runs without interruption; `main_wrong` awaits between the
read and the write, so an update is lost."""

import asyncio


class Counter:
    def __init__(self):
        self.value = 0

    async def increment(self):
        await asyncio.sleep(0)
        self.value += 1

    async def increment_wrong(self):
        value = self.value
        await asyncio.sleep(0)
        self.value = value + 1


async def main():
    counter = Counter()
    await asyncio.gather(counter.increment(), counter.increment())
    assert counter.value == 2


async def main_wrong():
    counter = Counter()
    await asyncio.gather(counter.increment_wrong(), counter.increment_wrong())
    assert counter.value == 2


if __name__ == "__main__":
    asyncio.run(main())
