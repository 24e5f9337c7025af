"""Files become others: bytes, values of JSON, arrays, tables; the same seed makes the same ones."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

Dice = np.random.Generator
#: Numbers at which programs go wrong.
INTEGERS = (
    0,
    1,
    -1,
    2,
    127,
    128,
    255,
    256,
    65535,
    65536,
    2**31 - 1,
    -(2**31),
    2**32,
    2**50,
    2**62,
    2**63 - 1,
    -(2**63),
)
#: Values that JSON may hold where others are expected.
VALUES: tuple[Any, ...] = (
    None, True, False, "", "0", "-1", "ü", "\x00", "x" * 70_000, [], {}, [[]], [None], {"": ""}, 0, 1, -1, 0.5, 1e308, -1e308,
    float("inf"), float("nan"), 2**31, 2**63, 2**64, 10**30, [1] * 1000, "../../../../etc/passwd",
)  # fmt: skip


def of_bytes(data: bytes, dice: Dice) -> bytes:
    """Change some bytes; half of the changes lie near the beginning, where formats say what they are."""
    changed = bytearray(data)
    for _ in range(int(dice.integers(1, 5))):
        if not changed:
            return bytes(dice.integers(0, 256, 64, np.uint8))
        end = min(len(changed), 2048) if dice.random() < 0.5 else len(changed)
        at = int(dice.integers(end))
        match int(dice.integers(8)):
            case 0:
                changed[at] ^= 1 << int(dice.integers(8))
            case 1:
                changed[at] = int(dice.integers(256))
            case 2:
                changed[at : at + int(dice.integers(1, 40))] = (
                    b"\x00\xff\x7f"[int(dice.integers(3)) :][:1] * 40
                )
            case 3:
                width, sign = int(dice.choice([2, 4, 8])), str(dice.choice(["little", "big"]))
                number = int(dice.choice(np.array(INTEGERS, object))) % (1 << 8 * width)
                changed[at : at + width] = number.to_bytes(width, sign)  # type: ignore[arg-type]
            case 4:
                del changed[at:]
            case 5:
                del changed[at : at + int(dice.integers(1, 200))]
            case 6:
                piece = changed[at : at + int(dice.integers(1, 2000))]
                changed[at:at] = piece * int(dice.integers(1, 4))
            case _:
                changed[at:at] = bytes(dice.integers(0, 256, int(dice.integers(1, 64)), np.uint8))
    return bytes(changed)


def of_value(value: Any, dice: Dice) -> Any:
    """Change one value somewhere in what JSON holds."""
    if isinstance(value, dict) and value and dice.random() < 0.85:
        name = str(dice.choice(list(value)))
        if dice.random() < 0.1:
            return {k: v for k, v in value.items() if k != name}
        return {**value, name: of_value(value[name], dice)}
    if isinstance(value, list) and value and dice.random() < 0.85:
        at = int(dice.integers(len(value)))
        if dice.random() < 0.1:
            return value[:at] + value[at + 1 :] * int(dice.integers(3))
        return [*value[:at], of_value(value[at], dice), *value[at + 1 :]]
    if dice.random() < 0.02:
        return _deep(int(dice.choice([100, 900])))
    return VALUES[int(dice.integers(len(VALUES)))]


def _deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def of_json(text: bytes, dice: Dice) -> bytes:
    """Change values of JSON, or its bytes."""
    if dice.random() < 0.25:
        return of_bytes(text, dice)
    if dice.random() < 0.02:
        return b"[" * 100_000
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return of_bytes(text, dice)
    for _ in range(int(dice.integers(1, 4))):
        value = of_value(value, dice)
    return json.dumps(value).encode()


def safetensors(data: bytes, dice: Dice) -> bytes:
    """Change the head of a safetensors file: what it says of its tensors, or the card it carries."""
    size = int.from_bytes(data[:8], "little")
    head = json.loads(data[8 : 8 + size])
    card = json.loads(head["__metadata__"]["card"])
    if dice.random() < 0.7:
        head["__metadata__"]["card"] = json.dumps(of_value(card, dice))
    else:
        head = of_value(head, dice)
    text = json.dumps(head).encode()
    return len(text).to_bytes(8, "little") + text + data[8 + size :]


def file_or_json(source: Path, target: Path, dice: Dice) -> None:
    """Write a changed copy of a file."""
    data = source.read_bytes()
    is_json = source.suffix in (".json", ".geojson") or source.name.startswith(".z")
    target.write_bytes(of_json(data, dice) if is_json else of_bytes(data, dice))


def folder(source: Path, target: Path, dice: Dice) -> None:
    """Copy a folder, a file or two of it changed, missing, or of another kind."""
    shutil.copytree(source, target, copy_function=shutil.copyfile)
    for path in [target, *target.rglob("*")]:
        path.chmod(0o755)
    files = sorted(path for path in target.rglob("*") if path.is_file())
    # Descriptions are few among many chunks, and matter more.
    telling = [path for path in files if path.suffix == ".json" or path.name.startswith(".z")]
    for _ in range(int(dice.integers(1, 3))):
        some = telling if telling and dice.random() < 0.6 else files
        path = some[int(dice.integers(len(some)))]
        if not path.is_file():
            continue
        match int(dice.integers(20)):
            case 0:
                path.unlink()
            case 1:
                path.write_bytes(b"")
            case 2:
                path.unlink()
                path.mkdir()
            case 3:
                path.unlink()
                os.mkfifo(path)
            case 4:
                path.unlink()
                path.symlink_to(path.name)
            case 5:
                other = files[int(dice.integers(len(files)))]
                if other.is_file():
                    shutil.copyfile(other, path.with_name(path.name + "~"))
                    path.with_name(path.name + "~").replace(path)
            case _:
                file_or_json(path, path, dice)


def arrays(part: Path, dice: Dice) -> None:
    """Forge the arrays of a snapshot's part: other numbers, shapes and types, all checksums right."""
    manifest = json.loads((part / "manifest.json").read_text())
    for _ in range(int(dice.integers(1, 3))):
        name = str(dice.choice(list(manifest["files"])))
        facts = manifest["files"][name]
        array = _changed_array(np.load(part / f"{name}.npy"), dice)
        np.save(part / f"{name}.npy", array)
        facts |= {"dtype": array.dtype.str, "shape": list(array.shape)}
    if dice.random() < 0.15:
        manifest |= {"facts": of_value(manifest["facts"], dice)}
    if dice.random() < 0.15:
        manifest |= {"generation": of_value(manifest["generation"], dice)}
    if dice.random() < 0.1:
        manifest |= {"files": of_value(manifest["files"], dice)}
    for name, facts in manifest["files"].items() if isinstance(manifest["files"], dict) else ():
        path = part / f"{name}.npy"
        if isinstance(facts, dict) and len(name) < 99 and path.is_file():
            content = path.read_bytes()
            facts |= {"size": len(content), "checksum": zlib.crc32(content)}
            facts.pop("sampled", None)
    manifest.pop("checksum")
    manifest["checksum"] = zlib.crc32(json.dumps(manifest, sort_keys=True).encode())
    (part / "manifest.json").write_text(json.dumps(manifest))


