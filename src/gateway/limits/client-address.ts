import { plainAddress } from "./addresses.ts";

/** So many hops are looked at: nobody has more proxies of their own. */
const mostHops = 16;

/**
 * Whose request it is. What `X-Forwarded-For` says counts only as far as proxies of ours said it: from its end backwards,
 * each address behind a trusted one. Everything before that the client may have made up.
 */
export function clientAddress(
  peer: string,
  forwardedFor: string | readonly string[] | undefined,
  isTrusted: (address: string) => boolean,
): string {
  let client = plainAddress(peer) ?? "unknown";
  if (forwardedFor === undefined) return client;
  const hops = [forwardedFor].flat().join(",").split(",").slice(-mostHops);
  for (const hop of hops.toReversed()) {
    const address = isTrusted(client) ? plainAddress(withoutPort(hop.trim())) : null;
    if (address === null) return client;
    client = address;
  }
  return client;
}

/** Some proxies add the port: `192.0.2.1:4711`, `[2001:db8::1]:4711`. */
function withoutPort(text: string): string {
  const [, bracketed] = /^\[([^\]]*)\](?::\d{1,5})?$/.exec(text) ?? [];
  return bracketed ?? text.replace(/^(\d+\.\d+\.\d+\.\d+):\d{1,5}$/, "$1");
}
