// What the page asks of the model: translate, switch parts off, look inside. Runs in the worker;
// client.js tells what each answer looks like.

import { beamSearch, bets, greedyDecode, sample } from "./decoding.js";
import { require } from "./errors.js";
import { Intervention } from "./intervention.js";
import { readModelFile } from "./model_file.js";
import { dot, logSumExp } from "./tensor.js";
import { BOS, EOS, PAD, Tokenizer, UNK } from "./tokenizer.js";
import { KeyValueCache, Transformer } from "./transformer.js";

const METHODS = { greedy: greedyDecode, beam: beamSearch, sample };
const SHOWN_PADDING = 8; // pads that a sentence gets when the page shows what padding does

export class Inside {
  /** buffer: the bytes of a file of tools/export_live.py. */
  static async open(buffer) {
    const { header, tensors } = await readModelFile(buffer);
    return Object.assign(new Inside(), {
      header,
      bytes: buffer.byteLength,
      tokenizer: new Tokenizer(header.tokenizer),
      model: new Transformer(header.config, tensors),
    });
  }

  info() {
    const { name, src, tgt, config, parameters, scores, length_penalty } = this.header;
    const { bytes } = this;
    return { name, src, tgt, config, parameters, scores, bytes, lengthPenalty: length_penalty };
  }

  tokenize(text) {
    const ids = this.tokenizer.encode(text);
    const tooLong = ids.length > this.header.config.max_len;
    return { ...this.named(ids), unknown: this.unknown(text), tooLong };
  }

  /** The characters (or words) of a text that this vocabulary has never seen. */
  unknown(text) {
    const { tokenizer } = this;
    const parts = tokenizer.words(text).flatMap((w) => (tokenizer.kind === "word" ? [w] : [...w]));
    return [...new Set(parts.filter((part) => tokenizer.encodeWord(part).includes(UNK)))];
  }

  translate(text, options = {}) {
    const began = performance.now();
    const { method = "greedy", attention = true, tree, list, switches, patches } = options;
    require(METHODS[method], `There is no method "${method}": use greedy, beam or sample.`);
    const run = new Intervention(switches, { patches });
    const source = this.source(text, options);
    const settings = this.settings(source, options, run);
    const found = METHODS[method](this.model, this.model.encode(source, run), settings);
    const chances = found.steps.map(({ p }) => p);
    return {
      source: this.named(source),
      target: this.named(found.ids),
      text: this.tokenizer.decode(found.ids),
      score: found.total / found.ids.length ** settings.lengthPenalty,
      confidence: mean(chances),
      steps: found.steps.map((step) => ({ ...step, top: this.spelled(step.top) })),
      ...(attention && { attention: this.attention(source, found.ids, options) }),
      ...(tree && found.tree && { tree: this.spelledTree(found.tree) }),
      ...(list && found.list && { list: found.list.map((one) => this.listed(one)) }),
      ms: performance.now() - began,
    };
  }

  listed({ ids, total, score }) {
    return { text: this.tokenizer.decode(ids), total, score, perPiece: total / ids.length };
  }

  /** How probable each target is, read with its source: the sum of the log-probabilities of its
   *  pieces, <eos> included, and that sum per piece. */
  likelihood(pairs, { switches } = {}) {
    return pairs.map(([from, to]) => {
      const [source, target] = [this.source(from), this.source(to)];
      const { hidden } = this.read(source, target, new Intervention(switches));
      const total = chancesOf(this.logits(hidden), target).reduce((s, p) => s + Math.log(p), 0);
      return { total, perPiece: total / target.length };
    });
  }

  /** Ids of a text, with padding behind them where it is asked for. */
  source(text, { switches, padTo } = {}) {
    require(text.trim(), "There is nothing to translate yet: write a sentence.", "Empty");
    const ids = this.tokenizer.encode(text);
    const longest = this.header.config.max_len;
    const message = `This text has ${ids.length} pieces, but the model reads at most ${longest}: shorten it.`;
    require(ids.length <= longest, message, "TooLong");
    const wanted = padTo ?? (switches?.padding ? ids.length + SHOWN_PADDING : 0);
    while (ids.length < Math.min(wanted, longest)) ids.push(PAD);
    return ids;
  }

