import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Fastify from "fastify";
import type { GatewayPieces } from "../../src/app/gateway.ts";
import { gatewayPieces } from "../../src/app/gateway.ts";
import { openGateway } from "../../src/cli/gateway/open-gateway.ts";
import type { SkeinEvent } from "../../src/core/events.ts";
import { createServer } from "../../src/gateway/server/create-server.ts";
import { peakMemoryMb } from "../side.ts";
import type { Told, Wish } from "./served.ts";

/** A server in its own process, either the whole gateway or a bare route. It exits with its parent. */

/** All requests use one token. Its rate limit is not part of the measurement. */
const unlimited = { requestsPerSecond: 1e9, requestsPerToken: 1e6, socketsPerToken: 1e6 };

let emit: ((event: SkeinEvent) => void) | null = null;

const pieces: GatewayPieces = {
  ...gatewayPieces,
  listen: (parts) => createServer(parts, unlimited),
  openHub: (parts) => {
    const subscribe: typeof parts.subscribe = (listener) => {
      emit ??= listener;
      return parts.subscribe(listener);
    };
    return gatewayPieces.openHub({ ...parts, subscribe });
  },
};

async function openWhole({ folder, console }: Extract<Wish, { wish: "gateway" }>): Promise<Told> {
  const file = join(folder, "..", "bench-gateway.yaml");
  const page =
    console === undefined ? "" : `gateway: { console: ${JSON.stringify(console)} }\nlanes: { main: 32 }\n`;
  writeFileSync(file, `defaults: { model: rehearsal/basic }\nlogging: { level: error }\n${page}`);
  const where = { cwd: folder, root: folder, file, env: {} };
  const open = await openGateway({ where, overrides: { port: 0 }, version: "0.0.0", pieces });
  if (!open.isMine) throw new Error("another gateway runs on this folder");
  return { url: open.url, token: readFileSync(join(folder, "token"), "utf8").trim() };
}

/** The same request, parsed by Fastify, with a prepared response. */
async function openBare(bytes: number): Promise<Told> {
  const body = JSON.stringify({ text: "x".repeat(Math.max(0, bytes - 11)) });
  const app = Fastify({ logger: false });
  app.post("/rpc/:name", (_request, reply) => {
    void reply.type("application/json; charset=utf-8").send(body);
  });
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  return { url, token: "none" };
}

/** Evenly spaced events, each with the time at which it was emitted. */
function emitEvents({ perSecond, sessions, count }: Extract<Wish, { wish: "emit" }>): Promise<Told> {
  const started = performance.now();
  let done = 0;
  return new Promise((resolve) => {
    const timer = setInterval(() => {
      const due = Math.min(count, Math.floor(((performance.now() - started) / 1000) * perSecond));
      for (; done < due; done++) emit?.(eventOf(done % sessions));
      if (done < count) return;
      clearInterval(timer);
      resolve({});
    }, 1);
  });
}

function eventOf(session: number): SkeinEvent {
  const sessionId = `bench-${session}`;
  const about = { userId: null, sessionKey: `agent:main:${sessionId}`, sessionId, runId: `run-${session}` };
  const toolCallId = `sent-${process.hrtime.bigint()}`;
  const call = { phase: "call", toolCallId, toolName: "weather", arguments: { city: "Kyoto" } } as const;
  return { type: "run.tool", at: Date.now(), ...about, ...call };
}

async function answer(wish: Wish): Promise<Told> {
  switch (wish.wish) {
    case "gateway":
      return openWhole(wish);
    case "bare":
      return openBare(wish.bytes);
    case "emit":
      return emitEvents(wish);
    case "used":
      return used();
  }
}

function used(): Told {
  const { user, system } = process.cpuUsage();
  return { rssMb: process.memoryUsage.rss() / 1e6, peakMb: peakMemoryMb(), cpuUs: user + system };
}

process.once("disconnect", () => process.exit(0));
process.on("message", (wish: Wish) => {
  answer(wish).then(
    (told) => process.send?.(told),
    (error: unknown) => {
      process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
      process.exit(1);
    },
  );
});
