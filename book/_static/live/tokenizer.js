// Text to ids and back, as the `tokenizers` library does (chapter "Tokens and embeddings").

export const [PAD, BOS, EOS, UNK] = [0, 1, 2, 3];
const SPACE = "▁"; // stands for the space in front of a word

export class Tokenizer {
  /** kind: "bpe" or "word"; tokens: texts in the order of their ids; merges: pairs of ids, flat,
   *  in the order in which they were learned. */
  constructor({ kind, tokens, merges }) {
    this.kind = kind;
    this.tokens = tokens;
    this.ids = new Map(tokens.map((token, id) => [token, id]));
    this.ranks = new Map(); // "left right" -> [rank, merged id]
    for (let i = 0; i < merges.length; i += 2) {
      const [left, right] = [merges[i], merges[i + 1]];
      this.ranks.set(`${left} ${right}`, [i, this.ids.get(tokens[left] + tokens[right])]);
    }
    this.known = new Map(); // words met before: word -> ids
  }

  /** The ids of a text, <eos> at the end, as encode_source gives them. */
  encode(text) {
    return [...this.words(text).flatMap((word) => this.encodeWord(word)), EOS];
  }

  /** Words with their leading space as "▁"; what is no letter, digit or mark stands alone. */
  words(text) {
    const spaced = text.normalize("NFC").replaceAll(" ", SPACE);
    if (!spaced) return [];
    const marked = spaced.startsWith(SPACE) ? spaced : SPACE + spaced;
    return marked
      .split(/(?=▁)/u)
      .flatMap((word) => word.split(/([^\p{Alphabetic}\p{M}\p{Nd}\p{Pc}▁])/u))
      .filter((word) => word);
  }

  /** Byte-pair encoding: join the pair that was learned first, until no known pair is left. */
  encodeWord(word) {
    if (this.kind === "word") return [this.ids.get(word) ?? UNK];
    if (this.known.has(word)) return this.known.get(word);
    const ids = [...word].map((character) => this.ids.get(character) ?? UNK);
    while (ids.length > 1) {
      let [best, at, merged] = [Infinity, -1, -1];
      for (let i = 0; i + 1 < ids.length; i++) {
        const [rank, id] = this.ranks.get(`${ids[i]} ${ids[i + 1]}`) ?? [Infinity, -1];
        if (rank < best) [best, at, merged] = [rank, i, id];
      }
      if (at < 0) break;
      ids.splice(at, 2, merged);
    }
    this.known.set(word, ids);
    return ids;
  }

  /** Ids -> text: special tokens are left out, "▁" becomes a space except in the first piece. */
  decode(ids) {
    const pieces = ids.filter((id) => id > UNK).map((id) => this.tokens[id]);
    return pieces.map((piece, i) => piece.replaceAll(SPACE, i ? " " : "")).join("");
  }
}
