// The long loops of the page's tensor library (exercises/page/lib/torch/_fast.py), which asks for
// them where there are many numbers. Arguments are views of Python's own memory: nothing is copied.
const TYPES = { f: "f32", d: "f64", B: "u8", I: "u32", i: "i32" };

// Call `work` with typed arrays for the buffers among [buffer, its type code].
function within(pairs, work) {
  const held = pairs.map(([buffer, code]) => buffer.getBuffer(TYPES[code]));
  try {
    return work(...held.map((one) => one.data));
  } finally {
    held.forEach((one) => one.release());
  }
}

const BINARY = {
  add: (a, b) => a + b, sub: (a, b) => a - b, mul: (a, b) => a * b, div: (a, b) => a / b,
  pow: (a, b) => a ** b,
  maximum: (a, b) => (a !== a || a > b ? a : b), minimum: (a, b) => (a !== a || a < b ? a : b),
  eq: (a, b) => +(a === b), ne: (a, b) => +(a !== b), lt: (a, b) => +(a < b),
  le: (a, b) => +(a <= b), gt: (a, b) => +(a > b), ge: (a, b) => +(a >= b),
};
const UNARY = {
  exp: Math.exp, log: Math.log, sqrt: Math.sqrt, rsqrt: (x) => 1 / Math.sqrt(x), abs: Math.abs,
  neg: (x) => -x, reciprocal: (x) => 1 / x, sin: Math.sin, cos: Math.cos, tanh: Math.tanh,
  relu: (x) => (x > 0 || x !== x ? x : 0), sigmoid: (x) => 1 / (1 + Math.exp(-x)),
};
// A loop for each operation, so that the browser can compile it well.
const loops = new Map();
function made(key, name, body) {
  if (!loops.has(key)) loops.set(key, new Function("f", `return ${body}`)({ ...BINARY, ...UNARY }[name]));
  return loops.get(key);
}
const PAIRS = "(a, b, out) => { for (let i = 0; i < out.length; i++) out[i] = f(a[i], b[i]); }";
const LEFT = "(a, b, out) => { for (let i = 0; i < out.length; i++) out[i] = f(a, b[i]); }";
const RIGHT = "(a, b, out) => { for (let i = 0; i < out.length; i++) out[i] = f(a[i], b); }";
const EACH = "(a, out) => { for (let i = 0; i < out.length; i++) out[i] = f(a[i]); }";

function summed(from, to, length, inner) {
  const total = new Float64Array(to.length);
  for (let i = 0, p = 0; i < to.length; i += inner) {
    for (let j = 0; j < length; j++) for (let c = i; c < i + inner; c++, p++) total[c] += from[p];
  }
  to.set(total);
}

export const kernels = {
  binary(name, a, b, code, out, outCode) {
    within([[a, code], [b, code], [out, outCode]], (x, y, z) => made(`${name} pairs`, name, PAIRS)(x, y, z));
  },
  binary_left(name, a, b, code, out, outCode) {
    within([[b, code], [out, outCode]], (y, z) => made(`${name} left`, name, LEFT)(a, y, z));
  },
  binary_right(name, a, b, code, out, outCode) {
    within([[a, code], [out, outCode]], (x, z) => made(`${name} right`, name, RIGHT)(x, b, z));
  },
  unary(name, a, out, code) {
    within([[a, code], [out, code]], (x, y) => made(`${name} each`, name, EACH)(x, y));
  },
  // The numbers of a view in its order.
  copy(source, out, code, shape, strides, offset) {
    within([[source, code], [out, code], [shape, "i"], [strides, "i"]], (from, to, sizes, steps) => {
      const last = sizes.length - 1, at = new Int32Array(sizes.length);
      let place = offset, n = 0;
      while (n < to.length) {
        for (let j = 0, p = place; j < sizes[last]; j++, p += steps[last]) to[n++] = from[p];
        let i = last - 1;
        for (; i >= 0; i--) {
          place += steps[i];
          if (++at[i] < sizes[i]) break;
          place -= steps[i] * sizes[i];
          at[i] = 0;
        }
        if (i < 0) break;
      }
    });
  },
  convert(source, code, out, outCode) {
    within([[source, code], [out, outCode]], (from, to) => to.set(from));
  },
  // Sums over the middle one of three axes, (outer, length, inner).
  sums(source, out, code, length, inner) {
    within([[source, code], [out, code]], (from, to) => summed(from, to, length, inner));
  },
  // The same of squared distances from the means over that axis.
  squares(source, out, code, length, inner) {
    within([[source, code], [out, code]], (from, to) => {
      const means = new Float64Array(to.length);
      summed(from, means, length, inner);
      for (let i = 0; i < means.length; i++) means[i] /= length;
      const total = new Float64Array(to.length);
      for (let i = 0, p = 0; i < to.length; i += inner) {
        for (let j = 0; j < length; j++) {
          for (let c = i; c < i + inner; c++, p++) {
            const apart = from[p] - means[c];
            total[c] += apart * apart;
          }
        }
      }
      to.set(total);
    });
  },
  product(a, b, out, code, batch, n, k, m) {
    within([[a, code], [b, code], [out, code]], (left, right, to) => {
      const column = new Float64Array(m);
      for (let i = 0; i < batch * n; i++) {
        const base = Math.floor(i / n) * k * m;
        column.fill(0);
        for (let j = 0; j < k; j++) {
          const x = left[i * k + j];
          for (let c = 0, p = base + j * m; c < m; c++, p++) column[c] += x * right[p];
        }
        to.set(column, i * m);
      }
    });
  },
  uniforms(words, out, code, mask, unit) {
    within([[words, "I"], [out, code]], (from, to) => {
      for (let i = 0; i < to.length; i++) to[i] = ((from[i] & mask) >>> 0) * unit;
    });
  },
  // Box and Muller's normal numbers in place of uniform ones, in whole blocks of 16.
  pairs(numbers, code) {
    within([[numbers, code]], (x) => {
      for (let start = 0; start + 16 <= x.length; start += 16) {
        for (let j = start; j < start + 8; j++) {
          const radius = Math.sqrt(-2 * Math.log(1 - x[j])), angle = 2 * Math.PI * x[j + 8];
          x[j] = radius * Math.cos(angle);
          x[j + 8] = radius * Math.sin(angle);
        }
      }
    });
  },
};
kernels.binary_names = Object.keys(BINARY).join(" ");
kernels.unary_names = Object.keys(UNARY).join(" ");
