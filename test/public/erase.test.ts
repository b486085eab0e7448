import { once } from "node:events";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import type { Server } from "node:http";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { MethodName, Params, Result } from "../../src/entry-client.ts";
import { createStore } from "../../src/entry-store.ts";
import type { TemporaryFolder } from "../../src/entry-testing.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import { StartedInside } from "../support/cli-inside.ts";
import { Started } from "../support/cli-process.ts";
import { skeinProgram } from "../support/programs.ts";
import { findRunning } from "../support/running-gateway.ts";
import { soon } from "../support/soon.ts";
import { signatureOf } from "../support/webhook-signature.ts";

const env = () => ({
  npm_lifecycle_event: "",
  SKEIN_LOGGING__LEVEL: "error",
  HOME: join(folder.path, "home"),
});
const secret = "desk-secret";
/** The text that must be erased. It is a single word, so it occurs in every form of the text. */
const marker = "Zwetschgenkuchen4711";

let folder: TemporaryFolder;
let root: string;
let work: string;
let started: StartedInside[];
let processes: Started[];
let desk: Server;
let delivered: string[];

beforeEach(async () => {
  folder = temporaryFolder("skein-erase-");
  root = join(folder.path, "root");
  work = join(folder.path, "work");
  mkdirSync(work);
  mkdirSync(join(folder.path, "home"));
  started = [];
  processes = [];
  delivered = [];
  desk = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (piece: string) => {
      body += piece;
    });
    request.on("end", () => {
      delivered.push(body);
      response.end();
    });
  }).listen(0, "127.0.0.1");
  await once(desk, "listening");
  const url = `http://127.0.0.1:${(desk.address() as AddressInfo).port}/`;
  const config = {
    agents: { main: { cwd: work } },
    channels: { desk: { type: "webhook", secret, url, user: "ann" } },
  };
  writeFileSync(join(folder.path, "skein.yaml"), JSON.stringify(config));
});

afterEach(async () => {
  await Promise.all(started.map((each) => each.stop()));
  for (const { child } of processes) child.kill("SIGKILL");
  await Promise.all(processes.map((each) => each.end()));
  desk.close();
  desk.closeAllConnections();
  folder.remove();
});

async function startGateway(): Promise<StartedInside> {
  const gateway = new StartedInside(["start", "--dir", root, "--port", "0"], folder.path, env());
  started.push(gateway);
  await gateway.until(/Press Ctrl-C to stop it/);
  return gateway;
}

/** A gateway that runs in a different process from the one that reads its databases. */
async function startProcess(): Promise<Started> {
  const gateway = new Started([skeinProgram, "start", "--dir", root, "--port", "0"], env(), {
    cwd: folder.path,
  });
  processes.push(gateway);
  await gateway.until(/Press Ctrl-C to stop it/);
  return gateway;
}

async function stopGateway(gateway: StartedInside): Promise<void> {
  expect(await gateway.stop()).toBe(0);
}

function gatewayUrl(): string {
  return findRunning(root)?.url ?? "";
}

function adminToken(): string {
  return readFileSync(join(root, "token"), "utf8").trim();
}

