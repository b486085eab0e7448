import { useReducer, useState } from "react";
import { errorText, useChange, useGateway } from "../connect/gateway.tsx";
import { idOf } from "../live/session-row.ts";
import type { SessionPlace } from "../paths.ts";
import { ownerOf } from "../paths.ts";

interface LeafMove {
  readonly from: string | null;
  readonly to: string | null;
  /** The beginning of the entry that the conversation continues from. */
  readonly text: string;
}

/** Keyed by session and owner. A move can be undone from every view of the session. */
const moves = new Map<string, LeafMove>();

interface LeafMoves {
  /** The last move, until another change to the conversation. */
  readonly move: LeafMove | null;
  readonly error: string | null;
  moveTo(entryId: string, text: string): Promise<void>;
  undo(): Promise<void>;
}

/** Continues a session from another entry, with undo. `leafId` is the session's current leaf. */
export function useLeafMoves(place: SessionPlace, leafId: string | null): LeafMoves {
  const { client } = useGateway();
  const change = useChange();
  const id = idOf({ ...place, userId: ownerOf(client, place) });
  const [, render] = useReducer((count: number) => count + 1, 0);
  const [error, setError] = useState<string | null>(null);
  const last = moves.get(id) ?? null;
  const move = last?.to === leafId ? last : null;
  const go = async (to: string | null, next: LeafMove | null) => {
    setError(null);
    try {
      await change("sessions.branch", { ...place, entryId: to });
      if (next === null) moves.delete(id);
      else moves.set(id, next);
      render();
    } catch (failure) {
      setError(errorText(failure));
    }
  };
  return {
    move,
    error,
    moveTo: (to, text) => go(to, { from: leafId, to, text }),
    undo: async () => (move === null ? undefined : go(move.from, null)),
  };
}
