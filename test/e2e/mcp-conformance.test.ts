import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { closeAll, rehearsedSkein } from "../support/mcp-client.ts";
import { startMcp } from "../support/mcp-gateway.ts";

/** The official suite, limited to the features that Skein offers. It covers the revisions up to 2025-11-25. */

const suite = fileURLToPath(
  new URL("../../node_modules/@modelcontextprotocol/conformance/dist/index.js", import.meta.url),
);

const applies = [
  "server-initialize",
  "ping",
  "tools-list",
  "resources-list",
  "server-sse-multiple-streams",
  "dns-rebinding-protection",
] as const;

const ownTool = "calls a tool of the suite's own everything-server, which does nothing of ours";
const ownResource = "reads a resource of the suite's own everything-server";
const noPrompts = "no prompts are offered";

/** Why the other scenarios do not apply. */
const leftOut: Readonly<Record<string, string>> = {
  "logging-set-level": "logging is not offered: it is deprecated since 2026-07-28",
  "completion-complete": "completion is not offered",
  "tools-call-simple-text": ownTool,
  "tools-call-image": ownTool,
  "tools-call-audio": ownTool,
  "tools-call-embedded-resource": ownTool,
  "tools-call-mixed-content": ownTool,
  "tools-call-with-logging": ownTool,
  "tools-call-error": ownTool,
  "tools-call-with-progress": ownTool,
  "tools-call-sampling": ownTool,
  "tools-call-elicitation": ownTool,
  "json-schema-2020-12": ownTool,
  "elicitation-sep1034-defaults": ownTool,
  "elicitation-sep1330-enums": ownTool,
  "server-sse-polling": ownTool,
  "resources-read-text": ownResource,
  "resources-read-binary": ownResource,
  "resources-templates-read": ownResource,
  "resources-subscribe": ownResource,
  "resources-unsubscribe": ownResource,
  "prompts-list": noPrompts,
  "prompts-get-simple": noPrompts,
  "prompts-get-with-args": noPrompts,
  "prompts-get-embedded-resource": noPrompts,
  "prompts-get-with-image": noPrompts,
};

let home = "";
let url = "";

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), "skein-conformance-"));
  const skein = await rehearsedSkein({ visibility: "agent" });
  await skein.session({ sessionKey: "agent:main:main" }).send("repeat good morning").result;
  url = (await startMcp(skein)).url;
});
afterAll(async () => {
  await closeAll();
  rmSync(home, { recursive: true, force: true });
});

/** Returns the suite's output. The suite writes its results to its working directory. */
async function conformance(...args: readonly string[]): Promise<string> {
  const options = { cwd: home, timeout: 150_000, env: { ...process.env, NO_COLOR: "1" } };
  const { stdout } = await promisify(execFile)(process.execPath, [suite, ...args], options);
  return stdout;
}

describe("the MCP conformance suite", () => {
  test("[GMC12] every scenario is either run or skipped for a reason", async () => {
    const listed = await conformance("list", "--server");
    const scenarios = [...listed.matchAll(/^ {2}- (\S+)/gm)].map(([, name]) => name);
    expect(scenarios.length).toBeGreaterThan(20);
    expect(scenarios.toSorted()).toEqual([...applies, ...Object.keys(leftOut)].toSorted());
  });

  test.each(applies)("[GMC12] passes %s", async (scenario) => {
    const printed = await conformance("server", "--url", url, "--scenario", scenario);
    expect(printed).toMatch(/Passed: (\d+)\/\1, 0 failed, 0 warnings/);
  });
});
