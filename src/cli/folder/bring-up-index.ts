import { setImmediate as nextTurn } from "node:timers/promises";
import { withProgress } from "../output/progress.ts";
import type { Terminal } from "../output/terminal.ts";
import type { OpenCalls } from "./with-calls.ts";

/** A list spends so long on catching up; one that is back sooner could do no more. */
const fullRoundMs = 150;

/**
 * A command answers once: it waits until the index has everything, where a server would say that it is behind. By
 * rounds, so that a signal is heard in between.
 */
export async function bringUpIndex(terminal: Terminal, { calls, reader }: OpenCalls): Promise<void> {
  await withProgress(terminal, "Indexing", async (update) => {
    let before = Number.POSITIVE_INFINITY;
    for (let total = 0; ; ) {
      const began = performance.now();
      const { indexing } = await calls.call("sessions.list", { limit: 1, ...reader });
      const behind = indexing?.behind ?? 0;
      total = Math.max(total, behind);
      if (total > 0) update(total - behind, total);
      const isStuck = behind >= before && performance.now() - began < fullRoundMs;
      if (behind === 0 || isStuck) return;
      before = behind;
      await nextTurn();
    }
  });
}
