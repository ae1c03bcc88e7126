"""Numbers: arithmetic, rounding, comparison and bits.

Integers never overflow but are bounded by `int_digits`; `/` answers floats. Floats follow IEEE 754
and Java: NaN and infinities are values, also of a division by zero; integers refuse it. Bit
operations work on 64-bit two's complement, as Clojure's do, and mask shift counts by 63.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import NoReturn

from holdfast.lang.api import LangError, Value
from holdfast.lang.meter import ACTIVE, refuse_size, spend
from holdfast.lang.values import compare, equal, int_or_none, is_true, type_name

Number = int | float
LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1
_BITS_PER_DIGIT = 3.3219281


def refuse(name: str, value: Value) -> NoReturn:
    raise LangError("type_error", f"{name} expects a number, got {type_name(value)}")


def number(name: str, value: Value) -> Number:
    if type(value) is int or type(value) is float:
        return value
    refuse(name, value)


def bounded(bits: int) -> None:
    """Refuse an integer of so many bits before it is made."""
    meter = ACTIVE.get()
    if bits > meter.limits.int_digits * _BITS_PER_DIGIT:
        refuse_size("int_digits", "an integer")
    meter.spend(bits >> 8)


def to_float(value: Number) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _both(name: str, one: Value, other: Value) -> bool:
    """Check two operands; true when they are both integers."""
    kind, there = type(one), type(other)
    if kind is int and there is int:
        return True
    if kind is not int and kind is not float:
        refuse(name, one)
    if there is not int and there is not float:
        refuse(name, other)
    return False


def _add(one: Value, other: Value) -> Number:
    if _both("+", one, other):
        if abs(one) > LONG_MAX or abs(other) > LONG_MAX:
            bounded(max(one.bit_length(), other.bit_length()))
        return one + other  # type: ignore[no-any-return]  # _both checked
    return to_float(one) + to_float(other)


def _subtract(one: Value, other: Value) -> Number:
    if _both("-", one, other):
        if abs(one) > LONG_MAX or abs(other) > LONG_MAX:
            bounded(max(one.bit_length(), other.bit_length()))
        return one - other  # type: ignore[no-any-return]  # _both checked
    return to_float(one) - to_float(other)


def _multiply(one: Value, other: Value) -> Number:
    if _both("*", one, other):
        bits = one.bit_length() + other.bit_length()
        if bits > 128:
            bounded(bits)
            spend(one.bit_length() * other.bit_length() >> 12)
        return one * other  # type: ignore[no-any-return]  # _both checked
    return to_float(one) * to_float(other)


def add(*args: Value) -> Number:
    total: Number = 0
    if args:
        total = number("+", args[0])
        for each in args[1:]:
            total = _add(total, each)
    return total


def subtract(first: Value, *rest: Value) -> Number:
    total = number("-", first)
    if not rest:
        return -total
    for each in rest:
        total = _subtract(total, each)
    return total


def multiply(*args: Value) -> Number:
    total: Number = 1
    if args:
        total = number("*", args[0])
        for each in args[1:]:
            total = _multiply(total, each)
    return total


def divide(first: Value, *rest: Value) -> float:
    number("/", first)
    if not rest:
        return divide(1, first)
    total = first
    for each in rest:
        if _both("/", total, each) and each == 0:
            raise LangError("arithmetic_error", "division by zero")
        total = _quotient(total, each)
    return to_float(total)


def _quotient(one: Number, other: Number) -> float:
    """Of floats, division by zero has an answer: an infinity, or NaN."""
    if other == 0:
        sign = math.copysign(1, one) * math.copysign(1, other)
        return math.nan if one == 0 or one != one else math.copysign(math.inf, sign)
    try:
        return one / other
    except OverflowError:
        return to_float(one) / to_float(other)


def _whole(name: str, one: Value, other: Value) -> bool:
    ints = _both(name, one, other)
    if other == 0:
        raise LangError("arithmetic_error", f"{name}: division by zero")
    if not ints and not (math.isfinite(one) and other == other):
        raise LangError("arithmetic_error", f"{name}: the operands must be finite")
    return ints


def quot(one: Value, other: Value) -> Number:
    if _whole("quot", one, other):
        found = abs(one) // abs(other)
        return found if (one < 0) == (other < 0) else -found  # type: ignore[no-any-return]  # _whole checked
    return int(to_float(one) / to_float(other))


def rem(one: Value, other: Value) -> Number:
    if _whole("rem", one, other):
        found = abs(one) % abs(other)
        return -found if one < 0 else found  # type: ignore[no-any-return]  # _whole checked
    return math.fmod(to_float(one), to_float(other))


def mod(one: Value, other: Value) -> Number:
    if _whole("mod", one, other):
        return one % other  # type: ignore[no-any-return]  # _whole checked
    found = math.fmod(to_float(one), to_float(other))
    return found + other if found and (found < 0) != (other < 0) else found


def inc(value: Value) -> Number:
    return number("inc", value) + 1


def dec(value: Value) -> Number:
    return number("dec", value) - 1


def absolute(value: Value) -> Number:
    return abs(number("abs", value))


def _rounded(name: str, value: Value, make: Callable[[float], int]) -> Number:
    found = number(name, value)
    if type(found) is int or not math.isfinite(found):
        return found
    return make(found)


def floor(value: Value) -> Number:
    return _rounded("floor", value, math.floor)


def ceil(value: Value) -> Number:
    return _rounded("ceil", value, math.ceil)


def trunc(value: Value) -> Number:
    return _rounded("trunc", value, math.trunc)


def round_half_up(value: Value) -> Number:
    return _rounded("round", value, _away)


def _away(value: float) -> int:
    whole = math.trunc(value)
    if abs(value - whole) >= 0.5:
        whole += 1 if value > 0 else -1
    return whole


def to_int(value: Value) -> int:
    """Truncate to the range of a Java int; a character gives its code."""
    if type(value) is str and len(value) == 1:
        return ord(value)
    found = number("int", value)
    if found != found:
        return 0
    if not -(2**31) - 1 < found < 2**31:
        raise LangError(
            "arithmetic_error", "the value is outside the range of int", hint="use long or trunc"
        )
    return int(found)


def to_long(value: Value) -> int:
    if type(value) is str and len(value) == 1:
        return ord(value)
    found = number("long", value)
    if found != found:
        return 0
    if not math.isfinite(found):
        raise LangError("arithmetic_error", "an infinite value has no integer")
    return int(found)


def to_double(value: Value) -> float:
    return to_float(number("double", value))


def to_single(value: Value) -> float:
    found = to_float(number("float", value))
    if math.isinf(found):
        raise LangError("arithmetic_error", "the value is outside the range of float")
    return found


def sqrt(value: Value) -> float:
    found = to_float(number("sqrt", value))
    return math.nan if found < 0 else math.sqrt(found)


def power(base: Value, exponent: Value) -> float:
    """Java's `Math.pow`, including its special cases."""
    one, other = to_float(number("pow", base)), to_float(number("pow", exponent))
    if other == 0:
        return 1.0
    if one != one or other != other or (abs(one) == 1 and math.isinf(other)):
        return math.nan
    odd = other.is_integer() and other % 2 == 1
    try:
        return math.pow(one, other)
    except OverflowError:
        return -math.inf if one < 0 and odd else math.inf
    except ValueError:
        if one == 0:
            return math.copysign(math.inf, one) if odd else math.inf
        return math.nan


