import { afterEach, describe, expect, test } from "vitest";
import type { Turn } from "../../src/agents/contract.ts";
import type { Scripted, ScriptedReply, Twin } from "../../src/entry-testing.ts";
import type { MessageDraft } from "../../src/index.ts";
import { goldenRun } from "../support/golden-run.ts";
import type { TurnOptions } from "../support/turn.ts";
import { openTurn, text, tool } from "../support/turn.ts";
import { twinModel } from "../support/twin-model.ts";
import type { TwinProvider } from "../support/twin-providers.ts";
import { providers } from "../support/twin-providers.ts";
import { imageData } from "../support/twins.ts";

const twins: Twin[] = [];
afterEach(() => Promise.all(twins.splice(0).map((twin) => twin.close())));

const says = (words: string): ScriptedReply => ({
  content: [{ type: "text", text: words }],
  usage: { input: 100, output: 20 },
});
const done = says("Three days in Kyoto: the gardens, the food, the tea. 京都で三日。");
const calls: ScriptedReply = {
  content: [
    { type: "thinking", thinking: "The gardens first, then the food." },
    { type: "text", text: "I will look into both." },
    { type: "toolCall", name: "find", arguments: { what: "gardens" } },
    { type: "toolCall", name: "find", arguments: { what: "food" } },
  ],
  usage: { input: 200, cacheRead: 100, output: 50, reasoning: 10 },
};
const png = imageData("png", 10, 10);
const image = { type: "image" as const, data: png, mimeType: "image/png" };

