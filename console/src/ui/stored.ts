/**
 * Values that survive a reload, for this tab or for the whole browser. If a browser denies storage or has no space
 * left, the page works without them.
 */

export type StoredFor = "tab" | "browser";

// If storage is denied, even accessing the property throws.
const storageOf = (area: StoredFor) => (area === "tab" ? sessionStorage : localStorage);

export function readStored(slot: string, area: StoredFor = "browser"): string | null {
  try {
    return storageOf(area).getItem(slot);
  } catch {
    return null;
  }
}

/** `null` removes the value. Returns `false` if the value could not be stored and will be lost on the next reload. */
export function writeStored(slot: string, value: string | null, area: StoredFor = "browser"): boolean {
  try {
    if (value === null) storageOf(area).removeItem(slot);
    else storageOf(area).setItem(slot, value);
    return true;
  } catch {
    return false;
  }
}

/** Removes the values of all slots that begin with a prefix. */
export function removeStored(prefix: string, area: StoredFor): void {
  try {
    for (const slot of Object.keys(storageOf(area)))
      if (slot.startsWith(prefix)) storageOf(area).removeItem(slot);
  } catch {
    // Without storage, there are no values.
  }
}
