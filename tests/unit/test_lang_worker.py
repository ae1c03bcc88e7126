"""Both ends of a run over one socket pair: the worker's answers and the parent's conversation."""

import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from holdfast.lang import worker
from holdfast.lang.api import Hit, LangError, Limits, Result, ToolRecord
from holdfast.lang.channel import HURRY, Channel, Message
from holdfast.lang.compiler import CodeCache
from holdfast.lang.conversation import (
    IN_FLIGHT_MAX,
    RECORDED_CHARS_MAX,
    RECORDED_ROWS_MAX,
    Breach,
    Conversation,
    Gone,
    job,
    mentioned,
    recorded,
)
from holdfast.lang.recorder import Recorder
from holdfast.lang.values import keyword

Side = Callable[[Channel], None]


@pytest.fixture
def pair() -> Iterator[tuple[Channel, Channel]]:
    near, far = socket.socketpair()
    with near, far:
        yield Channel(near), Channel(far)


def order(source: str, **inputs: Any) -> Message:
    settings: dict[str, Any] = {
        "context": {},
        "memory": {},
        "history": (),
        "limits": Limits(),
        "tools": [{"name": "echo"}, {"name": "boom"}],
        "final": True,
    }
    return job(source, **{**settings, **inputs})


def serve(channel: Channel) -> None:
    loaded = worker.load(channel)
    assert loaded is not None
    worker.answer(channel, loaded, CodeCache(), [b""])


def converse(
    pair: tuple[Channel, Channel],
    message: Message,
    side: Side = serve,
    host: Any = None,
    limits: Limits | None = None,
) -> tuple[Conversation, Result]:
    near, far = pair
    talk = Conversation(host or recorder(), limits or Limits(wall_s=10), ["echo", "boom"])
    thread = threading.Thread(target=side, args=(far,))
    thread.start()
    try:
        return talk, talk.hold(near, message)
    finally:
        near.hang_up()
        thread.join()
        talk.settle()


def recorder(journal: dict[str, Any] | None = None) -> Recorder:
    def boom(_: Any) -> None:
        raise LangError("boom", "no")

    return Recorder({} if journal is None else journal, {"echo": lambda args: args, "boom": boom})


def test_a_run_reaches_every_part_of_its_host(pair: tuple[Channel, Channel]) -> None:
    source = """
    (println "hello" data/name)
    (def f (fn [x] (+ x old)))
    (task-reset "gone")
    (step-done "one" "finished")
    [(f *1) (:a (tool/echo {:a 5})) (task "t" 6) (pmap inc [1 2]) (budget/remaining)]
    """
    journal: dict[str, Any] = {"t": 60}
    message = order(source, context={"name": "you"}, memory={"old": 2}, history=(3,))
    talk, result = converse(pair, message, host=recorder(journal))
    assert result.error is None, result.error
    assert result.value == (5, 5, 60, (2, 3), {})
    assert tuple(result.prints) == ("hello you",)
    assert set(result.memory) == {"old", "f"}
    assert result.summaries == {"one": "finished"}
    assert [call.name for call in result.tool_calls] == ["echo"]
    assert talk.seen.summaries == {"one": "finished"}
    assert result.pmap_calls[0].count == 2


def test_a_task_that_misses_is_recorded_and_a_hit_may_warn(pair: tuple[Channel, Channel]) -> None:
    journal: dict[str, Any] = {}
    _, first = converse(pair, order('(task "t" (+ 1 2))'), host=recorder(journal))
    assert (first.value, journal["t"]) == (3, 3)
    near, far = socket.socketpair()
    with near, far:
        again = (Channel(near), Channel(far))
        talk, second = converse(again, order('(task "t" (+ 2 2))'), host=recorder(journal))
    assert second.value == 3
    assert len(second.warnings) == len(talk.seen.warnings) == 1


def test_a_tool_that_fails_and_a_print_that_is_too_much(pair: tuple[Channel, Channel]) -> None:
    talk, result = converse(pair, order("(tool/boom {})"))
    assert result.error is not None
    assert result.error.code == "tool_error"
    assert "boom" in talk.seen.finished_calls()[0].error


def test_a_result_that_cannot_be_sent_is_the_programs_error(pair: tuple[Channel, Channel]) -> None:
    near, far = pair
    near.send(order("1", memory={"kept": 1}))
    loaded = worker.load(far)
    assert loaded is not None
    message = worker.encode_result(Result(ending="value", value=object()), loaded)
    assert (message["ending"], message["memory"]) == ("error", {"kept": 1})
    assert "cannot be sent" in message["error"]["message"]


