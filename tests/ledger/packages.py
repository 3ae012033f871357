"""Packages taken apart and put together again, rightly and wrongly."""

from __future__ import annotations

import hashlib
import json
import struct
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ledger import canonical, chain

DATE = (1980, 1, 1, 0, 0, 0)
Edit = Callable[["Loose"], Any]


@dataclass
class Loose:
    """A package in pieces; `pack` puts it together, with a manifest that fits or not."""

    manifest: dict[str, Any]
    members: list[tuple[str, bytes]]  # all but the manifest, in order
    raw_manifest: bytes | None = None  # instead of the manifest that fits
    keep_listing: bool = False  # the manifest lists what it listed
    finish: Callable[[bytes], bytes] = lambda data: data  # what happens to the finished zip
    infos: dict[str, Callable[[zipfile.ZipInfo], Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, path: Path) -> Loose:
        with zipfile.ZipFile(path) as archive:
            manifest = json.loads(archive.read("manifest.json"))
            members = [(name, archive.read(name)) for name in archive.namelist()[1:]]
        return cls(manifest, members)

    def __getitem__(self, name: str) -> bytes:
        return dict(self.members)[name]

    def __setitem__(self, name: str, data: bytes) -> None:
        self.members = [(n, data if n == name else d) for n, d in self.members]

    def rename(self, name: str, other: str) -> None:
        self.members = [(other if n == name else n, d) for n, d in self.members]

    def remove(self, name: str) -> None:
        self.members = [(n, d) for n, d in self.members if n != name]

    def lines(self, name: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self[name].splitlines()]

    def set_lines(self, name: str, values: list[Any]) -> None:
        self[name] = b"".join(canonical.to_bytes(value) + b"\n" for value in values)

    def rechain(self) -> None:
        """Give the events chain values that fit, and the manifest their head."""
        value, events = chain.ZERO, self.lines("events.jsonl")
        for n, event in enumerate(events, 1):
            leaf = chain.leaf(
                self.manifest["case_id"],
                n,
                event["topic"],
                event["state"].encode(),
                bytes.fromhex(event["nonce"]),
            )
            value = chain.link(value, leaf)
            event |= {"chain": value.hex()}
        self.set_lines("events.jsonl", events)
        self.manifest["head"] = {"position": len(events), "chain": value.hex()}

    def pack(self, path: Path) -> Path:
        if not self.keep_listing:
            self.manifest["members"] = [
                {"name": name, "size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
                for name, data in self.members
            ]
        manifest = canonical.to_bytes(self.manifest) + b"\n"
        first = manifest if self.raw_manifest is None else self.raw_manifest
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in [("manifest.json", first), *self.members]:
                info = zipfile.ZipInfo(name, DATE)
                info.compress_type = zipfile.ZIP_DEFLATED
                self.infos.get(name, lambda info: None)(info)
                archive.writestr(info, data)
        path.write_bytes(self.finish(path.read_bytes()))
        return path


def central(data: bytes) -> Iterator[tuple[int, str]]:
    """Yield (offset, name) of the entries of a zip's central directory."""
    count, _, offset = struct.unpack("<HII", data[-22:][10:20])
    for _ in range(count):
        sizes = struct.unpack("<HHH", data[offset + 28 : offset + 34])
        yield offset, data[offset + 46 : offset + 46 + sizes[0]].decode()
        offset += 46 + sum(sizes)


def patched(
    name: str, at: int, value: bytes, *, local: int | None = None
) -> Callable[[bytes], bytes]:
    """Return a change of the central directory's entry of a member, and of its local header."""

    def patch(data: bytes) -> bytes:
        out = bytearray(data)
        for offset, member in central(data):
            if member == name:
                out[offset + at : offset + at + len(value)] = value
                if local is not None:
                    (start,) = struct.unpack("<I", data[offset + 42 : offset + 46])
                    out[start + local : start + local + len(value)] = value
        return bytes(out)

    return patch
