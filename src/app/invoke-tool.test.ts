import { afterEach, beforeEach, expect, test } from "vitest";
import { defineAgent } from "../agents/tools/define-agent.ts";
import { defineTool } from "../agents/tools/define-tool.ts";
import { openSkein } from "../app.ts";
import type { Skein } from "../sessions/skein.ts";
import type { TemporaryFolder } from "../testing/support/temporary-folder.ts";
import { temporaryFolder } from "../testing/support/temporary-folder.ts";

const sessionKey = "agent:main:main";
let folder: TemporaryFolder;
let skein: Skein;

beforeEach(async () => {
  folder = temporaryFolder("skein-invoke-");
  const ring = defineTool({ name: "ring", description: "Rings.", execute: () => "it rang" });
  const main = defineAgent({
    id: "main",
    model: "rehearsal/basic",
    tools: [ring],
    ask: ["sessions_list", "ring"],
  });
  skein = await openSkein({ dir: folder.path, config: null, agents: [main], quiet: true });
  await skein.store.sessions.create({ agentId: "main" }, { key: sessionKey, cwd: folder.path });
});
afterEach(async () => {
  await skein.close();
  folder.remove();
});

test.each(["sessions_list", "ring"])(
  "[POL6] outside of a run, %s is refused if a rule requires approval",
  async (name) => {
    expect(await skein.invokeTool(name, {}, { sessionKey })).toMatchObject({
      isError: true,
      result: { status: "forbidden", error: expect.stringContaining("needs a person's approval") },
    });
  },
);

test("[POL6] a session tool without an approval rule is called as usual", async () => {
  expect(await skein.invokeTool("agents_list", {}, { sessionKey })).toMatchObject({ isError: false });
});
