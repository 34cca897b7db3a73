"""Files that survive crashes and are shared between processes. The lowest room: everything may use it."""

from softtargets.storage.archives import Archive, unzipped
from softtargets.storage.files import (
    digest,
    fingerprint,
    make_directory,
    parse_json,
    read_bounded,
    read_json,
    replacing,
    storage_errors,
    sweep_temporaries,
    sync_directory,
    write_atomically,
    write_json,
)
from softtargets.storage.lock import Lock, acquire, exclusive, is_held
from softtargets.storage.pickles import FORBIDDEN as FORBIDDEN_OPERATIONS
from softtargets.storage.pickles import PlainUnpickler, RefusedPickle, check_operations

__all__ = [
    "FORBIDDEN_OPERATIONS",
    "Archive",
    "Lock",
    "PlainUnpickler",
    "RefusedPickle",
    "acquire",
    "check_operations",
    "digest",
    "exclusive",
    "fingerprint",
    "is_held",
    "make_directory",
    "parse_json",
    "read_bounded",
    "read_json",
    "replacing",
    "storage_errors",
    "sweep_temporaries",
    "sync_directory",
    "unzipped",
    "write_atomically",
    "write_json",
]
