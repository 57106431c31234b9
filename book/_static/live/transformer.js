// The Transformer of the book, forward only: ids in, logits out. The names are the library's, a
// sentence is one array of rows, and every part can be watched, switched off or overwritten.

import {
  add, dot, gelu, layerNorm, linear, relu, rmsNorm, rotate, silu, sinusoidalTable, softmax,
} from "./tensor.js";

/** softmax(q k^T / sqrt(d_k)) v, with its weights (eq. 1). Chapter 02.
 *  q: (T_query, K) rows; k, v: (T_key, K) rows; mask(i, j): may query i attend to key j? bias(i, j)
 *  is added to the score. Returns output (T_query, K) and weights (T_query, T_key). */
export function scaledDotProductAttention(q, k, v, mask = () => true, bias = () => 0) {
  const scale = 1 / Math.sqrt(q[0].length);
  const weights = q.map((query, i) =>
    softmax(Float32Array.from(k, (key, j) => mask(i, j) ? dot(query, key) * scale + bias(i, j) : -Infinity)),
  ); // (T_query, T_key)
  const output = weights.map((row) => {
    const sum = new Float32Array(v[0].length); // (K)
    row.forEach((weight, j) => v[j].forEach((value, f) => (sum[f] += weight * value)));
    return sum;
  });
  return { output, weights };
}

/** Several attentions side by side, each on its slice of the features (sec. 3.2.2). Chapter 04. */
export class MultiHeadAttention {
  /** kind: "encoder", "decoder" or "cross"; stem: where its four matrices stand in the weights. */
  constructor(model, kind, layer, stem) {
    const { n_heads, positional } = model.config;
    Object.assign(this, { kind, layer, nHeads: n_heads });
    this.name = kind === "cross" ? `decoder.${layer}.cross` : `${kind}.${layer}.attention`;
    this.positional = kind === "cross" ? "none" : positional;
    this.maps = Object.fromEntries(
      ["w_q", "w_k", "w_v", "w_o"].map((map) => [map, model.linearMap(`${stem}.${map}`)]),
    );
  }

  /** (T, D) -> (T, D): the queries, keys or values of all heads, side by side in a row. */
  project(map, rows, start, run) {
    const projected = this.maps[map](rows);
    const turn = this.positional === "rotary" && !run.switches.positions && map !== "w_v";
    const placed = turn ? projected.map((row, t) => this.rotateHeads(row, start + t)) : projected;
    return run.touch(`${this.name}.${map.at(-1)}`, placed, start);
  }

  rotateHeads(row, position) {
    const width = row.length / this.nHeads;
    const heads = Array.from({ length: this.nHeads }, (_, h) => row.subarray(h * width, (h + 1) * width));
    return Float32Array.from(heads.flatMap((head) => [...rotate(head, position)]));
  }

  /** Attention of projected rows, the heads joined and mixed: (T_query, D). The first query stands
   *  at position `start`. */
  attend(q, k, v, mask, start, run) {
    const width = q[0].length / this.nHeads; // K
    const slice = (rows, h) => rows.map((row) => row.subarray(h * width, (h + 1) * width));
    const joined = q.map((row) => new Float32Array(row.length)); // (T_query, D)
    const weights = [];
    for (let h = 0; h < this.nHeads; h++) {
      const bias = this.distanceBias(h, start, run);
      const head = scaledDotProductAttention(slice(q, h), slice(k, h), slice(v, h), mask, bias);
      weights.push(head.weights);
      if (run.headIsOff(this.kind, this.layer, h)) continue; // its slice stays zero
      head.output.forEach((row, t) => joined[t].set(row, h * width));
    }
    run.touch(`${this.name}.weights`, weights, start);
    return this.maps.w_o(run.touch(`${this.name}.output`, joined, start));
  }

  /** ALiBi: scores fall with the distance, in each head at its own rate. Chapter 06. */
  distanceBias(head, start, run) {
    if (this.positional !== "alibi" || run.switches.positions) return undefined;
    const slope = 2 ** ((-8 * (head + 1)) / this.nHeads);
    return (i, j) => -slope * Math.abs(start + i - j);
  }
}

/** Keys and values of the tokens already seen, layer by layer. Chapter 15. Rows are only added to
 *  new arrays, so that hypotheses of a beam can share their past. */
export class KeyValueCache {
  constructor() {
    Object.assign(this, { length: 0, layers: [] });
  }

