// Browsers refuse to start the search worker of a page that was opened from the file system: an iframe runs its script
// instead. A polyfill whose name contains "iframe-worker" replaces the one that Zensical loads from a content network.
if (location.protocol === "file:") {
  window.Worker = class {
    constructor(url) {
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const { contentWindow: scope, contentDocument: page } = this.frame;
      scope.postMessage = (answer) => this.onmessage?.({ data: structuredClone(answer) });
      const script = page.createElement("script");
      script.src = new URL(url, location);
      this.loaded = new Promise((resolve) => (script.onload = resolve));
      page.body.append(script);
    }
    postMessage(question) {
      const data = structuredClone(question);
      this.loaded.then(() => this.frame.contentWindow?.onmessage({ data }));
    }
    terminate() {
      this.frame.remove();
    }
  };
}
