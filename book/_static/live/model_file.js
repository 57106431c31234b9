// The file that tools/export_live.py writes: read, check, and undo the rounding.

const MAGIC = "BOOKLIVE";
const VERSION = 1;
const START = 48; // bytes before the header: magic word, version, length, SHA-256

/** An error with a name for programs and a sentence for people. */
export class LiveError extends Error {
  constructor(name, message) {
    super(message);
    this.name = name;
  }
}

/** ArrayBuffer -> {header, tensors: {name: {data: Float32Array, shape}}}; LiveError when damaged. */
export async function readModelFile(buffer) {
  const bytes = new Uint8Array(buffer);
  if (new TextDecoder().decode(bytes.subarray(0, 8)) !== MAGIC) {
    throw new LiveError("NotAModel", "This file is no model for the page: export a run with tools/export_live.py.");
  }
  const start = new DataView(buffer, 8);
  if (start.getUint32(0, true) !== VERSION) {
    throw new LiveError("OtherVersion", `This file has format ${start.getUint32(0, true)}, the page reads ${VERSION}: export the run again.`);
  }
  const told = bytes.subarray(16, START);
  const found = await sha256(bytes.subarray(START));
  if (found.some((byte, i) => byte !== told[i])) {
    throw new LiveError("Damaged", "The model's file is damaged: its checksum does not fit. Load it again.");
  }
  const dataStart = START + start.getUint32(4, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(START, dataStart)));
  const tensors = {};
  for (const entry of header.tensors) tensors[entry.name] = dequantise(buffer, dataStart, entry);
  return { header, tensors };
}

/** One tensor of the table. A matrix holds int8 numbers and one scale a row; a vector float32. */
function dequantise(buffer, dataStart, { shape, offset, scales }) {
  const count = shape.reduce((product, size) => product * size, 1);
  if (scales === undefined) return { shape, data: new Float32Array(buffer, dataStart + offset, count) };
  const [rows, columns] = shape;
  const rounded = new Int8Array(buffer, dataStart + offset, count); // (rows, columns)
  const scale = new Float32Array(buffer, dataStart + scales, rows); // (rows,)
  const data = new Float32Array(count);
  for (let row = 0; row < rows; row++) {
    for (let i = row * columns; i < (row + 1) * columns; i++) data[i] = rounded[i] * scale[row];
  }
  return { shape, data };
}

/** SHA-256 of bytes. Browsers compute it themselves on https and on this machine only. */
async function sha256(bytes) {
  if (globalThis.crypto?.subtle) return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  const { sha256: slow } = await import("./sha256.js");
  return slow(bytes);
}
