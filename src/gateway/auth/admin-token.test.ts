import { spawn } from "node:child_process";
import {
  chmodSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { TokenBooks } from "../../../test/support/token-books.ts";
import { ensureAdminToken, readTokenFile, tokenPath } from "./admin-token.ts";
import { createLinkCode, exchangeLinkCode } from "./link-codes.ts";
import { tokenScopes } from "./principal.ts";

const top = mkdtempSync(join(tmpdir(), "skein-first-"));
afterAll(() => rmSync(top, { recursive: true, force: true }));
const child = fileURLToPath(new URL("../../../test/support/first-token-child.ts", import.meta.url));
let root: string;
let books: TokenBooks;
beforeEach(() => {
  root = mkdtempSync(join(top, "root-"));
  books = new TokenBooks();
});

describe("the first token", () => {
  test("[GST1] is created once, private to its owner, with every scope", () => {
    const first = ensureAdminToken(root, books.tokens);
    expect(first.isNew).toBe(true);
    expect(statSync(tokenPath(root)).mode & 0o777).toBe(0o600);
    expect(readFileSync(tokenPath(root), "utf8")).toBe(`${first.secret}\n`);
    expect(books.tokens.verify(first.secret)).toMatchObject({
      user: "*",
      scopes: tokenScopes,
      expiresAt: null,
    });
    expect(ensureAdminToken(root, books.tokens)).toEqual({ ...first, isNew: false });
    expect(readTokenFile(root)).toBe(first.secret);
    expect(readdirSync(root)).toEqual(["token"]);
  });

  test("[GST1] processes that start at the same time get the same one", async () => {
    new TokenBooks(join(root, "work.db")).db.close();
    const said = await Promise.all(
      Array.from({ length: 4 }, () =>
        text(spawn(process.execPath, [child, root], { stdio: ["ignore", "pipe", "inherit"] }).stdout),
      ),
    );
    const all = said.map((each) => JSON.parse(each) as { secret: string; isNew: boolean });
    expect(new Set(all.map(({ secret }) => secret)).size).toBe(1);
    expect(all.filter(({ isNew }) => isNew)).toHaveLength(1);
    const { tokens, db } = new TokenBooks(join(root, "work.db"));
    expect(tokens.list()).toHaveLength(1);
    expect(tokens.verify(all[0]?.secret)).not.toBe(null);
    db.close();
  });

  test("[GST1] a file that others may read is made private", () => {
    const { secret } = ensureAdminToken(root, books.tokens);
    chmodSync(tokenPath(root), 0o644);
    expect(ensureAdminToken(root, books.tokens).secret).toBe(secret);
    expect(statSync(tokenPath(root)).mode & 0o777).toBe(0o600);
  });

  test("[GST1] its file stays valid after work.db was lost, but not if other tokens are known", () => {
    const { secret } = ensureAdminToken(root, books.tokens);
    const lost = new TokenBooks();
    expect(ensureAdminToken(root, lost.tokens)).toMatchObject({ secret, isNew: false });
    expect(lost.tokens.verify(secret)?.user).toBe("*");
    const other = new TokenBooks();
    other.tokens.create({ name: "x", scopes: ["read"], user: null }, null);
    expect(() => ensureAdminToken(root, other.tokens)).toThrow(/is unknown. Remove the file/);
  });

  test("[GST1] an unusable file is reported and left unchanged", () => {
    const path = tokenPath(root);
    for (const held of ["", "not a token\n", `skein_${"a".repeat(42)}`]) {
      writeFileSync(path, held);
      expect(() => ensureAdminToken(root, books.tokens)).toThrow(/contains no token/);
      expect(readFileSync(path, "utf8")).toBe(held);
      expect(readTokenFile(root)).toBe(null);
    }
    rmSync(path);
    const { tokenId } = ensureAdminToken(root, books.tokens);
    chmodSync(path, 0o666);
    expect(() => ensureAdminToken(root, books.tokens)).toThrow(/other users might have written it/);
    chmodSync(path, 0o600);
    books.tokens.revoke(tokenId);
    expect(() => ensureAdminToken(root, books.tokens)).toThrow(/revoked or has expired/);
    rmSync(path);
    symlinkSync(join(root, "elsewhere"), path);
    expect(() => ensureAdminToken(root, books.tokens)).toThrow(/does not belong to this user/);
    expect(readdirSync(root)).toEqual(["token"]);
    expect(books.tokens.list()).toHaveLength(1);
  });
});

describe("a link code", () => {
  const maker = () => books.tokens.create({ name: "admin", scopes: tokenScopes, user: "*" }, null).token;

  test("is exchanged once, for a token that can be revoked separately", () => {
    const by = maker();
    const code = createLinkCode(books.tokens, by).code;
    expect(books.tokens.verify(code)).toBe(null);
    const given = exchangeLinkCode(books.tokens, code);
    expect(given?.token).toMatchObject({
      name: "console",
      parent: by.tokenId,
      user: "*",
      scopes: tokenScopes,
    });
    expect(given?.token.expiresAt).toBeGreaterThan(books.now);
    expect(exchangeLinkCode(books.tokens, code)).toBe(null);
    books.tokens.revoke(given?.token.tokenId ?? "");
    expect(books.tokens.verify(given?.secret)).toBe(null);
    expect(books.tokens.current(by.tokenId)).not.toBe(null);
  });

  test("expires after ten minutes, and with its creator", () => {
    const by = maker();
    const [late, inTime] = [createLinkCode(books.tokens, by).code, createLinkCode(books.tokens, by).code];
    books.now += 599_999;
    expect(exchangeLinkCode(books.tokens, inTime)).not.toBe(null);
    books.now += 1;
    expect(exchangeLinkCode(books.tokens, late)).toBe(null);
    const orphan = createLinkCode(books.tokens, by).code;
    books.tokens.revoke(by.tokenId);
    expect(exchangeLinkCode(books.tokens, orphan)).toBe(null);
    expect(books.db.sql("SELECT * FROM gateway_codes").all()).toEqual([]);
  });

  test("grants no more than its creator has, and for no longer", () => {
    const expiresAt = books.now + 1000;
    const by = books.tokens.create({ name: "n", scopes: ["read"], user: "ann", expiresAt }, null).token;
    const given = exchangeLinkCode(books.tokens, createLinkCode(books.tokens, by).code);
    expect(given?.token).toMatchObject({ scopes: ["read"], user: "ann", expiresAt });
  });

  test.each([[undefined], [""], ["skein_code_"], [`skein_code_${"a".repeat(43)}`], [7]])(
    "%j is invalid",
    (code) => {
      createLinkCode(books.tokens, maker()).code;
      expect(exchangeLinkCode(books.tokens, code)).toBe(null);
    },
  );
});
