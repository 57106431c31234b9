// Watch it learn: the same ten sentences at thirty points of one recorded training run, and where the
// last layer looks while it writes one of them. Nothing is computed here: recordings/make_film.py did.
import { h, svg, calm, plain } from "./shared.js";

const CELL = 26, ROWS = 14, FIRST = 5;
const bytes = (base64) => Uint8Array.from(atob(base64), (byte) => byte.charCodeAt(0));

// Rows are the first pieces written, columns the German pieces; larger is more attention.
function grid(source, sentence) {
  const looks = bytes(sentence.attention), wide = 96, high = 74, written = sentence.pieces.slice(0, ROWS);
  const height = high + CELL * written.length, width = wide + CELL * source.pieces.length + 34;
  const parts = [];
  source.pieces.forEach((piece, j) => {
    const x = wide + CELL * (j + 0.5);
    parts.push(svg("text", { x, y: high - 6, transform: `rotate(-55 ${x} ${high - 6})`, class: "live-film-key", lang: "de" }, plain(piece)));
  });
  written.forEach((piece, i) => {
    const y = high + CELL * i;
    parts.push(svg("text", { x: wide - 8, y: y + CELL * 0.68, "text-anchor": "end", class: "live-film-query", lang: "en" }, plain(piece)));
    source.pieces.forEach((_, j) => {
      const weight = looks[i * source.pieces.length + j] / 255, side = (CELL - 3) * Math.sqrt(weight);
      parts.push(svg("rect", { x: wide + CELL * (j + 0.5) - side / 2, y: y + CELL / 2 - side / 2, width: side, height: side, rx: 3, "fill-opacity": 0.25 + 0.75 * weight, class: "live-film-cell" }));
    });
  });
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, style: `width: ${width}px; max-width: 100%`, role: "img", "aria-label": "Attention from each written piece to the German pieces: the larger the square, the more attention" }, ...parts);
}

export async function mount(root, { base }) {
  const answer = await fetch(new URL("film.json", base));
  if (!answer.ok) throw new Error(`film.json: ${answer.status}`);
  const film = await answer.json(), last = film.frames.length - 1;
  let at = 0, chosen = 0, timer = null;

  const slider = h("input", { type: "range", min: 0, max: last, value: 0, "aria-label": "Point in training", oninput: () => { stop(); show(Number(slider.value)); } });
  const play = h("button", { type: "button", class: "live-button live-primary", onclick: () => (timer ? stop() : start()) }, "Play");
  const state = h("p", { class: "live-says", role: "status", "aria-live": "polite" });
  const lines = film.sources.map((source, i) => {
    const english = h("span", { lang: "en" });
    const button = h("button", { type: "button", class: "live-film-line", "aria-pressed": "false", onclick: () => { chosen = i; show(at); } }, h("small", { lang: "de" }, source.text), english);
    return { button, english };
  });
  const map = h("div", { class: "live-film-map" });
  // On a phone, the first five; the others behind a button (live.css).
  const more = h("button", { type: "button", class: "live-button live-film-more", onclick: () => { more.parentElement.classList.add("live-film-all"); lines[FIRST].button.focus({ preventScroll: true }); } }, `All ${lines.length} sentences`);
  const box = h("div", { class: "live-box live" },
    h("div", { class: "live-bar-row" }, play, slider), state,
    h("div", { class: "live-film" }, h("div", { class: "live-film-lines", role: "group", "aria-label": "Choose a sentence to see its attention" }, lines.map((line) => line.button), more), map));
  const still = root.querySelector(".live-still");
  if (still) still.replaceWith(box); else root.prepend(box);

  function show(index) {
    at = index;
    const { step, bleu, sentences } = film.frames[at];
    slider.value = at;
    slider.setAttribute("aria-valuetext", `update ${step}`);
    lines.forEach(({ button, english }, i) => {
      english.textContent = sentences[i].text;
      button.setAttribute("aria-pressed", String(i === chosen));
    });
    const tokens = Math.round(step * film.train.max_tokens / 1000);
    state.textContent = `After ${step.toLocaleString("en")} updates (at most ${tokens.toLocaleString("en")} thousand tokens)`
      + (bleu === null ? ": not yet scored." : `: last scored at ${bleu.toFixed(1)} BLEU on the validation set.`);
    map.replaceChildren(grid(film.sources[chosen], sentences[chosen]));
  }
  function stop() {
    clearInterval(timer);
    timer = null;
    play.textContent = at === last ? "Play again" : "Play";
  }
  function start() {
    if (at === last) show(0);
    if (calm()) { show(at + 1); return; }   // no motion: one point for each press
    play.textContent = "Stop";
    timer = setInterval(() => { show(at + 1); if (at === last) stop(); }, 700);
  }
  show(0);
}
