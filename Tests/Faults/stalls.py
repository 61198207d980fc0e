"""The times at which the harness itself stood still, on a busy machine: what passes through its relays was late."""

import settings

# The time, in seconds, after which it has caught up with all that came meanwhile.
CAUGHT_UP = 0.5


class Stalls:
    def __init__(self):
        self.entries = []

    def hides_pause(self, before, after):
        """Whether two sendings that were seen close together may have had the time to settle between them."""
        return any(
            stall["since"] <= before["at"] <= stall["at"] + CAUGHT_UP
            and after["at"] - stall["since"] >= settings.SETTLE
            for stall in self.entries
        )

    def delays(self, sendings, heard):
        """Whether a response that was awaited for `heard` seconds may have been passed on late."""
        return any(
            stall["since"] <= sent["at"] + heard and sent["at"] - CAUGHT_UP <= stall["at"]
            for stall in self.entries
            for sent in sendings
        )
