// From a source sentence to target ids, one token at a time (chapter "Decoding").

import { logSumExp, topK } from "./tensor.js";
import { BOS, EOS, PAD } from "./tokenizer.js";
import { KeyValueCache } from "./transformer.js";

/** Logits (V) that follow each hypothesis {ids, cache}; ids begin with <bos>. All caches grow. */
export function nextLogits(model, hypotheses, memory, run) {
  // Without the causal mask earlier tokens see later ones: nothing that was computed stays right.
  const anew = run.switches.causal;
  if (anew) for (const hypothesis of hypotheses) hypothesis.cache = new KeyValueCache();
  const unread = hypotheses.map(({ ids }) => (anew ? ids : ids.slice(-1)));
  const hidden = model.decode(unread, memory, hypotheses.map(({ cache }) => cache), run);
  const length = unread[0].length;
  const logits = model.project(hidden.filter((_, i) => i % length === length - 1));
  for (const row of logits) row[PAD] = -Infinity; // padding is no word
  return logits; // (hypotheses, V)
}

/** What the model bets on next: the `keep` most probable tokens with their probabilities. */
export function bets(logits, keep) {
  const total = logSumExp(logits);
  return topK(logits, keep).map((id) => ({ id, p: Math.exp(logits[id] - total) }));
}

/** Take the most probable token at every step. */
export function greedyDecode(model, memory, options) {
  return generate(model, memory, options, (logits) => topK(logits, 1)[0]);
}

/** Draw each token: temperature below 1 sharpens, topK keeps the k best, topP the fewest whose
 *  probabilities reach p (Holtzman et al. 2020); the same seed gives the same text. */
export function sample(model, memory, options) {
  const random = generator(options.seed ?? 0);
  return generate(model, memory, options, (logits, step) => {
    const drawn = distribution(logits, options); // [{id, q}]
    const share = new Map(drawn.map(({ id, q }) => [id, q]));
    for (const bet of step.top) bet.q = share.get(bet.id) ?? 0;
    let left = random();
    return (drawn.find(({ q }) => (left -= q) < 0) ?? drawn[0]).id;
  });
}

/** The tokens that may be drawn and their probabilities, the largest first. */
export function distribution(logits, { temperature = 1, topK: k = Infinity, topP: p = 1 }) {
  const sharpened = logits.map((logit) => logit / temperature);
  const total = logSumExp(sharpened);
  const ranked = Array.from(logits.keys()).sort((a, b) => logits[b] - logits[a]);
  const kept = [];
  let before = 0;
  for (const id of ranked) {
    if (kept.length && (before >= p || kept.length >= k)) break; // the first always stays
    const q = Math.exp(sharpened[id] - total);
    kept.push({ id, q });
    before += q;
  }
  return kept.map(({ id, q }) => ({ id, q: q / before }));
}

/** Random numbers in [0, 1) that a seed repeats (mulberry32). */
export function generator(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let x = Math.imul(state ^ (state >>> 15), state | 1);
    x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
    return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Extend by choose(logits, step) until <eos> or the limit. `prefix` is forced. Returns ids without
 *  <bos>, the steps, and the sum of log-probabilities. */
function generate(model, memory, { run, limit, keep = 8, prefix = [] }, choose) {
  const hypothesis = { ids: [BOS], cache: new KeyValueCache(), total: 0, steps: [] };
  for (let length = 0; length < limit; length++) {
    const [logits] = nextLogits(model, [hypothesis], memory, run);
    const step = { position: length, top: bets(logits, keep) };
    const id = prefix[length] ?? choose(logits, step);
    const logp = logits[id] - logSumExp(logits);
    hypothesis.steps.push({ ...step, chosen: id, p: Math.exp(logp) });
    hypothesis.ids.push(id);
    hypothesis.total += logp;
    if (id === EOS) break;
  }
  return { ...hypothesis, ids: hypothesis.ids.slice(1) };
}

/** Keep the beamSize best prefixes; return the best finished one: the one with the largest sum of
 *  log-probabilities / length ** lengthPenalty, <eos> counted. Done when beamSize have finished. */
export function beamSearch(model, memory, options) {
  const { run, limit, beamSize: n = 5, lengthPenalty = 1, keep = 8, prefix = [] } = options;
  let beam = [{ ids: [BOS], cache: new KeyValueCache(), total: 0, steps: [], id: 0 }];
  const [tree, list] = [[], []];
  let nodes = 0;
  for (let step = 0; step < limit; step++) {
    const logits = nextLogits(model, beam, memory, run); // (n, V)
    const candidates = logits.flatMap((row, h) => {
      const total = logSumExp(row);
      const top = bets(row, keep);
      const forced = prefix[step];
      // 2n candidates are enough: at most n of them can be <eos>.
      return (forced === undefined ? topK(row, 2 * n) : [forced]).map((token) => {
        const logp = row[token] - total;
        return { parent: beam[h], token, logp, total: beam[h].total + logp, top };
      });
    });
    candidates.sort((a, b) => b.total - a.total);
    candidates.length = Math.min(candidates.length, 2 * n);
    const [last, going] = [step + 1 === limit, []];
    candidates.forEach((candidate, rank) => {
      candidate.id = ++nodes;
      candidate.score = candidate.total / (step + 1) ** lengthPenalty; // decoding.finished_score
      const ended = candidate.token === EOS;
      // Finished: <eos> among the best n, or, at the limit, whatever stands there.
      candidate.finished = rank < n && (ended || last);
      if (candidate.finished) list.push(candidate);
      candidate.kept = !ended && !last && going.length < n;
      if (candidate.kept) going.push(candidate);
    });
    const entry = ({ parent, ...rest }) => ({ ...rest, parent: parent.id });
    tree.push({ step, hypotheses: candidates.map(entry) });
    // A forced <eos> ends the search as well: nothing goes on.
    if (list.length >= n || !going.length) break;
    const copy = ({ length, layers }) => new KeyValueCache(length, [...layers]);
    beam = going.map((next) => ({ ...extend(next), cache: copy(next.parent.cache) }));
  }
  const ended = (one) => ({ ...extend(one), ids: extend(one).ids.slice(1), score: one.score });
  const best = list.sort((a, b) => b.score - a.score).slice(0, n).map(ended);
  return { ...best[0], tree, list: best };
}

/** A candidate as a hypothesis: its parent's ids and steps and its own. */
function extend({ parent, token, logp, total, top, id }) {
  const step = { position: parent.steps.length, top, chosen: token, p: Math.exp(logp) };
  return { ids: [...parent.ids, token], steps: [...parent.steps, step], total, id };
}
