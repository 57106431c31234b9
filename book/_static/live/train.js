// Training in the page: the Transformer of transformer.js, now with a way back. Each operation of
// the forward pass notes how its gradient flows on; a walk through the notes in reverse gives that
// of every weight (Rumelhart et al. 1986), and Adam moves the weights against it. They have the
// library's names, so transformer.js and decoding.js run what was trained here.

import { generator } from "./decoding.js";
import { dot, logSumExp, sinusoidalTable } from "./tensor.js";
import { BOS } from "./tokenizer.js";

/** Numbers in rows, and beside each its gradient: how fast the loss grows when the number does. */
export class Tensor {
  constructor(rows, cols, data = new Float32Array(rows * cols)) {
    const grad = new Float32Array(data.length);
    Object.assign(this, { rows, cols, shape: [rows, cols], data, grad });
  }
}

/** The notes of one forward pass: each operation adds its own way back. */
export class Tape {
  #notes = [];

  /** Keep how the gradient of `out` goes on to what `out` was computed from. */
  note(out, back) {
    this.#notes.push(back);
    return out;
  }

  /** The chain rule: from the loss to the weights, the last operation first. */
  backward(loss) {
    loss.grad[0] = 1;
    while (this.#notes.length) this.#notes.pop()();
  }
}

// ---- The operations. Each computes `out`, and notes how `out.grad` is handed on: always by adding
// to a gradient, for what is used twice is pulled from two sides. N rows are all tokens of a batch.

/** Rows of the table times a factor, plus positions (chapter "Tokens and embeddings"). */
export function embed(tape, table, ids, scale, places, positions) {
  const width = table.cols;
  const out = new Tensor(ids.length, width); // (N, D)
  ids.forEach((id, n) => {
    for (let i = 0; i < width; i++) {
      const place = positions ? positions.data[places[n] * width + i] : 0;
      out.data[n * width + i] = table.data[id * width + i] * scale + place;
    }
  });
  return tape.note(out, () => {
    ids.forEach((id, n) => {
      for (let i = 0; i < width; i++) table.grad[id * width + i] += out.grad[n * width + i] * scale;
    });
  });
}

/** x W^T + b, as torch.nn.Linear: x (N, in), weight (out, in) -> (N, out). */
export function linear(tape, x, weight, bias) {
  const [inputs, outputs] = [x.cols, weight.rows];
  const [out, xs, ws] = [new Tensor(x.rows, outputs), x.data, weight.data];
  for (let n = 0; n < x.rows; n++) {
    for (let o = 0; o < outputs; o++) {
      let sum = bias ? bias.data[o] : 0;
      for (let i = 0, a = n * inputs, w = o * inputs; i < inputs; i++) sum += xs[a + i] * ws[w + i];
      out.data[n * outputs + o] = sum;
    }
  }
  return tape.note(out, () => {
    const [dx, dw] = [x.grad, weight.grad];
    for (let n = 0; n < x.rows; n++) {
      for (let o = 0; o < outputs; o++) {
        const pull = out.grad[n * outputs + o];
        if (pull === 0) continue;
        if (bias) bias.grad[o] += pull;
        // Each weight multiplied an input: the weight's gradient is that input, and the reverse.
        for (let i = 0, a = n * inputs, w = o * inputs; i < inputs; i++) {
          dx[a + i] += pull * ws[w + i];
          dw[w + i] += pull * xs[a + i];
        }
      }
    }
  });
}

/** max(0, x): where x was below 0, nothing flows back (chapter "Feed-forward and residuals"). */
export function relu(tape, x) {
  const out = new Tensor(x.rows, x.cols, x.data.map((value) => Math.max(0, value)));
  return tape.note(out, () => {
    out.grad.forEach((pull, i) => { if (x.data[i] > 0) x.grad[i] += pull; });
  });
}

/** a + b: the residual. The gradient reaches both sides whole, past the sublayer and through it. */
export function add(tape, a, b) {
  const out = new Tensor(a.rows, a.cols, a.data.map((value, i) => value + b.data[i]));
  return tape.note(out, () => {
    out.grad.forEach((pull, i) => {
      a.grad[i] += pull;
      b.grad[i] += pull;
    });
  });
}

/** Each row to mean 0 and variance 1, then a gain and a bias (chapter "Normalisation"). */
export function layerNorm(tape, x, gain, bias, eps = 1e-5) {
  const width = x.cols;
  const out = new Tensor(x.rows, width);
  const unit = new Float32Array(x.data.length); // before gain and bias
  const scales = new Float32Array(x.rows);
  for (let n = 0, at = 0; n < x.rows; n++, at += width) {
    const row = x.data.subarray(at, at + width);
    const mean = row.reduce((sum, value) => sum + value, 0) / width;
    const variance = row.reduce((sum, value) => sum + (value - mean) ** 2, 0) / width;
    scales[n] = 1 / Math.sqrt(variance + eps);
    for (let i = 0; i < width; i++) {
      unit[at + i] = (row[i] - mean) * scales[n];
      out.data[at + i] = unit[at + i] * gain.data[i] + bias.data[i];
    }
  }
  return tape.note(out, () => {
    for (let n = 0, at = 0; n < x.rows; n++, at += width) {
      let [sum, along] = [0, 0];
      for (let i = 0; i < width; i++) {
        const pull = out.grad[at + i];
        bias.grad[i] += pull;
        gain.grad[i] += pull * unit[at + i];
        sum += pull * gain.data[i];
        along += pull * gain.data[i] * unit[at + i];
      }
      // What would only shift or stretch the whole row changes nothing: that part is taken off.
      for (let i = 0; i < width; i++) {
        const pull = out.grad[at + i] * gain.data[i];
        x.grad[at + i] += scales[n] * (pull - sum / width - (unit[at + i] * along) / width);
      }
    }
  });
}

/** softmax(q k^T / sqrt(K)) v of every sentence and head (chapter "Scaled dot-product attention").
 *  Sentences lie one behind the other, {start, length} each, so that there is no padding to hide.
 *  causal: query i sees the keys 0..i alone. Returns out and its weights, (H, T, S) a sentence. */
export function attention(tape, q, k, v, from, to, heads, causal) {
  const [width, K] = [q.cols, q.cols / heads];
  const out = new Tensor(q.rows, width);
  const weights = from.map(({ length }, s) => new Float32Array(heads * length * to[s].length));

  // Every query meets every key that it may see. What is done with its row differs, there and back.
  const eachQuery = (visit) => from.forEach((asking, s) => {
    const keys = to[s].length;
    for (let h = 0; h < heads; h++) {
      for (let t = 0; t < asking.length; t++) {
        const at = (h * asking.length + t) * keys;
        const row = weights[s].subarray(at, at + (causal ? t + 1 : keys)); // what it sees
        visit(row, (asking.start + t) * width + h * K, to[s].start * width + h * K);
      }
    }
  });

  eachQuery((row, query, key) => {
    for (let j = 0; j < row.length; j++) {
      let score = 0;
      for (let i = 0; i < K; i++) score += q.data[query + i] * k.data[key + j * width + i];
      row[j] = score / Math.sqrt(K);
    }
    const total = logSumExp(row);
    for (let j = 0; j < row.length; j++) {
      row[j] = Math.exp(row[j] - total);
      for (let i = 0; i < K; i++) out.data[query + i] += row[j] * v.data[key + j * width + i];
    }
  });
  tape.note(out, () => eachQuery((row, query, key) => {
    const pulls = new Float32Array(row.length); // on each weight
    for (let j = 0; j < row.length; j++) {
      for (let i = 0, a = key + j * width; i < K; i++) {
        pulls[j] += out.grad[query + i] * v.data[a + i];
        v.grad[a + i] += out.grad[query + i] * row[j];
      }
    }
    // Softmax: one weight grows only if the others shrink, so only the pull above the mean counts.
    const mean = dot(row, pulls);
    for (let j = 0; j < row.length; j++) {
      const pull = (row[j] * (pulls[j] - mean)) / Math.sqrt(K); // on the score
      for (let i = 0, a = key + j * width; i < K; i++) {
        q.grad[query + i] += pull * k.data[a + i];
        k.grad[a + i] += pull * q.data[query + i];
      }
    }
  }));
  return { out, weights };
}

/** Mean of -log p(right token), in nats (chapter "Batches, loss and schedule"). logits (N, V). */
export function crossEntropy(tape, logits, targets) {
  const [size, loss] = [logits.cols, new Tensor(1, 1)];
  const row = (n) => logits.data.subarray(n * size, (n + 1) * size);
  const totals = targets.map((_, n) => logSumExp(row(n)));
  targets.forEach((id, n) => { loss.data[0] += (totals[n] - row(n)[id]) / targets.length; });
  return tape.note(loss, () => {
    // What the model said, minus what was right: no gradient could be simpler.
    targets.forEach((right, n) => row(n).forEach((logit, id) => {
      const said = Math.exp(logit - totals[n]);
      logits.grad[n * size + id] += (loss.grad[0] * (said - (id === right))) / targets.length;
    }));
  });
}

// ---- The model: the operations in the order of figure 1.

const FIXED = { norm_first: true, norm: "layer", eps: 1e-5, activation: "relu",
  tie_embeddings: true, scale_embeddings: true, dropout: 0, pad_id: 0 };

/** A Transformer that can be trained. config: sizes of the library's ModelConfig, and positional
 *  "sinusoidal" or "none"; what else it knows is fixed above. */
export class Trainable {
  constructor(config, seed = 0) {
    Object.assign(this, { config: { ...FIXED, ...config }, parameters: {} });
    const { d_model: width, d_ff: hidden, vocab_size: size, max_len: longest } = config;
    const random = generator(seed);
    const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
    const add = (name, rows, cols, draw) => {
      this.parameters[name] = new Tensor(rows, cols, new Float32Array(rows * cols).map(draw));
    };
    const uniform = (limit) => () => limit * (2 * random() - 1);
    const map = (name, outputs, inputs) => { // as the library starts: Xavier, see blocks.py
      add(`${name}.weight`, outputs, inputs, uniform(Math.sqrt(6 / (inputs + outputs))));
      add(`${name}.bias`, 1, outputs, uniform(1 / Math.sqrt(inputs)));
    };
    const norm = (name) => {
      add(`${name}.weight`, 1, width, () => 1);
      add(`${name}.bias`, 1, width, () => 0);
    };
    add("src_embedding.lookup.weight", size, width, () => normal() / Math.sqrt(width));
    for (const stack of ["encoder", "decoder"]) {
      for (let i = 0; i < config[`n_${stack}_layers`]; i++) {
        const stem = `${stack}.layers.${i}`;
        const attentions = ["self_attention", ...(stack === "decoder" ? ["cross_attention"] : [])];
        for (const name of attentions) {
          for (const part of "qkvo") map(`${stem}.${name}.w_${part}`, width, width);
        }
        map(`${stem}.feed_forward.expand`, hidden, width);
        map(`${stem}.feed_forward.contract`, width, hidden);
        for (let r = 0; r <= attentions.length; r++) norm(`${stem}.residuals.${r}.norm`);
      }
      norm(`${stack}.norm`);
    }
    if (config.positional === "sinusoidal") this.positions = sinusoidalTable(longest, width);
  }

