import { setTimeout as after } from "node:timers/promises";
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
const saveMs = 1000;
const defaultFirstMs = 60_000;
const everyMs = 3_600_000;
/** How long expired tokens remain listed. */
const expiredMs = 30 * 24 * 3_600_000;

/** Starts a gateway's periodic work. Returns a function that stops it and waits for the current round. */
export function startUpkeep(parts: UpkeepParts): () => Promise<void> {
  const stopped = new AbortController();
  const beats = setInterval(
    () => void attempt(parts, "gateway.json", () => void parts.beat()),
    beatMs,
  ).unref();
  // Retried until it succeeds. If the gateway restarted before that, a revoked token would be accepted again.
  const saveRevocations = attemptOften(parts, "tokens", () => parts.tokens.saveRevocations());
  const countWork = attemptOften(parts, "work counts", parts.count);
  const announce = attemptOften(parts, "gateway.json", () => void parts.beat());
  const saves = setInterval(() => {
    if (!parts.isAnnounced()) void announce();
    void saveRevocations();
    void countWork();
  }, saveMs).unref();
  const rounds = (async () => {
    let logged = "";
    for (let wait = parts.firstMs ?? defaultFirstMs; ; wait = everyMs) {
      await after(wait, undefined, { ref: false, signal: stopped.signal });
      logged = await runMaintenance(parts, stopped.signal, logged);
    }
  })().catch((error: unknown) => {
    if (!stopped.signal.aborted) parts.log("error", `upkeep stopped: ${thrownText(error)}`);
  });
  return async () => {
    clearInterval(beats);
    clearInterval(saves);
    await attempt(parts, "tokens", () => parts.tokens.saveRevocations());
    stopped.abort();
    await rounds;
  };
}

/** Runs one round. Errors are logged, and the next round tries again. Returns the logged text. */
export async function runMaintenance(
  { tokens, dispatch, takeTurn, log }: Pick<UpkeepParts, "tokens" | "dispatch" | "takeTurn" | "log">,
  signal: AbortSignal,
  loggedBefore = "",
): Promise<string> {
  try {
    if (!(await takeTurn())) return loggedBefore;
    await attempt({ log }, "tokens", async () => {
      await tokens.forgetExpired(tokens.clock.now() - expiredMs);
    });
    const given = await dispatch.invoke(localPrincipal, "maintenance.run", {}, signal);
    const { mode, decisions, done } = given as MaintenanceReportPayload;
    if (decisions.length === 0) return "";
    const isWarning = mode === "warn";
    const text = isWarning
      ? `maintenance would change ${decisions.length} sessions; set session.maintenance.mode to enforce to apply the changes`
      : `maintenance changed ${done.length} of ${decisions.length} sessions`;
    // The same warning is not repeated every hour.
    if (!isWarning || text !== loggedBefore) log(isWarning ? "warn" : "info", text);
    return text;
  } catch (error) {
    if (!signal.aborted) log("error", `maintenance failed: ${thrownText(error)}`);
    return loggedBefore;
  }
}

/** Logs an error instead of throwing it, because an error in a timer would crash the gateway. */
async function attempt(
  { log }: Pick<UpkeepParts, "log">,
  what: string,
  act: () => void | Promise<void>,
): Promise<void> {
  try {
    await act();
  } catch (error) {
    log("error", `${what}: ${thrownText(error)}`);
  }
}

/**
 * Like `attempt`, but for work that is retried every second. A persistent failure is logged only once. An attempt is
 * skipped while the previous one is running.
 */
function attemptOften(
  { log }: Pick<UpkeepParts, "log">,
  what: string,
  act: () => void | Promise<void>,
): () => Promise<void> {
  let logged = "";
  let isRunning = false;
  return async () => {
    if (isRunning) return;
    isRunning = true;
    try {
      await act();
      logged = "";
    } catch (error) {
      const text = thrownText(error);
      if (text !== logged) log("warn", `${what}: ${text}`);
      logged = text;
    } finally {
      isRunning = false;
    }
  };
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
