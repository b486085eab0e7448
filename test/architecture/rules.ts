import { dirname } from "node:path/posix";
import type { SourceFile } from "./source.ts";

/** The architecture rules as functions that map the source to a list of violations. */

/**
 * Each folder imports only from lower levels. `index.ts` and the other entry points are at the top, and no file imports
 * them.
 */
const floors: Readonly<Record<string, number>> = {
  core: 1,
  transcript: 2,
  store: 2,
  runs: 2,
  access: 2,
  protocol: 2,
  config: 2,
  interchange: 2,
  "file-access": 2,
  testing: 2,
  agents: 3,
  channels: 3,
  telemetry: 3,
  client: 3,
  conformance: 3,
  sessions: 4,
  tools: 5,
  gateway: 6,
  acp: 7,
  app: 8,
  cli: 9,
  adapters: 9,
  "check-node.ts": 9,
  "create-skein.ts": 9,
  "open-session.ts": 9,
  "index.ts": 10,
  "entry-store.ts": 10,
  "entry-postgres.ts": 10,
  "entry-conformance.ts": 10,
  "entry-testing.ts": 10,
  "entry-client.ts": 10,
  "entry-langgraph.ts": 10,
  "entry-claude-agent-sdk.ts": 10,
  "entry-ai-sdk.ts": 10,
  "entry-openai-agents.ts": 10,
};

/** Ways to measure elapsed time. A test that compares times fails on a busy machine. */
const timing =
  /performance\.(?:now|mark|measure)|hrtime|[cC]puUsage|monitorEventLoopDelay|eventLoopUtilization|Date\.now\(\) - [a-z]\w*/g;

/** Returns the locations where tests measure time, except in the files in `exempt`. */
export function timingProblems(
  tests: readonly { readonly path: string; readonly text: string }[],
  exempt: readonly string[],
): string[] {
  return tests
    .filter(({ path }) => !exempt.includes(path))
    .flatMap(({ path, text }) => [...text.matchAll(timing)].map(([found]) => `${path}: ${found}`));
}

export function directionProblems(files: readonly SourceFile[]): string[] {
  return files.flatMap((file) =>
    file.imports.flatMap(({ target, kind }) => {
      if (!target.startsWith("src/")) return [];
      const [from, to] = [roomOf(file.path), roomOf(target)];
      const [above, below] = [floors[from], floors[to]];
      if (above === undefined || below === undefined) return [`${file.path} → ${target}: no floor`];
      const ofContract = kind === "type" && above === below && target.endsWith("/contract.ts");
      return from === to || below < above || ofContract ? [] : [`${file.path} → ${target}: not below`];
    }),
  );
}

/** The console has only the rights of any other client, and it runs in a browser. */
export function consoleProblems(files: readonly SourceFile[]): string[] {
  const foreign = /^skein(?!\/client$)|^node:|^(?!console\/).*\.tsx?$/;
  return files.flatMap(({ path, imports }) =>
    imports
      .filter(({ target }) => foreign.test(target))
      .map(({ target }) => `${path} → ${target}: not the client`),
  );
}

/**
 * The only file that loads TypeBox, which is used for schemas that are not ours. The file itself is loaded only when
 * needed.
 */
const typeBoxUser = "src/agents/tools/check-json-schema.ts";

export function schemaProblems(files: readonly SourceFile[]): string[] {
  return files
    .filter(({ path }) => path !== typeBoxUser)
    .flatMap(({ path, imports }) =>
      imports
        .filter(
          ({ target, kind }) => kind === "value" && /^typebox/.test(target.replace(typeBoxUser, "typebox")),
        )
        .map(({ target }) => `${path} → ${target}: loads TypeBox`),
    );
}

export function fileCycles(files: readonly SourceFile[]): string[] {
  return cyclesOf(files.map((file) => [file.path, file.imports.map(({ target }) => target)]));
}

export function folderCycles(files: readonly SourceFile[]): string[] {
  const edges = files.map((file): [string, string[]] => {
    const targets = file.imports.map(({ target }) => target).filter((target) => target.startsWith("src/"));
    return [dirname(file.path), targets.map((target) => dirname(target))];
  });
  return cyclesOf(edges.map(([from, to]) => [from, to.filter((each) => each !== from)]));
}

