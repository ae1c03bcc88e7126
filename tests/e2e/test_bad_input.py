"""Bad input: refused with exit code 2, one line and a hint, in time, and no goal half-made."""

import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from e2e.support import (
    Cli,
    Done,
    broken_invariants,
    calls,
    clean_environ,
    ended,
    git,
    make_repo,
    model_server,
    says,
    script,
    until,
    write_script,
)
from holdfast.adapters.models import PROVIDERS
from holdfast.adapters.models.hosts import HOSTS
from holdfast.adapters.models.transport import PROBE_S_MAX
from holdfast.domain.plain import plain

# A refusal is due within 5 s on an idle machine; a test is no benchmark, so it allows for others.
WITHIN_S = 20.0
NOTHING = script(says("Nothing to do."))


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(make_repo(tmp_path / "repo", {"a.txt": "a\n"}))


@pytest.fixture
def model(tmp_path: Path) -> str:
    return write_script(tmp_path / "model.json", NOTHING)


def refused(cli: Cli, *words: str, goals: int = 0) -> str:
    """Run something that is refused; returns what a person reads, checked for its form."""
    done = cli(*words)
    assert_refusal(done)
    with_json = cli(*words, "--json")
    assert with_json.code == 2
    assert with_json.objects[-1].keys() == {"type", "code", "message", "hint"}
    assert with_json.objects[-1]["type"] == "error"
    assert cli.store.goals() == goals, "a goal was left half-made"
    return done.err


def assert_refusal(done: Done) -> None:
    assert done.code == 2, (done.out, done.err)
    assert done.took_s < WITHIN_S
    lines = [line for line in done.err.splitlines() if line.startswith("holdfast: ")]
    assert len(lines) == 1, done.err
    assert "Traceback" not in done.err
    assert done.out == ""


@pytest.mark.parametrize(
    ("name", "expected", "hint"),
    [
        ("olama:qwen3:8b", "no model provider 'olama'", "did you mean ollama"),
        ("scripted:/no/such/file", "cannot be read", ""),
        ("openai:gpt-5-mini", "OPENAI_API_KEY", ""),
        ("ollama", "names no model", "such as ollama:"),
        ("", "no model is named", "HOLDFAST_MODEL"),
    ],
)
def test_a_model_that_cannot_be_used_is_refused(
    cli: Cli, name: str, expected: str, hint: str
) -> None:
    said = refused(cli, "run", "Do it", "--model", name)
    assert expected in said
    assert hint in said


def test_an_unknown_provider_is_refused_with_every_name_there_is(cli: Cli) -> None:
    said = refused(cli, "run", "Do it", "--model", "nobody:x")
    _, _, listed = said.partition("there are ")
    assert listed.splitlines()[0].split(", ") == [*PROVIDERS, "replay"]


@pytest.mark.parametrize("name", ["replay", "replay:", "replay:zzz", "replay:1.1"])
def test_replaying_what_was_never_recorded_is_refused_before_a_goal(cli: Cli, name: str) -> None:
    refused(cli, "run", "Do it", "--model", name)


def test_of_several_models_each_is_looked_at_before_a_goal(cli: Cli, model: str) -> None:
    for second, expected in (("nobody:x", "no model provider"), ("groq:x", "GROQ_API_KEY")):
        assert expected in refused(cli, "run", "Do it", "--model", f"{model},{second}")


KEYLESS = """
import sys
from holdfast.adapters.models import resolve
from holdfast.errors import Refused
try:
    resolve(sys.argv[1], environ={}, redact=str, timeout_s=1.0)
except Refused as refused:
    print(refused.code, "httpx2" in sys.modules, "pydantic_ai" in sys.modules)
"""


@pytest.mark.parametrize("provider", HOSTS)
def test_a_missing_key_is_told_before_any_library_is_loaded(provider: str) -> None:
    missing = "bad_endpoint" if HOSTS[provider].needs == "address" else "missing_key"
    words = [sys.executable, "-c", KEYLESS, f"{provider}:some"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=5, check=True)
    assert done.stdout == f"{missing} False False\n"


