"""Faults that come again and again until the storm ends, and leave all mended behind."""

import asyncio

from relay import CALM


def repeated(max_pause):
    """Does it again and again, with pauses of up to so many seconds."""

    def wrap(body):
        async def fault(rig):
            while True:
                await asyncio.sleep(rig.dice.uniform(0.1, max_pause * rig.pace))
                # Shielded: what was broken is mended, also when the storm ends meanwhile.
                await asyncio.shield(rig.track(body(rig)))

        return fault

    return wrap


def troubled(relays, trouble):
    """Waves of trouble on some relays, so that there is peace between them."""

    async def fault(rig):
        try:
            while True:
                relay = rig.dice.choice(relays(rig))
                relay.trouble = trouble
                await asyncio.sleep(rig.dice.uniform(0.2, 1.5))
                if rig.dice.random() < 0.2:
                    relay.log("cuts all")
                    relay.cut_all()
                relay.trouble = CALM
                await asyncio.sleep(rig.dice.uniform(0, rig.pace))
        finally:
            for relay in relays(rig):
                relay.trouble = CALM

    return fault
