import { SkeinError } from "../core/errors.ts";
import { parseAgentId, sessionIdProblem } from "../core/names.ts";
import { isRecord } from "../core/shape.ts";
import type { SessionMeta } from "../store/contract.ts";
import type { NotKept } from "./imported.ts";
import { Losses } from "./imported.ts";
import type { JsonObject } from "./json-lines.ts";
import { parseObject, textField, timeField } from "./json-lines.ts";
import { mapOpenclawKey } from "./openclaw-keys.ts";
import { openclawMeta } from "./openclaw-meta.ts";

/** One session to be imported. */
export interface PlannedSession {
  /** As `sessions.json` has it. */
  readonly sourceKey: string;
  /** As we have it: always a key of ours, and of no other row. */
  readonly key: string;
  /** What became of the key, where it is not the same; `null` where it is. */
  readonly keyNote: string | null;
  readonly sessionId: string;
  /** The transcript, a name within the folder of `sessions.json`; whether it is there is for the caller to see. */
  readonly file: string;
  readonly updatedAt: number | null;
  readonly meta: SessionMeta;
  readonly notKept: readonly NotKept[];
}

export interface OpenclawPlan {
  readonly sessions: readonly PlannedSession[];
  readonly refused: readonly { readonly sourceKey: string; readonly problem: string }[];
}

/**
 * Reads the content of an OpenClaw folder's `sessions.json` into a plan of what to import. Nothing in a row can spoil
 * another one; only a file that is no JSON object is refused as a whole, with `unreadable_file`.
 */
export function planOpenclawFolder(
  content: string | Uint8Array,
  options: { readonly agentId?: string } = {},
): OpenclawPlan {
  const text = typeof content === "string" ? content : new TextDecoder().decode(content);
  const document = parseObject(text.replace(/^\ufeff/, ""));
  if (document === null) {
    const advice = "Check that the folder is one of OpenClaw's, or import its transcripts one by one";
    throw new SkeinError("unreadable_file", {
      file: "sessions.json",
      problem: "it is no JSON object",
      advice,
    });
  }
  return new Planner(document, parseAgentId(options.agentId ?? "main")).plan();
}

interface Row {
  readonly sourceKey: string;
  readonly value: JsonObject;
  readonly sessionId: string;
  readonly file: string;
}

interface ClaimedKey {
  readonly row: Row;
  readonly key: string;
  readonly agentId: string;
  readonly note: string | null;
}

class Planner {
  readonly #document: JsonObject;
  readonly #agentId: string;
  readonly #refused: { sourceKey: string; problem: string }[] = [];
  readonly #rows = new Map<string, Row>();
  readonly #keyOf = new Map<string, string>();
  /** Keys of sessions that are imported under another one. */
  readonly #secondKeys = new Map<string, string>();
  readonly #takenKeys = new Set<string>();
  readonly #takenLabels = new Set<string>();

  constructor(document: JsonObject, agentId: string) {
    this.#document = document;
    this.#agentId = agentId;
  }