  copy() {
    return Object.assign(new KeyValueCache(), { length: this.length, layers: [...this.layers] });
  }

  append(layer, keys, values) {
    const past = this.layers[layer] ?? { keys: [], values: [] };
    this.layers[layer] = { keys: [...past.keys, ...keys], values: [...past.values, ...values] };
    return this.layers[layer];
  }
}

/** What a forward pass switches off, keeps and overwrites. Chapter 18.
 *  switches: see client.js; keep: names of tensors, or a function of the name; patches: name ->
 *  Map of position -> row. */
export class Intervention {
  constructor(switches = {}, { keep = [], patches = {} } = {}) {
    this.switches = switches;
    this.off = Object.fromEntries(
      ["heads", "blocks", "residuals", "skips", "norms"].map((part) => [part, new Set(switches[part])]),
    );
    this.wanted = typeof keep === "function" ? keep : (name) => keep.includes(name);
    Object.assign(this, { kept: {}, patches });
  }

  headIsOff(kind, layer, head) {
    const { heads, blocks } = this.off;
    return blocks.has(kind) || blocks.has(`${kind}.${layer}`) || heads.has(`${kind}.${layer}.${head}`);
  }

  /** Every named tensor passes through here. Its first row stands at position `start`. */
  touch(name, rows, start = 0) {
    const patch = this.patches[name];
    const result = patch ? rows.map((row, t) => patch.get(start + t) ?? row) : rows;
    if (this.wanted(name)) this.kept[name] = result;
    return result;
  }
}

/** An encoder-decoder Transformer (figure 1). Chapter 11. */
export class Transformer {
  /** config: the library's ModelConfig; tensors: its weights by the library's names. */
  constructor(config, tensors) {
    Object.assign(this, { config, tensors });
    const { positional, max_len, d_model } = config;
    if (positional === "sinusoidal") this.position = sinusoidalTable(max_len, d_model);
    if (positional === "learned") this.position = tensors["position.table"];
    this.encoderLayers = this.stack("encoder", config.n_encoder_layers);
    this.decoderLayers = this.stack("decoder", config.n_decoder_layers);
    const embedding = (name) => tensors[config.tie_embeddings ? "src_embedding.lookup.weight" : name];
    this.embeddings = { src: embedding("src_embedding.lookup.weight"), tgt: embedding("tgt_embedding.lookup.weight") };
    this.output = embedding("output.weight"); // (V, D)
  }

  stack(kind, size) {
    return Array.from({ length: size }, (_, i) => {
      const stem = `${kind}.layers.${i}`;
      const cross = kind === "decoder" && new MultiHeadAttention(this, "cross", i, `${stem}.cross_attention`);
      const own = new MultiHeadAttention(this, kind, i, `${stem}.self_attention`);
      return { stem, own, cross, feedForward: this.feedForward(kind, i, `${stem}.feed_forward`) };
    });
  }

  /** nn.Linear by its name: rows (T, in) -> (T, out). */
  linearMap(name) {
    const [weight, bias] = [this.tensors[`${name}.weight`], this.tensors[`${name}.bias`]];
    return (rows) => linear(rows, weight, bias);
  }

  /** Widen, bend, come back (eq. 2): the same small network at every token. Chapter 08. */
  feedForward(kind, layer, stem) {
    const { activation } = this.config;
    const [expand, contract] = [this.linearMap(`${stem}.expand`), this.linearMap(`${stem}.contract`)];
    const gate = activation === "swiglu" && this.linearMap(`${stem}.gate`);
    const bend = { relu, gelu }[activation];
    return (x, start, run) => {
      let hidden = expand(x); // (T, D) -> (T, d_ff)
      if (gate) {
        const gates = gate(x); // (T, d_ff)
        hidden = hidden.map((row, t) => row.map((value, i) => silu(gates[t][i]) * value));
      } else hidden = hidden.map((row) => row.map(bend));
      return contract(run.touch(`${kind}.${layer}.feed_forward.hidden`, hidden, start)); // (T, D)
    };
  }

  /** Normalise every row by the norm of that name in the weights. Chapter 07. */
  norm(name, stem, rows, run) {
    if (run.off.norms.has(name)) return rows;
    const [weight, bias] = [this.tensors[`${stem}.weight`].data, this.tensors[`${stem}.bias`]?.data];
    return rows.map((row) => (this.config.norm === "rms" ? rmsNorm(row, weight) : layerNorm(row, weight, bias)));
  }

