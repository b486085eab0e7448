import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { bundlePackage } from "../../scripts/bundle.ts";
import type { TemporaryFolder } from "../../src/entry-testing.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";

const root = join(import.meta.dirname, "../..");
const modules = join(root, "node_modules");
const tsc = join(modules, ".bin/tsc");
let home: TemporaryFolder;

/** Builds the package, packs it, and installs the tarball next to the checkout's dependencies. */
beforeAll(async () => {
  home = temporaryFolder("skein-types-");
  const staged = join(home.path, "staged");
  mkdirSync(staged);
  await bundlePackage(join(staged, "dist"));
  const { files } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { files: string[] };
  for (const name of ["package.json", ...files.filter((each) => !/dist|\*/.test(each))])
    cpSync(join(root, name), join(staged, name), { recursive: true });
  run("npm", ["pack", "--ignore-scripts", "--pack-destination", home.path], staged);
  const tarball = readdirSync(home.path).find((name) => name.endsWith(".tgz")) ?? "";
  const installed = join(home.path, "node_modules");
  mkdirSync(join(installed, "skein"), { recursive: true });
  run("tar", ["-xzf", tarball, "-C", join(installed, "skein"), "--strip-components=1"], home.path);
  for (const name of readdirSync(modules).filter((each) => each !== "skein"))
    symlinkSync(join(modules, name), join(installed, name));
  writeFileSync(join(home.path, "package.json"), '{ "type": "module" }');
});
afterAll(() => home.remove());

function run(command: string, args: readonly string[], cwd: string): string {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd, encoding: "utf8" });
  if (status !== 0) throw new Error(`${command} ${args.join(" ")}: ${stdout}${stderr}`);
  return stdout;
}

const options = "--noEmit --strict --target es2024 --lib es2024 --types node --module nodenext".split(" ");

/** Type-checks the files with these names (without `.ts`) in one compiler run. */
function check(sources: Readonly<Record<string, string>>, more: readonly string[] = ["--skipLibCheck"]) {
  const files = Object.entries(sources).map(([name, code]) => {
    writeFileSync(join(home.path, `${name}.ts`), code);
    return `${name}.ts`;
  });
  const { stdout } = spawnSync(tsc, [...options, ...more, "--extendedDiagnostics", ...files], {
    cwd: home.path,
    encoding: "utf8",
  });
  const [, count] = /^Instantiations:\s+(\d+)/m.exec(stdout) ?? [];
  const errors = stdout.split("\n").filter((line) => line.includes("error TS"));
  return { instantiations: Number(count), errors };
}

const tool = `import { defineTool } from "skein";
import Type from "typebox";
export const weather = defineTool({ name: "weather", description: "Weather.", parameters: Type.Object({ city: Type.String() }), execute: ({ city }) => \`Sunny in \${city.trim()}\` });
`;
const client = `import { connect } from "skein/client";
const client = await connect("http://127.0.0.1:18790", { token: "t" });
console.log((await client.call("sessions.list", { limit: 5 })).sessions[0]?.key.trim());
for await (const each of client.events({ keys: ["main"] })) if (each.event === "run.ended") console.log(each.payload.state);
`;

const { exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
  exports: Record<string, { default: string } | string>;
};
const imports = Object.keys(exports)
  .filter((name) => !name.endsWith(".json"))
  .map((name) => name.replace(".", "skein"));
const entryFiles = Object.values(exports).flatMap((entry) =>
  typeof entry === "string" ? [] : [entry.default],
);

/** Returns the names that each Node 20 module exports. */
const node20 = JSON.parse(readFileSync(join(root, "test/golden/node-20-builtins.json"), "utf8")) as Readonly<
  Record<string, readonly string[]>
>;

/** Returns the imports of a bundled file that are resolved before any of its code runs. */
function staticImports(
  code: string,
): readonly { readonly names: readonly string[]; readonly from: string }[] {
  const statement = /^(?:import|export) *(?:(?:\w+|\* as \w+)?,? *(?:\{([^}]*)\})? *from *)?"([^"]+)";/gm;
  return [...code.matchAll(statement)].map(([, names = "", from = ""]) => ({
    names: names.split(",").flatMap((each) => each.trim().split(" as ")[0] || []),
    from,
  }));
}

