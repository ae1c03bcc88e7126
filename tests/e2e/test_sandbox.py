"""The wall, with real bubblewrap: what a command can see, touch and outlive."""

import asyncio
import os
import socket
import sys
import textwrap
import threading
import tracemalloc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from holdfast.adapters.locks import held, lock_path, try_lock
from holdfast.adapters.sandbox import (
    REMEDY,
    Bubblewrap,
    Probe,
    open_sandbox,
    probe,
)
from holdfast.adapters.tools import builtin_tools, check_arguments
from holdfast.config import Settings
from holdfast.domain.ports import CommandResult
from holdfast.errors import Refused, Unavailable

SECRET = "sk-" + "fedcba9876543210" * 3
LONG_S = 30.0


@pytest.fixture
def root(tmp_path: Path) -> Path:
    workspace = tmp_path / "ws"
    workspace.mkdir()
    return workspace


def box(**more: Any) -> Bubblewrap:
    return open_sandbox(redact=lambda text: text.replace(SECRET, "[redacted:key]"), **more)


def run(root: Path, command: Sequence[str] | str, **more: Any) -> CommandResult:
    sandbox = more.pop("sandbox", None) or box()
    return asyncio.run(sandbox.run(command, root=root, timeout_s=LONG_S, **more))


def alive(marker: str) -> list[int]:
    """Processes of this machine whose command line holds `marker`."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            line = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if marker.encode() in line and int(entry.name) != os.getpid():
            found.append(int(entry.name))
    return found


async def until_started(root: Path) -> None:
    for _ in range(6000):
        if (root / "started").exists():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it never started")


# --- what runs ------------------------------------------------------------------------------------


def test_a_pipeline_is_one_unchanged_argument_and_a_list_is_run_as_it_is(root: Path) -> None:
    assert run(root, "printf 'b\\na\\n' | sort | tr -d '\\n'; echo \" $(pwd)\"").stdout == (
        "ab /workspace\n"
    )
    assert run(root, ["printf", "%s|", "a b", "$HOME", ";", "-x"]).stdout == "a b|$HOME|;|-x|"


def test_exit_codes_and_signals_are_told(root: Path) -> None:
    assert run(root, "exit 3").exit_code == 3
    killed = run(root, "kill -9 $$")
    assert (killed.exit_code, killed.signal, killed.timed_out) == (None, 9, False)


def test_input_is_empty_and_there_is_no_terminal(root: Path) -> None:
    assert run(root, "cat; tty; true").stdout == "not a tty\n"


@pytest.mark.parametrize(
    ("command", "missing"),
    [
        ("no-such-program --x", True),
        ("A=1 B=2 no-such-program", True),
        (["no-such-program"], True),
        ("./absent.sh", True),
        ("exit 127", False),
        (["sh", "-c", "exit 127"], False),
        ("cd . && no-such-program", False),
        ("$(no-such-program)", False),
        ("'unbalanced", False),
    ],
)
def test_a_missing_program_is_told_from_a_failing_one(
    root: Path, command: Any, missing: bool
) -> None:
    result = run(root, command)
    assert result.missing_program is missing
    assert (result.exit_code is None) is missing
    assert missing or result.exit_code != 0


def test_output_is_redacted_counted_and_cut_in_the_middle(root: Path) -> None:
    tracemalloc.start()
    result = run(root, f"yes {SECRET} | head -c 50000000; echo {SECRET} >&2")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert result.stdout_bytes == 50_000_000
    assert "bytes cut" in result.stdout
    assert "fedcba98" not in result.stdout[:-60]
    assert result.stderr == "[redacted:key]\n"
    assert peak < 4_000_000


def test_the_output_limit_is_a_setting(root: Path) -> None:
    wide = box(output_bytes_max=200_000)
    assert "cut" not in run(root, "head -c 100000 /dev/zero | tr '\\0' x", sandbox=wide).stdout


def test_output_that_is_no_text_is_still_valid_text(root: Path) -> None:
    assert run(root, "printf 'a\\377b'").stdout == "a\ufffdb"


# --- what it cannot see ---------------------------------------------------------------------------


def test_no_variable_of_ours_reaches_a_command_not_even_through_proc(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "leak-me")
    seen = run(root, "env; cat /proc/[0-9]*/environ | tr '\\0' '\\n'").stdout
    assert "leak-me" not in seen
    assert "OPENAI" not in seen
    assert "HOME=/home/holdfast" in seen
    names = {line.partition("=")[0] for line in run(root, "env").stdout.splitlines()}
    expected = "HOME LANG LOGNAME PATH PWD PYTHONDONTWRITEBYTECODE SHELL TERM TMPDIR USER"
    assert names == set(expected.split())


def test_there_is_no_home_no_host_file_and_no_other_process(root: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("outside")
    result = run(
        root,
        f"ls -A ~; cat {tmp_path}/outside ../ws/../outside /etc/shadow {Path.home()}/.bashrc;"
        " ls -d /proc/[0-9]* | wc -l; cat /etc/passwd; id -un; hostname",
    )
    assert "outside" not in result.stdout
    assert result.stderr.count("No such file") == 4
    lines = result.stdout.splitlines()
    assert int(lines[0]) < 8
    assert lines[1] == "holdfast:x:1000:1000::/home/holdfast:/bin/sh"
    assert lines[3:] == ["holdfast", "holdfast"]


def test_a_link_out_of_the_workspace_leads_nowhere(root: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_text("outside")
    (root / "link").symlink_to(tmp_path / "outside")
    result = run(root, "cat link/secret || echo x > link/made")
    assert result.exit_code != 0
    assert os.listdir(tmp_path / "outside") == ["secret"]


def test_only_the_workspace_and_scratch_space_can_be_written(root: Path) -> None:
    places = (
        "/usr/x /etc/x /x /home/x /bin/x /etc/passwd /proc/sys/kernel/core_pattern"
        " /proc/sys/kernel/hostname /proc/sysrq-trigger /dev/sda"
    )
    script = f"for p in {places}; do (: >> $p) 2>/dev/null && echo wrote $p; done; true"
    assert run(root, script).stdout == "wrote /dev/sda\n"
    assert run(root, "echo a > file; echo a > /tmp/t; echo a > ~/h").exit_code == 0
    assert (root / "file").read_text() == "a\n"
    assert run(root, "ls -A /tmp ~").stdout == "/home/holdfast:\n\n/tmp:\n"


def test_devices_are_harmless_and_none_can_be_made(root: Path) -> None:
    result = run(root, "ls /dev; mknod disk b 8 0")
    assert result.exit_code != 0
    harmless = "console core fd full null ptmx pts random shm stderr stdin stdout tty urandom zero"
    assert set(result.stdout.split()) <= set(harmless.split())


def test_there_is_no_capability_and_no_new_namespace(root: Path) -> None:
    assert "CapBnd:\t0000000000000000" in run(root, "cat /proc/self/status").stdout
    assert run(root, "unshare --user true").exit_code != 0


@pytest.fixture
def listener() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_the_network_is_ours_only_when_asked_for(root: Path, listener: int) -> None:
    code = f"import socket; socket.create_connection(('127.0.0.1', {listener}), 2)"
    assert "refused" in run(root, ["/usr/bin/python3", "-c", code]).stderr
    assert run(root, ["/usr/bin/python3", "-c", code], network=True).exit_code == 0


def test_a_command_reaches_its_own_loopback(root: Path) -> None:
    code = (
        "import socket; s = socket.create_server(('localhost', 0));"
        "socket.create_connection(s.getsockname(), 2)"
    )
    assert run(root, ["/usr/bin/python3", "-c", code]).exit_code == 0


def test_abstract_sockets_of_the_machine_are_not_reachable(root: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("\0holdfast-test")
        server.listen()
        code = "import socket; socket.socket(socket.AF_UNIX).connect('\\0holdfast-test')"
        assert run(root, ["/usr/bin/python3", "-c", code]).exit_code != 0


def test_programs_of_a_virtual_environment_on_path_work(root: Path) -> None:
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    sandbox = box(environ={"PATH": path, "HOME": str(Path.home())})
    result = run(root, "python -c 'import pytest, sys; print(sys.prefix)'", sandbox=sandbox)
    assert result.stdout.strip() == sys.prefix
    assert run(root, f"touch {sys.prefix}/x", sandbox=sandbox).exit_code != 0


def test_holdfasts_own_directory_is_not_there_even_inside_a_visible_one(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    own = tools / ".holdfast"
    (own / "tasks/ws").mkdir(parents=True)
    (own / "store").write_text("store")
    (tools / "hello").write_text("#!/bin/sh\necho hello\n")
    (tools / "hello").chmod(0o755)
    environ = {"PATH": f"{tools}:/usr/bin", "HOME": str(tmp_path / "home")}
    sandbox = box(environ=environ, hidden=[own])
    result = run(own / "tasks/ws", f"hello; ls -A {own}; touch {own}/x", sandbox=sandbox)
    assert result.stdout == "hello\n"
    assert "Read-only" in result.stderr
    described = sandbox.describe()
    rows = {row["path"]: row for row in described["readable"]}
    assert rows[str(tools)]["masked"] == [str(own)]
    assert rows["/usr"]["reason"]
    with pytest.raises(Refused):
        run(tools, "true", sandbox=sandbox)


# --- ends -----------------------------------------------------------------------------------------


def test_at_the_limit_the_whole_tree_is_dead_within_a_second(root: Path) -> None:
    tree = "setsid sleep 3131 & (trap '' TERM INT; nohup sleep 3131) & exec sleep 3131 >/dev/null"
    soonest = 60_000
    for _ in range(3):  # a busy machine may be late once
        result = asyncio.run(box().run(tree, root=root, timeout_s=0.5))
        assert result.timed_out
        assert (result.exit_code, result.signal) == (None, 9)
        soonest = min(soonest, result.duration_ms)
        if soonest < 1500:
            break
    assert soonest < 1500
    assert alive("3131") == []


def test_a_background_process_ends_with_its_command(root: Path) -> None:
    result = run(root, "setsid sleep 3232 >/dev/null 2>&1 & echo started")
    assert result.stdout == "started\n"
    assert alive("3232") == []


def test_what_was_printed_before_the_limit_is_kept(root: Path) -> None:
    result = asyncio.run(box().run("echo early; sleep 3333", root=root, timeout_s=0.3))
    assert result.stdout == "early\n"


def test_cancelling_kills_the_whole_tree(root: Path) -> None:
    async def cancelled() -> None:
        task = asyncio.create_task(
            box().run("touch started; sleep 3434 & sleep 3434", root=root, timeout_s=LONG_S)
        )
        await until_started(root)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert alive("3434") == []

    asyncio.run(cancelled())
    assert try_lock(root) is not None


def test_killing_holdfast_kills_its_commands_and_frees_the_workspace(root: Path) -> None:
    script = f"""
        import asyncio, pathlib
        from holdfast.adapters.sandbox import open_sandbox
        sandbox = open_sandbox(redact=str)
        root = pathlib.Path({str(root)!r})
        asyncio.run(sandbox.run("touch started; exec sleep 3535", root=root, timeout_s=60))
    """

    async def killed() -> None:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", textwrap.dedent(script)
        )
        await until_started(root)
        assert try_lock(root) is None
        process.kill()
        await process.wait()

    asyncio.run(killed())
    with held(root, wait_s=10):
        assert alive("3535") == []


def test_one_command_at_a_time_works_in_a_workspace(root: Path) -> None:
    async def both() -> list[CommandResult]:
        script = "mkdir busy || exit 9; for i in 1 2 3 4 5; do ls / >/dev/null; done; rmdir busy"
        return await asyncio.gather(
            *(box().run(script, root=root, timeout_s=LONG_S) for _ in range(4))
        )

    assert [result.exit_code for result in asyncio.run(both())] == [0, 0, 0, 0]


def test_a_workspace_that_stays_in_use_is_unavailable(root: Path) -> None:
    with held(root):
        with pytest.raises(Unavailable, match="still works"):
            asyncio.run(box().run("true", root=root, timeout_s=0.05))
        with pytest.raises(Unavailable, match="still in use"), held(root, wait_s=0.05):
            pass
    assert lock_path(root).stat().st_size == 0


def test_a_waiting_holder_gets_the_lock_when_it_is_free(root: Path) -> None:
    order: list[str] = []

    def second() -> None:
        with held(root):
            order.append("second")

    with held(root):
        thread = threading.Thread(target=second)
        thread.start()
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["", "  ", [], [""], "a\0b", ["a", "b\0"]])
def test_a_command_that_is_none_is_refused(root: Path, command: Any) -> None:
    with pytest.raises(Refused):
        run(root, command)


def test_a_root_that_is_no_directory_is_refused(root: Path, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(root)
    for bad in (Path("relative"), tmp_path / "none", tmp_path / "alias"):
        with pytest.raises(Refused):
            run(bad, "true")


def test_without_a_wall_nothing_runs_and_the_remedy_is_told(tmp_path: Path) -> None:
    absent = probe("no-such-bwrap")
    assert absent.wall == "none"
    with pytest.raises(Unavailable) as caught:
        box(probed=absent)
    assert caught.value.hint == REMEDY
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: no namespaces' >&2\nexit 1\n")
    broken.chmod(0o755)
    assert "no namespaces" in probe(str(broken)).reason
    broken.write_text("no program at all")
    assert probe(str(broken)).wall == "none"


def test_this_machine_has_a_wall() -> None:
    assert probe().wall == "bubblewrap"


def test_a_wall_that_breaks_later_is_unavailable_and_never_a_result(
    root: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: no namespaces left' >&2\nexit 1\n")
    broken.chmod(0o755)
    found = Probe(wall="bubblewrap", reason="", program=str(broken))
    with pytest.raises(Unavailable, match="no namespaces left"):
        run(root, "true", sandbox=box(probed=found))
    gone = Probe(wall="bubblewrap", reason="", program=str(tmp_path / "gone"))
    with pytest.raises(Unavailable):
        run(root, "true", sandbox=box(probed=gone))


def test_a_command_that_talks_like_the_wall_is_still_a_result(root: Path) -> None:
    result = run(root, "echo 'bwrap: lies' >&2; exit 1")
    assert result.exit_code == 1
    assert result.wall == "bubblewrap"


# --- the tool that runs commands ------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """As much of a workspace as `run_command` needs."""

    root: Path
    sandbox: Bubblewrap


@pytest.mark.parametrize(
    ("arguments", "code", "output"),
    [
        ({"command": "echo out; echo err >&2"}, "", "out\n[stderr]\nerr"),
        ({"command": ["true"]}, "", "[no output]"),
        (
            {"command": "echo so far; exit 3"},
            "COMMAND_FAILED",
            "so far\nCOMMAND_FAILED: the command",
        ),
        ({"command": "kill -15 $$"}, "COMMAND_FAILED", "by signal 15"),
        ({"command": ["nope"]}, "PROGRAM_NOT_FOUND", "no such program"),
        ({"command": "echo x; sleep 77", "timeout_ms": 200}, "TIMEOUT", "x\nTIMEOUT: "),
        ({"command": "sleep 77"}, "TIMEOUT", "after 500 ms"),
        ({"command": "sleep 77", "timeout_ms": 99_000}, "TIMEOUT", "after 500 ms"),
        ({"command": ""}, "COMMAND_BLOCKED", "empty"),
        ({"command": f"echo {SECRET}"}, "", "[redacted:key]"),
    ],
)
def test_the_command_tool_answers_in_codes(
    root: Path, arguments: dict[str, Any], code: str, output: str
) -> None:
    tool = builtin_tools(redact=str, settings=Settings(command_s=0.5))["run_command"]
    assert check_arguments(tool.spec, arguments) == []
    seen = asyncio.run(tool.call(arguments, Place(root, box())))
    assert (seen.error.code if seen.error else "") == code
    assert output in seen.output
    again = asyncio.run(tool.call(arguments, Place(root, box())))
    assert again == seen


def test_cancelling_a_write_waits_for_its_thread(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from holdfast.adapters.tools import files

    begun, go = threading.Event(), threading.Event()
    real = files.write_bytes

    def slow(*arguments: Any) -> None:
        begun.set()
        go.wait(30)
        real(*arguments)

    monkeypatch.setattr(files, "write_bytes", slow)
    tool = builtin_tools(redact=str)["write_file"]

    async def cancelled() -> None:
        call = tool.call({"path": "f", "content": "x"}, Place(root, box()))
        task = asyncio.create_task(call)
        await asyncio.to_thread(begun.wait, 30)
        task.cancel()
        asyncio.get_running_loop().call_later(0.02, go.set)
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (root / "f").read_text() == "x"

    asyncio.run(cancelled())
