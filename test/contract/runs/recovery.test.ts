import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import type { EntryDraft, Message, MessageDraft, Run } from "../../../src/index.ts";
import { defineTool, HookRegistry } from "../../../src/index.ts";
import type { RunOptions } from "../../../src/runs/contract.ts";
import { thisProcess } from "../../../src/store/files/process-identity.ts";
import { brief, entriesOf, messagesOf, pairingProblems } from "../../support/run-skein.ts";
import { openRunsInside } from "../../support/run-skein-inside.ts";

const base = mkdtempSync(join(tmpdir(), "skein-recovery-"));
afterAll(() => rmSync(base, { recursive: true, force: true }));

/** A dead process on this host. */
const deadOwner = JSON.stringify({ ...thisProcess(), pid: 2 ** 22 + 1, started: null, part: "dead" });

type Draft = MessageDraft | EntryDraft;
const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
const usage = { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, totalTokens: 2, cost };
const answer = (
  stopReason: string,
  more: Partial<Message> & { text?: string; calls?: string[] } = {},
): Draft => {
  const { text = "", calls = [], ...rest } = more;
  const said = text === "" ? [] : [{ type: "text", text }];
  const made = calls.map((name) => ({ type: "toolCall", id: `call-${name}`, name, arguments: {} }));
  const about = { api: "a", provider: "rehearsal", model: "script", usage };
  return {
    role: "assistant",
    content: [...said, ...made],
    ...about,
    stopReason,
    ...rest,
  } as unknown as Draft;
};
const result = (name: string, text: string): Draft =>
  ({
    role: "toolResult",
    toolCallId: `call-${name}`,
    toolName: name,
    content: [{ type: "text", text }],
    isError: false,
  }) as Draft;

interface Left {
  /** `false` if the owner died before it wrote the input. */
  readonly hasInput?: boolean;
  readonly behind?: readonly Draft[];
  /** `true` if all of these drafts were written before the run was claimed and therefore belong to other runs. */
  readonly isOlder?: boolean;
  readonly options?: RunOptions;
  /** The context that a hook adds before the prompt. */
  readonly prepend?: string;
}

/** A session whose owner died after writing these drafts behind its input. Another process claims its run. */
async function takenUp({ hasInput = true, behind = [], isOlder = false, options = {}, prepend }: Left) {
  const dir = mkdtempSync(join(base, "case-"));
  const done: string[] = [];
  const tool = (name: string, replay: "safe" | "never") =>
    defineTool({ name, description: "Does.", replay, execute: () => `${name} ${done.push(name)}` });
  const yielding = defineTool({ name: "sessions_yield", description: "Sleeps.", execute: () => "no" });
  const tools = [tool("again", "safe"), tool("once", "never"), yielding];
  const before = await openRunsInside({ dir, tools, workers: false });
  const { store, runs } = before.inside;
  const scope = { agentId: "main" };
  const init = { key: "agent:main:session:s", sessionId: "s", cwd: "/" };
  const { uid, userId, agentId, key, sessionId } = await store.sessions.create(scope, init);
  const session = { uid, userId, agentId, key, sessionId };
  const message = { role: "user", content: "Please" } as const;
  const { run } = await runs.accept({ session, kind: "user", message, options });
  const drafts: { draft: EntryDraft; id?: string }[] = behind.map((draft) => ({
    draft: "role" in draft ? { type: "message", message: draft } : draft,
  }));
  if (hasInput) drafts.unshift({ draft: { type: "message", message }, id: run.entryId });
  const write = async () => {
    if (drafts.length > 0) await store.sessions.append(scope, "s", drafts);
  };
  if (isOlder) await write();
  for (const since = Date.now(); isOlder && Date.now() === since; ) await tick();
  const claim = await runs.claim(deadOwner);
  expect(claim?.run.runId).toBe(run.runId);
  if (!isOlder) await write();
  await before.skein.close({ graceMs: 0 });
  const script = [{ text: "So be it." }];
  const hooks = new HookRegistry();
  if (prepend !== undefined) hooks.on("before_agent_start", () => ({ prependContext: prepend }));
  const { skein } = await openRunsInside({ dir, tools, script, hooks });
  const actions: string[] = [];
  skein.subscribe((event) => void (event.type === "run.recovered" && actions.push(event.action)));
  const end = await ended(() => skein.runs.get(run.runId));
  const messages = await messagesOf(skein, "s");
  const entries = await entriesOf(skein, "s");
  await skein.close({ graceMs: 0 });
  return {
    entries,
    end,
    said: messages.map(brief),
    messages,
    done,
    actions,
  };
}

