"""Signatures: what parses, what a value must be, what is repaired on the way in."""

import pytest

from holdfast.lang.api import LangError
from holdfast.lang.conform import PROBLEMS_MAX, coerce, from_json, to_json_schema, validate
from holdfast.lang.signature import (
    NESTING_MAX,
    SOURCE_CHARS_MAX,
    Field,
    ListOf,
    Primitive,
    Record,
    Signature,
    parse,
    render,
)
from holdfast.lang.values import keyword

INT, STRING = Primitive("int"), Primitive("string")


@pytest.mark.parametrize(
    ("source", "shape"),
    [
        (":int", Signature((), INT)),
        ("() -> :int", Signature((), INT)),
        (":int?", Signature((), Primitive("int", optional=True))),
        ("(q :string) -> [:int]", Signature((Field("q", STRING),), ListOf(INT))),
        ("[{}]", Signature((), ListOf(Record(())))),
        (" ( a :int ,\n b :any? )->{x [:map]}", None),
        ("{_hidden :string, id :int}", None),
    ],
)
def test_a_signature_is_read_and_its_rendering_reads_the_same(
    source: str, shape: Signature | None
) -> None:
    parsed = parse(source)
    assert shape is None or parsed == shape
    assert parse(render(parsed)) == parsed


@pytest.mark.parametrize(
    ("source", "line", "column", "message", "hint"),
    [
        ("", 1, 1, "empty", ":string"),
        ("[:int]?", 1, 7, "only a primitive type can be optional", ":any?"),
        ("{a :int}?", 1, 9, "only a primitive type can be optional", ""),
        ("[]", 1, 2, "names the type of its items", "[:any]"),
        (":list", 1, 1, "no type :list", "[:any]"),
        (":strng", 1, 1, "no type :strng", ":string"),
        (":number", 1, 1, "no type :number", ":float"),
        (":zzzzzz", 1, 1, "no type :zzzzzz", "types are"),
        (":", 1, 1, "follows the colon", "types are"),
        ("int", 1, 1, 'found "int"', "write :int"),
        ("(a :int)", 1, 9, "expected ->", ""),
        ("(a :int) ->", 1, 12, "missing at the end", ""),
        ("(a :int\n b :int) -> :int", 2, 2, "expected ), found", "commas"),
        ("(a :int, a :int) -> :int", 1, 10, "named twice", ""),
        ("(1 :int) -> :int", 1, 2, "expected a field name", "name :type"),
        ("(a :int,) -> :int", 1, 9, "expected a field name", ""),
        ("[:int", 1, 6, "expected ], found the end", "column 1"),
        (":int :int", 1, 6, "nothing may follow", ""),
        (":int -> :int", 1, 6, "not in parentheses", "(x :int)"),
        ("{a !}", 1, 4, "expected a type", "types are"),
        ("[" * (NESTING_MAX + 1) + ":int", 1, NESTING_MAX + 1, "nested", ""),
        (":" * (SOURCE_CHARS_MAX + 1), 1, 1, "characters", ""),
    ],
)
def test_a_bad_signature_names_its_place_and_what_to_write(
    source: str, line: int, column: int, message: str, hint: str
) -> None:
    with pytest.raises(LangError) as caught:
        parse(source)
    error = caught.value
    assert (error.code, error.line, error.column) == ("signature_error", line, column)
    assert message in error.message
    assert hint in error.hint


def test_the_deepest_allowed_nesting_is_read() -> None:
    depth = NESTING_MAX - 1
    assert render(parse("[" * depth + ":int" + "]" * depth)).count("[") == depth


@pytest.mark.parametrize(
    ("source", "value", "problems"),
    [
        (":int", 1, []),
        (":int", True, ["expected int, got bool true"]),
        (":int", 1.0, ["expected int, got float 1.0"]),
        (":int", None, ["expected int, got nil"]),
        (":int?", None, []),
        (":int?", "x", ['expected int or nil, got string "x"']),
        (":float", 1, []),
        (":float", False, ["expected float, got bool false"]),
        (":bool", True, []),
        (":string", keyword("a"), ["expected string, got keyword :a"]),
        (":keyword", "a", ['expected keyword, got string "a"']),
        (":keyword", keyword("a"), []),
        (":any", None, []),
        (":map", {}, []),
        (":map", (), ["expected map, got a vector"]),
        ("[:int]", (1, 2), []),
        ("[:int]", (1, "b", 3, "d"), ['[1]: expected int, got string "b"', "[3]: expected int"]),
        ("[:int]", {}, ["expected vector [:int], got a map"]),
        ("[:int]", frozenset(), ["got a value of another kind"]),
        ("{}", {}, []),
        ("{id :int}", {keyword("id"): 1}, []),
        ("{id :int}", {"id": 1, "more": 2}, []),
        ("{id :int}", 3, ["expected map, got int 3"]),
        ("{id :int, n :int?}", {}, ["id: is missing (expected :int)"]),
        ("{first-name :int}", {"first_name": 1}, ["first-name: is missing"]),
        (
            "{results [{id :int}]}",
            {"results": ({keyword("id"): "x"},)},
            ['results[0].id: expected int, got string "x"'],
        ),
        (":int", 10**100, []),
        (":bool", 10**100, ["int of many digits"]),
        (":int", 'a"\\\n' + "x" * 60, ['got string "a\\"\\\\\\nxxx']),
    ],
)
def test_a_value_is_checked_with_paths(source: str, value: object, problems: list[str]) -> None:
    found = [str(problem) for problem in validate(parse(source).output, value)]
    assert len(found) == len(problems)
    for text, expected in zip(found, problems, strict=True):
        assert expected in text


