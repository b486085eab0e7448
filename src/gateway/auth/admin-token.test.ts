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
import type { TokenPlace } from "../../../test/support/token-books.ts";
import { openTokenPlace, TokenBooks, tokenPlaces } from "../../../test/support/token-books.ts";
import { queryRows } from "../../core/script.ts";
import { ensureAdminToken, readTokenFile, tokenPath } from "./admin-token.ts";
import { createLinkCode, exchangeLinkCode } from "./link-codes.ts";
import { tokenScopes } from "./principal.ts";

const top = mkdtempSync(join(tmpdir(), "skein-first-"));
afterAll(() => rmSync(top, { recursive: true, force: true }));
const child = fileURLToPath(new URL("../../../test/support/first-token-child.ts", import.meta.url));

describe.each(tokenPlaces)("with tokens in %s,", (kind) => {
  let root: string;
  let place: TokenPlace;
  let books: TokenBooks;
  beforeEach(async (context) => {
    root = mkdtempSync(join(top, "root-"));
    place = await openTokenPlace(kind, context);
    books = await place.open();
    return () => place.close();
  });

  describe("the first token", () => {
    test("[GST1] is created once, private to its owner, with every scope", async () => {
      const first = await ensureAdminToken(root, books.tokens);
      expect(first.isNew).toBe(true);
      expect(statSync(tokenPath(root)).mode & 0o777).toBe(0o600);
      expect(readFileSync(tokenPath(root), "utf8")).toBe(`${first.secret}\n`);
      expect(await books.tokens.verify(first.secret)).toMatchObject({
        user: "*",
        scopes: tokenScopes,
        expiresAt: null,
      });
      expect(await ensureAdminToken(root, books.tokens)).toEqual({ ...first, isNew: false });
      expect(readTokenFile(root)).toBe(first.secret);
      expect(readdirSync(root)).toEqual(["token"]);
    });

    test("[GST1] starts at the same time get the same one", async () => {
      const others = await Promise.all(Array.from({ length: 4 }, () => place.open()));
      const all = await Promise.all(others.map(({ tokens }) => ensureAdminToken(root, tokens)));
      expect(new Set(all.map(({ secret }) => secret)).size).toBe(1);
      expect(all.filter(({ isNew }) => isNew)).toHaveLength(1);
      expect((await books.tokens.list()).map(({ tokenId }) => tokenId)).toEqual([all[0]?.tokenId]);
      expect(await books.tokens.verify(all[0]?.secret)).not.toBe(null);
    });

    test("[GST1] starts at the same time restore the same one after the tokens were lost", async () => {
      const { secret } = await ensureAdminToken(root, new TokenBooks().tokens);
      const others = await Promise.all(Array.from({ length: 4 }, () => place.open()));
      const all = await Promise.all(others.map(({ tokens }) => ensureAdminToken(root, tokens)));
      expect(all.map((each) => each.secret)).toEqual([secret, secret, secret, secret]);
      expect(await books.tokens.list()).toHaveLength(1);
    });

    test("[GST1] a file that others may read is made private", async () => {
      const { secret } = await ensureAdminToken(root, books.tokens);
      chmodSync(tokenPath(root), 0o644);
      expect((await ensureAdminToken(root, books.tokens)).secret).toBe(secret);
      expect(statSync(tokenPath(root)).mode & 0o777).toBe(0o600);
    });

    test("[GST1] its file stays valid after work.db was lost, but not if other tokens are known", async () => {
      const { secret } = await ensureAdminToken(root, books.tokens);
      const lost = new TokenBooks();
      expect(await ensureAdminToken(root, lost.tokens)).toMatchObject({ secret, isNew: false });
      expect((await lost.tokens.verify(secret))?.user).toBe("*");
      const other = new TokenBooks();
      await other.tokens.create({ name: "x", scopes: ["read"], user: null }, null);
      await expect(ensureAdminToken(root, other.tokens)).rejects.toThrow(
        /is unknown\. If the folder was used with another store/,
      );
    });

    test("[GST1] an unusable file is reported and left unchanged", async () => {
      const path = tokenPath(root);
      for (const held of ["", "not a token\n", `skein_${"a".repeat(42)}`]) {
        writeFileSync(path, held);
        await expect(ensureAdminToken(root, books.tokens)).rejects.toThrow(/contains no token/);
        expect(readFileSync(path, "utf8")).toBe(held);
        expect(readTokenFile(root)).toBe(null);
      }
      rmSync(path);
      const { tokenId } = await ensureAdminToken(root, books.tokens);
      chmodSync(path, 0o666);
      await expect(ensureAdminToken(root, books.tokens)).rejects.toThrow(/other users might have written it/);
      chmodSync(path, 0o600);
      await books.tokens.revoke(tokenId);
      await expect(ensureAdminToken(root, books.tokens)).rejects.toThrow(/revoked or has expired/);
      rmSync(path);
      symlinkSync(join(root, "elsewhere"), path);
      await expect(ensureAdminToken(root, books.tokens)).rejects.toThrow(/does not belong to this user/);
      expect(readdirSync(root)).toEqual(["token"]);
      expect(await books.tokens.list()).toHaveLength(1);
    });
  });

  describe("a link code", () => {
    const maker = async () =>
      (await books.tokens.create({ name: "admin", scopes: tokenScopes, user: "*" }, null)).token;
    const codeBy = async (by: { readonly tokenId: string }) => (await createLinkCode(books.tokens, by)).code;

    test("is exchanged once, for a token that can be revoked separately", async () => {
      const by = await maker();
      const code = await codeBy(by);
      expect(await books.tokens.verify(code)).toBe(null);
      const given = await exchangeLinkCode(books.tokens, code);
      expect(given?.token).toMatchObject({
        name: "console",
        parent: by.tokenId,
        user: "*",
        scopes: tokenScopes,
      });
      expect(given?.token.expiresAt).toBeGreaterThan(books.now);
      expect(await exchangeLinkCode(books.tokens, code)).toBe(null);
      await books.tokens.revoke(given?.token.tokenId ?? "");
      expect(await books.tokens.verify(given?.secret)).toBe(null);
      expect(await books.tokens.current(by.tokenId)).not.toBe(null);
    });

    test("is exchanged once, even if several processes try at the same time", async () => {
      const by = await maker();
      const others = await Promise.all(Array.from({ length: 3 }, () => place.open()));
      for (let round = 0; round < 10; round += 1) {
        const code = await codeBy(by);
        const given = await Promise.all(others.map(({ tokens }) => exchangeLinkCode(tokens, code)));
        expect(given.filter((each) => each !== null)).toHaveLength(1);
      }
      expect(await books.tokens.list()).toHaveLength(11);
    });

    test("is dropped once its creator has 20 newer ones", async () => {
      const [by, another] = [await maker(), await maker()];
      const [first, kept] = [await codeBy(by), await codeBy(another)];
      const second = await codeBy(by);
      for (let count = 0; count < 19; count += 1) await codeBy(by);
      expect(await exchangeLinkCode(books.tokens, first)).toBe(null);
      expect(await exchangeLinkCode(books.tokens, second)).not.toBe(null);
      expect(await exchangeLinkCode(books.tokens, kept)).not.toBe(null);
    });

    test("expires after ten minutes, and with its creator", async () => {
      const by = await maker();
      const [late, inTime] = [await codeBy(by), await codeBy(by)];
      books.now += 599_999;
      expect(await exchangeLinkCode(books.tokens, inTime)).not.toBe(null);
      books.now += 1;
      expect(await exchangeLinkCode(books.tokens, late)).toBe(null);
      const orphan = await codeBy(by);
      await books.tokens.revoke(by.tokenId);
      expect(await exchangeLinkCode(books.tokens, orphan)).toBe(null);
      expect(await place.engine.read(() => queryRows("SELECT * FROM gateway_codes"))).toEqual([]);
    });

    test("grants no more than its creator has, and for no longer", async () => {
      const expiresAt = books.now + 1000;
      const request = { name: "n", scopes: ["read"], user: "ann", expiresAt } as const;
      const by = (await books.tokens.create(request, null)).token;
      const given = await exchangeLinkCode(books.tokens, await codeBy(by));
      expect(given?.token).toMatchObject({ scopes: ["read"], user: "ann", expiresAt });
    });

    test.each([[undefined], [""], ["skein_code_"], [`skein_code_${"a".repeat(43)}`], [7]])(
      "%j is invalid",
      async (code) => {
        await codeBy(await maker());
        expect(await exchangeLinkCode(books.tokens, code)).toBe(null);
      },
    );
  });
});

test("[GST1] processes that start at the same time on a folder get the same admin token", async () => {
  const root = mkdtempSync(join(top, "root-"));
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
  expect(await tokens.list()).toHaveLength(1);
  expect(await tokens.verify(all[0]?.secret)).not.toBe(null);
  db.close();
});
