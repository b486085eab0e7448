import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { TemporaryFolder } from "../../src/entry-testing.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import { createSkein } from "../../src/index.ts";
import type { AcpProcess } from "../support/acp-client.ts";
import { acpProcess } from "../support/acp-client.ts";
import { run } from "../support/cli.ts";
import { HeldModel } from "../support/held-model.ts";
import type { RunListPayload } from "../support/payloads.ts";
import { brief } from "../support/run-skein.ts";
import { soon } from "../support/soon.ts";
import { wholeGateway } from "../support/whole-gateway.ts";

let folder: TemporaryFolder;
let dir: string;
let model: HeldModel;
let acp: AcpProcess | null = null;

beforeEach(async () => {
  folder = temporaryFolder("skein-acp-prompts-");
  dir = join(folder.path, "root");
  model = await HeldModel.start();
});
afterEach(async () => {
  acp?.child.kill("SIGKILL");
  await acp?.leave();
  acp = null;
  model.close();
  folder.remove();
});

/** An editor whose second prompt is sent while the model has not answered the first. */
async function sendTwoPrompts(root: string): Promise<{ acp: AcpProcess; key: string }> {
  acp = await acpProcess(folder.path, ["--dir", root]);
  const { editor } = acp;
  const key = await editor.create(folder.path);
  for (const [index, text] of ["First", "Second"].entries()) {
    void editor.prompt(key, text).catch(() => undefined);
    if (index === 0) await model.request(0);
  }
  return { acp, key };
}

async function acceptedRuns(): Promise<readonly string[]> {
  const listed = await run(["runs", "ls", "--json"], { cwd: folder.path, env: { SKEIN_DIR: dir } });
  return (JSON.parse(listed.out) as RunListPayload).runs.map(({ preview }) => preview).toReversed();
}

test.each(["killed", "left"] as const)(
  "[OWN12] a second prompt that was accepted runs once after the editor's agent was %s",
  async (how) => {
    const config = join(folder.path, "skein.yaml");
    writeFileSync(config, model.config);
    const { acp: agent, key } = await sendTwoPrompts(dir);
    await soon(acceptedRuns).toEqual(["First", "Second"]);
    if (how === "killed") agent.child.kill("SIGKILL");
    await agent.leave();

    const skein = await createSkein({ dir, config, quiet: true });
    try {
      for (const [index, text] of ["First", "Second"].entries()) {
        const request = await model.request(index + 1);
        expect(request.lastUserText).toContain(text);
        request.finish(`Answer to ${text}`);
      }
      for (const { runId } of await skein.runs.list()) await skein.ended(runId);
      const { sessionId = "" } = (await skein.session({ sessionKey: key }).record()) ?? {};
      const page = await skein.store.sessions.page({ agentId: "main" }, sessionId, {
        along: "branch",
        limit: 100,
      });
      const said = (page?.entries ?? []).flatMap((entry) =>
        entry.type === "message" ? [brief(entry.message)] : [],
      );
      expect(said).toEqual([
        "user: First",
        "assistant: Answer to First",
        "user: Second",
        "assistant: Answer to Second",
      ]);
    } finally {
      await skein.close({ graceMs: 0 });
    }
  },
);

test("[OWN12] a gateway runs the second prompt of an editor whose agent was killed", async () => {
  const models = model.config.replace(/^defaults:.*\n/, "");
  const gateway = await wholeGateway({
    config: `${models}agents: { main: { model: held/model } }\n`,
    folder,
  });
  try {
    const { acp: agent } = await sendTwoPrompts(gateway.root);
    const runsOf = async () => ((await gateway.rpc("runs.list")).body as RunListPayload).runs;
    await soon(async () => (await runsOf()).length).toBe(2);
    agent.child.kill("SIGKILL");
    (await model.request(0)).finish("One");
    (await model.request(1)).finish("Two");
    await soon(async () => (await runsOf()).map(({ reply }) => reply)).toEqual(["Two", "One"]);
  } finally {
    await gateway.close();
  }
});