def test_strict_also_refuses_fields_that_are_not_named() -> None:
    shape = parse("{id :int, inner {name :string}}").output
    value = {"id": 1, keyword("inner"): {"name": "n", "nmae": 2}, "x": 3}
    assert validate(shape, value) == ()
    assert [str(problem) for problem in validate(shape, value, strict=True)] == [
        "inner.nmae: is not a field of this record; did you mean name?",
        "x: is not a field of this record",
    ]


def test_problems_are_bounded() -> None:
    shape = parse("[:int]").output
    assert len(validate(shape, ("x",) * 500)) == PROBLEMS_MAX
    assert len(validate(shape, ("x",) * (PROBLEMS_MAX - 1))) == PROBLEMS_MAX - 1


@pytest.mark.parametrize(
    ("source", "value", "repaired"),
    [
        (":int", " 42 ", 42),
        (":int", "-7", -7),
        (":int", 42.0, 42),
        (":float", "3.14", 3.14),
        (":float", "1e3", 1000.0),
        (":bool", "true", True),
        (":bool", "False", False),
        (":keyword", "done", keyword("done")),
        (":keyword", ":done", keyword("done")),
        (":string", keyword("done"), "done"),
        ("[:int]", ["1", 2], (1, 2)),
        ("{a {b [:int]}}", {keyword("a"): {"b": ("1",)}}, {keyword("a"): {"b": (1,)}}),
    ],
)
def test_an_input_is_repaired_with_a_warning(source: str, value: object, repaired: object) -> None:
    done = coerce(parse(source).output, value)
    assert done.value == repaired
    assert type(done.value) is type(repaired)
    assert len(done.warnings) == 1
    assert done.problems == ()


@pytest.mark.parametrize(
    ("source", "value"),
    [
        (":int", "4x"),
        (":int", "1" * 101),
        (":int", "\u0664"),
        (":int", 1.5),
        (":float", "1e999"),
        (":float", "inf"),
        (":bool", "yes"),
        (":bool", 1),
        (":keyword", "two words"),
        (":map", "{}"),
        ("{a :int}", "no"),
        ("[:int]", "no"),
    ],
)
def test_an_input_that_means_something_else_is_not_repaired(source: str, value: object) -> None:
    done = coerce(parse(source).output, value)
    assert done.value is value
    assert done.warnings == ()
    assert len(done.problems) == 1


def test_inputs_are_coerced_as_one_record_and_right_ones_come_back_untouched() -> None:
    inputs = parse("(n :int, name :string?) -> :int").inputs
    right = {"n": 1}
    assert coerce(inputs, right).value is right
    done = coerce(inputs, {"n": "2", "other": "3"})
    assert done.value == {"n": 2, "other": "3"}
    assert [str(warning) for warning in done.warnings] == ['n: "2" was read as int 2']


def test_a_schema_can_be_wrapped_in_an_object_and_taken_out_again() -> None:
    shape = parse("[:keyword]").output
    schema = to_json_schema(shape, wrapped=True)
    assert schema["required"] == ["value"]
    assert from_json(shape, {"value": ["a"]}, wrapped=True) == (keyword("a"),)
    assert validate(shape, from_json(shape, ["a"], wrapped=True)) != ()
    assert validate(shape, from_json(shape, {"value": [], "x": 1}, wrapped=True)) != ()
    record = parse("{a :int}").output
    assert to_json_schema(record, wrapped=True) == to_json_schema(record)
    assert from_json(record, {"a": 1.0}, wrapped=True) == {"a": 1}


def test_a_hidden_field_is_named_so_and_checked_like_any_other() -> None:
    (field,) = parse("(_id :int) -> :int").inputs
    assert field.hidden
    assert field.required
    assert not Field("id", INT).hidden
