import type { Node, Pair, YAMLError } from "yaml";
import { Document, isAlias, isMap, isNode, isScalar, isSeq, LineCounter, parseDocument } from "yaml";
import type { ConfigProblem } from "./problems.ts";
import type { Written } from "./settings/setting.ts";
import type { Origin, ReportedNode, WrittenEntry, WrittenItem, WrittenLeaf, WrittenNode } from "./tree.ts";
import type { Environment } from "./variables.ts";
import { replaceVariables } from "./variables.ts";

export interface ParsedFile {
  /** `null` if the file is empty or cannot be parsed. */
  readonly root: WrittenNode | null;
  readonly problems: readonly ConfigProblem[];
}

const mostCharacters = 1_000_000;

/** Parses a YAML or JSON file and expands variables. Each node keeps its position in the file. */
export function parseConfigText(given: string, file: string, env: Environment): ParsedFile {
  const text = given.replace(/^\ufeff/, "");
  const lines = new LineCounter();
  const placeOf = (offset: number): Origin => {
    const { line, col } = lines.linePos(offset);
    return { from: "file", file, line: Math.max(1, line), column: Math.max(1, col) };
  };
  if (text.length > mostCharacters) {
    const found = `${text.length} characters`;
    return { root: null, problems: [problemOfFile(placeOf(0), found, `at most ${mostCharacters}`)] };
  }
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: false });
  const syntax = syntaxProblems([...document.errors, ...document.warnings], text, placeOf);
  if (syntax.length > 0) return { root: null, problems: syntax };
  const builder = new TreeBuilder(text, placeOf, env);
  const root = document.contents === null ? null : builder.node(document.contents, []);
  return { root, problems: builder.problems };
}

/** Like `parseConfigText`, but for an object in code. */
export function parseConfigObject(config: object, env: Environment): ParsedFile {
  const document = new Document(config, { aliasDuplicateObjects: false });
  const builder = new TreeBuilder("", () => ({ from: "code" }), env);
  const root = isNode(document.contents) ? builder.node(document.contents, []) : null;
  return { root, problems: builder.problems };
}

/** Parses text as a plain YAML scalar, or returns `undefined` if it is not one. */
export function scalarOf(text: string): Written | undefined {
  const document = parseDocument(text, { prettyErrors: false, logLevel: "silent" });
  if (document.errors.length > 0 || document.warnings.length > 0 || !isScalar(document.contents))
    return undefined;
  return asWritten(document.contents.value);
}

/**
 * Returns a configuration file's text with `store` replaced and everything else unchanged, or `null` if `store` is not
 * set.
 */
export function replaceStore(text: string, address: string): string | null {
  const document = parseDocument(text, { prettyErrors: false, logLevel: "silent" });
  const written = isMap(document.contents) ? document.contents.get("store", true) : null;
  if (document.errors.length > 0 || !isScalar(written) || !written.range) return null;
  const [begin, end] = written.range;
  // Every JSON string is also a YAML string.
  return text.slice(0, begin) + JSON.stringify(address) + text.slice(end);
}

class TreeBuilder {
  readonly problems: ConfigProblem[] = [];
  readonly #text: string;
  readonly #placeOf: (offset: number) => Origin;
  readonly #env: Environment;

  constructor(text: string, placeOf: (offset: number) => Origin, env: Environment) {
    this.#text = text;
    this.#placeOf = placeOf;
    this.#env = env;
  }

