import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, describe, expect, test } from "vitest";
import { createStore } from "../../src/entry-store.ts";
import type { TemporaryFolder } from "../../src/entry-testing.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import type { WholeGateway } from "../support/whole-gateway.ts";
import { wholeGateway } from "../support/whole-gateway.ts";

let folder: TemporaryFolder;
let gateway: WholeGateway;

afterEach(async () => {
  await gateway.close();
  folder.remove();
});

const sessionKey = "agent:main:session:trip";
/** Masked by a built-in rule. */
const key = `sk-ant-api03-${"Ab3".repeat(20)}`;
const ask = ["chat.history", "sessions.list"] as const;
const paramsOf = { "chat.history": { sessionKey }, "sessions.list": {} };

/** A gateway with a session that contains a secret and a word. */
async function open() {
  folder = temporaryFolder("skein-fresh-");
  gateway = await wholeGateway({ folder });
  const content = `the key is ${key}, the word is marzipan`;
  const store = await createStore({ dir: gateway.root, durability: "os" });
  await store.sessions.create({}, { key: sessionKey, sessionId: "trip", cwd: "/x" });
  await store.sessions.append({}, "trip", [
    { draft: { type: "message", message: { role: "user", content } } },
  ]);
  await store.close();
}

/** Simulates a write by a second process. */
function elsewhere(sql: string, ...values: string[]): void {
  const db = new DatabaseSync(join(gateway.root, "work.db"), { timeout: 10_000 });
  try {
    expect(db.prepare(sql).run(...values).changes).toBe(1);
  } finally {
    db.close();
  }
}

async function textOf(token: string, method: (typeof ask)[number] = "chat.history"): Promise<string> {
  const { status, body } = await gateway.rpc(method, paramsOf[method], token);
  return `${status} ${JSON.stringify(body)}`;
}

describe("a cached response", () => {
  test("[GBN6] follows a token that loses a scope or is revoked by another process", async () => {
    await open();
    const token = await gateway.token({ label: "t", scopes: ["read", "admin"] });
    const socket = await gateway.client(token);
    for (let count = 0; count < 2; count += 1) expect(await textOf(token)).toContain(key);
    expect(await textOf(token, "sessions.list")).toContain(gateway.root);
    expect(JSON.stringify(await socket.call("chat.history", { sessionKey }))).toContain(key);
    elsewhere("UPDATE gateway_tokens SET scopes = 'read' WHERE name = ?", "t");
    expect(await textOf(token)).toMatch(/^200 .*marzipan/);
    expect(await textOf(token)).not.toContain(key);
    expect(await textOf(token, "sessions.list")).not.toContain(gateway.root);
    expect(JSON.stringify(await socket.call("chat.history", { sessionKey }))).not.toContain(key);
    elsewhere("UPDATE gateway_tokens SET scopes = 'write' WHERE name = ?", "t");
    for (const method of ask) expect(await textOf(token, method)).toMatch(/^403 /);
    elsewhere("UPDATE gateway_tokens SET revoked_at = 1 WHERE name = ?", "t");
    for (const method of ask) expect(await textOf(token, method)).toMatch(/^401 /);
    await expect(socket.call("chat.history", { sessionKey })).rejects.toThrow();
  });

  test("follows the configuration", async () => {
    await open();
    const token = await gateway.token({ label: "t", scopes: ["read"] });
    for (let count = 0; count < 2; count += 1) expect(await textOf(token)).toContain("marzipan");
    const file = join(folder.path, "skein.yaml");
    const rule = "redaction: { rules: [{ name: sweets, pattern: marzipan, keep: nothing }] }\n";
    writeFileSync(file, readFileSync(file, "utf8") + rule);
    await gateway.rpc("config.reload");
    expect(await textOf(token)).toMatch(/^200 /);
    expect(await textOf(token)).not.toContain("marzipan");
  });
});
