// Finds the live figures of a page, <div class="live-figure" data-live="name">, and starts each when
// the reader reaches for it. Inside stands what readers without JavaScript see: a still picture.
(function () {
  "use strict";
  const base = document.currentScript.src;

  function explain(box, text) {
    const note = document.createElement("p");
    note.className = "live-note";
    note.append(...text.split(/(`[^`]+`)/).map((part) => {
      if (!part.startsWith("`")) return part;
      const code = document.createElement("code");
      code.textContent = part.slice(1, -1);
      return code;
    }));
    box.append(note);
  }

  // What the first picture needs, asked for while the modules still load.
  function early(file) {
    const link = document.createElement("link");
    Object.assign(link, { rel: "preload", as: "fetch", href: new URL(file, base).href, crossOrigin: "anonymous" });
    if (!document.querySelector(`link[href="${link.href}"]`)) document.head.append(link);
  }

  function start(box) {
    if (box.dataset.started) return;
    box.dataset.started = "yes";
    const name = box.dataset.live.replace(/[^a-z_]/g, "");
    import(new URL(`${name}.js`, base)).then((module) => module.mount(box, { base: new URL(base) }))
      .then(() => { box.dataset.ready = "yes"; })
      .catch((error) => {
        explain(box, `This figure could not start: ${error.message}`);
        console.warn(error);
      });
  }

  function prepare(box) {
    if (location.protocol === "file:") {
      box.dataset.still = "yes";
      explain(box, "If you opened this page from disk, the browser may not run its figures. In the folder of the site, run "
        + "`python -m http.server`, and open `http://localhost:8000` in your browser.");
      return;
    }
    const alone = ["figure_merges", "figure_plane", "figure_train", "figure_film", "figure_path", "figure_letters", "attention_view"].includes(box.dataset.live);
    const first = box.dataset.first ?? (alone ? "" : "examples.json");
    if (first) early(first);
    const observer = new IntersectionObserver((entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      observer.disconnect();
      start(box);
    }, { rootMargin: "300px 0px" });
    observer.observe(box);
    for (const event of ["pointerenter", "focusin"]) box.addEventListener(event, () => start(box), { once: true });
  }

  function guesses() {
    if (location.protocol === "file:" || !document.querySelector(".live-guess")) return;   // from disk: question and answer as they stand
    import(new URL("guess.js", base)).catch((error) => console.warn(error));
  }

  function all() { guesses(); document.querySelectorAll(".live-figure[data-live]").forEach(prepare); }
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", all);
  else all();
})();
