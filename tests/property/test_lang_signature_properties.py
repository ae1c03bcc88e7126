"""Signatures against an independent oracle: the schema accepts exactly what the validator does."""

from typing import Any

import jsonschema
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.lang.conform import coerce, from_json, to_json_schema, validate
from holdfast.lang.signature import (
    PRIMITIVES,
    Field,
    ListOf,
    Primitive,
    Record,
    Signature,
    Type,
    parse,
    render,
)

NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_-]{0,6}[?!]?", fullmatch=True)
PRIMITIVE = st.builds(Primitive, st.sampled_from(PRIMITIVES), st.booleans())


def records(types: st.SearchStrategy[Type]) -> st.SearchStrategy[Record]:
    fields = st.lists(st.builds(Field, NAMES, types), max_size=4, unique_by=lambda f: f.name)
    return fields.map(lambda found: Record(tuple(found)))


TYPES: st.SearchStrategy[Type] = st.recursive(
    PRIMITIVE, lambda inner: st.builds(ListOf, inner) | records(inner), max_leaves=6
)
SIGNATURES = st.builds(Signature, records(TYPES).map(lambda record: record.fields), TYPES)
LEAVES: st.SearchStrategy[Any] = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([0, 1.0, -0.0, 2.5, "", "a", ":a", "a b", "a\n", ":", "1", "true"])
    | st.text(max_size=4)
)
DOCUMENTS = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)


@st.composite
def fitting(draw: st.DrawFn, shape: Type) -> Any:
    """A document that has the type, but for one leaf in a few that may be anything."""
    if draw(st.integers(0, 11)) == 0:
        return draw(DOCUMENTS)
    match shape:
        case Primitive(kind, optional):
            choices: dict[str, st.SearchStrategy[Any]] = {
                "string": st.text(max_size=4),
                "int": st.integers() | st.sampled_from([1.0, -3.0]),
                "float": st.integers() | st.floats(allow_nan=False, allow_infinity=False),
                "bool": st.booleans(),
                "keyword": st.sampled_from(["a", ":a-b", "ok?", ":<=", "-"]),
                "any": DOCUMENTS,
                "map": st.dictionaries(NAMES, LEAVES, max_size=2),
            }
            return draw(st.none() | choices[kind] if optional else choices[kind])
        case ListOf(item):
            return draw(st.lists(fitting(item), max_size=3))
        case Record(fields):
            kept = [f for f in fields if f.required or draw(st.booleans())]
            return {f.name: draw(fitting(f.type)) for f in kept}


ORACLE = jsonschema.Draft202012Validator


@settings(max_examples=600, deadline=None)
@given(st.data(), TYPES, st.booleans(), st.booleans())
def test_the_schema_accepts_exactly_what_the_validator_accepts(
    data: st.DataObject, shape: Type, strict: bool, wrapped: bool
) -> None:
    document = data.draw(fitting(shape))
    if wrapped and data.draw(st.booleans()):
        document = {"value": document}
    schema = to_json_schema(shape, strict=strict, wrapped=wrapped)
    ORACLE.check_schema(schema)
    value = from_json(shape, document, wrapped=wrapped)
    if wrapped and not isinstance(shape, Record) and set_of_keys(document) != {"value"}:
        assert not ORACLE(schema).is_valid(document)
        return
    problems = validate(shape, value, strict=strict)
    assert ORACLE(schema).is_valid(document) == (problems == ()), (schema, document, problems)


def set_of_keys(document: Any) -> set[str]:
    return set(document) if isinstance(document, dict) else set()


@settings(max_examples=300, deadline=None)
@given(SIGNATURES)
def test_a_rendered_signature_reads_as_itself(signature: Signature) -> None:
    assert parse(render(signature)) == signature


@settings(max_examples=300, deadline=None)
@given(st.data(), TYPES)
def test_coercion_leaves_what_is_right_alone_and_a_second_one_changes_nothing(
    data: st.DataObject, shape: Type
) -> None:
    value = from_json(shape, data.draw(fitting(shape)))
    once = coerce(shape, value)
    if validate(shape, value) == ():
        assert once.value is value
        assert once.warnings == ()
    again = coerce(shape, once.value)
    assert again.value == once.value
    assert again.warnings == ()
    assert (validate(shape, once.value) == ()) == (once.problems == ())
