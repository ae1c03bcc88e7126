"""The redactor: every known format, names by segments, two modes, hostile sizes."""

from collections.abc import Callable
from re import _parser  # the one that knows how short a match can be

import pytest

from holdfast.trace.formats import FORMATS
from holdfast.trace.redact import (
    CREDENTIAL_CHARS_MIN,
    DEPTH_MAX,
    FORMAT_CHARS_MIN,
    ROUNDS_MAX,
    Redactor,
    _any_head,
    _hints,
    _long_words,
    from_environment,
    has_mark,
    looks_random,
    mark,
    suspect,
)
from trace_samples import HARMLESS, SECRETS, hidden_part

REASONS = sorted({row.reason for row in FORMATS})
GUESSING, CONTENT = Redactor(), Redactor(guess=False)


def test_there_are_at_least_forty_formats_and_each_has_both_samples() -> None:
    assert len(REASONS) >= 40
    assert set(REASONS) == set(SECRETS) == set(HARMLESS)


@pytest.mark.parametrize("reason", REASONS)
@pytest.mark.parametrize("redactor", [GUESSING, CONTENT], ids=["guessing", "content"])
def test_a_known_format_is_hidden_in_any_surroundings(reason: str, redactor: Redactor) -> None:
    sample = SECRETS[reason]
    for around in ("{}", "it is {}.", '{{"a":"{}"}}', "a\\n{}\\n", "\x1b[31m{}\x1b[0m", "x%3D{}&y"):
        out = redactor.text(around.format(sample))
        assert hidden_part(reason) not in out, around
        assert has_mark(out)
        assert redactor.text(out) == out
    assert mark(reason) in CONTENT.text(sample)


@pytest.mark.parametrize("reason", REASONS)
def test_what_only_resembles_a_format_survives(reason: str) -> None:
    assert CONTENT.text(HARMLESS[reason]) == HARMLESS[reason]


def test_every_head_is_looked_for_where_a_key_can_be() -> None:
    tails = {row.reason: row.tail for row in FORMATS}
    for hint, wide, heads in _hints():
        for head, reason in heads:
            assert hint in head
            least = len(head) + _parser.parse(tails[reason]).getwidth()[0]
            assert wide or max(least, len(head)) >= FORMAT_CHARS_MIN, head
            words = _long_words(f"({head:a<{FORMAT_CHARS_MIN}})")
            assert wide or (head in words and _any_head().search(words)), head
    assert _long_words('(short) and "also short"') == ""
    assert has_mark(CONTENT.text("x://a:b@c"))
    assert CONTENT.text("Basic " + "a" * 10 + "=") == "Basic " + "a" * 10 + "="


def test_a_configured_credential_is_hidden_in_each_of_its_spellings() -> None:
    redactor = Redactor({"DB-PASSWORD": 'p"s s/1'}, guess=False)
    label = "[redacted:credential:DB_PASSWORD]"
    assert redactor.text('x p"s s/1 y') == f"x {label} y"
    assert redactor.text("x p%22s%20s%2F1 y") == f"x {label} y"
    assert redactor.text('x p\\"s s/1 y') == f"x {label} y"


def test_the_longer_of_two_nested_credentials_is_hidden_whole() -> None:
    redactor = Redactor({"A": "abcd", "B": "abcdefgh"}, guess=False)
    assert redactor.text("abcdefgh abcd") == "[redacted:credential:B] [redacted:credential:A]"


def test_a_credential_that_is_a_word_of_the_mark_does_not_eat_marks() -> None:
    redactor = Redactor({"A": "redacted", "B": "credential"}, guess=False)
    out = redactor.text("a redacted b credential")
    assert out == "a [redacted:credential:A] b [redacted:credential:B]"
    assert redactor.text(out) == out


def test_a_credential_below_the_smallest_size_is_ignored() -> None:
    short = "x" * (CREDENTIAL_CHARS_MIN - 1)
    assert Redactor({"A": short}).text(f"{short} {short}") == f"{short} {short}"
    assert has_mark(Redactor({"A": short + "x"}).text(f"{short}x"))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("api_key", "strong"),
        ("apiKey", "strong"),
        ("OPENAI_API_KEY", "strong"),
        ("Authorization", "strong"),
        ("X-Api-Key", "strong"),
        ("dbPassword", "strong"),
        ("client_secret", "strong"),
        ("Set-Cookie", "strong"),
        ("token", "weak"),
        ("session_key", "weak"),
        ("PWD", "weak"),
        ("tokens_in", "none"),
        ("tokens_total", "none"),
        ("max_tokens", "none"),
        ("tokenizer", "none"),
        ("monkey", "none"),
        ("keyboard", "none"),
        ("password_file", "none"),
        ("api_key_name", "none"),
        ("session_id", "none"),
        ("author", "none"),
        ("passenger", "none"),
        ("", "none"),
        ("__", "none"),
        ("api_key" + "x" * 200, "none"),
    ],
)
def test_names_are_judged_by_whole_segments(name: str, expected: str) -> None:
    assert suspect(name) == expected


def test_a_strong_name_hides_any_value_and_a_weak_one_only_what_looks_random() -> None:
    random = "q7Zk2mX9vB4nL8wR"
    assert GUESSING.value({"password": "x", "pin": "12", "token": random, "key": "user:12"}) == {
        "password": "[redacted:name:password]",
        "pin": "12",
        "token": "[redacted:name:token]",
        "key": "user:12",
    }


def test_numbers_under_telling_names_go_and_token_counts_stay() -> None:
    value = {"password": 1234, "passphrase": True, "secret": None, "tokens_in": 5, "max_tokens": 7}
    assert GUESSING.value(value) == {**value, "password": "[redacted:name:password]"}


