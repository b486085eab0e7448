import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findProblems } from "../../src/core/check-schema.ts";
import type { MethodName } from "../../src/entry-client.ts";
import type { Method } from "../../src/protocol/method.ts";
import { methodNames, methodTable } from "../../src/protocol/method-table.ts";
import { anyOfSchema } from "../support/schemas.ts";
import type { Answered, Via } from "../support/walk-calls.ts";
import { Raw, WalkCalls, ways } from "../support/walk-calls.ts";
import { insidesIn, markersIn, Nowhere, nested } from "../support/walk-checks.ts";
import type { WalkRow } from "../support/walk-table.ts";
import { walkTable } from "../support/walk-table.ts";
import type { WalkWorld } from "../support/walk-world.ts";
import { allScopes, openWalk } from "../support/walk-world.ts";

let world: WalkWorld;
let calls: WalkCalls;
/** The world does not change between the tests that read it. */
let last: string | null = null;

beforeAll(async () => {
  world = await openWalk();
  calls = new WalkCalls(world.gateway.url);
});
afterAll(async () => {
  await calls?.close();
  await world?.close();
});

const rows = methodNames.map((name): [MethodName, Method, WalkRow<MethodName>] => [
  name,
  methodTable[name],
  walkTable[name] as unknown as WalkRow<MethodName>,
]);

/** The call is rejected with this code and reveals nothing. */
function expectRefused(answer: Answered, code: string, params: unknown, isAdmin = false): void {
  expect(answer.code, answer.text.slice(0, 500)).toBe(code);
  expectSilent(answer, params, isAdmin);
}

function expectSilent({ text, code }: Answered, params: unknown, isAdmin = false): void {
  expect(code, text.slice(0, 500)).not.toBe("internal");
  expect(markersIn(text, params), text.slice(0, 2000)).toEqual([]);
  expect(insidesIn(text, isAdmin), text.slice(0, 2000)).toEqual([]);
}

/** Ann's data is unchanged, no matter what is called. */
async function unchanged(act: () => Promise<void>): Promise<void> {
  const before = last ?? (await world.fingerprint());
  last = null;
  await act();
  last = await world.fingerprint();
  expect(last).toBe(before);
}

const wayTo = (method: Method, via: Via) => method.isSocketOnly !== true || via === "ws";
const othersOf = (row: WalkRow<MethodName>, via: Via) => (row.others ?? row.good)(world, via);

