import { once } from "node:events";
import { readdirSync } from "node:fs";
import { connect as connectSocket, createServer } from "node:net";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { connect } from "../../src/entry-client.ts";
import { temporaryFolder } from "../../src/entry-testing.ts";
import { Started } from "../support/cli-process.ts";
import { serverFor } from "../support/postgres-server.ts";

const script = fileURLToPath(new URL("../../scripts/cluster.ts", import.meta.url));

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** Returns the error code of a connection, or `null` if it was accepted. */
async function refusalOf(port: number): Promise<string | null> {
  const socket = connectSocket(port, "127.0.0.1");
  const refused = once(socket, "error").then(([error]) => String(error.code));
  const accepted = once(socket, "connect").then(() => null);
  return Promise.race([refused, accepted]).finally(() => socket.destroy());
}

test("npm run cluster serves the sample sessions, survives the loss of a gateway, and leaves nothing behind", async (context) => {
  await serverFor(context);
  using folder = temporaryFolder();
  const other = createServer().listen(0, "127.0.0.1");
  await once(other, "listening");
  const taken = (other.address() as { port: number }).port;
  const cluster = new Started([script, "--port", String(taken)], {
    ...{ TMPDIR: folder.path, HOME: folder.path, npm_lifecycle_event: "" },
  });
  try {
    await cluster.until(/Press Ctrl-C/);
    const [, url = "", code = ""] = /link +(\S+)\/#code=(\S+)/.exec(cluster.out) ?? [];
    expect(Number(new URL(url).port)).not.toBe(taken);
    expect((await fetch(url)).headers.get("content-type")).toContain("text/html");
    const headers = { "content-type": "application/json" };
    const link = await fetch(`${url}/link`, { method: "POST", headers, body: JSON.stringify({ code }) });
    const { token } = (await link.json()) as { token: string };
    const client = await connect(url, { token });
    const { sessions } = await client.call("sessions.list", {});
    expect(sessions.map(({ key }) => key)).toContain("agent:support:main");
    const ask = async (message: string) => {
      const asked = { sessionKey: "agent:main:main", message, idempotencyKey: message };
      const { runId } = await client.call("chat.send", asked);
      return client.call("agent.wait", { runId, timeoutMs: 150_000 });
    };
    expect(await ask("repeat good morning")).toMatchObject({ state: "ok", reply: "good morning" });
    const pids = [...cluster.out.matchAll(/^ +gateway \d .* process (\d+)$/gm)].map(([, pid]) => Number(pid));
    expect(pids).toHaveLength(3);
    process.kill(pids[0] ?? 0, "SIGKILL");
    await cluster.until(/Gateway 1 \(process \d+\) has ended: SIGKILL/);
    expect(await ask("repeat good evening")).toMatchObject({ state: "ok", reply: "good evening" });
    const [, again] = await cluster.until(/Gateway 1 is running again, as process (\d+)/);
    await client.close();
    cluster.child.kill("SIGINT");
    expect(await cluster.end()).toBe(0);
    expect([...pids, Number(again)].filter(isAlive)).toEqual([]);
    const database = Number(/database +postgres:\S+:(\d+)\//.exec(cluster.out)?.[1]);
    expect(await refusalOf(database)).toBe("ECONNREFUSED");
    expect(readdirSync(folder.path).filter((name) => name.startsWith("skein-"))).toEqual([]);
  } finally {
    cluster.child.kill("SIGTERM");
    await cluster.end();
    other.close();
  }
});
