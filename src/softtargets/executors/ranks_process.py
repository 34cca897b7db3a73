"""One of the processes that the executor `ranks` starts: trains what it was ordered to, and tells what happens."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from multiprocessing.connection import Client, Connection
from pathlib import Path
from typing import Any

from softtargets.exceptions import SofttargetsError, Unfinished
from softtargets.recipes import Recipe
from softtargets.runs import RunStore
from softtargets.training import RankLost, Watcher, leave, train

_EVENTS = ("planned", "reused", "started", "progressed", "epoch", "noted", "waiting", "finished")


class Telling(Watcher):
    """Passes on all that it is told; when nobody listens any more, this process is asked to stop."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._heard = True
        for event in _EVENTS:
            setattr(self, event, lambda *told, event=event: self.tell(event, *told))

    def tell(self, event: str, *told: Any) -> None:
        """Say something to whoever has started this."""
        try:
            self._connection.send((event, told))
        except OSError:
            if self._heard:
                self._heard = False
                os.kill(os.getpid(), signal.SIGTERM)  # taken between two steps


def main(order: Path) -> int:
    """Do what the file says, as the rank that the environment says; the exit code."""
    told = json.loads(order.read_text(encoding="utf-8"))
    telling = None
    if os.environ["RANK"] == "0":
        telling = Telling(Client(told["address"], authkey=bytes.fromhex(told["secret"])))
    outcome, said = _train(told, telling)
    if telling is not None:
        telling.tell("ended", outcome, said)
    code = 0 if outcome == "done" else 2
    if leave(code):
        sys.stderr.flush()
        os._exit(code)
    return code


def _train(told: dict[str, Any], watcher: Watcher | None) -> tuple[str, Any]:
    until = told["until"]
    how = told["how"] | {"until": None if until is None else time.monotonic() + until - time.time()}
    how["data_dir"] = None if how["data_dir"] is None else Path(how["data_dir"])
    recipes = [Recipe.from_dict(recipe) for recipe in told["recipes"]]
    try:
        train(recipes, RunStore(told["root"]), watcher=watcher, progress=False, **how)
    except KeyboardInterrupt:
        return "interrupted", None
    except Unfinished as cut:
        return "unfinished", [recipe.id for recipe in cut.left]
    except RankLost as error:
        return "lost", str(error)
    except SofttargetsError as error:
        return "refused", str(error)
    except Exception as error:
        return "failed", f"{type(error).__name__}: {error}"
    return "done", None


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
