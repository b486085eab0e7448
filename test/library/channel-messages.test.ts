import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import type { Channel, DeliveryTarget } from "../../src/index.ts";
import { defineAgent } from "../../src/index.ts";
import { answering, closeAll, withScript } from "../support/skein.ts";
import { soon } from "../support/soon.ts";
import { signatureOf } from "../support/webhook-signature.ts";
import type { WholeGateway } from "../support/whole-gateway.ts";
import { wholeGateway } from "../support/whole-gateway.ts";

afterEach(async () => {
  vi.restoreAllMocks();
  await closeAll();
});

describe("a reply", () => {
  test.each([[{}], [{ accountId: "work" }], [{ threadId: "t7" }], [{ accountId: "work", threadId: "t7" }]])(
    "[CHN2] goes to the peer, account and thread of its message: %j",
    async (place) => {
      const targets: DeliveryTarget[] = [];
      const desk: Channel = {
        id: "desk",
        deliver: async (_message, target) => {
          targets.push(target);
          return {};
        },
      };
      const { skein, until } = await withScript(answering(), {}, { channels: [desk] });
      const message = { channel: "desk", text: "Hello", ...place };
      await skein.receive({ ...message, messageId: "m1", peer: "ann" });
      await skein.receive({ ...message, messageId: "m2", peer: "bob" });
      await until("outbox.delivered", ({ userId }) => userId === "desk:ann");
      await until("outbox.delivered", ({ userId }) => userId === "desk:bob");
      const byPeer = targets.toSorted((a, b) => String(a.to).localeCompare(String(b.to)));
      expect(byPeer).toEqual([
        { channel: "desk", to: "ann", ...place },
        { channel: "desk", to: "bob", ...place },
      ]);
    },
  );
});

test("[CHT20] a message goes to the channel's agent unless it names one", async () => {
  const agents = ["main", "news", "research"].map((id) => defineAgent({ id, model: "rehearsal/script" }));
  const config = { channels: { desk: { agent: "news" } } };
  const { skein } = await withScript(answering(), {}, { agents, config });
  const receive = (channel: string, more: object = {}) =>
    skein.receive({ channel, messageId: "m1", peer: "ann", text: "Hello", ...more });
  expect(await receive("desk")).toMatchObject({ sessionKey: "agent:news:desk:user:ann" });
  expect(await receive("desk", { messageId: "m2", agentId: "research" })).toMatchObject({
    sessionKey: "agent:research:desk:user:ann",
  });
  expect(await receive("other")).toMatchObject({ sessionKey: "agent:main:other:user:ann" });
});

describe("a delivery that fails", () => {
  test("[OUT3] is retried after 1 s, then twice as long each time up to 5 min, for 24 hours", async () => {
    vi.spyOn(Math, "random").mockReturnValue(0.999_999);
    let now = Date.UTC(2026, 0, 1);
    const desk: Channel = {
      id: "desk",
      deliver: async (_message, { to }) => (to === "bell" ? {} : Promise.reject(new Error("busy"))),
    };
    const clock = { now: () => now };
    const { skein } = await withScript(answering(), {}, { channels: [desk], clock });
    const begun = now;
    await skein.session().send("Hello", { deliverTo: { channel: "desk", to: "ann" } }).result;
    const letter = async () => (await skein.outbox()).find(({ target }) => target.to === "ann");
    const failedTimes = async (attempts: number) => {
      await soon(async () => (await letter())?.attempts).toBe(attempts);
      return letter();
    };
    /** A new message makes the outbox check for due rows. */
    const ring = () => skein.session().send("Ring", { deliverTo: { channel: "desk", to: "bell" } }).result;
    const delays: number[] = [];
    for (let attempts = 1; attempts <= 11; attempts++) {
      const row = await failedTimes(attempts);
      delays.push(((row?.nextAt ?? 0) - now) / 1000);
      now = row?.nextAt ?? 0;
      await ring();
    }
    expect(delays).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
    const day = 24 * 3_600_000;
    await failedTimes(12);
    now = begun + day - 600_000;
    await ring();
    expect(await failedTimes(13)).toMatchObject({ state: "queued" });
    now = begun + day;
    await ring();
    await soon(async () => (await letter())?.state).toBe("dead");
  });
});

describe("a webhook", () => {
  const secret = "a-secret-of-the-desk";
  let gateway: WholeGateway;
  beforeAll(async () => {
    gateway = await wholeGateway({ config: `channels: { desk: { type: webhook, secret: ${secret} } }\n` });
  });
  afterAll(() => gateway.close());

  interface Change {
    /** In seconds. */
    readonly skew?: number;
    readonly signature?: string | null;
    readonly timestamp?: string;
    readonly sent?: string;
  }

  async function post(messageId: string, { skew = 0, signature, timestamp, sent }: Change = {}) {
    const body = JSON.stringify({ text: "Hello", peer: "ann" });
    const time = timestamp ?? String(Math.floor(Date.now() / 1000) + skew);
    const signed =
      signature === undefined ? signatureOf(secret, { timestamp: time, messageId, body }) : signature;
    const answer = await fetch(`${gateway.url}/channels/desk/inbound`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "x-skein-timestamp": time,
        "x-skein-message-id": messageId,
        ...(signed === null ? {} : { "x-skein-signature": signed }),
      },
      body: sent ?? body,
    });
    return { status: answer.status, body: (await answer.json()) as { code?: string; runId?: string } };
  }

  const runCount = async () => {
    const { body } = await gateway.rpc("runs.list", { allUsers: true });
    return (body as { readonly runs: readonly unknown[] }).runs.length;
  };

  test.each<[string, Change]>([
    ["without a signature", { signature: null }],
    ["with the signature of other bytes", { sent: JSON.stringify({ text: "Hello!", peer: "ann" }) }],
    ["with the signature of another secret", { signature: `sha256=${"0".repeat(64)}` }],
    ["with a string as its signature", { signature: "hunter2" }],
    ["that is ten minutes old", { skew: -600 }],
    ["that is ten minutes early", { skew: 600 }],
    ["with a timestamp in words", { timestamp: "yesterday" }],
  ])("[CHN6] rejects a message %s with 401", async (_, change) => {
    const before = await runCount();
    expect(await post("rejected", change)).toMatchObject({ status: 401, body: { code: "unauthorized" } });
    expect(await runCount()).toBe(before);
  });

  test("[CHN7] starts one run for a message that it receives again", async () => {
    const first = await post("m1");
    const again = [await post("m1"), await post("m1", { skew: -30 })];
    expect([first.status, ...again.map(({ status }) => status)]).toEqual([202, 200, 200]);
    expect(again.map(({ body }) => body.runId)).toEqual([first.body.runId, first.body.runId]);
    const other = await post("m2");
    expect(other.status).toBe(202);
    expect(other.body.runId).not.toBe(first.body.runId);
    expect(await runCount()).toBe(2);
  });
});
