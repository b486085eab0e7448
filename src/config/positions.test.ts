import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { stringify } from "yaml";
import { anyConfig } from "../../test/support/config.ts";
import { parseConfigText } from "./parse-yaml.ts";
import type { ConfigProblem } from "./problems.ts";
import { readTree } from "./read-tree.ts";
import { sections } from "./sections/all.ts";
import type { Node } from "./settings/setting.ts";
import { pathText } from "./tree.ts";

/** Reads a configuration without disk access. */
function problemsOf(text: string): readonly ConfigProblem[] {
  const place = { folder: "/p", home: "/home/ann", root: "/r" };
  const { root, problems } = parseConfigText(text, "/p/skein.yaml", () => undefined);
  const read = readTree(sections, root === null ? [] : [root], () => place, place);
  return [...problems, ...read.problems];
}

type Plain = { [key: string]: unknown };

interface Breakage {
  /** The text at the position of the mistake, which occurs only once. */
  readonly mark: string;
  readonly path: readonly string[];
  apply(config: Plain): void;
}

/** Returns every way to break a configuration at one position. */
function breakagesOf(node: Node, value: unknown, path: readonly string[] = []): Breakage[] {
  const set = (key: string, mark: string, written: unknown, at = path): Breakage => ({
    mark,
    path: at,
    apply: (config) => {
      const parent = path.reduce((each, name) => each[name] as Plain, config);
      parent[key] = written;
    },
  });
  if (node.node === "list") return itemBreakages(value, path);
  if (node.node === "rows") {
    const rows = Array.isArray(value) ? value.entries() : [];
    const within = [...rows].flatMap(([index, row]) => breakagesOf(node.of, row, [...path, String(index)]));
    return [...itemBreakages(value, path), ...within];
  }
  if (node.node === "setting" || typeof value !== "object" || value === null) return [];
  const unknown =
    node.node === "group" ? ["brokenMark"] : ["broken mark!"].filter((key) => node.readKey(key) === null);
  const here = unknown.map((key) => set(key, key, null));
  return [
    ...here,
    ...Object.entries(value).flatMap(([key, each]) => {
      const child = node.node === "group" ? (node.fields[key] as Node) : node.of;
      const at = [...path, key];
      const wrong = child.node === "setting" ? set(key, "${BROKEN}", "x ${BROKEN} y", at) : null;
      const misplaced = set(key, "424242", 424242, at);
      const tooLarge = set(key, "9e99", 9e99, at);
      return [...(wrong === null ? [misplaced] : [wrong, tooLarge]), ...breakagesOf(child, each, at)];
    }),
  ];
}

/** Replaces each list item with a value that is not allowed there. */
function itemBreakages(value: unknown, path: readonly string[]): Breakage[] {
  const items = Array.isArray(value) ? value : [];
  return items.map((_, index) => ({
    mark: "424242",
    path: [...path, String(index)],
    apply: (config) => {
      const parent = path.reduce((each, name) => each[name] as Plain, config);
      (parent as unknown as unknown[])[index] = 424242;
    },
  }));
}

const style = fc.record({
  json: fc.boolean(),
  indent: fc.constantFrom(1, 2, 4, "\t"),
  crlf: fc.boolean(),
  collectionStyle: fc.constantFrom("any" as const, "flow" as const),
  comments: fc.boolean(),
});

function textOf(config: Plain, how: typeof style extends fc.Arbitrary<infer T> ? T : never): string {
  const indent = typeof how.indent === "number" ? how.indent : 2;
  const text = how.json
    ? JSON.stringify(config, null, how.indent)
    : stringify(config, { indent, collectionStyle: how.collectionStyle });
  const commented = how.comments && !how.json ? `# first\n\n${text.replaceAll("\n", "\n\n# more\n")}` : text;
  return how.crlf ? commented.replaceAll("\n", "\r\n") : commented;
}

describe("positions of mistakes", () => {
  test("[CFG4] a configuration without mistakes has none", () => {
    fc.assert(
      fc.property(anyConfig, style, (config, how) => {
        expect(problemsOf(textOf(config, how))).toEqual([]);
      }),
    );
  });

  test("[CFG4] a mistake anywhere is reported once, at its position", () => {
    fc.assert(
      fc.property(anyConfig, style, fc.nat(), (config, how, nth) => {
        const breakages = breakagesOf(sections, config);
        const breakage = breakages[nth % breakages.length] as Breakage;
        const broken = structuredClone(config);
        breakage.apply(broken);
        const mark = breakage.mark === "9e99" ? "9e+99" : breakage.mark;
        const text = textOf(broken, how);
        const offset = text.indexOf(mark);
        const problems = problemsOf(text);
        expect(problems.map(({ path }) => pathText(path))).toEqual([pathText(breakage.path)]);
        const line = text.slice(0, offset).split("\n").length;
        const column = offset - text.lastIndexOf("\n", offset);
        // The position of a value is its opening quote, and the position of a variable is its dollar sign.
        const isQuoted = /["']/.test(text[offset - 1] ?? "");
        expect(problems[0]?.at).toMatchObject({ line, column: isQuoted ? column - 1 : column });
      }),
    );
  });
});
