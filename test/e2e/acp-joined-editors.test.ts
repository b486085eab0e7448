import { join } from "node:path";
import { methods } from "@agentclientprotocol/sdk/unstable";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { TemporaryFolder } from "../../src/entry-testing.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import type { AcpProcess } from "../support/acp-client.ts";
import { acpProcess } from "../support/acp-client.ts";
import type { WholeGateway } from "../support/whole-gateway.ts";
import { wholeGateway } from "../support/whole-gateway.ts";

/** Editors that die, come back, and share a session, each with its own `skein acp`. */

const { session } = methods.agent;
let folder: TemporaryFolder;
let gateway: WholeGateway | null = null;
let dir = "";
const open: AcpProcess[] = [];

beforeEach(() => {
  folder = temporaryFolder("skein-acp-");
  dir = join(folder.path, "root");
});
afterEach(async () => {
  await Promise.all(open.splice(0).map((each) => each.leave()));
  await gateway?.close();
  gateway = null;
  folder.remove();
});

async function editing(): Promise<AcpProcess> {
  const one = await acpProcess(folder.path, ["--dir", dir]);
  open.push(one);
  return one;
}

const times = (text: string, pattern: RegExp) => text.match(pattern)?.length ?? 0;

test("[AJN12] an editor that dies in mid-turn and returns is shown everything once, and the turn continues", async () => {
  const first = await editing();
  const id = await first.editor.create(folder.path);
  await first.editor.prompt(id, "repeat apricot");
  const lost = first.editor.prompt(id, "be slow for 8 seconds").catch(() => "lost");
  await expect.poll(() => first.editor.of("agent_message_chunk").length).toBeGreaterThan(1);
  first.child.kill("SIGKILL");
  expect(await lost).toBe("lost");
  const { editor } = await editing();
  await editor.agent.request(session.load, { sessionId: id, cwd: folder.path, mcpServers: [] });
  expect(await editor.prompt(id, "repeat cherry")).toMatchObject({ stopReason: "end_turn" });
  expect(editor.texts("user_message_chunk")).toBe("repeat apricotbe slow for 8 seconds");
  expect([times(editor.texts(), /apricot/g), times(editor.texts(), /cherry/g)]).toEqual([1, 1]);
  const whole = await editing();
  await whole.editor.agent.request(session.load, { sessionId: id, cwd: folder.path, mcpServers: [] });
  expect(whole.editor.texts("user_message_chunk")).toBe("repeat apricotbe slow for 8 secondsrepeat cherry");
  expect([times(whole.editor.texts(), /apricot/g), times(whole.editor.texts(), /cherry/g)]).toEqual([1, 1]);
});

describe("two editors on one session", () => {
  test("[AJN13] each get the answer to their own prompt, and see the other's messages once", async () => {
    gateway = await wholeGateway({ folder });
    dir = gateway.root;
    const [{ editor: one }, { editor: two }] = await Promise.all([editing(), editing()]);
    const id = await one.create(folder.path);
    await two.agent.request(session.load, { sessionId: id, cwd: folder.path, mcpServers: [] });
    const slow = one.prompt(id, "be slow for 2 seconds");
    await two.until(/be slow for 2 seconds/);
    const both = await Promise.all([slow, two.prompt(id, "repeat cherry")]);
    expect(both.map(({ stopReason }) => stopReason)).toEqual(["end_turn", "end_turn"]);
    await one.until(/repeat cherry/);
    await expect.poll(() => times(one.texts(), /cherry/g)).toBe(1);
    expect(times(two.texts(), /cherry/g)).toBe(1);
    expect(one.texts("user_message_chunk")).toBe("repeat cherry");
    expect(two.texts("user_message_chunk")).toBe("be slow for 2 seconds");
    expect(one.texts()).toBe(two.texts());
  });
});
