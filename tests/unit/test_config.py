"""Settings: who wins over whom, and what is refused instead of guessed."""

from dataclasses import fields
from pathlib import Path

import pytest

from holdfast.config import DEFAULTS, NUMBER_MAX, Settings, dotenv, environment_name, load
from holdfast.errors import Refused


def write(folder: Path, own: str = "", project: str = "") -> Path:
    if own:
        (folder / "holdfast.toml").write_text(own, encoding="utf-8")
    if project:
        (folder / "pyproject.toml").write_text(project, encoding="utf-8")
    return folder


def test_nothing_set_means_the_defaults(tmp_path: Path) -> None:
    assert load(tmp_path, environ={}) == DEFAULTS == Settings()


def test_a_flag_beats_the_environment_beats_the_file_beats_the_project(tmp_path: Path) -> None:
    write(
        tmp_path,
        own="slots = 3\nmax_turns = 3\nlease_s = 3\n",
        project="[tool.holdfast]\nslots = 2\nmax_turns = 2\nlease_s = 2\nmax_takes = 2\n",
    )
    environ = {"HOLDFAST_SLOTS": "4", "HOLDFAST_MAX_TURNS": "4", "UNRELATED": "x"}
    found = load(tmp_path, flags={"slots": 5, "model": None}, environ=environ)
    assert (found.slots, found.max_turns, found.lease_s, found.max_takes) == (5, 4, 3.0, 2)
    assert found.model == ""


def test_a_project_without_our_table_sets_nothing(tmp_path: Path) -> None:
    write(tmp_path, project="[project]\nname = 'x'\n")
    assert load(tmp_path, environ={}) == DEFAULTS


@pytest.mark.parametrize(
    ("own", "words"),
    [
        ("slot = 2", r"sets 'slot', which is no setting \(did you mean 'slots'\?\)"),
        ("zzz = 2", r"'zzz', which is no setting \(docs/settings.md lists them\)"),
        ("slots = 'two'", "sets slots to 'two', not a int"),
        ("slots = 2.5", "sets slots to 2.5, not a int"),
        ("slots = true", "sets slots to True, not a int"),
        ("lease_s = []", r"sets lease_s to \[\], not a float"),
        ("slots =", "is not valid TOML"),
        ("slots = " + "[" * 50_000, "is not valid TOML"),
    ],
)
def test_a_wrong_setting_is_refused_by_name(tmp_path: Path, own: str, words: str) -> None:
    with pytest.raises(Refused, match=words):
        load(write(tmp_path, own=own), environ={})


def test_a_wrong_environment_says_where_it_came_from(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="the environment sets slots to 'many'"):
        load(tmp_path, environ={"HOLDFAST_SLOTS": "many"})
    (tmp_path / "holdfast.toml").write_bytes(b"model = '\xff'")
    with pytest.raises(Refused, match=r"holdfast\.toml cannot be read"):
        load(tmp_path, environ={})


@pytest.mark.parametrize("text", ["tool = 1", "[tool]\nholdfast = 1"])
def test_a_project_file_of_another_shape_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
    with pytest.raises(Refused, match="is no table"):
        load(tmp_path, environ={})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 10**20])
def test_a_number_that_nothing_could_hold_is_refused(tmp_path: Path, value: float) -> None:
    with pytest.raises(Refused, match=r"budget_usd is .*; a number is at most 1e"):
        load(tmp_path, flags={"budget_usd": value}, environ={})
    load(tmp_path, flags={"budget_usd": NUMBER_MAX}, environ={})


def test_every_setting_has_help_and_an_environment_name() -> None:
    for setting in fields(Settings):
        assert setting.metadata["help"], setting.name
        assert environment_name(setting.name) == f"HOLDFAST_{setting.name.upper()}"


def test_a_dotenv_file_holds_assignments_and_nothing_runs(tmp_path: Path) -> None:
    path = tmp_path / ".env"
    assert dotenv(path) == {}
    path.write_text(
        "# comment\n\nA=1\nexport B = 'two words' \nC=\"x=y\"\nD='\nnot an assignment\nE=$(rm)\n",
        encoding="utf-8",
    )
    assert dotenv(path) == {"A": "1", "B": "two words", "C": "x=y", "D": "'", "E": "$(rm)"}