  /** Options for the decoding methods, checked. */
  settings(source, options, run) {
    const { vocab_size: size, max_len: longest } = this.header.config;
    const { beamSize = 5, temperature = 1, topK: k, topP: p, prefix = [] } = options;
    const isId = (id) => Number.isInteger(id) && id > PAD && id < size;
    require(prefix.every(isId), `A forced piece must be an id from 1 to ${size - 1}.`);
    const fits = Number.isInteger(beamSize) && beamSize >= 1 && 2 * beamSize <= size;
    require(fits, `The beam must hold 1 to ${size >> 1} hypotheses, not ${beamSize}.`);
    require(temperature > 0, `The temperature must be above 0, not ${temperature}.`);
    require(k === undefined || k >= 1, `top-k must be at least 1, not ${k}.`);
    require(p === undefined || (p > 0 && p <= 1), `top-p must be above 0 and at most 1, not ${p}.`);
    const limit = Math.min(source.filter((id) => id !== PAD).length + 50, longest); // sec. 6.1
    const lengthPenalty = options.lengthPenalty ?? this.header.length_penalty;
    return { ...options, lengthPenalty, limit, run };
  }

  named(ids) {
    return { ids, pieces: ids.map((id) => this.tokenizer.tokens[id]) };
  }

  spelled(top) {
    return top.map((bet) => ({ ...bet, piece: this.tokenizer.tokens[bet.id] }));
  }

  spelledTree(tree) {
    return tree.map(({ step, hypotheses }) => ({
      step,
      hypotheses: hypotheses.map(({ top, ...hypothesis }) => (
        { ...hypothesis, piece: this.tokenizer.tokens[hypothesis.token] }
      )),
    }));
  }

  /** One pass over source and target together, every position at once. -> {run, hidden, memory} */
  read(source, target, run, memory = this.model.encode(source, run)) {
    const before = [BOS, ...target.slice(0, -1)]; // what stands before each token
    const hidden = this.model.decode([before], memory, [new KeyValueCache()], run); // (T, D)
    return { run, memory, hidden };
  }

  /** Logits of each position that is read, padding excluded: (T, V). */
  logits(hidden) {
    const rows = this.model.project(hidden);
    for (const row of rows) row[PAD] = -Infinity;
    return rows;
  }

  /** The target of a request: the ids that the page gives, else what greedy decoding writes. */
  target(text, { targetIds, switches, padTo } = {}) {
    if (!targetIds) return this.translate(text, { switches, padTo, attention: false }).target.ids;
    require(targetIds.length, "The target is empty: give the ids of at least one piece.");
    return targetIds;
  }

  /** All attention weights of one pass; null for a layer whose sublayer is switched off. */
  attention(source, target, { switches, patches } = {}) {
    const keep = (name) => name.endsWith(".weights");
    const { kept } = this.read(source, target, new Intervention(switches, { keep, patches })).run;
    const maps = (name, layers) =>
      Array.from({ length: layers }, (_, i) => kept[name(i)]?.map((rows) => flat(rows)) ?? null);
    const { n_encoder_layers: encoder, n_decoder_layers: decoder } = this.header.config;
    return {
      encoder: maps((i) => `encoder.${i}.attention.weights`, encoder), // S * S
      decoder: maps((i) => `decoder.${i}.attention.weights`, decoder), // T * T
      cross: maps((i) => `decoder.${i}.cross.weights`, decoder), // T * S
    };
  }

