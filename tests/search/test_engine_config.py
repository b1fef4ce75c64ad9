"""The configuration that crosses to the engine: its fields are declared once in Rust."""

from __future__ import annotations

import pytest

import pondertree as pt
from pondertree._core import CONFIG_FIELDS, Forest
from pondertree.game import describe
from pondertree.games import ConnectFour


def data() -> dict[str, object]:
    info = describe(ConnectFour())
    return pt.UCT(seed=0).config(info).engine_data(info, 1)


def test_config_has_exactly_the_fields_of_the_engine() -> None:
    assert sorted(data()) == sorted(CONFIG_FIELDS)


def test_unknown_field_is_refused() -> None:
    with pytest.raises(pt.InvalidArgumentError, match="depth"):
        Forest("connect_four", data() | {"depth": 3})


@pytest.mark.parametrize("name", CONFIG_FIELDS)
def test_missing_field_is_refused(name: str) -> None:
    fields = data()
    del fields[name]
    with pytest.raises(KeyError, match=name):
        Forest("connect_four", fields)


def test_object_with_attributes_is_read_like_a_dict() -> None:
    fields = type("Fields", (), data())
    assert Forest("connect_four", fields).num_actions == 7
