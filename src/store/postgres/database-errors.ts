import { codeOf, lockTimeoutCode, SkeinError } from "../../core/errors.ts";
import { thrownText } from "../../core/text.ts";

/**
 * A serialization failure or a deadlock. The statement was aborted because it conflicted with a concurrent one. It can
 * be repeated.
 */
const conflictCodes = ["40001", "40P01"];
/**
 * The server is shutting down, starting up or out of connections, or has ended a transaction that was idle for too
 * long.
 */
const busyCodes = ["57P01", "57P02", "57P03", "53300", "25P03"];
const networkCodes = [
  "ECONNREFUSED",
  "ECONNRESET",
  "ENOENT",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "EPIPE",
  "ETIMEDOUT",
];
/** Errors that `pg` raises without a code. */
const lostText = /connection terminated|timeout|not queryable|client was closed|connection ended/i;

const sqlState = /^[0-9A-Z]{5}$/;

/** Whether the transaction was rolled back because it conflicted with a concurrent one. */
export function isConflictWithOthers(error: unknown): boolean {
  return conflictCodes.includes(codeOf(error));
}

/** Whether a prepared statement no longer matches its tables, because another process has migrated them. */
export function isPlanOutdated(error: unknown): boolean {
  return codeOf(error) === "0A000" && thrownText(error).includes("cached plan");
}

/** Whether the connection was lost or could not be opened, so that the server did not answer. */
export function isConnectionLost(error: unknown): boolean {
  if (error instanceof SkeinError) return false;
  if (error instanceof AggregateError) return error.errors.some(isConnectionLost);
  const code = codeOf(error);
  if (busyCodes.includes(code) || networkCodes.includes(code) || /^08/.test(code)) return true;
  return code === "" && error instanceof Error && lostText.test(error.message);
}

/** Returns the name of the unique index that a statement violated, or `null` if it failed for another reason. */
export function violatedIndex(error: unknown): string | null {
  if (codeOf(error) !== "23505") return null;
  const { constraint } = error as { readonly constraint?: unknown };
  // A partition's index has its own name, which starts with the partition's name.
  return typeof constraint === "string" ? constraint.replace(/^entries_\d+_.*/, "entries_id") : null;
}

/** How much is known about a failed write. */
export type Outcome = "not stored" | "unknown";

const outcomeText: Readonly<Record<Outcome, string>> = {
  "not stored": "Nothing was stored",
  unknown:
    "It is not known whether the last change was stored. Read the data again before you repeat the change",
};

/** Converts an error from `pg` to one from the catalog. Errors from the catalog are returned unchanged. */
export function databaseError(error: unknown, database: string, outcome: Outcome): unknown {
  if (error instanceof SkeinError) return error;
  const code = codeOf(error);
  const problem = problemOf(error);
  const options = { cause: error };
  if (code === "53100") return new SkeinError("database_full", { database, problem }, options);
  if (code === "25006") return new SkeinError("database_read_only", { database, problem }, options);
  if (code === lockTimeoutCode && outcome === "not stored") {
    const file = `This user's data in the database ${database}`;
    const holder = "another process, for example for a redaction or a purge";
    return new SkeinError("locked", { file, holder }, options);
  }
  if (isConnectionLost(error) || code === lockTimeoutCode) {
    const advice = `${outcomeText[outcome]}. Check that the server is running and reachable, then try again`;
    return new SkeinError("database_unavailable", { database, problem, advice }, options);
  }
  if (["28000", "28P01", "3D000", "42501"].includes(code)) {
    const advice = "Check the database name, the role, its password and its privileges";
    return new SkeinError("database_unavailable", { database, problem, advice }, options);
  }
  if (isTlsProblem(error, code)) {
    const advice = "Check sslmode and sslrootcert in the database address, and the server's certificate";
    return new SkeinError("database_unavailable", { database, problem, advice }, options);
  }
  if (!sqlState.test(code)) return error;
  return new SkeinError("internal", { problem: `PostgreSQL reported ${code}: ${problem}` }, options);
}

/** Whether the server offers no encryption, or its certificate is not trusted. */
function isTlsProblem(error: unknown, code: string): boolean {
  if (/CERT|TLS|SSL|UNABLE_TO_|DEPTH_ZERO/.test(code)) return true;
  return code === "" && /SSL|certificate/i.test(thrownText(error));
}

function problemOf(error: unknown): string {
  const [first] = error instanceof AggregateError ? error.errors : [];
  return thrownText(first ?? error).replace(/\.$/, "");
}
