import { openSkein } from "../../src/app.ts";
import type { App } from "../../src/sessions/app.ts";
import type { RunSkein, RunSkeinOptions } from "./run-skein.ts";
import { runOptions } from "./run-skein.ts";

export interface RunSkeinInside extends RunSkein {
  readonly inside: App;
}

/** As `openRuns`, with what lies behind the Skein, for tests of the store of runs itself. */
export async function openRunsInside(given: RunSkeinOptions): Promise<RunSkeinInside> {
  const { options, reports } = runOptions(given);
  const { promise, resolve } = Promise.withResolvers<App>();
  const skein = await openSkein(options, resolve);
  return { skein, inside: await promise, reports };
}
