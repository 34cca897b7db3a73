"""Search in pages that are opened from a disk: nothing is fetched from elsewhere, and it finds."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from documentation.blocks import ROOT

CHROMIUM = next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None)

# As the theme uses a worker: told before its code is there, it answers with what it was told.
PAGE = """<!doctype html><title>asks</title><body><script src="iframe-worker.js"></script><script>
const worker = new Worker("worker.js");
worker.addEventListener("message", event => { document.title = JSON.stringify(event.data); });
worker.postMessage({ words: ["label", "smoothing"] });
</script>"""
WORKER = """
addEventListener("message", async event => {
  await importScripts("more.js");
  postMessage({ found: event.data.words.map(longer), inside: window !== window.parent });
});
"""


def test_pages_take_no_script_from_elsewhere() -> None:
    config_of = pytest.importorskip("mkdocs.config", reason="needs mkdocs").load_config
    config = config_of(str(ROOT / "mkdocs.yml"))
    config = config.plugins["material/offline"].on_config(config) or config
    assert config.extra["polyfills"] == ["iframe-worker.js"]
    assert not any("://" in str(script) for script in config.extra_javascript)
    assert (ROOT / "docs/iframe-worker.js").is_file()


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="needs a Chromium; install Debian's `chromium` package")
def test_a_page_from_a_disk_has_workers(tmp_path: Path) -> None:
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    shutil.copy(ROOT / "docs/iframe-worker.js", tmp_path)
    (tmp_path / "index.html").write_text(PAGE)
    (tmp_path / "worker.js").write_text(WORKER)
    (tmp_path / "more.js").write_text("const longer = word => word + '!';")
    complaints: list[str] = []
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        page = browser.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto((tmp_path / "index.html").as_uri())
        page.wait_for_function("document.title != 'asks'", timeout=20_000)
        assert page.title() == '{"found":["label!","smoothing!"],"inside":true}'
        browser.close()
    assert complaints == []
