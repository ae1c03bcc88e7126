"""The inner wall: one `Meter` carries every limit of a run.

Owns the counters and the refusals that name the limit which fired. Does not own killing: native
work that does not return (a backtracking regex) is the outer wall's, which kills the process.

Invariants: whatever can run without bound charges fuel; whatever can grow without bound charges
`alloc_bytes` before it grows; the wall clock is read at least once per `CHUNK` units of fuel.
Built-ins find the meter of their run through `ACTIVE`, so the same function serves every run.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NoReturn

from holdfast.lang.api import LangError, Limits, Value, over_limit

CHUNK = 4096
NESTED_SORTS = 64
WORD_BYTES = 8


class Meter:
    """Counters of one run. Not thread-safe by itself: branches of `pmap` take turns."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.started = time.monotonic()
        self.deadline = self.started + limits.wall_s
        self.deadline_name = "wall_s"
        self.fuel_left = limits.fuel
        self.alloc_left = limits.alloc_bytes
        self.output_left = limits.output_bytes
        self.prints_left = limits.prints
        self.sorts = 0
        # The translated code counts this one cell down by itself and calls `refill` below zero.
        self.cell = [0]
        self.chunk = 0

    def definition(self, name: str) -> Value:
        """The value of a definition, for `#'name`; the machine that runs the program knows."""
        raise LangError("unbound_var", f"{name} is not defined")

    @property
    def fuel_used(self) -> int:
        return self.limits.fuel - self.fuel_left - self.cell[0]

    def refill(self) -> None:
        """Give the running code its next chunk of fuel, or refuse."""
        overdraft = -self.cell[0]
        self.cell[0] = 0
        self.burn(overdraft)
        self.check_clock()
        chunk = min(CHUNK, self.fuel_left)
        self.fuel_left -= chunk
        self.cell[0] = chunk

    def burn(self, amount: int) -> None:
        self.fuel_left -= amount
        if self.fuel_left < 0:
            self.fuel_left = 0
            raise over_limit(
                "fuel",
                f"the program used its {self.limits.fuel} units of fuel",
                code="timeout",
                hint="do less work, or work on a smaller part of the data",
            )

    def spend(self, amount: int) -> None:
        """Charge work in elements touched; reads the clock when much of it was done at once."""
        cell = self.cell
        cell[0] -= amount
        if cell[0] < 0:
            self.refill()

    def allocate(self, amount_bytes: int) -> None:
        self.alloc_left -= amount_bytes
        if self.alloc_left < 0:
            self.alloc_left = 0
            raise over_limit(
                "alloc_bytes",
                f"the program built more than {self.limits.alloc_bytes} bytes of values",
            )

    def check_clock(self) -> None:
        if time.monotonic() > self.deadline:
            seconds = getattr(self.limits, self.deadline_name)
            raise over_limit(
                self.deadline_name, f"the program ran longer than {seconds:g} s", code="timeout"
            )

    @contextmanager
    def sorting(self) -> Iterator[None]:
        """A sort that calls back: bounded nesting, since each level takes much of the C stack."""
        self.sorts += 1
        try:
            if self.sorts > NESTED_SORTS:
                raise over_limit(
                    "depth", f"sorts are nested deeper than {NESTED_SORTS} (stack overflow)"
                )
            yield
        finally:
            self.sorts -= 1

    def loop_limit(self) -> NoReturn:
        raise over_limit(
            "loop_iterations",
            f"a loop went round more than {self.limits.loop_iterations} times",
            code="loop_limit_exceeded",
            hint="use reduce, map or for over a finite collection",
        )


class Unmetered(Meter):
    """Stands in outside a run: encoding and comparing values there is charged to nobody."""

    def refill(self) -> None:
        self.cell[0] = CHUNK

    def burn(self, amount: int) -> None:
        return None

    def allocate(self, amount_bytes: int) -> None:
        self.alloc_left = self.limits.alloc_bytes


ACTIVE: ContextVar[Meter] = ContextVar("meter", default=Unmetered(Limits()))  # noqa: B039  it charges nothing, so it may be shared


def spend(amount: int) -> None:
    ACTIVE.get().spend(amount)


def grow(items: int) -> None:
    """Charge a collection of so many items: the work and the memory."""
    meter = ACTIVE.get()
    cell = meter.cell
    cell[0] -= items
    if cell[0] < 0:
        meter.refill()
    meter.alloc_left -= 16 + items * WORD_BYTES
    if meter.alloc_left < 0:
        meter.allocate(0)


def copied(items: int, bytes_each: int = WORD_BYTES) -> None:
    """Charge a copy of a collection: the memory in full, the work at the speed of a block copy."""
    meter = ACTIVE.get()
    meter.spend(1 + (items >> 6))
    meter.allocate(16 + items * bytes_each)


def refuse_size(limit: str, what: str) -> NoReturn:
    """The refusal for a size: names the limit and its number."""
    number = getattr(ACTIVE.get().limits, limit)
    raise over_limit(limit, f"{what} exceeds the limit of {number} ({limit})")


def text_size(chars: int) -> None:
    """Charge and bound a string about to be made."""
    meter = ACTIVE.get()
    if chars > meter.limits.string_chars:
        refuse_size("string_chars", f"a string of {chars} characters")
    meter.allocate(chars)
    meter.spend(chars >> 6)
