// The Transformer of the book, forward only: ids in, logits out, in the library's own names. The
// rows of a sentence are an array; places[t] is the position at which row t stands.

import { Intervention } from "./intervention.js";
import {
  add, dot, gelu, gelu_tanh, layerNorm, linear, relu, rmsNorm, rotate, silu, sinusoidalTable,
  softmax, weightedSum,
} from "./tensor.js";

/** softmax(q k^T / sqrt(d_k)) v, with its weights (eq. 1). Chapter "Scaled dot-product attention".
 *  q: (T_query, K) rows; k, v: (T_key, K) rows; mask(i, j): may query i attend to key j? bias(i, j)
 *  is added to the score. Returns output (T_query, K) and weights (T_query, T_key). */
export function scaledDotProductAttention(q, k, v, mask = () => true, bias = () => 0) {
  const scale = 1 / Math.sqrt(q[0].length);
  const weights = q.map((query, i) => {
    const scores = new Float32Array(k.length).fill(-Infinity); // (T_key)
    k.forEach((key, j) => mask(i, j) && (scores[j] = dot(query, key) * scale + bias(i, j)));
    return softmax(scores);
  });
  return { output: weights.map((row) => weightedSum(row, v)), weights };
}

/** Several attentions, each on its slice of the features (chapter "Multi-head attention"). */
export class MultiHeadAttention {
  /** kind: "encoder", "decoder" or "cross"; stem: where its four matrices stand in the weights. */
  constructor(model, kind, layer, stem) {
    const { d_model, n_heads, positional, rotary_base } = model.config;
    const width = d_model / n_heads; // K
    Object.assign(this, { kind, layer, nHeads: n_heads, width, base: rotary_base });
    this.name = kind === "cross" ? `decoder.${layer}.cross` : `${kind}.${layer}.attention`;
    this.positional = kind === "cross" ? "none" : positional;
    for (const map of ["w_q", "w_k", "w_v", "w_o"]) this[map] = model.linearMap(`${stem}.${map}`);
  }

  /** (T, D) -> (H, T, K): each head gets its own slice of the features. */
  splitHeads(rows) {
    const slice = (h) => rows.map((row) => row.subarray(h * this.width, (h + 1) * this.width));
    return Array.from({ length: rows[0].length / this.width }, (_, h) => slice(h));
  }

  /** (T, D) -> (T, D): the q, k or v of all heads, side by side in a row. */
  project(part, rows, places, run) {
    const projected = this[`w_${part}`](rows);
    if (this.positional === "rotary" && !run.switches.positions && part !== "v") {
      for (const head of this.splitHeads(projected)) {
        head.forEach((row, t) => row.set(rotate(row, places[t], this.base)));
      }
    }
    return run.touch(`${this.name}.${part}`, projected, places);
  }

  /** Attention of projected rows, the heads joined again: (T_query, D). */
  attend(q, k, v, mask, places, run) {
    const joined = q.map((row) => new Float32Array(row.length)); // (T_query, D)
    const [qs, ks, vs, outputs] = [q, k, v, joined].map((rows) => this.splitHeads(rows));
    const weights = qs.map((_, h) => {
      const bias = this.distanceBias(h, places, run);
      const kv = Math.floor((h * ks.length) / qs.length); // heads may share keys and values
      const head = scaledDotProductAttention(qs[h], ks[kv], vs[kv], mask, bias);
      const on = !run.headIsOff(this.kind, this.layer, h); // else its slice stays zero
      if (on) head.output.forEach((row, t) => outputs[h][t].set(row));
      return head.weights;
    });
    run.touch(`${this.name}.weights`, weights);
    return joined;
  }

  /** Let the joined heads speak to each other: (T, D) -> (T, D). */
  mix(joined, places, run) {
    return this.w_o(run.touch(`${this.name}.output`, joined, places));
  }

  /** ALiBi: scores fall with the distance, each head its own way ("Positional encodings"). */
  distanceBias(head, places, run) {
    if (this.positional !== "alibi" || run.switches.positions) return undefined;
    const slope = 2 ** ((-8 * (head + 1)) / this.nHeads);
    return (i, j) => -slope * Math.abs(places[i] - j);
  }
}

