import { describe, expect, test } from "vitest";
import { fakeApp } from "../../test/support/fake-app.ts";
import { valueScript } from "../core/script.ts";
import type { Claim } from "../runs/contract.ts";
import { createMemoryStore } from "../store/memory/store.ts";
import { HookRegistry } from "./hooks.ts";
import { RunWriter } from "./run-writer.ts";

async function begun() {
  const store = createMemoryStore();
  const scope = { agentId: "main" };
  const session = await store.sessions.create(scope, { key: "agent:main:main", sessionId: "s", cwd: "/w" });
  const app = fakeApp({
    store,
    hooks: new HookRegistry(),
    runs: { heldFence: () => ({ script: () => valueScript(true) }) },
    bus: { emit: () => undefined },
    clock: { now: () => 0 },
  });
  const claim = { held: { runId: "r", fence: 1 }, leafId: null } as Claim;
  const writer = await RunWriter.begin(app, session, claim);
  const others = (id: string) =>
    store.sessions.append(scope, "s", [
      { draft: { type: "message", message: { role: "user", content: "Not ours." } }, id },
    ]);
  const ids = async () =>
    (await store.sessions.page(scope, "s", { along: "branch", limit: 100 }))?.entries.map(({ id }) => id);
  return { writer, others, ids };
}

const wake = { type: "custom_message", customType: "skein.wake", content: "Awake.", display: true } as const;
const hello = { role: "user", content: "Hello" } as const;

describe("writes of a run", () => {
  test("[LIB12] a note that the model sees is refused once another writer has added a message", async () => {
    const { writer, others, ids } = await begun();
    await writer.say(hello, "mine");
    await others("theirs");
    await expect(writer.note(wake, "note")).rejects.toMatchObject({ code: "fenced" });
    await writer.note({ type: "custom", customType: "x", data: {} }, "beside");
    expect(await ids()).toEqual(["mine", "theirs", "beside"]);
  });

  test("[LIB12] a note that exists already does not change the run's position", async () => {
    const { writer, ids } = await begun();
    await writer.note(wake, "note");
    await writer.say(hello, "mine");
    expect((await writer.note(wake, "note"))?.id).toBe("note");
    await writer.say(hello, "more");
    expect(await ids()).toEqual(["note", "mine", "more"]);
  });
});
