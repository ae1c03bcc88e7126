"""Numbers: arithmetic, rounding, comparison and bits.

Integers never overflow but are bounded by `int_digits`; `/` answers floats. Floats follow IEEE 754
and Java: NaN and infinities are values, also of a division by zero; integers refuse it. Bit
operations work on 64-bit two's complement, as Clojure's do, and mask shift counts by 63.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NoReturn

from holdfast.lang.api import LangError, Value
from holdfast.lang.meter import ACTIVE, refuse_size, spend
from holdfast.lang.values import equal, expected, int_or_none

Number = int | float
LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1
_BITS_PER_DIGIT = 3.3219281


def refuse(name: str, value: Value) -> NoReturn:
    raise expected(name, "a number", value)


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


def _additive(name: str, join: Callable[[Any, Any], Number]) -> Callable[[Value, Value], Number]:
    def joined(one: Value, other: Value) -> Number:
        if _both(name, one, other):
            if abs(one) > LONG_MAX or abs(other) > LONG_MAX:
                bounded(max(one.bit_length(), other.bit_length()))
            return join(one, other)
        return join(to_float(one), to_float(other))

    return joined


_add, _subtract = _additive("+", operator.add), _additive("-", operator.sub)


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


def _rounding(name: str, make: Callable[[float], int]) -> Callable[[Value], Number]:
    """A function to integers that leaves integers, infinities and NaN as they are."""

    def rounded(value: Value) -> Number:
        found = number(name, value)
        return found if type(found) is int or not math.isfinite(found) else make(found)

    return rounded


def _away(value: float) -> int:
    whole = math.trunc(value)
    if abs(value - whole) >= 0.5:
        whole += 1 if value > 0 else -1
    return whole


floor, ceil = _rounding("floor", math.floor), _rounding("ceil", math.ceil)
trunc, round_half_up = _rounding("trunc", math.trunc), _rounding("round", _away)


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


def _extreme(name: str, better: Callable[[Number, Number], bool]) -> Callable[..., Number]:
    """The best of some numbers, the last of equals; NaN if there is one."""

    def extreme(first: Value, *rest: Value) -> Number:
        best = number(name, first)
        for each in rest:
            found = number(name, each)
            if found != found or best != best:
                best = math.nan
            elif better(found, best):
                best = found
        return best

    return extreme


maximum, minimum = _extreme("max", operator.ge), _extreme("min", operator.le)


def _chain(name: str, holds: Callable[[Any, Any], bool]) -> Callable[..., bool]:
    """Whether each number stands so to the next; one value alone does, whatever it is."""

    def in_order(first: Value, *rest: Value) -> bool:
        for one, other in pairwise((first, *rest)):
            _both(name, one, other)
            if not holds(one, other):
                return False
        return True

    return in_order


less, at_most = _chain("<", operator.lt), _chain("<=", operator.le)
greater, at_least = _chain(">", operator.gt), _chain(">=", operator.ge)
same_number = _chain("==", operator.eq)


def same(first: Value, *rest: Value) -> bool:
    return all(equal(first, each) for each in rest)


# --- predicates: false for what is no number -----------------------------------------------------


def _to_zero(holds: Callable[[Any, Any], bool]) -> Callable[[Value], bool]:
    return lambda value: type(value) in (int, float) and holds(value, 0)


is_zero, is_positive, is_negative = map(_to_zero, (operator.eq, operator.gt, operator.lt))


def _parity(rest: int) -> Callable[[Value], bool]:
    """Whether an integer, or a float that stands for one, leaves this rest."""

    def has_parity(value: Value) -> bool:
        if type(value) is float and math.isfinite(value):
            value = int_or_none(value)
        return type(value) is int and value % 2 == rest

    return has_parity


is_even, is_odd = _parity(0), _parity(1)


# --- bits ----------------------------------------------------------------------------------------


def _long(name: str, value: Value) -> int:
    if type(value) is not int:
        raise expected(name, "integers", value)
    if not LONG_MIN <= value <= LONG_MAX:
        raise LangError("type_error", f"{name} works on 64-bit integers")
    return value


def _wrap(value: int) -> int:
    value &= 2**64 - 1
    return value - 2**64 if value > LONG_MAX else value


def _bitwise(name: str, join: Callable[[int, int], int]) -> Callable[..., int]:
    def joined(one: Value, other: Value, *rest: Value) -> int:
        found = _long(name, one)
        for each in (other, *rest):
            found = join(found, _long(name, each))
        return found

    return joined


bit_and, bit_or = _bitwise("bit-and", operator.and_), _bitwise("bit-or", operator.or_)
bit_xor = _bitwise("bit-xor", operator.xor)
bit_and_not = _bitwise("bit-and-not", lambda one, other: one & ~other)


def bit_not(value: Value) -> int:
    return ~_long("bit-not", value)


def _at_bit(name: str, change: Callable[[int, int], int]) -> Callable[[Value, Value], int]:
    """An operation on a number and the position of a bit, or a distance."""

    def changed(value: Value, index: Value) -> int:
        return _wrap(change(_long(name, value), _long(name, index) & 63))

    return changed


bit_set = _at_bit("bit-set", lambda value, bit: value | 1 << bit)
bit_clear = _at_bit("bit-clear", lambda value, bit: value & ~(1 << bit))
bit_flip = _at_bit("bit-flip", lambda value, bit: value ^ 1 << bit)
shift_left = _at_bit("bit-shift-left", operator.lshift)
shift_right = _at_bit("bit-shift-right", operator.rshift)
unsigned_shift_right = _at_bit(
    "unsigned-bit-shift-right", lambda value, count: (value & 2**64 - 1) >> count
)


def bit_test(value: Value, index: Value) -> bool:
    return bool(_long("bit-test", value) >> (_long("bit-test", index) & 63) & 1)
