// The toy tasks (chapter "Toy tasks"): letters in, the same letters out in another order.

import { EOS } from "./tokenizer.js";

export const LETTERS = "abcdefghij";
export const FIRST = 4; // the id of "a", behind <pad>, <bos>, <eos>, <unk>
export const TASKS = {
  copy: (letters) => letters,
  reverse: (letters) => [...letters].reverse(),
  sort: (letters) => [...letters].sort((a, b) => a - b),
};

/** One pair of a task: letters as ids -> {source, target}, <eos> behind both. */
export function pairOf(task, letters) {
  return { source: [...letters, EOS], target: [...TASKS[task](letters), EOS] };
}

/** A batch of random letters, `shortest` to `longest` of them. */
export function drawBatch(task, size, [shortest, longest], random) {
  return Array.from({ length: size }, () => {
    const length = shortest + Math.floor(random() * (longest - shortest + 1));
    const letter = () => FIRST + Math.floor(random() * LETTERS.length);
    return pairOf(task, Array.from({ length }, letter));
  });
}
