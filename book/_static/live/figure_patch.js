// Put one vector of a sentence into another, and see what moves with it: two rows of vectors; one vector
// is dragged, or clicked, from the first into the second.
import { h, svg, model, difference, percent, plain, roving } from "./shared.js";
import { frame, menu, lang } from "./frame.js";

const ACROSS = 16, CELL = 5;  // numbers in a line of a vector's picture, and their size

// The numbers of a vector as squares: blue above zero, red below, the larger the stronger.
function strip(values) {
  const size = Math.sqrt(values.reduce((sum, value) => sum + value * value, 0) / values.length) || 1;
  const cells = Array.from(values, (value, i) => svg("rect", { x: CELL * (i % ACROSS), y: CELL * Math.floor(i / ACROSS), width: CELL, height: CELL,
    "fill-opacity": Math.min(1, Math.abs(value) / (2.5 * size)).toFixed(2), class: value < 0 ? "live-path-below" : "live-path-above" }));
  return svg("svg", { viewBox: `0 0 ${CELL * ACROSS} ${CELL * Math.ceil(values.length / ACROSS)}`, "aria-hidden": "true" }, ...cells);
}

export async function mount(root) {
  const state = { layer: "out", position: 1, other: 1 };
  const other = h("input", { class: "live-input", lang: "de", value: "Eine Frau schläft auf einer Bank.", maxlength: 300, autocomplete: "off", spellcheck: "false", "aria-label": "The sentence that the vector comes from", oninput: () => figure.update() });
  const layer = menu("Vectors after the encoder's layer", Array.from({ length: model.layers }, (_, l) => [l, String(l)]), (value) => { state.layer = value; figure.update(); });
  const row = (label) => h("div", { class: "live-vectors", role: "group", "aria-label": label });
  const upper = row("The other sentence's vectors: choose the one to put in"), lower = row("This sentence's vectors: choose the place");
  state.layer = String(model.layers - 1);
  layer.select.value = state.layer;

  function chips({ here, there, vectors, theirs }) {
    const fill = (element, buttons, chosen) => {
      const held = element.contains(document.activeElement);
      element.replaceChildren(...buttons);
      buttons.forEach((button, i) => { button.tabIndex = i === chosen ? 0 : -1; });
      if (held) buttons[chosen]?.focus({ preventScroll: true });
    };
    const from = (j) => { state.other = j; figure.update(); }, to = (i) => { state.position = i; figure.update(); };
    fill(upper, there.pieces.map((piece, j) => h("button", { type: "button", class: "live-button live-vector", lang: lang.src, draggable: "true", "aria-pressed": String(j === state.other), onclick: () => from(j), ondragstart: () => { state.other = j; } },
      plain(piece), strip(theirs[j]))), state.other);
    fill(lower, here.pieces.map((piece, i) => {
      const taken = i === state.position;
      return h("button", { type: "button", class: "live-button live-vector", lang: lang.src, "aria-pressed": String(taken), onclick: () => to(i), ondragover: (event) => event.preventDefault(), ondrop: (event) => { event.preventDefault(); to(i); } },
        taken ? h("span", {}, h("s", {}, plain(piece)), ` ${plain(there.pieces[state.other])}`) : plain(piece), strip(taken ? theirs[state.other] : vectors[i]));
    }), state.position);
  }

  const figure = frame(root, {
    text: "Ein Hund schläft auf einer Bank.", label: "The sentence that is changed",
    controls: [layer.element],
    parts: [h("small", {}, "The other sentence: drag a vector down, or click it"), upper, h("small", {}, "This sentence: drop it here, or click the place"), lower],
    async compute(text) {
      await model.load();
      const theirs = other.value.trim(), name = `encoder.${state.layer}`;
      const [here, there] = [await model.ask("tokenize", text), await model.ask("tokenize", theirs)];
      state.position = Math.min(state.position, here.ids.length - 1);
      state.other = Math.min(state.other, there.ids.length - 1);
      const before = await model.translate(text), source = await model.translate(theirs);
      const rows = async (sentence, slot) => {
        const { shape: [count, width], data } = (await model.ask("tensors", sentence, { names: [name], targetIds: [2], slot }))[name];
        return Array.from({ length: count }, (_, i) => data.slice(i * width, (i + 1) * width));
      };
      const [own, given] = [await rows(text, "own"), await rows(theirs, "given")];
      const now = await model.ask("patch", text, theirs, { name, position: state.position, otherPosition: state.other, keep: 12 });
      return { before, source, now, here, there, vectors: own, theirs: given, names: [there.pieces[state.other], here.pieces[state.position]] };
    },
    draw(found) {
      const { before, source, now, names } = found, d = difference(before, now);
      chips(found);
      figure.show([["this sentence", before], ["the other sentence", source], ["this sentence, with the other's vector", now, before]]);
      return `“${plain(names[0])}” was put where “${plain(names[1])}” was: the probability of “${d.word}” goes from ${percent(d.was)} to ${d.unseen ? "almost nothing" : percent(d.is)}.`;
    },
  });
  figure.box.querySelector(".live-ask-row").after(h("div", { class: "live-ask-row" }, other));
  for (const element of [upper, lower]) roving(element, ".live-vector");
  await figure.update();
}
