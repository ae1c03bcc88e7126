"""What an attempt is run with: the parts of one process, and the places of its files.

What is nondeterministic or remote can be given instead of made. Parts that cost time to load or to
probe are made on first use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Self

from holdfast.adapters.embeddings import VectorFile, open_embedder
from holdfast.adapters.models import REPLAY, resolve
from holdfast.adapters.models.prices import Price, cost_nusd, price
from holdfast.adapters.models.replaying import ReplayingModel
from holdfast.adapters.repository import Repository
from holdfast.adapters.sandbox import Probe as Wall
from holdfast.adapters.sandbox import begin_probe, open_sandbox
from holdfast.adapters.tools import builtin_tools, check_arguments
from holdfast.adapters.workspace import TaskWorkspace
from holdfast.agent.journal import Probe
from holdfast.agent.loop import Reply
from holdfast.config import Settings
from holdfast.domain.model import Claim
from holdfast.domain.ports import (
    Clock,
    Embedder,
    Entropy,
    Model,
    Sandbox,
    Sink,
    Tool,
    Usage,
)
from holdfast.engine import Engine
from holdfast.engine.outlook import previous_end
from holdfast.engine.rows import decode
from holdfast.errors import Refused
from holdfast.trace.redact import Redactor, from_environment
from holdfast.worker.liveness import SILENT

STORE_NAME = "holdfast.db"
# A query and texts → the similarity of each text, -1 to 1; raises `Unavailable`.
Near = Callable[[str, Iterable[str]], Mapping[str, float]]


@dataclass
class Workshop:
    """One process's parts. Close it once; see `holdfast.app.build`."""

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
    problems = staticmethod(check_arguments)
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
        return Redactor(from_environment(self.environ), guess=False).text

    @cached_property
    def wall(self) -> Callable[[], Wall]:
        """Of this machine: its probe begins here, while other things are done, and ends there."""
        return begin_probe()

    @cached_property
    def sandbox(self) -> Sandbox:
        if self.given_sandbox is not None:
            return self.given_sandbox
        return open_sandbox(
            redact=self.redact,
            hidden=[self.home],
            output_bytes_max=self.settings.output_bytes_max,
            environ=self.environ,
            probed=self.wall(),
        )

    @cached_property
    def tools(self) -> Mapping[str, Tool]:
        """The built-in tools and the ones given to `build`."""
        return {**builtin_tools(redact=self.redact, settings=self.settings), **self.given_tools}

    @property
    def prices_file(self) -> Path:
        return self.home / "prices.toml"

    def model(self, name: str) -> Model:
        """The model of a `provider:model`, opened once a process. Raises `Refused`."""
        if name in self.given_models:
            return self.given_models[name]
        if name not in self._models:
            if name.partition(":")[0] == REPLAY:
                return self._replayed(name)
            self._models[name] = resolve(
                name,
                environ=self.environ,
                redact=self.redact,
                timeout_s=self.settings.model_s,
                prices_file=self.prices_file,
                stream=self.settings.stream,
            )
        return self._models[name]

    def _replayed(self, name: str) -> Model:
        """`replay:ATTEMPT`: the recorded replies of an attempt of this store, played again."""
        from holdfast.engine.attempts import attempt_record, parse_attempt  # noqa: PLC0415  rarely

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
        if model not in self._prices:  # read once: it is asked for before every call
            self._prices[model] = price(model, self.prices_file)
        found = self._prices[model]
        return None if found is None else cost_nusd(found, usage)

    @property
    def near(self) -> Near | None:
        """Compares texts by meaning, where an embedder is configured. Raises `Unavailable`."""
        if self.given_embedder is None and not self.settings.embeddings:
            return None
        # Opened by the first question, whose asker says what is missing.
        return lambda query, texts: self._vectors.similarities(query, texts)

    @cached_property
    def _vectors(self) -> VectorFile:
        embedder = self.given_embedder or open_embedder(self.settings.embeddings)
        return VectorFile(self.home / "vectors", embedder)

    def repository(self, claim: Claim) -> Repository:
        """The repository of a goal: the user's own, or our private copy of a plain folder."""
        source = self.home / "source.git"
        return Repository.open(
            source if claim.repository == str(source) else Path(claim.repository)
        )

    def workspace(self, claim: Claim, repository: Repository) -> TaskWorkspace:
        """The workspace of an attempt: the old directory if its owner is gone, else a fresh one."""
        folder = self.home / "tasks" / str(claim.fence.task)
        owner, reason = self.engine.read(previous_end, claim.fence.task, before=claim.fence.attempt)
        known = sorted(int(path.name.partition("-")[2]) for path in folder.glob("work-*[0-9]"))
        fresh = not known or (reason == SILENT and known[-1] <= owner)
        number = claim.fence.attempt if fresh else known[-1]
        workspace = TaskWorkspace.create(
            folder / "git",
            folder / f"work-{number}",
            repository,
            base=claim.base_commit or None,
            sandbox=self.sandbox,
            redact=self.redact,
            task=str(claim.fence.task),
            take=claim.fence.take,
        )
        if claim.spec.compensates and (undone := self.git_dir(claim.spec.compensates)).is_dir():
            workspace.borrow(undone)
        return workspace

    def git_dir(self, task: int) -> Path:
        """A task's private git directory; it may have been removed since."""
        return self.home / "tasks" / str(task) / "git"

    def beside(self, settings: Settings) -> Self:
        """The same process with other settings and models of its own; never close its store."""
        made = replace(self, settings=settings, _models={})
        for shared in ("engine", "worker", "redact", "sandbox"):
            made.__dict__[shared] = getattr(self, shared)
        return made

    async def close_models(self) -> None:
        """Close what `model` opened: a model lives within one event loop. Idempotent."""
        while self._models:
            _, model = self._models.popitem()
            await model.aclose()

    def close(self) -> None:
        """Close the store, and see the end of a probe that nobody asked for. Idempotent."""
        if "wall" in self.__dict__:
            self.wall()
        if "engine" in self.__dict__:
            self.engine.close()
            del self.__dict__["engine"]
