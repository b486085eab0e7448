import { readToken, storeToken } from "./token-storage.ts";

/** The address of the gateway: where this page was loaded from. */
export const gatewayUrl = new URL(".", location.href).href.replace(/\/$/, "");

/** Why there is no token. `used`: the code of the link was used before, or has expired. */
export type SignedOut = "no-token" | "used" | "unreachable" | "ended";

const readLinkCode = () => new URLSearchParams(location.hash.replace(/^#/, "")).get("code");

/** Takes the code out of the address at once, so that it is neither bookmarked nor shared. */
export function takeLinkCode(): string | null {
  const code = readLinkCode();
  if (code !== null) history.replaceState(history.state, "", `${location.pathname}${location.search}`);
  return code;
}

// A link that is opened in a tab with the console changes only the fragment.
addEventListener("hashchange", () => {
  if (readLinkCode() !== null) location.reload();
});

/** Exchanges the code of a link for a token. A used code still signs in a browser that has a token. */
export async function findToken(code: string | null): Promise<{ token: string } | { signedOut: SignedOut }> {
  const stored = readToken();
  if (code === null) return stored === null ? { signedOut: "no-token" } : { token: stored };
  let signedOut: SignedOut = "unreachable";
  try {
    const response = await fetch(`${gatewayUrl}/link`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ code }),
      referrerPolicy: "no-referrer",
    });
    if (response.ok) {
      // A proxy may answer with a page of its own, which is not JSON.
      const { token } = (await response.json()) as { token: string };
      storeToken(token);
      return { token };
    }
    // Too many requests, or a proxy whose gateway is restarting, say nothing about the code.
    if (response.status < 500 && response.status !== 429) signedOut = "used";
  } catch {
    // The gateway did not answer.
  }
  return stored === null ? { signedOut } : { token: stored };
}