def _changed_array(array: np.ndarray, dice: Dice) -> np.ndarray:
    changed = array.copy()
    flat = changed.reshape(-1)
    match int(dice.integers(9)):
        case 0 if len(flat):
            flat[int(dice.integers(len(flat)))] = _number(dice).astype(array.dtype)
        case 1 if len(flat):
            some = dice.integers(0, len(flat), 5)
            flat[some] = flat[some[::-1]]
        case 2 if len(flat):
            flat[int(dice.integers(len(flat))) :] = _number(dice).astype(array.dtype)
        case 3:
            changed = changed[::-1].copy()
        case 4:
            changed = changed[: int(dice.integers(len(changed) + 1))].copy()
        case 5:
            changed = np.concatenate([changed, changed[:3]])
        case 6:
            changed = changed.astype(
                str(dice.choice(["int8", "float64", "int32", "uint16", "int64", ">i8", "S4"]))
            )
        case 7 if array.ndim == 2 and array.shape[1]:
            changed = np.hstack([changed, changed])[:, : int(dice.integers(2 * array.shape[1] + 1))].copy()
        case _:
            changed = np.frombuffer(dice.bytes(changed.nbytes), array.dtype).reshape(array.shape)
    return changed


def _number(dice: Dice) -> Any:
    return np.array(INTEGERS[int(dice.integers(len(INTEGERS)))]).astype(np.int64)


