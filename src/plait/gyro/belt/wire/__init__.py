"""The calls of clients, by HTTP or in binary frames over persistent connections, at one port.

In: requests. Out: answers, the same by both protocols. Open `calls.py` first: it answers a call, whatever protocol it came
by. `batches.py` executes operations that came together. `frames.py` defines the bytes, and `door.py` turns them into calls.
`link.py` and `stream.py` are connections of clients, for threads and for asyncio. `cluster.py` has what all clients know,
and `async_client.py` is one of them.
"""
