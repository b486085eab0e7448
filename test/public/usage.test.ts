import { afterEach, describe, expect, test } from "vitest";
import type { Params } from "../../src/entry-client.ts";
import type { SessionPage } from "../../src/entry-store.ts";
import type { Family } from "../support/family.ts";
import { withParts } from "../support/family.ts";
import type { MountedOverHttp } from "../support/mounted-gateway.ts";
import { mountOverHttp } from "../support/mounted-gateway.ts";
import { closeAll, newFolder } from "../support/skein.ts";

const opened: MountedOverHttp[] = [];
afterEach(async () => {
  for (const each of opened.splice(0)) await each.close();
  await closeAll();
});

const main = "agent:main:main";
const trip = "agent:main:session:trip";

/** An answer in a session. If `cost` is `null`, its price is unknown. */
async function spend(
  { skein }: Family,
  userId: string,
  key: string,
  [totalTokens, cost]: readonly [number, number | null],
): Promise<void> {
  const { sessions } = skein.store;
  const [known] = await sessions.find({ userId }, { by: "key", key });
  const { sessionId } = known ?? (await sessions.create({ userId, agentId: "main" }, { key, cwd: "/" }));
  const none = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
  const usage = { ...none, totalTokens, cost: { ...none, total: cost ?? 0 } };
  const made = {
    api: "a",
    provider: "p",
    model: `m${totalTokens}`,
    usage,
    stopReason: "stop",
    timestamp: 2,
  } as const;
  const content = [{ type: "text", text: "done" } as const];
  const price = cost === null ? { skein: { costKnown: false } } : {};
  const message = { role: "assistant", content, ...made, ...price } as const;
  await sessions.append({ userId }, sessionId, [{ draft: { type: "message", message } }]);
}

async function openUsage(): Promise<MountedOverHttp> {
  const dir = newFolder();
  const family = await withParts({}, { dir });
  await spend(family, "ann", main, [10, 0.5]);
  await spend(family, "ann", main, [20, null]);
  await spend(family, "ann", trip, [30, 0.25]);
  await spend(family, "bob", main, [40, 1]);
  const gateway = await mountOverHttp(family.skein, dir);
  opened.push(gateway);
  return gateway;
}

test("[ST31] a list by cost continues after a session whose file reports an impossible cost", async () => {
  const family = await withParts({}, { dir: newFolder() });
  const keys = [main, trip, "agent:main:session:home"];
  for (const key of keys) await spend(family, "ann", key, [10, key === main ? 1 : 1e300]);
  const seen: string[] = [];
  for (let cursor: string | null = null, page = 0; page < keys.length; page++) {
    const options = { sort: "cost" as const, limit: 1, ...(cursor === null ? {} : { cursor }) };
    const list: SessionPage = await family.skein.store.sessions.list({ userId: "ann" }, options);
    seen.push(...list.sessions.map(({ key }) => key));
    cursor = list.nextCursor;
  }
  expect(seen.toSorted()).toEqual(keys.toSorted());
  expect(seen.at(-1)).toBe(main);
});

describe("sessions.usage", () => {
  test("groups by session and user, over all users for an admin", async () => {
    const gateway = await openUsage();
    const report = async (params: Params<"sessions.usage">) =>
      (await gateway.call("sessions.usage", params)).rows.map(
        ({ userId, sessionKey, totalTokens, costUsd, unpricedTokens }) =>
          [userId, sessionKey, totalTokens, costUsd, unpricedTokens]
            .filter((each) => each !== undefined)
            .join(" "),
      );
    expect(await report({ by: ["session"], allUsers: true })).toEqual([
      `bob ${main} 40 1 0`,
      `ann ${main} 30 0.5 20`,
      `ann ${trip} 30 0.25 0`,
    ]);
    expect(await report({ by: ["user"], allUsers: true })).toEqual(["bob 40 1 0", "ann 60 0.75 20"]);
    expect(await report({ by: ["session"], userId: "ann" })).toHaveLength(2);
    await expect(report({ allUsers: true, key: main })).rejects.toMatchObject({ code: "invalid_request" });
  });

  test.each<NonNullable<Params<"sessions.usage">["by"]>>([
    ["day"],
    ["session"],
    ["user", "model"],
    ["day", "model", "agent", "user", "session"],
  ])("[USG1] the rows add up to the total: %s %s %s %s %s", async (...by) => {
    const gateway = await openUsage();
    const groups = by.filter((group) => group !== undefined);
    const params = { by: groups, allUsers: true, timeZone: "Pacific/Chatham" };
    const { rows, total } = await gateway.call("sessions.usage", params);
    const sum = (figure: "answers" | "totalTokens" | "costUsd" | "unpricedTokens") =>
      rows.reduce((all, row) => all + row[figure], 0);
    expect(total).toMatchObject({ answers: 4, totalTokens: 100, costUsd: 1.75, unpricedTokens: 20 });
    expect([sum("answers"), sum("totalTokens"), sum("costUsd"), sum("unpricedTokens")]).toEqual([
      4, 100, 1.75, 20,
    ]);
  });
});
