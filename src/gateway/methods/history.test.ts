import { fork } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, test } from "vitest";
import { acceptIn, withRuns } from "../../../test/support/cli-runs.ts";
import type { ReadingFolder } from "../../../test/support/reading-folder.ts";
import { readingFolder, secret } from "../../../test/support/reading-folder.ts";
import type { Params } from "../../protocol/method-table.ts";
import { readHandlers } from "./handlers.ts";
import { localCalls, localPrincipal } from "./local-calls.ts";

let folder: ReadingFolder | null = null;

afterEach(async () => {
  await folder?.close();
  folder = null;
});

const sessionKey = "agent:main:session:a";
const said = (text: string) => ({ type: "message", message: { role: "user", content: text } }) as const;
const changer = fileURLToPath(new URL("../../../test/support/history-changer.ts", import.meta.url));

/**
 * Returns a session with two messages, the number of times that a page of it has been read, and the result without a
 * cache.
 */
async function watched(content = "Kyoto") {
  let reads = 0;
  const made = await readingFolder({
    pending: async () => {
      reads += 1;
      return [];
    },
  });
  folder = made;
  await made.store.sessions.create({}, { key: sessionKey, sessionId: "a", cwd: "/home/ann" });
  const ids = await made.append({}, "a", said(content), said("Nara"));
  const anew = (params: Params<"chat.history">) =>
    localCalls(readHandlers(made.deps), localPrincipal).call("chat.history", params);
  return { ...made, ids, anew, reads: () => reads };
}

type Watched = Awaited<ReturnType<typeof watched>>;

async function texts({ admin }: Pick<Watched, "admin">, name = sessionKey): Promise<unknown[]> {
  const { messages } = await admin("chat.history", { sessionKey: name });
  return messages.map((message) => (message as { readonly content?: unknown }).content);
}

describe("a history page that is requested again", () => {
  test("is not read again if nothing has changed, but separately for different params", async () => {
    const { admin, reader, as, reads } = await watched(`It is ${secret}`);
    const first = await admin("chat.history", { sessionKey });
    expect(await admin("chat.history", { sessionKey })).toEqual(first);
    expect(reads()).toBe(1);
    expect((await admin("chat.history", { sessionKey, limit: 1 })).messages).toHaveLength(1);
    expect(reads()).toBe(2);
    // A caller with fewer rights never receives data that was cached for another caller.
    expect(JSON.stringify(first)).toContain(secret);
    expect(JSON.stringify(await reader("chat.history", { sessionKey }))).not.toContain(secret);
    await expect(as("ben", "read", "admin")("chat.history", { sessionKey })).rejects.toThrow(
      /Session not found/,
    );
    expect(reads()).toBe(3);
  });

  test("includes later changes of this process", async () => {
    const made = await watched();
    const { append, store, ids } = made;
    const { sessions } = store;
    expect(await texts(made)).toEqual(["Kyoto", "Nara"]);
    await append({}, "a", said("Osaka"));
    expect(await texts(made)).toEqual(["Kyoto", "Nara", "Osaka"]);
    await sessions.branch({}, "a", ids[1] ?? null);
    expect(await texts(made)).toEqual(["Kyoto", "Nara"]);
    await sessions.redact({}, "a", [ids[0] ?? ""]);
    expect(await texts(made)).not.toContain("Kyoto");
    await sessions.reset({}, "a", { sessionId: "b" });
    expect(await texts(made)).toEqual([]);
    await sessions.remove({}, "b");
    await expect(texts(made)).rejects.toThrow(/Session not found/);
    await sessions.restore({}, "b");
    expect(await texts(made)).toEqual([]);
  });

  test("includes later changes of another process", async () => {
    const made = await watched();
    const { admin, anew, dir, ids } = made;
    const child = fork(changer, [dir], { stdio: ["ignore", "ignore", "inherit", "ipc"] });
    const ended = once(child, "exit");
    try {
      expect(await once(child, "message")).toEqual(["ready", undefined]);
      let before = await admin("chat.history", { sessionKey });
      for (const act of ["append", "branch", "redact", "append", "reset"]) {
        const done = once(child, "message");
        child.send(act);
        expect((await done)[0]).toBe("done");
        const after = await admin("chat.history", { sessionKey });
        expect(after, act).not.toEqual(before);
        expect(after, act).toEqual(JSON.parse(JSON.stringify(await anew({ sessionKey }))));
        before = after;
      }
      expect((await admin("chat.history", { sessionKey: "agent:main:reset:a" })).messages[0]?.id).toBe(
        ids[0],
      );
      const done = once(child, "message");
      child.send("remove");
      expect((await done)[0]).toBe("done");
      await expect(texts(made)).rejects.toThrow(/Session not found/);
    } finally {
      child.disconnect();
      await ended;
    }
  });

  test("includes input that another process accepted, and its abort", async () => {
    const made = await readingFolder();
    folder = made;
    const session = await made.store.sessions.create(
      {},
      { key: sessionKey, sessionId: "a", cwd: "/home/ann" },
    );
    await made.append({}, "a", said("Kyoto"));
    const waiting = async () => (await made.admin("chat.history", { sessionKey })).pending;
    for (let count = 0; count < 2; count += 1) expect(await waiting()).toEqual([]);
    await withRuns(made.dir, async (runs) => {
      const { runId } = await acceptIn(runs, session, "and Nara?", "nara");
      for (let count = 0; count < 2; count += 1) expect(await waiting()).toMatchObject([{ runId }]);
      await runs.abort(runId);
      expect(await waiting()).toEqual([]);
    });
  });

  test("includes lines that another program wrote into the log, unknown to the database", async () => {
    const made = await watched();
    expect(await texts(made)).toEqual(["Kyoto", "Nara"]);
    const log = logIn(made.dir);
    const line = {
      type: "message",
      id: "foreign1",
      parentId: made.ids[1],
      timestamp: "2026-01-01T00:00:00Z",
    };
    appendFileSync(log, `${JSON.stringify({ ...line, message: { role: "user", content: "Kobe" } })}\n`);
    expect(await texts(made)).toEqual(["Kyoto", "Nara", "Kobe"]);
  });

  test("a name that is not a key is looked up each time, because a file may appear", async () => {
    const made = await watched();
    await made.store.sessions.patch({}, "a", { label: "trip" });
    expect(await texts(made, "trip")).toEqual(["Kyoto", "Nara"]);
    const log = logIn(made.dir);
    const [, ...lines] = readFileSync(log, "utf8").trim().split("\n");
    const header = { type: "session", version: 3, id: "trip", timestamp: "2026-01-01T00:00:00Z", cwd: "/" };
    writeFileSync(join(dirname(log), "trip.jsonl"), `${[JSON.stringify(header), lines[0]].join("\n")}\n`);
    expect(await texts(made, "trip")).toEqual(["Kyoto"]);
  });
});

function logIn(dir: string): string {
  const name = readdirSync(dir, { recursive: true, encoding: "utf8" }).find((each) =>
    each.endsWith("a.log.jsonl"),
  );
  return join(dir, name ?? "");
}
