// Search where pages are opened from a disk: browsers allow no worker there, so that an invisible frame is one.
// Without this file the theme would fetch one from another site; with it nothing is fetched (mkdocs.yml).
(() => {
  "use strict";
  if (location.protocol !== "file:") return;

  // What the code of a worker finds in a frame: what it posts goes to whoever made it.
  const inside = () => {
    window.postMessage = data => frameElement.dispatchEvent(new CustomEvent("posted", { detail: data }));
    window.importScripts = (...urls) =>
      Promise.all(
        urls.map(
          url =>
            new Promise((resolve, reject) => {
              const script = Object.assign(document.createElement("script"), { src: url, onload: resolve, onerror: reject });
              document.body.append(script);
            }),
        ),
      );
  };

  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = Object.assign(document.createElement("iframe"), { hidden: true, tabIndex: -1, title: "search" });
      document.body.append(this.frame);
      this.frame.addEventListener("posted", event => {
        const message = new MessageEvent("message", { data: structuredClone(event.detail) });
        this.dispatchEvent(message);
        this.onmessage?.(message);
      });
      const page = this.frame.contentDocument;
      page.open(); // or Firefox puts an empty page in the place of this one, a moment later
      page.write("<!doctype html><title>search</title><body>");
      page.close();
      const first = page.createElement("script");
      first.textContent = `(${inside})()`;
      page.body.append(first);
      // What is sent before the code is there waits for it.
      this.ready = new Promise((resolve, reject) => {
        const code = Object.assign(page.createElement("script"), { src: new URL(url, location.href), onload: resolve, onerror: reject });
        page.body.append(code);
      });
      this.ready.catch(() => this.dispatchEvent(new ErrorEvent("error", { message: `cannot load ${url}` })));
    }

    postMessage(data) {
      const sent = structuredClone(data);
      this.ready.then(
        () => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data: sent })),
        () => {},
      );
    }

    terminate() {
      this.frame.remove();
    }
  };
})();
