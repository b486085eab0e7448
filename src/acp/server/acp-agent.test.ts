import type { SessionUpdate } from "@agentclientprotocol/sdk/unstable";
import { describe, expect, test } from "vitest";
import type { ReceivedEvent } from "../../protocol/calls.ts";
import { AcpAgent } from "./acp-agent.ts";
import type { ServerContext } from "./context.ts";

const sessionId = "agent:main:session:trip";
const never = new AbortController().signal;
const usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0 };

type Answer = (params: Record<string, unknown>) => unknown;

/**
 * A Skein instance with one session, whose run ends when it is aborted or the test ends it. `answers` are used first.
 */
class Scene {
  readonly called: string[] = [];
  readonly told: SessionUpdate[] = [];
  readonly reported: unknown[] = [];
  readonly answers: Record<string, Answer> = {};
  readonly command = Promise.withResolvers<string>();
  commandSignal: AbortSignal | null = null;
  streams = 0;
  readonly agent: AcpAgent;
  readonly #ended = Promise.withResolvers<string>();

  constructor() {
    const requestPermission = () => new Promise<never>(() => undefined);
    this.agent = new AcpAgent(this.#context(), {
      sendUpdate: async (_, update) => void this.told.push(update),
      requestPermission,
    });
  }

  load(cwd = "/w"): Promise<unknown> {
    return this.agent.load({ sessionId, cwd, mcpServers: [] });
  }

  prompt(text: string, signal = never): Promise<unknown> {
    return this.agent.prompt({ sessionId, prompt: [{ type: "text", text }] }, signal);
  }

  endRun(): void {
    this.#ended.resolve("ok");
  }

  until(method: string): Promise<void> {
    return expect.poll(() => this.called).toContain(method);
  }

  #context(): ServerContext {
    const call = async (method: string, params: Record<string, unknown>, how?: { signal?: AbortSignal }) => {
      this.called.push(method);
      return this.answers[method]?.(params) ?? this.#answer(method, how?.signal ?? never);
    };
    const run = (_key: string, _rest: string, signal: AbortSignal) => {
      this.commandSignal = signal;
      return this.command.promise;
    };
    return {
      version: "0",
      calls: { call: call as never, events: () => this.#stream() },
      scope: {},
      canCall: () => true,
      commands: [{ name: "compact", about: "", hint: null, run }],
      cwd: "/",
      report: (error) => void this.reported.push(error),
    };
  }

  async #answer(method: string, signal: AbortSignal): Promise<unknown> {
    const named = { key: sessionId, sessionId: "s1" };
    switch (method) {
      case "sessions.get":
      case "sessions.resolve":
        return { ...named, agentId: "main", cwd: "/w", updatedAt: 0, summary: "trip" };
      case "sessions.fork":
        return { ...named, key: `${sessionId}2`, forkedFrom: named };
      case "chat.abort":
        return { sessionKey: sessionId, runs: [] };
      case "sessions.entries":
        return { ...named, leafId: null, entries: [], hasEarlier: false, hasLater: false };
      case "models.list":
        return { models: [] };
      case "approvals.list":
        return { count: 0, approvals: [] };
      case "chat.send":
        return { runId: "r1", status: "accepted", sessionKey: sessionId };
      case "runs.abort":
        return void this.#ended.resolve("aborted");
      case "agent.wait": {
        const left = new Promise<never>((_, reject) => {
          signal.addEventListener("abort", () => reject(signal.reason), { once: true });
        });
        const state = await Promise.race([this.#ended.promise, left]);
        return { runId: "r1", ...named, finished: true, state, usage };
      }
      default:
        return {};
    }
  }

  #stream() {
    const closed = Promise.withResolvers<void>();
    const ended = this.#ended.promise;
    this.streams += 1;
    const close = () => {
      this.streams -= 1;
      closed.resolve();
    };
    return {
      ready: Promise.resolve(),
      close,
      async *[Symbol.asyncIterator](): AsyncGenerator<ReceivedEvent> {
        const payload = { at: 0, sessionKey: sessionId, sessionId: "s1", runId: "r1" };
        const event = { event: "run.ended", payload, seq: 1 } as unknown as ReceivedEvent;
        const first = await Promise.race([ended, closed.promise]);
        if (first !== undefined) yield event;
        await closed.promise;
      },
    };
  }
}

/** The streams for one open session: its own events and its children's approval requests. */
const streamsOfOne = 2;

