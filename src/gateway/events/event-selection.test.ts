import { beforeEach, describe, expect, test } from "vitest";
import { adminOfAll, readerOf } from "../../../test/support/event-hub.ts";
import { fakeApp } from "../../../test/support/fake-app.ts";
import type { Store } from "../../store/contract.ts";
import { createMemoryStore } from "../../store/memory/store.ts";
import { selectEvents } from "./event-selection.ts";

const ann = readerOf("ann");
let store: Store;
const deps = (scope: "per-sender" | "global" = "per-sender") =>
  fakeApp({ store, agents: { first: "main" }, config: { session: { scope } } });

async function make(userId: string | null, key: string, sessionId: string, label: string): Promise<void> {
  const scope = userId === null ? {} : { userId };
  await store.sessions.create(scope, { key, sessionId, cwd: "/", meta: { label } });
}

beforeEach(async () => {
  store = createMemoryStore();
  await make("ann", "agent:main:session:trip", "trip", "holiday");
  await make("ann", "agent:other:session:work", "work", "holiday");
  await make("bob", "agent:main:session:bobs", "bobs", "secret plan");
});

describe("the selection of events", () => {
  test.each([
    ["a key", "agent:main:session:trip", "agent:main:session:trip"],
    ["a key in capitals of an agent", "agent:MAIN:session:trip", "agent:main:session:trip"],
    ["a display key", "session:trip", "agent:main:session:trip"],
    ["a session id", "TRIP", "agent:main:session:trip"],
    ["a label", "holiday", "agent:main:session:trip"],
    ["main, before there is one", "main", "agent:main:main"],
    ["a key before there is one", "agent:main:cron:daily", "agent:main:cron:daily"],
    ["a display key before there is one", "cron:daily", "agent:main:cron:daily"],
    ["another user's key: the caller's own key", "agent:main:session:bobs", "agent:main:session:bobs"],
  ])("sessions may be named by %s", async (_, reference, key) => {
    const wanted = await selectEvents({ keys: [reference, reference] }, ann, "ann", deps());
    expect(wanted).toEqual({ keys: new Set([key]), events: [], of: { userId: "ann" }, agentId: null });
  });

  test.each(["no such label", "secret plan", "bobs", "subagent:nobody", "unknown", "current"])(
    "%s selects no session of this user",
    async (reference) => {
      await expect(selectEvents({ keys: [reference] }, ann, "ann", deps())).rejects.toMatchObject({
        code: "not_found",
      });
    },
  );

  test("references are resolved for the named agent, and main as configured", async () => {
    const other = await selectEvents({ keys: ["holiday", "main"], agentId: "Other" }, ann, "ann", deps());
    expect([...(other.keys ?? [])]).toEqual(["agent:other:session:work", "agent:other:main"]);
    expect(other.agentId).toBe(null);
    const shared = await selectEvents({ keys: ["main"] }, ann, "ann", deps("global"));
    expect([...(shared.keys ?? [])]).toEqual(["global"]);
  });

  test.each([
    ["a token's user", ann, "ann", {}, { userId: "ann" }, null],
    ["the unnamed user", readerOf(null), null, { agentId: "Other" }, { userId: null }, "other"],
    ["everybody", adminOfAll, null, { keys: [] }, "everybody", null],
    [
      "the user named by a token for all users",
      adminOfAll,
      "ann",
      { userId: "ann" },
      { userId: "ann" },
      null,
    ],
  ] as const)("without keys selects all of %s", async (_, principal, userId, params, of, agentId) => {
    const wanted = await selectEvents({ ...params, events: ["run.*"] }, principal, userId, deps());
    expect(wanted).toEqual({ keys: null, events: ["run.*"], of, agentId });
  });

  test("keys without a user, from a token for all users, belong to the unnamed user", async () => {
    const wanted = await selectEvents({ keys: ["main"] }, adminOfAll, null, deps());
    expect(wanted.of).toEqual({ userId: null });
  });
});
