"""slow_relay.py PORT TARGET DELAY RATE: relays connections of the loopback address from PORT to TARGET.

Each piece towards TARGET comes DELAY milliseconds late, and no more than RATE bytes of them in a second (0: no limit).
"""

import asyncio
import sys

port, target, delay, rate = map(int, sys.argv[1:])
PIECE = 4096


async def pass_slowly(reader, writer):
    """Keeps the order; the delay of a piece begins when it arrives."""
    loop = asyncio.get_running_loop()
    pieces = asyncio.Queue(maxsize=1 if rate else 0)

    async def read():
        while data := await reader.read(PIECE):
            await pieces.put((loop.time() + delay / 1000, data))
        await pieces.put((0, b""))

    async def write():
        while True:
            due, data = await pieces.get()
            if not data:
                return writer.close()
            await asyncio.sleep(max(due - loop.time(), len(data) / rate if rate else 0))
            writer.write(data)
            await writer.drain()

    await asyncio.gather(read(), write())


async def pass_on(reader, writer):
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()


async def relay(reader, writer):
    try:
        there = await asyncio.open_connection("127.0.0.1", target)
        await asyncio.gather(pass_slowly(reader, there[1]), pass_on(there[0], writer))
    except OSError:
        writer.close()


async def main():
    async with await asyncio.start_server(relay, "127.0.0.1", port) as server:
        print("ready", flush=True)
        await server.serve_forever()


asyncio.run(main())