async function call<M extends MethodName>(
  method: M,
  params: Params<M>,
  token = adminToken(),
): Promise<Result<M>> {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const body = JSON.stringify(params);
  const answer = await fetch(`${gatewayUrl()}/rpc/${method}`, { method: "POST", headers, body });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method}: ${answer.status} ${text}`);
  return JSON.parse(text) as Result<M>;
}

/** The command line. It uses the gateway if one is running. */
async function cli(...args: readonly string[]): Promise<{ readonly out: string; readonly err: string }> {
  const command = new StartedInside([...args, "--dir", root], folder.path, env());
  const exit = await command.end();
  if (exit !== 0) throw new Error(`${args.join(" ")}: ${exit}\n${command.err}`);
  return command;
}

/** Returns every file under a folder whose content or path contains the text, in UTF-8 or UTF-16. */
function filesWith(text: string, under: string): string[] {
  const forms = [Buffer.from(text, "utf8"), Buffer.from(text, "utf16le"), Buffer.from(text.toLowerCase())];
  return readdirSync(under, { recursive: true, withFileTypes: true }).flatMap((entry) => {
    const path = join(entry.parentPath, entry.name);
    if (entry.name.toLowerCase().includes(text.toLowerCase())) return [path];
    if (!entry.isFile()) return [];
    const bytes = readIfThere(path);
    return forms.some((form) => bytes.includes(form)) ? [path] : [];
  });
}

/** A running gateway might have replaced the file since it was listed. */
function readIfThere(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    return Buffer.alloc(0);
  }
}

async function ended(runId: string, userId: string): Promise<void> {
  expect(await call("agent.wait", { runId, timeoutMs: 150_000, userId })).toMatchObject({ finished: true });
}

async function say(sessionKey: string, message: string, userId: string, more: object = {}): Promise<string> {
  const idempotencyKey = `${sessionKey} ${message.slice(0, 60)}`;
  const { runId } = await call("chat.send", { sessionKey, message, idempotencyKey, userId, ...more });
  await ended(runId, userId);
  return runId;
}

async function sayOverWebhook(text: string): Promise<void> {
  const timestamp = String(Math.floor(Date.now() / 1000));
  const messageId = "m1";
  const body = JSON.stringify({ text, peer: "17" });
  const headers = {
    "content-type": "application/json",
    "x-skein-timestamp": timestamp,
    "x-skein-message-id": messageId,
    "x-skein-signature": signatureOf(secret, { timestamp, messageId, body }),
  };
  const before = delivered.length;
  const answer = await fetch(`${gatewayUrl()}/channels/desk/inbound`, { method: "POST", headers, body });
  expect(answer.status).toBeLessThan(300);
  await soon(() => delivered.length).toBeGreaterThan(before);
}

interface Spawned {
  readonly childSessionKey: string;
  readonly runId: string;
}

async function spawnChild(sessionKey: string, args: object, userId: string): Promise<Spawned> {
  const invoked = { sessionKey, name: "sessions_spawn", arguments: { ...args }, userId };
  const { result } = await call("tools.invoke", {
    ...invoked,
    idempotencyKey: `spawn ${JSON.stringify(args)}`,
  });
  const child = result as unknown as Spawned;
  await ended(child.runId, userId);
  return child;
}

/** A PNG that is large enough to be stored as a blob, with the marker in its bytes. */
function largeImage(): { readonly data: string; readonly mimeType: string } {
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  const header = Buffer.from("0000000d49484452000000010000000108060000001f15c489", "hex");
  const bytes = Buffer.concat([signature, header, Buffer.from(marker), Buffer.alloc(100_000, 7)]);
  return { data: bytes.toString("base64"), mimeType: "image/png" };
}

/** Returns the events that a client receives when it resumes after a number, up to the newest. */
async function eventsAfter(seq: number, userId: string): Promise<string> {
  const { token } = await call("tokens.create", {
    scopes: ["read", "write"],
    userId,
    label: `reader ${seq}`,
  });
  const over = new AbortController();
  const answer = await fetch(`${gatewayUrl()}/events`, {
    headers: { authorization: `Bearer ${token}`, "last-event-id": String(seq) },
    signal: over.signal,
  });
  // A session is created once the stream is open. The event for this session is the last one.
  const last = await call("sessions.create", { userId });
  let text = "";
  const decoder = new TextDecoder();
  for await (const piece of answer.body as unknown as AsyncIterable<Uint8Array>) {
    text += decoder.decode(piece, { stream: true });
    if (text.includes(`"${last.sessionId}"`)) break;
  }
  over.abort();
  return text;
}

/** Returns a user's entries that contain the marker, by session. */
async function markedEntries(userId: string): Promise<ReadonlyMap<string, readonly string[]>> {
  const { sessions } = await call("sessions.list", { userId, limit: 200 });
  const found = new Map<string, readonly string[]>();
  for (const { sessionId } of sessions) {
    const { entries } = await call("sessions.entries", { key: sessionId, along: "all", limit: 200, userId });
    const ids = entries.filter((entry) => JSON.stringify(entry).includes(marker)).map(({ id }) => id);
    if (ids.length > 0) found.set(sessionId, ids);
  }
  return found;
}

/** Waits until nothing of a user's is queued or running. A child's announcement is a separate turn. */
async function settled(userId: string): Promise<void> {
  const openRuns = async () =>
    (await call("runs.list", { userId, states: ["queued", "running", "waiting"] })).runs.length;
  await expect.poll(openRuns, { timeout: 150_000 }).toBe(0);
}

/** A conversation that leaves the marker everywhere possible. Webhook messages belong to the desk channel's user. */
async function fillFolder(
  deskUser: string,
  userId = deskUser,
): Promise<{ readonly key: string; readonly child: Spawned }> {
  const key = "agent:main:session:vault";
  await call("sessions.create", { key, sessionId: "vault", userId });
  const runId = await say(key, `repeat ${marker} "and" more`, userId, { attachments: [largeImage()] });
  expect(JSON.stringify(await call("runs.get", { runId, userId }))).toContain(marker);
  await sayOverWebhook(`repeat ${marker}`);
  await soon(() => delivered.join("")).toContain(marker);
  const child = await spawnChild(
    key,
    {
      task: `repeat ${marker}`,
      attachments: [{ name: "note.txt", content: `a file about ${marker}` }],
      attachAs: { mountPath: "handed/over" },
    },
    userId,
  );
  expect(existsSync(join(work, "handed", "over", "note.txt"))).toBe(true);
  await settled(userId);
  await call("sessions.fork", { key, sessionId: "copy", userId });
  await call("sessions.fork", { key, sessionId: "trashed-copy", userId });
  await call("sessions.delete", { key: "trashed-copy", userId });
  const { hits } = await call("sessions.search", { query: marker, userId });
  expect(hits.length).toBeGreaterThan(0);
  return { key, child };
}

describe("redaction", () => {
  test("[ERZ1] [ERZ2] [ERZ3] [ERZ9] leaves no byte of the text in the folder, in answers or in events", async () => {
    const gateway = await startGateway();
    const first = await eventsAfter(0, "ann");
    const seq = Number(/^id: (\d+)$/m.exec(first)?.[1]);
    await fillFolder("ann");
    expect(await eventsAfter(seq, "ann")).toContain(marker);
    const before = filesWith(marker, root);
    for (const name of ["work.db", "index.db", ".log.jsonl", "trash", "blobs", "sessions.json"])
      expect(before.join("\n")).toContain(name);

    for (const [sessionId, ids] of await markedEntries("ann"))
      await cli("sessions", "redact", sessionId, ...ids, "--user", "ann", "--yes");

    expect(filesWith(marker, root)).toEqual([]);
    const answers = await Promise.all([
      call("sessions.list", { userId: "ann", limit: 200 }),
      call("chat.history", { sessionKey: "agent:main:session:vault", userId: "ann" }),
      call("runs.list", { userId: "ann", limit: 500 }),
      call("outbox.list", { userId: "ann" }),
      call("sessions.search", { query: marker, userId: "ann" }),
    ]);
    for (const answer of answers.slice(0, -1)) expect(JSON.stringify(answer)).not.toContain(marker);
    expect(answers.at(-1)).toMatchObject({ hits: [] });
    expect(await eventsAfter(seq, "ann")).not.toContain(marker);
    // The message's key still identifies it.
    const again = await call("chat.send", {
      sessionKey: "agent:main:session:vault",
      message: `repeat ${marker} "and" more`,
      idempotencyKey: `agent:main:session:vault repeat ${marker} "and" more`,
      userId: "ann",
    });
    expect((await call("runs.list", { userId: "ann", limit: 500 })).runs.map(({ runId }) => runId)).toContain(
      again.runId,
    );
    await stopGateway(gateway);
    expect(filesWith(marker, root)).toEqual([]);
  });

  test("[ERZ1] works on a folder without a gateway, and on remains of a crash and a repair", async () => {
    const gateway = await startGateway();
    await fillFolder("ann");
    const ids = await markedEntries("ann");
    await stopGateway(gateway);
    const sessions = join(root, "users", "ann", "agents", "main", "sessions");
    const log = join(sessions, "vault.log.jsonl");
    cpSync(log, `${log}.bak-1-1700000000000`);
    cpSync(join(root, "work.db"), join(root, "work.db.unreadable-1700000000000"));
    // One process died while replacing a working set, and another before its index was updated.
    cpSync(log, join(sessions, ".vault.jsonl.019a.tmp"));
    utimesSync(join(sessions, ".vault.jsonl.019a.tmp"), 1_700_000_000, 1_700_000_000);

    for (const [sessionId, entryIds] of ids)
      await cli("sessions", "redact", sessionId, ...entryIds, "--user", "ann", "--yes");

    expect(filesWith(marker, root)).toEqual([]);
    expect(existsSync(`${log}.bak-1-1700000000000`)).toBe(true);
  });

  test.each(["the same gateway", "the next one"])(
    "[ERZ4] [ERZ8] is reported as unfinished while another process reads a database, and %s finishes it",
    async (who) => {
      const gateway = await startProcess();
      const key = "agent:main:session:vault";
      await call("sessions.create", { key, sessionId: "vault", userId: "ann" });
      await say(key, `repeat ${marker}`, "ann");
      const reader = new DatabaseSync(join(root, "work.db"), { timeout: 30_000 });
      reader.exec("BEGIN");
      reader.prepare("SELECT count(*) FROM runs").get();

      const [ids] = [...(await markedEntries("ann")).values()];
      const { out } = await cli("sessions", "redact", "vault", ...(ids ?? []), "--user", "ann", "--yes");
      expect(out).toContain("another process is reading the databases");
      expect(filesWith(marker, root).join("\n")).toContain("work.db");

      const isNext = who === "the next one";
      if (isNext) {
        gateway.child.kill("SIGKILL");
        await gateway.end();
      }
      reader.exec("COMMIT");
      reader.close();
      const last = isNext ? await startProcess() : gateway;
      await soon(() => filesWith(marker, root)).toEqual([]);
      last.child.kill("SIGTERM");
      expect(await last.end()).toBe(0);
    },
  );
});

describe("copies of a redacted entry", () => {
  test("queued input is answered as it was sent", async () => {
    const gateway = await startGateway();
    const key = "agent:main:session:vault";
    await call("sessions.create", { key, sessionId: "vault", userId: "ann" });
    await say(key, `repeat ${marker}`, "ann");
    const [ids] = [...(await markedEntries("ann")).values()];
    const send = (message: string, more: object = {}) =>
      call("chat.send", {
        sessionKey: key,
        message,
        idempotencyKey: `again ${message}`,
        userId: "ann",
        ...more,
      });
    const slow = await send("be slow for 600 seconds");
    const again = await send(`repeat ${marker}`, { queueMode: "followup" });
    await cli("sessions", "redact", "vault", ...(ids ?? []), "--user", "ann", "--yes");
    await call("runs.abort", { runId: slow.runId, userId: "ann" });
    await ended(again.runId, "ann");
    const { run } = await call("runs.get", { runId: again.runId, userId: "ann" });
    expect(JSON.stringify(run)).toContain(marker);
    await stopGateway(gateway);
  });

  test("[ERZ1] text streamed before a crash is removed with the answer, and names derived from it", async () => {
    const store = await createStore({ dir: root });
    const ann = { userId: "ann", agentId: "main" };
    const key = "agent:main:session:vault";
    const text = `The recipe is ${marker}`;
    await store.sessions.create(ann, { key, sessionId: "vault", cwd: "/", meta: { displayName: text } });
    const partial = { runId: "r1", text: text.slice(0, -1) };
    await store.sessions.append(ann, "vault", [
      { id: "asked", draft: { type: "message", message: { role: "user", content: "What is it?" } } },
      { id: "begun", draft: { type: "custom", customType: "skein.partial", data: partial } },
      { id: "named", draft: { type: "session_info", name: text } },
      { id: "answer", draft: { type: "message", message: { role: "user", content: text } } },
    ]);
    const { sessions } = await store.sessions.redact(ann, "vault", ["answer"]);
    expect(sessions).toEqual([{ sessionId: "vault", entryIds: ["begun", "answer"] }]);
    expect(await store.sessions.get(ann, "vault")).toMatchObject({ name: null, meta: {} });
    expect(filesWith(marker, root)).toEqual([]);
    await store.close();
    expect(filesWith(marker.slice(0, -1), root)).toEqual([]);
  });
});

describe("purge", () => {
  test("[ERZ5] [ERZ6] leaves no byte of the sessions in the folder, nor of their attachments", async () => {
    const gateway = await startGateway();
    const { key } = await fillFolder("ann");
    const handed = { name: "mine.txt", content: `about ${marker}` };
    const kept = { task: `repeat ${marker}`, attachments: [handed], attachAs: { mountPath: "kept" } };
    await spawnChild(key, kept, "ann");
    await settled("ann");
    writeFileSync(join(work, "kept", "mine.txt"), "changed by its owner");
    const { token } = await call("tokens.create", { scopes: ["read"], userId: "ann", label: "still valid" });
    await call("sessions.create", { key: "agent:main:session:other", sessionId: "other", userId: "ann" });
    await say("agent:main:session:other", "repeat one two three", "ann");

    const { sessions } = await call("sessions.list", { userId: "ann", limit: 200 });
    for (const { sessionId } of sessions) {
      if (sessionId === "other") continue;
      await call("sessions.delete", { key: sessionId, userId: "ann" });
      await cli("sessions", "rm", sessionId, "--purge", "--user", "ann", "--yes");
    }
    await cli("sessions", "rm", "trashed-copy", "--purge", "--user", "ann", "--yes");

    expect(filesWith(marker, root)).toEqual([]);
    expect(filesWith(marker, work)).toEqual([]);
    expect(readdirSync(work)).toEqual(["kept"]);
    expect(readFileSync(join(work, "kept", "mine.txt"), "utf8")).toBe("changed by its owner");
    const left = await call("chat.history", { sessionKey: "agent:main:session:other" }, token);
    expect(JSON.stringify(left)).toContain("one two three");
    await stopGateway(gateway);
    expect(filesWith(marker, root)).toEqual([]);
  });

  test("[ERZ7] removing a user leaves neither messages nor the user's name", async () => {
    const gateway = await startGateway();
    const userId = `mona-${marker}@example.org`;
    await fillFolder("ann", userId);
    const params = { scopes: ["read", "write"], userId, label: "of Mona" } as const;
    const { token } = await call("tokens.create", { ...params, scopes: [...params.scopes] });
    await call("sessions.list", {}, token);
    await say("main", "repeat one two three", "bob");
    cpSync(join(root, "work.db"), join(root, "work.db.unreadable-1700000000000"));

    await cli("users", "rm", userId, "--yes");
    await cli("users", "rm", "ann", "--yes");

    expect(filesWith(marker, root)).toEqual([]);
    expect(filesWith(marker, work)).toEqual([]);
    await expect(call("sessions.list", {}, token)).rejects.toThrow(/401/);
    const { sessions } = await call("sessions.list", { userId: "bob" });
    expect(sessions.map(({ kind }) => kind)).toEqual(["main"]);
    await stopGateway(gateway);
    expect(filesWith(marker, root)).toEqual([]);
  });
});
