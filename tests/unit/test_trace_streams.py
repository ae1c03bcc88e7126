"""Tool output: Python, children and C, isolated, bounded, kept on failure, passed through."""

import asyncio
import contextlib
import io
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextvars import copy_context
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from holdfast.trace import streams
from holdfast.trace.recorder import ToolCall
from holdfast.trace.redact import MARGIN, Redactor
from holdfast.trace.streams import STREAM_BYTES_MAX, Buffer, Kept
from trace_samples import SECRETS
from trace_world import World

REDACTOR = Redactor()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    found = World(tmp_path / "t.db")
    yield found
    found.close()


def tool(world: World, name: str = "t", *, descriptors: bool = False) -> ToolCall:
    return ToolCall(world.recorder, name, {}, descriptors=descriptors, session_id="")


def outputs(world: World) -> dict[str, dict[str, Any]]:
    return {event.payload["tool"]: dict(event.payload) for event in world.events("tool_output")}


def test_prints_and_children_land_in_the_event_and_still_come_out(
    world: World, capfd: pytest.CaptureFixture[str]
) -> None:
    with tool(world):
        print("from python")
        sys.stderr.write("complaint\n")
        sys.stdout.buffer.write(b"bytes\n")
        sys.stdout.flush()
        subprocess.run(["sh", "-c", "echo child; echo bad >&2"], check=True)
    found = outputs(world)["t"]
    assert found["stdout"] == "from python\nbytes\nchild\n"
    assert found["stderr"] == "complaint\nbad\n"
    assert found["exit_code"] == 0
    out, err = capfd.readouterr()
    assert sorted(out.split()) == ["bytes", "child", "from", "python"]
    assert sorted(err.split()) == ["bad", "complaint"]


def test_writes_below_python_are_kept_with_descriptors(
    world: World, capfd: pytest.CaptureFixture[str]
) -> None:
    with tool(world, descriptors=True):
        os.write(1, b"two\n")
        os.system("echo three; echo bad >&2")
        print("python too")
    found = outputs(world)["t"]
    assert sorted(found["stdout"].splitlines()) == ["python too", "three", "two"]
    assert found["stderr"] == "bad\n"
    out, err = capfd.readouterr()
    assert sorted(out.splitlines()) == ["python too", "three", "two"]
    assert err == "bad\n"
    os.write(1, b"after\n")
    assert capfd.readouterr().out == "after\n"


