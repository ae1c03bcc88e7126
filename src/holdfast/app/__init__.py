"""Wires everything, for command line, tests and simulator alike.

`build` makes an `App` from settings: the parts of a process (`Workshop`) with the desk that people
and programs work at.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.agent.journal import Probe
from holdfast.config import Settings, dotenv
from holdfast.domain.ports import Clock, Embedder, Entropy, Model, Progress, Sandbox, Sink, Tool
from holdfast.errors import Refused
from holdfast.worker.workshop import STORE_NAME, Workshop

if TYPE_CHECKING:
    from holdfast.app.desk import Desk

__all__ = ["HOME_NAME", "STORE_NAME", "App", "Silent", "build"]

HOME_NAME = ".holdfast"


class Silent:
    """A sink for nobody."""

    def show(self, progress: Progress) -> None:
        """Progress is never evidence; dropping it loses nothing."""


class App(Workshop):
    """One process's wiring. Close it once; see `build`."""

    @cached_property
    def desk(self) -> Desk:
        """Links, contexts and indexes by the names that programs and routes use."""
        from holdfast.app.desk import Desk

        return Desk(self)


def build(
    settings: Settings,
    *,
    home: Path,
    environ: Mapping[str, str] | None = None,
    clock: Clock | None = None,
    entropy: Entropy | None = None,
    sink: Sink | None = None,
    probe: Probe | None = None,
    models: Mapping[str, Model] | None = None,
    tools: Mapping[str, Tool] | None = None,
    sandbox: Sandbox | None = None,
    embedder: Embedder | None = None,
) -> App:
    """Wire a process. `home` holds store and workspaces; it must be writable.

    A `.env` beside `home` is loaded below the real environment.
    """
    from holdfast.adapters.clock import SystemClock, SystemEntropy

    if home.exists() and not home.is_dir():
        raise Refused(f"{home} is a file", hint="set HOLDFAST_HOME to a directory")
    real = dict(os.environ if environ is None else environ)
    return App(
        settings=settings,
        home=home,
        environ={**dotenv(home.parent / ".env"), **real},
        clock=clock or SystemClock(),
        entropy=entropy or SystemEntropy(),
        sink=sink or Silent(),
        probe=probe or (lambda boundary, key: None),
        given_models=models or {},
        given_tools=tools or {},
        given_sandbox=sandbox,
        given_embedder=embedder,
    )
