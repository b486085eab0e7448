import { readStored, removeStored, writeStored } from "../ui/stored.ts";

/**
 * This tab's token. It is stored per tab, so that two users can be signed in at the same time. Another copy is stored
 * for tabs that are opened later. The storage key contains the path, because several gateways can share a host behind a
 * proxy.
 */

/** If storage is unavailable, the token works until the page is reloaded. */
let current: string | null = null;

const slot = `skein.token:${location.pathname}`;
/** The prefix of everything that this tab stores for its user. */
export const userSlots = `skein.user:${location.pathname}:`;

/** Returns `null` for a tab whose token is no longer valid, even if another tab has signed in as a different user. */
export function readToken(): string | null {
  return current ?? ((readStored(slot, "tab") ?? readStored(slot)) || null);
}

/** Ties a token to this tab. If another tab then signs in as a different user, a reload of this tab keeps its user. */
export function storeTabToken(token: string): void {
  current = token;
  writeStored(slot, token, "tab");
}

export function storeToken(token: string): void {
  storeTabToken(token);
  writeStored(slot, token);
}

/** Deletes a token. The token for new tabs is kept if another tab has since signed in as a different user. */
export function forgetToken(token: string): void {
  current = null;
  forgetUser();
  writeStored(slot, "", "tab");
  if (readStored(slot) === token) writeStored(slot, null);
}

/** Deletes everything that this tab has stored for its user. */
export function forgetUser(): void {
  removeStored(userSlots, "tab");
}
