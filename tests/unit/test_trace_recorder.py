"""Recording: sessions, calls, totals, levels, and a guard that lets nothing out."""

import asyncio
import threading
from collections.abc import Iterator
from contextvars import copy_context
from pathlib import Path
from typing import Any

import pytest

from holdfast.trace import read
from holdfast.trace.events import Event, Session
from holdfast.trace.recorder import LlmCall, Recorder, SessionBlock, ToolCall
from holdfast.trace.sessions import ID_CHARS_MAX, Sessions
from trace_world import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    found = World(tmp_path / "t.db")
    yield found
    found.close()


def in_fresh_context(work: Any) -> Any:
    return copy_context().run(work)


def test_a_session_is_ambient_until_it_ends_and_its_parent_again_after(world: World) -> None:
    recorder = world.recorder
    outer = recorder.start_session("outer", "task")
    inner = recorder.start_session("inner")
    assert recorder.sessions.current() == inner
    assert inner.startswith(outer + "/")
    recorder.end_session()
    assert recorder.sessions.current() == outer
    recorder.end_session(inner)
    recorder.end_session(outer)
    assert recorder.sessions.current() == ""
    ended = [(row["agent_name"], row["end_ts"] is not None) for row in world.sessions()]
    assert ended == [("outer", True), ("inner", True)]


def test_ending_is_idempotent_and_ending_nothing_does_nothing(world: World) -> None:
    world.recorder.end_session()
    session_id = world.recorder.start_session("a")
    world.recorder.end_session(session_id)
    (first,) = world.sessions()
    world.recorder.end_session(session_id)
    assert world.sessions() == [first]


def test_parallel_tasks_each_see_their_own_session(world: World) -> None:
    async def agent(name: str) -> tuple[str, str]:
        started = world.recorder.start_session(name)
        await asyncio.sleep(0)
        world.recorder.llm_call(name)
        return started, world.recorder.sessions.current()

    async def both() -> list[tuple[str, str]]:
        return list(await asyncio.gather(agent("a"), agent("b")))

    found = asyncio.run(both())
    assert all(started == seen for started, seen in found)
    by_session = {event.session_id: event.payload["model"] for event in world.events()}
    assert by_session == {found[0][0]: "a", found[1][0]: "b"}


def test_threads_see_their_own_session_and_a_bare_thread_the_first_one(world: World) -> None:
    first = world.recorder.start_session("main")
    seen: dict[str, str] = {}

    def bare() -> None:
        seen["bare"] = world.recorder.sessions.current()

    def own() -> None:
        seen["started"] = world.recorder.start_session("thread")
        seen["own"] = world.recorder.sessions.current()

    threads = [threading.Thread(target=work) for work in (bare, own)]
    for thread in threads:
        thread.start()
        thread.join()
    assert seen["bare"] == first
    assert seen["own"] == seen["started"] == f"{first}/{seen['own'].split('/')[1]}"
    assert world.recorder.sessions.current() == first


def test_a_parent_from_outside_is_where_sessions_nest(tmp_path: Path) -> None:
    world = World(tmp_path / "t.db", parent="above")
    assert world.recorder.start_session("a").startswith("above/")
    world.close()


def test_an_id_that_grew_too_long_starts_anew() -> None:
    sessions = Sessions("p" * ID_CHARS_MAX)
    assert sessions.nest("own") == "own"
    assert Sessions("p" * (ID_CHARS_MAX - 1)).nest("own").endswith("/own")


def test_code_without_a_session_gets_one_named_after_the_program(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["/x/app.py", "--password", "hunter22", "--n=3"])
    world.recorder.decision("q", "a")
    (row,) = world.sessions()
    assert row["agent_name"] == "app.py"
    assert row["task"] == "app.py --password [redacted:name:password] --n=3"


def test_an_explicit_session_wins_over_the_ambient_one(world: World) -> None:
    ambient = world.recorder.start_session("a")
    world.recorder.llm_call("m", session_id="other", tokens_in=1, tokens_out=1)
    assert [event.session_id for event in world.events()] == ["other"]
    with world.reading() as connection:
        assert read.token_summary(connection, ambient)["total_tokens"] == 0
        assert read.token_summary(connection, "other")["total_tokens"] == 2


