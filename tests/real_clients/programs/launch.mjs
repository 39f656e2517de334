// Runs the conversation of a client; the arguments are those of launch.py.

import { readFileSync, writeFileSync } from "node:fs";

const [name, facts, file] = process.argv.slice(2);
const { converse } = await import(`./${name}.mjs`);
const outcome = await converse(JSON.parse(readFileSync(facts, "utf-8")));
writeFileSync(file, JSON.stringify(outcome));
process.exit(0); // a client may keep streams open that it has no way to close