def _pick(name: str, args: tuple[Value, ...], better: Callable[[Number, Number], bool]) -> Number:
    best = number(name, args[0])
    for each in args[1:]:
        found = number(name, each)
        if found != found or best != best:
            best = math.nan
        elif better(found, best):
            best = found
    return best


def maximum(first: Value, *rest: Value) -> Number:
    return _pick("max", (first, *rest), lambda one, other: one >= other)


def minimum(first: Value, *rest: Value) -> Number:
    return _pick("min", (first, *rest), lambda one, other: one <= other)


def _chain(name: str, args: tuple[Value, ...], holds: Callable[[Number, Number], bool]) -> bool:
    if len(args) == 1:
        return True
    for one, other in pairwise(args):
        _both(name, one, other)
        if not holds(one, other):
            return False
    return True


def less(first: Value, *rest: Value) -> bool:
    return _chain("<", (first, *rest), lambda one, other: one < other)


def at_most(first: Value, *rest: Value) -> bool:
    return _chain("<=", (first, *rest), lambda one, other: one <= other)


def greater(first: Value, *rest: Value) -> bool:
    return _chain(">", (first, *rest), lambda one, other: one > other)


def at_least(first: Value, *rest: Value) -> bool:
    return _chain(">=", (first, *rest), lambda one, other: one >= other)


