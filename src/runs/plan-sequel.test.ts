import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  askerKey,
  childRun,
  endedRun,
  pingPongSequel,
  replySequel,
  targetKey,
} from "../../test/support/sequels.ts";
import { isSilentReply } from "../core/announcement.ts";
import type { Outcome, Run, Sequel } from "./contract.ts";
import type { SequelStep } from "./plan-sequel.ts";
import { planSequel } from "./plan-sequel.ts";

const at = { endedAt: 5_000 };
const following = (sequel: Sequel, outcome: Outcome, run: Partial<Run> = {}) =>
  only(planSequel(endedRun({ sequel }, run), outcome, at));
/** Returns the only step, or nothing if there is none. */
const only = ([step, ...more]: readonly SequelStep[]): SequelStep | null => {
  expect(more).toEqual([]);
  return step ?? null;
};
const idsOf = (sequel: Sequel, outcome: Outcome) =>
  planSequel(endedRun({ sequel }), outcome, at).map(({ request }) => request.idempotencyKey);

const ok = (reply: string): Outcome => ({ state: "ok", reply });
const desk = { channel: "desk", to: "ann", accountId: "work", threadId: "42" };
const textIn = (step: SequelStep | null) => {
  const { message } = step?.request ?? {};
  return message !== undefined && "content" in message ? String(message.content) : "";
};

test("a run without a requester starts nothing", () => {
  expect(planSequel(endedRun({}), ok("Yes."), at)).toEqual([]);
});

test("the end of a child is announced to its parent, under its own name", () => {
  const { run, sequel } = childRun({ deliverTo: desk });
  const step = only(planSequel(run, ok("It rains."), at));
  const provenance = {
    kind: "inter_session",
    sourceSessionKey: "agent:main:subagent:a:c1",
    sourceTool: "sessions_spawn",
    rootId: "root",
    hops: 2,
    deliveryId: "announce:r1",
    verbatim: true,
  };
  expect(step).toEqual({
    to: { key: askerKey },
    isBetweenStrangers: false,
    request: {
      kind: "announce",
      message: { role: "user", content: expect.stringContaining("It rains."), provenance },
      provenance,
      idempotencyKey: "announce:r1",
      arrivalOf: "r1",
      root: { rootId: "root", hops: 2 },
      isDelivery: true,
      options: { origin: "inter_session", deliverTo: desk },
    },
  });
  const nested = { key: "agent:main:subagent:top:p1", sessionId: "a" };
  const toChild = only(planSequel(endedRun({ sequel: { ...sequel, parent: nested } }), ok(""), at));
  expect(toChild?.to).toEqual({ key: nested.key, parentSessionId: "top" });
});

