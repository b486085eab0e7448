import { inLine, thrownText, withoutAbsolutePaths } from "./text.ts";

/**
 * All errors that Skein raises on purpose. A test compares `docs/errors.md` with this table. Placeholders such as
 * `{name}` are filled in from the error's details.
 */
export const errorCatalogue = {
  invalid_key: {
    status: 400,
    text: 'Session key "{key}" is not valid: {problem}.',
    remedy: "Expected {expected}.",
  },
  invalid_agent_id: {
    status: 400,
    text: 'Agent ID "{agentId}" is not valid.',
    remedy: "It must match {pattern}; capital letters are converted to lowercase.",
  },
  invalid_session_id: {
    status: 400,
    text: 'Session ID "{sessionId}" is not valid: {problem}.',
    remedy: "Use up to 128 letters, digits, dots, underscores and hyphens, starting with a letter or digit.",
  },
  invalid_user_id: {
    status: 400,
    text: 'User ID "{userId}" is not valid: {problem}.',
    remedy:
      "Use a well-formed string of 1 to 256 characters that does not start with U+0001, or omit it for the unnamed user.",
  },
  invalid_path_segment: {
    status: 400,
    text: 'Folder name "{segment}" does not encode a user ID: {problem}.',
    remedy: "Only folder names that Skein created can be decoded.",
  },
  invalid_entry: {
    status: 400,
    text: 'An entry of type "{type}" cannot be written: {problem}.',
    remedy: "Nothing was changed. Correct the field and append again.",
  },
  invalid_config: {
    status: 400,
    text: "The configuration is not valid: {problem}{others}.",
    remedy: "Correct {places}; docs/configuration.md lists every key.",
  },
  invalid_arguments: {
    status: 400,
    text: "{problem}.",
    remedy: "{advice}.",
  },
  unauthorized: {
    status: 401,
    text: "{problem}.",
    remedy: "{advice}.",
  },
  forbidden: {
    status: 403,
    text: "{problem}.",
    remedy: "{advice}.",
  },
  not_found: {
    status: 404,
    text: '{what} not found: "{name}".',
    remedy: "{advice}.",
  },
  ambiguous: {
    status: 409,
    text: '"{name}" matches more than one {what}: {candidates}.',
    remedy: "Use the full form of one of them.",
  },
  conflict: {
    status: 409,
    text: "{problem}.",
    remedy: "{advice}.",
  },
  idempotency_conflict: {
    status: 409,
    text: "This idempotency key was already used for {difference}, by the run {runId}.",
    remedy: "Retry the request unchanged to get that run, or use a new key for a new request.",
  },
  fenced: {
    status: 409,
    text: "Nothing was written to session {sessionId} because this run no longer owns it.",
    remedy: "Stop. The current owner of the run continues from what has been written.",
  },
  locked: {
    status: 423,
    text: "{file} is held by {holder}.",
    remedy: "Wait for that process to finish, or stop it. A lock is never taken from a live process.",
  },
  write_failed: {
    status: 507,
    text: "{file} could not be written: {problem}.",
    remedy: "{advice}.",
  },
  store_damaged: {
    status: 503,
    text: "The database {file} is damaged: {problem}.",
    remedy:
      "Stop the gateway and every other process that uses the folder, then run `skein doctor --fix`. It saves what can be read, keeps the damaged file and lists what is lost.",
  },
  read_only: {
    status: 409,
    text: "{name} cannot be written to: {problem}.",
    remedy: "Read it, or fork it into a new session.",
  },
  not_a_session: {
    status: 422,
    text: "{file} is not a session file: {problem}.",
    remedy: 'It was not changed. A session is a .jsonl file whose first line has type "session".',
  },
  unreadable_file: {
    status: 500,
    text: "{file} cannot be read: {problem}.",
    remedy: "{advice}.",
  },
  too_large: {
    status: 413,
    text: "{what} exceeds the maximum string length.",
    remedy: "Request less data with --limit, or omit --json.",
  },
  body_too_large: {
    status: 413,
    text: "The request is larger than {bytes} bytes.",
    remedy: "Split it into smaller requests.",
  },
  message_too_large: {
    status: 413,
    text: "The message has about {tokens} tokens, but the context window of {model} has only {contextWindow}.",
    remedy: "The message was not accepted. Shorten it, or use a model with a larger window.",
  },
  context_overflow: {
    status: 413,
    text: "The conversation does not fit in the model's context window: {problem}.",
    remedy: "Nothing is lost. Use a model with a larger window, or continue in a new session.",
  },
  budget_exceeded: {
    status: 429,
    text: "The request {rootId}, including everything it started, exceeds the limit for {limit}: {figure} (maximum: {allowed}).",
    remedy:
      "Finish with the results so far, increase budget.{limit}, or send a new request, which has its own budget.",
  },
  children_exceeded: {
    status: 429,
    text: "sessions_spawn has reached max active children for this session ({active}/{max}).",
    remedy: "Wait for a child to end, end one with subagents, or increase subagents.maxChildren.",
  },
  step_limit: {
    status: 508,
    text: "The turn was ended after {steps} requests to the model.",
    remedy: "Everything done so far is kept. Send a message to continue, or increase maxSteps.",
  },
  repeated_call: {
    status: 508,
    text: "The turn was ended because {tool} was called three times in a row with the same arguments and the same result.",
    remedy: "Everything done so far is kept. Send a message that explains what to do instead.",
  },
  model_failed: {
    status: 502,
    text: "{model} did not answer (attempts: {attempts}): {problem}.",
    remedy: "The session is intact. Send a message to try again, or use a different model.",
  },
  model_auth: {
    status: 503,
    text: "{model} rejected the API key, or no key is set: {problem}.",
    remedy: "Set {variable}, or {setting} in the configuration.",
  },
  model_not_found: {
    status: 502,
    text: "There is no model {model}: {problem}.",
    remedy: "Check the name with the provider, or use a different model.",
  },
  invalid_output: {
    status: 502,
    text: "The answer does not match the requested schema: {problem}.",
    remedy: "Simplify the schema, describe the expected output in the message, or use a different model.",
  },
  delivery_failed: {
    status: 502,
    text: "Channel {channel} did not accept a message: {problem}.",
    remedy: "{advice}.",
  },
  unavailable: {
    status: 503,
    text: "{problem}.",
    remedy: "{advice}.",
  },
  store_unknown: {
    status: 503,
    text: 'The store "{store}" is unknown to this process.',
    remedy: "Pass it to createSkein under this name in stores. Runs in its sessions wait until then.",
  },
  database_unavailable: {
    status: 503,
    text: "The database {database} cannot be used: {problem}.",
    remedy: "{advice}.",
  },
  blobs_unavailable: {
    status: 503,
    text: "The object store {store} cannot be used: {problem}.",
    remedy: "{advice}.",
  },
  database_full: {
    status: 503,
    text: "The database {database} is full: {problem}.",
    remedy: "Nothing was stored. Free up space on the database server, then try again.",
  },
  database_read_only: {
    status: 503,
    text: "The database {database} does not accept changes: {problem}.",
    remedy: "Nothing was stored. Connect to the primary server, or turn off read-only mode on this server.",
  },
  database_too_old: {
    status: 503,
    text: "The database {database} runs PostgreSQL {version}, but Skein needs version 15 or later.",
    remedy: "Upgrade the database server.",
  },
  database_behind: {
    status: 503,
    text: "The tables in the database {database} are at version {found}, but this version of Skein needs version {needed}.",
    remedy: "Migrate the database as the role that owns the tables, then try again.",
  },
  database_ahead: {
    status: 503,
    text: "The tables in the database {database} are at version {found}, but this version of Skein supports only version {needed}.",
    remedy: "Nothing was changed. Upgrade Skein on this machine.",
  },
  acp_unavailable: {
    status: 503,
    text: "The ACP agent {agent} is not available: {problem}.",
    remedy: "{advice}.",
  },
  acp_failed: {
    status: 502,
    text: "The ACP agent {agent} failed: {problem}.",
    remedy: "{advice}.",
  },
  acp_unsupported: {
    status: 422,
    text: "The ACP agent {agent} does not support this request: {problem}.",
    remedy: "{advice}.",
  },
  acp_busy: {
    status: 429,
    text: "ACP max concurrent sessions reached ({active}/{limit}).",
    remedy: "Wait for a session to end, or increase acp.maxConcurrentSessions.",
  },
  internal: {
    status: 500,
    text: "Something went wrong inside Skein: {problem}.",
    remedy: "This is a bug. Please report it with the steps to reproduce it.",
  },
} as const satisfies Record<string, { status: number; text: string; remedy: string }>;

