// Command lines: splitting one into words, and quoting a word.

const WORD = /(?:[^\s"'\\]|\\[\s\S]|"(?:[^"\\]|\\[\s\S])*"|'[^']*')+/g;
const PART = /\\([\s\S])|"((?:[^"\\]|\\[\s\S])*)"|'([^']*)'/g;

/** Split a command line into words by a shell's rules for quotes. Throws if a quote is not closed.
 * @param {string} line @returns {string[]} */
export function wordsOf(line) {
  if (line.replace(WORD, "").trim()) throw new Error("The command has an unclosed quote or a trailing backslash.");
  return (line.match(WORD) ?? []).map((word) => word.replace(PART, (_, escaped, quotes, single) =>
    escaped ?? single ?? quotes.replace(/\\(["\\$`])/g, "$1")));
}

/** Quote a word for a shell, if it needs quotes. @param {string} value */
export const quoted = (value) => (/^[\w@%+=:,./-]+$/.test(value) ? value : `'${value.replaceAll("'", "'\\''")}'`);