def test_token_summary_is_over_all_rows_after_many_calls_and_a_restart(tmp_path: Path) -> None:
    path, calls = tmp_path / "t.db", 10_000
    world = World(path)
    world.sink.buffer = 500
    session_id = world.recorder.start_session("a")
    for number in range(calls):
        model = "big" if number % 2 else "small"
        known = number % 10 != 0
        world.recorder.llm_call(
            model, tokens_in=2 if known else None, tokens_out=1 if known else None
        )
    world.sink.close()
    again = World(path)
    again.recorder.llm_call("big", tokens_in=5, tokens_out=5, session_id=session_id)
    with again.reading() as connection:
        summary = read.token_summary(connection, session_id)
        row = read.session(connection, session_id)
    assert summary["models"]["small"] == {
        "calls": 5000,
        "unknown_calls": 1000,
        "estimated_calls": 0,
        "tokens_in": 8000,
        "tokens_out": 4000,
        "tokens_cached": 0,
        "tokens_reasoning": 0,
        "tokens_total": 12_000,
        "cost_nusd": 0,
        "unpriced_calls": 5000,
    }
    assert summary["cost_usd"] is None, "what has no price is not free"
    assert summary["unknown_calls"] == 1000
    assert summary["total_tokens"] == 9000 * 3 + 10
    assert row is not None
    assert row["total_tokens"] == summary["total_tokens"]
    again.close()


@pytest.mark.parametrize("count", [-1, True, "5", 1.5])
def test_a_count_that_is_no_count_is_unknown(world: World, count: Any) -> None:
    world.recorder.llm_call("m", tokens_in=count, tokens_out=3)
    (event,) = world.events()
    assert "tokens_in" not in event.payload
    assert event.payload["tokens_out"] == 3


def test_a_model_call_block_records_time_usage_and_what_was_said(world: World) -> None:
    with LlmCall(world.recorder, "m", [{"role": "user", "content": "hi"}], "") as call:
        call.response = {"text": "yo"}
        call.usage(10, 5)
    (event,) = world.events()
    assert event.payload["tokens_total"] == 15
    assert event.payload["duration_ms"] >= 0
    assert event.payload["response"]["entries"]["text"]["value"] == "yo"
    assert event.tokens == 0  # known to the writer alone; readers sum the payloads


def test_a_call_without_an_id_of_its_own_goes_by_its_event_s(world: World) -> None:
    event_id = world.recorder.llm_call("m")
    world.recorder.llm_call("m", call_id="mine")
    assert [event.payload["call_id"] for event in world.events()] == [event_id, "mine"]


def test_a_model_call_that_raises_is_recorded_with_its_failure(world: World) -> None:
    with pytest.raises(ValueError, match="bad"), LlmCall(world.recorder, "m", None, ""):
        raise ValueError("bad")
    call, failure = world.events()
    assert call.payload["error"] == {"type": "ValueError", "msg": "bad"}
    assert failure.payload["origin"] == "llm"


def test_an_interrupt_is_recorded_with_the_call_but_is_no_failure_of_it(world: World) -> None:
    with pytest.raises(KeyboardInterrupt), LlmCall(world.recorder, "m", None, ""):
        raise KeyboardInterrupt
    assert [event.kind for event in world.events()] == ["llm_call"]
    with pytest.raises(KeyboardInterrupt), tool(world):
        raise KeyboardInterrupt
    assert [event.kind for event in world.events()] == ["llm_call", "tool_output"]


def tool(world: World) -> ToolCall:
    return ToolCall(world.recorder, "t", {}, descriptors=False, session_id="")


def test_a_failure_is_recorded_once_wherever_it_passes(world: World) -> None:
    error = ValueError("x")
    assert world.recorder.failure(error) != ""
    assert world.recorder.failure(error) == ""
    assert len(world.events("failure")) == 1


def test_a_failure_belongs_to_the_session_whose_block_it_left(world: World) -> None:
    recorder = world.recorder
    recorder.start_session("outer")
    inner = ""
    with pytest.raises(ValueError, match="x") as caught, SessionBlock(recorder, "mid", ""):  # noqa: SIM117  the inner one is inside
        with SessionBlock(recorder, "inner", "") as inner:
            raise ValueError("x")
    recorder.failure(caught.value)
    assert world.events("failure")[0].session_id == inner


def test_a_decision_is_recorded_with_its_context_described(world: World) -> None:
    world.recorder.decision("which?", "this", "cheaper", {"n": 3})
    (event,) = world.events()
    assert event.payload["question"] == "which?"
    assert event.payload["answer"] == "this"
    assert event.payload["reason"] == "cheaper"
    assert event.payload["context"]["entries"]["n"]["value"] == 3


