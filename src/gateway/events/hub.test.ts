import { describe, expect, test } from "vitest";
import {
  adminOf,
  adminOfAll,
  appended,
  delta,
  ended,
  hubWorld,
  ofUser,
  readerOf,
  TestSink,
  toolCall,
  updated,
  want,
} from "../../../test/support/event-hub.ts";
import type { Redactor } from "../../access/redaction/redactor.ts";
import { createRedactor } from "../../access/redaction/redactor.ts";
import { storeEvents } from "../../app/engine.ts";
import { createMemoryStore } from "../../store/memory/store.ts";

describe("numbers and kept events", () => {
  test("every event has the next number, with or without a reader", () => {
    const { hub, emit } = hubWorld();
    emit(updated());
    const sink = new TestSink();
    expect(hub.subscribe(adminOfAll, want(), sink).seq).toBe(1);
    emit(updated());
    emit(ended());
    expect(sink.said).toEqual(["session.updated 2", "run.ended 3"]);
    expect(hub.seq).toBe(3);
  });

  test("[GEV3] keeps a limited number of events and bytes; older ones are a gap", () => {
    const few = hubWorld({ limits: { events: 3 } });
    for (let count = 0; count < 5; count += 1) few.emit(updated());
    const sink = new TestSink();
    const { seq } = few.hub.subscribe(adminOfAll, want(), sink, 1);
    few.settle();
    expect(seq).toBe(1);
    expect(sink.said).toEqual([
      "gap 1-2 gone",
      "session.updated 3",
      "session.updated 4",
      "session.updated 5",
    ]);

    const small = hubWorld({ limits: { bytes: 5000 } });
    for (let count = 0; count < 5; count += 1) small.emit(appended("user", "x".repeat(2000)));
    small.emit(appended("user", "x".repeat(6000)));
    small.emit(updated());
    const other = new TestSink();
    small.hub.subscribe(adminOfAll, want(), other, 4);
    small.settle();
    expect(other.said).toEqual(["gap 4-6 gone", "session.updated 7"]);
  });

  test("[GEV3] a client that resumes without missing anything gets the later events and no gap", () => {
    const { hub, emit, settle } = hubWorld();
    const sinks = [0, 1, 2].map(() => new TestSink());
    const [first, second, third] = sinks as [TestSink, TestSink, TestSink];
    hub.subscribe(adminOfAll, want(), first, 0);
    emit(updated());
    emit(updated());
    hub.subscribe(adminOfAll, want(), second, 1);
    hub.subscribe(adminOfAll, want(), third, 2);
    emit(updated());
    expect(sinks.map(({ seqs }) => seqs)).toEqual([[], [], []]);
    settle();
    emit(updated());
    expect(sinks.map(({ seqs }) => seqs)).toEqual([
      [1, 2, 3, 4],
      [2, 3, 4],
      [3, 4],
    ]);
  });

  test("an event published while another is sent follows it for every reader", () => {
    const { hub, emit } = hubWorld();
    const [first, second] = [new TestSink(), new TestSink()];
    const echo = {
      send: (text: string, seq: number, event: string) => {
        first.send(text, seq, event);
        if (seq === 1) emit(ended());
      },
      backlog: () => 0,
      drop: () => undefined,
    };
    hub.subscribe(adminOfAll, want(), echo);
    hub.subscribe(adminOfAll, want(), second);
    emit(updated());
    expect([first.seqs, second.seqs]).toEqual([
      [1, 2],
      [1, 2],
    ]);
  });

  test("a reader that subscribes during an event starts after all events published so far", () => {
    const { hub, emit } = hubWorld();
    const late = new TestSink();
    const welcoming = {
      send: (_: string, seq: number) => {
        if (seq !== 1) return;
        emit(ended());
        hub.subscribe(adminOfAll, want(), late);
      },
      backlog: () => 0,
      drop: () => undefined,
    };
    hub.subscribe(adminOfAll, want(), welcoming);
    emit(updated());
    emit(updated());
    expect(late.seqs).toEqual([3]);
  });

  test("[ERZ3] redacted content is no longer kept", async () => {
    const { hub, emit, settle } = hubWorld();
    const store = createMemoryStore();
    store.watch.subscribe(
      {},
      storeEvents(emit, () => 5),
    );
    const { sessionId } = await store.sessions.create(
      {},
      { key: "agent:main:main", sessionId: "s", cwd: "/" },
    );
    const message = { role: "user" as const, content: "nobody is to know", timestamp: 1 };
    const { entries } = await store.sessions.append({}, sessionId, [{ draft: { type: "message", message } }]);
    const live = new TestSink();
    hub.subscribe(adminOfAll, want(), live, hub.seq - 1);
    settle();
    expect(live.texts.join()).toContain("nobody is to know");
    await store.sessions.redact({}, sessionId, [entries[0]?.id as string]);
    const sink = new TestSink();
    hub.subscribe(adminOfAll, want(), sink, 0);
    settle();
    expect(sink.texts.join()).not.toContain("nobody");
    expect(sink.frames.at(-1)).toMatchObject({ event: "session.updated", payload: { isRedacted: true } });
    await store.close();
  });

  test("[ERZ3] events of a deleted or redacted session are not kept; a gap replaces them", () => {
    for (const last of [
      { ...updated(), type: "session.deleted" as const },
      { ...updated(), isRedacted: true as const },
    ]) {
      const { hub, emit, settle } = hubWorld();
      const live = new TestSink();
      hub.subscribe(adminOf("ann"), want(ofUser("ann")), live);
      emit(appended("user", "what nobody is to know", { userId: "ann" }));
      emit(updated({ userId: "ann", sessionId: "other" }));
      emit(delta("what nobody is to know", { userId: "ann" }));
      emit(updated({ userId: "bob" }));
      emit({ ...last, userId: "ann" });
      expect(live.seqs).toEqual([1, 2, 3, 5]);
      for (const principal of [adminOf("ann"), readerOf("ann")]) {
        const sink = new TestSink();
        hub.subscribe(principal, want(ofUser("ann")), sink, 0);
        settle();
        expect(sink.said).toEqual(["gap 0-1 gone", "session.updated 2", "gap 2-3 gone", `${last.type} 5`]);
        expect(sink.texts.join()).not.toContain("nobody");
      }
    }
  });
});

