/**
 * The token of this tab. It is kept per tab, so that two users signed in side by side stay apart, and once more for
 * tabs that are opened later. The slot carries the path, because several gateways may share a host behind a proxy.
 */

const slot = `skein.token:${location.pathname}`;

export function readToken(): string | null {
  return sessionStorage.getItem(slot) ?? localStorage.getItem(slot);
}

/** Ties a token to this tab, so that a reload stays with its user after another tab has signed in as someone else. */
export function storeTabToken(token: string): void {
  sessionStorage.setItem(slot, token);
}

export function storeToken(token: string): void {
  sessionStorage.setItem(slot, token);
  localStorage.setItem(slot, token);
}

/** Forgets a token. The one for new tabs stays if another tab has signed in as someone else since. */
export function forgetToken(token: string): void {
  sessionStorage.removeItem(slot);
  if (localStorage.getItem(slot) === token) localStorage.removeItem(slot);
}
