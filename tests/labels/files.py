"""Labels files for tests."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from napari_fish.labels.table import LabelTable, read_labels

TCGA = "TCGA-DU-6399-01Z-00-DX1.11111111-2222-3333-4444-555555555555.svs"


def written(folder: Path, content: str | bytes, name: str = "labels.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def read(folder: Path, content: str | bytes, **options: dict[str, str]) -> LabelTable:
    return read_labels(written(folder, content), **options)


def workbook(folder: Path, rows: Sequence[Sequence[object]], formats: dict[str, str] | None = None) -> Path:
    import openpyxl

    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    for cell, number_format in (formats or {}).items():
        book.active[cell].number_format = number_format
    book.save(folder / "labels.xlsx")
    return folder / "labels.xlsx"


def csv_text(rows: Iterable[Sequence[str]], **dialect: Any) -> str:
    """Return rows as Python's csv writes them."""
    buffer = io.StringIO(newline="")
    csv.writer(buffer, **dialect).writerows(rows)
    return buffer.getvalue()