function tick(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}

/** Resolves when the run has ended or is asleep. */
async function ended(look: () => Promise<Run | null>): Promise<Run | null> {
  for (;;) {
    const run = await look();
    if (run === null || run.outcome !== null || run.state === "sleeping") return run;
    await new Promise((resolve) => void setTimeout(resolve, 5));
  }
}

describe("recovery of a run whose owner died", () => {
  const custom = { type: "custom_message", customType: "x", content: "mind this", display: true } as const;
  const bash = {
    role: "bashExecution",
    command: "ls",
    output: "",
    exitCode: 0,
    cancelled: false,
    truncated: false,
  } as unknown as Draft;
  test.each<[string, Left]>([
    ["its input is not written", { hasInput: false }],
    ["its input", {}],
    ["a custom message", { behind: [custom] }],
    ["a command of the user", { behind: [bash] }],
    ...["stop", "length", "error", "aborted"].map((reason): [string, Left] => [
      `the answer of another run, which ended with ${reason}`,
      { behind: [answer(reason, { text: "To somebody else." })], isOlder: true },
    ]),
    ["results of all calls", { behind: [answer("toolUse", { calls: ["once"] }), result("once", "fine")] }],
    [
      "a temporary error",
      { behind: [answer("error", { skein: { retryable: true, attempts: 1 } } as never)] },
    ],
  ])("[LIB12] %s: asks the model", async (_, left) => {
    const { end, said, messages, done } = await takenUp(left);
    expect(end).toMatchObject({ state: "ok", outcome: { reply: "So be it." } });
    expect(said.filter((text) => text === "user: Please")).toHaveLength(1);
    expect(said.at(-1)).toBe("assistant: So be it.");
    expect(pairingProblems(messages)).toEqual([]);
    expect(done).toEqual([]);
  });

  test.each([
    [false, 1],
    [true, 0],
  ])("[LIB12] context added by hooks exists if the input did not (%s)", async (hasInput, count) => {
    const { entries } = await takenUp({ hasInput, prepend: "It is Monday." });
    const context = entries.filter((entry) => JSON.stringify(entry).includes("It is Monday."));
    expect(context).toHaveLength(count);
  });

  test("[LIB12] open calls: safe ones are repeated, the others reported, and the model is asked", async () => {
    const { end, said, messages, done } = await takenUp({
      behind: [answer("toolUse", { calls: ["again", "once"] })],
    });
    expect(end).toMatchObject({ state: "ok" });
    expect(done).toEqual(["again"]);
    expect(pairingProblems(messages)).toEqual([]);
    const results = said.slice(2, -1).join("\n");
    expect(results).toMatch(/interrupted.*unknown whether the call took effect/);
    expect(said.at(-1)).toBe("assistant: So be it.");
  });

  test.each(["stop", "length"])(
    "[LIB12] an answer that ended with %s: ends the run without asking the model",
    async (reason) => {
      const { end, said } = await takenUp({ behind: [answer(reason, { text: "It stands." })] });
      expect(end).toMatchObject({ state: "ok", outcome: { reply: "It stands." } });
      expect(said).toEqual(["user: Please", "assistant: It stands."]);
    },
  );

  test("[LIB12] an answer that matches its schema is parsed again", async () => {
    const outputSchema = { type: "object", properties: { a: { type: "number" } }, required: ["a"] };
    const { end } = await takenUp({
      behind: [answer("stop", { text: '{"a": 1}' })],
      options: { outputSchema },
    });
    expect(end).toMatchObject({ state: "ok", outcome: { output: { a: 1 } } });
  });

  test("[LIB12] a permanent error: ends the run as an error", async () => {
    const { end, said } = await takenUp({
      behind: [answer("error", { errorMessage: "No such model" } as never)],
    });
    expect(end).toMatchObject({ state: "error", outcome: { error: "No such model" } });
    expect(said).toHaveLength(2);
  });

  test("[LIB12] an aborted answer: ends the run as aborted", async () => {
    const { end } = await takenUp({ behind: [answer("aborted", { text: "Half" })] });
    expect(end).toMatchObject({ state: "aborted" });
  });

  test("[LIB12] a yield with nothing to wait for: the model is asked, once", async () => {
    const yielded = [
      answer("toolUse", { calls: ["sessions_yield"] }),
      result("sessions_yield", '{"status":"yielded"}'),
    ];
    const { end, said } = await takenUp({ behind: yielded });
    expect(end).toMatchObject({ state: "ok", outcome: { reply: "So be it." } });
    expect(said).toHaveLength(4);
  });
});