  /** A batch [{source, target}] of ids, <eos> behind both -> {loss, logits (N, V), targets (N),
   *  weights: the last cross-attention's, (H, T, S) a sentence}. */
  forward(tape, batch) {
    const p = this.parameters;
    const table = p["src_embedding.lookup.weight"];
    const named = (op, x, name) => op(tape, x, p[`${name}.weight`], p[`${name}.bias`]);
    const attend = (y, memory, from, to, name, causal) => {
      const [q, k, v] = [[y, "q"], [memory, "k"], [memory, "v"]].map(
        ([x, part]) => named(linear, x, `${name}.w_${part}`));
      const { out, weights } = attention(tape, q, k, v, from, to, this.config.n_heads, causal);
      this.weights = weights;
      return named(linear, out, `${name}.w_o`);
    };
    const feedForward = (y, name) => // (N, D) -> (N, d_ff) -> (N, D)
      named(linear, relu(tape, named(linear, y, `${name}.expand`)), `${name}.contract`);
    // x + sublayer(norm(x)), for each sublayer of each layer; then the norm that closes the stack.
    const stack = (kind, sequences, sublayers) => {
      let x = embed(tape, table, sequences.flat(), Math.sqrt(this.config.d_model),
        sequences.flatMap((ids) => ids.map((_, t) => t)), this.positions);
      for (let i = 0; i < this.config[`n_${kind}_layers`]; i++) {
        const stem = `${kind}.layers.${i}`;
        sublayers.forEach((sublayer, r) => {
          const y = named(layerNorm, x, `${stem}.residuals.${r}.norm`);
          x = add(tape, x, sublayer(y, stem));
        });
      }
      return named(layerNorm, x, `${kind}.norm`);
    };

    const sources = batch.map(({ source }) => source);
    const targets = batch.flatMap(({ target }) => target);
    const read = batch.map(({ target }) => [BOS, ...target.slice(0, -1)]); // one step behind
    const [from, to] = [spans(read), spans(sources)];
    const memory = stack("encoder", sources, [
      (y, stem) => attend(y, y, to, to, `${stem}.self_attention`, false),
      (y, stem) => feedForward(y, `${stem}.feed_forward`),
    ]);
    const hidden = stack("decoder", read, [
      (y, stem) => attend(y, y, from, from, `${stem}.self_attention`, true),
      (y, stem) => attend(y, memory, from, to, `${stem}.cross_attention`, false),
      (y, stem) => feedForward(y, `${stem}.feed_forward`),
    ]);
    const logits = linear(tape, hidden, table); // tied: the table is used a third time
    return { loss: crossEntropy(tape, logits, targets), logits, targets, weights: this.weights };
  }
}

/** Where each sequence stands when they lie one behind the other. */
function spans(sequences) {
  let start = 0;
  return sequences.map(({ length }) => ({ start: (start += length) - length, length }));
}

// ---- Learning.

/** Adam (Kingma and Ba 2015), with the paper's settings (sec. 5.3). */
export class Adam {
  constructor(parameters, { betas = [0.9, 0.98], eps = 1e-9 } = {}) {
    const zeros = ({ data }) => new Float32Array(data.length);
    const slot = (tensor) => ({ tensor, mean: zeros(tensor), square: zeros(tensor) });
    Object.assign(this, { betas, eps, updates: 0, slots: Object.values(parameters).map(slot) });
  }

  /** Move each weight against its gradient, by about `rate`, and forget the gradients. */
  step(rate) {
    const [b1, b2] = this.betas;
    this.updates += 1;
    // Both running means start at 0; early on they are too small, by just these factors.
    const [short1, short2] = [1 - b1 ** this.updates, 1 - b2 ** this.updates];
    for (const { tensor: { data, grad }, mean, square } of this.slots) {
      for (let i = 0; i < data.length; i++) {
        mean[i] = b1 * mean[i] + (1 - b1) * grad[i];
        square[i] = b2 * square[i] + (1 - b2) * grad[i] ** 2;
        data[i] -= (rate * mean[i]) / short1 / (Math.sqrt(square[i] / short2) + this.eps);
      }
      grad.fill(0);
    }
  }
}

/** Rise in a line to `peak`, then fall with the root of the update (schedule.inverse_sqrt). */
export function inverseSqrt(update, peak, warmup) {
  return peak * Math.min(update / warmup, Math.sqrt(warmup / update));
}
