"""A backend of HTTP/2 in clear, by the server Hypercorn: hypercorn_backend.py PORT

Takes heads of up to 16 KiB. Prints "ready", and "began METHOD PATH" for each request. One whose path ends with /never
gets no response, and any other gets 201 after a tenth of a second.
"""

import asyncio
import sys

from hypercorn.asyncio import serve
from hypercorn.config import Config


async def serve_request(receive, send, scope):
    print("began", scope["method"], scope["path"], flush=True)
    while (await receive()).get("more_body"):
        pass
    if scope["path"].endswith("/never"):
        while (await receive())["type"] != "http.disconnect":
            pass
        return
    await asyncio.sleep(0.1)
    await send({"type": "http.response.start", "status": 201, "headers": [(b"content-type", b"application/json")]})
    await send({"type": "http.response.body", "body": b'{"order":1}'})


async def app(scope, receive, send):
    if scope["type"] == "http":
        await serve_request(receive, send, scope)
    elif scope["type"] == "lifespan":
        while (event := await receive())["type"] != "lifespan.shutdown":
            await send({"type": f"{event['type']}.complete"})
            print("ready", flush=True)


config = Config()
config.bind = [f"127.0.0.1:{sys.argv[1]}"]
config.h2_max_header_list_size = 16 << 10
config.loglevel = "WARNING"
asyncio.run(serve(app, config))