describe("the reply to a message", () => {
  test("between unrelated sessions it is the asker's first turn", () => {
    const step = following(replySequel({ announceTo: desk, deliverTo: desk }), ok("Yes."));
    expect(step).toMatchObject({
      to: { key: askerKey },
      isBetweenStrangers: true,
      request: {
        kind: "ping_pong",
        idempotencyKey: "ping_pong:r1",
        arrivalOf: "r1",
        root: { rootId: "root", hops: 2 },
        message: { content: "Yes.", provenance: { sourceSessionKey: targetKey, sourceChannel: "desk" } },
        options: { sequel: { type: "ping_pong", turn: 1, firstReply: "Yes.", latestReply: "Yes." } },
      },
    });
    expect(step?.request.options?.deliverTo).toBeUndefined();
    const prompt = step?.request.options?.extraSystemPrompt ?? "";
    for (const part of [askerKey, targetKey, "Turn 1 of 5", "REPLY_SKIP"]) expect(prompt).toContain(part);
    expect(prompt).not.toContain("ANNOUNCE_SKIP");
  });

  test("without an exchange it is announced to the asker, even if it is empty", () => {
    const step = following(replySequel({ turns: 0, deliverTo: desk }), ok("Yes."));
    expect(step).toMatchObject({
      to: { key: askerKey },
      isBetweenStrangers: false,
      request: {
        kind: "announce",
        arrivalOf: "r1",
        options: { deliverTo: desk },
        provenance: { sourceTool: "sessions_send" },
      },
    });
    expect(step?.request.options?.sequel).toBeUndefined();
    expect(textIn(step)).toContain("Yes.");
    expect(textIn(following(replySequel({ turns: 0 }), ok("REPLY_SKIP")))).toContain("(no output)");
    expect(textIn(following(replySequel({ turns: 0 }), { state: "ok" }))).toContain("(no output)");
  });

  test.each(["Yes.", "REPLY_SKIP"])(
    "[TLK2] %s without an exchange: the announce step follows too",
    (reply) => {
      const sequel = replySequel({ turns: 0, announceTo: desk });
      const [told, step, ...more] = planSequel(endedRun({ sequel }), ok(reply), at);
      expect(told).toMatchObject({ to: { key: askerKey }, request: { idempotencyKey: "announce:r1" } });
      expect(step).toMatchObject({
        to: { key: targetKey },
        request: { kind: "announce", idempotencyKey: "announce_step:r1", options: { deliverTo: desk } },
      });
      expect(more).toEqual([]);
    },
  );

  test.each(["error", "timeout", "aborted"] as const)(
    "%s is announced, with or without an exchange",
    (state) => {
      for (const turns of [0, 5]) {
        const step = following(replySequel({ turns, announceTo: desk }), { state });
        expect(step).toMatchObject({ to: { key: askerKey }, request: { kind: "announce", arrivalOf: "r1" } });
        expect(textIn(step)).toMatch(/Status: (failed: |timed out|aborted)/);
      }
    },
  );

  test.each(["", "  \n", "REPLY_SKIP", " REPLY_SKIP\n"])("[FAM8] %j ends an exchange at once", (reply) => {
    expect(idsOf(replySequel({}), ok(reply))).toEqual(["announce:r1"]);
    expect(idsOf(replySequel({ announceTo: desk }), ok(reply))).toEqual(["announce:r1", "announce_step:r1"]);
  });

  test.each(["Yes.", "REPLY_SKIP"])("[TLK1] %s to an asker that yielded is only announced", (reply) => {
    const sequel = replySequel({ announceTo: desk });
    const step = only(planSequel(endedRun({ sequel }), ok(reply), { ...at, isAskerAsleep: true }));
    expect(step).toMatchObject({ to: { key: askerKey }, request: { kind: "announce", arrivalOf: "r1" } });
  });
});