@pytest.mark.parametrize("descriptors", [False, True])
def test_tools_in_parallel_threads_never_see_each_other(world: World, descriptors: bool) -> None:
    names = [f"tool{number}" for number in range(4)]
    ready = threading.Barrier(len(names))

    def work(name: str) -> None:
        ready.wait()
        with tool(world, name, descriptors=descriptors):
            for _ in range(20):
                sys.stdout.write(f"{name}\n")
                if descriptors:
                    os.write(1, f"{name}\n".encode())
            subprocess.run(["sh", "-c", f"echo {name}; echo {name} >&2"], check=True)

    threads = [threading.Thread(target=copy_context().run, args=(work, name)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = outputs(world)
    for name in names:
        lines = found[name]["stdout"].split()
        assert set(lines) == {name}
        assert len(lines) == (41 if descriptors else 21)
        assert found[name]["stderr"] == f"{name}\n"


def test_tools_in_parallel_tasks_never_see_each_other(world: World) -> None:
    async def work(name: str) -> None:
        with tool(world, name):
            for _ in range(5):
                print(name)
                await asyncio.sleep(0)
            process = await asyncio.create_subprocess_exec("sh", "-c", f"echo child of {name}")
            await process.wait()

    async def both() -> None:
        await asyncio.gather(work("a"), work("b"))

    asyncio.run(both())
    found = outputs(world)
    assert found["a"]["stdout"] == "a\n" * 5 + "child of a\n"
    assert found["b"]["stdout"] == "b\n" * 5 + "child of b\n"


def test_code_outside_a_descriptor_tool_writes_past_it(
    world: World, capfd: pytest.CaptureFixture[str]
) -> None:
    inside, outside = threading.Event(), threading.Event()

    def other() -> None:
        inside.wait()
        print("not the tool's")
        sys.stdout.buffer.write(b"nor these bytes\n")
        subprocess.run(["echo", "nor this child"], check=True)
        outside.set()

    thread = threading.Thread(target=other)
    thread.start()
    with tool(world, descriptors=True):
        inside.set()
        outside.wait()
        print("the tool's")
    thread.join()
    assert outputs(world)["t"]["stdout"] == "the tool's\n"
    out = capfd.readouterr().out
    for text in ("not the tool's\n", "nor these bytes\n", "nor this child\n", "the tool's\n"):
        assert text in out


def test_a_second_descriptor_tool_in_the_same_thread_does_not_wait_for_itself(
    world: World,
) -> None:
    with tool(world, "outer", descriptors=True):
        print("outer")
        with tool(world, "inner", descriptors=True):
            print("inner")
        print("outer again")
    found = outputs(world)
    assert found["inner"]["stdout"] == "inner\n"
    assert found["outer"]["stdout"] == "outer\nouter again\n"


def test_output_survives_the_exception(world: World) -> None:
    def breaks() -> None:
        print("before it broke")
        raise ValueError("broke")

    with pytest.raises(ValueError, match="broke"), tool(world):
        breaks()
    found = outputs(world)["t"]
    assert found["stdout"] == "before it broke\n"
    assert found["error"] == {"type": "ValueError", "msg": "broke"}
    assert [event.payload["origin"] for event in world.events("failure")] == ["tool"]


def test_output_and_signal_of_a_killed_child_are_kept(world: World) -> None:
    with tool(world):
        subprocess.run(["sh", "-c", "echo last words; kill -9 $$"], check=False)
    found = outputs(world)["t"]
    assert found["stdout"] == "last words\n"
    assert found["signal"] == 9
    assert "exit_code" not in found


def test_a_program_may_say_the_exit_code_itself(world: World) -> None:
    with tool(world) as call:
        call.exit_code = 3
    assert outputs(world)["t"]["exit_code"] == 3


def test_streams_a_program_sets_itself_are_left_alone(world: World) -> None:
    with tool(world):
        with contextlib.redirect_stdout(io.StringIO()) as own:
            print("for the program")
        piped = subprocess.run(["echo", "piped"], capture_output=True, check=True)
        merged = subprocess.Popen(
            ["sh", "-c", "echo a; echo b >&2"], -1, None, None, None, subprocess.STDOUT
        )
        merged.wait()
    assert own.getvalue() == "for the program\n"
    assert piped.stdout == b"piped\n"
    assert outputs(world)["t"]["stdout"] == "a\nb\n"


def test_a_child_that_outlives_its_tool_keeps_a_working_stream(
    world: World, capfd: pytest.CaptureFixture[str]
) -> None:
    with tool(world):
        child = subprocess.Popen(
            ["sh", "-c", "echo early; read line; echo late $line"], stdin=subprocess.PIPE
        )
        first = streams._active.get()
        assert first is not None
        while not first.buffers[1].keep(REDACTOR).text:
            threading.Event().wait(0.005)
    assert child.stdin is not None
    child.stdin.write(b"word\n")
    child.stdin.close()
    assert child.wait() == 0
    assert outputs(world)["t"]["stdout"] == "early\n"
    out = ""
    while "late word" not in out:
        out += capfd.readouterr().out
    assert out == "early\nlate word\n"


def test_the_real_streams_are_back_when_the_last_tool_ends(world: World) -> None:
    before, popen = (sys.stdout, sys.stderr), subprocess.Popen.__init__
    with tool(world):
        assert sys.stdout is not before[0]
        assert sys.stdout.encoding == before[0].encoding
        assert sys.stdout.errors == before[0].errors
        assert sys.stdout.isatty() == before[0].isatty()
        assert sys.stdout.writable()
        assert not sys.stdout.closed
        assert sys.stdout.buffer.writable()
        sys.stdout.close()
        sys.stdout.writelines(["a", "b\n"])
        assert sys.stdout.line_buffering in (True, False)
        with contextlib.suppress(io.UnsupportedOperation):
            assert sys.stdout.fileno() >= 0
        with tool(world, "inner"):
            print("inner")
    assert (sys.stdout, sys.stderr) == before
    assert subprocess.Popen.__init__ is popen
    assert outputs(world)["t"]["stdout"] == "ab\n"


def test_a_stream_the_tool_replaced_stays_replaced(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = io.StringIO()
    with tool(world):
        monkeypatch.setattr(sys, "stdout", own)
    assert sys.stdout is own


def test_stopping_twice_or_in_another_context_is_harmless(world: World) -> None:
    call = tool(world)
    copy_context().run(call.streams.start)
    call.streams.stop()
    call.streams.stop()
    assert streams._active.get() is None


@pytest.mark.parametrize("descriptors", [False, True])
def test_a_tool_runs_even_when_no_pipe_can_be_made(
    world: World, monkeypatch: pytest.MonkeyPatch, descriptors: bool
) -> None:
    def none_left() -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(streams.selectors, "DefaultSelector", none_left)
    before = len(os.listdir("/proc/self/fd"))
    with tool(world, descriptors=descriptors):
        print("said")
        subprocess.run(["true"], check=True)
    assert outputs(world)["t"]["stdout"] == "said\n"
    assert len(os.listdir("/proc/self/fd")) <= before + 4
    monkeypatch.undo()
    with tool(world, "again", descriptors=True):
        os.write(1, b"works\n")
    assert outputs(world)["again"]["stdout"] == "works\n"


def test_no_thread_left_closes_every_pipe(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_thread(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with tool(world):
        before = len(os.listdir("/proc/self/fd"))
        monkeypatch.setattr(threading.Thread, "start", no_thread)
        subprocess.run(["true"], check=True)
        monkeypatch.undo()
        assert len(os.listdir("/proc/self/fd")) <= before + 2


def test_an_interrupt_while_waiting_for_another_tool_leaves_nothing_behind(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupted:
        def acquire(self) -> None:
            raise KeyboardInterrupt

    before = sys.stdout
    monkeypatch.setattr(streams._PROCESS, "_owning", Interrupted())
    with pytest.raises(KeyboardInterrupt):
        tool(world, descriptors=True).__enter__()
    assert sys.stdout is before
    assert streams._active.get() is None


def kept(data: bytes, redactor: Redactor = REDACTOR, chunk: int = 1 << 20) -> Kept:
    buffer = Buffer()
    for start in range(0, len(data), chunk):
        buffer.add(data[start : start + chunk])
    return buffer.keep(redactor)


def test_a_short_stream_is_whole_and_says_nothing_about_its_size() -> None:
    assert kept(b"a" * STREAM_BYTES_MAX) == Kept("a" * STREAM_BYTES_MAX)
    assert kept(b"\xff\xfe")[0] == "\ufffd\ufffd"


@pytest.mark.parametrize("size", [STREAM_BYTES_MAX + 1, 60_000, 110_000, 2_000_000])
@pytest.mark.parametrize("unit", [b"0123456789", "é€😀".encode()])
def test_a_long_stream_keeps_head_and_tail_in_10_kb_with_size_and_hash(
    size: int, unit: bytes
) -> None:
    data = (b"HEAD" + unit * (size // len(unit) + 1))[: size - 4] + b"TAIL"
    found = kept(data, chunk=7777)
    assert len(found.text.encode()) <= STREAM_BYTES_MAX
    assert found.text.startswith("HEAD")
    assert found.text.endswith("TAIL")
    assert "\ufffd" not in found.text[:100]
    assert found.size == size
    assert found.sha256 == sha256(data).hexdigest()


def test_memory_is_bounded_whatever_is_written() -> None:
    buffer = Buffer()
    for _ in range(100):
        buffer.add(b"x" * 100_000)
    assert len(buffer._head) + len(buffer._tail) < 4 * (STREAM_BYTES_MAX + 2 * MARGIN)
    assert buffer.keep(REDACTOR).size == 10_000_000


@pytest.mark.parametrize("at", [100, 3000, 3400, 5000, 51_190, 51_300, 100_000, 199_000, 199_900])
def test_a_secret_anywhere_in_a_long_stream_is_never_half_kept(at: int) -> None:
    secret = SECRETS["anthropic_key"]
    body = (b"word " * 40_000)[:200_000]
    found = kept(body[:at] + b" " + secret.encode() + b" " + body[at:])
    assert not any(secret[i : i + 12] in found.text for i in range(len(secret) - 12))


def test_a_stream_that_held_a_secret_has_no_hash() -> None:
    found = kept(SECRETS["anthropic_key"].encode() + b"\n" + b"x" * 20_000)
    assert found.size is not None
    assert found.sha256 is None
    assert "[redacted:anthropic_key]" in found.text
