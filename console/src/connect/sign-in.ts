import type { SkeinClient } from "skein/client";
import { plainText } from "../ui/plain-text.ts";

/** The address of the gateway: where this page was loaded from. */
export const gatewayUrl = new URL(".", location.href).href.replace(/\/$/, "");

/** Why there is no token. `used`: the code of the link was used before, or has expired. */
export type SignedOut = "no-token" | "used" | "unreachable" | "ended";

/** Whom a token is for. */
export type Identity = Pick<SkeinClient["hello"], "userId" | "allUsers">;

/** A token that a link was exchanged for. */
export type LinkedToken = Identity & { readonly token: string };

/** Takes the code of a link out of the address at once, so that it is neither bookmarked nor shared. */
export function takeLinkCode(): string | null {
  const code = new URLSearchParams(location.hash.replace(/^#/, "")).get("code");
  if (code !== null) history.replaceState(history.state, "", `${location.pathname}${location.search}`);
  return code;
}

/**
 * Exchanges the code of a link. `null`: it was used before, or has expired. Rejects while the gateway does not answer, which
 * says nothing about the code.
 */
export async function exchangeCode(code: string): Promise<LinkedToken | null> {
  const response = await fetch(`${gatewayUrl}/link`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ code }),
    referrerPolicy: "no-referrer",
  });
  // A proxy may answer with a page of its own, which is not JSON.
  if (response.ok) return (await response.json()) as LinkedToken;
  if (response.status >= 500 || response.status === 429)
    throw new Error(`/link answered ${response.status}.`);
  return null;
}

export function isSameIdentity(one: Identity, other: Identity): boolean {
  return one.allUsers === other.allUsers && one.userId === other.userId;
}

/** Continues "signed in". */
export function identityText({ userId, allUsers }: Identity): string {
  if (allUsers) return "for all users";
  return userId === undefined ? "as the unnamed user" : `as ${plainText(userId)}`;
}
