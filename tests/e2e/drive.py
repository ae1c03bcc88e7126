"""A process that works on goals through the library and kills itself with SIGKILL where it is told.

`python drive.py WISH.json` imports everything once, then reads one order (a JSON line) after the
other from stdin; for each it forks a child, which does the work with nothing shared but memory that
was read before, and answers with how the child ended. The parent opens no store and starts no
thread, so a child is a fresh process in every way that matters, without paying for its imports.

A death is `{"at": "step", "boundary": B, "key": K}` (the journal's probe, or `mid_effect` inside a
tool, check or reply), `{"at": "boundary", "n": N}` (the n-th of those, whatever its step),
`{"at": "commit", "n": N, "side": "before" | "after"}` (the n-th transaction of the process),
`{"at": "statement", "n": N, "side": …}` (the n-th statement of its writer), `{"at": "process",
"n": N}` (before the n-th child process, git included, starts), `{"at": "file", "n": N}` (before the
n-th file or folder that it makes, opens for writing, moves or removes) or null. With `"signal":
"stop"` or `"interrupt"` it gets SIGSTOP or SIGINT instead of SIGKILL.

An order may name a mutant, a fault planted in Holdfast that the proofs must notice.

Each call of a tool and each command is first written to the ledger, a file outside the workspace.
"""

import asyncio
import dataclasses
import fcntl
import json
import os
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, ParamSpec, TypeVar

from holdfast.adapters import repository as _repository  # noqa: F401  loaded before the fork
from holdfast.adapters.models import ollama as _ollama  # noqa: F401
from holdfast.adapters.models import resolve
from holdfast.adapters.sandbox import open_sandbox
from holdfast.adapters.tools import builtin_tools
from holdfast.adapters.workspace import TaskWorkspace
from holdfast.agent.journal import Effectful, LiveJournal
from holdfast.agent.loop import encode
from holdfast.app import STORE_NAME, App, build
from holdfast.app.goals import Wish, make_home, start, work
from holdfast.app.undo import undo
from holdfast.config import load
from holdfast.domain.model import Policy
from holdfast.domain.ports import (
    CommandResult,
    Model,
    ModelReply,
    ModelRequest,
    Observation,
    Sandbox,
    Tool,
    ToolSpec,
    Wall,
    Workspace,
)
from holdfast.engine import Engine
from holdfast.errors import HoldfastError

P = ParamSpec("P")
R = TypeVar("R")


CHANGES = frozenset(
    f"os.{name}"
    for name in ("rename", "remove", "mkdir", "rmdir", "link", "symlink", "chmod", "truncate")
)
SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP, "interrupt": signal.SIGINT}


class Death:
    """Where this process ends. Every place that could be one reports here."""

    def __init__(self, order: Mapping[str, Any] | None, home: Path) -> None:
        self._order, self._home = dict(order or {}), home
        self._seen: Counter[str] = Counter()

    def step(self, boundary: str, key: str) -> None:
        self._reach("boundary")
        if (self._order.get("boundary"), self._order.get("key")) == (boundary, key):
            self._die()

    def commit(self, side: str) -> None:
        self._reach("commit", side)

    def statement(self, side: str) -> None:
        self._reach("statement", side)

    def audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "subprocess.Popen":
            self._reach("process")
        elif event in CHANGES or (event == "open" and writes(*arguments[1:3])):
            self._reach("file")

    def _reach(self, at: str, side: str = "") -> None:
        """One more place of a kind: the one where it ends, perhaps."""
        if (self._order.get("at"), self._order.get("side", "")) == (at, side):
            self._seen[at] += 1
            if self._seen[at] == self._order["n"]:
                self._die()

    def _die(self) -> None:
        number = SIGNALS[self._order.get("signal", "kill")]
        self._order = {}  # a process that goes on gets it only once
        if number == signal.SIGSTOP:
            wait_for_commits(self._home)
        os.kill(os.getpid(), number)


def writes(mode: Any, flags: Any) -> bool:
    """Whether an `open` may change a file."""
    if isinstance(mode, str):
        return any(letter in mode for letter in "wax+")
    return bool(isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR))


def wait_for_commits(home: Path) -> None:
    """Pass the turnstile once: whoever is stopped inside it would stop everyone else too."""
    with (home / "next.lock").open() as first, (home / "write.lock").open() as second:
        fcntl.flock(first, fcntl.LOCK_EX)
        fcntl.flock(second, fcntl.LOCK_EX)


