"""Java's patterns mean here what they mean there, or are refused; answers are those of the JVM."""

from dataclasses import replace

import pytest

from holdfast.lang.api import Limits
from holdfast.lang.run import run

SAME = [
    (r"\p{L}+", "12éñ漢字x", "éñ漢字x"),
    (r"[\p{L}\d]+", "-é1-", "é1"),
    (r"[^\p{L}]+", "é12", "12"),
    (r"\p{Lu}", "éÉ", "É"),
    (r"\p{Ll}+", "ÉÀé", "é"),
    (r"\P{L}+", "é12é", "12"),
    (r"\pL+", "12é", "é"),
    (r"\p{Nd}+", "a٣4", "٣4"),
    (r"\p{XDigit}+", "zAf9", "Af9"),
    (r"\p{Punct}+", "a!?b", "!?"),
    (r"[\h]+", "a \tb", " \t"),
    (r"\H+", " ab ", "ab"),
    (r"a\R+b", "a\r\nb", "a\r\nb"),
    (r"\v", "a\u2028b", "\u2028"),
    (r"b\Z", "ab\n", "b"),
    (r"b\z", "ab\n", None),
    (r"b\z", "ab", "b"),
    (r"(?<q>['x]).*?\k<q>", "a 'b' c", ("'b'", "'")),
    (r"\x{1F600}", "a😀", "😀"),
    (r"\0101", "A", "A"),
    (r"\cA", "\x01", "\x01"),
    (r"\e", "\x1b", "\x1b"),
    (r"[]a]+", "x]a", "]a"),
    (r"[^]]+", "]ab]", "ab"),
    (r"[\]\[]+", "a[]b", "[]"),
    (r"[(?<]+", "a(?<b", "(?<"),
    (r"\(?<", "(<", "(<"),
    (r"\\p{1}", "\\p", "\\p"),
    (r"\Q[a]\E+", "[a]]", "[a]]"),
    (r"\Q[", "[", "["),
    (r"(?i:A)b", "ab", "ab"),
    (r"a++b", "aab", "aab"),
    (r"a]", "a]", "a]"),
    (r"a&&b", "a&&b", "a&&b"),
]


@pytest.mark.parametrize(("pattern", "text", "found"), SAME)
def test_a_pattern_finds_what_java_finds(pattern: str, text: str, found: object) -> None:
    context = {"p": pattern, "t": text}
    result = run("(re-find (re-pattern data/p) data/t)", context=context)
    assert result.error is None, result.error.render()
    assert result.value == found


@pytest.mark.parametrize(
    "pattern",
    [
        r"[a-c&&[b]]",
        r"[a[b]]",
        r"[\P{L}a]",
        r"\p{Greek}",
        r"(?u)a",
        r"(?L)a",
        r"(?a:b)",
        r"(?U)a",
        r"(?P<x>a)",
        r"(?P=x)",
        r"\x{110000}",
        r"\N{BULLET}",
        r"\U0001F600",
        r"\X",
        r"\G",
        "(",
        "[a",
        "a{2,1}",
        "*",
        r"\1",
        "(?",
        "[a--b]",
        "[[:alpha:]]",
    ],
)
@pytest.mark.parametrize("source", ["(re-find (re-pattern data/p) {!r})", '(re-find #"{}" "a")'])
def test_a_pattern_that_would_mean_something_else_is_refused(pattern: str, source: str) -> None:
    literal = source.replace("{!r}", '"a"').replace("{}", pattern)
    result = run(literal, context={"p": pattern})
    assert result.error is not None
    assert result.error.code == "type_error", result.error
    assert result.error.line == 1


@pytest.mark.parametrize(
    ("template", "made"),
    [
        ("${x}${x}", "aab"),
        ("$12", "a2b"),
        ("[\\\\$$1\\\\\\\\]", "[$a\\]b"),
        ("$0$0", "aab"),
        ("$99999999999", None),
        ("${y}", None),
        ("$", None),
        ("\\\\", None),
        ("$a", None),
        ("$²", None),
    ],
)
def test_a_replacement_names_groups_as_in_java(template: str, made: str | None) -> None:
    result = run(f'(replace "ab" #"(?<x>a)" "{template}")')
    assert result.value == made
    assert (result.error is None) == (made is not None)


def test_replacements_of_many_matches_are_bounded_while_they_are_made() -> None:
    source = '(count (replace (apply str (repeat 3000 "a")) #"a" (apply str (repeat 100 "b"))))'
    refused = run(source, limits=replace(Limits(), string_chars=200_000)).error
    assert refused is not None
    assert refused.details == {"limit": "string_chars"}
    assert run(source).value == 300_000
