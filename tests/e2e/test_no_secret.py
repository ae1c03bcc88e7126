"""I9 against the whole of Holdfast: a secret planted at every door, then every byte is searched.

Each door has a secret of its own, so what leaks names its door; and without the redactor every one
of them must be found, else nothing was planted there. Searched are the files of the home that are
not the user's own trees (checkouts and private git directories), every value of the store, and all
that the commands print and export.
"""

import asyncio
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from e2e.support import (
    OURS,
    Driver,
    at_step,
    calls,
    make_repo,
    model_server,
    says,
    script,
    write_script,
)
from holdfast.app import App, build
from holdfast.app.goals import Wish, start, work
from holdfast.cli import main
from holdfast.config import load
from holdfast.domain.ports import Observation, ToolSpec, Workspace

CONFIGURED = "correct-horse-battery-staple"
DOORS = (
    *("goal", "title", "prompt", "file", "found", "name", "check", "diff", "reply", "thinking"),
    *("answer", "argument", "tool_name", "problem", "crash", "approval", "force", "pin"),
    *("pin_reason", "author", "index"),
)


def secret(door: str) -> str:
    """A token of a known format; put together so that no scanner minds this file."""
    return "gh" + "p_" + sha256(door.encode()).hexdigest()[:36]


HIDDEN = {door: secret(door)[4:].encode() for door in DOORS} | {"environment": CONFIGURED.encode()}
FILES = {
    "keys.txt": f"token={secret('file')}\npassword={CONFIGURED}\n",
    "src/app.py": f"KEY = '{secret('found')}'  # find me\n",
    f"src/{secret('name')}.py": "pass\n",
    "noisy.sh": f"echo {secret('check')}; echo {CONFIGURED} >&2\n",
    "half.py": f"left, right = '{secret('diff')[:20]}', '{secret('diff')[20:]}'\n"
    "open('made.txt', 'w').write(left + right)\n",
}
STORY = script(
    says("", status=503, body=json.dumps({"error": secret("problem")}), times=1)
    | calls(("read_file", {"path": "keys.txt"})),
    says(secret("reply"), thinking=secret("thinking"))
    | calls(("search_files", {"pattern": "find me"}), ("list_directory", {"path": "src"})),
    calls(("run_command", {"command": "sh noisy.sh; cat keys.txt"})),
    calls(("run_command", {"command": "python3 half.py; cp keys.txt copy.txt"})),
    calls(("write_file", {"path": "new.txt", "content": secret("argument")})),
    calls((secret("tool_name"), {"x": 1})),
    says(f"Done with {secret('answer')}."),
)
PLAN = f"""
[[tasks]]
key = "one"
title = "Title {secret("title")}"
prompt = "Prompt {secret("prompt")}"
checks = ["sh noisy.sh"]

[[tasks]]
key = "never"
kind = "shell"
prompt = "Fail."
command = "false"

[[tasks]]
key = "after"
prompt = "Wait."
requires = ["never"]
"""
SHOWN = (
    *(("goal", "show", "1"), ("goal", "list"), ("attempt", "show", "1.1"), ("plan", "export", "1")),
    *(("attempt", "show", "1.2"), ("task", "show", "1"), ("task", "show", "3"), ("why", "1.2")),
    *(("events",), ("replay", "1.2"), ("why", "copy.txt:1"), ("context", "preview", "3")),
    *(("context", "history", "3"), ("context", "diff", "1.1", "3"), ("context", "index", "1")),
    *(("plan", "show", "1"), ("doctor",), ("why", "1.2", "--tokens", "2000"), ("backup",)),
    *(("trace", "export", "--format", name) for name in ("jsonl", "chrome", "otlp")),
    *(("trace", "events"), ("trace", "sessions"), ("trace", "context", "--tokens", "2000")),
)


class Boom:
    """A tool with a bug that tells too much."""

    spec = ToolSpec(
        name="boom",
        description="Breaks.",
        parameters={"type": "object", "properties": {}, "additionalProperties": False},
        effect="pure",
    )

    async def call(self, arguments: Mapping[str, Any], workspace: Workspace) -> Observation:
        raise ValueError(f"no such token: {secret('crash')}")