/** Keys and values of the tokens already seen, layer by layer (chapter "Decoding"). Rows are only
 *  added to new arrays, so that hypotheses of a beam can share their past. */
export class KeyValueCache {
  constructor(length = 0, layers = []) {
    Object.assign(this, { length, layers });
  }

  append(layer, keys, values) {
    const past = this.layers[layer] ?? { keys: [], values: [] };
    this.layers[layer] = { keys: [...past.keys, ...keys], values: [...past.values, ...values] };
    return this.layers[layer];
  }
}

/** An encoder-decoder Transformer (figure 1). Chapter "The whole model". */
export class Transformer {
  /** config: the library's ModelConfig; tensors: its weights by the library's names. */
  constructor(config, tensors) {
    Object.assign(this, { config, tensors });
    const { positional, max_len, d_model } = config;
    if (positional === "sinusoidal") this.position = sinusoidalTable(max_len, d_model);
    if (positional === "learned") this.position = tensors["embed.positions.table"];
    this.encoderLayers = this.stack("encoder", config.n_encoder_layers);
    this.decoderLayers = this.stack("decoder", config.n_decoder_layers);
    this.src = tensors["src_embedding.lookup.weight"]; // (V, D), and with ties the only one
    this.tgt = config.tie_embeddings ? this.src : tensors["tgt_embedding.lookup.weight"];
    this.output = config.tie_embeddings ? this.src : tensors["output.weight"];
  }

  stack(kind, size) {
    return Array.from({ length: size }, (_, i) => {
      const stem = `${kind}.layers.${i}`;
      const attention = (kind, name) => new MultiHeadAttention(this, kind, i, `${stem}.${name}`);
      const cross = kind === "decoder" ? attention("cross", "cross_attention") : null;
      return { stem, own: attention(kind, "self_attention"), cross };
    });
  }

  /** nn.Linear by its name: rows (T, in) -> (T, out). */
  linearMap(name) {
    const [weight, bias] = [this.tensors[`${name}.weight`], this.tensors[`${name}.bias`]];
    return (rows) => linear(rows, weight, bias);
  }

  /** Widen, bend, come back (eq. 2; chapter "Feed-forward and residuals"). */
  feedForward(name, stem, x, places, run) {
    const map = (part, rows) => this.linearMap(`${stem}.feed_forward.${part}`)(rows);
    const { activation } = this.config;
    const gates = activation === "swiglu" ? map("gate", x) : null; // (T, d_ff)
    const bend = { relu, gelu, gelu_tanh }[activation];
    const hidden = map("expand", x).map((row, t) =>
      row.map((value, i) => (gates ? silu(gates[t][i]) * value : bend(value))),
    ); // (T, D) -> (T, d_ff)
    return map("contract", run.touch(`${name}.hidden`, hidden, places)); // (T, D)
  }

  /** Normalise every row by the norm of that name in the weights. Chapter "Normalisation". */
  norm(name, stem, rows, run) {
    if (run.off.norms.has(name)) return rows;
    const [weight, bias] = ["weight", "bias"].map((part) => this.tensors[`${stem}.${part}`]?.data);
    const normed = this.config.norm === "rms" ? rmsNorm : layerNorm;
    return rows.map((row) => normed(row, weight, bias, this.config.eps));
  }

  /** x + sublayer(norm(x)), or norm(x + sublayer(x)) as the paper draws it (same chapter). */
  residual(name, stem, x, sublayer, places, run) {
    if (run.off.residuals.has(name)) return x;
    const first = this.config.norm_first;
    const y = run.touch(name, sublayer(first ? this.norm(name, stem, x, run) : x), places);
    const sum = run.off.skips.has(name) ? y : x.map((row, t) => add(row, y[t]));
    return first ? sum : this.norm(name, stem, sum, run);
  }

  /** The sublayers of one layer, each inside a residual. Chapters "The encoder", "The decoder". */
  layer(name, stem, x, sublayers, places, run) {
    sublayers.forEach(([part, sublayer], i) => {
      x = this.residual(`${name}.${part}`, `${stem}.residuals.${i}.norm`, x, sublayer, places, run);
    });
    return run.touch(name, x, places);
  }