  plan(): OpenclawPlan {
    for (const [sourceKey, value] of Object.entries(this.#document)) {
      const row = readRow(sourceKey, value);
      if ("problem" in row) this.#refused.push({ sourceKey: sourceKey.slice(0, 200), problem: row.problem });
      else this.#rows.set(sourceKey, row);
    }
    const claims = this.#oncePerSession().flatMap((row) => this.#claimKey(row) ?? []);
    const sessions = claims.map((claim) => this.#session(claim));
    return { sessions, refused: this.#refused };
  }

  /** A job's run has a key of its own for the same session; the job's key wins, else the first. */
  #oncePerSession(): Row[] {
    const isRun = ({ sourceKey }: Row) => /:cron:.*:run:/.test(sourceKey);
    const chosen = new Map<string, Row>();
    for (const row of this.#rows.values()) {
      const id = row.sessionId.toLowerCase();
      const known = chosen.get(id);
      if (known === undefined || (isRun(known) && !isRun(row))) chosen.set(id, row);
    }
    return [...this.#rows.values()].filter((row) => {
      const kept = chosen.get(row.sessionId.toLowerCase());
      if (kept === row || kept === undefined) return true;
      const problem = `it is a second key of the session that is imported under ${kept.sourceKey}`;
      this.#refused.push({ sourceKey: row.sourceKey, problem });
      this.#secondKeys.set(row.sourceKey, kept.sourceKey);
      return false;
    });
  }

  /** The key that it maps to, or one by its session id; `null` if that is taken too. */
  #claimKey(row: Row): ClaimedKey | null {
    const spawnedBy = textField(row.value, "spawnedBy") ?? "";
    const mapped = mapOpenclawKey(row.sourceKey, {
      agentId: this.#agentId,
      channel: textField(row.value, "channel") ?? textField(row.value, "lastChannel"),
      parentSessionId: this.#rows.get(spawnedBy)?.sessionId ?? null,
    });
    const { agentId } = mapped;
    const free = mapped.key !== null && !this.#takenKeys.has(mapped.key);
    const key = free && mapped.key !== null ? mapped.key : `agent:${agentId}:session:${row.sessionId}`;
    const why = mapped.key === null ? mapped.problem : "another row has that key";
    if (this.#takenKeys.has(key)) {
      this.#refused.push({ sourceKey: row.sourceKey, problem: `another row has the key ${key}` });
      return null;
    }
    this.#takenKeys.add(key);
    this.#keyOf.set(row.sourceKey, key);
    const note = free ? `It is written ${key} here.` : `It got ${key} instead: ${why}.`;
    return { row, key, agentId, note: key === row.sourceKey ? null : note };
  }

  #session({ row, key, agentId, note }: ClaimedKey): PlannedSession {
    const losses = new Losses();
    const { label, ...rest } = openclawMeta(row.value, losses);
    const spawner = textField(row.value, "spawnedBy");
    const spawnedBy = this.#keyOf.get(this.#secondKeys.get(spawner ?? "") ?? spawner ?? "");
    if (spawner !== null && spawnedBy === undefined)
      losses.add("The session that spawned this one is not in the file.", spawner.slice(0, 200));
    const claim = JSON.stringify([agentId, label]);
    const free = label !== undefined && !this.#takenLabels.has(claim);
    if (label !== undefined && !free) losses.add("A label that another session has was left out.", label);
    this.#takenLabels.add(claim);
    const meta: SessionMeta = {
      ...(free ? { label } : {}),
      ...rest,
      ...(spawnedBy === undefined ? {} : { spawnedBy }),
    };
    return {
      sourceKey: row.sourceKey,
      key,
      keyNote: note,
      sessionId: row.sessionId,
      file: row.file,
      updatedAt: timeField(row.value, "updatedAt"),
      meta,
      notKept: losses.list(),
    };
  }
}

const longestKey = 4096;
const dangerous = new Set(["__proto__", "constructor", "prototype"]);

function readRow(sourceKey: string, value: unknown): Row | { problem: string } {
  if (sourceKey.length > longestKey) return { problem: `its key is longer than ${longestKey} characters` };
  if (dangerous.has(sourceKey) || sourceKey.trim() === "") return { problem: "its key is none" };
  if (!isRecord(value)) return { problem: "it is no object" };
  const sessionId = textField(value, "sessionId");
  if (sessionId === null) return { problem: "it names no session id" };
  const wrongId = sessionIdProblem(sessionId);
  if (wrongId !== null) return { problem: `its session id is not valid: ${wrongId}` };
  const file = fileOf(value.sessionFile, sessionId);
  return file === null
    ? { problem: "its file is not one of the folder" }
    : { sourceKey, value, sessionId, file };
}

/** The folder may have been moved: of a whole path the name counts, looked for beside `sessions.json`. */
function fileOf(sessionFile: unknown, sessionId: string): string | null {
  if (sessionFile === undefined || sessionFile === null) return `${sessionId}.jsonl`;
  if (typeof sessionFile !== "string" || sessionFile.length > longestKey) return null;
  const parts = sessionFile.split(/[\\/]/);
  if (parts.includes("..")) return null;
  const whole = sessionFile.startsWith("/") || /^[A-Za-z]:[\\/]/.test(sessionFile);
  const name = parts.at(-1) ?? "";
  if (parts.length > 1 && !whole) return null;
  return /^[A-Za-z0-9][\w.%+-]{0,240}\.jsonl$/.test(name) ? name : null;
}
