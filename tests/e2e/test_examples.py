"""Every example runs as it stands."""

import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.adapters.plan_file import read_plan
from holdfast.domain.model import Policy

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_an_example_program_runs(path: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(path)], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip(), "an example shows something"


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.name)
def test_an_example_plan_is_valid(path: Path) -> None:
    assert len(read_plan(path, policy=Policy()).tasks) > 1
