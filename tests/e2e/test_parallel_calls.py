"""Several calls in one reply: at once when all only read, in order else; the record never shows it.

The last call is done first on purpose, so a journal or a conversation that followed the order of
completion would differ from these expectations and from its own replay.
"""

import asyncio
import json
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import pytest

from e2e.support import Cli, Driver, at_step, broken_invariants, calls, make_repo, says, script
from holdfast.adapters.models.scripted import ScriptedModel
from holdfast.app import build
from holdfast.app.goals import Wish, start, work
from holdfast.config import load
from holdfast.domain.ports import ModelReply, ModelRequest, Observation, ToolSpec, Workspace

MEET_S = 20.0
READS = calls(
    ("read_file", {"path": "a.txt"}),
    ("read_file", {"path": "b.txt"}),
    ("list_directory", {"path": "."}),
)
WRITE = calls(("write_file", {"path": "c.txt", "content": "c\n"}))
DONE = says("It is done.")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo", {"a.txt": "a\n", "b.txt": "b\n"})


class Backwards:
    """A tool whose calls wait for the one after them: only calls made at once ever end."""

    def __init__(self, effect: Literal["pure", "idempotent"]) -> None:
        self.ended: list[int] = []
        self._events: dict[int, asyncio.Event] = {}
        self.spec = ToolSpec(
            name="backwards",
            description="Wait for the next one.",
            parameters={
                "type": "object",
                "properties": {"at": {"type": "integer"}, "last": {"type": "boolean"}},
                "required": ["at", "last"],
            },
            effect=effect,
        )

    async def call(self, arguments: Mapping[str, Any], workspace: Workspace) -> Observation:
        at = arguments["at"]
        if not arguments["last"] and self.spec.effect == "pure":
            async with asyncio.timeout(MEET_S):
                await self._event(at + 1).wait()
        self.ended.append(at)
        self._event(at).set()
        return Observation(tool="backwards", success=True, output=f"this is {at}")

    def _event(self, at: int) -> asyncio.Event:
        return self._events.setdefault(at, asyncio.Event())


class Listening(ScriptedModel):
    """Remembers what it was asked."""

    heard: list[ModelRequest]

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.heard = [*getattr(self, "heard", []), request]
        return await super().complete(request)


@pytest.mark.parametrize("effect", ["pure", "idempotent"])
def test_calls_run_at_once_when_all_are_pure_and_are_told_in_their_order(
    repo: Path, tmp_path: Path, effect: Literal["pure", "idempotent"]
) -> None:
    path, home = tmp_path / "script.json", tmp_path / "home"
    backwards = [("backwards", {"at": at, "last": at == 3}) for at in range(4)]
    path.write_text(json.dumps(script(calls(*backwards), DONE)), encoding="utf-8")
    model = Listening(path, redact=lambda text: text, timeout_s=30, price=None)
    tool, name = Backwards(effect), f"scripted:{path}"
    settings = load(repo, flags={"model": name}, environ={})
    app = build(settings, home=home, environ={}, models={name: model}, tools={"backwards": tool})
    try:
        goal = asyncio.run(start(app, Wish(text="Do the work", repo=repo, model=name)))
        assert work(app, goal, resumed=False)["state"] == "complete"
    finally:
        app.close()
    assert tool.ended == ([3, 2, 1, 0] if effect == "pure" else [0, 1, 2, 3])
    told = [message.content for message in model.heard[1].messages if message.role == "tool"]
    assert told == [f"this is {at}" for at in range(4)]
    cli = Cli(repo, {"HOLDFAST_HOME": str(home)})
    assert broken_invariants(cli.store) == []
    places = {
        row["key"]: row["position"] for row in cli.store.rows("SELECT key, position FROM steps")
    }
    in_order = sorted(places, key=lambda key: places[key])
    assert [key for key in in_order if "call" in key] == [f"t001/call:{at}" for at in range(4)]
    replayed = cli("replay", "1.1", "--json")
    assert replayed.code == 0, replayed.out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("boundary", "key"),
    [
        ("after_commit", "t001/model"),
        ("mid_effect", "t001/call:0"),
        ("mid_effect", "t001/call:1"),
        ("mid_effect", "t001/call:2"),
        ("mid_effect", "t002/model"),
        ("after_commit", "t002/model"),
        ("mid_effect", "t002/call:0"),
    ],
)
def test_a_kill_among_parallel_calls_changes_no_byte_of_the_journal(
    repo: Path, tmp_path: Path, boundary: str, key: str
) -> None:
    played = script(READS, WRITE, DONE)

    def journal(folder: str, *deaths: dict[str, Any]) -> list[tuple[Any, ...]]:
        with Driver(tmp_path / folder, repo, played) as driver:
            for die in deaths:
                assert driver.order(die=die)["signal"] == signal.SIGKILL
                assert broken_invariants(driver.store) == []
            said = driver.order(goal=1)["said"] if deaths else driver.order(die=None)["said"]
            assert said["state"] == "complete"
            attempt = said["tasks"][0]["attempt"]
            replayed = Cli(repo, {"HOLDFAST_HOME": str(driver.home)})("replay", attempt, "--json")
            assert replayed.code == 0, replayed.out
            return [  # a model step names seed and script, which differ from run to run
                (row["key"], row["position"], row["state"])
                + ((row["request"], row["result"]) if row["kind"] == "tool" else ())
                for row in driver.store.steps().values()
            ]

    assert journal("killed", at_step(boundary, key)) == journal("whole")
