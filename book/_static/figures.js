// Draws Altair and BertViz figures when they come near the screen, with the libraries
// that this site serves itself. book/_ext/figures.py puts the calls into the pages.
(function () {
  "use strict";
  const vendor = new URL("../vendor/", document.currentScript.src);
  const scripts = {};

  function load(path) {
    scripts[path] ??= new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = new URL(path, vendor);
      script.onload = resolve;
      script.onerror = () => reject(new Error("could not load " + path));
      document.head.append(script);
    });
    return scripts[path];
  }

  async function loadInOrder(...paths) {
    for (const path of paths) await load(path);
  }

  // Call `draw` once, when `element` is near the screen, or when the browser has nothing else to do:
  // a page may be printed at any time, and printing waits for no download.
  const waiting = [];
  function whenNear(element, draw) {
    const observer = new IntersectionObserver((entries) => {
      if (entries.some((entry) => entry.isIntersecting)) start();
    }, { rootMargin: "600px 0px" });
    let started = null;
    function start() {
      observer.disconnect();
      window.removeEventListener("beforeprint", start);
      return (started ??= draw());
    }
    observer.observe(element);
    window.addEventListener("beforeprint", start);
    waiting.push(start);
  }

  const idle = window.requestIdleCallback ?? ((callback) => setTimeout(callback, 200));
  function drawNext() {
    const start = waiting.shift();
    if (start) Promise.resolve(start()).catch(() => {}).then(() => idle(drawNext));
  }
  window.addEventListener("load", () => setTimeout(() => idle(drawNext), 1000));

  // ---- Altair ----------------------------------------------------------------------------

  // currentColor is the text colour of the page, so charts follow light and dark mode.
  const guide = {
    labelColor: "currentColor", titleColor: "currentColor", domainColor: "currentColor",
    tickColor: "currentColor", gridColor: "currentColor", gridOpacity: 0.15,
  };
  const defaults = {
    background: "transparent",
    font: "Inter, system-ui, sans-serif",
    title: { color: "currentColor", subtitleColor: "currentColor" },
    axis: guide, legend: guide, header: guide,
    text: { color: "currentColor" }, rule: { color: "currentColor" },
  };

  // On a phone charts that stand side by side go one below the other, the legend goes below the
  // chart, and a long title takes more than one line.
  function fitTo(width, spec) {
    if (width < 500 && spec.hconcat) {
      const { hconcat, ...rest } = spec;
      spec = { ...rest, vconcat: hconcat };
    }
    const legend = width < 500 ? { ...guide, orient: "bottom", columns: 1 } : guide;
    const lines = (text) => {
      if (typeof text !== "string") return text;
      const most = Math.max(20, Math.floor(width / 9));  // characters, about 9 px each
      const rows = [""];
      for (const word of text.split(" ")) {
        const row = rows[rows.length - 1];
        if (row && row.length + word.length + 1 > most) rows.push(word);
        else rows[rows.length - 1] = row ? row + " " + word : word;
      }
      return rows;
    };
    const title = spec.title?.text ? { ...spec.title, text: lines(spec.title.text) } : lines(spec.title);
    return [title ? { ...spec, title } : spec, { ...defaults, legend }];
  }

  // Letters of 11 px may shrink to 60 %. A screen reader gets the description, not each mark.
  function makeReadable(box) {
    const svg = box.querySelector("svg");
    if (!svg) return;
    box.style.setProperty("--readable", Math.round(0.6 * svg.getAttribute("width")) + "px");
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", box.dataset.label || "chart");
  }

  const VEGA = ["vega/vega.min.js", "vega/vega-lite.min.js", "vega/vega-embed.min.js"];

  function drawChart(box, spec, options) {
    whenNear(box, async () => {
      try {
        await loadInOrder(...VEGA);
        // Vega measures its labels when it draws, so their font must be there.
        await Promise.allSettled(["12px Inter", "bold 15px Inter"].map((font) => document.fonts.load(font, "a▁")));
        const [fitted, config] = fitTo(box.clientWidth, spec);
        await vegaEmbed(box, fitted, { renderer: "svg", actions: false, config, ...options });
        makeReadable(box);
        box.dataset.drawn = "yes";
        box.dispatchEvent(new CustomEvent("drawn", { bubbles: true }));  // for scrollable.js
      } catch (error) {
        box.textContent = "This figure could not be drawn: " + error.message;
        throw error;
      }
    });
  }

  // ---- BertViz ---------------------------------------------------------------------------

  // BertViz draws a coloured square for each head. This makes them reachable by keyboard.
  function nameHeads(root) {
    const groups = root.querySelectorAll("#vis > svg:not(:has(.attn_background)) > g:last-of-type:not([id])");
    for (const group of groups) {
      const squares = group.querySelectorAll(":scope > rect");
      squares.forEach((square, head) => {
        if (square.hasAttribute("tabindex")) return;
        square.setAttribute("tabindex", "0");
        square.setAttribute("role", "button");
        square.setAttribute("aria-label", "head " + head + ": show or hide");
        square.addEventListener("keydown", (event) => {
          if (event.key !== "Enter" && event.key !== " ") return;
          event.preventDefault();
          square.dispatchEvent(new MouseEvent("click", { bubbles: true }));
        });
      });
    }
  }

  // The model view draws one small picture for each head; a click on it opens that head.
  // Its boxes get the keyboard too, and the whole of it is as wide as the column.
  function fitModelView(root) {
    const svg = root.querySelector("#vis > svg:has(.attn_background)");
    if (!svg) return;
    if (!svg.hasAttribute("viewBox")) {
      svg.setAttribute("viewBox", `0 0 ${svg.getAttribute("width")} ${svg.getAttribute("height")}`);
    }
    for (const box of svg.querySelectorAll("g:not([tabindex]) > .attn_background")) {
      const [layer, head] = box.id.split("_").slice(-2);
      const group = box.parentElement;
      group.setAttribute("tabindex", "0");
      group.setAttribute("role", "button");
      group.setAttribute("aria-label", `layer ${layer}, head ${head}: show or hide its words`);
      group.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        group.lastElementChild.dispatchEvent(new MouseEvent("click", { bubbles: true }));
      });
    }
  }

  function prepareBertViz() {
    for (const root of document.querySelectorAll(".bertviz:not([data-drawn])")) {
      if (!root.querySelector("svg")) continue;
      root.dataset.drawn = "yes";
      const prepare = () => { nameHeads(root); fitModelView(root); };
      prepare();
      new MutationObserver(prepare).observe(root, { childList: true, subtree: true });
      root.dispatchEvent(new CustomEvent("drawn", { bubbles: true }));  // for scrollable.js
    }
  }

  // BertViz asks for d3 and jQuery in require.js style; this is all of it that BertViz uses.
  const D3 = ["jquery/jquery.min.js", "d3/d3.min.js"];
  function requireLibraries(names, callback) {
    whenNear(document.currentScript.parentElement, async () => {
      await loadInOrder(...D3);
      callback(window.jQuery, window.d3);
      prepareBertViz();
    });
  }
  requireLibraries.config = () => {};
  window.require = window.requirejs = requireLibraries;

  window.bookFigures = { drawChart };
})();