describe("a call of every method", () => {
  test("[GSA9] every method has its example, and nothing else has one", () => {
    expect(Object.keys(walkTable).sort()).toEqual([...methodNames].sort());
  });

  test.each(rows)("[GSA9] %s is refused without a valid token", async (name, _, row) => {
    await unchanged(async () => {
      const good = row.good(world, "http");
      const { expired, revoked } = world.tokens;
      const wrong = [null, "garbage", `skein_${"A".repeat(43)}`, "", expired, revoked];
      const answers = await Promise.all(wrong.map((token) => calls.http(token, name, good)));
      for (const answer of answers) expectRefused(answer, "unauthorized", good);
      // Over a socket, nothing can be called before `connect`.
      expectRefused(await calls.ws(null, name, good), "invalid_request", good);
    });
  });

  test.each(["garbage", "expired", "revoked"] as const)(
    "[GSA9] no socket opens with a token that is %s",
    async (kind) => {
      const token = kind === "garbage" ? "skein_garbage" : world.tokens[kind];
      expectRefused(await calls.connect(token), "unauthorized", {});
    },
  );

  test.each(rows)(
    "[GSA9] %s is forbidden to every other scope, even of its own user",
    async (name, method, row) => {
      await unchanged(async () => {
        for (const scope of allScopes.filter((each) => each !== method.scope)) {
          for (const via of ways) {
            const good = row.good(world, via);
            const answer = await calls.ask(via, world.tokens.alone[scope], name, good);
            expectRefused(answer, "forbidden", good, scope === "admin");
          }
        }
      });
    },
  );

  test.each(rows.filter(([, method]) => method.needsAll === true))(
    "[GSA10] %s requires a token for all users",
    async (name, _, row) => {
      await unchanged(async () => {
        for (const token of [world.tokens.ann, world.tokens.bob, world.tokens.unnamed]) {
          for (const via of ways) {
            const good = row.good(world, via);
            expectRefused(await calls.ask(via, token, name, good), "forbidden", good, true);
          }
        }
      });
    },
  );

  test.each(rows)(
    "[WLK3] %s gives other users the same answer as for names that do not exist",
    async (name, method, row) => {
      const nowhere = new Nowhere(world);
      await unchanged(async () => {
        for (const via of ways.filter((each) => wayTo(method, each))) {
          const params = othersOf(row, via);
          for (const token of [world.tokens.bob, world.tokens.unnamed]) {
            const answer = await calls.ask(via, token, name, params);
            expectRefused(answer, row.told, params, true);
            if (row.told === "ok") {
              expect(findProblems(method.result, answer.payload, 5)).toEqual([]);
              continue;
            }
            const elsewhere = await calls.ask(via, token, name, nowhere.of(params));
            expect(JSON.parse(nowhere.back(JSON.stringify(elsewhere.error)))).toEqual(answer.error);
          }
          const asAnn = await calls.ask(via, world.tokens.bob, name, { ...params, userId: "ann" });
          const asZoe = await calls.ask(via, world.tokens.bob, name, { ...params, userId: "zoe" });
          expect(["forbidden", "invalid_request"]).toContain(asAnn.code);
          expectSilent(asAnn, params, true);
          expect(asAnn.error).toEqual(asZoe.error);
        }
      });
    },
  );

  test.each(rows)(
    "[WLK4] %s refuses garbage in an ordered way, and does nothing",
    async (name, method, row) => {
      const token = method.needsAll === true ? world.gateway.admin : world.tokens.ann;
      await unchanged(async () => {
        for (const via of ways.filter((each) => wayTo(method, each))) {
          const each = garbageFor(method, row.good(world, via));
          const answers = await Promise.all(each.map((garbage) => calls.ask(via, token, name, garbage)));
          for (const [at, answer] of answers.entries()) {
            expectRefused(answer, "invalid_request", each[at], true);
          }
        }
      });
    },
  );

  test.each(rows)(
    "[WLK4] for any valid params of %s, another user learns nothing and breaks nothing",
    async (name, method) => {
      if (!wayTo(method, "http")) return;
      await unchanged(async () => {
        const samples = fc.sample(anyOfSchema(method.params), { numRuns: 4, seed: 7 });
        for (const sample of [null, ...samples]) {
          const params =
            typeof sample === "object" && sample !== null && "timeoutMs" in sample
              ? { ...sample, timeoutMs: 5 }
              : sample;
          expectSilent(await calls.http(world.tokens.plain, name, params), params);
        }
      });
    },
  );
});

function garbageFor(method: Method, good: object): unknown[] {
  const deep = nested(3000);
  const text = JSON.stringify(good).slice(1);
  const comma = text === "}" ? "" : ",";
  const fields = Object.keys(good).filter((field) => field !== "arguments");
  const others = fc.sample(anyOfSchema(method.params), { numRuns: 2, seed: 11 }) as object[];
  return [
    ...[[], [good], "x", "", 5, -1, true, { nonsense: 1 }, { ...good, nonsense: "x".repeat(100_000) }],
    ...[
      `{"__proto__":{"scopes":["admin"]}${comma}${text}`,
      `{"constructor":{"prototype":{}}${comma}${text}`,
    ].map((json) => new Raw(json)),
    ...[deep, `{"nonsense":${deep}${comma}${text}`].map((json) => new Raw(json)),
    ...fields.flatMap((field) => [
      { ...good, [field]: -1 },
      { ...good, [field]: { $ne: null } },
    ]),
    ...fields.map((field) => new Raw(`{"${field}":${deep}}`)),
    ...others.map((each) => ({ ...each, isAdmin: true })),
  ];
}

describe("the same calls by the owner", () => {
  test.each(rows)("[GSV1] %s works for ann, and its result matches its schema", async (name, method, row) => {
    const token = method.needsAll === true ? world.gateway.admin : world.tokens.ann;
    const wanted = ways.filter(
      (via) =>
        wayTo(method, via) &&
        (via === "http" || method.isIdempotent === true || method.isSocketOnly === true),
    );
    for (const via of wanted) {
      const answer = await calls.ask(via, token, name, row.good(world, via));
      expect(answer.code, answer.text.slice(0, 500)).toBe("ok");
      expect(findProblems(method.result, answer.payload, 5)).toEqual([]);
    }
  });
});
