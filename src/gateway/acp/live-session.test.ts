import type { SessionUpdate } from "@agentclientprotocol/sdk/unstable";
import { describe, expect, test } from "vitest";
import { inputEntryId } from "../../core/hashed-id.ts";
import type { ReceivedEvent } from "../../protocol/methods/calls.ts";
import type { WireEntry } from "../../protocol/session-details.ts";
import type { AcpParts } from "./contract.ts";
import { LiveSession } from "./live-session.ts";

const key = "agent:main:session:trip";
const about = { at: 0, sessionKey: key, sessionId: "s1", runId: "r1" };

/** A session that answers as it is told: a log, and the events that come of it or do not. */
class FakeSession {
  readonly log: WireEntry[] = [];
  sessionId = "s1";
  readonly told: SessionUpdate[] = [];
  readonly called: string[] = [];
  readonly ended = Promise.withResolvers<void>();
  readonly #events: ReceivedEvent[] = [];
  #news = Promise.withResolvers<void>();
  #isClosed = false;
  #pageSize: number;

  constructor(pageSize = 200) {
    this.#pageSize = pageSize;
  }

  /** Written, and told of unless that is lost. */
  write(
    role: "user" | "assistant",
    text: string,
    { id = `e${this.log.length + 1}`, isLost = false } = {},
  ): void {
    const content = role === "user" ? text : [{ type: "text", text }];
    const message = { role, content, ...(role === "user" ? {} : { stopReason: "stop" }) };
    const entry = { type: "message", id, parentId: null, timestamp: "", message } as unknown as WireEntry;
    this.log.push(entry);
    if (!isLost) this.emit("entry.appended", { entry });
  }

  emit(event: string, fields: object = {}): void {
    this.#events.push({ event, payload: { ...about, ...fields }, seq: 0 } as unknown as ReceivedEvent);
    this.#news.resolve();
  }

  open(replay = false): Promise<LiveSession> {
    const tell = async (update: SessionUpdate) => void this.told.push(update);
    const ask = () => new Promise<never>(() => undefined);
    return LiveSession.open(this.#parts(), key, { tell, ask }, replay);
  }

  text(kind: "agent_message_chunk" | "user_message_chunk" = "agent_message_chunk"): string {
    return this.told
      .map((each) => (each.sessionUpdate === kind && "text" in each.content ? each.content.text : ""))
      .join("|");
  }

  #parts(): AcpParts {
    const call = async (method: string, params: Record<string, unknown>) => {
      this.called.push(method);
      return this.#answer(method, params);
    };
    return {
      version: "0",
      calls: { call: call as never, events: () => this.#stream() },
      whose: {},
      may: () => true,
      commands: [],
      cwd: "/",
      report: (error) => {
        throw error;
      },
    };
  }

  async #answer(method: string, params: Record<string, unknown>): Promise<unknown> {
    switch (method) {
      case "sessions.resolve":
        return { key, sessionId: this.sessionId };
      case "sessions.get":
        return { key, sessionId: this.sessionId };
      case "sessions.entries":
        return this.#page(params);
      case "approvals.list":
        return { count: 0, approvals: [] };
      case "chat.send":
        return { runId: "r1", status: "accepted", sessionKey: key };
      case "agent.wait": {
        await this.ended.promise;
        const usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0 };
        return { runId: "r1", finished: true, state: "ok", usage };
      }
      default:
        throw new Error(`nobody answers ${method}`);
    }
  }

  #page({ after, before, limit = this.#pageSize }: { after?: string; before?: string; limit?: number }) {
    const place = (id: string) => this.log.findIndex((each) => each.id === id);
    if (after !== undefined) {
      if (place(after) < 0) throw new Error(`no entry ${after}`);
      const entries = this.log.slice(place(after) + 1).slice(0, limit);
      return { entries, hasEarlier: true, hasLater: place(after) + 1 + entries.length < this.log.length };
    }
    const end = before === undefined ? this.log.length : place(before);
    const from = Math.max(0, end - limit);
    return { entries: this.log.slice(from, end), hasEarlier: from > 0, hasLater: end < this.log.length };
  }

  #stream() {
    const self = this;
    return {
      ready: Promise.resolve(),
      close: () => {
        this.#isClosed = true;
        this.#news.resolve();
      },
      async *[Symbol.asyncIterator]() {
        while (!self.#isClosed) {
          const next = self.#events.shift();
          if (next !== undefined) yield next;
          else {
            await self.#news.promise;
            self.#news = Promise.withResolvers();
          }
        }
      },
    };
  }
}

const words = (message: string) => ({ message, attachments: [], isTyped: true });
const never = new AbortController().signal;

describe("a session that is open in an editor", () => {
  test.each([1, 2, 3, 200])("[AAG3] is shown from its beginning, in pages of %i", async (pageSize) => {
    const fake = new FakeSession(pageSize);
    for (const text of ["one", "two", "three", "four", "five"])
      fake.write("assistant", text, { isLost: true });
    const live = await fake.open(true);
    expect(fake.text()).toBe("one|two|three|four|five");
    live.close();
  });

  test("[AAG7] what the events lost is there before the prompt is answered, and what comes late is not shown again", async () => {
    const fake = new FakeSession(2);
    fake.write("assistant", "before", { isLost: true });
    const live = await fake.open();
    live.begin();
    const answered = live.prompt(words("hi"), never);
    fake.write("user", "hi", { id: inputEntryId("r1") });
    fake.emit("run.delta", { kind: "text", delta: "good " });
    await expect.poll(() => fake.text()).toContain("good ");
    for (const text of ["good morning", "and", "good", "night"])
      fake.write("assistant", text, { isLost: true });
    fake.emit("gap", { after: 1, before: 2 });
    fake.emit("run.delta", { kind: "text", delta: "morning" });
    fake.emit("run.ended", { state: "ok" });
    fake.ended.resolve();
    expect(await answered).toMatchObject({ stopReason: "end_turn" });
    expect(fake.text().replace(/\|+/g, "|")).toBe("good |morning|and|good|night");
    expect(fake.text("user_message_chunk")).not.toContain("hi");
    live.close();
  });

  test("[AAG7] nothing of a run whose end was read from the log is shown again when its events come at last", async () => {
    const fake = new FakeSession();
    const live = await fake.open();
    live.begin();
    const answered = live.prompt(words("hi"), never);
    fake.write("assistant", "yes", { isLost: true });
    fake.ended.resolve();
    expect(await answered).toMatchObject({ stopReason: "end_turn" });
    fake.emit("run.delta", { kind: "text", delta: "yes" });
    fake.emit("run.tool", { phase: "call", toolCallId: "c", toolName: "t", arguments: {} });
    fake.emit("run.ended", { state: "ok" });
    fake.write("assistant", "later");
    await expect.poll(() => fake.text()).toContain("later");
    expect(fake.text()).toBe("yes|later");
    live.close();
  });

  test.each([true, false])(
    "[AAG2] goes on in the new log when its key is reset, told: %s",
    async (isTold) => {
      const fake = new FakeSession();
      fake.write("assistant", "old", { isLost: true });
      const live = await fake.open();
      live.begin();
      fake.log.length = 0;
      fake.sessionId = "s2";
      if (isTold) fake.emit("session.reset", { freshSessionId: "s2" });
      const answered = live.prompt(words("hi"), never);
      fake.write("assistant", "new", { id: "fresh", isLost: true });
      fake.emit("run.ended", { state: "ok" });
      fake.ended.resolve();
      await answered;
      expect(fake.text()).toBe("new");
      live.close();
    },
  );
});
