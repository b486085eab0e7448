import { setTimeout as after } from "node:timers/promises";
import { thrownText } from "../../core/text.ts";
import type { Tokens } from "../../gateway/auth/tokens.ts";
import type { Dispatch } from "../../gateway/methods/dispatch.ts";
import { localPrincipal } from "../../gateway/methods/local-calls.ts";
import type { RunningClaim } from "../../gateway/running-file.ts";
import type { ServerApp } from "../../gateway/server/server-options.ts";
import type { MaintenanceReportPayload } from "../../protocol/upkeep.ts";

interface UpkeepParts {
  readonly tokens: Tokens;
  readonly dispatch: Pick<Dispatch, "invoke">;
  /** Says anew that the gateway runs; `false`: another one does. */
  beat(): boolean;
  /** `false`: the disk has no room for `gateway.json`. */
  isAnnounced(): boolean;
  /** Writes down how much there would be to lose. */
  count(): void;
  readonly log: ServerApp["log"];
  /** Until the first round; by default a minute. */
  readonly firstMs?: number;
}

const beatMs = 20_000;
const saveMs = 1000;
const usualFirstMs = 60_000;
const everyMs = 3_600_000;
/** Tokens that are over are listed for so long. */
const expiredMs = 30 * 24 * 3_600_000;

/** What a gateway does by itself, time and again. Returns a function that ends it, and what is under way. */
export function startUpkeep(parts: UpkeepParts): () => Promise<void> {
  const over = new AbortController();
  const beats = setInterval(() => attempt(parts, "gateway.json", () => void parts.beat()), beatMs).unref();
  // Retried until it works: a restart before that would let a revoked token in again.
  const saveRevocations = attemptOften(parts, "tokens", () => parts.tokens.saveRevocations());
  const countWork = attemptOften(parts, "work counts", parts.count);
  const announce = attemptOften(parts, "gateway.json", () => void parts.beat());
  const saves = setInterval(() => {
    if (!parts.isAnnounced()) announce();
    saveRevocations();
    countWork();
  }, saveMs).unref();
  const rounds = (async () => {
    let said = "";
    for (let wait = parts.firstMs ?? usualFirstMs; ; wait = everyMs) {
      await after(wait, undefined, { ref: false, signal: over.signal });
      said = await lookAfter(parts, over.signal, said);
    }
  })().catch((error: unknown) => {
    if (!over.signal.aborted) parts.log("error", `upkeep ended: ${thrownText(error)}`);
  });
  return async () => {
    clearInterval(beats);
    clearInterval(saves);
    attempt(parts, "tokens", () => parts.tokens.saveRevocations());
    over.abort();
    await rounds;
  };
}

/** One round. What goes wrong in it is logged, and tried again in the next. Gives what it said of maintenance. */
export async function lookAfter(
  { tokens, dispatch, log }: Pick<UpkeepParts, "tokens" | "dispatch" | "log">,
  signal: AbortSignal,
  saidBefore = "",
): Promise<string> {
  attempt({ log }, "tokens", () => void tokens.forgetExpired(tokens.clock.now() - expiredMs));
  try {
    const given = await dispatch.invoke(localPrincipal, "maintenance.run", {}, signal);
    const { mode, decisions, done } = given as MaintenanceReportPayload;
    if (decisions.length === 0) return "";
    const isWarning = mode === "warn";
    const text = isWarning
      ? `maintenance would change ${decisions.length} sessions; session.maintenance.mode: enforce lets it`
      : `maintenance changed ${done.length} of ${decisions.length} sessions`;
    // A warning that nobody heeds is not said anew each hour.
    if (!isWarning || text !== saidBefore) log(isWarning ? "warn" : "info", text);
    return text;
  } catch (error) {
    if (!signal.aborted) log("error", `maintenance failed: ${thrownText(error)}`);
    return saidBefore;
  }
}

function attempt({ log }: Pick<UpkeepParts, "log">, what: string, act: () => void): void {
  try {
    act();
  } catch (error) {
    log("error", `${what}: ${thrownText(error)}`);
  }
}

/**
 * As `attempt`, for what is retried each second: a failure that lasts is logged once. Nothing is thrown, because a timer has no
 * caller: an error there would end the gateway.
 */
function attemptOften({ log }: Pick<UpkeepParts, "log">, what: string, act: () => void): () => void {
  let logged = "";
  return () => {
    try {
      act();
      logged = "";
    } catch (error) {
      const text = thrownText(error);
      if (text !== logged) log("warn", `${what}: ${text}`);
      logged = text;
    }
  };
}

/** Beats; where the file is gone or another's, tries to have it again. `false`: another gateway has it. */
export function beating(
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