describe("an exchange", () => {
  test("[FAM8] continues with the other side, without adding a hop", () => {
    const second = following(pingPongSequel({ turn: 1 }), ok("And now?"));
    expect(second).toMatchObject({
      to: { key: targetKey },
      isBetweenStrangers: true,
      request: {
        kind: "ping_pong",
        root: { hops: 2 },
        message: { content: "And now?", provenance: { sourceSessionKey: askerKey } },
        options: { sequel: { turn: 2, firstReply: "Yes.", latestReply: "And now?" } },
      },
    });
    expect(second?.request.arrivalOf).toBeUndefined();
    expect(following(pingPongSequel({ turn: 2 }), ok("Still."))?.to.key).toBe(askerKey);
  });

  const over: [string, Outcome, Partial<Run>, number, string][] = [
    ["a word that ends it", ok("REPLY_SKIP"), {}, 2, "Yes."],
    ["an empty turn", ok(" "), {}, 2, "Yes."],
    ["a failed turn", { state: "error", reply: "half" }, {}, 2, "Yes."],
    ["the last turn", ok("Bye."), {}, 5, "Bye."],
  ];
  test.each(over)(
    "[TLK2] %s is followed by one announce step of each side",
    (_, outcome, run, turn, latest) => {
      const request = "```\nIs it open?";
      const terms = { turn, announceTo: desk, deliverTo: desk, request };
      const [told, step, ...more] = planSequel(endedRun({ sequel: pingPongSequel(terms) }, run), outcome, at);
      expect(more).toEqual([]);
      expect(told).toMatchObject({
        to: { key: askerKey },
        isBetweenStrangers: false,
        request: { kind: "announce", idempotencyKey: "announce:r1", options: { deliverTo: desk } },
      });
      for (const part of ["\n```\nYes.\n```\n", `\n\`\`\`\n${latest}\n\`\`\`\n`, "ANNOUNCE_SKIP"])
        expect(textIn(told ?? null)).toContain(part);
      expect(step).toMatchObject({
        to: { key: targetKey },
        isBetweenStrangers: false,
        request: {
          kind: "announce",
          idempotencyKey: "announce_step:r1",
          message: { content: "Agent-to-agent announce step." },
          options: { deliverTo: desk },
        },
      });
      expect(step?.request.options?.sequel).toBeUndefined();
      expect(step?.request.arrivalOf).toBeUndefined();
      const prompt = step?.request.options?.extraSystemPrompt ?? "";
      expect(prompt).toContain("Original request:\n~~~\n```\nIs it open?\n~~~\n");
      expect(prompt).toContain("first reply:\n```\nYes.\n```\n");
      expect(prompt).toContain(`Latest reply:\n\`\`\`\n${latest}\n\`\`\`\n`);
      expect(prompt).toContain("ANNOUNCE_SKIP");
      expect(prompt).not.toContain("REPLY_SKIP");
      expect(following(pingPongSequel({ turn }), outcome, run)?.to.key).toBe(askerKey);
    },
  );

  test.each<[string, Partial<Run>]>([
    ["[TLK2] what was only written, beyond the budget,", { isSilent: true }],
    ["[TLK1] what a run that yielded for it has read", { mergedInto: "r0" }],
  ])("%s starts nothing", (_, run) => {
    expect(following(pingPongSequel({ announceTo: desk }), ok("For you."), run)).toBeNull();
  });

  test("[FAM8] ends after at most its turns and two announce steps, alternating, the asker first", () => {
    const outcome = fc.oneof(
      { weight: 6, arbitrary: fc.string({ minLength: 1 }).map(ok) },
      fc.constant(ok("REPLY_SKIP")),
      fc.record(
        {
          state: fc.constantFrom<Outcome["state"][]>("error", "timeout", "aborted", "ok"),
          reply: fc.string(),
        },
        { requiredKeys: ["state"] },
      ),
    );
    const exchange = fc.record({
      turns: fc.nat(5),
      hasChannel: fc.boolean(),
      outcomes: fc.array(fc.tuple(outcome, fc.nat(40_000)), { minLength: 12, maxLength: 12 }),
    });
    fc.assert(
      fc.property(exchange, ({ turns, hasChannel, outcomes }) => {
        const first = replySequel({ turns, ...(hasChannel ? { announceTo: desk } : {}) });
        let run = endedRun({ sequel: first });
        const steps: SequelStep[] = [];
        for (const [index, [each, took]] of outcomes.entries()) {
          const next = planSequel(run, each, { endedAt: 2_000 + took });
          steps.push(...next);
          const step = next.at(-1);
          if (step === undefined) break;
          run = endedRun(step.request.options ?? {}, { runId: `r${index + 2}` });
        }
        expect(steps.length).toBeLessThanOrEqual(turns + 2);
        const exchanged = steps.filter(({ request }) => request.kind === "ping_pong");
        exchanged.forEach(({ to }, index) => {
          expect(to.key).toBe(index % 2 === 0 ? askerKey : targetKey);
        });
        const ids = steps.map(({ request }) => request.idempotencyKey);
        expect(new Set(ids).size).toBe(ids.length);
        expect(exchanged).toEqual(steps.slice(0, exchanged.length));
      }),
    );
  });
});

test("[TLK3] uses exactly these texts between sessions", () => {
  expect(["ANNOUNCE_SKIP", " REPLY_SKIP\n"].map(isSilentReply)).toEqual([true, true]);
  expect(["", "announce_skip", "REPLY_SKIP.", "I say ANNOUNCE_SKIP"].some(isSilentReply)).toBe(false);
});
