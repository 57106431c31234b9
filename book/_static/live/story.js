// Nine steps that drive the translator. Each asks for a guess before it shows what happens.
// Guesses stay in the reader's browser. What is said afterwards is made of the model's own numbers.
import { h, plain, percent, difference, unescaped, weightsOf } from "./shared.js";

const DOGS = "Zwei Hunde spielen im Schnee.";
const WOMAN = "Eine Frau, die einen roten Hut trägt, liest ein Buch.";
const BUS = "Viele Menschen warten auf den Bus.";
const STORE = "attention-step-by-step.story";
const PARK = "Ein alter Mann schläft auf einer Bank im Park.";
const clean = { src: "de", heads: [], blocks: [], positions: false, causal: false, prefix: [], method: "greedy", pin: null, from: null, tab: null };
const quote = (text) => `“${unescaped(text)}”`;

// setup: the state at the question. reveal: the state at the answer. right: the option that holds,
// judged from what the model did. told: one or two sentences about it. show: the part that the
// answer speaks of. more: something that the reader can try then, with a sentence about it.
export const STEPS = [
  { title: "Pieces", chapter: ["05_tokens_and_embeddings", "Tokens and embeddings"],
    ask: "The model has hardly met a Quokka. How does it read the word?",
    options: ["As one unknown word", "Letter by letter", "In a few pieces that it knows"],
    setup: { ...clean, text: DOGS }, reveal: { text: "Ein Quokka fährt Einrad.", at: 1 },
    right: (now) => (now.source.pieces.includes("<unk>") ? 0 : now.source.pieces.includes("▁Q") ? 1 : 2),
    told: (now) => `It reads ${now.source.pieces.slice(1, 4).map(plain).join(" + ")}, and writes ${quote(now.text)}` },
  { title: "Probabilities", chapter: ["15_decoding", "Decoding"],
    ask: "Here it wrote “sleeping” for “schläft”. How sure was it?",
    options: ["More than 90 %", "About 70 %", "Less than half"],
    setup: { ...clean, text: PARK, at: 0 }, reveal: { at: 3, view: "bets" }, show: ".live-bet",
    right: (now) => { const p = now.steps[3].top[0].p; return p > 0.9 ? 0 : p >= 0.5 ? 1 : 2; },
    told: (now) => { const [a, b] = now.steps[3].top; return `${quote(plain(a.piece))} had ${percent(a.p)}, ${quote(plain(b.piece))} ${percent(b.p)}. A translation is a chain of such choices: the bars show them.`; } },
  { title: "Looking back", chapter: ["10_decoder", "The decoder"],
    ask: "German puts the verb “trägt” after the hat. The model writes “wearing” as its third word. Where does its head 2.3 look then?",
    options: ["At the third piece, the comma", "Ahead, at “trägt”", "At “Frau”"],
    setup: { ...clean, text: WOMAN, at: 0 }, reveal: { at: 2, pin: "cross.2.3" },
    right: (now) => { const best = plain(strongest(now)); return best === "trägt" ? 1 : best === "Frau" ? 2 : 0; },
    told: (now) => `${percent(Math.max(...rowOf(now)))} of its attention goes to ${quote(plain(strongest(now)))}. Nobody taught it word order. Other heads look elsewhere at the same time: point at the squares.` },
  { title: "One head off", chapter: ["04_multi_head_attention", "Multi-head attention"],
    ask: "48 heads look at once. We switch one off. What happens to the sentence?",
    options: ["It breaks", "A word changes", "Nothing"],
    setup: { ...clean, text: DOGS, at: 2 }, reveal: { heads: ["cross.3.1"], pin: "cross.3.1" },
    right: (now, before) => { const d = difference(before, now); return d.same ? 2 : changed(before, now) > 3 ? 0 : 1; },
    told: (now, before) => { const d = difference(before, now); return d.same ? `The sentence stays the same, word for word. The largest shift of a probability: ${quote(d.word)} from ${percent(d.was)} to ${percent(d.is)}. Heads stand in for each other.` : `It now says ${quote(now.text)}`; } },
  { title: "Blind it", chapter: ["18_looking_inside", "Looking inside"],
    ask: "Now all 16 heads that look back at the German go dark. It cannot see your sentence at all. What does it write?",
    options: ["Nothing", "Meaningless letters", "A fluent sentence about something else"],
    setup: { ...clean, text: DOGS, at: 2 }, reveal: { blocks: ["cross"] },
    right: (now) => (now.text.length < 3 ? 0 : now.text.split(" ").length > 4 ? 2 : 1),
    told: (now) => `${quote(now.text)} That’s what it expects of captions in general. The English comes from the decoder, the content from looking back.`,
    more: { offer: "Does it write that for another sentence?", state: { text: WOMAN, at: 2 },
      told: (now, first) => (now.text === first.text ? `For ${quote(WOMAN)}, too, it writes exactly that.` : `For ${quote(WOMAN)} it writes ${quote(now.text)}`) } },
  { title: "Blind the reader", chapter: ["09_encoder", "The encoder"],
    ask: "Looking back is on again. Instead, no German word may look at another: 16 heads of the encoder off. And now?",
    options: ["Again something else entirely", "Broken English", "Almost the same sentence"],
    setup: { ...clean, text: DOGS, at: 2 }, reveal: { blocks: ["encoder"] },
    right: (now, before) => { const share = changed(before, now) / before.target.ids.length; return share <= 0.35 ? 2 : share < 0.8 ? 1 : 0; },
    told: (now, before) => `${quote(now.text)} ${changed(before, now) === 0 ? "Not a piece has changed" : `${changed(before, now)} of ${before.target.ids.length} pieces differ`}. For a plain caption, the words alone are nearly enough. Try a longer one.` },
  { title: "Force a word", chapter: ["15_decoding", "Decoding"],
    ask: "Where it wrote “play”, we write “are” ourselves. What will it do with the rest?",
    options: ["Go on as before: “are in the snow”", "Make it fit: “are playing …”", "Stop"],
    setup: { ...clean, text: DOGS, at: 2 }, reveal: { force: [2, "▁are"], at: 3 },
    right: (now) => (now.target.pieces.length < 5 ? 2 : now.target.pieces[3]?.endsWith("ing") ? 1 : 0),
    told: (now) => `${quote(now.text)} It reads its own output, whoever wrote it. Choose other bars and see.` },
  { title: "The beam", chapter: ["15_decoding", "Decoding"],
    ask: "Beam search keeps five beginnings alive and chooses at the end. Will it agree with taking the likeliest piece each time?",
    options: ["Yes, word for word", "No, it finds another sentence"],
    setup: { ...clean, text: BUS, at: 2 }, reveal: { method: "beam", tab: "beam", view: "beam" }, show: ".live-lower",
    right: (now, before, greedy) => (greedy.text === now.text ? 0 : 1),
    told: (now, before, greedy) => (greedy.text === now.text ? `Both write ${quote(now.text)}` : `Piece by piece it wrote ${quote(greedy.text)} The beam: ${quote(now.text)}`) + " The tree below shows what it gave up on the way." },
  { title: "Your sentence", chapter: ["17_evaluation", "Evaluation"], own: true,
    ask: "Type a German sentence of your own, far from any photograph: about money, or love. How sure will it be, on average?",
    options: ["Above 75 %, like half of all captions", "Between 50 and 75 %", "Below 50 %, like hardly any caption"],
    setup: { ...clean }, reveal: {},
    right: (now) => (now.confidence > 0.75 ? 0 : now.confidence >= 0.5 ? 1 : 2),
    told: (now) => `${quote(now.text)} On average, it was ${percent(now.confidence)} sure of each piece. It always says something: it has no way to say “I don’t know”.` },
];

