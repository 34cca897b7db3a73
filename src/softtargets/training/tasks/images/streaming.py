"""Images that stay in their files: decoded when they are needed, ahead of the step that is shown them.

Decoders write into memory that the device can copy from by itself (pinned), a few batches ahead. A stream of its own
brings the next batch to the device while the present one is trained on; one copy on the device puts it where the
recorded step reads. Only the pixels that are kept travel; all augmentation is done on the device.
"""

from __future__ import annotations

import os
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from softtargets.data import Decoding, ImageIndex, Memory, Tries, decoders, sixteen_digits

# Batches that are decoded ahead of the one that is shown.
AHEAD = 3
# Images that lie in the cache of a core at a time, as floating-point numbers too.
_FEW = 4
Size = tuple[int, int]


class Pictures(NamedTuple):
    """Stored images (n, C, H, W) on a device; of pictures in the corners of squares also height and width (n, 2)."""

    images: Tensor
    sizes: Tensor | None = None

    def part(self, which: slice) -> Pictures:
        """Some of them."""
        return Pictures(self.images[which], None if self.sizes is None else self.sizes[which])


class Wanted(NamedTuple):
    """The places of some files and, where parts are cut out as they are decoded, which part of each."""

    places: Sequence[int]
    tries: Sequence[Tries] | None = None


@dataclass(frozen=True, eq=False)
class Streamed:
    """Image files as if they were a tensor (n, 3, size, size) on a device, of which one asks for parts."""

    index: ImageIndex
    how: Decoding
    device: torch.device

    def __len__(self) -> int:
        return len(self.index)

    @property
    def shape(self) -> torch.Size:
        """As a tensor would have it."""
        return torch.Size((len(self), 3, self.how.side, self.how.side))

    def same(self, other: object) -> bool:
        """Whether these are the same files, decoded alike."""
        return isinstance(other, Streamed) and (self.index.root, self.index.paths, self.how) == (
            other.index.root,
            other.index.paths,
            other.how,
        )

    def stamp(self) -> str:
        """Digits that stand for these files as they are now, by their names, lengths and times of change."""
        about = [os.stat(f"{self.index.root}/{path}") for path in self.index.paths]
        files = zip(self.index.paths, about, strict=True)
        lines = [f"{path} {one.st_size} {one.st_mtime_ns}" for path, one in files]
        return sixteen_digits([str(self.index.root.resolve()), str(self.how), *lines])

    def at(self, places: Sequence[int]) -> Pictures:
        """Some of them, decoded now."""
        room = Room(self, max(len(places), 1))
        Ahead(self, [Wanted(places)], room, ahead=0).bring()
        return room.pictures(len(places), self.how)

    def split(self, size: int) -> Iterator[Pictures]:
        """All of them, so many at a time; each part is to be used before the next one is asked for."""
        room = Room(self, min(size, max(len(self), 1)))
        coming = Ahead(self, self.parts(size), room)
        try:
            while (rows := coming.bring()) is not None:
                yield room.pictures(rows, self.how)
        finally:
            coming.close()

    def parts(self, size: int) -> Iterator[Wanted]:
        """All of them, so many at a time."""
        return (Wanted(range(begin, min(begin + size, len(self)))) for begin in range(0, len(self), size))


class Room:
    """Where the device finds the pictures of the moment, always at the same addresses."""

    def __init__(self, files: Streamed, rows: int) -> None:
        self.pixels = torch.zeros(rows, *files.shape[2:], 3, dtype=torch.uint8, device=files.device)
        self.sizes = torch.ones(rows, 2, dtype=torch.int32, device=files.device)

    def pictures(self, rows: int, how: Decoding) -> Pictures:
        """The first so many, which lie in memory pixel by pixel as they were decoded."""
        images = self.pixels[:rows].permute(0, 3, 1, 2)
        return Pictures(images, self.sizes[:rows] if how.keep == "picture" else None)


def put_into(room: Tensor, images: Tensor, change: Callable[[Tensor], Tensor]) -> Tensor:
    """Change images a few at a time, into memory that is there: to a CPU new memory costs more than the arithmetic.

    >>> put_into(torch.zeros(3, 1), torch.tensor([[5], [7]]), lambda images: images / 2)
    tensor([[2.5000],
            [3.5000]])
    """
    found = room[: len(images)]
    for part, own in zip(images.split(_FEW), found.split(_FEW), strict=True):
        own.copy_(change(part))
    return found


class Waiting:
    """The time that a device stood still because its data were not there.

    On a GPU that is what lies between the end of what it was given to do before and the arrival of the data, whatever
    the host did in between; on a CPU, where nothing else goes on, the time that the host waited. A wait that begins and
    never ends, since there was nothing left to wait for, does not count.
    """

    def __init__(self, device: torch.device) -> None:
        self._on_gpu = device.type == "cuda"
        self._begun = 0.0
        self._seconds = 0.0
        self._before: torch.cuda.Event | None = None
        self._events: deque[tuple[torch.cuda.Event, torch.cuda.Event]] = deque()

    def begin(self) -> None:
        """All that the device has been given to do is given."""
        if self._on_gpu:
            self._before = _recorded()
        else:
            self._begun = time.perf_counter()

    def end(self) -> None:
        """From here on it has its data."""
        if self._before is not None:
            self._events.append((self._before, _recorded()))
            self._add()
        else:
            self._seconds += time.perf_counter() - self._begun

    def taken(self) -> float:
        """The seconds since this was asked last, as far as they are known."""
        self._add()
        found, self._seconds = self._seconds, 0.0
        return found

    def _add(self) -> None:
        while self._events and self._events[0][1].query():
            begin, end = self._events.popleft()
            self._seconds += begin.elapsed_time(end) / 1000


