import { spawnSync } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openSessionStore } from "skein/claude-agent-sdk";
import { createStore } from "skein/store";
import { temporaryFolder } from "skein/testing";
import { expect, test } from "vitest";
import { frameworks } from "../../scripts/install-frameworks.mjs";
import { root } from "../../scripts/steps.ts";

/** Runs the example of a page in a folder, as a program next to the frameworks, and returns what it prints. */
function runExample(page: string, cwd: string): string {
  const text = readFileSync(join(root, "docs", page), "utf8");
  const [, code = ""] = /^```js\n([\s\S]*?)^```$/m.exec(text) ?? [];
  const file = join(frameworks, `example-${process.pid}-${page}.mjs`);
  writeFileSync(file, code);
  try {
    const { stdout, stderr } = spawnSync(process.execPath, [file], { cwd, encoding: "utf8" });
    return stdout + stderr;
  } finally {
    rmSync(file);
  }
}

test("[ADP4] the example for LangGraph", () => {
  const home = temporaryFolder("skein-example-");
  const lines = runExample("langgraph.md", home.path).trim().split("\n");
  home.remove();
  expect(lines).toEqual(["kyoto Plan three days in Kyoto", expect.stringContaining("gardens of Ohara")]);
});

test("[ADP4] the example for the Claude Agent SDK", async () => {
  const home = temporaryFolder("skein-example-");
  const store = await createStore({ dir: join(home.path, ".skein") });
  const sessionStore = await openSessionStore({ store, userId: "ann" });
  const projectKey = home.path.replaceAll(/[^a-zA-Z0-9]/g, "-");
  const sessionId = "11111111-1111-4111-8111-111111111111";
  const rest = { sessionId, cwd: home.path, isSidechain: false, version: "2.1.0" };
  const uuid = "22222222-2222-4222-8222-222222222222";
  const message = { role: "user", content: "Where does the ferry leave?" };
  const timestamp = "2026-01-01T00:00:00.000Z";
  const entry = { type: "user", uuid, parentUuid: null, timestamp, message, ...rest };
  await sessionStore.append({ projectKey, sessionId }, [entry]);
  await store.close();
  const output = runExample("claude-agent-sdk.md", home.path);
  home.remove();
  expect(output).toMatch(/^Where does the ferry leave\? 1 [0-9a-f-]{36}\n.*ferry/);
});
