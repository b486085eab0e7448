import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { SkeinClient } from "../../src/entry-client.ts";
import { CallError } from "../../src/entry-client.ts";
import { soon } from "../support/soon.ts";
import type { WholeGateway } from "../support/whole-gateway.ts";
import { wholeGateway } from "../support/whole-gateway.ts";

let gateway: WholeGateway;
let client: SkeinClient;

beforeEach(async () => {
  gateway = await wholeGateway();
  client = await gateway.client();
});
afterEach(() => gateway.close());

/** Collects a session's entries in the background, as text. An error ends the text. */
function following(key: string): () => string {
  let text = "";
  const read = async () => {
    for await (const entry of client.follow(key)) text += `${JSON.stringify(entry)}\n`;
  };
  read().catch((error: unknown) => {
    text += String(error);
  });
  return () => text;
}

/** Sends a message and waits for its answer. */
async function say(sessionKey: string, message: string): Promise<void> {
  const { runId } = await client.call("chat.send", { sessionKey, message, idempotencyKey: message });
  await client.call("agent.wait", { runId });
}

/** A fast machine sends more requests per second than a token can. The gateway says when to go on. */
async function patiently(call: () => Promise<unknown>): Promise<void> {
  for (;;) {
    try {
      await call();
      return;
    } catch (error) {
      if (!(error instanceof CallError) || error.retryAfterMs === null) throw error;
      await sleep(error.retryAfterMs);
    }
  }
}

describe("a client that follows", () => {
  test("[CLT11] more sessions than its token can have sockets receives the entries of each", async () => {
    const count = client.hello.limits.socketsPerToken + 6;
    const keys = Array.from({ length: count }, (_, at) => `agent:main:session:trip-${at}`);
    const rename = async (name: string) => {
      for (const key of keys) await patiently(() => client.call("sessions.rename", { key, name }));
    };
    for (const key of keys) await patiently(() => client.call("sessions.create", { key }));
    await rename("before");
    const texts = keys.map((key) => following(key));
    const without = (word: string) => keys.filter((_, at) => !texts[at]?.().includes(word));
    await soon(() => without("before")).toEqual([]);
    await rename("after");
    await soon(() => without("after")).toEqual([]);
  });

  test("[SNM3] a session that a reset has moved to another key receives its later entries", async () => {
    const key = "agent:main:session:trip";
    await say(key, "first");
    const text = following(key);
    await soon(text).toContain("first");
    const { previous } = await client.call("sessions.reset", { key });
    for (const message of ["second", "third", "fourth"]) {
      await say(previous.key, message);
      await soon(text).toContain(message);
    }
    await say(key, "elsewhere");
    await say(previous.key, "last");
    await soon(text).toContain("last");
    expect(text()).not.toContain("elsewhere");
  });
});
