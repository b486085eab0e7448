import { describe, expect, test } from "vitest";
import type { Loose } from "../../../test/support/acp-updates.ts";
import { begun, ended, said } from "../../../test/support/acp-updates.ts";
import { openTurn } from "../../../test/support/turn.ts";
import type { AcpLink, Turn, TurnModel } from "../../agents/contract.ts";
import { systemClock } from "../../core/clock.ts";
import { SkeinError } from "../../core/errors.ts";
import { RunStopped } from "../../runs/worker.ts";
import { AcpTurn } from "./acp-turn.ts";
import type { Agent, TurnWatch } from "./agent.ts";

/** A turn on a real store with the real guard. Only the agent is simulated. */

interface Play {
  /** The updates that the agent sends, in order. It then ends its turn, unless `waits` is set. */
  readonly updates?: readonly Loose[];
  readonly usage?: object;
  /** Replaces a valid response. */
  readonly answer?: { readonly told: unknown };
  /** `true` if the agent waits until it is canceled. */
  readonly waits?: boolean;
  /** The updates that the agent sends after it is canceled. */
  readonly after?: readonly Loose[];
}

async function opened(plays: readonly Play[], more: Partial<Turn> = {}) {
  const place = await openTurn({ model: {} as TurnModel, with: { system: null, ...more } });
  const cancelled = Promise.withResolvers<void>();
  const sent = Promise.withResolvers<void>();
  let [watch, turns, cancels]: [TurnWatch | null, number, number] = [null, 0, 0];
  const agent = {
    agentSessionId: "a",
    promptCapabilities: {},
    cost: 0,
    system: null,
    terminalText: () => null,
    watch: (given: TurnWatch | null) => {
      watch = given;
    },
    prompt: async () => {
      const { updates = [], usage, waits = false, after = [], answer } = plays[turns++] ?? {};
      for (const update of updates) await watch?.onUpdate(update, 1);
      sent.resolve();
      if (waits) await cancelled.promise;
      for (const update of after) await watch?.onUpdate(update, 1);
      if (answer !== undefined) return answer.told;
      return { stopReason: waits ? "cancelled" : "end_turn", usage };
    },
    cancel: async () => {
      cancels++;
      cancelled.resolve();
    },
  };
  const link = {
    agent: "crab",
    agentSessionId: "a",
    wasBegun: false,
    unanswered: async () => [{ role: "user", content: "Go", timestamp: 0 }],
  } as unknown as AcpLink;
  const parts = { turn: place.turn, link, policy: "allow", clock: systemClock } as const;
  const acpTurn = new AcpTurn({ ...parts, agent: agent as unknown as Agent });
  const counts = { get: () => ({ turns, cancels }) };
  return { ...place, agent, acpTurn, sent: sent.promise, counts };
}

const dollars = (amount: number): Loose => ({
  sessionUpdate: "usage_update",
  used: 1,
  size: 2,
  cost: { amount, currency: "USD" },
});

