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

  // Call `draw` once, when `element` is near the screen or the page is printed.
  function whenNear(element, draw) {
    const observer = new IntersectionObserver((entries) => {
      if (entries.some((entry) => entry.isIntersecting)) start();
    }, { rootMargin: "600px 0px" });
    function start() {
      observer.disconnect();
      window.removeEventListener("beforeprint", start);
      draw();
    }
    observer.observe(element);
    window.addEventListener("beforeprint", start);
  }

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

  // On a phone the legend goes below the chart, and a long title takes more than one line.
  function fitTo(width, spec) {
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

  function drawChart(box, spec, options) {
    whenNear(box, async () => {
      try {
        await loadInOrder("vega/vega.min.js", "vega/vega-lite.min.js", "vega/vega-embed.min.js");
        // Vega measures its labels when it draws, so their font must be there.
        await Promise.allSettled(["12px Inter", "bold 15px Inter"].map((font) => document.fonts.load(font)));
        const [fitted, config] = fitTo(box.clientWidth, spec);
        await vegaEmbed(box, fitted, { renderer: "svg", actions: false, config, ...options });
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
    const groups = root.querySelectorAll("#vis > svg > g:last-of-type:not([id])");
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

  function prepareBertViz() {
    for (const root of document.querySelectorAll(".bertviz:not([data-drawn])")) {
      if (!root.querySelector("svg")) continue;
      root.dataset.drawn = "yes";
      nameHeads(root);
      new MutationObserver(() => nameHeads(root)).observe(root, { childList: true, subtree: true });
    }
  }

  // BertViz asks for d3 and jQuery in require.js style; this is all of it that BertViz uses.
  function requireLibraries(names, callback) {
    whenNear(document.currentScript.parentElement, async () => {
      await loadInOrder("jquery/jquery.min.js", "d3/d3.min.js");
      callback(window.jQuery, window.d3);
      prepareBertViz();
    });
  }
  requireLibraries.config = () => {};
  window.require = window.requirejs = requireLibraries;

  window.bookFigures = { drawChart };
})();
