// A process for the tests of lost leases: comes to a gate in its turn, and says so; then what it may still do.
// pause-child.ts <folder> <mode>
import { writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { PauseMode } from "./pause-scenario.ts";
import { openPaused } from "./pause-scenario.ts";

const [folder = "", mode = ""] = process.argv.slice(2);
const say = (text: string) => void writeSync(1, `${text}\n`);
const { skein, inside } = await openPaused({
  folder,
  mode: mode as PauseMode,
  who: "the first",
  atGate: () => say("at the gate"),
});
skein.session({ userId: "alice", sessionId: "paused" }).send("Go", { idempotencyKey: "the-turn" });
while (inside.worker.activeCount === 0) await sleep(5);
while (inside.worker.activeCount > 0) await sleep(5);
say("let go");
await skein.close();
