"""The wall around commands: bubblewrap, or a refusal. Nothing ever runs without a wall.

Owns the shape of the sandbox (see `_arguments`), starting, capturing and killing of one command.
Does not own which directories of this machine are visible (`visible`), nor what is cut from output
(`capture`). There is no second-best wall: Landlock cannot hide the file system's names, move the
workspace to one constant path, or end a whole tree of processes, so output would not replay and a
command could outlive its limit. Without bubblewrap a command is refused, with the remedy.

Invariants:
- bwrap itself starts with an empty environment, since `/proc/1/environ` shows it to the command.
- A command sees no network unless asked, no secret, no home, no Holdfast directory.
- `run` returns, or is cancelled, only after every process of the command is dead: the first process
  of its pid namespace holds the workspace's lock and is recorded in it, and `run` waits for both.
- One command at a time works in one workspace.
- Started from a thread that lives on (the event loop's): `--die-with-parent` follows that thread.
"""

from __future__ import annotations

import asyncio
import glob
import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from holdfast.adapters.capture import Capture, Redact
from holdfast.adapters.locks import end_orphans, open_record, try_lock, wait_until_free
from holdfast.adapters.visible import View, view
from holdfast.config import DEFAULTS
from holdfast.domain.ports import CommandResult, Wall
from holdfast.errors import Refused, Unavailable
from holdfast.frozen import frozen

WORKSPACE = "/workspace"
HOME = "/home/holdfast"
REMEDY = "apt-get install bubblewrap"

_UID = "1000"
_NOT_FOUND = 127
_CHUNK = 64 * 1024
_PROBE_S = 5.0
_LOCK_POLL_S = 0.005
_PIPES_S = 1.0
_TMP_BYTES = 1 << 30
_HOME_BYTES = 256 << 20

_FILES = {
    "/etc/passwd": f"holdfast:x:{_UID}:{_UID}::{HOME}:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n",
    "/etc/group": f"holdfast:x:{_UID}:\nnogroup:x:65534:\n",
    "/etc/hosts": "127.0.0.1 localhost holdfast\n::1 localhost\n",
}
# Debian's /usr points here: `awk` or `java` are links through alternatives, libraries outside the
# default directories are found by the cache, Java keeps its lib/security in /etc, and TLS clients
# refuse to start without certificates. No localtime: clocks read UTC on every machine.
_ETC_ALWAYS = ("/etc/alternatives", "/etc/ld.so.cache", "/etc/ssl/certs", "/etc/java-*-openjdk")
_ETC_NETWORK = ("/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/services")
_MERGED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")


@frozen
class Probe:
    """Which wall this machine has, why, and the program that builds it."""

    wall: Wall
    reason: str
    program: str = ""


def probe(program: str = "bwrap") -> Probe:
    """What `begin_probe` finds, waited for."""
    return begin_probe(program)()