def test_a_result_over_the_frames_bound_is_a_breach(pair: tuple[Channel, Channel]) -> None:
    pair[1].bytes_max = 2_000
    with pytest.raises(Breach) as caught:
        converse(pair, order("(apply str (range 2000))"))
    assert caught.value.error.details == {"wall": "channel", "limit": "frame"}


def test_an_argument_over_the_frames_bound_is_the_programs_error(
    pair: tuple[Channel, Channel],
) -> None:
    pair[1].bytes_max = 2_000
    _, result = converse(pair, order("(tool/echo {:x (apply str (range 2000))})"))
    assert result.error is not None
    assert result.error.details["limit"] == "frame"


def test_a_tool_result_over_the_frames_bound_is_the_programs_error(
    pair: tuple[Channel, Channel],
) -> None:
    pair[0].bytes_max = 2_000
    large = Recorder({}, {"echo": lambda _: "x" * 5_000})
    _, result = converse(pair, order("(tool/echo {})"), host=large)
    assert result.error is not None
    assert result.error.details["limit"] == "tool_result_bytes"


def test_only_inputs_that_are_mentioned_are_copied() -> None:
    source = '(+ data/rows (count data/user-name)) ; data/comment "data/text"'
    assert mentioned(source) == {"rows", "user-name", "comment", "text"}
    message = order("data/user-name", context={"user_name": "x", "secret": "y"})
    assert message["context"] == {"user-name": "x"}
    with pytest.raises(LangError):
        order("data/x", context={"x": object()})


REPLAY = "[(:a (tool/echo {:a 1})) (pmap (fn [x] (tool/echo {:x x})) [1 2]) (tool/echo {:b 2})]"


def test_a_worker_answers_what_was_recorded_and_only_the_rest_is_asked_for(
    pair: tuple[Channel, Channel],
) -> None:
    journal: dict[str, Any] = {}
    _, first = converse(pair, order(REPLAY), host=recorder(journal))
    del journal["@tool 1:67/0"]
    asked: list[str] = []

    class Asked(Recorder):
        def call_tool(self, path: str, name: str, args: dict[str, Any]) -> Any:
            asked.append(path)
            return super().call_tool(path, name, args)

    near, far = socket.socketpair()
    with near, far:
        host = Asked(journal, {"echo": lambda args: args})
        _, second = converse((Channel(near), Channel(far)), order(REPLAY), host=host)
    assert asked == ["1:67/0"]
    assert second.value == first.value
    assert sorted(map(shown, second.tool_calls)) == sorted(map(shown, first.tool_calls))


def shown(call: ToolRecord) -> str:
    return f"{call.path} {call.name} {call.args} {call.value}"


@pytest.mark.parametrize("args", [{"a": True}, {"a": 1.0}, {"a": "1"}, {}])
def test_a_recorded_call_with_other_arguments_is_the_parents_to_refuse(
    pair: tuple[Channel, Channel], args: dict[str, Any]
) -> None:
    journal = {"@tool 1:5/0": {"tool": "echo", "args": args, "value": 5}}
    _, result = converse(pair, order("(do (tool/echo {:a 1}))"), host=recorder(journal))
    assert result.error is not None
    assert result.error.code == "divergence"


def test_a_worker_is_told_only_what_its_own_program_recorded_with_tools_it_may_call() -> None:
    row = {"tool": "echo", "args": {}, "value": 1}
    journal = {
        "@tool 1:5/0": row,
        "@tool task:x#0/1:5/0": row,
        "@tool other/1:5/0": row,
        "@tool 2:5/0": {**row, "tool": "secret"},
        "@tool 3:5/0": {"tool": "echo"},
        "@tool 4:5/0": {**row, "value": object()},
        "@tool 5:5/0": 7,
        "a task": 5,
    }
    text = ("echo", "{}", "1")
    own = {"1:5/0": text, "task:x#0/1:5/0": text}
    assert recorded(Recorder(journal, {}), ["echo"]) == own
    assert recorded(Recorder(journal, {}, scope="other"), ["echo"]) == {"1:5/0": text}
    assert recorded(Recorder(journal, {}), []) == {}
    many = {f"@tool {line}:1/0": row for line in range(20_000)}
    assert 1_000 < len(recorded(Recorder(many, {}), ["echo"])) <= RECORDED_ROWS_MAX
    large = {f"@tool {line}:1/0": {**row, "value": "x" * 90_000} for line in range(20)}
    assert len(recorded(Recorder(large, {}), ["echo"])) == RECORDED_CHARS_MAX // 90_000