def _recorded() -> torch.cuda.Event:
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


class _Slot:
    """Memory for one batch, where decoders write and the device reads."""

    def __init__(self, memory: Memory, place: int, rows: int, how: Decoding) -> None:
        self.memory, self.offset = memory, place * rows * how.bytes
        count = rows * how.bytes
        whole = np.frombuffer(memory.bytes, np.uint8, count, self.offset)
        self.pixels = torch.from_numpy(whole).view(rows, how.side, how.side, 3)
        self.coming: list[Future[list[Size]]] = []
        self.rows = 0
        self.read: torch.cuda.Event | None = None


class Ahead:
    """Batches of files on their way into a room, in the order in which they are wanted, a few ahead."""

    def __init__(
        self,
        files: Streamed,
        wanted: Iterable[Wanted],
        room: Room,
        ahead: int = AHEAD,
        waiting: Waiting | None = None,
    ) -> None:
        self._free: deque[_Slot] = deque()
        self._coming: deque[_Slot] = deque()
        self._files, self._room, self._wanted = files, room, iter(wanted)
        self._decoders = decoders()
        rows, how, on_gpu = len(room.pixels), files.how, files.device.type == "cuda"
        memory = Memory((ahead + 1) * rows * how.bytes)
        if on_gpu:
            _pin(memory)
        self._free.extend(_Slot(memory, place, rows, how) for place in range(ahead + 1))
        self._waiting = waiting or Waiting(files.device)
        self._stream = torch.cuda.Stream(files.device) if on_gpu else None
        self._staged = torch.empty_like(room.pixels) if on_gpu else None
        self._taken = torch.cuda.Event() if on_gpu else None  # the staged batch was copied to the room
        if self._stream is not None and self._staged is not None:
            self._stream.wait_stream(torch.cuda.current_stream(files.device))  # that had this memory before
            self._staged.record_stream(self._stream)
        self._ask()

    def bring(self) -> int | None:
        """Put the next batch into the room, on the stream of the moment; its rows, or None if that was the last."""
        if not self._coming:
            return None
        slot = self._coming.popleft()
        self._waiting.begin()
        try:
            sizes = [size for part in slot.coming for size in part.result()]
        except BaseException:
            self.close()
            raise
        rows = slot.rows
        there = torch.tensor(sizes, dtype=torch.int32).reshape(-1, 2)
        if self._stream is None or self._staged is None or self._taken is None:
            self._room.pixels[:rows].copy_(slot.pixels[:rows])
            self._room.sizes[:rows].copy_(there)
            self._waiting.end()
        else:
            now = torch.cuda.current_stream(self._files.device)
            self._stream.wait_event(self._taken)
            with torch.cuda.stream(self._stream):
                self._staged[:rows].copy_(slot.pixels[:rows], non_blocking=True)
                slot.read = torch.cuda.Event()
                slot.read.record(self._stream)
            now.wait_event(slot.read)
            self._waiting.end()
            self._room.pixels[:rows].copy_(self._staged[:rows])
            self._room.sizes[:rows].copy_(there.pin_memory(), non_blocking=True)
            self._taken.record(now)
        self._free.append(slot)
        self._ask()
        return rows

    def close(self) -> None:
        """Nothing more is wanted; who still writes into our memory or reads from it is waited for."""
        self._wanted = iter(())
        for slot in self._free:
            if slot.read is not None:
                slot.read.synchronize()
        for slot in self._coming:
            for part in slot.coming:
                part.cancel()
        for slot in self._coming:
            for part in slot.coming:
                if not part.cancelled():
                    part.exception()
        self._coming.clear()

    def __del__(self) -> None:
        self.close()

    def _ask(self) -> None:
        """Have decoded what there is memory for; that which the device still reads has to wait."""
        while self._free:
            slot = self._free[0]
            if slot.read is not None:
                if self._coming and not slot.read.query():
                    return  # in time enough: others are on their way
                slot.read.synchronize()
            if (wanted := next(self._wanted, None)) is None:
                return
            self._free.popleft()
            index, how = self._files.index, self._files.how
            paths = [f"{index.root}/{index.paths[place]}" for place in wanted.places]
            slot.rows = len(paths)
            slot.coming = self._decoders.decode(paths, how, slot.memory, slot.offset, wanted.tries)
            self._coming.append(slot)


def _pin(memory: Memory) -> None:
    """Let the GPU copy from it by itself; without that it is slower, and as right."""
    address = np.frombuffer(memory.bytes, np.uint8).ctypes.data
    runtime = torch.cuda.cudart()
    if int(runtime.cudaHostRegister(address, len(memory.bytes), 0)) == 0:
        weakref.finalize(memory, runtime.cudaHostUnregister, address)
