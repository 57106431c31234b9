// Exchange rows of the encoder's memory between two sentences, and read what the decoder makes of it.
import { h, model, difference, percent, plain, roving } from "./shared.js";
import { frame, lang } from "./frame.js";

export async function mount(root) {
  // rows: position in this memory -> position of the other's row that lies there; held: a row of the other's.
  const state = { rows: new Map(), held: null, asked: "", here: null, there: null };
  const other = h("input", { class: "live-input", lang: "de", value: root.dataset.other ?? "Ein Mann springt über einen Zaun.", maxlength: 300, autocomplete: "off", spellcheck: "false", "aria-label": "The other sentence", oninput: () => figure.update() });
  const strip = (label) => h("div", { class: "live-memory", role: "group", "aria-label": label });
  const upper = strip("The memory that the decoder reads, row by row"), lower = strip("The rows of the other memory");

  const last = (side) => side.ids.length - 1;
  const shared = () => state.here.ids.map((_, i) => i).filter((i) => i <= last(state.there));
  const differs = () => shared().filter((i) => state.here.ids[i] !== state.there.ids[i]);
  const preset = (text, choose) => h("button", { type: "button", class: "live-button", onclick: () => state.here && set(choose()) }, text);
  const presets = [
    preset("The word's own row", () => differs().map((i) => [i, i])),
    preset("All other rows", () => shared().filter((i) => !differs().includes(i)).map((i) => [i, i])),
    preset("The row of <eos>", () => [[last(state.here), last(state.there)]]),
    preset("Put all back", () => []),
  ];

  function set(rows) {
    Object.assign(state, { rows: new Map(rows), held: null });
    figure.update();
  }

  function put(place, row) {
    const rows = new Map(state.rows);
    if (row === null) rows.delete(place); else rows.set(place, row);
    set(rows);
  }

  function chips() {
    const name = (side, i) => `${i} ${plain(side.pieces[i])}`;
    const fill = (element, buttons) => {
      const at = [...element.children].indexOf(document.activeElement);
      element.replaceChildren(...buttons);
      buttons.forEach((button, i) => { button.tabIndex = i === Math.max(at, 0) ? 0 : -1; });
      if (at >= 0) buttons[at]?.focus({ preventScroll: true });
    };
    fill(upper, state.here.ids.map((_, i) => {
      const row = state.rows.get(i), drop = (event) => { event.preventDefault(); if (state.held !== null) put(i, state.held); };
      return h("button", { type: "button", class: "live-button live-memory-row", lang: lang.src, "aria-pressed": String(row !== undefined), onclick: () => (state.held !== null || row !== undefined) && put(i, state.held), ondragover: (event) => event.preventDefault(), ondrop: drop },
        row === undefined ? name(state.here, i) : [h("s", {}, name(state.here, i)), ` ${plain(state.there.pieces[row])}`]);
    }));
    fill(lower, state.there.ids.map((_, j) => h("button", { type: "button", class: "live-button live-memory-row", lang: lang.src, draggable: "true", "aria-pressed": String(state.held === j), onclick: () => { state.held = state.held === j ? null : j; chips(); }, ondragstart: () => { state.held = j; } }, name(state.there, j))));
  }

  const figure = frame(root, {
    text: root.dataset.text ?? "Ein Hund springt über einen Zaun.", label: "This sentence", line: false,
    controls: presets,
    parts: [h("small", {}, "The memory that the decoder reads: drop a row here, or click an exchanged one to put it back"), upper, h("small", {}, "Rows of the other sentence: drag one up, or click it and then click a place above"), lower],
    async compute(text) {
      await model.load();
      const theirs = other.value.trim(), asked = `${text}\n${theirs}`;
      const [before, source] = [await model.translate(text), await model.translate(theirs)];
      if (asked !== state.asked) Object.assign(state, { asked, rows: new Map(), held: null, here: before.source, there: source.source });
      const places = [...state.rows];
      const now = places.length ? await model.ask("patch", text, theirs, { name: "memory", places, keep: 12 }) : before;
      return { before, source, now };
    },
    draw({ before, source, now }) {
      chips();
      figure.show([["this sentence", before], ["the other", source], ["from the memory below", now, before]]);
      const count = state.rows.size, d = difference(before, now);
      if (!count) return "Nothing has been exchanged yet.";
      const moved = `the probability of “${d.word}” goes from ${percent(d.was)} to ${d.unseen ? "almost nothing" : percent(d.is)}`;
      return `${count === 1 ? "One row is" : `${count} rows are`} exchanged: ${moved}${d.same ? ", and the English stays as it was" : ""}.`;
    },
  });
  figure.box.querySelector(".live-ask-row").after(h("div", { class: "live-ask-row" }, other));
  for (const element of [upper, lower]) roving(element, ".live-memory-row");
  await figure.update();
}
