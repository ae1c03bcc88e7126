"""The table of requirements names tests that exist, and every row that this path owes."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROWS = [
    *(f"P{number}" for number in range(1, 19)),
    *["P34", "H17", "H20", "H21", "H22", "H28", "H30", "H38", "H40", "H41"],
]


def test_every_row_names_tests_and_every_test_exists() -> None:
    page = (ROOT / "docs/first-path.md").read_text(encoding="utf-8")
    rows = {line.split()[1]: line for line in page.splitlines() if re.match(r"\| [PH]\d", line)}
    assert list(rows) == ROWS
    sources = "\n".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")
    )
    defined = set(re.findall(r"def (test_\w+)", sources))
    for row, line in rows.items():
        named = re.findall(r"`(test_\w+)`", line)
        assert named, f"{row} names no test"
        for name in named:
            assert name in defined, f"{row} names {name}, which does not exist"


def test_every_test_that_the_page_names_exists() -> None:
    page = (ROOT / "docs/first-path.md").read_text(encoding="utf-8")
    sources = "\n".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")
    )
    named = set(re.findall(r"`(test_\w+)`", page))
    assert len(named) > 50
    assert not named - set(re.findall(r"def (test_\w+)", sources))
