// What a beam has left over, put in order by two models: the one that wrote it, and the one of the
// other direction, which says how probable your sentence is, given each translation.
import { h, model, languageName, megabytes, unescaped } from "./shared.js";

const WIDTH = 16;       // of the beam, as on the page on search errors; a weight of 0.1 is what it chose for German
const SIZE = 2.9e6;     // bytes of the other model, told before it is loaded

/** The places of the candidates, best first, by (1 - weight) * own + weight * back; equals stay. */
export function rerank(own, back, weight) {
  const worth = own.map((p, i) => (1 - weight) * p + weight * back[i]);
  return own.map((_, i) => i).sort((a, b) => worth[b] - worth[a]);
}

export function makeAskBack({ ask, set, lang, chapterAddress }) {
  const output = h("output", {});
  const slider = h("input", { type: "range", min: 0, max: 1, step: 0.05, oninput: () => set({ weight: Number(slider.value) }) });
  const sliderLabel = h("label", {}, h("span", {}, "Weight of the other direction"), slider, output);
  const begin = h("button", { type: "button", class: "live-button", onclick: () => { wanted = true; again(); } });
  const worth = h("a", { href: chapterAddress("search-errors") }, "What it’s worth on 1,000 captions");
  const intro = h("p", {}), note = h("p", { class: "live-note", role: "status" });
  const scroll = h("div", { class: "live-scroll", tabindex: 0, role: "group", "aria-label": "The translations in order; scroll them sideways" });
  const element = h("div", { class: "live-back" }, intro, h("div", { class: "live-knobs live-open" }, begin, sliderLabel), note, scroll);
  let wanted = false, view = null, found = null, asked = "";

  function draw(next) { view = next; return again(); }
  async function again() {
    const { state, text, switches } = view, [src, tgt] = [languageName(lang.src), languageName(lang.tgt)];
    slider.value = state.weight;
    output.textContent = state.weight.toFixed(2);
    begin.textContent = `Ask the model that reads ${tgt} (${megabytes(SIZE)})`;
    begin.hidden = wanted;
    sliderLabel.hidden = !wanted;
    intro.textContent = `A beam of ${WIDTH} leaves ${WIDTH} translations, and which of them you get is up to the model that wrote them. The model for the other direction has an opinion, too: how probable is your ${src}, given this ${tgt}? `;
    intro.append(worth);
    if (!wanted) return;
    const question = JSON.stringify([lang.src, text, switches]);
    if (asked !== question) {
      asked = question;
      found = null;
      scroll.replaceChildren();
      note.textContent = `Writing ${WIDTH} translations …`;
      try {
        const { list } = await ask("translate", text, { method: "beam", beamSize: WIDTH, lengthPenalty: 1, switches, list: true, attention: false, keep: 1, slot: "back" });
        const other = await model.opposite(({ loaded, total }) => { note.textContent = `Loading the other model: ${megabytes(loaded)} of ${megabytes(total)}`; });
        const back = await other.likelihood(list.map((one) => [one.text, text]));
        if (asked !== question) return;
        found = { list, own: list.map((one) => one.perPiece), back: back.map((one) => one.perPiece) };
      } catch (error) {
        asked = "";
        if (error.name !== "Superseded") { note.textContent = error.message; wanted = false; begin.hidden = false; sliderLabel.hidden = true; }
        return;
      }
    }
    if (found) paint();
  }

  function paint() {
    const { list, own, back } = found, weight = view.state.weight, order = rerank(own, back, weight), alone = rerank(own, back, 0)[0];
    const [src, tgt] = [languageName(lang.src), languageName(lang.tgt)];
    const said = (i) => `“${unescaped(list[i].text)}”`;
    note.textContent = order[0] === alone ? `On its own, the model puts ${said(alone)} first, and at this weight it stays there.`
      : `On its own, the model puts ${said(alone)} first. At this weight, it's ${said(order[0])}`;
    scroll.replaceChildren(h("table", {}, h("caption", {}, "Mean log-probability of a piece: the nearer to 0, the more probable. Bold: what the model puts first on its own."),
      h("thead", {}, h("tr", {}, [`${tgt}, best first`, `${tgt} given ${src}`, `${src} given ${tgt}`, "weighted"].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, order.map((i) => h("tr", { class: i === alone ? "live-this" : null }, h("td", { lang: lang.tgt }, unescaped(list[i].text)),
        [own[i], back[i], (1 - weight) * own[i] + weight * back[i]].map((p) => h("td", {}, p.toFixed(2))))))));
  }
  return { element, draw };
}
