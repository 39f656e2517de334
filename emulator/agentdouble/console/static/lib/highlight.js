// Syntax highlighting: comments, strings, numbers and keywords.

import { h } from "./dom.js";

const LONGEST = 20000; // characters; longer code is not highlighted
const QUOTED = String.raw`"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'`;
const PYTHON = syntax(
  "#.*",
  String.raw`(?:\b[rbfuRBFU]{1,2})?(?:"""[^]*?"""|'''[^]*?'''|${QUOTED})`,
  "and as assert async await break class continue def del elif else except False finally for from global if import in is "
  + "lambda None nonlocal not or pass raise return True try while with yield",
);
const JAVASCRIPT = syntax(
  String.raw`\/\/.*|\/\*[^]*?\*\/`,
  "`(?:\\\\[^]|[^`\\\\])*`|" + QUOTED,
  "async await break case catch class const continue default delete do else export extends false finally for function if "
  + "import in instanceof let new null of return static super switch this throw true try typeof undefined var while yield",
);
const BASH = syntax(
  String.raw`(?<![^\s;&|()])#.*`,
  String.raw`"(?:\\[^]|[^"\\])*"|'[^']*'`,
  "case do done elif else esac exit export fi for function if in local return then until while",
);
const SYNTAXES = /** @type {Record<string, RegExp>} */ ({
  python: PYTHON, python3: PYTHON, javascript: JAVASCRIPT, typescript: JAVASCRIPT, node: JAVASCRIPT, js: JAVASCRIPT,
  bash: BASH, sh: BASH,
});

/** @param {string} comment @param {string} string @param {string} keywords */
function syntax(comment, string, keywords) {
  const words = keywords.replaceAll(" ", "|");
  return new RegExp(String.raw`(?<comment>${comment})|(?<string>${string})|(?<number>\b\d[\w.]*)|(?<keyword>\b(?:${words})\b)`, "g");
}

/** Return code as text and coloured spans. @param {string} source @param {string} language */
export function highlight(source, language) {
  const pattern = SYNTAXES[language];
  if (!pattern || source.length > LONGEST) return [source];
  const nodes = [];
  let end = 0;
  for (const match of source.matchAll(pattern)) {
    const [kind] = Object.entries(match.groups ?? {}).find(([, text]) => text !== undefined) ?? [""];
    nodes.push(source.slice(end, match.index), h("span", { class: kind }, match[0]));
    end = match.index + match[0].length;
  }
  return [...nodes, source.slice(end)];
}
