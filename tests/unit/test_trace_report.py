"""What an agent is told: enough, in order, within a real budget, and what was left out."""

import base64
import json
import math
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import mistral_common
import pytest
import tiktoken
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.trace import read, report, tokens
from holdfast.trace.events import Event
from holdfast.trace.recorder import ToolCall
from trace_world import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    found = World(tmp_path / "t.db")
    yield found
    found.close()


def context(world: World, max_tokens: int = 800, **named: Any) -> str:
    with world.reading() as connection:
        return report.context(connection, max_tokens, **named)


def fail(world: World, work: Any) -> Exception:
    try:
        work()
    except Exception as error:
        world.recorder.failure(error)
        return error
    raise AssertionError("nothing was raised")


@cache
def tokenizer() -> Any:
    """A real byte-pair tokenizer of 131,072 words, whose vocabulary ships inside a package."""
    path = files(mistral_common) / "data" / "tekken_240911.json"
    model = json.loads(path.read_text())
    size = model["config"]["default_vocab_size"] - model["config"]["default_num_special_tokens"]
    ranks = {base64.b64decode(row["token_bytes"]): row["rank"] for row in model["vocab"][:size]}
    return tiktoken.Encoding(
        name="tekken", pat_str=model["config"]["pattern"], mergeable_ranks=ranks, special_tokens={}
    )


def real_tokens(text: str) -> int:
    return len(tokenizer().encode(text, disallowed_special=()))


# --- ten planted crashes --------------------------------------------------------------------------


def none_price() -> None:
    order = {"items": [{"n": 2, "price": 3}, {"n": 1, "price": None}]}
    total = 0
    for item in order["items"]:
        total += item["n"] * item["price"]  # type: ignore[operator]


def missing_key() -> None:
    wanted = "colour"
    settings = {"color": "red"}
    settings[wanted]


def index_past_end() -> None:
    rows, position = ["a", "b", "c"], 3
    rows[position]


def zero_division() -> None:
    hits, requests = 12, 0
    hits / requests


def not_a_number() -> None:
    raw = "12,5"
    float(raw)


def missing_attribute() -> None:
    class Reply:
        def __init__(self) -> None:
            self.status, self.body = 503, "busy"

    reply = Reply()
    print(reply.text)  # type: ignore[attr-defined]


def missing_file() -> None:
    path = "/nowhere/settings.toml"
    with open(path):
        pass


def broken_json() -> None:
    text = '{"name": "x",}'
    parsed = text.strip()
    value = json.loads if parsed.endswith("]") else None
    value(parsed)  # type: ignore[misc]


def failed_assertion() -> None:
    balance, withdrawn = 40, 55
    assert balance >= withdrawn, "overdrawn"


def wrong_unpacking() -> None:
    record = ("id", "name", "extra")
    (only,) = record  # type: ignore[misc]
    print(only)


CRASHES = [
    (none_price, "item", "None"),
    (missing_key, "wanted", '"colour"'),
    (index_past_end, "position", "3"),
    (zero_division, "requests", "0"),
    (not_a_number, "raw", '"12,5"'),
    (missing_attribute, "reply", "status=503"),
    (missing_file, "path", '"/nowhere/settings.toml"'),
    (broken_json, "value", "None"),
    (failed_assertion, "withdrawn", "55"),
    (wrong_unpacking, "record", '"extra"'),
]


def named_by_a_reader(text: str) -> dict[str, str]:
    """A scripted reader: the names on the failing line and the value the text gives each."""
    source = next((line[2:] for line in text.splitlines() if line.startswith("> ")), "")
    values = dict(
        line.split(" = ", 1) for line in text.splitlines() if " = " in line and line[0] != ">"
    )
    return {name: value for name, value in values.items() if name in source}


@pytest.mark.parametrize(("crash", "name", "value"), CRASHES)
def test_a_reader_of_the_context_alone_names_variable_and_value(
    world: World, crash: Any, name: str, value: str
) -> None:
    fail(world, crash)
    named = named_by_a_reader(context(world, 300))
    assert value in named[name]


def test_a_reader_of_an_empty_context_names_nothing(world: World) -> None:
    world.recorder.failure(ValueError("x"))
    assert named_by_a_reader(context(world)) == {}


# --- what is in it --------------------------------------------------------------------------------


def scene(world: World, repository: Path) -> None:
    """A failed turn with everything an agent could ask for."""
    recorder = world.recorder
    recorder.start_session("agent", "mend the parser")
    recorder.llm_call("m1", tokens_in=100, tokens_out=50, prompt="what now?", response="run it")
    recorder.decision("which parser?", "the new one", "it is faster")
    with ToolCall(recorder, "pytest", {}, descriptors=False, session_id="") as call:
        print("collected 3 items")
        print("1 failed")
        call.exit_code = 1

    def low() -> None:
        raise KeyError("cause")

    def work() -> None:
        parser, line = "new", "a = "
        try:
            low()
        except KeyError as error:
            raise ValueError(f"bad line {line!r}") from error
        assert parser

    fail(world, work)


