"""Conflict markers are found where they are, in the files that had them, and nowhere else."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from holdfast.agent.merging import _marked


def marked(root: Path, *files: str) -> list[str]:
    place: Any = SimpleNamespace(root=root)
    return _marked(place, files)


def test_a_marker_is_named_by_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x\n<<<<<<< 1f2e\nleft\n=======\nright\n>>>>>>> 3d4c\n")
    (tmp_path / "b.txt").write_text("left\nright\n>>>>>>> 3d4c\n")
    (tmp_path / "c.txt").write_text("left\n")
    assert marked(tmp_path, "a.txt", "b.txt", "c.txt") == ["a.txt:2", "b.txt:3"]
    assert marked(tmp_path, "c.txt") == []


def test_what_only_looks_like_a_marker_is_none(tmp_path: Path) -> None:
    text = "Heading\n=======\n<<<<<<<< eight\n  <<<<<<< indented\n>>>>>>>x\n"
    (tmp_path / "a.rst").write_text(text)
    assert marked(tmp_path, "a.rst") == []


def test_a_file_that_is_gone_holds_none_and_one_that_leaves_the_workspace_is_never_read(
    tmp_path: Path,
) -> None:
    root = tmp_path / "work"
    root.mkdir()
    (tmp_path / "outside.txt").write_text("<<<<<<< 1\n")
    (root / "link.txt").symlink_to(tmp_path / "outside.txt")
    (root / "folder").mkdir()
    assert marked(root, "gone.txt", "no/such/folder.txt") == []
    (said,) = marked(root, "link.txt")
    assert "out of the workspace" in said
    (said,) = marked(root, "folder")
    assert "is a directory" in said
