import type { SkeinClient } from "skein/client";
import { plainText } from "../ui/plain-text.ts";

/** The gateway's URL, which is where this page was loaded from. */
export const gatewayUrl = new URL(".", location.href).href.replace(/\/$/, "");

/** Why there is no token. `used` means that the link's code has already been used or has expired. */
export type SignedOut = "no-token" | "used" | "unreachable" | "invalid" | "ended" | "left";

/** The user that a token belongs to. */
export type Identity = Pick<SkeinClient["hello"], "userId" | "allUsers">;

/** A token obtained in exchange for a link. */
export type LinkedToken = Identity & { readonly token: string };

/** Removes a link's code from the URL immediately, so that it is neither bookmarked nor shared. */
export function takeLinkCode(): string | null {
  const code = new URLSearchParams(location.hash.replace(/^#/, "")).get("code");
  if (code !== null) history.replaceState(history.state, "", `${location.pathname}${location.search}`);
  return code;
}

/**
 * Exchanges a link's code for a token. Returns `null` if the code has already been used or has expired. Rejects if the
 * gateway does not respond, which does not invalidate the code.
 */
export async function exchangeCode(code: string): Promise<LinkedToken | null> {
  const response = await fetch(`${gatewayUrl}/link`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ code }),
    referrerPolicy: "no-referrer",
  });
  // A proxy might respond with its own page, which is not JSON.
  if (response.ok) return (await response.json()) as LinkedToken;
  if (response.status >= 500 || response.status === 429)
    throw new Error(`/link answered ${response.status}.`);
  return null;
}

export function isSameIdentity(one: Identity, other: Identity): boolean {
  return one.allUsers === other.allUsers && one.userId === other.userId;
}

/** Completes the phrase "signed in". */
export function identityText({ userId, allUsers }: Identity): string {
  if (allUsers) return "for all users";
  return userId === undefined ? "as the default user" : `as ${plainText(userId)}`;
}
