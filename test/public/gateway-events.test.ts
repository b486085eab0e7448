import { once } from "node:events";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import type { TemporaryFolder } from "../../src/entry-testing.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import type { WholeGateway } from "../support/whole-gateway.ts";
import { configure, wholeGateway } from "../support/whole-gateway.ts";

let folder: TemporaryFolder;
let gateway: WholeGateway;
beforeEach(async () => {
  folder = temporaryFolder("skein-events-");
  gateway = await wholeGateway({ folder });
});
afterEach(async () => {
  await gateway.close();
  folder.remove();
});

interface Received {
  readonly id: number;
  readonly event: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** An open `/events` stream of server-sent events. */
class Events {
  readonly #abort: AbortController;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #decoder = new TextDecoder();
  #text = "";

  private constructor(body: ReadableStream<Uint8Array>, abort: AbortController) {
    this.#abort = abort;
    this.#reader = body.getReader();
  }

  /** `after` is the number of the last received event. */
  static async open(token = gateway.admin, after?: number): Promise<Events> {
    const abort = new AbortController();
    const answer = await fetch(`${gateway.url}/events`, {
      headers: {
        authorization: `Bearer ${token}`,
        ...(after === undefined ? {} : { "last-event-id": String(after) }),
      },
      signal: abort.signal,
    });
    expect(answer.status).toBe(200);
    return new Events(answer.body as ReadableStream<Uint8Array>, abort);
  }

  /** Returns events up to the first match. */
  async until(isLast: (event: Received) => boolean): Promise<Received[]> {
    const events: Received[] = [];
    for (;;) {
      const event = await this.#next();
      events.push(event);
      if (isLast(event)) return events;
    }
  }

  close(): void {
    this.#abort.abort();
  }

  async #next(): Promise<Received> {
    for (;;) {
      const end = this.#text.indexOf("\n\n");
      if (end === -1) {
        const { value, done } = await this.#reader.read();
        if (done) throw new Error("The stream has ended.");
        this.#text += this.#decoder.decode(value, { stream: true });
        continue;
      }
      const lines = this.#text.slice(0, end).split("\n");
      this.#text = this.#text.slice(end + 2);
      const field = (name: string) =>
        lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2) ?? "";
      if (field("data") === "") continue;
      return { id: Number(field("id")), event: field("event"), data: JSON.parse(field("data")).payload };
    }
  }
}

const create = async (name: string, token = gateway.admin) => {
  const { status } = await gateway.rpc("sessions.create", { key: `agent:main:session:${name}` }, token);
  expect(status).toBe(200);
};
const isAbout = (name: string) => (event: Received) => JSON.stringify(event.data).includes(`session:${name}`);

describe("a client that resumes", () => {
  test("[GEV3] receives every event that it missed, in order", async () => {
    const whole = await Events.open();
    const broken = await Events.open();
    await create("one");
    const seen = await broken.until(isAbout("one"));
    broken.close();
    for (const name of ["two", "three", "four"]) await create(name);
    const all = await whole.until(isAbout("four"));
    const resumed = await Events.open(gateway.admin, seen.at(-1)?.id);
    const missed = await resumed.until(isAbout("four"));
    expect(missed.map(({ event }) => event)).not.toContain("gap");
    expect([...seen, ...missed]).toEqual(all);
    for (const stream of [whole, resumed]) stream.close();
  });

  test("[GEV3] receives a gap if events were lost with the process", async () => {
    const before = await Events.open();
    await create("one");
    const last = (await before.until(isAbout("one"))).at(-1)?.id ?? 0;
    before.close();
    await gateway.stop();
    gateway = await wholeGateway({ folder });
    const after = await Events.open(gateway.admin, last);
    await create("two");
    const [gap, ...others] = await after.until(isAbout("two"));
    expect(gap).toMatchObject({ event: "gap", data: { after: last, reason: "restart" } });
    expect(others.length).toBeGreaterThan(0);
    after.close();
  });
});

