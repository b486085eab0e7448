import type { YAMLError } from "yaml";
import type { ConfigProblem } from "./problems.ts";
import type { Origin } from "./tree.ts";

const mostProblems = 10;

/** What the parser complains of, in our words. One broken bracket can make a thousand complaints: one a line is told. */
export function syntaxProblems(
  errors: readonly YAMLError[],
  text: string,
  placeOf: (offset: number) => Origin,
): ConfigProblem[] {
  const lines = text.split("\n");
  const byLine = new Map<number, ConfigProblem>();
  for (const error of errors) {
    const at = placeOf(error.pos[0]);
    const line = at.from === "file" ? at.line : 0;
    if (!byLine.has(line)) byLine.set(line, syntaxProblem(error, lines[line - 1] ?? "", at));
    if (byLine.size === mostProblems) break;
  }
  return [...byLine.values()];
}

function syntaxProblem({ code, message }: YAMLError, line: string, at: Origin): ConfigProblem {
  if (code === "TAB_AS_INDENT") return problemOfFile(at, "a tab as indentation", "spaces");
  if (code === "MULTIPLE_DOCS") return problemOfFile(at, "a second document", "one document");
  if (code === "RESOURCE_EXHAUSTION") return problemOfFile(at, "brackets nested too deep", "a few levels");
  const inQuotes = /\$\{/.test(line) ? '"${NAME}" in quotes' : null;
  const said = message.replace(/\.$/, "").replace(/^[A-Z](?=[a-z ])/, (letter) => letter.toLowerCase());
  const found = `what is no YAML (${said})`;
  return { at, path: [], found, expected: "valid YAML or JSON", meant: inQuotes };
}

/** A problem of the file as a whole. */
export function problemOfFile(at: Origin, found: string, expected: string): ConfigProblem {
  return { at, path: [], found, expected, meant: null };
}