describe("a turn of an ACP agent", () => {
  test("[ARU1] hooks are notified of its prompts, messages and calls", async () => {
    const told: string[] = [];
    const hooks = {
      beforeToolCall: async () => expect.unreachable("its calls are not ours"),
      afterToolCall: async ({ name }, { role }) => void told.push(`did ${name}: ${role}`),
      llmInput: async (messages) => void told.push(`asked ${messages.length}`),
      llmOutput: async (message) => void told.push(`said ${message.role}`),
    } as Turn["hooks"];
    const { acpTurn } = await opened([{ updates: [begun("c"), ended("c"), said("Done")] }], { hooks });
    expect(await acpTurn.run()).toMatchObject({ kind: "answered", reply: "Done" });
    expect(told).toEqual(["asked 1", "said assistant", "did read: toolResult", "said assistant"]);
  });

  test("[ARU1] the cost of its session is charged by its increase, over several prompts", async () => {
    const { acpTurn, charged, agent } = await opened([
      { updates: [dollars(0.5), said("One")], usage: { inputTokens: 3, outputTokens: 4, totalTokens: 7 } },
      { updates: [dollars(0.75), said("Two")] },
    ]);
    await acpTurn.run();
    await acpTurn.run();
    expect(charged.map(({ totalTokens, cost }) => [totalTokens, cost?.total])).toEqual([
      [7, 0.5],
      [0, 0.25],
    ]);
    expect(agent.cost).toBe(0.75);
  });

  test("[ARU1] an answer that exceeds the budget is written, and ends the run", async () => {
    const over = new SkeinError("budget_exceeded", {
      rootId: "r",
      limit: "maxTokens",
      figure: 2,
      allowed: 1,
    });
    const charge = () => Promise.reject(over);
    const { acpTurn, lines } = await opened([{ updates: [said("Dear.")] }], { charge });
    await expect(acpTurn.run()).rejects.toBe(over);
    expect(await lines()).toEqual(["assistant stop: Dear."]);
    expect(acpTurn.isBroken).toBe(false);
  });

  test.each([null, undefined, 7, "end_turn", [], {}, { stopReason: 1 }, { failed: 1 }, { aborted: true }])(
    "a prompt response of %j ends the run and keeps the text so far",
    async (told) => {
      const { acpTurn, lines } = await opened([{ updates: [said("So far.")], answer: { told } }]);
      await expect(acpTurn.run()).rejects.toMatchObject({ code: "acp_failed" });
      expect([await lines(), acpTurn.isBroken]).toEqual([["assistant error: So far."], true]);
    },
  );

  test("only the stop reason and the usage of a prompt response are used", async () => {
    const told = { stopReason: "end_turn", failed: 1, aborted: true, why: 7, usage: "much" };
    const { acpTurn, lines } = await opened([{ updates: [said("Done.")], answer: { told } }]);
    expect(await acpTurn.run()).toMatchObject({ kind: "answered", reply: "Done." });
    expect(await lines()).toEqual(["assistant stop: Done."]);
  });

  test("[ARU9] a process that has lost the run writes nothing more, and drops the agent", async () => {
    const { acpTurn, abort, sent, lines, counts } = await opened([{ updates: [said("Half")], waits: true }]);
    const running = acpTurn.run().catch((error: unknown) => error);
    await sent;
    const lost = new RunStopped("lost");
    abort(lost);
    expect(await running).toBe(lost);
    expect([await lines(), acpTurn.isBroken, counts.get().cancels]).toEqual([[], true, 1]);
  });

  test("[ARU9] updates of its calls on cancellation are written", async () => {
    const stopped = new RunStopped("aborted");
    let isStopped = false;
    const check = async () => {
      if (isStopped) throw stopped;
    };
    const failure = ended("c", { status: "failed" });
    const play = { updates: [begun("c")], waits: true, after: [failure, begun("d"), said("I stop.")] };
    const { acpTurn, abort, sent, lines } = await opened([play], { check });
    const running = acpTurn.run().catch((error: unknown) => error);
    await sent;
    isStopped = true;
    abort(stopped);
    expect(await running).toBe(stopped);
    expect(await lines()).toEqual([
      'assistant toolUse: → read {"title":"Title of c"}',
      "result read failed: done c",
      'assistant toolUse: → read {"title":"Title of d"}',
      expect.stringMatching(/^result read failed: \[skein\] This call has no result/),
      "assistant aborted: I stop.",
    ]);
  });

  test("[ARU9] a rejected write from a former owner stops the agent at once", async () => {
    const fenced = new SkeinError("fenced", { sessionId: "s" });
    const check = async () => {
      checks++;
      if (checks > 1) throw fenced;
    };
    let checks = 0;
    const play = { updates: [begun("c"), ended("c"), said("More")], waits: true };
    const { acpTurn, lines, counts } = await opened([play], { check });
    await expect(acpTurn.run()).rejects.toBe(fenced);
    expect([await lines(), acpTurn.isBroken, counts.get().cancels]).toEqual([[], true, 1]);
  });
});