def test_words_in_another_encoding_are_refused(cli: Cli, model: str) -> None:
    said = refused(cli, "run", os.fsdecode(b"D\xf6 it"), "--model", model)
    assert r"argument 1 is not UTF-8: D\xf6 it" in said


def test_work_goes_on_when_nobody_listens_to_its_progress(cli: Cli, model: str) -> None:
    run = cli.start("run", "Do it", "--model", model, "--json")
    assert run.stderr is not None
    assert run.stdout is not None
    run.stderr.close()
    out = run.stdout.read()
    run.stdout.close()
    assert run.wait(timeout=WITHIN_S) == 5
    assert '"outcome":"unverified"' in out


def test_results_that_cannot_be_written_are_said_to_be_so_and_the_goal_stands(
    cli: Cli, model: str
) -> None:
    words = cli.words("run", "Do it", "--model", model)
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            words,
            cwd=cli.repo,
            env={**clean_environ(), **cli.environ},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=WITHIN_S,
        )
    assert done.returncode == 130
    assert "cannot write the output: No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    assert cli("goal", "show", "1", "--json").objects[-1]["state"] == "complete"


def test_an_unknown_model_is_refused_with_the_nearest_names(cli: Cli, tmp_path: Path) -> None:
    with model_server({**NOTHING, "models": ["qwen3:8b"]}, tmp_path / "model") as server:
        for provider in ("ollama", "openai"):
            there = Cli(cli.repo, server.environ())
            said = refused(there, "run", "Do it", "--model", f"{provider}:qwen3:9b")
            assert "qwen3:8b" in said
        assert server.asked() == []


def test_a_probe_leaves_time_to_start_within_five_seconds() -> None:
    assert PROBE_S_MAX <= 2.5


@pytest.mark.parametrize("silent", [False, True], ids=["nobody listens", "nobody answers"])
@pytest.mark.parametrize("provider", ["ollama", "openai"])
def test_an_endpoint_that_cannot_be_reached_is_refused_in_time(
    cli: Cli, provider: str, silent: bool
) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        if silent:
            listener.listen()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        environ = {"OLLAMA_HOST": url, "OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": "k"}
        there = Cli(cli.repo, environ)
        done = there("run", "Do it", "--model", f"{provider}:some")
        assert_refusal(done)
        assert url.removeprefix("http://") in done.err
        assert there.store.goals() == 0


PLANS = {
    "cycle": (
        '[[tasks]]\nkey="a"\nprompt="x"\nrequires=["b"]\n\n'
        '[[tasks]]\nkey="b"\nprompt="x"\nrequires=["c"]\n\n'
        '[[tasks]]\nkey="c"\nprompt="x"\nrequires=["a"]\n',
        ["a → b → c → a", "plan.toml:1"],
    ),
    "unknown key": (
        '[[tasks]]\nkey="a"\nprompt="x"\n\n[[tasks]]\nkey="b"\nprompt="x"\nrequire=["a"]\n',
        ["plan.toml:5 tasks[1]", "unknown key 'require'", "did you mean 'requires'"],
    ),
    "duplicate id": (
        '[[tasks]]\nkey="a"\nprompt="x"\n\n[[tasks]]\nkey="a"\nprompt="y"\n',
        ["plan.toml:5 tasks[1]", "'a'", "plan.toml:1 tasks[0]"],
    ),
    "missing requirement": (
        '[[tasks]]\nkey="a"\nprompt="x"\n\n[[tasks]]\nkey="b"\nprompt="y"\nrequires=["z"]\n',
        ["plan.toml:5 tasks[1]", "'z'", "not in the plan"],
    ),
    "no TOML": ('[[tasks]\nkey="a"\n', ["plan.toml", "line 1"]),
    "no task": ("", ["there are no tasks"]),
}