/** The stable name of an error, for programs. `docs/errors.md` lists them. */
export type ErrorCode = keyof typeof errorCatalogue;

type Placeholders<T extends string> = T extends `${string}{${infer Name}}${infer Rest}`
  ? Name | Placeholders<Rest>
  : never;

/** The details of an error, with one value for each placeholder. */
export type ErrorDetails<C extends ErrorCode> = Record<
  Placeholders<(typeof errorCatalogue)[C]["text"] | (typeof errorCatalogue)[C]["remedy"]>,
  string | number
>;

/**
 * An error with a stable `code`, the HTTP `status` it maps to, and a `remedy` that suggests the next step. The message
 * includes the remedy.
 *
 * @example
 * ```ts
 * import { parseKey, SkeinError } from "skein";
 * try {
 *   parseKey("agent:Some One:main");
 * } catch (error) {
 *   if (error instanceof SkeinError && error.code === "invalid_key") console.error(error.message);
 * }
 * ```
 */
export class SkeinError<C extends ErrorCode = ErrorCode> extends Error {
  override readonly name = "SkeinError";
  readonly code: C;
  readonly status: number;
  readonly remedy: string;
  readonly details: ErrorDetails<C>;

  constructor(code: C, details: ErrorDetails<C>, options?: ErrorOptions) {
    const { status, text, remedy } = errorCatalogue[code];
    const advice = fill(remedy, details);
    super(`${fill(text, details)} ${advice}`, options);
    this.code = code;
    this.status = status;
    this.remedy = advice;
    this.details = details;
  }
}

