import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeEach, describe, expect, test, vi } from "vitest";
import { openBooks, TokenBooks } from "../../../test/support/token-books.ts";
import { redact } from "../../access/redaction/redactor.ts";
import { everyUser, tokenScopes } from "./principal.ts";
import { findByHash, hashSecret, migrateTokens, tokenSteps } from "./token-table.ts";
import type { TokenRequest } from "./tokens.ts";
import { Tokens } from "./tokens.ts";

const folder = mkdtempSync(join(tmpdir(), "skein-tokens-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const admin: TokenRequest = { name: "admin", scopes: tokenScopes, user: everyUser };
const reader: TokenRequest = { name: "reader", scopes: ["read"], user: "ann" };
let books: TokenBooks;
beforeEach(() => {
  books = new TokenBooks();
});

describe("a token", () => {
  test("[GSA1] is 32 random bytes after a prefix, different each time", () => {
    const secrets = Array.from({ length: 50 }, () => books.tokens.create(reader, null).secret);
    expect(new Set(secrets).size).toBe(50);
    for (const secret of secrets) {
      expect(secret).toMatch(/^skein_[A-Za-z0-9_-]{43}$/);
      expect(Buffer.from(secret.slice(6), "base64url")).toHaveLength(32);
      expect(redact(`it is ${secret} today`).text).not.toContain(secret);
    }
  });

  test("[GSA1] is stored only as a hash, and no list shows either", () => {
    const path = join(folder, "hashed.db");
    const filed = new TokenBooks(path);
    const { secret, token } = filed.tokens.create(reader, null);
    const hash = createHash("sha256").update(secret).digest("hex");
    expect(filed.tokens.list()).toEqual([token]);
    expect(JSON.stringify([token, filed.tokens.list()])).not.toMatch(
      new RegExp(`${secret.slice(6)}|${hash}`),
    );
    filed.db.close();
    const bytes = readFileSync(path, "latin1");
    expect(bytes).toContain(hash);
    expect(bytes).not.toContain(secret.slice(6));
  });

  test("[GBN6] is read once while nothing changes, and follows every change", () => {
    const path = join(folder, "followed.db");
    const [one, two] = [new TokenBooks(path), new TokenBooks(path)];
    const { secret, token } = one.tokens.create(reader, null);
    const { tokenId } = token;
    const both = () => [two.tokens.verify(secret)?.scopes, two.tokens.current(tokenId)?.scopes];
    // Recording the first use is a change.
    for (let count = 0; count < 2; count += 1) expect(both()).toEqual([["read"], ["read"]]);
    const asked = vi.spyOn(two.db, "sql");
    expect([both(), both()]).toEqual([both(), both()]);
    expect(asked).not.toHaveBeenCalled();
    one.db.run("UPDATE gateway_tokens SET scopes = 'read write' WHERE token_id = ?", tokenId);
    expect(both()).toEqual([
      ["read", "write"],
      ["read", "write"],
    ]);
    two.db.run("UPDATE gateway_tokens SET scopes = 'write' WHERE token_id = ?", tokenId);
    expect(both()).toEqual([["write"], ["write"]]);
    one.tokens.revoke(tokenId);
    expect(both()).toEqual([undefined, undefined]);
    for (const { db } of [one, two]) db.close();
  });

  test("[GBN6] values read in a transaction that is rolled back are not cached", () => {
    const { secret, token } = books.tokens.create(reader, null);
    const within = () => {
      books.tokens.revoke(token.tokenId);
      expect([books.tokens.verify(secret), books.tokens.current(token.tokenId)]).toEqual([null, null]);
      throw new Error("taken back");
    };
    expect(() => books.db.exclusively(within)).toThrow("taken back");
    expect([books.tokens.verify(secret)?.name, books.tokens.current(token.tokenId)?.name]).toEqual([
      "reader",
      "reader",
    ]);
  });

  test("[GBN6] identifies its principal, in other processes too, until it expires", () => {
    const path = join(folder, "shared.db");
    const [one, two] = [new TokenBooks(path), new TokenBooks(path)];
    const { secret, token } = one.tokens.create({ ...reader, expiresAt: one.now + 10 }, null);
    const { tokenId } = token;
    const principal = { tokenId, name: "reader", scopes: ["read"], user: "ann", expiresAt: one.now + 10 };
    expect(two.tokens.verify(secret)).toEqual(principal);
    expect(two.tokens.current(tokenId)).toEqual(principal);
    two.now += 9;
    expect(two.tokens.verify(secret)).toEqual(principal);
    two.now += 1;
    expect(two.tokens.verify(secret)).toBe(null);
    expect(two.tokens.current(tokenId)).toBe(null);
    expect(one.tokens.verify(secret)).toEqual(principal);
    two.tokens.revoke(tokenId);
    expect(one.tokens.verify(secret)).toBe(null);
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
  ])("[GBN6] %s is not a token", (_, secret) => {
    books.tokens.create(admin, null);
    expect(books.tokens.verify(secret)).toBe(null);
  });

  test("[GBN6] only its exact secret is accepted", () => {
    const made = [reader, admin, { ...reader, user: null }].map((each) => books.tokens.create(each, null));
    fc.assert(
      fc.property(
        fc.constantFrom(...made),
        fc.nat(60),
        fc.constantFrom("A", "b", "-", " ", "\n", ""),
        ({ secret, token }, at, put) => {
          const other = secret.slice(0, at) + put + secret.slice(at + 1);
          expect(books.tokens.verify(other)?.tokenId ?? null).toBe(other === secret ? token.tokenId : null);
          expect(books.tokens.verify(secret)?.tokenId).toBe(token.tokenId);
        },
      ),
    );
  });

  test("[GBN6] a row whose hash only starts the same is not accepted", () => {
    const wanted = hashSecret("a");
    const alike = { hash: `${wanted.hash.slice(0, 63)}${wanted.hash.endsWith("0") ? "1" : "0"}`, id: 1 };
    expect(findByHash([alike], wanted)).toBe(null);
    expect(findByHash([alike, { hash: wanted.hash, id: 2 }], wanted)).toEqual({ hash: wanted.hash, id: 2 });
    expect(findByHash([{ hash: "", id: 3 }], wanted)).toBe(null);
    expect(findByHash([], wanted)).toBe(null);
  });

  test.each([[""], ["x".repeat(101)], ["\udc00"]])("[GSA1] has a name, and not %j", (name) => {
    expect(() => books.tokens.create({ ...reader, name }, null)).toThrow(/needs a name/);
    expect(books.tokens.list()).toEqual([]);
  });
});

describe("creating and revoking", () => {
  test("[GSA3] the creator's rights are read when the token is created, not taken from the caller", () => {
    const first = books.tokens.create({ ...admin, scopes: ["read", "admin"] }, null);
    const child = books.tokens.create(reader, first.token);
    expect(child.token.parent).toBe(first.token.tokenId);
    const forged = { ...first.token, scopes: tokenScopes };
    expect(() => books.tokens.create({ ...reader, scopes: ["write"] }, forged)).toThrow(
      /do not exceed its own/,
    );
    books.tokens.revoke(first.token.tokenId);
    expect(() => books.tokens.create(reader, first.token)).toThrow(/is no longer valid/);
    expect(() => books.tokens.create(reader, { tokenId: "nobody" })).toThrow(/is no longer valid/);
    expect(books.tokens.list()).toHaveLength(2);
  });

  test("[GSA4] revoking ends the tokens that the token created, at any depth, and nothing else", () => {
    const first = books.tokens.create(admin, null);
    const second = books.tokens.create(admin, first.token);
    const third = books.tokens.create(reader, second.token);
    const other = books.tokens.create(reader, first.token);
    expect(books.tokens.revoke(second.token.tokenId)).toEqual([second.token.tokenId, third.token.tokenId]);
    const live = [first, second, third, other].map(({ secret }) => books.tokens.verify(secret) !== null);
    expect(live).toEqual([true, false, false, true]);
    books.now += 5;
    expect(books.tokens.revoke(second.token.tokenId)).toEqual([]);
    expect(books.tokens.get(third.token.tokenId)?.revokedAt).toBe(books.now - 5);
    expect(books.tokens.revoke(first.token.tokenId)).toEqual([first.token.tokenId, other.token.tokenId]);
    expect(() => books.tokens.revoke("nobody")).toThrow('Token not found: "nobody"');
  });

  test("[GSA4] removing a user ends only that user's tokens", () => {
    const tokens = ["ann", "bob", null, everyUser].map((user) =>
      books.tokens.create({ ...admin, user, name: String(user) }, null),
    );
    expect(books.tokens.removeUser("ann")).toEqual([tokens[0]?.token.tokenId]);
    expect(books.tokens.removeUser(everyUser)).toEqual([]);
    const live = books.tokens.list().filter(({ revokedAt }) => revokedAt === null);
    expect(live.map(({ name }) => name)).toEqual(["bob", "null", everyUser]);
  });

  test("[GSA4] tokens that expired long ago are dropped; revoked ones without an expiry stay revoked", () => {
    const ended = books.tokens.create({ ...reader, expiresAt: books.now + 1 }, null);
    const revoked = books.tokens.create(reader, null);
    books.tokens.revoke(revoked.token.tokenId);
    books.now += 100;
    expect(books.tokens.forgetExpired(books.now)).toBe(1);
    expect(books.tokens.get(ended.token.tokenId)).toBe(null);
    expect(books.tokens.verify(revoked.secret)).toBe(null);
    expect(books.tokens.find(revoked.secret)?.revokedAt).not.toBe(null);
  });
});

describe("the last use of a token", () => {
  test("is written at most once a minute", () => {
    const { secret, token } = books.tokens.create(reader, null);
    const used = () => books.tokens.get(token.tokenId)?.lastUsedAt;
    expect(used()).toBe(null);
    const first = books.now;
    books.tokens.verify(secret);
    expect(used()).toBe(first);
    books.now += 59_999;
    books.tokens.verify(secret);
    expect(used()).toBe(first);
    books.now += 1;
    books.tokens.verify(secret);
    expect(used()).toBe(first + 60_000);
  });

  test("a disk that refuses the write locks no one out", () => {
    const { secret } = books.tokens.create(reader, null);
    const unsynced = () => {
      throw new Error("disk full");
    };
    const ledger = {
      sql: books.db.sql.bind(books.db),
      run: books.db.run.bind(books.db),
      exclusively: books.db.exclusively.bind(books.db),
      changeMark: books.db.changeMark.bind(books.db),
      unsynced,
    };
    expect(new Tokens({ ledger }).verify(secret)?.name).toBe("reader");
  });
});

test("[HLT3] counts the tokens in a lost database without the admin token, valid or not", () => {
  const { tokens } = books;
  const { tokenId } = tokens.create(admin, null).token;
  tokens.create(reader, null);
  tokens.create({ ...reader, expiresAt: books.now + 1000 }, null);
  expect(tokens.countOthers(tokenId)).toBe(2);
  books.now += 2000;
  tokens.revoke(tokenId);
  expect(tokens.countOthers(tokenId)).toBe(1);
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
    expect(() => new Tokens({ ledger: db })).toThrow(/version 2 of its tokens is newer than 1/);
  });
});