def same(first: Value, *rest: Value) -> bool:
    return all(equal(first, each) for each in rest)


def different(first: Value, *rest: Value) -> bool:
    return not same(first, *rest)


def same_number(first: Value, *rest: Value) -> bool:
    if not rest:
        return True
    return _chain("==", (first, *rest), lambda one, other: one == other)


def compare_values(one: Value, other: Value) -> int:
    return compare(one, other)


def logical_not(value: Value) -> bool:
    return not is_true(value)


# --- predicates: false for what is no number -----------------------------------------------------


def is_zero(value: Value) -> bool:
    return type(value) in (int, float) and value == 0


def is_positive(value: Value) -> bool:
    return type(value) in (int, float) and value > 0


def is_negative(value: Value) -> bool:
    return type(value) in (int, float) and value < 0


def _integral(value: Value) -> int | None:
    if type(value) is int:
        return value
    return int_or_none(value) if type(value) is float and math.isfinite(value) else None


def is_even(value: Value) -> bool:
    found = _integral(value)
    return found is not None and found % 2 == 0


def is_odd(value: Value) -> bool:
    found = _integral(value)
    return found is not None and found % 2 == 1


def is_nan(value: Value) -> bool:
    return type(value) is float and value != value


def is_infinite(value: Value) -> bool:
    return type(value) is float and math.isinf(value)


# --- bits ----------------------------------------------------------------------------------------


def _long(name: str, value: Value) -> int:
    if type(value) is not int:
        raise LangError("type_error", f"{name} expects integers, got {type_name(value)}")
    if not LONG_MIN <= value <= LONG_MAX:
        raise LangError("type_error", f"{name} works on 64-bit integers")
    return value


def _wrap(value: int) -> int:
    value &= 2**64 - 1
    return value - 2**64 if value > LONG_MAX else value


def bit_and(one: Value, other: Value, *rest: Value) -> int:
    found = _long("bit-and", one)
    for each in (other, *rest):
        found &= _long("bit-and", each)
    return found


def bit_or(one: Value, other: Value, *rest: Value) -> int:
    found = _long("bit-or", one)
    for each in (other, *rest):
        found |= _long("bit-or", each)
    return found


def bit_xor(one: Value, other: Value, *rest: Value) -> int:
    found = _long("bit-xor", one)
    for each in (other, *rest):
        found ^= _long("bit-xor", each)
    return found


def bit_and_not(one: Value, other: Value, *rest: Value) -> int:
    found = _long("bit-and-not", one)
    for each in (other, *rest):
        found &= ~_long("bit-and-not", each)
    return found


def bit_not(value: Value) -> int:
    return ~_long("bit-not", value)


def bit_set(value: Value, index: Value) -> int:
    return _wrap(_long("bit-set", value) | 1 << (_long("bit-set", index) & 63))


def bit_clear(value: Value, index: Value) -> int:
    return _wrap(_long("bit-clear", value) & ~(1 << (_long("bit-clear", index) & 63)))


def bit_flip(value: Value, index: Value) -> int:
    return _wrap(_long("bit-flip", value) ^ 1 << (_long("bit-flip", index) & 63))


def bit_test(value: Value, index: Value) -> bool:
    return bool(_long("bit-test", value) >> (_long("bit-test", index) & 63) & 1)


def shift_left(value: Value, count: Value) -> int:
    return _wrap(_long("bit-shift-left", value) << (_long("bit-shift-left", count) & 63))


def shift_right(value: Value, count: Value) -> int:
    return _long("bit-shift-right", value) >> (_long("bit-shift-right", count) & 63)


def unsigned_shift_right(value: Value, count: Value) -> int:
    name = "unsigned-bit-shift-right"
    return _wrap((_long(name, value) & 2**64 - 1) >> (_long(name, count) & 63))
