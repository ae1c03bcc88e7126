"""The sizes that `benchmarks/resources.py` tries, one process each: peak memory and flat latency.

`python resources_child.py WORK FOLDER SIZE` prints one JSON object of facts. Every goal runs
through the library as `holdfast run` does it: intake, plan, workspace in git, sandbox, journal,
settle; only the model is instant, so what is measured is ours. A latency is told as the median of
the first and of the last tenth; their ratio says whether it grows.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import random
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from holdfast.agent.conversation import encode
from holdfast.app import App, build
from holdfast.app.goals import Wish, resumable, start
from holdfast.config import Settings
from holdfast.domain.model import Budget, Outcome, Policy
from holdfast.domain.ports import ModelReply, ModelRequest, ToolCall, Usage
from holdfast.engine import brief, claim, listing, settle, step
from holdfast.engine.board import board
from holdfast.engine.journal import Born, Record, StepName
from holdfast.engine.outlook import events, goal_result
from holdfast.store import care
from holdfast.worker.liveness import LifeLine
from holdfast.worker.run import run_goal
from steps_child import open_engine, run_task, submit_tasks

NAME = "instant:model"
AT_ONCE = 4
MB = 1_000_000
Call = tuple[str, Mapping[str, Any]]


class Instant:
    """A model that answers at once: the calls of a list, then an answer. Notes when it was asked.

    `calls` is asked with the turn's number, from 1; None ends the attempt.
    """

    name = NAME
    context_tokens = None

    def __init__(self, calls: Callable[[int], Call | None]) -> None:
        self._calls = calls
        self.asked: list[float] = []
        self.worked: list[float] = []

    async def probe(self) -> None:
        """Always well."""

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.asked.append(perf_counter())
        self.worked.append(process_time())
        turn = len(request.messages) // 2  # system and user, then a reply and what its call gave
        call = self._calls(turn)
        usage = Usage(tokens_in=100 * turn, tokens_out=20)
        if call is None:
            return ModelReply(text="done", usage=usage)
        made = ToolCall(id=f"c{turn}", name=call[0], arguments=json.dumps(call[1]))
        return ModelReply(text="", calls=(made,), usage=usage, finish_reason="tool_calls")

    async def aclose(self) -> None:
        """Nothing to close."""

    def turns_ms(self) -> list[float]:
        return [(after - before) * 1000 for before, after in itertools.pairwise(self.asked)]

    def turns_cpu_ms(self) -> list[float]:
        """What this process worked a turn: it tells growth from a busy machine."""
        return [(after - before) * 1000 for before, after in itertools.pairwise(self.worked)]


def repository(folder: Path, files: Mapping[str, bytes]) -> Path:
    folder.mkdir(parents=True)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    identity = ("-c", "user.name=B", "-c", "user.email=b@localhost", "-c", "gc.auto=0")
    for words in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-q", "-m", "first")):
        subprocess.run(["git", *identity, *words], cwd=folder, check=True)
    return folder


def app_for(folder: Path, model: Instant, **settings: Any) -> App:
    fields = {"max_turns": 100_000, "attempt_s": 100_000.0, **settings}
    return build(Settings(**fields), home=folder / "home", environ={}, models={NAME: model})


def wish(repo: Path, app: App, **values: Any) -> Wish:
    limits = {"repeat_limit": 100_000, "stall_limit": 100_000, "max_attempts": 1}
    policy = Policy(max_turns=app.settings.max_turns, attempt_s=app.settings.attempt_s, **limits)
    return Wish(**{"text": "Work", "repo": repo, "model": NAME, "policy": policy, **values})


async def play(app: App, goal: int, expected: str = "passed") -> float:
    """Run one goal to its end; returns the seconds it took."""
    begun = perf_counter()
    await run_goal(app, goal)
    took = perf_counter() - begun
    found = app.engine.read(goal_result, goal)
    assert found["outcome"] == expected, found
    return took


def played(app: App, wishes: Sequence[Wish], *, expected: str = "passed") -> list[float]:
    async def all_of_them() -> list[float]:
        return [await play(app, await start(app, each), expected) for each in wishes]

    line = LifeLine(app.home, app.worker)
    try:
        return asyncio.run(all_of_them())
    finally:
        line.close()
        app.close()


# --- the sizes ------------------------------------------------------------------------------------


def goals(folder: Path, count: int) -> dict[str, float]:
    """`count` goals in one process, `AT_ONCE` at a time; each writes a file that a check finds."""
    repo = repository(folder / "repo", {"README.md": b"# Thing\n"})
    model = Instant(
        lambda turn: ("write_file", {"path": "a", "content": "a"}) if turn == 1 else None
    )
    app = app_for(folder, model)
    one = wish(repo, app, checks=("test -f a",))
    taken: list[float] = []
    memory: list[float] = []

    async def all_of_them() -> None:
        waiting = list(range(count))

        async def lane() -> None:
            while waiting:
                waiting.pop()
                taken.append(await play(app, await start(app, one)))
                memory.append(rss_mb())

        await asyncio.gather(*(lane() for _ in range(AT_ONCE)))

    line = LifeLine(app.home, app.worker)
    begun = perf_counter()
    asyncio.run(all_of_them())
    total = perf_counter() - begun
    open_files = len(os.listdir("/proc/self/fd"))
    line.close()
    app.close()
    return {
        "goals_per_s": count / total,
        **flat("goal_ms", [each * 1000 for each in taken]),
        "rss_after_tenth_mb": memory[max(count // 10 - 1, 0)],
        "rss_after_all_mb": memory[-1],
        "open_files": open_files,
    }


def steps(folder: Path, count: int) -> dict[str, float]:
    """One attempt of `count` steps: half are model calls, half are reads that see something new."""
    lines = b"".join(b"line %06d\n" % number for number in range(count))
    repo = repository(folder / "repo", {"long.txt": lines})
    last = count // 2
    model = Instant(
        lambda turn: (
            ("read_file", {"path": "long.txt", "offset": turn, "limit": 20})
            if turn <= last
            else None
        )
    )
    app = app_for(folder, model)
    played(app, [wish(repo, app, checks=("true",), budget=Budget(tokens=10**12))])
    store = os.path.getsize(app.home / "holdfast.db")
    return {
        **flat("turn_ms", model.turns_ms()),
        **flat("turn_cpu_ms", model.turns_cpu_ms()),
        "store_kb_per_step": store / 1000 / count,
    }


def writes(folder: Path, count: int) -> dict[str, float]:
    """One attempt of `count` steps whose calls write, so that the workspace is staged each time."""
    repo = repository(folder / "repo", {"README.md": b"# Thing\n"})
    last = count // 2
    model = Instant(
        lambda turn: (
            ("write_file", {"path": f"f{turn}.txt", "content": f"{turn}\n"})
            if turn <= last
            else None
        )
    )
    app = app_for(folder, model)
    played(app, [wish(repo, app, checks=("true",))])
    return {
        **flat("writing_turn_ms", model.turns_ms()),
        **flat("writing_turn_cpu_ms", model.turns_cpu_ms()),
    }


def repo(folder: Path, megabytes: int, context: str = "plain") -> dict[str, float]:
    """Two goals in a repository of `megabytes`, in files of 100 KB; the words are as many and as
    unequal as in code. With `curated` the first goal also reads and indexes every file."""
    chance = random.Random(1)
    words = [f"{chance.choice('abcdefgh')}{chance.randrange(16**7):07x}" for _ in range(20_000)]
    weights = list(itertools.accumulate(1 / (rank + 3) for rank in range(len(words))))

    def text() -> bytes:
        return " ".join(chance.choices(words, cum_weights=weights, k=11_200)).encode()[:100_000]

    files = {f"src/d{n % 40}/f{n}.txt": text() for n in range(megabytes * 10)}
    made = repository(folder / "repo", files)
    del files
    before = fresh_peak_mb()
    last = 10
    model = Instant(
        lambda turn: (
            ("write_file", {"path": f"new{turn}.txt", "content": f"{turn}\n"})
            if turn <= last
            else None
        )
    )
    app = app_for(folder, model, context=context)
    both = [wish(made, app, checks=("true",), text=f"Work {number}") for number in range(2)]
    first, second = played(app, both)
    turns = model.turns_ms()
    return {
        "first_goal_s": first,
        "second_goal_s": second,
        "writing_turn_ms": statistics.median(turns),
        "grown_mb": grown_mb(before),
    }


def curated(folder: Path, megabytes: int) -> dict[str, float]:
    return repo(folder, megabytes, "curated")


def output(folder: Path, megabytes: int) -> dict[str, float]:
    """A command that prints `megabytes`, in lines and as one line, and one that writes them."""
    many = f"yes 'a line of output' | head -c {megabytes * MB}"
    one = f"head -c {megabytes * MB} /dev/zero | tr '\\0' x"
    file = f"yes 'a line of a file' | head -c {megabytes * MB} > big.txt"
    commands = ["true", many, one, file]
    model = Instant(
        lambda turn: (
            ("run_command", {"command": commands[turn - 1]}) if turn <= len(commands) else None
        )
    )
    repo = repository(folder / "repo", {"README.md": b"# Thing\n"})
    app = app_for(folder, model)
    before = fresh_peak_mb()
    played(app, [wish(repo, app, checks=(many,))])
    taken = model.turns_ms()
    return {
        "quiet_command_ms": taken[0],
        "lines_ms": taken[1],
        "one_line_ms": taken[2],
        "written_file_ms": taken[3],
        "grown_mb": grown_mb(before),
        "store_mb": os.path.getsize(app.home / "holdfast.db") / MB,
    }


# What must not depend on what else the store holds; a list grows with what it lists.
FLAT = ("open_ms", "step_ms", "claim_settle_ms", "goal_show_ms", "board_ms", "goal_events_ms")


def store(folder: Path, megabytes: int) -> dict[str, float]:
    """What verbs and steps cost on a store of `megabytes`, and how many times that of a new one.

    The store is filled by the engine: tasks of 100 steps with outputs as large as tools may give.
    """
    new, full = folder / "new", folder / "full"
    for place, size in ((new, 0), (full, megabytes)):
        place.mkdir()
        _fill(place, size)
    before = fresh_peak_mb()
    small, large = _measured(new), _measured(full)
    facts = dict(large)
    facts |= {f"{name}_vs_new": large[name] / small[name] for name in FLAT}
    facts["store_mb"] = os.path.getsize(full / "holdfast.db") / MB
    facts["grown_mb"] = grown_mb(before)
    before = fresh_peak_mb()
    begun = perf_counter()
    assert not care.check(full / "holdfast.db")
    facts["check_s"] = perf_counter() - begun
    begun = perf_counter()
    copy = care.backup(full / "holdfast.db", folder / "backups", stamp_ms=1)
    facts["backup_s"] = perf_counter() - begun
    care.restore(folder / "restored.db", copy, stamp_ms=1)
    facts["care_grown_mb"] = grown_mb(before)
    return facts


def _fill(place: Path, megabytes: int) -> None:
    """Whole tasks until the store is large enough; one of 0 has one, so that verbs have work."""
    engine = open_engine(place)
    chance = random.Random(1)
    while True:
        submit_tasks(engine, 1)
        claimed = engine.call(claim, "w", lease_s=600.0)
        engine.call(brief, claimed.fence, b'{"items":[]}', base_commit="", base_tree="")
        for part in range(10):
            writes: list[Any] = []
            for number in range(10 * part, 10 * part + 10):
                text = chance.randbytes(14_500 if megabytes else 20).hex()
                result = encode({"tool": "run_command", "success": True, "output": text})
                key = f"t{number + 1:03}/call:0"
                digest = sha256(result).hexdigest()
                asked = encode({"tool": "run_command", "arguments": {"command": "make"}})
                made = Born(
                    step=StepName(key=key),
                    position=number + 1,
                    kind="tool",
                    request=asked,
                    result=result,
                    result_sha256=digest,
                )
                body = encode({"call_id": key, "tool": "run_command", "stdout_bytes": 29_000})
                writes += [made, Record(kind="tool_output", body=body)]
            engine.call(step, claimed.fence, writes)
        engine.call(settle, claimed.fence, Outcome(kind="unverified"))
        if os.path.getsize(place / "holdfast.db") >= megabytes * MB:
            engine.close()
            return


def _measured(place: Path) -> dict[str, float]:
    """Medians in milliseconds."""
    opened = _ms(lambda: open_engine(place).close(), 5)
    engine = open_engine(place)
    goals_now = len(engine.read(listing.goals))
    newest = goals_now  # one task a goal
    taken: list[float] = []
    submit_tasks(engine, 1)
    run_task(engine, 300, lambda: taken.append(perf_counter() * 1000))
    steps_ms = [after - before for before, after in itertools.pairwise(taken[100:])]
    submit_tasks(engine, 60)
    pairs = []
    for _ in range(60):
        begun = perf_counter()
        run_task(engine, 0, lambda: None)
        pairs.append((perf_counter() - begun) * 1000)
    found = {
        "open_ms": opened,
        "step_ms": statistics.median(steps_ms),
        "claim_settle_ms": statistics.median(pairs),
        "goal_list_ms": _ms(lambda: engine.read(listing.goals), 20),
        "goal_show_ms": _ms(lambda: engine.read(listing.goal, newest), 20),
        "board_ms": _ms(lambda: engine.read(board, newest), 20),
        "attempt_show_ms": _ms(lambda: engine.read(listing.attempt, newest, 1), 10),
        "goal_events_ms": _ms(lambda: engine.read(events, goal=newest, limit=50), 20),
        "resumable_ms": _ms(lambda: engine.read(resumable), 20),
        "tasks_ms": _ms(lambda: engine.read(listing.tasks, newest), 20),
    }
    engine.close()
    return found


def _ms(work: Callable[[], object], rounds: int) -> float:
    taken = []
    for _ in range(rounds):
        begun = perf_counter()
        work()
        taken.append((perf_counter() - begun) * 1000)
    return statistics.median(taken)


WORKS: Mapping[str, Callable[[Path, int], dict[str, float]]] = {
    "goals": goals,
    "steps": steps,
    "writes": writes,
    "repo": repo,
    "curated": curated,
    "output": output,
    "store": store,
}


# --- what is measured -----------------------------------------------------------------------------


def flat(name: str, taken: Sequence[float]) -> dict[str, float]:
    """The medians of the first and the last tenth, and how much the last one is of the first."""
    tenth = max(len(taken) // 10, 1)
    first, last = statistics.median(taken[:tenth]), statistics.median(taken[-tenth:])
    return {
        f"{name}_first_tenth": first,
        f"{name}_last_tenth": last,
        f"{name}_last_vs_first": last / first,
    }


def rss_mb() -> float:
    return _status("VmRSS:")


def peak_rss_mb() -> float:
    return _status("VmHWM:")


def fresh_peak_mb() -> float:
    """Begin the peak anew, so that it is of what follows and not of how the material was made."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return rss_mb()


def grown_mb(before: float) -> float:
    """How far the peak rose above `before`. The kernel counts pages by processor and adds them up
    roughly, so work that needs nothing can end some pages below where it began: that is 0."""
    return max(peak_rss_mb() - before, 0.0)


def _status(field: str) -> float:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith(field))) / 1024


def main() -> None:
    work, folder, size = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    folder.mkdir(parents=True)
    begun = perf_counter()
    facts = WORKS[work](folder, size)
    took = perf_counter() - begun
    facts |= {"peak_rss_mb": peak_rss_mb(), "whole_s": took}
    sys.stdout.write(json.dumps(facts) + "\n")


if __name__ == "__main__":
    main()
