// Draws Altair figures when they come near the screen, with the libraries that this site serves
// itself. book/_ext/figures.py puts the calls into the pages.
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

  // Call `draw` once, when `element` is near the screen, or, once the reader has moved, when the browser
  // has nothing else to do (idle.js): a page may be printed at any time, and printing waits for no download.
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

  window.bookIdle?.(() => (waiting.length ? Promise.resolve(waiting.shift()()) : null));

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

  // On a dark page more is lighter, as on a light one more is darker: the colours of less and more of
  // visualize/theme.py, and those that take their place. Letters in such cells change sides as well.
  const LIGHT = ["#f7f3e8", "#e0e8ea", "#b9d3e3", "#7fb3d3", "#3a8cbf", "#0f5c90", "#08304d"];
  const DARK = ["#1b2129", "#1e3341", "#234b63", "#2c6a90", "#4592c0", "#86c1e4", "#dbeffa"];
  const SWAPPED = { white: "black", black: "white" };
  const isDark = () => document.documentElement.dataset.theme === "dark";
  const shaded = (spec) => /"(heatmap|ramp|diverging)"|"rect"/.test(JSON.stringify({ ...spec, datasets: null, config: null }));

  function darkened(part, name, inMark) {
    if (Array.isArray(part)) return part.map((one) => darkened(one, name, inMark));
    if (typeof part === "string") {
      const place = LIGHT.indexOf(part.toLowerCase());
      if (place >= 0) return DARK[place];
      return name === "stroke" && part === "white" ? "#14181d" : part;
    }
    if (!part || typeof part !== "object") return part;
    const out = {};
    for (const [key, value] of Object.entries(part)) out[key] = ["data", "datasets"].includes(key) ? value : darkened(value, key);
    const ink = part.condition?.value;
    if (name === "color" && SWAPPED[ink] && SWAPPED[part.value]) {
      out.condition = { ...out.condition, value: SWAPPED[ink] };
      out.value = SWAPPED[part.value];
    }
    return out;
  }

  // A copy of a specification in which no legend has a number of columns of its own.
  function withoutColumns(part, name) {
    if (Array.isArray(part)) return part.map((one) => withoutColumns(one));
    if (!part || typeof part !== "object") return part;
    const rest = { ...part };
    if (name === "legend") delete rest.columns;
    for (const key of Object.keys(rest)) if (!["data", "datasets"].includes(key)) rest[key] = withoutColumns(rest[key], key);
    return rest;
  }

  // A chart of one view gets the width that there is: all of a phone's, and on a wide page the column's,
  // in letters of the size that it was made with. Charts of several views keep theirs.
  const NARROWEST = 340;  // a plot that was made narrower than this is meant to be
  function sized(spec, room) {
    const several = ["hconcat", "vconcat", "concat", "facet", "repeat"].some((way) => spec[way])
      || /"(row|column|facet)":/.test(JSON.stringify({ ...spec, data: null, datasets: null, config: null }));
    const grid = /"mark":("rect"|\{[^{}]*"type":"rect")/.test(JSON.stringify({ ...spec, data: null, datasets: null }));
    // Words that stand in boxes as long as they are would run into one another.
    const boxes = /"x2"/.test(JSON.stringify(spec.layer ?? spec.encoding ?? null)) && /"text"/.test(JSON.stringify(spec.layer ?? null));
    if (several || typeof spec.width !== "number" || !room || (boxes && spec.width > room - 60)) return spec;
    if (spec.width > room - 60 || (spec.width >= NARROWEST && !grid)) return { ...spec, width: room, autosize: { type: "fit-x", contains: "padding" } };
    return spec;
  }

  // On a phone charts that stand side by side go one below the other, the legend goes below the
  // chart, and a long title takes more than one line.
  function fitTo(width, spec) {
    const stacked = ({ hconcat, vconcat = hconcat, ...rest }) => (vconcat ? { ...rest, vconcat: vconcat.map(stacked) } : rest);
    if (width < 500) spec = stacked(spec);
    const legend = width < 500 ? { ...guide, orient: "bottom", columns: 1 } : guide;
    if (width < 500) spec = withoutColumns(spec);
    const lines = (text) => {
      const most = Math.max(20, Math.floor(width / 9.5));  // characters, about 9.5 px each
      // Lines made for a wide page, where one is too long: all their words are set anew.
      if (Array.isArray(text)) return text.some((line) => line.length > most) ? lines(text.join(" ")) : text;
      if (typeof text !== "string") return text;
      const rows = [""];
      for (const word of text.split(" ")) {
        const row = rows[rows.length - 1];
        if (row && row.length + word.length + 1 > most) rows.push(word);
        else rows[rows.length - 1] = row ? row + " " + word : word;
      }
      return rows;
    };
    const withLines = (part) => {  // also the titles of the charts of which it is made
      const title = part.title?.text ? { ...part.title, text: lines(part.title.text) } : lines(part.title);
      const parts = {};
      for (const way of ["vconcat", "hconcat", "concat"]) if (part[way]) parts[way] = part[way].map(withLines);
      return { ...part, ...(title ? { title } : {}), ...parts };
    };
    return [sized(withLines(spec), width), { ...defaults, legend }];
  }

  // Letters of 12 px stay so: by a hair too wide is drawn smaller, wider scrolls. A screen reader gets the description, not each mark.
  function makeReadable(box) {
    const svg = box.querySelector("svg");
    if (!svg) return;
    box.style.setProperty("--readable", Math.ceil(0.99 * svg.getAttribute("width")) + "px");
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", box.dataset.label || "chart");
  }

  const widthOf = (box) => Number(box.querySelector("svg")?.getAttribute("width") ?? 0);

  const VEGA = ["vega/vega.min.js", "vega/vega-lite.min.js", "vega/vega-embed.min.js"];

  // What a chart says in words, its titles and its sentences, for those who move a control unseen.
  function told(box) {
    const texts = [...box.querySelectorAll(".role-title-text text, .role-mark.mark-text text")].map((one) => one.textContent.trim());
    return texts.filter((one) => one.split(" ").length > 2).join(". ");
  }

  function announce(box) {
    const status = document.createElement("p");
    status.className = "chart-says";
    status.setAttribute("role", "status");
    box.append(status);
    let waiting = null;
    box.addEventListener("input", (event) => {
      clearTimeout(waiting);
      const name = event.target.closest("label, .vega-bind")?.querySelector(".vega-bind-name")?.textContent.trim() ?? "";
      waiting = setTimeout(() => {
        makeReadable(box);
        status.textContent = `${name} ${event.target.selectedOptions?.[0]?.text ?? (event.target.type === "checkbox" ? (event.target.checked ? "on" : "off") : event.target.value)}. ${told(box)}`;
      }, 500);
    });
  }

  // Charts with shades of more and less are drawn again when the page turns dark or light.
  const themed = [];
  new MutationObserver(() => themed.forEach((redraw) => redraw())).observe(
    document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });

  // A copy of a specification in which each plot is narrower, by the same share.
  function narrower(part, share) {
    if (Array.isArray(part)) return part.map((one) => narrower(one, share));
    if (!part || typeof part !== "object") return part;
    const out = {};
    for (const [key, value] of Object.entries(part)) {
      const plot = key === "width" && typeof value === "number";
      out[key] = plot ? Math.round(share * value) : PLOTS.includes(key) ? narrower(value, share) : value;
    }
    return out;
  }
  const PLOTS = ["vconcat", "hconcat", "concat", "spec", "layer"];

  async function embed(box, spec, options) {
    const room = box.clientWidth, [fitted, config] = fitTo(room, spec);
    const drawn = (fitting) => vegaEmbed(box, isDark() ? darkened(fitting) : fitting, { renderer: "svg", actions: false, config, ...options });
    let result = await drawn(fitted);
    // What still is too wide for a phone gets narrower plots, down to half of what they were.
    for (let width = widthOf(box), share = 1; room < 500 && width > room && share > 0.5; width = widthOf(box)) {
      share *= Math.min(0.97, room / width);
      result.finalize();
      result = await drawn(narrower(fitted, Math.max(0.5, share)));
    }
    makeReadable(box);
    if (box.querySelector(".vega-bind")) announce(box);
    return result;
  }

  function drawChart(box, spec, options) {
    whenNear(box, async () => {
      try {
        await loadInOrder(...VEGA);
        // Vega measures its labels when it draws, so their font must be there.
        await Promise.allSettled(["12px Inter", "bold 16px Inter"].map((font) => document.fonts.load(font, "a▁")));
        let shown = await embed(box, spec, options), dark = isDark();
        if (shaded(spec)) {
          themed.push(async () => {
            if (dark === isDark()) return;
            dark = isDark();
            const names = new Set((spec.params ?? []).map(({ name }) => name));
            const state = shown.view.getState({ signals: (name) => names.has(name), data: () => false });
            shown.finalize();
            shown = await embed(box, spec, options);
            shown.view.setState(state);
          });
        }
        box.style.minHeight = "";  // what was kept free for it; drawn smaller on a phone, it needs less
        box.dataset.drawn = "yes";
        box.dispatchEvent(new CustomEvent("drawn", { bubbles: true }));  // for scrollable.js
      } catch (error) {
        box.textContent = "This figure could not be drawn: " + error.message;
        throw error;
      }
    });
  }

  // A frame of BertViz draws itself when it comes near; printing waits for no frame.
  window.addEventListener("load", () => {
    const eager = () => document.querySelectorAll(".bertviz iframe").forEach((frame) => { frame.loading = "eager"; });
    window.addEventListener("beforeprint", eager);
    window.bookIdle?.(() => { eager(); return null; });
  });

  // The page has asked for its charts before this script came.
  const asked = window.bookFigures?.asked ?? [];
  window.bookFigures = { drawChart };
  for (const call of asked) drawChart(...call);
})();
