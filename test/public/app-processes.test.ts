import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { TemporaryFolder } from "../../src/entry-testing.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import { createSkein, defineAgent } from "../../src/index.ts";
import { run } from "../support/cli.ts";
import { Started } from "../support/cli-process.ts";
import type { RunListPayload, RunPayload } from "../support/payloads.ts";
import { supportProgram } from "../support/programs.ts";

let home: TemporaryFolder;
let dir: string;

beforeEach(() => {
  home = temporaryFolder();
  dir = join(home.path, "root");
});
afterEach(() => home.remove());

const cli = (...args: string[]) =>
  run(args, { cwd: home.path, home: home.path, env: { SKEIN_DIR: dir }, columns: 200 });

const cliJson = async <T>(...args: string[]) => JSON.parse((await cli(...args, "--json")).out) as T;

const importChild = `await import(${JSON.stringify(supportProgram("app-child"))});\n`;
const childEnv = { SKEIN_LOGGING__LEVEL: "silent" };

/** The entry script of a program whose package has this name. */
function entryOf(name: string, packages: Record<string, object> = { ".": { name, type: "module" } }): string {
  const folder = join(home.path, name);
  mkdirSync(join(folder, "bin"), { recursive: true });
  for (const [where, fields] of Object.entries(packages))
    writeFileSync(join(folder, where, "package.json"), JSON.stringify(fields));
  const entry = join(folder, "bin", "main.mjs");
  writeFileSync(entry, importChild);
  return entry;
}

test("[OWN2] the app is the name in the package.json nearest to the entry script", async () => {
  const [desk, shop] = [entryOf("desk"), entryOf("shop")];
  const killed = new Started([desk, dir, "accept", "letters", "Stamp it"], childEnv);
  expect(await killed.end()).toBe("SIGKILL");
  const runId = killed.out.trim();
  const other = new Started([shop, dir, "run", "later", "Sell it"], childEnv);
  expect(await other.end()).toBe(0);
  expect(JSON.parse(other.out)).toMatchObject({ state: "ok", reply: "Stamped: Sell it" });
  const { run } = await cliJson<RunPayload>("runs", "show", runId);
  expect(run).toMatchObject({ state: "queued", app: "desk", waitsForApp: "desk" });
  const again = new Started([desk, dir, "run", "more", "More", runId], childEnv);
  expect(await again.end()).toBe(0);
  expect(JSON.parse(again.out)).toMatchObject({ state: "ok", reply: "Stamped: More" });
});

test.each([
  {
    what: "a package.json without a name",
    packages: { bin: { type: "module" }, ".": { name: "desk" } },
    app: "desk",
  },
  { what: "no package.json", packages: {}, app: "bin/main.mjs" },
  {
    what: "node -e with a script as its argument",
    packages: { ".": { name: "desk" } },
    isEval: true,
    app: "node",
  },
])("[OWN2] the name of an app with $what is $app", async ({ packages, isEval = false, app }) => {
  const entry = entryOf("desk", packages);
  const started = isEval ? ["--input-type=module", "-e", importChild, entry] : [entry];
  const child = new Started([...started, dir, "accept", "letters", "Stamp it"], childEnv);
  expect(await child.end()).toBe("SIGKILL");
  const { run } = await cliJson<RunPayload>("runs", "show", child.out.trim());
  expect(run).toMatchObject({ app, waitsForApp: app });
});

test.each(["", " ", "two\nlines", "x".repeat(215)])(
  "[OWN2] %j is not accepted as the name of an app",
  async (app) => {
    const opened = createSkein({ dir, app, config: null, agents: [defineAgent({ id: "main" })] });
    await expect(opened).rejects.toMatchObject({ code: "invalid_arguments" });
  },
);

test("[OWN8] a turn whose process was killed is continued only by its app", async () => {
  const entry = entryOf("desk");
  const killed = new Started([entry, dir, "die", "letters", "Stamp it"], childEnv);
  expect(await killed.end()).toBe("SIGKILL");
  expect(await cli("send", "agent:main:session:other", "repeat hello")).toMatchObject({ exit: 0 });
  const { runs } = await cliJson<RunListPayload>("runs", "ls", "--state", "queued");
  expect(runs).toMatchObject([{ waitsForApp: "desk", lost: 1 }]);
  const sent = await cli("send", "letters", "And seal it");
  expect(sent.out).toContain("waiting for the app desk");
  const back = new Started([entry, dir, "run", "letters", "Stamp it"], childEnv);
  expect(await back.end()).toBe(0);
  expect(JSON.parse(back.out)).toMatchObject({ state: "ok", reply: "Stamped: Stamp it" });
});
