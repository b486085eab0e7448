import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  consoleProblems,
  directionProblems,
  fileCycles,
  folderCycles,
  ninetieth,
  packagesLoadedBy,
  schemaProblems,
  sizeProblems,
  specProblems,
  timingProblems,
} from "./rules.ts";
import { consoleFiles, readSource, root, sourceFiles } from "./source.ts";

const files = sourceFiles();

/** Files and functions that are allowed to be longer, with the reason for each. */
const exempt: string[] = [];

/** Tests that are allowed to read a monotonic clock, with the reason for each. */
const mayMeasureTime = [
  "test/architecture/house.test.ts", // contains examples of forbidden code
  "test/architecture/rules.ts", // contains the pattern
  "test/support/soak-child.ts", // timestamps its samples, but only their order is checked
];

describe("the code base", () => {
  test("imports go down", () => {
    expect(directionProblems(files)).toEqual([]);
  });

  test("has no cycles of files or folders", () => {
    expect(fileCycles(files)).toEqual([]);
    expect(folderCycles(files)).toEqual([]);
  });

  test("respects the size limits", () => {
    expect(sizeProblems(files, exempt)).toEqual([]);
    expect(ninetieth(files.map((file) => file.lines))).toBeLessThanOrEqual(300);
    const functions = files.flatMap((file) => file.functions);
    expect(ninetieth(functions.map((each) => each.lines))).toBeLessThanOrEqual(45);
  });

  test("rules and tests cite each other", () => {
    const spec = readFileSync(join(root, "SPEC.md"), "utf8");
    const tests = globSync(["src/**/*.test.ts", "test/**/*.ts", "src/conformance/*-cases.ts"], {
      cwd: root,
    }).map((path) => readSource(path, readFileSync(join(root, path), "utf8")));
    expect(specProblems(spec, tests)).toEqual([]);
  });

  test("has no any, no empty catch, no console", () => {
    expect(files.flatMap((file) => file.slips)).toEqual([]);
  });

  test("no test measures time", () => {
    const tests = globSync(["src/**/*.test.ts", "test/**/*.ts"], { cwd: root }).map((path) => ({
      path,
      text: readFileSync(join(root, path), "utf8"),
    }));
    expect(timingProblems(tests, mayMeasureTime)).toEqual([]);
  });

  test("[HSE8] the package's entry is light", () => {
    expect(packagesLoadedBy(files, "src/index.ts")).toEqual([]);
    for (const name of ["store", "postgres", "conformance", "testing"]) {
      const entry = `src/entry-${name}.ts`;
      const loaded = packagesLoadedBy(files, entry).filter((name) => !name.startsWith("node:"));
      expect({ entry, loaded }).toEqual({ entry, loaded: [] });
    }
    expect(schemaProblems(files)).toEqual([]);
  });

  test("[CLT10] the client loads no package and no Node module, so that it runs in a browser", () => {
    expect(packagesLoadedBy(files, "src/entry-client.ts")).toEqual([]);
    const rooms = files
      .filter(({ path }) => path.startsWith("src/client/"))
      .flatMap(({ imports }) => imports.map(({ target }) => target.split("/").slice(0, 2).join("/")));
    expect([...new Set(rooms)].toSorted()).toEqual(["src/client", "src/core", "src/protocol"]);
    const ofNode = files
      .filter(({ path }) => path.startsWith("src/protocol/") && !path.endsWith(".test.ts"))
      .flatMap(({ path, imports }) => imports.map(({ target }) => `${path} → ${target}`))
      .filter((each) => each.includes("→ node:"));
    expect(ofNode).toEqual([]);
  });
});

describe("the console", () => {
  test("imports nothing of the product but its client", () => {
    expect(consoleProblems(consoleFiles())).toEqual([]);
  });
});

