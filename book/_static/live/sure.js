// How sure a reader was of each guess, kept in this browser: {name: {sure: 0.7, right: true}}.
const STORE = "attention-step-by-step.sure";
const GROUPS = [[0, 0.55], [0.55, 0.75], [0.75, 0.95], [0.95, 1.001]];   // as in exercises/guesses.py

export function recall() {
  try { return JSON.parse(localStorage.getItem(STORE)) ?? {}; } catch { return {}; }
}
export function keep(name, entry) {
  const all = recall();
  if (entry === null) delete all[name]; else all[name] = entry;
  try { localStorage.setItem(STORE, JSON.stringify(all)); } catch { /* private window: nothing is kept */ }
}
export function forget() {
  try { localStorage.removeItem(STORE); } catch { /* nothing was kept */ }
}

const mean = (numbers) => numbers.reduce((a, b) => a + b, 0) / numbers.length;
const percent = (share) => `${Math.round(100 * share)} %`;

// The shares that `right` of n does not rule out: a 95 % interval (Wilson 1927).
export function wilson(right, n, z = 1.96) {
  const middle = (right + z * z / 2) / (n + z * z), half = z / (n + z * z) * Math.sqrt(right * (n - right) / n + z * z / 4);
  return [Math.max(0, middle - half), Math.min(1, middle + half)];
}

// {n, sure, hits, brier, groups: [{sure, hits, n, low, high}]}, or null where nothing is kept.
export function calibration() {
  const all = Object.values(recall()).filter((one) => typeof one?.sure === "number" && typeof one.right === "boolean");
  if (!all.length) return null;
  const groups = GROUPS.map(([low, high]) => all.filter((one) => one.sure >= low && one.sure < high)).filter((held) => held.length).map((held) => {
    const right = held.filter((one) => one.right).length, [low, high] = wilson(right, held.length);
    return { sure: mean(held.map((one) => one.sure)), hits: right / held.length, n: held.length, low, high };
  });
  return { n: all.length, sure: mean(all.map((one) => one.sure)), hits: mean(all.map((one) => Number(one.right))),
    brier: mean(all.map((one) => (one.sure - one.right) ** 2)), groups };
}

// In words: "You were 78 % sure of your 7 guesses on average, and 71 % were right."
export function inWords(found) {
  if (found.n === 1) return `You were ${percent(found.sure)} sure of your 1 guess, and it was ${found.hits ? "right" : "wrong"}.`;
  return `You were ${percent(found.sure)} sure of your ${found.n} guesses on average, and ${percent(found.hits)} were right.`;
}
export { percent };
