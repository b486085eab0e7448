import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { roleOf } from "../messages.ts";
import type { About, Acts, Figures, Job } from "../side.ts";
import { bytesIn, textLength, timed } from "../side.ts";
import { stockOfTexts } from "../texts.ts";
import { load as loadPackage } from "./load.ts";

export const about: About = {
  name: "Google ADK",
  packages: ["@google/adk", "@mikro-orm/sqlite", "sqlite3"],
  durability: "rollback journal, synchronous=FULL: several syncs per message",
  // About 70 messages per second.
  most: 1000,
};

interface Session {
  readonly events: readonly unknown[];
}

interface SessionService {
  createSession(asked: object): Promise<Session>;
  getSession(asked: object): Promise<Session | undefined>;
  appendEvent(asked: { session: Session; event: object }): Promise<unknown>;
}

export const acts: Acts = { append, load, disk };

const names = { appName: "bench", userId: "ann" };

async function serviceIn(folder: string): Promise<SessionService> {
  mkdirSync(folder, { recursive: true });
  const { DatabaseSessionService } = await loadPackage<{
    DatabaseSessionService: new (uri: string) => SessionService;
  }>("@google/adk");
  return new DatabaseSessionService(`sqlite://${join(folder, "adk.db")}`);
}

async function append({ folder, count = 1, warmUp = 10 }: Job): Promise<Figures> {
  const service = await serviceIn(folder);
  const textOf = stockOfTexts(textLength);
  const fill = async (sessionId: string, amount: number) => {
    const session = await service.createSession({ ...names, sessionId });
    for (let index = 0; index < amount; index++) {
      const event = {
        id: `${sessionId}-${index}`,
        invocationId: "bench",
        author: roleOf(index),
        timestamp: 1_790_000_000_000 + index,
        content: { role: roleOf(index) === "user" ? "user" : "model", parts: [{ text: textOf(index) }] },
        actions: { stateDelta: {}, artifactDelta: {} },
      };
      await service.appendEvent({ session, event });
    }
  };
  await fill("warm-up", warmUp);
  const ms = await timed(() => fill("bench-0", count));
  return { ms, perSecond: count / (ms / 1000), usPerMessage: (ms * 1000) / count };
}

async function load({ folder }: Job): Promise<Figures> {
  const service = await serviceIn(folder);
  await service.getSession({ ...names, sessionId: "another" });
  let messages = 0;
  const ms = await timed(async () => {
    messages = (await service.getSession({ ...names, sessionId: "bench-0" }))?.events.length ?? 0;
  });
  return { ms, messages };
}

async function disk({ folder, count = 1 }: Job): Promise<Figures> {
  const bytes = bytesIn(folder);
  return { bytes, ratio: bytes / (count * textLength) };
}
