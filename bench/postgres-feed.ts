import { setTimeout as sleep } from "node:timers/promises";
import type { SkeinEvent } from "../src/core/events.ts";
import { openPostgres } from "../src/store/postgres/open-postgres.ts";
import { requireWorking } from "../src/store/work.ts";
import { watchDatabase } from "./database-load.ts";
import type { Figures, Job } from "./side.ts";
import { timed } from "./side.ts";

/**
 * Sends events through the database at a steady rate. The sender and the receiver are in one process, so its CPU time
 * covers both.
 */
export async function feed({ url = "", count = 1, rate = 1000 }: Job): Promise<Figures> {
  const backends = [requireWorking(await openPostgres({ url })), requireWorking(await openPostgres({ url }))];
  const [sender, receiver] = backends.map(({ shared }) => shared.events);
  if (sender === undefined || receiver === undefined) throw new Error("unreachable");
  await sender.join();
  await receiver.join();
  let heard = 0;
  let lost = 0;
  receiver.subscribe(
    () => (heard += 1),
    () => (lost += 1),
  );
  let ms = 0;
  let cpuUs = 0;
  const load = await watchDatabase(url, async () => {
    const before = process.cpuUsage();
    ms = await timed(async () => {
      for (let sent = 0; sent < count; ) {
        for (let part = 0; part < rate / 100 && sent < count; part++) sender.publish(eventOf(sent++));
        await sleep(10);
      }
      while (heard < count && lost === 0) await sleep(5);
    });
    const { user, system } = process.cpuUsage(before);
    cpuUs = user + system;
  });
  await Promise.all(backends.map((backend) => backend.close()));
  return {
    eventsPerSecond: count / (ms / 1000),
    usCpuSent: cpuUs / count,
    usDatabaseCpu: (load.cpuMs * 1000) / count,
    batchesPerEvent: load.batches / count,
    lost: count - heard,
  };
}

/** A piece of an answer, as models send them. */
function eventOf(index: number): SkeinEvent {
  return {
    type: "run.delta",
    at: 1_790_000_000_000 + index,
    userId: "ann",
    sessionKey: "agent:main:main",
    sessionId: "019a0000-0000-7000-8000-000000000000",
    runId: "019a0000-0000-7000-8000-000000000001",
    kind: "text",
    step: 1,
    offset: index * 20,
    delta: "Rain in both cities.",
  } as unknown as SkeinEvent;
}
