import { describe, expect, test } from "vitest";
import { createRedactor } from "../access/redaction/redactor.ts";
import { SkeinError } from "../core/errors.ts";
import * as s from "../core/schema.ts";
import type { App } from "../sessions/app.ts";
import type { Caller } from "../sessions/session-access.ts";
import { runSessionTool } from "./run-session-tool.ts";
import type { SessionTool, ToolAnswer } from "./session-tool.ts";
import { ToolInputError } from "./session-tool.ts";

const secret = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789";

const caller: Caller = {
  userId: "ann",
  agentId: "main",
  session: null,
  sandboxed: false,
  run: null,
  callId: "call",
  entryId: null,
  signal: new AbortController().signal,
  whileWaiting: async (_, wait) => ({ entered: true, value: await wait() }),
};

function toolThat(
  does: () => ToolAnswer | Promise<ToolAnswer>,
  more: Partial<SessionTool> = {},
): SessionTool {
  return {
    name: "sessions_send",
    label: "Session Send",
    description: "Send.",
    parameters: { ...s.object({ message: s.optional(s.string()) }) },
    execute: async () => does(),
    ...more,
  };
}

async function outcome(tool: SessionTool, args: unknown = {}, call: Partial<Caller> = {}) {
  const reported: unknown[] = [];
  const app = {
    redactor: createRedactor({ secrets: ["the known value"] }),
    report: (error: unknown) => reported.push(error),
  } as unknown as App;
  return { ...(await runSessionTool(tool, args, { ...caller, ...call }, app)), reported };
}

const failing = (error: unknown) =>
  toolThat(() => {
    throw error;
  });

describe("a call of a session tool", () => {
  test("the tool gets its parsed arguments, and its answer is the result", async () => {
    let got: unknown;
    const sleep = { waitFor: ["r"] };
    const tool: SessionTool = {
      ...toolThat(() => ({ result: {} })),
      execute: async (args, { callId }) => {
        got = { args, callId };
        return { result: { status: "ok", none: undefined, deep: [{ none: undefined, some: 1 }] }, sleep };
      },
    };
    expect(await outcome(tool, { message: "  hello " })).toStrictEqual({
      result: { status: "ok", deep: [{ some: 1 }] },
      sleep,
      reported: [],
    });
    expect(got).toEqual({ args: { message: "hello" }, callId: "call" });
  });

  test("an invalid argument is a refusal, with the fields of the tool's refusals", async () => {
    const tool = toolThat(() => ({ result: {} }), { refused: ({ callId }) => ({ runId: `run-${callId}` }) });
    expect(await outcome(tool, { message: 5 })).toEqual({
      result: {
        status: "error",
        code: "invalid_arguments",
        error: "message must be a string, got 5",
        runId: "run-call",
      },
      reported: [],
    });
  });

  test.each([
    [new ToolInputError("either or", "label"), "invalid_arguments", "either or"],
    [
      new SkeinError("not_found", { what: "Session", name: "x", advice: "Look" }),
      "not_found",
      'Session not found: "x". Look.',
    ],
  ])("an intended error of a tool is a refusal: %s", async (error, code, text) => {
    const { result, reported } = await outcome(failing(error));
    expect(result).toEqual({ status: "error", code, error: text });
    expect(reported).toEqual([]);
  });

  test.each([
    [new TypeError("x of undefined")],
    [new SkeinError("internal", { problem: "insides" })],
    ["text"],
  ])("internal errors are reported, and shown without internals: %s", async (error) => {
    const { result, reported } = await outcome(failing(error));
    expect(reported).toEqual([error]);
    expect(result).toMatchObject({ status: "error", code: "internal" });
    expect(result.error).toContain("sessions_send failed");
    expect(JSON.stringify(result)).not.toMatch(/insides|undefined|text/);
  });

  test("a result that is not JSON is an internal error", async () => {
    const { result, reported } = await outcome(toolThat(() => ({ result: { size: 1n } })));
    expect(result.code).toBe("internal");
    expect(reported).toHaveLength(1);
  });

  test("an abort and a lost fence end the run", async () => {
    const reason = new Error("stopped");
    await expect(
      outcome(failing(new Error("in passing")), {}, { signal: AbortSignal.abort(reason) }),
    ).rejects.toBe(reason);
    const fenced = new SkeinError("fenced", { sessionId: "s" });
    await expect(outcome(failing(fenced))).rejects.toBe(fenced);
  });

  test("a result contains no secret, unless the tool masks its own", async () => {
    const says = { result: { reply: `key ${secret}`, deep: [{ text: "the known value" }] } };
    const seen = await outcome(toolThat(() => says));
    expect(JSON.stringify(seen.result)).not.toMatch(/abcdefghijkl|the known value/);
    expect((await outcome(toolThat(() => says, { isRedacted: true }))).result).toEqual(says.result);
  });

  test("a refusal contains no secret, even if the tool masks its own", async () => {
    const tool = toolThat(() => ({ result: {} }), { isRedacted: true });
    const { result } = await outcome(tool, { [secret]: 1 });
    expect(result.status).toBe("error");
    expect(JSON.stringify(result)).not.toContain("abcdefghijkl");
  });
});
