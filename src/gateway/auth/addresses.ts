import { BlockList, isIP } from "node:net";
import { isNetwork } from "../../config/sections/gateway.ts";

const mapped = /^(?:0:){5}ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/;

/**
 * Returns the canonical form of an address without its zone. IPv4-mapped addresses are returned as IPv4. Returns `null`
 * if the text is not an address.
 */
export function normalizeAddress(text: string): string | null {
  const address = text.replace(/%[\w.~-]+$/, "");
  switch (isIP(address)) {
    case 4:
      return address;
    case 6:
      return unmapped(groupsOf(address).join(":"));
    default:
      return null;
  }
}

/**
 * Returns the unit for which failed attempts are counted: an IPv4 address, or the /64 network of an IPv6 address,
 * because one client usually controls an entire /64. All values that are not addresses share one unit.
 */
export function networkOf(text: string): string {
  const address = normalizeAddress(text);
  if (address === null) return "unknown";
  return address.includes(":") ? `${address.split(":").slice(0, 4).join(":")}::/64` : address;
}

export function isLoopback(text: string): boolean {
  const address = normalizeAddress(text);
  return address === "0:0:0:0:0:0:0:1" || (address?.startsWith("127.") ?? false);
}

/** Returns a predicate that checks whether an address is in one of the networks. Malformed networks match nothing. */
export function matchNetworks(networks: readonly string[]): (address: string) => boolean {
  const list = new BlockList();
  for (const network of networks.filter(isNetwork)) {
    const [given = "", bits] = network.split("/");
    const address = bits === undefined ? (normalizeAddress(given) ?? given) : given;
    const family = isIP(address) === 4 ? "ipv4" : "ipv6";
    list.addSubnet(address, Number(bits ?? (family === "ipv4" ? 32 : 128)), family);
  }
  return (text) => {
    const address = normalizeAddress(text);
    return address !== null && list.check(address, address.includes(":") ? "ipv6" : "ipv4");
  };
}

/** Returns the eight groups of a valid IPv6 address, without leading zeros. */
function groupsOf(address: string): string[] {
  const plain = address
    .toLowerCase()
    .replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_, a: string, b: string, c: string, d: string) =>
      [Number(a) * 256 + Number(b), Number(c) * 256 + Number(d)].map((each) => each.toString(16)).join(":"),
    );
  const [before = "", behind] = plain.split("::");
  const split = (part: string) => (part === "" ? [] : part.split(":"));
  const left = split(before);
  const right = split(behind ?? "");
  const zeros = Array.from({ length: 8 - left.length - right.length }, () => "0");
  return [...left, ...zeros, ...right].map((group) => Number.parseInt(group, 16).toString(16));
}

function unmapped(address: string): string {
  const [, high, low] = mapped.exec(address) ?? [];
  if (high === undefined || low === undefined) return address;
  const [a, b] = [Number.parseInt(high, 16), Number.parseInt(low, 16)];
  return [a >> 8, a & 255, b >> 8, b & 255].join(".");
}

/** More hops than any real chain of proxies has. */
const mostHops = 16;

/**
 * Returns the client's address. `X-Forwarded-For` is read from the end. Only values that a trusted proxy added are
 * used, because a client can forge the others.
 */
export function resolveClientAddress(
  peer: string,
  forwardedFor: string | readonly string[] | undefined,
  isTrusted: (address: string) => boolean,
): string {
  let client = normalizeAddress(peer) ?? "unknown";
  if (forwardedFor === undefined) return client;
  const hops = [forwardedFor].flat().join(",").split(",").slice(-mostHops);
  for (const hop of hops.toReversed()) {
    const address = isTrusted(client) ? normalizeAddress(withoutPort(hop.trim())) : null;
    if (address === null) return client;
    client = address;
  }
  return client;
}

/** Some proxies append the port: `192.0.2.1:4711`, `[2001:db8::1]:4711`. */
function withoutPort(text: string): string {
  const [, bracketed] = /^\[([^\]]*)\](?::\d{1,5})?$/.exec(text) ?? [];
  return bracketed ?? text.replace(/^(\d+\.\d+\.\d+\.\d+):\d{1,5}$/, "$1");
}
