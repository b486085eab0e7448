import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { run } from "../../test/support/cli.ts";
import { seedFolder } from "../../test/support/cli-folder.ts";
import { openFolder } from "../app/folder.ts";
import { findProblems } from "../core/check-schema.ts";
import type { Principal } from "../gateway/auth/principal.ts";
import { Tokens } from "../gateway/auth/tokens.ts";
import { RefusalSchema } from "../protocol/session-views.ts";
import { TokenCreatedSchema, TokenListSchema, TokenRowSchema } from "../protocol/tokens.ts";
import type { Terminal } from "./output/terminal.ts";

let home = "";
let dir = "";
let count = 0;

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), "skein-cli-token-"));
  await seedFolder(join(home, "seeded"));
});
beforeEach(() => {
  dir = join(home, `copy-${count++}`);
  cpSync(join(home, "seeded"), dir, { recursive: true });
});
afterAll(() => rmSync(home, { recursive: true, force: true }));

const skein = (args: string[], more: Partial<Terminal> = {}) =>
  run([...args, "--dir", dir], { cwd: home, ...more });
async function json(schema: object, ...args: string[]) {
  const { out, err, exit } = await skein([...args, "--json"]);
  const payload = JSON.parse(out);
  expect({ err, mistakes: findProblems(schema, payload, 5) }).toEqual({ err: "", mistakes: [] });
  return { ...payload, exit };
}
const create = (...args: string[]) => json(TokenCreatedSchema, "token", "create", ...args);

/** Returns the principal for a secret, as seen by another process. */
async function principalOf(secret: string): Promise<Principal | null> {
  const store = await openFolder({ root: dir, durability: "os" });
  try {
    return await new Tokens(store.work).verify(secret);
  } finally {
    await store.close();
  }
}

describe("token create", () => {
  test("by default grants read access for the unnamed user, until it is revoked", async () => {
    const made = await create();
    expect(made).toMatchObject({ scopes: ["read"], allUsers: false, exit: 0 });
    expect(await principalOf(made.token)).toMatchObject({ scopes: ["read"], user: null, expiresAt: null });
  });

  test("accepts a label, scopes, a user and a duration", async () => {
    const before = Date.now();
    const made = await create(
      "--label",
      "ci",
      "--scope",
      "write, READ",
      "--for",
      "alice",
      "--expires",
      "30d",
    );
    expect(made).toMatchObject({ label: "ci", scopes: ["read", "write"], userId: "alice" });
    expect(made.expiresAt).toBeGreaterThanOrEqual(before + 30 * 86_400_000);
    expect((await principalOf(made.token))?.user).toBe("alice");
    const all = await create("--scope", "admin", "--all-users");
    expect((await principalOf(all.token))?.user).toBe("*");
  });

  test("shows the token once, with its permissions", async () => {
    const { out } = await skein(["token", "create", "--label", "ci", "--for", "alice"]);
    expect(out).toMatch(
      /^Created a token\. .+\n {2}token {3}skein_\S+\n {2}id {6}[0-9a-f]{12}\n {2}scopes {2}read\n {2}for {5}alice\n {2}until {3}it is revoked\n$/,
    );
    const secret = /skein_\S+/.exec(out)?.[0] ?? "none";
    const list = await skein(["token"]);
    expect(list.out).toMatch(/^TOKEN +LABEL +STATE +SCOPES +FOR +AGE\n\S+ +ci +valid +read +alice +\S+\n$/);
    expect(list.out + (await skein(["token", "list", "--json"])).out).not.toContain(secret.slice(6));
  });

  test.each([
    [["--scope", "root"], "invalid_arguments"],
    [["--scope", ""], "invalid_arguments"],
    [["--all-users"], "invalid_arguments"],
    [["--all-users", "--scope", "admin", "--for", "alice"], "invalid_arguments"],
    [["--user", "alice"], "invalid_arguments"],
    [["--expires", "soon"], "invalid_arguments"],
    [["--for", "*", "--scope", "admin"], "invalid_arguments"],
    [["--label", "x".repeat(600)], "invalid_request"],
    [["--for", ""], "invalid_user_id"],
  ])("%j is refused as %s, and nothing is created", async (args, code) => {
    const refused = await json(RefusalSchema, "token", "create", ...args);
    expect(refused).toMatchObject({ code, exit: code === "invalid_user_id" ? 1 : 2 });
    expect((await json(TokenListSchema, "token", "list")).count).toBe(0);
  });
});

describe("token list and revoke", () => {
  test("a revoked token stops working at once, and is listed as revoked", async () => {
    expect((await skein(["token"])).out).toMatch(
      /^there are no tokens yet; create one: skein token create --dir /,
    );
    const { token, tokenId } = await create("--label", "ci");
    const { out } = await skein(["token", "revoke", tokenId]);
    expect(out).toBe(`revoked the token ${tokenId} (ci) and every token created with it\n`);
    expect(await principalOf(token)).toBe(null);
    expect(await json(TokenRowSchema, "token", "revoke", tokenId)).toMatchObject({ tokenId, exit: 0 });
    await create("--expires", "1h");
    const later = { now: () => Date.now() + 7_200_000 };
    const listed = await skein(["token", "list"], later);
    expect(listed.out.split("\n").map((line) => /valid|expired|revoked/.exec(line)?.[0])).toEqual([
      undefined,
      "expired",
      "revoked",
      undefined,
    ]);
    expect(await json(RefusalSchema, "token", "revoke", "nobody")).toMatchObject({
      code: "not_found",
      exit: 1,
    });
  });

  test("users rm ends the user's tokens", async () => {
    const hers = await create("--for", "alice");
    const mine = await create();
    expect((await skein(["users", "rm", "alice", "--yes"])).exit).toBe(0);
    expect(await principalOf(hers.token)).toBe(null);
    expect(await principalOf(mine.token)).not.toBe(null);
  });

  test("creates nothing in a folder without sessions", async () => {
    dir = join(home, "nothing");
    expect(await json(RefusalSchema, "token", "create")).toMatchObject({ code: "not_found", exit: 1 });
  });
});
