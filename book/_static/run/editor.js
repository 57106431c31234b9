// The box in which a reader writes Python: CodeMirror with the page's own colours.
import {
  EditorState, EditorView, HighlightStyle, LanguageSupport, bracketMatching, defaultKeymap,
  drawSelection, history, historyKeymap, indentOnInput, indentUnit, indentWithTab, keymap,
  lineNumbers, pythonLanguage, syntaxHighlighting, tags,
} from "../../vendor/codemirror/codemirror.js";

// The classes of the book's printed code, so that both look alike, in light and in dark.
const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.controlKeyword, tags.definitionKeyword, tags.moduleKeyword], class: "k" },
  { tag: [tags.bool, tags.null], class: "kc" },
  { tag: tags.operatorKeyword, class: "ow" },
  { tag: [tags.operator, tags.arithmeticOperator, tags.compareOperator], class: "o" },
  { tag: tags.function(tags.definition(tags.variableName)), class: "nf" },
  { tag: tags.number, class: "mi" },
  { tag: tags.string, class: "s1" },
  { tag: tags.comment, class: "c1" },
]);
const looks = EditorView.theme({
  "&": { backgroundColor: "transparent", color: "inherit", fontSize: "inherit" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--pst-font-family-monospace)", lineHeight: "1.55", overflow: "auto" },
  ".cm-content": { padding: "0.65rem 0", caretColor: "var(--pst-color-text-base)" },
  ".cm-line": { padding: "0 1rem 0 0.6rem" },
  ".cm-gutters": { backgroundColor: "transparent", border: "0", color: "var(--pst-color-text-muted)", paddingLeft: "0.4rem" },
  ".cm-cursor": { borderLeftColor: "var(--pst-color-text-base)", borderLeftWidth: "2px" },
  ".cm-selectionBackground, &.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground":
    { backgroundColor: "color-mix(in srgb, var(--pst-color-primary) 28%, transparent)" },
  ".cm-matchingBracket": { backgroundColor: "var(--tint)", outline: "1px solid var(--pst-color-border)" },
});

// An editor in `parent`. changed(text) is called at each change, run() at Ctrl+Enter or Shift+Enter.
export function makeEditor(parent, text, label, changed, run) {
  const go = () => { run(); return true; };
  const view = new EditorView({
    parent,
    state: EditorState.create({
      doc: text,
      extensions: [
        lineNumbers(), history(), drawSelection(), bracketMatching(), indentOnInput(),
        indentUnit.of("    "), EditorState.tabSize.of(4), EditorView.lineWrapping,
        new LanguageSupport(pythonLanguage), syntaxHighlighting(colours), looks,
        keymap.of([
          { key: "Mod-Enter", run: go, preventDefault: true }, { key: "Shift-Enter", run: go, preventDefault: true },
          indentWithTab, ...defaultKeymap, ...historyKeymap,
        ]),
        EditorView.contentAttributes.of({ "aria-label": label, spellcheck: "false", autocapitalize: "off", autocorrect: "off" }),
        EditorView.updateListener.of((update) => { if (update.docChanged) changed(update.state.doc.toString()); }),
      ],
    }),
  });
  return {
    text: () => view.state.doc.toString(),
    set: (to) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: to } }),
    focus: () => view.focus(),
  };
}
