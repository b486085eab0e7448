import { join } from "node:path";
import { PassThrough } from "node:stream";
import { methods } from "@agentclientprotocol/sdk/unstable";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { serveAcpStdio } from "../../src/acp/server/serve-stdio.ts";
import type { FilesStore } from "../../src/app/folder.ts";
import { openSkein } from "../../src/app.ts";
import { defaultConfig } from "../../src/config/load.ts";
import type { TemporaryFolder } from "../../src/entry-testing.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import { Tokens } from "../../src/gateway/auth/tokens.ts";
import { allHandlers } from "../../src/gateway/methods/handlers.ts";
import type { LocalCallsWithEvents } from "../../src/gateway/methods/local-calls.ts";
import { localCallsWithEvents } from "../../src/gateway/methods/local-calls.ts";
import type { Skein } from "../../src/index.ts";
import { defineAgent, defineTool } from "../../src/index.ts";
import type { App } from "../../src/sessions/app.ts";
import type { AcpEditor } from "../support/acp-client.ts";
import { acpEditor, allowed, cancelled, rejected } from "../support/acp-client.ts";

const { session } = methods.agent;
const pay = "use the tool pay";
let folder: TemporaryFolder;
let skein: Skein;
let editor: AcpEditor;
let calls: LocalCallsWithEvents;
let paid = 0;
let reported: unknown[] = [];
let over: Promise<void>;
const leaving = { end: () => undefined as unknown };

beforeEach(async () => {
  folder = temporaryFolder("skein-acp-");
  const dir = join(folder.path, "root");
  paid = 0;
  reported = [];
  const tool = defineTool({
    name: "pay",
    description: "Pays a bill.",
    approval: true,
    execute: () => {
      paid += 1;
      return "it is paid";
    },
  });
  const agents = [defineAgent({ id: "main", model: "rehearsal/basic", tools: [tool] })];
  const inside = Promise.withResolvers<App>();
  skein = await openSkein({ dir, config: null, agents, quiet: true }, inside.resolve);
  const app = await inside.promise;
  const store = skein.store as FilesStore;
  const config = defaultConfig(dir);
  const _loaded = { config, file: null, root: dir, sources: new Map(), variable: () => undefined };
  const tokens = new Tokens(store.work);
  const deps = { ...app, skein, tokens };
  calls = localCallsWithEvents(allHandlers(deps), deps);
  const context = {
    version: "0",
    calls,
    scope: {},
    canCall: () => true,
    commands: [],
    cwd: folder.path,
    report: (error: unknown) => void reported.push(error),
  };
  const [input, output] = [new PassThrough(), new PassThrough()];
  leaving.end = () => input.end();
  over = serveAcpStdio(context, { input, output, signal: new AbortController().signal });
  editor = await acpEditor(output, input);
});
afterEach(async () => {
  leaving.end();
  await over;
  await skein.close();
  folder.remove();
  expect(reported).toEqual([]);
});