@pytest.mark.parametrize("mistake", PLANS)
def test_a_wrong_plan_is_refused_with_the_position(
    cli: Cli, model: str, tmp_path: Path, mistake: str
) -> None:
    text, expected = PLANS[mistake]
    plan = tmp_path / "plan.toml"
    plan.write_text(text, encoding="utf-8")
    said = refused(cli, "run", "Do it", "--model", model, "--plan", str(plan))
    for part in expected:
        assert part in said


def test_a_budget_in_money_for_a_model_without_a_price_names_the_line_to_add(
    cli: Cli, tmp_path: Path
) -> None:
    with model_server({**NOTHING, "models": ["mystery"]}, tmp_path / "model") as server:
        there = Cli(cli.repo, server.environ())
        words = ("run", "Do it", "--model", "openai:mystery", "--budget-usd", "1")
        said = refused(there, *words)
        line = said[said.index('"openai:mystery" = ') :].splitlines()[0]
        (cli.home).mkdir(exist_ok=True)
        (cli.home / "prices.toml").write_text(line + "\n", encoding="utf-8")
        done = there(*words, "--json")
        assert done.code == 5, "the line that was named is the line that helps"
        assert done.result["usage"]["cost_usd"] > 0


@pytest.mark.parametrize(
    "words",
    [
        ("run", " "),
        ("run", "x", "--max-turns", "0"),
        ("run", "x", "--budget-usd", "-1"),
        ("run", "x", "--repo", "/no/such/folder"),
        ("runn", "x"),
        ("resume", "7"),
        ("replay", "1.1"),
        ("undo", "1"),
    ],
    ids=" ".join,
)
def test_wrong_words_are_refused(cli: Cli, words: tuple[str, ...]) -> None:
    refused(cli, *words)


def small_disk(tmp_path: Path, size: str) -> Path:
    """A home on a file system of its own with little room."""
    home = tmp_path / "small"
    home.mkdir()
    if os.system(f"mount -t tmpfs -o size={size} tmpfs {home} 2>/dev/null") != 0:
        pytest.skip("this machine does not let us mount")
    return home


def test_a_disk_that_fills_on_the_way_loses_nothing(cli: Cli, tmp_path: Path) -> None:
    """What a command wrote fills the disk; with more room the goal goes on where it was."""
    fill = "head -c 20000000 /dev/urandom > big.bin; echo x >> log.txt"
    name = write_script(
        tmp_path / "model.json",
        script(
            calls(("write_file", {"path": "x.txt", "content": "x\n"})),
            calls(("run_command", {"command": fill})),
            calls(("run_command", {"command": "rm -f big.bin"})),
            says("Done."),
        ),
    )
    home = small_disk(tmp_path, "4m")
    try:
        there = Cli(cli.repo, {"HOLDFAST_HOME": str(home)})
        done = there("run", "Do it", "--model", name, "--check", "test -f log.txt", "--json")
        assert done.code != 0
        assert "no space left" in done.err
        assert "Traceback" not in done.err
        before = there.store.done()
        assert broken_invariants(there.store) == []
        os.system(f"mount -o remount,size=200m {home}")
        resumed = there("resume", "1", "--json")
        assert (resumed.code, resumed.result["outcome"]) == (0, "passed"), resumed.err
        after = there.store.done()
        assert {key: after[key] for key in before} == before
        assert git(cli.repo, "show", "holdfast/goal-1:log.txt") == "x", "once, not twice"
        assert broken_invariants(there.store) == []
    finally:
        os.system(f"umount {home}")


def test_a_full_disk_is_refused_and_loses_nothing(cli: Cli, model: str, tmp_path: Path) -> None:
    home = small_disk(tmp_path, "300k")
    try:
        there = Cli(cli.repo, {"HOLDFAST_HOME": str(home)})
        (home / "ballast").write_bytes(b"x" * 200_000)
        done = there("run", "Do it", "--model", model)
        assert_refusal(done)
        assert "space" in done.err
        (home / "ballast").unlink()
        assert there.store.goals() == 0
        assert there("goal").code == 0
        os.system(f"cat /dev/zero > {home}/ballast 2>/dev/null")
        done = there("goal")  # not even SQLite's index of its log has room
        assert_refusal(done)
        assert "no space left" in done.err
    finally:
        os.system(f"umount {home}")


