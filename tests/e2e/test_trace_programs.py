"""Real programs under `AGENTLOG=true`: evidence is left and nothing else changes."""

import json
import os
import re
import resource
import signal
import sqlite3
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from trace_world import environment, program, rows

FILE = "agentlog.db"

ENDINGS = {
    "raises": "def f(order):\n    return order['price'] * 2\nprint('out')\nf({'price': None})\n",
    "returns": "print('fine')\n",
    "exits": "import sys\nprint('x')\nsys.exit(3)\n",
    "exits_with_text": "import sys\nsys.exit('no')\n",
    "syntax_error": "print('never')\ndef broken(:\n",
    "interrupt": "raise KeyboardInterrupt\n",
    "thread": (
        "import threading\n"
        "def work():\n    value = 'in thread'\n    raise ValueError(value)\n"
        "t = threading.Thread(target=work, name='w')\nt.start(); t.join()\nprint('done')\n"
    ),
    "unraisable": (
        "class Late:\n    def __del__(self):\n        reason = 'late'\n"
        "        raise RuntimeError(reason)\nlate = Late()\ndel late\nprint('done')\n"
    ),
    "own_hook": (
        "import sys\nsys.excepthook = lambda *a: sys.stderr.write('mine\\n')\n"
        "raise ValueError('x')\n"
    ),
    "own_hook_raises": (
        "import sys\ndef hook(*a):\n    sys.stderr.write('mine\\n')\nsys.excepthook = hook\n"
        "def f():\n    bad = 1\n    return bad['x']\nf()\n"
    ),
    "own_hook_fails": (
        "import sys\ndef hook(*a):\n    raise TypeError('hook')\nsys.excepthook = hook\n"
        "def f():\n    1 / 0\nf()\n"
    ),
    "no_hook": "import sys\ndel sys.excepthook\nraise ValueError('x')\n",
    "touchy": (
        "class Touchy(Exception):\n    def __getattribute__(self, name):\n"
        "        if name != '__notes__':\n            print('touched', name)\n"
        "        return super().__getattribute__(name)\nraise Touchy('x')\n"
    ),
    "endless": "def f(): f()\nf()\n",
    "recursion": "def f(n):\n    return f(n + 1)\ntry:\n    f(0)\nexcept RecursionError as e:\n"
    "    raise ValueError('deep') from None\n",
    "chained": "try:\n    {}['a']\nexcept KeyError as e:\n    raise ValueError('b') from e\n",
    "group": "raise ExceptionGroup('g', [ValueError('a'), KeyError('b')])\n",
    "main_module": (
        "import sys, __main__\nassert __main__.__dict__ is globals()\n"
        "print(sys.argv, __file__.endswith('app.py'), __spec__, __package__, sys.path[0] != '')\n"
    ),
    "dunder_globals": "print(sorted(globals()), type(__builtins__), __annotations__)\n",
}
RECORDED = {
    **dict.fromkeys(("raises", "syntax_error", "interrupt", "thread", "unraisable"), 1),
    **dict.fromkeys(("own_hook", "own_hook_raises", "recursion", "chained", "group"), 1),
    **dict.fromkeys(("own_hook_fails", "no_hook", "touchy", "endless"), 1),
}


@pytest.mark.parametrize("way", ["script", "module"])
@pytest.mark.parametrize("name", ENDINGS)
def test_an_unmodified_program_ends_as_it_would_and_leaves_its_failure(
    tmp_path: Path, name: str, way: str
) -> None:
    main = ("app.py",) if way == "script" else ("-m", "app")
    # A script leaves no byte code; a module does, traced or not.
    quiet = {} if way == "script" else {"PYTHONDONTWRITEBYTECODE": "1"}
    plain = program(
        tmp_path, ENDINGS[name], "--flag", "arg", traced=False, main=main, environ=quiet
    )
    assert not (tmp_path / FILE).exists()
    traced = program(tmp_path, ENDINGS[name], "--flag", "arg", main=main, environ=quiet)
    assert traced.returncode == plain.returncode
    address = re.compile(rb"0x[0-9a-f]+")
    assert address.sub(b"", traced.stdout) == address.sub(b"", plain.stdout)
    assert address.sub(b"", traced.stderr) == address.sub(b"", plain.stderr)
    assert sorted(os.listdir(tmp_path)) == [FILE, "app.py"]
    sessions, events = rows(tmp_path / FILE)
    assert [row["agent_name"] for row in sessions] == [main[-1]]
    assert sessions[0]["task"] == f"{main[-1]} --flag arg"
    assert sessions[0]["end_ts"] is not None
    assert [event.kind for event in events] == ["failure"] * RECORDED.get(name, 0)
    assert sorted(os.listdir(tmp_path)) == [FILE, "app.py"]


