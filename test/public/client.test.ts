import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { CallError, FollowOptions, SkeinClient } from "../../src/entry-client.ts";
import { connect } from "../../src/entry-client.ts";
import type { PeerRequest } from "../support/gateway-peer.ts";
import { GatewayPeer, goodToken } from "../support/gateway-peer.ts";
import { PeerHub } from "../support/peer-hub.ts";
import { soon } from "../support/soon.ts";

interface Entry {
  readonly type: string;
  readonly id: string;
  readonly customType?: string;
}

let peer: GatewayPeer;
let hub: PeerHub;
let log: Entry[];
/** The errors for the next reads. */
let refusals: object[];
/** The maximum number of entries that fit in a frame. */
let mostAPage: number;
const clients: SkeinClient[] = [];

beforeEach(async () => {
  peer = new GatewayPeer();
  peer.answer = answer;
  await peer.listen();
  renew();
});
afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.close()));
  await peer.close();
});

function renew(): void {
  [hub, log, refusals, mostAPage] = [new PeerHub(), [], [], 1000];
}

function answer(request: PeerRequest): void {
  const { method, params, ok, fail } = request;
  const isKnown = ["main", "agent:main:main", "s1"].includes(params.key as string);
  if (method === "sessions.tree") {
    ok({ entries: log.slice(0, params.limit as number).map(({ id }) => ({ id })) });
  } else if (method === "sessions.resolve") {
    if (isKnown) ok({ key: "agent:main:main", sessionId: "trip", uid: "s1" });
    else fail({ code: "not_found", message: "Session not found." });
  } else if (method === "sessions.entries") {
    const refusal = refusals.shift();
    if (refusal !== undefined) fail(refusal as Record<string, unknown>);
    else if ((params.limit as number) > mostAPage) fail({ code: "too_large", message: "Too large." });
    else ok({ key: "agent:main:main", sessionId: "s1", ...pageOf(params) });
  } else hub.answer(request);
}

/**
 * Returns the entries after a given one. Without one, returns the last entries, or the last ones before another entry.
 */
function pageOf({ after, before, limit }: Readonly<Record<string, unknown>>) {
  const placeOf = (entryId: unknown) => log.findIndex(({ id }) => id === entryId);
  const most = limit as number;
  const to = before === undefined ? log.length : placeOf(before);
  const start = after === undefined ? Math.max(0, to - most) : placeOf(after) + 1;
  const end = Math.min(to, start + most);
  const entries = log.slice(start, end);
  return { entries, hasEarlier: start > 0, hasLater: end < log.length, leafId: null };
}

/** Writes entries and publishes their events. */
function write(count: number): void {
  for (let each = 0; each < count; each++) {
    log.push({ type: "message", id: `e${log.length + 1}` });
    hub.emit(1, "entry.appended");
  }
}

async function open(): Promise<SkeinClient> {
  const client = await connect(peer.url, { token: goodToken, reconnect: { minMs: 1, maxMs: 3 } });
  clients.push(client);
  return client;
}

function following(client: SkeinClient, key = "main", options: FollowOptions = {}) {
  const ids: string[] = [];
  const done = (async () => {
    for await (const { id } of client.follow(key, options)) ids.push(id);
  })();
  done.catch(() => undefined);
  return { ids, done };
}
const all = () => log.map(({ id }) => id);