def test_everything_below_a_strong_name_is_hidden() -> None:
    value = {"credentials": {"user": "a", "more": ["b", ("c", b"d")]}}
    hidden = "[redacted:name:credentials]"
    assert GUESSING.value(value) == {
        "credentials": {"user": hidden, "more": [hidden, (hidden, hidden.encode())]}
    }


def test_keys_bytes_and_nested_values_are_redacted_and_other_objects_returned() -> None:
    secret, other = SECRETS["github_token"], object()
    out = CONTENT.value({secret: [secret.encode(), b"\xff", (secret, other)], 5: 1.5})
    label = mark("github_token")
    assert out == {label: [label.encode(), b"\xff", (label, other)], 5: 1.5}


def test_the_argument_after_a_telling_flag_is_its_value() -> None:
    assert GUESSING.value(["run", "--password", "hunter2", "--n", "5", "--api-key=abcdef"]) == [
        "run",
        "--password",
        "[redacted:name:password]",
        "--n",
        "5",
        "--api-key=[redacted:name:api_key]",
    ]
    assert CONTENT.value(["--password", "hunter2"]) == ["--password", "hunter2"]


def test_cyclic_and_too_deep_values_end_in_a_mark() -> None:
    cyclic: list[object] = []
    cyclic.append(cyclic)
    assert "[redacted:depth]" in str(GUESSING.value(cyclic))
    deep: object = "x"
    for _ in range(DEPTH_MAX):
        deep = [deep]
    assert "redacted" not in str(GUESSING.value(deep))
    assert "[redacted:depth]" in str(GUESSING.value([deep]))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("password=hunter22", "password=[redacted:name:password]"),
        ('{"api_key": "a b"}', '{"api_key": "[redacted:name:api_key]"}'),
        ("secret: 'it''s'", "secret: '[redacted:name:secret]''s'"),
        ("e['DB_PASSWORD'] = 'x1'", "e['DB_PASSWORD'] = '[redacted:name:password]'"),
        ("tool --password hunter22 -v", "tool --password [redacted:name:password] -v"),
        ("Cookie: sid=abcdef", "Cookie: [redacted:name:cookie]"),
        ("tokens_in=12345 max_tokens=4096", "tokens_in=12345 max_tokens=4096"),
        ("token=user-list", "token=user-list"),
        ("token=q7Zk2mX9vB4nL8wR", "token=[redacted:name:token]"),
        ("password=None", "password=None"),
        ("the key is password", "the key is password"),
    ],
)  # fmt: skip
def test_assignments_in_text_are_hidden_when_guessing_only(text: str, expected: str) -> None:
    assert GUESSING.text(text) == expected
    assert GUESSING.text(expected) == expected
    assert CONTENT.text(text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("q7Zk2mX9vB4nL8wR", True),
        ("0123456789abcdef0123456789abcdef", True),
        ("short1A", False),
        ("/usr/lib/python3.11/site", False),
        ("onlyletterswithoutdigits", False),
        ("a1a1a1a1a1a1a1a1a1a1", False),
        ("has spaces 1234567890", False),
        ("q7Zk2mX9" * 65, False),
    ],
)
def test_randomness_needs_size_mixture_and_entropy(text: str, *, expected: bool) -> None:
    assert looks_random(text) is expected


def test_the_environment_gives_long_values_of_telling_names() -> None:
    random = "q7Zk2mX9vB4nL8wR"
    environ = {
        "OPENAI_API_KEY": "0123456789",
        "SHORT_SECRET": "1234567",
        "SESSION_KEY": random,
        "AUTH": "plain-word",
        "PWD": "/home/somebody/projects",
        "PASSWORD_FILE": "/run/secrets/db",
        "HOME": random,
    }
    assert from_environment(environ) == {"OPENAI_API_KEY": "0123456789", "SESSION_KEY": random}


def test_glued_secrets_are_all_hidden_and_an_endless_chain_is_hidden_whole() -> None:
    glued = SECRETS["rubygems_token"] + SECRETS["google_refresh_token"]
    assert CONTENT.text(glued) == "[redacted:rubygems_token][redacted:google_refresh_token]"
    chain = SECRETS["rubygems_token"]
    assert CONTENT.text(chain * (ROUNDS_MAX - 1)) == mark("rubygems_token") * (ROUNDS_MAX - 1)
    assert CONTENT.text(chain * ROUNDS_MAX) == mark("chain")


def test_a_mark_is_recognised_and_its_beginning_alone_is_not() -> None:
    assert has_mark("a [redacted:openai_key] b")
    assert has_mark("[redacted:credential:OPENAI_API_KEY]")
    assert not has_mark("[redacted:")
    assert not has_mark("redacted")


WORST: dict[str, Callable[[int], str]] = {
    "one_word": lambda n: "x" * n,
    "heads": lambda n: "sk-" * (n // 3),
    "names": lambda n: "key_" * (n // 4),
    "unclosed_pem": lambda n: "-----BEGIN RSA PRIVATE KEY----- " * (n // 32),
    "urls": lambda n: "://a:" * (n // 5),
    "quotes": lambda n: 'password="' + "\\" * n,
    "assignments": lambda n: "password=" * (n // 9),
    "flags": lambda n: "--key " * (n // 6),
    "basic": lambda n: "Basic " + "A" * n,
    "jwt": lambda n: "eyJ" * (n // 3),
}


@pytest.mark.parametrize("shape", WORST)
def test_no_text_of_a_megabyte_makes_matching_explode(shape: str) -> None:
    # Work that grew with the square of the size would be a million times longer, not a second.
    text = WORST[shape](1_000_000)
    once = GUESSING.text(text)
    assert GUESSING.text(once) == once
