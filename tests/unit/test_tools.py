"""The six tools on real files: paths that cannot leave, bounded and redacted answers."""

import asyncio
import hashlib
import json
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from holdfast.adapters.tools import builtin_tools, check_arguments, matcher, search
from holdfast.adapters.tools.paths import Refusal, place, read_bytes, shown, walk
from holdfast.config import Settings
from holdfast.domain.ports import Observation

SECRET = "sk-" + "0123456789abcdef" * 3
PEM = "-----BEGIN KEY-----\nMIIabcdef\nMIIghijkl\n-----END KEY-----"


def redact(text: str) -> str:
    return text.replace(SECRET, "[redacted:key]").replace(PEM, "[redacted:pem]")


@dataclass(frozen=True)
class Hands:
    """The tools over one directory. No command runs here, so there is no sandbox."""

    root: Path
    sandbox: Any = None
    file_bytes_max: int = 10_000
    output_bytes_max: int = 2_000

    def __call__(self, tool: str, **arguments: Any) -> Observation:
        sizes = Settings(file_bytes_max=self.file_bytes_max, output_bytes_max=self.output_bytes_max)
        tools = builtin_tools(redact=redact, settings=sizes)
        assert check_arguments(tools[tool].spec, arguments) == []
        observation = asyncio.run(tools[tool].call(arguments, self))  # type: ignore[arg-type]
        json.dumps(dict(observation.data))
        observation.output.encode()
        assert SECRET not in repr(observation)
        assert (observation.error is None) is observation.success
        return observation

    def code(self, tool: str, **arguments: Any) -> str:
        observation = self(tool, **arguments)
        assert observation.error is not None
        return observation.error.code


@pytest.fixture
def hands(tmp_path: Path) -> Hands:
    root = tmp_path / "ws"
    (root / "src").mkdir(parents=True)
    (root / "src/a.py").write_text("one\ntwo\nthree\n")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_text("outside")
    return Hands(root)


# --- paths ----------------------------------------------------------------------------------------


def test_no_path_leaves_the_workspace_for_any_tool(hands: Hands) -> None:
    root, outside = hands.root, hands.root.parent / "outside"
    (root / "link").symlink_to(outside / "secret")
    (root / "linked").symlink_to(outside)
    (root / "src/up").symlink_to("../../outside")
    (root / "loop").symlink_to("loop")
    (root / "chain").symlink_to("src/up/../outside")
    calls: list[tuple[str, Mapping[str, Any]]] = [
        ("read_file", {}),
        ("write_file", {"content": "x"}),
        ("edit_file", {"edits": [{"search": "outside", "replace": "x"}]}),
        ("list_directory", {}),
        ("search_files", {"pattern": "outside"}),
    ]
    table = {
        "..": "PATH_OUTSIDE_WORKSPACE",
        "../outside/secret": "PATH_OUTSIDE_WORKSPACE",
        "src/../../outside/secret": "PATH_OUTSIDE_WORKSPACE",
        "/etc/passwd": "PATH_OUTSIDE_WORKSPACE",
        str(outside / "secret"): "PATH_OUTSIDE_WORKSPACE",
        "/workspaces/x": "PATH_OUTSIDE_WORKSPACE",
        "/workspace/../outside/secret": "PATH_OUTSIDE_WORKSPACE",
        ".git/config": "PATH_OUTSIDE_WORKSPACE",
        "src/.GIT": "PATH_OUTSIDE_WORKSPACE",
        "link": "SYMLINK_OUTSIDE_WORKSPACE",
        "linked/secret": "SYMLINK_OUTSIDE_WORKSPACE",
        "linked/new/deep": "SYMLINK_OUTSIDE_WORKSPACE",
        "src/up/secret": "SYMLINK_OUTSIDE_WORKSPACE",
        "chain/secret": "SYMLINK_OUTSIDE_WORKSPACE",
        "loop": "SYMLINK_OUTSIDE_WORKSPACE",
        "a\0b": "INVALID_ARGUMENTS",
        "\ud800": "INVALID_ARGUMENTS",
        "/".join("d" * 100): "INVALID_ARGUMENTS",
    }
    for path, code in table.items():
        for tool, more in calls:
            assert hands.code(tool, path=path, **more) == code, (tool, path)
    assert (outside / "secret").read_text() == "outside"
    assert os.listdir(outside) == ["secret"]


