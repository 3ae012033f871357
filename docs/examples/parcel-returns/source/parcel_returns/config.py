"""Settings of the service, read from the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

ENV_PREFIX = "PARCEL_RETURNS_"


class ConfigError(ValueError):
    """A setting has a value that cannot be used."""


@dataclass(frozen=True)
class HolidaySeason:
    """Orders placed in this season may be returned until ``return_until``."""

    first_day: date
    last_day: date
    return_until: date

    def contains(self, day: date) -> bool:
        return self.first_day <= day <= self.last_day


@dataclass(frozen=True)
class Settings:
    """What the rules of the shop leave open."""

    window_days: int = 30
    late_deduction_percent: int = 20
    review_limit_cents: int = 30_000
    lock_warning_ms: int = 250
    log_level: str = "INFO"
    log_file: str | None = None
    season: HolidaySeason = HolidaySeason(
        first_day=date(2024, 11, 15),
        last_day=date(2024, 12, 24),
        return_until=date(2025, 1, 31),
    )


def load_settings(environ: Mapping[str, str] | None = None) -> Settings:
    """Build the settings from the environment, with defaults for what is not set."""
    env = os.environ if environ is None else environ
    defaults = Settings()
    return Settings(
        window_days=_integer(env, "WINDOW_DAYS", defaults.window_days),
        late_deduction_percent=_integer(
            env, "LATE_DEDUCTION_PERCENT", defaults.late_deduction_percent
        ),
        review_limit_cents=_integer(env, "REVIEW_LIMIT_CENTS", defaults.review_limit_cents),
        lock_warning_ms=_integer(env, "LOCK_WARNING_MS", defaults.lock_warning_ms),
        log_level=env.get(ENV_PREFIX + "LOG_LEVEL", defaults.log_level).upper(),
        log_file=env.get(ENV_PREFIX + "LOG_FILE") or None,
        season=defaults.season,
    )


def _integer(env: Mapping[str, str], name: str, default: int) -> int:
    text = env.get(ENV_PREFIX + name)
    if text is None or not text.strip():
        return default
    try:
        return int(text)
    except ValueError as error:
        raise ConfigError(f"{ENV_PREFIX}{name} is not a whole number: {text!r}") from error
