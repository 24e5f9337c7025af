"""What has many fields is made by keyword: nobody counts to the ninth place."""

from __future__ import annotations

import ast
from pathlib import Path

import napari_fish

MOST = 5
SOURCE = Path(napari_fish.__file__).parent
TREES = {
    path.relative_to(SOURCE): ast.parse(path.read_text(encoding="utf-8")) for path in SOURCE.rglob("*.py")
}
TABLES = {"Look", "Theme"}
"""Rows of colours, which are read as tables."""


def is_values(node: ast.ClassDef) -> bool:
    return any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list)


def test_values_with_many_fields_are_made_by_keyword() -> None:
    nodes = [(path, node) for path, tree in TREES.items() for node in ast.walk(tree)]
    values = {node.name for _, node in nodes if isinstance(node, ast.ClassDef) and is_values(node)} - TABLES
    assert "Evaluation" in values
    by_place = [
        f"{path}:{node.lineno} {node.func.id} has {len(node.args)} arguments by their place"
        for path, node in nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in values
        if len(node.args) > MOST and not any(isinstance(one, ast.Starred) for one in node.args)
    ]
    assert not by_place
