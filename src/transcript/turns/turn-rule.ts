import type { TranscriptMessage } from "../contract.ts";

/** What a turn rule does: the very same array when there is nothing to do. */
export type TurnRule = (
  messages: readonly TranscriptMessage[],
  tell: (kind: string, note: string, message?: TranscriptMessage) => void,
) => readonly TranscriptMessage[];