/**
 * Throw this from a hook to stop the run. Any other error from a hook is reported and then ignored.
 *
 * @example
 * ```ts
 * import { HookRegistry, HookStop } from "skein";
 * new HookRegistry().on("llm_input", ({ ctx }) => {
 *   if (ctx.userId === null) throw new HookStop("No requests without a user.");
 * });
 * ```
 */
export class HookStop extends Error {
  override readonly name = "HookStop";
}

/** Returns an error's message for readers who must not see paths on this machine, such as models. */
export function messageWithoutPaths(error: unknown): string {
  const text = thrownText(error);
  return error instanceof SkeinError && !("file" in error.details) ? text : withoutAbsolutePaths(text);
}

/** Returns an error's code, such as `ENOENT`, or "" if it has none. */
export function codeOf(error: unknown): string {
  const { code } = (error ?? {}) as { readonly code?: unknown };
  return typeof code === "string" ? code : "";
}

const maxCauses = 8;

/** Whether the process ran out of file descriptors. A retry might succeed. */
export function isOutOfDescriptors(error: unknown): boolean {
  return causesOf(error).some((each) => ["EMFILE", "ENFILE"].includes(codeOf(each)));
}

/** SQLite's primary result codes for a locked database, a failed read or write, and a full disk. */
const sqliteFaults = [5, 10, 13];

const databaseFaults = ["database_unavailable", "database_full", "database_read_only", "blobs_unavailable"];

/** PostgreSQL's code for a statement that waited too long for another transaction's lock. */
export const lockTimeoutCode = "55P03";

/**
 * Whether a database server or an object store cannot be used now, or data in it is locked. A retry might succeed.
 */
export function isDatabaseFault(error: unknown): boolean {
  return causesOf(error).some((each) => [...databaseFaults, lockTimeoutCode].includes(codeOf(each)));
}

/**
 * Whether the disk is full, read-only, broken or locked, or a database server cannot be used. A retry might succeed.
 */
export function isDiskFault(error: unknown): boolean {
  const codes = ["write_failed", "ENOSPC", "EDQUOT", "EROFS", "EIO", lockTimeoutCode, ...databaseFaults];
  return causesOf(error).some((each) => {
    const { errcode } = each as { readonly errcode?: unknown };
    return (
      codes.includes(codeOf(each)) || (typeof errcode === "number" && sqliteFaults.includes(errcode & 0xff))
    );
  });
}

/** Whether a fault affects every file, for example because the disk is full or read-only or `work.db` is unusable. */
export function isSharedFault(error: unknown): boolean {
  return causesOf(error).some(
    (each) =>
      ["ENOSPC", "EDQUOT", "EROFS", "EMFILE", "ENFILE", ...databaseFaults].includes(codeOf(each)) ||
      typeof (each as { readonly errcode?: unknown }).errcode === "number",
  );
}

/** Returns an error and all its causes. */
function causesOf(error: unknown, depth = 0): object[] {
  if (typeof error !== "object" || error === null || depth > maxCauses) return [];
  const { cause } = error as { readonly cause?: unknown };
  const inner = error instanceof AggregateError ? [cause, ...error.errors] : [cause];
  return [error, ...inner.flatMap((each) => causesOf(each, depth + 1))];
}

/** The advice in conflict errors. */
export const retryAdvice = "Nothing was changed. Read it again and retry the change if it still applies";

function fill(template: string, details: Readonly<Record<string, string | number>>): string {
  return template.replace(/\{(\w+)\}/g, (_, name: string) => inLine(String(details[name])));
}
