import { describe, expect, test } from "vitest";
import type { Store } from "../../src/entry-store.ts";
import { createStore, guardedAppend } from "../../src/entry-store.ts";
import type { MessageDraft } from "../../src/index.ts";
import { assistantMessage } from "../support/session-text.ts";

const scope = { userId: "alice", agentId: "main" };

async function guarded() {
  const store = await createStore({ memory: true });
  await store.sessions.create(scope, { key: "agent:main:main", sessionId: "s", cwd: "/w" });
  const say = (message: MessageDraft) => guardedAppend({ store }, scope, "s", message);
  return { store, say };
}

async function transcript(store: Store): Promise<string[]> {
  const page = await store.sessions.page(scope, "s", { along: "branch", limit: 1000 });
  return (page?.entries ?? []).map((entry) => {
    if (entry.type !== "message") return entry.type;
    const { message } = entry;
    if (message.role !== "toolResult") return message.role;
    return `${message.role} ${message.toolCallId}${message.isError ? " error" : ""}`;
  });
}

const user = (content: string): MessageDraft => ({ role: "user", content });
const result = (toolCallId: string, text = "done"): MessageDraft => ({
  role: "toolResult",
  toolCallId,
  toolName: "read",
  content: [{ type: "text", text }],
  isError: false,
});

function calling(...ids: string[]) {
  const message = assistantMessage("I look it up");
  const calls = ids.map((id) => ({ type: "toolCall" as const, id, name: "read", arguments: {} }));
  return { ...message, stopReason: "toolUse" as const, content: [...message.content, ...calls] };
}

describe("a tool call without a result", () => {
  test("[GRD3] gets an error result before the next message", async () => {
    const { store, say } = await guarded();
    await say(calling("a", "b"));
    await say(result("a"));
    const { notes } = await say(user("never mind"));
    expect(notes).toMatchObject([{ kind: "synthetic_result" }]);
    expect(await transcript(store)).toEqual(["assistant", "toolResult a", "toolResult b error", "user"]);
  });

  test("[GRD3] of an aborted answer gets none", async () => {
    const { store, say } = await guarded();
    await say({ ...calling("a"), stopReason: "aborted" });
    await say(user("again"));
    expect(await transcript(store)).toEqual(["assistant", "user"]);
  });
});

test("[GRD4] a result of a million characters is cut at 400,000, and the whole is in a blob that the note names", async () => {
  const { store, say } = await guarded();
  await say(calling("a"));
  const { entries, notes } = await say(result("a", `head${"x".repeat(1_000_000)}tail`));
  const sha256 = /blob (\w{64})/.exec(notes[0]?.note ?? "")?.[1] ?? "";
  const text = JSON.stringify(entries[0]);
  expect(text.length).toBeLessThan(401_000);
  expect(text).toContain(sha256);
  expect(text).toContain("tail");
  const whole = await store.blobs.get(scope, sha256);
  expect(Buffer.from(whole ?? []).toString()).toBe(`head${"x".repeat(1_000_000)}tail`);
});
