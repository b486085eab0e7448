import { expect, test } from "vitest";
import { systemClock } from "../core/clock.ts";
import { EventBus } from "../core/events.ts";
import type { Run } from "../runs/contract.ts";
import { RunWatcher } from "./run-watcher.ts";

const unused = { approval: async () => null, list: async () => [], version: () => 0 };

test("[LIB6] waiting for an unknown run fails at once", async () => {
  const watcher = new RunWatcher({ ...unused, get: async () => null }, new EventBus(), systemClock);
  await expect(watcher.untilEnded("nowhere")).rejects.toMatchObject({ code: "not_found" });
});

test("[LIB6] waiting for a run ends when it is purged", async () => {
  let known: Run | null = { outcome: null } as Run;
  const watcher = new RunWatcher({ ...unused, get: async () => known }, new EventBus(), systemClock);
  const ended = watcher.untilEnded("r");
  known = null;
  await expect(ended).rejects.toMatchObject({ code: "not_found" });
});
