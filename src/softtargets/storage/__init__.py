"""Files that survive crashes and are shared between processes. The lowest room: everything may use it."""

from softtargets.storage.files import (
    digest,
    fingerprint,
    make_directory,
    storage_errors,
    sweep_temporaries,
    sync_directory,
    write_atomically,
    write_json,
)
from softtargets.storage.lock import Lock, acquire, exclusive, is_held

__all__ = [
    "Lock",
    "acquire",
    "digest",
    "exclusive",
    "fingerprint",
    "is_held",
    "make_directory",
    "storage_errors",
    "sweep_temporaries",
    "sync_directory",
    "write_atomically",
    "write_json",
]
