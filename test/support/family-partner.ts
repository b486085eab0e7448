// A process for the tests in which two processes share a folder. It either calls a tool for the session `parent` or
// works. Usage: `family-partner.ts <folder> ask <tool> <arguments as JSON>` prints "asked", then the result.
// `family-partner.ts <folder> work` prints "working" and works until it is killed.
import { writeSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { alice, openFamily } from "./family-scenario.ts";

const [folder = "", role = "", tool = "", args = "{}"] = process.argv.slice(2);
const say = (text: string) => void writeSync(1, `${text}\n`);
const skein = await openFamily(folder, "all", { workers: role === "work" });
// A killed process does not save its compile cache, so the next one would compile everything again.
flushCompileCache();
if (role === "work") {
  say("working");
  setInterval(() => undefined, 60_000);
} else {
  const asking = skein.callTool(tool, JSON.parse(args), {
    ...alice,
    sessionId: "parent",
    idempotencyKey: "asked",
  });
  let isAnswered = false;
  const answered = asking.then(() => {
    isAnswered = true;
  });
  const pause = () => new Promise((resolve) => void setTimeout(resolve, 5));
  while (!isAnswered && (await skein.runs.list({ states: ["queued", "running"] })).length === 0)
    await Promise.race([answered, pause()]);
  say("asked");
  say(JSON.stringify((await asking).result));
  await skein.close();
}
