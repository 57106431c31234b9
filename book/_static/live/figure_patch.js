// Put one activation of a sentence into another, and see what moves with it.
import { h, model, difference, percent, plain } from "./shared.js";
import { frame, menu, lang } from "./frame.js";

export async function mount(root) {
  const state = { layer: "out", position: 1, other: 1, pieces: null };
  const other = h("input", { class: "live-input", lang: "de", value: "Eine Frau schläft auf einer Bank.", maxlength: 300, autocomplete: "off", spellcheck: "false", "aria-label": "The sentence from which the activation comes", oninput: () => figure.update() });
  const layer = menu("the encoder's layer", Array.from({ length: model.layers }, (_, l) => [l, String(l)]), (value) => { state.layer = value; figure.update(); });
  const from = menu("from the other's", [], (value) => { state.other = Number(value); figure.update(); });
  const to = menu("into this one's", [], (value) => { state.position = Number(value); figure.update(); });
  state.layer = String(model.layers - 1);
  layer.select.value = state.layer;
  const figure = frame(root, {
    text: "Ein Hund schläft auf einer Bank.", label: "The sentence that is changed",
    controls: [layer.element, from.element, to.element],
    async compute(text) {
      await model.load();
      const [here, there] = [await model.ask("tokenize", text), await model.ask("tokenize", other.value)];
      state.position = Math.min(state.position, here.ids.length - 1);
      state.other = Math.min(state.other, there.ids.length - 1);
      to.fill(here.pieces.map((piece, i) => [i, `${i} ${plain(piece)}`]), state.position);
      from.fill(there.pieces.map((piece, i) => [i, `${i} ${plain(piece)}`]), state.other);
      const before = await model.translate(text), source = await model.translate(other.value.trim());
      const now = await model.ask("patch", text, other.value.trim(), { name: `encoder.${state.layer}`, position: state.position, otherPosition: state.other, keep: 12 });
      return { before, source, now, names: [there.pieces[state.other], here.pieces[state.position]] };
    },
    draw({ before, source, now, names }) {
      figure.show([["this sentence", before], ["the other", source], ["this with the other's activation", now, before]]);
      const d = difference(before, now);
      return `“${plain(names[0])}” was put where “${plain(names[1])}” stood: “${d.word}” goes from ${percent(d.was)} to ${d.unseen ? "almost nothing" : percent(d.is)}.`;
    },
  });
  figure.box.querySelector(".live-ask-row").after(h("div", { class: "live-ask-row" }, other));
  await figure.update();
}