describe("type-checking against the packed package", () => {
  let emptyCount = 0;
  beforeAll(() => {
    emptyCount = check({ empty: "export {};" }).instantiations;
  });

  test.each([
    ["defineTool", tool],
    ["skein/client", client],
  ])("[LBR13] a file with %s costs at most 50,000 more instantiations than an empty one", (_, code) => {
    const { instantiations, errors } = check({ sample: code });
    expect(errors).toEqual([]);
    expect(instantiations - emptyCount).toBeGreaterThan(0);
    expect(instantiations - emptyCount).toBeLessThanOrEqual(50_000);
  });

  // The types of the package `ai` need those of a browser.
  test.each([
    ["es2024", imports.filter((name) => name !== "skein/ai-sdk")],
    ["es2024,dom,dom.iterable", imports],
  ])("[LBR14] passes with skipLibCheck off and the library %s", (library, entries) => {
    const code = `${tool}${entries.map((name, index) => `export * as e${index} from "${name}";`).join("\n")}`;
    const strict = ["--skipLibCheck", "false", "--lib", library];
    expect(check({ whole: code }, strict).errors).toEqual([]);
  });

  test("[LBR12] callTool, services and configuration have types", () => {
    const right = `import { createSkein } from "skein";
const skein = await createSkein({ memory: true, config: { queue: { mode: "steer" } } });
const { result } = await skein.callTool("sessions_list", {});
if ("sessions" in result) result.sessions[0]?.key.trim(); else result.code.trim();
(await skein.sessions.list({ limit: 1 })).sessions[0]?.key.trim();
(await skein.runs.list())[0]?.state.trim();
(await skein.session().fork({ label: "Copy" })).forkedFrom.key.trim();
`;
    const wrong = `import { createSkein } from "skein";
const skein = await createSkein({ memory: true, config: { queue: { mode: "steering" } } });
const { result } = await skein.callTool("sessions_list", {});
result.sessions;
await skein.sessions.list({ limit: "1" });
`;
    const places = check({ right, wrong }).errors.map((line) => /^(.*),/.exec(line.split(")")[0] ?? "")?.[1]);
    expect(places).toEqual(["wrong.ts(2", "wrong.ts(4", "wrong.ts(5"]);
  });

  test.each(entryFiles)("[SET3] %s imports nothing from Node at load time that Node 20 lacks", (file) => {
    const seen = new Set<string>();
    const missing: string[] = [];
    const walk = (path: string) => {
      if (seen.has(path)) return;
      seen.add(path);
      for (const { names, from } of staticImports(readFileSync(path, "utf8"))) {
        if (from.startsWith(".")) walk(join(dirname(path), from));
        const known = node20[from];
        if (from.startsWith("node:") && known === undefined) missing.push(from);
        if (known !== undefined) missing.push(...names.filter((name) => !known.includes(name)));
      }
    };
    walk(join(home.path, "node_modules/skein", file));
    expect(seen.size).toBeGreaterThan(1);
    expect(missing).toEqual([]);
  });

  test.each(imports)("[SET3] on Node 20, importing %s fails with one sentence", (entry) => {
    const checked = join(home.path, "node_modules/skein/dist/chunks/check-node.js");
    const script = readFileSync(checked, "utf8");
    try {
      writeFileSync(checked, script.replace(/running = [^;]+;/, 'running = "20.20.2";'));
      writeFileSync(
        join(home.path, "old.mjs"),
        `await import("${entry}").catch((error) => console.log(error.stack));`,
      );
      const told = run(process.execPath, ["old.mjs"], home.path);
      expect(told).toBe(
        "Error: skein requires Node 24 or newer, but this is Node 20.20.2. Install a newer version from https://nodejs.org.\n",
      );
    } finally {
      writeFileSync(checked, script);
    }
  });

  test("[PKG1] the packed command works, and searches through its index thread", () => {
    const skein = join(home.path, "node_modules/skein/bin/skein.mjs");
    const call = (...args: string[]) =>
      run(process.execPath, [skein, ...args, "--dir", join(home.path, "store"), "--json"], home.path);
    expect(JSON.parse(call("send", "main", "The ferry leaves at nine"))).toMatchObject({ state: "ok" });
    expect(call("sessions", "search", "ferry")).toContain("The ferry leaves at nine");
  });

  test("[PKG2] the package is at most 180 files and 3.6 MB of code and types, and the console 60 files and 1.5 MB", () => {
    const dist = join(home.path, "node_modules/skein/dist");
    const files = readdirSync(dist, { recursive: true, withFileTypes: true }).filter((each) => each.isFile());
    const page = files.filter(({ parentPath }) => parentPath.startsWith(join(dist, "console")));
    const code = files.filter((each) => !page.includes(each));
    const megabytes = (some: typeof files) =>
      some.reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0) / 1024 ** 2;
    expect(code.length).toBeLessThanOrEqual(180);
    expect(megabytes(code)).toBeLessThanOrEqual(3.6);
    expect(page.length).toBeLessThanOrEqual(60);
    expect(megabytes(page)).toBeLessThanOrEqual(1.5);
  });
});
