// Watch a Transformer learn a toy task, from the first update, and change what it learns with. The
// training itself is train.js, in a worker; here its reports become a curve, a map and three answers.
import { h, svg, calm, percent } from "./shared.js";
import { menu, toggleButton } from "./frame.js";

const RATES = [1e-4, 3e-4, 1e-3, 3e-3, 6e-3, 1e-2, 3e-2, 6e-2, 1e-1];
const WIDE = 420, HIGH = 240, LEFT = 40, TOP = 30, BASE = HIGH - 22;   // of the curve
const MOST = 3.5, KNOWS_NOTHING = Math.log(11);   // ten letters or <eos>, all alike
const CELL = 34, EDGE = 52;
const MILESTONES = [0.5, 0.9, 0.95, 0.99];

export async function mount(root, { base }) {
  const settings = { task: "reverse", positions: true, seed: 0, rate: 6e-3 };
  let now = null, losses = [], before = null, marks = [], running = false, wanted = false, chosen = 1, reached = 0, number = 0;

  const play = h("button", { type: "button", class: "live-button live-primary", onclick: () => go(!running) }, "Play");
  const again = h("button", { type: "button", class: "live-button", onclick: () => restart() }, "Start again");
  const task = menu("Task", [["reverse", "reverse"], ["copy", "copy"], ["sort", "sort"]], (value) => { settings.task = value; restart(); });
  const positions = toggleButton("Take the positions out", (out) => { settings.positions = !out; restart(); });
  const seed = h("button", { type: "button", class: "live-button", onclick: () => { settings.seed += 1; restart(); } }, "Seed 0: try another");
  const rateText = h("output", {}, "0.006");
  const rate = h("input", { type: "range", min: 0, max: RATES.length - 1, step: 1, value: RATES.indexOf(settings.rate), "aria-label": "Learning rate", oninput: changeRate });
  const says = h("p", { class: "live-says", role: "status", "aria-live": "polite" });
  const numbers = h("p", { class: "live-note live-train-numbers" });
  const curve = h("div", { class: "live-train-curve" }), map = h("div", { class: "live-train-map" });
  const lines = [0, 1, 2].map((i) => {
    // What is read aloud stands in words beside the letters and their marks.
    const [source, written, words] = [h("small", { "aria-hidden": "true" }), h("span", { "aria-hidden": "true" }), h("em", { class: "live-hidden" })];
    return { source, written, words, button: h("button", { type: "button", class: "live-train-answer", onclick: () => { chosen = i; draw(); } }, source, written, words) };
  });
  const answers = h("div", { class: "live-train-answers", role: "group", "aria-label": "Choose a word to see where the model looks while it writes" }, lines.map((line) => line.button));
  const box = h("div", { class: "live-box live" },
    h("div", { class: "live-bar-row" }, play, again, task.element, positions, seed),
    h("div", { class: "live-knobs live-open live-train-rate" }, h("label", {}, h("span", {}, "Learning rate"), rate, rateText)),
    says, numbers, answers, h("div", { class: "live-train" }, curve, map));

  const worker = new Worker(new URL("train_worker.js", base), { type: "module" });
  let first;
  const ready = new Promise((resolve, reject) => { first = { resolve, reject }; });
  worker.onerror = (event) => { event.preventDefault?.(); first.reject(new Error("training could not start in this browser")); };
  worker.onmessage = ({ data }) => {
    if (data.error) { says.textContent = `Training stopped: ${data.error}`; return; }
    if (data.number !== number) return;   // of the previous run
    running = data.running;
    losses.push(...data.losses);
    now = { ...data.snapshot, ms: data.ms };
    draw();
    first.resolve();
  };
  const send = (message) => worker.postMessage(message);
  send({ restart: { ...settings, number }, every: calm() ? 1000 : 150 });
  await ready;
  const still = root.querySelector(".live-still");
  if (still) still.replaceWith(box); else root.prepend(box);
  // Nobody learns from what nobody sees: in a tab behind others it rests.
  document.addEventListener("visibilitychange", () => send({ run: wanted && !document.hidden }));

  function go(on) {
    if (on && now.update >= now.last) return restart(true);
    wanted = running = on;
    send({ run: on });
    label();
  }
  function restart(on = wanted) {
    if (losses.length > 2) before = losses;
    [losses, marks, reached, wanted] = [[], [], 0, on];
    seed.textContent = `Seed ${settings.seed}: try another`;
    send({ restart: { ...settings, number: ++number } });
    if (on) { running = true; send({ run: true }); }
    says.textContent = "";
    label();
  }
  function changeRate() {
    settings.rate = RATES[rate.value];
    rateText.textContent = String(settings.rate);
    rate.setAttribute("aria-valuetext", String(settings.rate));
    if (now.update) marks.push([now.update, settings.rate]);
    send({ rate: settings.rate });
  }
  function label() {
    play.textContent = running ? "Pause" : now && now.update >= now.last ? "Play again" : now?.update ? "Continue" : "Play";
  }

  function draw() {
    label();
    const { update, accuracy, ms } = now, place = onPlace(now.answers[chosen]);
    numbers.textContent = `Update ${update.toLocaleString("en")} of ${now.last.toLocaleString("en")}` + (losses.length ? ` · loss ${losses.at(-1)[1].toFixed(2)}` : "")
      + ` · ${percent(accuracy)} of the tokens in new sequences right` + (ms ? ` · ${ms.toFixed(0)} ms per update` : "");
    announce(update, accuracy, place);
    drawCurve();
    map.replaceChildren(grid(now.answers[chosen], now.task), h("p", { class: "live-note" }, `Where the model looks, as the mean of both heads: the larger the square, the more attention. Frames mark the letter to be written.`));
    now.answers.forEach(answer);
  }

  // A sentence for everybody, said now and then: when something was reached, or the run rests.
  function announce(update, accuracy, place) {
    const look = `${percent(place)} of its attention to “${now.answers[chosen].source.slice(0, -1).join("")}” is on the letter to be written`;
    const level = MILESTONES.filter((one) => accuracy >= one).length;
    if (!update) says.textContent = "Nothing has been learned yet: every answer comes from random weights. Press Play.";
    else if (!Number.isFinite(losses.at(-1)?.[1] ?? 0)) says.textContent = "The loss is no longer a number: the learning rate was too high. Lower it and start again.";
    else if (!running || level > reached) {
      reached = Math.max(reached, level);
      says.textContent = `After ${update} updates ${percent(accuracy)} of the tokens are right; ${look}.`;
    }
  }

  // Share of the weight on places that hold what is to be written, mean over the steps.
  function onPlace({ source, right, weights }) {
    let sum = 0;
    right.forEach((letter, t) => source.forEach((held, s) => { if (held === letter) sum += weights[t * source.length + s]; }));
    return sum / right.length;
  }

  function answer({ source, right, written }, i) {
    const boxes = Array.from({ length: Math.max(right.length, written.length) }, (_, t) => {
      const good = written[t] === right[t];
      return h("b", { class: good ? "live-good" : "live-bad" }, written[t] === "<eos>" ? "·" : written[t] ?? "–", h("i", { "aria-hidden": "true" }, good ? "✓" : "✗"));
    });
    const all = right.every((letter, t) => letter === written[t]) && written.length === right.length;
    const word = (letters) => letters.filter((letter) => letter !== "<eos>").join(" ") || "nothing";
    const line = lines[i];
    line.source.textContent = word(source);
    line.written.replaceChildren(...boxes);
    line.button.setAttribute("aria-pressed", String(i === chosen));
    line.words.textContent = `${word(source)}: it writes ${word(written)}${written.includes("<eos>") ? "" : " and does not stop"}, ${all ? "right" : `the right answer is ${word(right)}`}`;
  }

  function drawCurve() {
    const end = Math.max(300, before?.at(-1)[0] ?? 0, losses.at(-1)?.[0] ?? 0);
    const x = (update) => LEFT + (update / end) * (WIDE - LEFT - 10), y = (loss) => BASE - (Math.min(loss, MOST) / MOST) * (BASE - TOP);
    const path = (points) => points.map(([update, loss], i) => `${i ? "L" : "M"}${x(update).toFixed(1)} ${y(loss).toFixed(1)}`).join("");
    const text = (words, at, down, more = {}) => svg("text", { x: at, y: down, ...more }, words);
    const last = losses.at(-1), early = before && before.at(-1)[0] < 0.6 * end;   // room behind its end
    curve.replaceChildren(svg("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img", "aria-label": last ? `Loss against updates: ${losses[0][1].toFixed(2)} at the start, ${last[1].toFixed(2)} after ${last[0]}${before ? "; the previous run ended at " + before.at(-1)[1].toFixed(2) : ""}` : "Loss against updates: no update yet" },
      ...[0, 1, 2, 3].flatMap((loss) => [svg("line", { x1: LEFT, x2: WIDE - 10, y1: y(loss), y2: y(loss), class: "live-train-line" }), text(loss, LEFT - 8, y(loss) + 4, { "text-anchor": "end" })]),
      svg("line", { x1: LEFT, x2: WIDE - 10, y1: y(KNOWS_NOTHING), y2: y(KNOWS_NOTHING), class: "live-train-even" }), text("11 tokens equally likely", WIDE - 12, y(KNOWS_NOTHING) - 5, { "text-anchor": "end" }),
      text("batch loss, nats per token", LEFT - 22, 14), text("0", LEFT, BASE + 16, { "text-anchor": "middle" }), text(`${end} updates`, WIDE - 10, BASE + 16, { "text-anchor": "end" }),
      ...marks.flatMap(([update, value]) => [svg("line", { x1: x(update), x2: x(update), y1: TOP, y2: BASE, class: "live-train-mark" }), text(value, x(update) + 3, TOP + 4)]),
      ...(before ? [svg("path", { d: path(before), class: "live-train-before" }), text("the previous run", x(before.at(-1)[0]) + (early ? 5 : -4), y(before.at(-1)[1]) + (early ? 4 : -8), { "text-anchor": early ? "start" : "end" })] : []),
      ...(losses.length ? [svg("path", { d: path(losses), class: "live-train-loss" })] : [])));
  }
}

