import { describe, expect, test } from "vitest";
import { createRedactor } from "../access/redaction/redactor.ts";
import type { ToolCallContext } from "../agents/contract.ts";
import { deliveryId } from "../core/hashed-id.ts";
import * as s from "../core/schema.ts";
import type { Run } from "../runs/contract.ts";
import type { App } from "../sessions/app.ts";
import type { Caller } from "../sessions/session-access.ts";
import { createMemoryStore } from "../store/memory/store.ts";
import type { SessionTool, ToolAnswer } from "./session-tool.ts";
import { modelParameters } from "./session-tool.ts";
import { toRuntimeTool } from "./tool-adapters.ts";

const run = { runId: "run-1" } as Run;

async function setUp(answer: ToolAnswer, more: Partial<SessionTool> = {}) {
  const store = createMemoryStore();
  const session = await store.sessions.create(
    { userId: "ann" },
    { key: "agent:main:main", sessionId: "s-1", cwd: "/w" },
  );
  const calls: { args: unknown; call: Caller }[] = [];
  const app = {
    store,
    runs: { get: async (runId: string) => (runId === run.runId ? run : null) },
    redactor: createRedactor(),
    report: () => undefined,
  } as unknown as App;
  const tool: SessionTool = {
    name: "sessions_list",
    label: "Sessions",
    description: "List sessions.",
    parameters: { ...s.object({ limit: s.optional(s.integer({ minimum: 1 })) }) },
    execute: async (args, call) => {
      calls.push({ args, call });
      return answer;
    },
    ...more,
  };
  const about = {
    runId: "run-1",
    userId: "ann",
    agentId: "main",
    sessionKey: session.key,
    sessionId: "s-1",
    cwd: "/w",
  };
  const context: ToolCallContext = {
    about,
    toolCallId: "call-1",
    entryId: "entry-1",
    signal: new AbortController().signal,
    state: {},
    whileWaiting: async () => ({ entered: false, cycle: ["r"] }),
  };
  return { made: toRuntimeTool(tool, app, ({ agentId }) => agentId === "main"), calls, context, session };
}

describe("a session tool in a turn", () => {
  test("[FAM17] has its arguments stored in the tool's own form", async () => {
    const { made } = await setUp({ result: {} }, { persisted: () => ({ kept: true }) });
    expect(made.persisted?.({ limit: 3 })).toEqual({ kept: true });
    expect((await setUp({ result: {} })).made.persisted).toBeUndefined();
  });

  test("is safe to repeat, has its group, and runs last if it says so", async () => {
    const { made } = await setUp({ result: {} }, { isLast: true });
    expect(made).toMatchObject({ replay: "safe", groups: ["group:sessions"], isLast: true });
    expect(await made.needsApproval({})).toBe(false);
    expect("isLast" in (await setUp({ result: {} })).made).toBe(false);
  });

  test("the model gets the result as JSON, and a request to sleep is passed on", async () => {
    const sleep = { waitFor: ["r"] };
    const { made, context } = await setUp({ result: { count: 0, sessions: [] }, sleep });
    expect(await made.execute({}, context)).toEqual({
      content: [{ type: "text", text: '{"count":0,"sessions":[]}' }],
      isError: false,
      sleep,
    });
  });

  test.each([
    ["error", true],
    ["forbidden", true],
    ["ok", false],
    ["timeout", false],
    [undefined, false],
  ])("status %s is a failed result: %s", async (status, isError) => {
    const { made, context } = await setUp({ result: { status } });
    expect((await made.execute({}, context)).isError).toBe(isError);
  });

  test("invalid arguments are refused by the tool, not by the loop", async () => {
    const { made, context, calls } = await setUp({ result: {} });
    expect(await made.check({ limit: "many" })).toEqual({ args: { limit: "many" } });
    const { content, isError } = await made.execute({ limit: "many" }, context);
    const [said] = content;
    const result = said?.type === "text" ? JSON.parse(said.text) : null;
    expect(result).toMatchObject({ status: "error", code: "invalid_arguments" });
    expect(isError).toBe(true);
    expect(calls).toEqual([]);
  });

  test("the caller is the run's session, and the call has a stable name", async () => {
    const { made, context, calls, session } = await setUp({ result: {} });
    await made.execute({ limit: 2.5 }, context);
    await made.execute({ limit: 2.5 }, context);
    await made.execute({}, { ...context, toolCallId: "call-2" });
    const [first, again, other] = calls.map(({ call }) => call);
    expect(calls[0]?.args).toEqual({ limit: 2 });
    expect(first).toMatchObject({
      userId: "ann",
      agentId: "main",
      session: { uid: session.uid },
      sandboxed: true,
      run,
      entryId: "entry-1",
      callId: deliveryId("s-1", "entry-1", "call-1"),
    });
    expect(again?.callId).toBe(first?.callId);
    expect(other?.callId).not.toBe(first?.callId);
    expect(await first?.whileWaiting([], async () => 1)).toEqual({ entered: false, cycle: ["r"] });
  });

  test("a missing session is not found", async () => {
    const { made, context, calls } = await setUp({ result: {} });
    await made.execute({}, { ...context, about: { ...context.about, userId: "bob" } });
    expect(calls[0]?.call.session).toBeNull();
  });

  test("parameters are published as closed objects with enums, without internal keywords", () => {
    const parameters = s.object({
      keep: s.optional(s.string({ keep: true, description: "A text." })),
      mode: s.optional(s.choice(["run", "session"], { description: "How." })),
      role: s.optional(s.union([s.literal("user"), s.literal("assistant")])),
      either: s.optional(s.union([s.string({ keep: true }), s.array(s.string({ keep: true }))])),
      files: s.array(s.object({ content: s.string({ keep: true }) })),
    });
    expect(modelParameters({ ...parameters })).toEqual({
      type: "object",
      required: ["files"],
      additionalProperties: false,
      properties: {
        keep: { type: "string", description: "A text." },
        mode: { type: "string", enum: ["run", "session"], description: "How." },
        role: { type: "string", enum: ["user", "assistant"] },
        either: { anyOf: [{ type: "string" }, { type: "array", items: { type: "string" } }] },
        files: {
          type: "array",
          items: {
            type: "object",
            required: ["content"],
            additionalProperties: false,
            properties: { content: { type: "string" } },
          },
        },
      },
    });
  });
});
