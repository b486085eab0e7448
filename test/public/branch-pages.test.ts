import { dirname } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Result, SkeinClient } from "../../src/entry-client.ts";
import { createSkein } from "../../src/index.ts";
import { runCommand } from "../support/gateway-process.ts";
import type { WholeGateway } from "../support/whole-gateway.ts";
import { wholeGateway } from "../support/whole-gateway.ts";

const sessionKey = "agent:main:session:branches";
const secret = `sk-ant-api03-${"a1B2".repeat(20)}`;

let gateway: WholeGateway;
let client: SkeinClient;
/** The messages of the inactive branch and of the active one. The first two are the same. */
let left: readonly string[];
let active: readonly string[];

type History = Result<"chat.history">;
const idsOf = ({ messages }: History) => messages.map(({ id }) => id);
const history = (range: object = {}, of = client) => of.call("chat.history", { sessionKey, ...range });
const entries = (range: object = {}, of = client) =>
  of.call("sessions.entries", { key: sessionKey, ...range });

async function talk(...texts: readonly string[]): Promise<void> {
  for (const text of texts)
    await client.call("sessions.send", {
      ...{ key: sessionKey, message: `repeat ${text}`, idempotencyKey: text, timeoutMs: 150_000 },
    });
}

beforeEach(async () => {
  gateway = await wholeGateway();
  client = await gateway.client();
  await talk("one", "two", "three", `four ${secret}`);
  left = idsOf(await history());
  await client.call("sessions.branch", { key: sessionKey, entryId: left[1] ?? "" });
  await talk("five", "six");
  active = idsOf(await history());
});
afterEach(() => gateway.close());

describe("a branch that was left", () => {
  test("[BRP1] is read without moving the leaf", async () => {
    const leafId = left.at(-1) ?? "";
    const page = await history({ leafId });
    expect(idsOf(page)).toEqual(left);
    expect(page).toMatchObject({ leafId: active.at(-1), branchLeafId: leafId });
    const whole = await entries({ leafId });
    expect(whole.entries.map(({ id }) => id).filter((id) => left.includes(id))).toEqual(left);
    expect(idsOf(await history())).toEqual(active);
    expect(idsOf(await history({ leafId: left[3] }))).toEqual(left.slice(0, 4));
  });

  test("[BRP1] [BRP2] is shown by the command line, with the request for one of its answers", async () => {
    const json = async (...args: readonly string[]) => {
      const { out } = await runCommand(dirname(gateway.root), ...args, "--json");
      return JSON.parse(out);
    };
    const [leaf = "", middle = "", answer = ""] = [left.at(-1), left[4], left[3]];
    expect(idsOf(await json("sessions", "show", sessionKey, "--leaf", leaf))).toEqual(left);
    const around = await json("sessions", "show", sessionKey, "--around", middle, "--limit", "3");
    expect(idsOf(around)).toEqual(left.slice(3, 6));
    const { request } = await json("context", sessionKey, "--entry", answer);
    expect(JSON.stringify(request.messages)).toContain("repeat two");
    expect(JSON.stringify(request.messages)).not.toContain("repeat three");
    expect(idsOf(await history())).toEqual(active);
  });

  test("[BRP2] is found around one of its entries", async () => {
    const page = await history({ around: left[4], limit: 3 });
    expect(idsOf(page)).toEqual(left.slice(3, 6));
    expect(page).toMatchObject({ branchLeafId: left.at(-1), nextBefore: left[3], nextAfter: left[5] });
    const { branchLeafId: leafId, nextBefore: before, nextAfter: after } = page;
    expect(idsOf(await history({ leafId, before }))).toEqual(left.slice(0, 3));
    expect(idsOf(await history({ leafId, after }))).toEqual(left.slice(6));
  });

  test("[BRP2] gives pages of whole entries in both directions", async () => {
    const page = await entries({ around: left[4], limit: 5 });
    expect(page.entries[2]?.id).toBe(left[4]);
    expect(page).toMatchObject({ hasEarlier: true, hasLater: true, branchLeafId: left.at(-1) });
    const ids = page.entries.map(({ id }) => id);
    const { branchLeafId: leafId } = page;
    const earlier = await entries({ leafId, before: ids[0] });
    const later = await entries({ leafId, after: ids.at(-1) });
    const whole = await entries({ leafId });
    expect([...earlier.entries, ...page.entries, ...later.entries]).toEqual(whole.entries);
    expect([earlier.hasEarlier, later.hasLater]).toEqual([false, false]);
  });

  test("[BRP4] is masked for readers without the scope admin", async () => {
    const reader = await gateway.client(await gateway.token({ scopes: ["read"] }));
    const leafId = left.at(-1);
    for (const range of [{ leafId }, { around: leafId }]) {
      for (const page of [await history(range, reader), await entries(range, reader)]) {
        expect(JSON.stringify(page)).toContain("four");
        expect(JSON.stringify(page)).not.toContain(secret);
      }
    }
  });
});

test("[BRP3] a page around an entry of the active branch stays on it", async () => {
  for (const limit of [1, 2, 3, 4, 200]) {
    const page = await history({ around: active[2], limit });
    expect(page.branchLeafId).toBeUndefined();
    expect(idsOf(page).length).toBeLessThanOrEqual(limit);
    expect(idsOf(page)).toContain(active[2]);
  }
  expect(idsOf(await history({ around: active[0] }))).toEqual(active);
  expect(idsOf(await history({ leafId: active.at(-1), limit: 2 }))).toEqual(active.slice(-2));
});

test("[BRP1] the library reads a branch that was left, of a session in memory too", async () => {
  const skein = await createSkein({ ...{ memory: true, config: null, quiet: true } });
  const session = skein.session({ sessionId: "memory" });
  for (const text of ["repeat one", "repeat two"]) await session.send(text).result;
  const before = idsOf(await session.history());
  await session.branch(before[1] ?? "");
  await session.send("repeat three").result;
  const page = await session.history({ leafId: before.at(-1) ?? "" });
  expect(idsOf(page)).toEqual(before);
  expect(idsOf(await session.history({ around: before[2] ?? "" }))).toEqual(before);
  await skein.close();
});

test.each([
  ["an unknown entry", { around: "none" }, "not_found"],
  ["an unknown leaf", { leafId: "none" }, "not_found"],
  ["around together with before", { around: "a", before: "b" }, "invalid_request"],
])("refuses %s", async (_, range, code) => {
  await expect(history(range)).rejects.toMatchObject({ code });
  await expect(entries(range)).rejects.toMatchObject({ code });
});
