"""The requests of a page, validated. The messages of both directions are described in `web/src/protocol.ts`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from pondertree import validation
from pondertree.config import Check, bounded_int
from pondertree.errors import InvalidArgumentError, UsageError

VERSION = 1
#: Bytes of a message to the page, and of one from it.
MAX_MESSAGE, MAX_REQUEST = 50_000, 64 * 1024
#: Frames a second.
HERTZ = 10
#: Decimals of values.
DECIMALS = 6
#: Positions in the window of the tree.
MAX_ROWS = 4_000
#: Integers up to this are exact in JavaScript.
MAX_EXACT = (1 << 53) - 1

_whole = bounded_int(0, MAX_EXACT)
_simulations = bounded_int(1, (1 << 32) - 1)


def _optional(check: Check) -> Check:
    return lambda value, name: None if value is None else check(value, name)


def _numbers(value: Any, name: str) -> list[int]:
    if not isinstance(value, list):
        raise InvalidArgumentError(f"{name} must be a list, not {validation.shown(value)}")
    return [_whole(each, f"{name}[{place}]") for place, each in enumerate(value)]


def _parameters(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict) or not all(
        each is None or isinstance(each, bool | int | float | str) for each in value.values()
    ):
        raise InvalidArgumentError(f"{name} must be an object of numbers, texts, booleans and null")
    return value


#: The fields of `settings`, all of them optional.
SETTINGS: dict[str, Check] = {
    "preset": validation.text,
    "parameters": _parameters,
    "seed": _optional(_whole),
    "simulations": _optional(_simulations),
    "seconds": _optional(validation.seconds),
    "exclude": _numbers,
    "force": _numbers,
}


def _settings(value: Any, name: str) -> dict[str, Any]:
    return read_fields(value, SETTINGS, name)


#: The fields of each request; all are optional, but for those in `REQUIRED`.
REQUESTS: dict[str, dict[str, Check]] = {
    "start": {"simulations": _optional(_simulations), "seconds": _optional(validation.seconds)},
    "pause": {},
    "step": {},
    "play": {"action": _whole, "text": validation.text, "reply": validation.flag},
    "move": {},
    "goto": {"ply": _whole},
    "setup": {"fen": validation.text, "moves": validation.text},
    "new": {},
    "settings": {"settings": _settings},
    "window": {
        "open": _numbers,
        "close": _numbers,
        "least": bounded_int(1, (1 << 32) - 1),
        "nodes": bounded_int(1, MAX_ROWS),
        "follow": validation.flag,
    },
    "inspect": {"id": _whole},
    "solve": {},
    "save": {"name": validation.text},
}
REQUIRED = {"goto": "ply", "settings": "settings", "inspect": "id", "save": "name"}


def read_fields(given: Any, known: Mapping[str, Check], name: str) -> dict[str, Any]:
    """Returns the checked fields of an object; raises `InvalidArgumentError` for an unknown or invalid one."""
    if not isinstance(given, dict):
        raise InvalidArgumentError(f"{name} must be an object, not {validation.shown(given)}")
    for field in given:
        if field not in known:
            listed = ", ".join(known) or "none"
            raise InvalidArgumentError(f"{name} has no field {validation.shown(field)}: it has {listed}")
    return {field: known[field](value, field) for field, value in given.items()}


def parse(text: str) -> tuple[int | None, Callable[[], tuple[str, dict[str, Any]]]]:
    """Parses a message of the page: (the number of the request, a function that returns its type and its fields).

    Both raise `InvalidArgumentError`. The number is known first, so that the answer to an invalid request names it.
    """
    try:
        message = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise InvalidArgumentError(f"a message must be JSON: {error}") from None
    if not isinstance(message, dict):
        raise InvalidArgumentError("a message must be an object")
    number = message.pop("request", None)
    if not isinstance(number, int) or isinstance(number, bool) or abs(number) > MAX_EXACT:
        raise InvalidArgumentError(f"request must be a whole number, not {validation.shown(number)}")

    def read() -> tuple[str, dict[str, Any]]:
        kind = message.pop("type", None)
        if not isinstance(kind, str) or kind not in REQUESTS:
            raise InvalidArgumentError(f"type must be one of {', '.join(REQUESTS)}, not {validation.shown(kind)}")
        required = REQUIRED.get(kind)
        if required is not None and required not in message:
            raise InvalidArgumentError(f"{kind} needs the field {required}")
        return kind, read_fields(message, REQUESTS[kind], kind)

    return number, read


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def encode(message: Mapping[str, Any]) -> str:
    """Returns a message as compact JSON in ASCII: one byte per character."""
    return json.dumps(message, separators=(",", ":"), allow_nan=False)


def encode_within(message: dict[str, Any], lists: tuple[str, ...], most: int = MAX_MESSAGE) -> str:
    """Returns what `cut` returns, or an error message if the message is too large without its lists."""
    try:
        return cut(message, lists, most)
    except UsageError as error:
        return encode({"type": "error", "request": None, "message": str(error)})


def cut(message: dict[str, Any], lists: tuple[str, ...], most: int = MAX_MESSAGE) -> str:
    """Returns a message as JSON of at most `most` bytes: its longest list among `lists` is halved until it fits.

    Raises `UsageError` if it does not fit without them.
    """
    text = encode(message)
    while len(text) > most:
        longest = max(lists, key=lambda name: len(encode({"": message[name]})))
        if not message[longest]:
            raise UsageError("this position is too large to be shown")
        message = {**message, longest: message[longest][: len(message[longest]) // 2]}
        text = encode(message)
    return text