describe("event recipients", () => {
  const key = (name: string) => `agent:${name}:main`;

  test("[GEV6] a token receives events of its user only; one for all users receives everyone's or the named user's", () => {
    const { hub, emit } = hubWorld();
    const sinks = new Map<string, TestSink>();
    const add = (name: string, ...args: [typeof adminOfAll, ReturnType<typeof want>]) => {
      const sink = new TestSink();
      sinks.set(name, sink);
      hub.subscribe(...args, sink);
    };
    add("ann", readerOf("ann"), want(ofUser("ann")));
    add("unnamed", readerOf(null), want(ofUser(null)));
    add("all", adminOfAll, want());
    add("all, of ann", adminOfAll, want(ofUser("ann")));
    add("all, by key", adminOfAll, want({ keys: new Set([key("main")]) }));
    emit(updated({ userId: "ann" }));
    emit(updated({ userId: "bob" }));
    emit(updated());
    emit(updated({ userId: "*", sessionKey: key("other") }));
    expect(Object.fromEntries([...sinks].map(([name, { seqs }]) => [name, seqs]))).toEqual({
      ann: [1],
      unnamed: [3],
      all: [1, 2, 3, 4],
      "all, of ann": [1],
      "all, by key": [1, 2, 3],
    });
  });

  test("[GEV6] no client subscribes beyond its token", () => {
    const { hub } = hubWorld();
    const forbidden = expect.objectContaining({ code: "forbidden" });
    for (const wanted of [want(), want(ofUser("bob")), want(ofUser(null))]) {
      expect(() => hub.subscribe(readerOf("ann"), wanted, new TestSink())).toThrow(forbidden);
    }
    expect(() => hub.subscribe(readerOf(null), want(ofUser("ann")), new TestSink())).toThrow(forbidden);
    expect(hub.size).toBe(0);
  });

  test("filters by key, kind and agent; by key also after a reset", () => {
    const { hub, emit } = hubWorld();
    const [byKey, byKind, byAgent] = [new TestSink(), new TestSink(), new TestSink()];
    hub.subscribe(adminOfAll, want({ keys: new Set([key("main")]), ...ofUser(null) }), byKey);
    hub.subscribe(adminOfAll, want({ events: ["run.ended", "entry.*"] }), byKind);
    hub.subscribe(adminOfAll, want({ agentId: "main" }), byAgent);
    emit(updated());
    emit(updated({ sessionKey: key("main2") }));
    emit(updated({ sessionKey: "agent:main:reset:s-main" }));
    emit({ ...updated(), type: "session.reset", freshSessionId: "fresh" });
    emit(appended("user", "hi", { sessionId: "fresh" }));
    emit(ended({ sessionKey: "global" }));
    expect([byKey.seqs, byKind.seqs, byAgent.seqs]).toEqual([
      [1, 4, 5],
      [5, 6],
      [1, 3, 4, 5],
    ]);
  });

  test("all readers of a kind get the same frame; only tokens for all users see the owner", () => {
    let redactions = 0;
    const ours = createRedactor();
    const redactJson: typeof ours.redactJson = (value) => {
      redactions += 1;
      return ours.redactJson(value);
    };
    const { hub, emit } = hubWorld({ redactor: { ...ours, redactJson } });
    const sinks = Array.from({ length: 40 }, () => new TestSink());
    const [owner, all] = [new TestSink(), new TestSink()];
    for (const sink of sinks) hub.subscribe(readerOf("ann"), want(ofUser("ann")), sink);
    hub.subscribe(adminOf("ann"), want(ofUser("ann")), owner);
    hub.subscribe(adminOfAll, want(), all);
    const secret = `sk-ant-api03-${"a1B2".repeat(20)}`;
    emit(toolCall({ path: "x", note: `it is ${secret}` }, { userId: "ann" }));
    expect(redactions).toBe(1);
    expect(new Set(sinks.flatMap(({ texts }) => texts)).size).toBe(1);
    expect(sinks[0]?.texts.join()).not.toContain(secret);
    expect(owner.texts.join()).toContain(secret);
    const userIds = [sinks[0] as TestSink, owner, all].map(({ frames }) => frames[0]?.payload);
    expect(userIds.map((payload) => Object.hasOwn(payload as object, "userId"))).toEqual([
      false,
      false,
      true,
    ]);
    emit(updated());
    expect(sinks[0]?.frames).toHaveLength(1);
  });

  test("after a reload uses the new redactor, and sends held-back text when the hub closes", () => {
    let current = createRedactor();
    const redactor: Redactor = {
      redact: (text) => current.redact(text),
      redactJson: (value) => current.redactJson(value),
      stream: () => current.stream(),
    };
    const { hub, emit } = hubWorld({ redactor });
    const sink = new TestSink();
    hub.subscribe(readerOf(null), want(ofUser(null)), sink);
    emit(delta("half of sk-ant-api"));
    emit(toolCall({ note: "geheimnis" }, { runId: "r2" }));
    expect(sink.texts.at(-1)).toContain("geheimnis");
    current = createRedactor({ secrets: ["geheimnis"] });
    emit(toolCall({ note: "geheimnis" }, { runId: "r2" }));
    expect(sink.texts.at(-1)).not.toContain("geheimnis");
    hub.close();
    emit(updated());
    hub.close();
    expect([hub.size, sink.seqs]).toEqual([0, [1, 2, 3, 4]]);
    expect(sink.frames.slice(3)).toMatchObject([{ event: "run.delta", payload: { delta: "sk-ant-api" } }]);
  });

  test("an event that cannot be sent becomes a gap, and a failing sink does not affect the others", () => {
    const { hub, emit, tick, problems } = hubWorld();
    let isDropped = false;
    const failing = {
      send: () => {
        throw new Error("broken pipe");
      },
      backlog: () => 0,
      drop: () => {
        isDropped = true;
      },
    };
    const sink = new TestSink();
    hub.subscribe(adminOfAll, want(), failing);
    hub.subscribe(adminOfAll, want(), sink);
    emit(updated());
    expect([isDropped, hub.size]).toEqual([true, 1]);
    const circle: Record<string, unknown> = {};
    circle.self = circle;
    emit(toolCall(circle));
    emit(updated());
    emit(appended("user", "x".repeat(26 * 1024 * 1024)));
    tick();
    expect(sink.said).toEqual(["session.updated 1", "gap 1-2 gone", "session.updated 3", "gap 3-4 gone"]);
    expect(problems).toHaveLength(2);
  });

  test("reports its numbers for metrics", () => {
    const { hub, emit } = hubWorld({ limits: { softBytes: 10, hardBytes: 1000 } });
    const [fast, slow] = [new TestSink(), new TestSink(false)];
    hub.subscribe(adminOfAll, want(), fast).close();
    const open = hub.subscribe(adminOfAll, want(), slow);
    emit(updated());
    emit(delta("dropped"));
    expect(hub.stats()).toEqual({ subscriptions: 1, sent: 1, dropped: 1, droppedReaders: 0 });
    slow.unread = 1001;
    emit(updated());
    open.close();
    expect(slow.isDropped).toBe(true);
    expect(hub.stats()).toEqual({ subscriptions: 0, sent: 1, dropped: 1, droppedReaders: 1 });
    emit(updated());
    expect(slow.frames).toHaveLength(1);
  });
});

test("when events of other processes are missing, every reader gets a gap, also one that reconnects later", () => {
  const { hub, emit, lose, settle } = hubWorld();
  const [live, later] = [new TestSink(), new TestSink()];
  hub.subscribe(adminOfAll, want(), live);
  emit(updated());
  const before = hub.seq;
  lose();
  emit(updated());
  settle();
  hub.subscribe(adminOfAll, want(), later, before);
  settle();
  const told = [`gap ${before}-${before + 1} gone`, `session.updated ${before + 2}`];
  expect(live.said).toEqual([`session.updated ${before}`, ...told]);
  expect(later.said).toEqual(told);
});