  /** Every head off, one after the other. `pause` lets the worker answer others in between, and
   *  throws when nobody waits any more. */
  async headScan(text, options = {}, pause = async () => {}) {
    const { switches = {}, padTo } = options;
    const source = this.source(text, options);
    const greedy = this.target(text, { switches, padTo });
    const target = options.targetIds ?? greedy;
    const plain = this.read(source, target, new Intervention(switches));
    const before = chancesOf(this.logits(plain.hidden), target);
    const { n_encoder_layers, n_decoder_layers, n_heads: heads } = this.header.config;
    const sizes = { encoder: n_encoder_layers, decoder: n_decoder_layers, cross: n_decoder_layers };
    const given = { ...this.named(target), p: before };
    const result = { target: given, text: this.tokenizer.decode(greedy) };
    for (const [kind, layers] of Object.entries(sizes)) {
      result[kind] = [];
      for (let layer = 0; layer < layers; layer++) {
        result[kind].push([]);
        for (let head = 0; head < heads; head++) {
          await pause();
          const off = [...(switches.heads ?? []), `${kind}.${layer}.${head}`];
          const run = new Intervention({ ...switches, heads: off });
          const memory = kind === "encoder" ? this.model.encode(source, run) : plain.memory;
          const logits = this.logits(this.read(source, target, run, memory).hidden);
          const p = chancesOf(logits, target);
          const shift = mean(p.map((chance, t) => Math.abs(chance - before[t])));
          const ids = this.writtenAnew({ source, memory, run, logits, target, greedy, options });
          const changed = ids.join() !== greedy.join();
          result[kind][layer].push({ changed, text: this.tokenizer.decode(ids), shift, p });
        }
      }
    }
    return result;
  }

  /** What greedy decoding writes in this run. As long as it would write `greedy`, there is nothing
   *  to compute: the logits of one pass over it say so. */
  writtenAnew({ source, memory, run, logits, target, greedy, options }) {
    const settings = this.settings(source, { ...options, keep: 1 }, run);
    if (run.switches.causal || target.join() !== greedy.join()) {
      return greedyDecode(this.model, memory, settings).ids;
    }
    const best = logits.map((row) => bets(row, 1)[0].id);
    const first = best.findIndex((id, t) => id !== greedy[t]);
    if (first < 0) return greedy;
    const prefix = [...greedy.slice(0, first), best[first]];
    return greedyDecode(this.model, memory, { ...settings, prefix }).ids;
  }

  /** One head, one query, one key, number by number (chapter "Scaled dot-product attention"). */
  insideHead(text, options) {
    const { head: address, query: i, key: j } = options;
    const [kind, ...numbers] = String(address).split(".");
    const [layer, head] = numbers.map(Number);
    const stack = kind === "encoder" ? this.model.encoderLayers : this.model.decoderLayers;
    const attention = kind === "cross" ? stack[layer]?.cross : stack[layer]?.own;
    const known = ["encoder", "decoder", "cross"].includes(kind) && head < attention?.nHeads;
    require(known, `There is no head "${address}": name one, such as "cross.3.1".`);
    const source = this.source(text, options);
    const keep = ["q", "k", "v", "weights", "output"].map((part) => `${attention.name}.${part}`);
    const run = new Intervention(options.switches, { keep });
    const memory = this.model.encode(source, run);
    if (kind !== "encoder") this.read(source, this.target(text, options), run, memory);
    const [q, k, v, weights, output] = keep.map((name) => run.kept[name]);
    require(q, `"${address}" is switched off with its whole sublayer: there is nothing inside.`);
    const there = i >= 0 && i < q.length && j >= 0 && j < k.length;
    require(there, `This head has ${q.length} queries and ${k.length} keys, counted from 0.`);
    const [keys, values] = [k, v].map((rows) => attention.splitHeads(rows));
    const group = Math.floor((head * keys.length) / attention.nHeads); // heads may share keys
    const [query, key] = [attention.splitHeads(q)[head][i], keys[group][j]]; // (K)
    const root = Math.sqrt(attention.width);
    const bias = attention.distanceBias(head, q.map((_, t) => t), run)?.(i, j) ?? 0;
    const score = dot(query, key);
    const row = weights[head][i]; // (T_key)
    return {
      q: query, k: key, v: values[group][j], weights: row,
      output: attention.splitHeads(output)[head][i],
      products: query.map((value, f) => value * key[f]), score, bias,
      scaled: score / root, masked: row[j] === 0,
      scores: Float32Array.from(keys[group], (other) => dot(query, other) / root), // before masks
    };
  }

