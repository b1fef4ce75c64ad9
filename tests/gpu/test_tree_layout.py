"""The layout of device-resident trees: the committed header, ctypes and the compiler agree."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import pytest
from tests.support.kernels import COMPILER, compile_for_cpu

torch = pytest.importorskip("torch")

from pondertree.gpu import kernels, tree_layout  # noqa: E402 (after the package they need)
from pondertree.gpu.tree_layout import ARRAYS, ROOT_COLUMNS, SearchParameters, TreeArrays  # noqa: E402

HEADER = Path(str(kernels.__file__)).parent / "layout.h"


def test_committed_header_is_generated_from_layout() -> None:
    assert HEADER.read_text(encoding="utf-8") == tree_layout.header()


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
def test_field_offsets_match_compiler(tmp_path: Path) -> None:
    structs: dict[str, Any] = {"SearchParameters": SearchParameters, "TreeArrays": TreeArrays}
    fields = [(name, field[0]) for name, struct in structs.items() for field in struct._fields_]
    offsets = ", ".join(f"offsetof({struct}, {field})" for struct, field in fields)
    source = tmp_path / "offsets.c"
    source.write_text(f'#include <stddef.h>\n#include "layout.h"\nconst size_t offsets[] = {{{offsets}}};\n')
    library = compile_for_cpu(source, (f"-I{HEADER.parent}",))
    found = list((ctypes.c_size_t * len(fields)).in_dll(library, "offsets"))
    assert found == [getattr(structs[struct], field).offset for struct, field in fields]


def test_exported_columns_have_arrays() -> None:
    assert set(ROOT_COLUMNS.values()) <= {name for name, _, _ in ARRAYS}