def test_the_context_of_a_failed_turn_has_all_of_it(world: World, tmp_path: Path) -> None:
    scene(world, tmp_path)
    text = context(world)
    for part in (
        "· agent · 150 tokens in all",
        "task: mend the parser",
        "## ValueError: bad line 'a = '",
        '> raise ValueError(f"bad line {line!r}") from error',
        'line = "a = "',
        "caused by KeyError: 'cause' at ",
        "## last tool: pytest (exit code 1)",
        "stdout: collected 3 items\nstdout: 1 failed",
        "## decided: which parser? -> the new one because it is faster",
        "## last model call: m1",
        'response: "run it"',
        "(complete)",
    ):
        assert part in text, part


def test_the_diff_of_a_failed_turn_is_in_its_context(world: World, tmp_path: Path) -> None:
    import subprocess

    repository = tmp_path / "r"
    repository.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=repository, check=True)
    (repository / "a.py").write_text("broken = True\n")
    world.recorder.git_diff(path=str(repository))
    fail(world, none_price)
    text = context(world)
    assert "## last change: turn 1, 1 files, +1 -0" in text
    assert "+broken = True" in text


def test_the_tool_that_raised_is_the_last_tool_of_its_failure(world: World) -> None:
    with (
        pytest.raises(ValueError, match="x"),
        ToolCall(world.recorder, "breaks", {"n": 1}, descriptors=False, session_id=""),
    ):
        raise ValueError("x")
    assert "## last tool: breaks (ValueError: x)" in context(world)


def test_without_a_failure_or_a_session_it_says_so(world: World) -> None:
    world.sink.flush()
    session_id = world.recorder.start_session("a")
    assert context(world).startswith(f"# session {session_id} · a · 0 tokens")
    assert context(world, session_id="unknown") == "No session is recorded.\n"


def test_an_empty_file_has_no_context(tmp_path: Path) -> None:
    world = World(tmp_path / "t.db")
    world.recorder.end_session(world.recorder.start_session("a"))
    with world.reading() as connection:
        pass
    import sqlite3

    empty = sqlite3.connect(tmp_path / "t.db")
    empty.execute("DELETE FROM agent_sessions")
    empty.commit()
    assert report.context(empty, 100) == "No session is recorded.\n"
    empty.close()
    world.close()
    assert connection is not None


def test_a_session_of_its_own_is_chosen_by_id(world: World) -> None:
    first = world.recorder.start_session("first")
    fail(world, zero_division)
    world.recorder.end_session()
    world.recorder.start_session("second")
    fail(world, not_a_number)
    assert "ValueError" in context(world)
    assert "ZeroDivisionError" in context(world, session_id=first)


def test_failures_are_found_by_place(world: World) -> None:
    fail(world, zero_division)
    line = zero_division.__code__.co_firstlineno + 2
    with world.reading() as connection:
        for file in (__file__, Path(__file__).name):
            assert len(report.failures_at(connection, file, line)) == 1
            assert len(report.failures_at(connection, file, None)) == 1
            assert report.failures_at(connection, file, line + 1) == []
        assert report.failures_at(connection, "other.py", None) == []


def test_every_kind_of_event_has_a_line(world: World, tmp_path: Path) -> None:
    scene(world, tmp_path)
    lines = [report.line(event) for event in world.events()]
    assert lines[0] == "m1  150 tokens"
    assert lines[1].startswith("which parser?")
    assert lines[2] == "pytest (exit code 1)"
    assert lines[3].startswith("ValueError: bad line")
    diff = {"turn_number": 1, "files_changed": 1, "lines_added": 2, "lines_removed": 3, "diff": ""}
    assert report.line(Event("1", "s", 1, "git_diff", diff)) == "turn 1, 1 files, +2 -3"
    unplaced = {"error": {"type": "E", "msg": "m"}}
    assert report.line(Event("1", "s", 1, "failure", unplaced)) == "E: m"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"type": "str", "value": 'a"b'}, '"a\\"b"'),
        ({"type": "NoneType", "value": None}, "None"),
        ({"type": "float", "value": "nan"}, "nan"),
        ({"type": "tuple", "len": 2, "items": [{"type": "int", "value": 1}]}, "(1, …1 more…)"),
        ({"type": "set", "len": 1, "items": [{"type": "int", "value": 1}]}, "{1}"),
        ({"type": "dict", "len": 0, "entries": {}}, "{}"),
        ({"type": "P", "attrs": {"x": {"type": "int", "value": 1}}}, "P(x=1)"),
        ({"type": "E", "items": [{"type": "int", "value": 1}]}, "E(1)"),
        ({"type": "object"}, "<object>"),
        ({"type": "Path", "value": "/a"}, 'Path("/a")'),
    ],
)
def test_a_descriptor_is_shown_close_to_how_python_would(value: dict[str, Any], shown: str) -> None:
    assert report.show(value) == shown


