"""Set-up of the application log."""

from __future__ import annotations

import logging
import time

LINE_FORMAT = "%(asctime)s %(levelname)-7s %(name)s - %(message)s"
LOGGER_NAME = "parcel_returns"


class UtcFormatter(logging.Formatter):
    """Writes times in UTC, whatever the zone of the host."""

    converter = time.gmtime


def configure(level: str, log_file: str | None) -> None:
    """Send the log of the service to ``log_file``, or to standard error without one."""
    logger = logging.getLogger(LOGGER_NAME)
    for handler in list(logger.handlers):
        logger.removeHandler(handler)
        handler.close()
    handler: logging.Handler
    if log_file:
        handler = logging.FileHandler(log_file, encoding="utf-8")
    else:
        handler = logging.StreamHandler()
        handler.setLevel(logging.ERROR)
    handler.setFormatter(UtcFormatter(LINE_FORMAT))
    logger.addHandler(handler)
    logger.setLevel(level)
    logger.propagate = False