describe.each(providers)("the loop with $api", (provider) => {
  const begin = async (replies: readonly Scripted[], options: Partial<TurnOptions> = {}, more = {}) => {
    const { twin, model } = await twinModel(provider, replies, more);
    twins.push(twin);
    const it = await openTurn({ model, ...options });
    await it.say({ role: "user", content: "Plan three days in Kyoto" });
    return { ...it, twin };
  };
  const golden = async (it: Awaited<ReturnType<typeof begin>>, name: string) => {
    const file = new URL(`../golden/runs/${provider.api}/${name}.jsonl`, import.meta.url).pathname;
    await expect(goldenRun(await it.entries())).toMatchFileSnapshot(file);
    expect(it.twin.requests.filter(({ refusal }) => refusal !== null)).toEqual([]);
  };
  const textOfDeltas = (it: Awaited<ReturnType<typeof begin>>) =>
    it.events
      .flatMap((event) => (event.type === "delta" && event.kind === "text" ? [event.delta] : []))
      .join("");

  test("[OVF11] a text arrives in pieces, and is written complete with its usage", async () => {
    const it = await begin([done]);
    const end = await it.run();
    const reply = "Three days in Kyoto: the gardens, the food, the tea. 京都で三日。";
    expect(end).toMatchObject({ kind: "answered", reply });
    expect(textOfDeltas(it)).toBe(reply);
    expect(it.charged).toMatchObject([{ input: 100, output: 20 }]);
    expect(it.charged[0]?.cost === undefined).toBe(it.turn.model.price === null);
    await golden(it, "text");
  });

  test("[LOP5] thinking and parallel calls: results in the order of the calls, accepted by the twin", async () => {
    const started: string[] = [];
    let release: () => void = () => undefined;
    const second = new Promise<void>((resolve) => {
      release = resolve;
    });
    const find = tool("find", async (args) => {
      const { what } = args as { what: string };
      started.push(what);
      if (what === "food") release();
      else await second;
      return text(`Some ${what}.`);
    });
    const it = await begin([calls, done, done], { tools: [find], with: { thinkingLevel: "low" } });
    expect(await it.run()).toMatchObject({ kind: "answered" });
    expect(started).toEqual(["gardens", "food"]);
    await it.say({ role: "user", content: "And by train?" });
    expect(await it.run()).toMatchObject({ kind: "answered" });
    await golden(it, "tools");
  });

  test("sends images in the prompt and in results", async () => {
    const look = tool("look", async () => ({ content: [{ type: "text", text: "Seen:" }, image] }));
    const it = await begin(
      [
        { content: [{ type: "toolCall", name: "look", arguments: {} }], usage: { input: 1, output: 1 } },
        done,
      ],
      { tools: [look] },
    );
    const prompt: MessageDraft = { role: "user", content: [{ type: "text", text: "Where is this?" }, image] };
    await it.say(prompt);
    expect(await it.run()).toMatchObject({ kind: "answered" });
    expect(JSON.stringify(it.twin.requests.at(-1)?.body).split(png).length).toBe(3);
    await golden(it, "images");
  });

  test.each([
    [429, "7", 7000, "rate_limited"],
    [529, undefined, 500, "overloaded"],
    [503, "0.25", 250, "overloaded"],
    [500, undefined, 500, "server_error"],
  ])(
    "[LOP8] status %i, with Retry-After %s, is retried after %i ms",
    async (status, after, delayMs, code) => {
      const fault: Scripted = {
        fault: "status",
        status,
        message: "Not now",
        ...(after && { retryAfter: after }),
      };
      const it = await begin([fault, done]);
      expect(await it.run()).toMatchObject({ kind: "answered" });
      expect(it.events.filter(({ type }) => type === "retry")).toMatchObject([
        { attempt: 1, delayMs, code, error: expect.stringContaining("Not now") },
      ]);
      expect(it.sleeps).toEqual([delayMs]);
      await golden(it, "text");
    },
  );

  test.each(["cut", "garbage"] as const)("[LOP8] a stream with %s is retried", async (fault) => {
    const it = await begin([{ fault, reply: says("far too long to be said"), afterEvents: 3 }, done]);
    expect(await it.run()).toMatchObject({ kind: "answered" });
    expect(it.events.filter(({ type }) => type === "retry")).toMatchObject([{ attempt: 1 }]);
    await golden(it, "text");
  });

  test("[LOP8] a stream that becomes silent is abandoned and retried", async () => {
    const it = await begin(
      [{ fault: "stall", reply: says("far too long to be said"), afterEvents: 5 }, done],
      {
        with: emitting((event) => {
          if (event.type === "delta") setImmediate(() => hushed());
        }),
      },
    );
    let isOnce = true;
    const hushed = () => {
      if (isOnce) it.time.hush();
      isOnce = false;
    };
    expect(await it.run()).toMatchObject({ kind: "answered" });
    await golden(it, "text");
  });

  test("a stream in tiny pieces is read like any other", async () => {
    const it = await begin([{ fault: "slow", reply: done, bytes: 7 }]);
    expect(await it.run()).toMatchObject({ kind: "answered" });
    await golden(it, "text");
  });

  test("[OVF2] a request that does not fit is repeated once there is room", async () => {
    const rooms: string[] = [];
    const it = await begin([done], { limits: { maxOutputTokens: 500 } }, { contextWindow: 3000 });
    await it.say({ role: "user", content: "word ".repeat(4000) });
    const makeRoom: Turn["makeRoom"] = async (_, why) => {
      rooms.push(why);
      await it.store.sessions.append({ userId: "ann" }, "s", [
        {
          draft: { type: "compaction", summary: "A long list.", firstKeptEntryId: null, tokensBefore: 4000 },
        },
      ]);
      await it.say({ role: "user", content: "Go on" });
      return true;
    };
    Object.assign(it.turn, { makeRoom });
    expect(await it.run()).toMatchObject({ kind: "answered" });
    expect([rooms, it.sleeps]).toEqual([["overflow"], []]);
    expect(it.twin.requests.map(({ refusal }) => refusal === null)).toEqual([false, true]);
  });

  test("[LIB5] structured output is requested in a form that the provider accepts", async () => {
    const outputSchema = { type: "object", properties: { days: { type: "integer" } }, required: ["days"] };
    for (const tools of [[], [tool("find")]]) {
      const it = await begin([says("Three."), says('{"days":3}')], { tools, with: { outputSchema } });
      expect(await it.run()).toMatchObject({ kind: "answered", output: { days: 3 } });
      expect(it.twin.requests.map(({ refusal }) => refusal)).toEqual([null, null]);
    }
  });

  test("[OVF4] a rejected key is reported with the setting, and nothing is retried", async () => {
    const it = await begin([keyRefused(provider)]);
    const error = await it.run().catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "model_auth" });
    expect(String(error)).toContain(`models.providers.${provider.provider}.apiKey`);
    expect(it.twin.requests).toHaveLength(1);
    await golden(it, "auth");
  });

  test("[LIB11] an abort in mid-stream keeps the text so far", async () => {
    const it = await begin([{ fault: "stall", reply: says("Three days in Kyoto"), afterEvents: 20 }], {
      with: emitting((event) => {
        if (event.type === "delta" && event.delta.length > 0) said += event.delta;
        if (said === "Three days in Kyoto") it.abort(new Error("enough"));
      }),
    });
    let said = "";
    await expect(it.run()).rejects.toThrow("enough");
    await golden(it, "aborted");
  });

  test("when the last attempt fails too, its text and the provider's error are written, and the session continues", async () => {
    const cut: Scripted = { fault: "status", status: 529, message: "Overloaded" };
    const it = await begin([cut, cut, cut, cut, done]);
    await expect(it.run()).rejects.toMatchObject({ code: "model_failed" });
    expect(it.events.filter(({ type }) => type === "retry")).toHaveLength(3);
    expect(it.sleeps).toEqual([500, 1000, 2000]);
    expect(await it.run()).toMatchObject({ kind: "answered" });
    await golden(it, "failed");
  });
});

function emitting(emit: Turn["emit"]): Partial<Turn> {
  return { emit };
}

/** The refusal in the provider's own words. */
function keyRefused({ api }: TwinProvider): Scripted {
  return api === "google-generative-ai"
    ? { fault: "status", status: 400, message: "API key not valid. Please pass a valid API key." }
    : { fault: "status", status: 401, message: "Incorrect API key provided." };
}
