import type { Config } from "../config/sections/all.ts";
import type { Clock } from "../core/clock.ts";
import type { EventBus, SkeinEvent } from "../core/events.ts";
import type { Log } from "../telemetry/log.ts";
import { createLog } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { createMetrics } from "../telemetry/metrics.ts";
import { setUpTracing } from "../telemetry/tracing.ts";
import { watch } from "../telemetry/watch.ts";

export interface Watching {
  readonly log: Log;
  readonly metrics: Metrics | null;
  /**
   * Runs whose result a caller in this process is waiting for. Their failures are not logged as warnings on stderr,
   * because the caller receives them.
   */
  readonly awaitedRuns: Set<string>;
  start(bus: EventBus): () => Promise<void>;
}

/** Opens logs, spans and metrics as configured. */
export async function openWatching(
  { logging, telemetry }: Pick<Config, "logging" | "telemetry">,
  clock: Clock,
  redact: (text: string) => string,
  { quiet: isQuiet = false, metrics: hasMetrics = false }: { quiet?: boolean; metrics?: boolean } = {},
): Promise<Watching> {
  const level = isQuiet && logging.file === null ? "silent" : logging.level;
  const awaitedRuns = new Set<string>();
  const isHandled = ({ type, runId }: SkeinEvent) =>
    logging.file === null && type === "run.ended" && runId !== undefined && awaitedRuns.has(runId);
  const log = await createLog({ level, destination: logging.file ?? 2, clock, redact, isHandled });
  const tracing = await setUpTracing({ otlp: telemetry.otlp, clock });
  const metrics = hasMetrics ? createMetrics() : null;
  return {
    log,
    metrics,
    awaitedRuns,
    start: (bus) => {
      const watching = watch(bus, [tracing, metrics, log]);
      return () => watching.close();
    },
  };
}
