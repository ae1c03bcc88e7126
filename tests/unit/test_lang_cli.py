"""`holdfast lisp`: eval, repl, cases, manual; JSON and exit codes."""

import io
import json
import os
import pty
import select
import sys
from pathlib import Path

import pytest

from holdfast import cli
from holdfast.cli import lisp
from holdfast.lang import walls


def go(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = cli.main(["lisp", *words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_eval_prints_the_value_and_what_the_program_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out, _ = go(capsys, "eval", "-e", '(println "hi") {:a [1 "x"]}')
    assert (code, out) == (0, 'hi\n{:a [1 "x"]}\n')


def test_eval_reads_files_and_data(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    program, data = tmp_path / "p.lisp", tmp_path / "d.json"
    program.write_text("(sum data/xs)")
    data.write_text('{"xs": [1, 2]}')
    assert go(capsys, "eval", str(program), "--data", str(data))[:2] == (0, "3\n")
    assert go(capsys, "eval", str(program), "--data", '{"xs": [4]}')[:2] == (0, "4\n")
    assert go(capsys, "eval", str(program), "--data", "[1]")[0] == 2
    assert go(capsys, "eval", str(program), "--data", "{")[0] == 2
    assert go(capsys, "eval", str(tmp_path / "none"))[0] == 2
    assert go(capsys, "eval")[0] == 2


def test_eval_shows_errors_with_a_caret_and_fails(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = go(capsys, "eval", "-e", "(inc nil)")
    assert (code, out) == (1, "")
    assert "  ^" in err
    code, out, _ = go(capsys, "eval", "-e", "(fail :no)")
    assert (code, out) == (1, "failed: :no\n")


def test_eval_as_json_carries_everything(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = go(capsys, "eval", "--json", "-e", "(println 1) (return #{1})")
    record = json.loads(out)
    assert code == 0
    assert record["ending"] == "returned"
    assert record["value"] == {"$set": [1]}
    assert record["prints"] == ["1"]
    code, out, _ = go(capsys, "eval", "--json", "-e", "(foo)")
    assert code == 1
    assert json.loads(out)["error"]["code"] == "unbound_var"


def test_eval_runs_behind_the_wall_that_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert go(capsys, "eval", "--wall", "none", "-e", "(fn [x] x)")[:2] == (0, "#fn[stored]\n")
    assert go(capsys, "eval", "--wall", "paper", "-e", "1")[0] == 2


def test_the_words_for_walls_are_those_of_the_walls() -> None:
    assert lisp.LEVELS == walls.LEVELS


def test_limits_are_flags(capsys: pytest.CaptureFixture[str]) -> None:
    source = "(loop [i 0] (if (< i 5000) (recur (inc i)) i))"
    assert go(capsys, "eval", "-e", source)[0] == 1
    assert go(capsys, "eval", "--loop-iterations", "5000", "-e", source)[:2] == (0, "5000\n")


@pytest.mark.parametrize("words", [("--wall-s", "nan"), ("--wall-s", "-1"), ("--fuel", "0")])
def test_a_limit_that_is_no_limit_is_refused(
    capsys: pytest.CaptureFixture[str], words: tuple[str, str]
) -> None:
    code, _, err = go(capsys, "eval", *words, "-e", "1")
    assert code == 2
    assert f"{words[0]} must be a number above 0" in err


def test_cases_report_what_failed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    cases = [
        {"expr": "(+ 1 1)", "expect": 2},
        {"expr": "(+ 1 1)", "expect": 2.0},
        {"expr": "(+ 1 1)", "error": "type"},
        {"expr": "(inc nil)", "error": "arith|type_error"},
        {"expr": "(inc nil)", "error": "arith"},
        {"expr": "(inc nil)", "expect": 1},
        {"expr": "(nope)", "expect": 1, "optional": True},
        {"expr": "(return 1)", "expect": {"$return": 1}},
        {"expr": "(fail :a)", "expect": {"$fail": ":a"}},
        {"expr": '(println "a")', "expect": None, "prints": ["a"]},
        {"expr": '(println "a")', "expect": None, "prints": ["b"]},
        {"expr": "(def x 1)", "expect": {"$var": "x"}, "memory_after": {"x": 1}},
        {"expr": "(def x 1)", "memory_after": {"x": 2}},
        {"expr": "y", "expect": 3, "memory": {"y": 3}},
        {"expr": "[*1 *2 *3]", "expect": [4, 3, None], "history": [3, 4]},
        {"expr": "data/a", "expect": {":k": 1}, "ctx": {"a": {":k": 1}}},
        {"expr": '(task "t" 1)', "expect": 1, "journal": {}, "journal_after": {"t": 1}},
        {"expr": '(task "t" 1)', "expect": 1, "journal": {}, "journal_after": {}},
        {"expr": "(tool/add {:a 1 :b 2})", "expect": 3, "tools": ["add"]},
        {"expr": '#"a"', "expect": {"$regex": "a"}},
        {"expr": "##NaN", "expect": {"$num": "NaN"}},
        {"expr": 5, "expect": 5},
        {"expr": "[1.5 #{2} {1 2}]", "expect": [1.5, {"$set": [2]}, {"$map": [[1, 2]]}]},
    ]
    path = tmp_path / "cases.json"
    path.write_text(json.dumps(cases))
    code, out, _ = go(capsys, "cases", str(path), "--json")
    report = json.loads(out)
    assert code == 1
    assert report["skipped"] == 1
    assert len(report["failed"]) == 8
    assert report["passed"] == len(cases) - 9
    assert set(report["failed"][0]) == {"expr", "expected", "got"}
    code, out, _ = go(capsys, "cases", str(path))
    assert "expected" in out
    assert json.loads(out.splitlines()[-1]) == report
    path.write_text(json.dumps(cases[:1]))
    assert go(capsys, "cases", str(path))[0] == 0
    path.write_text("nonsense")
    assert go(capsys, "cases", str(path))[0] == 2


@pytest.mark.parametrize("text", ["nope", '{"cases": 5}', "5", '"x"', "[" * 100_000, "\xff", ""])
def test_a_file_that_holds_no_cases_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str
) -> None:
    path = tmp_path / "cases.json"
    path.write_text(text, encoding="latin-1")
    assert go(capsys, "cases", str(path), "--json")[0] == (2 if text else 0)


def test_a_case_that_is_none_is_one_failed_case(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    good = {"expr": "1", "expect": 1}
    bad = [
        5, None, [], {}, {"expr": 5}, {"expr": None, "expect": 1}, {**good, "expect": {"$set": 5}},
        {**good, "tools": 5}, {**good, "ctx": 5}, {**good, "memory": [1]}, {**good, "history": 3},
        {**good, "journal": [1]}, {**good, "prints": 7}, {**good, "journal_after": 1},
        {**good, "expect": {"$nonsense": 1}}, {"expr": "(+ 1", "expect": 1}, {"expr": "\ud800"},
    ]  # fmt: skip
    path = tmp_path / "cases.json"
    path.write_text(json.dumps([good, *bad, good]))
    code, out, _ = go(capsys, "cases", str(path), "--json")
    found = json.loads(out)
    assert (code, found["passed"], found["skipped"]) == (1, 2, 0)
    assert len(found["failed"]) == len(bad)
    assert all(set(each) == {"expr", "expected", "got"} for each in found["failed"])


def test_the_manual_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert go(capsys, "manual")[1].startswith("# PTC-Lisp")
    assert json.loads(go(capsys, "manual", "--json")[1])["manual"].startswith("# PTC-Lisp")


def test_the_session_keeps_definitions_and_goes_on_after_errors(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = "(def x\n 5)\n\n(inc x)\n*1\n(oops)\n(str x)"
    monkeypatch.setattr("sys.stdin", io.StringIO(lines))
    code, out, err = go(capsys, "repl")
    assert code == 0
    assert out.splitlines() == ["#'x", "6", "6", '"5"']
    assert "oops" in err
    monkeypatch.setattr("sys.stdin", io.StringIO("(+ 1 2)\n(unclosed"))
    code, out, _ = go(capsys, "--json")  # a session is what the bare word begins
    endings = [json.loads(line)["ending"] for line in out.splitlines()]
    assert endings == ["value", "error"]


INTERRUPT = "\x03"


def test_a_session_on_a_terminal_edits_completes_remembers_and_survives_an_interrupt(
    tmp_path: Path,
) -> None:
    pid, terminal = pty.fork()
    if pid == 0:  # pragma: no cover  # becomes the session
        home = {**os.environ, "HOME": str(tmp_path), "TERM": "xterm"}
        os.execve(sys.executable, [sys.executable, "-m", "holdfast", "lisp", "repl"], home)
    seen = ""

    def see(text: str) -> None:
        nonlocal seen
        presses = 20
        while text not in seen:
            # The line editor overlooks an interrupt that comes while it handles a key.
            while not select.select([terminal], [], [], 1)[0]:
                presses -= 1
                assert presses, seen
                if typed == INTERRUPT:
                    os.write(terminal, typed.encode())
            seen += os.read(terminal, 4096).decode()
        seen = seen[seen.index(text) + len(text) :]

    turns = [
        ("(def answer 41)\r", "#'answer"),
        ("(+ answer\r", "..."),
        ("1)\r", "\n42"),
        ("(upc\t", "upcase"),
        (' "a")\r', '\n"A"'),
        ("(inc nil)\r", "type_error"),
        ("(half ", "(half "),
        (INTERRUPT, "interrupted"),
        ("answer\r", "\n41"),
        ("\x1b[A\x1b[A\r", "type_error"),
    ]
    typed = ""
    see("lisp> ")
    for typed, shown in turns:
        os.write(terminal, typed.encode())
        see(shown)
        if not shown.startswith(("...", "upcase", "(half")):
            see("lisp> ")
    os.write(terminal, b"\x04")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    os.close(terminal)
    assert "(def answer 41)" in (tmp_path / lisp.HISTORY_FILE).read_text()
