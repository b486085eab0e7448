import { setTimeout as after } from "node:timers/promises";
import { thrownText } from "../core/text.ts";
import type { Tokens } from "../gateway/auth/tokens.ts";
import type { ServerOptions } from "../gateway/server/server-options.ts";
import type { SkeinStore } from "../sessions/app.ts";

/** What every gateway does, whether it has a port of its own or is mounted in another server. */

type Logging = Pick<ServerOptions, "log">;

const saveMs = 1000;
const defaultFirstMs = 60_000;
const everyMs = 3_600_000;
/** How long expired tokens remain listed. */
const expiredMs = 30 * 24 * 3_600_000;

/**
 * Writes pending revocations and removes tokens that expired long ago. Returns a function that stops this after a last
 * attempt to write.
 */
export function startTokenUpkeep(
  tokens: Tokens,
  { log, firstMs }: Logging & { readonly firstMs?: number },
): () => Promise<void> {
  const stopped = new AbortController();
  const save = () => tokens.saveRevocations();
  // Retried until it succeeds. If the gateway restarted before that, a revoked token would be accepted again.
  const saveOften = attemptOften({ log }, "tokens", save);
  const saves = setInterval(() => void saveOften(), saveMs).unref();
  const forget = () =>
    attempt({ log }, "tokens", async () => {
      await tokens.forgetExpired(tokens.clock.now() - expiredMs);
    });
  const rounds = everyHour(forget, stopped.signal, firstMs);
  return async () => {
    clearInterval(saves);
    await attempt({ log }, "tokens", save);
    stopped.abort();
    await rounds;
  };
}

/** Calls `act` once an hour until the signal is aborted. The first call is after one minute by default. */
export async function everyHour(
  act: () => Promise<void>,
  signal: AbortSignal,
  firstMs = defaultFirstMs,
): Promise<void> {
  for (let wait = firstMs; ; wait = everyMs) {
    await after(wait, undefined, { ref: false, signal }).catch(() => undefined);
    if (signal.aborted) return;
    await act();
  }
}

/** Logs an error instead of throwing it, because an error in a timer would crash the gateway. */
export async function attempt(
  { log }: Logging,
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
export function attemptOften(
  { log }: Logging,
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

/** Returns one sentence for each reason why this process should not receive work now. */
export async function findStoreProblems({ work, upkeep }: SkeinStore): Promise<readonly string[]> {
  if (work.shared !== null) return work.shared.findProblems();
  return ((await upkeep?.health()) ?? []).map(({ message }) => `${message}.`);
}
