import { openSkein } from "../../src/app.ts";
import type { App } from "../../src/sessions/app.ts";
import type { RunSkein, RunSkeinOptions } from "./run-skein.ts";
import { runOptions } from "./run-skein.ts";

export interface RunSkeinInside extends RunSkein {
  readonly inside: App;
}

/** Like `openRuns`, but with access to internals, for tests of the run store itself. */
export async function openRunsInside(given: RunSkeinOptions): Promise<RunSkeinInside> {
  const { options, reports } = await runOptions(given);
  const { promise, resolve } = Promise.withResolvers<App>();
  const skein = await openSkein(options, resolve);
  return { skein, inside: await promise, reports };
}
