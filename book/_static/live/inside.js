// What the page asks of the model: translate, switch parts off, look inside. Runs in the worker;
// client.js tells what each answer looks like.

import { beamSearch, bets, greedyDecode, sample } from "./decoding.js";
import { LiveError, readModelFile } from "./model_file.js";
import { dot, logSumExp } from "./tensor.js";
import { BOS, EOS, PAD, Tokenizer, UNK } from "./tokenizer.js";
import { Intervention, KeyValueCache, Transformer } from "./transformer.js";

const METHODS = { greedy: greedyDecode, beam: beamSearch, sample };
const HIDDEN_PADDING = 8; // pads that a sentence gets when the page shows what padding does

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
    const { name, src, tgt, config, parameters, scores, length_penalty: lengthPenalty } = this.header;
    return { name, src, tgt, config, parameters, scores, lengthPenalty, bytes: this.bytes };
  }

  tokenize(text) {
    const ids = this.tokenizer.encode(text);
    const tooLong = ids.length > this.header.config.max_len;
    return { ids, pieces: this.tokenizer.pieces(ids), unknown: this.tokenizer.unknown(text), tooLong };
  }

  translate(text, options = {}) {
    const began = performance.now();
    const { method = "greedy", attention = true, tree = false, switches, patches } = options;
    if (!METHODS[method]) throw new LiveError("BadOption", `There is no method "${method}": use greedy, beam or sample.`);
    const run = new Intervention(switches, { patches });
    const source = this.source(text, options);
    const found = METHODS[method](this.model, this.model.encode(source, run), this.settings(source, options, run));
    const lengthPenalty = options.lengthPenalty ?? this.header.length_penalty;
    const chances = found.steps.map(({ p }) => p);
    return {
      source: this.named(source),
      target: this.named(found.ids),
      text: this.tokenizer.decode(found.ids),
      score: found.total / found.ids.length ** lengthPenalty,
      confidence: chances.reduce((sum, p) => sum + p, 0) / chances.length,
      steps: found.steps.map((step) => ({ ...step, top: this.spelled(step.top) })),
      ...(attention && { attention: this.attention(source, found.ids, options) }),
      ...(tree && found.tree && { tree: this.spelledTree(found.tree) }),
      ms: performance.now() - began,
    };
  }

  /** Ids of a text, with padding behind them where it is asked for. */
  source(text, { switches, padTo } = {}) {
    if (!text.trim()) throw new LiveError("Empty", "There is nothing to translate yet: write a sentence.");
    const ids = this.tokenizer.encode(text);
    const longest = this.header.config.max_len;
    if (ids.length > longest) {
      throw new LiveError("TooLong", `This text has ${ids.length} pieces, the model reads ${longest}: take one sentence at a time.`);
    }
    const length = Math.min(padTo ?? (switches?.padding ? ids.length + HIDDEN_PADDING : 0), longest);
    while (ids.length < length) ids.push(PAD);
    return ids;
  }

  /** Options for the decoding methods, checked. */
  settings(source, options, run) {
    const { vocab_size: size, max_len: longest } = this.header.config;
    const { beamSize = 5, temperature = 1, topK: k, topP: p, prefix = [] } = options;
    const require = (fits, message) => {
      if (!fits) throw new LiveError("BadOption", message);
    };
    require(prefix.every((id) => Number.isInteger(id) && id >= 0 && id < size), `A forced piece must be an id from 0 to ${size - 1}.`);
    require(beamSize >= 1 && 2 * beamSize <= size, `The beam must hold 1 to ${size >> 1} hypotheses, not ${beamSize}.`);
    require(temperature > 0, `The temperature must be above 0, not ${temperature}.`);
    require(k === undefined || k >= 1, `top-k must be at least 1, not ${k}.`);
    require(p === undefined || (p > 0 && p <= 1), `top-p must be above 0 and at most 1, not ${p}.`);
    const limit = Math.min(source.filter((id) => id !== PAD).length + 50, longest); // sec. 6.1
    const lengthPenalty = options.lengthPenalty ?? this.header.length_penalty;
    return { ...options, lengthPenalty, limit, run };
  }

  named(ids) {
    return { ids, pieces: this.tokenizer.pieces(ids) };
  }

  spelled(top) {
    return top.map((bet) => ({ ...bet, piece: this.tokenizer.tokens[bet.id] }));
  }

  spelledTree(tree) {
    return tree.map(({ step, hypotheses }) => ({
      step,
      hypotheses: hypotheses.map(({ id, parent, token, logp, total, score, kept, finished }) => (
        { id, parent, token, piece: this.tokenizer.tokens[token], logp, total, score, kept, finished }
      )),
    }));
  }

  /** One pass over source and target together, every position at once. -> {run, hidden, memory} */
  read(source, target, run, memory = this.model.encode(source, run)) {
    const hidden = this.model.decode([[BOS, ...target.slice(0, -1)]], memory, [new KeyValueCache()], run);
    return { run, memory, hidden }; // hidden: (T, D)
  }

  /** Logits of each position that is read, padding excluded: (T, V). */
  logits(hidden) {
    const rows = this.model.project(hidden);
    for (const row of rows) row[PAD] = -Infinity;
    return rows;
  }

  /** The target of a request: the ids that the page gives, else what greedy decoding writes. */
  target(text, { targetIds, switches, padTo } = {}) {
    return targetIds ?? this.translate(text, { switches, padTo, attention: false }).target.ids;
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
    const { n_encoder_layers: encoder, n_decoder_layers: decoder, n_heads: heads } = this.header.config;
    const result = { target: { ...this.named(target), p: before }, text: this.tokenizer.decode(greedy) };
    for (const [kind, layers] of Object.entries({ encoder, decoder, cross: decoder })) {
      result[kind] = [];
      for (let layer = 0; layer < layers; layer++) {
        result[kind].push([]);
        for (let head = 0; head < heads; head++) {
          await pause();
          const off = { ...switches, heads: [...(switches.heads ?? []), `${kind}.${layer}.${head}`] };
          const run = new Intervention(off);
          const memory = kind === "encoder" ? this.model.encode(source, run) : plain.memory;
          const logits = this.logits(this.read(source, target, run, memory).hidden);
          const p = chancesOf(logits, target);
          const shift = p.reduce((sum, chance, t) => sum + Math.abs(chance - before[t]), 0) / p.length;
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

  /** The arithmetic of one head for one query and one key: the numbers of chapter 02. */
  insideHead(text, options) {
    const { head: address, query: i, key: j } = options;
    const [kind, layer, head] = String(address).split(".").map((part, n) => (n ? Number(part) : part));
    const stack = kind === "encoder" ? this.model.encoderLayers : this.model.decoderLayers;
    const attention = kind === "cross" ? stack[layer]?.cross : stack[layer]?.own;
    if (!["encoder", "decoder", "cross"].includes(kind) || !(head < attention?.nHeads)) {
      throw new LiveError("BadOption", `There is no head "${address}": name one as "cross.3.1".`);
    }
    const source = this.source(text, options);
    const keep = ["q", "k", "v", "weights", "output"].map((part) => `${attention.name}.${part}`);
    const run = new Intervention(options.switches, { keep });
    const memory = this.model.encode(source, run);
    if (kind !== "encoder") this.read(source, this.target(text, options), run, memory);
    const [q, k, v, weights, output] = keep.map((name) => run.kept[name]);
    if (!(i >= 0 && i < q.length && j >= 0 && j < k.length)) {
      throw new LiveError("BadOption", `This head has ${q.length} queries and ${k.length} keys, counted from 0.`);
    }
    const width = q[0].length / attention.nHeads;
    const slice = (row) => row.slice(head * width, (head + 1) * width); // (K)
    const [query, key] = [slice(q[i]), slice(k[j])];
    const bias = attention.distanceBias(head, 0, run)?.(i, j) ?? 0;
    const score = dot(query, key);
    return {
      q: query, k: key, products: query.map((value, f) => value * key[f]), score, bias,
      scaled: score / Math.sqrt(width), weights: weights[head][i], v: slice(v[j]), output: slice(output[i]),
      masked: weights[head][i][j] === 0,
      scores: Float32Array.from(k, (row) => dot(query, slice(row)) / Math.sqrt(width)), // before masks
    };
  }

  /** The guess after each decoder layer, read as if the others were not there. Chapter 18. */
  depth(text, options = {}) {
    const [source, target] = [this.source(text, options), this.target(text, options)];
    const run = new Intervention(options.switches, { keep: (name) => /^decoder\.\d+$/.test(name) });
    this.read(source, target, run);
    return this.model.decoderLayers.map((_, layer) => {
      const logits = this.logits(this.model.close(run.kept[`decoder.${layer}`], run));
      const top = logits.map((row) => this.spelled(bets(row, options.keep ?? 5)));
      return { layer: layer + 1, top, p: chancesOf(logits, target) };
    });
  }

  /** Put an activation of one sentence into another, and translate that. Chapter 18. */
  patch(text, otherText, options) {
    const { name, position, otherPosition = position } = options;
    if (String(name).endsWith(".weights")) throw new LiveError("BadOption", "Attention weights have no single position: patch an activation.");
    const other = this.kept(otherText, { ...options, targetIds: options.otherTargetIds, names: [name] })[name];
    if (!other[otherPosition]) throw new LiveError("BadOption", `"${name}" of the other sentence has the positions 0 to ${other.length - 1}.`);
    const patches = { [name]: new Map([[position, other[otherPosition]]]) };
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
    const { run, hidden } = this.read(source, target, new Intervention(options.switches, { keep }));
    if (!options.names || options.names.includes("logits")) run.kept.logits = this.model.project(hidden);
    const missing = options.names?.find((name) => !run.kept[name]);
    if (missing) throw new LiveError("BadOption", `There is no tensor "${missing}": ask without names for the list.`);
    return run.kept;
  }

  /** Rows -> {shape, data}: queries, keys and values as (H, T, K), weights as (H, T, S). */
  shaped(name, rows) {
    const heads = this.header.config.n_heads;
    if (name.endsWith(".weights")) return { shape: [heads, rows[0].length, rows[0][0].length], data: flat(rows.flat()) };
    if (!/\.[qkv]$/.test(name)) return { shape: [rows.length, rows[0].length], data: flat(rows) };
    const width = rows[0].length / heads;
    const split = Array.from({ length: heads }, (_, h) => rows.map((row) => row.subarray(h * width, (h + 1) * width)));
    return { shape: [heads, rows.length, width], data: flat(split.flat()) };
  }
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
