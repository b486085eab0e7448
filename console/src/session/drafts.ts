import { useCallback, useState, useSyncExternalStore } from "react";
import { idOf } from "../live/session-row.ts";
import type { SessionPlace } from "../paths.ts";
import type { Attachment } from "./attachments.ts";

/** A message that has not been sent yet. */
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
}

const emptyDraft: Draft = { text: "", attachments: [], sendKey: null, sending: null, error: null };

/**
 * Keyed by session and owner, until the page is reloaded. A user who looks at another session finds the draft again,
 * but another user who signs in does not.
 */
const drafts = new Map<string, Draft>();
const listeners = new Set<() => void>();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

/**
 * Returns a session's draft and a function that changes it. The function works even after the composer has been
 * unmounted.
 */
export function useDraft(
  place: Required<SessionPlace>,
  initialText: string,
): [Draft, (change: (draft: Draft) => Partial<Draft>) => void] {
  const id = idOf(place);
  const [initial] = useState((): Draft => ({ ...emptyDraft, text: initialText }));
  const draft = useSyncExternalStore(subscribe, () => drafts.get(id) ?? initial);
  const change = useCallback(
    (edit: (draft: Draft) => Partial<Draft>) => {
      const before = drafts.get(id) ?? initial;
      const edited = edit(before);
      // A different text is a different message with a different key.
      const isOther = edited.text !== undefined || edited.attachments !== undefined;
      drafts.set(id, { ...before, ...(isOther ? { sendKey: null } : {}), ...edited });
      for (const listener of [...listeners]) listener();
    },
    [id, initial],
  );
  return [draft, change];
}

/** Text written while the message was being sent is kept. */
export function withoutSent(draft: Draft, sent: Draft): Draft {
  return {
    text: draft.text === sent.text ? "" : draft.text,
    attachments: draft.attachments.filter((attachment) => !sent.attachments.includes(attachment)),
    sendKey: null,
    sending: null,
    error: null,
  };
}
