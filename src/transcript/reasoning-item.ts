/** A reasoning item of the Responses API, as the signature of a thinking block holds it. */
export interface ReasoningItem {
  readonly id: string;
  readonly encrypted_content: string;
}

/** `null`: the signature is none, or nothing that could be sent back without being stored there. */
export function readReasoningItem(signature: string | undefined): ReasoningItem | null {
  if (typeof signature !== "string" || !signature.startsWith("{")) return null;
  try {
    const item = JSON.parse(signature) as Partial<ReasoningItem & { type: unknown }> | null;
    if (item?.type !== "reasoning") return null;
    if (typeof item.id !== "string" || !/^rs[A-Za-z0-9_-]{1,62}$/.test(item.id)) return null;
    const sealed = item.encrypted_content;
    return typeof sealed === "string" && sealed !== "" ? { id: item.id, encrypted_content: sealed } : null;
  } catch {
    return null;
  }
}
