// Makes each figure as large as its slide allows. It tries what the slide may vary: the width at which
// lines break, code above what it gives or beside it, the controls of a chart below it or beside it, and
// the slide's text above the figure or beside it. What leaves the largest letters stays.
const LARGEST = 2, WIDTHS = [1180, 1040, 900, 760, 620];

function scaleOf(box, inner) {
  const [wide, high] = [inner.scrollWidth, inner.scrollHeight];
  return wide && high ? Math.min(box.clientWidth / wide, box.clientHeight / high, LARGEST) : 0;
}

function fitOne(box) {
  const inner = box.firstElementChild, slide = box.closest("section"), ran = inner.querySelector(".live-figure");
  inner.style.transform = "none";
  if (!slide.clientHeight || !box.clientHeight) return;
  const may = {
    split: slide.querySelector(".text") ? [false, true] : [false],
    beside: inner.childElementCount > 1 ? [false, true] : [false],
    aside: inner.querySelector(".vega-bindings") ? [false, true] : [false],
    wrap: inner.querySelector(".printed") ? [false, true] : [false],
  };
  const set = ({ split, beside, aside, wrap, width }) => {
    slide.classList.toggle("split", split);
    for (const [name, on] of Object.entries({ beside, aside, wrap })) inner.classList.toggle(name, on);
    inner.style[ran ? "width" : "maxWidth"] = `${width}px`;
  };
  let best = { value: 0 };
  for (const split of may.split) for (const beside of may.beside) for (const aside of may.aside) for (const wrap of may.wrap) {
    for (const width of WIDTHS) {
      set({ split, beside, aside, wrap, width });
      const scale = scaleOf(box, inner), value = scale * (split ? 0.85 : 1) * (wrap ? 0.6 : 1);
      if (value > best.value + 0.02) best = { value, scale, split, beside, aside, wrap, width };
    }
  }
  if (!best.value) return;
  set(best);
  inner.style.transform = `scale(${best.scale})`;
  box.dataset.scale = best.scale.toFixed(3);
}
const fit = () => document.querySelectorAll(".figure").forEach(fitOne);

// A chart is drawn again by Vega, in the slide's own letters and with what it lets one move. Where that
// fails, its picture stays.
async function draw(box) {
  const spec = JSON.parse(box.querySelector("script").textContent), place = document.createElement("div");
  box.append(place);
  try {
    await vegaEmbed(place, spec, { renderer: "svg", actions: false, config: { font: "Inter, sans-serif" } });
    box.querySelector(".drawn").remove();
    const svg = place.querySelector("svg");
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", box.dataset.label);
    box.dataset.ready = "yes";
  } catch (error) {
    place.remove();
    console.warn(error);
  }
}

// To reveal.js a <section> inside a slide is one more slide, and some live figures make sections.
const make = document.createElement.bind(document);
document.createElement = (name, ...rest) => make(name === "section" ? "div" : name, ...rest);

// Keys that move a slider or choose from a menu must not turn the slide. Escape gives them back.
const inFigure = () => document.activeElement?.closest("input, select, textarea, .live-figure");
document.addEventListener("keydown", ({ key }) => { if (key === "Escape") document.activeElement?.blur(); });

const onPaper = /print-pdf/.test(location.search);  // there the pictures will do
Reveal.on("slidechanged", fit);
Reveal.on("pdf-ready", () => { fit(); document.documentElement.dataset.printed = "yes"; });
(async () => {
  const fonts = ["15px Inter", "bold 19px Inter", '20px "JetBrains Mono"', '46px "Source Serif 4"'];
  await Promise.allSettled(fonts.map((font) => document.fonts.load(font)));
  if (!onPaper) await Promise.all([...document.querySelectorAll(".vega")].map(draw));
  await Reveal.initialize({
    width: 1280, height: 720, margin: 0, center: false, hash: true, slideNumber: "c/t",
    transition: "none", controlsTutorial: false, viewDistance: 50, display: "flex",
    pdfSeparateFragments: false, pdfMaxPagesPerSlide: 1, plugins: [RevealNotes], totalTime: null,
    keyboardCondition: () => !inFigure(),
  });
  fit();
  for (const part of document.querySelectorAll(".live-figure")) {
    new MutationObserver(() => fitOne(part.closest(".figure"))).observe(part, { attributes: true, attributeFilter: ["data-ready"] });
  }
  document.documentElement.dataset.fitted = "yes";
})();
