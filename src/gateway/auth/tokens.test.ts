import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeEach, describe, expect, test, vi } from "vitest";
import type { TokenPlace } from "../../../test/support/token-books.ts";
import { openBooks, openTokenPlace, TokenBooks, tokenPlaces } from "../../../test/support/token-books.ts";
import { redact } from "../../access/redaction/redactor.ts";
import { SkeinError } from "../../core/errors.ts";
import { SqliteEngine } from "../../store/sqlite-engine.ts";
import { everyUser, tokenScopes } from "./principal.ts";
import { findByHash, hashSecret, migrateTokens, tokenSteps } from "./token-table.ts";
import type { NewToken, TokenRequest } from "./tokens.ts";
import { Tokens } from "./tokens.ts";

const folder = mkdtempSync(join(tmpdir(), "skein-tokens-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const admin: TokenRequest = { name: "admin", scopes: tokenScopes, user: everyUser };
const reader: TokenRequest = { name: "reader", scopes: ["read"], user: "ann" };

describe.each(tokenPlaces)("tokens in %s", (kind) => {
  let place: TokenPlace;
  let books: TokenBooks;
  let other: TokenBooks;
  beforeEach(async (context) => {
    place = await openTokenPlace(kind, context);
    [books, other] = [await place.open(), await place.open()];
    return () => place.close();
  });

  describe("a token", () => {
    test("[GBN6] identifies its principal, in other processes too, until it expires", async () => {
      const { secret, token } = await books.tokens.create({ ...reader, expiresAt: books.now + 10 }, null);
      const { tokenId } = token;
      const principal = { tokenId, name: "reader", scopes: ["read"], user: "ann", expiresAt: books.now + 10 };
      expect(await other.tokens.verify(secret)).toEqual(principal);
      expect(await other.tokens.current(tokenId)).toEqual(principal);
      other.now += 9;
      expect(await other.tokens.verify(secret)).toEqual(principal);
      other.now += 1;
      expect(await other.tokens.verify(secret)).toBe(null);
      expect(await other.tokens.current(tokenId)).toBe(null);
      expect(await books.tokens.verify(secret)).toEqual(principal);
      await other.tokens.revoke(tokenId);
      expect(await books.tokens.verify(secret)).toBe(null);
    });

    test("[GBN6] that another process revokes or deletes ends at once", async () => {
      const made: NewToken[] = [];
      for (let count = 0; count < 4; count += 1) made.push(await books.tokens.create(reader, null));
      const ids = made.map(({ token }) => token.tokenId);
      const { tokens } = other;
      const live = async () => {
        const verified = made.map(async ({ secret }) => (await tokens.verify(secret)) !== null);
        const current = ids.map(async (id) => (await tokens.current(id)) !== null);
        const ended = await tokens.findEnded(ids);
        const all = [
          await Promise.all(verified),
          await Promise.all(current),
          ids.map((id) => !ended.has(id)),
        ];
        return all.map((each) => each.map((isLive) => (isLive ? "live" : "ended")).join(" "));
      };
      expect(new Set(await live())).toEqual(new Set(["live live live live"]));
      await books.tokens.revoke(ids[1] ?? "");
      await books.tokens.drop(ids[2] ?? "");
      expect(new Set(await live())).toEqual(new Set(["live ended ended live"]));
      await books.tokens.removeUser("ann");
      expect(new Set(await live())).toEqual(new Set(["ended ended ended ended"]));
    });

    test.each<[string, unknown]>([
      ["nothing", undefined],
      ["null", null],
      ["a number", 7],
      ["an empty text", ""],
      ["an object", { secret: "x" }],
      ["a list", [["skein_"]]],
      ["the prefix", "skein_"],
      ["a megabyte", `skein_${"a".repeat(1_000_000)}`],
      ["SQL", "skein_' OR 1=1 --"],
      ["nobody's", `skein_${"A".repeat(43)}`],
    ])("[GBN6] %s is not a token", async (_, secret) => {
      await books.tokens.create(admin, null);
      expect(await books.tokens.verify(secret)).toBe(null);
    });

    test("[GBN6] only its exact secret is accepted", async () => {
      const made = await Promise.all(
        [reader, admin, { ...reader, user: null }].map((each) => books.tokens.create(each, null)),
      );
      await fc.assert(
        fc.asyncProperty(
          fc.constantFrom(...made),
          fc.nat(60),
          fc.constantFrom("A", "b", "-", " ", "\n", ""),
          async ({ secret, token }, at, put) => {
            const like = secret.slice(0, at) + put + secret.slice(at + 1);
            const found = await books.tokens.verify(like);
            expect(found?.tokenId ?? null).toBe(like === secret ? token.tokenId : null);
            expect((await books.tokens.verify(secret))?.tokenId).toBe(token.tokenId);
          },
        ),
      );
    });

    test.each([[""], ["x".repeat(101)], ["\udc00"]])("[GSA1] has a name, and not %j", async (name) => {
      await expect(books.tokens.create({ ...reader, name }, null)).rejects.toThrow(/needs a name/);
      expect(await books.tokens.list()).toEqual([]);
    });

    test("[GSA1] is listed as it was created, whatever its name and its user contain", async () => {
      const odd = { name: "\0 \u{1F916} '\"", scopes: ["read", "write"], user: "\0*" } as const;
      const { token } = await books.tokens.create(odd, null);
      expect(token).toMatchObject(odd);
      expect(await other.tokens.list()).toEqual([token]);
    });
  });

  describe("creating and revoking", () => {
    test("[GSA3] the creator's rights are read when the token is created, not taken from the caller", async () => {
      const first = await books.tokens.create({ ...admin, scopes: ["read", "admin"] }, null);
      const child = await books.tokens.create(reader, first.token);
      expect(child.token.parent).toBe(first.token.tokenId);
      const forged = { ...first.token, scopes: tokenScopes };
      const beyond = books.tokens.create({ ...reader, scopes: ["write"] }, forged);
      await expect(beyond).rejects.toThrow(/do not exceed its own/);
      await books.tokens.revoke(first.token.tokenId);
      await expect(books.tokens.create(reader, first.token)).rejects.toThrow(/is no longer valid/);
      await expect(books.tokens.create(reader, { tokenId: "nobody" })).rejects.toThrow(/is no longer valid/);
      expect(await books.tokens.list()).toHaveLength(2);
    });

    test("[GSA4] revoking ends the tokens that the token created, at any depth, and nothing else", async () => {
      const first = await books.tokens.create(admin, null);
      const second = await books.tokens.create(admin, first.token);
      const third = await books.tokens.create(reader, second.token);
      const fourth = await books.tokens.create(reader, first.token);
      const idsOf = (...made: (typeof first)[]) => made.map(({ token }) => token.tokenId);
      expect(await books.tokens.revoke(second.token.tokenId)).toEqual(idsOf(second, third));
      const live = [first, second, third, fourth].map(
        async ({ secret }) => (await books.tokens.verify(secret)) !== null,
      );
      expect(await Promise.all(live)).toEqual([true, false, false, true]);
      books.now += 5;
      expect(await books.tokens.revoke(second.token.tokenId)).toEqual([]);
      expect((await books.tokens.get(third.token.tokenId))?.revokedAt).toBe(books.now - 5);
      expect(await books.tokens.revoke(first.token.tokenId)).toEqual(idsOf(first, fourth));
      await expect(books.tokens.revoke("nobody")).rejects.toThrow('Token not found: "nobody"');
    });

    test("[GSA4] a token that another process revokes leaves no token behind that it creates meanwhile", async () => {
      for (let round = 0; round < 20; round += 1) {
        const first = await books.tokens.create(admin, null);
        const creations = Array.from({ length: 4 }, () => other.tokens.create(reader, first.token));
        const made = Promise.allSettled(creations);
        await books.tokens.revoke(first.token.tokenId);
        for (const each of await made) {
          if (each.status === "rejected") expect(String(each.reason)).toMatch(/is no longer valid/);
          else expect(await books.tokens.verify(each.value.secret)).toBe(null);
        }
      }
    });

    test("[GSA4] removing a user ends only that user's tokens", async () => {
      const made = [];
      for (const user of ["ann", "bob", null, everyUser])
        made.push(await books.tokens.create({ ...admin, user, name: String(user) }, null));
      expect(await books.tokens.removeUser("ann")).toEqual([made[0]?.token.tokenId]);
      expect(await books.tokens.removeUser(everyUser)).toEqual([]);
      const live = (await books.tokens.list()).filter(({ revokedAt }) => revokedAt === null);
      expect(live.map(({ name }) => name)).toEqual(["bob", "null", everyUser]);
    });

    test("[GSA4] tokens that expired long ago are dropped; revoked ones without an expiry stay revoked", async () => {
      const ended = await books.tokens.create({ ...reader, expiresAt: books.now + 1 }, null);
      const revoked = await books.tokens.create(reader, null);
      await books.tokens.revoke(revoked.token.tokenId);
      books.now += 100;
      expect(await books.tokens.forgetExpired(books.now)).toBe(1);
      expect(await books.tokens.get(ended.token.tokenId)).toBe(null);
      expect(await books.tokens.verify(revoked.secret)).toBe(null);
      expect((await books.tokens.find(revoked.secret))?.revokedAt).not.toBe(null);
    });

    test("[HLT3] a revocation that cannot be written takes effect at once, and is written later", async () => {
      const details = { file: "work.db", problem: "full", advice: "Free some space" };
      const { secret, token } = await books.tokens.create(reader, null);
      let isFull = true;
      const engine: typeof place.engine = {
        read: (script) => place.engine.read(script),
        change: async (...given) => {
          if (isFull) throw new SkeinError("write_failed", details);
          return place.engine.change(...given);
        },
        changeEach: (changes) => place.engine.changeEach(changes),
        version: () => place.engine.version(),
        watch: (listener) => place.engine.watch(listener),
        mark: () => place.engine.mark(),
        fenceStep: () => place.engine.fenceStep(),
      };
      const clock = { now: () => books.now };
      const full = new Tokens({ engine, ledger: null }, { clock, keepsRevocations: true });
      await expect(new Tokens({ engine, ledger: null }, { clock }).revoke(token.tokenId)).rejects.toThrow(
        /full/,
      );
      expect(await full.revoke(token.tokenId)).toEqual([token.tokenId]);
      expect([await full.verify(secret), await full.current(token.tokenId)]).toEqual([null, null]);
      expect([...(await full.findEnded([token.tokenId]))]).toEqual([token.tokenId]);
      expect([full.isUnsaved(token.tokenId), (await other.tokens.verify(secret)) !== null]).toEqual([
        true,
        true,
      ]);
      await expect(full.saveRevocations()).rejects.toThrow(/full/);
      isFull = false;
      await full.saveRevocations();
      expect([full.isUnsaved(token.tokenId), await other.tokens.verify(secret)]).toEqual([false, null]);
    });
  });

  test("the last use of a token is written at most once a minute", async () => {
    const { secret, token } = await books.tokens.create(reader, null);
    const used = async () => (await books.tokens.get(token.tokenId))?.lastUsedAt;
    expect(await used()).toBe(null);
    const first = books.now;
    await Promise.all([books, other].map(({ tokens }) => tokens.verify(secret)));
    expect(await used()).toBe(first);
    books.now += 59_999;
    await books.tokens.verify(secret);
    expect(await used()).toBe(first);
    books.now += 1;
    await books.tokens.verify(secret);
    expect(await used()).toBe(first + 60_000);
  });

  test("[HLT3] counts the tokens in a lost database without the admin token, valid or not", async () => {
    const { tokens } = books;
    const { tokenId } = (await tokens.create(admin, null)).token;
    await tokens.create(reader, null);
    await tokens.create({ ...reader, expiresAt: books.now + 1000 }, null);
    expect(await tokens.countOthers(tokenId)).toBe(2);
    books.now += 2000;
    await tokens.revoke(tokenId);
    expect(await tokens.countOthers(tokenId)).toBe(1);
  });

  test("valid tokens are counted by user, in byte order and in pages", async () => {
    const { tokens } = books;
    for (const user of ["b", "Z", "\u00e9", null, "b", everyUser, "gone"])
      await tokens.create({ ...admin, user, name: `${user} ${books.now++}` }, null);
    const gone = (await tokens.list()).find(({ user }) => user === "gone");
    await tokens.revoke(gone?.tokenId ?? "");
    const all = [
      { userId: null, tokens: 1 },
      { userId: "Z", tokens: 1 },
      { userId: "b", tokens: 2 },
      { userId: "\u00e9", tokens: 1 },
    ];
    expect(await tokens.countByUser(undefined, 10)).toEqual(all);
    expect(await tokens.countByUser(undefined, 2)).toEqual(all.slice(0, 2));
    expect(await tokens.countByUser(null, 10)).toEqual(all.slice(1));
    expect(await tokens.countByUser("Z", 1)).toEqual(all.slice(2, 3));
  });
});

describe("the secret of a token", () => {
  test("[GSA1] is 32 random bytes after a prefix, different each time", async () => {
    const { tokens } = new TokenBooks();
    const made = await Promise.all(Array.from({ length: 50 }, () => tokens.create(reader, null)));
    const secrets = made.map(({ secret }) => secret);
    expect(new Set(secrets).size).toBe(50);
    for (const secret of secrets) {
      expect(secret).toMatch(/^skein_[A-Za-z0-9_-]{43}$/);
      expect(Buffer.from(secret.slice(6), "base64url")).toHaveLength(32);
      expect(redact(`it is ${secret} today`).text).not.toContain(secret);
    }
  });

  test("[GSA1] is stored only as a hash, and no list shows either", async () => {
    const path = join(folder, "hashed.db");
    const filed = new TokenBooks(path);
    const { secret, token } = await filed.tokens.create(reader, null);
    const hash = createHash("sha256").update(secret).digest("hex");
    expect(await filed.tokens.list()).toEqual([token]);
    expect(JSON.stringify([token, await filed.tokens.list()])).not.toMatch(
      new RegExp(`${secret.slice(6)}|${hash}`),
    );
    filed.db.close();
    const bytes = readFileSync(path, "latin1");
    expect(bytes).toContain(hash);
    expect(bytes).not.toContain(secret.slice(6));
  });

  test("[GBN6] a row whose hash only starts the same is not accepted", () => {
    const wanted = hashSecret("a");
    const alike = { hash: `${wanted.hash.slice(0, 63)}${wanted.hash.endsWith("0") ? "1" : "0"}`, id: 1 };
    expect(findByHash([alike], wanted)).toBe(null);
    expect(findByHash([alike, { hash: wanted.hash, id: 2 }], wanted)).toEqual({ hash: wanted.hash, id: 2 });
    expect(findByHash([{ hash: "", id: 3 }], wanted)).toBe(null);
    expect(findByHash([], wanted)).toBe(null);
  });
});

describe("cached tokens in files", () => {
  test("[GBN6] are read once while nothing changes, and follow every change", async () => {
    const path = join(folder, "followed.db");
    const [one, two] = [new TokenBooks(path), new TokenBooks(path)];
    const { secret, token } = await one.tokens.create(reader, null);
    const { tokenId } = token;
    const both = async () => [
      (await two.tokens.verify(secret))?.scopes,
      (await two.tokens.current(tokenId))?.scopes,
      (await two.tokens.findEnded([tokenId])).size,
    ];
    // Recording the first use is a change.
    for (let count = 0; count < 2; count += 1) expect(await both()).toEqual([["read"], ["read"], 0]);
    const asked = vi.spyOn(two.db, "sql");
    for (let count = 0; count < 4; count += 1) expect(await both()).toEqual([["read"], ["read"], 0]);
    expect(asked).not.toHaveBeenCalled();
    one.db.run("UPDATE gateway_tokens SET scopes = 'read write' WHERE token_id = ?", tokenId);
    expect(await both()).toEqual([["read", "write"], ["read", "write"], 0]);
    two.db.run("UPDATE gateway_tokens SET scopes = 'write' WHERE token_id = ?", tokenId);
    expect(await both()).toEqual([["write"], ["write"], 0]);
    await one.tokens.revoke(tokenId);
    expect(await both()).toEqual([undefined, undefined, 1]);
    for (const { db } of [one, two]) db.close();
  });

  test("[GBN6] are not those of a transaction that is rolled back", async () => {
    const { db, tokens } = new TokenBooks();
    const { secret, token } = await tokens.create(reader, null);
    const reads: Promise<unknown>[] = [];
    const within = () => {
      db.run("UPDATE gateway_tokens SET revoked_at = 1");
      // SQLite is read at once, so within the transaction.
      reads.push(tokens.verify(secret), tokens.current(token.tokenId));
      throw new Error("taken back");
    };
    expect(() => db.exclusively(within)).toThrow("taken back");
    expect(await Promise.all(reads)).toEqual([null, null]);
    expect((await tokens.verify(secret))?.name).toBe("reader");
    expect((await tokens.current(token.tokenId))?.name).toBe("reader");
  });

  test("a disk that refuses to write the last use locks no one out", async () => {
    const { db, tokens } = new TokenBooks();
    const { secret } = await tokens.create(reader, null);
    const unsynced = () => {
      throw new Error("disk full");
    };
    const ledger = {
      sql: db.sql.bind(db),
      run: db.run.bind(db),
      exclusively: db.exclusively.bind(db),
      changeMark: db.changeMark.bind(db),
      unsynced,
    };
    const full = new Tokens({ engine: new SqliteEngine(ledger), ledger });
    expect((await full.verify(secret))?.name).toBe("reader");
  });
});

describe("the token tables", () => {
  test("[FS18] are migrated once, completely or not at all, and those of a newer Skein are refused", () => {
    const db = openBooks();
    migrateTokens(db);
    migrateTokens(db);
    const broken = [...tokenSteps, ["CREATE TABLE half (x)", "CREATE TABLE gateway_tokens (x)"]];
    expect(() => migrateTokens(db, broken)).toThrow(/already exists/);
    expect(() => db.sql("SELECT * FROM half")).toThrow(/no such table/);
    migrateTokens(db, [...tokenSteps, ["CREATE TABLE more (x)"]]);
    const open = () => new Tokens({ engine: new SqliteEngine(db), ledger: db });
    expect(open).toThrow(/version 2 of its tokens is newer than 1/);
  });
});
