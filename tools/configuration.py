"""The effective configuration, with where each value came from.

Later sources win: defaults, the user's file, the project's file, the environment, the command line.
Files are TOML with the sections of phases/settings.py; variables are `CASELEDGER_` and the dotted
name in capitals with `__` for the dot, such as `CASELEDGER_BUDGET__REQUESTS=10`. A variable whose
first part is no section or setting (`CASELEDGER_HOME`) is none of ours.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tools.exits import UserError

if TYPE_CHECKING:
    from phases.settings import Settings

PROJECT_FILE = Path("caseledger.toml")
PREFIX = "CASELEDGER_"
_LISTS = {"providers", "no_egress"}


class Effective(NamedTuple):
    """Settings and, by dotted name, where each value came from."""

    settings: Settings
    origins: dict[str, str]


def user_file() -> Path:
    """Return the user's configuration file (XDG base directories)."""
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "caseledger" / "config.toml"


def effective(overrides: Mapping[str, Any] | None = None) -> Effective:
    """Return the effective configuration.

    Args:
        overrides: values from the command line by dotted name.

    Raises:
        UserError: a file cannot be read, a name is not known, or a value does not fit.
    """
    from pydantic import ValidationError

    from phases.settings import Settings

    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for origin, source in _sources(overrides or {}):
        for name, value in source.items():
            values[name] = value
            origins[name] = origin
    try:
        settings = Settings.model_validate(_nested(values, origins))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = ".".join(str(part) for part in first["loc"])
        raise _wrong(name, first["msg"], origins) from None
    return Effective(settings, {name: origins.get(name, "default") for name in _flat(settings)})


def flat_values(settings: Settings) -> dict[str, Any]:
    """Return every setting by dotted name."""
    return _flat(settings)


def _sources(overrides: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [
        (str(user_file()), _read(user_file())),
        (str(PROJECT_FILE), _read(PROJECT_FILE)),
        ("environment", _environment()),
        ("command line", dict(overrides)),
    ]


def _read(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            return _dotted(tomllib.load(file))
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: is not valid TOML: {error}") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None


def _environment() -> dict[str, Any]:
    from phases.settings import Settings

    values: dict[str, Any] = {}
    for variable, text in sorted(os.environ.items()):
        name = variable.removeprefix(PREFIX).lower().replace("__", ".")
        if variable.startswith(PREFIX) and name.partition(".")[0] in Settings.model_fields:
            values[name] = text.split(",") if name in _LISTS else text
    return values


def _dotted(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, item in value.items():
        name = f"{prefix}{key}"
        if isinstance(item, dict) and name != "protocols":
            flat |= _dotted(item, f"{name}.")
        else:
            flat[name] = item
    return flat


def _wrong(name: str, why: str, origins: Mapping[str, str]) -> UserError:
    """Return an error that names the variable or file, and the names there are."""
    from phases.settings import Settings

    given = [n for n in origins if name == n or name.startswith(f"{n}.")]
    given += [n for n in origins if n.startswith(f"{name}.")]
    origin = origins[given[0]] if given else "configuration"
    if origin == "environment":
        origin = PREFIX + given[0].upper().replace(".", "__")
    return UserError(f"{origin}: {name}: {why}; settings are {', '.join(_flat(Settings()))}")


def _nested(flat: Mapping[str, Any], origins: Mapping[str, str]) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for name, value in flat.items():
        *path, last = name.split(".")
        inner = nested
        for part in path:
            inner = inner.setdefault(part, {})
            if not isinstance(inner, dict):
                raise _wrong(name, f"{part} is a section, and was given a value", origins)
        inner[last] = value
    return nested


def _flat(settings: Settings) -> dict[str, Any]:
    return _dotted(settings.model_dump(mode="json"))