/** Checks that each rule fails on code that breaks it. */
describe("the rules themselves", () => {
  const house = (parts: Record<string, string>) =>
    Object.entries(parts).map(([path, text]) => readSource(path, text));

  test.each([
    ["upwards", { "src/core/a.ts": 'import { b } from "../store/b.ts"; b;' }],
    ["sideways", { "src/store/a.ts": 'import { b } from "../transcript/b.ts"; b;' }],
    ["sideways by export", { "src/store/a.ts": 'export { b } from "../transcript/b.ts";' }],
    ["a value of a contract", { "src/runs/a.ts": 'import { b } from "../store/contract.ts"; b;' }],
    [
      "a type that is not in a contract",
      { "src/runs/a.ts": 'import type { B } from "../store/b.ts"; export type C = B;' },
    ],
    ["dynamically", { "src/core/a.ts": 'await import("../cli/b.ts");' }],
    ["the index", { "src/cli/a.ts": 'import { b } from "../index.ts"; b;' }],
    ["a folder without a level", { "src/attic/a.ts": 'import { b } from "../core/b.ts"; b;' }],
  ])("catches an import %s", (_, parts) => {
    expect(directionProblems(house(parts))).toHaveLength(1);
  });

  test.each([
    "../../src/entry-client.ts",
    "../../../src/core/b.ts",
    "../../bench/b.ts",
    "skein",
    "skein/store",
    "node:fs",
  ])("catches an import of %s by the console", (target) => {
    for (const text of [
      `import { b } from "${target}"; b;`,
      `import type { B } from "${target}"; export type C = B;`,
    ])
      expect(consoleProblems(house({ "console/src/a.ts": text }))).toHaveLength(1);
    const allowed = 'import { a } from "skein/client"; import { b } from "react"; import "./b.ts"; a; b;';
    expect(consoleProblems(house({ "console/src/a.ts": allowed }))).toEqual([]);
  });

  test("allows types of a contract", () => {
    const parts = { "src/runs/a.ts": 'import type { B } from "../store/contract.ts"; export type C = B;' };
    expect(directionProblems(house(parts))).toEqual([]);
  });

  test("catches cycles of files, of folders, and of types", () => {
    const two = house({
      "src/core/a.ts": 'import type { B } from "./b.ts"; export type A = B;',
      "src/core/b.ts": 'import type { A } from "./a.ts"; export type B = A;',
    });
    expect(fileCycles(two)).toHaveLength(2);
    const nested = house({
      "src/cli/a.ts": 'import { b } from "./deep/b.ts"; b;',
      "src/cli/deep/b.ts": 'import { c } from "../c.ts"; export const b = c;',
      "src/cli/c.ts": "export const c = 1;",
    });
    expect(fileCycles(nested)).toEqual([]);
    expect(folderCycles(nested)).toHaveLength(2);
  });

  test("catches long files, long functions and stale exemptions", () => {
    const long = house({ "src/core/a.ts": `export function f() {\n${"1;\n".repeat(601)}}\n` });
    expect(sizeProblems(long)).toHaveLength(2);
    expect(sizeProblems(long, ["src/core/a.ts", "src/core/gone.ts"])).toEqual([
      "src/core/a.ts:1 f: 603 lines",
      "src/core/gone.ts: exempt, but not there",
    ]);
  });

  test("catches rules without tests, tests without rules, rules stated twice and tests that import internals", () => {
    const spec = "- **AAA1** one\n- **AAA2** two\n- **AAA2** two again\n- **AAA3** three\n- **AAA4** four\n";
    const q = '"';
    const tests = house({
      "test/a.test.ts": `import { a } from "./support/a.ts"; test(${q}[AAA1] [BBB1] title${q}, a); // [AAA2] in passing`,
      "test/support/a.ts": 'export { a } from "../../src/index.ts";',
      "test/b.test.ts": `import { b } from "./support/b.ts"; test(${q}[AAA3] title${q}, b);`,
      "test/support/b.ts": 'import type { B } from "../../src/core/b.ts"; export const b = (): B => 1;',
      "src/core/b.test.ts": `test(${q}[AAA4] title${q}, () => 1);`,
    });
    expect(specProblems(spec, tests)).toEqual([
      "AAA2: no test cites it",
      "AAA2: no test cites it",
      "AAA3: no public test cites it",
      "AAA4: no public test cites it",
      "AAA2: stated twice",
      "BBB1: cited, but no rule",
    ]);
  });

  test("catches any, an empty catch and console", () => {
    const text = "export const a: any = 1; try { a(); } catch {} console.log(a);";
    expect(readSource("src/core/a.ts", text).slips.map((each) => each.split(" ").slice(1).join(" "))).toEqual(
      ["any", "empty catch", "console"],
    );
  });

  test("catches time measurements", () => {
    const text = [
      "const begun = performance.now();",
      "const took = Date.now() - begun;",
      "process.cpuUsage(); process.hrtime.bigint();",
      "const yesterday = Date.now() - 24 * 3_600_000;",
    ].join("\n");
    const found = ["performance.now", "Date.now() - begun", "cpuUsage", "hrtime"];
    expect(timingProblems([{ path: "a.test.ts", text }], [])).toEqual(
      found.map((each) => `a.test.ts: ${each}`),
    );
    expect(timingProblems([{ path: "a.test.ts", text }], ["a.test.ts"])).toEqual([]);
  });

  test("[HSE8] catches a file that loads TypeBox at once", () => {
    const user = "src/agents/tools/check-json-schema.ts";
    const parts = house({
      "src/index.ts": 'export { a } from "./core/a.ts";',
      "src/core/a.ts": 'import Type from "typebox"; export const a = Type;',
      [user]: 'import { Value } from "typebox/value"; export const b = Value;',
      "src/agents/now.ts": 'import { b } from "./tools/check-json-schema.ts"; export const c = b;',
      "src/agents/later.ts": 'export const d = () => import("./tools/check-json-schema.ts");',
    });
    expect(packagesLoadedBy(parts, "src/index.ts")).toEqual(["typebox"]);
    expect(schemaProblems(parts)).toEqual([
      "src/core/a.ts → typebox: loads TypeBox",
      `src/agents/now.ts → ${user}: loads TypeBox`,
    ]);
  });
});
