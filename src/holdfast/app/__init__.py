"""Wires everything: the one place that sees every layer, for command line, tests and simulator.

`build` makes an `App` from settings; what is nondeterministic or remote can be given instead of
made. Parts that cost time to load or to probe are made on first use.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.agent.journal import Probe
from holdfast.config import Settings, dotenv
from holdfast.domain.ports import (
    Clock,
    Embedder,
    Entropy,
    Model,
    Progress,
    Sandbox,
    Sink,
    Tool,
    Usage,
)
from holdfast.engine import Engine
from holdfast.errors import Refused
from holdfast.worker.workshop import Workshop

if TYPE_CHECKING:
    from holdfast.adapters.embeddings import VectorFile
    from holdfast.adapters.models.prices import Price
    from holdfast.app.desk import Desk

HOME_NAME = ".holdfast"
STORE_NAME = "holdfast.db"


class Silent:
    """A sink for nobody."""

    def show(self, progress: Progress) -> None:
        """Progress is never evidence; dropping it loses nothing."""


@dataclass
class App:
    """One process's wiring. Close it once; see `build`."""

    settings: Settings
    home: Path
    environ: Mapping[str, str]
    clock: Clock
    entropy: Entropy
    sink: Sink
    probe: Probe
    given_models: Mapping[str, Model]
    given_tools: Mapping[str, Tool]
    given_sandbox: Sandbox | None
    given_embedder: Embedder | None = None
    _models: dict[str, Model] = field(default_factory=dict)
    _prices: dict[str, Price | None] = field(default_factory=dict)

    @cached_property
    def engine(self) -> Engine:
        return Engine(self.home / STORE_NAME, self.clock, wait_s=self.settings.store_wait_s)

    @cached_property
    def worker(self) -> str:
        """This process's name among the workers of the store."""
        return f"w-{self.entropy.token()[:12]}"

    @cached_property
    def redact(self) -> Callable[[str], str]:
        """The one redactor for content: known key formats and configured credentials only."""
        from holdfast.trace.redact import Redactor, from_environment

        return Redactor(from_environment(self.environ), guess=False).text

    @cached_property
    def sandbox(self) -> Sandbox:
        from holdfast.adapters.sandbox import open_sandbox

        if self.given_sandbox is not None:
            return self.given_sandbox
        return open_sandbox(
            redact=self.redact,
            hidden=[self.home],
            output_bytes_max=self.settings.output_bytes_max,
            environ=self.environ,
        )

    @cached_property
    def tools(self) -> Mapping[str, Tool]:
        """The built-in tools and the ones given to `build`."""
        from holdfast.adapters.tools import builtin_tools

        return {**builtin_tools(redact=self.redact, settings=self.settings), **self.given_tools}

    @property
    def prices_file(self) -> Path:
        return self.home / "prices.toml"

    def model(self, name: str) -> Model:
        """The model of a `provider:model`, opened once a process. Raises `Refused`."""
        if name in self.given_models:
            return self.given_models[name]
        if name not in self._models:
            from holdfast.adapters.models import REPLAY, resolve

            if name.partition(":")[0] == REPLAY:
                return self._replayed(name)
            self._models[name] = resolve(
                name,
                environ=self.environ,
                redact=self.redact,
                timeout_s=self.settings.model_s,
                prices_file=self.prices_file,
            )
        return self._models[name]

    def _replayed(self, name: str) -> Model:
        """`replay:ATTEMPT`: the recorded replies of an attempt of this store, played again."""
        from holdfast.adapters.models.replaying import ReplayingModel
        from holdfast.agent.loop import Reply
        from holdfast.engine.attempts import attempt_record, parse_attempt
        from holdfast.engine.rows import decode

        session = name.partition(":")[2]
        parse_attempt(session)
        if not (self.home / STORE_NAME).exists():
            raise Refused(
                f"there is no store at {self.home} to replay {session} from",
                hint="run something first, or name another place with HOLDFAST_HOME",
            )
        record = self.engine.read(attempt_record, session)
        replies = [
            decode(step.result, Reply).reply
            for step in record.steps
            if step.kind == "model" and step.result is not None
        ]
        if not replies:
            raise Refused(f"attempt {session} recorded no model reply", hint="holdfast attempt")
        return ReplayingModel(name, replies)

    def cost(self, model: str, usage: Usage) -> int | None:
        """What a call of this size costs at most, in 10⁻⁹ US dollars; None when unknown."""
        from holdfast.adapters.models.prices import cost_nusd, price

        if model not in self._prices:  # read once: it is asked for before every call
            self._prices[model] = price(model, self.prices_file)
        found = self._prices[model]
        return None if found is None else cost_nusd(found, usage)

    def near(self, query: str, texts: Iterable[str]) -> Mapping[str, float]:
        """The similarity of texts to a query, by the configured embedder. Raises `Unavailable`."""
        return self._vectors.similarities(query, texts)

    @cached_property
    def _vectors(self) -> VectorFile:
        from holdfast.adapters.embeddings import VectorFile, open_embedder

        embedder = self.given_embedder or open_embedder(self.settings.embeddings)
        return VectorFile(self.home / "vectors", embedder)

    def workshop(self) -> Workshop:
        from holdfast.adapters.tools import check_arguments

        return Workshop(
            engine=self.engine,
            clock=self.clock,
            settings=self.settings,
            home=self.home,
            worker=self.worker,
            sandbox=self.sandbox,
            tools=self.tools,
            problems=check_arguments,
            model=self.model,
            cost=self.cost,
            redact=self.redact,
            sink=self.sink,
            probe=self.probe,
            near=self.near if self.given_embedder or self.settings.embeddings else None,
        )

    def beside(self, settings: Settings) -> App:
        """The same process with other settings and models of its own; never close its store."""
        made = replace(self, settings=settings, _models={})
        for shared in ("engine", "worker", "redact", "sandbox"):
            made.__dict__[shared] = getattr(self, shared)
        return made

    @cached_property
    def desk(self) -> Desk:
        """Links, contexts and indexes by the names that programs and routes use."""
        from holdfast.app.desk import Desk

        return Desk(self)

    async def close_models(self) -> None:
        """Close what `model` opened: a model lives within one event loop. Idempotent."""
        while self._models:
            _, model = self._models.popitem()
            await model.aclose()

    def close(self) -> None:
        """Close the store. Idempotent."""
        if "engine" in self.__dict__:
            self.engine.close()
            del self.__dict__["engine"]


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
