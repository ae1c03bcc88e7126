"""Waiting for the store has an end: who is held up is told by whom, and goes on when it is free."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from holdfast.adapters.clock import SystemClock
from holdfast.engine import Engine
from holdfast.errors import Unavailable
from holdfast.store import Turnstile
from holdfast.store.gates import Gate, _Wait, held_by, holder

HOLD = """
import os, signal, sys
from pathlib import Path
from holdfast.store import Turnstile
turnstile = Turnstile(Path(sys.argv[1]))
turn = turnstile.enter()
print("in", flush=True)
os.kill(os.getpid(), signal.SIGSTOP) if sys.argv[2] == "stop" else sys.stdin.read()
turnstile.leave(turn)
print("out", flush=True)
"""


@contextmanager
def held(folder: Path, how: str) -> Iterator["subprocess.Popen[str]"]:
    """A process inside the turnstile: stopped there, or busy until its stdin is closed."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder), how],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "in\n"
        if how == "stop":
            os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        yield process
    finally:
        process.kill()
        process.communicate()


def put(tx: Any) -> str:
    return str(tx.put(b"x"))


def test_a_writer_held_up_by_a_stopped_process_is_told_which_and_writes_nothing(
    tmp_path: Path,
) -> None:
    path = tmp_path / "holdfast.db"
    engine = Engine(path, SystemClock(), wait_s=0.2)
    with held(tmp_path, "stop") as process:
        with pytest.raises(Unavailable) as caught:
            engine.call(put)
        assert f"process {process.pid} " in str(caught.value)
        assert "is stopped" in str(caught.value)
        assert f"kill -CONT {process.pid}" in caught.value.hint
        assert (caught.value.code, caught.value.retryable) == ("store_held", True)
        with sqlite3.connect(path) as reader:
            assert reader.execute("SELECT count(*) FROM blobs").fetchone() == (0,)
        reader.close()
        os.kill(process.pid, signal.SIGCONT)
        patient = Engine(path, SystemClock(), wait_s=60)
        assert patient.call(put)
        patient.close()
    assert engine.call(put), "what was in vain once may go on"
    engine.close()


def test_a_busy_process_is_named_and_not_called_stopped(tmp_path: Path) -> None:
    turnstile = Turnstile(tmp_path, wait_s=0.1)
    with held(tmp_path, "busy") as process:
        with pytest.raises(Unavailable, match=rf"process {process.pid} .* has kept") as caught:
            turnstile.enter()
        assert "stopped" not in str(caught.value)
    turn = turnstile.enter()
    assert holder(tmp_path / "write.lock") == os.getpid()
    turnstile.leave(turn)
    turnstile.close()


def test_those_who_queue_behind_one_that_waits_are_told_who_holds_the_store(
    tmp_path: Path,
) -> None:
    """The one that waits holds `next`, but it is not the one to blame."""
    said: list[str] = []
    patient, hasty = Turnstile(tmp_path, wait_s=60), Turnstile(tmp_path, wait_s=0.2)

    def wait() -> None:
        turn = patient.enter()
        said.append("came")
        patient.leave(turn)

    with held(tmp_path, "stop") as process:
        waiting = threading.Thread(target=wait)
        waiting.start()
        gate = Gate(tmp_path / "next.lock")
        while (turn := gate.enter(0)) is not None:  # until the patient one has it
            gate.leave(turn)
        with pytest.raises(Unavailable, match=f"process {process.pid} "):
            hasty.enter()
        os.kill(process.pid, signal.SIGCONT)
        waiting.join(60)
    assert said == ["came"]
    hasty.leave(hasty.enter())
    for turnstile in (patient, hasty, gate):
        turnstile.close()


def test_a_turn_that_comes_after_its_waiter_gave_up_goes_to_the_next(tmp_path: Path) -> None:
    path = tmp_path / "one.lock"
    first, second = Gate(path), Gate(path)
    turn = first.enter(0)
    assert turn is not None
    assert second.enter(0) is None
    given_up = [each for each in threading.enumerate() if each.name == "holdfast-turnstile"]
    first.leave(turn)
    for thread in given_up:
        thread.join(20)
    again = second.enter(0)
    assert again is not None
    second.leave(again)
    first.close()
    second.close()


def test_ctrl_c_while_waiting_leaves_the_lock_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Impatient(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            raise KeyboardInterrupt

    begin = _Wait.__init__

    def impatient(self: _Wait, path: Path) -> None:
        begin(self, path)
        self._came = Impatient()

    monkeypatch.setattr(_Wait, "__init__", impatient)
    first, second = Gate(tmp_path / "one.lock"), Gate(tmp_path / "one.lock")
    turn = first.enter(0)
    assert turn is not None
    with pytest.raises(KeyboardInterrupt):
        second.enter(1e9)
    waiting = [each for each in threading.enumerate() if each.name == "holdfast-turnstile"]
    first.leave(turn)
    for thread in waiting:
        thread.join(20)
    turn = first.enter(0)
    assert turn is not None
    first.leave(turn)
    first.close()
    second.close()


def test_nobody_is_accused_when_the_kernel_names_nobody(tmp_path: Path) -> None:
    free = tmp_path / "free.lock"
    free.touch()
    assert holder(free) == 0
    assert "another process" in str(held_by(0, 1.0))
