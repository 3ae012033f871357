"""Reads a case file or a package with nothing but the standard library and docs/format.md.

    python independent_reader.py CASE_OR_PACKAGE

Shares no code with the ledger: it shows that the page is enough to check a record and read it.
Prints one line for each event, each document and each request, then the head; ends with 1 at the
first fault. A request is printed from events and documents; a derived file must say the same.
"""

import base64
import hashlib
import json
import sqlite3
import sys
import zipfile
import zlib
from pathlib import Path
from urllib.parse import quote

REFS = (
    "content",
    "tree",
    "configuration",
    "document",
    "wire",
    "body",
    "partial",
    "answer",
    "reply",
)


class Bad(Exception):
    """The record is not what the page says."""


def need(fact, what):
    if not fact:
        raise Bad(what)


def h(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def lp(data):
    return len(data).to_bytes(8, "big") + data


def check_chain(case_id, events):
    """Check every chain value; an event is (position, topic, state, nonce, leaf, chain)."""
    value = bytes(32)
    for expected, (n, topic, state, nonce, leaf, chain) in enumerate(events, 1):
        need(n == expected, f"event {expected}: position {n}")
        if state is not None:  # a withheld event brings its leaf instead
            place = lp(case_id.encode()) + n.to_bytes(8, "big")
            leaf = h(b"caseledger/leaf/1\0", place, lp(topic.encode()), lp(state), nonce)
        value = h(b"caseledger/chain/1\0", value, leaf)
        need(value == chain, f"event {n}: chain {chain.hex()}, expected {value.hex()}")


def varints(data):
    """Yield chunk IDs: zigzag differences as little-endian base-128 varints."""
    last = number = shift = 0
    for byte in data:
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            last += -(number + 1) // 2 if number & 1 else number // 2
            yield last
            number = shift = 0


def case_file(path):
    db = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)
    identity = [
        db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
    ]
    need(identity == [1129532487, 1], "not a case of format 1")
    query = (
        "SELECT case_id, position, topic, state, nonce, NULL, chain FROM event ORDER BY position"
    )
    rows = db.execute(query).fetchall()
    need(len({row[0] for row in rows}) == 1, "not one case")
    chunks = {}
    for key, digest, codec, size, data in db.execute("SELECT * FROM chunk"):
        need(codec in (0, 1), f"chunk {key}: codec {codec}")
        data = zlib.decompressobj().decompress(data, size + 1) if codec else data
        need(len(data) == size and h(data) == digest, f"chunk {key}: other bytes")
        chunks[key] = data
    documents = {
        "sha256:" + digest.hex(): (size, b"".join(chunks[key] for key in varints(keys)))
        for digest, size, keys in db.execute("SELECT digest, size, chunks FROM document")
    }
    db.close()
    return rows[0][0], [row[1:] for row in rows], documents


def package_file(path):
    archive = zipfile.ZipFile(path)
    manifest = json.loads(archive.read("manifest.json"))
    need(manifest["format"] == 1, "not a package of format 1")
    names = [member["name"] for member in manifest["members"]]
    need(archive.namelist() == ["manifest.json", *names], "other members than the manifest's")
    for member in manifest["members"]:
        data = archive.read(member["name"])
        need((len(data), h(data).hex()) == (member["size"], member["sha256"]), member["name"])
    events, documents, chunks = (
        [json.loads(line) for line in archive.read(f"{name}.jsonl").split(b"\n")[:-1]]
        for name in ("events", "documents", "chunks")
    )
    parts = {
        c["n"]: c["text"].encode() if "text" in c else base64.b64decode(c["base64"]) for c in chunks
    }

    def bytes_of(d):
        return archive.read(d["member"]) if "member" in d else b"".join(map(parts.get, d["chunks"]))

    found = {d["digest"]: (d["size"], None if "withheld" in d else bytes_of(d)) for d in documents}
    head = {"position": len(events), "chain": events[-1]["chain"]}
    need(manifest["head"] == head, "the manifest has another head")
    rows = []
    for e in events:
        state = e["state"].encode() if "state" in e else None
        values = (
            bytes.fromhex(e[name]) if name in e else None for name in ("nonce", "leaf", "chain")
        )
        rows.append((e["position"], e["topic"], state, *values))
    check_derived(archive, names, rows, found)
    return manifest["case_id"], rows, found


def check_derived(archive, names, rows, found):
    """Check the derived files that a standard library can make: forms and requests."""
    derived = {name for name in names if name.startswith("derived/")}
    forms = json.loads(archive.read("derived/forms.json")) if derived else {}
    need(list(forms) == sorted(forms), "derived/forms.json is not sorted")
    expected = {
        f"derived/requests/{name}.json": data for name, data in requests(rows, found) if data
    }
    saved = {name for name in derived if name.startswith("derived/requests/")}
    need(saved == (set(expected) if "requests" in forms else set()), "other derived requests")
    for name in saved:
        need(archive.read(name) == expected[name], f"{name} differs")


def requests(rows, found):
    """Yield ID and document of each request; None for one that is withheld."""
    for _, topic, state, *_ in rows:
        if topic == "request.prepared/1" and state is not None:
            fields = json.loads(state)
            yield fields["request"], found.get(fields["document"]["digest"], (0, None))[1]


def read(path):
    """Return (case_id, events, documents by digest), checked; raise Bad."""
    package = Path(path).read_bytes()[:2] == b"PK"
    case_id, events, found = (package_file if package else case_file)(path)
    check_chain(case_id, events)
    anchor = Path(f"{path}.head")
    if anchor.exists():
        _, position, value = anchor.read_text().split()
        need(int(position) <= len(events), f"the ledger is behind its anchor at {position}")
        need(events[int(position) - 1][5].hex() == value, f"event {position}: the anchor differs")
    for digest, (size, data) in found.items():
        if data is not None:  # else it is withheld
            need(len(data) == size and "sha256:" + h(data).hex() == digest, f"payload {digest}")
    for position, _, state, *_ in events:
        fields = json.loads(state) if state is not None else {}
        refs = [fields[name] for name in REFS if isinstance(fields.get(name), dict)]
        for ref in refs + tree_files(fields, found):
            what = f"event {position}: payload {ref['digest']} is missing or has another size"
            need(found.get(ref["digest"], (None,))[0] == ref["size"], what)
    return case_id, events, {digest: data for digest, (_, data) in found.items()}


def tree_files(fields, found):
    """Return the files that a source tree needs; none if its tree document is withheld."""
    tree = found.get((fields.get("tree") or {}).get("digest"), (0, None))[1]
    return [file for file in json.loads(tree)["files"] if file["stored"]] if tree else []


def main(path):
    try:
        _, events, documents = read(path)
    except Bad as fault:
        print(f"damaged: {fault}", file=sys.stderr)
        return 1
    for n, topic, state, *_ in events:
        print(f"event {n} {topic} {state.decode() if state is not None else 'withheld'}")
    for digest, data in documents.items():
        print(f"document {digest} {'withheld' if data is None else len(data)}")
    rows = {digest: (0, data) for digest, data in documents.items()}
    for name, data in requests(events, rows):
        print(f"request {name} {'withheld' if data is None else data.decode()}")
    print(f"head {len(events)} {events[-1][5].hex()}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
