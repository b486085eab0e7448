import { useCallback, useState, useSyncExternalStore } from "react";
import { useGateway } from "../connect/gateway.tsx";
import { userSlots } from "../connect/token-storage.ts";
import { idOf } from "../live/session-row.ts";
import { ownerOf } from "../paths.ts";
import { useSessionPlace } from "../ui/session-head.tsx";
import { readStored, writeStored } from "../ui/stored.ts";
import type { Attachment } from "./attachments.ts";
import { sizeOf } from "./attachments.ts";

/** A change to a queued message that has not been saved yet. */
export interface QueuedEdit {
  readonly text: string;
  /** The text that the change is based on. */
  readonly base: string;
  readonly isSaving: boolean;
}

/** What the user has written for a session but not sent yet. */
export interface Draft {
  readonly text: string;
  readonly attachments: readonly Attachment[];
  /** Kept until the gateway has responded. Sending again with the same key does not start a second run. */
  readonly sendKey: string | null;
  /**
   * Set while the message is being sent, even after the user has gone to another page. Aborting it keeps the message as
   * a draft.
   */
  readonly sending: AbortController | null;
  /** Why the message was not sent. */
  readonly error: string | null;
  /** Keyed by the queued message's run. */
  readonly edits: Readonly<Record<string, QueuedEdit>>;
}

const emptyDraft: Draft = { text: "", attachments: [], sendKey: null, sending: null, error: null, edits: {} };

/**
 * Keyed by the signed-in user, session and owner. A user who returns to a session finds the draft again. Another user
 * who signs in does not.
 */
const drafts = new Map<string, Draft>();
const listeners = new Set<() => void>();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

export type ChangeDraft = (change: (draft: Draft) => Partial<Draft>) => void;

/**
 * The part of a draft that survives a reload in this tab. Includes the send key, because the gateway might have
 * received the message before the reload.
 */
type StoredDraft = Pick<Draft, "text" | "sendKey" | "edits">;

/** Stored separately, so that typing does not write the attachments again. */
interface StoredFiles {
  readonly kept: readonly Attachment[];
  /** The names of the attachments that were too large. */
  readonly lost: readonly string[];
}

/** In characters. A tab can store about five million characters in all. */
const maxStoredFiles = 1_500_000;

const slotOf = (id: string) => `${userSlots}${id}`;
const filesSlotOf = (id: string) => `${userSlots}files\n${id}`;

function readDraft(id: string): Partial<Draft> {
  const stored = readStored(slotOf(id), "tab");
  const draft = stored === null ? {} : (JSON.parse(stored) as StoredDraft);
  const files = readStored(filesSlotOf(id), "tab");
  if (files === null) return draft;
  const { kept, lost } = JSON.parse(files) as StoredFiles;
  if (lost.length === 0) return { ...draft, attachments: kept };
  const error = `These attachments were too large to keep during the reload. Attach them again: ${lost.join(", ")}`;
  return { ...draft, attachments: kept, sendKey: null, error };
}

function storeDraft(id: string, { text, sendKey, edits }: Draft): void {
  const isEmpty = text === "" && sendKey === null && Object.keys(edits).length === 0;
  const stored: StoredDraft = { text, sendKey, edits };
  writeStored(slotOf(id), isEmpty ? null : JSON.stringify(stored), "tab");
}

function storeFiles(id: string, attachments: readonly Attachment[]): void {
  const kept: Attachment[] = [];
  const lost: string[] = [];
  let left = maxStoredFiles;
  for (const attachment of attachments) {
    left -= sizeOf(attachment);
    if (left >= 0) kept.push(attachment);
    else lost.push(attachment.name);
  }
  const write = (files: StoredFiles) => writeStored(filesSlotOf(id), JSON.stringify(files), "tab");
  if (attachments.length === 0) writeStored(filesSlotOf(id), null, "tab");
  else if (!write({ kept, lost })) write({ kept: [], lost: attachments.map(({ name }) => name) });
}

/** Records that the initial text was changed or sent, so that it does not come back. */
const startedSlot = "skein.started";

/**
 * Returns a session's draft and a function that changes it. The function works even after the composer has been
 * unmounted.
 */
export function useDraft(initialText: string): [Draft, ChangeDraft] {
  const { client } = useGateway();
  const place = useSessionPlace();
  const { allUsers, userId } = client.hello;
  const id = [allUsers ? "*" : (userId ?? ""), idOf({ ...place, userId: ownerOf(client, place) })].join("\n");
  const [initial] = useState((): Draft => {
    const text = readStored(startedSlot) === null ? initialText : "";
    return { ...emptyDraft, text, ...readDraft(id) };
  });
  const draft = useSyncExternalStore(subscribe, () => drafts.get(id) ?? initial);
  const change = useCallback(
    (edit: (draft: Draft) => Partial<Draft>) => {
      const before = drafts.get(id) ?? initial;
      const edited = edit(before);
      if (initialText !== "") writeStored(startedSlot, "yes");
      // A changed draft is a different message, which gets a new key.
      const isOther = edited.text !== undefined || edited.attachments !== undefined;
      const draft = { ...before, ...(isOther ? { sendKey: null } : {}), ...edited };
      drafts.set(id, draft);
      storeDraft(id, draft);
      // A dismissed error does not come back after a reload either.
      if (draft.attachments !== before.attachments || draft.error !== before.error)
        storeFiles(id, draft.attachments);
      for (const listener of [...listeners]) listener();
    },
    [id, initial, initialText],
  );
  return [draft, change];
}

/** Moves changes to messages that are no longer queued into the text of the next message. */
export function withLostEdits({ text, edits }: Draft, queued: readonly string[]): Partial<Draft> | null {
  const lost = Object.entries(edits).filter(([runId, { isSaving }]) => !isSaving && !queued.includes(runId));
  if (lost.length === 0) return null;
  const gone = new Set(lost.map(([runId]) => runId));
  return {
    text: [text, ...lost.map(([, edit]) => edit.text)].filter((part) => part.trim() !== "").join("\n\n"),
    edits: Object.fromEntries(Object.entries(edits).filter(([runId]) => !gone.has(runId))),
    error: "The message that you were editing has started or was canceled. Your text is in the composer.",
  };
}

/** Text written while the message was being sent is kept. */
export function withoutSent(draft: Draft, sent: Draft): Partial<Draft> {
  return {
    text: draft.text === sent.text ? "" : draft.text,
    attachments: draft.attachments.filter((attachment) => !sent.attachments.includes(attachment)),
    sendKey: null,
    sending: null,
    error: null,
  };
}