#: What is put into the columns of a table, by type.
_IN_COLUMNS: dict[str, tuple[Any, ...]] = {
    "INTEGER": (*INTEGERS, None),
    "REAL": (0.0, -1.0, 1e308, float("inf"), 1e-300, None),
    "TEXT": (
        "",
        "\x00",
        "x" * 100_000,
        "[" * 5000,
        "{}",
        "null",
        "1e999",
        "[1, 2]",
        '{"a": []}',
        "../../x",
        "=1+1",
        None,
    ),
    "BLOB": (b"", b"\x00", b"\xff" * 32, b"\x00" * 4096, None),
}


def table(path: Path, dice: Dice) -> None:
    """Forge a few values of an SQLite file, its schema untouched."""
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        file.execute("PRAGMA foreign_keys = OFF")
        names = [
            row[0]
            for row in file.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
            )
        ]
        for _ in range(int(dice.integers(1, 4))):
            name = str(dice.choice(names))
            about = list(file.execute(f"PRAGMA table_info({name})"))
            column, kind = about[int(dice.integers(len(about)))][1:3]
            own = ", ".join(row[1] for row in about if row[5])
            values = _IN_COLUMNS[kind]
            value = values[int(dice.integers(len(values)))]
            if kind == "TEXT" and dice.random() < 0.3:
                value = VALUES[int(dice.integers(len(VALUES)))]
                value = json.dumps(value)
            one = (
                f"({own}) IN (SELECT {own} FROM {name} ORDER BY {own} LIMIT 1 OFFSET {int(dice.integers(6))})"
            )
            where = "" if dice.random() < 0.3 else f" WHERE {one}"
            what = (
                f"DELETE FROM {name}{where}"
                if dice.random() < 0.1
                else f"UPDATE OR IGNORE {name} SET {column} = ?{where}"
            )
            try:
                file.execute(what, () if what.startswith("DELETE") else (value,))
            except (sqlite3.Error, OverflowError):
                continue
            if kind == "TEXT" and dice.random() < 0.1:
                file.execute(f"UPDATE OR IGNORE {name} SET {column} = CAST(x'ff00fe' AS TEXT)")


def tensors(content: dict[str, Any], dice: Dice) -> Any:
    """Change what a checkpoint holds: values, shapes, types, names."""
    import torch

    if dice.random() < 0.1 or not content:
        return VALUES[int(dice.integers(len(VALUES) - 1))]
    changed = dict(content)
    odd: tuple[Callable[[Any], Any], ...] = (
        lambda t: t.double() * float("nan"),
        lambda t: t.to(torch.complex64),
        lambda t: t.to(torch.int8),
        lambda t: t.to_sparse(),
        lambda t: t.narrow(-1, 0, 1) if t.ndim and t.numel() else t,
        lambda t: t.reshape(-1),
        lambda t: torch.zeros(0),
        lambda t: torch.zeros((1,) * 60),
        lambda t: t.expand(2, *t.shape),
        lambda t: torch.zeros(1).expand(2**16, 2**16),
        lambda t: torch.zeros(1, dtype=torch.int8).expand(2**16, 2**16),
        lambda t: {"a": t},
        lambda t: [t, 1],
        lambda t: None,
        lambda t: -1,
        lambda t: "x",
    )
    for _ in range(int(dice.integers(1, 3))):
        name = list(changed)[int(dice.integers(len(changed)))]
        match int(dice.integers(6)):
            case 0:
                changed.pop(name)
            case 1:
                changed[VALUES[int(dice.choice([0, 1, 3, 6, 14, 17]))]] = changed.pop(name)
            case _:
                if isinstance(changed[name], dict):
                    changed[name] = tensors(changed[name], dice)
                else:
                    change = odd[int(dice.integers(len(odd)))]
                    value = changed[name]
                    changed[name] = change(value if isinstance(value, torch.Tensor) else torch.zeros(3))
        if not changed:
            break
    return changed