class Place:
    """A repository whose commands run here, so that a test can plant a bug in them."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.repo = folder, make_repo(folder / "repo", FILES)
        self._capsys = capsys
        self.printed: dict[str, bytes] = {}

    @property
    def homes(self) -> list[Path]:
        return [self.repo / ".holdfast", self.folder / "driver" / "home"]

    def do(self, *words: str, home: Path | None = None) -> int:
        place = ["--home", str(home)] if home else []
        code = main([*words, *place])
        out, err = self._capsys.readouterr()
        self.printed[" ".join(words)] = (out + err).encode()
        assert "Traceback" not in err
        return code

    def work(self) -> None:
        """A goal that succeeds beside one that fails, with all that people say to them."""
        plan = self.folder / "plan.toml"
        plan.write_text(PLAN, encoding="utf-8")
        chosen = ("--plan", str(plan), "--model", "ollama:scripted")
        assert self.do("run", f"Goal {secret('goal')}", *chosen) == 1
        self.do("task", "force", "3", "--ignore", "2", "--reason", secret("force"))
        said = ("--reason", secret("pin_reason"), "--author", secret("author"))
        self.do("context", "pin", "3", secret("pin"), *said)
        index = self.folder / "INDEX.md"
        index.write_text(f"# Index\n{secret('index')}\n", encoding="utf-8")
        self.do("context", "index", "1", "--write", str(index), "--version", "0")

    def crash(self) -> None:
        """A goal whose tool raises what nobody expected."""
        model = write_script(self.folder / "boom.json", script(calls(("boom", {})), says("no")))
        app = build(
            load(self.repo, environ={}, flags={"model": model}),
            home=self.homes[0],
            tools={"boom": Boom()},
        )
        wish = Wish(text="Break", repo=self.repo, model=model)
        result = work(app, asyncio.run(start(app, wish)), resumed=False)
        assert result["tasks"][0]["reason"] == "crashed", result
        app.close()

    def approve(self) -> None:
        """A goal that waits for a person, who says more than they should."""
        played = script(calls(("note", {"text": "sent"})), says("Done."))
        with Driver(self.folder / "driver", self.repo, played, effect="irreversible") as driver:
            driver.order(die=at_step("mid_effect", "t001/call:0"))
            assert driver.order(goal=1)["said"]["outcome"] == "waiting"
            self.do("approval", "list", home=driver.home)
            self.do("approval", "answer", "1", f"sent by {secret('approval')}", home=driver.home)

    def show(self) -> None:
        for words in SHOWN:
            self.do(*words)
            if words[0] != "trace":
                self.do(*words, "--json")

    def leaks(self) -> dict[str, set[str]]:
        """The doors whose secret is somewhere, and where."""
        found: dict[str, set[str]] = {}
        everything = [*self.printed.items()]
        for home in filter(Path.exists, self.homes):
            everything += [*kept(home), *values(home / "holdfast.db")]
        for place, content in everything:
            for door, hidden in HIDDEN.items():
                if hidden in content:
                    found.setdefault(door, set()).add(place)
        return found


def kept(home: Path) -> Iterator[tuple[str, bytes]]:
    """Every file of a home that is not of the user's own trees."""
    for folder, inner, names in os.walk(home):
        if Path(folder).parent.parent == home and Path(folder).parent.name == "tasks":
            inner[:] = [name for name in inner if name != "git" and not name.startswith("work-")]
        for name in names:
            yield name, Path(folder, name).read_bytes()


def values(path: Path) -> Iterator[tuple[str, bytes]]:
    """Every value of a store: in the file a long one is cut by pages."""
    with closing(sqlite3.connect(path)) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        for (table,) in tables.fetchall():
            cursor = connection.execute(f'SELECT * FROM "{table}"')
            columns = [column[0] for column in cursor.description]
            for row in cursor:
                for column, value in zip(columns, row, strict=True):
                    content = value if isinstance(value, bytes) else str(value).encode()
                    yield f"{table}.{column}", content


@pytest.fixture
def place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Place]:
    for name in [name for name in os.environ if name.startswith(OURS)]:
        monkeypatch.delenv(name)
    made = Place(tmp_path, capsys)
    with model_server(STORY, tmp_path / "model") as server:
        for name, value in server.environ().items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("DB_PASSWORD", CONFIGURED)
        monkeypatch.setenv("HOLDFAST_CONTEXT", "curated")
        monkeypatch.chdir(made.repo)
        yield made


def play(place: Place) -> dict[str, set[str]]:
    place.work()
    place.crash()
    place.approve()
    place.show()
    return place.leaks()


def test_no_secret_reaches_any_event_step_bundle_blob_export_or_log(place: Place) -> None:
    assert play(place) == {}
    assert b"[redacted:github_token]" in place.printed["events"], "it was there to be hidden"


def test_without_the_redactor_every_planted_secret_is_found(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(App, "redact", staticmethod(str))
    assert set(play(place)) == set(HIDDEN)


@pytest.mark.parametrize(
    "field", ["checks = ['{}']", "files = ['{}']", "kind='shell'\ncommand='{}'"]
)
def test_a_credential_in_a_plan_where_nothing_can_be_hidden_is_refused(
    place: Place, field: str
) -> None:
    plan = place.folder / "plan.toml"
    text = field.format(f"cat {secret('file')}")
    plan.write_text(f'[[tasks]]\nkey = "one"\nprompt = "x"\n{text}\n', encoding="utf-8")
    assert place.do("run", "x", "--plan", str(plan), "--model", "ollama:scripted") == 2
    assert b"holds a credential" in b"".join(place.printed.values())
    assert place.leaks() == {}
