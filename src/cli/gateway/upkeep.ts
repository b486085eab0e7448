import { attempt, attemptOften, everyHour, startTokenUpkeep } from "../../app/gateway-upkeep.ts";
import { present } from "../../core/present.ts";
import { thrownText } from "../../core/text.ts";
import type { Tokens } from "../../gateway/auth/tokens.ts";
import type { Dispatch } from "../../gateway/methods/dispatch.ts";
import { localPrincipal } from "../../gateway/methods/local-calls.ts";
import type { RunningClaim } from "../../gateway/running-file.ts";
import type { ServerOptions } from "../../gateway/server/server-options.ts";
import type { MaintenanceReportPayload } from "../../protocol/upkeep.ts";

interface UpkeepParts {
  readonly tokens: Tokens;
  readonly dispatch: Pick<Dispatch, "invoke">;
  /** Renews `gateway.json`. Returns `false` if the file belongs to another gateway. */
  beat(): boolean;
  /** Returns `false` if `gateway.json` could not be written. */
  isAnnounced(): boolean;
  /** Records how much work is pending, in case `work.db` is lost. */
  count(): Promise<void>;
  /** Whether this gateway must do the hourly work now. */
  takeTurn(): Promise<boolean>;
  readonly log: ServerOptions["log"];
  /** The delay before the first round. Defaults to one minute. */
  readonly firstMs?: number;
}

const beatMs = 20_000;
const retryMs = 1000;

/** Starts a gateway's periodic work. Returns a function that stops it and waits for the current round. */
export function startUpkeep(parts: UpkeepParts): () => Promise<void> {
  const stopped = new AbortController();
  const beats = setInterval(
    () => void attempt(parts, "gateway.json", () => void parts.beat()),
    beatMs,
  ).unref();
  const countWork = attemptOften(parts, "work counts", parts.count);
  const announce = attemptOften(parts, "gateway.json", () => void parts.beat());
  const saves = setInterval(() => {
    if (!parts.isAnnounced()) void announce();
    void countWork();
  }, retryMs).unref();
  const { log, tokens, firstMs } = parts;
  const endTokenUpkeep = startTokenUpkeep(tokens, { log, ...present({ firstMs }) });
  let logged = "";
  const maintain = async () => {
    logged = await runMaintenance(parts, stopped.signal, logged);
  };
  const rounds = everyHour(maintain, stopped.signal, firstMs);
  return async () => {
    clearInterval(beats);
    clearInterval(saves);
    await endTokenUpkeep();
    stopped.abort();
    await rounds;
  };
}

/** Runs one round. Errors are logged, and the next round tries again. Returns the logged text. */
export async function runMaintenance(
  { dispatch, takeTurn, log }: Pick<UpkeepParts, "dispatch" | "takeTurn" | "log">,
  signal: AbortSignal,
  loggedBefore = "",
): Promise<string> {
  try {
    if (!(await takeTurn())) return loggedBefore;
    const given = await dispatch.invoke(localPrincipal, "maintenance.run", {}, signal);
    const { mode, decisions, done, failed = [] } = given as MaintenanceReportPayload;
    for (const { action, key, problem } of failed)
      log("error", `maintenance could not ${action} ${key}: ${problem}`);
    if (decisions.length === 0) return "";
    const isWarning = mode === "warn";
    const text = isWarning
      ? `maintenance would change ${decisions.length} sessions; to apply the changes, set session.maintenance.mode to enforce`
      : `maintenance changed ${done.length} of ${decisions.length} sessions`;
    // The same warning is not repeated every hour.
    if (!isWarning || text !== loggedBefore) log(isWarning ? "warn" : "info", text);
    return text;
  } catch (error) {
    if (!signal.aborted) log("error", `maintenance failed: ${thrownText(error)}`);
    return loggedBefore;
  }
}

/** Keeps `gateway.json` up to date, and claims it again if it was removed or replaced. */
export function keepAnnounced(
  claim: RunningClaim,
  again: () => RunningClaim | null,
): {
  beat(): boolean;
  isAnnounced(): boolean;
  release(): void;
} {
  let mine: RunningClaim | null = claim;
  return {
    beat: () => {
      if (mine?.beat() !== true) mine = again();
      return mine !== null;
    },
    isAnnounced: () => (mine?.unwritten ?? null) === null,
    release: () => mine?.release(),
  };
}
