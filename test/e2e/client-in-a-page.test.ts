import { join } from "node:path";
import { createContext, runInContext } from "node:vm";
import type { Rolldown } from "vite";
import { build } from "vite";
import { afterEach, describe, expect, test } from "vitest";
import type { WholeGateway } from "../support/whole-gateway.ts";
import { wholeGateway } from "../support/whole-gateway.ts";

const entry = join(import.meta.dirname, "../../src/entry-client.ts");

/** The client as a page loads it, bundled into one script. */
async function bundled(): Promise<string> {
  const lib = { entry, formats: ["iife" as const], name: "client" };
  const built = await build({ configFile: false, logLevel: "silent", build: { write: false, lib } });
  const [{ output }] = built as [Rolldown.RolldownOutput];
  return output[0].code;
}

/** The globals that a page provides to the script, without anything specific to Node. */
const page = () => ({
  ...{ WebSocket, URL, AbortController, AbortSignal, DOMException, TextEncoder, TextDecoder, crypto },
  ...{ setTimeout, clearTimeout, setInterval, clearInterval, queueMicrotask, performance },
});

let gateway: WholeGateway | null = null;
afterEach(async () => {
  await gateway?.close();
  gateway = null;
});

describe("the client in a page", () => {
  test("[CLT16] calls, receives and follows using only browser APIs", async () => {
    gateway = await wholeGateway();
    const context = createContext({ ...page(), place: { url: gateway.url, token: gateway.admin } });
    runInContext(`${await bundled()}; globalThis.client = client;`, context);
    const said = await runInContext(
      `(async () => {
        const skein = await client.connect(place.url, { token: place.token });
        const stream = skein.events({ keys: ["main"], events: ["run.ended"] });
        await stream.ready;
        const message = { sessionKey: "main", message: "repeat one", idempotencyKey: "1" };
        const { runId } = await skein.call("chat.send", message);
        let heard = null;
        for await (const { event, payload } of stream) { heard = [event, payload.runId === runId]; break; }
        const roles = [];
        for await (const entry of skein.follow("main")) {
          if (entry.type !== "message") continue;
          roles.push(entry.message.role);
          if (entry.message.role === "assistant") break;
        }
        await skein.close();
        return JSON.stringify({ heard, roles });
      })()`,
      context,
    );
    expect(JSON.parse(said as string)).toEqual({ heard: ["run.ended", true], roles: ["user", "assistant"] });
  });
});
