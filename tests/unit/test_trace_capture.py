"""What a failure holds: the bottom frame alone, names of the failing line first, causes as text."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast.trace import capture
from holdfast.trace.redact import Redactor
from trace_samples import SECRETS

REDACTOR = Redactor()


def failure_of(work: Any, redactor: Redactor = REDACTOR) -> dict[str, Any]:
    try:
        work()
    except BaseException as error:
        return capture.failure(error, redactor, "main")
    raise AssertionError("nothing was raised")


def test_only_the_frame_that_raised_is_described() -> None:
    def bottom() -> None:
        mine = 1
        raise ValueError(mine)

    def caller() -> None:
        not_mine = "caller"
        bottom()
        assert not_mine

    found = failure_of(caller)
    assert found["location"]["function"] == "bottom"
    assert set(found["locals"]) == {"mine"}
    assert "caller" not in json.dumps(found)
    assert found["source"] == "raise ValueError(mine)"
    assert found["location"]["line"] == bottom.__code__.co_firstlineno + 2
    assert found["location"]["file"] == __file__


def test_names_on_the_failing_line_come_first_even_over_several_lines() -> None:
    def work() -> None:
        aaa, zzz, late = 1, 0, 2
        print(
            late,
            aaa / zzz,
        )

    found = failure_of(work)
    assert list(found["locals"])[:2] == ["aaa", "zzz"]
    assert found["source"] == "aaa / zzz,"


def test_furniture_is_shown_only_on_the_failing_line() -> None:
    def helper() -> None:
        """Furniture."""

    def work() -> None:
        shown, hidden, module = helper, helper, sys
        assert hidden
        assert module
        raise ValueError(shown)

    assert set(failure_of(work)["locals"]) == {"shown"}


def test_locals_are_bounded_in_number() -> None:
    space: dict[str, Any] = {}
    many = "\n ".join(f"v{number} = {number}" for number in range(50))
    compiled = compile(f"def work():\n {many}\n raise ValueError()", "<text>", "exec")
    exec(compiled, space)  # a function of fifty names
    assert len(failure_of(space["work"])["locals"]) == capture.LOCALS_MAX


def test_a_missing_or_huge_source_file_costs_only_the_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "gone.py"
    compiled = compile("def work():\n value = 3\n raise ValueError()", str(path), "exec")
    space: dict[str, Any] = {}
    exec(compiled, space)
    found = failure_of(space["work"])
    assert found["source"] == ""
    assert found["locals"]["value"]["value"] == 3
    path.write_text("\n\n raise ValueError()\n")
    assert failure_of(space["work"])["source"] == "raise ValueError()"
    monkeypatch.setattr(capture, "SOURCE_BYTES_MAX", 5)
    assert failure_of(space["work"])["source"] == ""


def test_causes_are_one_line_each_about_their_own_bottom_frame() -> None:
    def low() -> None:
        secret_local = "x"
        raise KeyError(secret_local)

    def work() -> None:
        try:
            low()
        except KeyError as error:
            raise ValueError("high") from error

    found = failure_of(work)
    (cause,) = found["causes"]
    assert cause.startswith("KeyError: 'x' at ")
    assert cause.endswith(" in low")
    assert "secret_local" not in json.dumps(found)


def test_contexts_groups_and_cycles_are_followed_and_bounded() -> None:
    def suppressed() -> None:
        try:
            raise KeyError("a")
        except KeyError:
            raise ValueError("b") from None

    def implicit() -> None:
        try:
            raise KeyError("a")
        except KeyError:
            raise ValueError("b")  # noqa: B904  the point of the test

    def group() -> None:
        raise ExceptionGroup("many", [ValueError(str(n)) for n in range(9)])

    def cycle() -> None:
        one, two = ValueError("1"), ValueError("2")
        one.__cause__, two.__cause__ = two, one
        raise one

    assert "causes" not in failure_of(suppressed)
    assert failure_of(implicit)["causes"][0].startswith("KeyError: 'a'")
    assert len(failure_of(group)["causes"]) == capture.CAUSES_MAX
    assert failure_of(cycle)["causes"] == ["ValueError: 2"]


def test_the_message_comes_from_arguments_and_notes_and_no_code_runs() -> None:
    class Loud(Exception):
        def __str__(self) -> str:
            raise RuntimeError("ran")

        def __getattribute__(self, name: str) -> Any:
            if name == "args":
                raise RuntimeError("ran")
            return super().__getattribute__(name)

    class Odd:
        def __str__(self) -> str:
            raise RuntimeError("ran")

    def message(error: BaseException) -> str:
        return capture.error_of(error, REDACTOR)["msg"]

    assert message(Loud("a", 2)) == "a, 2"
    assert message(ValueError(Odd())) == "Odd"
    assert message(ValueError()) == ""
    assert message(FileNotFoundError(2, "No such file", "/x")) == "[Errno 2] No such file: '/x'"
    assert message(OSError(2, "No such file", Odd())) == "2, No such file"
    noted = ValueError("a")
    noted.add_note("while reading b")
    noted.__notes__.append(5)  # type: ignore[arg-type]  # not ours to judge
    assert message(noted) == "a\nwhile reading b"


def test_an_exception_that_was_never_raised_has_no_place() -> None:
    found = capture.failure(ValueError("x"), REDACTOR, "handled")
    assert set(found) == {"error", "origin"}


def test_secrets_in_locals_messages_and_sources_are_hidden() -> None:
    secret = SECRETS["github_token"]

    def work() -> None:
        plain, api_key, nested = secret, "k1", {"deep": [secret]}
        raise ValueError(f"denied for {secret}", plain, api_key, nested)

    found = failure_of(work)
    assert secret not in json.dumps(found)
    assert found["locals"]["api_key"]["value"] == "[redacted:name:api_key]"


def test_a_class_body_in_a_mapping_of_its_own_shows_no_locals() -> None:
    class Space(dict):  # type: ignore[type-arg]
        def __getitem__(self, key: str) -> Any:
            return super().__getitem__(key)

    class Meta(type):
        @classmethod
        def __prepare__(cls, name: str, bases: Any, /, **named: Any) -> Any:
            return Space()

    def work() -> None:
        class Broken(metaclass=Meta):
            x = 1
            raise ValueError("in a class body")

    assert failure_of(work)["locals"] == {}


def test_frames_of_this_package_are_never_to_blame() -> None:
    def work() -> None:
        capture.clip(5, REDACTOR, 10)  # type: ignore[arg-type]  # raises inside this package

    assert failure_of(work)["location"]["function"] == "work"


def test_a_span_is_the_line_itself_where_positions_are_unknown() -> None:
    code = compile("x = 1\n", "<text>", "exec")
    assert capture._span(code, 10_000, 7) == (7, 7)
