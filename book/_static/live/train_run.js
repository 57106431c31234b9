// One training run on a toy task: the model, its batches, and what the page wants to see of it.

import { generator, greedyDecode } from "./decoding.js";
import { Intervention } from "./intervention.js";
import { topK } from "./tensor.js";
import { EOS } from "./tokenizer.js";
import { Adam, inverseSqrt, Tape, Trainable } from "./train.js";
import { drawBatch, FIRST, LETTERS, pairOf } from "./train_tasks.js";
import { Transformer } from "./transformer.js";

// As small as it can be and still learn all three tasks within some hundred updates.
export const SIZES = { vocab_size: FIRST + LETTERS.length, d_model: 32, n_heads: 2, d_ff: 64,
  n_encoder_layers: 1, n_decoder_layers: 1, max_len: 16 };
export const [BATCH, LENGTHS, WARMUP, LAST] = [16, [3, 6], 50, 1500];
const NEW = 32; // sequences, of the longest length, by which it is judged
export const PROBES = ["fig", "beach", "decide"]; // whose answers are shown

export class Run {
  constructor({ task = "reverse", positions = true, seed = 0, rate = 6e-3 } = {}) {
    const config = { ...SIZES, positional: positions ? "sinusoidal" : "none" };
    const longest = LENGTHS[1];
    Object.assign(this, { task, rate, update: 0, model: new Trainable(config, seed) });
    this.adam = new Adam(this.model.parameters);
    this.random = generator(1000 + seed); // of the batches
    this.judged = drawBatch(task, NEW, [longest, longest], generator(1)); // the same for all runs
    const ids = (word) => [...word].map((letter) => FIRST + LETTERS.indexOf(letter));
    this.probes = PROBES.map((word) => pairOf(task, ids(word)));
  }

  /** One update; returns the loss of its batch, before the weights moved. */
  step() {
    this.update += 1;
    const tape = new Tape();
    const { loss } = this.model.forward(tape, drawBatch(this.task, BATCH, LENGTHS, this.random));
    tape.backward(loss);
    this.adam.step(inverseSqrt(this.update, this.rate, WARMUP));
    return loss.data[0];
  }

  /** Share of the tokens of new sequences that are right when all before them are given. */
  accuracy() {
    const { logits, targets } = this.model.forward(new Tape(), this.judged);
    const size = logits.cols;
    const best = (n) => topK(logits.data.subarray(n * size, (n + 1) * size), 1)[0];
    return targets.filter((id, n) => best(n) === id).length / targets.length;
  }

  /** For each probe: what it writes by itself, and where it looks while it writes the answer. */
  answers() {
    const { parameters, config } = this.model;
    const engine = new Transformer(config, parameters); // the engine that translates
    const { weights } = this.model.forward(new Tape(), this.probes);
    return this.probes.map(({ source, target }, s) => {
      const run = new Intervention();
      const options = { run, limit: target.length + 1, keep: 1 };
      const { ids } = greedyDecode(engine, engine.encode(source, run), options);
      const mean = Array.from({ length: target.length * source.length }, (_, at) => { // over heads
        let sum = 0;
        for (let h = 0; h < config.n_heads; h++) sum += weights[s][h * target.length * source.length + at];
        return sum / config.n_heads;
      });
      const named = (row) => row.map((id) => (id === EOS ? "<eos>" : LETTERS[id - FIRST] ?? "?"));
      return { source: named(source), right: named(target), written: named(ids), weights: mean };
    });
  }

  /** What the page draws. */
  snapshot() {
    const { update, task } = this;
    return { update, task, accuracy: this.accuracy(), answers: this.answers(), last: LAST };
  }
}
