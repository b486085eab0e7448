import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { FolderCalls } from "../../../test/support/folder-calls.ts";
import { closeFolderCalls, openFolderCalls } from "../../../test/support/folder-calls.ts";
import type { Params } from "../../protocol/method-table.ts";

let folder: FolderCalls;
beforeEach(async () => {
  folder = await openFolderCalls();
});
afterEach(closeFolderCalls);

type Asked = Params<"tokens.create">;
const everything: Asked = { scopes: ["read", "write", "tools", "admin"], allUsers: true };

/** Calls methods with the token that has this secret. */
async function by(secret: string) {
  const principal = await folder.tokens.verify(secret);
  if (principal === null) throw new Error("the token is over");
  return folder.as(principal);
}

describe("tokens.create", () => {
  test("[GSA3] creates a token as requested, and shows its secret only once", async () => {
    const here = folder.as();
    const expiresAt = Date.now() + 60_000;
    const made = await here.call("tokens.create", {
      label: "ci",
      scopes: ["write", "read"],
      userId: "ann",
      expiresAt,
    });
    expect(made).toMatchObject({
      label: "ci",
      scopes: ["read", "write"],
      userId: "ann",
      allUsers: false,
      expiresAt,
    });
    expect(made).not.toHaveProperty("createdBy");
    expect(await folder.tokens.verify(made.token)).toMatchObject({
      tokenId: made.tokenId,
      user: "ann",
      expiresAt,
    });
    const { token, ...row } = made;
    const listed = await here.call("tokens.list", {});
    expect(listed.tokens).toMatchObject([row]);
    expect(JSON.stringify(listed)).not.toContain(token.slice(6));
  });

  test("[GSA3] without a user it is for the unnamed user, and for all users only if requested", async () => {
    const here = folder.as();
    const plain = await here.call("tokens.create", { scopes: ["read"] });
    expect(plain).toMatchObject({ label: "token", allUsers: false });
    expect(plain).not.toHaveProperty("userId");
    expect((await folder.tokens.verify(plain.token))?.user).toBe(null);
    const all = await here.call("tokens.create", everything);
    expect(all.allUsers).toBe(true);
    expect(all).not.toHaveProperty("userId");
    expect((await folder.tokens.verify(all.token))?.user).toBe("*");
  });

  test.each<[string, Asked]>([
    ["a user named like the marker for all users", { scopes: ["read", "admin"], userId: "*" }],
    ["a user and all users", { ...everything, userId: "ann" }],
    ["all users without admin", { scopes: ["read"], allUsers: true }],
    ["an expiry in the past", { scopes: ["read"], expiresAt: 1 }],
    ["a label that is too long", { scopes: ["read"], label: "x".repeat(101) }],
  ])("[GSA3] is refused for %s, and nothing is created", async (_, asked) => {
    await expect(folder.as().call("tokens.create", asked)).rejects.toMatchObject({
      code: "invalid_arguments",
    });
    expect(await folder.tokens.list()).toEqual([]);
  });

  test("[GSA3] a token grants at most its own rights, and is recorded as the creator", async () => {
    const admin = await folder
      .as()
      .call("tokens.create", { scopes: ["read", "admin"], allUsers: true, expiresAt: Date.now() + 60_000 });
    const child = await (await by(admin.token)).call("tokens.create", { scopes: ["read"], userId: "ann" });
    expect(child).toMatchObject({ createdBy: admin.tokenId, expiresAt: admin.expiresAt });
    const beyond: Asked[] = [
      { scopes: ["write"] },
      { scopes: ["read"], expiresAt: (admin.expiresAt ?? 0) + 1 },
    ];
    for (const asked of beyond) {
      const refused = (await by(admin.token)).call("tokens.create", asked);
      await expect(refused).rejects.toMatchObject({ code: "forbidden" });
    }
    expect(await folder.tokens.list()).toHaveLength(2);
  });

  test("[GSA3] is refused for a token without admin, and for one of a single user", async () => {
    const here = folder.as();
    const lesser: Asked[] = [{ scopes: ["read", "write", "tools"] }, { scopes: ["admin"], userId: "ann" }];
    for (const asked of lesser) {
      const { token, tokenId } = await here.call("tokens.create", asked);
      const calls = await by(token);
      const refusals = [
        calls.call("tokens.create", { scopes: ["read"] }),
        calls.call("tokens.list", {}),
        calls.call("tokens.revoke", { tokenId }),
      ];
      for (const refused of refusals) await expect(refused).rejects.toMatchObject({ code: "forbidden" });
      expect(await folder.tokens.verify(token)).not.toBe(null);
    }
  });
});

describe("tokens.list and tokens.revoke", () => {
  test("[GSA3] the newest comes first; revoking also ends the tokens it created, and repeating it changes nothing", async () => {
    const here = folder.as();
    const first = await here.call("tokens.create", everything);
    const second = await (await by(first.token)).call("tokens.create", { scopes: ["read"] });
    const { count, tokens } = await here.call("tokens.list", {});
    expect({ count, ids: tokens.map(({ tokenId }) => tokenId) }).toEqual({
      count: 2,
      ids: [second.tokenId, first.tokenId],
    });
    const revoked = await here.call("tokens.revoke", { tokenId: first.tokenId });
    expect(revoked.revokedAt).toEqual(expect.any(Number));
    expect(await here.call("tokens.revoke", { tokenId: first.tokenId })).toEqual(revoked);
    for (const { token } of [first, second]) expect(await folder.tokens.verify(token)).toBe(null);
    const nobody = here.call("tokens.revoke", { tokenId: "nobody" });
    await expect(nobody).rejects.toMatchObject({ code: "not_found" });
  });
});
