// The file that tools/export_live.py writes: read, check, and undo the rounding.

import { require } from "./errors.js";
import { checksum } from "./sha256.js";

const VERSION = 1;
const START = 48; // bytes before the header: magic word, version, length, SHA-256

/** ArrayBuffer -> {header, tensors: {name: {data: Float32Array, shape}}}; or LiveError. */
export async function readModelFile(buffer) {
  const bytes = new Uint8Array(buffer);
  const text = (from, to) => new TextDecoder().decode(bytes.subarray(from, to));
  const ours = text(0, 8) === "BOOKLIVE" && bytes.length > START;
  require(ours, "This isn't a model for the page: export a run with export_live.", "NotAModel");
  const [version, length] = new Uint32Array(buffer, 8, 2);
  const other = `This file has format ${version}, but the page reads ${VERSION}: export it again.`;
  require(version === VERSION, other, "OtherVersion");
  const [told, found] = [bytes.subarray(16, START), await checksum(bytes.subarray(START))];
  const whole = found.every((byte, i) => byte === told[i]);
  require(whole, "The model's file is damaged: its checksum is wrong. Load it again.", "Damaged");
  const header = JSON.parse(text(START, START + length));
  const tensors = {};
  for (const entry of header.tensors) tensors[entry.name] = read(buffer, START + length, entry);
  return { header, tensors };
}

/** One tensor of the table. A matrix holds int8 numbers and one scale a row; a vector float32. */
function read(buffer, start, { shape, offset, scales }) {
  const count = shape.reduce((product, size) => product * size, 1);
  if (scales === undefined) return { shape, data: new Float32Array(buffer, start + offset, count) };
  const rounded = new Int8Array(buffer, start + offset, count); // (rows, columns)
  const scale = new Float32Array(buffer, start + scales, shape[0]); // (rows)
  const data = new Float32Array(count);
  for (let i = 0; i < count; i++) data[i] = rounded[i] * scale[Math.floor(i / shape[1])];
  return { shape, data };
}