def test_links_that_stay_inside_and_the_commands_view_of_a_path_work(hands: Hands) -> None:
    (hands.root / "in").symlink_to("src")
    (hands.root / "src/abs").symlink_to("/workspace/src/a.py")
    for path in ("in/a.py", "/workspace/src/a.py", "src/abs", "in/../src/./a.py", "//workspace"):
        if path == "//workspace":
            assert hands.code("read_file", path=path) == "PATH_OUTSIDE_WORKSPACE"
        else:
            assert "two" in hands("read_file", path=path).output
    hands("write_file", path="src/abs", content="new\n")
    assert (hands.root / "src/a.py").read_text() == "new\n"
    assert (hands.root / "src/abs").is_symlink()


def test_what_is_no_regular_file_is_refused_without_being_opened(
    hands: Hands, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(hands.root / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        monkeypatch.chdir(hands.root)
        listener.bind("socket")
        for path in ("pipe", "socket", "src", "."):
            assert hands.code("read_file", path=path) == "NOT_A_FILE"
            assert hands.code("write_file", path=path, content="x") == "NOT_A_FILE"
    if os.geteuid() == 0:
        os.mknod(hands.root / "device", stat.S_IFCHR | 0o600, os.makedev(1, 3))
        assert hands.code("read_file", path="device") == "NOT_A_FILE"


def test_a_component_swapped_for_a_link_during_the_call_changes_nothing(hands: Hands) -> None:
    outside = hands.root.parent / "outside"
    with place(hands.root, "src/secret") as at:
        (hands.root / "src").rename(hands.root / "moved")
        (hands.root / "src").symlink_to(outside)
        with pytest.raises(Refusal) as caught:
            read_bytes(at, bytes_max=100)
    assert caught.value.code == "FILE_NOT_FOUND"


def test_a_file_swapped_for_a_link_after_the_look_is_not_followed(
    hands: Hands, monkeypatch: pytest.MonkeyPatch
) -> None:
    from holdfast.adapters.tools import paths

    target = hands.root / "src/a.py"

    def swap_after_look(at: paths.Place) -> None:
        target.unlink()
        target.symlink_to(hands.root.parent / "outside/secret")

    monkeypatch.setattr(paths, "check_regular", swap_after_look)
    with place(hands.root, "src/a.py") as at, pytest.raises(Refusal) as caught:
        read_bytes(at, bytes_max=100)
    assert caught.value.code == "SYMLINK_OUTSIDE_WORKSPACE"


def test_a_directory_swapped_for_a_link_between_look_and_open_is_refused(
    hands: Hands, monkeypatch: pytest.MonkeyPatch
) -> None:
    from holdfast.adapters.tools import paths

    outside = hands.root.parent / "outside"
    (hands.root / "dir").symlink_to(outside)
    monkeypatch.setattr(paths.Place, "kind", lambda self: stat.S_IFDIR)
    assert hands.code("read_file", path="dir/secret") == "SYMLINK_OUTSIDE_WORKSPACE"
    assert hands.code("list_directory", path="dir") == "NOT_A_DIRECTORY"


def test_no_descriptor_stays_open(hands: Hands) -> None:
    hands("list_directory", recursive=True)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        hands("list_directory", recursive=True)
        hands("read_file", path="src/a.py")
        hands.code("read_file", path="src/../../x")
        hands.code("read_file", path="nope/x")
    assert len(os.listdir("/proc/self/fd")) == before


# --- reading --------------------------------------------------------------------------------------


def test_reading_numbers_lines_and_tells_the_hash(hands: Hands) -> None:
    seen = hands("read_file", path="src/a.py", start_line=2)
    digest = hashlib.sha256(b"one\ntwo\nthree\n").hexdigest()
    assert seen.output == f"     2\ttwo\n     3\tthree\n[lines 2-3 of 3; hash {digest[:12]}]"
    assert seen.data["sha256"] == digest
    assert hands("read_file", path="src/a.py", end_line=1).data["last"] == 1
    assert hands.code("read_file", path="src/a.py", start_line=9) == "INVALID_ARGUMENTS"


def test_reading_an_empty_file_says_so(hands: Hands) -> None:
    (hands.root / "empty").touch()
    assert "empty" in hands("read_file", path="empty").output


def test_a_long_file_is_read_in_parts_that_join(hands: Hands) -> None:
    lines = [f"line {number}" for number in range(1, 500)]
    (hands.root / "long").write_text("\n".join(lines) + "\n")
    start, seen = 1, []
    while start <= 499:
        part = hands("read_file", path="long", start_line=start)
        assert len(part.output.encode()) <= hands.output_bytes_max + 200
        seen += [row.split("\t")[1] for row in part.output.splitlines()[:-1]]
        start = part.data["last"] + 1
    assert seen == lines


def test_one_line_over_the_limit_is_cut(hands: Hands) -> None:
    (hands.root / "wide").write_text("x" * 9_000)
    assert len(hands("read_file", path="wide").output) < 2_200


def test_the_file_limit_refuses_and_lifts(hands: Hands) -> None:
    (hands.root / "big").write_text("x" * 10_001)
    assert hands.code("read_file", path="big") == "FILE_TOO_LARGE"
    assert hands.code("write_file", path="new", content="x" * 10_001) == "FILE_TOO_LARGE"
    assert Hands(hands.root, file_bytes_max=10_001)("read_file", path="big").success
    grow = [{"search": "three", "replace": "y" * 10_000}]
    assert hands.code("edit_file", path="src/a.py", edits=grow) == "FILE_TOO_LARGE"
    assert (hands.root / "src/a.py").read_text() == "one\ntwo\nthree\n"


@pytest.mark.parametrize("data", [b"a\0b", b"\xff\xfe\xfa"])
def test_binary_files_are_refused(hands: Hands, data: bytes) -> None:
    (hands.root / "binary").write_bytes(data)
    assert hands.code("read_file", path="binary") == "BINARY_FILE"
    edits = [{"search": "a", "replace": "b"}]
    assert hands.code("edit_file", path="binary", edits=edits) == "BINARY_FILE"


def test_missing_files_and_files_used_as_directories_are_named(hands: Hands) -> None:
    assert hands.code("read_file", path="nope") == "FILE_NOT_FOUND"
    assert hands.code("read_file", path="nope/a") == "FILE_NOT_FOUND"
    assert hands.code("read_file", path="src/a.py/b") == "NOT_A_DIRECTORY"
    assert hands.code("list_directory", path="src/a.py") == "NOT_A_DIRECTORY"
    assert hands.code("list_directory", path="nope") == "FILE_NOT_FOUND"


# --- redaction ------------------------------------------------------------------------------------


def test_no_tool_shows_a_secret_nor_a_part_of_one(hands: Hands) -> None:
    (hands.root / "env").write_text(f"key = {SECRET}\nend\n")
    (hands.root / "pem").write_text(f"a\n{PEM}\nb\n")
    assert "[redacted:key]" in hands("read_file", path="env").output
    assert hands("search_files", pattern="MII|0123").output == "[no match]"
    assert "MII" not in hands("read_file", path="pem", start_line=2).output
    near = [{"search": "MIIabcdeX", "replace": "x"}]
    assert "MIIabcdef" not in hands("edit_file", path="pem", edits=near).output
    (hands.root / SECRET).touch()
    assert "[redacted:key]" in hands("list_directory").output
    assert hands.code("read_file", path=f"{SECRET}/x") == "NOT_A_DIRECTORY"


def test_a_mark_is_never_written_into_a_file(hands: Hands) -> None:
    (hands.root / "env").write_text(f"key = {SECRET}\nport = 1\n")
    content = "key = [redacted:key]\nport = 2\n"
    assert hands.code("write_file", path="env", content=content) == "REDACTED_CONTENT"
    edits = [{"search": "port = 1", "replace": "also = [redacted:key]"}]
    assert hands.code("edit_file", path="env", edits=edits) == "REDACTED_CONTENT"
    fine = [{"search": "port = 1", "replace": "port = 2"}]
    assert hands("edit_file", path="env", edits=fine).success
    assert (hands.root / "env").read_text() == f"key = {SECRET}\nport = 2\n"


def test_a_file_that_is_about_marks_can_still_be_edited(hands: Hands) -> None:
    (hands.root / "doc").write_text("the mark is [redacted:key]\n")
    assert hands("write_file", path="doc", content="see [redacted:key]\n").success


# --- writing and editing --------------------------------------------------------------------------


def test_writing_makes_parents_unless_told_not_to(hands: Hands) -> None:
    assert hands.code("write_file", path="x/y", content="", create_dirs=False) == "FILE_NOT_FOUND"
    assert hands("write_file", path="x/y/z", content="deep").data["created"] is True
    assert (hands.root / "x/y/z").read_text() == "deep"
    assert hands("write_file", path="x/y/z", content="again").data["created"] is False


def test_modes_are_kept_and_no_temporary_file_stays(hands: Hands) -> None:
    script = hands.root / "run"
    script.write_text("a\n")
    script.chmod(0o755)
    hands("write_file", path="run", content="b\n")
    hands("edit_file", path="run", edits=[{"search": "b", "replace": "c"}])
    assert stat.S_IMODE(script.stat().st_mode) == 0o755
    assert sorted(os.listdir(hands.root)) == ["run", "src"]


def test_a_write_that_fails_leaves_the_old_file_and_no_temporary_one(
    hands: Hands, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert hands.code("write_file", path="src/a.py", content="x") == "IO_ERROR"
    assert os.listdir(hands.root / "src") == ["a.py"]
    assert (hands.root / "src/a.py").read_text() == "one\ntwo\nthree\n"


def test_an_edit_on_a_stale_hash_is_refused_and_a_done_one_recognised(hands: Hands) -> None:
    base = hands("read_file", path="src/a.py").data["sha256"]
    call = {"path": "src/a.py", "edits": [{"search": "two", "replace": "2"}], "base_hash": base}
    first = hands("edit_file", **call)
    assert first.data["already"] is False
    assert hands("edit_file", **call).data == {**first.data, "already": True}
    other = {**call, "edits": [{"search": "three", "replace": "3"}]}
    assert hands.code("edit_file", **other) == "STALE_FILE"
    assert hands.code("edit_file", **{**other, "edits": [{"search": "?", "replace": "3"}]}) == (
        "STALE_FILE"
    )
    fresh = hands("edit_file", **{**other, "base_hash": str(first.data["sha256"])[:12].upper()})
    assert fresh.success
    assert (hands.root / "src/a.py").read_text() == "one\n2\n3\n"


def test_an_edit_takes_blocks_or_a_diff_and_not_both(hands: Hands) -> None:
    assert hands.code("edit_file", path="src/a.py") == "INVALID_ARGUMENTS"
    diff = "@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
    assert hands("edit_file", path="src/a.py", diff=diff).success
    assert (hands.root / "src/a.py").read_text() == "one\n2\nthree\n"


# --- listing and searching ------------------------------------------------------------------------


def test_listing_is_sorted_marked_and_leaves_caches_closed(hands: Hands) -> None:
    for name in (".git", "node_modules", "b"):
        (hands.root / name).mkdir()
        (hands.root / name / "inner").touch()
    (hands.root / "link").symlink_to("/etc")
    os.mkfifo(hands.root / "pipe")
    assert hands("list_directory", recursive=True).output.splitlines() == [
        "b/",
        "b/inner (0 bytes)",
        "link -> /etc",
        "node_modules/",
        "pipe (no regular file)",
        "src/",
        "src/a.py (14 bytes)",
    ]
    assert hands("list_directory", path="node_modules").output == "inner (0 bytes)"
    assert hands("list_directory", recursive=True, pattern="*.py").data["entries"] == 1
    assert hands("list_directory", recursive=True, pattern="src/*").data["entries"] == 1
    assert hands("list_directory", pattern="zz").output == "[nothing]"


def test_a_long_list_is_cut_and_says_so(hands: Hands) -> None:
    for number in range(1200):
        (hands.root / f"f{number:04}").touch()
    assert hands("list_directory").output.endswith("name a subdirectory or a pattern]")
    wide = Hands(hands.root, output_bytes_max=100_000)("list_directory")
    assert wide.data["entries"] == 1000
    assert "there is more" in wide.output
    assert "there is more" not in hands("list_directory", pattern="f000?").output


def test_names_that_are_no_text_are_shown_escaped(hands: Hands) -> None:
    os.close(os.open(os.fsencode(hands.root) + b"/bad\xff\n\x1b", os.O_CREAT | os.O_WRONLY))
    assert "bad\\xff\\n\\x1b" in hands("list_directory").output
    assert shown("plain ä") == "plain ä"


def test_searching_answers_in_path_order_and_stops_at_the_limit(hands: Hands) -> None:
    (hands.root / "src/b.py").write_text("two\n")
    (hands.root / "a.txt").write_text("two\n")
    (hands.root / "binary").write_bytes(b"two\0")
    assert hands("search_files", pattern="t[wx]o").output.splitlines() == [
        "a.txt:1: two",
        "src/a.py:2: two",
        "src/b.py:1: two",
    ]
    assert "a.txt" not in hands("search_files", pattern="two", file_pattern="*.py").output
    one = hands("search_files", pattern="two", max_results=1)
    assert one.data["matches"] == 1
    assert "more matches" in one.output
    assert hands("search_files", pattern="two", path="src/b.py").data["matches"] == 1


def test_a_match_in_a_long_line_shows_its_surroundings(hands: Hands) -> None:
    (hands.root / "min.js").write_text("x" * 5000 + "needle" + "y" * 4000)
    seen = hands("search_files", pattern="needle").output
    assert "needle" in seen
    assert len(seen) < 400


def test_a_bad_pattern_is_named(hands: Hands) -> None:
    assert hands.code("search_files", pattern="(") == "INVALID_REGEX"
    assert hands.code("search_files", pattern="a{99999999999}") == "INVALID_REGEX"


def test_an_exponential_pattern_is_ended(hands: Hands, monkeypatch: pytest.MonkeyPatch) -> None:
    (hands.root / "evil").write_text("a" * 60 + "!\n")
    monkeypatch.setattr(search, "SEARCH_S", 0.3)
    assert hands.code("search_files", pattern="(a+)+$") == "TIMEOUT"


def test_too_many_files_are_told(hands: Hands, monkeypatch: pytest.MonkeyPatch) -> None:
    (hands.root / "z").write_text("two")
    monkeypatch.setattr(search, "_FILES_MAX", 1)
    assert "only the first 1 files" in hands("search_files", pattern="two").output


def test_the_matcher_answers_lines(tmp_path: Path) -> None:
    order = {"pattern": "b", "results_max": 2, "memory_bytes": 0}
    file = {"path": "p", "text": "a\nb\nb\nb\n"}
    out = StringIO()
    matcher.matching([json.dumps(order), json.dumps(file)], out)
    rows = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [row["line"] for row in rows] == [2, 3]
    out = StringIO()
    matcher.matching([json.dumps({**order, "pattern": "["})], out)
    assert "error" in json.loads(out.getvalue())
    out = StringIO()
    matcher.matching([json.dumps(order), json.dumps({"path": "p", "text": "c"})], out)
    assert out.getvalue() == ""


def test_the_matchers_memory_is_bounded() -> None:
    order = {"pattern": "a", "results_max": 2, "memory_bytes": 60 << 20}
    file = {"path": "p", "text": "a" * (60 << 20)}
    done = subprocess.run(
        [sys.executable, "-I", "-S", matcher.__file__],
        input=f"{json.dumps(order)}\n{json.dumps(file)}".encode(),
        capture_output=True,
        check=False,
    )
    assert b"MemoryError" in done.stderr


def test_walking_a_directory_that_vanishes_or_is_unreadable_goes_on(hands: Hands) -> None:
    with place(hands.root, ".") as at:
        entries = walk(at, recursive=True)
        assert next(entries).relative == "src"
        (hands.root / "src").rename(hands.root / "gone")
        assert list(entries) == []
