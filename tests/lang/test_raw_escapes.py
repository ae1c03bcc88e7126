"""The inner wall has fallen: raw Python in a real worker of a real pool, and what still stops it.

The zygote of this pool runs programs with `exec`. Everything else is the product's own: the walls,
the channel, the parent's clock, the naming of what fired. Each row of the corpus names the wall
that must stop it, and the test asserts that this wall did.
"""

import json
import os
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.lang import pool as pool_module
from holdfast.lang import walls
from holdfast.lang.api import Limits, Result
from holdfast.lang.pool import SandboxPool
from holdfast.lang.recorder import Recorder

ROWS = json.loads((Path(__file__).parent / "escapes" / "raw_python.json").read_text())
SECRET = "SECRET-IN-THE-PARENT"
LIMITS = Limits(wall_s=0.5, memory_bytes=30_000_000, output_bytes=1_000_000)
MODULES = (
    "_posixsubprocess, ctypes, gc, itertools, os, re, resource, select, signal, socket, struct, "
    "threading, time"
)
FALLEN = f"""
import sys; sys.path.insert(0, sys.argv[2])
import {MODULES}
from holdfast.lang import worker
from holdfast.lang.api import Result

def run(source, *, host=None, **_):
    names = {{"host": host}}
    if not source.startswith("("):
        try:
            exec(source, names)
        except MemoryError:
            raise
        except Exception as error:
            names["out"] = f"refused: {{type(error).__name__}}"
    return Result(ending="value", value=names.get("out"))

worker.run = run
worker.zygote(int(sys.argv[1]))
"""


@pytest.fixture(scope="module")
def pool() -> Iterator[SandboxPool]:
    before, pool_module._BOOT = pool_module._BOOT, FALLEN
    os.environ["HOLDFAST_TEST_SECRET"] = SECRET
    try:
        with SandboxPool(2, LIMITS, require="seccomp") as fallen:
            yield fallen
    finally:
        pool_module._BOOT = before
        del os.environ["HOLDFAST_TEST_SECRET"]


def slow(_: dict[str, Any]) -> None:
    import threading

    threading.Event().wait(0.05)


def attack(pool: SandboxPool, code: list[str]) -> Result:
    host = Recorder({}, {"echo": lambda args: args, "slow": slow})
    return pool.run("\n".join(code), host=host, tools=["echo", "slow"])


def which_wall(result: Result) -> str:
    """The wall that stopped an attack, in the words of the corpus; "none" if nothing did."""
    if result.error is None:
        value = str(result.value)
        return {"refused": "refused", "nothing": "empty"}.get(value.split(":")[0], "none")
    wall = result.error.details["wall"]
    return "memory" if result.error.code == "memory_exceeded" and wall == "rlimits" else str(wall)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_an_attack_in_raw_python_is_stopped_by_the_wall_it_names(
    pool: SandboxPool, row: dict[str, Any]
) -> None:
    if row.get("machine", platform.machine()) != platform.machine():
        pytest.skip("the row calls the kernel by the numbers of another architecture")
    result = attack(pool, row["code"])
    assert which_wall(result) in row["wall"].split("-or-"), (result.value, result.error)


def test_the_corpus_would_notice_an_attack_that_works(pool: SandboxPool) -> None:
    assert which_wall(attack(pool, ["out = 'ESCAPED'"])) == "none"


def test_what_a_program_did_to_its_interpreter_ends_with_it(pool: SandboxPool) -> None:
    assert pool.size == 2
    for _ in range(2 * pool.size):
        attack(pool, ["import builtins", "builtins.len = lambda x: 'LEAK'", "out = 'patched'"])
        attack(pool, ["import sys", "sys.modules['leak'] = 'LEAK'", "sys.intern('LEAK' * 9)"])
        attack(
            pool, ["import holdfast.lang.api as a", "a.Limits.fuel = 'LEAK'", "hoard = 'LEAK' * 9"]
        )
    clean = ["import builtins, sys, gc, holdfast.lang.api as a", "n = 'LE' + 'AK'"]
    found = attack(
        pool,
        [
            *clean,
            "hits = [len([1]) != 1, 'leak' in sys.modules, a.Limits.fuel == n]",
            "dicts = [o for o in gc.get_objects() if type(o) is dict]",
            "hits += [any(n * 9 in map(str, each.values()) for each in dicts)]",
            "out = str(hits)",
        ],
    )
    assert found.value == "[False, False, False, False]"


