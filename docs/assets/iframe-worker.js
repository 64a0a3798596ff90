"use strict";
// Browsers start no workers for pages that are opened from the disk: there, the search runs in a frame of its own.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.srcdoc = "<!doctype html>";
      this.ready = new Promise((resolve) => this.frame.addEventListener("load", () => this.start(url, resolve), { once: true }));
      document.body.append(this.frame);
    }

    start(url, resolve) {
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = inside.document.createElement("script");
      script.addEventListener("load", () => resolve(inside));
      script.src = url;
      inside.document.head.append(script);
    }

    postMessage(data) {
      this.ready.then((inside) => inside.dispatchEvent(new inside.MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
