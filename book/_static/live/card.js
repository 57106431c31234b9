// A picture of one translation to pass on: both sentences, the lines of attention between their pieces,
// and what was switched off. 1200 x 630 pixels, as social sites show cards.
import { plain, sides, unescaped } from "./shared.js";

const [W, H] = [1200, 630];
const role = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--role-${name}`).trim();

// {result, weights (rows x columns), switches: in words, lang: [source, target]} -> Blob of a PNG
export async function drawCard({ result, weights, switches, lang }) {
  await document.fonts?.ready;
  const ROLE = { key: role("key"), query: role("query") };
  const canvas = Object.assign(document.createElement("canvas"), { width: W, height: H }), c = canvas.getContext("2d");
  c.fillStyle = "#fffefb";
  c.fillRect(0, 0, W, H);
  const { queries, keys } = sides(result, "cross");
  const shown = (pieces) => pieces.map((piece, i) => [plain(piece), i]).filter((_, i) => pieces[i] !== "<eos>");
  const [above, below] = [place(c, shown(keys), 120), place(c, shown(queries), 400)];
  for (const [j, b] of below) for (const [k, a] of above) {
    const w = weights[j * keys.length + k];
    if (w < 0.05) continue;
    const ink = c.createLinearGradient(0, a.y, 0, b.y);
    ink.addColorStop(0, ROLE.key);
    ink.addColorStop(1, ROLE.query);
    Object.assign(c, { strokeStyle: ink, lineWidth: 1 + 14 * w, globalAlpha: 0.35 + 0.6 * w, lineCap: "round" });
    c.beginPath();
    c.moveTo(a.x, a.y + 56);
    c.bezierCurveTo(a.x, a.y + 170, b.x, b.y - 120, b.x, b.y);
    c.stroke();
  }
  c.globalAlpha = 1;
  boxes(c, above, ROLE.key);
  boxes(c, below, ROLE.query);
  c.textAlign = "center";
  c.fillStyle = "#56616d";
  c.font = "600 24px Inter, system-ui, sans-serif";
  c.fillText(switches ? `Without ${switches}:` : `${lang[0]} to ${lang[1]}, by a Transformer in the browser`, W / 2, 70);
  c.fillStyle = "#20262d";
  c.font = "650 38px Inter, system-ui, sans-serif";
  fit(c, unescaped(result.text), W - 120, H - 90);
  c.fillStyle = "#56616d";
  c.font = "500 20px Inter, system-ui, sans-serif";
  c.fillText("Attention, Step by Step", W / 2, H - 36);
  return new Promise((resolve) => { canvas.toBlob(resolve, "image/png"); });
}

// Boxes of a row, centred, in letters as large as fit: index -> {x, y, w, text}
function place(c, words, y) {
  for (let size = 30; ; size -= 2) {
    c.font = `560 ${size}px Inter, system-ui, sans-serif`;
    const widths = words.map(([text]) => c.measureText(text).width + size), gap = size / 2;
    const total = widths.reduce((a, b) => a + b, 0) + gap * (words.length - 1);
    if (total > W - 60 && size > 10) continue;
    let x = (W - total) / 2;
    return new Map(words.map(([text, i], n) => {
      const box = { x: x + widths[n] / 2, y, w: widths[n], text, size };
      x += widths[n] + gap;
      return [i, box];
    }));
  }
}
function boxes(c, row, colour) {
  for (const { x, y, w, text, size } of row.values()) {
    c.beginPath();
    c.roundRect(x - w / 2, y, w, 56, 14);
    c.fillStyle = "#fffefb";
    c.fill();
    c.fillStyle = colour + "22";
    c.fill();
    Object.assign(c, { strokeStyle: colour, lineWidth: 2.5 });
    c.stroke();
    Object.assign(c, { fillStyle: "#20262d", textAlign: "center", font: `560 ${size}px Inter, system-ui, sans-serif` });
    c.fillText(text, x, y + 28 + size * 0.35);
  }
}
function fit(c, text, width, y) {
  let size = 38;
  while (size > 16 && c.measureText(text).width > width) c.font = `650 ${(size -= 2)}px Inter, system-ui, sans-serif`;
  c.fillText(text, W / 2, y);
}
