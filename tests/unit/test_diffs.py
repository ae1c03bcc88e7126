"""A diff told to a reader: whole totals, first lines, and no secret, whole or halved."""

from holdfast.adapters.diffs import READ_BYTES, summary
from holdfast.trace.gitdiff import DIFF_LINES_MAX, LINE_CHARS_MAX
from holdfast.trace.redact import Redactor

SECRET = "gh" + "p_" + "a1B2c3D4e5F6g7H8i9J0" * 2
HEAD = b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n"
redact = Redactor(guess=False).text


def test_totals_are_of_the_whole_and_the_shown_lines_are_the_first() -> None:
    lines = [b"+%d" % number for number in range(DIFF_LINES_MAX)]
    diff = summary(HEAD + b"-one\n" + b"\n".join(lines) + b"\n", redact)
    assert (diff.files_changed, diff.lines_added, diff.lines_removed) == (1, DIFF_LINES_MAX, 1)
    assert len(diff.text.splitlines()) == DIFF_LINES_MAX
    assert diff.truncated
    short = summary(HEAD + b"+1\n", redact)
    assert not short.truncated
    assert short.text.encode() + b"\n" == HEAD + b"+1\n"


def test_a_wide_line_is_cut_after_its_secret_is_hidden() -> None:
    line = "+" + "x" * (LINE_CHARS_MAX - 10) + " " + SECRET
    shown = summary(HEAD + line.encode(), redact).text
    assert SECRET[:8] not in shown
    assert shown.splitlines()[-1].endswith("[redacte")
    assert SECRET[:8] in summary(HEAD + line.encode(), str).text


def test_a_secret_that_the_reading_limit_halves_is_not_shown() -> None:
    before = b"+" + b"y" * (READ_BYTES - len(HEAD) - 22) + b"\n"
    diff = summary(HEAD + before + SECRET.encode() + b"\n+last\n", redact)
    assert SECRET[:8] not in diff.text
    assert diff.truncated
    assert diff.lines_added == 2