def test_one_line_is_enough_instead_of_the_runner(tmp_path: Path) -> None:
    text = "import holdfast.trace.auto\n" + ENDINGS["raises"]
    plain = program(tmp_path, text, traced=False)
    traced = program(tmp_path, text, via=())
    assert (traced.returncode, traced.stdout, traced.stderr) == (1, b"out\n", plain.stderr)
    _, (event,) = rows(tmp_path / FILE)
    assert event.payload["location"]["function"] == "f"
    assert event.payload["locals"]["order"]["entries"]["price"]["value"] is None
    assert event.payload["origin"] == "main"


def test_a_module_runs_as_well_as_a_script(tmp_path: Path) -> None:
    package = tmp_path / "pack"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text("import sys\nprint(sys.argv[1:])\nraise ValueError('x')\n")
    with zipfile.ZipFile(tmp_path / "packed.zip", "w") as archive:
        archive.write(package / "__main__.py", "__main__.py")
    for number, words in enumerate((["-m", "pack", "a"], ["pack", "a"], ["packed.zip", "a"]), 1):
        done, plain = both(tmp_path, words)
        assert done == plain
        assert (done[0], done[1]) == (1, b"['a']\n")
        assert len(rows(tmp_path / FILE)[1]) == number


def both(directory: Path, words: list[str]) -> list[tuple[int, bytes, bytes]]:
    """How the same words end traced and plain: code, stdout, stderr."""
    done = [
        subprocess.run(
            [sys.executable, *via, *words],
            cwd=directory,
            env=environment(measured=False),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        for via in (["-m", "holdfast.trace", "run"], [])
    ]
    return [(each.returncode, each.stdout, each.stderr) for each in done]


@pytest.mark.parametrize("words", [["none.py"], ["."], ["-m", "no_such"], ["-m", "no.such"]])
def test_what_is_no_program_is_refused_in_pythons_words(tmp_path: Path, words: list[str]) -> None:
    traced, plain = both(tmp_path, words)
    assert traced == plain
    assert traced[0] != 0


def test_a_program_must_be_named(tmp_path: Path) -> None:
    for words in ([], ["-m"]):
        (code, out, err), _ = both(tmp_path, [*words])
        assert (code, out) == (2, b"")
        assert b"run" in err or b"-m" in err


def test_every_failure_belongs_to_the_session_it_was_raised_in(tmp_path: Path) -> None:
    text = """
import asyncio, gc, os, threading
from holdfast import trace

def in_thread():
    trace.start_session("thread")
    raise ValueError("thread")
t = threading.Thread(target=in_thread); t.start(); t.join()

async def agent(name):
    trace.start_session(name)
    await asyncio.sleep(0)
    raise ValueError(name)

async def inherits():
    raise ValueError("parent")

async def parent():
    trace.start_session("parent")
    task = asyncio.create_task(inherits())
    await asyncio.wait([task])

async def main():
    tasks = [asyncio.create_task(agent(n)) for n in ("task1", "task2")]
    await asyncio.wait([*tasks, asyncio.create_task(parent())])
asyncio.run(main())
gc.collect()

pid = os.fork()
if pid == 0:
    trace.start_session("fork")
    raise ValueError("fork")
os.waitpid(pid, 0)
with trace.session("block"):
    with trace.session("inner"):
        raise ValueError("inner")
"""
    done = program(tmp_path, text)
    assert done.returncode == 1, done.stderr.decode()
    sessions, events = rows(tmp_path / FILE)
    names = {row["session_id"]: row["agent_name"] for row in sessions}
    found = {event.payload["error"]["msg"]: names[event.session_id] for event in events}
    expected = ["thread", "task1", "task2", "parent", "fork", "inner"]
    assert found == {name: name for name in expected}
    origins = {event.payload["error"]["msg"]: event.payload["origin"] for event in events}
    assert origins["thread"] == "thread"
    assert origins["task1"] == "asyncio"
    by_name = {row["agent_name"]: row["session_id"] for row in sessions}
    assert by_name["inner"].startswith(by_name["block"] + "/")
    assert by_name["block"].startswith(by_name["app.py"] + "/")


PROCESSES = """{first}
import multiprocessing, sys
from holdfast import trace
def work(order):
    trace.log_decision("waits in memory", "yes")
    return order["price"] * 2
def nested():
    trace.start_session("nested")
    raise ValueError("nested")
if __name__ == "__main__":
    multiprocessing.set_start_method("{method}")
    try:
        1 / 0
    except ZeroDivisionError:
        started = [multiprocessing.Process(target=work, args=({{"price": p}},)) for p in (None, 2)]
        started.append(multiprocessing.Process(target=sys.exit, args=(4,)))
        started.append(multiprocessing.Process(target=nested))
        for each in started:
            each.start()
            each.join()
    print([each.exitcode for each in started])
"""


@pytest.mark.parametrize(
    ("method", "first"),
    [
        ("fork", ""),
        ("fork", "import holdfast.trace.auto"),
        ("spawn", "import holdfast.trace.auto"),
        ("forkserver", "import holdfast.trace.auto"),
    ],
)
def test_what_ends_a_process_of_multiprocessing_is_recorded(
    tmp_path: Path, method: str, first: str
) -> None:
    text = PROCESSES.format(method=method, first=first)
    plain = program(tmp_path, text, traced=False)
    via = () if first else ("-m", "holdfast.trace", "run")
    traced = program(tmp_path, text, via=via, environ={"AGENTLOG_BUFFER_SIZE": "100"})
    assert (plain.returncode, plain.stdout) == (0, b"[1, 0, 4, 1]\n")
    assert (traced.returncode, traced.stdout, traced.stderr) == (0, plain.stdout, plain.stderr)
    sessions, events = rows(tmp_path / FILE)
    failed, nested = [event for event in events if event.kind == "failure"]
    assert failed.payload["location"]["function"] == "work"
    assert failed.payload["locals"]["order"]["entries"]["price"]["value"] is None
    assert failed.payload["origin"] == "process"
    assert [event.kind for event in events].count("decision") == 2
    names = {row["session_id"]: row["agent_name"] for row in sessions}
    assert names[nested.session_id] == "nested"
    assert all(row["end_ts"] is not None for row in sessions)


def test_hooks_that_stood_before_are_called_and_stand_again(tmp_path: Path) -> None:
    text = """
import sys, threading, asyncio
calls = []
sys.excepthook = lambda *a: calls.append("main")
threading.excepthook = lambda a: calls.append("thread")
sys.unraisablehook = lambda a: calls.append("unraisable")
before = (sys.excepthook, threading.excepthook, sys.unraisablehook)
handler = asyncio.BaseEventLoop.call_exception_handler
from holdfast import trace
trace.start_session("a")
assert sys.excepthook is not before[0]
assert asyncio.BaseEventLoop.call_exception_handler is not handler
sys.excepthook(ValueError, ValueError("x"), None)
t = threading.Thread(target=lambda: 1 / 0); t.start(); t.join()
class Late:
    def __del__(self): 1 / 0
late = Late(); del late
def quits(): raise SystemExit
t = threading.Thread(target=quits); t.start(); t.join()
assert calls == ["main", "thread", "unraisable", "thread"], calls
sys.excepthook = mine = lambda *a: None
trace.forget_switch()
assert sys.excepthook is mine
assert (threading.excepthook, sys.unraisablehook) == before[1:]
assert asyncio.BaseEventLoop.call_exception_handler is handler
"""
    done = program(tmp_path, text, via=())
    assert done.returncode == 0, done.stderr.decode()
    assert [event.kind for event in rows(tmp_path / FILE)[1]] == ["failure"] * 3


HOSTILE = """
import math, os, sys
class Evil:
    def __getattribute__(self, name): os._exit(66)
    def __repr__(self): os._exit(67)
    def __del__(self): pass
class Meta(type):
    def __eq__(cls, other): os._exit(68)
    def __hash__(cls): return 1
    def __instancecheck__(cls, other): os._exit(69)
class Odd(metaclass=Meta):
    @property
    def value(self): os._exit(70)
class Slow:
    def __str__(self):
        while True: pass
class Error(Exception):
    def __str__(self): os._exit(71)
def work():
    cyclic = {}
    cyclic["self"] = cyclic
    evil, odd, slow = Evil(), Odd(), Slow()
    huge, number, nan = "x" * 50_000_000, 10 ** 20_000, math.nan
    keys = {b"bytes": 1, (1, 2): 2, None: 3, nan: 4, odd: 5}
    deep = []
    for _ in range(100_000): deep = [deep]
    surrogate, lone = "\\ud800", b"\\xff\\xfe"
    stream = open(os.devnull)
    generator = (n for n in range(3))
    raise Error("message", evil, number, surrogate)
from holdfast import trace
with trace.llm_call("m", prompt=Evil()) as call:
    call.response = {"x": [Odd(), math.nan, Slow()]}
trace.log_decision("q", "a", "r", {b"k": Evil(), 1: Odd()})
try:
    with trace.tool_call("t", {"evil": Evil(), "nan": math.nan}):
        print("\\udcff".encode("utf-8", "surrogateescape"))
        sys.stdout.buffer.write(b"\\xff\\n")
        sys.stdout.flush()
        work()
except Error:
    pass
print("survived")
os._exit(0)
"""


def test_no_hostile_value_changes_what_a_program_does(tmp_path: Path) -> None:
    plain = program(tmp_path, HOSTILE, traced=False)
    traced = program(tmp_path, HOSTILE)
    assert plain.returncode == 0, plain.stderr.decode()
    assert traced.returncode == 0, traced.stderr.decode()
    assert traced.stderr == plain.stderr
    # `os._exit` flushes nothing, in both alike; what was flushed before is the same.
    assert traced.stdout == plain.stdout
    _, events = rows(tmp_path / FILE)
    kinds = ["llm_call", "decision", "tool_output", "failure"]
    assert [event.kind for event in events] == kinds
    found = events[-1].payload["locals"]
    assert found["huge"]["len"] == 50_000_000
    assert found["nan"] == {"type": "float", "value": "nan"}
    assert found["number"]["value"].endswith("bits")
    assert found["evil"] == {"type": "Evil"}


WORK = """
import os, sys
from holdfast import trace
for n in range(50):
    trace.log_decision("q" * 1000, str(n))
try:
    raise ValueError("x" * 5000)
except ValueError as error:
    trace.log_failure(error)
with trace.tool_call("t"):
    print("printed")
print("the end")
sys.exit(4)
"""


@pytest.mark.parametrize(
    "trouble", ["none", "gone", "readonly", "device", "full", "directory", "notes", "sealed"]
)
def test_a_file_that_cannot_be_written_changes_nothing(tmp_path: Path, trouble: str) -> None:
    target = tmp_path / FILE
    environ: dict[str, str] = {}
    prefix = ""
    options = {}
    match trouble:
        case "gone":
            away = tmp_path / "away"
            prefix = f"import os\nos.mkdir({str(away)!r})\nos.chdir({str(away)!r})\n"
            prefix += f"os.rmdir({str(away)!r})\n"
        case "readonly":
            environ["AGENTLOG_FILE"] = "/proc/1/agentlog.db"
        case "device":
            environ["AGENTLOG_FILE"] = "/dev/full"
        case "full":

            def limit() -> None:
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

            options["preexec_fn"] = limit
        case "directory":
            target.mkdir()
        case "notes":
            target.write_text("my notes\n" * 100)
        case "sealed":
            environ["AGENTLOG_FILE"] = str(tmp_path / "missing" / "t.db")
    text = prefix + WORK
    plain = program(tmp_path, text, traced=False, environ=environ)
    if trouble == "gone":
        assert not (tmp_path / "away").exists()
    # Coverage writes files too, which a full disk would hit first.
    done = program(tmp_path, text, environ=environ, measured=trouble != "full", **options)
    assert (done.returncode, done.stdout, done.stderr) == (4, b"printed\nthe end\n", b"")
    assert plain.returncode == 4
    if trouble == "notes":
        assert target.read_text() == "my notes\n" * 100
    if trouble == "full":  # what was committed before can be read
        assert 0 < len(rows(target)[1]) < 52


def test_a_program_killed_while_writing_leaves_a_readable_file(tmp_path: Path) -> None:
    text = """
import os, sys, threading
from holdfast import trace
trace.start_session("busy")
def work():
    n = 0
    while True:
        n += 1
        trace.log_llm_call("m", tokens_in=1, tokens_out=1, prompt="p" * 500)
        if n == 200:
            os.write(1, b"x")
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
threading.Event().wait()
"""
    (tmp_path / "app.py").write_text(text)
    for _ in range(3):
        child = subprocess.Popen(
            [sys.executable, "-m", "holdfast.trace", "run", "app.py"],
            cwd=tmp_path,
            env=environment(),
            stdout=subprocess.PIPE,
        )
        assert child.stdout is not None
        child.stdout.read(1)
        child.kill()
        child.wait()
        child.stdout.close()
    sessions, events = rows(tmp_path / FILE)
    connection = sqlite3.connect(tmp_path / FILE)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
    assert len(sessions) == 6
    assert len(events) >= 600
    assert sum(row["total_tokens"] for row in sessions) == 2 * len(events)
    exported = subprocess.run(
        [sys.executable, "-m", "holdfast.trace", "export"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        check=True,
    )
    assert len([json.loads(line) for line in exported.stdout.splitlines()]) == 6 + len(events)


def test_an_export_killed_midway_leaves_the_old_file_or_none(tmp_path: Path) -> None:
    text = """
from holdfast import trace
trace.start_session("a")
trace.process().sink.buffer = 5000
for n in range(20000):
    trace.log_decision("q" * 200, str(n))
"""
    assert program(tmp_path, text, via=()).returncode == 0
    target = tmp_path / "out.jsonl"
    target.write_text("the old one\n")
    child = subprocess.Popen(
        [sys.executable, "-m", "holdfast.trace", "export", "--output", str(target)],
        cwd=tmp_path,
        env=environment(measured=False),
    )
    while child.poll() is None:
        parts = list(tmp_path.glob(".out.jsonl.*.part"))
        if parts and parts[0].stat().st_size > 100_000:
            child.kill()
            break
    killed = child.wait() != 0
    found = target.read_text()
    assert (found == "the old one\n") if killed else (found.count("\n") == 20_001)


def test_two_processes_with_eight_threads_each_lose_nothing(tmp_path: Path) -> None:
    text = """
import sys, threading
from holdfast import trace
trace.start_session("shared", session_id="one-session")
def work():
    for n in range(100):
        trace.log_llm_call("m", tokens_in=1, tokens_out=2)
threads = [threading.Thread(target=work) for _ in range(8)]
for t in threads: t.start()
for t in threads: t.join()
assert trace.process().sink.flush() and trace.process().sink.lost == 0
"""
    (tmp_path / "app.py").write_text(text)
    children = [
        subprocess.Popen([sys.executable, "app.py"], cwd=tmp_path, env=environment())
        for _ in range(2)
    ]
    assert [child.wait(60) for child in children] == [0, 0]
    sessions, events = rows(tmp_path / FILE)
    assert len(events) == 1600
    (row,) = sessions
    assert row["total_tokens"] == 4800


def test_output_of_every_level_stands_in_the_event_in_order(tmp_path: Path) -> None:
    text = """
import ctypes, os, subprocess
from holdfast import trace
with trace.tool_call("t", descriptors=True):
    print("one")
    os.write(1, b"two\\n")
    os.system("echo three")
    ctypes.CDLL(None).puts(b"four")
    ctypes.CDLL(None).fflush(None)
    subprocess.run(["echo", "five"])
    print("six")
with trace.tool_call("after"):
    print("seven")
"""
    done = program(tmp_path, text)
    assert done.stdout == b"one\ntwo\nthree\nfour\nfive\nsix\nseven\n"
    _, events = rows(tmp_path / FILE)
    assert events[0].payload["stdout"] == "one\ntwo\nthree\nfour\nfive\nsix\n"
    assert events[1].payload["stdout"] == "seven\n"


def test_a_parent_session_comes_from_the_environment(tmp_path: Path) -> None:
    program(tmp_path, "print()\n", environ={"AGENTLOG_PARENT_SESSION": "above"})
    (row,) = rows(tmp_path / FILE)[0]
    assert row["session_id"].startswith("above/")


def test_off_the_runner_only_runs(tmp_path: Path) -> None:
    done = program(tmp_path, ENDINGS["raises"], environ={"AGENTLOG": "false"})
    assert (done.returncode, done.stdout) == (1, b"out\n")
    assert not (tmp_path / FILE).exists()