const rowOf = (now) => { const s = now.source.pieces.length; return [...weightsOf(now, "cross", 2, 3).slice(2 * s, 3 * s)]; };
const strongest = (now) => { const row = rowOf(now); return now.source.pieces[row.indexOf(Math.max(...row))]; };
const changed = (a, b) => Array.from({ length: Math.max(a.target.ids.length, b.target.ids.length) }, (_, i) => a.target.ids[i] !== b.target.ids[i]).filter(Boolean).length;

function recall() {
  try { return JSON.parse(localStorage.getItem(STORE)) ?? {}; } catch { return {}; }
}
function keep(guesses) {
  try { localStorage.setItem(STORE, JSON.stringify(guesses)); } catch { /* private window: the guess is kept for this visit */ }
}

// tool: {apply(patch) -> Promise<{now, before}>, chapterAddress(name), focusInput()}
export function makeStory(tool) {
  let guesses = recall(), step = 0, open = false, turn = 0;
  const start = h("button", { type: "button", class: "live-button live-primary", onclick: () => go(1) }, "Show me, in nine steps");
  const card = h("div", { class: "live-card", hidden: true, tabindex: -1 });
  const element = h("section", { class: "live-story", "aria-label": "The story in nine steps" }, card);

  async function go(number, focus = true) {
    open = number >= 1 && number <= STEPS.length;
    step = open ? number : 0;
    tool.remember(step);
    start.textContent = Object.keys(guesses).length && !open ? "Continue the nine steps" : "Show me, in nine steps";
    card.hidden = !open;
    start.hidden = open;
    tool.asking(open && step !== 9);
    if (!open) return;
    const plan = STEPS[step - 1];
    render(plan, null);
    if (focus) card.focus({ preventScroll: false });
    const mine = ++turn;
    if (focus) await tool.apply(plan.setup);
    if (mine === turn && guesses[step] !== undefined && !plan.own && focus) render(plan, null);
    if (plan.own && focus) tool.focusInput();
  }

  // The last step asks about a sentence of the reader's own: no guess before there is one.
  const canned = [DOGS, WOMAN, BUS, PARK];
  function typed(text) {
    if (STEPS[step - 1]?.own) card.querySelectorAll(".live-options button").forEach((option) => { option.disabled = canned.includes(text.trim()) || text.trim().split(/\s+/).length < 2; });
  }

  async function guess(plan, option) {
    guesses[step] = option;
    keep(guesses);
    const mine = ++turn;
    const answer = card.querySelector(".live-answer");
    answer.textContent = "…";
    try {
      const seen = await tool.apply(plan.reveal, plan);
      if (mine !== turn) return;
      tool.asking(false);
      render(plan, { seen, option, right: plan.right(seen.now, seen.before, seen.greedy), told: plan.told(seen.now, seen.before, seen.greedy) });
      card.querySelector(".live-next")?.focus({ preventScroll: true });
      if (plan.show) tool.reveal(plan.show);
    } catch (error) {
      if (mine === turn) answer.textContent = `This step needs the model. ${error.message}`;
    }
  }

  async function tryMore(plan, first) {
    const mine = ++turn, answer = card.querySelector(".live-answer");
    card.querySelector(".live-more-try").disabled = true;
    const { now } = await tool.apply(plan.more.state);
    if (mine === turn) answer.append(` ${plan.more.told(now, first)}`);
  }

  function render(plan, outcome) {
    const last = step === STEPS.length;
    card.replaceChildren(
      h("div", { class: "live-card-head" },
        h("strong", {}, `${step} of ${STEPS.length}  ${plan.title}`),
        h("span", { class: "live-dots", "aria-hidden": "true" }, STEPS.map((_, i) => h("i", { class: i + 1 === step ? "now" : guesses[i + 1] !== undefined ? "done" : "" }))),
        h("div", { class: "live-card-foot" },
          h("a", { href: tool.chapterAddress(plan.chapter[0]) }, `Why? See “${plan.chapter[1]}”`),
          step > 1 ? h("button", { type: "button", class: "live-button", onclick: () => go(step - 1) }, "Back") : null,
          h("button", { type: "button", class: "live-button live-next" + (outcome ? " live-primary" : ""), onclick: () => go(last ? 0 : step + 1) }, last ? "Done" : outcome ? "Next" : "Skip")),
        h("button", { type: "button", class: "live-button live-close", "aria-label": "Close the story", onclick: () => { go(0); start.focus(); } }, "✕")),
      h("div", { class: "live-question" }, h("p", { class: "live-ask" }, plan.ask),
      h("div", { class: "live-options", role: "group", "aria-label": "Your guess" }, plan.options.map((option, i) => h("button", {
        type: "button", class: "live-button" + (outcome?.right === i ? " live-true" : ""), "aria-pressed": String((outcome?.option ?? null) === i),
        onclick: () => guess(plan, i) }, (outcome?.right === i ? "✓ " : outcome && outcome.option === i ? "✕ " : "") + option)))),
      h("p", { class: "live-answer", role: "status" }, outcome ? `${outcome.shown ? "" : outcome.option === outcome.right ? "As you guessed. " : "Not so. "}${outcome.told}`
        : guesses[step] !== undefined ? `Last time you guessed: ${plan.options[guesses[step]]}. Guess again.` : plan.own ? "Type first, then guess." : "Guess first."),
      outcome && plan.more ? h("button", { type: "button", class: "live-button live-more-try", onclick: () => tryMore(plan, outcome.seen.now) }, plan.more.offer) : "");
    if (!outcome) typed(tool.text());
  }

  if (Object.keys(guesses).length) start.textContent = "Continue the nine steps";
  // One on, or one back; the first arrow of a question shows its answer (the presenter has asked aloud).
  function stepBy(by) {
    const asked = open && card.querySelector(".live-options [aria-pressed=true]") === null && !STEPS[step - 1].own;
    if (by > 0 && asked) reveal();
    else if (step + by >= 1 && step + by <= STEPS.length) go(step + by);
  }
  async function reveal() {
    const plan = STEPS[step - 1], mine = ++turn;
    const seen = await tool.apply(plan.reveal, plan);
    if (mine !== turn) return;
    tool.asking(false);
    const right = plan.right(seen.now, seen.before, seen.greedy);
    render(plan, { seen, option: right, right, told: plan.told(seen.now, seen.before, seen.greedy), shown: true });
    if (plan.show) tool.reveal(plan.show);
  }
  return { element, start, go, typed, step: stepBy };
}
