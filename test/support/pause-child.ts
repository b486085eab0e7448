// A process for the tests of lost leases. Reports that it has reached a gate in its turn, and then what it is still
// allowed to do. Usage: `pause-child.ts <folder> <mode>`
import { writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { openSkein } from "../../src/app.ts";
import type { App } from "../../src/sessions/app.ts";
import type { PauseMode } from "./pause-scenario.ts";
import { pauseOptions } from "./pause-scenario.ts";

const [folder = "", mode = ""] = process.argv.slice(2);
const say = (text: string) => void writeSync(1, `${text}\n`);
const atGate = () => say("at the gate");
const opened = Promise.withResolvers<App>();
const options = pauseOptions({ folder, mode: mode as PauseMode, who: "the first", atGate });
const skein = await openSkein(options, opened.resolve);
const { worker } = await opened.promise;
if (mode === "approval") skein.subscribe(({ type }) => void (type === "run.waiting" && atGate()));
skein.session({ userId: "alice", sessionId: "paused" }).send("Go", { idempotencyKey: "the-turn" });
while (worker.activeCount === 0) await sleep(5);
while (worker.activeCount > 0) await sleep(5);
say("let go");
await skein.close();
