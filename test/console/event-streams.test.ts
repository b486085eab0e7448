import type { EventStream, ReceivedEvent, SkeinClient } from "skein/client";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Feed } from "../../console/src/connect/feed.ts";
import { TranscriptReader } from "../../console/src/live/transcript-reader.ts";

vi.mock("skein/client", () => import("../../src/entry-client.ts"));
// Importing the whole module would trigger a sign-in.
vi.mock("../../console/src/connect/gateway.tsx", () => ({ errorText: String }));

const key = "agent:main:main";
const lastPageSize = 2;
const entry = (id: string, text: string, parentId: string | null = null) => ({
  type: "message",
  id,
  parentId,
  message: { role: "user", content: text },
});

/** A gateway with one session. The test rejects its subscriptions or feeds them. */
class FakeGateway {
  entries = [entry("e1", "first")];
  runs: object[] = [];
  refusals = 0;
  subscriptions = 0;
  /** The number of the last event that is reflected in the live answers, in the gateway of the streams and in another. */
  readonly seqs = { here: 0, elsewhere: 0 };
  readonly #queue: ReceivedEvent[] = [];
  #wake: () => void = () => undefined;

  readonly client = {
    state: "open",
    hello: { events: ["run.queued"] },
    events: () => this.#subscribe(),
    call: async (method: string, params: object) => this.#answer(method, params, this.seqs.elsewhere),
  } as unknown as SkeinClient;

  send(event: string, payload: object): void {
    this.seqs.here += 1;
    this.#queue.push({ event, seq: this.seqs.here, payload } as ReceivedEvent);
    this.#wake();
  }

  #subscribe(): EventStream {
    this.subscriptions += 1;
    const isRefused = this.refusals > 0;
    if (isRefused) this.refusals -= 1;
    const ready = isRefused ? Promise.reject(new Error("refused")) : Promise.resolve();
    ready.catch(() => undefined);
    const next = () => this.#next();
    const stream = {
      ready,
      close: () => undefined,
      call: async (method: string, params: object) => {
        await ready;
        return this.#answer(method, params, this.seqs.here);
      },
      async *[Symbol.asyncIterator]() {
        await ready;
        while (true) yield await next();
      },
    };
    return stream as unknown as EventStream;
  }

  async #next(): Promise<ReceivedEvent> {
    while (this.#queue.length === 0) await new Promise<void>((resolve) => (this.#wake = resolve));
    return this.#queue.shift() as ReceivedEvent;
  }

  #answer(method: string, { after, around }: { after?: string; around?: string }, seq: number): object {
    if (method === "chat.live") return { sessionId: "s1", leafId: null, seq, runs: this.runs, pending: [] };
    const from = this.entries.findIndex(({ id }) => id === (after ?? around));
    const start = after !== undefined ? from + 1 : around !== undefined ? from : -lastPageSize;
    const entries = this.entries.slice(start);
    const shown = around === undefined ? entries : entries.slice(0, 1);
    const page = { key, sessionId: "s1", leafId: this.entries.at(-1)?.id, hasEarlier: false };
    return { ...page, entries: shown, hasLater: shown.length < entries.length };
  }
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});
const pass = (ms = 0) => vi.advanceTimersByTimeAsync(ms);

async function opened(gateway: FakeGateway): Promise<TranscriptReader> {
  const reader = new TranscriptReader(gateway.client, { key });
  reader.open();
  await pass();
  return reader;
}
const streamed = {
  ...{ runId: "r", state: "running", isStreaming: true, tools: [] },
  ...{ text: "", textOffset: 0, thinking: "", thinkingOffset: 0 },
};
const texts = (reader: TranscriptReader) =>
  reader.state().entries.map((each) => (each.type === "message" ? Reflect.get(each.message, "content") : ""));

describe("the transcript of a session", () => {
  test("with one entry keeps it after a restart of the gateway and a redaction", async () => {
    const gateway = new FakeGateway();
    const reader = await opened(gateway);
    expect(texts(reader)).toEqual(["first"]);
    gateway.send("gap", { after: 10, upTo: 1, reason: "restart" });
    await pass();
    expect(texts(reader)).toEqual(["first"]);
    gateway.entries = [entry("e1", "redacted"), entry("e2", "second")];
    gateway.send("session.updated", { isRedacted: true });
    await pass();
    expect(texts(reader)).toEqual(["redacted", "second"]);
    reader.close();
  });

  test("shows no redacted text after a gap that hides the redaction", async () => {
    const gateway = new FakeGateway();
    const later = [entry("e2", "second", "e1"), entry("e3", "third", "e2")];
    const reader = await opened(gateway);
    for (const each of later)
      gateway.send("entry.appended", { sessionKey: key, sessionId: "s1", entry: each });
    gateway.entries = [entry("e1", "redacted"), ...later];
    gateway.send("gap", { after: 10, upTo: 12, reason: "slow" });
    await pass();
    expect(texts(reader)).toEqual(["redacted", "second", "third"]);
    reader.close();
  });

  test("follows a run in another process, which sends no events, until it ends", async () => {
    const gateway = new FakeGateway();
    const run = { ...streamed, isStreaming: false };
    gateway.runs = [{ ...run, text: "Once" }];
    const reader = await opened(gateway);
    expect(reader.state().live.map(({ text, isStreaming }) => [text, isStreaming])).toEqual([
      ["Once", false],
    ]);
    gateway.runs = [{ ...run, text: "Once upon a time" }];
    await pass(2000);
    expect(reader.state().live[0]?.text).toBe("Once upon a time");
    gateway.runs = [];
    gateway.entries.push(entry("e2", "Once upon a time."));
    await pass(2000);
    expect([reader.state().live, texts(reader)]).toEqual([[], ["first", "Once upon a time."]]);
    expect(vi.getTimerCount()).toBe(0);
    reader.close();
  });

  test("continues an answer with the events of a gateway that its other calls do not reach", async () => {
    vi.stubGlobal("document", { hidden: false });
    const gateway = new FakeGateway();
    gateway.seqs.elsewhere = 1_000_001;
    gateway.runs = [{ ...streamed, text: "Once" }];
    const reader = await opened(gateway);
    gateway.send("run.delta", { runId: "r", kind: "text", delta: " upon", offset: 4, step: 1 });
    await pass(32);
    expect(reader.state().live.map(({ text }) => text)).toEqual(["Once upon"]);
    gateway.send("run.ended", { runId: "r", state: "ok" });
    await pass();
    expect(reader.state().live).toEqual([]);
    reader.close();
  });

  test("subscribes again after a refusal, and reads what happened meanwhile", async () => {
    const gateway = new FakeGateway();
    gateway.refusals = 1;
    gateway.seqs.elsewhere = 1_000_001;
    const reader = await opened(gateway);
    expect(texts(reader)).toEqual(["first"]);
    gateway.entries = [entry("e1", "redacted")];
    await pass(1000);
    expect([texts(reader), gateway.subscriptions]).toEqual([["redacted"], 2]);
    reader.close();
    await pass(60_000);
    expect(gateway.subscriptions).toBe(2);
  });
});

test("the events of the page are subscribed to again after a refusal", async () => {
  const gateway = new FakeGateway();
  gateway.refusals = 2;
  const feed = new Feed();
  const names: string[] = [];
  feed.listen(({ event }) => names.push(event));
  feed.open(gateway.client);
  await pass(3000);
  gateway.send("run.queued", {});
  await pass();
  expect([names, gateway.subscriptions]).toEqual([["gap", "run.queued"], 3]);
  feed.close();
});
