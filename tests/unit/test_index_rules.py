"""The rules of an INDEX.md that code checks (C24)."""

import pytest

from holdfast.context.rules import broken, rules_of

PAGE = """# Index
```rules
# a comment
must contain: SPDX

words at most: 3
```
text
```python
must contain: not a rule
```
"""


def test_rules_are_read_from_their_block_alone() -> None:
    assert rules_of(PAGE) == "must contain: SPDX\nwords at most: 3"
    assert rules_of("no block") == ""


@pytest.mark.parametrize(
    "page",
    [
        "```rules\r\nwords at most: 3\r\n```\r\n",
        "```Rules\nwords at most: 3",
        "a\n  ```rules\nwords at most: 3\n  ```",
    ],
)
def test_a_block_is_never_overlooked_for_its_line_ends_or_its_end(page: str) -> None:
    assert rules_of(page) == "words at most: 3"


@pytest.mark.parametrize(
    ("rule", "output", "said"),
    [
        ("must contain: a.b", "aXb", "must contain 'a.b'"),
        ("must contain: a.b", "see a.b", ""),
        ("must not contain: x", "fox", "must not contain 'x'"),
        ("must not contain: x", "dog", ""),
        ("words at most: 2", "one two three", "has 3 words, at most 2"),
        ("words at most: 3", "one two three", ""),
        ("words at most: many", "one", "cannot be checked"),
        ("words at most: ²", "one", "cannot be checked"),
        ("words at most: " + "9" * 5000, "one", "cannot be checked"),
        ("be nice", "one", "cannot be checked"),
        ("must contain:", "one", "cannot be checked"),
    ],
)
def test_a_rule_holds_literally_and_one_that_cannot_be_read_counts_as_broken(
    rule: str, output: str, said: str
) -> None:
    found = broken(rule, output)
    assert bool(found) == bool(said)
    assert said in "".join(found)


def test_without_rules_nothing_is_broken() -> None:
    assert broken("", "anything") == []