# --- the budget -----------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [report.TOKENS_MIN, 150, 300, 500, 800, 2000])
def test_a_real_tokenizer_counts_no_more_than_the_budget(
    world: World, tmp_path: Path, budget: int
) -> None:
    scene(world, tmp_path)
    world.recorder.llm_call(
        "m" * 100, prompt="長い文章 " * 300 + "∑∂ẽ" * 100, response="def f(x):\n\treturn x\n" * 100
    )

    def wide() -> None:
        values = {f"key{n}": "word " * 50 + "0x1f, " * 30 for n in range(20)}
        more = ["é" * 100] * 10
        raise ValueError("wide " * 200, values, more)

    fail(world, wide)
    text = context(world, budget)
    assert tokens.count(text) <= budget
    assert real_tokens(text) <= budget
    assert "ValueError" in text
    if budget < 2000:
        assert "left out for the budget" in text


@pytest.mark.parametrize("budget", [-1, 0, 1, 2, 20, 60, report.TOKENS_MIN - 1])
def test_a_budget_below_the_smallest_is_kept_by_its_beginning(world: World, budget: int) -> None:
    fail(world, zero_division)
    text = context(world, budget)
    assert real_tokens(text) <= max(budget, 0)
    assert context(world, report.TOKENS_MIN).startswith(text.rstrip("…\n"))
    assert ("ZeroDivisionError" in text) == (budget >= 60)


def test_the_same_rows_give_the_same_bytes(world: World, tmp_path: Path) -> None:
    scene(world, tmp_path)
    assert context(world, 200) == context(world, 200)


def test_what_was_left_out_is_counted(world: World) -> None:
    def work() -> None:
        a, b, c, d, e = ("x" * 150 for _ in range(5))
        raise ValueError(len(a + b + c + d + e))

    fail(world, work)
    text = context(world, 150)
    shown = sum(line.split(" = ")[0] in "abcde" for line in text.splitlines() if " = " in line)
    assert 0 < shown < 5
    assert f"{5 - shown} values of local values" in text


SENTENCES = st.text(
    st.sampled_from("ab cdefgh XYZ_(){}[]=:;,.\"'\n\t0123456789éß漢字€😀"), max_size=300
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(st.lists(SENTENCES, min_size=1, max_size=6), st.integers(100, 600))
def test_any_failure_fits_any_budget(texts: list[str], budget: int) -> None:
    payload = {
        "error": {"type": "E", "msg": texts[0]},
        "location": {"file": "f.py", "line": 1, "function": "g"},
        "source": texts[-1],
        "locals": {f"n{n}": {"type": "str", "value": text} for n, text in enumerate(texts)},
    }
    sections = report._failure(Event("1", "s", 1, "failure", payload))
    text = report._fit("# session s · a · 0 tokens in all", sections, budget)
    assert tokens.count(text) <= budget


SAMPLES = {
    "english": "The parser failed because the last line of the file was empty. " * 20,
    "code": Path(report.__file__).read_text(encoding="utf-8"),
    "json": json.dumps([{"id": n, "name": f"item-{n}", "price": n * 1.5} for n in range(200)]),
    "diff": "".join(f"+    value_{n} = compute(x[{n}])\n-    old_{n}()\n" for n in range(100)),
    "log": "2026-11-21 07:25:01.898Z INFO worker[12]: claimed task 4711 in 0.031 s\n" * 50,
    "german": "Die Verarbeitung wurde abgebrochen, weil die Datei größer als erlaubt war. " * 20,
    "chinese": "解析器失败是因为文件的最后一行是空的。" * 40,
}


@pytest.mark.parametrize("name", SAMPLES)
def test_the_estimate_is_never_below_a_real_tokenizer_and_not_far_above(name: str) -> None:
    text = SAMPLES[name]
    ratio = tokens.count(text) / real_tokens(text)
    assert ratio >= 1.0
    assert ratio <= (2.2 if name == "chinese" else 1.6)


def test_nothing_costs_nothing_and_anything_something() -> None:
    assert tokens.count("") == 0
    assert tokens.count("a") == math.ceil(tokens.MARGIN)
    assert tokens.pieces("a\nb\n") <= tokens.pieces("a\n") + tokens.pieces("b\n")


def test_the_reader_functions_say_nothing_of_a_session_without_calls(world: World) -> None:
    session_id = world.recorder.start_session("a")
    with world.reading() as connection:
        assert read.token_summary(connection, session_id)["models"] == {}
        assert read.count(connection, "failure", session_id) == 0
