"""Bounded capture: both ends, all bytes counted, no part of a secret, valid text."""

import re
import tracemalloc

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.adapters.capture import SECRET_BYTES_MAX, Capture, cut_end, cut_middle

SECRET = "sk-" + "a1b2c3d4" * 8


def redact(text: str) -> str:
    return text.replace(SECRET, "[redacted:key]")


def captured(data: bytes, bytes_max: int, chunk: int = 1000) -> Capture:
    capture = Capture(bytes_max)
    for start in range(0, len(data), chunk):
        capture.add(data[start : start + chunk])
    return capture


def test_a_short_stream_is_kept_whole() -> None:
    assert captured(b"hello\n", 100).text(redact) == "hello\n"


def test_a_long_stream_keeps_both_ends_and_says_how_much_was_cut() -> None:
    data = b"first\n" + b"x" * 200_000 + b"\nlast"
    text = captured(data, 1000).text(redact)
    assert text.startswith("first\n")
    assert text.endswith("\nlast")
    cut = int(re.search(r"\[\.\.\. (\d+) bytes cut \.\.\.\]", text)[1])  # type: ignore[index]
    assert cut == len(data) - 1000


def test_no_part_of_a_secret_shows_wherever_the_cut_falls() -> None:
    for offset in range(0, 2 * len(SECRET), 5):
        for around in (0, 40_000, 80_000):
            head = b"." * (500 - offset)
            tail = b"." * (500 - offset)
            data = head + SECRET.encode() + b"." * around + SECRET.encode() + tail
            text = captured(data, 1000).text(redact)
            assert "sk-" not in text
            assert "a1b2" not in text


def test_a_stream_of_secrets_shrinks_and_still_shows_no_part_at_the_window_edge() -> None:
    text = captured((SECRET + "\n").encode() * 5000, 1000).text(redact)
    assert "a1b2" not in text


def test_the_naive_order_of_cutting_first_would_show_a_part() -> None:
    data = "." * 480 + SECRET + "." * 5000
    assert "a1b2" in redact(data[:500])


def test_fifty_megabytes_do_not_grow_memory() -> None:
    chunk = b"y" * 65_536
    tracemalloc.start()
    capture = Capture(30_000)
    for _ in range(800):
        capture.add(chunk)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert capture.size == 800 * 65_536
    assert peak < 1_000_000


@settings(max_examples=60)
@given(st.binary(max_size=3000), st.integers(1, 200), st.integers(2, 600))
def test_what_leaves_is_valid_bounded_text(data: bytes, chunk: int, bytes_max: int) -> None:
    capture = captured(data * 30, bytes_max, chunk * 97)
    text = capture.text(redact)
    assert len(text.encode()) <= bytes_max + 60
    assert capture.size == len(data) * 30


def test_cutting_respects_characters() -> None:
    assert cut_end("äöü", 3) == "ä"
    assert cut_middle("ä" * 10, 7).encode().decode()
    assert cut_middle("short", 7) == "short"
    assert len(SECRET) < SECRET_BYTES_MAX
