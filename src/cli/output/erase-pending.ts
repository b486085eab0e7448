import type { AnswerLine } from "./answer.ts";

/** What is said where another process keeps bytes of what was removed. */
export function pendingLines({ erasePending }: { readonly erasePending?: true | undefined }): AnswerLine[] {
  if (erasePending !== true) return [];
  return ["another process is reading the databases: the last bytes are erased as soon as it has ended"];
}
