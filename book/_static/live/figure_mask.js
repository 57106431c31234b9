// Take the causal mask off the real model, and let it look at padding.
import { h, model, weightsOf, difference, percent, plain, sides } from "./shared.js";
import { picture } from "./heads.js";
import { frame, toggleButton } from "./frame.js";

export async function mount(root) {
  const off = { causal: false, padding: false };
  const canvas = h("canvas", { width: 360, height: 360, class: "live-square", role: "img" });
  const caption = h("p", { class: "live-note" }), reread = h("div", { class: "live-losses" });
  const bars = (losses) => h("ul", {}, losses.map((loss, i) => h("li", {}, h("span", {}, i ? "later words seen" : "later words hidden"),
    h("i", { style: `--share: ${(loss / Math.max(...losses, 0.01)).toFixed(3)}` }), h("b", {}, loss.toFixed(2)))));
  const figure = frame(root, {
    text: "Zwei Hunde spielen im Schnee.",
    controls: [toggleButton("Take the causal mask off", (on) => { off.causal = on; figure.update(); }),
      toggleButton("Let it look at padding", (on) => { off.padding = on; figure.update(); })],
    parts: [reread, h("div", { class: "live-side" }, canvas, caption)],
    async compute(text) {
      const before = await model.translate(text);
      const now = off.causal || off.padding ? await model.translate(text, { switches: { ...off } }) : before;
      // Reread as in training: the whole sentence lies there at once, and each piece is predicted.
      const targetIds = before.target.ids, loss = async (slot, switches) => {
        const { p } = (await model.ask("depth", text, { targetIds, switches, slot })).at(-1);
        return -p.reduce((sum, one) => sum + Math.log(one), 0) / targetIds.length;
      };
      const losses = off.causal ? [await loss("masked", { padding: off.padding }), await loss("bare", { ...off })] : null;
      return { before, now, losses };
    },
    draw({ before, now, losses }) {
      reread.replaceChildren(...(losses ? [h("small", {}, "Reread as in training, with the whole English sentence in view: loss per piece"), bars(losses)] : []));
      figure.show(now === before ? [["with its masks", now]] : [["with its masks", before], [off.causal && off.padding ? "without either" : off.causal ? "without the causal mask" : "with padding in sight", now, before]]);
      const kind = off.padding && !off.causal ? "encoder" : "decoder", { queries, keys } = sides(now, kind);
      const weights = weightsOf(now, kind, 0), ink = getComputedStyle(root).getPropertyValue("--live-ink").trim() || "0, 96, 154";
      picture(canvas, weights, queries.length, keys.length, ink);
      let future = 0, padding = 0;
      for (let q = 0; q < queries.length; q++) for (let k = 0; k < keys.length; k++) {
        if (kind === "decoder" && k > q) future += weights[q * keys.length + k] / queries.length;
        if (keys[k] === "<pad>" && queries[q] !== "<pad>") padding += weights[q * keys.length + k] / queries.filter((one) => one !== "<pad>").length;
      }
      caption.textContent = kind === "decoder" ? `Self-attention of the decoder, layer 0, mean of its heads; rows are queries, columns are keys. ${percent(future)} of the weight is on later words.`
        : `Self-attention of the encoder, layer 0, mean of its heads. Real tokens spend ${percent(padding)} of their attention on padding.`;
      canvas.setAttribute("aria-label", caption.textContent);
      if (now === before) return "Both masks are on. Guess what the model, which was trained with them, does without them.";
      const d = difference(before, now);
      return d.same ? `The sentence stays the same; the probability of “${d.word}” goes from ${percent(d.was)} to ${percent(d.is)}.` : `It writes something else; the probability of “${d.word}” goes from ${percent(d.was)} to ${d.unseen ? "almost nothing" : percent(d.is)}.`;
    },
  });
  await figure.update();
}
