"""The one runner of git: no configuration but ours, no hook, no filter, no prompt, no network.

Owns the environment and the settings every git process gets, the error it raises, and safe use of a
user's repository, whose own configuration git cannot be told to skip: each setting there that could
start a program is overridden, and filters are emptied by name for the one command that asks them.

Invariants:
- A git process starts with this environment and nothing of ours.
- `--git-dir` is always explicit, so that no directory is ever discovered and trusted.
- git is never run on a git directory that a sandboxed command could have written.
"""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from holdfast.errors import Refused, Unavailable
from holdfast.frozen import frozen

_TIMEOUT_S = 300.0
_ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/nonexistent",
    "LC_ALL": "C",
    "TZ": "UTC",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_LITERAL_PATHSPECS": "0",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": "false",
}
_SETTINGS = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.attributesFile": "/dev/null",
    "core.excludesFile": "/dev/null",
    "core.autocrlf": "false",
    "core.safecrlf": "false",
    "core.untrackedCache": "false",
    "core.splitIndex": "false",
    "core.symlinks": "true",
    "core.fileMode": "true",
    "core.quotePath": "false",
    "core.logAllRefUpdates": "false",
    "core.alternateRefsCommand": "true",
    "core.sshCommand": "false",
    "core.fsync": "objects,reference",
    "core.fsyncMethod": "fsync",
    "core.bigFileThreshold": "32m",
    "core.compression": "1",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "credential.helper": "",
    "commit.gpgSign": "false",
    "submodule.recurse": "false",
    "status.submoduleSummary": "false",
    "status.aheadBehind": "false",
    "diff.ignoreSubmodules": "all",
    "blame.ignoreRevsFile": "",
    "log.showSignature": "false",
    "index.threads": "1",
    "protocol.allow": "never",
}


class GitFailed(Unavailable):
    """A git process ended with an error. `said` is its stderr."""

    code = "git_failed"

    def __init__(self, arguments: Sequence[str], said: str) -> None:
        self.said = said
        last = said.strip().splitlines()[-1] if said.strip() else "it said nothing"
        super().__init__(f"git {' '.join(arguments[:2])}: {last}")


@frozen
class Git:
    """git on one git directory. `held` are lock descriptors a child keeps if we die before it."""

    git_dir: Path
    work_tree: Path | None = None
    index: Path | None = None
    settings: Mapping[str, str] | None = None
    held: tuple[int, ...] = ()

    def run(
        self,
        *arguments: str,
        stdin: bytes = b"",
        environment: Mapping[str, str] | None = None,
        ok: Sequence[int] = (0,),
    ) -> bytes:
        """Standard output. Raises GitFailed for an exit status that is not in `ok`."""
        return self.answer(*arguments, stdin=stdin, environment=environment, ok=ok)[1]

    def answer(
        self,
        *arguments: str,
        stdin: bytes = b"",
        environment: Mapping[str, str] | None = None,
        ok: Sequence[int] = (0,),
    ) -> tuple[int, bytes, str]:
        """Exit status, standard output and standard error."""
        index = {"GIT_INDEX_FILE": str(self.index)} if self.index is not None else {}
        try:
            # Not through a pipe: a thread waits for the interpreter at each piece that it reads.
            with open(os.memfd_create("git"), "w+b") as output:
                done = subprocess.run(  # noqa: S603  arguments are a list; nothing is a shell's
                    self._line(arguments),
                    input=stdin,
                    stdout=output,
                    stderr=subprocess.PIPE,
                    env={**_ENVIRONMENT, **index, **(environment or {})},
                    cwd=self.work_tree or "/",
                    timeout=_TIMEOUT_S,
                    pass_fds=self.held,
                    check=False,
                )
                output.seek(0)
                found = output.read()
        except FileNotFoundError as error:
            raise Unavailable("git is not installed", hint="apt-get install git") from error
        except subprocess.TimeoutExpired as error:
            raise GitFailed(arguments, f"still running after {_TIMEOUT_S:g} s") from error
        said = done.stderr.decode(errors="replace")
        if done.returncode not in ok:
            raise GitFailed(arguments, said)
        return done.returncode, found, said

    def beginning(self, *arguments: str, bytes_max: int) -> tuple[bytes, bool]:
        """At most `bytes_max` bytes of standard output, and whether that is all of it.

        For output of any size: what is more is never read, and git is ended.
        """
        with subprocess.Popen(  # noqa: S603  as in `answer`
            self._line(arguments),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_ENVIRONMENT,
            cwd=self.work_tree or "/",
            pass_fds=self.held,
        ) as process:
            assert process.stdout is not None
            end = threading.Timer(_TIMEOUT_S, process.kill)
            end.start()
            found = process.stdout.read(bytes_max)
            whole = not process.stdout.read(1)
            end.cancel()
            if not whole:
                process.kill()
        if whole and process.returncode != 0:
            raise GitFailed(arguments, f"it ended with {process.returncode}")
        return found, whole

    def word(
        self,
        *arguments: str,
        stdin: bytes = b"",
        environment: Mapping[str, str] | None = None,
    ) -> str:
        """Standard output as one stripped line."""
        return os.fsdecode(self.run(*arguments, stdin=stdin, environment=environment)).strip()

    def names(self, *arguments: str) -> list[str]:
        """Standard output of a `-z` command as file names."""
        return [os.fsdecode(name) for name in self.run(*arguments).split(b"\0") if name]

    def _line(self, arguments: Sequence[str]) -> list[str]:
        line = ["git", "--no-pager", f"--git-dir={self.git_dir}"]
        if self.work_tree is not None:
            line.append(f"--work-tree={self.work_tree}")
        for name, value in {**_SETTINGS, **(self.settings or {})}.items():
            line += ["-c", f"{name}={value}"]
        return [*line, *arguments]


def signature(when_s: int) -> dict[str, str]:
    """The environment that names us author and committer of a commit and fixes its dates."""
    who = (("NAME", "Holdfast"), ("EMAIL", "holdfast@localhost"))
    fields = (*who, ("DATE", f"@{when_s} +0000"))
    return {f"GIT_{role}_{key}": text for role in ("AUTHOR", "COMMITTER") for key, text in fields}


def without_filters(git: Git) -> Git:
    """git on a user's repository for a command that compares working files, which filters convert.

    Hooks, fsmonitor and the like have one name each and are in `_SETTINGS`; filters have names of
    the user's choice, which are read (reading starts nothing) and emptied: git treats an empty
    filter as none. Textconvs and external diffs are refused by the flags of the commands used here.
    """
    pattern = r"^filter\..*\.(clean|smudge|process)$"
    _, listed, _ = git.answer("config", "-z", "--name-only", "--get-regexp", pattern, ok=(0, 1))
    named = [os.fsdecode(name) for name in listed.split(b"\0") if name]
    if any("=" in name or "\n" in name for name in named):
        raise Refused(
            f"{git.git_dir}/config names a filter that cannot be switched off",
            hint="filter names must not hold '=' or line breaks",
        )
    off = dict.fromkeys(named, "")
    off |= {f"{name.rpartition('.')[0]}.required": "false" for name in named}
    return replace(git, settings=off)
