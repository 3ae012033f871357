"""A child that runs a case whose model asks for forbidden things, and says what was touched.

    python -P tests/phases/watched.py CASE

The hook is set when everything is imported. It sees what this process opens, connects and starts;
the database reader is a process of its own, held by tests/phases/investigation.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from ledger.book import Book
from tests.phases.scripting import Script, copied, prepared_run, settings_for
from tests.phases.test_wrong_answers import REFUSED, steps_of


def main(path: Path) -> None:
    settings = settings_for(budget={"requests": 60, "actions": 100})
    with Book.open_for_writing(copied(path, path.with_suffix(".warm"))) as book:
        prepared_run(book, Script(), settings=settings).go()  # loads what is loaded late
    touched: set[str] = set()
    network: list[str] = []
    processes: list[str] = []

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event in ("open", "os.listdir", "os.scandir", "sqlite3.connect", "os.remove"):
            touched.add(str(arguments[0]))
        elif event.startswith("socket."):
            network.append(event)
        elif event in ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn"):
            processes.append(str(arguments[1] if event == "subprocess.Popen" else arguments))

    sys.addaudithook(hook)
    with Book.open_for_writing(path) as book:
        said = {"investigation": steps_of(list(REFUSED))}
        stopped = prepared_run(book, Script(said), settings=settings).go()
    found = {"stopped": stopped.reason, "network": network, "processes": processes}
    sys.stdout.write(json.dumps({**found, "touched": sorted(touched)}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
