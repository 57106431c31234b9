// The model's own thread, so that the page never waits. Messages in: {id, call, args} or {cancel};
// out: {id, result}, {id, error: {name, message}} or {id, progress}.

import { LiveError, require } from "./errors.js";
import { Inside } from "./inside.js";

let inside = null;
const cancelled = new Set();

const calls = {
  async load({ id, source }) {
    inside = await Inside.open(await bytesOf(source, (progress) => postMessage({ id, progress })));
    return inside.info();
  },
  headScan({ id }, text, options) {
    return inside.headScan(text, options, () => breathe(id));
  },
};

/** A File, an ArrayBuffer or an address -> ArrayBuffer. */
async function bytesOf(source, report) {
  if (source instanceof ArrayBuffer) return source;
  if (source instanceof Blob) return source.arrayBuffer();
  let response;
  try {
    response = await fetch(source);
  } catch {
    throw missing(source);
  }
  if (!response.ok) throw missing(source);
  const total = Number(response.headers.get("content-length")) || 0;
  const parts = [];
  let loaded = 0;
  const reader = response.body.getReader();
  for (;;) {
    const { done, value } = await reader.read().catch(() => { throw missing(source); });
    if (done) break;
    parts.push(value);
    loaded += value.length;
    report({ loaded, total: Math.max(total, loaded) });
  }
  return new Blob(parts).arrayBuffer();
}

function missing(source) {
  const message = `The model could not be loaded from ${source}. Check the connection and try again.`;
  return new LiveError("WeightsMissing", message);
}

/** Let other messages in between two steps of a long call. */
async function breathe(id) {
  await new Promise((resolve) => setTimeout(resolve));
  if (cancelled.has(id)) throw new LiveError("Cancelled", "This was stopped.");
}

onmessage = async ({ data: { id, call, args = [], cancel } }) => {
  if (cancel !== undefined) return void cancelled.add(cancel);
  try {
    require(call === "load" || inside, "The model is not loaded: call load() first.", "NotLoaded");
    const own = calls[call];
    const result = await (own ? own({ id, source: args[0] }, ...args) : inside[call](...args));
    postMessage({ id, result });
  } catch (error) {
    postMessage({ id, error: { name: error.name, message: error.message } });
  } finally {
    cancelled.delete(id);
  }
};