@pytest.mark.parametrize("paths", [["2:1/0"], ["1:5/0", "1:5/0"], [[]], 5, {"1:5/0": 1, "x": 1}])
def test_a_worker_that_claims_to_have_replayed_what_was_not_recorded_is_ended(
    pair: tuple[Channel, Channel], paths: Any
) -> None:
    journal = {"@tool 1:5/0": {"tool": "echo", "args": {}, "value": 5}}
    with pytest.raises(Breach):
        converse(pair, order("1"), frames({**DONE, "replayed": paths}), recorder(journal))


def frames(*messages: Message) -> Side:
    def side(channel: Channel) -> None:
        channel.receive()
        for message in messages:
            channel.send(message)
        channel.receive()

    return side


CALL = {"op": "call_tool", "n": 0, "together": False, "path": "1:1/0", "name": "echo", "args": {}}
DONE: Message = {
    "op": "done",
    "ending": "value",
    "value": 1,
    "error": None,
    "memory": {},
    "history": [],
    "prints": [],
    "pmap_calls": [],
    "warnings": [],
    "summaries": {},
    "usage": {"fuel": 1},
}
ERROR = {
    "code": "x",
    "message": "m",
    "line": 1,
    "column": 1,
    "source_line": "",
    "form": "",
    "hint": "",
    "details": {},
}
PARALLEL = {"path": "1:1/0", "type": "pmap", "count": 1, "success_count": 1, "error_count": 0}


@pytest.mark.parametrize(
    "message",
    [
        {"op": "job"},
        {"op": "printed", "text": None},
        {"op": "printed"},
        {**CALL, "name": "secret"},
        {**CALL, "args": {"x": {"$fn": 5}}},
        {**CALL, "args": {"x": {"$num": []}}},
        {**CALL, "n": "0"},
        {**CALL, "together": 1},
        {**CALL, "path": "x" * 20_000},
        {"op": "task_done", "n": 0, "together": False, "path": "", "id": "x", "source": ""},
        {**DONE, "ending": "ended"},
        {**DONE, "ending": "error"},
        {**DONE, "error": ERROR},
        {**DONE, "ending": "error", "error": {**ERROR, "line": "1"}},
        {**DONE, "ending": "error", "error": {**ERROR, "code": 1}},
        {**DONE, "value": {"$": 1}},
        {**DONE, "memory": []},
        {**DONE, "history": 5},
        {**DONE, "prints": [1]},
        {**DONE, "warnings": [None]},
        {**DONE, "summaries": {"a": 1}},
        {**DONE, "pmap_calls": [{**PARALLEL, "ms": "x"}]},
        {**DONE, "pmap_calls": [{**PARALLEL, "type": "fork", "ms": 1}]},
        {**DONE, "usage": {"fuel": "x"}},
        {**DONE, "usage": {"escape": 1}},
    ],
    ids=str,
)
def test_a_frame_that_no_worker_sends_is_a_breach(
    pair: tuple[Channel, Channel], message: Message
) -> None:
    with pytest.raises(Breach) as caught:
        converse(pair, order("1"), frames(message))
    assert caught.value.error.code == "sandbox_violation"
    assert caught.value.error.details == {"wall": "channel"}


def test_the_frames_of_an_honest_worker_are_none() -> None:
    """The rows above are refused for what is wrong with them, not for their common parts."""
    near, far = socket.socketpair()
    with near, far:
        both = (Channel(near), Channel(far))
        calls = [{**PARALLEL, "ms": 1.5}]
        _, result = converse(both, order("1"), frames(CALL, {**DONE, "pmap_calls": calls}))
    assert (result.value, result.usage.fuel, result.pmap_calls[0].ms) == (1, 1, 1.5)
    near, far = socket.socketpair()
    with near, far:
        both = (Channel(near), Channel(far))
        failed = {**DONE, "ending": "error", "error": ERROR}
        _, result = converse(both, order("1"), frames(failed))
    assert result.error is not None
    assert result.error.as_dict() == ERROR


