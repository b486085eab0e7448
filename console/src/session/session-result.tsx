import { Link } from "wouter";
import { useCall } from "../connect/gateway.tsx";
import { useSessionRow } from "../frame.tsx";
import { rowName, stateWord } from "../live/session-row.ts";
import type { SessionPlace } from "../paths.ts";
import { sessionPath, userParam } from "../paths.ts";
import { Foldable } from "../ui/foldable.tsx";
import { oneLine } from "../ui/plain-text.ts";
import { previewLine } from "../ui/preview.ts";
import { useSessionPlace } from "../ui/session-head.tsx";
import { StoredText } from "./content-blocks.tsx";
import styles from "./entry-row.module.css";
import type { StoredPart } from "./rows.ts";

interface SessionReference {
  readonly key: string;
  readonly label?: string;
}

/** The result of a session tool as a sentence. */
export interface SessionResult {
  /** The words before the session's name, or all words if there is no session. */
  readonly text: string;
  readonly session?: SessionReference;
  /** The words after the name. */
  readonly rest?: string;
  readonly isError?: boolean;
}

type Fields = Readonly<Record<string, unknown>>;

const endings: Readonly<Record<string, string>> = {
  error: "failed",
  timeout: "timed out",
  aborted: "was aborted",
};

const describers: Readonly<Record<string, (result: Fields) => SessionResult | null>> = {
  sessions_spawn: (result) =>
    about("Started", result, "childSessionKey", endingOf(result, result.outcome, result.result)),
  sessions_send: (result) =>
    result.status === "timeout"
      ? about("Sent to", result, "sessionKey", "no reply yet")
      : about("Sent to", result, "sessionKey", endingOf(result, result.status, result.reply)),
  sessions_yield: ({ waitingFor, message }) => {
    const reason = message === "Turn yielded." ? "" : firstWords(message);
    return list(waitingFor, "Waiting for", "run", reason);
  },
  sessions_list: ({ sessions }) => list(sessions, "Found", "session"),
  session_list: ({ sessions }) => list(sessions, "Found", "session"),
  session_search: ({ hits }) => list(hits, "Found", "passage"),
  agents_list: ({ agents }) => list(agents, "Found", "agent"),
  sessions_history: (result) => {
    const read = list(result.messages, "Read", "message");
    return read && about(`${read.text} from`, result, "sessionKey");
  },
  session_status: (result) => about("Read the status of", result, "sessionKey"),
  subagents: (result) =>
    result.action === "list"
      ? list(result.active, "Found", "active helper")
      : about(result.action === "kill" ? "Stopped" : "Sent to", result, "sessionKey"),
};

/** Describes a session tool's result. Returns `null` for other tools and for results that are not as expected. */
export function describeResult(toolName: string, text: string): SessionResult | null {
  if (!Object.hasOwn(describers, toolName)) return null;
  const result = readFields(text);
  if (result === null) return null;
  if ((result.status === "error" || result.status === "forbidden") && typeof result.error === "string")
    return { text: oneLine(result.error, 160), isError: true };
  return describers[toolName]?.(result) ?? null;
}

function readFields(text: string): Fields | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Fields) : null;
  } catch {
    return null;
  }
}

function about(text: string, result: Fields, keyField: string, rest = ""): SessionResult | null {
  const { [keyField]: key, label } = result;
  if (typeof key !== "string" || key === "") return null;
  return { text, session: { key, ...(typeof label === "string" ? { label } : {}) }, rest };
}

function list(items: unknown, text: string, noun: string, reason = ""): SessionResult | null {
  if (!Array.isArray(items)) return null;
  const count = items.length === 1 ? `1 ${noun}` : `${items.length.toLocaleString("en")} ${noun}s`;
  return { text: `${text} ${count}${reason === "" ? "" : `: ${reason}`}` };
}

/** Describes how the run that the tool waited for ended. */
function endingOf({ error }: Fields, outcome: unknown, reply: unknown): string {
  const isKnown = typeof outcome === "string" && Object.hasOwn(endings, outcome);
  const ending = isKnown ? endings[outcome] : undefined;
  if (ending !== undefined) return typeof error === "string" ? `${ending}: ${oneLine(error, 160)}` : ending;
  return typeof reply === "string" && reply !== "" ? firstWords(reply) : "";
}

function firstWords(text: unknown): string {
  return typeof text === "string" ? previewLine(text, 160) : "";
}

/** One line that says what a session tool did. The link comes from the session's key. The raw result is folded. */
export function SessionResultLine({
  result,
  raw,
}: {
  readonly result: SessionResult;
  readonly raw: StoredPart;
}) {
  const { text, session, rest = "", isError = false } = result;
  return (
    <div className={styles.result} data-error={isError || undefined}>
      <p>
        {text} {session !== undefined && <ResultSession session={session} hasEnding={rest !== ""} />}
        {rest !== "" && ` · ${rest}`}
      </p>
      <Foldable name="result" title="JSON">
        <StoredText {...raw} />
      </Foldable>
    </div>
  );
}

function ResultSession({
  session: { key, label },
  hasEnding,
}: {
  readonly session: SessionReference;
  readonly hasEnding: boolean;
}) {
  const here = useSessionPlace();
  const { data } = useCall("sessions.get", here, { staleMs: 1000 });
  // Tools use a short key for a helper.
  const helper = /^subagent:([^:]+)$/.exec(key)?.[1];
  const child = data?.childSessions?.find((each) => helper !== undefined && each.endsWith(`:${helper}`));
  const place: SessionPlace = { key: child ?? key, ...userParam(here) };
  const row = useSessionRow(place);
  const state = row === null || hasEnding ? "" : stateWord(row);
  return (
    <>
      <Link href={sessionPath(place)}>
        <bdi>{rowName(row ?? { key, ...(label === undefined ? {} : { label }) })}</bdi>
      </Link>
      {state !== "" && ` · ${state}`}
    </>
  );
}