  /** x + sublayer(norm(x)), or norm(x + sublayer(x)) as the paper draws it. Chapters 07 and 08. */
  residual(name, stem, x, sublayer, start, run) {
    if (run.off.residuals.has(name)) return x;
    const first = this.config.norm_first;
    const y = run.touch(name, sublayer(first ? this.norm(name, stem, x, run) : x), start);
    const sum = run.off.skips.has(name) ? y : x.map((row, t) => add(row, y[t]));
    return first ? sum : this.norm(name, stem, sum, run);
  }

  /** Ids to vectors: a row of the embedding times sqrt(D), plus the position. Chapters 05, 06. */
  embed(side, ids, start, run) {
    const { data, shape: [, width] } = this.embeddings[side]; // (V, D)
    const row = (table, i) => table.data.subarray(i * width, (i + 1) * width);
    const place = run.switches.positions ? undefined : this.position;
    return ids.map((id, t) => {
      const x = row({ data }, id).map((value) => value * Math.fround(Math.sqrt(width))); // (D)
      return place ? add(x, row(place, start + t)) : x;
    });
  }

  /** Source ids -> memory: {rows (S, D), mask}. Chapter 09. */
  encode(ids, run = new Intervention()) {
    const mask = run.switches.padding ? undefined : (i, j) => ids[j] !== this.config.pad_id;
    let x = run.touch("encoder.embedding", this.embed("src", ids, 0, run));
    this.encoderLayers.forEach(({ stem, own, feedForward }, i) => {
      x = this.residual(`encoder.${i}.attention`, `${stem}.residuals.0.norm`, x, (y) => {
        const [q, k, v] = ["w_q", "w_k", "w_v"].map((map) => own.project(map, y, 0, run));
        return own.attend(q, k, v, mask, 0, run);
      }, 0, run);
      const apply = (y) => feedForward(y, 0, run);
      x = this.residual(`encoder.${i}.feed_forward`, `${stem}.residuals.1.norm`, x, apply, 0, run);
      x = run.touch(`encoder.${i}`, x);
    });
    if (this.config.norm_first) x = this.norm("encoder.final", "encoder.norm", x, run);
    return { rows: run.touch("memory", x), mask, projected: [] };
  }

  /** New ids of each hypothesis -> hidden rows, one after the other: (hypotheses * T, D). Every
   *  hypothesis has its own cache; all read the same memory. Chapter 10. */
  decode(sequences, memory, caches, run = new Intervention()) {
    const start = caches[0].length;
    const length = sequences[0].length; // T
    const causal = run.switches.causal ? undefined : (i, j) => j <= start + i;
    let x = sequences.flatMap((ids) => this.embed("tgt", ids, start, run));
    x = run.touch("decoder.embedding", x, start);
    this.decoderLayers.forEach(({ stem, own, cross, feedForward }, i) => {
      const sublayer = (name, place, apply) => {
        x = this.residual(`decoder.${i}.${name}`, `${stem}.residuals.${place}.norm`, x, apply, start, run);
      };
      sublayer("attention", 0, (y) =>
        caches.flatMap((cache, h) => {
          const rows = y.slice(h * length, (h + 1) * length); // (T, D)
          const [q, k, v] = ["w_q", "w_k", "w_v"].map((map) => own.project(map, rows, start, run));
          const { keys, values } = cache.append(i, k, v); // (start + T, D)
          return own.attend(q, keys, values, causal, start, run);
        }),
      );
      sublayer("cross", 1, (y) => {
        // The memory never changes: its keys and values are computed once.
        memory.projected[i] ??= ["w_k", "w_v"].map((map) => cross.project(map, memory.rows, 0, run));
        return cross.attend(cross.project("w_q", y, start, run), ...memory.projected[i], memory.mask, start, run);
      });
      sublayer("feed_forward", 2, (y) => feedForward(y, start, run));
      x = run.touch(`decoder.${i}`, x, start);
    });
    for (const cache of caches) cache.length += length;
    return run.touch("hidden", this.close(x, run), start);
  }

  /** The norm that closes a pre-norm decoder; post-norm needs none. */
  close(x, run) {
    return this.config.norm_first ? this.norm("decoder.final", "decoder.norm", x, run) : x;
  }

  /** hidden (T, D) -> logits (T, V): how well each token of the vocabulary fits next. Chapter 11. */
  project(hidden) {
    return linear(hidden, this.output);
  }
}