describe("following a session", () => {
  test("[CLT11] yields existing entries from the first on, and then new ones", async () => {
    write(1234);
    const { ids } = following(await open(), "main", { agentId: "main", userId: "ann" });
    await soon(() => ids.length).toBe(1234);
    write(3);
    await soon(() => ids.length).toBe(1237);
    expect(ids).toEqual(all());
    expect(peer.asked("sessions.entries").at(-1)?.params).toMatchObject({
      key: "s1",
      along: "all",
      agentId: "main",
      userId: "ann",
    });
    expect(peer.asked("sessions.subscribe")[0]?.params).toMatchObject({
      keys: ["agent:main:main"],
      events: ["entry.appended", "session.*"],
      userId: "ann",
    });
  });

  test("yields a changed name or state, whose entries have their own event, when it is written", async () => {
    const { ids } = following(await open());
    write(2);
    await soon(() => ids.length).toBe(2);
    log.push({ type: "custom", customType: "skein.meta", id: "e3" });
    hub.emit(1, "session.updated");
    await soon(() => ids).toEqual(all());
    expect(peer.asked("sessions.subscribe")[0]?.params.events).toContain("session.*");
  });

  test("[CLT11] starts after an entry, or with one that is yet to come", async () => {
    const client = await open();
    const empty = following(client);
    await soon(() => peer.asked("sessions.entries").length).toBe(1);
    write(5);
    await soon(() => empty.ids).toEqual(all());
    const { ids } = following(client, "main", { after: "e3" });
    await soon(() => ids).toEqual(["e4", "e5"]);
  });

  test("[CLT11] continues after a temporary refusal, and uses smaller pages if needed", async () => {
    write(400);
    mostAPage = 40;
    refusals = [{ code: "unavailable", message: "Starting.", retryable: true }];
    const { ids } = following(await open());
    await soon(() => ids.length).toBe(400);
    expect(ids).toEqual(all());
  });

  test("[CLT11] entries written while the stream was closed are found without an event", async () => {
    write(1);
    const { ids } = following(await open());
    await soon(() => ids).toEqual(["e1"]);
    hub.hidesLosses = true;
    peer.drop();
    hub.cut();
    write(2);
    await soon(() => ids).toEqual(["e1", "e2", "e3"]);
  });

  test("[CLT11] readers share a socket, and one that leaves does not affect the others", async () => {
    const client = await open();
    const stop = new AbortController();
    const readers = [
      following(client),
      following(client, "main", { signal: stop.signal }),
      following(client),
    ];
    const counts = () => readers.map(({ ids }) => ids.length);
    await soon(() => peer.asked("sessions.entries").length).toBe(3);
    write(2);
    await soon(counts).toEqual([2, 2, 2]);
    expect(peer.sockets.size).toBe(2);
    stop.abort();
    await soon(() => peer.asked("sessions.unsubscribe").length).toBe(1);
    write(1);
    await soon(counts).toEqual([3, 2, 3]);
    peer.drop();
    write(1);
    await soon(counts).toEqual([4, 2, 4]);
  });

  test("[CLT11] a subscription that is temporarily refused is retried, and any other refusal is an error", async () => {
    write(1);
    const rejected = [
      { code: "rate_limited", message: "Too many subscriptions.", retryable: true, retryAfterMs: 1 },
      { code: "forbidden", message: "No." },
    ];
    peer.answer = (request) => {
      const refusal = request.method === "sessions.subscribe" ? rejected.shift() : undefined;
      if (refusal === undefined) answer(request);
      else request.fail(refusal);
    };
    const client = await open();
    await expect(following(client).done).rejects.toMatchObject({ code: "forbidden" });
    expect(rejected).toEqual([]);
    await soon(() => peer.sockets.size).toBe(1);
    const { ids } = following(client);
    await soon(() => ids).toEqual(["e1"]);
  });

  test("[CLT11] an unreadable session ends it with the error, and a signal with its reason", async () => {
    const client = await open();
    await expect(following(client, "nobody").done).rejects.toMatchObject({ code: "not_found" });
    const stop = new AbortController();
    const { done } = following(client, "main", { signal: stop.signal });
    await soon(() => peer.sockets.size).toBe(2);
    stop.abort(new Error("enough"));
    await expect(done).rejects.toThrow("enough");
    await expect(following(client, "main", { signal: stop.signal }).done).rejects.toThrow("enough");
    await soon(() => peer.sockets.size).toBe(1);
  });

  test("[CLT11] ends without an error when the client is closed, and with one when the token ends", async () => {
    write(2);
    const [one, other] = [await open(), await open()];
    const [quiet, cut] = [following(one), following(other)];
    await soon(() => [quiet.ids.length, cut.ids.length]).toEqual([2, 2]);
    await one.close();
    await quiet.done;
    peer.closeAll(4403);
    await expect(cut.done).rejects.toMatchObject({ code: "unauthorized" });
  });
});

