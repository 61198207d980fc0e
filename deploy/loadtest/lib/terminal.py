"""Progress for whoever watches a terminal; nothing where errors go to a file or a pipe."""

import asyncio
import contextlib
import os
import sys
import threading
import time


def is_watched():
    return sys.stderr.isatty() and os.environ.get("TERM", "") not in ("", "dumb")


def show(text):
    """Writes a line in the place of the one before; an empty one leaves the place empty."""
    if is_watched():
        sys.stderr.write("\r\x1b[K" + text)
        sys.stderr.flush()


@contextlib.contextmanager
def watched(what, seconds):
    """Shows each second of an act that takes so many."""
    if not is_watched():
        yield
        return
    ended, begun = threading.Event(), time.monotonic()

    def count():
        while True:
            show(f"{what}: {min(time.monotonic() - begun, seconds):.0f} of {seconds:g} s")
            if ended.wait(1):
                return

    thread = threading.Thread(target=count)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        show("")


async def while_running(work, text):
    """Awaits the work, and shows each second what `text` returns."""
    task = asyncio.ensure_future(work)
    while not (await asyncio.wait([task], timeout=1))[0]:
        show(text())
    show("")
    return task.result()