@pytest.mark.parametrize(
    ("messages", "code", "limit"),
    [
        ([{"op": "memory"}], "memory_exceeded", "memory_bytes"),
        ([{"op": "unsendable"}], "memory_exceeded", "frame"),
        ([{"op": "printed", "text": "x" * 60}] * 2, "memory_exceeded", "output_bytes"),
        ([], "timeout", "wall_s"),
    ],
)
def test_a_breach_names_its_limit(
    pair: tuple[Channel, Channel], messages: list[Message], code: str, limit: str
) -> None:
    with pytest.raises(Breach) as caught:
        converse(pair, order("1"), frames(*messages), limits=Limits(output_bytes=100, wall_s=0.1))
    assert caught.value.error.code == code
    assert caught.value.error.details["limit"] == limit


def test_a_worker_that_closes_is_gone(pair: tuple[Channel, Channel]) -> None:
    with pytest.raises(Gone):
        converse(pair, order("1"), Channel.hang_up)


def test_a_worker_that_does_not_read_its_answers_is_hung_up_on(
    pair: tuple[Channel, Channel],
) -> None:
    flood = Recorder({}, {"echo": lambda _: "x" * 3_000_000})
    with pytest.raises((Gone, Breach)):
        converse(pair, order("1"), frames(CALL, CALL), flood, Limits(wall_s=0.1))


def test_more_calls_in_flight_than_an_honest_worker_makes_are_a_breach(
    pair: tuple[Channel, Channel],
) -> None:
    gate = threading.Event()

    def side(channel: Channel) -> None:
        channel.receive()
        for number in range(IN_FLIGHT_MAX + 20):
            channel.send({**CALL, "n": number, "together": True})
        channel.receive()

    def waiting(_: Any) -> Any:
        gate.wait(20)

    near, far = pair
    talk = Conversation(Recorder({}, {"echo": waiting}), Limits(wall_s=10), ["echo"])
    thread = threading.Thread(target=side, args=(far,))
    thread.start()
    with pytest.raises(Breach, match="in flight"):
        talk.hold(near, order("1"))
    near.hang_up()
    gate.set()
    talk.settle()
    thread.join()


def test_an_answer_for_another_branch_is_kept_for_it(pair: tuple[Channel, Channel]) -> None:
    near, far = pair
    host = worker.RemoteHost(far, {})
    got: dict[str, Any] = {}
    threads = [
        threading.Thread(target=lambda n=name: got.update({n: host.call_tool("p", n, {})}))
        for name in ("first", "second")
    ]
    for thread in threads:
        thread.start()
    asked = {}
    for _ in threads:
        message = near.receive()
        assert message is not None
        asked[message["name"]] = message["n"]
    near.send({"op": "answer", "n": asked["second"], "value": 2})
    near.send({"op": "answer", "n": asked["first"], "value": 1})
    for thread in threads:
        thread.join()
    assert got == {"first": 1, "second": 2}


def test_a_remote_host_asks_and_understands(pair: tuple[Channel, Channel]) -> None:
    near, far = pair
    host = worker.RemoteHost(far, {})
    replies = iter(
        [
            {"hit": True, "value": ":k", "warning": "w"},
            {"hit": False, "generation": 3},
            {"error": LangError("divergence", "no").as_dict()},
        ]
    )

    def parent() -> None:
        for reply in replies:
            message = near.receive()
            assert message is not None
            near.send({"op": "answer", "n": message["n"], **reply})

    thread = threading.Thread(target=parent)
    thread.start()
    assert host.task_begin("p", "id", "s") == Hit(keyword("k"), "w")
    missed = host.task_begin("p", "id", "s")
    assert not isinstance(missed, Hit)
    assert missed.generation == 3
    with pytest.raises(LangError, match="no"):
        host.task_reset("p", "id")
    thread.join()


def test_every_rehearsal_is_a_run_without_an_error() -> None:
    worker.rehearse()
    for source in worker.REHEARSALS:
        worker.rehearse_alone(source)
    with pytest.raises(AssertionError, match="arithmetic_error"):
        worker.rehearse_alone("(/ 1 0)")


def test_a_worker_takes_its_job_whether_or_not_it_was_told_to_hurry(
    pair: tuple[Channel, Channel],
) -> None:
    near, far = pair
    for hurries in (0, 1, 2):
        for _ in range(hurries):
            near.send(HURRY)
        near.send(order("(+ 1 2)"))
        job = worker.load(far)
        assert job is not None
        assert job.source == "(+ 1 2)"


def test_a_closed_channel_has_no_job(pair: tuple[Channel, Channel]) -> None:
    pair[0].hang_up()
    assert worker.load(pair[1]) is None
