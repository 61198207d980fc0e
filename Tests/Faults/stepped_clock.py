"""A wall clock that the faults set, for the servers of a store: they all have the same one, as by NTP."""

import os
import pathlib
import struct
import subprocess

SOURCE = pathlib.Path(__file__).with_name("stepped_clock.c")


class SteppedClock:
    def __init__(self, directory):
        self.library = os.path.join(directory, "clock.so")
        self.path = os.path.join(directory, "clock")
        self.ahead = 0
        self.step(0)
        # Swift comes with clang.
        subprocess.run(["clang", "-shared", "-fPIC", "-O1", "-o", self.library, SOURCE], check=True)

    @property
    def environment(self):
        return {"LD_PRELOAD": self.library, "STEPPED_CLOCK": self.path}

    def step(self, seconds):
        """Sets the clock by so many whole seconds, at once for every process that has it."""
        self.ahead += seconds
        # Not truncated before: the processes have mapped it.
        with open(self.path, "r+b" if os.path.exists(self.path) else "wb") as file:
            file.write(struct.pack("=q", self.ahead))