def test_a_folder_that_cannot_be_written_is_refused(cli: Cli, model: str, tmp_path: Path) -> None:
    if os.getuid() == 0:
        home = tmp_path / "ro"
        home.mkdir()
        if os.system(f"mount -t tmpfs -o ro tmpfs {home} 2>/dev/null") != 0:
            pytest.skip("root writes everywhere, and this machine does not let us mount")
    else:
        home = tmp_path / "ro"
        home.mkdir(mode=0o500)
    try:
        there = Cli(cli.repo, {"HOLDFAST_HOME": str(home / "in")})
        said = refused(there, "run", "Do it", "--model", model)
        assert "HOLDFAST_HOME" in said
        os.system(f"mount -o remount,rw {home} 2>/dev/null; chmod 700 {home}")
        shutil.copytree(cli.repo, home / "repo")
        if os.getuid() == 0:
            os.system(f"mount -o remount,ro {home}")
        else:
            (home / "repo/.git").chmod(0o500)
        elsewhere = Cli(home / "repo", {"HOLDFAST_HOME": str(tmp_path / "home")})
        assert "where the goal's branch belongs" in refused(
            elsewhere, "run", "Do it", "--model", model
        )
    finally:
        if os.getuid() == 0:
            os.system(f"umount {home}")


def test_a_corrupt_store_is_refused_with_the_way_back(cli: Cli, model: str) -> None:
    assert cli("run", "Do it", "--model", model).code == 5
    for path in cli.home.glob("holdfast.db-*"):
        path.unlink()
    content = bytearray(cli.store.path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    cli.store.path.write_bytes(content)
    done = cli("run", "Do it", "--model", model)
    assert_refusal(done)
    assert "damaged" in done.err
    assert "holdfast restore" in done.err
    assert cli.store.path.read_bytes() == content, "nothing was changed"


MIDWAY = script(
    calls(("write_file", {"path": "x.txt", "content": "x\n"})),
    {"calls": [{"name": "run_command", "arguments": {"command": "true"}}], "delay_s": 2.0},
    says("Done."),
)


def test_a_store_that_is_damaged_in_the_middle_of_a_run_is_told_with_the_way_back(
    cli: Cli, tmp_path: Path
) -> None:
    assert cli("run", "First", "--model", write_script(tmp_path / "one.json", NOTHING)).code == 5
    assert cli("backup").code == 0
    run = cli.start("run", "Do it", "--model", write_script(tmp_path / "two.json", MIDWAY))
    until(lambda: len(cli.store.done()) >= 3, "the first tool call is done")
    with closing(sqlite3.connect(cli.store.path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with cli.store.path.open("r+b") as file:
        file.seek(2048)
        file.write(b"\xff" * (cli.store.path.stat().st_size - 2048))
    done = ended(run)
    assert done.code == 2, done.err
    assert "damaged" in done.err
    assert f"holdfast restore --home {cli.home}" in done.err
    assert "Traceback" not in done.err
    assert cli("restore").code == 0
    assert cli.store.goals() == 1
    assert cli("run", "Again", "--model", write_script(tmp_path / "one.json", NOTHING)).code == 5


@pytest.mark.parametrize("gone", ["removed", "replaced"])
def test_a_store_that_is_taken_away_from_a_run_is_told_and_never_reported_as_done(
    cli: Cli, tmp_path: Path, gone: str
) -> None:
    run = cli.start("run", "Do it", "--model", write_script(tmp_path / "two.json", MIDWAY))
    until(lambda: cli.store.goals() and len(cli.store.done()) >= 2, "the first tool call is done")
    copy = tmp_path / "copy.db"
    shutil.copy(cli.store.path, copy)
    for path in cli.home.glob("holdfast.db*"):
        path.unlink()
    if gone == "replaced":
        copy.rename(cli.store.path)
    done = ended(run)
    assert done.code == 2, done.err
    assert "was removed or replaced while it was in use" in done.err
    assert "Traceback" not in done.err


def test_nothing_is_restored_under_a_run(cli: Cli, tmp_path: Path) -> None:
    assert cli("run", "First", "--model", write_script(tmp_path / "one.json", NOTHING)).code == 5
    assert cli("backup").code == 0
    run = cli.start("run", "Do it", "--model", write_script(tmp_path / "two.json", SLOW))
    until(lambda: cli.store.rows("SELECT 1 FROM attempts WHERE state = 'open'"), "it works")
    try:
        assert "works on this store" in refused(cli, "restore", goals=2)
    finally:
        run.send_signal(signal.SIGINT)
        done = ended(run)
    assert done.code == 130
    assert cli("restore").code == 0
    assert cli.store.goals() == 1


@pytest.mark.parametrize("version", [99])
def test_a_newer_store_is_refused_untouched(cli: Cli, model: str, version: int) -> None:
    assert cli("run", "Do it", "--model", model).code == 5
    with closing(sqlite3.connect(cli.store.path)) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = cli.store.path.read_bytes()
    said = refused(cli, "run", "Do it", "--model", model, goals=1)
    assert "newer than this Holdfast" in said
    assert cli.store.path.read_bytes() == before


def test_another_programs_database_is_refused(cli: Cli, model: str) -> None:
    cli.home.mkdir()
    with closing(sqlite3.connect(cli.store.path)) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    done = cli("run", "Do it", "--model", model)
    assert_refusal(done)
    assert "another program" in done.err


SLOW = script(says("Slow.", delay_s=30.0))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_ends_cleanly_and_can_be_resumed(
    cli: Cli, tmp_path: Path, number: int
) -> None:
    name = write_script(tmp_path / "model.json", SLOW)
    run = cli.start("run", "Do it", "--model", name, "--json")
    until(lambda: cli.store.goals() and cli.store.rows("SELECT 1 FROM steps"), "a step began")
    run.send_signal(number)
    done = ended(run)
    assert (done.code, done.result["outcome"]) == (130, "interrupted"), done.err
    assert "Traceback" not in done.err
    rows = cli.store.rows("SELECT state, outcome, reason FROM attempts")
    assert rows == [{"state": "ended", "outcome": "cancelled", "reason": "interrupted"}]
    write_script(tmp_path / "model.json", NOTHING)
    resumed = cli("resume", "1", "--json")
    assert (resumed.code, resumed.result["resumed"]) == (5, True)


def test_interrupted_before_a_goal_exists_nothing_is_left(cli: Cli) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.settimeout(WITHIN_S)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        there = Cli(cli.repo, {"OLLAMA_HOST": url})
        run = there.start("run", "Do it", "--model", "ollama:some", "--json")
        connection, _ = listener.accept()  # it asks the endpoint which models there are
        with connection:
            run.send_signal(signal.SIGINT)
            done = ended(run)
    assert done.code == 130
    assert "Traceback" not in done.err
    assert there.store.goals() == 0


def test_interrupted_twice_it_ends_at_once(cli: Cli, tmp_path: Path) -> None:
    """The second press comes while the first is still being honoured: a tool that holds on."""
    name = write_script(tmp_path / "model.json", SLOW)
    run = cli.start("run", "Do it", "--model", name, "--json")
    until(lambda: cli.store.goals() and cli.store.rows("SELECT 1 FROM steps"), "a step began")
    with closing(sqlite3.connect(cli.store.path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")  # the first press now waits to write
        run.send_signal(signal.SIGINT)
        assert run.stderr is not None
        until(lambda: "press Ctrl-C again" in run.stderr.readline(), "the first press was heard")
        run.send_signal(signal.SIGINT)
        assert run.wait(timeout=WITHIN_S) == 130
    ended(run)
    write_script(tmp_path / "model.json", NOTHING)
    assert cli("resume", "1", "--json").code == 5


ESCAPES = "\x1b]0;owned\x07\x1b[2J\x1b[31mred\x9b1m \u202egnp.exe \x00 \x7f"


def test_escape_codes_of_a_model_a_tool_and_a_file_never_reach_the_terminal(
    cli: Cli, tmp_path: Path
) -> None:
    printf = "printf '\\033]0;owned\\007\\033[2J'; exit 3"
    name = write_script(
        tmp_path / "model.json",
        script(
            {
                "text": ESCAPES,
                "calls": [
                    {"name": "write_file", "arguments": {"path": f"n{ESCAPES[:8]}", "content": ""}},
                    {"name": "run_command", "arguments": {"command": printf}},
                    {"name": ESCAPES, "arguments": {}},
                ],
            },
            says(f"Done. {ESCAPES}"),
            says("Done."),
            says("Done."),
            says("Done."),
        ),
    )
    words = ("run", f"Do {ESCAPES.replace(chr(0), '')}", "--model", name, "--check", printf)
    for done in (
        cli(*words),
        cli(*words, "--json"),
        cli("events"),
        cli("goal", "show", "1"),
        cli("why", "1.1"),
        cli("events", "--json"),
        cli("why", "1.1", "--json"),
    ):
        shown = done.out + done.err
        assert plain(shown) == shown, "something hostile got through"
        assert done.code in (0, 1), done.err
    told = script(calls(("write_file", {"path": "n", "content": "n"})), says(f"Done. {ESCAPES}"))
    write_script(tmp_path / "model.json", told)
    assert cli(*words[:4]).code == 5
    message = git(cli.repo, "log", "-1", "--format=%B", "holdfast/goal-3")
    assert plain(message) == message
    assert "\nDone. \\x1b]0;owned" in message


def test_json_is_all_that_stdout_carries(cli: Cli, model: str, tmp_path: Path) -> None:
    done = cli("run", "Do it", "--model", model, "--check", "true", "--json")
    last = done.objects[-1]
    assert last["type"] == "result"
    assert {"goal", "state", "outcome", "branch", "checks", "usage", "attempts", "resumed"} <= set(
        last
    )
    assert {"tokens", "cost_usd"} <= set(last["usage"])
    assert (last["goal"], last["resumed"], last["attempts"]) == (1, False, 1)
    assert git(cli.repo, "branch", "--list", last["branch"]).strip() in ("", last["branch"])
    again = cli("resume", "1", "--json")
    assert (again.code, again.result["type"]) == (0, "result")
    for words in (
        ("events",),
        ("why", "1.1"),
        ("replay", "1.1"),
        ("goal",),
        ("goal", "show", "1"),
        ("task",),
        ("attempt",),
        ("approval",),
        ("doctor",),
        ("check",),
    ):
        found = cli(*words, "--json")
        assert found.objects, f"{words} said nothing"
    shutil.rmtree(tmp_path / "repo" / ".git")
    assert cli("why", "a.txt:1", "--json").objects[-1]["type"] == "error"


def test_a_demo_without_a_wall_says_so_and_stops(tmp_path: Path) -> None:
    """Also where the folder it is called in has a module of a name that Python looks for."""
    (tmp_path / "asyncio.py").write_text("print('imported')\nraise SystemExit(7)\n")
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "git").symlink_to(shutil.which("git") or "")
    demo = Cli(tmp_path, {"PATH": str(programs)})
    done = demo("demo")
    assert (done.code, "Traceback" in done.err) == (2, False), done.err
    assert "commands have no wall to run behind: bwrap is not installed" in done.err
    assert "3. Resume" not in done.out
    told = demo("demo", "--json").result
    assert (told["code"], told["hint"]) == ("demo_failed", "apt-get install bubblewrap")
