import { expect, test } from "vitest";
import { Between } from "../../test/support/between.ts";
import type { App } from "../sessions/app.ts";
import { sessionsSend } from "./sessions-send.ts";

test("the tool keeps its name and description", () => {
  expect(sessionsSend).toMatchObject({
    name: "sessions_send",
    label: "Session Send",
    description: "Send a message into another session. Use sessionKey or label to identify the target.",
  });
  expect(JSON.parse(JSON.stringify(sessionsSend.parameters))).toMatchObject({
    type: "object",
    required: ["message"],
    properties: {
      sessionKey: { type: "string" },
      label: { type: "string", minLength: 1, maxLength: 512 },
      agentId: { type: "string", minLength: 1, maxLength: 64 },
      message: { type: "string" },
      timeoutSeconds: { type: "number", minimum: 0 },
      role: { enum: ["user", "assistant"] },
    },
  });
});

test("sends, and every refusal has a run ID", async () => {
  const between = new Between();
  const asker = await between.session("agent:main:main");
  await between.session("agent:main:session:b");
  const call = between.caller(asker);
  const app = between.deps as unknown as App;
  const { result } = await sessionsSend.execute(
    { sessionKey: "session:b", message: "请处理这个任务" },
    call,
    app,
  );
  const delivery = { status: "pending", mode: "announce" };
  expect(result).toEqual({ runId: result.runId, status: "sent", sessionKey: "session:b", delivery });
  expect(sessionsSend.refused?.(call)).toEqual({ runId: expect.stringMatching(/^[0-9a-f-]{36}$/) });
  const unfit = await sessionsSend.execute({ message: "x" }, between.caller(asker), app);
  expect(unfit.result).toMatchObject({ status: "error", error: "Either sessionKey or label is required" });
});