// Rows are the answer's letters, columns the source's: a square for the look, a frame for the place.
function grid({ source, right, weights }, task) {
  const width = EDGE + CELL * source.length + 6, height = EDGE + CELL * right.length + 6, parts = [];
  const show = (letter) => (letter === "<eos>" ? "end" : letter);
  const middle = (i) => EDGE + CELL * (i + 0.5);
  parts.push(svg("text", { x: EDGE, y: 14, class: "live-film-key" }, "reads"), svg("text", { x: 4, y: EDGE - 6, class: "live-film-query" }, "writes"));
  source.forEach((letter, s) => parts.push(svg("text", { x: middle(s), y: EDGE - 8, "text-anchor": "middle", class: "live-film-key" }, show(letter))));
  right.forEach((letter, t) => {
    parts.push(svg("text", { x: EDGE - 10, y: middle(t) + 5, "text-anchor": "end", class: "live-film-query" }, show(letter)));
    source.forEach((held, s) => {
      const weight = weights[t * source.length + s], side = (CELL - 5) * Math.sqrt(weight);
      if (held === letter) parts.push(svg("rect", { x: middle(s) - CELL / 2 + 1.5, y: middle(t) - CELL / 2 + 1.5, width: CELL - 3, height: CELL - 3, rx: 5, class: "live-train-place" }));
      parts.push(svg("rect", { x: middle(s) - side / 2, y: middle(t) - side / 2, width: side, height: side, rx: 3, "fill-opacity": 0.3 + 0.7 * weight, class: "live-film-cell" }));
    });
  });
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, style: `width: ${width}px; max-width: 100%`, role: "img", "aria-label": `Cross-attention of the ${task} model, mean of its heads` }, ...parts);
}
