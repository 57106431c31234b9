// Numbers in rows. Activations are arrays of rows, one Float32Array for each token; a weight is
// {data: Float32Array, shape: [outputs, inputs]}, as torch.nn.Linear keeps it.

/** x W^T + b: every output is a dot product of a row with a row of the weight. */
export function linear(rows, weight, bias) {
  const [outputs, inputs] = weight.shape;
  const w = weight.data;
  const results = rows.map(() => new Float32Array(outputs));
  const whole = outputs - (outputs % 4);
  // Four outputs at a time share each number that is read from the row.
  for (let o = 0; o < whole; o += 4) {
    const [a, b, c, d] = [o * inputs, (o + 1) * inputs, (o + 2) * inputs, (o + 3) * inputs];
    for (let t = 0; t < rows.length; t++) {
      const [x, y] = [rows[t], results[t]];
      let [s0, s1, s2, s3] = [0, 0, 0, 0];
      for (let i = 0; i < inputs; i++) {
        const xi = x[i];
        s0 += xi * w[a + i];
        s1 += xi * w[b + i];
        s2 += xi * w[c + i];
        s3 += xi * w[d + i];
      }
      [y[o], y[o + 1], y[o + 2], y[o + 3]] = [s0, s1, s2, s3];
    }
  }
  for (let o = whole; o < outputs; o++) {
    const row = w.subarray(o * inputs, (o + 1) * inputs);
    rows.forEach((x, t) => (results[t][o] = dot(x, row)));
  }
  return bias ? results.map((row) => add(row, bias.data)) : results; // (T, inputs) -> (T, outputs)
}

/** a . b */
export function dot(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
}

/** a + b, number by number. */
export function add(a, b) {
  return a.map((value, i) => value + b[i]);
}

/** The sum of the rows, each times its weight: (T), (T, K) -> (K). */
export function weightedSum(weights, rows) {
  const sum = new Float32Array(rows[0].length);
  for (let t = 0; t < rows.length; t++) {
    for (let i = 0; i < sum.length; i++) sum[i] += weights[t] * rows[t][i];
  }
  return sum;
}

/** Positive numbers that sum to 1 (chapter "Scaled dot-product attention"). */
export function softmax(scores) {
  const total = logSumExp(scores);
  if (Number.isNaN(total)) return scores.map(() => 0); // nothing may be attended to
  return scores.map((score) => Math.exp(score - total));
}

/** log(sum(exp(x))); the largest is taken off first, or exp overflows (same chapter). */
export function logSumExp(x) {
  let [largest, sum] = [-Infinity, 0];
  for (let i = 0; i < x.length; i++) if (x[i] > largest) largest = x[i];
  for (let i = 0; i < x.length; i++) sum += Math.exp(x[i] - largest);
  return largest + Math.log(sum);
}

/** The indices of the k largest numbers, largest first; of equals, the first first. */
export function topK(x, k) {
  const best = [];
  for (let i = 0; i < x.length; i++) {
    if (best.length === k && !(x[i] > x[best[k - 1]])) continue;
    let place = best.length;
    while (place > 0 && x[i] > x[best[place - 1]]) place--;
    best.splice(place, 0, i);
    if (best.length > k) best.pop();
  }
  return best;
}

/** Shift to mean 0, scale to variance 1, then gain and bias (chapter "Normalisation"). */
export function layerNorm(row, weight, bias, eps) {
  const mean = row.reduce((a, b) => a + b, 0) / row.length;
  const variance = row.reduce((sum, value) => sum + (value - mean) ** 2, 0) / row.length;
  const scale = 1 / Math.sqrt(variance + eps);
  return row.map((value, i) => (value - mean) * scale * weight[i] + bias[i]);
}

/** Divide by the root mean square: no mean, no bias. Chapter "Normalisation". */
export function rmsNorm(row, weight, bias, eps) {
  const scale = 1 / Math.sqrt(dot(row, row) / row.length + eps);
  return row.map((value, i) => value * scale * weight[i]);
}

/** The bends of the feed-forward network. Chapter "Feed-forward and residuals". */
export const relu = (x) => Math.max(0, x);
export const silu = (x) => x / (1 + Math.exp(-x));
export const gelu = (x) => (x * (1 + erf(x / Math.SQRT2))) / 2;
export const gelu_tanh = (x) => x / (1 + Math.exp(-1.5957691216 * (x + 0.044715 * x ** 3)));

/** The error function to 1.5e-7 (Abramowitz and Stegun 1964, 7.1.26). */
function erf(x) {
  const t = 1 / (1 + 0.3275911 * Math.abs(x));
  const powers = [0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429];
  const tail = powers.reduceRight((sum, factor) => (sum + factor) * t, 0) * Math.exp(-x * x);
  return Math.sign(x) * (1 - tail);
}

/** Positions as sines and cosines: (maxLen, D) (chapter "Positional encodings"). */
export function sinusoidalTable(maxLen, dModel) {
  const data = new Float32Array(maxLen * dModel);
  for (let p = 0; p < maxLen; p++) {
    for (let i = 0; i < dModel; i += 2) {
      const angle = p * Math.exp((-i * Math.log(10000)) / dModel);
      data.set([Math.sin(angle), Math.cos(angle)], p * dModel + i);
    }
  }
  return { data, shape: [maxLen, dModel] };
}

/** Turn each pair of features by position * frequency: (K) -> (K) (same chapter). */
export function rotate(row, position, base) {
  const turned = new Float32Array(row.length);
  for (let i = 0; i < row.length; i += 2) {
    const angle = position * base ** (-i / row.length);
    const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
    turned.set([row[i] * cos - row[i + 1] * sin, row[i] * sin + row[i + 1] * cos], i);
  }
  return turned;
}
