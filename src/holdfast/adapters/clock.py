"""The real clock and the real source of chance: the only places that read either."""

from __future__ import annotations

import asyncio
import secrets
import time


class SystemClock:
    """The machine's clocks."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_s(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class SystemEntropy:
    """The operating system's randomness."""

    def token(self) -> str:
        return secrets.token_hex(16)

    def seed(self) -> int:
        return secrets.randbits(32)
