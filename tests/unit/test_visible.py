"""Which directories a sandbox shows: PATH and what belongs to it, nothing else of the home."""

import os
from pathlib import Path

from holdfast.adapters.visible import view


def made(*paths: Path) -> None:
    for path in paths:
        path.mkdir(parents=True, exist_ok=True)


def shown(path: str, home: Path, **more: list[Path]) -> dict[str, str]:
    return {row.path: row.reason for row in view(path, user_home=home, **more).directories}


def test_a_directory_on_path_is_shown_and_its_siblings_are_not(tmp_path: Path) -> None:
    home = tmp_path / "home"
    made(home / "tools", home / "secrets")
    assert shown(f"{home}/tools:/usr/bin", home) == {f"{home}/tools": "on PATH"}


def test_a_virtual_environment_brings_its_base_interpreter(tmp_path: Path) -> None:
    home = tmp_path / "home"
    base, venv = home / "pythons/3.11", home / "work/.venv"
    alias = home / "pythons/alias"
    made(base / "bin", venv / "bin")
    alias.symlink_to(base)
    (base / "bin/python3.11").touch()
    (venv / "pyvenv.cfg").write_text(f"home = {base}/bin\nversion = 3.11\n")
    (venv / "bin/python").symlink_to(alias / "bin/python3.11")
    paths = shown(f"{venv}/bin", home)
    assert set(paths) == {str(venv), str(base), str(alias)}


def test_an_environment_without_links_or_home_shows_only_itself(tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    made(venv / "bin")
    (venv / "pyvenv.cfg").write_text("home = relative\n")
    assert set(shown(f"{venv}/bin", tmp_path / "home")) == {str(venv)}


def test_shims_bring_their_version_manager(tmp_path: Path) -> None:
    manager = tmp_path / "home/.pyenv"
    made(manager / "shims", manager / "versions")
    assert set(shown(f"{manager}/shims", tmp_path / "home")) == {str(manager)}


def test_shims_directly_in_the_home_do_not_bring_the_home(tmp_path: Path) -> None:
    home = tmp_path / "home"
    made(home / "shims")
    assert set(shown(f"{home}/shims", home)) == {f"{home}/shims"}


def test_the_home_and_what_contains_it_are_left_out_and_told(tmp_path: Path) -> None:
    home = tmp_path / "home"
    made(home)
    seen = view(f"{home}:{tmp_path}:relative:/no/such:/", user_home=home)
    assert seen.directories == ()
    assert dict(seen.left_out)[str(home)] == "holds the home directory"
    assert dict(seen.left_out)["relative"] == "not an absolute path"
    assert len(seen.left_out) == 5
    assert seen.path == "/usr/local/bin:/usr/bin:/bin"


def test_a_link_to_the_home_is_left_out_too(tmp_path: Path) -> None:
    home = tmp_path / "home"
    made(home)
    (tmp_path / "alias").symlink_to(home)
    assert shown(f"{tmp_path}/alias", home) == {}


def test_holdfasts_own_directory_is_masked_or_left_out(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    own = tools / ".holdfast"
    made(own / "bin")
    seen = view(f"{tools}:{own}/bin", user_home=tmp_path / "home", hidden=[own])
    assert [(row.path, row.masked) for row in seen.directories] == [(str(tools), (str(own),))]
    assert seen.left_out == ((f"{own}/bin", "inside Holdfast's own directory"),)


def test_the_callers_order_of_programs_is_kept(tmp_path: Path) -> None:
    made(tmp_path / "a", tmp_path / "b")
    path = f"{tmp_path}/b{os.pathsep}/usr/bin{os.pathsep}{tmp_path}/a"
    seen = view(path, user_home=tmp_path / "home")
    assert seen.path == f"{tmp_path}/b:/usr/bin:{tmp_path}/a:/usr/local/bin:/bin"
