"""Downloads one file of a package's releases from pip's index: NAME FILE TARGET BYTES.

pip finds and fetches it, with its own settings (index, proxy, certificates). `pip download` would
do the same and then run the build of a source distribution to read its metadata; here nothing of
the package runs. pip has no public interface for that, so two of its commands' methods are used.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from pip._internal.commands import create_command

OPTIONS = ["--retries", "1", "--timeout", "30", "--ignore-requires-python"]


def fetch(name: str, file: str, target: Path, most: int) -> str:
    """Write the file; return why not, or "". `most`: bytes that are taken."""
    command: Any = create_command("download")
    with command.main_context():
        options, _ = command.parse_args([*OPTIONS, name])
        session = command.get_default_session(options)
        finder = command._build_package_finder(
            options=options, session=session, ignore_requires_python=True
        )
        links = [found.link for found in finder.find_all_candidates(name)]
        urls = [link.url_without_fragment for link in links if link.filename == file]
        if not urls:
            return f"pip's index lists {len(links)} files of {name}, and not this one"
        with session.get(urls[0], stream=True) as answer, target.open("xb") as out:
            answer.raise_for_status()
            for chunk in answer.iter_content(1 << 16):
                if out.tell() + len(chunk) > most:
                    return f"it has more than {most:,} bytes"
                out.write(chunk)
    return ""


if __name__ == "__main__":
    try:
        said = fetch(sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))
    except Exception as error:  # whatever pip raises: one line for the process that asked
        said = f"{type(error).__name__}: {error}".splitlines()[0]
    sys.exit(said or 0)