class Ledger:
    """One line for each call of a tool and each command, written before it happens."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, **what: Any) -> None:
        line = json.dumps(what, sort_keys=True) + "\n"
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(descriptor, line.encode())
        os.close(descriptor)


class MortalEngine(Engine):
    """The engine, dying before or after its n-th transaction."""

    death: Death

    def call(self, use_case: Callable[..., R], *args: Any, **kwargs: Any) -> R:  # type: ignore[override]
        self.death.commit("before")
        result = super().call(use_case, *args, **kwargs)
        self.death.commit("after")
        return result

    async def acall(self, use_case: Callable[..., R], *args: Any, **kwargs: Any) -> R:  # type: ignore[override]
        self.death.commit("before")
        result = await super().acall(use_case, *args, **kwargs)
        self.death.commit("after")
        return result


class MortalConnection:
    """The writer's connection, dying before or after its n-th statement."""

    def __init__(self, inner: Any, death: Death) -> None:
        self._inner, self._death = inner, death

    def execute(self, *words: Any) -> Any:
        self._death.statement("before")
        cursor = self._inner.execute(*words)
        self._death.statement("after")
        return cursor

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class CountedTool:
    """A tool that is written to the ledger, then may die, then works."""

    def __init__(self, inner: Tool, ledger: Ledger, death: Death, keys: Mapping[str, str]) -> None:
        self._inner, self._ledger, self._death, self._keys = inner, ledger, death, keys

    @property
    def spec(self) -> ToolSpec:
        return self._inner.spec

    async def call(self, arguments: Mapping[str, Any], workspace: Workspace) -> Observation:
        key = self._keys.get(named(self.spec.name, arguments), "")
        task = workspace.root.parent.name
        self._ledger.write(tool=self.spec.name, key=key, arguments=arguments, task=task)
        self._death.step("mid_effect", key)
        return await self._inner.call(arguments, workspace)


class Note:
    """A tool whose effect is outside: it appends its text to a file. `effect` is as declared."""

    def __init__(self, path: Path, effect: Any) -> None:
        self._path = path
        self.spec = ToolSpec(
            name="note",
            description="Note a text.",
            parameters={
                "type": "object",
                "properties": {"text": {"type": "string"}},
                "required": ["text"],
                "additionalProperties": False,
            },
            effect=effect,
        )

    async def call(self, arguments: Mapping[str, Any], workspace: Workspace) -> Observation:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(arguments["text"] + "\n")
        return Observation(tool="note", success=True, output=f"noted {arguments['text']}")


class CountedSandbox:
    """The real wall; checks come here directly, so they are counted here."""

    def __init__(self, inner: Sandbox, ledger: Ledger, death: Death) -> None:
        self._inner, self._ledger, self._death = inner, ledger, death
        self._checks: list[str] = []

    def expect(self, checks: Sequence[str]) -> None:
        self._checks = list(checks)

    @property
    def wall(self) -> Wall:
        return self._inner.wall

    def describe(self) -> Mapping[str, Any]:
        return self._inner.describe()

    async def run(self, command: Sequence[str] | str, **more: Any) -> CommandResult:
        if command not in self._checks:
            return await self._inner.run(command, **more)
        key = f"v01/check:{self._checks.index(command)}"
        self._ledger.write(tool="check", key=key)
        done = await self._inner.run(command, **more)
        self._death.step("mid_effect", key)
        return done


class MortalModel:
    """The real adapter over HTTP, dying between the server's answer and anyone hearing of it.

    Opened anew after `aclose`, since a connection belongs to the event loop that opened it.
    """

    def __init__(self, make: Callable[[], Model], death: Death) -> None:
        self._make, self._death = make, death
        self._opened: Model | None = None

    @property
    def _inner(self) -> Model:
        self._opened = self._opened or self._make()
        return self._opened

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def context_tokens(self) -> int | None:
        return self._inner.context_tokens

    async def probe(self) -> None:
        await self._inner.probe()

    async def complete(self, request: ModelRequest) -> ModelReply:
        reply = await self._inner.complete(request)
        turn = 1 + sum(message.role == "assistant" for message in request.messages)
        self._death.step("mid_effect", f"t{turn:03}/model")
        return reply

    async def aclose(self) -> None:
        if self._opened is not None:
            await self._opened.aclose()
            self._opened = None


def named(tool: str, arguments: Mapping[str, Any]) -> str:
    return f"{tool} {encode(arguments).decode()}"


def keys_of(script: Mapping[str, Any]) -> dict[str, str]:
    """The step of each call that a script makes; calls are unique in the scripts of these tests."""
    return {
        named(call["name"], call["arguments"]): f"t{turn:03}/call:{index}"
        for rule in script["rules"]
        for turn, reply in enumerate(rule["replies"], start=1)
        for index, call in enumerate(reply.get("calls", ()))
    }


