import { afterEach, describe, expect, test } from "vitest";
import { defineTool } from "../../src/index.ts";
import type { Family } from "../support/family.ts";
import { call, gate, withParts } from "../support/family.ts";
import { closeAll, newFolder } from "../support/skein.ts";

afterEach(closeAll);

const keyOf = (name: string) => `agent:main:session:${name}`;
const stores = [
  { where: "files", options: () => ({ dir: newFolder() }) },
  { where: "memory", options: () => ({}) },
];

/** Sessions in each state: one is waiting for approval, one is working, one has failed, and two are done. */
async function openDesk(options: object): Promise<{ family: Family; settle(): Promise<void> }> {
  const { tool, open } = gate();
  const pay = defineTool({
    name: "pay",
    description: "Pays",
    parameters: { type: "object", properties: {} },
    approval: true,
    execute: () => "paid",
  });
  const family = await withParts(
    {
      Buy: [call("pay"), { text: "Bought." }],
      Work: [call("gate"), { text: "Worked." }],
      Fail: [{ error: { status: 400, message: "no" } }],
      Greet: [{ text: "Hello." }],
    },
    { agent: { tools: [tool, pay] }, ...options },
  );
  const send = (name: string) => family.skein.session({ sessionKey: keyOf(name) }).send(`${name} it`);
  await family.make(keyOf("Idle"));
  await send("Greet").result;
  await send("Fail").result.catch(() => undefined);
  const turns = [send("Buy"), send("Work")];
  const { approvalId } = await family.until("approval.requested");
  await family.until("run.tool", ({ toolName }) => toolName === "gate");
  return {
    family,
    settle: async () => {
      await family.skein.approvals.resolve(approvalId, "approved");
      open();
      await Promise.all(turns.map(({ result }) => result));
    },
  };
}

const namesOf = (rows: readonly { readonly key: string }[]) =>
  rows.map(({ key }) => key.slice(keyOf("").length)).toSorted();

describe.each(stores)("sessions.list in $where", ({ options }) => {
  test("[DSK1] lists the sessions of a state, with their number", async () => {
    const { family, settle } = await openDesk(options());
    const { sessions } = family.skein;
    const listed = async (...states: ("needs_you" | "working" | "failed" | "done")[]) => {
      const { sessions: rows, total } = await sessions.list({ states, total: true });
      expect(total).toBe(rows.length);
      return namesOf(rows);
    };
    expect(await listed("needs_you")).toEqual(["Buy"]);
    expect(await listed("working")).toEqual(["Work"]);
    expect(await listed("failed")).toEqual(["Fail"]);
    expect(await listed("done")).toEqual(["Greet", "Idle"]);
    expect(await listed("needs_you", "done")).toEqual(["Buy", "Greet", "Idle"]);
    expect(await listed("working", "failed", "done", "needs_you")).toHaveLength(5);
    const all = await sessions.list({ total: true });
    expect(all.total).toBe(5);
    expect(await sessions.list({})).not.toHaveProperty("total");
    expect(
      all.sessions.map(({ key, state }) => `${key.slice(keyOf("").length)} ${state}`).toSorted(),
    ).toEqual(["Buy needs_you", "Fail failed", "Greet done", "Idle done", "Work working"]);
    await settle();
    expect(await listed("needs_you", "working")).toEqual([]);
    expect(await listed("done")).toEqual(["Buy", "Greet", "Idle", "Work"]);
  });

  test("[DSK1] a state is listed page by page", async () => {
    const { family, settle } = await openDesk(options());
    const seen: string[] = [];
    for (let cursor: string | undefined = "", pages = 0; cursor !== undefined && pages < 9; pages++) {
      const from: { cursor?: string } = cursor === "" ? {} : { cursor };
      const page = await family.skein.sessions.list({
        ...{ states: ["done", "failed"], limit: 1, total: true },
        ...from,
      });
      expect(page.total).toBe(3);
      seen.push(...namesOf(page.sessions));
      cursor = page.nextCursor;
    }
    expect(seen.toSorted()).toEqual(["Fail", "Greet", "Idle"]);
    await settle();
  });

  test("[DSK2] `keys` returns the rows of these sessions, archived or not, in one call", async () => {
    const { family, settle } = await openDesk(options());
    await settle();
    const { sessionId } = await family.at(keyOf("Greet"));
    await family.skein.store.sessions.patch({}, sessionId, { archived: true });
    const keys = [keyOf("Greet"), keyOf("Buy"), keyOf("Missing"), keyOf("Buy")];
    const { sessions, total, nextCursor } = await family.skein.sessions.list({ keys, total: true });
    expect([namesOf(sessions), total, nextCursor]).toEqual([["Buy", "Greet"], 2, undefined]);
    const active = await family.skein.sessions.list({ keys, archived: false, limit: 1 });
    expect(namesOf(active.sessions)).toEqual(["Buy"]);
    for (const none of [{ keys, userId: "bob" }, { keys: [] }])
      expect(await family.skein.sessions.list({ ...none, total: true })).toMatchObject({
        count: 0,
        total: 0,
      });
  });

  test("lists sessions by channel and in another order", async () => {
    const family = await withParts({}, options());
    for (const key of [
      "agent:main:desk:user:zoe",
      "agent:main:desk:user:ann",
      "agent:main:cron:daily",
      keyOf("a"),
    ])
      await family.make(key);
    const listed = async (query: Parameters<Family["skein"]["sessions"]["list"]>[0]) =>
      (await family.skein.sessions.list(query)).sessions.map(({ key }) => key.slice("agent:main:".length));
    expect(await listed({ channels: ["desk"], sort: "name" })).toEqual(["desk:user:ann", "desk:user:zoe"]);
    expect(await listed({ channels: ["internal", "unknown"], sort: "created" })).toEqual([
      "session:a",
      "cron:daily",
    ]);
  });
});