def test_a_scope_never_shares_a_process_with_another_scope(pool: SandboxPool) -> None:
    def pid(scope: str) -> str:
        return str(pool.run("import os\nout = str(os.getpid())", scope=scope).value)

    mine = pid("mine")
    assert pid("mine") == mine
    others = {pid(scope) for scope in ("", "yours", "", "theirs", "his")}
    assert mine not in others
    assert len(others) == 5


def test_memory_is_measured_above_what_a_later_program_of_the_scope_brings(
    pool: SandboxPool,
) -> None:
    limits = Limits(memory_bytes=5_000_000, wall_s=5)

    def run(code: str, rows: int) -> Result:
        context = {"rows": ["x" * 1000] * rows}
        return pool.run(code + "  # data/rows", context=context, limits=limits, scope="memory")

    fits, too_much = "out = len(bytearray(3_000_000))", "out = bytearray(90_000_000)"
    assert run(fits, 10).value == 3_000_000
    # Within what the first program's walls leave room for: the same worker lifts its limit.
    assert run(fits, 5_000).value == 3_000_000
    # Beyond it: that worker retires, and the program runs in a new one, as if nothing had been.
    assert run(fits, 50_000).value == 3_000_000
    assert which_wall(run(too_much, 10)) == "memory"
    assert which_wall(run(too_much, 50_000)) == "memory"


def test_a_worker_of_a_scope_that_was_stopped_is_never_used_again(pool: SandboxPool) -> None:
    first = pool.run("import os\nout = os.getpid()", scope="s").value
    assert which_wall(pool.run("while True: pass", scope="s")) == "clock"
    assert pool.run("import os\nout = os.getpid()", scope="s").value != first


def test_a_worker_that_said_more_than_its_result_is_never_used_again(pool: SandboxPool) -> None:
    first = pool.run("import os\nout = os.getpid()", scope="talker").value
    done = {"op": "done", "ending": "value", "value": 1, "error": None, "memory": {}}
    rest = {"history": [], "prints": [], "pmap_calls": [], "warnings": [], "summaries": {}}
    twice = f"m = { ({**done, **rest, 'usage': {}})!r}\nfor _ in 'ab': host._channel.send(m)"
    code = f"import time\n{twice}\ntime.sleep(20)"
    pool.run(code, scope="talker")
    assert pool.run("import os\nout = os.getpid()", scope="talker").value != first


def test_the_walls_of_this_pool_are_the_ones_of_the_product(pool: SandboxPool) -> None:
    assert pool.standing().level == walls.probe().level


def test_a_worker_that_broke_a_limit_is_dead_when_its_run_returns(pool: SandboxPool) -> None:
    code = "import os\nhost.printed(str(os.getpid()))\nwhile True: pass"
    result = pool.run(code)
    assert which_wall(result) == "clock"
    assert not Path(f"/proc/{result.prints[0]}").exists()


def test_what_the_host_completed_before_a_worker_was_killed_is_kept(pool: SandboxPool) -> None:
    journal: dict[Any, Any] = {}
    host = Recorder(journal, {"echo": lambda args: args})
    code = [
        "host.printed('before')",
        "host.call_tool('1:1/0', 'echo', {'x': 1})",
        "host.task_done('1:2/0', 'charge', 'source', 5)",
        "host.step_done('one', 'done')",
        "while True: pass",
    ]
    result = pool.run("\n".join(code), host=host, tools=["echo"], memory={"kept": 1})
    assert which_wall(result) == "clock"
    assert tuple(result.prints) == ("before",)
    assert [(call.name, call.args) for call in result.tool_calls] == [("echo", {"x": 1})]
    assert result.summaries == {"one": "done"}
    assert result.memory == {"kept": 1}
    again = pool.run(
        "out = str(host.task_begin('1:2/0', 'charge', 'source').value)", host=Recorder(journal, {})
    )
    assert again.value == "5"


def test_a_call_in_flight_when_the_worker_dies_is_still_recorded(pool: SandboxPool) -> None:
    journal: dict[Any, Any] = {}
    host = Recorder(journal, {"slow": slow})
    code = [
        "def branch(n):",
        "    host._channel.send({'op': 'call_tool', 'n': n, 'together': True,",
        "        'path': f'1:1/{n}', 'name': 'slow', 'args': {}})",
        "for n in range(3): branch(n)",
        "os._exit(9)",
    ]
    result = pool.run("\n".join(["import os", *code]), host=host, tools=["slow"])
    assert which_wall(result) == "process"
    assert len(result.tool_calls) == len(journal) == 3
