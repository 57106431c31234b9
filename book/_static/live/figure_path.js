// One token's path through the model, step by step: what each sublayer writes onto its vector, where
// it looks for it, and which word would be written if the path ended there. Nothing is computed here:
// the cell of the chapter did, and left its numbers in the page (data-path).
import { h, svg, calm, plain, percent } from "./shared.js";

// A number of a vector is one letter, in tenths of the vector's size: "0" is -3, "U" is 0, "y" is 3.
const LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxy";
const ZERO = 30, ROW = 32, CELL = 10;
const unpack = ({ v, r }) => Float32Array.from(v, (letter) => (Number(r) * (LETTERS.indexOf(letter) - ZERO)) / 10);
const rms = (values) => Math.sqrt(values.reduce((sum, value) => sum + value * value, 0) / values.length) || 1;

// The numbers of a vector as squares: blue above zero, red below, the larger the stronger, measured
// by the vector's own size.
function strip(values, label) {
  const full = 3 * rms(values), rows = Math.ceil(values.length / ROW);
  const cells = Array.from(values, (value, i) => svg("rect", {
    x: CELL * (i % ROW), y: CELL * Math.floor(i / ROW), width: CELL - 1, height: CELL - 1,
    "fill-opacity": Math.min(1, Math.abs(value) / full).toFixed(2), class: value < 0 ? "live-path-below" : "live-path-above",
  }));
  return svg("svg", { viewBox: `0 0 ${CELL * ROW} ${CELL * rows}`, role: "img", "aria-label": label }, ...cells);
}

function shares(pairs, lang) {
  return h("ol", { class: "live-path-shares" }, pairs.map(([piece, share]) => h("li", {},
    h("span", { lang }, plain(piece)), h("i", { style: `--share: ${share}` }), h("b", {}, percent(share)))));
}

export async function mount(root) {
  const { languages, stations, paths } = JSON.parse(root.dataset.path.replaceAll("¦", '"'));
  let path = Number(root.dataset.token ?? 0), at = 0, timer = null;

  const token = h("select", { class: "live-select", onchange: () => { stop(); path = Number(token.value); show(0); } },
    paths.map(({ name }, i) => h("option", { value: i, selected: i === path }, name)));
  const button = (text, action, more = "") => h("button", { type: "button", class: `live-button ${more}`, onclick: action }, text);
  const back = button("Back", () => { stop(); show(at - 1); });
  const next = button("Next", () => { stop(); show(at + 1); }, "live-primary");
  const play = button("Play", () => (timer ? stop() : start()));
  const slider = h("input", { type: "range", min: 0, value: 0, "aria-label": "Step of the path", oninput: () => { stop(); show(Number(slider.value)); } });
  const track = h("ol", { class: "live-path-track", "aria-hidden": "true" });   // the slider says the same
  const says = h("p", { class: "live-says", role: "status", "aria-live": "polite" });
  const wrote = h("div"), vector = h("div"), looks = h("div"), guess = h("div");
  const box = h("div", { class: "live-box live" },
    h("div", { class: "live-bar-row" }, h("label", { class: "live-menu" }, h("span", {}, "Follow"), token), back, next, play, slider),
    says,
    h("div", { class: "live-path" }, track,
      h("div", {}, h("section", {}, h("h4", {}, "what this step writes"), wrote), h("section", {}, h("h4", {}, "the token's vector after it"), vector),
        h("section", {}, h("h4", {}, "where it looks"), looks), h("section", {}, h("h4", {}, "what would be written here"), guess))));
  const still = root.querySelector(".live-still");
  if (still) still.replaceWith(box); else root.prepend(box);

  // The residual stream, from top to bottom: as wide as the vector is long, with each step's name on
  // its layer's bank and the word that would be written after it on the other.
  function stream(steps) {
    const most = Math.max(...steps.map(({ r }) => Number(r)));
    const parts = steps.map(({ n }) => /^(layer \d+), (.*)$/.exec(n)?.slice(1) ?? ["", n]);
    return steps.map((one, i) => {
      const [layer, name] = parts[i], first = layer && layer !== parts[i - 1]?.[0];
      return h("li", { class: `live-path-${one.k}${i === at ? " live-this" : ""}${i < at ? " live-past" : ""}${first ? " live-first" : ""}`, onclick: () => { stop(); show(i); } },
        h("small", {}, first ? layer : ""), h("i", { style: `--size:${(Number(one.r) / most).toFixed(3)}` }), h("span", {}, name),
        h("em", { lang: languages.target }, one.g && i <= at ? plain(one.g[0][0]) : ""));
    });
  }

  function show(index) {
    const { side } = paths[path], steps = paths[path].steps.map((one, i) => ({ ...one, ...stations[side][i] })), last = steps.length - 1;
    at = Math.max(0, Math.min(last, index));
    const step = steps[at], now = unpack(step), before = at ? unpack(steps[at - 1]) : null;
    const closing = before && step.k === "norm";
    slider.max = last;
    slider.value = at;
    slider.setAttribute("aria-valuetext", `step ${at + 1} of ${last + 1}, ${step.n}`);
    back.disabled = at === 0;
    next.disabled = at === last;
    track.replaceChildren(...stream(steps));
    wrote.replaceChildren(closing ? h("p", { class: "live-note" }, "nothing is added: the whole row is scaled to one size")
      : strip(before ? now.map((value, i) => value - before[i]) : now, `What ${step.n} writes: ${now.length} numbers`));
    vector.replaceChildren(strip(now, `The vector after ${step.n}: ${now.length} numbers, of size ${step.r}`));
    const asks = step.a && { self: languages[side], cross: languages.source }[step.k];
    looks.replaceChildren(asks ? shares(step.a, asks) : h("p", { class: "live-note" }, "nowhere: this step sees only its own token"));
    guess.replaceChildren(step.g ? shares(step.g, languages.target) : h("p", { class: "live-note" }, "the encoder writes nothing; its last row is read by the decoder"));
    const grew = at && !closing ? `adds one of size ${step.w}, which gives size ${step.r}` : `has size ${step.r}`;
    says.textContent = `Step ${at + 1} of ${last + 1}: ${step.n}. The vector ${at && !closing ? "had size " + steps[at - 1].r + "; the step " + grew : grew}.`
      + (step.a ? ` It looks most at “${plain(step.a[0][0])}”, ${percent(step.a[0][1])}.` : "")
      + (step.g ? ` Here it would write “${plain(step.g[0][0])}”, ${percent(step.g[0][1])}.` : "");
    if (timer && at === last) stop();
  }
  function stop() {
    clearInterval(timer);
    timer = null;
    play.textContent = "Play";
  }
  function start() {
    if (at === paths[path].steps.length - 1) show(0);
    if (calm()) { show(at + 1); return; }   // no motion: one step for each press
    play.textContent = "Stop";
    timer = setInterval(() => show(at + 1), 1200);
  }
  show(0);
}