export function sizeProblems(files: readonly SourceFile[], exempt: readonly string[] = []): string[] {
  const long = files.filter(({ path, lines }) => lines > 600 && !exempt.includes(path));
  const functions = files.flatMap((file) => file.functions).filter(({ lines }) => lines > 120);
  return [
    ...long.map(({ path, lines }) => `${path}: ${lines} lines`),
    ...functions
      .filter(({ name }) => !exempt.includes(name))
      .map(({ name, lines }) => `${name}: ${lines} lines`),
    ...exempt
      .filter((each) => !files.some(({ path }) => path === each))
      .map((each) => `${each}: exempt, but not there`),
  ];
}

/** Returns the 90th percentile. */
export function ninetieth(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length * 0.9)] ?? 0;
}

/** Returns the packages that are loaded with a file, directly or indirectly. */
export function packagesLoadedBy(files: readonly SourceFile[], entry: string): string[] {
  const byPath = new Map(files.map((file) => [file.path, file]));
  const seen = new Set<string>();
  const waiting = [entry];
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (seen.has(path)) continue;
    seen.add(path);
    const imports = byPath.get(path)?.imports ?? [];
    waiting.push(...imports.filter(({ kind }) => kind === "value").map(({ target }) => target));
  }
  return [...seen].filter((each) => !each.startsWith("src/")).toSorted();
}

/**
 * Finds rules without a test, tests without a rule, rules stated twice, and rules whose tests all import internals. A
 * rule's test and its support code import from `src/` only what users import. The cases of the conformance kit are
 * themselves public.
 */
export function specProblems(spec: string, tests: readonly SourceFile[]): string[] {
  const rules = [...spec.matchAll(/^- \*\*([A-Z]+\d+)\*\*/gm)].map((match) => match[1] as string);
  const byPath = new Map(tests.map((file) => [file.path, file]));
  const cited = new Set<string>();
  const shown = new Set<string>();
  for (const file of tests) {
    const ids = citationsIn(file.text);
    for (const id of ids) cited.add(id);
    if (ids.length > 0 && isPublicTest(file, byPath)) for (const id of ids) shown.add(id);
  }
  return [
    ...rules.filter((rule) => !cited.has(rule)).map((rule) => `${rule}: no test cites it`),
    ...rules
      .filter((rule) => cited.has(rule) && !shown.has(rule))
      .map((rule) => `${rule}: no public test cites it`),
    ...rules.filter((rule, index) => rules.indexOf(rule) !== index).map((rule) => `${rule}: stated twice`),
    ...[...cited].filter((rule) => !rules.includes(rule)).map((rule) => `${rule}: cited, but no rule`),
  ];
}

const publicEntry = /^src\/(?:index|entry-[a-z-]+|cli\/main)\.ts$/;

function isPublicTest(file: SourceFile, byPath: ReadonlyMap<string, SourceFile>): boolean {
  if (file.path.startsWith("src/"))
    return file.path.startsWith("src/conformance/") && !file.path.endsWith(".test.ts");
  const seen = new Set([file.path]);
  for (const path of seen) {
    for (const { target } of byPath.get(path)?.imports ?? []) {
      if (target.startsWith("src/") && !publicEntry.test(target)) return false;
      if (target.startsWith("test/")) seen.add(target);
    }
  }
  return true;
}

/**
 * Matches IDs in brackets at the beginning of a string, or the ID of a conformance kit case. They must be part of a
 * title, not a mention.
 */
function citationsIn(text: string): string[] {
  const titles = text.matchAll(/["'`]((?:\[[A-Z]+\d+\] ?)+)|^ +id: "([A-Z]+\d+)",$/gm);
  return [...titles].flatMap((match) =>
    [...(match[1] ?? match[2] ?? "").matchAll(/[A-Z]+\d+/g)].map((id) => id[0]),
  );
}

/** The wiring is treated as one unit that consists of a file and a folder for its parts. */
function roomOf(path: string): string {
  const room = path.split("/")[1] ?? "";
  return room === "app.ts" || room === "app.test.ts" ? "app" : room;
}

/** Returns each strongly connected component that has more than one node or a node that points to itself. */
function cyclesOf(edges: readonly (readonly [string, readonly string[]])[]): string[] {
  const graph = new Map<string, Set<string>>();
  for (const [from, to] of edges) graph.set(from, new Set([...(graph.get(from) ?? []), ...to]));
  const reaches = (from: string, goal: string): boolean => {
    const seen = new Set<string>();
    const waiting = [...(graph.get(from) ?? [])];
    for (let node = waiting.pop(); node !== undefined; node = waiting.pop()) {
      if (node === goal) return true;
      if (seen.has(node)) continue;
      seen.add(node);
      waiting.push(...(graph.get(node) ?? []));
    }
    return false;
  };
  return [...graph.keys()].filter((node) => reaches(node, node)).map((node) => `${node}: in a cycle`);
}
