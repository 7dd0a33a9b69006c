"""CometBFT's query language for events (libs/pubsub/query/syntax): conditions joined by AND."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction

TOKEN = re.compile(
    r"\s*(?:(?P<time>TIME\s+[0-9T:.Z+-]+)|(?P<date>DATE\s+[0-9-]+)|(?P<number>-?[0-9]+(?:\.[0-9]*)?)"
    r"|(?P<tag>[A-Za-z_.][\w.-]*)|(?P<string>'[^']*')|(?P<op><=|>=|=|<|>))"
)
WORDS = {"AND", "CONTAINS", "EXISTS"}
Operand = str | Fraction | datetime | date | None


class QuerySyntaxError(ValueError):
    """A query that cannot be read."""


@dataclass(frozen=True)
class Condition:
    """One condition: `tag` is type.attribute, `op` one of = < <= > >= CONTAINS EXISTS."""

    tag: str
    op: str
    operand: Operand = None


@dataclass(frozen=True)
class Token:
    """A token with its place."""

    kind: str
    text: str
    offset: int


def _scan(query: str) -> list[Token]:
    tokens, place = [], 0
    while query[place:].strip():
        match = TOKEN.match(query, place)
        if match is None or match.lastgroup is None:
            raise QuerySyntaxError(f"offset {place}: invalid input at offset {place + 1}")
        text, kind = match.group(match.lastgroup), match.lastgroup
        tokens.append(Token(text if text in WORDS else kind, text, place))
        place = match.end()
    tokens.append(Token("EOF", "", len(query)))
    return tokens


def _operand(token: Token) -> Operand:
    if token.kind == "string":
        return token.text[1:-1]
    try:
        if token.kind == "number":
            return Fraction(token.text)
        word, text = token.text.split(maxsplit=1)
        return datetime.fromisoformat(text) if word == "TIME" else date.fromisoformat(text)
    except ValueError as error:
        raise QuerySyntaxError(f"offset {token.offset}: {error}") from error


def _want(token: Token, *kinds: str) -> Token:
    if token.kind not in kinds:
        raise QuerySyntaxError(f"offset {token.offset}: got {token.kind}, want {' or '.join(kinds)}")
    return token


def _condition(tokens: list[Token]) -> Condition:
    tag = _want(tokens.pop(0), "tag").text
    operator = _want(tokens.pop(0), "op", "CONTAINS", "EXISTS")
    if operator.kind == "EXISTS":
        return Condition(tag, "EXISTS")
    if operator.kind == "CONTAINS":
        return Condition(tag, "CONTAINS", _operand(_want(tokens.pop(0), "string")))
    kinds = ("string", "number", "time", "date") if operator.text == "=" else ("number", "time", "date")
    return Condition(tag, operator.text, _operand(_want(tokens.pop(0), *kinds)))


def parse(query: str) -> list[Condition]:
    """Return the conditions; raise QuerySyntaxError."""
    tokens = _scan(query)
    found = [_condition(tokens)]
    while tokens[0].kind != "EOF":
        _want(tokens.pop(0), "AND")
        found.append(_condition(tokens))
    return found


def _comparable(value: str, operand: Operand) -> Fraction | datetime | date | None:
    try:
        if isinstance(operand, Fraction):
            return Fraction(value) if re.fullmatch(r"-?[0-9]+(\.[0-9]*)?", value) else None
        if isinstance(operand, datetime):
            return datetime.fromisoformat(value)
        return date.fromisoformat(value[:10])
    except ValueError:
        return None


def matches(value: str, condition: Condition) -> bool:
    """Return whether an attribute's value fulfils the condition."""
    operand = condition.operand
    if condition.op == "EXISTS":
        return True
    if isinstance(operand, str):
        return operand in value if condition.op == "CONTAINS" else operand == value
    found = _comparable(value, operand)
    if found is None or operand is None:
        return False
    if condition.op == "=":
        return found == operand
    before, after = found < operand, found > operand  # type: ignore[operator]
    return {"<": before, "<=": not after, ">": after, ">=": not before}[condition.op]