describe("a session whose prompt is still being answered", () => {
  test("[AAG27] is not opened again, and the prompt is still answered", async () => {
    const scene = new Scene();
    await scene.load();
    const answer = scene.prompt("hello");
    await expect(scene.load()).rejects.toMatchObject({ code: "conflict" });
    await expect(scene.agent.resume({ sessionId, cwd: "/w" })).rejects.toMatchObject({ code: "conflict" });
    scene.endRun();
    expect(await answer).toMatchObject({ stopReason: "end_turn" });
    await scene.load();
    expect(scene.streams).toBe(streamsOfOne);
  });

  test("[AAG27] is not opened again if the prompt came while it was being opened", async () => {
    const scene = new Scene();
    await scene.load();
    const page = Promise.withResolvers<void>();
    scene.answers["models.list"] = () => page.promise.then(() => ({ models: [] }));
    const again = scene.load();
    const answer = scene.prompt("hello");
    page.resolve();
    await expect(again).rejects.toMatchObject({ code: "conflict" });
    scene.endRun();
    expect(await answer).toMatchObject({ stopReason: "end_turn" });
    expect(scene.streams).toBe(streamsOfOne);
  });

  test.each(["close", "delete"] as const)("[AAG27] %s: cancels only the prompt", async (how) => {
    const scene = new Scene();
    await scene.load();
    const answer = scene.prompt("hello");
    await scene.until("agent.wait");
    await scene.agent[how]({ sessionId });
    expect(await answer).toMatchObject({ stopReason: "cancelled" });
    expect(scene.called).toContain("runs.abort");
    expect(scene.called).not.toContain("chat.abort");
    expect(scene.streams).toBe(0);
    await expect(scene.prompt("more")).rejects.toMatchObject({ code: "not_found" });
  });
});

describe("a slash command", () => {
  test("[AAG13] is cancelled without affecting other work of the session", async () => {
    const scene = new Scene();
    await scene.load();
    const answer = scene.prompt("/compact");
    await scene.agent.cancel({ sessionId });
    expect(await answer).toEqual({ stopReason: "cancelled" });
    expect(scene.commandSignal?.aborted).toBe(true);
    expect(scene.called).not.toContain("chat.abort");
    await scene.agent.cancel({ sessionId });
    expect(scene.called).toContain("chat.abort");
  });

  test("[AAG13] is cancelled by its request, even before it begins", async () => {
    const scene = new Scene();
    await scene.load();
    const request = new AbortController();
    const answer = scene.prompt("/compact", request.signal);
    request.abort();
    expect(await answer).toEqual({ stopReason: "cancelled" });
    expect(await scene.prompt("/compact", request.signal)).toEqual({ stopReason: "cancelled" });
  });

  test("[AAG13] continues when the editor disconnects", async () => {
    const scene = new Scene();
    await scene.load();
    const request = new AbortController();
    const answer = scene.prompt("/compact", request.signal);
    scene.agent.end();
    request.abort();
    expect(scene.commandSignal?.aborted).toBe(false);
    scene.command.resolve("compacted");
    expect(await answer).toEqual({ stopReason: "end_turn" });
    expect(scene.reported).toEqual([]);
  });
});

const fail = () => {
  throw new Error("not now");
};

describe("failures around an answer", () => {
  test("do not turn the answer into an error", async () => {
    const scene = new Scene();
    await scene.load();
    scene.answers["sessions.get"] = fail;
    scene.endRun();
    expect(await scene.prompt("hello")).toMatchObject({ stopReason: "end_turn" });
    expect(scene.reported).toMatchObject([{ message: "not now" }]);
    scene.command.resolve("compacted");
    expect(await scene.prompt("/compact")).toEqual({ stopReason: "end_turn" });
    expect(scene.reported).toHaveLength(2);
  });

  test.each(["models.list", "sessions.entries"])("a session without %s is not open", async (method) => {
    const scene = new Scene();
    scene.answers[method] = fail;
    await expect(scene.load()).rejects.toThrow("not now");
    expect(scene.streams).toBe(0);
    await expect(scene.prompt("hello")).rejects.toMatchObject({ code: "not_found" });
  });

  test("a session whose editor disconnected meanwhile is not open", async () => {
    const scene = new Scene();
    const loading = scene.load();
    scene.agent.end();
    await expect(loading).rejects.toThrow();
    expect(scene.streams).toBe(0);
  });
});

describe("a session with another folder", () => {
  const texts = ({ told }: Scene) => JSON.stringify(told);

  test("[AAG30] is reported when it is loaded, resumed or forked", async () => {
    const acts = {
      load: (scene: Scene) => scene.load("/else"),
      resume: (scene: Scene) => scene.agent.resume({ sessionId, cwd: "/else" }),
      fork: (scene: Scene) => scene.agent.fork({ sessionId, cwd: "/else" }),
    };
    for (const act of Object.values(acts)) {
      const scene = new Scene();
      await act(scene);
      await expect.poll(() => texts(scene)).toContain("runs in /w, where it was started, not in /else");
    }
  });

  test("[AAG30] is not reported if the folder is the same or unknown", async () => {
    const same = new Scene();
    await same.load("/w/");
    await same.until("approvals.list");
    const unknown = new Scene();
    unknown.answers["sessions.get"] = () => ({
      key: sessionId,
      sessionId: "s1",
      agentId: "main",
      updatedAt: 0,
    });
    await unknown.load("/else");
    await unknown.until("approvals.list");
    expect(texts(same) + texts(unknown)).not.toContain("runs in");
  });
});
