// A process for the crash tests. Works on a files store and prints each acknowledgment on its own line of stdout.

import { existsSync, writeSync } from "node:fs";
import { flushCompileCache } from "node:module";
import type { Scope, Store } from "../../src/entry-store.ts";
import { SkeinError } from "../../src/index.ts";
import type { Disk, DiskFile } from "../../src/store/files/disk.ts";
import { realDisk } from "../../src/store/files/disk.ts";
import { openFilesStore } from "../../src/store/files/store.ts";
import { answered, append, create, said } from "./store-calls.ts";

const [mode = "", root = "", name = "", extra = ""] = process.argv.slice(2);
const scope: Scope = { userId: "alice", agentId: "main" };
const say = (text: string) => writeSync(1, `${text}\n`);

const modes: Record<string, (store: Store) => Promise<void>> = { live, write, fenced, hold };
const disk = mode === "hold" ? stoppingDisk() : realDisk;
// Longer than eight writers need for one turn each, even on a slow disk.
const store = await openFilesStore({ root, disk, lockTimeoutMs: 120_000 });
// A killed process does not save its compile cache, so the next one would compile everything again.
flushCompileCache();
await modes[mode]?.(store);
await store.close();

/** Makes every kind of change to a session, repeatedly, until it is killed. */
async function live(sessions: Store): Promise<void> {
  await create(sessions, scope, name);
  say(`session ${name}`);
  for (let round = 0; ; round++) {
    const id = `${name}-${round}`;
    await append(sessions, scope, name, id);
    say(`entry ${name} ${id}`);
    await sessions.sessions.append(scope, name, [
      { draft: answered("yes"), id: `${id}-a` },
      { draft: said("so"), id: `${id}-b` },
    ]);
    say(`entry ${name} ${id}-a`);
    say(`entry ${name} ${id}-b`);
    if (round % 3 === 1) {
      const draft = {
        type: "compaction" as const,
        summary: "S",
        firstKeptEntryId: `${id}-a`,
        tokensBefore: 1,
      };
      await sessions.sessions.append(scope, name, [{ draft, id: `${id}-k` }]);
      say(`entry ${name} ${id}-k`);
    }
    if (round % 3 === 2) {
      const fork = `${name}-f${round}`;
      await sessions.sessions.fork(scope, name, id, {
        key: `agent:main:session:${fork}`,
        sessionId: fork,
        cwd: "/w",
      });
      say(`session ${fork}`);
      say(`entry ${fork} ${id}`);
    }
    await sessions.state.set(scope, name, "count", round);
    say(`state ${name} ${round}`);
  }
}

/** Appends a number of entries to a session that other processes write to as well. */
async function write(sessions: Store): Promise<void> {
  for (let index = 0; index < Number(extra); index++) {
    await append(sessions, scope, "shared", `${name}-${index}`);
    say(`entry shared ${name}-${index}`);
  }
}

/** Appends until its fence file is removed. */
async function fenced(sessions: Store): Promise<void> {
  for (let index = 0; ; index++) {
    try {
      const items = [{ draft: said(`f${index}`), id: `f${index}` }];
      await sessions.sessions.append(scope, "shared", items, { fence: () => existsSync(name) });
      say(`entry shared f${index}`);
    } catch (error) {
      say(error instanceof SkeinError ? error.code : String(error));
      return;
    }
  }
}

/** One append that is stopped in the middle of its write. */
async function hold(sessions: Store): Promise<void> {
  await append(sessions, scope, "shared", "stopped in the middle");
  say("entry shared stopped in the middle");
}

/** Writes half of the log data, stops the process, and continues when it is resumed. */
function stoppingDisk(): Disk {
  const stopping = (file: DiskFile): DiskFile => ({
    stat: () => file.stat(),
    size: () => file.size(),
    read: (position, length) => file.read(position, length),
    readInto: (buffer, position) => file.readInto(buffer, position),
    truncate: (size) => file.truncate(size),
    sync: () => file.sync(),
    close: () => file.close(),
    append: (bytes) => {
      const half = file.append(bytes.subarray(0, bytes.length >> 1));
      process.kill(process.pid, "SIGSTOP");
      return half + file.append(bytes.subarray(half));
    },
  });
  const openExisting = (path: string) => {
    const file = realDisk.openExisting(path);
    return file !== null && path.endsWith(".log.jsonl") ? stopping(file) : file;
  };
  return { ...realDisk, openExisting };
}
