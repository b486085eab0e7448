/**
 * Values that outlast a reload, for this tab or for the whole browser. A browser may refuse storage, or have no room left:
 * the page then works without them.
 */

export type StoredFor = "tab" | "browser";

// Even the property throws where storage is refused.
const storageOf = (area: StoredFor) => (area === "tab" ? sessionStorage : localStorage);

export function readStored(slot: string, area: StoredFor = "browser"): string | null {
  try {
    return storageOf(area).getItem(slot);
  } catch {
    return null;
  }
}

/** `null` removes the value. */
export function writeStored(slot: string, value: string | null, area: StoredFor = "browser"): void {
  try {
    if (value === null) storageOf(area).removeItem(slot);
    else storageOf(area).setItem(slot, value);
  } catch {
    // It is forgotten at the next reload.
  }
}