@pytest.mark.parametrize(
    ("level", "kept"),
    [
        ("debug", ["llm_call", "llm_call", "tool_output", "decision", "failure"]),
        ("info", ["llm_call", "llm_call", "tool_output", "decision", "failure"]),
        ("warning", ["llm_call", "decision", "failure"]),
        ("error", ["failure"]),
    ],
)
def test_a_level_says_how_much_is_kept(tmp_path: Path, level: Any, kept: list[str]) -> None:
    world = World(tmp_path / "t.db", level=level)
    world.recorder.llm_call("m")
    world.recorder.llm_call("m", error=ValueError("x"))
    with tool(world):
        pass
    world.recorder.decision("q", "a")
    world.recorder.git_diff(path=str(tmp_path))
    world.recorder.failure(ValueError("y"))
    assert [event.kind for event in world.events()] == kept
    world.close()


def test_what_goes_wrong_while_recording_stays_inside_and_is_counted(world: World) -> None:
    assert world.recorder.failure(5) == ""  # type: ignore[arg-type]  # a caller's mistake
    assert world.recorder.lost == 1
    assert world.recorder.llm_call("m", duration_ms=float("nan")) != ""


def test_a_credential_that_is_loaded_later_or_changed_is_hidden_too(tmp_path: Path) -> None:
    secrets = {"A": "first-value"}
    world = World(tmp_path / "t.db", secrets=secrets)
    secrets["B"] = "later-value"
    world.recorder.start_session("first-value later-value")
    secrets["A"] = "changed-value"
    world.recorder.failure(ValueError("first-value later-value changed-value"))
    (row,) = world.sessions()
    assert row["agent_name"] == "[redacted:credential:A] [redacted:credential:B]"
    (event,) = world.events()
    assert "value" not in event.payload["error"]["msg"]
    assert event.payload["error"]["msg"].count("[redacted:credential:") == 3
    world.close()


def test_a_caller_s_mistake_is_described_instead_of_raised(world: World) -> None:
    world.recorder.start_session(None, ["a"])  # type: ignore[arg-type]  # the mistake
    world.recorder.llm_call(5, call_id=7)  # type: ignore[arg-type]  # the mistake
    world.recorder.decision({"q": 1}, None)  # type: ignore[arg-type]  # the mistake
    (row,) = world.sessions()
    assert (row["agent_name"], row["task"]) == ("None", "list")
    call, decision = world.events()
    assert (call.payload["model"], call.payload["call_id"]) == ("5", "7")
    assert (decision.payload["question"], decision.payload["answer"]) == ("dict", "None")


def test_a_sink_that_raises_does_not_reach_the_program() -> None:
    class Broken:
        def open_session(self, session: Session) -> None:
            raise OSError("broken")

        def close_session(self, session_id: str, end_ts: int) -> None:
            raise OSError("broken")

        def write(self, event: Event) -> None:
            raise OSError("broken")

    recorder = Recorder(Broken())
    session_id = in_fresh_context(lambda: recorder.start_session("a"))
    assert session_id
    assert in_fresh_context(lambda: recorder.decision("q", "a")) == ""
    recorder.end_session(session_id)
    assert recorder.lost == 3


def test_recording_inside_recording_is_ignored() -> None:
    class Echo:
        """A sink that logs, through the very recorder that writes to it."""

        def __init__(self) -> None:
            self.events: list[Event] = []

        def open_session(self, session: Session) -> None:
            recorder.decision("again", "open")

        def close_session(self, session_id: str, end_ts: int) -> None:
            recorder.decision("again", "close")

        def write(self, event: Event) -> None:
            self.events.append(event)
            recorder.decision("again", "write")

    sink = Echo()
    recorder = Recorder(sink)
    in_fresh_context(lambda: recorder.decision("once", "yes"))
    assert [event.payload["question"] for event in sink.events] == ["once"]


def test_ten_events_of_a_switched_kind_read_back_in_order(world: World) -> None:
    for number in range(10):
        world.recorder.decision(str(number), "a")
    assert [event.payload["question"] for event in world.events()] == [str(n) for n in range(10)]
    with world.reading() as connection:
        newest = read.newest(connection, 3)
        assert [event.payload["question"] for event in newest] == ["7", "8", "9"]
        of_session = read.newest(connection, 2, newest[0].session_id)
        assert [event.payload["question"] for event in of_session] == ["8", "9"]
        after = list(read.events(connection, after=newest[1].id, kind="decision"))
        assert [event.id for event in after] == [newest[2].id]
        assert read.event(connection, "nothing") is None
        assert read.session(connection, "nothing") is None
