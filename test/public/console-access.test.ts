import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Params, Result } from "../../src/entry-client.ts";
import { run } from "../support/cli.ts";
import type { WholeGateway } from "../support/whole-gateway.ts";
import { wholeGateway } from "../support/whole-gateway.ts";

let gateway: WholeGateway;
beforeAll(async () => {
  gateway = await wholeGateway({
    config:
      "agents: { main: {}, support: { visibility: all } }\ntools: { agentToAgent: { enabled: true } }\n",
  });
});
afterAll(() => gateway.close());

type Linked = Omit<Result<"tokens.create">, "createdAt" | "label">;

/** Returns the response from `POST /link` to a link's code. */
async function follow(url: string): Promise<{ readonly status: number; readonly body: Linked }> {
  const code = new URL(url, "http://gateway.test").hash.slice("#code=".length);
  const answer = await fetch(`${gateway.url}/link`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ code }),
  });
  return { status: answer.status, body: (await answer.json()) as Linked };
}

const linkBy = async (token: string) =>
  (await gateway.rpc("links.create", {}, token)).body as Result<"links.create">;
const isValid = async (token: string) => (await gateway.rpc("agents.list", {}, token)).status === 200;

describe("links for another browser", () => {
  test("[CON4] a link gives the rights of the token that created it, once", async () => {
    const expiresAt = Date.now() + 3_600_000;
    const request: Params<"tokens.create"> = { scopes: ["read", "write"], userId: "ann", expiresAt };
    const maker = await gateway.token(request);
    const { url, expiresAt: until } = await linkBy(maker);
    expect(url).toMatch(/^\.\/#code=/);
    expect(until).toBeLessThanOrEqual(Date.now() + 600_000);
    const { status, body } = await follow(url);
    expect([status, body]).toMatchObject([
      200,
      { scopes: ["read", "write"], userId: "ann", allUsers: false, expiresAt },
    ]);
    expect(await isValid(body.token)).toBe(true);
    expect((await follow(url)).status).toBe(401);
  });

  test("[CON4] a link of a revoked token signs nobody in", async () => {
    const maker = await gateway.token({ scopes: ["read"], userId: "ann" });
    const { url } = await linkBy(maker);
    expect((await gateway.rpc("tokens.revokeOwn", {}, maker)).status).toBe(200);
    expect((await follow(url)).status).toBe(401);
  });

  test("skein link prints a link to the running gateway", async () => {
    const printed = await run(["link", "--dir", gateway.root, "--json"]);
    const { url } = JSON.parse(printed.out) as { url: string };
    expect(url.startsWith(`${gateway.url}/#code=`)).toBe(true);
    expect((await follow(url)).body).toMatchObject({ allUsers: true });
    const none = await run(["link", "--dir", `${gateway.root}-none`]);
    expect(none.exit).not.toBe(0);
    expect(none.err).toContain("No gateway is running for");
  });
});

describe("revoking one's own token", () => {
  test("a token ends itself and the tokens that it created, and no other", async () => {
    const [mine, other] = await Promise.all([
      gateway.token({ scopes: ["read"], userId: "ann" }),
      gateway.token({ scopes: ["read"], userId: "ann" }),
    ]);
    const { body: linked } = await follow((await linkBy(mine)).url);
    const { body: foreign } = await follow((await linkBy(other)).url);
    const revoke = (tokenId: string | undefined) =>
      gateway.rpc("tokens.revokeOwn", tokenId === undefined ? {} : { tokenId }, mine);
    expect((await revoke(foreign.tokenId)).status).toBe(404);
    expect((await revoke("none")).status).toBe(404);
    expect((await revoke(linked.tokenId)).status).toBe(200);
    expect([await isValid(linked.token), await isValid(mine)]).toEqual([false, true]);
    expect((await revoke(undefined)).body).toMatchObject({ revokedAt: expect.any(Number) });
    expect([await isValid(mine), await isValid(other), await isValid(foreign.token)]).toEqual([
      false,
      true,
      true,
    ]);
  });
});

describe("the access matrix", () => {
  test("decides every pair as access.explain does, with the deciding rule", async () => {
    const create = async (params: Params<"sessions.create">) =>
      ((await gateway.rpc("sessions.create", params)).body as Result<"sessions.create">).key;
    const main = await create({ key: "agent:main:session:one", label: "first" });
    const support = await create({ key: "agent:support:session:two" });
    const keys = [main, support, main, "agent:main:session:none"];
    const matrix = (await gateway.rpc("access.matrix", { keys })).body as Result<"access.matrix">;
    expect(matrix.sessions).toMatchObject([
      { key: main, agentId: "main", label: "first" },
      { key: support, agentId: "support" },
    ]);
    for (const [from, asker] of matrix.sessions.entries()) {
      for (const [to, target] of matrix.sessions.entries()) {
        const params = { asker: asker.key, target: target.key };
        const { explanations } = (await gateway.rpc("access.explain", params))
          .body as Result<"access.explain">;
        const allowed = explanations.filter(({ decision }) => decision.allowed).map(({ action }) => action);
        expect(matrix.allowed[from]?.[to]).toEqual(allowed);
        const rules = explanations.map(({ action, steps }) => [action, steps.at(-1)?.rule]);
        expect(matrix.rules[from]?.[to]).toEqual(Object.fromEntries(rules));
      }
    }
    expect(matrix.allowed[1]?.[0]).toContain("history");
    expect(matrix.allowed[0]?.[1]).toEqual([]);
    const ofAnn = await gateway.token({ scopes: ["read"], userId: "ann" });
    expect((await gateway.rpc("access.matrix", { keys }, ofAnn)).body).toEqual({
      sessions: [],
      allowed: [],
      rules: [],
    });
  });
});
