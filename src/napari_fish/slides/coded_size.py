"""How large an image is that a tile holds, read from its header before a decoder makes room for it."""

from __future__ import annotations

import re
import struct

_JPEG_2000 = re.compile(rb"\xff\x4f\xff\x51.{4}(.{16})", re.DOTALL)
_JPEG_XL = re.compile(rb"(?:\A|jxlc|jxlp.{4})\xff\x0a", re.DOTALL)
_JPEG_XL_BITS = (9, 13, 18, 30)
_JPEG_XL_RATIOS = {1: (1, 1), 2: (12, 10), 3: (4, 3), 4: (3, 2), 5: (16, 9), 6: (5, 4), 7: (2, 1)}
_STANDALONE = (0x01, *range(0xD0, 0xD9))
_NO_FRAME = (0xC4, 0xC8, 0xCC)
_XR_WIDTH, _XR_HEIGHT = 0xBC80, 0xBC81


def coded_pixels(data: bytes) -> int:
    """Return the px of a JPEG, JPEG 2000, JPEG XL, JPEG XR, PNG or WebP image; 0 where that cannot be told."""
    try:
        if data.startswith(b"\xff\xd8"):
            return _of_jpeg(data)
        if data.startswith(b"\x89PNG"):
            width, height = struct.unpack(">II", data[16:24])
            return int(width * height)
        if data.startswith(b"II\xbc"):
            return _of_jpeg_xr(data)
        if data[8:12] == b"WEBP":
            return _of_webp(data)
        return max(_of_jpeg_2000(data), _of_jpeg_xl(data))
    except (struct.error, IndexError, KeyError):
        return 0


def _of_jpeg(data: bytes) -> int:
    """Walk over the segments up to the pixels; what a thumbnail inside one of them says does not count."""
    largest, at = 0, 2
    while at + 4 <= len(data):
        if data[at] != 0xFF:
            at += 1
            continue
        marker = data[at + 1]
        if marker == 0xFF or marker in _STANDALONE:
            at += 1 if marker == 0xFF else 2
            continue
        if marker == 0xDA:
            break
        if 0xC0 <= marker <= 0xCF and marker not in _NO_FRAME:
            height, width = struct.unpack(">HH", data[at + 5 : at + 9])
            # A height of 0 is told at the end of the pixels.
            largest = max(largest, width * (height or 2**16))
        at += 2 + max(2, *struct.unpack(">H", data[at + 2 : at + 4]))
    return largest


def _of_jpeg_2000(data: bytes) -> int:
    """Take the largest of all that look like the beginning of pixels: boxes of any kind may stand before the real one."""
    sizes = (struct.unpack(">4I", found[1]) for found in _JPEG_2000.finditer(data))
    return max((max(0, x - x0) * max(0, y - y0) for x, y, x0, y0 in sizes), default=0)


def _of_jpeg_xl(data: bytes) -> int:
    largest = 0
    for found in _JPEG_XL.finditer(data):
        bits = _Bits(data[found.end() : found.end() + 16])
        small = bits.take(1)
        height = bits.jpeg_xl_side(small)
        ratio = bits.take(3)
        if ratio:
            over, under = _JPEG_XL_RATIOS[ratio]
            width = height * over // under
        else:
            width = bits.jpeg_xl_side(small)
        largest = max(largest, width * height)
    return largest


class _Bits:
    """Takes bits from bytes, the lowest first."""

    def __init__(self, data: bytes) -> None:
        self._rest = int.from_bytes(data, "little")

    def take(self, count: int) -> int:
        value = self._rest & ((1 << count) - 1)
        self._rest >>= count
        return value

    def jpeg_xl_side(self, small: int) -> int:
        return 8 * (self.take(5) + 1) if small else self.take(_JPEG_XL_BITS[self.take(2)]) + 1


def _of_jpeg_xr(data: bytes) -> int:
    (start,) = struct.unpack("<I", data[4:8])
    (count,) = struct.unpack("<H", data[start : start + 2])
    entries = struct.iter_unpack("<HHII", data[start + 2 : start + 2 + 12 * count])
    # Of 16 bits only the lower half counts.
    said = {tag: value & 0xFFFF if kind == 3 else value for tag, kind, _, value in entries}
    return int(said[_XR_WIDTH] * said[_XR_HEIGHT])


def _of_webp(data: bytes) -> int:
    kind = data[12:16]
    if kind == b"VP8X":
        width, height = int.from_bytes(data[24:27], "little"), int.from_bytes(data[27:30], "little")
        return (width + 1) * (height + 1)
    if kind == b"VP8L":
        (packed,) = struct.unpack("<I", data[21:25])
        return int(((packed & 0x3FFF) + 1) * ((packed >> 14 & 0x3FFF) + 1))
    width, height = struct.unpack("<HH", data[26:30])
    return int((width & 0x3FFF) * (height & 0x3FFF))
