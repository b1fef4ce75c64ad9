"""Configurations as TOML: read strictly, written whole with the sentence of each field."""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
import tomllib
from pathlib import Path
from typing import Any

from pondertree import check
from pondertree.check import brief
from pondertree.errors import InvalidArgumentError
from pondertree.files import reading
from pondertree.learn.config import SECTIONS, Config, check_keys, field_names

#: Longer texts, and lines with more dots, are no configurations.
LONGEST_TEXT, MOST_DOTS = 1 << 18, 200


def read_config(path: Path, base: Config) -> Config:
    """`base` with the values of a file; keys that there are not are refused, with the nearest that there is."""
    with reading(path, "a configuration") as file:
        return config_of_text(file.read_text(encoding="utf-8"), base)


def config_of_text(text: str, base: Config) -> Config:
    """`base` with the values of a TOML text."""
    return config_of_data(data_of_text(text), base)


def data_of_text(text: str) -> dict[str, Any]:
    """The values of a TOML text, by name."""
    # tomllib takes superquadratic time in the parts of a dotted key.
    if len(text) > LONGEST_TEXT or any(line.count(".") > MOST_DOTS for line in text.splitlines()):
        most = f"at most {LONGEST_TEXT:,} characters, and {MOST_DOTS} dots in a line"
        raise InvalidArgumentError(f"this is no TOML of a configuration, which has {most}")
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a number with too many digits is no TOMLDecodeError
        raise InvalidArgumentError(f"this is no TOML: {brief(str(error))}") from None


def config_of_data(data: dict[str, Any], base: Config) -> Config:
    """`base` with the values of plain data."""
    check_keys(data, Config)
    for name, value in data.items():
        if name in SECTIONS and not isinstance(value, dict):
            raise InvalidArgumentError(f"{name} must be a table, [{name}], not {check.shown(value)}")
    return base.with_values(**data)


def text_of_config(config: Config) -> str:
    """The whole configuration as TOML, each field under its sentence. What is None is written as a comment."""
    lines = _lines(check.instance(config, Config, "config"))
    for name, kind in SECTIONS.items():
        lines += ["", f"# {inspect.cleandoc(kind.__doc__).splitlines()[0]}", f"[{name}]"]
        lines += _lines(getattr(config, name))
    return "\n".join(lines) + "\n"


def _lines(section: Any) -> list[str]:
    kind: Any = type(section)
    sentences = field_sentences(kind)
    lines = []
    for name in field_names(kind):
        if isinstance(section, Config) and name in SECTIONS:
            continue
        lines += [f"# {line}" for line in textwrap.wrap(sentences.get(name, ""), 116)]
        value = getattr(section, name)
        lines.append(f"# {name} is not set" if value is None else f"{name} = {toml_value(value)}")
    return lines


@functools.cache
def field_sentences(kind: Any) -> dict[str, str]:
    """The sentence under each field of a dataclass, from its source; none where there is no source to be read."""
    try:
        source = inspect.getsource(kind)
    except OSError:
        return {}
    [definition] = ast.parse(textwrap.dedent(source)).body
    assert isinstance(definition, ast.ClassDef)
    found = {}
    for statement, after in zip(definition.body, definition.body[1:], strict=False):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            is_text = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            sentence = after.value.value if is_text else ""  # type: ignore[attr-defined]
            found[statement.target.id] = " ".join(str(sentence).split())
    return found


def toml_value(value: Any) -> str:
    """A value as TOML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(toml_value(one) for one in value)}]"
    escaped = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(sign if sign >= " " and sign != "\x7f" else f"\\u{ord(sign):04x}" for sign in escaped) + '"'


# Read now, while the sources are those of what runs: they may be replaced during a long training.
for _kind in (Config, *SECTIONS.values()):
    field_sentences(_kind)
