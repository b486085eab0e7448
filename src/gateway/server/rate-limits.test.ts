import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { matchNetworks, networkOf, normalizeAddress, resolveClientAddress } from "../auth/addresses.ts";
import { FailedAttempts, holdFor, OpenCounter, RequestRateLimiter } from "./rate-limits.ts";

describe("addresses", () => {
  test.each([
    ["192.0.2.1", "192.0.2.1"],
    ["::ffff:192.0.2.1", "192.0.2.1"],
    ["::FFFF:c000:201", "192.0.2.1"],
    ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
    ["2001:0DB8:0001:0002::9", "2001:db8:1:2::/64"],
    ["fe80::1%eth0", "fe80:0:0:0::/64"],
    ["::1", "0:0:0:0::/64"],
    ["", "unknown"],
    ["evil", "unknown"],
    ["1.2.3.4.5", "unknown"],
  ])("[GSA11] %j is counted as %s", (address, network) => {
    expect(networkOf(address)).toBe(network);
  });

  test("[GSA11] every IPv6 address has one spelling", () => {
    fc.assert(
      fc.property(fc.ipV6(), (address) => {
        const plain = normalizeAddress(address) ?? "";
        expect(normalizeAddress(plain)).toBe(plain);
        expect(plain.includes(".") || plain.split(":").length === 8).toBe(true);
      }),
    );
  });

  const trusted = matchNetworks(["10.0.0.0/8", "::1", "::ffff:127.0.0.1", "nonsense", "1.2.3.4/99"]);
  test.each<[string, string | string[] | undefined, string]>([
    ["203.0.113.9", "198.51.100.1", "203.0.113.9"],
    ["10.0.0.1", undefined, "10.0.0.1"],
    ["10.0.0.1", "198.51.100.1", "198.51.100.1"],
    ["::ffff:10.0.0.1", "198.51.100.1:4711", "198.51.100.1"],
    ["127.0.0.1", "[2001:db8::1]:99", "2001:db8:0:0:0:0:0:1"],
    ["10.0.0.1", "6.6.6.6, 198.51.100.1, 10.0.0.2", "198.51.100.1"],
    ["10.0.0.1", ["6.6.6.6", "198.51.100.1"], "198.51.100.1"],
    ["10.0.0.1", "198.51.100.1, nonsense", "10.0.0.1"],
    ["10.0.0.1", "", "10.0.0.1"],
    ["10.0.0.1", Array.from({ length: 5000 }, () => "10.0.0.3").join(","), "10.0.0.3"],
    ["1.2.3.4", "6.6.6.6", "1.2.3.4"],
    ["", "6.6.6.6", "unknown"],
  ])("[GSA12] from %s, forwarded for %.60j: %s", (peer, forwarded, expected) => {
    expect(resolveClientAddress(peer, forwarded, trusted)).toBe(expected);
  });
});

describe("failed attempts", () => {
  test("[GSA11] are delayed more each time, up to a limit, and expire over time", () => {
    let now = 1000;
    const tries = new FailedAttempts({ clock: { now: () => now } });
    const fail = (address = "2001:db8::1") => {
      const { holdMs, done } = tries.failed(address);
      done();
      return holdMs;
    };
    const holds = Array.from({ length: 20 }, () => fail());
    expect(holds.slice(0, 8)).toEqual([0, 0, 0, 0, 0, 50, 100, 200]);
    expect(holds.toSorted((a, b) => a - b)).toEqual(holds);
    expect(holds.at(-1)).toBe(5000);
    expect(fail("2001:db8::2")).toBe(5000);
    expect(fail("2001:db8:0:1::1")).toBe(0);
    now += 60_000;
    expect(fail()).toBeLessThan(5000);
    now += 10 * 60_000;
    expect(fail()).toBe(0);
    now -= 5 * 60_000;
    expect(fail()).toBe(0);
    expect(holdFor(1e9)).toBe(5000);
  });

  test("[GSA11] of a million addresses take no more memory than those of a few", () => {
    const tries = new FailedAttempts({ clock: { now: () => 0 }, mostAddresses: 100 });
    for (let at = 0; at < 1_000_000; at++) tries.failed(`${at >> 16}.${(at >> 8) & 255}.${at & 255}.1`);
    expect(tries.size).toBe(100);
  });

  test("[GSA11] a limited number of responses is delayed; the rest are sent at once", () => {
    const tries = new FailedAttempts({ clock: { now: () => 0 }, mostHeld: 2 });
    for (let at = 0; at < 5; at++) tries.failed("192.0.2.1");
    const [one, two, three] = [1, 2, 3].map(() => tries.failed("192.0.2.1"));
    expect([one?.retryAfterMs, two?.retryAfterMs]).toEqual([null, null]);
    expect(three?.holdMs).toBe(0);
    expect(three?.retryAfterMs).toBeGreaterThan(0);
    one?.done();
    one?.done();
    expect(tries.failed("192.0.2.1").retryAfterMs).toBe(null);
    expect(tries.failed("192.0.2.1").retryAfterMs).not.toBe(null);
  });
});

describe("the limits of a token", () => {
  test("two hundred requests per second, refilled over time", () => {
    let now = 0;
    const rate = new RequestRateLimiter({ clock: { now: () => now } });
    const taken = (count: number) =>
      Array.from({ length: count }, () => rate.take("a")).filter((wait) => wait === 0);
    expect(taken(300)).toHaveLength(200);
    expect(rate.take("a")).toBe(5);
    expect(rate.take("b")).toBe(0);
    now += 5;
    expect(taken(3)).toHaveLength(1);
    now += 3_600_000;
    expect(taken(300)).toHaveLength(200);
  });

  test("never exceed one second's worth plus the refill, and waiting as requested always helps", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(40), { minLength: 1, maxLength: 300 }), (gaps) => {
        let now = 0;
        const rate = new RequestRateLimiter({ clock: { now: () => now }, perSecond: 10, mostTokens: 5 });
        let taken = 0;
        for (const gap of gaps) {
          now += gap;
          const wait = rate.take("a");
          if (wait === 0) taken += 1;
          else {
            now += wait;
            expect(rate.take("a")).toBe(0);
            taken += 1;
          }
        }
        expect(taken).toBeLessThanOrEqual(10 + now / 100);
      }),
      { examples: [[[0, 20, 13, 8, 4, 0, 5, 39, 34, 17, 3, 14]]] },
    );
  });

  test("sixty-four sockets, each released once", () => {
    const sockets = new OpenCounter();
    const open = Array.from({ length: 64 }, () => sockets.open("a"));
    expect(open.every((each) => each !== null)).toBe(true);
    expect(sockets.open("a")).toBe(null);
    const other = sockets.open("b");
    open[0]?.();
    open[0]?.();
    expect(sockets.open("a")).not.toBe(null);
    expect(sockets.open("a")).toBe(null);
    other?.();
    expect(sockets.size).toBe(1);
  });

  test("memory is limited per token", () => {
    const rate = new RequestRateLimiter({ clock: { now: () => 0 }, mostTokens: 3 });
    for (let at = 0; at < 1000; at++) rate.take(`t${at}`);
    expect(rate.size).toBe(3);
  });
});