describe("connection failures", () => {
  const act = fc.oneof(
    { weight: 5, arbitrary: fc.integer({ min: 1, max: 3 }).map((count) => ({ write: count })) },
    { weight: 3, arbitrary: fc.constant("drop" as const) },
    { weight: 1, arbitrary: fc.constant("restart" as const) },
    { weight: 1, arbitrary: fc.constant("forget" as const) },
    { weight: 2, arbitrary: fc.constant("settle" as const) },
  );

  test("[CLT11] every entry is yielded once, in the order of the log", async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(5), fc.array(act, { maxLength: 12 }), async (before, acts) => {
        renew();
        write(before);
        const client = await open();
        const readers = [following(client), following(client)];
        const counts = () => readers.map(({ ids }) => ids.length);
        if (before > 1) await soon(counts).toEqual([before, before]);
        for (const each of acts) {
          if (each === "drop") peer.drop();
          else if (each === "settle") await client.call("agents.list", {});
          else if (each === "forget") hub.kept = 1;
          else if (each === "restart") {
            // Continues with the numbers that the reader expects without reporting the lost events. This is the worst
            // that a gateway can do.
            hub = new PeerHub();
            hub.hidesLosses = true;
            peer.drop();
          } else write(each.write);
        }
        await soon(counts).toEqual([log.length, log.length]);
        for (const { ids } of readers) expect(ids).toEqual(all());
        await client.close();
      }),
      { numRuns: 60 },
    );
  });
});

describe("calls when the connection breaks", () => {
  const failure = (promise: Promise<unknown>) =>
    promise.then(
      () => expect.fail("it did not fail"),
      (error: unknown) => error,
    );
  const unanswered = async (method: string) => soon(() => peer.asked(method).length).toBe(1);

  test("[CLT6] in flight when the socket breaks: idempotent calls are sent again, the rest may have happened", async () => {
    const client = await open();
    peer.answer = () => undefined;
    const again = client.call("sessions.list", {});
    const lost = failure(client.call("sessions.fork", { key: "main" }));
    await unanswered("sessions.fork");
    peer.answer = ({ ok }) => ok({ count: 0 });
    peer.drop();
    expect(await again).toEqual({ count: 0 });
    expect(await lost).toMatchObject({
      code: "unavailable",
      retryable: true,
      message: expect.stringContaining("may or may not have been executed"),
    });
    expect(peer.asked("sessions.list")).toHaveLength(2);
    expect(peer.asked("sessions.fork")).toHaveLength(1);
  });

  test.each([
    ["chat.abort", { sessionKey: "main" }],
    ["sessions.branch", { key: "main", entryId: null }],
  ] as const)(
    "[CLT6] %s is not sent again, because it would act on what happened since",
    async (method, params) => {
      const client = await open();
      peer.answer = () => undefined;
      const lost = failure(client.call(method, params as never));
      await unanswered(method);
      peer.answer = ({ ok }) => ok({});
      peer.drop();
      expect(await lost).toMatchObject({
        message: expect.stringContaining("may or may not have been executed"),
      });
      expect(peer.asked(method)).toHaveLength(1);
    },
  );

  test("[CLT6] a call that breaks one socket after another is given up", async () => {
    const client = await open();
    peer.answer = ({ socket }) => socket.terminate();
    await expect(client.call("sessions.list", {})).rejects.toMatchObject({ code: "unavailable" });
    expect(peer.asked("sessions.list")).toHaveLength(3);
  });

  test("[CLT6] a call made without a socket waits for the next one", async () => {
    const client = await open();
    const { promise, resolve } = Promise.withResolvers<unknown>();
    client.onState((state) => {
      if (state === "connecting") resolve(client.call("sessions.fork", { key: "main" }));
    });
    peer.drop();
    expect(await promise).toEqual({});
  });

  test("[CLT6] close distinguishes calls that were sent from those that can be repeated", async () => {
    const client = await open();
    peer.answer = () => undefined;
    const [read, change] = [client.call("agents.list", {}), client.call("sessions.fork", { key: "x" })];
    const ends = Promise.all([failure(read), failure(change)]);
    await client.close();
    const [one, other] = (await ends) as CallError[];
    expect(one?.message).toContain("is closed");
    expect(other?.message).toContain("may or may not have been executed");
    await expect(client.call("agents.list", {})).rejects.toMatchObject({ code: "unavailable" });
  });
});
