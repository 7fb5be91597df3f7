"""Which conditions a model may draw, and reading the values that it gives."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Any, Final

from easyrag_core.errors import InvalidParameterError, check_choice
from easyrag_core.filters._tree import OPERATORS

__all__ = ["FIELD_TYPES", "FilterField", "coerced", "operator_named"]

_ORDERED: Final = ("eq", "ne", "gt", "gte", "lt", "lte", "in", "nin")
_DEFAULTS: Final = {
    "string": ("eq", "ne", "in", "nin"),
    "integer": _ORDERED,
    "number": _ORDERED,
    "boolean": ("eq",),
    "date": _ORDERED,
    "strings": ("contains", "any", "all"),
}
FIELD_TYPES: Final = tuple(_DEFAULTS)
"""The types of a `FilterField`; `strings` is a list of texts."""

_POSSIBLE: Final = {
    **_DEFAULTS,
    "string": (*_DEFAULTS["string"], "contains", "exists"),
    "boolean": ("eq", "ne", "exists"),
    **{name: (*_DEFAULTS[name], "exists") for name in ("integer", "number", "date", "strings")},
}
_ALIASES: Final = {
    **dict.fromkeys(("=", "==", "===", "is", "equals", "equal", "$eq", "等于", "是", "为"), "eq"),
    **dict.fromkeys(("!=", "<>", "≠", "not", "is not", "not_equals", "neq", "$ne", "不等于"), "ne"),
    **dict.fromkeys((">", "$gt", "after", "大于", "晚于"), "gt"),
    **dict.fromkeys((">=", "≥", "ge", "$gte", "since", "from", "大于等于", "不早于"), "gte"),
    **dict.fromkeys(("<", "$lt", "before", "小于", "早于"), "lt"),
    **dict.fromkeys(("<=", "≤", "le", "$lte", "until", "小于等于", "不晚于"), "lte"),
    **dict.fromkeys(("$in", "one of", "one_of", "属于"), "in"),
    **dict.fromkeys(("not in", "not_in", "$nin", "不属于"), "nin"),
    **dict.fromkeys(("includes", "has", "like", "$contains", "包含"), "contains"),
}
_TRUE: Final = ("true", "yes", "1", "是", "真", "有")
_FALSE: Final = ("false", "no", "0", "否", "假", "无")
_DAY: Final = re.compile(
    r"(\d{4})\s*[-/.年]\s*(\d{1,2})\s*[-/.月]\s*(\d{1,2})\s*日?(?:(?:[Tt ]|(?<=日))\s*(\S.*))?"
)
_SHORT_HOUR: Final = re.compile(r"\d(?=:)")
_HOURS_ZH: Final = re.compile(r"(\d{1,2})[时点](?:(\d{1,2})分(?:(\d{1,2})秒)?)?")
_HALF_OF_DAY: Final = re.compile(r"(0?[1-9]|1[0-2])(:\d{2}(?::\d{2})?)([AP])\.?M\.?", re.IGNORECASE)
_BY_TIME: Final = ("gt", "gte", "lt", "lte")
_LONGEST_TEXT: Final = 200
# Beyond it floats no longer tell whole numbers apart, and no store takes them.
_LARGEST: Final = 2**53


@dataclass(frozen=True, slots=True)
class FilterField:
    """A metadata field that a model may set conditions on.

    Attributes:
        name: The metadata key.
        type: One of `FIELD_TYPES`.
        operators: Those allowed; for the type's usual ones leave it empty. A field whose values
            are lists in a text (`"7.1, 7.2"`) gets `("contains",)`: the model cannot choose `eq`.
        enum: The only values allowed, for texts; empty for any.
        description: What a model should know of it.

    Raises:
        InvalidParameterError: For an unknown type, or operators or values that do not go with it.

    >>> FilterField("year", "integer", operators=("gte", "lte"), description="of publication")
    ... # doctest: +ELLIPSIS
    FilterField(name='year', type='integer', operators=('gte', 'lte'), enum=(), ...)
    """

    name: str
    type: str = "string"
    operators: tuple[str, ...] = ()
    enum: tuple[str, ...] = ()
    description: str = ""

    def __post_init__(self) -> None:
        """Refuse what a condition could never use."""
        name: Any = self.name
        if not isinstance(name, str) or not name.strip():
            raise InvalidParameterError("name", name, "give the name of a metadata field")
        check_choice("type", self.type, FIELD_TYPES)
        for several in ("operators", "enum"):
            given: Any = getattr(self, several)
            if isinstance(given, str) or not isinstance(given, Iterable):
                raise InvalidParameterError(several, given, "give a tuple of texts")
        operators = tuple(self.operators) or _DEFAULTS[self.type]
        for operator in operators:
            check_choice("operators", operator, _POSSIBLE[self.type])
        if self.enum and self.type not in ("string", "strings"):
            raise InvalidParameterError("enum", self.enum, "only texts have a list of values")
        object.__setattr__(self, "operators", operators)
        object.__setattr__(self, "enum", tuple(self.enum))


def operator_named(name: Any) -> str | None:
    """Return the operator that a model means, or `None`."""
    if not isinstance(name, str):
        return None
    plain = unicodedata.normalize("NFKC", name).strip().casefold()
    return plain if plain in OPERATORS else _ALIASES.get(plain)


def coerced(field: FilterField, operator: str, value: Any) -> Any:
    """Read a model's value as the field's type.

    Args:
        field: The field.
        operator: The operator, one that the field allows.
        value: What the model gave.

    Returns:
        The value for a `Condition`.

    Raises:
        ValueError: It cannot be read; the message says why.
    """
    if operator == "exists":
        return _boolean(value)
    if operator in ("in", "nin", "any", "all"):
        several = value if isinstance(value, list) else [value]
        if not 0 < len(several) <= _LONGEST_TEXT:
            raise ValueError("no values, or too many")
        return tuple(_one(field, operator, one) for one in several)
    if isinstance(value, list) and len(value) == 1:
        return _one(field, operator, value[0])
    return _one(field, operator, value)


def _one(field: FilterField, operator: str, value: Any) -> Any:
    if field.type == "date":
        return _date(operator, value)
    read = {"integer": _integer, "number": _number, "boolean": _boolean}
    if field.type in read:
        return read[field.type](value)
    return _text(field, value)


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    word = str(value).strip().casefold() if isinstance(value, str | int) else ""
    if word in _TRUE or word in _FALSE:
        return word in _TRUE
    raise ValueError("not true or false")


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError("not a number")  # noqa: TRY004 - one kind of error for what is dropped
    if isinstance(value, str):
        number = float(unicodedata.normalize("NFKC", value[:_LONGEST_TEXT]).replace(",", ""))
    else:
        number = value
    if not math.isfinite(number) or abs(number) > _LARGEST:
        raise ValueError("not a finite number")
    return number


def _integer(value: Any) -> int:
    number = _number(value)
    if number != int(number):
        raise ValueError("not a whole number")
    return int(number)


def _date(operator: str, value: Any) -> str:
    plain = unicodedata.normalize("NFKC", value[:_LONGEST_TEXT]) if isinstance(value, str) else ""
    found = _DAY.fullmatch(plain.strip())
    if found is None:
        raise ValueError("not a date like 2024-01-31")
    year, month, day, hours = found.groups()
    on = date(int(year), int(month), int(day))
    if hours is None:
        return on.isoformat()
    moment = _moment(on, hours)
    if operator in _BY_TIME:
        return moment.isoformat()
    # Moments have an order alone: their texts are equal only where they are written alike.
    if moment.time() != time() or moment.tzinfo not in (None, UTC):
        raise ValueError("a time of day can only be compared by order")
    return on.isoformat()


def _moment(on: date, hours: str) -> datetime:
    told = re.sub(r"\s|(?:UTC|GMT)$", "", hours)
    zone = "Z" if hours.endswith(("UTC", "GMT")) else ""
    if in_chinese := _HOURS_ZH.fullmatch(told):
        told = ":".join((part or "0").zfill(2) for part in in_chinese.groups())
    elif half := _HALF_OF_DAY.fullmatch(told):
        hour = int(half[1]) % 12 + (12 if half[3] in "Pp" else 0)
        told = f"{hour:02}{half[2]}"
    elif _SHORT_HOUR.match(told):
        told = f"0{told}"
    try:
        return datetime.fromisoformat(f"{on.isoformat()}T{told}{zone}")
    except ValueError:
        raise ValueError("not a time of day like 18:30:00") from None


def _text(field: FilterField, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError("not a text")  # noqa: TRY004 - as above
    text = str(value).strip()
    if not text or len(text) > _LONGEST_TEXT:
        raise ValueError("blank, or too long")
    if not field.enum or text in field.enum:
        return text
    folded = unicodedata.normalize("NFKC", text).casefold()
    for allowed in field.enum:
        if unicodedata.normalize("NFKC", allowed).casefold() == folded:
            return allowed
    raise ValueError("not among the allowed values")
