import type { Clock } from "../../core/clock.ts";
import { present } from "../../core/present.ts";
import { isRecord } from "../../core/shape.ts";
import type { Run } from "../../runs/contract.ts";
import type { Store } from "../../store/contract.ts";
import type { RunWatcher } from "../skein/run-watcher.ts";

interface Deps {
  readonly store: Pick<Store, "sessions">;
  readonly watcher: Pick<RunWatcher, "untilEnded">;
  readonly clock: Clock;
}

export async function untilLinked(
  { store, watcher }: Deps,
  { session, runId }: Run,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<string | null> {
  throw new Error(
    `to be written: ${store} ${watcher} ${present({})} ${isRecord} ${session} ${runId} ${timeoutMs} ${signal}`,
  );
}
