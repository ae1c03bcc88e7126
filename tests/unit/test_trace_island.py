"""What the trace engine is not: no dependency, no page, no socket, nothing when off."""

import ast
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import pytest

from holdfast import trace
from trace_world import SOURCE, environment

PACKAGE = SOURCE / "holdfast" / "trace"
MODULES = sorted(PACKAGE.glob("*.py"))

# Every module there is, and why. A new one has to be argued for here.
KNOWN = {
    *("__init__", "__main__", "auto", "capture", "commands", "d1", "describe", "events", "export"),
    *("formats", "gitdiff", "hooks", "otlp", "post", "read", "recorder", "redact", "report"),
    *("run", "sessions", "store", "streams", "switch", "tokens", "wire"),
}


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def test_only_the_standard_library_and_itself_are_imported() -> None:
    for path in MODULES:
        for name in imports(path):
            own = name == "holdfast" or name.startswith("holdfast.trace")
            assert own or name.split(".")[0] in sys.stdlib_module_names, f"{path.name}: {name}"


def test_it_works_in_an_isolated_interpreter_without_site_packages(tmp_path: Path) -> None:
    text = (
        f"import sys; sys.path[:] = [p for p in sys.path if 'site-packages' not in p];"
        f"sys.path.insert(0, {str(SOURCE)!r});"
        "from holdfast import trace;"
        "trace.start_session('a');"
        "trace.log_decision('q', 'a');"
        "trace.log_llm_call('m', tokens_in=1, tokens_out=1);"
        "exec('with trace.tool_call(\"t\"): print(1)');"
        "assert trace.get_context(200);"
        "assert not any('site-packages' in (getattr(m, '__file__', None) or '')"
        " for m in list(sys.modules.values()))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", text],
        cwd=tmp_path,
        env={"AGENTLOG": "true", "AGENTLOG_FILE": str(tmp_path / "t.db")},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert (tmp_path / "t.db").exists()


def test_the_package_ships_no_page_and_listens_nowhere() -> None:
    assert {path.suffix for path in PACKAGE.rglob("*") if path.is_file()} <= {".py", ".pyc"}
    for path in MODULES:
        text = path.read_text(encoding="utf-8")
        assert "<html" not in text.lower()
        assert not {"socket", "socketserver", "http.server", "asyncio"} & set(imports(path))
        assert ".listen(" not in text
        assert ".bind(" not in text


def test_what_was_not_asked_for_is_not_built() -> None:
    assert [path.stem for path in MODULES] == sorted(KNOWN)
    for path in MODULES:
        found = set(imports(path))
        assert not found & {"ast", "tokenize", "symtable", "dis", "difflib", "inspect"}, path.name
        assert "traceback" not in found, f"{path.name} could capture a whole stack"


def test_no_module_keeps_a_record_of_what_was_redacted() -> None:
    from holdfast.trace.redact import Redactor

    redactor = Redactor({"A": "swordfish"})
    before = dict(vars(redactor))
    redactor.text("swordfish")
    assert vars(redactor) == before


OFF = """
import os, sys, threading
before = (sys.excepthook, threading.excepthook, sys.unraisablehook, sys.stdout, list(sys.meta_path))
from holdfast import trace
import holdfast.trace.auto
trace.start_session("a"); trace.log_llm_call("m", tokens_in=1); trace.log_decision("q", "a")
trace.log_failure(ValueError("x")); trace.log_git_diff(); trace.end_session()
with trace.session("a") as session_id:
    assert session_id == ""
with trace.llm_call("m") as call:
    call.response = "x"; call.usage(1, 2); call.anything(3).more
with trace.tool_call("t") as call:
    print("hello"); call.exit_code = 3
assert trace.get_context() == "" and trace.token_summary() == {} and trace.get_session_id() == ""
after = (sys.excepthook, threading.excepthook, sys.unraisablehook, sys.stdout, list(sys.meta_path))
assert before == after
assert not any(name.startswith("holdfast.trace.") and name != "holdfast.trace.auto"
               for name in sys.modules), [n for n in sys.modules if n.startswith("holdfast")]
assert "sqlite3" not in sys.modules and "subprocess" not in sys.modules
"""


@pytest.mark.parametrize("switch", [None, "", "false", "0", "off", "maybe"])
def test_nothing_happens_while_the_switch_is_off(tmp_path: Path, switch: str | None) -> None:
    more = {} if switch is None else {"AGENTLOG": switch}
    done = subprocess.run(
        [sys.executable, "-S", "-c", OFF],
        cwd=tmp_path,
        env={"PYTHONPATH": str(SOURCE), **more},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout == b"hello\n"
    assert os.listdir(tmp_path) == []


def calls_made(work: Callable[[], object]) -> list[str]:
    """The functions that run, Python's and C's, while `work` does."""
    made: list[str] = []

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            made.append(frame.f_code.co_name)
        elif event == "c_call":
            made.append(getattr(argument, "__name__", "?"))

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return made[1:-1]  # without `work` itself and the end of the profile


def test_a_call_while_off_is_one_look_at_the_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AGENTLOG", raising=False)
    trace.forget_switch()
    assert trace.active() is None
    one_look = {
        "log_decision": lambda: trace.log_decision("q", "a", "r", {"n": 1}),
        "log_llm_call": lambda: trace.log_llm_call("m", tokens_in=1),
        "log_failure": lambda: trace.log_failure(ValueError("x")),
        "log_git_diff": trace.log_git_diff,
        "llm_call": lambda: trace.llm_call("m"),
        "tool_call": lambda: trace.tool_call("t"),
        "session": lambda: trace.session("a"),
    }
    for name, work in one_look.items():
        made = [call for call in calls_made(work) if call not in ("<lambda>", name, "ValueError")]
        assert made in (["active"], []), name
    assert "sorted" in calls_made(lambda: sorted([2, 1]))


@pytest.mark.parametrize("word", ["true", "TRUE", " 1 ", "yes", "on"])
def test_the_switch_is_read_at_the_first_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    trace.forget_switch()
    monkeypatch.setenv("AGENTLOG", word)
    monkeypatch.setenv("AGENTLOG_FILE", str(tmp_path / "t.db"))
    monkeypatch.setenv("AGENTLOG_BUFFER_SIZE", "4")
    monkeypatch.setenv("AGENTLOG_LEVEL", "nonsense")
    hooks = (sys.excepthook, sys.unraisablehook)
    try:
        session_id = trace.start_session("a", "t")
        assert trace.get_session_id() == session_id
        with trace.session("inner"), trace.llm_call("m", prompt="p") as call:
            call.usage(3, 4)
        with trace.tool_call("t", {"a": 1}):
            print("x")
        trace.log_decision("q", "a")
        trace.log_git_diff(path=str(tmp_path))
        assert trace.log_failure(ValueError("x")) != ""
        assert trace.token_summary()["total_tokens"] == 0
        assert "ValueError: x" in trace.get_context(300)
        assert trace.process().sink.buffer == 4
        trace.end_session()
    finally:
        trace.forget_switch()
    assert (sys.excepthook, sys.unraisablehook) == hooks


def test_the_switch_names_a_file_even_where_the_folder_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from holdfast.trace.switch import DEFAULT_FILE, file_of

    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert file_of({}) == Path(DEFAULT_FILE)
    assert file_of({"AGENTLOG_FILE": "/a/b"}) == Path("/a/b")


def test_environments_of_children_in_these_tests_are_small() -> None:
    assert environment()["AGENTLOG"] == "true"
    assert "AGENTLOG" not in environment(traced=False)
