"""The functions that a running process enters, by a breakpoint at the first byte of each: Linux on x86-64.

A breakpoint is removed when it is met, so that each costs one stop, and the process runs on in between.
"""

import contextlib
import ctypes
import os
import pathlib
import signal
import threading
import time

SEIZE, CONTINUE, GETREGS, SETREGS, TRACE_CLONES = 0x4206, 7, 12, 13, 1 << 3
ALL_THREADS = 0x40000000  # __WALL
RIP = 16  # The place of the program counter among the registers.
TRAP = b"\xcc"

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


def ptrace(request, thread, data=0):
    if libc.ptrace(request, thread, 0, data) == -1:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


class Breakpoints:
    """Breakpoints in a child of this process, for the thread that makes them."""

    def __init__(self, process, binary, offsets):
        """`offsets` are the functions' addresses in the binary."""
        mapping = next(line for line in pathlib.Path(f"/proc/{process}/maps").read_text().splitlines()
                       if line.endswith(str(binary.resolve())))
        base = int(mapping.partition("-")[0], 16)
        self.memory = os.open(f"/proc/{process}/mem", os.O_RDWR)
        self.own = {base + offset: os.pread(self.memory, 1, base + offset) for offset in offsets}
        self.base = base
        for thread in os.listdir(f"/proc/{process}/task"):
            ptrace(SEIZE, int(thread), TRACE_CLONES)

    def entered(self, work):
        """Runs the work in a thread of its own, and returns the functions that the process enters meanwhile."""
        for address in self.own:
            os.pwrite(self.memory, TRAP, address)
        met = set()
        worker = threading.Thread(target=work)
        worker.start()
        while worker.is_alive():
            self.turn(met)
        found = {address - self.base for address in met}
        for address, byte in self.own.items():
            os.pwrite(self.memory, byte, address)
        # Whoever has met a breakpoint by now goes on, too.
        end = time.monotonic() + 0.2
        while time.monotonic() < end:
            self.turn(met)
        return found

    def end(self, process):
        """Waits for the end of the process, which its threads have to be waited for as well."""
        os.close(self.memory)
        thread, status = 0, 0
        while thread != process or os.WIFSTOPPED(status):
            thread, status = os.waitpid(-1, ALL_THREADS)

    def turn(self, met):
        """Has a thread that has stopped go on, if there is one."""
        thread, status = os.waitpid(-1, os.WNOHANG | ALL_THREADS)
        if thread == 0:
            time.sleep(0.0002)
            return
        if not os.WIFSTOPPED(status):
            return
        passed = 0
        # A thread may end while it is looked at.
        with contextlib.suppress(ProcessLookupError):
            if status >> 16 == 0:
                passed = os.WSTOPSIG(status)
                if passed == signal.SIGTRAP and self.leave(thread, met):
                    passed = 0
            ptrace(CONTINUE, thread, passed)

    def leave(self, thread, met):
        """Removes the breakpoint at which a thread stands, if it is one, and has the thread enter the function."""
        registers = (ctypes.c_ulonglong * 27)()
        ptrace(GETREGS, thread, ctypes.addressof(registers))
        address = registers[RIP] - 1
        if address not in self.own:
            return False
        os.pwrite(self.memory, self.own[address], address)
        met.add(address)
        registers[RIP] = address
        ptrace(SETREGS, thread, ctypes.addressof(registers))
        return True