test("[GEV6] a token receives only events of its own user's sessions", async () => {
  const tokenOf = (userId: string) => gateway.token({ scopes: ["read", "write"], userId });
  const [ann, bob] = [await tokenOf("ann"), await tokenOf("bob")];
  const unnamed = await gateway.token({ scopes: ["read"] });
  const streams = {
    ann: await Events.open(ann),
    unnamed: await Events.open(unnamed),
    all: await Events.open(),
  };
  await create("bob-1", bob);
  const sent = { sessionKey: "agent:main:session:bob-1", message: "repeat bob-1", idempotencyKey: "1" };
  const { body } = await gateway.rpc("chat.send", sent, bob);
  await gateway.rpc("agent.wait", body as object, bob);
  await create("ann-1", ann);
  await create("own-1");
  const ofAnn = await streams.ann.until(isAbout("ann-1"));
  expect(JSON.stringify(ofAnn)).not.toContain("bob-1");
  const ofUnnamed = await streams.unnamed.until(isAbout("own-1"));
  expect(JSON.stringify(ofUnnamed)).not.toMatch(/bob-1|ann-1/);
  const ofAll = JSON.stringify(await streams.all.until(isAbout("own-1")));
  for (const name of ["bob-1", "ann-1"]) expect(ofAll).toContain(name);
  for (const stream of Object.values(streams)) stream.close();
});

test("[RLD7] [RLD8] a reload reaches the clients of every user with the names of the changed sections", async () => {
  const ann = await Events.open(await gateway.token({ scopes: ["read"], userId: "ann" }));
  const client = await gateway.client();
  const socket = client.events({ events: ["gateway.*"] });
  const ofSession = client.events({ keys: ["main"] });
  await Promise.all([socket.ready, ofSession.ready]);
  configure(folder.path, "agents: { main: {}, bobs-agent: { model: rehearsal/basic } }\n");
  const [reloaded] = await ann.until(() => true);
  expect(reloaded).toMatchObject({ event: "gateway.reloaded" });
  expect(reloaded?.data).toEqual({ at: expect.any(Number), settings: ["agents"] });
  const { value } = await socket[Symbol.asyncIterator]().next();
  expect(value).toMatchObject({ event: "gateway.reloaded", payload: { settings: ["agents"] } });
  // The first event of a session's subscription belongs to that session.
  await gateway.rpc("chat.send", { sessionKey: "main", message: "repeat hello", idempotencyKey: "1" });
  const { value: first } = await ofSession[Symbol.asyncIterator]().next();
  expect(first?.payload).toMatchObject({ sessionKey: "agent:main:main" });
  ann.close();
});

test("[GEV17] a slow reader gets a gap if events were dropped", async () => {
  const socket = new WebSocket(`${gateway.url.replace("http", "ws")}/ws`);
  await once(socket, "open");
  const frames: { event?: string; id?: string; payload?: Record<string, unknown> }[] = [];
  socket.on("message", (data) => frames.push(JSON.parse(String(data))));
  const call = async (id: string, method: string, params: object) => {
    socket.send(JSON.stringify({ type: "req", id, method, params }));
    await expect.poll(() => frames.some((frame) => frame.id === id)).toBe(true);
  };
  await call("1", "connect", {
    protocol: { min: 1, max: 1 },
    auth: { token: gateway.admin },
    client: { name: "slow" },
  });
  await call("2", "sessions.subscribe", {});
  socket.pause();
  const message = `repeat ${"many words ".repeat(4000)}`;
  const dropped = async () => {
    const headers = { authorization: `Bearer ${gateway.admin}` };
    const text = await (await fetch(`${gateway.url}/metrics`, { headers })).text();
    return Number(/^skein_gateway_events_dropped_total (\d+)/m.exec(text)?.[1]);
  };
  for (let count = 0; count < 40 && (await dropped()) === 0; count += 1) {
    const sent = { sessionKey: `agent:main:session:${count}`, message, idempotencyKey: String(count) };
    const { body } = await gateway.rpc("chat.send", sent);
    await gateway.rpc("agent.wait", { runId: (body as { runId: string }).runId });
  }
  expect(await dropped()).toBeGreaterThan(0);
  socket.resume();
  const gaps = () => frames.filter(({ event }) => event === "gap").map(({ payload }) => payload?.reason);
  await expect.poll(gaps, { timeout: 150_000 }).toContain("slow");
  socket.terminate();
});
