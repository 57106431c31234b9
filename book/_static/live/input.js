// What is unusual about a typed sentence, told from the words of the training captions: nouns without
// their capital, "ae" for "ä", the other language, several sentences at once, words never met.

const WORD = /\p{L}+/gu;
const UMLAUTS = { ae: "ä", oe: "ö", ue: "ü", ss: "ß" };
const SMALL = {
  de: new Set("der die das den dem ein eine einen einem einer und ist sind nicht ich du er wir ihr mit auf im zu von".split(" ")),
  en: new Set("the a an of and is are with on at to this that it i you he she we they my your hello".split(" ")),
};
const END = /\p{L}{3}[.!?]+["”“’]*\s+$/u;  // "z. B." ends no sentence
const MOST = 3;  // words that a sentence of ours names

const large = (word) => word[0].toUpperCase() + word.slice(1);
const quoted = (words, and = "and") => {
  const some = words.slice(0, MOST).map((word) => `“${word}”`);
  return some.length > 1 ? `${some.slice(0, -1).join(", ")} ${and} ${some.at(-1)}` : some[0];
};

export class Words {
  // {de: "Hund laufen ...", en: "..."}: as written in German, all small in English.
  constructor({ de, en }) {
    this.de = new Set(de.split(" "));
    this.en = new Set(en.split(" "));
    this.small = new Set([...this.de].map((word) => word.toLowerCase()));
  }

  // "de", "en", or null where it can't be said. Small words count, also those that the other
  // language's captions hold in a name ("The Home Depot").
  language(text) {
    const words = (text.match(WORD) ?? []).map((word) => word.toLowerCase());
    const only = (mine, others, small, otherSmall) => words.filter((word) => small.has(word)
      || (mine.has(word) && !others.has(word) && !otherSmall.has(word))).length;
    const [de, en] = [only(this.small, this.en, SMALL.de, SMALL.en), only(this.en, this.small, SMALL.en, SMALL.de)];
    if (en > 2 * de && en >= words.length / 3) return "en";
    return de > 2 * en && de >= words.length / 3 ? "de" : null;
  }

  // Words that both languages' captions hold, none of them spelt as in German ("dog", of "Hot Dog"); else null.
  perhapsEnglish(text) {
    const given = text.match(WORD) ?? [], both = given.every((word) => this.en.has(word.toLowerCase()) && !this.de.has(word));
    return given.length && both ? given : null;
  }

  // A German sentence with the capitals and umlauts of the captions. -> {text, changed: [[was, is]], unread}
  spell(text) {
    const loud = !/\p{Ll}/u.test(text) && (text.match(WORD) ?? []).length > 1;
    const changed = [], unread = [], given = [...text.matchAll(WORD)];
    let written = "", end = 0;
    given.forEach((match, i) => {
      const [word] = match, before = text.slice(end, match.index), starts = i === 0 || END.test(text.slice(0, match.index));
      let is = this.de.has(word) || (!loud && this.small.has(word.toLowerCase()) && word === large(word)) ? word   // "Sie", "Rot"
        : this.form(loud ? word.toLowerCase() : word);
      if (!is) {
        unread.push(word);
        is = loud ? large(word.toLowerCase()) : word;
      } else if (this.de.has(large(is)) && is !== large(is) && this.afterArticle(given, i)) is = large(is);
      if (starts) is = large(is);
      if (is !== word) changed.push([word, is]);
      written += before + is;
      end = match.index + word.length;
    });
    return { text: written + text.slice(end), changed, unread, loud };
  }

  // The word as the captions have it, or null.
  form(word) {
    const known = (one) => [one, large(one.toLowerCase()), one.toLowerCase()].find((form) => this.de.has(form));
    const found = known(word);
    if (found) return found;
    const places = [...word.matchAll(/ae|oe|ue|ss/gi)].slice(0, 4);
    for (let chosen = (1 << places.length) - 1; chosen > 0; chosen--) {
      let [spelt, end] = ["", 0];
      places.forEach((place, i) => {
        spelt += word.slice(end, place.index) + (chosen >> i & 1 ? UMLAUTS[place[0].toLowerCase()] : place[0]);
        end = place.index + 2;
      });
      const form = known(spelt + word.slice(end));
      if (form) return form;
    }
    return null;
  }

  // "ein junge springt", "beim essen": a noun, where "eine junge Frau" and "sie essen Suppe" have none.
  afterArticle(given, i) {
    const [before, next] = [given[i - 1]?.[0].toLowerCase(), given[i + 1]?.[0].toLowerCase()];
    const noun = next && this.de.has(large(next)) && !this.de.has(next);
    return /^(ein|einem|einen|der|dem|den|beim|zum|kleine[rn]?|zwei|drei)$/.test(before ?? "") && !noun;
  }

  // Words that no caption of the language held.
  unread(text, language) {
    if (language === "de") return this.spell(text).unread;
    return (text.match(WORD) ?? []).filter((word) => word.length > 1 && !this.en.has(word.toLowerCase()));
  }
}

// The sentences of a text: one ends behind a word of more than two letters, so that "z. B." ends none.
export function sentences(text) {
  return text.split(/(?<=\p{L}{3}[.!?]+["”“’]*)\s+(?=\P{P}*\p{L})/u).map((part) => part.trim()).filter(Boolean);
}

const NAMES = { de: "German", en: "English" };

// What to tell the reader about a text before its translation is judged: {kind, says, offer, text}, or null.
export function advise(text, words, src) {
  const parts = sentences(text), language = words.language(text);
  if (language && language !== src) {
    return { kind: "language", says: `This looks like ${NAMES[language]}, but the model reads ${NAMES[src]}.`,
      offer: `Translate from ${NAMES[language]} instead` };
  }
  if (parts.length > 1) {
    return { kind: "several", says: `These are ${parts.length} sentences, but the model has only seen captions of one sentence, so it runs them together.`, offer: "Translate them one by one" };
  }
  if (src !== "de") return null;
  const english = words.perhapsEnglish(text);
  if (english) {
    return { kind: "language", says: `${quoted(english)} may be English, but the model reads German.`, offer: "Translate from English instead" };
  }
  const spelt = words.spell(text);
  if (2 * spelt.unread.length > text.match(WORD)?.length) return null;   // no German: "Bonjour le monde"
  const first = text.match(WORD)?.[0];   // that a sentence begins small does little harm
  const shown = spelt.changed.filter(([was, is]) => is === large(is) && !(was === first && is === large(was) && !words.de.has(is)));
  if (!shown.length && !spelt.loud) shown.push(...spelt.changed.filter(([was, is]) => is.toLowerCase() !== was.toLowerCase()));
  if (!shown.length) return null;
  const capitals = shown.every(([was, is]) => was.toLowerCase() === is.toLowerCase());
  const why = spelt.loud ? "It has read hardly anything in capitals" : capitals ? "German nouns begin with a capital" : "The captions spell it differently";
  return { kind: "spelling", text: spelt.text, offer: "Use that spelling",
    says: `${why}: it has read ${quoted(shown.map(([, is]) => is))}, not ${quoted(shown.map(([was]) => was), "or")}.` };
}

// One plain sentence about what it never met, or null. Of the training captions none is a single word, and
// hardly one is a question.
export function neverRead(text, words, src) {
  const unread = [...new Set(words.unread(text, src))], length = (text.match(WORD) ?? []).length;
  if (unread.length) return `It has never read ${quoted(unread, "or")}${unread.length > MOST ? ` (and ${unread.length - MOST} more)` : ""}.`;
  if (length === 1) return "It has never read a text of only one word.";
  if (!length) return "It has hardly ever read a text without words.";
  return /\?["”“’]*\s*$/.test(text) ? "It has hardly ever read a question." : null;
}

let loading = null;
export function loadWords() {
  loading ??= fetch(new URL("words.json", import.meta.url)).then((answer) => {
    if (!answer.ok) throw new Error(`words.json: ${answer.status}`);
    return answer.json();
  }).then((json) => new Words(json)).catch((error) => { loading = null; throw error; });
  return loading;
}