def same(text: str) -> str:
    return text


def amnesia() -> None:
    """The mutant that performs recorded steps again."""
    remembered = LiveJournal.step

    async def step(self: LiveJournal, effectful: Effectful) -> bytes:
        if self.recorded(effectful.key) is not None:
            await effectful.perform()
        return await remembered(self, effectful)

    LiveJournal.step = step  # type: ignore[method-assign]


def litter() -> None:
    """The mutant that leaves what a killed step wrote."""
    TaskWorkspace.restore = lambda self, tree: None  # type: ignore[method-assign]


MUTANTS: Mapping[str, Callable[[], None]] = {"amnesia": amnesia, "litter": litter}


def child(wish: Mapping[str, Any], order: Mapping[str, Any]) -> dict[str, Any]:
    """One process's whole life: make or resume the goal, or undo it, unless it dies before."""
    death, ledger = Death(order.get("die"), Path(wish["home"])), Ledger(Path(wish["ledger"]))
    if "mutant" in order:
        MUTANTS[order["mutant"]]()
    home, repo = Path(wish["home"]), Path(wish["repo"])
    settings = load(repo, flags={"model": wish["model"], **wish.get("settings", {})}, environ={})
    keys = keys_of(json.loads(Path(wish["script"]).read_text()))
    tools: dict[str, Tool] = {
        "note": Note(Path(wish["notes"]), wish.get("effect", "idempotent")),
        **builtin_tools(redact=same),
    }
    sandbox = CountedSandbox(
        open_sandbox(redact=same, hidden=[home], environ=os.environ), ledger, death
    )
    sandbox.expect(wish.get("checks", ()))
    model = MortalModel(
        lambda: resolve(wish["model"], environ=wish["environ"], redact=same, timeout_s=30.0), death
    )
    app = build(
        settings,
        home=home,
        environ={},
        probe=death.step,
        models={} if "," in wish["model"] else {wish["model"]: model},  # a chain is the app's own
        tools={name: CountedTool(tool, ledger, death, keys) for name, tool in tools.items()},
        sandbox=sandbox,
    )
    make_home(home)
    engine = MortalEngine(home / STORE_NAME, app.clock)
    engine.death = death
    writer: Any = engine._writer
    writer._connection = MortalConnection(writer._connection, death)
    app.__dict__["engine"] = engine
    sys.addaudithook(death.audit)
    if order.get("verb") == "undo":
        return undo(app, order["goal"])
    goal = order.get("goal") or asyncio.run(begin(app, wish, model))
    if order.get("verb") == "start":
        return {"goal": goal}
    return work(app, goal, resumed="goal" in order)


async def begin(app: App, wish: Mapping[str, Any], model: MortalModel) -> int:
    try:
        return await start(
            app,
            Wish(
                text=wish["goal"],
                repo=Path(wish["repo"]),
                model=wish["model"],
                checks=wish.get("checks", ()),
                plan=Path(wish["plan"]) if wish.get("plan") else None,
                policy=dataclasses.replace(Policy(), **wish.get("policy", {})),
            ),
        )
    finally:
        await model.aclose()


def main() -> None:
    first = json.loads(Path(sys.argv[1]).read_text())
    for line in sys.stdin:
        order = json.loads(line)
        wish = {**first, **order.get("place", {})}
        answer = Path(wish["answer"])
        answer.unlink(missing_ok=True)
        process = os.fork()
        if process == 0:
            live(wish, order, answer)
        sys.stdout.write(json.dumps({"pid": process}) + "\n")
        sys.stdout.flush()
        _, status = os.waitpid(process, 0)
        died = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        said = json.loads(answer.read_text()) if answer.exists() else {}
        sys.stdout.write(json.dumps({"signal": died, "said": said}) + "\n")
        sys.stdout.flush()


def live(wish: Mapping[str, Any], order: Mapping[str, Any], answer: Path) -> NoReturn:
    """The child's life and how it is told; a bug is told whole on stderr."""
    code = 70
    try:
        said = child(wish, order)
        code = 0
    except HoldfastError as error:
        said, code = {"error": error.code, "message": str(error)}, 2
    except KeyboardInterrupt:
        said, code = {"error": "interrupted"}, 130
    except BaseException:
        traceback.print_exc()
        said = {"bug": traceback.format_exc()}
    answer.write_text(json.dumps(said))
    os._exit(code)


if __name__ == "__main__":
    main()
