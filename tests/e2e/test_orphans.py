"""A sandbox whose first process was killed while it started is ended by whoever needs its place.

bwrap's second process waits for the first, without end, to set up its users. `--userns-block-fd`
holds it there, so that the instant can be hit every time.
"""

import asyncio
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.support import WAIT_S
from holdfast.adapters.locks import end_orphans, held, lock_path, try_lock, wait_until_free
from holdfast.adapters.sandbox import open_sandbox


def children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(word) for word in text.split()]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "work"
    made.mkdir()
    return made


@pytest.fixture
def starting(root: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A bwrap that is held before its users are set up, and its waiting second process."""
    lock = try_lock(root)
    assert lock is not None
    info_out, info = os.pipe()
    block, go = os.pipe()
    flags = ["--unshare-all", "--unshare-user", "--ro-bind", "/", "/", "--sync-fd", str(lock)]
    flags += ["--info-fd", str(info), "--userns-block-fd", str(block)]
    process = subprocess.Popen(
        ["bwrap", *flags, "--bind", str(root), "/mnt", "true"], pass_fds=(lock, info, block)
    )
    os.close(lock)
    os.close(info)
    os.close(block)
    assert os.read(info_out, 4096)
    (second,) = children(process.pid)
    yield process, second
    os.close(go)
    os.close(info_out)
    process.kill()
    process.wait()


def test_an_orphan_is_ended_and_its_place_is_free(
    root: Path, starting: tuple[subprocess.Popen[bytes], int]
) -> None:
    process, second = starting
    process.kill()
    process.wait()
    assert Path(f"/proc/{second}").exists(), "without help it stays"
    assert try_lock(root) is None
    began = time.monotonic()
    with held(root, wait_s=20):
        pass
    wait_until_free(root)
    assert time.monotonic() - began < 20
    assert lock_path(root).exists()


def test_a_sandbox_whose_first_process_lives_is_left_alone(
    root: Path, starting: tuple[subprocess.Popen[bytes], int]
) -> None:
    _, second = starting
    end_orphans(root)
    assert try_lock(root) is None
    assert Path(f"/proc/{second}").exists()


def test_an_orphan_of_another_directory_is_left_alone(
    root: Path, starting: tuple[subprocess.Popen[bytes], int]
) -> None:
    process, second = starting
    process.kill()
    process.wait()
    end_orphans(root.parent / "other")
    assert Path(f"/proc/{second}").exists()
    end_orphans(root)


def test_a_limit_that_ends_while_the_sandbox_starts_ends_the_command(root: Path) -> None:
    async def commands() -> None:
        sandbox = open_sandbox(redact=str)
        for limit_s in (0.0, 0.001, 0.002, 0.003) * 3:
            async with asyncio.timeout(WAIT_S):
                done = await sandbox.run("sleep 1000", root=root, timeout_s=limit_s)
            assert done.timed_out
            free = try_lock(root)
            assert free is not None, "nothing of the command is left"
            os.close(free)

    asyncio.run(commands())