  node(node: Node, path: readonly string[]): WrittenNode {
    const at = this.#placeOf(node.range?.[0] ?? 0);
    if (isScalar(node)) return this.#leaf(node.value, node.range, at, path);
    if (isMap(node)) return { is: "map", at, entries: this.#entries(node.items, path) };
    if (isSeq(node)) return { is: "list", at, items: this.#items(node.items, path) };
    return this.#reportNode({ at, path, found: foundOf(node), expected: aliasExpected, suggestion: null });
  }

  /**
   * Reads scalars and maps. Other items are marked as misplaced and reported later, when the list is read. This way, a
   * list in the wrong place is reported only once.
   */
  #items(items: readonly unknown[], path: readonly string[]): WrittenItem[] {
    return items.map((item, index) => {
      const node = isNode(item) ? item : null;
      const at = this.#placeOf(node?.range?.[0] ?? 0);
      const within = [...path, String(index)];
      if (isScalar(node)) return this.#leaf(node.value, node.range, at, within);
      if (isMap(node)) return { is: "map", at, entries: this.#entries(node.items, within) };
      return { is: "misplaced", at, found: node === null ? "nothing" : foundOf(node) };
    });
  }

  #entries(pairs: readonly Pair[], path: readonly string[]): WrittenEntry[] {
    const first = new Map<string, Origin>();
    return pairs.flatMap(({ key, value }) => {
      const keyAt = this.#placeOf(isNode(key) ? (key.range?.[0] ?? 0) : 0);
      const name = isScalar(key) ? (key.source ?? String(key.value)) : null;
      const problem = keyProblem(name, name === null ? undefined : first.get(name));
      if (name === null || problem !== null) {
        this.problems.push({ at: keyAt, path, suggestion: null, ...(problem ?? notAKey) });
        return [];
      }
      first.set(name, keyAt);
      const within = [...path, name];
      const nothing: WrittenNode = { is: "leaf", at: keyAt, readings: [null], variables: [] };
      return [{ key: name, keyAt, value: isNode(value) ? this.node(value, within) : nothing }];
    });
  }

  #leaf(
    value: unknown,
    range: Node["range"],
    at: Origin,
    path: readonly string[],
  ): WrittenLeaf | ReportedNode {
    const written = asWritten(value);
    if (written === undefined) {
      const found = "a value with a custom tag";
      return this.#reportNode({
        at,
        path,
        found,
        expected: "text, a number, true, false or null",
        suggestion: null,
      });
    }
    if (typeof written !== "string") return plainLeaf(at, written);
    const replaced = replaceVariables(written, this.#env);
    if (replaced.missing.length > 0) {
      for (const { found, expected, nth } of replaced.missing) {
        this.problems.push({
          at: this.#placeOfDollar(range, nth) ?? at,
          path,
          found,
          expected,
          suggestion: null,
        });
      }
      return { is: "reported", at };
    }
    if (replaced.variables.length === 0) return plainLeaf(at, replaced.text);
    const scalar = scalarOf(replaced.text);
    const readings = scalar === undefined ? [replaced.text] : [replaced.text, scalar];
    return { is: "leaf", at, readings, variables: replaced.variables };
  }

  /** Returns the position of the nth `${` in a scalar, which can span several lines. */
  #placeOfDollar(range: Node["range"], nth: number): Origin | null {
    const [from = 0, to = 0] = range ?? [];
    const match = [...this.#text.slice(from, to).matchAll(/\$\{/g)][nth];
    return match === undefined ? null : this.#placeOf(from + match.index);
  }

  #reportNode(problem: ConfigProblem): ReportedNode {
    this.problems.push(problem);
    return { is: "reported", at: problem.at };
  }
}

const aliasExpected = "the value itself (aliases are not supported)";

/** Describes a node that is not a plain value, for use in a message. */
function foundOf(node: Node): string {
  if (isAlias(node)) return `the alias *${node.source}`;
  return isMap(node) ? "keys" : "a list";
}

const notAKey = { found: "a key that is not a string", expected: "a string" };

function keyProblem(name: string | null, before: Origin | undefined) {
  if (name === null) return notAKey;
  if (name === "__proto__") return { found: `the key "${name}"`, expected: "a different name" };
  if (name === "<<")
    return { found: "a merge key (<<)", expected: "the keys themselves (merging is not supported)" };
  if (before?.from !== "file") return null;
  return { found: `a duplicate key "${name}"`, expected: `a unique key (first used on line ${before.line})` };
}

function plainLeaf(at: Origin, written: Written): WrittenLeaf {
  return { is: "leaf", at, readings: [written], variables: [] };
}

function asWritten(value: unknown): Written | undefined {
  const isPlain = value === null || ["string", "number", "boolean"].includes(typeof value);
  return isPlain ? (value as Written) : undefined;
}

const mostProblems = 10;

/**
 * Rewords the parser's errors and keeps at most one per line because a single unmatched bracket can cause a thousand
 * errors.
 */
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
  if (code === "TAB_AS_INDENT") return problemOfFile(at, "a tab used for indentation", "spaces");
  if (code === "MULTIPLE_DOCS") return problemOfFile(at, "a second document", "a single document");
  if (code === "RESOURCE_EXHAUSTION") return problemOfFile(at, "brackets nested too deeply", "fewer levels");
  const inQuotes = /\$\{/.test(line) ? '"${NAME}" with quotes' : null;
  const text = message.replace(/\.$/, "").replace(/^[A-Z](?=[a-z ])/, (letter) => letter.toLowerCase());
  const found = `invalid YAML (${text})`;
  return { at, path: [], found, expected: "valid YAML or JSON", suggestion: inQuotes };
}

/** Creates a problem that concerns the whole file. */
export function problemOfFile(at: Origin, found: string, expected: string): ConfigProblem {
  return { at, path: [], found, expected, suggestion: null };
}