  /** The norm that closes a pre-norm stack; post-norm needs none. */
  close(stack, x, run) {
    return this.config.norm_first ? this.norm(`${stack}.final`, `${stack}.norm`, x, run) : x;
  }

  /** Rows of the table (V, D) times sqrt(D), plus positions (chapter "Tokens and embeddings"). */
  embed(table, ids, places, run) {
    const { d_model: width, scale_embeddings } = this.config;
    const scale = scale_embeddings ? Math.sqrt(width) : 1;
    const row = ({ data }, i) => data.subarray(i * width, (i + 1) * width);
    const position = run.switches.positions ? undefined : this.position;
    return ids.map((id, t) => {
      const x = row(table, id).map((value) => value * scale); // (D)
      return position ? add(x, row(position, places[t])) : x;
    });
  }

  /** Source ids -> memory: its rows (S, D), and what reading it needs. Chapter "The encoder". */
  encode(ids, run = new Intervention()) {
    const places = ids.map((_, t) => t);
    const mask = run.switches.padding ? undefined : (i, j) => ids[j] !== this.config.pad_id;
    let x = run.touch("encoder.embedding", this.embed(this.src, ids, places, run), places);
    this.encoderLayers.forEach(({ stem, own }, i) => {
      const attention = (y) => {
        const [q, k, v] = ["q", "k", "v"].map((part) => own.project(part, y, places, run));
        return own.mix(own.attend(q, k, v, mask, places, run), places, run);
      };
      const name = `encoder.${i}`;
      const network = (y) => this.feedForward(`${name}.feed_forward`, stem, y, places, run);
      const sublayers = Object.entries({ attention, feed_forward: network });
      x = this.layer(name, stem, x, sublayers, places, run);
    });
    const rows = run.touch("memory", this.close("encoder", x, run), places);
    return { rows, places, mask, projected: [] };
  }

  /** New ids of each hypothesis -> hidden rows, one after the other: (hypotheses * T, D). Every
   *  hypothesis has its own cache; all read the same memory. Chapter "The decoder". */
  decode(sequences, memory, caches, run = new Intervention()) {
    const [start, length] = [caches[0].length, sequences[0].length]; // T
    const places = sequences.flatMap((ids) => ids.map((_, t) => start + t));
    const causal = run.switches.causal ? undefined : (i, j) => j <= places[i];
    let x = this.embed(this.tgt, sequences.flat(), places, run);
    x = run.touch("decoder.embedding", x, places);
    this.decoderLayers.forEach(({ stem, own, cross }, i) => {
      const attention = (y) => {
        const projected = ["q", "k", "v"].map((part) => own.project(part, y, places, run));
        const joined = caches.flatMap((cache, h) => {
          const part = (rows) => rows.slice(h * length, (h + 1) * length); // (T, D)
          const [q, k, v] = projected.map(part);
          const { keys, values } = cache.append(i, k, v); // (start + T, D)
          return own.attend(q, keys, values, causal, places, run);
        });
        return own.mix(joined, places, run);
      };
      const reading = (y) => {
        // The memory never changes: its keys and values are computed once.
        const project = (part) => cross.project(part, memory.rows, memory.places, run);
        const [keys, values] = (memory.projected[i] ??= ["k", "v"].map(project));
        const q = cross.project("q", y, places, run);
        return cross.mix(cross.attend(q, keys, values, memory.mask, places, run), places, run);
      };
      const name = `decoder.${i}`;
      const network = (y) => this.feedForward(`${name}.feed_forward`, stem, y, places, run);
      const sublayers = Object.entries({ attention, cross: reading, feed_forward: network });
      x = this.layer(name, stem, x, sublayers, places, run);
    });
    for (const cache of caches) cache.length += length;
    return run.touch("hidden", this.close("decoder", x, run), places);
  }

  /** hidden (T, D) -> logits (T, V): how well each would fit next (chapter "The whole model"). */
  project(hidden) {
    return linear(hidden, this.output);
  }
}
