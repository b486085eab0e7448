import { join } from "node:path";
import { expect, test } from "vitest";
import { TokenBooks } from "../../../test/support/token-books.ts";
import type { SkeinInside } from "../../compose/open-skein.ts";
import { openSkein } from "../../compose/open-skein.ts";
import { loadConfig } from "../../config/load.ts";
import type { Handlers } from "../../gateway/calls/contract.ts";
import { temporaryFolder } from "../../testing/support/temporary-folder.ts";
import { openServing } from "./serving.ts";

test("[GST15] a run whose time was over before the start: readers hear of its end", async () => {
  using folder = temporaryFolder();
  const dir = join(folder.path, "root");
  const longAgo = { now: () => Date.now() - 7 * 24 * 3_600_000 };
  const inside = Promise.withResolvers<SkeinInside>();
  const before = await openSkein(
    { dir, config: null, env: {}, workers: false, clock: longAgo, quiet: true },
    inside.resolve,
  );
  const { runId } = await before.session({ sessionKey: "agent:main:main" }).accept("hello");
  const { runs } = await inside.promise;
  // Begun, and given back when that gateway stopped.
  const { run } = (await runs.claim("the one before")) ?? {};
  await runs.release({ runId, fence: run?.fence ?? 0 });
  await before.close();
  const where = { cwd: folder.path, root: dir, env: { HOME: folder.path, SKEIN_LOGGING__LEVEL: "silent" } };
  const heard: string[] = [];
  const serving = await openServing({
    where,
    loaded: await loadConfig(where),
    tokens: new TokenBooks().tokens,
    pieces: { handlers: () => ({}) as Handlers },
    reload: () => Promise.reject(new Error("not here")),
    emit: (event) => void heard.push(`${event.type} ${event.runId}`),
  });
  const state = async () => (await serving.skein.runs.list()).map((run) => run.state);
  await expect.poll(state).toEqual(["timeout"]);
  expect(heard).toContain(`run.ended ${runId}`);
  await serving.close({ runsMs: 0, callsMs: 0 });
});
