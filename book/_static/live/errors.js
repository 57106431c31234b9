/** An error with a name for programs and a sentence for people. */
export class LiveError extends Error {
  constructor(name, message) {
    super(message);
    this.name = name;
  }
}

/** Throw unless it fits: what was given, what was expected. */
export function require(fits, message, name = "BadOption") {
  if (!fits) throw new LiveError(name, message);
}