  /** The guess after each decoder layer, read as if the later ones were not there. */
  depth(text, options = {}) {
    const [source, target] = [this.source(text, options), this.target(text, options)];
    const keep = (name) => /^decoder\.\d+$/.test(name);
    const run = new Intervention(options.switches, { keep });
    this.read(source, target, run);
    return this.model.decoderLayers.map((_, layer) => {
      const logits = this.logits(this.model.close("decoder", run.kept[`decoder.${layer}`], run));
      const top = logits.map((row) => this.spelled(bets(row, options.keep ?? 5)));
      return { layer: layer + 1, top, p: chancesOf(logits, target) };
    });
  }

  /** Put activations of one sentence into another (chapters "The decoder" and "Looking inside a
   *  trained model"): one, or those of places, [[position, otherPosition], ...]. */
  patch(text, otherText, options) {
    const { name, position, otherPosition = position } = options;
    const { places = [[position, otherPosition]] } = options;
    const fits = name && !name.endsWith(".weights");
    require(fits, "Attention weights belong to no single position: patch another tensor.");
    const asked = { ...options, targetIds: options.otherTargetIds, names: [name] };
    const other = this.kept(otherText, asked)[name];
    const range = `"${name}" of the other sentence has the positions 0 to ${other.length - 1}.`;
    require(places.every(([, there]) => other[there]), range);
    const patches = { [name]: new Map(places.map(([here, there]) => [here, other[there]])) };
    return this.translate(text, { ...options, patches });
  }

  /** Any intermediate tensors, or, without names, the shapes of all. */
  tensors(text, options = {}) {
    const kept = this.kept(text, options);
    const described = Object.entries(kept).map(([name, rows]) => [name, this.shaped(name, rows)]);
    if (options.names) return Object.fromEntries(described);
    return Object.fromEntries(described.map(([name, { shape }]) => [name, { shape }]));
  }

  kept(text, options) {
    const [source, target] = [this.source(text, options), this.target(text, options)];
    const keep = options.names ?? (() => true);
    const run = new Intervention(options.switches, { keep });
    const { hidden } = this.read(source, target, run);
    const { names = ["logits"] } = options;
    if (names.includes("logits")) run.kept.logits = this.model.project(hidden);
    const missing = names.find((name) => !run.kept[name]);
    require(!missing, `There is no tensor "${missing}": ask without names for the list.`);
    return run.kept;
  }

  /** Rows -> {shape, data}: queries, keys and values as (H, T, K), weights as (H, T, S). */
  shaped(name, rows) {
    if (!/\.(q|k|v|weights)$/.test(name)) {
      return { shape: [rows.length, rows[0].length], data: flat(rows) };
    }
    const { cross, own } = this.model.decoderLayers[0] ?? this.model.encoderLayers[0];
    const heads = name.endsWith(".weights") ? rows : (cross ?? own).splitHeads(rows);
    return { shape: [heads.length, heads[0].length, heads[0][0].length], data: flat(heads.flat()) };
  }
}

/** The mean of some numbers. */
function mean(values) {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Rows of equal length -> one Float32Array, row after row. */
function flat(rows) {
  const data = new Float32Array(rows.length * (rows[0]?.length ?? 0));
  rows.forEach((row, i) => data.set(row, i * row.length));
  return data;
}

/** The probability of each target id at its place: logits (T, V) -> T numbers. */
function chancesOf(logits, target) {
  return logits.map((row, t) => Math.exp(row[target[t]] - logSumExp(row)));
}
