// The page's side of the model: every call is a promise that the worker answers.
//
//   const live = new LiveModel(new URL("./multi30k-de-en.bin", import.meta.url));
//                                                    // or a File, or an ArrayBuffer
//   await live.load(({loaded, total}) => ...)
//     -> {name, src, tgt, config, parameters, bytes, lengthPenalty, scores}
//   await live.tokenize(text) -> {ids, pieces, unknown: [characters], tooLong}
//   await live.translate(text, {
//       method: "greedy" | "beam" | "sample", beamSize, lengthPenalty,
//       temperature, topK, topP, seed,
//       switches, prefix: [ids], keep: 8, attention: true, tree: false, list: false, padTo })
//     -> {source: {ids, pieces}, target: {ids, pieces}, text, score, confidence, ms,
//         steps: [{position, chosen, p, top: [{id, piece, p, q}]}],   q: when sampling, the chance
//         attention: {encoder | decoder | cross: [layer][head] Float32Array}, tree,
//         list: [{text, total, score, perPiece}]}          what a beam has finished, best first
//     (attention[kind][layer] is null where "residuals" switches that sublayer off)
//   switches = {
//       heads: ["encoder.0.2", "decoder.1.0", "cross.3.1"],           output zero before W_O
//       blocks: ["encoder", "decoder", "cross", "cross.2"],           all heads of a kind or layer
//       residuals: ["encoder.0.attention", "decoder.2.cross", ...],   the whole sublayer: x -> x
//       skips: [same names],                                          the "x +" alone
//       norms: [same names, "encoder.final", "decoder.final"],        norm(x) -> x
//       positions, causal, padding: true }                            true = switched OFF
//     padding: true puts <pad> behind the sentence (8, or up to padTo pieces) for all to see.
//   await live.likelihood([[source, target], ...], {switches}) -> [{total, perPiece}]
//     log P(target | source), as a sum and per piece; <eos> counts
//   await live.headScan(text, {targetIds, switches})
//     -> {encoder | decoder | cross: [layer][head] {changed, text, shift, p: [..]},
//         text, target: {ids, pieces, p}}
//   await live.insideHead(text, {targetIds, head: "cross.3.1", query, key, switches})
//     -> {q, k, products, score, bias, scaled, scores, weights, masked, v, output}
//   await live.depth(text, {targetIds, keep, switches})
//     -> [{layer, top: [[{id, piece, p}] of each position], p: [..]}]
//   await live.patch(text, otherText, {name: "encoder.2", position, otherPosition, ...})
//     -> as translate, whose options it takes; places: [[position, otherPosition], ...] for several
//   await live.tensors(text, {targetIds, names, switches}) -> {name: {shape, data}}; without names,
//     all names with their shapes.
//
// A newer call supersedes an older one of the same name, which rejects with {name: "Superseded"}.
// To run two side by side, give them different names with {slot: "..."} in the options.

import { LiveError } from "./errors.js";

const CALLS = ["tokenize", "translate", "likelihood", "headScan", "insideHead", "depth", "patch",
  "tensors"];

export class LiveModel {
  constructor(source) {
    Object.assign(this, { source, next: 0, jobs: new Map(), slots: new Map() });
    for (const call of CALLS) this[call] = (...args) => this.ask(call, args);
  }

  /** Fetch and check the weights; resolves to what is known of the model. */
  load(onProgress = () => {}) {
    this.worker ??= this.start();
    const source = this.source instanceof URL ? this.source.href : this.source;
    return this.ask("load", [source], onProgress);
  }

  start() {
    const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
    worker.onmessage = ({ data }) => this.answer(data);
    worker.onerror = (event) => {
      event.preventDefault?.();
      const message =
        "The model's worker could not start. Opened from a disk? Serve the folder: make serve.";
      this.stop(new LiveError("NoWorker", message));
    };
    return worker;
  }

  /** One job of a slot is with the worker, the newest other one waits, the rest are superseded. */
  ask(call, args, onProgress) {
    const early = new LiveError("NotLoaded", "The model is not loaded: call load() first.");
    if (!this.worker) return Promise.reject(early);
    const slot = args.at(-1)?.slot ?? call;
    return new Promise((resolve, reject) => {
      const job = { id: this.next++, call, args, slot, resolve, reject, onProgress };
      const { running, waiting } = this.slots.get(slot) ?? {};
      const superseded = new LiveError("Superseded", "A newer request took its place.");
      for (const old of [running, waiting]) old?.reject(superseded);
      if (running) this.worker.postMessage({ cancel: running.id });
      this.slots.set(slot, running ? { running, waiting: job } : { running: job });
      if (!running) this.send(job);
    });
  }

  send(job) {
    this.jobs.set(job.id, job);
    this.worker.postMessage({ id: job.id, call: job.call, args: job.args });
  }

  answer({ id, result, error, progress }) {
    const job = this.jobs.get(id);
    if (!job) return;
    if (progress) return void job.onProgress?.(progress);
    this.jobs.delete(id);
    const { waiting } = this.slots.get(job.slot) ?? {};
    if (waiting) {
      this.slots.set(job.slot, { running: waiting });
      this.send(waiting);
    } else this.slots.delete(job.slot);
    if (error) job.reject(new LiveError(error.name, error.message));
    else job.resolve(result);
  }

  /** Stop what runs and what waits; the model stays loaded. */
  cancel() {
    for (const [slot, { running, waiting }] of this.slots) {
      const stopped = new LiveError("Cancelled", "This was stopped.");
      for (const job of [running, waiting]) job?.reject(stopped);
      this.worker.postMessage({ cancel: running.id });
      this.slots.set(slot, { running });
    }
  }

  /** End the worker; load() starts a new one. */
  terminate() {
    this.stop(new LiveError("Cancelled", "The model was unloaded."));
  }

  stop(error) {
    this.worker?.terminate();
    for (const { running, waiting } of this.slots.values()) {
      for (const job of [running, waiting]) job?.reject(error);
    }
    Object.assign(this, { worker: null, jobs: new Map(), slots: new Map() });
  }
}
