// What stands first among the results: what bears the name, then the chapters, the earliest first, since
// it's there that a thing is explained; solutions, labs and the API come last. A score is [docname, title, anchor, description, score, file].
var Scorer = {
  score: ([page, , anchor, , score]) => {
    const chapter = page.match(/^book\/(\d\d)_/);
    if (chapter) return score + 14 + (anchor ? 4 : 0) - 0.1 * Number(chapter[1]);
    if (/^book\/(solutions|labs)\//.test(page)) return score - 12;
    return score + ({ "book/api": -10, "book/glossary": 2, "book/errata": -4, "book/teaching-guide": -8, "book/references": -8 }[page] ?? 0);
  },
  objNameMatch: 11, objPartialMatch: 6, objPrio: { 0: 15, 1: 5, 2: -5 }, objPrioDefault: 0,
  title: 22, partialTitle: 7, term: 5, partialTerm: 2,
};