describe("a tool that requires approval, in an editor", () => {
  test("[AJN4] asks under the call's own ID, and runs when it is allowed", async () => {
    const id = await editor.create(folder.path);
    editor.permit = async () => allowed;
    expect(await editor.prompt(id, pay)).toMatchObject({ stopReason: "end_turn" });
    expect(paid).toBe(1);
    const [call] = editor.of("tool_call");
    expect(editor.asked).toMatchObject([
      {
        sessionId: id,
        toolCall: { toolCallId: call?.toolCallId, name: "pay" },
        options: [{ kind: "allow_once" }, { kind: "reject_once" }],
      },
    ]);
    const states = editor.of("tool_call_update").map(({ status }) => status);
    expect(states).toEqual(["in_progress", "completed"]);
  });

  test.each([
    ["rejected", rejected],
    ["cancelled", cancelled],
    ["an answer that was not offered", { outcome: { outcome: "selected", optionId: "other" } }] as const,
  ])("[AJN4] does not run when it is %s", async (_, answer) => {
    const id = await editor.create(folder.path);
    editor.permit = async () => answer as typeof rejected;
    expect(await editor.prompt(id, pay)).toMatchObject({ stopReason: "end_turn" });
    expect(paid).toBe(0);
    expect(editor.of("tool_call_update").at(-1)).toMatchObject({ status: "failed" });
  });

  test("[AJN4] asks no one in the modes allow and deny", async () => {
    const id = await editor.create(folder.path);
    await editor.agent.request(session.setMode, { sessionId: id, modeId: "allow" });
    await editor.prompt(id, pay);
    expect(paid).toBe(1);
    await editor.agent.request(session.setMode, { sessionId: id, modeId: "deny" });
    await editor.prompt(id, pay);
    expect(paid).toBe(1);
    expect(editor.asked).toEqual([]);
    expect(editor.of("current_mode_update").map(({ currentModeId }) => currentModeId)).toEqual([
      "allow",
      "deny",
    ]);
  });

  test("[AJN4] may be answered elsewhere, which withdraws the request", async () => {
    const id = await editor.create(folder.path);
    const taken = Promise.withResolvers<void>();
    const approvals: string[] = [];
    const leave = skein.subscribe((event) => {
      if (event.type === "approval.requested") approvals.push(event.approvalId);
    });
    editor.permit = (_, signal) =>
      new Promise((resolve) => {
        signal.addEventListener("abort", () => {
          taken.resolve();
          resolve(cancelled);
        });
      });
    const answered = editor.prompt(id, pay);
    await editor.until(/"asked":\[\{/);
    await skein.approvals.resolve(approvals[0] ?? "", "approved", "console");
    expect(await answered).toMatchObject({ stopReason: "end_turn" });
    await taken.promise;
    expect(paid).toBe(1);
    leave();
  });

  test("[AAG13] a cancel ends the turn and withdraws its request", async () => {
    const id = await editor.create(folder.path);
    const taken = Promise.withResolvers<void>();
    editor.permit = (_, signal) =>
      new Promise((resolve) => {
        signal.addEventListener("abort", () => {
          taken.resolve();
          resolve(cancelled);
        });
      });
    const answered = editor.prompt(id, pay);
    await editor.until(/"asked":\[\{/);
    await editor.agent.notify(session.cancel, { sessionId: id });
    expect(await answered).toMatchObject({ stopReason: "cancelled" });
    await taken.promise;
    expect(paid).toBe(0);
  });

  test("[AAG17] an editor that disconnects has answered and cancelled nothing", async () => {
    const id = await editor.create(folder.path);
    editor.permit = () => new Promise(() => undefined);
    const lost = editor.prompt(id, pay).catch(() => "lost");
    await editor.until(/"asked":\[\{/);
    leaving.end();
    await over;
    editor.close();
    expect(await lost).toBe("lost");
    const waiting = await skein.session({ sessionKey: id }).accept("repeat later", {});
    expect(waiting.state).toBe("queued");
    const approvals = await calls.call("approvals.list", { sessionKey: id });
    expect(approvals.count).toBe(1);
    const { runs } = await calls.call("runs.list", { sessionKey: id });
    expect(runs.map(({ state }) => state).sort()).toEqual(["queued", "waiting"]);
  });

  test("[AJN4] approvals pending when a session is opened are asked then", async () => {
    const handle = skein.session({ sessionKey: "agent:main:session:trip" });
    const asked = Promise.withResolvers<void>();
    const leave = skein.subscribe((event) => {
      if (event.type === "approval.requested") asked.resolve();
    });
    const run = await handle.accept(pay, {});
    await asked.promise;
    editor.permit = async () => allowed;
    const opening = { sessionId: "agent:main:session:trip", cwd: folder.path, mcpServers: [] };
    await editor.agent.request(session.load, opening);
    await skein.ended(run.runId, { timeoutMs: 150_000 });
    expect(paid).toBe(1);
    leave();
  });
});

describe("activity of others in a session that is open in an editor", () => {
  test("[AJN13] is shown there once, while the editor sends nothing", async () => {
    const id = await editor.create(folder.path);
    await editor.prompt(id, "repeat mine");
    await skein.session({ sessionKey: id }).accept("repeat theirs", {});
    await editor.until(/repeat theirs/);
    await expect.poll(() => editor.texts().match(/theirs/g)?.length).toBe(1);
    expect(editor.texts("user_message_chunk")).toBe("repeat theirs");
  });

  test("[OWN12] a second prompt waits for the first, and each is answered by its own turn", async () => {
    const id = await editor.create(folder.path);
    const order: string[] = [];
    const ask = async (text: string) => {
      const { stopReason } = await editor.prompt(id, text);
      order.push(text);
      return { stopReason, shown: editor.texts() };
    };
    const [slow, other] = await Promise.all([ask("be slow for 1 second"), ask("repeat the other one")]);
    expect([slow.stopReason, other.stopReason]).toEqual(["end_turn", "end_turn"]);
    expect(order).toEqual(["be slow for 1 second", "repeat the other one"]);
    expect(slow.shown).not.toBe("");
    expect(other.shown.startsWith(slow.shown)).toBe(true);
    expect(editor.texts().match(/the other one/g)).toHaveLength(1);
    expect(editor.texts()).toMatch(/the other one$/);
    expect(editor.texts("user_message_chunk")).toBe("");
  });

  test("of many prompts at once, each is shown completely before it is answered, without the next one", async () => {
    const id = await editor.create(folder.path);
    const numbers = [1, 2, 3, 4, 5, 6];
    const shown = await Promise.all(
      numbers.map(async (number) => {
        const { stopReason } = await editor.prompt(id, `repeat word${number}`);
        return [stopReason, editor.texts()];
      }),
    );
    const upTo = (number: number) => numbers.slice(0, number).map((each) => `word${each}`);
    expect(shown).toEqual(numbers.map((number) => ["end_turn", upTo(number).join("")]));
  });

  test("a waiting prompt is cancelled with the others, and never sent", async () => {
    const id = await editor.create(folder.path);
    const first = editor.prompt(id, "be slow for 60 seconds");
    const second = editor.prompt(id, "repeat too late");
    await expect.poll(() => editor.texts()).not.toBe("");
    await editor.agent.notify("session/cancel", { sessionId: id });
    expect(await Promise.all([first, second])).toMatchObject([
      { stopReason: "cancelled" },
      { stopReason: "cancelled" },
    ]);
    await editor.prompt(id, "repeat and on");
    expect(editor.texts()).toMatch(/and on$/);
    expect(editor.texts()).not.toContain("too late");
  });

  test("[AAG7] an answer is shown in pieces as it arrives", async () => {
    const id = await editor.create(folder.path);
    const words = Array.from({ length: 60 }, (_, n) => `word${n}`).join(" ");
    await editor.prompt(id, `repeat ${words}`);
    expect(editor.texts()).toBe(words);
    expect(editor.of("agent_message_chunk").length).toBeGreaterThan(1);
  });
});
