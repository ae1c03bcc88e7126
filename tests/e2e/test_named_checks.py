"""The named checks, judged behind the real wall in a real workspace, journaled and replayed."""

import asyncio
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from e2e.support import Cli, git, make_repo, says, script, write_script
from holdfast.adapters.clock import SystemClock
from holdfast.adapters.repository import Repository
from holdfast.adapters.runners import FILE_BYTES_MAX, RUNNERS, detect
from holdfast.adapters.sandbox import open_sandbox
from holdfast.adapters.workspace import TaskWorkspace
from holdfast.agent.journal import LiveJournal
from holdfast.agent.verify import corrective, describe, proven, verify
from holdfast.domain.checks import RUNNER_NAMES
from holdfast.domain.model import CheckResult, Claim, GoalSpec, PlanSpec, Policy, TaskSpec
from holdfast.engine import Engine, brief, claim, steps_of, submit

PYTHON = str(Path(sys.executable).parent)
SYSTEM = "/usr/local/bin:/usr/bin:/bin"


@dataclass
class Bench:
    """One claimed task with its real journal, workspace and wall."""

    engine: Engine
    granted: Claim
    workspace: TaskWorkspace
    base: str

    def check(self, *lines: str, key: str = "v01", **policy: float) -> tuple[CheckResult, ...]:
        steps = self.engine.read(steps_of, self.granted.fence.task, 1)
        journal = LiveJournal(
            self.engine,
            self.granted.fence,
            steps,
            base_tree=self.base,
            workspace=self.workspace,
        )
        # A step before may have written: the journal knows its tree, as after a tool.
        journal.tree = self.workspace.stage()

        async def round_() -> tuple[CheckResult, ...]:
            found = await verify(
                journal,
                self.workspace,
                lines,
                key=key,
                policy=Policy(**policy),  # type: ignore[arg-type]
            )
            await journal.flush()
            return found

        return asyncio.run(round_())

    def write(self, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            path = self.workspace.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


class Benches:
    def __init__(self, folder: Path) -> None:
        self.folder, self.engines = folder, list[Engine]()

    def make(self, files: Mapping[str, str], *, path: str = f"{PYTHON}:{SYSTEM}") -> Bench:
        repo = make_repo(self.folder / "repo", files)
        repository = Repository.open(repo)
        engine = Engine(self.folder / "holdfast.db", SystemClock())
        self.engines.append(engine)
        goal = GoalSpec(text="g", repository=str(repo), base_commit="c0", base_tree="t0")
        engine.call(submit, goal, PlanSpec(tasks=(TaskSpec(key="a", prompt="p"),)))
        granted = engine.call(claim, "me", lease_s=60.0)
        assert granted is not None
        engine.call(brief, granted.fence, b"{}", base_commit="c0", base_tree="t0")
        workspace = TaskWorkspace.create(
            self.folder / "git",
            self.folder / "work",
            repository,
            base=repository.head(),
            redact=str,
            sandbox=open_sandbox(redact=str, environ={"PATH": path, "HOME": "/nonexistent"}),
        )
        return Bench(engine, granted, workspace, workspace.tree_of(repository.head()))


@pytest.fixture
def benches(tmp_path: Path) -> Iterator[Benches]:
    made = Benches(tmp_path)
    yield made
    for engine in made.engines:
        engine.close()


def verdicts(results: tuple[CheckResult, ...]) -> list[str]:
    return [result.verdict for result in results]


def test_a_file_exists_only_as_a_regular_file_inside_the_workspace(benches: Benches) -> None:
    bench = benches.make({"a.txt": "a", "dir/b.txt": "b"})
    root = bench.workspace.root
    (root / "inside").symlink_to("dir/b.txt")
    (root / "outside").symlink_to("/etc/passwd")
    names = ("a.txt", "dir/b.txt", "inside", "none", "dir", "outside", "none/a.txt", "A.TXT")
    found = bench.check(*(f"file_exists:{name}" for name in names))
    assert verdicts(found) == ["pass"] * 3 + ["fail"] * 5
    assert [result.kind for result in found] == ["file_exists"] * 8
    assert "no such file" in found[3].note
    assert "a directory" in found[4].note
    assert "leads out of the workspace" in found[5].note
    assert not proven(found)
    assert describe(found[0]) == "file_exists:a.txt: the file is there"


def test_git_clean_is_judged_against_the_base_without_git_in_the_workspace(
    benches: Benches, tmp_path: Path
) -> None:
    bench = benches.make({"a.txt": "a", ".gitignore": "*.o\n"})
    bench.write({"ignored.o": "x"})
    # A command may have planted settings that start programs in the throwaway repository.
    mark = tmp_path / "started"
    with (bench.workspace.root / ".git/config").open("a") as config:
        config.write(f'[core]\n\tfsmonitor = "touch {mark}"\n')
    assert verdicts(bench.check("git_clean")) == ["pass"]
    bench.write({"a.txt": "changed", "new/b.txt": "b"})
    # Committed there by a command or not: what counts is what differs from the base.
    dirty = bench.check("git_clean", key="v02")[0]
    assert (dirty.verdict, dirty.exit_code) == ("fail", None)
    assert dirty.output.splitlines() == ["M a.txt", "A new/b.txt"]
    assert dirty.note == "2 files differ from the base"
    assert not mark.exists()


def test_every_check_of_a_round_runs_and_what_one_writes_is_taken_back(benches: Benches) -> None:
    bench = benches.make({"a.txt": "a"})
    lines = (
        "exit 3",
        "echo made > made; cat made",
        "file_exists:made",
        "no-such-program",
        "git_clean",
    )
    found = bench.check(*lines)
    assert verdicts(found) == ["fail", "pass", "fail", "absent", "pass"]
    assert [result.exit_code for result in found] == [3, 0, None, None, None]
    assert [result.output for result in found][:2] == ["", "made"]
    said = corrective("{{failed}} of {{total}}\n{{report}}", found)
    assert said.startswith(
        "3 of 5\n$ exit 3\nfailed with exit code 3\n\nfile_exists:made\nthere is"
    )


def test_a_recorded_check_is_not_run_again_and_answers_as_it_did(benches: Benches) -> None:
    bench = benches.make({"a.txt": "a"})
    first = bench.check("file_exists:a.txt", "git_clean")
    (bench.workspace.root / "a.txt").unlink()
    assert bench.check("file_exists:a.txt", "git_clean") == first
    assert verdicts(bench.check("file_exists:a.txt", key="v02")) == ["fail"]
    kinds = [(step.kind, step.state) for step in bench.engine.read(steps_of, 1, 1)]
    assert kinds == [("check", "done")] * 3


def test_one_check_and_a_whole_round_have_limits_that_can_be_lifted(benches: Benches) -> None:
    bench = benches.make({"a.txt": "a"})
    slow, fine = bench.check("sleep 9", "true", check_s=0.2)
    assert (slow.verdict, fine.verdict) == ("fail", "pass")
    assert "over its limit" in slow.output
    lines = ("sleep 9", "true", "file_exists:a.txt")
    short = bench.check(*lines, key="v02", check_s=60, checks_s=0.2)
    assert verdicts(short) == ["fail", "absent", "absent"], "no time left is never a pass"
    assert "no time left" in short[1].note
    assert bench.check(*lines, key="v02", check_s=60, checks_s=0.2) == short, "told by the record"
    lifted = bench.check("sleep 0.3", "true", key="v03", check_s=60, checks_s=600)
    assert verdicts(lifted) == ["pass", "pass"]


PASSING = "def test_it():\n    assert True\n"


def test_pytest_is_found_run_and_told_from_a_project_without_a_test(benches: Benches) -> None:
    bench = benches.make({"calc.py": "def two(): return 2\n"})
    nothing = bench.check("test_passes")[0]
    assert (nothing.verdict, nothing.note.partition(";")[0]) == (
        "absent",
        "no test runner was detected",
    )
    bench.write({"tests/test_calc.py": "from calc import two\ndef test_two(): assert two() == 2\n"})
    found = bench.check("test_passes", key="v02")[0]
    assert (found.verdict, found.exit_code) == ("pass", 0), found.output
    assert found.note == "pytest (tests/test_calc.py): passed"
    bench.write({"calc.py": "def two(): return 3\n"})
    broken = bench.check("test_passes", key="v03")[0]
    assert (broken.verdict, broken.exit_code) == ("fail", 1)
    assert "assert 3 == 2" in broken.output
    bench.write({"tests/test_calc.py": "import pytest\n@pytest.mark.skip\n" + PASSING})
    skipped = bench.check("test_passes", key="v04")[0]
    assert (skipped.verdict, skipped.exit_code) == ("absent", 0), "a skipped test proves nothing"
    bench.write({"tests/test_calc.py": "# empty\n"})
    empty = bench.check("test_passes", key="v05")[0]
    assert (empty.verdict, empty.exit_code) == ("absent", 5)


def test_a_runner_that_is_not_installed_is_absent(benches: Benches) -> None:
    bench = benches.make({"test_a.py": PASSING, "mix.exs": ""}, path=SYSTEM)
    found = bench.check("test_passes:mix", "test_passes:cargo")
    assert verdicts(found) == ["absent", "absent"]
    assert found[0].note == "mix (named by the check): its program was not found"


# What a runner prints and how it ends, played by a program of its name on PATH.
PLAYED = [
    ("npm", {"package.json": '{"scripts": {"test": "x"}}'}, "# tests 3", 0, "pass"),
    ("npm", {"package.json": '{"scripts": {"test": "x"}}'}, "# tests 0", 0, "absent"),
    ("npm", {"package.json": '{"scripts": {"test": "x"}}'}, "sh: jest: not found", 127, "absent"),
    ("cargo", {"Cargo.toml": ""}, "test result: ok. 2 passed; 0 failed;", 0, "pass"),
    ("cargo", {"Cargo.toml": ""}, "test result: ok. 0 passed; 0 failed;", 0, "absent"),
    ("cargo", {"Cargo.toml": ""}, "error: could not compile", 101, "fail"),
    ("go", {"go.mod": ""}, "ok  \tx/y\t0.01s", 0, "pass"),
    ("go", {"go.mod": ""}, "ok  \tx/y\t0.01s [no tests to run]", 0, "absent"),
    ("go", {"go.mod": ""}, "?   \tx/y\t[no test files]", 0, "absent"),
    ("mix", {"mix.exs": ""}, "5 tests, 0 failures", 0, "pass"),
    ("mix", {"mix.exs": ""}, "There are no tests to run", 0, "absent"),
]


@pytest.mark.parametrize(("name", "files", "said", "code", "verdict"), PLAYED)
def test_a_runner_is_judged_by_how_it_ended_and_whether_it_ran_a_test(
    benches: Benches,
    tmp_path: Path,
    name: str,
    files: dict[str, str],
    said: str,
    code: int,
    verdict: str,
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / name).write_text(f"#!/bin/sh\necho '{said}'\nexit {code}\n")
    (tools / name).chmod(0o755)
    bench = benches.make(files, path=f"{tools}:{SYSTEM}")
    found = bench.check("test_passes")[0]
    assert (found.verdict, found.exit_code) == (verdict, code), found
    assert found.note.startswith(f"{name} ({next(iter(files))}): ")


def test_make_is_run_only_with_a_test_target_and_must_do_something(benches: Benches) -> None:
    bench = benches.make({"Makefile": "all:\n\techo test\n"})
    assert verdicts(bench.check("test_passes")) == ["absent"]
    bench.write({"Makefile": "test: a\n\t@echo ran\na:\n"})
    found = bench.check("test_passes", key="v02")[0]
    assert (found.verdict, found.output) == ("pass", "ran")
    bench.write({"test/a": "x", "Makefile": "test:\n\tfalse\n"})
    done = bench.check("test_passes", key="v03")[0]
    assert (done.verdict, done.exit_code) == ("absent", 0), "an up-to-date target proves nothing"


SIGNS = [
    ({"pytest.ini": "", "go.mod": ""}, ("pytest", "pytest.ini")),
    ({"pyproject.toml": "[tool.pytest.ini_options]\n"}, ("pytest", "pyproject.toml")),
    ({"pyproject.toml": "[project]\n", "go.mod": ""}, ("go", "go.mod")),
    ({"setup.cfg": "[tool:pytest]\n"}, ("pytest", "setup.cfg")),
    ({"tox.ini": "[pytest]\n"}, ("pytest", "tox.ini")),
    ({"a/b/c_test.py": ""}, ("pytest", "a/b/c_test.py")),
    ({"node_modules/x/test_a.py": ""}, ("", "")),
    ({"package.json": '{"scripts": {"test": "echo \\"Error: no test specified\\""}}'}, ("", "")),
    ({"package.json": "[1"}, ("", "")),
    ({"package.json": '{"scripts": {"test": 3}}', "Makefile": "test:\n"}, ("make", "Makefile")),
    ({"Makefile": "test = x\ntester:\n"}, ("", "")),
    ({"GNUmakefile": "test: b\n", "Cargo.toml": ""}, ("make", "GNUmakefile")),
    ({"go.mod": "x" * (FILE_BYTES_MAX + 1)}, ("", "")),
    ({"README.md": ""}, ("", "")),
]


@pytest.mark.parametrize(("files", "found"), SIGNS)
def test_a_runner_is_detected_by_what_the_project_holds(
    tmp_path: Path, files: dict[str, str], found: tuple[str, str]
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert detect(tmp_path) == found


def test_every_named_runner_is_in_the_table_in_its_order() -> None:
    assert tuple(RUNNERS) == RUNNER_NAMES


def test_the_command_line_takes_named_checks_and_replays_them(tmp_path: Path) -> None:
    cli = Cli(make_repo(tmp_path / "repo", {"a.txt": "a", "test_a.py": PASSING}))
    cli = Cli(cli.repo, {"PATH": f"{PYTHON}:{SYSTEM}"})
    model = write_script(tmp_path / "model.json", script(*[says("Done.")] * 3))
    lines = ("true", "file_exists:a.txt", "test_passes", "git_clean")
    flags = [word for line in lines for word in ("--check", line)]
    done = cli("run", "Look", "--model", model, "--json", *flags)
    assert done.code == 0, done.err
    found = [(check["command"], check["kind"]) for check in done.result["checks"]]
    assert found == [
        ("true", "command_succeeds"),
        ("file_exists:a.txt", "file_exists"),
        ("test_passes", "test_passes"),
        ("git_clean", "git_clean"),
    ]
    assert {check["verdict"] for check in done.result["checks"]} == {"pass"}
    assert [check["exit_code"] for check in done.result["checks"]] == [0, None, 0, None]
    name = done.result["tasks"][0]["attempt"]
    assert cli("replay", name, "--json").result["equal"] is True
    why = cli("why", name, "--json").result
    assert [check["verdict"] for check in why["checks"]] == ["pass"] * 4
    assert "check    pass: git_clean" in cli("why", name).out
    assert "check pass: test_passes (pytest (test_a.py): passed)" in cli("resume", "1").out


def test_a_check_that_is_none_is_refused_before_a_goal_exists(tmp_path: Path) -> None:
    cli = Cli(make_repo(tmp_path / "repo", {"a.txt": "a"}))
    model = write_script(tmp_path / "model.json", script(says("Done.")))
    done = cli("run", "Look", "--model", model, "--check", "file_exist:a.txt")
    assert (done.code, cli.store.path.exists()) == (2, False)
    assert "did you mean 'file_exists'" in done.err
    plan = tmp_path / "plan.toml"
    plan.write_text('[[tasks]]\nkey = "a"\nprompt = "p"\nchecks = ["true", {kind = "vibes"}]\n')
    done = cli("run", "Look", "--model", model, "--plan", str(plan))
    assert (done.code, cli.store.path.exists()) == (2, False)
    assert "plan.toml:1 tasks[0]: checks[1]: a check's kind is 'vibes'" in done.err
    plan.write_text(
        '[[tasks]]\nkey = "a"\nprompt = "p"\n'
        'checks = ["git_clean", {kind = "file_exists", path = "./a.txt"}]\n'
    )
    done = cli("run", "Look", "--model", model, "--plan", str(plan), "--json")
    assert [check["command"] for check in done.result["checks"]] == [
        "git_clean",
        "file_exists:a.txt",
    ]
    assert git(cli.repo, "status", "--porcelain") == ""
