"""Chunks of a zarr array become no larger than they may be, whatever their bytes unfold to."""

from __future__ import annotations

import asyncio
import bz2
import lzma
import math
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import imagecodecs
import numcodecs.abc
from zarr.abc.codec import ArrayArrayCodec, BytesBytesCodec
from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, ShardingCodec, ZstdCodec
from zarr.codecs._v2 import V2Codec

from napari_fish.errors import SlideError

ZLIB_OR_GZIP = 32 + zlib.MAX_WBITS
SPARE_BYTES = 2**16
"""What checksums and the like may add to a chunk."""
HARMLESS = {
    "adler32", "astype", "bitround", "crc32", "crc32c", "delta", "fixedscaleoffset", "fletcher32", "jenkins_lookup3",
    "packbits", "quantize", "shuffle",
}  # fmt: skip
"""Codecs whose output is not much larger than their input."""

Decode = Callable[[bytes], Any]


def bounded(array: Any) -> Any:
    """Return a zarr array whose chunks are decoded within bounds.

    Raises
    ------
    SlideError
        When it is compressed in a way that cannot be kept within bounds.
    """
    inside = array._async_array
    pipeline = inside.codec_pipeline
    size = array.dtype.itemsize
    limit = math.prod(getattr(array, "shards", None) or array.chunks) * size + SPARE_BYTES
    codecs = [*pipeline.array_array_codecs, pipeline.array_bytes_codec, *pipeline.bytes_bytes_codecs]
    # The array has been opened for this slide only, so nobody else sees the change.
    object.__setattr__(inside, "codec_pipeline", type(pipeline).from_codecs(_all_bounded(codecs, limit)))
    return array


@dataclass(frozen=True)
class _BoundedBytes(BytesBytesCodec):
    """A compression of zarr 3."""

    decoding: Decode
    is_fixed_size = False

    async def _decode_single(self, chunk_bytes: Any, chunk_spec: Any) -> Any:
        return await asyncio.to_thread(self._decode_sync, chunk_bytes, chunk_spec)

    def _decode_sync(self, chunk_bytes: Any, chunk_spec: Any) -> Any:
        return chunk_spec.prototype.buffer.from_bytes(self.decoding(chunk_bytes.to_bytes()))

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: Any) -> int:
        raise NotImplementedError


class _BoundedNumcodec(numcodecs.abc.Codec):
    """A compression of zarr 2."""

    codec_id = "bounded"

    def __init__(self, decoding: Decode) -> None:
        self._decoding = decoding

    def encode(self, buf: Any) -> Any:
        raise NotImplementedError

    def decode(self, buf: Any, out: Any = None) -> Any:
        return self._decoding(bytes(buf))


def _all_bounded(codecs: Iterable[Any], limit: int) -> list[Any]:
    return [_bounded_codec(codec, limit) for codec in codecs]


def _bounded_codec(codec: Any, limit: int) -> Any:
    if isinstance(codec, V2Codec):
        compressor = codec.compressor and _bounded_numcodec(codec.compressor, limit)
        filters = tuple(_bounded_numcodec(one, limit) for one in codec.filters or ())
        return replace(codec, compressor=compressor, filters=filters or None)
    if isinstance(codec, ShardingCodec):
        return ShardingCodec(
            chunk_shape=codec.chunk_shape,
            codecs=_all_bounded(codec.codecs, limit),
            index_codecs=codec.index_codecs,
            index_location=codec.index_location,
        )
    if isinstance(codec, BytesCodec | Crc32cCodec | ArrayArrayCodec):
        return codec
    name = {GzipCodec: "gzip", ZstdCodec: "zstd", BloscCodec: "blosc"}.get(type(codec), "")
    inner = getattr(codec, "_codec", None)  # of numcodecs, in the clothes of zarr 3
    name = name or getattr(inner, "codec_id", type(codec).__name__)
    return codec if name in HARMLESS else _BoundedBytes(_decoding(name, inner, limit))


def _bounded_numcodec(codec: Any, limit: int) -> Any:
    return codec if codec.codec_id in HARMLESS else _BoundedNumcodec(_decoding(codec.codec_id, codec, limit))


def _decoding(name: str, codec: Any, limit: int) -> Decode:
    """Return what decodes a compression without ever giving more bytes than allowed."""
    if name in ("zlib", "gzip"):
        return lambda data: _streamed(lambda: zlib.decompressobj(ZLIB_OR_GZIP), data, limit)
    if name == "bz2":
        return lambda data: _streamed(bz2.BZ2Decompressor, data, limit)
    if name == "lzma":
        return lambda data: _streamed(
            lambda: lzma.LZMADecompressor(
                codec.format, memlimit=None if codec.filters else limit + 2**27, filters=codec.filters
            ),
            data,
            limit,
        )
    if name == "zstd":
        return lambda data: imagecodecs.zstd_decode(data, out=limit)
    if name == "blosc":
        return lambda data: _declared(data, 4, limit, numcodecs.Blosc().decode)
    if name == "lz4":
        return lambda data: _declared(data, 0, limit, numcodecs.LZ4().decode)
    raise SlideError(
        f"its chunks are compressed with {name}, which is not read. Store it with blosc, zstd or gzip."
    )


def _streamed(begin: Callable[[], Any], data: bytes, limit: int) -> bytes:
    """Decode as much as is allowed; several streams in a row are one."""
    parts, left = [], limit
    while data:
        stream = begin()
        parts.append(stream.decompress(data, left + 1))
        left -= len(parts[-1])
        if left < 0:
            raise _too_large()
        if not stream.eof:
            raise ValueError("a compressed chunk ends early")
        data = stream.unused_data.lstrip(b"\0")
    return b"".join(parts)


def _declared(data: bytes, at: int, limit: int, decode: Decode) -> Any:
    """Decode what says of itself how large it becomes."""
    if int.from_bytes(data[at : at + 4], "little") > limit:
        raise _too_large()
    return decode(data)


def _too_large() -> ValueError:
    return ValueError("a chunk holds more than its array says")
