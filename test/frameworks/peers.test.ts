import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "skein/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { frameworks } from "../../scripts/install-frameworks.mjs";
import { root } from "../../scripts/steps.ts";

const home = temporaryFolder("skein-peers-");
beforeAll(() => {
  const modules = join(home.path, "node_modules");
  mkdirSync(modules, { recursive: true });
  cpSync(join(frameworks, "node_modules/skein"), join(modules, "skein"), { recursive: true });
  writeFileSync(join(home.path, "package.json"), '{ "type": "module" }');
});
afterAll(() => home.remove());

const uses = [
  ["langgraph", "@langchain/langgraph-checkpoint", ">=1.1.4 <2", 'await import("skein/langgraph")'],
  [
    "claude-agent-sdk",
    "@anthropic-ai/claude-agent-sdk",
    ">=0.3.222 <0.4",
    'await (await import("skein/claude-agent-sdk")).openSessionStore({})',
  ],
] as const;

describe("without its framework", () => {
  const run = (code: string) => {
    const script = `try { ${code}; } catch (error) { console.log(error.message); }`;
    const { stdout } = spawnSync(process.execPath, ["--input-type=module", "--eval", script], {
      cwd: home.path,
      encoding: "utf8",
    });
    return stdout.trim();
  };

  test.each(uses)("[ADP1] %s fails with the line that installs it", (adapter, name, range, code) => {
    const text = run(code);
    expect(text).toMatch(
      new RegExp(`^skein/${adapter} needs the package ${name} \\(.*\\)\\. Run: npm install`),
    );
    expect(text.endsWith(`npm install "${name}@${range}".`)).toBe(true);
  });

  test.each(uses)("[ADP2] %s refuses a version that it does not support", (adapter, name, range, code) => {
    const folder = join(home.path, "node_modules", name);
    mkdirSync(folder, { recursive: true });
    const manifest = { name, version: "99.0.0", type: "module", main: "index.js" };
    writeFileSync(join(folder, "package.json"), JSON.stringify(manifest));
    writeFileSync(join(folder, "index.js"), "");
    expect(run(code)).toBe(
      `skein/${adapter} needs ${name} ${range}, but version 99.0.0 is installed. Run: npm install "${name}@${range}".`,
    );
  });
});

describe("types", () => {
  test("[ADP3] the adapters have the types of their frameworks", () => {
    const { stdout } = spawnSync(
      join(root, "node_modules/.bin/tsc"),
      ["--project", join(root, "test/frameworks"), "--pretty", "false"],
      { encoding: "utf8" },
    );
    expect(stdout).toBe("");
  });
});
