"""What the proofs by fire share: a repository, the real command line, a model server, the store.

Owns real parts only: processes, git, HTTP on the loopback, SQLite read from outside. Nothing here
imports the engine to ask it how things stand; a proof reads what is on disk.
"""

import json
import os
import select
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

WAIT_S = 60.0
IDENTITY = ("-c", "user.name=Person", "-c", "user.email=person@localhost")
OURS = ("HOLDFAST_", "OPENAI_", "OLLAMA_", "ANTHROPIC_", "GIT_")


def clean_environ() -> dict[str, str]:
    """This process's environment without anything that steers Holdfast, a provider or git."""
    return {key: value for key, value in os.environ.items() if not key.startswith(OURS)}


def unmeasured_environ() -> dict[str, str]:
    """The same for processes that die by SIGKILL: it would take what coverage counted with it."""
    return {key: value for key, value in clean_environ().items() if "COVERAGE" not in key}


def git(repo: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", *IDENTITY, *words],
        cwd=repo,
        env={**clean_environ(), "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"git {' '.join(words)}: {done.stderr}"
    return done.stdout.rstrip("\n")


def make_repo(folder: Path, files: Mapping[str, str]) -> Path:
    """A repository on branch main with one commit of `files`."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first")
    return folder


def tree(repo: Path, rev: str) -> str:
    return git(repo, "rev-parse", f"{rev}^{{tree}}")


@dataclass(frozen=True)
class Done:
    """How a command line ended."""

    code: int
    out: str
    err: str
    took_s: float = 0.0

    @property
    def objects(self) -> list[dict[str, Any]]:
        """stdout as JSON lines: every line must be one object."""
        found = [json.loads(line) for line in self.out.splitlines()]
        assert all(isinstance(each, dict) for each in found)
        return found

    @property
    def result(self) -> dict[str, Any]:
        return self.objects[-1]


@dataclass
class Cli:
    """The real command line in one repository."""

    repo: Path
    environ: Mapping[str, str] = field(default_factory=dict)
    prefix: Sequence[str] = ()

    @property
    def home(self) -> Path:
        return Path(self.environ.get("HOLDFAST_HOME", self.repo / ".holdfast"))

    @property
    def store(self) -> "Store":
        return Store(self.home / "holdfast.db")

    def words(self, *words: str) -> list[str]:
        # As the installed script: nothing of the current folder is imported.
        return [*self.prefix, sys.executable, "-P", "-m", "holdfast", *words]

    def __call__(self, *words: str, environ: Mapping[str, str] | None = None) -> Done:
        started = time.monotonic()
        done = subprocess.run(
            self.words(*words),
            cwd=self.repo,
            env={**clean_environ(), **self.environ, **(environ or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            check=False,
        )
        took_s = time.monotonic() - started
        return Done(code=done.returncode, out=done.stdout, err=done.stderr, took_s=took_s)

    def start(self, *words: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            self.words(*words),
            cwd=self.repo,
            env={**clean_environ(), **self.environ},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


def ended(process: "subprocess.Popen[str]") -> Done:
    """Wait for a started command line."""
    out, err = process.communicate(timeout=WAIT_S)
    return Done(code=process.returncode, out=out, err=err)


def stopped(process: int) -> bool:
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def until(fact: Callable[[], Any], what: str, wait_s: float = WAIT_S) -> Any:
    """Poll for a fact; the poll's pause is no wait for time to pass but for the machine's sake."""
    deadline = time.monotonic() + wait_s
    while not (found := fact()):
        assert time.monotonic() < deadline, f"never happened: {what}"
        select.select([], [], [], 0.005)
    return found


# --- models ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ModelServer:
    """A scripted model server in a process of its own, with the log of what it was asked."""

    url: str
    log: Path

    def environ(self) -> dict[str, str]:
        return {
            "OLLAMA_HOST": self.url,
            "OPENAI_BASE_URL": f"{self.url}/v1",
            "OPENAI_API_KEY": "test-key",
            "ANTHROPIC_BASE_URL": self.url,
            "ANTHROPIC_API_KEY": "test-key",
        }

    def asked(self) -> list[dict[str, Any]]:
        if not self.log.exists():
            return []
        return [json.loads(line) for line in self.log.read_text().splitlines()]


@contextmanager
def model_server(script: Mapping[str, Any], folder: Path) -> Iterator[ModelServer]:
    folder.mkdir(parents=True, exist_ok=True)
    path, log = folder / "script.json", folder / "asked.jsonl"
    path.write_text(json.dumps(script), encoding="utf-8")
    line = [sys.executable, "-m", "holdfast.testing", "serve", str(path), "--log", str(log)]
    server = subprocess.Popen(line, env=clean_environ(), stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        yield ModelServer(url=json.loads(server.stdout.readline())["url"], log=log)
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(timeout=WAIT_S)
        assert server.stdout is not None
        server.stdout.close()


def says(text: str, **more: Any) -> dict[str, Any]:
    return {"text": text, **more}


def calls(*named: tuple[str, Mapping[str, Any]], **more: Any) -> dict[str, Any]:
    return {"calls": [{"name": name, "arguments": dict(given)} for name, given in named], **more}


def script(*replies: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {"rules": [{"replies": list(replies)}], **more}


def write_script(path: Path, value: Mapping[str, Any]) -> str:
    """A script on disk as the model's name; for runs that need no HTTP."""
    path.write_text(json.dumps(value), encoding="utf-8")
    return f"scripted:{path}"


# --- processes that die where they are told -------------------------------------------------------


class Driver:
    """`drive.py` with one wish: each order is a process of its own; see there for the deaths."""

    def __init__(self, folder: Path, repo: Path, script: Mapping[str, Any], **wish: Any) -> None:
        self.folder = folder
        self.move(folder, repo)
        path = folder / "played.json"
        path.write_text(json.dumps(script), encoding="utf-8")
        wish = {
            "script": str(path),
            "model": f"scripted:{path}",
            "environ": {},
            "goal": "Do the work",
            **wish,
        }
        order = folder / "wish.json"
        order.write_text(json.dumps(wish), encoding="utf-8")
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("drive.py")), str(order)],
            env=unmeasured_environ(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def move(self, folder: Path, repo: Path, *, answer: Path | None = None) -> None:
        """From now on work in another repository, with the store and the ledger of `folder`."""
        folder.mkdir(parents=True, exist_ok=True)
        self.repo, self.home = repo, folder / "home"
        self.ledger, self.notes = folder / "ledger.jsonl", folder / "notes.txt"
        self._place = {
            "repo": str(repo),
            "home": str(self.home),
            "ledger": str(self.ledger),
            "notes": str(self.notes),
            "answer": str(answer or folder / "answer.json"),
        }

    @property
    def store(self) -> "Store":
        return Store(self.home / "holdfast.db")

    def begin(self, **order: Any) -> int:
        """Let a process begin; returns its id."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({**order, "place": self._place}) + "\n")
        self._process.stdin.flush()
        return int(self._answer()["pid"])

    def finish(self) -> dict[str, Any]:
        """Wait for the process that began; `signal` is what killed it, `said` its result."""
        answer = self._answer()
        assert "bug" not in answer["said"], answer["said"]["bug"]
        return answer

    def order(self, **order: Any) -> dict[str, Any]:
        self.begin(**order)
        return self.finish()

    def called(self) -> list[dict[str, Any]]:
        """The ledger: every call of a tool and every command so far."""
        if not self.ledger.exists():
            return []
        return [json.loads(line) for line in self.ledger.read_text().splitlines()]

    def noted(self) -> list[str]:
        return self.notes.read_text().splitlines() if self.notes.exists() else []

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=WAIT_S)
        self._process.stdout.close()

    def __enter__(self) -> "Driver":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the driver ended"
        found: dict[str, Any] = json.loads(line)
        return found


def at_step(boundary: str, key: str) -> dict[str, Any]:
    return {"at": "step", "boundary": boundary, "key": key}


# --- the store, from outside ----------------------------------------------------------------------


@dataclass(frozen=True)
class Store:
    """Reads a store with SQLite alone."""

    path: Path

    def rows(self, query: str, *values: Any) -> list[dict[str, Any]]:
        with closing(sqlite3.connect(f"file:{self.path}?mode=ro", uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            return [dict(row) for row in connection.execute(query, values)]

    def one(self, query: str, *values: Any) -> Any:
        rows = self.rows(query, *values)
        return next(iter(rows[0].values())) if rows else None

    def goals(self) -> int:
        """How many goals there are; none where there is no store."""
        if not self.path.exists() or not self.rows("SELECT 1 FROM sqlite_master LIMIT 1"):
            return 0
        return self.one("SELECT count(*) FROM goals")

    def steps(self) -> dict[tuple[int, int, str, int], dict[str, Any]]:
        rows = self.rows("SELECT * FROM steps ORDER BY task_id, take, position, generation")
        return {(row["task_id"], row["take"], row["key"], row["generation"]): row for row in rows}

    def done(self) -> dict[tuple[int, int, str, int], dict[str, Any]]:
        return {key: row for key, row in self.steps().items() if row["state"] == "done"}


def broken_invariants(store: Store) -> list[str]:
    """What of design §6 does not hold in a store: I1, I2, I4, I5, I6, I8, and SQLite's own."""
    found: list[str] = []
    tasks = store.rows("SELECT id, state, attempts FROM tasks")
    attempts = store.rows("SELECT * FROM attempts ORDER BY task_id, number")
    for task in tasks:
        mine = [row for row in attempts if row["task_id"] == task["id"]]
        opened = [row["number"] for row in mine if row["state"] == "open"]
        if len(opened) != (task["state"] == "running"):
            found.append(f"I1 task {task['id']} is {task['state']} with open attempts {opened}")
        if [row["number"] for row in mine] != list(range(1, task["attempts"] + 1)):
            found.append(f"I2 task {task['id']} has attempts that do not count up")
    fences = {task["id"]: task["attempts"] for task in tasks}
    for row in store.steps().values():
        name = f"{row['task_id']}/{row['take']}/{row['key']}#{row['generation']}"
        if row["attempt"] > fences[row["task_id"]]:
            found.append(f"I2 step {name} was written by an attempt that never was")
        if (row["state"] == "done") != (row["result"] is not None):
            found.append(f"I5 step {name} is {row['state']}, its result says otherwise")
        result = row["result"]
        if result and result[0] == "@":
            result = store.one("SELECT bytes FROM blobs WHERE sha256 = ?", result[1:])
        content = result if isinstance(result, bytes) else (result or "").encode()
        if row["result_sha256"] and sha256(content).hexdigest() != row["result_sha256"]:
            found.append(f"I5 step {name} holds a result that was not written")
    for row in attempts:
        name = f"{row['task_id']}.{row['number']}"
        if (row["state"] == "ended") != (row["outcome"] != ""):
            found.append(f"I8 attempt {name} is {row['state']} with outcome {row['outcome']!r}")
    found += _fold(store)
    for check in ("integrity_check", "foreign_key_check"):
        said = store.rows(f"PRAGMA {check}")
        if said not in ([], [{"integrity_check": "ok"}]):
            found.append(f"{check}: {said[:3]}")
    return found


_STATES = {
    "goal": "SELECT CAST(id AS TEXT) AS name, state FROM goals",
    "plan": "SELECT CAST(id AS TEXT) AS name, state FROM plans",
    "task": "SELECT CAST(id AS TEXT) AS name, state FROM tasks",
    "attempt": "SELECT task_id || '.' || number AS name, state FROM attempts",
    "step": "SELECT task_id || '/' || take || '/' || key || '#' || generation AS name, state "
    "FROM steps",
}
_FINAL = {
    "goal": {"complete", "dropped"},
    "task": {"succeeded", "cancelled"},
    "attempt": {"ended"},
    "step": {"done", "unknown"},
    "plan": {"succeeded", "failed", "cancelled", "superseded", "rejected"},
}


def _fold(store: Store) -> list[str]:
    """I6: the transitions folded are the states. I4: nothing follows a final state."""
    found: list[str] = []
    folded: dict[tuple[str, str], str] = {}
    for row in store.rows("SELECT * FROM log WHERE kind = 'transition' ORDER BY seq"):
        name = (row["machine"], row["entity"])
        if folded.get(name, "") != row["source"]:
            found.append(f"I6 {name} goes on from {row['source']}, it was {folded.get(name)}")
        if row["source"] in _FINAL[row["machine"]]:
            found.append(f"I4 {name} left {row['source']}")
        folded[name] = row["target"]
    states = {
        (machine, row["name"]): row["state"]
        for machine, query in _STATES.items()
        for row in store.rows(query)
    }
    wrong = {name for name in {*states, *folded} if states.get(name) != folded.get(name)}
    found += [f"I6 {name}: {folded.get(name)} by its events, {states.get(name)}" for name in wrong]
    return found
