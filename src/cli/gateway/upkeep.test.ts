import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { borrowDatabase, migrator, postgresFor } from "../../../test/support/postgres.ts";
import { soon } from "../../../test/support/soon.ts";
import { TokenBooks } from "../../../test/support/token-books.ts";
import { startTokenUpkeep } from "../../app/gateway-upkeep.ts";
import { loadConfig } from "../../config/load.ts";
import type { Handlers } from "../../gateway/methods/dispatch.ts";
import { Dispatch } from "../../gateway/methods/dispatch.ts";
import { temporaryFolder } from "../../testing/support/temporary-folder.ts";
import { openGatewayHome } from "./gateway-home.ts";
import { keepAnnounced, runMaintenance, startUpkeep } from "./upkeep.ts";

const never = new AbortController().signal;
const day = 24 * 3_600_000;
const decision = { key: "agent:main:main", sessionId: "a", action: "trash", rule: "pruneAfter", why: "old" };

/** A gateway whose maintenance returns this report. */
function parts(report: () => unknown) {
  const books = new TokenBooks();
  const lines: string[] = [];
  const dispatch = new Dispatch({
    handlers: () => ({ "maintenance.run": async () => report() }) as unknown as Handlers,
    newErrorId: () => "",
    report: () => undefined,
  });
  const log = (level: string, text: string) => void lines.push(`${level}: ${text}`);
  return {
    books,
    lines,
    tokens: books.tokens,
    dispatch,
    log,
    beat: () => true,
    isAnnounced: () => true,
    count: async () => undefined,
    takeTurn: async () => true,
  };
}

describe("gateway upkeep", () => {
  test("tokens that expired long ago are removed", async () => {
    const all = parts(() => ({ mode: "warn", decisions: [], done: [] }));
    const { books, tokens, lines } = all;
    await tokens.create({ name: "long", scopes: ["read"], user: null, expiresAt: books.now + 1000 }, null);
    await tokens.create({ name: "kept", scopes: ["read"], user: null }, null);
    books.now += 20 * day;
    await tokens.create({ name: "lately", scopes: ["read"], user: null, expiresAt: books.now + 1000 }, null);
    books.now += 11 * day;
    const end = startTokenUpkeep(tokens, { log: all.log, firstMs: 0 });
    await soon(async () => (await tokens.list()).map(({ name }) => name)).toEqual(["kept", "lately"]);
    await end();
    expect(lines).toEqual([]);
  });

  test("runs maintenance through the public method and logs it; a warning once", async () => {
    let given: unknown = { mode: "warn", decisions: [decision], done: [] };
    const all = parts(() => given);
    const said = await runMaintenance(all, never);
    expect(await runMaintenance(all, never, said)).toBe(said);
    expect(all.lines).toEqual([
      expect.stringMatching(/^warn: maintenance would change 1 sessions; .*enforce/),
    ]);
    given = { mode: "enforce", decisions: [decision, decision], done: [decision] };
    await runMaintenance(all, never, said);
    expect(all.lines.at(-1)).toBe("info: maintenance changed 1 of 2 sessions");
  });

  test("gateways that share a database take turns, so that one of them works each hour", async (context) => {
    await postgresFor(context);
    const { database, giveBack } = await borrowDatabase();
    const folder = temporaryFolder();
    let now = Date.now();
    const homes = await Promise.all(
      ["a", "b", "c"].map(async (name) => {
        const env = { SKEIN_STORE: database.url(migrator) };
        const loaded = await loadConfig({ cwd: folder.path, root: join(folder.path, name), env });
        return openGatewayHome(loaded, { now: () => now }, folder.path);
      }),
    );
    const rounds: boolean[][] = [];
    for (const passed of [0, 1_800_000, 1_800_000]) {
      now += passed;
      rounds.push(await Promise.all(homes.map((home) => home.takeTurn())));
    }
    const counts = rounds.map((turns) => turns.filter(Boolean).length);
    expect(counts).toEqual([1, 0, 1]);
    const all = parts(() => expect.unreachable());
    expect(await runMaintenance({ ...all, takeTurn: async () => false }, never, "before")).toBe("before");
    await Promise.all(homes.map((home) => home.close()));
    await giveBack();
    folder.remove();
  });

  test("a failure is reported and retried", async () => {
    const all = parts(() => {
      throw new Error("the disk is full");
    });
    await runMaintenance(all, never);
    expect(all.lines).toEqual(["error: maintenance failed: the disk is full"]);
  });

  test("a failure every second is logged once, and does not stop the gateway", async () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    try {
      const all = parts(() => null);
      const failures = [0, 1].map(() => Object.assign(new Error("too many open files"), { code: "EMFILE" }));
      const end = startUpkeep({
        ...all,
        count: async () => {
          const failure = failures.pop();
          if (failure !== undefined) throw failure;
        },
      });
      await vi.advanceTimersByTimeAsync(3000);
      await end();
      expect(failures).toEqual([]);
      expect(all.lines).toEqual(["warn: work counts: too many open files"]);
    } finally {
      vi.useRealTimers();
    }
  });

  test("stops at once, and leaves no timer", async () => {
    const end = startUpkeep(parts(() => null));
    await end();
  });

  test("a removed gateway.json is written again, unless another gateway has claimed the folder", () => {
    const made: string[] = [];
    const claim = (name: string, ...lives: boolean[]) => ({
      startedAt: 0,
      unwritten: null,
      beat: () => lives.shift() ?? false,
      release: () => void made.push(`${name} released`),
    });
    const next = [claim("second", true), null];
    const known = keepAnnounced(claim("first", true, false), () => {
      made.push("claimed");
      return next.shift() ?? null;
    });
    expect([known.beat(), known.beat(), known.beat(), known.beat()]).toEqual([true, true, true, false]);
    expect(made).toEqual(["claimed", "claimed"]);
    known.release();
    expect(made).toHaveLength(2);
  });
});