def begin_probe(program: str = "bwrap") -> Callable[[], Probe]:
    """Begin to build a wall once around `/bin/true`, on the thread that will start commands.

    Returns the question how it ended, which must be asked, and waits: about 10 ms from now, at most
    5 s. Neither raises.
    """
    found = shutil.which(program)
    if not found:
        return lambda: Probe(wall="none", reason=f"{program} is not installed")
    command = [found, *_arguments(View(directories=(), path="/usr/bin"), {}, False)]
    try:
        process = subprocess.Popen(  # noqa: S603  a constant command
            [*command, "--", "/bin/sh", "-c", "true"],
            env={},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
    except OSError as error:
        broken = Probe(wall="none", reason=f"{program} does not run here: {error}")
        return lambda: broken
    return cache(partial(_probed, process, found))


def _probed(process: subprocess.Popen[bytes], program: str) -> Probe:
    with process:
        try:
            _, said = process.communicate(timeout=_PROBE_S)
        except subprocess.TimeoutExpired as error:
            process.kill()
            return Probe(wall="none", reason=f"{program} does not run here: {error}")
    if process.returncode != 0:
        why = said.decode(errors="replace").strip()
        return Probe(wall="none", reason=f"{program} cannot build a wall here: {why}")
    return Probe(wall="bubblewrap", reason="all namespaces, no capabilities", program=program)


def open_sandbox(
    *,
    redact: Redact,
    hidden: Sequence[Path] = (),
    output_bytes_max: int = DEFAULTS.output_bytes_max,
    environ: Mapping[str, str] = os.environ,
    probed: Probe | None = None,
) -> Bubblewrap:
    """The wall of this machine. Raises Unavailable with the remedy when there is none.

    `hidden` is Holdfast's home; `output_bytes_max` is per stream. Only PATH and HOME are read from
    `environ`, to know what to show; no variable of it reaches a command.
    """
    found = probed or probe()
    if found.wall != "bubblewrap":
        raise Unavailable(
            f"commands have no wall to run behind: {found.reason}", hint=REMEDY, code="no_wall"
        )
    user_home = Path(environ.get("HOME") or "/root")
    seen = view(environ.get("PATH", ""), user_home=user_home, hidden=hidden)
    return Bubblewrap(found, seen, redact, hidden, output_bytes_max)


class Bubblewrap:
    """A `Sandbox` of Linux namespaces. Stateless; safe to share between tasks."""

    def __init__(
        self,
        probed: Probe,
        seen: View,
        redact: Redact,
        hidden: Sequence[Path],
        output_bytes_max: int,
    ) -> None:
        self._probe, self._view, self._redact = probed, seen, redact
        self._hidden, self._output_bytes_max = hidden, output_bytes_max

    @property
    def wall(self) -> Wall:
        return self._probe.wall

    async def run(
        self,
        command: Sequence[str] | str,
        *,
        root: Path,
        timeout_s: float,
        network: bool = False,
    ) -> CommandResult:
        """Run `command` in `root`, seen as `/workspace`. A command that fails is a result.

        A string is one unchanged argument of `/bin/sh -c`. `missing_program` means exit status 127
        and that the shell finds no program by the name of the command's first word. A status of
        128 + n is signal n, as shells and the sandbox's own first process report it. Raises Refused
        for an empty command or a NUL in it, Unavailable when the wall cannot be built.
        """
        words = _words(command)
        result = await self._run_once(words, root, timeout_s, network)
        if result.exit_code == 1 and result.stderr.startswith("bwrap: "):
            await self._check_wall(root, result.stderr)
        first = _first_word(command)
        if result.exit_code != _NOT_FOUND or not first:
            return result
        look = ["/bin/sh", "-c", 'command -v -- "$1"', "sh", first]
        found = await self._run_once(look, root, timeout_s)
        if found.exit_code != _NOT_FOUND:
            return result
        return replace(result, exit_code=None, missing_program=True)

    def describe(self) -> Mapping[str, Any]:
        """The wall, the constant places and every directory of this machine a command can read."""
        readable: list[dict[str, Any]] = [
            {"path": "/usr", "reason": "system programs and libraries"}
        ]
        readable += [{"path": path, "reason": "needed by /usr"} for path in _existing(_ETC_ALWAYS)]
        for row in self._view.directories:
            masked = {"masked": list(row.masked)} if row.masked else {}
            readable.append({"path": row.path, "reason": row.reason, **masked})
        return {
            "wall": self.wall,
            "reason": self._probe.reason,
            "program": self._probe.program,
            "network": "none unless a command is allowed it",
            "writable": [WORKSPACE, "/tmp", HOME],  # noqa: S108  inside the sandbox
            "readable": readable,
            "path": self._view.path,
            "left_out": [{"path": path, "reason": why} for path, why in self._view.left_out],
        }

    async def _check_wall(self, root: Path, said: str) -> None:
        """A command can print what bwrap prints: the wall is tried alone before it is blamed."""
        alone = await self._run_once(["/bin/sh", "-c", ":"], root, _PROBE_S)
        if alone.exit_code != 0:
            raise Unavailable(f"the wall cannot be built: {said.strip()}", hint=REMEDY)

    async def _run_once(
        self, words: Sequence[str], root: Path, timeout_s: float, network: bool = False
    ) -> CommandResult:
        self._check_root(root)
        started = time.monotonic()
        lock = await _lock(root, timeout_s)
        told = open_record(root)
        files: dict[str, int] = {}
        try:
            files = {path: _memory_file(path, text) for path, text in _FILES.items()}
            process = await asyncio.create_subprocess_exec(
                self._probe.program,
                *_arguments(self._view, files, network),
                *("--sync-fd", str(lock), "--info-fd", str(told)),
                *("--bind", str(root), WORKSPACE, "--chdir", WORKSPACE),
                *("--remount-ro", "/", "--", *words),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env={},
                cwd="/",
                pass_fds=(lock, told, *files.values()),
                start_new_session=True,
            )
        except OSError as error:
            raise Unavailable(f"the wall cannot be built: {error}", hint=REMEDY) from error
        finally:
            for descriptor in (lock, told, *files.values()):
                os.close(descriptor)
        streams = [Capture(self._output_bytes_max) for _ in range(2)]
        timed_out = await _watch(process, streams, timeout_s, root)
        return self._result(process.returncode, timed_out, streams, started)

    def _result(
        self, returncode: int | None, timed_out: bool, streams: Sequence[Capture], started: float
    ) -> CommandResult:
        code, number = _ending(returncode, timed_out)
        stdout, stderr = (stream.text(self._redact) for stream in streams)
        return CommandResult(
            exit_code=code,
            signal=number,
            timed_out=timed_out,
            missing_program=False,
            stdout=stdout,
            stderr=stderr,
            stdout_bytes=streams[0].size,
            stderr_bytes=streams[1].size,
            duration_ms=round((time.monotonic() - started) * 1000),
            wall=self.wall,
        )

    def _check_root(self, root: Path) -> None:
        if not root.is_absolute() or not root.is_dir() or root.is_symlink():
            raise Refused(f"{root} is no workspace directory")
        for place in self._hidden:
            if place.is_relative_to(root):
                raise Refused(f"{root} holds Holdfast's own directory {place}")


def _arguments(seen: View, files: Mapping[str, int], network: bool) -> list[str]:
    """The wall as bwrap's flags, in the order in which bwrap lays the mounts."""
    line = ["--unshare-all", "--unshare-user", "--uid", _UID, "--gid", _UID, "--disable-userns"]
    line += ["--share-net"] if network else []
    line += ["--die-with-parent", "--new-session", "--hostname", "holdfast", "--cap-drop", "ALL"]
    for name, value in _environment(seen).items():
        line += ["--setenv", name, value]
    line += ["--ro-bind", "/usr", "/usr"]
    for name in _MERGED:
        place = f"/{name}"
        if os.path.islink(place):
            line += ["--symlink", os.readlink(place), place]
        elif os.path.isdir(place):
            line += ["--ro-bind", place, place]
    # Read-only, since a Holdfast that runs as root owns what is global in it: /proc/sys/kernel.
    line += ["--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev"]
    line += ["--size", str(_TMP_BYTES), "--tmpfs", "/tmp"]  # noqa: S108  inside the sandbox
    line += ["--perms", "0755", "--size", str(_HOME_BYTES), "--tmpfs", HOME]
    for path in _existing((*_ETC_ALWAYS, *(_ETC_NETWORK if network else ()))):
        line += ["--ro-bind", path, path]
    for path, descriptor in files.items():
        line += ["--perms", "0444", "--ro-bind-data", str(descriptor), path]
    for row in seen.directories:
        line += ["--ro-bind", row.path, row.path]
        for masked in row.masked:
            line += ["--tmpfs", masked, "--remount-ro", masked]
    return line


def _environment(seen: View) -> dict[str, str]:
    return {
        "PATH": seen.path,
        "HOME": HOME,
        "USER": "holdfast",
        "LOGNAME": "holdfast",
        "SHELL": "/bin/sh",
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "TMPDIR": "/tmp",  # noqa: S108  inside the sandbox
        # Compiled files hold times, so trees that hold them would differ from run to run.
        "PYTHONDONTWRITEBYTECODE": "1",
    }


async def _lock(root: Path, timeout_s: float) -> int:
    deadline = time.monotonic() + timeout_s
    while (descriptor := try_lock(root)) is None:
        await asyncio.to_thread(end_orphans, root)
        if time.monotonic() > deadline:
            raise Unavailable(f"another command still works in {root}")
        await asyncio.sleep(_LOCK_POLL_S)
    return descriptor


async def _watch(
    process: asyncio.subprocess.Process,
    streams: Sequence[Capture],
    timeout_s: float,
    root: Path,
) -> bool:
    """Drain both pipes until the command ends or its time does; True when time ended it."""
    assert process.stdout is not None
    assert process.stderr is not None
    pipes = (process.stdout, process.stderr)
    drains = [
        asyncio.create_task(_drain(pipe, stream))
        for pipe, stream in zip(pipes, streams, strict=True)
    ]
    timed_out = False
    try:
        async with asyncio.timeout(timeout_s):
            await process.wait()
    except TimeoutError:
        timed_out = True
    finally:
        await _end(process, root)
        # Every writer is dead, so both pipes are at their end or about to say so.
        await asyncio.wait(drains, timeout=_PIPES_S)
        for drain in drains:
            drain.cancel()
    return timed_out


async def _end(process: asyncio.subprocess.Process, root: Path) -> None:
    """Kill what is left and wait until the last process of the command is dead."""
    if process.returncode is None:
        process.kill()
    # Together: asyncio waits for the pipes too, which an orphan of this kill would hold for ever.
    await asyncio.gather(process.wait(), asyncio.to_thread(wait_until_free, root))


async def _drain(pipe: asyncio.StreamReader, stream: Capture) -> None:
    while chunk := await pipe.read(_CHUNK):
        stream.add(chunk)


def _words(command: Sequence[str] | str) -> list[str]:
    words = [command] if isinstance(command, str) else list(command)
    if not words or not words[0].strip():
        raise Refused("the command is empty")
    if any("\0" in word for word in words):
        raise Refused("the command holds a NUL character")
    if isinstance(command, str):
        return ["/bin/sh", "-c", command]
    # The shell tells a missing program (127) from one that fails; the words pass it unread.
    return ["/bin/sh", "-c", 'exec "$@"', "sh", *words]


def _first_word(command: Sequence[str] | str) -> str:
    """The program a command names first; empty when only a shell could say."""
    if not isinstance(command, str):
        return command[0]
    try:
        words = shlex.split(command, comments=True)
    except ValueError:
        return ""
    names = [word for word in words if not word.partition("=")[0].isidentifier() or "=" not in word]
    return names[0] if names and not set(names[0]) & set("$`(){}|&;<>*?[") else ""


def _ending(returncode: int | None, timed_out: bool) -> tuple[int | None, int | None]:
    if timed_out:
        return None, int(signal.SIGKILL)
    if returncode is None or returncode < 0:
        return None, -(returncode or -int(signal.SIGKILL))
    if returncode - 128 in set(signal.Signals):
        return None, returncode - 128
    return returncode, None


def _memory_file(name: str, text: str) -> int:
    descriptor = os.memfd_create(name)
    os.write(descriptor, text.encode())
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _existing(patterns: Sequence[str]) -> list[str]:
    return [path for pattern in patterns for path in sorted(glob.glob(pattern))]
