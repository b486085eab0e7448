import { readStored, writeStored } from "../ui/stored.ts";

/**
 * The token of this tab. It is kept per tab, so that two users signed in side by side stay apart, and once more for
 * tabs that are opened later. The slot carries the path, because several gateways may share a host behind a proxy.
 */

const slot = `skein.token:${location.pathname}`;

/** A tab whose token has ended has none, even if another tab has signed in as someone else. */
export function readToken(): string | null {
  return (readStored(slot, "tab") ?? readStored(slot)) || null;
}

/** Ties a token to this tab, so that a reload stays with its user after another tab has signed in as someone else. */
export function storeTabToken(token: string): void {
  writeStored(slot, token, "tab");
}

export function storeToken(token: string): void {
  writeStored(slot, token, "tab");
  writeStored(slot, token);
}

/** Forgets a token. The one for new tabs stays if another tab has signed in as someone else since. */
export function forgetToken(token: string): void {
  writeStored(slot, "", "tab");
  if (readStored(slot) === token) writeStored(slot, null);
}
